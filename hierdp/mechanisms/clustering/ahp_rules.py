"""AHP's rules for cutting sorted noisy bins into clusters: Zhang et al.

2014, §4.2, and one of ours, by place. They are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hierdp.record.step import Solving
from models import Clustering
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel

Rule = Callable[[Ints, float, Solving], Ints]
"""A rule: from ascending values, the scale of the noise on a cluster's sum, and what solves models, to marks
that are 1 where a cluster begins.
"""


def optimal(values: Ints, scale: float, solve: Solving) -> Ints:
    """The optimum over all numbers of clusters, in O(n log n); the paper calls it prohibitive (O(n⁴))."""
    return np.asarray(solve("clusters of bins", Clustering(values, scale)).solution.x)


def empirical(values: Ints, scale: float, solve: Solving) -> Ints:
    """Algorithm 2: the best of the optimal cuts into the numbers of clusters by four rules of thumb."""
    numbers = sorted(set(rules_of_thumb(values).values()))
    steps = [solve(f"{k} clusters of bins", Clustering(values, scale, k)) for k in numbers]
    best = min(steps, key=lambda step: float(step.solution.objective or 0))
    return np.asarray(best.solution.x)


def greedy(values: Ints, scale: float, _: Solving) -> Ints:
    """Algorithm 3: each bin joins the previous cluster if that has the lower estimated error.

    err* takes 2/(|C|²ε₂²) for a bin, err 2/(|C|ε₂²) for a cluster, as printed. (The `j++` of line 14 belongs
    to both branches.) DPBench's program follows the same rule: it ends the search for err* one step later
    than printed, but that step is never better.
    """
    return np.asarray(_greedy(values.astype(np.float64), 2 * scale**2))


def by_place(values: Ints, scale: float, solve: Solving) -> Ints:
    """The optimum, with the values of 0 divided into ⌈√n⌉ runs. Not in the paper.

    The optimum has one cluster for the bins that the threshold set to 0, wherever they are in the data: it
    cannot gain by dividing equal values. But their true counts differ, and those of neighbours less than
    others. Equal values are sorted in the order of the data, so cuts among them divide the bins by place.
    """
    cut = optimal(values, scale, solve).copy()
    zeros = int(np.searchsorted(values, 0, side="right"))
    parts = min(zeros, math.isqrt(values.size - 1) + 1)
    cut[np.arange(parts) * zeros // max(1, parts)] = 1
    return cut


RULES: dict[str, Rule] = {
    "AHP": optimal,
    "AHP-empirical": empirical,
    "AHP-greedy": greedy,
    "AHP-by-place": by_place,
}


def rules_of_thumb(values: Ints) -> dict[str, int]:
    """The numbers of clusters by the four rules, rounded up, and at most the number of values.

    Doane's formula is as printed: its |s| is a cube root, and lacks the √n of a skewness.
    """
    n = values.size
    away = values - values.mean()
    third, second = float(np.sum(away**3)), float(np.sum(away**2))
    s = abs(third / second**1.5) ** (1 / 3) if second > 0 else 0.0
    spread = math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3))) if n > 2 else math.inf
    wanted = {
        "square root": math.sqrt(n),
        "Sturges": 1 + math.log2(n),
        "Doane": 1 + math.log2(n) + math.log2(1 + s / spread),
        "Rice": 2 * round(n ** (1 / 3), 12),
    }
    return {name: min(n, math.ceil(k)) for name, k in wanted.items()}


@kernel(error_model="numpy")
def _greedy(values: Any, noise: float) -> Any:
    """Marks of Algorithm 3; `noise` is 2/ε₂². Sums are of differences from the cluster's first value."""
    n = values.size
    marks = np.zeros(n, np.int64)
    marks[0] = 1
    base, count, total, squares = values[0], 1.0, 0.0, 0.0
    for j in range(1, n):
        apart = squares - total * total / count + noise / count + _least_alone(values, j, noise)
        away = values[j] - base
        more, more_squares = total + away, squares + away * away
        joined = more_squares - more * more / (count + 1) + noise / (count + 1)
        if joined < apart:
            total, squares, count = more, more_squares, count + 1
        else:
            marks[j] = 1
            base, count, total, squares = values[j], 1.0, 0.0, 0.0
    return marks


@kernel(error_model="numpy")
def _least_alone(values: Any, j: int, noise: float) -> float:
    """err*: the least cost of bin j in a cluster that begins with it.

    With the cluster's length, the first part grows and the second shrinks, so the search ends when the first
    part alone is too large.
    """
    least, tail = noise, 0.0
    for k in range(1, values.size - j):
        tail += values[j + k] - values[j]
        away = tail / (k + 1)
        if away * away >= least:
            break
        least = min(least, away * away + noise / ((k + 1.0) * (k + 1.0)))
    return least
