"""Histograms and sums over ranges: the methods of `clustering` and `range-query`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.which_wins.rows import Row, row
from hierdp.analysis.bayes_bound import least_errors
from hierdp.mechanisms.clustering import METHODS as CLUSTERINGS
from hierdp.mechanisms.range_query import range_query
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import all_ranges_error, prefix_sums
from hierdp.privacy.noise import SimulatedNoise
from hierdp.reproduce.runs import seed_for
from hierdp.reproduce.zhang2014.data import histograms
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Ints

HISTOGRAMS = "histograms"
KLD, BINS, RANGES = "KLD", "squared error of a bin", "squared error of a range"

SETS = ("Search Log, rebuilt", "NetTrace, rebuilt", "SEARCHLOGS", "NETTRACE", "HEPTH", "INCOME", "ADULTFRANK")
MAP = "GOWALLA-2D"
"""Two dimensions: 256 × 256 bins."""

BOUND = "Bayes bound"
"""The least KLD and squared error of a bin of any method that does not use the places of bins."""

Publish = Callable[[Ints, float, int], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Case:
    """A histogram and a budget."""

    data: str
    counts: Ints
    epsilon: float


def _clusters(name: str, counts: Ints, epsilon: float, seed: int, **options: str) -> NDArray[np.float64]:
    made = CLUSTERINGS[name].publish(counts, epsilon, SimulatedNoise(seed), **options)
    return made.counts.reshape(counts.shape)


def _ranges(name: str, repair: str | None, counts: Ints, epsilon: float, seed: int) -> NDArray[np.float64]:
    made = range_query(Histogram.of(counts), epsilon, SimulatedNoise(seed), name, repair=repair)
    at = np.indices(counts.shape).reshape(counts.ndim, -1).T
    return np.asarray(made.box(at, at + 1)[0]).reshape(counts.shape)


PUBLISH: dict[str, Publish] = {
    **{name: partial(_clusters, name) for name in ("AHP", "AHP-by-place", "NF", "PHP", "GS", "Laplace")},
    "PrivTree": partial(_clusters, "PrivTree"),
    "DAWA": partial(_clusters, "DAWA"),
    "DAWA for bins": partial(_clusters, "DAWA", workload="bins"),
    "H_b^c": partial(_ranges, "H_b^c", None),
    "non-negative H_b^c": partial(_ranges, "H_b^c", "non-negative"),
    "H_2^c": partial(_ranges, "H_2^c", None),
    "Wavelet": partial(_ranges, "Wavelet", None),
}
"""SF is left out: it takes seconds to minutes. Its errors are in docs/zhang2014.md."""

MAPS = (
    "AHP", "AHP-by-place", "PHP", "Laplace", "PrivTree", "DAWA", "DAWA for bins",
    "H_b^c", "non-negative H_b^c", "Quadtree", "Wavelet",
)  # fmt: skip
"""Methods on a map: all of two dimensions, and some on the flattened map."""

PUBLISH["Quadtree"] = partial(_ranges, "Quadtree", None)


def cases(data: Path, seed: int) -> list[Case]:
    """Every histogram at every ε."""
    sets: dict[str, Any] = histograms(data, SETS, seed)
    if (data / "dpbench" / f"{MAP}.npy").exists():
        sets[MAP] = histograms(data, (MAP,), seed)[MAP].reshape(256, 256)
    return [Case(name, counts, epsilon) for name, counts in sets.items() for epsilon in (0.01, 0.1, 1.0)]


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run and error."""
    flat = case.counts.ndim == 1
    named = partial(row, kind=HISTOGRAMS, data=case.data, epsilon=case.epsilon)
    for method in (name for name in PUBLISH if name != "Quadtree") if flat else MAPS:
        for run in range(runs):
            made = PUBLISH[method](case.counts, case.epsilon, seed_for(seed, case.data, case.epsilon, run))
            found = {
                KLD: kld(case.counts.ravel(), made.ravel()),
                BINS: float(((case.counts - made) ** 2).mean()),
                RANGES: all_ranges_error(case.counts, made) if flat else all_boxes_error(case.counts, made),
            }
            for metric, error in found.items():
                yield named(metric=metric, method=method, run=run, error=error)
    least = least_errors(case.counts.ravel(), case.epsilon)
    for metric, error in ((KLD, least.kld), (BINS, least.mse)):
        for run in range(runs):
            yield named(metric=metric, method=BOUND, run=run, error=error)


def all_boxes_error(true: Ints, released: NDArray[np.float64]) -> float:
    """Mean squared error over 20,000 boxes of a map, with corners drawn uniformly; always the same boxes."""
    prefixes, rng = prefix_sums(released - true), np.random.default_rng(0)
    (a, b), (c, d) = (np.sort(rng.integers(0, n + 1, (20_000, 2)), axis=1).T for n in true.shape)
    kept = (a < b) & (c < d)
    a, b, c, d = (each[kept] for each in (a, b, c, d))
    return float(((prefixes[b, d] - prefixes[a, d] - prefixes[b, c] + prefixes[a, c]) ** 2).mean())
