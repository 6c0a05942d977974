"""Groups by size with Gaussian noise: the same methods under zCDP, at the ρ that their ε implies.

An ε-DP release is ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4). Of L levels, each has the share ρ/L: with
the mechanisms' sensitivities, Δ2 = √Δ1, its noise has the variance LΔ1/2ρ, in place of about 2(LΔ1/ε)² =
(LΔ1)²/ρ with two-sided geometric noise: less by 2LΔ1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.which_wins.rows import Row, row
from benchmarks.which_wins.sizes import Case, by_epsilon, data_sets
from hierdp.experiments.choosing.methods import errors_of_groups
from hierdp.experiments.run import seed_for
from hierdp.privacy.budget import GAUSSIAN
from hierdp.privacy.noise import SimulatedNoise

ZCDP = "group sizes, zCDP"

WAYS = ("bottom-up Hc", "bottom-up Hg", "top-down Hc", "top-down Hg", "M_c^dp", "M_H^dp")
"""The methods that are run; the rows of the same methods under ε-DP are those of group sizes."""


def cases(data: Path, seed: int) -> list[Case]:
    """The smaller data sets at ε = 1."""
    sets = data_sets(data, seed)
    return list(by_epsilon({name: one for name, one in sets.items() if name != "census"}, (1.0,)))


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run, level and error."""

    def noise(query: str, run: int) -> SimulatedNoise:
        return SimulatedNoise(seed_for(seed, "zCDP", case.data, case.at, query, run))

    rho = case.epsilon**2 / 2
    for each in errors_of_groups(case.counts, case.max_size, rho, runs, noise, WAYS, GAUSSIAN):
        about = {"figure": case.figure, "data": case.data, "at": case.at, "epsilon": case.epsilon}
        yield row(kind=ZCDP, **about, **each._asdict())
