"""Long work that goes on from what is done already: finished runs kept in a folder until all are.

For experiments and cross-verification. A release is never resumed: noise that was drawn for it is spent, and
is neither kept nor drawn again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hierdp import execution
from hierdp.errors import InputError
from hierdp.versions import fingerprint

Row = dict[str, Any]

_ours = re.compile(r"[0-9a-f]{64}\.json|[0-9a-z_]+\.unfinished")


class Kept:
    """A folder of finished runs, a file each; what cannot be read or written is done (again).

    Parameters
    ----------
    folder : path
        Made with the first finished run.
    about : anything with a complete ``repr``
        What all runs depend on: settings, seed, data. The source of hierdp, the versions of its libraries
        and the machine (runs have times) go with it.
    """

    def __init__(self, folder: Path, *about: Any) -> None:
        self.folder = folder
        self._about = repr((fingerprint(), platform.node(), about))

    def get(self, run: str) -> list[Row] | None:
        """The rows of a run that is done."""
        try:
            kept = json.loads(self._file(run).read_text(encoding="utf-8"))
            rows: list[Row] = kept["rows"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return rows if kept.get("run") == run else None

    def put(self, run: str, rows: list[Row]) -> None:
        """Keep them; whole or not at all."""
        with suppress(OSError):  # a full disk is no reason to lose the work in hand
            self.folder.mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(suffix=".unfinished", prefix="", dir=self.folder)
            try:
                with open(descriptor, "w", encoding="utf-8") as file:
                    json.dump({"run": run, "rows": rows}, file)
                os.replace(name, self._file(run))
            except BaseException:
                os.unlink(name)
                raise

    def clear(self) -> None:
        """All is done: remove the runs, and the folder if there is nothing else in it."""
        with suppress(OSError):
            for file in [entry for entry in self.folder.iterdir() if _ours.fullmatch(entry.name)]:
                file.unlink()
            self.folder.rmdir()

    def _file(self, run: str) -> Path:
        return self.folder / f"{hashlib.sha256(repr((self._about, run)).encode()).hexdigest()}.json"


_kept: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def keeping(folder: Path, *about: Any) -> Iterator[None]:
    """Have `runs` keep what is done, for the length of a ``with`` block; a block that ends well clears it.

    Raises
    ------
    InputError
        If the folder is there and is none of ours, or its parent is not there.
    """
    if folder.exists() and not (
        folder.is_dir() and all(_ours.fullmatch(entry.name) for entry in folder.iterdir())
    ):
        raise InputError(f"{folder} is there, and holds no finished runs: choose another folder to keep them")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.absolute().parent} to put {folder.name} in")
    kept = Kept(folder, *about)
    before = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(before)
    kept.clear()


def runs(
    function: Callable[..., list[Row]],
    cases: Sequence[tuple[Any, ...]],
    what: str,
    shared: tuple[Any, ...] = (),
    names: Sequence[str] | None = None,
) -> list[list[Row]]:
    """``function(*shared, *case)`` of every case that is not done yet: rows of plain values, a list a case.

    By `hierdp.execution.each`, so the function must be one of a module.

    Parameters
    ----------
    cases : sequence of tuple
        Told apart by their ``repr``, or by `names`.
    shared : tuple
        Data, settings, seed: what `keeping` was told about.
    """
    told = [repr(case) for case in cases] if names is None else list(names)
    told = [f"{function.__module__}.{function.__qualname__} {name}" for name in told]
    kept = _kept.get()
    found = [None if kept is None else kept.get(name) for name in told]
    todo = [place for place, rows in enumerate(found) if rows is None]
    results = execution.each(function, [cases[place] for place in todo], what, shared)
    for place, rows in zip(todo, results, strict=True):
        found[place] = plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
        if kept is not None:
            kept.put(told[place], plain)
    return [rows for rows in found if rows is not None]


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's, so that a run that was kept is what it was."""
    return value.item() if hasattr(value, "item") else value
