"""Progress bars for work that takes more than a second; used by the command line only."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 1.0

LONG_SECONDS = 5.0
"""No line is printed if less time than this is left."""

LONGEST_SECONDS = 60.0
"""The longest interval between two lines."""

ENOUGH = 0.01
"""The part of the steps from which on the remaining time is estimated; the first steps may be slow."""

COMPILING = "Compiling kernels for the first run on this machine; this may take half a minute …"

_console: Any = None
_live = False
_watched = False


def show_on(console: Any) -> None:
    """Draw progress bars on this `rich` console from now on; None turns them off."""
    global _console
    _console = console


def watch_compiler() -> None:
    """Print a message when Numba first compiles a kernel, which takes seconds; loading a kernel is silent.

    This also makes Numba load without the parts that hierdp's kernels do not use. Without a console nothing
    is printed. A line that cannot be printed is dropped.
    """
    global _watched
    if not _watched and _console is not None:
        from models.arithmetic.kernels import for_command_line

        for_command_line(_say_compiling)
        _watched = True


def _say_compiling() -> None:
    if _console is not None:
        with suppress(OSError):
            tell(COMPILING)


def tell(line: str) -> None:
    """Print a line, if there is a console."""
    if _console is not None:
        _console.print(line, soft_wrap=True)


def announce(what: str, seconds: float, more: str = "") -> None:
    """Print beforehand about how long something will take, if that is more than a few seconds."""
    if seconds >= LONG_SECONDS:
        tell(f"{what} will take about {duration(seconds)}{more}")


def steps(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Iterate, and show progress after a second.

    On a terminal this is a bar. In a file or pipe it is lines with the remaining time, if that is at least a
    few seconds. Only the outermost of nested loops is shown; a loop of one step shows those within it.
    """
    if total == 1:
        return iter(items)
    by_lines = _console is not None and not _console.is_terminal
    return _lines(items, what, total) if by_lines else _bar(items, what, total)


def _lines(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Print a line when the remaining time is known to be long, then at increasing intervals."""
    global _live
    if _live:
        yield from items
        return
    _live, printed = True, False
    started, wait = time.monotonic(), PATIENCE_SECONDS
    due = started + wait
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if done and now >= due:
                left = (now - started) / done * (total - done)
                if printed or left >= LONG_SECONDS:
                    more = f", about {duration(left)} left" if done >= total * ENOUGH else ""
                    tell(f"{what}: {done:,} of {total:,} done{more}")
                    printed, wait = True, min(max(2 * wait, LONG_SECONDS), LONGEST_SECONDS)
                due = now + wait
            yield item
    finally:
        _live = False


def duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> duration(7.4), duration(89), duration(600), duration(9000)
    ('7 s', '89 s', '10 minutes', '2.5 hours')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _bar(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Show a bar that disappears at the end."""
    global _live
    started, bar, task = time.monotonic(), None, None
    try:
        for done, item in enumerate(items):
            late = time.monotonic() - started > PATIENCE_SECONDS
            if bar is None and _console is not None and not _live and late:
                from rich.progress import (
                    BarColumn,
                    MofNCompleteColumn,
                    Progress,
                    TextColumn,
                    TimeRemainingColumn,
                )

                columns = (
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeRemainingColumn(),
                )
                bar = Progress(*columns, console=_console, transient=True)
                bar.start()
                task, _live = bar.add_task(what, total=total, completed=done), True
            yield item
            if bar is not None and task is not None:
                bar.update(task, completed=done + 1)
    finally:
        if bar is not None:
            bar.stop()
            _live = False
