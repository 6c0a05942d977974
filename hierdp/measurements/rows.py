"""A `Measurement`, and its answers as rows of an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.privacy.budget import Spend
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ["measurement", "query", "position", "answer", "noise", "scale"]
"""The columns of the file; docs/measurements.md describes them."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy answers to a query; they contain no true counts.

    Attributes
    ----------
    spend : Spend
        The query, its noise and its privacy loss.
    answers : int64 array, shape (n,)
        Noisy counts or, of private choices, the number of the chosen candidate of each. Of more than a
        million counts that fit it may be an int32 array.
    positions : int64 array, shape (n,), optional
        Which of the query's answers these are, in ascending order, if only those that reached a threshold are
        known. By default all are there. Of counts from elsewhere, their rows in the table.
    keys : mapping of str arrays, optional
        Of counts from elsewhere (`Measurements.from_frame`): what each answer counts, by column. Columns that
        are not there are summed over. The answers may then be float64.
    errors : float64 array, shape (n,), optional
        Of counts from elsewhere: the standard errors of the answers; NaN if unknown.
    """

    spend: Spend
    answers: Ints
    positions: Ints | None = None
    keys: Mapping[str, NDArray[Any]] | None = None
    errors: NDArray[np.float64] | None = None

    def part(self, first: int, end: int) -> Measurement:
        """Some of its answers."""
        known = None if self.positions is None else self.positions[first:end]
        return Measurement(self.spend, self.answers[first:end], known)


Piece = tuple[int, Measurement, int]
"""The number of a measurement in a release, some of its answers, and the position of the first of these."""


def rows_of(pieces: Sequence[Piece]) -> pa.Table:
    """One row for each answer, with `COLUMNS`."""
    import pyarrow as pa

    answers = [part.answers for _, part, _ in pieces]
    lengths = [each.size for each in answers]
    positions = [
        np.arange(at, at + length) if part.positions is None else part.positions
        for length, (_, part, at) in zip(lengths, pieces, strict=True)
    ]
    spends = [part.spend for _, part, _ in pieces]
    none = np.empty(0, dtype=np.int64)
    return pa.table(
        {
            "measurement": np.repeat(np.array([number for number, *_ in pieces], dtype=np.int32), lengths),
            "query": _texts([spend.query for spend in spends], lengths),
            "position": np.concatenate([*positions, none]),
            "answer": np.concatenate([*answers, none]),
            "noise": _texts([spend.noise for spend in spends], lengths),
            "scale": np.repeat(np.array([spend.scale for spend in spends], dtype=np.float64), lengths),
        },
        schema=schema(),
    )


def schema() -> pa.Schema:
    """The types of `COLUMNS`."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    kinds = [pa.int32(), text, pa.int64(), pa.int64(), text, pa.float64()]
    return pa.schema(list(zip(COLUMNS, kinds, strict=True)))


def _texts(names: Sequence[str], lengths: Sequence[int]) -> Any:
    import pyarrow as pa

    distinct = {name: code for code, name in enumerate(dict.fromkeys(names))}
    codes = np.repeat(np.array([distinct[name] for name in names], dtype=np.int32), lengths)
    return pa.DictionaryArray.from_arrays(codes, pa.array(list(distinct), pa.string()))


def check_rows(rows: pa.RecordBatch, spend: Spend, position: int, first: int) -> None:
    """Check that rows are those of a measurement, from a position on, unless a threshold hides some answers.

    - position: that of the first row within the measurement.
    - first: the number of the first row in the file, for messages.

    Raises `ValueError` if one is not; the message names it.
    """
    expected = {"query": spend.query, "noise": spend.noise, "scale": spend.scale}
    if spend.delta is None:
        expected["position"] = np.arange(position, position + len(rows))
    for name, value in expected.items():
        column = rows.column(name)
        if isinstance(value, str):
            known = np.array([text == value for text in column.dictionary.to_pylist()], dtype=bool)
            same = known[column.indices.to_numpy()]
        else:
            same = column.to_numpy() == value
        if not same.all():
            row = first + int(np.argmin(same)) + 1
            raise ValueError(f"row {row}: {name!r} is not what the budget says of its measurement")
