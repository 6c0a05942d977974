"""Prices read off an answer, in a pass or two, where rows link the variables to chains, sums or trees.

A price is right if each charge ``c = Aᵀ y`` lies between the slopes of the cost to the left and to the right
of its variable. On a chain, a sum or a tree these are intervals that can be passed along: one pass collects
the interval of each row's price, one pass back chooses. They find prices if there are any; these exist for
every optimal answer if the rows are those of a network and the costs convex (Ahuja, Magnanti & Orlin 1993,
§14.4). Nothing here has to be right: `models.check.checker` decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import SMALL, kernel
from models.levels import Siblings, levels_below
from models.programs.costs import Linear, Square, Table
from models.programs.layout import ROWS, in_blocks
from models.programs.operators import Children, RootTotal, Steps, Sums
from models.programs.terms import INFINITY, Block, Rows
from models.segments import Spread, by_pieces, by_segment

NEVER = 1 << 60
"""Stands for an infinite slope among whole ones."""

VERY_LARGE = 1 << 5_000
"""The same among Python's numbers."""

BELOW_WEIGHT = 2.0**-50
"""By this share, prices of absolute values in floats are made smaller: a charge that rounding lifts above a
weight proves nothing. It is multiplied by the largest price over the least weight, if that is more than 1."""

MOST_BELOW = 2.0**-30
"""The largest such share, which costs far less of the bound than the tolerance for floats."""


@np.errstate(over="ignore", invalid="ignore")
def read_prices(
    structure: tuple[Sequence[Block], Sequence[Rows]], values: Mapping[str, Array], near: float = 0.0
) -> dict[str, Array]:
    """Prices by the name of their rows; none where the rows are of another shape.

    - near: real variables within this distance of a kink of their cost, or of a bound, are taken to be there.
    """
    blocks, rows = structure
    block = blocks[0]
    operators = [operator for part in rows for operator in part.operators.values()]
    alone = len(blocks) == 1 and len(operators) == len(rows)
    if not alone or isinstance(block.cost, Table | None) or not values[block.name].size:
        return {}
    *others, last = operators
    longest = (
        last.tree.depth + 2 if isinstance(last, Children) else block.size if isinstance(last, Steps) else 2
    )
    if isinstance(last, Sums) and not others and block.integer and values[block.name].size > SMALL:
        block, values, last = _extremes(block, values[block.name], last)
    left, right, never = _slopes(block, values[block.name], near, longest)
    if isinstance(last, Steps) and not others:
        prices = {rows[0].name: prices_of_steps(last, values[block.name], left, right, never, near)}
    elif isinstance(last, Sums) and not others:
        prices = {rows[0].name: _of_sums(last, left, right, never)}
    elif isinstance(last, Children) and [*map(type, others)] in ([], [RootTotal]):
        total, below = _of_tree(last, left, right, never, bool(others))
        prices = {rows[-1].name: below}
        if others:
            prices[rows[0].name] = total
    else:
        return {}
    if left.dtype.kind == "f" and not isinstance(block.cost, Square):
        cost: Any = block.cost
        prices = _below_weights(prices, np.abs(np.asarray(cost.data[1], float)))
    return prices


def _below_weights(prices: dict[str, Array], weights: Array) -> dict[str, Array]:
    largest = max(float(np.abs(price).max(initial=0.0)) for price in prices.values())
    least = float(weights.min(initial=np.inf, where=weights > 0))
    share = min(BELOW_WEIGHT * max(1.0, largest / least), MOST_BELOW)
    return {name: price * (1 - share) for name, price in prices.items()}


