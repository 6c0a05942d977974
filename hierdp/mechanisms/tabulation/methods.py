"""Post-processing of noisy tables: TopDown, BlueDown, least squares over the tree, and all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.contradiction import about
from hierdp.mechanisms.tabulation.family import Together, all_histograms, nested, whole_histograms
from hierdp.mechanisms.tabulation.joint import joint_model
from hierdp.mechanisms.tabulation.passes import UNIT, Family
from hierdp.mechanisms.tabulation.problem import Constraints, Measured
from hierdp.mechanisms.tabulation.tree_estimate import every_marginal, subtree_weights, tree_model
from hierdp.record.step import Solving, solve_all
from models.arithmetic.arrays import Array, Floats, Ints

TREE = "least squares over all regions"
"""The name of GLS's step."""

JOINT = "tables of all regions"
"""The name of Joint's step."""

Tables = list[Array]
"""For each level, the histograms of its regions; shape (regions, cells)."""

Made = tuple[Tables, list[Floats] | None]
"""The tables; with standard errors of all cells of a region, for each level, where these are known."""


@dataclass(frozen=True)
class Settings:
    """Options of the methods.

    - passes: the positions of the queries of each pass of TopDown's least squares.
    - rounding: the positions of the queries whose change by rounding is least. Default: queries that nest,
      from the first; see `hierdp.mechanisms.tabulation.family.nested`.
    - weights: how much TopDown's least squares counts each query, relative to the inverse of its variance.
    - together: families of a level with up to this many cells in all are solved in one step.
    """

    passes: tuple[tuple[int, ...], ...]
    rounding: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None
    together: int = 0


def top_down(measured: Measured, constraints: Constraints, settings: Settings, solve: Solving) -> Made:
    """Level by level from the root: least squares in passes, then rounding (Abowd et al. 2022, §5)."""
    weights = measured.weights * (1.0 if settings.weights is None else np.array(settings.weights))

    def of_level(level: int) -> tuple[Array, Floats]:
        return measured.noisy[level], weights[level]

    return _down(measured, constraints, settings, solve, of_level), None


def blue_down(measured: Measured, constraints: Constraints, settings: Settings, solve: Solving) -> Made:
    """Least squares over the tree first, then constraints level by level (Ghazi et al. 2026).

    Given the parent's table, what is known about the children are the measurements in their subtrees. The
    distance to the estimates in the metric of this information (the inverse of their covariance) is a
    weighted sum of squares of all marginals; see `tree_estimate`.
    """
    step = solve(TREE, tree_model(measured, constraints))
    estimate = np.array(step.solution.x, float)
    np.round(estimate / UNIT, out=estimate)
    estimate *= UNIT
    whole = every_marginal(measured)
    weights = subtree_weights(measured)
    tree = measured.tree

    def of_level(level: int) -> tuple[Array, Floats]:
        nodes = tree.nodes_of(level)
        return whole.answers(estimate[nodes]), weights[nodes]

    every = Settings(
        (tuple(range(len(whole.queries))),),
        tuple(nested(whole, constraints.sums)),
        together=settings.together,
    )
    marginals = Measured(measured.regions, whole, (), measured.variance)
    return _down(marginals, constraints, every, solve, of_level), None


def least_squares(measured: Measured, constraints: Constraints, _: Settings, solve: Solving) -> Made:
    """The best linear unbiased estimate: fractional and signed; fixed sums hold up to rounding.

    Raises `InputError` if there are bounds or structural zeros, which no unbiased estimate keeps.
    """
    if constraints.zeros.any() or any(
        np.any((low < high) & ((low > 0) | (high < np.inf)))
        for low, high in zip(constraints.lower, constraints.upper, strict=True)
    ):
        raise InputError(
            "GLS takes no bounds and no structural zeros, which no unbiased estimate keeps; choose BlueDown"
        )
    model = tree_model(measured, constraints)
    x = np.asarray(solve(TREE, model).solution.x, float)
    one = np.zeros(measured.workload.cells)  # measurements and invariants are marginals: all cells are alike
    one[0] = 1
    return _by_level(measured, x), _by_level(measured, np.sqrt(model.variance(one)))


def joint(measured: Measured, constraints: Constraints, _: Settings, solve: Solving) -> Made:
    """All levels and constraints as one integer program, by an exact backend where it is small."""
    model = joint_model(measured, constraints)
    with about(JOINT, model, (named_nodes(measured.regions), constraints.names)):
        step = solve(JOINT, model)
    return _by_level(measured, np.asarray(step.solution.x).astype(np.int64)), None


