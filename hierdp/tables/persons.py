"""Bound the rows of each person, by a rule that no other person's rows can change."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hierdp.errors import InputError
from hierdp.tables.columns import Column, Fault, column_of, text_of
from hierdp.tables.sources import Table

PERSON = "person"
"""The column of rows, as `bounded` takes them, that names a row's person."""


@dataclass(frozen=True)
class Persons:
    """Whose rows are whose, and how much of one person is counted.

    Parameters
    ----------
    column : str
        The column that names a row's person (or household, or device). No value may be missing.
    rows : int
        How many rows of a person are counted at most; of a table of counts, how much of a person's counts.
    key : str, optional
        Picks the rows, together with the person and what the row holds. Random by default.

    Raises
    ------
    InputError
        If `rows` is not a whole number, 1 or more.
    """

    column: str
    rows: int = 1
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def __post_init__(self) -> None:
        """Check the number of rows."""
        rows = self.rows
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or not 1 <= rows < 2**31:
            raise InputError(f"rows_per_person is {rows!r}: it must be a whole number, 1 or more")
        object.__setattr__(self, "rows", int(rows))


def person_of(table: Table, persons: Persons) -> tuple[Column, list[Fault]]:
    """A row's person as text, and where none is named."""
    person = text_of(column_of(table, persons.column))
    missing = f"column {persons.column!r}: the person is missing; name one in every row, or remove the row"
    return person, [(person.isnull(), missing)]


def bounded(rows: Table, persons: Persons, amount: str) -> Table:
    """Bound what is counted of each person to `persons.rows` in all.

    A person's rows are put in the order of a hash of the key, the person and all that the row holds; they
    count from the first until the bound is reached, and nothing after it. So what is counted of a person
    follows from the key and that person's rows alone: it is the same in any two tables that differ in
    another person. Rows that hold the same come in any order, which changes nothing.

    Parameters
    ----------
    rows : ibis.Table
        With a column ``person``, which the result does not have.
    persons : Persons
    amount : str
        The column of whole numbers, 0 or more, that are counted. No row goes: those over the bound have 0.

    Returns
    -------
    ibis.Table
        All rows, with other amounts.
    """
    import ibis

    what = [name for name in rows.columns if name != PERSON]
    text = ibis.literal(persons.key).concat(row_text(rows, [PERSON, *what]))
    drawn = rows.mutate(drawn=text.hash(), part=ibis.least(rows[amount], persons.rows).cast("int64"))
    until = ibis.window(
        group_by=drawn[PERSON], order_by=[drawn.drawn, *(drawn[name] for name in what)], preceding=(None, 0)
    )
    reached = drawn.mutate(reached=drawn.part.sum().over(until))
    left = persons.rows - (reached.reached - reached.part)
    counted = ibis.greatest(ibis.least(reached.part, left), 0).cast("int64")
    return reached.mutate(counted.name(amount)).select(*what)


def once(rows: Table, cell: Sequence[str], amount: str) -> Table:
    """One row a person and cell, in which 1 is counted if anything was."""
    import ibis

    by = [PERSON, *cell]
    return rows.group_by(by).agg(ibis.least(rows[amount].max(), 1).cast("int64").name(amount))


def row_text(rows: Table, names: Sequence[str]) -> Column:
    """A row as one text; each value begins with its length, so that no two rows read alike."""
    import ibis

    texts = []
    for name in names:
        text = rows[name].cast("string").fill_null("")
        texts += [text.length().cast("string"), rows[name].isnull().ifelse("?", ":"), text]
    return ibis.literal("").concat(*texts)
