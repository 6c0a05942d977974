"""Read columns of names or counts, and refuse wrong rows by row number, without showing a count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hierdp.errors import InputError, unknown_column
from hierdp.tables.sources import Table, engine, run

Column = Any  # ibis.Column; Ibis has no types
Fault = tuple[Column, str]  # a condition for wrong rows, and the message
LARGEST = 2**63 - 1


def column_of(table: Table, name: str, where: str = "the data") -> Column:
    """A column by name.

    Raises `InputError` if there is no such column, its name begins or ends with a blank, or it contains
    timestamps whose time zone is not known.
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a column must be a text, such as {table.columns[0]!r}; got {name!r}")
    blank = next((column for column in table.columns if column.strip() == name.strip() != column), None)
    if blank is not None and (name not in table.columns or name == blank):
        raise InputError(f"the name of column {blank!r} of {where} begins or ends with a blank; strip it")
    if name not in table.columns:
        raise unknown_column(name, table.columns, where)
    if getattr(table[name].type(), "timezone", None):  # `read` has removed all zones that are known
        raise InputError(
            f"column {name!r} contains timestamps in UTC, whose day depends on the time zone: convert them "
            f"to a zone's clock, such as {name} AT TIME ZONE 'Europe/Berlin' in SQL, or to dates"
        )
    return table[name]


def text_of(column: Column) -> Column:
    """A name as text, or null if it is missing; `hierarchy` has the same rules in Python.

    DuckDB composes letters and their accents (NFC); in other databases they are compared as they are.
    """
    kind = column.type()
    if kind.is_string():
        engines, _ = column._find_backends()  # none: a table in memory, which any of them may read
        in_duckdb = [engine.name for engine in engines] == ["duckdb"]
        return (_composed()(column) if in_duckdb else column).nullif("")
    if kind.is_floating():  # whole numbers become floats where a column has gaps: 1.0 is the region "1"
        whole = ((column.abs() < 2.0**63) & (column % 1 == 0)).ifelse(column, None).cast("int64")
        return column.isnan().ifelse(None, whole.cast("string").coalesce(column.cast("string")))
    if kind.is_timestamp():  # a day, with or without midnight, is the region "2013-12-31"
        day = column.date()
        return (column == day.cast(kind)).ifelse(day.cast("string"), column.cast("string"))
    return column.cast("string")


@cache
def _composed() -> Any:
    """DuckDB's function for NFC."""
    import ibis

    def nfc_normalize(text: str) -> str:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(nfc_normalize, signature=((ibis.dtype("string"),), ibis.dtype("string")))


COMMA = "not a number because of its comma (the decimal sign is a point, and thousands have no separator)"
"""What is said about numbers such as 12,5 and 7,777."""


def whole_of(table: Table, name: str | None) -> tuple[Column, list[Fault]]:
    """A column of counts as int64 (1 per row if there is no column), and its possible faults."""
    import ibis

    if name is None:
        return ibis.literal(1, "int64"), []
    column = column_of(table, name)
    kind = column.type()
    if kind.is_string():
        text = column.strip()
        whole = text.re_search(r"^\+?[0-9]+(\.0*)?$")
        digits = text.re_replace(r"^\+?0*|\.0*$", "")
        size = digits.length()
        fits = whole & ((size < 19) | ((size == 19) & (digits <= str(LARGEST))))
        # Not every database supports TRY_CAST: values that do not fit are set to null first.
        value = fits.ifelse(ibis.literal("0") + digits, None).cast("int64")
        faults = {
            "missing": column.isnull() | (text == ""),
            "negative": text.re_search(r"^-[0-9.]+$"),
            "fractional": ~whole & text.re_search(r"^\+?[0-9]*\.[0-9]+$"),
            COMMA: text.re_search(r"^[-+]?[0-9.]*,[0-9.,]*$"),
            "not a number": ~whole,
            "too large for 64 bits": whole & ~fits,
        }
    elif kind.is_integer() or kind.is_floating() or kind.is_decimal() or kind.is_null():
        value = column.cast("int64")
        faults = {"missing": column.isnull()}
        if kind.is_floating() or kind.is_decimal():  # PostgreSQL's decimals may be NaN
            faults["missing"] |= column.cast("float64").isnan()
        if not kind.is_null():
            faults["negative"] = column < 0
            # A whole number compared with a float would be rounded to one: 2^63 − 1 to 2^63.
            if kind.is_uint64():
                faults["too large for 64 bits"] = column > ibis.literal(LARGEST, "uint64")
            elif not kind.is_integer():
                faults["too large for 64 bits"] = column >= 2.0**63
        if kind.is_floating() or kind.is_decimal():
            faults |= {"fractional": column % 1 != 0}
    else:
        raise InputError(f"column {name!r} contains {kind}, not counts; choose a column of whole numbers")
    advice = "counts are whole numbers of at least 0; fix or remove the row"
    return value, [(bad, f"column {name!r}: the count is {what}; {advice}") for what, bad in faults.items()]


def refuse(table: Table, faults: Sequence[Fault], where: str = "") -> None:
    """Refuse a table without rows, or with a fault: the first fault that occurs, at its first row.

    Rows have an order, and thus a number, only if DuckDB reads them.
    """
    import ibis

    occurs = {f"fault{i}": bad.any() for i, (bad, _) in enumerate(faults)}
    found = run(table.aggregate(rows=table.count(), **occurs)).to_pylist()[0]
    if not found["rows"]:
        raise InputError(f"{where or 'the table'} has no rows")
    of = f" of {where}" if where else ""
    for i, (bad, what) in enumerate(faults):
        if not found[f"fault{i}"]:
            continue
        if engine(table).name != "duckdb":
            raise InputError(f"a row{of}, {what}")
        numbered = table.select(bad=bad, row=ibis.row_number())
        row = run(numbered.filter(numbered.bad).aggregate(row=numbered.row.min()))["row"][0].as_py()
        raise InputError(f"row {row + 1}{of}, {what}")


def total_of(table: Table, number: Column, name: str | None, most: int = LARGEST) -> int:
    """The sum of a column of counts, which is refused if it is too large; 0 without one."""
    if name is None:
        return 0
    total = table.aggregate(total=number.cast("decimal(38, 0)").sum())  # 10¹⁹ rows of 2⁶³ fit
    held = int(run(total)["total"][0].as_py())
    if held > most:
        what = "more than 64 bits hold" if most == LARGEST else "too large a number"
        raise InputError(f"column {name!r}: the counts add up to {what}; use larger units")
    return held
