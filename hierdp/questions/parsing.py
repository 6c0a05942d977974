"""The text of a question: ``county=Kings|Queens; size=1:4``."""

from __future__ import annotations

from hierdp.counts.labels import Labels, named
from hierdp.errors import InputError


def with_names(text: str, labels: Labels) -> str:
    """A question with the names of its codes, and the codes of its names.

    Examples
    --------
    >>> with_names("county=06037|06073; size=1:4", {"06037": "Los Angeles", "06073": "San Diego"})
    'county=06037 Los Angeles|06073 San Diego; size=1:4'
    """
    code_of = {name: code for code, name in labels.items()}

    def both(name: str) -> str:
        return named(name if name in labels else code_of.get(name, name), labels)

    return "; ".join(f"{column}={'|'.join(map(both, names))}" for column, names in parsed(text).items())


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
