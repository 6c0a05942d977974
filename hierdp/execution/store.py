"""A growing table of results: a Parquet file, and a journal with one line for each row not yet in the file.

Each row is written to the journal at once, so a killed process loses only the row it was computing. The
Parquet file is written once per session.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hierdp.errors import InputError
from hierdp.execution import folder, journal

if TYPE_CHECKING:
    from pandas import DataFrame


class Store:
    """The rows known so far; `add` saves a new row."""

    def __init__(self, known: DataFrame, key: Sequence[str], opened: IO[str]) -> None:
        self.known, self.key, self._journal = known, list(key), opened
        self.done = set(known[self.key].itertuples(index=False, name=None))

    def add(self, row: Mapping[str, Any]) -> None:
        """Save a row at once."""
        journal.add(self._journal, row)
        self.done.add(tuple(row[name] for name in self.key))


@contextmanager
def growing(results: Path, columns: Sequence[str], key: Sequence[str]) -> Iterator[Store]:
    """Open a table of results for adding rows; the file is written when the block ends, even by an error.

    Raises `InputError` if the file is not such a table, or is in use by another process.
    """
    read(results, columns)
    with _locked(results) as opened:
        known = read(results, columns)  # including rows that another process has just added
        try:
            yield Store(known, key, opened)
        finally:
            if opened.tell():
                with folder.file_appearing(results) as aside:
                    read(results, columns).to_parquet(aside, index=False)
                opened.truncate(0)


def read(results: Path, columns: Sequence[str]) -> DataFrame:
    """All rows, including those in the journal of a killed process.

    Raises `InputError` if the file is not such a table.
    """
    import pandas as pd

    frame = pd.DataFrame(columns=list(columns))
    if results.exists():
        try:
            frame = pd.read_parquet(results)
        except Exception as failure:  # the type depends on pandas' Parquet engine
            raise InputError(f"{results} cannot be read as a Parquet file: {failure}") from None
        missing = [column for column in columns if column not in frame.columns]
        if missing:
            raise InputError(f"{results} is not a file of such results: it has no column {missing[0]!r}")
    rows = journal.read(_journal(results))
    if rows:
        new = pd.DataFrame(rows)
        frame = new if frame.empty else pd.concat([frame, new], ignore_index=True)
        frame = frame.drop_duplicates(ignore_index=True)  # if killed before the journal was emptied
    for column in frame.columns[frame.isna().all()]:
        frame[column] = frame[column].astype(float)
    return frame


def _journal(results: Path) -> Path:
    return results.with_name(f".{results.name}.journal")


@contextmanager
def _locked(results: Path) -> Iterator[IO[str]]:
    """The locked journal, opened for appending; it is removed when its rows are in the file."""
    path = _journal(results)
    while True:
        with path.open("a+", encoding="utf-8") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"another process is writing to {results}; wait until it ends") from None
            except OSError as unable:
                raise InputError(
                    f"the disk of {results} does not support locks ({unable.strerror}); use another disk"
                ) from None
            if not path.exists() or not os.path.samestat(os.fstat(opened.fileno()), path.stat()):
                continue  # another process removed it in the meantime
            try:
                yield opened
            finally:
                if not path.stat().st_size:
                    path.unlink()
            return