def _by_level(measured: Measured, x: Array) -> list[Array]:
    return [x[measured.tree.nodes_of(level)] for level in range(measured.tree.depth + 1)]


def named_nodes(regions: Hierarchy) -> list[str]:
    """The regions of all levels, for messages."""
    levels = zip(regions.levels, regions.names, strict=True)
    return [f"{level} {name}" for level, names in levels for name in names.tolist()]


def _down(
    measured: Measured,
    constraints: Constraints,
    settings: Settings,
    solve: Solving,
    of_level: Callable[[int], tuple[Array, Floats]],
) -> Tables:
    """Level by level: the root's table alone, then each parent's children.

    `of_level` gives the answers to which the tables of a level are fitted, and their weights, for all regions
    or for each.
    """
    regions, workload = measured.regions, measured.workload
    tight, of_level = constraints.tightened(regions), lru_cache(maxsize=1)(of_level)
    rounding = settings.rounding
    if rounding is None:
        rounding = tuple(nested(workload, tight.sums))

    def family(level: int, these: Ints, parent: Ints | None) -> Family:
        noisy, weights = of_level(level)
        bounds = [np.zeros((these.size, 0))] * 2
        if tight.sums is not None:
            bounds = [np.asarray(side[level][these], float) for side in (tight.lower, tight.upper)]
        each = weights if weights.ndim == 1 else weights[these]
        lower, upper = bounds
        found = Family(workload, noisy[these], each, parent, tight.zeros, tight.sums, lower, upper)
        return replace(found, regions=tuple(regions.names[level][these].tolist()), names=tuple(tight.names))

    def task(level: int, children: Sequence[Ints], chosen: Sequence[Ints], k: int) -> tuple[Any, ...]:
        """The families of some regions of a level."""
        parents = chosen[k].tolist()
        below, above = regions.levels[level + 1], regions.names[level]
        found = tuple(family(level + 1, children[v], tables[level][v]) for v in parents)
        names = tuple(f"{below} in {above[v]}" for v in parents)
        name = f"{below} by {regions.levels[level]}, {parents[0] + 1} to {parents[-1] + 1}"
        return name, Together(names, found), settings.passes, rounding

    name = f"{regions.levels[0]} {regions.names[0][0]}"
    root = whole_histograms(solve, name, family(0, np.arange(1), None), settings.passes, rounding)
    tables: Tables = [root]
    for level in range(measured.tree.depth):
        children = measured.children(level)
        chosen = _together(children, tables[level], settings.together)
        tasks = _Tasks(len(chosen), partial(task, level, children, chosen))
        held = np.zeros((int(measured.tree.level_sizes[level + 1]), workload.cells), np.int64)
        each = solve_all(all_histograms, tasks, solve, f"tables by {regions.levels[level + 1]}")
        for parents, found in zip(chosen, each, strict=True):
            for v, table in zip(parents.tolist(), found, strict=True):
                held[children[v]] = table
        tables.append(held)
    return tables


def _together(children: Sequence[Ints], tables: Array, most: int) -> list[Ints]:
    """The regions with persons, as those whose children's tables are solved in one step."""
    regions = np.flatnonzero(tables.any(axis=1))
    cells = np.array([children[v].size * tables.shape[1] for v in regions.tolist()], np.int64)
    found, first, last = list[Ints](), 0, np.cumsum(cells)
    while first < regions.size:
        before = int(last[first] - cells[first])
        end = max(first + 1, int(np.searchsorted(last, before + most, "right")))
        found.append(regions[first:end])
        first = end
    return found


@dataclass(frozen=True)
class _Tasks(Sequence[tuple[Any, ...]]):
    """Tasks that are made when they are needed: all families together are as large as all noisy answers."""

    number: int
    make: Callable[[int], tuple[Any, ...]]

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, at: int) -> tuple[Any, ...]: ...

    @overload
    def __getitem__(self, at: slice) -> list[tuple[Any, ...]]: ...

    def __getitem__(self, at: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        if isinstance(at, slice):
            return [self.make(place) for place in range(self.number)[at]]
        return self.make(range(self.number)[at])


METHODS = {"TopDown": top_down, "BlueDown": blue_down, "GLS": least_squares, "Joint": joint}
"""The post-processing of each method, from the noisy answers.

Parameters
----------
measured : Measured
constraints : Constraints
settings : Settings
solve : callable
    Solves models.

Raises
------
InputError
    If the method does not take the constraints, or those of some sums contradict each other.
NoTables
    If a step has no answer; see `hierdp.mechanisms.tabulation.contradiction.explaining`.
"""
