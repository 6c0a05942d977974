"""Errors in a user's input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

MOST_NAMES = 12
"""As many names are listed in full; of more, the closest."""


class InputError(ValueError):
    """Bad input; the message says what is wrong, where, and what to do.

    It names the cause (a file, a column, a row, a region, a group), but never a count: true counts are what a
    release protects, and messages end up in logs.

    Options are named in backticks, as in Python: `` `max_size` ``, `` `bounded=False` ``. The command line
    replaces them by its flags; `str` leaves out the backticks. What both write in different ways has both,
    with a bar: `` `--database URL|Database(url)` ``.

    Examples
    --------
    >>> error = InputError("`max_size` is 0: give more, or `size_budget=0.1`")
    >>> print(error)
    max_size is 0: give more, or size_budget=0.1
    >>> error.spelled(lambda name, value: f"--{name.replace('_', '-')} {value or ''}".strip())
    '--max-size is 0: give more, or --size-budget 0.1'
    >>> print(InputError("give `--database URL|Database(url)`"))
    give Database(url)
    """

    def __str__(self) -> str:
        """The message, with the names of options as in Python."""
        python = _EITHER.sub(r"\2", self.marked)
        return _spelled(python, lambda name, value: name if value is None else f"{name}={value}")

    @property
    def marked(self) -> str:
        """The message with backticks, for a message that continues it."""
        return super().__str__()

    def spelled(self, spelling: Callable[[str, str | None], str]) -> str:
        """The message on the command line, with each option spelled by its name and value."""
        return _spelled(_EITHER.sub(r"\1", self.marked), spelling)


def _spelled(text: str, spelling: Callable[[str, str | None], str]) -> str:
    return _OPTION.sub(lambda found: spelling(found[1], found[3]) + (found[2] or ""), text)


_EITHER = re.compile(r"`(--[^`|]*)\|([^`]*)`")
"""What the command line and Python write in different ways."""

_OPTION = re.compile(r"`(\w+)( \d+)?(?:=([^`]*))?`")
"""A name, perhaps with the number of one of its values or with a value."""


def options_listed(names: Iterable[str]) -> str:
    """The names of options, for a message.

    Examples
    --------
    >>> options_listed(["count", "max_size"])
    '`count`, `max_size`'
    """
    return ", ".join(f"`{name}`" for name in names)


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


def unknown_name(name: object, known: Iterable[str], what: str = "unknown name") -> str:
    """What is wrong with a name, and which names there are: all of them, the closest, or how many.

    Examples
    --------
    >>> unknown_name("Kigns", ["Kings", "Queens"])
    "unknown name 'Kigns'; did you mean 'Kings'? There are 'Kings', 'Queens'"
    >>> unknown_name("hb", ["H_b", "Flat"], "no method")
    "no method 'hb'; did you mean 'H_b'? There are 'H_b', 'Flat'"
    >>> unknown_name("Lisboa", map(str, range(1000, 1300)))
    "unknown name 'Lisboa'; there are 300 names, such as '1000', '1001', '1002', '1003'"
    """
    there, text = list(known), str(name).casefold()
    folded = {one.casefold(): one for one in reversed(there)}
    near = get_close_matches(str(name), there, n=3) or [
        folded[one] for one in get_close_matches(text, folded)
    ]
    near = near or [one for one in there if text in one.casefold()][:3]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    if len(there) <= MOST_NAMES:
        names = f"here are {listed(there, MOST_NAMES)}"
    elif near:
        return f"{what} {name!r}; {hint}"
    else:
        names = f"here are {len(there):,} names, such as {listed(there[:4])}"
    return f"{what} {name!r}; " + (f"{hint} T{names}" if hint else f"t{names}")


def near_by(path: Path) -> str:
    """The hint at a file or folder of nearly the same name beside a missing one; empty if there is none."""
    try:
        beside = {one.name.casefold(): one for one in islice(path.parent.iterdir(), 10_000)}
    except OSError:
        return "" if path.parent.is_dir() else f": there is no folder {str(path.parent)!r}"
    near = get_close_matches(path.name.casefold(), beside, n=1)
    return f"; did you mean {str(beside[near[0]])!r}?" if near else ""


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
