"""Results that grow: a Parquet file, and beside it a journal with a line for each row not yet in it.

A row is in the journal as soon as it is known, so a process that is killed loses the one it was at. The
Parquet file is written once a session, not once a row.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hierdp.errors import InputError
from hierdp.execution import folder

if TYPE_CHECKING:
    from pandas import DataFrame


class Store:
    """The rows known so far; `add` keeps one more."""

    def __init__(self, known: DataFrame, key: Sequence[str], journal: IO[str]) -> None:
        self.known, self.key, self._journal = known, list(key), journal
        self.done = set(known[self.key].itertuples(index=False, name=None))

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row, at once."""
        self._journal.write(json.dumps(row, default=_plain) + "\n")
        self._journal.flush()
        self.done.add(tuple(row[name] for name in self.key))


@contextmanager
def growing(results: Path, columns: Sequence[str], key: Sequence[str]) -> Iterator[Store]:
    """Open results to grow, and write them when done, however that comes about.

    Raises
    ------
    InputError
        If the file holds something else, or another process is at it.
    """
    read(results, columns)
    with _locked(results) as journal:
        known = read(results, columns)  # what another process added before it let go
        try:
            yield Store(known, key, journal)
        finally:
            if journal.tell():
                with folder.file_appearing(results) as aside:
                    read(results, columns).to_parquet(aside, index=False)
                journal.truncate(0)


def read(results: Path, columns: Sequence[str]) -> DataFrame:
    """All rows: those of the file, and those of a journal that a killed process left.

    Raises
    ------
    InputError
        If the file is no such table.
    """
    import pandas as pd

    frame = pd.DataFrame(columns=list(columns))
    if results.exists():
        try:
            frame = pd.read_parquet(results)
        except Exception as failure:  # each engine raises its own kinds
            raise InputError(f"{results} cannot be read as a Parquet file: {failure}") from None
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise InputError(f"{results} holds no such results: it has no column {missing[0]!r}")
    rows = _rows(_journal(results))
    if rows:
        new = pd.DataFrame(rows)
        frame = new if frame.empty else pd.concat([frame, new], ignore_index=True)
        frame = frame.drop_duplicates(ignore_index=True)  # killed between writing the file and emptying this
    for column in frame.columns[frame.isna().all()]:
        frame[column] = frame[column].astype(float)
    return frame


def _journal(results: Path) -> Path:
    return results.with_name(f".{results.name}.journal")


def _rows(journal: Path) -> list[dict[str, Any]]:
    """The whole lines; the last one may have been cut off."""
    if not journal.is_file():
        return []
    lines = journal.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


@contextmanager
def _locked(results: Path) -> Iterator[IO[str]]:
    """The journal, to append to; it goes when its rows are in the file."""
    path = _journal(results)
    while True:
        with path.open("a+", encoding="utf-8") as journal:
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"another process is writing to {results}; let it end") from None
            if not path.exists() or not os.path.samestat(os.fstat(journal.fileno()), path.stat()):
                continue  # its last owner has removed it between the two
            _drop_cut_line(journal)
            try:
                yield journal
            finally:
                if not path.stat().st_size:
                    path.unlink()
            return


def _drop_cut_line(journal: IO[str]) -> None:
    """What was cut off must not run into the next row."""
    journal.seek(0)
    text = journal.read()
    whole = text.rfind("\n") + 1
    journal.truncate(len(text[:whole].encode()))
    journal.seek(0, os.SEEK_END)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item()
