"""Stability noise in TDA, which its authors name as future work: only children that are there are measured.

On each level, children with a count of 0 get no noise and stay at 0; others are kept if their noisy count is
over a threshold. The children are fitted by least squares (TDA_L2), which keeps those left out at 0 as long
as any child of their parent is kept.

A replaced trip makes at most one child of a level, with a count of 1, appear in one table and not in the
other; the threshold lets it pass with a probability of δ/2L, of L levels. So the release is δ/2-approximately
ρ-zCDP (Bun & Steinke 2016, §8), with ρ for (ε, δ/2), and (ε, δ)-DP.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.which_wins import flows
from benchmarks.which_wins.flows import DELTA, Case
from benchmarks.which_wins.rows import Row, row
from hierdp.experiments.choosing.methods import errors_of_flows
from hierdp.experiments.run import seed_for
from hierdp.privacy.noise import Drawn, Law, SimulatedNoise

STABILITY = "origin/destination, stability noise"
METHOD = "TDA_L2, stability noise"
NEVER = -(10**9)
"""In place of a count that is left out: below all others, so that least squares keeps 0."""


class StabilityNoise(SimulatedNoise):
    """Gaussian noise over a threshold on the counts that are not 0."""

    def __init__(self, seed: int, delta: float) -> None:
        super().__init__(seed)
        self.delta = delta

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """The noisy counts that pass, and `NEVER`."""
        drawn = super().draw(law, true)
        threshold = 1 + drawn.spend.scale * norm.isf(self.delta)
        return replace(
            drawn, answers=np.where((true > 0) & (drawn.answers > threshold), drawn.answers, NEVER)
        )


def cases(data: Path) -> list[Case]:
    """The cases of origin/destination tables."""
    return flows.cases(data)


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per run, level and error."""
    levels = sum(axis.tree.depth for axis in case.table.axes)

    def noise(_: str, run: int) -> SimulatedNoise:
        return StabilityNoise(seed_for(seed, case.data, case.epsilon, run), DELTA / 2 / levels)

    for each in errors_of_flows(case.table, case.epsilon, DELTA / 2, runs, noise, ("TDA_L2",)):
        yield row(kind=STABILITY, data=case.data, epsilon=case.epsilon,
                  **each._replace(method=METHOD)._asdict())  # fmt: skip
