"""Prices at a tree's nodes that prove counts optimal, read off the counts in one pass up and one down."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.exact import Number
from models.arithmetic.kernels import Kernel, kernel
from models.programs.layout import ROWS, in_blocks
from models.tree import Tree

NEVER = 1 << 60
"""Stands for an infinite cost; true costs must stay under it."""


class NodePrices(NamedTuple):
    """Prices read off counts, family by family.

    - agree: whether some prices fit all last and next units. They do if and only if the counts are optimal.
    - root: the price of a unit at the root.
    - below, array, shape (families, sizes): the price for each internal node's children, in the order of
      `Tree.internal`; if none fits, one near.
    - clash: the first family without a fitting price; empty if they agree.
    """

    agree: bool
    root: Number
    below: Array
    clash: str


def rows_of_families(tree: Tree) -> tuple[Ints, Ints]:
    """``(own, home)``: for each node, the numbers of its children's family (-1: none) and of its own family.

    Families are numbered as in `Tree.internal`. The root is in one more, the last, whose members are its
    sizes.
    """
    families = tree.internal.size
    own = np.full(tree.size, -1)
    own[tree.internal] = np.arange(families)
    return own, np.concatenate([[families], own[tree.parent[1:]]])


def node_prices(
    tree: Tree, x: Array, noisy: Array, weights: Ints, domain: Any, integer: bool, near: float
) -> NodePrices:
    """The prices for counts x; linear time.

    The pass up computes the cost of each subtree's last unit and of its next one. Siblings, and at the root
    the sizes, need a common price between the costliest last and the cheapest next unit. The pass down
    chooses such prices.

    - x, noisy, arrays, shape (nodes, sizes)
    - weights, int64 array, shape (nodes,)
    - domain, ``(lower, upper)``, arrays of that shape, or ``(None, None)`` for 0 and no bound
    - integer: whether units are whole; otherwise they are infinitesimal, and cost the derivative.
    - near: a count within this distance of an end of its domain is taken to be there.
    """
    rows, never = _rows(tree, x, noisy, weights, domain, integer, near)
    last, following = rows[-2:]
    families, sizes = tree.internal.size, x.shape[1]
    price = np.zeros((families + 1, sizes), last.dtype)
    objects = last.dtype == np.dtype(object)
    up, down = (_up.py_func, _down.py_func) if objects else (_up, _down)
    in_blocks(lambda a, b: up(*rows, never, a, b), sizes, x.size, ROWS)
    costliest, cheapest = last[-1].max(), following[-1].min()
    price[-1] = _nearest(0, costliest, cheapest)
    clashes = in_blocks(lambda a, b: down(*rows, price, a, b), sizes, families * sizes, ROWS)
    clash = "" if costliest <= cheapest else "a unit moved from one size to another would cost less"
    if sum(clashes):
        at, s = np.argwhere(last[:-1] > following[:-1])[0]
        clash = f"size {s}: a unit moved between the children of node {tree.internal[at]} would cost less"
    root = price[-1, 0]
    return NodePrices(not clash, root.item() if isinstance(root, np.generic) else root, price[:-1], clash)


def root_prices(tree: Tree, x: Ints, noisy: Ints) -> tuple[int, int]:
    """The costliest last and the cheapest next unit of whole counts at the root, without weights or domains.

    ∓`NEVER` stands for no unit. The arguments are those of `node_prices`.
    """
    rows, never = _rows(tree, x, noisy, np.ones(tree.size, np.int64), (None, None), True, 0)
    in_blocks(lambda a, b: _up(*rows, never, a, b), x.shape[1], x.size, ROWS)
    last, following = rows[-2:]
    return int(last[-1].max()), int(following[-1].min())


def _rows(
    tree: Tree, x: Array, noisy: Array, weights: Ints, domain: Any, integer: bool, near: float
) -> tuple[tuple[Any, ...], Any]:
    """The arguments of both passes, with room for their costs at the end; and the cost of no unit."""
    kind = np.result_type(x, noisy)
    x, noisy = (read_only(part.astype(kind, copy=False)) for part in (x, noisy))
    never: Any = NEVER if kind == np.int64 else np.inf
    if kind == np.dtype(object):
        weights = weights.astype(object)
    elif kind != np.int64:
        near = float(near)
    costs = np.empty((2, tree.internal.size + 1, x.shape[1]), kind)
    whole = 1 if integer else 0
    return (x, noisy, weights, *domain, whole, near, *rows_of_families(tree), *costs), never


def _nearest(wanted: Any, low: Any, high: Any) -> Any:
    """The price in [low, high] nearest to the wanted one; the middle of an empty interval."""
    if low <= high:
        return min(max(wanted, low), high)
    return low + (high - low) // 2 if isinstance(low, int | np.integer) else (low + high) / 2


@kernel(linear=True, nogil=True)
def _up(
    x: Any, y: Any, w: Any, lower: Any, upper: Any, whole: int, near: float, own: Any, home: Any, last: Any,
    following: Any, never: Any, begin: int, end: int,
) -> None:  # fmt: skip
    """For each family, the costliest last and the cheapest next unit among its subtrees.

    `never` plus a true cost is still more than any true cost: the model checks that its costs are small
    enough.
    """
    nothing = np.zeros_like(last[0, begin:end])
    last[:, begin:end] = -never
    following[:, begin:end] = never
    for r in range(x.shape[0] - 1, -1, -1):
        u, v, half = x[r, begin:end], y[r, begin:end], whole * w[r]
        costliest, cheapest = last[home[r], begin:end], following[home[r], begin:end]
        below_last, below_next = nothing, nothing
        if own[r] >= 0:
            below_last, below_next = last[own[r], begin:end], following[own[r], begin:end]
        for s in range(u.size):
            slope = 2 * w[r] * (u[s] - v[s])
            gives, takes = slope - half + below_last[s], slope + half + below_next[s]
            least = 0 if lower is None else lower[r, begin + s]
            if u[s] <= least + near:
                gives = -never
            if upper is not None and u[s] >= upper[r, begin + s] - near:
                takes = never
            costliest[s], cheapest[s] = max(costliest[s], gives), min(cheapest[s], takes)


def levels(own: Ints, home: Ints) -> list[slice]:
    """The nodes of each level, root first, from `rows_of_families`."""
    owner = np.zeros(own.max(initial=-1) + 2, np.int64)
    owner[own[own >= 0]] = np.flatnonzero(own >= 0)
    owner[-1] = -1
    return levels_below(owner[home])


def levels_below(parent: Ints) -> list[slice]:
    """The nodes of each level, root first: all parents come before all children."""
    above = np.maximum.accumulate(parent)
    cuts = [0, 1]
    while cuts[-1] < parent.size:
        cuts.append(int(np.searchsorted(above, cuts[-1])))
    return [slice(a, b) for a, b in pairwise(cuts)]


def are_narrow(levels: list[slice]) -> bool:
    """Whether levels have so few nodes that a loop over the nodes takes less time than one over levels."""
    return bool(levels[-1].stop < 32 * len(levels))


def by_levels(loop: Kernel[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`Kernel.without_numba` for a kernel whose first argument is a tree's parents.

    The array operations get the tree's levels before it. For narrow trees, the loop is run.
    """

    def register(arrays: Callable[..., Any]) -> Callable[..., Any]:
        def run(parent: Ints, *args: Any) -> Any:
            levels = levels_below(parent)
            return loop.py_func(parent, *args) if are_narrow(levels) else arrays(levels, parent, *args)

        return loop.without_numba(run)

    return register


