"""P-HPartition (PHP): bisect a histogram repeatedly, at privately chosen places.

Acs, Castelluccia & Chen 2012, "Differentially private histogram publishing through lossy compression", as in
its authors' public program, which DPBench runs: half of ε₁ is for the bisections, half for the number of them
to keep, and ε₂ for the sums of the clusters. Clusters consist of neighbouring bins.

The paper tunes nothing on the data. Its program limits the number of clusters, because trying all cuts of m
bins takes O(m²); here they take O(m log m), so there is no such limit. The program leaves one round of its
budget unspent, and raises negative means to 0; this one does neither.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import check_share, split
from hierdp.privacy.noise import LARGEST_SCALE
from hierdp.record.step import Solving
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel

SENSITIVITY = 2
"""Sensitivity of a cluster's cost, rounded up to a whole number, to one person in one of its bins. The bin
changes by 1 and the mean of m bins by 1/m, so the cost Σ|H_j − C̄| changes by at most (1 − 1/m) + (m − 1)/m =
2(m − 1)/m < 2. A change of less than 2 becomes one of at most 2 after rounding up. Only the cluster with the
person changes in the sum over clusters.
"""

NUMBER = "how many cuts to keep"
"""The last choice, as named in the budget."""


def php(
    shape: tuple[int, ...], epsilon: float, measure: Measure, _: Solving, share: float = 0.5
) -> Published:
    """Bisect, choose how many cuts to keep, and release the clusters' noisy means.

    The measurements are ⌊log₂ n⌋ rounds of cuts, the number of cuts, and the sums. The cuts of a round are of
    disjoint bins, so they cost only once.

    - share: ε₁/ε, between 0 and 1, for the clusters. The rest is for their sums.
    """
    share, bins = check_share(share), math.prod(shape)
    for_clusters, for_sums = split(epsilon, 2, (share, 1 - share))
    rounds = max(1, bins.bit_length() - 1)  # ⌊log₂ n⌋, but at least one
    of_a_round = split(for_clusters / 2, rounds)[0]
    # The mean |error| due to a cluster's noise, summed over its bins. (Noise beyond the largest scale is
    # refused.)
    penalty = max(1, round(1 / max(for_sums, 1 / LARGEST_SCALE)))
    made: list[Round] = []
    ends = [(0, bins)]
    for number in range(1, rounds + 1):
        ends = [(first, end) for first, end in ends if end - first > 1]
        scores = partial(cut_scores, clusters=ends, penalty=penalty)
        choice = query.choices(
            f"where to cut each cluster, round {number}",
            SENSITIVITY,
            of_a_round,
            [end - first for first, end in ends],
            scores,
        )
        made.append(Round(ends, measure(choice).answers.tolist()))
        ends = made[-1].parts
    cuts = [cut for each in made for cut in each.cuts]
    costs = partial(_cost_scores, rounds=made, penalty=penalty)
    choice = query.choices(NUMBER, SENSITIVITY, for_clusters / 2, [len(cuts) + 1], costs)
    starts = np.sort(np.array([0, *cuts[: int(measure(choice).answers[0])]]))
    clusters = np.repeat(np.arange(starts.size), np.diff(np.append(starts, bins)))
    sums = measure(query.sums(SUMS, for_sums, clusters)).answers
    return of_clusters(clusters, sums, {"share": share, "rounds": rounds})


class Round(NamedTuple):
    """Clusters, by their first bins and ends, and where each was cut: before its bin 1, 2, …; 0 if not."""

    clusters: list[tuple[int, int]]
    chosen: list[int]

    @property
    def cuts(self) -> list[int]:
        """The first bins of the new clusters."""
        return [first + cut for (first, _), cut in zip(*self, strict=True) if cut > 0]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The clusters that were made. What was not cut is never cut again."""
        return [
            part
            for (first, end), cut in zip(*self, strict=True)
            if cut > 0
            for part in ((first, first + cut), (first + cut, end))
        ]


def _cost_scores(counts: Ints, rounds: list[Round], penalty: int) -> list[Ints]:
    """The negated costs of all clusters with the first 0, 1, 2, … of the cuts."""
    scores = [cut_scores(counts, each.clusters, penalty) for each in rounds]
    changes = [
        int(score[cut] - score[0])
        for each, those in zip(rounds, scores, strict=True)
        for score, cut in zip(those, each.chosen, strict=True)
        if cut > 0
    ]
    whole = cut_scores(counts, [(0, counts.size)], penalty)[0][0]
    return [np.cumsum([whole, *changes])]


def cut_scores(counts: Ints, clusters: list[tuple[int, int]], penalty: int) -> list[Ints]:
    """For each cluster of m bins, scores of a cut before its bin 1, 2, … m − 1, and at 0 that of none.

    A score is less the cost of the parts, ⌈Σ|H_j − C̄|⌉ and the penalty for each. A cluster is given by its
    first bin and its end.
    """
    n = counts.size
    values, ranks = np.unique(counts, return_inverse=True)
    firsts, ends = np.array(clusters, dtype=np.int64).reshape(-1, 2).T
    left = _deviations(counts, values, ranks, firsts, ends)
    right = _deviations(counts[::-1], values, ranks[::-1], n - ends, n - firsts)[::-1]
    return [
        -np.append(left[end - 1] + penalty, left[first : end - 1] + right[first + 1 : end] + 2 * penalty)
        for first, end in clusters
    ]


@kernel()
def _deviations(counts: Any, values: Any, ranks: Any, firsts: Any, ends: Any) -> Any:
    """⌈Σ|H_j − mean|⌉, exact, of each cluster's bins up to every bin of it.

    By how many of them are over the mean, and their sum, from partial sums over the ranks (Fenwick trees).
    """
    many, held = np.zeros(values.size + 1, np.int64), np.zeros(values.size + 1, np.int64)
    found = np.zeros(counts.size, np.int64)
    for cluster in range(firsts.size):
        first, end = firsts[cluster], ends[cluster]
        total = 0
        for i in range(first, end):
            total += counts[i]
            _put(many, held, ranks[i], 1, counts[i])
            size = i + 1 - first
            whole, rest = total // size, total % size
            above, sum_above = size, total
            k = np.searchsorted(values, whole, side="right")  # whole counts over the mean are over its floor
            while k > 0:
                above -= many[k]
                sum_above -= held[k]
                k -= k & -k
            # 2(Σ over the mean − above · mean), rounded up; in parts that fit 64 bits
            found[i] = 2 * (sum_above - above * whole) - (2 * above * rest) // size
        for i in range(first, end):
            _put(many, held, ranks[i], -1, -counts[i])
    return found


@kernel()
def _put(many: Any, held: Any, rank: int, one: int, count: int) -> None:
    k = rank + 1
    while k < many.size:
        many[k] += one
        held[k] += count
        k += k & -k
