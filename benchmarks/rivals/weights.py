"""Stage 2 of DAWA: a binary tree over the runs, its nodes weighted greedily for a workload (GreedyH).

A node of weight w is measured with noise of scale 1/(w·ε₂); along each path from the root to a leaf, the
weights add up to 1. From the leaves up, each node takes the share s of its subtree's weight that minimises
the error of the workload in its own bins: with children of shares c and u = (AᵀA)⁻¹1 of the strategy A below,

    error(s) = [ Σ errors of children − uᵀGu · s²/((1 − s)² + s² Σu) ] / (1 − s)²,     G the workload's QᵀQ.

u keeps its direction when a node is added, and the G of all ranges is a product of two factors off its
diagonal, so four sums for each node suffice: the weights of all nodes take linear time. As in the authors'
program, s is a multiple of 1/100, and queries that are wider than a node, which nodes above will answer, too,
count less: by 2^(−depth/2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import Tree
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel

Floats = NDArray[np.float64]

SHARES = 100
"""Shares that are tried for a node: 0, 1/100, …, 99/100."""


def binary_tree(leaves: int) -> tuple[Tree, Ints, Ints]:
    """A tree that halves a number of leaves, with the first leaf and the end of each node, in level order."""
    levels, firsts, ends = [], [np.array([0])], [np.array([leaves])]
    while (ends[-1] - firsts[-1] > 1).any():
        first, end = firsts[-1], ends[-1]
        cut = np.flatnonzero(end - first > 1)
        middle = (first[cut] + end[cut]) // 2
        levels.append(np.repeat(cut, 2))
        firsts.append(np.stack([first[cut], middle], 1).ravel())
        ends.append(np.stack([middle, end[cut]], 1).ravel())
    return Tree(levels), np.concatenate(firsts), np.concatenate(ends)


def all_ranges(starts: Ints, bins: int) -> tuple[Floats, Floats, Floats]:
    """The workload of all ranges, on runs: G's diagonal, and factors with G[a, b] = left[a]·right[b], a < b.

    A range that takes part of a run takes that part of its sum. So G[a, b] is the mean, over bins i of a and
    j of b, of the number of ranges that contain both: (min + 1)(n − max).
    """
    ends = np.append(starts[1:], bins)
    i = np.arange(bins, dtype=np.float64)
    up, down = i + 1, bins - i
    before = np.concatenate([[0], np.cumsum(up)])
    pairs = np.concatenate([[0], np.cumsum(down * before[:-1])])
    after = np.concatenate([[0], np.cumsum(down)])
    same = np.concatenate([[0], np.cumsum(up * down)])
    size = (ends - starts).astype(np.float64)
    left, right = (before[ends] - before[starts]) / size, (after[ends] - after[starts]) / size
    crossed = pairs[ends] - pairs[starts] - before[starts] * (after[ends] - after[starts])
    return (same[ends] - same[starts] + 2 * crossed) / size**2, left, right


def single_bins(starts: Ints, bins: int) -> tuple[Floats, Floats, Floats]:
    """The workload of all bins: G is diagonal."""
    size = np.append(starts[1:], bins) - starts
    return 1.0 / size, np.zeros(size.size), np.zeros(size.size)


def greedy(tree: Tree, first: Ints, workload: tuple[Floats, Floats, Floats], discount: bool = True) -> Floats:
    """The weights of the nodes, in level order.

    Parameters
    ----------
    tree : Tree
        Binary, of `binary_tree`.
    first : int64 array, shape (nodes,)
        The first leaf of each node.
    workload : three arrays
        Of `all_ranges` or `single_bins`.
    discount : bool
        Whether queries wider than a node count less.
    """
    start, child = tree.children
    spread = 2.0 ** (-tree.level / 2.0) if discount else np.ones(tree.size)
    return np.asarray(_greedy(start, child, first, spread, *workload))


@kernel()
def _greedy(start: Any, child: Any, first: Any, spread: Any, square: Any, left: Any, right: Any) -> Any:
    nodes = first.size
    error, total, form = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    a, b, share, weight = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes), np.ones(nodes)
    for v in range(nodes - 1, -1, -1):
        if start[v] == start[v + 1]:
            leaf = first[v]
            error[v] = form[v] = square[leaf]
            total[v], a[v], b[v], share[v] = 1.0, left[leaf], right[leaf], 1.0
            continue
        one, other = child[start[v]], child[start[v] + 1]
        errors, sums = error[one] + error[other], total[one] + total[other]
        inside, crossed = form[one] + form[other], 2.0 * a[one] * b[other]
        weighed = (inside + crossed * spread[v]) * spread[v]
        least, best = np.inf, 0.0
        for step in range(100):
            s = step / 100.0
            rest = (1.0 - s) * (1.0 - s)
            found = (errors - weighed * s * s / (rest + sums * spread[v] * s * s)) / rest
            if found < least:
                least, best = found, s
        rest = (1.0 - best) * (1.0 - best)
        factor = (1.0 - best * best * sums / (rest + sums * best * best)) / rest
        error[v], share[v], total[v] = least, best, sums * factor
        a[v], b[v] = (a[one] + a[other]) * factor, (b[one] + b[other]) * factor
        form[v] = (inside + crossed) * factor * factor
    for v in range(nodes):
        if start[v] < start[v + 1]:
            for k in range(start[v], start[v + 1]):
                weight[child[k]] = weight[v] * (1.0 - share[v])
    return weight * share