def _run(rows: Ints) -> Any:
    """Different rising positions, as a slice if they are consecutive: then no rows are copied."""
    size = rows.size
    return slice(int(rows[0]), int(rows[-1]) + 1) if size and rows[-1] - rows[0] == size - 1 else rows


class Siblings:
    """Rows grouped by their family, to be reduced into the families' rows."""

    def __init__(self, home: Ints) -> None:
        self.order: Any = slice(None)
        self.starts: Ints | None = None
        if home.size == 1:
            self.family = _run(home)
            return
        if (home[1:] < home[:-1]).any():
            self.order = np.argsort(home, kind="stable")
            home = home[self.order]
        first = np.empty(home.size, np.bool_)
        first[0] = True
        np.not_equal(home[1:], home[:-1], out=first[1:])
        starts = np.flatnonzero(first)
        self.starts = starts if starts.size < home.size else None
        self.family = _run(home[starts])

    def gather(self, reduce: np.ufunc, values: Array, into: Array) -> None:
        """Reduce the rows of each family into the family's row."""
        reduced = values[self.order]
        if self.starts is not None:
            reduced = reduce.reduceat(reduced, self.starts, axis=0)
        into[self.family] = reduce(into[self.family], reduced)


@_up.without_numba
def _up_in_arrays(
    x: Any, y: Any, w: Any, lower: Any, upper: Any, whole: int, near: float, own: Any, home: Any, last: Any,
    following: Any, never: Any, begin: int, end: int,
) -> None:  # fmt: skip
    part = slice(begin, end)
    last, following, u, m = last[:, part], following[:, part], x[:, part], w[:, None]
    last[:], following[:] = -never, never
    slope = 2 * m * (u - y[:, part])
    gives, takes = slope - whole * m, slope + whole * m
    low = u <= (0 if lower is None else lower[:, part]) + near
    high = None if upper is None else u >= upper[:, part] - near
    for level in reversed(levels(own, home)):
        at, give, take = own[level], gives[level], takes[level]
        inner = np.flatnonzero(at >= 0)
        if inner.size:
            rows, below = _run(inner), _run(at[inner])
            give[rows] += last[below]
            take[rows] += following[below]
        np.copyto(give, -never, where=low[level])
        if high is not None:
            np.copyto(take, never, where=high[level])
        siblings = Siblings(home[level])
        siblings.gather(np.maximum, give, last)
        siblings.gather(np.minimum, take, following)


