"""Resume long computations: finished runs are saved in a folder until all are finished.

This is for experiments and cross-verification. A release is never resumed: its noise is neither saved nor
drawn again.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hierdp import execution
from hierdp.errors import InputError
from hierdp.execution import journal
from hierdp.versions import fingerprint

Row = dict[str, Any]

RUNS = "runs.jsonl"


class RunCache:
    """A folder with a journal of finished runs; a run that cannot be read or written is computed again.

    - folder: created with the first finished run.
    - about: everything that all runs depend on: settings, seed, data. The source of hierdp, the versions of
      its libraries and the machine's name (runs contain times) are added.
    """

    def __init__(self, folder: Path, *about: Any) -> None:
        self.folder = folder
        self._about = repr((fingerprint(), platform.node(), about))
        self._saved: dict[str, Any] = {}
        with suppress(OSError):
            self._saved = {str(line.get("run")): line.get("rows") for line in journal.read(folder / RUNS)}

    def get(self, run: str) -> list[Row] | None:
        """The rows of a finished run, or None."""
        rows = self._saved.get(self._key(run))
        return rows if isinstance(rows, list) else None

    def put(self, run: str, rows: list[Row]) -> None:
        """Save the rows of a run."""
        with suppress(OSError):  # a full disk must not end the computation
            self.folder.mkdir(exist_ok=True)
            with (self.folder / RUNS).open("a", encoding="utf-8") as opened:
                journal.add(opened, {"run": self._key(run), "rows": rows})

    def clear(self) -> None:
        """Remove the saved runs, and the folder if it is then empty."""
        with suppress(OSError):
            (self.folder / RUNS).unlink()
            self.folder.rmdir()

    def _key(self, run: str) -> str:
        return hashlib.sha256(repr((self._about, run)).encode()).hexdigest()


_cache: ContextVar[RunCache | None] = ContextVar("cache", default=None)


@contextmanager
def keeping(folder: Path, *about: Any) -> Iterator[None]:
    """Make `runs` save finished runs within a ``with`` block; they are removed if it ends without error.

    Raises `InputError` if the folder exists and contains anything but finished runs, or its parent does not
    exist.
    """
    if folder.exists() and not (folder.is_dir() and {file.name for file in folder.iterdir()} <= {RUNS}):
        raise InputError(f"{folder} exists, but is not a folder of finished runs; choose another folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(
            f"the folder {folder.absolute().parent} of {folder.name} does not exist; create it first"
        )
    cache = RunCache(folder, *about)
    before = _cache.set(cache)
    try:
        yield
    finally:
        _cache.reset(before)
    cache.clear()


def runs(
    function: Callable[..., list[Row]],
    cases: Sequence[tuple[Any, ...]],
    what: str,
    shared: tuple[Any, ...] = (),
    names: Sequence[str] | None = None,
) -> list[list[Row]]:
    """``function(*shared, *case)`` for every case, or its saved rows; each result is a list of rows.

    Tasks run by `hierdp.execution.each`, so the function must be defined in a module.

    - cases: the cases, identified by their ``repr`` or by `names`.
    """
    keys = [repr(case) for case in cases] if names is None else list(names)
    keys = [f"{function.__module__}.{function.__qualname__} {name}" for name in keys]
    cache = _cache.get()
    found = [None if cache is None else cache.get(key) for key in keys]
    todo = [place for place, rows in enumerate(found) if rows is None]
    results = execution.each(function, [cases[place] for place in todo], what, shared)
    for place, rows in zip(todo, results, strict=True):
        found[place] = plain = [{name: journal.plain(value) for name, value in row.items()} for row in rows]
        if cache is not None:
            cache.put(keys[place], plain)
    return [rows for rows in found if rows is not None]
