"""The file of a release's measurements, written and read a part at a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from hierdp.counts.size_table import fits
from hierdp.measurements.rows import COLUMNS, Measurement, Piece, check_rows, rows_of, schema
from hierdp.privacy.budget import Spend, spends_of
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "measurements.parquet"
"""Its name in the folder of a release."""

METADATA = b"hierdp"
"""The entry of the file's metadata with the format's number and the spends, in JSON."""

FORMAT = 1

ROWS = 1_000_000
"""Rows that are written at once: a row group."""

AT_ONCE = 1 << 17
"""Rows that are read at once."""

NARROW: type[np.signedinteger[Any]] = np.int32
"""The type of many answers, where it suffices."""

DELTAS = ["measurement", "position", "answer"]
"""Columns that are saved by their differences: the first two take next to no space, and answers less."""


class Writer:
    """Writes measurements one after the other to a Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        others = [name for name in COLUMNS if name not in DELTAS]
        encoding = dict.fromkeys(DELTAS, "DELTA_BINARY_PACKED")
        self.path = path
        self._file = pq.ParquetWriter(
            path, schema(), use_dictionary=others, column_encoding=encoding, write_statistics=DELTAS[:1]
        )
        self._waiting: list[Piece] = []
        self._rows = 0
        self._spends: list[Spend] = []
        self._open = True

    def add(self, measurement: Measurement, position: int = 0) -> None:
        """Write a measurement or, from a position on, a further part of the last one."""
        answers = measurement.answers
        if not position:
            self._spends.append(measurement.spend)
        number, at = len(self._spends) - 1, 0
        while at < answers.size:
            part = measurement.part(at, at + ROWS - self._rows)
            self._waiting.append((number, part, position + at))
            at += part.answers.size
            self._rows += part.answers.size
            if self._rows == ROWS:
                self._write()
        if self._waiting:  # the caller may change its array
            number, last, at = self._waiting[-1]
            self._waiting[-1] = number, replace(last, answers=last.answers.copy()), at

    def close(self) -> None:
        """Complete the file: nothing can be added."""
        if not self._open:
            return
        self._open = False
        if self._waiting:
            self._write()
        about = {"format": FORMAT, "spends": [asdict(spend) for spend in self._spends]}
        self._file.add_key_value_metadata({METADATA: json.dumps(about, ensure_ascii=False)})
        self._file.close()

    def _write(self) -> None:
        self._file.write_table(rows_of(self._waiting))
        self._waiting, self._rows = [], 0


def written_to(path: Path, measurements: Iterable[Measurement]) -> None:
    """Write all measurements to a file."""
    with closing(Writer(path)) as file:
        for one in measurements:
            file.add(one)


class MeasurementsFile(Sequence[Measurement]):
    """The measurements of a file, read one after the other.

    - folder: the folder of the file, which is deleted with this object.

    Raises `ValueError` if it is not a file of measurements; while reading, if its rows are not those of the
    spends. The message names the first difference.
    """

    def __init__(self, path: Path, folder: TemporaryDirectory[str] | None = None) -> None:
        import pyarrow.parquet as pq

        self._path, self._folder = path, folder
        about = pq.read_metadata(path)
        self._rows, texts = about.num_rows, about.metadata or {}
        if METADATA not in texts:
            raise ValueError("it is not a file of measurements: its metadata have no spends")
        self.spends = spends_of(json.loads(texts[METADATA]))

    def copy(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self._path, path)

    def __len__(self) -> int:
        return len(self.spends)

    @overload
    def __getitem__(self, at: int) -> Measurement: ...

    @overload
    def __getitem__(self, at: slice) -> list[Measurement]: ...

    def __getitem__(self, at: int | slice) -> Measurement | list[Measurement]:
        there = range(len(self))[at]
        if isinstance(there, range):
            return [self[place] for place in there]
        return next(one for place, one in enumerate(self) if place == there)

    def __iter__(self) -> Iterator[Measurement]:
        left = self._rows
        for number, pieces in groupby(self.pieces(), key=lambda piece: piece[0]):
            known: list[Ints] = []
            answers = joined(_answers(pieces, known), left)
            left -= answers.size
            yield Measurement(self.spends[number], answers, np.concatenate(known) if known else None)

    def pieces(self) -> Iterator[Piece]:
        """Read a part at a time: some answers of a measurement, or none if it has none."""
        number = position = row = 0
        for rows in self._batches():
            which = rows.column("measurement").to_numpy()
            if which[0] < number or (np.diff(which) < 0).any() or which[-1] >= len(self.spends):
                raise ValueError(f"its rows are not in the order of {len(self)} measurements")
            at = 0
            while at < which.size:
                if which[at] > number:
                    yield from self._none(number, position)
                    position, number = 0, number + 1
                    continue
                end = int(np.searchsorted(which, number, side="right"))
                check_rows(rows.slice(at, end - at), self.spends[number], position, row + at)
                part = rows.column("answer").to_numpy()[at:end]
                spend, known = self.spends[number], rows.column("position").to_numpy()[at:end]
                yield number, Measurement(spend, part, None if spend.delta is None else known), position
                position, at = position + end - at, end
            row += which.size
        while number < len(self):
            yield from self._none(number, position)
            position, number = 0, number + 1

    def _none(self, number: int, position: int) -> Iterator[Piece]:
        """The only piece of a measurement that ends at position 0."""
        if not position:
            spend, none = self.spends[number], np.empty(0, dtype=np.int64)
            yield number, Measurement(spend, none, None if spend.delta is None else none), 0

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._path, read_dictionary=["query", "noise"]) as file:
            names = file.schema_arrow.names
            if names != COLUMNS:
                raise ValueError(f"its columns are {names}, not {COLUMNS}")
            for name, kind, ours in zip(names, file.schema_arrow.types, schema().types, strict=True):
                if kind != ours and not (_text(kind) and _text(ours)):
                    raise ValueError(f"its column {name!r} is of type {kind}, not {ours}")
            if not self._rows:  # of a file without row groups, older versions of pyarrow read no batch
                return
            for rows in file.iter_batches(min(ROWS, AT_ONCE)):
                for name, column in zip(names, rows.columns, strict=True):
                    if column.null_count:
                        raise ValueError(f"its column {name!r} has missing entries")
                if len(rows):
                    yield rows


def _text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind)) and kind.value_type in (pa.string(), pa.large_string())


def _answers(pieces: Iterable[Piece], known: list[Ints]) -> Iterator[Ints]:
    for _, part, _ in pieces:
        if part.positions is not None:
            known.append(part.positions.copy())
        yield part.answers


def joined(parts: Iterable[Ints], most: int) -> Ints:
    """One array of all parts, at most so many answers; of several parts, 32 bits where these suffice."""
    answers: Ints = np.empty(0, dtype=np.int64)
    at = 0
    for part in parts:
        if not at:
            answers = part.copy()
        else:
            if at == answers.size:  # memory that is not written to is not taken
                first, answers = answers, np.empty(most, dtype=NARROW)
                answers = put(answers, 0, first)
            answers = put(answers, at, part)
        at += part.size
    if answers.size > at:
        answers.resize(at, refcheck=False)
    return answers


def put(answers: Ints, at: int, part: Ints) -> Ints:
    """The array with a part from a place on; of 64 bits if 32 do not suffice."""
    if not fits(part, answers.dtype):
        answers = answers.astype(np.int64)
    answers[at : at + part.size] = part
    return answers
