"""StructureFirst (SF): boundaries of runs of neighbouring bins chosen privately, then the runs' noisy means.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". Boundaries are
drawn from right to left, each by the squared error that is least with it: the exponential mechanism, here as
`Noise.choose`. How many runs is told beforehand: their program takes n/10.

Scores are bounded where counts are: by F, which the paper takes for public. Their program (which DPBench
runs) takes 10,000 times the mean count for it, a look at the data that is not paid for. With an F so far over
the counts, no boundary is 1.25 times as likely as another at ε = 1 on four of DPBench's six histograms; and
the program's formula for ε₁, good only where a denominator is positive, says ε/20 on all six. Here F is told,
or is a noisy maximum that is paid for.
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
"""The share of ε for a noisy maximum, where none is told."""

_SAFE = 2**27
"""n·F up to which floor(SSE) is exact in floats: SSE·n < 2^53."""

LARGEST = "largest count"
"""What is measured where none is given, as the budget names it."""


def structure_first(
    counts: Ints,
    epsilon: float,
    noise: Noise,
    share: float = 0.5,
    clusters: int | None = None,
    largest: int | None = None,
) -> Published:
    """Runs of neighbouring bins by private boundaries, and the noisy mean of each.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts, 0 or more.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    share : float
        ε₁/(ε₁ + ε₂), between 0 and 1: what is spent on the boundaries, the same on each. The rest is for the
        sums.
    clusters : int, optional
        The number k of runs. Default ⌈n/10⌉, as in the authors' program. To choose it by results on the data
        to be released tells of them, and nothing is paid for that.
    largest : int, optional
        F: counts are scored as this at most. Public knowledge, not the data's maximum. By default a noisy
        maximum, for a twentieth of ε: one person more or less changes the maximum by 1 at most.

    Raises
    ------
    InputError
        If an option is out of range.
    """
    share = check_share(share)
    n = counts.size
    k = -(-n // 10) if clusters is None else clusters
    if not 1 <= k <= n:
        raise InputError(f"clusters is {k}: {n} bins make 1 to {n} runs")
    if largest is not None and largest < 1:
        raise InputError(f"largest is {largest}: it must be 1 or more")
    spends = []
    if 1 < k < n and largest is None:
        for_largest, epsilon = split(epsilon, 2, (FOR_LARGEST, 1 - FOR_LARGEST))
        noisy = noise.geometric(counts.max(keepdims=True), LARGEST, 1, for_largest)
        largest = max(1, int(noisy.counts[0]))
        spends.append(noisy.spend)
    starts, for_sums = np.arange(k), epsilon  # one run, or as many as bins: there is nothing to choose
    if largest is not None and 1 < k < n:
        for_starts, for_sums = split(epsilon, 2, (share, 1 - share))
        starts, spend = boundaries(counts, k, largest, for_starts, noise)
        spends.append(spend)
    sums = noise.geometric(np.add.reduceat(counts, starts), SUMS, 1, for_sums)
    runs = np.repeat(np.arange(k), np.diff(np.append(starts, n)))
    settings = {"clusters": k, "share": share, **({} if largest is None else {"largest": largest})}
    return of_clusters(runs, sums, (*spends, sums.spend), settings=settings)


def boundaries(counts: Ints, clusters: int, largest: int, epsilon: float, noise: Noise) -> tuple[Ints, Spend]:
    """Where runs begin: drawn from right to left, each for an equal part of ε.

    A boundary's score is, negative, the least cost of all runs up to the boundary drawn before, where a run
    costs its SSE rounded down. The counts are taken at F at most, and, where n·F is so large that squares
    would not be exact, in units of several people, which move by one at most where the count does.
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
    """What the boundaries are called in the budget."""
    return f"{clusters - 1} boundaries of runs, one after the other"


def bound_of(bins: int, largest: int) -> tuple[int, int]:
    """How many people a unit of a scored count is, and F in these units."""
    unit = -(-bins * largest // _SAFE)
    return unit, max(1, largest // unit)


def sensitivity(largest: int) -> int:
    """Of a score, for one person more or less in a bin of 0 … F people: 2F − 1.

    The SSE of m bins moves by (1 − 1/m) + 2(x − mean) when one of them goes from x to x + 1. Both are in
    0 … F, so it moves by (1 − 1/m)(2F − 1) at most, up or down. What moves by less than a whole number moves
    by no more than that number once rounded down; and so does the least of many sums, in each of which one
    run moves. (The paper has 2F + 1.)
    """
    return 2 * largest - 1
