"""Progress bars for work that takes more than a second; silent unless a command line asks for them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 1.0

_console: Any = None
_live = False
_watched = False


def show_on(console: Any) -> None:
    """Draw the bars on this `rich` console from now on (None: draw none)."""
    global _console
    _console = console


def say(text: str) -> None:
    """A line for whoever watches; nothing where nobody does."""
    if _console is not None:
        _console.print(text)


def watch_compiler() -> None:
    """Say once, on a terminal, that Numba compiles: seconds in which nothing else moves."""
    global _watched
    if _watched or _console is None or not _console.is_terminal:
        return
    from numba.core.event import Event, Listener, register

    class Once(Listener):  # type: ignore[misc]
        told = False

        def on_start(self, event: Event) -> None:  # noqa: ARG002
            if not self.told and _console is not None:
                self.told = True
                _console.print("Compiling, once on this machine: this may take half a minute …", style="dim")

        def on_end(self, event: Event) -> None:
            pass

    register("numba:compile", Once())
    _watched = True


def steps(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Iterate; after a second, show how far it is. A bar inside another's work stays hidden."""
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