@kernel(linear=True, nogil=True)
def _down(
    x: Any, y: Any, w: Any, lower: Any, upper: Any, whole: int, near: float, own: Any, home: Any, last: Any,
    following: Any, price: Any, begin: int, end: int,
) -> int:  # fmt: skip
    """Choose prices, given the root's (the last row of `price`); returns how many families have none."""
    clashes = 0
    for r in range(x.shape[0]):
        if own[r] < 0:
            continue
        u, v, half = x[r, begin:end], y[r, begin:end], whole * w[r]
        above, below = price[home[r], begin:end], price[own[r], begin:end]
        costliest, cheapest = last[own[r], begin:end], following[own[r], begin:end]
        for s in range(u.size):
            slope = 2 * w[r] * (u[s] - v[s])
            low, high = costliest[s], cheapest[s]
            clashes += low > high
            least = 0 if lower is None else lower[r, begin + s]
            if u[s] > least + near:
                high = min(high, above[s] - slope + half)
            if upper is None or u[s] < upper[r, begin + s] - near:
                low = max(low, above[s] - slope - half)
            below[s] = max(min(above[s], high), low)
    return clashes


@_down.without_numba
def _down_in_arrays(
    x: Any, y: Any, w: Any, lower: Any, upper: Any, whole: int, near: float, own: Any, home: Any, last: Any,
    following: Any, price: Any, begin: int, end: int,
) -> int:  # fmt: skip
    part, inner = slice(begin, end), np.flatnonzero(own >= 0)
    families = slice(0, inner.size)  # they are numbered as the inner nodes
    rows = _run(inner)
    u, m = x[rows, part], w[rows, None]
    slope = 2 * m * (u - y[rows, part])
    most, least = slope - whole * m, slope + whole * m
    low, high = last[families, part].copy(), following[families, part].copy()
    clashes = int((low > high).sum())
    gives = u > (0 if lower is None else lower[rows, part]) + near
    takes = None if upper is None else u < upper[rows, part] - near
    ends = np.searchsorted(inner, [level.stop for level in levels(own, home)])
    for start, stop in pairwise([0, *ends.tolist()]):
        if start == stop:
            continue
        here = slice(start, stop)
        above, floor, ceiling = price[home[inner[here]], part], low[here], high[here]
        np.minimum(ceiling, above - most[here], out=ceiling, where=gives[here])
        np.maximum(floor, above - least[here], out=floor, where=True if takes is None else takes[here])
        np.maximum(np.minimum(above, ceiling), floor, out=price[here, part])
    return clashes