def _slopes(
    block: Block, v: Array, near: float, longest: int, rounded: bool = False
) -> tuple[Array, Array, Any]:
    """The slopes to the left and to the right of each variable, infinite at a bound; and what is infinite.

    Whole numbers, floats, or Python's numbers if the former are too large or data of whole variables floats.
    `longest`: how many slopes are added up at most. `rounded`: in floats, if data are floats.
    """
    assert not isinstance(block.cost, Table | None)
    data = [np.asarray(part) for part in block.cost.data]
    parts = [v, *data]
    step: Any = 1 if block.integer else 0
    whole = all(part.dtype == np.int64 for part in parts)
    if whole:
        size, far, heavy = (exact.reach(np.atleast_1d(part)) for part in parts)
        whole = 8 * heavy * (size + far + 2) * longest < NEVER
    floats = (rounded or not block.integer) and {part.dtype.kind for part in parts} in ({"f"}, {"i", "f"})
    if not whole:
        parts = [part.astype(float) if floats else _objects(part) for part in parts]
    v, center, weight = parts
    never: Any = NEVER if whole else math.inf if floats else VERY_LARGE
    if isinstance(block.cost, Linear):
        left = right = np.broadcast_to(weight, v.shape)
    elif isinstance(block.cost, Square):
        slope = 2 * weight * (v - center) if weight.ndim or weight != 1 else 2 * (v - center)
        left, right = (slope - weight * step, slope + weight * step) if step else (slope, slope)
    else:
        away = v - center
        if near:
            away = np.where(np.abs(away) <= near, 0.0, away)
        if step and not whole:
            left, right = weight * (abs(away) - abs(away - 1)), weight * (abs(away + 1) - abs(away))
        else:
            left, right = (away > 0) * (2 * weight) - weight, (away >= 0) * (2 * weight) - weight
    low, high = (np.asarray(side) for side in (block.lower, block.upper))
    if not (low.ndim == 0 and low == -INFINITY):
        left = np.where(v <= (low + near if near else low), -never, left)
    if not (high.ndim == 0 and high == INFINITY):
        right = np.where(v >= (high - near if near else high), never, right)
    return left, right, never


def _objects(array: Array) -> Array:
    return exact.fractions(array) if array.dtype.kind == "f" else array.astype(object)


# ---------------------------------------------------------------- sums


def _of_sums(operator: Sums, left: Array, right: Array, never: Any) -> Array:
    """For each segment, a price between the costliest last unit and the cheapest next one."""
    low = by_segment(np.maximum, left, operator.offsets, empty=0)
    high = by_segment(np.minimum, right, operator.offsets, empty=0)
    return _between(low, high, never)


def _extremes(block: Block, v: Array, operator: Sums) -> tuple[Block, dict[str, Array], Sums]:
    """The variables that may have the largest slope to the left, or the least to the right."""
    assert not isinstance(block.cost, Table | None)
    if {part.dtype.kind for part in (v, *map(np.asarray, block.cost.data))} != {"i", "f"}:
        return block, {block.name: v}, operator
    offsets, errors, found = operator.offsets, [0.0], [np.empty(0, np.int64)]

    def slopes(part: slice) -> tuple[Array, Array, Any]:
        """In floats, and what they are wrong by at most."""
        some = block.chosen(part)
        left, right, _ = _slopes(some, v[part], 0.0, 2, rounded=True)
        assert not isinstance(some.cost, Table | None)
        center, weight = some.cost.data
        return left, right, 2.0**-48 * weight * (np.abs(v[part]) + np.abs(center) + 1.0)

    def ends(part: slice, _: Any) -> list[tuple[np.ufunc, Array]]:
        left, right, error = slopes(part)
        errors.append(float(error.max()))
        return [(np.maximum, left), (np.minimum, right)]

    def near(part: slice, each: Spread) -> list[tuple[np.ufunc, Array]]:
        left, right, error = slopes(part)
        off = error + max(errors)
        at = np.flatnonzero((left >= each(low) - off) | (right <= each(high) + off))
        found.append(at + part.start)
        return []

    low, high = by_pieces(offsets, ends)
    by_pieces(offsets, near)
    at = np.concatenate(found)
    return block.chosen(at), {block.name: v[at]}, Sums(np.searchsorted(at, offsets))


def _between(low: Array, high: Array, never: Any) -> Array:
    """A price from low to high; in the middle, if low is more than high."""
    large = never / 2 if low.dtype.kind == "f" else never // 2  # sums of slopes and of what is infinite
    apart = low > high
    if low.dtype == np.int64:
        middle = low // 2 + high // 2 + (low % 2 + high % 2) // 2
    else:
        half = Fraction(1, 2) if low.dtype == object else 0.5
        middle = low * half + high * half
    price = np.where(low > -large, low, np.where(high < large, high, np.zeros_like(low)))
    return np.where(apart, middle, price) if apart.any() else price


# ---------------------------------------------------------------- chains


