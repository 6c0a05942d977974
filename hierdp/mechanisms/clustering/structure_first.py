"""StructureFirst (SF): choose the boundaries of runs of bins privately, then release the runs' noisy means.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". Boundaries are
drawn from right to left by the exponential mechanism, here `Noise.choose`. A boundary's score is the least
squared error with it. The number of runs is given in advance; their program uses n/10.

Scores are bounded because counts are bounded by F, which the paper assumes to be public. Their program (which
DPBench runs) uses 10,000 times the mean count, which depends on the data without spending budget. With F so
far above the counts, no boundary is 1.25 times as likely as another at ε = 1 on four of DPBench's six
histograms. The program's formula for ε₁ is valid only if a denominator is positive, and gives ε/20 on all
six. Here F is given, or is a noisy maximum that spends budget.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import Spend, check_share, split, sum_of
from hierdp.privacy.noise import Noise
from models.arithmetic.arrays import Ints
from models.arithmetic.run_costs import sums_of

FOR_LARGEST = 0.05
"""The share of ε for a noisy maximum, if F is not given."""

_SAFE = 2**27
"""Limit on n·F for which floor(SSE) is exact in floats: SSE·n < 2^53."""

LARGEST = "largest count"
"""The measurement of F, if it is not given, as named in the budget."""


def structure_first(
    counts: Ints,
    epsilon: float,
    noise: Noise,
    share: float = 0.5,
    clusters: int | None = None,
    largest: int | None = None,
) -> Published:
    """Release the noisy means of runs of neighbouring bins with private boundaries.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts, 0 or more.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    share : float
        ε₁/(ε₁ + ε₂), between 0 and 1, for the boundaries, in equal parts. The rest is for the sums.
    clusters : int, optional
        The number k of runs. Default ⌈n/10⌉, as in the authors' program. Do not choose it by results on the
        data to be released: that reveals something about the data, and the budget does not cover it.
    largest : int, optional
        F: larger counts are scored as F. It must be public knowledge, not the data's maximum. Default: a
        noisy maximum, for a twentieth of ε; one person changes the maximum by at most 1.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    share = check_share(share)
    n = counts.size
    k = -(-n // 10) if clusters is None else clusters
    if not 1 <= k <= n:
        raise InputError(f"clusters is {k}: {n} bins form 1 to {n} runs")
    if largest is not None and largest < 1:
        raise InputError(f"largest is {largest}: it must be 1 or more")
    spends = []
    if 1 < k < n and largest is None:
        for_largest, epsilon = split(epsilon, 2, (FOR_LARGEST, 1 - FOR_LARGEST))
        noisy = noise.geometric(counts.max(keepdims=True), LARGEST, 1, for_largest)
        largest = max(1, int(noisy.counts[0]))
        spends.append(noisy.spend)
    starts, for_sums = np.arange(k), epsilon  # one run, or as many runs as bins: there is nothing to choose
    if largest is not None and 1 < k < n:
        for_starts, for_sums = split(epsilon, 2, (share, 1 - share))
        starts, spend = boundaries(counts, k, largest, for_starts, noise)
        spends.append(spend)
    sums = noise.geometric(np.add.reduceat(counts, starts), SUMS, 1, for_sums)
    runs = np.repeat(np.arange(k), np.diff(np.append(starts, n)))
    settings = {"clusters": k, "share": share, **({} if largest is None else {"largest": largest})}
    return of_clusters(runs, sums, (*spends, sums.spend), settings=settings)


def boundaries(counts: Ints, clusters: int, largest: int, epsilon: float, noise: Noise) -> tuple[Ints, Spend]:
    """The beginnings of runs, drawn from right to left, each for an equal part of ε.

    A boundary's score is the negated least cost of the runs before the previously drawn boundary; a run costs
    its SSE, rounded down. Counts are capped at F. If n·F is so large that squares would not be exact, counts
    are in units of several people, which change by at most one if the count does.
    """
    from solvers.fast.segment_paths import layers, whole_column

    n = counts.size
    unit, bound = bound_of(n, largest)
    sums = sums_of(np.minimum(counts // unit, bound))
    least = layers(clusters - 1, sums, True)
    step = sensitivity(bound)
    starts = np.zeros(clusters, dtype=np.int64)
    share = split(epsilon, clusters - 1)[0]
    end, spent = n, []
    for r in range(clusters - 1, 0, -1):
        scores = np.empty(end - r)
        whole_column(sums, r, end, scores)
        scores += least[r, r:end]
        chosen, spend = noise.choose([-scores.astype(np.int64)], "a boundary", step, share)
        starts[r] = end = r + int(chosen[0])
        spent.append(spend)
    one = spent[0]
    loss = sum_of(spend.epsilon or 0.0 for spend in spent)
    return starts, replace(one, query=query_of(clusters), epsilon=loss, times=len(spent))


def query_of(clusters: int) -> str:
    """The name of the boundaries in the budget."""
    return f"{clusters - 1} boundaries of runs, one after the other"


def bound_of(bins: int, largest: int) -> tuple[int, int]:
    """The number of people in a unit of a scored count, and F in these units."""
    unit = -(-bins * largest // _SAFE)
    return unit, max(1, largest // unit)


def sensitivity(largest: int) -> int:
    """Sensitivity of a score to one person in a bin of 0 … F people: 2F − 1.

    The SSE of m bins changes by (1 − 1/m) + 2(x − mean) if one of them goes from x to x + 1. Both counts are
    in 0 … F, so the change is at most (1 − 1/m)(2F − 1) in absolute value. Rounding down keeps a change below
    a whole number within that number. The same bound holds for the least of many sums, each of which contains
    one changed run. (The paper has 2F + 1.)
    """
    return 2 * largest - 1
