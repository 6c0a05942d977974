"""A case of an audit: a mechanism, its options, and two neighbouring tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pandas import NA

from hierdp.counts.hierarchy import Hierarchy
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release
from hierdp.tables.persons import Persons

Seen = dict[str, float]
"""Released numbers of one run, by name. Numbers that are missing are 0."""

EPSILON = 2.0
"""With half the noise, the loss is 4: far enough above 2 for few runs to show it, and not a rare event that
needs many."""

LARGE = 3.0
"""ε for events that need several noisy numbers at once, or noise so small that post-processing hardly ever
hides the change."""

FIRST_OF_SIZE_1 = "an entity joins a group of A, the first of size 1"

TWO_ROWS = Persons("who", rows=2, key="of an audit")
"""At most two rows of a person count; under one key, as the guarantee holds for each."""

VALUES = ("groups", "count", "noisy", "cluster")
"""Columns of a release that depend on its noise."""

DIGITS = 9
"""Released numbers are rounded to this many decimals before they are compared: means are floats."""


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and two neighbouring tables.

    Attributes
    ----------
    mechanism : str
        Its name in `hierdp.mechanisms.MECHANISMS`.
    method : str
    change : str
        How the second table differs from the first, and which options differ from the defaults, in words.
    tables : tuple of two
    by : tuple of str
        Columns that identify a row of a release.
    run : callable
        Maps a table and noise to a release.
    fewer : int
        The number of runs is divided by this, for slow mechanisms.
    also : callable, optional
        Computes further numbers from the released ones, for mechanisms whose audit needs them.
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
        """All published numbers by name, from the table and from the settings."""
        table = release.table
        rows = [" ".join(map(str, row)) for row in zip(*(table[c].tolist() for c in self.by), strict=True)]
        found = {
            f"{value}[{row}]": round(float(number), DIGITS)
            for value in VALUES
            if value in table
            for row, number in zip(rows, table[value].tolist(), strict=True)
            if number is not NA  # the root of a range query, which is not measured
        }
        found |= {
            k: round(float(v), DIGITS) for k, v in release.settings.items() if isinstance(v, int | float)
        }
        return found if self.also is None else {**found, **self.also(found)}


@cache
def regions(number: int) -> Hierarchy:
    """The given number of regions, A, B, …, under one root."""
    return Hierarchy.from_columns({"region": list("ABCDEFGH"[:number])}, ["region"], root="all")
