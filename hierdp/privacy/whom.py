"""Whom a guarantee protects, in the words of the table."""

from __future__ import annotations

from typing import NamedTuple

ROW, PERSON, COUNT = "row", "person", "count"
"""A row of the table; a person with all of their rows; or one of what a column of numbers counts."""

A_ROW = "one row of the table; a person with several rows is protected for one of them (see --person)"


class Whom(NamedTuple):
    """The unit of privacy.

    - unit: `ROW`, `PERSON` or `COUNT`.
    - column: the column that names the person of each row. A person without one has a number of rows (or
      trips) that the publisher states; nobody enforces it.
    - rows: the most rows of a person, or the most that one row counts, in a column of numbers. None if that
      is not bounded, as for `COUNT`, or is left open, as by an account.
    - counts: the column of numbers; None if each row counts as one.
    """

    unit: str = ROW
    column: str | None = None
    rows: int | None = 1
    counts: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What two releases must have in common, so that their losses are those of the same unit."""
        return self.unit, {ROW: None, PERSON: self.column, COUNT: self.counts}[self.unit]

    @property
    def name(self) -> str:
        """The unit without bounds, such as "a person, by column 'patient'"."""
        if self.unit == PERSON:
            return "a person" if self.column is None else f"a person, by column {self.column!r}"
        return "a row" if self.unit == ROW else f"one of what column {self.counts!r} counts"

    def __str__(self) -> str:
        """The unit with its bounds."""
        if self.unit == PERSON and self.column is None:
            return f"a person with at most {self.rows} rows, as the publisher states: no column names persons"
        if self.unit == PERSON and self.counts is not None:
            return f"{self.name}, with up to {self.rows} in column {self.counts!r}, all rows together"
        if self.unit == PERSON:
            return f"{self.name}, with up to {self.rows} rows"
        if self.unit == COUNT:
            return (
                f"{self.name}: a row with the number n has up to n times the loss (see --most-per-row, "
                "--person)"
            )
        if self.counts is not None:
            return f"one row of the table, of whose column {self.counts!r} at most {self.rows} is counted"
        return A_ROW


def whom_of(
    person: str | None = None,
    rows_per_person: int | None = None,
    most_per_row: int | None = None,
    counts: str | None = None,
    trips: int = 1,
) -> Whom:
    """Whom a release with these options protects."""
    if person is not None:
        return Whom(PERSON, person, rows_per_person, counts)
    if most_per_row is not None:
        return Whom(ROW, None, most_per_row, counts)
    if trips > 1:
        return Whom(PERSON, None, trips, counts)
    return Whom() if counts is None else Whom(COUNT, None, None, counts)
