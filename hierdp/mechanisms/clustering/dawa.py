"""DAWA: cut the bins into boxes of nearly equal counts, and measure their sums (Li, Hay & Miklau 2014).

A box costs Σ|x_j − mean| + 1/ε₂: its deviation, and the expected error of one noisy sum. Costs are measured
with noise, and the cut of least noisy cost is taken. Here boxes are the nodes of a tree that halves each
axis, so a bin is in one box of each level, and the noisy costs of *all* boxes cost ε₁ together. They are
published, and the cut follows from them: a shortest path, proved by `models.MinCostFlow`.

One person changes the deviation of a box of m bins by at most 2(1 − 1/m): the bin's distance from the mean by
1 − 1/m, the m − 1 others by 1/m each. A level gets ε₁ in this proportion, so all boxes have the same noise.

The paper and its authors' program allow runs of 2^k bins at any place. The program, which DPBench runs, adds
noise of scale (2 − 1/m − 1/n)/ε₁ to runs of m ≥ 2 bins, and none to single bins. That is not ε₁-DP, because a
bin is in m runs of m bins: see `tests/hierdp/test_dawa.py`.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.errors import InputError, unknown_name
from hierdp.measurements import query
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms.clustering.boxes import Boxes
from hierdp.mechanisms.clustering.published import SUMS, Published, of_clusters
from hierdp.mechanisms.range_query.hierarchical import NO_NOISE
from hierdp.mechanisms.range_query.plan import best_branching
from hierdp.mechanisms.range_query.post_processing import repaired
from hierdp.mechanisms.range_query.table import LEAST_SQUARES
from hierdp.mechanisms.range_query.tree import grid_tree
from hierdp.privacy.budget import check_share, split
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving
from models import MinCostFlow, Tree
from models.arithmetic.arrays import Ints

SHARE = 0.25
"""ε₁/ε, as in DPBench."""

WORKLOADS = "ranges", "bins"
"""What the sums are measured for: ranges, by a consistent hierarchy over them; or bins, by themselves."""

UNITS = 1 << 10
"""Costs are in this part of a person, rounded down."""

MOST_BINS, MOST_PEOPLE = 1 << 22, 1 << 50
"""With more bins, costs would not fit into 64 bits. For costs, counts are capped at people / bins."""


def dawa(
    shape: tuple[int, ...],
    epsilon: float,
    measure: Measure,
    solve: Solving,
    share: float = SHARE,
    workload: str = "ranges",
) -> Published:
    """Cut the bins into boxes, and release the boxes' means.

    - share: ε₁/ε, between 0 and 1, for the noisy costs. The rest is for the sums.
    - workload: one of `WORKLOADS`. For ranges, a hierarchy over the boxes' sums is measured as H_b^c does, in
      place of the paper's greedy weights.

    Raises `InputError` if an option is out of range, or there are too many bins.
    """
    share = check_share(share)
    if workload not in WORKLOADS:
        raise InputError(unknown_name(workload, WORKLOADS, "`workload`: there is no"))
    bins = math.prod(shape)
    if bins > MOST_BINS:
        raise InputError(f"DAWA takes at most {MOST_BINS:,} bins, not {bins:,}; PrivTree takes more")
    for_cut, for_sums = split(epsilon, 2, (share, 1 - share))
    boxes = Boxes(shape)
    tree, costs = boxes.tree, np.zeros(boxes.tree.size, dtype=np.int64)
    largest = [int(boxes.sizes[tree.nodes_of(level)].max()) for level in range(tree.depth)]
    changes = [2 * UNITS - 2 * UNITS // most for most in largest if most > 1]
    if not changes:  # a single bin
        for_sums = epsilon
    for level, loss in enumerate(split(for_cut, len(changes), changes) if changes else ()):
        name, nodes = f"deviations of boxes of {largest[level]:,} bins", tree.nodes_of(level)
        of = partial(deviations, boxes=boxes, level=level)
        costs[nodes] = measure(Query(name, changes[level], loss, nodes.stop - nodes.start, of)).answers
    costs = np.maximum(costs, 0) + round(UNITS / for_sums)
    supply = np.zeros(bins + 1, dtype=np.int64)
    supply[0], supply[-1] = 1, -1
    path = MinCostFlow(boxes.first, boxes.first + boxes.sizes, costs, supply)
    chosen = np.asarray(solve("cut into boxes", path).solution.x)
    clusters = boxes.clusters(np.flatnonzero(chosen))
    settings = {"share": share, "workload": workload, "clusters": int(clusters.max()) + 1}
    measured = _for_ranges if workload == "ranges" else _for_bins
    return of_clusters(clusters, measured(clusters, for_sums, measure, solve), settings)


def deviations(counts: Ints, boxes: Boxes, level: int) -> Ints:
    """Σ|x_j − mean| of the boxes of a level, in `UNITS`, rounded down; exact.

    With the mean w + r/m of m bins, it is Σ|x_j − w| + r/m · (the number of x_j ≤ w less that of x_j > w).
    """
    nodes = boxes.tree.nodes_of(level)
    order = np.argsort(boxes.first[nodes])
    first, size = boxes.first[nodes][order], boxes.sizes[nodes][order]
    values = np.empty_like(counts)
    values[boxes.first[boxes.tree.leaves]] = np.minimum(counts, MOST_PEOPLE // counts.size)
    mean, rest = np.divmod(np.add.reduceat(values, first), size)
    away = values - np.repeat(mean, size)
    whole = np.add.reduceat(np.abs(away), first)
    lower = np.add.reduceat(np.where(away > 0, -1, 1), first)
    found = np.empty_like(whole)
    found[order] = UNITS * whole + UNITS * rest * lower // size
    return found


def hierarchy(clusters: int) -> Tree:
    """The tree over the clusters that is measured for ranges."""
    return grid_tree((clusters,), best_branching((clusters,), consistent=True)).tree


def cluster_deviation(clusters: int, epsilon: float, workload: str) -> float:
    """Standard deviation of the noise of a cluster's sum, on average over so many clusters."""
    if workload == "bins":
        return math.sqrt(double_geometric_variance(1 / epsilon))
    tree = hierarchy(clusters)
    of_level = double_geometric_variance(tree.depth / epsilon)
    variance = np.where(tree.level > 0, max(of_level, NO_NOISE), np.inf)
    return math.sqrt(float(ConsistentVariance(tree, variance).of_nodes()[tree.leaves].mean()))


def _for_bins(clusters: Ints, epsilon: float, measure: Measure, _: Solving) -> Ints:
    return measure(query.sums(SUMS, epsilon, clusters)).answers


def _for_ranges(clusters: Ints, epsilon: float, measure: Measure, solve: Solving) -> NDArray[np.float64]:
    """Sums of the clusters, from a consistent hierarchy over them (H_b^c)."""
    tree = hierarchy(int(clusters.max()) + 1)
    noisy, variance = np.zeros(tree.size, dtype=np.int64), np.full(tree.depth + 1, np.inf)
    at, shares = tree.leaves[clusters], split(epsilon, tree.depth)
    for level, share in zip(range(tree.depth, 0, -1), shares, strict=True):
        nodes = tree.nodes_of(level)
        noisy[nodes] = measure(query.sums(f"{SUMS}, level {level}", share, at - nodes.start)).answers
        variance[level] = max(double_geometric_variance(1 / share), NO_NOISE)
        at = tree.parent[at]
    sums = repaired(tree, noisy, variance, LEAST_SQUARES, solve)
    return np.asarray(sums[tree.leaves], dtype=np.float64)
