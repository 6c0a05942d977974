"""Noisy answers with the record of their noise and loss: a `Measurement`, and all of a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hierdp.measurements.file import MeasurementsFile, written_to
from hierdp.measurements.rows import Measurement, Piece, rows_of
from hierdp.privacy.budget import Spend

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Measurement", "Measurements"]


@dataclass(frozen=True, eq=False)
class Measurements:
    """All that a release learned of the true counts: it is a function of these and of public facts.

    Attributes
    ----------
    parts : sequence of Measurement
        In the order in which they were made: a tuple or, of large releases, a `MeasurementsFile`, which is
        read as they are needed.
    """

    parts: Sequence[Measurement]

    def __iter__(self) -> Iterator[Measurement]:
        """Iterate over the measurements."""
        return iter(self.parts)

    def __len__(self) -> int:
        """The number of measurements."""
        return len(self.parts)

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The lines of the budget."""
        if isinstance(self.parts, MeasurementsFile):
            return self.parts.spends
        return tuple(part.spend for part in self.parts)

    def pieces(self) -> Iterator[Piece]:
        """Iterate over the measurements in parts, of which only one is read at a time."""
        if isinstance(self.parts, MeasurementsFile):
            return self.parts.pieces()
        return ((number, part, 0) for number, part in enumerate(self.parts))

    def to_frame(self) -> DataFrame:
        """One row for each answer, with the columns of docs/measurements.md."""
        frame: DataFrame = rows_of(list(self.pieces())).to_pandas()
        return frame

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with a row for each answer; see docs/measurements.md."""
        if isinstance(self.parts, MeasurementsFile):
            self.parts.copy(Path(path))
        else:
            written_to(Path(path), self.parts)

    @classmethod
    def read(cls, path: str | Path) -> Measurements:
        """Read a file that `write` wrote.

        Raises
        ------
        ValueError
            If it is not such a file; the message names the first difference.
        """
        return cls(tuple(MeasurementsFile(Path(path))))
