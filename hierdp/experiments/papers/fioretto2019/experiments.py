"""The runs, as rows of measurements that are not averaged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import cumulative
from hierdp.execution import progress
from hierdp.execution.resume import Row
from hierdp.experiments.papers.fioretto2019.settings import SCALABLE, Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, timed
from hierdp.mechanisms.group_size import measure, post_process
from hierdp.mechanisms.group_size.cost_tables import Table, by_program, by_slopes, solve_by_tables
from hierdp.mechanisms.group_size.post_processing import METHODS, paper_window
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.metrics import group_sizes as metrics
from hierdp.record.spool import Steps
from hierdp.record.step import NotSolved
from hierdp.tables import GroupSizes
from models import CumulativeQIP, HierarchyQIP
from models.arithmetic.arrays import Ints
from solvers import solve

if TYPE_CHECKING:
    from pandas import DataFrame


LIMITED = ("M_H", "M_c", "M_dp^OP")
"""The methods that use solvers, which need a time limit."""


def accuracy(sets: dict[str, GroupSizes], settings: Settings, seed: int) -> DataFrame:
    """Error by level, violations and seconds of every run; methods of one query share their noise."""
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    return all_rows(_accuracy, cases, "error of every method", (sets, seed))


def _accuracy(sets: dict[str, GroupSizes], seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    _warm_up()
    data, rows = sets[name], list[Row]()
    for queries in (False, True):
        here = [METHODS[m] for m in SCALABLE if METHODS[m].cumulative is queries]
        noisy, _ = measure(data, epsilon, noise_for(seed, name, epsilon, run, queries), here[0])
        for method in here:
            solving = method.solving(SolverOptions())
            seconds, counts = timed(post_process, noisy, data.hierarchy, data.groups, method, solving)
            found = errors_of(data, counts)
            violations = found.pop("violations")
            row = {"method": method.name, "violations": violations, "seconds": seconds}
            rows += [{**row, "level": level, "l1": l1} for level, l1 in enumerate(found.values(), start=1)]
    return rows


def errors_of(data: GroupSizes, counts: Ints) -> dict[str, float]:
    """L1 error of each level, ``level_1`` and so on, and violations of consistency."""
    tree, levels = data.hierarchy.tree, data.hierarchy.levels
    errors = metrics.group_size_errors(tree, levels, data.counts, counts)["l1"]
    found = {f"level_{level}": float(l1) for level, l1 in enumerate(errors, start=1)}
    return {**found, "violations": metrics.constraint_violations(tree, counts)}


def scalability(data: GroupSizes, settings: Settings, seed: int) -> DataFrame:
    """Seconds of all seven methods by N (Figure 8). A method that reaches the time limit is not run again."""
    import pandas as pd

    rows: list[Row] = []
    stopped: set[str] = set()
    cases = list(product(settings.small_sizes, range(settings.small_runs), METHODS))
    _warm_up()
    for n, run, name in progress.steps(cases, "time of every method", len(cases)):
        if name in stopped:
            continue
        here, method = _first(data, n), METHODS[name]
        noisy, scale = measure(here, 1.0, noise_for(seed, "scalability", n, run, method.cumulative), method)
        # With a limit, a fast path would run in another process, whose start takes longer than the answer.
        solver = SolverOptions(time_limit=settings.time_limit if name in LIMITED else None)
        window = paper_window(scale) if name == "M_dp^OP" else None
        steps = Steps(method.solving(solver))
        row: Row = {"sizes": n, "run": run, "method": name, "variables": here.counts.size}
        try:
            seconds, _ = timed(post_process, noisy, here.hierarchy, here.groups, method, steps, window)
            proved = all(bool(step.solution.certificate) for step in steps.kept)
            row |= {"status": "optimal", "proved": proved, "seconds": seconds}
        except NotSolved as failure:
            if failure.broken:
                raise
            stopped.add(name)
            row |= {"status": failure.status, "proved": False, "seconds": settings.time_limit}
        rows.append(row)
    return pd.DataFrame(rows)


def joint(data: GroupSizes, settings: Settings, seed: int) -> DataFrame:
    """M_c^dp and M_c^r against the true optimum of M_c: objective (C1) and error, one row per instance."""
    cases = crossed(sizes=settings.joint_sizes, epsilon=settings.epsilons, run=range(settings.joint_runs))
    return all_rows(_joint, cases, "M_c against M_c^dp", (data, settings, seed))


def _joint(data: GroupSizes, settings: Settings, seed: int, n: int, epsilon: float, run: int) -> list[Row]:
    here = _first(data, n)
    tree = here.hierarchy.tree
    noisy, _ = measure(here, epsilon, noise_for(seed, "joint", epsilon, (n, run), True), METHODS["M_c"])
    model = CumulativeQIP(tree, noisy, here.groups)
    row: Row = {"variables": here.counts.size}
    for name in ("M_c", "M_c^dp", "M_c^r"):
        solver = SolverOptions(time_limit=settings.time_limit if name == "M_c" else None)
        solving = METHODS[name].solving(solver)
        try:
            counts = post_process(noisy, here.hierarchy, here.groups, METHODS[name], solving)
        except NotSolved as failure:
            if failure.broken:
                raise
            break
        row |= {
            f"objective {name}": int(model.objective(cumulative(counts))),
            f"l1 {name}": metrics.l1(here.counts, counts),
            f"violations {name}": metrics.constraint_violations(tree, counts),
        }
    return [row]


def windows(data: GroupSizes, settings: Settings, seed: int) -> DataFrame:
    """How often the paper's truncated domains change the optimum of M_H^dp, and by how much."""
    epsilons = (*settings.epsilons, 5.0, 10.0)  # less noise means tighter windows in the paper
    cases = crossed(epsilon=epsilons, run=range(settings.window_runs))
    return all_rows(_in_windows, cases, "truncated domains", (data, seed))


