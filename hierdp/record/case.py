"""A case of an audit: a mechanism, its options, and two neighbouring tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.measurements.measurement import Measurement
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release
from hierdp.record.step import Step
from hierdp.tables.persons import Persons
from models.instances import packed_answer

Seen = dict[str, float]
"""Numbers of one run that are published, by name. Numbers that are missing are 0."""

EPSILON = 2.0
"""With half the noise, the loss is 4: far enough above 2 for few runs to show it, and not a rare event that
needs many."""

LARGE = 3.0
"""ε for events that need several noisy numbers at once, or noise so small that post-processing hardly ever
hides the change."""

ZCDP, DELTA = 4.08, 0.01
"""ρ is 0.9. With the δ of a real release, the ε of a given ρ is far above what any event can show, so the
audit would test nothing."""

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
    fewer : float
        The number of runs is divided by this, for slow mechanisms; less than 1 where few runs show little.
    """

    mechanism: str
    method: str
    change: str
    tables: tuple[Any, Any]
    by: tuple[str, ...]
    run: Callable[[Any, Noise], Release]
    fewer: float = 1

    @property
    def name(self) -> str:
        """Mechanism and method."""
        return f"{self.mechanism} {self.method}"

    def release(self, side: int, noise: Noise) -> Release:
        """Run it on the first table (0) or on the second (1)."""
        return self.run(self.tables[side], noise)

    def seen(self, release: Release) -> Seen:
        """All published numbers by name: of the table, the settings, the measurements and the steps' answers.

        The measurements, in `measurements.parquet`, are the noisy counts before any repair, of which the
        table shows little: so no repair hides from an audit what was measured. The steps' answers and
        witnesses are in `proofs.zip`.
        """
        table = release.table
        rows = [" ".join(map(str, row)) for row in zip(*(table[c].tolist() for c in self.by), strict=True)]
        found = {
            f"{value}[{row}]": float(number)
            for value in VALUES
            if value in table
            for row, number in zip(rows, table[value].tolist(), strict=True)
        }
        for name, value in release.settings.items():
            if isinstance(value, int | float):
                found[name] = float(value)
            elif isinstance(value, list) and all(isinstance(one, int | float) for one in value):
                found |= {f"{name}[{place}]": float(one) for place, one in enumerate(value)}
        noisy = (*_of_measurements(release.measurements or ()), *_of_steps(release.steps))
        return {name: round(number, DIGITS) for name, number in (*found.items(), *noisy)}


def _of_measurements(measurements: Iterable[Measurement]) -> Iterator[tuple[str, float]]:
    """The answers, such as ``answer of measurement 2[3]``; measurements are numbered from 1."""
    for number, made in enumerate(measurements, start=1):
        what = f"answer of measurement {number}"
        if made.positions is None:
            names = _names(what, made.answers.shape)
        else:
            names = tuple(f"{what}[{place}]" for place in made.positions.tolist())
        yield from zip(names, map(float, made.answers.tolist()), strict=True)


def _of_steps(steps: Iterable[Step]) -> Iterator[tuple[str, float]]:
    """Answers and witnesses, such as ``answer of the model of step 2[0 3]``; steps are numbered from 1."""
    for number, step in enumerate(steps, start=1):
        for name, held in packed_answer(step.solution.x, step.solution.witness).items():
            if held.dtype.kind in "iuf":
                names = _names(f"{name} of step {number}", held.shape)
                yield from ((n, x) for n, x in zip(names, held.ravel().tolist(), strict=True) if isfinite(x))


@cache
def _names(what: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{what}[{' '.join(map(str, place))}]" for place in np.ndindex(shape))


@cache
def regions(number: int) -> Hierarchy:
    """The given number of regions, A, B, …, under one root."""
    return Hierarchy.from_columns({"region": list("ABCDEFGH"[:number])}, ["region"], root="all")
