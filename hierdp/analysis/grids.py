"""Mean variances of hierarchies over n^d cells whose families are b nodes wide along every dimension.

The variance of one query is Σ e[u] (q̄[u] − q̄[v])² (see `hierdp.analysis.consistent`), so its sum over a
workload is

    Σ_u e[u] k[u] − Σ_v S[v] k[v],     k[v] = πᵀ(K₁ ⊗ … ⊗ K_d)π,     π the shares of the cells of v,

where u runs over all nodes and v over those with children. Along each dimension a node is either full, or the
last of its level and perhaps short. Along dimensions where it is full, its cells have equal shares. Along the
other dimensions, shares are constant on runs of cells: a run is the set of full children of the last node of
some level, so there are at most h + 1 runs. The sums are therefore over 2^d kinds of nodes per level and
arrays of (h + 1)^d shares; the cost does not depend on n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.analysis import regular
from hierdp.analysis.workload import RANGE, Axis, level_sizes
from hierdp.errors import InputError
from models.arithmetic.arrays import Floats

KINDS = 1 << 18
"""Limit on the number of shares, (h + 1)^d, for trees that are not complete."""


def flat(bins: int, variance: float, axes: Sequence[Axis]) -> float:
    """Mean variance if only cells are measured: a cell's variance times the mean cells per query."""
    return variance * math.prod(axis.length(bins) for axis in axes)


def nodes_used(bins: int, branching: int, axes: Sequence[Axis] = (RANGE,)) -> list[int]:
    """Number of nodes used on each level, leaves first, summed over all queries: Eq. 2, exact for every tree.

    A query uses a node if it contains the whole node but not its whole parent. The root is not measured, so
    the query of all bins uses the children of the root.
    """
    levels = zip(*(regular.held(bins, branching, axis) for axis in axes), strict=True)
    return [math.prod(own for own, _ in level) - math.prod(above for _, above in level) for level in levels]


def plain(bins: int, branching: int, variance: ArrayLike, axes: Sequence[Axis] = (RANGE,)) -> float:
    """Mean variance of H_b without constrained inference; `variance` has an entry per level, leaves first."""
    queries = math.prod(axis.queries(bins) for axis in axes)
    used = nodes_used(bins, branching, axes)
    return float(sum(v * (m / queries) for v, m in zip(np.asarray(variance).tolist(), used, strict=True)))


def consistent(bins: int, branching: int, variance: ArrayLike, axes: Sequence[Axis] = (RANGE,)) -> float:
    """Mean variance of H_b^c, with constrained inference.

    - variance, shape (h,): variance of a node's noise on each level, from the leaves to the children of the
      root; infinite for a level that is not measured. The leaves must be measured.

    Raises `InputError` if there are more than `KINDS` shares, which takes about a dozen dimensions.

    >>> round(consistent(2**60, 16, [2 * 15**2] * 15))
    31861
    >>> round(consistent(64, 8, [2 * 2**2] * 2, [RANGE, RANGE]), 1), flat(64, 2, [RANGE, RANGE])
    (865.6, 968.0)
    """
    precision = regular.precisions(bins, branching, variance)
    return float(np.real(_consistent(bins, branching, precision, axes)))


def level_shares(bins: int, branching: int, variance: ArrayLike, axes: Sequence[Axis] = (RANGE,)) -> Floats:
    """The coefficients c_i of the levels in the mean variance Σ c_i · variance_i of H_b^c; shape (h,).

    Each answer is a weighted sum of noisy counts, with the weights that minimize its variance. Because the
    weights are optimal, c_i is the derivative of the mean with respect to variance_i. It is computed by a
    complex step, whose rounding error is negligible. The paper's a_i of Eq. 5 is twice c_i, because its
    variances are 2/ε_i².
    """
    precision = regular.precisions(bins, branching, variance)
    stepped = precision * (1 + 1e-30j * np.eye(precision.size))
    if len(axes) == 1:  # all at once
        moved = regular.of_precisions(bins, branching, stepped.T, axes[0])
    else:
        moved = np.array([_consistent(bins, branching, each, axes) for each in stepped])
    return np.asarray(np.maximum(-np.imag(moved) / 1e-30 * precision, 0.0))


def feasible(bins: int, branching: int, dimensions: int) -> bool:
    """Whether `consistent` accepts this tree. In few dimensions it always does."""
    sizes = level_sizes(bins, branching)
    return dimensions == 1 or _is_complete(sizes, branching) or len(sizes) ** dimensions <= KINDS


def _is_complete(sizes: Sequence[int], branching: int) -> bool:
    return all(below == branching * above for below, above in pairwise(sizes))


def _consistent(bins: int, branching: int, precision: NDArray[Any], axes: Sequence[Axis]) -> Any:
    """Precisions may be complex, for derivatives."""
    sizes = level_sizes(bins, branching)
    if len(axes) == 1:
        return regular.of_precisions(bins, branching, precision, axes[0])
    if not feasible(bins, branching, len(axes)):
        raise InputError(
            f"{len(axes)} dimensions are too many for branching {branching} over {bins} bins each; "
            "take fewer dimensions or a larger branching factor"
        )
    if _is_complete(sizes, branching):
        total = _complete(bins, branching, precision, axes)
    else:
        total = _ragged(sizes, branching, precision, axes)
    return total / math.prod(axis.queries(bins) for axis in axes)


