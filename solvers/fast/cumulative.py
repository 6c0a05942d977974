"""Cumulative hierarchies: over the reals by Newton's method, over whole numbers by branch and bound.

In branch and bound, each square is replaced by lines between its values at whole numbers, which leaves the
program over whole numbers unchanged. Over the reals its optimum is the best bound that row prices can prove
over whole numbers (Geoffrion 1974). On trees of one level, and for one or two sizes, it is whole
(docs/cumulative.md); otherwise branching closes the gap. Lines are built for a few whole numbers near the
relaxation's answer. The outermost are extended, which only lowers costs, and all are built again if an answer
leaves their range.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from models import CumulativeQIP
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import is_exact
from models.certificate import FLOAT_TOLERANCE, Witness
from solvers.fast.cumulative_newton import relaxed


def solve_cumulative(model: CumulativeQIP) -> tuple[Array, Witness]:
    """An optimal answer: over the reals to `FLOAT_TOLERANCE`, over whole numbers if the search completes.

    Over whole numbers, the relaxation's answer is rounded. If the relaxation's own prices do not prove it,
    branch and bound continues to the optimum, or to its limits. At a limit the witness proves the best bound
    found, and a gap remains.
    """
    absolute = 1e-3 if model.integer else np.inf
    real = relaxed(model.tree, model.counts, model.total, FLOAT_TOLERANCE / 4, absolute)
    witness = model.with_rises(real.x, 2 * real.prices)
    if not model.integer:
        return real.x, witness
    best = _rounded(model, real.x)
    # Every whole answer costs at least this much, as it differs from the relaxation's answer.
    least = float(((real.x - model.counts) ** 2).sum() + ((real.x - np.rint(real.x)) ** 2).sum())
    if is_exact(model.counts) and float(model.objective(best)) < least + 0.99 - 10 * real.gap:
        return best, witness
    found, proof = branched(model, real.x, best, lambda x: _rounded(model, x))
    return found, witness if proof is None else proof


def _rounded(model: CumulativeQIP, real: Floats) -> Array:
    """A feasible answer near the relaxation's.

    The leaves' rows are rounded (and made monotone, which they are only up to rounding), and their last cells
    are changed to fit the total. The other nodes are sums of leaves.
    """
    leaves = real[model.tree.leaves]
    whole = np.maximum.accumulate(np.maximum(np.rint(leaves), 0.0), axis=1).astype(np.int64)
    missing = model.total - int(whole[:, -1].sum())
    floor = whole[:, -2] if whole.shape[1] > 1 else np.zeros(len(whole), np.int64)
    order = np.argsort((leaves[:, -1] - whole[:, -1]) * (-1 if missing > 0 else 1), kind="stable")
    while missing:
        for leaf in order:
            step = 1 if missing > 0 else -1
            if missing and (step > 0 or whole[leaf, -1] > floor[leaf]):
                whole[leaf, -1] += step
                missing -= step
        if missing < 0 and not np.any(whole[:, -1] > floor):
            # The last cells cannot be lowered alone: lower whole tails of rows.
            leaf = int(np.argmax(whole[:, -1]))
            whole[leaf] = np.minimum(whole[leaf], whole[leaf, -1] - 1)
            missing += 1
    return np.asarray(model.tree.sum_up(whole))


MOST_CELLS = 50_000
"""Larger instances are not branched on."""

MOST_WORK = 1_000_000
"""The most cells of all linear programs together: a limit that does not depend on the machine's speed."""

_REACH = 2
"""How many whole numbers on either side have lines."""

_TURNS = 10
"""How many times the lines are built at most."""


class _Case(NamedTuple):
    """A part of the domain, its linear program's optimum, and the prices that prove it."""

    low: Ints
    high: Ints
    bound: float
    x: Floats
    prices: Floats
    falls: Floats


