"""Errors in a user's input."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input; the message says what is wrong, where, and what to do.

    It names the cause (a file, a column, a row, a region, a group), but never a count: true counts are what a
    release protects, and messages end up in logs.
    """


def unknown_column(name: object, columns: Iterable[str], where: str = "the data") -> InputError:
    """The error for a missing column, with the names of the existing columns and the closest match.

    Examples
    --------
    >>> print(unknown_column("destinaton", ["origin", "destination"]))
    no column 'destinaton' in the data; its columns are 'origin', 'destination'. Did you mean 'destination'?
    """
    there = [str(column) for column in columns]
    near = get_close_matches(str(name), there, n=1)
    hint = f". Did you mean {near[0]!r}?" if near else ""
    return InputError(f"no column {name!r} in {where}; its columns are {listed(there, most=30)}{hint}")


def listed(names: Iterable[object], most: int = 5) -> str:
    """Quoted names for a message, at most `most` of them.

    Examples
    --------
    >>> listed("abc", most=2)
    "'a', 'b' and 1 more"
    """
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more