def _uniform(axis: Axis, bins: int, first: Any, within: Any) -> Any:
    """πᵀKπ for equal shares of the bins first … first + within − 1."""
    return axis.root(bins, first + (within - 1) / 2, (within * within - 1) / (3 * within))


@lru_cache(maxsize=100_000)  # a tree needs the same ones again for other variances of its levels
def _sum_uniform(axis: Axis, bins: int, within: int, nodes: int) -> float:
    """The sum of `_uniform` over consecutive nodes from bin 1; exact, because large terms cancel later."""
    off, apart = Fraction(within - 1, 2), Fraction(within * within - 1, 3 * within)
    first, second, third = (Fraction(axis.root(bins, 1 + j * within + off, apart)) for j in range(3))
    # A quadratic in the node's position: sum it from its differences.
    step, bend = second - first, third - 2 * second + first
    return float(nodes * (first + Fraction(nodes - 1, 2) * (step + Fraction(nodes - 2, 3) * bend)))


def _complete(bins: int, branching: int, precision: NDArray[Any], axes: Sequence[Axis]) -> Any:
    """The sum over a complete tree, where all nodes of a level are alike."""
    family = branching ** len(axes)
    error: Any = 1 / precision[0]
    within, nodes = 1, bins
    total: Any = 0.0
    for i in range(precision.size):
        total = total + error * math.prod(_sum_uniform(axis, bins, within, nodes) for axis in axes)
        within, nodes = within * branching, nodes // branching
        if i + 1 < precision.size:
            spread = family * error
            error = spread / (1 + precision[i + 1] * spread)
            total = total - spread * math.prod(_sum_uniform(axis, bins, within, nodes) for axis in axes)
    return total  # the root is not measured: its e is its S


def _ragged(sizes: Sequence[int], branching: int, precision: NDArray[Any], axes: Sequence[Axis]) -> Any:
    """The sum over a tree that is not complete.

    Nodes are classified by the dimensions along which they are the last of their level; e and S depend only
    on the number of these dimensions.
    """
    d, bins = len(axes), sizes[0]
    error = [1 / precision[0]] * (d + 1)
    shares: list[Any] = [np.ones((1,) * a) for a in range(d + 1)]
    runs = [(bins, 1)]  # of the last node's bins along a dimension: first bin, and how many
    total = error[0] * math.prod(_sum_uniform(axis, bins, 1, bins) for axis in axes)
    within = 1
    for i in range(1, precision.size):
        full = (
            sizes[i - 1] - branching * (sizes[i] - 1) - 1
        )  # full children of the last node, without its last child
        mass = [
            [branching ** (d - a) * full ** (a - j) * error[j] for j in range(a + 1)] for a in range(d + 1)
        ]
        spread = [sum(math.comb(a, j) * mass[a][j] for j in range(a + 1)) for a in range(d + 1)]
        shares = [_joined(shares, mass[a], spread[a], full > 0) for a in range(d + 1)]
        runs = [((sizes[i] - 1) * within * branching + 1, full * within)] * (full > 0) + runs
        within *= branching
        error = [s / (1 + precision[i] * s) for s in spread]
        grams = {axis: _between(axis, bins, runs) for axis in set(axes)}
        whole = {axis: _sum_uniform(axis, bins, within, sizes[i] - 1) for axis in set(axes)}
        for kind in product((False, True), repeat=d):
            a = sum(kind)
            form = _form(shares[a], [grams[axis] for axis, last in zip(axes, kind, strict=True) if last])
            form = form * math.prod(whole[axis] for axis, last in zip(axes, kind, strict=True) if not last)
            total = total + (error[a] - spread[a]) * form
    return total


def _joined(shares: Sequence[Any], mass: Sequence[Any], spread: Any, full: bool) -> Any:
    """Shares of the runs of a node that is the last along some dimensions, from the shares of its children.

    Along each of these dimensions, the run of its full children (if any) precedes the runs of its last child.
    `mass[j]` is the mass of the children that are last along j of them, and `shares[j]` divides it.
    """
    a = len(mass) - 1
    runs = shares[1].size + full if a else 0
    found = np.empty((runs,) * a, np.result_type(spread, *shares))
    for kind in product((False, True) if full else (True,), repeat=a):
        place = tuple(slice(int(full), None) if last else slice(0, 1) for last in kind)
        j = sum(kind)
        shape = [shares[1].size if last else 1 for last in kind]
        found[place] = np.reshape(shares[j] * (mass[j] / spread), shape)
    return found


def _between(axis: Axis, bins: int, runs: Sequence[tuple[int, int]]) -> Floats:
    """Means of K[s, t] over the bins s and t of two runs; shape (runs, runs)."""
    first, count = np.array(runs, dtype=float).T
    middle = first + (count - 1) / 2
    low, high = np.minimum.outer(middle, middle), bins + 1 - np.maximum.outer(middle, middle)
    gram = {"range": low * high, "prefix": high, "whole": np.ones_like(low)}[axis.kind]
    np.fill_diagonal(gram, _uniform(axis, bins, first, count))
    return np.asarray(gram)


def _form(shares: Any, grams: Sequence[Floats]) -> Any:
    """πᵀ(K ⊗ … ⊗ K)π."""
    done = shares
    for gram in grams:  # symmetric; each product moves a dimension to the end, so all end up in place
        done = done.reshape(len(gram), -1).T @ gram
    return np.sum(shares * done.reshape(shares.shape))