def _in_windows(data: GroupSizes, seed: int, epsilon: float, run: int) -> list[Row]:
    rows = []
    noisy, scale = measure(data, epsilon, noise_for(seed, "window", epsilon, run, False), METHODS["M_H^dp"])
    free = solve(HierarchyQIP(data.hierarchy.tree, noisy, data.groups))
    best, error = float(free.objective or 0), metrics.l1(data.counts, np.asarray(free.x))
    for name, window in _windows(scale):
        cut = solve(HierarchyQIP(data.hierarchy.tree, noisy, data.groups, window=window))
        row: Row = {"window": name, "half_width": window, "infeasible": cut.x is None}
        row["changed"] = cut.objective != free.objective
        if cut.x is not None:
            excess = float(cut.objective or 0) / best - 1
            row |= {"objective_excess": excess, "l1_excess": metrics.l1(data.counts, cut.x) / error - 1}
        rows.append(row)
    return rows


def cells(data: GroupSizes, settings: Settings, seed: int) -> DataFrame:
    """Compare M_dp^OP's cost tables, one constraint program per cell, with the merged slopes."""
    import pandas as pd

    rows = []
    method = METHODS["M_dp^OP"]
    for n in settings.small_sizes[:2]:
        for epsilon in (5.0, 10.0):
            # A small tree keeps the number of constraint programs to thousands.
            here = _few_leaves(_first(data, n), 4)
            noisy, scale = measure(here, epsilon, noise_for(seed, "cells", epsilon, n, False), method)
            window = paper_window(scale)
            model = HierarchyQIP(here.hierarchy.tree, noisy, here.groups, window=window)
            merging, (_, merged) = timed(solve_by_tables, model, by_slopes)
            programs = by_program(time_limit=settings.time_limit)
            seconds, (solution, found) = timed(solve_by_tables, model, programs)
            both = found.keys() & merged.keys()
            rows.append(
                {
                    "sizes": n, "epsilon": epsilon, "window": window, "status": solution.status,
                    "tables": len(both), "cells": sum(found[place].costs.size for place in both),
                    "cells_that_differ": sum(_differ(found[p], merged[p]) for p in both),
                    "seconds_by_programs": seconds, "seconds_by_slopes": merging,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


@cache
def _warm_up() -> None:
    """Compile the kernels and start the solvers before anything is timed."""
    places = Hierarchy.flat("leaf", ["a", "b"])
    for method in METHODS.values():
        window = 4 if "window" in method.takes else None
        solving = method.solving(SolverOptions(window=window))
        post_process(np.array([[3, 4], [1, 2], [3, 4]]), places, 4, method, solving, window)


def _windows(scale: float) -> Iterator[tuple[str, int]]:
    yield "3⌈2λ²⌉ (paper)", paper_window(scale)
    for times in (16, 8, 4):
        yield f"⌈{times}λ⌉", int(np.ceil(times * scale))


def _differ(one: Table, other: Table) -> int:
    if one.start != other.start or one.costs.size != other.costs.size:
        return int(max(one.costs.size, other.costs.size))
    return int((one.costs != other.costs).sum())


def _first(data: GroupSizes, sizes: int) -> GroupSizes:
    """The groups of the first `sizes` sizes; larger groups are left out."""
    return GroupSizes(data.hierarchy, data.counts[:, : sizes + 1].copy())


def _few_leaves(data: GroupSizes, leaves: int) -> GroupSizes:
    """The first leaves, under their own parents."""
    columns = {name: values[:leaves] for name, values in data.hierarchy.columns().items()}
    places = Hierarchy.from_columns(columns, list(columns))
    counts = data.counts[data.hierarchy.tree.leaves[:leaves]]
    return GroupSizes(places, np.asarray(places.tree.sum_up(counts)))
