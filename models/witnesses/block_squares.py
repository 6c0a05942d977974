"""Least squares over a tree of histograms: cost and dual bound without rounding.

All numbers are whole numbers over common units. Floats count as the fractions that they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from models.arithmetic import effects, exact
from models.arithmetic.arrays import Array
from models.tree import Tree
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

    Parameters
    ----------
    tree : Tree
    workload : Workload
    data : arrays
        ``(noisy, weights)`` of the model.
    information : array of Fractions, shape (depth + 1, 2^attributes)
        The factor by which A_v scales each effect, by level.
    price : array, shape (nodes, cells)
        λ; 0 for leaves.

    Raises
    ------
    ValueError
        If prices charge an effect that its level does not measure: then the bound would be −∞.
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
