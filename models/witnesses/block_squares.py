"""Least squares over a tree of histograms: cost and dual bound.

Without rounding, all numbers are whole numbers over common units, and floats count as the fractions that they
are. In floats, cost and gap come with a bound on what rounding did to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from models.arithmetic import effects, exact
from models.arithmetic.arrays import Array, Floats
from models.arithmetic.rounding import UNIT
from models.tree import Tree
from models.witnesses.float_squares import TINY, fit, off, takes
from models.witnesses.scaled import minus, over_one_unit, times
from models.workload import Workload

ENTRIES = 1 << 18
"""How many numbers of an array are handled at a time: Python integers take four times the room of floats."""


def squares(tree: Tree, workload: Workload, data: tuple[Array, Array], x: Array) -> Fraction:
    """Σ w ‖Q x − y‖², for the data ``(noisy, weights)``."""
    noisy, weights = data
    cost = Fraction(0)
    for level, nodes in _blocks(tree, workload):
        (held, y), unit = over_one_unit(x[nodes], noisy[nodes])
        away = minus(workload.answers(held), y)
        cost += _weighed(workload, weights[level], away) / unit**2
    return cost


def dual_bound(
    tree: Tree, workload: Workload, data: tuple[Array, Array], information: Array, price: Array
) -> Fraction:
    """The bound of `models.BlockInference.certificate`, for any prices.

    With s_v the prices charged to node v and b_v = 2 Σ w Qᵀy − s_v, node v adds

        min over z of ( Σ w ‖Q z − y‖² + s_v·z )  =  Σ w y²  −  ¼ b_vᵀ A_v⁻¹ b_v.

    - data: ``(noisy, weights)`` of the model.
    - information, array of Fractions, shape (depth + 1, 2^attributes): the factor by which A_v scales each
      effect, by level.
    - price, array, shape (nodes, cells): λ; 0 for leaves.

    Raises `ValueError` if prices charge an effect that its level does not measure: then the bound would be
    −∞.
    """
    noisy, weights = data
    exists = effects.exists(workload.shape)
    bound = Fraction(0)
    for level, nodes in _blocks(tree, workload):
        above = price[tree.parent[nodes]] if level else np.zeros_like(price[nodes])
        (own, above, y), unit = over_one_unit(price[nodes], above, noisy[nodes])
        (weight,), heavy = over_one_unit(weights[level])
        pull = workload.spread(times(y, times(workload.by_answer(weight), 2)))
        turn = minus(pull, times(minus(own, above), heavy))  # over unit · heavy
        bound += _weighed(workload, weights[level], y) / unit**2
        gained = effects.whole_squares(turn, workload.shape)
        for square, measured in zip(gained[exists], information[level][exists], strict=True):
            if measured > 0:
                bound -= square / (4 * measured * (unit * heavy) ** 2)
            elif square:
                raise ValueError(f"the prices charge an effect that level {level} does not measure")
    return bound


def in_floats(
    tree: Tree, workload: Workload, data: tuple[Array, Array], information: Array, x: Floats, price: Array
) -> tuple[float, float, float] | None:
    """Cost of an answer in floats, its gap to `dual_bound`, and a bound on the cost's error.

    With the slope g_v at x, the gap is ``Σ ¼ (g_v + s_v)ᵀ A_v⁻¹ (g_v + s_v)`` and, for inner nodes, λ_v times
    what the children's sums miss. It is rounded up, so the true gap is at least minus this one, too.

    If the answers Q_q x_v are wrong by e_q, the slope is wrong by Σ 2 w_q Q_qᵀ e_q. As A_v is the sum of all
    w_q Q_qᵀQ_q, the root of the first sum is then wrong by at most √(Σ w_q ‖e_q‖²). For all other rounding,
    the least eigenvalue of A_v takes the place of A_v.

    - tree, workload, data, information, price: as in `dual_bound`.
    - x, float array, shape (nodes, cells)

    Returns: cost, gap, error: None if a number is not held by floats, or is too large or small, or a level
    leaves out an effect.
    """
    noisy, weights = data
    least = information[:, effects.exists(workload.shape)].min(axis=1)
    inner, children = tree.internal, np.diff(tree.children[0])
    if x.dtype != float or not takes(x, noisy, weights, price) or min(least) < TINY:
        return None
    cost = gap = error = lost = 0.0
    terms, blocks = len(workload.queries) + 2, list(_blocks(tree, workload))
    for level, nodes in blocks:
        weight = workload.by_answer(weights[level].astype(float))
        found = fit(workload, noisy[nodes], weight, x[nodes])
        above = price[tree.parent[nodes]] if level else np.zeros_like(price[nodes])
        size = found.size + np.abs(price[nodes]) + np.abs(above)
        pull = np.abs(found.slope + price[nodes] - above) + off(terms, size)
        gap += float((pull * pull).sum()) / (4 * exact.float_below(least[level]))
        lost += float((weight * found.wrong * found.wrong).sum())
        (own,), (wrong,) = found.added_up(np.array([0, len(found.cost)]))
        cost, error = cost + float(own), error + float(wrong)
    gap = (math.sqrt(gap) + math.sqrt(lost)) ** 2
    if inner.size:
        sums, held = np.asarray(tree.child_sums(x)), x[inner]
        sizes = np.asarray(tree.child_sums(np.abs(x))) + np.abs(held)
        missed = np.abs(sums - held) + 2 * (children[inner, None] + 2) * UNIT * sizes
        gap += float((np.abs(price[inner]) * missed).sum())
    return cost, gap * (1 + 1e-8) + x.size * TINY, error + 2 * len(blocks) * UNIT * cost


def _blocks(tree: Tree, workload: Workload) -> Iterator[tuple[int, slice]]:
    """Each level's nodes, some at a time: ``(level, nodes)``."""
    rows = max(1, ENTRIES // max(workload.cells, workload.size))
    for level in range(tree.depth + 1):
        nodes = tree.nodes_of(level)
        for first in range(nodes.start, nodes.stop, rows):
            yield level, slice(first, min(first + rows, nodes.stop))


def _weighed(workload: Workload, weights: Array, answers: Array) -> Fraction:
    """Σ w · answer² of one level's nodes."""
    cost, start = Fraction(0), workload.start
    for q, weight in enumerate(exact.fractions(weights)):
        part = answers[:, start[q] : start[q + 1]]
        cost += weight * int(exact.dot(part, part))
    return cost
