"""Least squares over the whole tree, and the information of each region's subtree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.problem import Constraints, Measured
from models import BlockInference, Workload
from models.arithmetic.arrays import Array, Floats

FIXED = 2.0**-16
"""The variance with which least squares takes fixed sums: they then hold to far less than one person."""


def tree_model(measured: Measured, constraints: Constraints | None = None) -> BlockInference:
    """Least squares over all regions, from the measured marginals and the sums that are fixed.

    Recoded queries are left out: they are not diagonal in the basis that makes the time linear. Sums that are
    fixed in all regions of a level are measurements with the variance `FIXED`.

    Raises `InputError` if the last level's marginals do not determine its tables.
    """
    workload = measured.workload
    marginals = [
        q for q, query in enumerate(workload.queries) if Workload(workload.shape, [query]).is_marginal
    ]
    queries = [workload.queries[q] for q in marginals]
    columns = np.concatenate([np.arange(workload.start[q], workload.start[q + 1]) for q in marginals])
    noisy = np.concatenate(measured.noisy)
    noisy = noisy if columns.size == workload.size else noisy[:, columns]
    weights = measured.weights[:, marginals]
    fixed = [] if constraints is None else _fixed(constraints)
    for query, level, held in fixed:
        nodes = measured.tree.nodes_of(level)
        values = np.zeros((measured.tree.size, held.shape[1]), np.int64)
        values[nodes] = held
        exact = np.zeros((len(weights), 1))
        exact[level] = 1 / FIXED
        queries.append(query)
        noisy, weights = np.concatenate([noisy, values], axis=1), np.concatenate([weights, exact], axis=1)
    try:
        return BlockInference(measured.tree, Workload(workload.shape, queries), noisy, weights)
    except ValueError as wrong:
        raise InputError(f"least squares over all regions is not possible: {wrong}") from None


def _fixed(constraints: Constraints) -> list[tuple[Sequence[ArrayLike], int, Array]]:
    """Each marginal whose sums are fixed in all regions of a level, with the level and the sums."""
    if constraints.sums is None:
        return []
    found = list[tuple[Sequence[ArrayLike], int, Array]]()
    for q, query in enumerate(constraints.sums.queries):
        alone = Workload(constraints.sums.shape, [query])
        part = slice(int(constraints.sums.start[q]), int(constraints.sums.start[q + 1]))
        for level, (low, high) in enumerate(zip(constraints.lower, constraints.upper, strict=True)):
            if alone.is_marginal and np.array_equal(low[:, part], high[:, part]):
                found.append((alone.queries[0], level, np.asarray(low[:, part], np.int64)))
    return found


def every_marginal(measured: Measured) -> Workload:
    """All marginals of the attributes with several categories: the total first, every cell last."""
    shape = measured.workload.shape
    several = [a for a, n in enumerate(shape) if n > 1]
    kept = [s for size in range(len(several) + 1) for s in itertools.combinations(several, size)]
    return Workload.marginals(shape, kept)


def subtree_weights(measured: Measured) -> Floats:
    """The information about each region in its subtree, as weights of `every_marginal`.

    The information scales each effect (`models.arithmetic.effects`): that of the region's own answers, plus
    that of the sum of its children. A sum of squares of all marginals scales the effects by any such factors;
    its weights are found by inclusion and exclusion. A weight under 0 is set to 0: it occurs only if subtrees
    have different shapes, and is then small.

    Returns shape (nodes, queries).
    """
    information = tree_model(measured).subtree_information
    shape, whole = measured.workload.shape, every_marginal(measured)
    bits = [
        sum(1 << a for a in range(len(shape)) if not summed[a] and shape[a] > 1) for summed in whole.summed
    ]
    found = np.zeros((measured.tree.size, len(bits)))
    for q, mine in enumerate(bits):
        for effect in bits:
            if effect & mine == mine:
                found[:, q] += (-1.0) ** (effect ^ mine).bit_count() * information[:, effect]
        found[:, q] /= whole.cells // whole.sizes[q]
    mantissa, exponent = np.frexp(np.maximum(found, 0))
    # 30 bits, so that another order of the sums gives the same weights
    weights = np.ldexp(np.round(np.ldexp(mantissa, 30)), exponent - 30)
    weights[found < 1e-9 * found.max(axis=1, keepdims=True)] = 0
    return np.asarray(weights)
