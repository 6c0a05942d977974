"""Noisy answers with the record of their noise and loss: a `Measurement`, and all of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError
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
        return iter(self.parts)

    def __len__(self) -> int:
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

    @property
    def from_elsewhere(self) -> bool:
        """Whether somebody else made them: they have keys, and no record of a budget."""
        return not isinstance(self.parts, MeasurementsFile) and any(
            part.keys is not None for part in self.parts
        )

    def to_frame(self) -> DataFrame:
        """One row for each answer, with the columns of docs/measurements.md."""
        if self.from_elsewhere:
            from hierdp.measurements.table import frame_of

            return frame_of(self.parts)
        frame: DataFrame = rows_of(list(self.pieces())).to_pandas()
        return frame

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with a row for each answer; see docs/measurements.md.

        Raises
        ------
        InputError
            If they are from elsewhere.
        """
        if self.from_elsewhere:
            raise InputError(
                "these counts have no record of a budget, as a release's file has: write to_frame() instead"
            )
        if isinstance(self.parts, MeasurementsFile):
            self.parts.copy(Path(path))
        else:
            written_to(Path(path), self.parts)

    @classmethod
    def from_frame(
        cls,
        source: Any,
        keys: Sequence[str],
        count: str,
        *,
        standard_error: str | float | None = None,
        scale: str | float | None = None,
        law: str = "unknown",
    ) -> Measurements:
        """Noisy counts that somebody else made, from a table with a row for each.

        What the table does not say is recorded as unknown: the sensitivity and the budget always. Nothing
        made from these counts claims privacy.

        Parameters
        ----------
        source : path, DataFrame, Arrow or Ibis table
            See `hierdp.tables.read`.
        keys : sequence of str
            The columns that say what a row counts, such as regions or attributes. An empty one is summed
            over: a row without any is the total.
        count : str
            The column of noisy counts, of either sign.
        standard_error : str or float, optional
            A column of standard errors, or one for all; an empty entry is unknown.
        scale : str or float, optional
            The same for scales, in place of standard errors; it needs a law.
        law : str
            The law of the noise, or a column of laws: "double-geometric" with P(X = k) ∝ exp(−|k|/scale),
            "discrete Gaussian" with P(X = k) ∝ exp(−k²/2·scale²), their continuous counterparts "Laplace" and
            "Gaussian", or "unknown".

        Raises
        ------
        InputError
            If a column is missing or does not hold such values, or two rows count the same; the message names
            the row.

        Examples
        --------
        >>> import pandas as pd
        >>> noisy = pd.DataFrame({"sex": [None, "f", "m"], "n": [101, 48, 55]})
        >>> made = Measurements.from_frame(noisy, ["sex"], "n", scale=2, law="double-geometric")
        >>> made.to_frame().round(2).values.tolist()[1:]
        [['f', 48, 2.8, 'double-geometric', 2.0], ['m', 55, 2.8, 'double-geometric', 2.0]]
        """
        from hierdp.measurements.table import of_frame  # here, since a release reads no table of counts

        return cls(of_frame(source, keys, count, standard_error, scale, law))

    @classmethod
    def from_mbi(cls, measurements: Sequence[Any], domain: Any) -> Measurements:
        """Noisy margins of mbi, `LinearMeasurement`; see `hierdp.measurements.elsewhere.of_mbi`."""
        from hierdp.measurements.elsewhere import of_mbi

        return cls(of_mbi(measurements, domain))

    @classmethod
    def from_tumult(cls, table: Any, noise_info: Sequence[Mapping[str, Any]], count: str) -> Measurements:
        """Counts of a query of Tumult Analytics; see `hierdp.measurements.elsewhere.of_tumult`."""
        from hierdp.measurements.elsewhere import of_tumult

        return cls(of_tumult(table, noise_info, count))

    @classmethod
    def from_opendp(cls, table: Any, summary: Any, count: str = "len") -> Measurements:
        """Counts of OpenDP's Polars queries; see `hierdp.measurements.elsewhere.of_opendp`."""
        from hierdp.measurements.elsewhere import of_opendp

        return cls(of_opendp(table, summary, count))

    @classmethod
    def from_census(cls, table: Any) -> Measurements:
        """A noisy measurement file of the 2020 Census; see `hierdp.measurements.elsewhere.of_census`."""
        from hierdp.measurements.elsewhere import of_census

        return cls(of_census(table))

    def to_mbi(self) -> list[Any]:
        """A list of `mbi.LinearMeasurement`, over the domain of `categories`.

        Raises
        ------
        InputError
            If mbi is not installed, these are the measurements of a release, or a standard error is unknown.
        """
        from hierdp.measurements.elsewhere import linear_measurements

        return linear_measurements(self.parts)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """The values of each key, in the order of their first row; empty for a release's measurements.

        mbi's domain is ``Domain.fromdict({key: len(names) for key, names in made.categories.items()})``.
        """
        from hierdp.measurements.elsewhere import categories_of

        return categories_of(self.parts)

    @classmethod
    def read(cls, path: str | Path) -> Measurements:
        """Read a file that `write` wrote.

        Raises
        ------
        ValueError
            If it is not such a file; the message names the first difference.
        """
        return cls(tuple(MeasurementsFile(Path(path))))
