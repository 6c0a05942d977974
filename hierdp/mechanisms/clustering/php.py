"""P-HPartition (PHP): a histogram bisected again and again at places chosen privately.

Acs, Castelluccia & Chen 2012, "Differentially private histogram publishing through lossy compression", as
its authors' public program has it (DPBench runs that): half of ε₁ for the bisections, half for how many of
them to keep, ε₂ for the sums of the clusters. Clusters are of neighbouring bins.

The paper tunes nothing on the data. Its program is told a largest number of clusters, to save the time of
trying all cuts of m bins in O(m²); they take O(m log m) here, so there is no such limit. It leaves one round
of its budget unspent, and raises negative means to 0; this one does neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.privacy.budget import Spend, check_share, split
from hierdp.privacy.noise import LARGEST_SCALE, Noise
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel

SENSITIVITY = 2
"""Of a cluster's cost, rounded up to whole people, for one person more or less in one of its bins.

The bin moves by 1 and the mean of m bins by 1/m, so the cost Σ|H_j − C̄| moves by at most
(1 − 1/m) + (m − 1)/m = 2(m − 1)/m < 2. What moves by less than 2 moves by at most 2 once rounded up. The sum
over clusters moves as the one that holds the person does.
"""

NUMBER = "how many cuts to keep"
"""What is chosen last, as the budget names it."""


def rounds_of(bins: int) -> int:
    """How many rounds of cuts there are: ⌊log₂ n⌋, and one at least."""
    return max(1, bins.bit_length() - 1)


def cut_query(number: int) -> str:
    """What a round of cuts is called in the budget."""
    return f"where to cut each cluster, round {number}"


def php(counts: Ints, epsilon: float, noise: Noise, *, share: float = 0.5) -> Published:
    """Bisect, choose how many of the cuts to keep, and publish the clusters' noisy means.

    Parameters
    ----------
    counts : int64 array, shape (n,)
        True counts, 0 or more.
    epsilon : float
        For neighbours that differ by one person, in one bin.
    noise : Noise
    share : float
        ε₁/ε, between 0 and 1: what is spent on the clusters. The rest is for their sums.

    Returns
    -------
    Published
        Its spends: ⌊log₂ n⌋ rounds of cuts (those of a round are of different bins, and so cost once), the
        number of cuts, and the sums.
    """
    share = check_share(share)
    for_clusters, for_sums = split(epsilon, 2, (share, 1 - share))
    rounds = rounds_of(counts.size)
    # The mean |error| of a cluster's noise, summed over its bins. (Beyond the largest, noise is refused.)
    penalty = max(1, round(1 / max(for_sums, 1 / LARGEST_SCALE)))
    cuts, scores, spends = _bisected(counts, for_clusters / 2, rounds, penalty, noise)
    (kept,), spend = noise.choose([np.array(scores)], NUMBER, SENSITIVITY, for_clusters / 2)
    starts = np.sort(np.array([0, *cuts[: int(kept)]]))
    clusters = np.repeat(np.arange(starts.size), np.diff(np.append(starts, counts.size)))
    sums = noise.geometric(np.add.reduceat(counts, starts), SUMS, 1, for_sums)
    settings = {"epsilon_1": for_clusters, "epsilon_2": for_sums, "rounds": rounds}
    return of_clusters(clusters, sums, [*spends, spend, sums.spend], settings=settings)


def _bisected(
    counts: Ints, epsilon: float, rounds: int, penalty: int, noise: Noise
) -> tuple[list[int], list[int], list[Spend]]:
    """The cuts in the order they were made, less the costs with none, one, two, … of them; what was spent."""
    ends = [(0, counts.size)]
    cuts: list[int] = []
    costs = [int(cut_scores(counts, ends, penalty)[0][0])]
    spends = []
    share = split(epsilon, rounds)[0]
    for number in range(1, rounds + 1):
        ends = [(first, end) for first, end in ends if end - first > 1]
        scores = cut_scores(counts, ends, penalty)
        chosen, spend = noise.choose(scores, cut_query(number), SENSITIVITY, share)
        spends.append(spend)
        parts = []
        for (first, end), score, cut in zip(ends, scores, chosen.tolist(), strict=True):
            if cut > 0:  # else the cluster stays as it is, for good
                cuts.append(first + cut)
                costs.append(costs[-1] + int(score[cut] - score[0]))
                parts += [(first, first + cut), (first + cut, end)]
        ends = parts
    return cuts, costs, spends


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
    """Add a bin to the partial sums of its rank."""
    k = rank + 1
    while k < many.size:
        many[k] += one
        held[k] += count
        k += k & -k
