"""Matching of groups by size: Kuo et al.'s Alg. 2 on runs instead of single groups.

Alg. 2 matches the smallest free groups of both sides: with the groups of each side in order of size, the i-th
with the i-th. Only the order of the children's groups of one size remains to be decided. If the parent has
fewer groups of some size than these, the paper takes from each child in proportion to what it has left,
rounded by largest fractional parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models import GroupMatching
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import helper, kernel
from models.group_matching import PAIR


def solve_group_matching(model: GroupMatching) -> tuple[Array, None]:
    """Alg. 2's matching, sparse (dtype `PAIR`), smallest sizes first.

    O(runs log runs), plus, for each size, the number of children that have it times the parent's sizes
    matched with it. Where Alg. 2 is arbitrary: equal fractional parts are rounded up for earlier children
    first; within a child, and within the parent, groups of equal size are used in the order of the runs.
    """
    sizes, counts = model.parent
    child_sizes, child_counts, child = model.children
    parents, runs = _by_size(sizes, counts), _by_size(child_sizes, child_counts)
    found = match_runs(
        sizes[parents], counts[parents], child_sizes[runs], child_counts[runs], child[runs], model.groups
    )
    pairs = np.empty(len(found), PAIR)
    pairs["parent"], pairs["child"] = (
        parents[found[:, 0].astype(np.int64)],
        runs[found[:, 1].astype(np.int64)],
    )
    pairs["count"] = found[:, 2]
    return pairs, None


def match_runs(
    sizes: Ints, counts: Ints, child_sizes: Ints, child_counts: Ints, child: Ints, groups: int
) -> Array:
    """Alg. 2 on runs with groups, in order of size: those of the parent, and of its children.

    - sizes, counts, int64 arrays, shape (runs,): the parent's.
    - child_sizes, child_counts, child, int64 arrays, shape (child runs,): the children's; of runs of one
      size, those of a child are next to each other.
    - groups: how many groups there are on each side.

    Returns: array, shape (pairs, 3): a run of the parent's, one of the children's, and how many groups they
    share.
    """
    match: Callable[..., Array] = _match
    if groups >= 2**31:  # products of counts may leave int64
        match = _match.py_func
        counts, child_counts = counts.astype(object), child_counts.astype(object)
    pairs = np.empty((sizes.size + child_sizes.size + 1, 3), counts.dtype)
    return match(sizes, counts, child_sizes, child_counts, child, pairs)


def _by_size(sizes: Ints, counts: Ints) -> Ints:
    """Positions of the runs that hold groups, by size, then in their own order."""
    held = np.flatnonzero(counts)
    sizes = sizes[held]
    return held if np.all(sizes[1:] >= sizes[:-1]) else held[np.argsort(sizes, kind="stable")]


@helper
def _round_up(give: Any, below: Any, start: int, end: int, short: int, least: int) -> None:
    """Add one to the `short` children with the smallest `below`, at ties the earlier ones first.

    All values of `below` are above `least` and at most 0. The largest value that is rounded up is found by
    bisection, because Numba takes seconds to compile a sort.
    """
    low, high = least, 0
    while high - low > 1:
        middle = (low + high) // 2
        under = 0
        for c in range(start, end):
            under += below[c] <= middle
        if under >= short:
            high = middle
        else:
            low = middle
    for c in range(start, end):
        if below[c] < high:
            give[c] += 1
            short -= 1
    for c in range(start, end):
        if short > 0 and below[c] == high:
            give[c] += 1
            short -= 1


@kernel()
def _match(top_size: Any, top_count: Any, size: Any, count: Any, child: Any, pairs: Any) -> Any:
    """All pairs (parent run, child run, groups) of sorted runs; `pairs` is replaced if it is too short."""
    used, top, free = 0, 0, 0
    if top_count.size:
        free = top_count[0]
    rest = count.copy()
    # For each child with groups of one size: how many are left, how many it gives now, and from which run.
    left, give, below, at = count.copy(), count.copy(), count.copy(), np.arange(count.size)
    start = 0
    while start < size.size:
        stop = start + 1
        while stop < size.size and size[stop] == size[start]:
            stop += 1
        # Runs start … stop have one size, child by child; the places from start on are used for the children.
        end, remaining = start, 0
        for run in range(start, stop):
            remaining += count[run]
            if run > start and child[run] == child[run - 1]:
                left[end - 1] += count[run]
            else:
                at[end], left[end] = run, count[run]
                end += 1
        while remaining > 0:
            # The parent's free groups of the least size, up to the number needed here.
            tops, last = free, top + 1
            while tops < remaining and last < top_size.size and top_size[last] == top_size[top]:
                tops += top_count[last]
                last += 1
            for c in range(start, end):
                give[c] = left[c]
            if tops < remaining and end - start > 1:  # in proportion; the largest fractional parts go up
                short = tops
                for c in range(start, end):
                    give[c] = tops * left[c] // remaining
                    below[c] = give[c] * remaining - tops * left[c]
                    short -= give[c]
                _round_up(give, below, start, end, short, -remaining)
            elif tops < remaining:
                give[start] = tops
            for c in range(start, end):
                groups = give[c]
                left[c] -= groups
                remaining -= groups
                while groups > 0:
                    run = at[c]
                    pair = min(groups, rest[run], free)
                    if used == len(pairs):
                        longer = np.empty((2 * used, 3), pairs.dtype)
                        for k in range(used):
                            for column in range(3):
                                longer[k, column] = pairs[k, column]
                        pairs = longer
                    pairs[used, 0], pairs[used, 1], pairs[used, 2] = top, run, pair
                    used += 1
                    groups -= pair
                    rest[run] -= pair
                    free -= pair
                    if rest[run] == 0:
                        at[c] += 1
                    if free == 0 and top + 1 < top_size.size:
                        top += 1
                        free = top_count[top]
        start = stop
    return pairs[:used]
