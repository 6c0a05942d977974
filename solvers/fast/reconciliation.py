"""Reconciled forecasts: Newton's method on the prices of the sums; whole ones by flows or rounding.

At prices λ of the sums, each series is best at ``clip(y + (Aᵀλ) / 2w, lower, upper)``. The dual function
is concave, with the broken sums as its gradient, and each set of series inside their bounds makes it
quadratic. So Newton's method finds the optimum after a few systems ``A D Aᵀ``, as sparse as the hierarchy.

Along a tree, or two that cross, whole forecasts are flows, and near the relaxed ones: a flow of least cost
(`solvers.fast.flow`) is their optimum. Elsewhere the relaxed ones are rounded, and single units moved as long
as that saves something. The certificate then states the gap that is left, as whole forecasts along more
crossed hierarchies are NP-hard in general (sums of a table with three attributes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy.optimize import brentq
from scipy.sparse.linalg import splu

from models import Reconciliation
from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.certificate import Witness
from models.check.reader import NEVER
from models.witnesses.scaled import over_one_unit
from solvers.fast.flow import least_cost_flow
from solvers.fast.no_path import NoFastPath

FURTHEST = 1024
"""Units on each side of a series' forecast that are arcs at once, at most."""

_ROUNDS = 200
"""Newton steps; a hierarchy of 10,000 series takes ten to thirty."""


def solve_reconciliation(model: Reconciliation) -> tuple[Array, Witness]:
    """The optimum with its prices; rounded whole forecasts may be worse.

    Raises `NoFastPath` for largest changes, absolute ones over the reals, and numbers too large for flows; if
    the bounds leave no answer, or so little room that none is found.
    """
    flow = model.p == 1 and model.integer and model.network is not None
    if model.p != 2 and not flow:
        raise NoFastPath("Reconciliation: only squared changes, or whole flows, have a fast path")
    if model.factors is not None:
        return _with_factors(model)
    prices, x = _relaxed(model)
    if not model.integer:
        return x, {"sums": prices}
    return _rounded(model, x, prices) if model.network is None else _as_flow(model, x, prices)


def _with_factors(model: Reconciliation) -> tuple[Floats, Witness]:
    """The optimum of correlated errors: Newton's method on the factors' errors z.

    For given z it is the problem of uncorrelated errors about y + F z. Its cost plus z² is convex in z, and
    quadratic as long as the same forecasts are inside their bounds.
    """
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    factors = np.asarray(model.factors)
    plain = replace(model, factors=None)
    rows = plain.matrix
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
    return x, {"errors": -2 * weights * own, "sums": prices}


