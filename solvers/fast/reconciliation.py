"""Reconciled forecasts: Newton's method on the prices of the sums; whole ones by exchanges or rounding.

At prices λ of the sums, each series is best at ``clip(y + (Aᵀλ) / 2w, lower, upper)``. The dual function
is concave, with the broken sums as its gradient, and each set of series inside their bounds makes it
quadratic. So Newton's method finds the optimum after a few systems ``A D Aᵀ``, as sparse as the hierarchy.

Along a tree, whole forecasts are optimal after exchanges of units (`solvers.fast.exchange`). Elsewhere the
relaxed ones are rounded, and single units moved as long as that saves something. The certificate then states
the gap that is left, as whole forecasts along crossed hierarchies are NP-hard in general.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy.optimize import brentq
from scipy.sparse.linalg import splu

from models import Reconciliation, Tree
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.arithmetic.kernels import kernel
from models.certificate import Witness
from models.programs.layout import by_node, by_size, layout_of
from models.witnesses.node_prices import NEVER
from models.witnesses.scaled import over_one_unit
from solvers.fast.exchange import exchange
from solvers.fast.no_path import NoFastPath

_ROUNDS = 200
"""Newton steps; a hierarchy of 10,000 series takes ten to thirty."""


def solve_reconciliation(model: Reconciliation) -> tuple[Array, Witness]:
    """The optimum with its prices; whole forecasts of crossed hierarchies may be worse than the optimum.

    Raises `NoFastPath` for absolute or largest changes; if the bounds leave no answer, or so little room that
    none is found.
    """
    if model.p != 2:
        raise NoFastPath("Reconciliation: only squared changes have a fast path")
    if model.factors is not None:
        return _with_factors(model)
    prices, x = _relaxed(model)
    if not model.integer:
        return x, {"prices": prices}
    tree = model.links[1].size == np.unique(model.links[1]).size
    return _exchanged(model, x) if tree else _rounded(model, x, prices)


def _with_factors(model: Reconciliation) -> tuple[Floats, Witness]:
    """The optimum of correlated errors: Newton's method on the factors' errors z.

    For given z it is the problem of uncorrelated errors about y + F z. Its cost plus z² is convex in z, and
    quadratic as long as the same forecasts are inside their bounds.
    """
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    factors = np.asarray(model.factors)
    plain = replace(model, factors=None)
    rows = plain.program().matrix.astype(float).tocsr()
    half, z, prices = 0.5 / weights, np.zeros(factors.shape[1]), np.zeros(rows.shape[0])

    def at(z: Floats) -> tuple[float, Floats, Floats, Floats]:
        moved = replace(plain, base=base + factors @ z)
        prices, x = _relaxed(moved)
        own = x - moved.data[0]
        return float(weights @ own**2 + z @ z), prices, x, own

    cost, prices, x, own = at(z)
    for _ in range(_ROUNDS):
        slope = 2 * (z - factors.T @ (weights * own))
        free = (x > lower) & (x < upper)
        inside = free[:, None] * factors
        system = _system(rows, half, free)
        moves = inside - (half * free)[:, None] * (rows.T @ system.solve(np.asarray(rows @ inside)))
        curve = 2 * (np.eye(z.size) - factors.T @ (weights[:, None] * (moves - factors)))
        step = -np.linalg.solve(curve, slope)
        length, gain = 1.0, -float(slope @ step)
        if not gain > 1e-15 * cost:
            break
        while (found := at(z + length * step))[0] > cost - 1e-4 * length * gain and length > 1e-6:
            length /= 2
        if not found[0] < cost:  # by rounding
            break
        z = z + length * step
        cost, prices, x, own = found
    return x, {"prices": np.concatenate([-2 * weights * own, prices])}


def _relaxed(model: Reconciliation) -> tuple[Floats, Floats]:
    """The prices and the forecasts of the optimum over the reals."""
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    rows = model.program().matrix.astype(float).tocsr()
    columns, half = rows.T.tocsr(), 0.5 / weights
    size = max(1.0, float(np.abs(base).max(initial=0)), *(
        float(np.abs(side[np.isfinite(side)]).max(initial=0)) for side in (lower, upper)
    ))  # fmt: skip
    prices = np.zeros(rows.shape[0])

    def at(prices: Floats) -> tuple[Floats, Floats]:
        """The best forecasts at these prices, and the broken sums."""
        x = np.clip(base + half * (columns @ prices), lower, upper)
        return x, rows @ x

    def slope(prices: Floats, step: Floats, length: float) -> float:
        """The derivative of the dual function by the length of a step."""
        return float(at(prices - length * step)[1] @ step)

    x, broken = at(prices)
    for _ in range(_ROUNDS):
        if np.abs(broken).max(initial=0) <= 1e-13 * size:
            break
        step = _newton_step(rows, half, (x > lower) & (x < upper), broken)
        prices = prices - _length(partial(slope, prices, step)) * step
        x, broken = at(prices)
    if np.abs(broken).max(initial=0) > 1e-9 * size:
        raise NoFastPath("Reconciliation: no prices satisfy all sums; perhaps the bounds leave no answer")
    return prices, model.summed(x)


def _length(slope: Callable[[float], float]) -> float:
    """Where a falling function of the length of a step, positive at 0, passes 0; at most 2⁶⁰."""
    high = 1.0
    while slope(high) > 0:
        if high >= 2.0**60:
            return high
        high *= 2
    if high == 1.0 and slope(1 - 1e-9) > 0:
        return 1.0
    if not slope(0.0) > 0:  # by rounding
        return 0.0
    return float(brentq(slope, 0.0, high, xtol=1e-300, rtol=1e-15, maxiter=200, disp=False))


def _newton_step(rows: Any, half: Floats, free: Flags, broken: Floats) -> Floats:
    """The solution of ``A D Aᵀ step = broken``; a sum without free series has the diagonal of free ones."""
    return np.asarray(_system(rows, half, free).solve(broken))


def _system(rows: Any, half: Floats, free: Flags) -> Any:
    """``A D Aᵀ``, factorized."""
    system = (rows @ scipy.sparse.diags(half * free) @ rows.T).tocsc()
    whole = np.asarray(rows.power(2) @ half)
    system += scipy.sparse.diags(np.where(system.diagonal() > 0, 1e-14, 1.0) * whole)
    return splu(system, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})


def _exchanged(model: Reconciliation, near: Floats) -> tuple[Ints, Witness]:
    """The optimal whole forecasts along a tree, and the prices that prove them.

    All series are put below one more root, beside a leaf with a large count and no cost.
    """
    (base, lower, upper), unit = _scaled(model)
    (weights,), heavy = over_one_unit(model.data[1])
    tree, node = _tree_of(model)
    if weights.dtype == object or heavy > 2**40:
        raise NoFastPath("Reconciliation: the weights, as whole numbers, pass 64 bits")
    shift = _shift(model, lower)
    x = _rounded_down(model, near, lower, upper) - shift
    plenty = 2 * (int(np.abs(x).sum()) + int(np.abs(base // unit).sum()) + base.size)
    apart = unit * int(np.abs(x).max()) + int(np.abs(base - unit * shift).max())
    largest = 2 * unit * (apart + unit) * int(weights.max()) * (tree.depth + 1)
    if 4 * largest >= NEVER:
        raise NoFastPath("Reconciliation: the costs of a unit pass 60 bits")
    size = tree.size
    parts = [np.zeros(size, np.int64) for _ in range(4)]
    y, w, held, low = parts
    high = np.full(size, plenty * 2)
    y[node], w[node], held[node] = base - unit * shift, weights, x
    low[node] = np.where(lower == -NEVER, -NEVER, lower - shift)
    high[node] = np.where(upper == NEVER, plenty * 2, upper - shift)
    spare = int(np.setdiff1d(np.arange(1, size), node)[0])
    held[spare], held[0] = plenty, plenty + int(x[tree.parent[node] == 0].sum())
    low[0], high[0] = 0, 4 * held[0] + 1
    layout = layout_of(tree)
    least, most = (by_size(side[:, None], layout.order) for side in (np.maximum(low, 0), high))
    moved = by_size(held[:, None], layout.order)
    exchange(layout, by_size(y[:, None], layout.order), moved, unit, least, most, w[layout.order])
    found = by_node(moved, layout.order)[:, 0]
    price = np.zeros(size, np.int64)
    leaf = np.bincount(tree.parent[1:], minlength=size) == 0
    _read_prices(tree.parent, leaf, found, y, w, low, high, unit, spare, price)
    scale = unit * unit * heavy
    whole = (-price[node[model.aggregates]]).tolist()
    shown = np.array(whole, np.int64) if scale == 1 else np.array(
        [*(Fraction(value, scale) for value in whole), None], object
    )[:-1]  # fmt: skip
    return found[node] + shift, {"prices": shown}


def _scaled(model: Reconciliation) -> tuple[tuple[Ints, Ints, Ints], int]:
    """``(base · unit, lower, upper)`` in whole numbers, ∓NEVER where there is no bound; and the unit."""
    (base,), unit = over_one_unit(model.data[0])
    if base.dtype == object or unit > 2**30:
        raise NoFastPath("Reconciliation: the base forecasts, as whole numbers over one unit, pass 64 bits")
    sides = []
    for side, away, rounded in zip(model.bounds, (-NEVER, NEVER), (np.ceil, np.floor), strict=True):
        inside = np.abs(side.astype(float)) < NEVER
        sides.append(np.where(inside, rounded(np.where(inside, side, 0)), away).astype(np.int64))
    return (base, sides[0], sides[1]), unit


def _shift(model: Reconciliation, lower: Ints) -> Ints:
    """The least values of the bottom, summed up, so that the rest is at least 0."""
    least = np.where(model.bottom, lower, 0)
    if np.any(least == -NEVER):
        raise NoFastPath("Reconciliation: whole forecasts without lower bounds have no fast path")
    return model.summed(least)


def _tree_of(model: Reconciliation) -> tuple[Tree, Ints]:
    """A tree of all series below one more root, beside a spare leaf; and the node of each series."""
    aggregate, part = model.links
    above = np.full(model.data[0].size, -1)
    above[part] = aggregate
    depth, at = np.zeros(above.size, np.int64), above.copy()
    while np.any(at >= 0):
        depth += at >= 0
        at = np.where(at >= 0, above[at], -1)
    node, levels, start = np.zeros(above.size, np.int64), [], 1
    for level in range(int(depth.max()) + 1):
        here = np.flatnonzero(depth == level)
        first = 0 if level == 0 else int(node[depth == level - 1].min())
        node[here] = start + np.arange(here.size)
        parents = np.zeros(here.size + 1, np.int64) if level == 0 else node[above[here]] - first
        levels.append(parents)
        start += parents.size
    return Tree(levels), node


def _rounded_down(model: Reconciliation, near: Floats, lower: Ints, upper: Ints) -> Ints:
    """Feasible whole forecasts along a tree: each is the relaxed one rounded up or down.

    From the top: an aggregate's parts are rounded down, and as many of them up as its own value needs. There
    are always enough: bounds are whole, and so within the rounded ones.
    """
    aggregate, part = model.links
    floor = np.maximum(np.floor(near + 1e-9), np.maximum(lower, -(2.0**60)))
    x = np.minimum(floor, np.minimum(upper, 2.0**60)).astype(np.int64)
    room = (near - x > 1e-9) & (x < upper)
    roots = np.setdiff1d(np.arange(x.size), part)
    up = roots[room[roots] & (near[roots] - x[roots] >= 0.5)]
    x[up] += 1
    order = np.argsort(aggregate, kind="stable")
    begin = np.searchsorted(aggregate[order], model.aggregates)
    end = np.append(begin[1:], order.size)
    for k in np.argsort(-model.height[model.aggregates], kind="stable"):
        a, own = int(model.aggregates[k]), part[order[begin[k] : end[k]]]
        missing = int(x[a] - x[own].sum())
        apart = near[own] - x[own]
        ranked = own[np.argsort(-apart if missing > 0 else apart, kind="stable")]
        for i in ranked[: abs(missing)]:
            x[i] += 1 if missing > 0 else -1
    if model.violations(x):
        raise NoFastPath("Reconciliation: the relaxed forecasts do not round to whole ones within the bounds")
    return x


@kernel()
def _read_prices(
    parent: Any, leaf: Any, x: Any, y: Any, weight: Any, lower: Any, upper: Any, unit: int, spare: int,
    price: Any,
) -> None:  # fmt: skip
    """Write the prices of each node's children to `price`: between their last unit's cost and the next one's.

    ±NEVER stands for units that bounds exclude. The node `spare` has any number of units at no cost.
    """
    n = parent.size
    last, following = np.full(n, -NEVER), np.full(n, NEVER)
    gives, takes = np.full(n, -NEVER), np.full(n, NEVER)
    for i in range(n - 1, -1, -1):
        slope, own = 2 * unit * weight[i] * (unit * x[i] - y[i]), weight[i] * unit * unit
        if x[i] > lower[i]:
            gives[i] = slope - own
        if x[i] < upper[i]:
            takes[i] = slope + own
        if i == 0:
            break
        costly, cheap = gives[i], takes[i]
        if not leaf[i]:
            costly = -NEVER if costly == -NEVER or last[i] == -NEVER else costly + last[i]
            cheap = NEVER if cheap == NEVER or following[i] == NEVER else cheap + following[i]
        if i == spare:
            costly, cheap = 0, 0
        p = parent[i]
        last[p] = max(last[p], costly)
        following[p] = min(following[p], cheap)
    for i in range(n):
        above = price[parent[i]] if i > 0 else 0
        low, high = last[i], following[i]
        if i > 0 and takes[i] != NEVER:
            low = max(low, above - takes[i])
        if i > 0 and gives[i] != -NEVER:
            high = min(high, above - gives[i])
        price[i] = max(min(max(above, low), high), -NEVER // 2) if i > 0 else 0


def _rounded(model: Reconciliation, near: Floats, prices: Floats) -> tuple[Ints, Witness]:
    """Whole forecasts near the relaxed ones, improved unit by unit; the relaxed prices bound the gap."""
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    bottom = np.flatnonzero(model.bottom)
    held = np.where(model.bottom, np.clip(np.rint(near), np.ceil(lower), np.floor(upper)), 0)
    x = model.summed(held)
    member = _members(model, bottom)
    moves = 0
    while moves < 4 * x.size:
        slope = 2 * weights * (x - base)
        best = (0.0, -1, 0)
        for step in (1, -1):
            open_ = (x + step <= upper) & (x + step >= lower)
            cost = member @ (step * slope + weights)
            cost[(member @ ~open_) > 0] = np.inf
            j = int(cost.argmin()) if cost.size else -1
            if j >= 0 and cost[j] < best[0] - 1e-9 * abs(best[0]):
                best = (float(cost[j]), j, step)
        if best[1] < 0 or best[0] > -1e-12:
            break
        x[member[best[1]].indices] += best[2]
        moves += 1
    found = x.astype(np.int64)
    if broken := model.violations(found):
        raise NoFastPath(f"Reconciliation: rounding found no whole forecasts ({broken[0]})")
    return found, {"prices": prices}


def _members(model: Reconciliation, bottom: Ints) -> Any:
    """For each series at the bottom, itself and all that it is part of; sparse, shape (bottom, series)."""
    aggregate, part = model.links
    n = model.data[0].size
    up = scipy.sparse.csr_matrix((np.ones(part.size), (part, aggregate)), (n, n))
    step = scipy.sparse.identity(n, format="csr")[bottom]
    found = step
    for _ in range(int(model.height.max(initial=0))):
        step = step @ up
        found = found + step
    return found.sign().tocsr()
