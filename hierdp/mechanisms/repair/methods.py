"""The repairs: each is one of the project's models, solved and proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.mechanisms.weights import real_weights, whole_weights
from hierdp.record.step import Solving, Step
from models import (
    ConstrainedInference,
    HierarchyQIP,
    Model,
    NonNegativeInference,
    Tree,
    TreeAbsolute,
    TreeChebyshev,
)
from models.arithmetic.arrays import Ints

M = TypeVar("M", bound=Model)

LARGEST = 2**40
"""The largest count for answers in floats: beyond it, their resolution of 1/4,000 is too coarse for
proofs."""

UNIT = 2**20
"""Fractional counts of "chebyshev" are rounded to multiples of 1/UNIT, about a millionth."""

ALL_LEVELS = "consistency of all levels"
"""The step of least squares; other methods take the total from it if none is fixed."""


@dataclass(frozen=True)
class RepairMethod:
    """A method: the options that it takes, and whether its counts must be whole."""

    takes: tuple[str, ...] = ()
    whole_only: bool = False


METHODS = {
    "least-squares": RepairMethod(),
    "non-negative": RepairMethod(),
    "whole": RepairMethod(whole_only=True),
    "hierarchy-qip": RepairMethod(("fixed", "window")),
    "chebyshev": RepairMethod(("fixed",)),
    "least-absolute": RepairMethod(("fixed",), whole_only=True),
}


def _check(given: InputCounts, method: str) -> None:
    """Refuse counts that a method does not take."""
    if METHODS[method].whole_only and not given.whole:
        region = given.name(int(np.argmax(given.counts != np.rint(given.counts))))
        raise InputError(
            f"the count of {region} is not whole, and {method} takes whole counts: use hierarchy-qip, which "
            "gives whole counts from fractions, or round the counts"
        )
    if not np.abs(given.counts).max(initial=0) <= LARGEST:
        region = given.name(int(np.argmax(np.abs(given.counts))))
        raise InputError(f"the count of {region} is over {LARGEST:.2g}: count in larger units")


def repaired(
    given: InputCounts,
    method: str,
    fixed: Sequence[str] = (),
    window: int | None = None,
    solving: Solving = Step.solve,
) -> NDArray[Any]:
    """The repaired counts of all regions: float64, or int64 if the method's counts are whole.

    Raises `InputError` if the counts do not suit the method or its options; `NotSolved` if no counts within
    the window add up.
    """
    _check(given, method)
    return _REPAIRS[method](given, fixed, window, solving)


def _least_squares(given: InputCounts, _: Sequence[str], __: int | None, solving: Solving) -> NDArray[Any]:
    model = ConstrainedInference(given.hierarchy.tree, given.counts, given.variance)
    return np.asarray(solving(ALL_LEVELS, model).solution.x)


def _non_negative(given: InputCounts, _: Sequence[str], __: int | None, solving: Solving) -> NDArray[Any]:
    weights = real_weights(given.variance)
    model = NonNegativeInference(given.hierarchy.tree, given.counts, weights)
    return np.asarray(solving("nearest non-negative counts", model).solution.x)


def _whole(given: InputCounts, _: Sequence[str], __: int | None, solving: Solving) -> NDArray[Any]:
    tree, largest = given.hierarchy.tree, 2.0 * float(np.abs(given.counts).sum(dtype=float))
    weights = whole_weights(tree, given.variance, largest)
    model = _fitting(lambda: NonNegativeInference(tree, given.counts, weights, True))
    return np.asarray(solving("nearest whole counts", model).solution.x)


def _hierarchy_qip(
    given: InputCounts, fixed: Sequence[str], window: int | None, solving: Solving
) -> NDArray[Any]:
    def model(tree: Tree, nodes: Ints, counts: NDArray[Any], total: int) -> HierarchyQIP:
        weights = None
        if given.errors is not None:
            variance = np.append(np.inf, given.variance[nodes[1:]])  # the root's count is the total
            largest = float(np.abs(counts).max()) + total + (window or 0)
            weights = np.maximum(whole_weights(tree, variance, largest), 1)
        known = counts[:, None]
        qip = _fitting(lambda: HierarchyQIP(tree, known, total, True, window, weights))
        if window is not None:
            _refuse_narrow(given, qip, nodes)
        return qip

    return _below_fixed(given, fixed, solving, model)


def _refuse_narrow(given: InputCounts, qip: HierarchyQIP, nodes: Ints) -> None:
    if not qip.why_infeasible():
        return
    least, most = (np.ravel(side) for side in qip.reach)
    wrong = np.flatnonzero(least > most)
    region = given.name(nodes[wrong[-1] if wrong.size else 0])
    raise InputError(
        f"no whole counts within {qip.window} of the given ones add up at {region}: use a wider window"
    )


def _chebyshev(given: InputCounts, fixed: Sequence[str], _: int | None, solving: Solving) -> NDArray[Any]:
    spread, largest = np.sqrt(given.variance), 2.0 * float(np.abs(given.counts).sum(dtype=float))
    largest *= 1 if given.whole else UNIT

    def model(tree: Tree, nodes: Ints, counts: NDArray[Any], total: int) -> TreeChebyshev:
        weights = None
        if not given.whole:
            counts = np.rint(counts * UNIT) / UNIT
        if given.errors is not None:  # changes are bounded by multiples of the standard errors
            weights = np.maximum(whole_weights(tree, np.append(np.inf, spread[nodes[1:]]), largest), 1)
        return _fitting(lambda: TreeChebyshev(tree, counts, total, weights))

    return _below_fixed(given, fixed, solving, model)


def _least_absolute(
    given: InputCounts, fixed: Sequence[str], _: int | None, solving: Solving
) -> NDArray[Any]:
    tree = given.hierarchy.tree
    # Weights in the ratio of 1/standard error: the likeliest counts if the noise is Laplace's.
    spread, largest = np.sqrt(given.variance), 2.0 * float(np.abs(given.counts).sum(dtype=float))
    if not fixed:
        model = _fitting(lambda: TreeAbsolute(tree, given.counts, whole_weights(tree, spread, largest)))
        return np.asarray(solving("nearest counts in absolute changes", model).solution.x)

    def below(subtree: Tree, nodes: Ints, counts: NDArray[Any], total: int) -> TreeAbsolute:
        weights = whole_weights(subtree, np.append(np.inf, spread[nodes[1:]]), largest)
        return _fitting(lambda: TreeAbsolute(subtree, counts, weights, total))

    return _below_fixed(given, fixed, solving, below)


def _below_fixed(
    given: InputCounts,
    fixed: Sequence[str],
    solving: Solving,
    model_of: Callable[[Tree, Ints, NDArray[Any], int], Model],
) -> NDArray[Any]:
    """Solve a problem of a given total below each fixed region; or of each table, by least squares."""
    tree = given.hierarchy.tree
    if fixed:
        level = given.fixed_level(fixed)
        totals = given.counts[tree.nodes_of(level)].astype(np.int64).tolist()
    else:
        level = int(given.tables)
        found = _least_squares(given, (), None, solving)[tree.nodes_of(level)]
        totals = [max(0, round(total)) for total in found.tolist()]
    found = np.zeros(tree.size, np.int64)
    problems = zip(totals, subtrees(tree, level, given.measured), strict=True)
    for total, (nodes, below) in progress.steps(problems, "problems solved", len(totals)):
        counts = given.counts[nodes]
        counts[0] = total
        model = model_of(below, nodes, counts, total)
        step = solving(f"counts below {given.name(nodes[0])}", model)
        found[nodes] = np.ravel(np.asarray(step.solution.x)).astype(np.int64)
    return np.asarray(tree.sum_up(found[tree.leaves]))


def _fitting(make: Callable[[], M]) -> M:
    """A model; its refusal of counts that are too large becomes an `InputError`."""
    try:
        return make()
    except ValueError as refused:
        raise InputError(f"{refused}; count in larger units") from None


_REPAIRS: dict[str, Callable[[InputCounts, Sequence[str], int | None, Solving], NDArray[Any]]] = {
    "least-squares": _least_squares,
    "non-negative": _non_negative,
    "whole": _whole,
    "hierarchy-qip": _hierarchy_qip,
    "chebyshev": _chebyshev,
    "least-absolute": _least_absolute,
}


def subtrees(tree: Tree, level: int, measured: NDArray[np.bool_]) -> Iterator[tuple[Ints, Tree]]:
    """For each node of a level, the tree of the measured nodes below it.

    - level: the roots are the nodes of this level, in their order; they are kept whether measured or not.
    - measured, shape (nodes,): True for every leaf.

    Yields:
    - nodes (int64 array): the kept nodes, in the order of the subtree's nodes.
    - subtree

    >>> tree = Tree([[0, 0], [0, 0, 1], [0, 1, 2]])
    >>> measured = np.array([True, False, True, True, True, False, True, True, True])
    >>> for nodes, below in subtrees(tree, 0, measured):
    ...     print(nodes, below)
    [0 2 3 4 6 7 8] Tree(nodes per level: 1, 3, 3)
    """
    parent, top = tree.parent, tree.nodes_of(level)
    kept, root, depth = measured.copy(), np.full(tree.size, -1), np.zeros(tree.size, np.int64)
    above = np.arange(tree.size)  # the nearest kept node, from the node itself up
    kept[top] = True
    root[top] = np.arange(tree.level_sizes[level])
    for k in range(level + 1, tree.depth + 1):
        nodes = np.arange(tree.size)[tree.nodes_of(k)]
        root[nodes] = root[parent[nodes]]
        depth[nodes] = depth[parent[nodes]] + kept[nodes]
        above[nodes] = np.where(kept[nodes], nodes, above[parent[nodes]])
    there = np.flatnonzero(kept & (root >= 0))
    there = there[np.lexsort((there, depth[there], root[there]))]
    at = np.empty(tree.size, np.int64)  # position within its level of its subtree
    new = np.flatnonzero(np.diff(root[there], prepend=-1) | np.diff(depth[there], prepend=-1))
    at[there] = np.arange(there.size) - np.repeat(new, np.diff(new, append=there.size))
    for nodes in np.split(there, np.flatnonzero(np.diff(root[there])) + 1):
        cuts = np.flatnonzero(np.diff(depth[nodes])) + 1
        yield nodes, Tree([at[above[parent[part]]] for part in np.split(nodes, cuts)[1:]])
