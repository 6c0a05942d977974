"""Histograms and sums over ranges: the methods of `clustering` and `range-query`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.which_wins.rows import Row, row
from hierdp.analysis.bayes_bound import least_errors
from hierdp.experiments.choosing.methods import BINS, KLD, errors_of_bins
from hierdp.experiments.papers.zhang2014 import histograms
from hierdp.experiments.run import seed_for
from hierdp.privacy.noise import SimulatedNoise
from models.arithmetic.arrays import Ints

HISTOGRAMS = "histograms"

SETS = ("Search Log, rebuilt", "NetTrace, rebuilt", "SEARCHLOGS", "NETTRACE", "HEPTH", "INCOME", "ADULTFRANK")
MAP = "GOWALLA-2D"
"""Two dimensions: 256 × 256 bins."""

BOUND = "Bayes bound"
"""The least KLD and squared error of a bin of any method that does not use the places of bins."""


@dataclass(frozen=True, eq=False)
class Case:
    """A histogram and a budget."""

    data: str
    counts: Ints
    epsilon: float


def cases(data: Path, seed: int) -> list[Case]:
    """Every histogram at every ε."""
    sets: dict[str, Any] = histograms(data, SETS, seed)
    if (data / "dpbench" / f"{MAP}.npy").exists():
        sets[MAP] = histograms(data, (MAP,), seed)[MAP].reshape(256, 256)
    return [Case(name, counts, epsilon) for name, counts in sets.items() for epsilon in (0.01, 0.1, 1.0)]


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run and error."""
    named = partial(row, kind=HISTOGRAMS, data=case.data, epsilon=case.epsilon)

    def noise(_: str, run: int) -> SimulatedNoise:
        return SimulatedNoise(seed_for(seed, case.data, case.epsilon, run))

    for each in errors_of_bins(case.counts, case.epsilon, runs, noise):
        yield named(**each._asdict())
    least = least_errors(case.counts.ravel(), case.epsilon)
    for metric, error in ((KLD, least.kld), (BINS, least.mse)):
        for run in range(runs):
            yield named(metric=metric, method=BOUND, run=run, error=error)