def prices_of_steps(operator: Steps, v: Array, left: Array, right: Array, never: Any, near: float) -> Array:
    """A chain's prices, 0 where it rises: a charge is the price of a step less that of the next."""
    tight = np.append(v[1:] - v[:-1] <= near if near else v[1:] <= v[:-1], False)
    starts = np.asarray(operator.starts, np.int64)[1:]
    tight[starts - 1] = False
    price = np.zeros(v.size, left.dtype)
    run = _along.py_func if left.dtype == object else _along
    run(read_only(left), read_only(right), read_only(tight), never, price)
    return np.delete(price[:-1], starts - 1) if starts.size else price[:-1]


@kernel(linear=True)
def _along(left: Any, right: Any, tight: Any, never: Any, price: Any) -> None:
    """``price[j]``, of the step from j to j + 1: the least that is at least 0 and fits all entries up to j,
    then raised as the entries after it need."""
    zero = price[0]
    least = zero
    for j in range(left.size - 1):
        least = max(least - right[j], zero) if tight[j] and right[j] < never else zero
        price[j] = least
    after = zero
    for j in range(left.size - 1, 0, -1):
        if not tight[j - 1]:
            after = zero
        elif left[j] > -never:
            after = max(price[j - 1], after + left[j])
        else:
            after = price[j - 1]
        price[j - 1] = after


@_along.without_numba
def _along_in_arrays(left: Any, right: Any, tight: Any, never: Any, price: Any) -> None:
    n = left.size
    if n < 2:
        return
    none = np.zeros_like(left)
    # Forward: what is left of a sum that starts anew at each reset and never falls below 0.
    reset = ~(tight & (right < never))
    sums = np.cumsum(np.where(reset, none, -right))
    least = _running(np.minimum, sums, reset)
    first = slice(0, np.argmax(reset))  # no reset is before these
    least[first] = np.minimum(least[first], 0)
    price[:] = np.where(reset, none, sums - least)
    # Back: the largest of all prices to the right, each with the slopes on the way to it.
    turned = np.where(left > -never, left, none)
    sums = np.cumsum(turned)
    best = price + sums
    cut = ~tight | np.append(left[1:] <= -never, True)  # nothing from the right passes to here
    best = _running(np.maximum, best[::-1], cut[::-1])[::-1]
    price[:] = np.where(tight, best - sums, none)
    price[-1] = 0


def _running(reduce: np.ufunc, values: Array, starts: Array) -> Array:
    """The running extreme of values, which begins anew at each start."""
    at = np.unique(np.append(0, np.flatnonzero(starts)))
    span = values.max() - values.min() + 1
    if values.dtype != np.int64 or float(span) * (at.size + 1) >= 2.0**62 - 2.0**61:
        out = np.empty_like(values)
        for a, b in zip(at.tolist(), [*at[1:].tolist(), values.size], strict=True):
            out[a:b] = reduce.accumulate(values[a:b])
        return out
    # Each part lies beyond all parts before it, so that one pass does for all.
    part = np.repeat(np.arange(at.size), np.diff(np.append(at, values.size)))
    shift = part * (span if reduce is np.maximum else -span)
    out = reduce.accumulate(values + shift)
    out -= shift
    return out


# ---------------------------------------------------------------- trees


def _of_tree(operator: Children, left: Array, right: Array, never: Any, total: bool) -> tuple[Array, Array]:
    """The price of the root's total, 0 if there is none, and of each inner node's row in each column.

    A node's charge is its own row's price less that of its parent's row; the root's, its own plus the total.
    """
    left, right, own, home, low, high = _collected(operator, left, right, never)
    price = np.zeros_like(low)
    if total:
        price[-1] = _between(low[-1].max(keepdims=True), high[-1].min(keepdims=True), never)
    down = _down.py_func if left.dtype == object else _down
    in_blocks(
        lambda a, b: down(left, right, own, home, low, high, price, a, b), low.shape[1], left.size, ROWS
    )
    return -price[-1, :1], price[:-1].reshape(operator.rows)


