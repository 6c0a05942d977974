"""Exchanges of units along a tree: from any feasible counts to the optimal ones, in whole numbers.

Σ w(x − y)² over the nodes of a tree, where every node's count is the sum of its children's, is M-convex in
the leaves' counts: the units of a subtree have strictly increasing costs, and x is optimal if and only if,
within every family, no unit held costs more than the cheapest unit available (Murota 2003, ch. 6). So units
move between siblings until that holds, from the leaves up; at the root, they move between the sizes in the
same way.

The same holds for steps of δ units on the grid x + δℤ, so a distant answer is approached in large steps; by
the proximity theorem each finer grid then needs few exchanges. Siblings are ranked by knock-out tournaments:
an exchange takes time logarithmic in the size of each family that it passes.

Ties: of equally cheap units the one of the earlier size, and then of the earlier child, is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel
from models.check.reader import NEVER
from models.programs.layout import Layout, in_blocks

_PATIENCE = 2
"""Exchanges per member of a family after which x counts as far from the optimum."""

_ENDLESS = 1 << 31

_RANKED = 1
"""Marks, in the unused first place of a family's tournament, that it has been played."""

# Numba compiles a kernel again for every Python constant in a call, but not for NumPy's.
_FIRST, _NEXT = np.int64(0), np.int64(1)
_LEAST, _MOST = np.int64(1), np.int64(-1)
_UP, _DOWN = np.bool_(True), np.bool_(False)


class State(NamedTuple):
    """What the kernels share. Arrays over the counts are flat: node i of size s is at ``s · nodes + i``.

    `last` and `following` are the unit costs of the last step held by each subtree and of its next one.
    `costliest` and `cheapest` hold each family's two tournaments in its members' places: the winner of all is
    second, the winners of the two halves follow, and so on; the first place is unused.
    """

    first: Any
    degree: Any
    parent: Any
    weight: Any
    y: Any
    x: Any
    lower: Any
    upper: Any
    last: Any
    following: Any
    costliest: Any
    cheapest: Any


class Settled(NamedTuple):
    """Optimal counts, and the tournaments between their sizes."""

    state: State
    costliest: Ints
    cheapest: Ints


