"""Turn a mechanism's guarantee for rows into one for persons, or for rows with numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hierdp.errors import InputError
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, PersonRows, check_epsilon, of_one_row
from hierdp.record.release import Release
from hierdp.tables.persons import Persons


def persons_of(
    person: str | None, rows_per_person: int | None, most_per_row: int | None, counts: str | None
) -> Persons | None:
    """The column of persons and the bound on their rows, or the bound on one row; None without either.

    Raises `InputError` if one is given without the other, or `most_per_row` does not fit.
    """
    if (person is None) != (rows_per_person is None):
        given, other = ("rows_per_person", "person") if person is None else ("person", "rows_per_person")
        raise InputError(
            f"`{given}` needs `{other}`: give both the column of persons and the number of rows that count "
            "per person"
        )
    if most_per_row is not None:
        if person is not None:
            raise InputError(
                "`most_per_row` cannot be given with `person`: `rows_per_person` bounds what a person "
                "counts, all rows together"
            )
        if counts is None:
            raise InputError(
                "`most_per_row` bounds the number in a row, and each row counts as one: give the column of "
                "numbers (`count` or `entities`), or leave it out"
            )
        return Persons(None, most_per_row)
    return None if person is None or rows_per_person is None else Persons(person, rows_per_person)


def refuse_public_total(persons: Persons, bounded: bool) -> None:
    """Refuse a total that is public, if a unit that joins or leaves changes it.

    Raises `InputError` if `bounded`.
    """
    if bounded:
        given, who = ("most_per_row", "row that") if persons.column is None else ("person", "person who")
        raise InputError(
            f"with `{given}`, the total must be noisy, because a {who} joins or leaves changes it; give "
            "`bounded=False`"
        )


R = TypeVar("R", bound=Release)


def rows_of(persons: Persons | None) -> PersonRows | None:
    """The persons, or rows with numbers, of a release whose spends are for one row that counts one."""
    return None if persons is None else PersonRows(persons.column, persons.rows, ONE_ROW)


def for_persons(make: Callable[[float], R], epsilon: float, persons: Persons | None) -> R:
    """Make a release with an ε for one row such that all rows of a person together have `epsilon`.

    Group privacy: two tables that differ in one person are at most as many single-row steps apart as rows of
    a person count. The same holds for a row with a number, which is as many rows that count one.

    - make: makes the release from the ε of one row that counts one; it must be pure, with δ = 0.
    - epsilon: the budget of a person, or of a row.
    - persons: None if each row, or each of what a column of numbers counts, is a person.
    """
    if persons is None:
        return make(epsilon)
    made = make(of_one_row(check_epsilon(epsilon), persons.rows))
    return replace(made, ledger=replace(made.ledger, epsilon=check_epsilon(epsilon), person=rows_of(persons)))


def already_for_persons(made: R, persons: Persons | None) -> R:
    """Mark a release whose sensitivities are those of a person with all counted rows."""
    if persons is None:
        return made
    counted = PersonRows(persons.column, persons.rows, ONE_PERSON)
    return replace(made, ledger=replace(made.ledger, person=counted))


def counting(made: R, counts: str | None, trips: int = 1) -> R:
    """Record the column of numbers that are counted, and the trips of a person that the publisher states."""
    return replace(made, ledger=replace(made.ledger, counts=counts, trips=trips))
