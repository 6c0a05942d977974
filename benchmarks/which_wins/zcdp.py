"""Groups by size with Gaussian noise: the same methods under zCDP, at the ρ that their ε implies.

An ε-DP release is ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4). One entity more in a group of a region
moves this group from size s to s + 1, in this region and in those above. On each level that changes

- one of the cumulative counts Hc (groups of at most s) by 1: Δ1 = Δ2 = 1;
- one of the sorted sizes Hg by 1 (the last of the groups of size s): Δ1 = Δ2 = 1;
- two of the counts by size H by 1: Δ1 = 2, Δ2 = √2.

So Δ2 = √Δ1. Of L levels, each has the share ρ/L: its noise has the variance LΔ1/2ρ, in place of about
2(LΔ1/ε)² = (LΔ1)²/ρ with two-sided geometric noise: less by 2LΔ1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from benchmarks.which_wins.rows import Row, row
from benchmarks.which_wins.sizes import Case, by_epsilon, data_sets
from hierdp.choosing.methods import errors_of_groups
from hierdp.privacy.noise import NoisyCounts, SimulatedNoise
from hierdp.reproduce.runs import seed_for
from models.arithmetic.arrays import Ints

ZCDP = "group sizes, zCDP"

WAYS = ("bottom-up Hc", "bottom-up Hg", "top-down Hc", "top-down Hg", "M_c^dp", "M_H^dp")
"""The methods that are run; the rows of the same methods under ε-DP are those of group sizes."""


class GaussianNoise(SimulatedNoise):
    """Discrete Gaussian noise in place of geometric noise, on so many levels of an equal part of ε."""

    def __init__(self, seed: int, levels: int) -> None:
        super().__init__(seed)
        self.levels = levels

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """ρ = (levels · ε)²/2, of which the level has its share; Δ2 = √Δ1."""
        return self.gaussian(counts, query, math.sqrt(sensitivity), self.levels * epsilon**2 / 2)


def cases(data: Path, seed: int) -> list[Case]:
    """The smaller data sets at ε = 1."""
    sets = data_sets(data, seed)
    return list(by_epsilon({name: one for name, one in sets.items() if name != "census"}, (1.0,)))


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run, level and error."""
    for way in WAYS:
        levels = 1 if way.startswith("bottom-up") else len(case.counts.hierarchy.levels)

        def noise(query: str, run: int, levels: int = levels) -> SimulatedNoise:
            return GaussianNoise(seed_for(seed, "zCDP", case.data, case.at, query, run), levels)

        for each in errors_of_groups(case.counts, case.max_size, case.epsilon, runs, noise, (way,)):
            about = {"figure": case.figure, "data": case.data, "at": case.at, "epsilon": case.epsilon}
            yield row(kind=ZCDP, **about, **each._asdict())
