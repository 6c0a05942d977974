"""A file of JSON objects, one a line, to which results are added.

A killed process or a full disk leaves at most one incomplete line, which is not read. The next object starts
on a new line. (An SQLite database would be no shorter: one writer at a time for a whole session, and readers
meanwhile, need a lock beside its own, and its own need a disk on which they work.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


def add(journal: IO[str], row: Mapping[str, Any]) -> None:
    """Add an object to a journal opened for appending; a killed process does not lose it."""
    journal.write("\n" + json.dumps(row, default=plain) + "\n")
    journal.flush()


def read(path: Path) -> list[dict[str, Any]]:
    """All objects of a journal; none if there is no file. Incomplete and other lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    return [row for row in map(_row, lines) if isinstance(row, dict)]


def _row(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def plain(value: Any) -> Any:
    """A NumPy number as a Python number, so that a saved result equals the original."""
    return value.item() if hasattr(value, "item") else value