def _collected(operator: Children, left: Array, right: Array, never: Any) -> tuple[Array, ...]:
    """``(left, right, own, home, low, high)``: the arguments of `_down`.

    For each node, `own` is the row of its children, -1 if it has none, and `home` the row that it is in. The
    root is in one more, the last.
    """
    tree = operator.tree
    own = np.full(tree.size, -1)
    own[tree.internal] = np.arange(tree.internal.size)
    families = tree.internal.size
    home = np.concatenate([[families], own[tree.parent[1:]]])
    shape = (tree.size, left.size // tree.size)
    left, right = (read_only(np.ascontiguousarray(side).reshape(shape)) for side in (left, right))
    low, high = (np.zeros((families + 1, shape[1]), left.dtype) for _ in range(2))
    objects = left.dtype == object
    none = 0 if objects else left.dtype.type(0)
    up = _up.py_func if objects else _up
    in_blocks(
        lambda a, b: up(left, right, own, home, never, none, low, high, a, b), shape[1], left.size, ROWS
    )
    return left, right, own, home, low, high


def root_prices(
    structure: tuple[Sequence[Block], Sequence[Rows]], values: Mapping[str, Array]
) -> tuple[int, int]:
    """The costliest last and the cheapest next unit at the root of a tree of whole counts; ∓`NEVER`: none."""
    blocks, rows = structure
    operator = rows[-1].operators[blocks[0].name]
    assert isinstance(operator, Children)
    left, right, never = _slopes(blocks[0], values[blocks[0].name], 0.0, operator.tree.depth + 2)
    low, high = _collected(operator, left, right, never)[-2:]
    ends = int(low[-1].max()), int(high[-1].min())
    return max(ends[0], -NEVER), min(ends[1], NEVER)


@kernel(linear=True, nogil=True)
def _up(
    left: Any, right: Any, own: Any, home: Any, never: Any, none: Any, low: Any, high: Any, begin: int,
    end: int,
) -> None:  # fmt: skip
    """The interval of each row's price that all nodes below it allow."""
    low[:, begin:end] = -never
    high[:, begin:end] = never
    for v in range(own.size - 1, -1, -1):
        a, b = own[v], home[v]
        for s in range(begin, end):
            least, most = none, none
            if a >= 0:
                least, most = low[a, s], high[a, s]
            low[b, s] = max(low[b, s], least - right[v, s], -never)
            high[b, s] = min(high[b, s], most - left[v, s], never)


@kernel(linear=True, nogil=True)
def _down(
    left: Any, right: Any, own: Any, home: Any, low: Any, high: Any, price: Any, begin: int, end: int
) -> None:  # fmt: skip
    """Choose prices, given the root's in the last row: near the parent's, between what the node and its
    children allow. What a node without a cost allows comes first, as nothing bounds what else it would save.
    """
    for v in range(own.size):
        a, b = own[v], home[v]
        if a < 0:
            continue
        for s in range(begin, end):
            above = price[b, s]
            most = min(high[a, s], above + right[v, s])
            least = max(low[a, s], above + left[v, s])
            least = max(min(above, most), least)
            if right[v, s] == 0:
                least = min(least, above)
            if left[v, s] == 0:
                least = max(least, above)
            price[a, s] = least


@_up.without_numba
def _up_in_arrays(
    left: Any, right: Any, own: Any, home: Any, never: Any, _: Any, low: Any, high: Any, begin: int,
    end: int,
) -> None:  # fmt: skip
    part = slice(begin, end)
    low[:, part], high[:, part] = -never, never
    for level in reversed(_levels(own, home)):
        at = own[level]
        least, most = (np.zeros((at.size, end - begin), low.dtype) for _ in range(2))
        inner = at >= 0
        least[inner], most[inner] = low[at[inner], part], high[at[inner], part]
        least, most = (
            np.maximum(least - right[level, part], -never),
            np.minimum(most - left[level, part], never),
        )
        siblings = Siblings(home[level])
        siblings.gather(np.maximum, least, low[:, part])
        siblings.gather(np.minimum, most, high[:, part])


@_down.without_numba
def _down_in_arrays(
    left: Any, right: Any, own: Any, home: Any, low: Any, high: Any, price: Any, begin: int, end: int
) -> None:  # fmt: skip
    part = slice(begin, end)
    for level in _levels(own, home):
        nodes = np.arange(level.start, level.stop)[own[level] >= 0]
        if not nodes.size:
            continue
        above, rows = price[home[nodes], part], own[nodes]
        most = np.minimum(high[rows, part], above + right[nodes, part])
        least = np.maximum(low[rows, part], above + left[nodes, part])
        least = np.maximum(np.minimum(above, most), least)
        np.minimum(least, above, out=least, where=right[nodes, part] == 0)
        np.maximum(least, above, out=least, where=left[nodes, part] == 0)
        price[rows, part] = least


def _levels(own: Ints, home: Ints) -> list[slice]:
    """The nodes of each level, root first."""
    owner = np.append(np.flatnonzero(own >= 0), -1)
    return levels_below(owner[home])