def exchange(
    layout: Layout, y: Ints, x: Ints, unit: int, lower: Ints | None, upper: Ints | None, weight: Ints
) -> Settled:
    """Make feasible counts optimal, in place.

    - y, int64 array, shape (sizes, nodes): the noisy counts times `unit`; by size, in the order of the
      layout.
    - x, int64 array, shape (sizes, nodes): whole feasible counts; overwritten by the optimal ones.
    - unit: the scale of y: one count is `unit` in y.
    - lower, upper, int64 arrays, shape (sizes, nodes), or None: each count's own domain; None: 0 and no
      bound.
    - weight, int64 array, shape (nodes,): in the order of the layout.
    """
    sizes = x.shape[0]
    flat = [None if a is None else a.reshape(-1) for a in (y, x, lower, upper)]
    costs = np.empty((2, x.size), np.int64)
    winners = np.empty((2, x.size), np.int32)
    state = State(layout.first, layout.degree, layout.parent, weight, *flat, *costs, *winners)
    ranks = np.empty((2, sizes), np.int32)

    def settle(step: int, patience: int) -> bool:
        done = in_blocks(lambda a, b: bool(_settle(state, a, b, unit, step, patience)), sizes, x.size)
        return bool(_trade_sizes(state, ranks[0], ranks[1], unit, step, patience)) and all(done)

    if not settle(1, _PATIENCE):  # x is far, which is rare
        for bits in range(int(x[:, 0].max()).bit_length() // 2 * 2, -1, -2):
            settle(1 << bits, _ENDLESS)
    return Settled(state, ranks[0], ranks[1])


def units_near(settled: Settled, unit: int, many: int) -> tuple[Ints, Ints, Ints]:
    """The unit costs of optimal counts around their total; afterwards the counts are as before.

    - unit: as in `exchange`.
    - many: how many units to look at.

    Returns: last, following, int64 arrays, shape (many,): the costs of the last units held, the costliest
    first, and of the next ones, the cheapest first; ∓NEVER where there are no more. Then the leaves from
    which the last units are taken, and to which the next ones are added, shape (2, many): places in x.
    """
    last, following, back = np.full((3, many), NEVER)
    taken, given, again = np.zeros((3, many), np.int64)
    added = _walk(*settled, _UP, unit, many, following, given)
    _walk(*settled, _DOWN, unit, added, back, again)
    removed = _walk(*settled, _DOWN, unit, many, last, taken)
    last[removed:] = -NEVER
    _walk(*settled, _UP, unit, removed, back, again)
    return last, following, np.array([taken, given])


@kernel()
def _room_below(x: int, lower: Any, at: int) -> int:
    """How far a count may fall."""
    return x if lower is None else x - lower[at]


@kernel()
def _room_above(x: int, upper: Any, at: int) -> int:
    """How far a count may rise."""
    return NEVER if upper is None else upper[at] - x


@kernel()
def _own(t: State, base: int, i: int, unit: int, step: int) -> Any:
    """The unit costs of a node's own last step and of its next one; ∓NEVER at the ends of its domain."""
    at, w = base + i, t.weight[i]
    x = t.x[at]
    slope = 2 * w * (unit * x - t.y[at])
    gives = slope - w * unit * step if _room_below(x, t.lower, at) >= step else -NEVER
    takes = slope + w * unit * step if _room_above(x, t.upper, at) >= step else NEVER
    return gives, takes


@kernel(nogil=True)
def _join(own: int, below: int) -> int:
    """The cost of a step through a node: ±NEVER if the node or its children do not allow the step."""
    if abs(own) == NEVER or abs(below) == NEVER:
        return own if abs(own) == NEVER else below
    return own + below


@kernel(nogil=True)
def _extremes(last: Any, following: Any) -> Any:
    """A family's costliest last and cheapest next step."""
    costliest, cheapest = -NEVER, NEVER
    for j in range(last.size):
        costliest, cheapest = max(costliest, last[j]), min(cheapest, following[j])
    return costliest, cheapest


@kernel(nogil=True)
def _best(winners: Any, place: int, members: int, k: int) -> int:
    """The winner at node k of a tournament; nodes ``members … 2·members − 1`` are the members."""
    return k - members if k >= members else winners[place + k]


@kernel(nogil=True)
def _ahead(values: Any, begin: int, stride: int, j: int, k: int, sign: int) -> int:
    """The cheaper of two members, the earlier at ties; with sign −1 the costlier, the later at ties."""
    less = sign * (values[begin + k * stride] - values[begin + j * stride])
    return j if less > 0 or (less == 0 and sign * (k - j) > 0) else k


@kernel(nogil=True)
def _rank(values: Any, winners: Any, begin: int, stride: int, place: int, members: int, sign: int) -> None:
    """Play a family's tournament; its winners are stored from `place` on."""
    for k in range(members - 1, 0, -1):
        left, right = _best(winners, place, members, 2 * k), _best(winners, place, members, 2 * k + 1)
        winners[place + k] = _ahead(values, begin, stride, left, right, sign)


@kernel(nogil=True)
def _replay(
    values: Any, winners: Any, begin: int, stride: int, place: int, members: int, j: int, sign: int
) -> None:
    """Replay the games of member j, whose cost has changed, until a winner is unchanged and not j."""
    k = (members + j) >> 1
    while k >= 1:
        left, right = _best(winners, place, members, 2 * k), _best(winners, place, members, 2 * k + 1)
        winner = _ahead(values, begin, stride, left, right, sign)
        if winner == winners[place + k] and winner != j:
            return
        winners[place + k] = winner
        k >>= 1


@kernel(nogil=True)
def _rank_family(t: State, place: int, members: int) -> None:
    """Play a family's tournaments, unless that has been done since the last scan of the tree."""
    if members > 1 and t.costliest[place] != _RANKED:
        _rank(t.last, t.costliest, place, _NEXT, place, members, _MOST)
        _rank(t.following, t.cheapest, place, _NEXT, place, members, _LEAST)
        t.costliest[place] = _RANKED


@kernel(nogil=True)
def _refresh(t: State, base: int, i: int, unit: int, step: int) -> None:
    """Update the costs of node i's subtree, from its own count and its children's tournaments."""
    gives, takes = _own(t, base, i, unit, step)
    members = t.degree[i]
    if members:
        place = base + t.first[i]
        gives = _join(gives, t.last[place + _best(t.costliest, place, members, _NEXT)])
        takes = _join(takes, t.following[place + _best(t.cheapest, place, members, _NEXT)])
    t.last[base + i], t.following[base + i] = gives, takes


@kernel(nogil=True)
def _move(t: State, at: int, up: bool, unit: int, step: int, path: Any) -> Any:
    """Add a subtree's cheapest next step, or remove its costliest last one; returns the place of its leaf."""
    n = t.first.size
    i = at % n
    base, length = at - i, 0
    while True:
        t.x[base + i] += step if up else -step
        path[length] = i
        length += 1
        if t.degree[i] == 0:
            break
        place, members = base + t.first[i], t.degree[i]
        _rank_family(t, place, members)
        i = t.first[i] + _best(t.cheapest if up else t.costliest, place, members, _NEXT)
    leaf = base + i
    for k in range(length - 1, -1, -1):
        _refresh(t, base, path[k], unit, step)
        if k > 0:
            i = path[k - 1]
            place, j = base + t.first[i], path[k] - t.first[i]
            _replay(t.last, t.costliest, place, _NEXT, place, t.degree[i], j, _MOST)
            _replay(t.following, t.cheapest, place, _NEXT, place, t.degree[i], j, _LEAST)
    return leaf


@kernel(nogil=True)
def _trade(
    t: State, costliest: Any, cheapest: Any, begin: int, stride: int, place: int, members: int, unit: int,
    step: int, limit: int, path: Any,
) -> Any:  # fmt: skip
    """Exchange between ranked siblings (every `stride`-th from `begin`) until no exchange saves anything.

    For single units, exchanges that save nothing are also made until ties are in order. Returns False if
    `limit` exchanges were not enough.
    """
    for _ in range(limit):
        j, k = _best(costliest, place, members, _NEXT), _best(cheapest, place, members, _NEXT)
        gives, takes = t.last[begin + j * stride], t.following[begin + k * stride]
        if gives < takes or (gives == takes and (step > 1 or j <= k)) or gives == -NEVER or takes == NEVER:
            return True
        _move(t, begin + j * stride, _DOWN, unit, step, path)
        _replay(t.last, costliest, begin, stride, place, members, j, _MOST)
        _replay(t.following, cheapest, begin, stride, place, members, j, _LEAST)
        _move(t, begin + k * stride, _UP, unit, step, path)
        _replay(t.last, costliest, begin, stride, place, members, k, _MOST)
        _replay(t.following, cheapest, begin, stride, place, members, k, _LEAST)
    return False


@kernel(nogil=True)
def _at_rest(last: Any, following: Any, costliest: int, cheapest: int, step: int) -> Any:
    """Whether a family with these extremes has nothing to exchange; a quick check without tournaments."""
    if costliest != cheapest or step > 1:
        return costliest <= cheapest
    j, k = last.size - 1, 0
    while last[j] != costliest:
        j -= 1
    while following[k] != cheapest:
        k += 1
    return j <= k


@kernel(nogil=True)
def _settle(t: State, begin: int, end: int, unit: int, step: int, patience: int) -> Any:
    """Make some sizes optimal on the grid of this step, each for its root's count; see `_trade`."""
    n, done = t.first.size, True
    path = np.empty(_levels(t.parent), np.int64)
    for s in range(begin, end):
        base = s * n
        for i in range(n - 1, -1, -1):
            gives, takes = _own(t, base, i, unit, step)
            if t.degree[i]:
                place = base + t.first[i]
                last = t.last[place : place + t.degree[i]]
                following = t.following[place : place + t.degree[i]]
                costliest, cheapest = _extremes(last, following)
                t.costliest[place] = 0
                if not _at_rest(last, following, costliest, cheapest, step):
                    _rank_family(t, place, last.size)
                    size = last.size
                    limit = patience * size
                    done &= _trade(
                        t, t.costliest, t.cheapest, place, _NEXT, place, size, unit, step, limit, path
                    )
                    _refresh(t, base, i, unit, step)
                    continue
                gives, takes = _join(gives, costliest), _join(takes, cheapest)
            t.last[base + i], t.following[base + i] = gives, takes
    return done


@kernel()
def _trade_sizes(t: State, costliest: Any, cheapest: Any, unit: int, step: int, patience: int) -> Any:
    """Exchange between the sizes."""
    n = t.first.size
    path = np.empty(_levels(t.parent), np.int64)
    _rank(t.last, costliest, _FIRST, n, _FIRST, costliest.size, _MOST)
    _rank(t.following, cheapest, _FIRST, n, _FIRST, cheapest.size, _LEAST)
    return _trade(
        t, costliest, cheapest, _FIRST, n, _FIRST, costliest.size, unit, step, patience * costliest.size, path
    )


@kernel()
def _walk(
    t: State, costliest: Any, cheapest: Any, up: bool, unit: int, many: int, costs: Any, leaves: Any
) -> int:
    """Add the cheapest next units, or remove the costliest last ones; returns how many there were."""
    n = t.first.size
    path = np.empty(_levels(t.parent), np.int64)
    for each in range(many):
        j = _best(cheapest if up else costliest, 0, cheapest.size, _NEXT)
        cost = t.following[j * n] if up else t.last[j * n]
        if abs(cost) == NEVER:
            return each
        costs[each] = cost
        leaves[each] = _move(t, j * n, up, unit, 1, path)
        _replay(t.last, costliest, _FIRST, n, _FIRST, costliest.size, j, _MOST)
        _replay(t.following, cheapest, _FIRST, n, _FIRST, cheapest.size, j, _LEAST)
    return many


@kernel(nogil=True)
def _levels(parent: Any) -> int:
    """Levels of the tree; the last node is on the deepest."""
    levels, i = 1, parent.size - 1
    while parent[i] >= 0:
        levels, i = levels + 1, parent[i]
    return levels
