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
"""The column that names a row's person, in the input of `bounded`."""


@dataclass(frozen=True)
class Persons:
    """The persons of a table's rows, and the bound on what is counted of each.

    - column: the column that names a row's person (or household, or device). No value may be missing. None:
      each row by itself is bounded.
    - rows: the most rows of a person that are counted; in a table of counts, the largest sum of a person's
      counts, or the most that one row counts.
    - key: selects the rows, together with the person and the row's contents. Random by default.

    Raises `InputError` if `rows` is not a whole number, 1 or more.
    """

    column: str | None
    rows: int = 1
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def __post_init__(self) -> None:
        rows = self.rows
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or not 1 <= rows < 2**31:
            name = "most_per_row" if self.column is None else "rows_per_person"
            raise InputError(f"`{name}` is {rows!r}: it must be a whole number, 1 or more")
        object.__setattr__(self, "rows", int(rows))


def person_of(table: Table, persons: Persons | None) -> tuple[dict[str, Column], list[Fault]]:
    """The column of a row's person as text, if there is one, and the fault of a missing person."""
    if persons is None or persons.column is None:
        return {}, []
    person = text_of(column_of(table, persons.column))
    missing = f"column {persons.column!r}: the person is missing; name one in every row, or remove the row"
    return {PERSON: person}, [(person.isnull(), missing)]


def bounded(rows: Table, persons: Persons, amount: str, derived: Sequence[str] = ()) -> Table:
    """Bound the sum of what is counted of each person by `persons.rows`.

    A person's rows are ordered by a hash of the key, the person and the row's contents. They count in this
    order until the bound is reached. So what is counted of a person depends only on the key and on that
    person's rows, and is the same in any two tables that differ in another person. The order of rows with
    equal contents does not matter. Without a column of persons, each row counts up to the bound.

    - rows: with a column ``person``, if there is one, which the result does not have.
    - amount: the column of whole numbers, at least 0, that are counted. All rows stay; those beyond the bound
      get 0.
    - derived: columns that follow from others and may depend on other persons' rows, such as the position of
      a region among those in the data. They do not take part in the choice.

    Returns: all rows, with other amounts.
    """
    import ibis

    if persons.column is None:
        return rows.mutate(ibis.least(rows[amount], persons.rows).cast("int64").name(amount))
    what = [name for name in rows.columns if name != PERSON]
    own = [name for name in what if name not in derived]
    text = ibis.literal(persons.key).concat(row_text(rows, [PERSON, *own]))
    drawn = rows.mutate(drawn=text.hash(), part=ibis.least(rows[amount], persons.rows).cast("int64"))
    until = ibis.window(
        group_by=drawn[PERSON], order_by=[drawn.drawn, *(drawn[name] for name in own)], preceding=(None, 0)
    )
    reached = drawn.mutate(reached=drawn.part.sum().over(until))
    left = persons.rows - (reached.reached - reached.part)
    counted = ibis.greatest(ibis.least(reached.part, left), 0).cast("int64")
    return reached.mutate(counted.name(amount)).select(*what)


def once(rows: Table, cell: Sequence[str], amount: str, names: Sequence[str] = ()) -> Table:
    """One row for each person and cell, counted as 1 if anything was counted; `names` are the first ones."""
    import ibis

    by = [PERSON, *cell]
    first = {name: rows[name].min() for name in names}
    return rows.group_by(by).agg(ibis.least(rows[amount].max(), 1).cast("int64").name(amount), **first)


def row_text(rows: Table, names: Sequence[str]) -> Column:
    """A row as one text; each value follows its length, so that different rows have different texts."""
    import ibis

    texts = []
    for name in names:
        text = rows[name].cast("string").fill_null("")
        texts += [text.length().cast("string"), rows[name].isnull().ifelse("?", ":"), text]
    return ibis.literal("").concat(*texts)
