"""A case of an audit: a mechanism, its options, and two neighbouring tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pandas import NA

from hierdp.audit.events import Seen
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release

VALUES = ("groups", "count", "noisy", "cluster")
"""Columns of a release that come of its noise."""

DIGITS = 9
"""Released numbers are compared to so many digits after the point: means of whole numbers are floats."""


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and two neighbouring tables.

    Attributes
    ----------
    mechanism : str
        By its name in `hierdp.mechanisms.MECHANISMS`.
    method : str
    change : str
        What the second table has that the first has not, and which options are not the usual ones, in words.
    tables : tuple of two
    by : tuple of str
        Columns that tell one row of a release from another.
    run : callable
        From a table and noise to a release.
    fewer : int
        Where a run is slow: only one of so many is made.
    also : callable, optional
        From the released numbers to others that they amount to, where the mechanism asks for those.
    """

    mechanism: str
    method: str
    change: str
    tables: tuple[Any, Any]
    by: tuple[str, ...]
    run: Callable[[Any, Noise], Release]
    fewer: int = 1
    also: Callable[[Seen], Seen] | None = None

    @property
    def name(self) -> str:
        """Mechanism and method."""
        return f"{self.mechanism} {self.method}"

    def release(self, side: int, noise: Noise) -> Release:
        """Run it on the first table (0) or on the second (1)."""
        return self.run(self.tables[side], noise)

    def seen(self, release: Release) -> Seen:
        """All numbers that are published, by name: of the table, and of the settings."""
        table = release.table
        rows = [" ".join(map(str, row)) for row in zip(*(table[c].tolist() for c in self.by), strict=True)]
        found = {
            f"{value}[{row}]": round(float(number), DIGITS)
            for value in VALUES
            if value in table
            for row, number in zip(rows, table[value].tolist(), strict=True)
            if number is not NA  # of a range query's root, which is not asked
        }
        found |= {
            k: round(float(v), DIGITS) for k, v in release.settings.items() if isinstance(v, int | float)
        }
        return found if self.also is None else {**found, **self.also(found)}