class _Lines:
    """The linear programs of one model."""

    def __init__(self, model: CumulativeQIP) -> None:
        program = model.program()
        nodes, sizes = model.counts.shape
        segments = sp.csr_matrix(np.array([[1.0] * (2 * _REACH + 1) + [-1.0]]))
        self.equal = program.rows[0].matrix
        self.rising = program.rows[1].matrix if sizes > 1 else sp.csr_matrix((0, nodes * sizes))
        self.columns = sp.kron(self.equal, segments, "csr"), sp.kron(-self.rising, segments, "csr")
        self.sign = 0.5 if self.equal.shape[0] and self.equal[0, 0] > 0 else -0.5
        self.counts = model.counts.astype(np.float64).ravel()
        self.shapes = (model.tree.internal.size, sizes), (nodes, sizes - 1)

    def solve(self, near: Floats, low: Ints, high: Ints, steep: float) -> _Case | None:
        """The optimum over a part of the domain; None if HiGHS finds none.

        Leaving the domain costs `steep` per unit, so that prices also prove that an empty part is empty.
        """
        found = None
        for _ in range(_TURNS):
            middle = np.clip(np.rint(near), low, high)
            left, right = np.maximum(middle - _REACH, low), np.minimum(middle + _REACH, high)
            at = left[:, None] + np.arange(2 * _REACH)
            inside = at < right[:, None]
            slopes = 2 * (at - self.counts[:, None]) + 1
            up = 2 * (right - self.counts) + 1 + np.where(right == high, steep, 0.0)
            down = -(2 * (left - self.counts) - 1) + np.where(left == low, steep, 0.0)
            costs = np.column_stack([np.where(inside, slopes, 0.0), up, down]).ravel()
            most = np.column_stack([inside.astype(float), np.full((left.size, 2), np.inf)]).ravel()
            solved = linprog(
                costs,
                A_eq=self.columns[0],
                b_eq=-(self.equal @ left),
                A_ub=self.columns[1],
                b_ub=self.rising @ left,
                bounds=np.column_stack([np.zeros(most.size), most]),
                method="highs-ds",
            )
            if solved.status != 0:
                return found
            moves = solved.x.reshape(left.size, -1)
            near = left + moves[:, :-1].sum(axis=1) - moves[:, -1]
            value = float(solved.fun + ((left - self.counts) ** 2).sum())
            prices = self.sign * np.reshape(solved.eqlin.marginals, self.shapes[0])
            falls = -0.5 * np.reshape(solved.ineqlin.marginals, self.shapes[1])
            found = _Case(low, high, value, near, prices, np.maximum(falls, 0.0))
            beyond = ((near > right + 1e-6) & (right < high)) | ((near < left - 1e-6) & (left > low))
            if not beyond.any():
                break
        return found


def branched(
    model: CumulativeQIP, near: Floats, best: Array, rounded: Callable[[Floats], Array]
) -> tuple[Array, Witness | None]:
    """A better answer, if there is one, and the tree of cases that proves the best bound found.

    - near, array, shape (nodes, sizes): the relaxation's answer.
    - best: a feasible answer.
    - rounded: returns a feasible answer near any counts.

    Returns: `witness` is None if nothing is proved: the instance is too large, or HiGHS fails.
    """
    nodes, sizes = model.counts.shape
    if nodes * sizes > MOST_CELLS or model.total >= 2**52 or np.abs(near).max(initial=0) >= 2**52:
        return best, None
    lines = _Lines(model)
    low, high = np.zeros(nodes * sizes), np.full(nodes * sizes, float(model.total))
    low[sizes - 1] = model.total
    cost = float(model.objective(best))
    steep = 1e3 * (1.0 + cost - float(((near - model.counts) ** 2).sum()) + np.sqrt(cost))
    whole = is_exact(model.counts)
    first = lines.solve(near.ravel(), low, high, steep)
    if first is None:
        return best, None
    cases, splits = [first], {}
    waiting = [(first.bound, 0)]
    work = nodes * sizes
    while waiting:
        bound, number = waiting[0]
        case = cases[number]
        found = rounded(case.x.reshape(nodes, sizes))
        if model.objective(found) < model.objective(best):
            best = found
        cost = float(model.objective(best))
        enough = cost - 1 + 1e-6 if whole else cost - 0.4 * FLOAT_TOLERANCE * max(1.0, cost)
        apart = np.abs(case.x - np.rint(case.x))
        cell = int(np.argmax(apart))
        if bound > enough or work + 2 * nodes * sizes > MOST_WORK:
            break  # no other case has a lower bound
        heapq.heappop(waiting)
        if apart[cell] < 1e-6:
            continue  # the answer is whole, and no better one is in this case
        value = float(np.floor(case.x[cell]))
        less, more = case.high.copy(), case.low.copy()
        less[cell], more[cell] = value, value + 1
        parts = [lines.solve(case.x, case.low, less, steep), lines.solve(case.x, more, case.high, steep)]
        work += 2 * nodes * sizes
        splits[number] = cell, int(value), len(cases), len(cases) + 1
        for part, sides in zip(parts, ((case.low, less), (more, case.high)), strict=True):
            # If HiGHS fails, the bound and the prices of the case that was split still hold.
            part = case._replace(low=sides[0], high=sides[1]) if part is None else part
            heapq.heappush(waiting, (part.bound, len(cases)))
            cases.append(part)
    return best, _witness(cases, splits)


def _witness(cases: list[_Case], splits: dict[int, tuple[int, int, int, int]]) -> Witness:
    if not splits:
        return {"C4 consistency": 2 * cases[0].prices, "C3 monotone": 2 * cases[0].falls}
    ends = [number for number in range(len(cases)) if number not in splits]
    sets = dict(zip(ends, itertools.count()))
    rows = [splits.get(number) or (-1, sets[number], 0, 0) for number in range(len(cases))]
    return {
        "C4 consistency": np.stack([2 * cases[number].prices for number in ends]),
        "C3 monotone": np.stack([2 * cases[number].falls for number in ends]),
        "branches": np.array(rows, np.int64),
    }
