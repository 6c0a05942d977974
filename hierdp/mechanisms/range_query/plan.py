"""The plan of a range-query release: the measured boxes and their budgets. It is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hierdp.analysis.budgets import closed_form, geometric, iterated, quadtree
from hierdp.analysis.methods import (
    branchings,
    consistent_variance,
    equal_split,
    geometric_split,
    plain_variance,
)
from hierdp.analysis.queries import Regular
from hierdp.counts.axes import Axis, Names
from hierdp.counts.boxes import BoxTree, tree_of_boxes
from hierdp.errors import InputError, listed, options_listed, unknown_name
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.mechanisms.range_query.tree import grid_tree, hierarchy_tree
from hierdp.privacy.budget import split

BUDGETS = ("equal", "geometric", "quadtree", "optimized")
"""The divisions of ε of `hierdp.analysis.budgets`; or shares of the levels, from the top."""


@dataclass(frozen=True)
class RangeQueryMethod:
    """A method for histograms.

    - consistent: whether counts are made consistent by constrained inference.
    - branching: the branching factor, if the method fixes it.
    - budget: the default. None: equal in one dimension, as the paper recommends, and geometric in more, where
      this matters most.
    - takes: the supported options among ``branching``, ``budget``, ``repair`` and ``strategy``.
    """

    name: str
    consistent: bool
    branching: int | None = None
    budget: str | None = None
    takes: tuple[str, ...] = ("branching", "budget")


METHODS = {
    method.name: method
    for method in (
        RangeQueryMethod("Flat", False, takes=()),
        RangeQueryMethod("H_2", False, 2, takes=("budget",)),
        RangeQueryMethod("H_b", False),
        RangeQueryMethod("H_tree", False, takes=("budget",)),
        RangeQueryMethod("H_2^c", True, 2, takes=("budget", "repair")),
        RangeQueryMethod("H_b^c", True, takes=("branching", "budget", "repair")),
        RangeQueryMethod("H_tree^c", True, takes=("budget", "repair")),
        RangeQueryMethod("Quadtree", True, 2, "quadtree", takes=("repair",)),
        RangeQueryMethod("Wavelet", False, takes=()),
        RangeQueryMethod("matrix", False, takes=("strategy",)),
    )
}
"""The methods, by name. H_tree measures the regions of a given hierarchy; for the wavelet, see
`wavelet`, for the matrix mechanism `matrix`."""


@dataclass(frozen=True, eq=False)
class RangeQueryPlan:
    """What is measured.

    - boxes: the measured levels, and the root, which is not measured.
    - epsilons: the budget of each level, from the root's children to the bins.
    - branching: None for a given hierarchy.
    - shares: the shares of all levels, from the root's children to the bins; 0 for one that is not measured.
      As `budget` of `plan_of`, they give this plan.
    """

    method: RangeQueryMethod
    boxes: BoxTree
    epsilons: tuple[float, ...]
    branching: int | None
    shares: tuple[float, ...]


def chosen(name: str, **options: object) -> RangeQueryMethod:
    """The method of that name, if it supports these options (None counts as not given)."""
    if name not in METHODS:
        raise InputError(unknown_name(name, METHODS, "no method"))
    method = METHODS[name]
    for option, value in options.items():
        if value is not None and option not in method.takes:
            more = f"; it takes {options_listed(method.takes)}" if method.takes else ""
            raise InputError(f"{name} takes no `{option}`{more}")
    repair = options.get("repair")
    if repair is not None and repair not in REPAIRS:
        raise InputError(unknown_name(repair, REPAIRS, "`repair`: there is no"))
    return method


def plan_of(
    axes: Sequence[Axis],
    epsilon: float,
    method: RangeQueryMethod,
    branching: int | None = None,
    budget: str | Sequence[float] | None = None,
) -> RangeQueryPlan:
    """Build a method's tree over the bins, and divide the budget over its levels.

    Levels of a grid with a share of 0 are left out, such as those without any part of an optimized budget.

    Raises `InputError` if the options do not fit the bins or each other.
    """
    shape = tuple(axis.bins for axis in axes)
    if branching is not None and branching < 2:
        raise InputError(f"`branching` is {branching}: it must be at least 2")
    if method.name.startswith("H_tree"):
        names = axes[0]
        if len(axes) != 1 or not isinstance(names, Names) or names.hierarchy is None:
            raise InputError(f"{method.name} measures the regions of a hierarchy: give one axis of names")
        boxes, b = hierarchy_tree(names.hierarchy), None
    elif method.name == "Flat":
        boxes, b = grid_tree(shape, max(2, *shape)), max(2, *shape)
    else:
        b = branching or method.branching or best_branching(shape, method.consistent)
        boxes = grid_tree(shape, b)
    usual = method.budget or ("equal" if len(shape) == 1 else "geometric")
    shares = _shares(usual if budget is None else budget, boxes, b, method)
    measured = [level for level, share in enumerate(shares, start=1) if share != 0 or b is None]
    epsilons = split(epsilon, len(measured), [shares[level - 1] for level in measured])
    if len(measured) < len(shares):
        kept = np.isin(boxes.tree.level, [0, *measured])
        level = np.searchsorted([0, *measured], boxes.tree.level[kept])
        boxes = tree_of_boxes(shape, level, boxes.low[kept], boxes.high[kept])
    return RangeQueryPlan(method, boxes, tuple(epsilons), b, tuple(map(float, shares)))


@cache
def best_branching(shape: tuple[int, ...], consistent: bool) -> int:
    """The branching factor with the least mean variance over all ranges, at the default budget.

    If axes differ in length, it is that for the longest axis in every dimension.

    >>> best_branching((1024,), consistent=True), best_branching((1024,), consistent=False)
    (11, 32)
    >>> best_branching((64, 64), consistent=True)
    7
    """
    if max(shape) <= 2:
        return 2
    queries = Regular.ranges(max(shape), len(shape))
    mean = consistent_variance if consistent else plain_variance
    split = equal_split if len(shape) == 1 else geometric_split
    best: int = min(branchings(queries), key=lambda b: mean(queries, b, split(queries, b, 1.0)))
    return best


def _shares(
    budget: str | Sequence[float], boxes: BoxTree, b: int | None, method: RangeQueryMethod
) -> Sequence[float]:
    """The share of each level, from the top; 0 for a level that is not measured."""
    levels = boxes.tree.depth
    if not isinstance(budget, str):
        if len(budget) != levels:
            raise InputError(f"{len(budget)} shares for {levels} levels; give one share per level")
        if budget[-1] == 0:
            raise InputError("the last share is that of the bins, which are always measured: give it a part")
        return budget
    if budget == "equal":
        return [1.0] * levels
    if budget not in BUDGETS:
        raise InputError(f"no budget {budget!r}; there are {listed(BUDGETS)}, or give shares of the levels")
    if b is None:
        raise InputError(
            f"the budget {budget!r} needs a tree with one branching factor; give shares, or 'equal'"
        )
    shape = boxes.shape
    if budget in ("geometric", "quadtree"):
        shares = (geometric if budget == "geometric" else quadtree)(1.0, levels, b, len(shape))
    elif len(set(shape)) > 1:
        raise InputError(
            "the budget 'optimized' needs equally many bins along each axis; give shares, or 'equal'"
        )
    else:
        best = iterated if method.consistent else closed_form
        shares = best(Regular.ranges(shape[0], len(shape)), b, 1.0).shares
    return [float(share) for share in shares[::-1]]
