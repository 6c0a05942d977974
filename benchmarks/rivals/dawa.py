"""DAWA, the data- and workload-aware algorithm of Li, Hay & Miklau 2014 (PVLDB 7:341), with simulated noise.

Written from the paper's abstract and from the authors' program in DPBench; the paper's text was not at hand.
Stage 1 cuts the histogram into runs, for ε₁ = ε/4 (DPBench's share): `partition`. Stage 2 measures a weighted
tree over the runs' sums, for ε₂: `weights`; the consistent sums of least variance are
`models.ConstrainedInference`. Each bin gets its run's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.partition import DYADIC, Partition, partition
from benchmarks.rivals.weights import all_ranges, binary_tree, greedy
from models import ConstrainedInference
from models.arithmetic.arrays import Ints
from solvers import solve

SHARE = 0.25
"""ε₁/ε."""

NO_NOISE = 1e-12
"""Variances below this count as this: least squares needs positive ones."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dawa:
    """A histogram by DAWA, with its cut and the proofs of both optimizations."""

    counts: Floats
    cut: Partition
    proved: bool


def dawa(
    counts: Ints,
    epsilon: float,
    seed: int,
    *,
    noise: str = DYADIC,
    workload: Any = all_ranges,
    share: float = SHARE,
) -> Dawa:
    """A histogram, for a workload.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts.
    epsilon : float
        For neighbours that differ by one person in one bin.
    seed : int
        Of simulated noise: not private.
    noise : str
        Of the costs in stage 1: `PROGRAM`, `PROVED` or `DYADIC` of `partition`.
    workload : callable
        `all_ranges` or `single_bins`.
    share : float
        ε₁/ε.
    """
    rng = np.random.default_rng(seed)
    for_cut, for_sums = share * epsilon, (1 - share) * epsilon
    cut = partition(counts, for_cut, 1 / for_sums, rng, noise)
    sums, best = _measured(
        np.add.reduceat(counts, cut.starts), for_sums, workload(cut.starts, counts.size), rng
    )
    sizes = np.diff(np.append(cut.starts, counts.size))
    return Dawa(np.repeat(sums / sizes, sizes), cut, cut.optimal and best)


def _measured(sums: Ints, epsilon: float, workload: Any, rng: np.random.Generator) -> tuple[Floats, bool]:
    """The consistent noisy sums of the runs, and whether they are proved."""
    tree, first, end = binary_tree(sums.size)
    weight = greedy(tree, first, workload)
    running = np.concatenate([[0], np.cumsum(sums)])
    noisy, variance = running[end] - running[first], np.full(tree.size, np.inf)
    there = weight > 0
    p = -np.expm1(-weight[there] * epsilon)
    noisy[there] += rng.geometric(p) - rng.geometric(p)
    variance[there] = np.maximum(2 * (1 - p) / p**2, NO_NOISE)
    if tree.depth == 0:
        return noisy.astype(np.float64), True
    best = solve(ConstrainedInference(tree, noisy, variance))
    leaves = tree.leaves[np.argsort(first[tree.leaves])]
    return np.asarray(best.x, np.float64)[leaves], bool(best.certificate and best.certificate.optimal)