def _relaxed(model: Reconciliation) -> tuple[Floats, Floats]:
    """The prices and the forecasts of the optimum over the reals."""
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    rows = model.matrix
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
    try:
        return splu(system, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    except RuntimeError:  # a singular system
        raise NoFastPath("Reconciliation: weights are too small, or too far apart, for floats") from None


def _as_flow(model: Reconciliation, near: Floats, prices: Floats) -> tuple[Ints, Witness]:
    """The optimal whole forecasts where each series is an arc of a network, and the prices that prove them.

    Units near the relaxed forecasts are arcs of their own, whose costs rise; the lighter a series, the more.
    The relaxed prices are the first potentials, which leaves small costs. If the best flow ends where the
    arcs do, there are more around it.
    """
    (base, unit), (weights, heavy) = map(_whole, ("base forecasts", "weights"), model.data)
    lower, upper = map(_whole_side, model.bounds, (-NEVER, NEVER), (math.ceil, math.floor))
    assert model.network is not None
    tail, head = model.network
    nodes = model.aggregates.size + 1
    start = np.zeros(nodes, np.int64)
    if model.p == 2:
        start = _potentials(model, -(model.matrix.T @ prices), unit * heavy)
    low, high = np.floor(near).astype(np.int64), np.ceil(near).astype(np.int64)
    centre: Ints | None = None
    reach = np.minimum(np.ceil(np.sqrt(weights.max() / weights)), FURTHEST).astype(np.int64)
    while reach.min() <= FURTHEST:
        least, most = np.maximum(low - reach, lower), np.minimum(high + reach, upper)
        apart = unit * (2 * max(exact.reach(least), exact.reach(most)) + 3) + 2 * exact.reach(base)
        if 4 * apart * exact.reach(weights) >= 2**61:
            raise NoFastPath("Reconciliation: the costs of a unit pass 61 bits")
        arc = np.repeat(np.arange(low.size), np.maximum(most - least, 0))
        at = np.arange(arc.size) - np.searchsorted(arc, arc) + least[arc]
        if model.p == 2:
            more = unit * (2 * at + 1) - 2 * base[arc]
        else:
            more = np.abs(unit * (at + 1) - base[arc]) - np.abs(unit * at - base[arc])
        cost = weights[arc] * more + (start[tail] - start[head])[arc]
        supply = np.zeros(nodes, np.int64)
        np.add.at(supply, head, least)
        np.subtract.at(supply, tail, least)
        found = None
        if np.all(least <= most):
            found = least_cost_flow(tail[arc], head[arc], np.ones_like(arc), cost, supply)
        if found is None:
            reach *= 4
            continue
        x = least.copy()
        np.add.at(x, arc, found[0])
        ended = (x == least) & (least > lower) | (x == most) & (most < upper)
        if centre is not None and model.objective(centre) <= model.objective(x):
            x, ended = centre, np.zeros(x.size, bool)
        if not ended.any():
            return x, _witness(model, start + found[1], unit * heavy)
        low = high = centre = x
        reach = np.where(ended, np.minimum(4 * reach, FURTHEST), reach)
    raise NoFastPath("Reconciliation: no whole forecasts within the bounds are near the relaxed ones")


def _potentials(model: Reconciliation, charge: Floats, scale: int) -> Ints:
    """Whole potentials of the network's nodes; each aggregate's ends differ by about its charge × scale."""
    own = model.aggregates
    if scale >= 2**61 or np.abs(charge).max(initial=0) * scale * (own.size + 1) >= 2.0**61:
        raise NoFastPath("Reconciliation: the prices of sums pass 61 bits")
    assert model.network is not None
    tail, head = (end[own] for end in model.network)
    inner = 1 + np.arange(own.size)
    down, whole = head == inner, np.rint(charge[own] * scale).astype(np.int64)
    outer, change = np.where(down, tail, head), np.where(down, -whole, whole)
    potential = np.zeros(own.size + 1, np.int64)
    while np.any((found := potential[outer] + change) != potential[1:]):
        potential[1:] = found
    return potential


def _witness(model: Reconciliation, potential: Ints, scale: int) -> Witness:
    """Prices that charge each series the difference between the potentials at its ends, over the scale."""
    assert model.network is not None
    tail, head = model.network
    aggregate, part = model.links
    charge = (potential[tail] - potential[head]).astype(object)
    price = np.zeros(charge.size, object)
    for level in range(int(model.height.max(initial=0)), 0, -1):
        here = np.flatnonzero(model.height == level)
        link = model.height[part] == level
        np.add.at(price, part[link], price[aggregate[link]])
        price[here] -= charge[here]
    prices = price[model.aggregates]
    if scale == 1:
        return {"sums": prices.astype(np.int64)}
    return {"sums": exact.objects((Fraction(value, scale) for value in prices.tolist()), prices.shape)}


def _whole(name: str, values: Array) -> tuple[Ints, int]:
    """Values as whole numbers over their least common unit, and the unit."""
    (whole,), unit = over_one_unit(values)
    if not exact.fits(exact.reach(whole)):
        raise NoFastPath(f"Reconciliation: the {name}, as whole numbers over one unit, pass 62 bits")
    return whole.astype(np.int64), unit


def _whole_side(side: Array, away: int, rounded: Callable[[Any], int]) -> Ints:
    """Bounds rounded to whole numbers inwards; `away` where there is none."""
    inside = np.abs(side.astype(float)) < NEVER
    return np.array([rounded(v) if k else away for v, k in zip(side.tolist(), inside, strict=True)], np.int64)


def _rounded(model: Reconciliation, near: Floats, prices: Floats) -> tuple[Ints, Witness]:
    """Whole forecasts near the relaxed ones, improved unit by unit; the relaxed prices bound the gap."""
    base, weights = (part.astype(float) for part in model.data)
    lower, upper = (side.astype(float) for side in model.bounds)
    held = np.where(model.bottom, np.clip(np.rint(near), np.ceil(lower), np.floor(upper)), 0)
    x = model.summed(held)
    member = model.members.sign().tocsr()
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
    return found, {"sums": prices}
