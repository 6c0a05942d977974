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
_current: _Bar | _Lines | None = None
"""The loop that is shown, or will be if it takes longer."""

_watched = False


def show_on(console: Any) -> None:
    """Draw progress bars on this `rich` console from now on; None turns them off."""
    global _console
    _console = console


def watch_compiler() -> None:
    """Print a message when Numba first compiles a kernel, which takes seconds; loading a kernel is silent.

    Without a console nothing is printed. A line that cannot be printed is dropped.
    """
    global _watched
    if not _watched and _console is not None:
        from models.arithmetic.kernels import when_compiling

        when_compiling(_say_compiling)
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
    return _shown(items, what, total)


def doing(what: str) -> None:
    """Say what the current step of a loop is doing, if the loop has taken longer than a second.

    For loops of few long steps: it shows progress before the first step is finished.
    """
    if _current is not None:
        _current.doing(what)


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(7.4), duration(89), duration(600), duration(9000)
    ('7 s', '89 s', '10 minutes', '2.5 hours')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def plural(number: int, what: str) -> str:
    """A number of things in words.

    >>> plural(1, "model"), plural(2_000, "model")
    ('1 model', '2,000 models')
    """
    return f"{number:,} {what}" + "s" * (number != 1)


class _Lines:
    """Lines in a file or pipe: when the remaining time is known to be long, then at increasing intervals."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._started, self._wait, self._printed = time.monotonic(), PATIENCE_SECONDS, False
        self._due = self._started + self._wait

    @property
    def live(self) -> bool:
        """Whether loops within this one are silent."""
        return True

    def begin(self, done: int) -> None:
        """A step begins, after `done` others."""
        self._done, now = done, time.monotonic()
        if not done or now < self._due:
            return
        left = (now - self._started) / done * (self._total - done)
        if self._printed or left >= LONG_SECONDS:
            self._tell(f", about {duration(left)} left" if done >= self._total * ENOUGH else "")
        self._due = now + self._wait

    def doing(self, what: str) -> None:
        """The current step is long."""
        if time.monotonic() >= self._due:
            self._tell(f", now {what}")
            self._due = time.monotonic() + self._wait

    def _tell(self, more: str) -> None:
        tell(f"{self._what}: {self._done:,} of {self._total:,} done{more}")
        self._printed, self._wait = True, min(max(2 * self._wait, LONG_SECONDS), LONGEST_SECONDS)

    def end(self) -> None:
        """The loop ends."""


class _Bar:
    """A bar on a terminal that disappears at the end."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._started: float = time.monotonic()
        self._bar: Any = None

    @property
    def live(self) -> bool:
        """Whether the bar is shown, so that loops within this one are silent."""
        return self._bar is not None

    def begin(self, done: int) -> None:
        """A step begins, after `done` others."""
        self._done = done
        self._show(self._what)

    def doing(self, what: str) -> None:
        """The current step is long."""
        self._show(f"{self._what}, now {what}")

    def _show(self, text: str) -> None:
        if self._bar is None:
            if time.monotonic() - self._started <= PATIENCE_SECONDS:
                return
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=_console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(text, total=self._total)
        self._bar.update(self._task, completed=self._done, description=text)

    def end(self) -> None:
        """The loop ends."""
        if self._bar is not None:
            self._bar.stop()


def _shown(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    global _current
    if _console is None or (_current is not None and _current.live):
        yield from items
        return
    before = _current
    _current = one = _Bar(what, total) if _console.is_terminal else _Lines(what, total)
    try:
        for done, item in enumerate(items):
            one.begin(done)
            yield item
    finally:
        one.end()
        _current = before
