"""StructureFirst (SF): choose the boundaries of runs of bins privately, then release the runs' noisy means.

Xu, Zhang, Xiao, Yang, Yu & Winslett 2012, "Differentially private histogram publication". Boundaries are
drawn from right to left by the exponential mechanism, here `noise.choice`. A boundary's score is the least
squared error with it. The number of runs is given in advance; their program uses n/10.

Scores are bounded because counts are bounded by F, which the paper assumes to be public. Their program (which
DPBench runs) uses 10,000 times the mean count, which depends on the data without spending budget. With F so
far above the counts, no boundary is 1.25 times as likely as another at ε = 1 on four of DPBench's six
histograms. The program's formula for ε₁ is valid only if a denominator is positive, and gives ε/20 on all
six. Here F is given, or is a noisy maximum that spends budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import CHOICE, check_share, split
from hierdp.record.step import Solving
from models.arithmetic.arrays import Ints
from models.arithmetic.run_costs import sums_of

FOR_LARGEST = 0.05
"""The share of ε for a noisy maximum, if F is not given."""

_SAFE = 2**27
"""Limit on n·F for which floor(SSE) is exact in floats: SSE·n < 2^53."""

LARGEST = "largest count"
"""The measurement of F, if it is not given, as named in the budget."""


def structure_first(
    shape: tuple[int, ...],
    epsilon: float,
    measure: Measure,
    _: Solving,
    share: float = 0.5,
    clusters: int | None = None,
    largest: int | None = None,
) -> Published:
    """Release the noisy means of runs of neighbouring bins with private boundaries.

    - share: ε₁/(ε₁ + ε₂), between 0 and 1, for the boundaries, in equal parts. The rest is for the sums.
    - clusters: the number k of runs. Default ⌈n/10⌉, as in the authors' program. Do not choose it by results
      on the data to be released: that reveals something about the data, and the budget does not cover it.
    - largest: F: larger counts are scored as F. It must be public knowledge, not the data's maximum. Default:
      a noisy maximum, for a twentieth of ε; one person changes the maximum by at most 1.

    Raises `InputError` if an option is out of range.
    """
    share, bins = check_share(share), math.prod(shape)
    k = -(-bins // 10) if clusters is None else clusters
    if not 1 <= k <= bins:
        raise InputError(f"clusters is {k}: {bins} bins form 1 to {bins} runs")
    if largest is not None and largest < 1:
        raise InputError(f"largest is {largest}: it must be 1 or more")
    settings = {"share": share, "clusters": k, **({} if largest is None else {"largest": largest})}
    starts, for_sums = np.arange(k), epsilon  # one run, or as many runs as bins: there is nothing to choose
    if 1 < k < bins:
        if largest is None:
            for_largest, epsilon = split(epsilon, 2, (FOR_LARGEST, 1 - FOR_LARGEST))
            largest_count = Query(LARGEST, 1, for_largest, 1, lambda counts: counts.max(keepdims=True))
            largest = max(1, int(measure(largest_count).answers[0]))
        for_starts, for_sums = split(epsilon, 2, (share, 1 - share))
        starts = starts_of(measure(boundaries(bins, k, largest, for_starts)).answers)
    runs = np.repeat(np.arange(k), np.diff(np.append(starts, bins)))
    return of_clusters(runs, measure(query.sums(SUMS, for_sums, runs)).answers, settings)


def boundaries(bins: int, clusters: int, largest: int, epsilon: float) -> Query:
    """The beginnings of runs, drawn from right to left, each for an equal part of ε.

    Each answer is the number of a candidate for the beginning of a run, of which the first leaves one bin for
    each of the runs before it. Its score is the negated least cost of the runs before the previously drawn
    boundary; a run costs its SSE, rounded down. Counts are capped at F. If n·F is so large that squares would
    not be exact, counts are in units of several people, which change by at most one if the count does.
    """
    unit, bound = bound_of(bins, largest)

    def scores_of(counts: Ints) -> Callable[[Sequence[int]], Ints]:
        from solvers.fast.segment_paths import layers, whole_column

        sums = sums_of(np.minimum(counts // unit, bound))
        least = layers(clusters - 1, sums, True)

        def scores(chosen: Sequence[int]) -> Ints:
            r = clusters - 1 - len(chosen)
            end = r + 1 + chosen[-1] if chosen else bins
            costs = np.empty(end - r)
            whole_column(sums, r, end, costs)
            return np.asarray(-(costs + least[r, r:end]).astype(np.int64))

        return scores

    def allowed(chosen: Ints) -> bool:
        starts = starts_of(chosen)
        return bool((chosen >= 0).all() and (np.diff(starts) > 0).all() and starts[-1] < bins)

    name = f"{clusters - 1} boundaries of runs, one after the other"
    step = sensitivity(bound)
    return Query(name, step, epsilon, clusters - 1, scores_of, CHOICE, allowed=allowed, in_sequence=True)


def starts_of(chosen: Ints) -> Ints:
    """The first bins of the runs, from the answers to `boundaries`."""
    return np.append(0, np.arange(1, chosen.size + 1) + chosen[::-1])


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
