"""What a user's input can get wrong, said so that its owner can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input, named so that its owner can mend it.

    The message names the culprit (a file, a column, a row, a region, a group) and what to do. It never
    holds a count: true counts are the secret that a release protects, and messages end up in logs.
    """


def unknown_column(name: object, columns: Iterable[str], where: str = "the data") -> InputError:
    """The error for a column that is not there: what is there instead, and the likeliest slip.

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
    """Names for a message, quoted, at most so many of them.

    Examples
    --------
    >>> listed("abc", most=2)
    "'a', 'b' and 1 more"
    """
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more
