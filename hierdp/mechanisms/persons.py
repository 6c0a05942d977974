"""A guarantee for persons by a mechanism whose guarantee is for rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hierdp.errors import InputError
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, PersonRows, check_epsilon, of_one_row
from hierdp.record.release import Release
from hierdp.tables.persons import Persons


def persons_of(person: str | None, rows_per_person: int | None) -> Persons | None:
    """Whose rows are whose, and how many of one person count; None where a row is taken for a person.

    Raises
    ------
    InputError
        If one is given without the other.
    """
    if (person is None) != (rows_per_person is None):
        given, other = ("rows_per_person", "person") if person is None else ("person", "rows_per_person")
        raise InputError(
            f"{given} needs {other}: give both, the column of persons and how many rows of one are counted"
        )
    return None if person is None or rows_per_person is None else Persons(person, rows_per_person)


R = TypeVar("R", bound=Release)


def for_persons(make: Callable[[float], R], epsilon: float, persons: Persons | None) -> R:
    """Make a release under an ε of one row, so that a person's rows together have that of `epsilon`.

    Group privacy: between two tables that differ in one person there are as many steps of one row as rows of
    that person count.

    Parameters
    ----------
    make : callable
        From the ε of one row to the release. It is pure: δ = 0.
    epsilon : float
        Of a person.
    persons : Persons or None
        None: a row is taken for a person.
    """
    if persons is None:
        return make(epsilon)
    made = make(of_one_row(check_epsilon(epsilon), persons.rows))
    counted = PersonRows(persons.column, persons.rows, ONE_ROW)
    return replace(made, ledger=replace(made.ledger, epsilon=check_epsilon(epsilon), person=counted))


def already_for_persons(made: Release, persons: Persons | None) -> Release:
    """A release whose sensitivities are those of a person with all the rows that count."""
    if persons is None:
        return made
    counted = PersonRows(persons.column, persons.rows, ONE_PERSON)
    return replace(made, ledger=replace(made.ledger, person=counted))
