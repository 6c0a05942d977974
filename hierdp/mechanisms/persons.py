"""Turn a mechanism's guarantee for rows into one for persons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hierdp.errors import InputError
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, PersonRows, check_epsilon, of_one_row
from hierdp.record.release import Release
from hierdp.tables.persons import Persons


def persons_of(person: str | None, rows_per_person: int | None) -> Persons | None:
    """The column of persons and the bound on their rows; None if each row is a person.

    Raises
    ------
    InputError
        If one is given without the other.
    """
    if (person is None) != (rows_per_person is None):
        given, other = ("rows_per_person", "person") if person is None else ("person", "rows_per_person")
        raise InputError(
            f"{given} needs {other}: give both the column of persons and the number of rows that count per "
            "person"
        )
    return None if person is None or rows_per_person is None else Persons(person, rows_per_person)


R = TypeVar("R", bound=Release)


def for_persons(make: Callable[[float], R], epsilon: float, persons: Persons | None) -> R:
    """Make a release with an ε for one row such that all rows of a person together have `epsilon`.

    Group privacy: two tables that differ in one person are at most as many single-row steps apart as rows of
    a person count.

    Parameters
    ----------
    make : callable
        Makes the release from the ε of one row; it must be pure, with δ = 0.
    epsilon : float
        The budget of a person.
    persons : Persons or None
        None if each row is a person.
    """
    if persons is None:
        return make(epsilon)
    made = make(of_one_row(check_epsilon(epsilon), persons.rows))
    counted = PersonRows(persons.column, persons.rows, ONE_ROW)
    return replace(made, ledger=replace(made.ledger, epsilon=check_epsilon(epsilon), person=counted))


def already_for_persons(made: Release, persons: Persons | None) -> Release:
    """Mark a release whose sensitivities are those of a person with all counted rows."""
    if persons is None:
        return made
    counted = PersonRows(persons.column, persons.rows, ONE_PERSON)
    return replace(made, ledger=replace(made.ledger, person=counted))
