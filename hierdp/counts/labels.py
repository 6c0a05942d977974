"""Names beside codes: what readers call the regions and categories that a table names by codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from unicodedata import normalize

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed, unknown_name

Labels = Mapping[str, str]
"""The name of each code. Public."""

SEPARATORS = (" → ", ", ")
"""Between the names of a cell."""


def named(code: object, labels: Labels) -> str:
    """A code with its name, if it has one.

    >>> named("06037", {"06037": "Los Angeles"}), named("06073", {})
    ('06037 Los Angeles', '06073')
    """
    text = str(code)
    return f"{text} {labels[text]}" if labels.get(text) else text


def named_cell(cell: str, labels: Labels) -> str:
    """A cell's codes, each with its name.

    >>> named_cell("06037 → 06073", {"06037": "Los Angeles", "06073": "San Diego"})
    '06037 Los Angeles → 06073 San Diego'
    """
    for separator in SEPARATORS:
        if separator in cell:
            return separator.join(named(code, labels) for code in cell.split(separator))
    return named(cell, labels)


def named_table(table: Any, labels: Labels) -> Any:
    """A table whose codes have their names; columns of levels are unchanged."""
    from pandas.api.types import is_numeric_dtype

    if not labels:
        return table
    columns = [name for name in table if not is_numeric_dtype(table[name].dtype)]
    columns = [name for name in columns if str(name) != "level_name" and not str(name).endswith("_level")]
    codes = {code: named(code, labels) for code in labels}
    made: Any = table.copy()
    for name in columns:
        made[name] = made[name].map(lambda code: codes.get(str(code), code))
    return made


def named_regions(places: Hierarchy, labels: Labels) -> Hierarchy:
    """Regions whose codes have their names."""
    if not labels:
        return places
    names = (np.array([named(str(code), labels) for code in level], dtype=object) for level in places.names)
    return replace(places, names=tuple(names))


def code_of(name: str, known: Iterable[str], labels: Labels) -> str:
    """The code that somebody gave, or the one code with the name that they gave.

    Raises `InputError` if there is no such code or name, or several codes have the name.

    >>> code_of("San Diego", ["06037", "06073"], {"06037": "Los Angeles", "06073": "San Diego"})
    '06073'
    """
    name, there = normalize("NFC", name), {normalize("NFC", code): code for code in known}
    if name in there:
        return there[name]
    among = {code: labels[code] for code in there.values() if code in labels}
    found = [code for code, label in among.items() if normalize("NFC", label) == name]
    if len(found) > 1:
        raise InputError(f"{listed(found)} are all called {name!r}: give the code")
    if not found:
        raise InputError(unknown_name(name, [*there, *dict.fromkeys(among.values())]))
    return found[0]
