"""Noisy answers with the record of their noise and loss: a `Measurement`, and all of a release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.privacy.budget import Spend, spends_of
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ["measurement", "query", "position", "answer", "noise", "scale"]
"""The columns of the file; docs/measurements.md describes them."""

METADATA = b"hierdp"
"""The entry of the file's metadata with the format's number and the spends, in JSON."""

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy answers to a query; they contain no true counts.

    Attributes
    ----------
    spend : Spend
        The query, its noise and its privacy loss.
    answers : int64 array, shape (n,)
        Noisy counts or, of private choices, the number of the chosen candidate of each.
    """

    spend: Spend
    answers: Ints


@dataclass(frozen=True, eq=False)
class Measurements:
    """All that a release learned of the true counts: it is a function of these and of public facts.

    Attributes
    ----------
    parts : tuple of Measurement
        In the order in which they were made.
    """

    parts: tuple[Measurement, ...]

    def __iter__(self) -> Iterator[Measurement]:
        """Iterate over the measurements."""
        return iter(self.parts)

    def __len__(self) -> int:
        """The number of measurements."""
        return len(self.parts)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The lines of the budget."""
        return tuple(part.spend for part in self.parts)

    def to_frame(self) -> DataFrame:
        """One row for each answer, with `COLUMNS`."""
        import pandas as pd

        each = [part.answers for part in self.parts]
        which = np.repeat(np.arange(len(each)), [answers.size for answers in each])
        spends = pd.DataFrame(
            {
                "query": pd.Categorical([spend.query for spend in self.spends]),
                "noise": pd.Categorical([spend.noise for spend in self.spends]),
                "scale": np.array([spend.scale for spend in self.spends], dtype=np.float64),
            }
        ).iloc[which]
        positions = [np.arange(answers.size) for answers in each]
        none = np.empty(0, dtype=np.int64)
        return pd.DataFrame(
            {
                "measurement": which.astype(np.int32),
                "query": spends["query"].array,
                "position": np.concatenate([*positions, none]),
                "answer": np.concatenate([*each, none]),
                "noise": spends["noise"].array,
                "scale": spends["scale"].array,
            }
        )

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with a row for each answer; see docs/measurements.md."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        about = {"format": FORMAT, "spends": [asdict(spend) for spend in self.spends]}
        pq.write_table(table.replace_schema_metadata({METADATA: json.dumps(about, ensure_ascii=False)}), path)

    @classmethod
    def read(cls, path: str | Path) -> Measurements:
        """Read a file that `write` wrote.

        Raises
        ------
        ValueError
            If it is not such a file.
        """
        import pandas as pd
        import pyarrow.parquet as pq

        about = pq.read_schema(path).metadata or {}
        if METADATA not in about:
            raise ValueError(f"{Path(path).name} is not a file of measurements: its metadata have no spends")
        return cls.of_frame(pd.read_parquet(path), json.loads(about[METADATA])["spends"])

    @classmethod
    def of_frame(cls, frame: DataFrame, spends: Sequence[Mapping[str, Any]]) -> Measurements:
        """The measurements with these lines of a budget and the answers of `to_frame`.

        Raises
        ------
        ValueError
            If the rows are not those of the spends; the message names the first difference.
        """
        if list(frame.columns) != COLUMNS:
            raise ValueError(f"its columns are {list(frame.columns)}, not {COLUMNS}")
        named = spends_of({"spends": spends})
        which = frame["measurement"].to_numpy(np.int64)
        starts = np.searchsorted(which, np.arange(len(named) + 1))
        if which.size and (which[0] < 0 or (np.diff(which) < 0).any() or starts[-1] != which.size):
            raise ValueError(f"its rows are not in the order of {len(named)} measurements")
        parts = []
        for spend, first, end in zip(named, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            rows = frame.iloc[first:end]
            expected = {
                "query": spend.query,
                "position": np.arange(len(rows)),
                "noise": spend.noise,
                "scale": spend.scale,
            }
            for name, value in expected.items():
                same = np.asarray(rows[name] == value)
                if not same.all():
                    row = first + int(np.argmin(same)) + 1
                    raise ValueError(f"row {row}: {name!r} is not what the budget says of its measurement")
            parts.append(Measurement(spend, rows["answer"].to_numpy(np.int64)))
        return cls(tuple(parts))
