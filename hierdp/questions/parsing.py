"""The text of a question: ``county=Kings|Queens; size=1:4``."""

from __future__ import annotations

from hierdp.errors import InputError


def parsed(text: str) -> dict[str, list[str]]:
    """The names that a question selects, by column.

    Raises
    ------
    InputError
        If a part is not ``COLUMN=NAME``, or a column is named twice.

    Examples
    --------
    >>> parsed("county=Kings|Queens; size=1:4")
    {'county': ['Kings', 'Queens'], 'size': ['1:4']}
    """
    found: dict[str, list[str]] = {}
    for part in text.split(";"):
        if not part.strip():
            continue
        column, equals, names = part.partition("=")
        column = column.strip()
        values = [name.strip() for name in names.split("|")]
        if not equals or not column or not all(values):
            raise InputError(f"{text!r}: write COLUMN=NAME or COLUMN=NAME|NAME, separated by semicolons")
        if column in found:
            raise InputError(f"{text!r}: {column!r} is named twice; join its names by |")
        found[column] = values
    return found
