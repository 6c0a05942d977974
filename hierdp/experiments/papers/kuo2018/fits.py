"""Optima of Hc's least absolute deviation fit, which differ in error: the extremes and the middle."""

from __future__ import annotations

import numpy as np

from hierdp.counts.size_runs import Runs, SizeRuns, cumulative_of, runs_of_cumulative
from hierdp.mechanisms.count_of_counts.top_down import bottom_up, top_down
from hierdp.privacy.noise import Noise, geometric
from hierdp.record.step import Step
from models import Isotonic
from models.arithmetic.arrays import Ints


def fitted(noisy: Ints, groups: int, fit: str) -> Ints:
    """An optimal monotone fit of cumulative counts (p = 1): `fit` is lowest, middle (of the ends) or highest.

    The fast path takes the lowest; other solvers return other optima. All are optimal, because every fit
    between two optimal ones is, and rounding keeps it optimal.
    """
    low, high = (np.zeros(0, np.int64),) * 2
    if fit != "highest":
        low = _lowest(noisy, groups)
    if fit != "lowest":
        high = groups - _lowest(groups - noisy[::-1], groups)[::-1]
    if fit == "middle":
        return np.rint((low + high) / 2).astype(np.int64)
    return low if fit == "lowest" else high


def released(data: SizeRuns, epsilon: float, noise: Noise, max_size: int, fit: str, top: bool) -> Runs:
    """Count-of-counts by Hc, top-down or bottom-up, if groups are known not to be empty."""
    tree, true = data.hierarchy.tree, data.runs.capped(max_size)
    rows: list[tuple[Ints, Ints]] = []
    share = epsilon / (tree.depth + 1) if top else epsilon
    for r in range(0 if top else int(tree.level_start[-2]), tree.size):
        sizes, counts = true.of(r)
        groups = int(counts.sum())
        if groups == 0:
            rows.append((sizes, counts))
            continue
        noisy = noise.draw(geometric("Hc", 1, share), cumulative_of(sizes, counts, max_size)[1:]).answers
        rows.append(runs_of_cumulative(np.append(fitted(noisy, groups, fit), groups), 1))
    runs = Runs.from_rows(rows)
    return top_down(tree, runs, runs.counts) if top else bottom_up(tree, runs)


def _lowest(noisy: Ints, groups: int) -> Ints:
    model = Isotonic(noisy, p=1, lower=0, upper=groups, integer=True)
    return np.asarray(Step.solve("Hc", model).solution.x)
