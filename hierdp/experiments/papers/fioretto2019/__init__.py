"""Fioretto & Van Hentenryck 2019, repeated: Table 1, Figures 8–10, and what the paper could not measure."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import cumulative, differences
from hierdp.data.census import GROUPS, LEAVES, MAX_SIZE, PUBLISHED, census, national
from hierdp.data.commuting import FILE
from hierdp.data.taxi import SIZES as TAXIS
from hierdp.data.taxi import made_up_taxis, taxi
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.execution.resume import Row
from hierdp.experiments.run import all_rows, by_level, crossed, noise_for, present, said, summed_up, timed
from hierdp.experiments.study import Part, Study, printed_rows
from hierdp.mechanisms.group_size import measure, post_process
from hierdp.mechanisms.group_size.cost_tables import Table, by_program, by_slopes, solve_by_tables
from hierdp.mechanisms.group_size.post_processing import METHODS, fit_regions, paper_window
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.metrics import group_sizes as metrics
from hierdp.record.spool import Steps
from hierdp.record.step import NotSolved, Step
from hierdp.reports import plots
from hierdp.tables import GroupSizes
from models import CumulativeQIP, HierarchyQIP, NonNegativeInference, Program, Tree
from models.arithmetic.arrays import Floats, Ints
from solvers import solve

TABLE_1 = printed_rows(__file__, "table1", keys=3)
"""L1 error at levels 1, 2, 3 and constraint violations, by data set, ε and method."""

LEVELS = 3
"""Levels of both hierarchies."""

SIZES = {"census": 1_000, "taxi": 13_282}
"""N, the number of group sizes."""

TAXI_GROUPS = 13_282
TAXI_REGIONS = (1, 6, 3_973)
"""New York, boroughs, leaves. (The text also says 263 zones at level 3; with 3,973, bounds are weaker.)"""

SCALABLE = ("M_H^r", "M_H^dp", "M_c^r", "M_c^dp")
"""The methods that the paper runs on complete data sets."""

COUNTIES = 3_143
"""Counties, as the paper counts them. It also counts 7,592 leaves."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - leaves, sizes, groups: the size of the synthetic census.
    - city_sizes: sizes, and taxis, of the made-up city (`hierdp.data.taxi.made_up_taxis`); 0 leaves it out.
    - taxi_sizes: taxis with more pickups are left out; by default, all are kept.
    - small_sizes: numbers N of sizes for Figure 8.
    - small_runs: runs of each method and N of Figure 8; of a method that reaches the time limit, one.
    - time_limit: seconds for each integer program, and for cost tables; by default 30 minutes, as in the
      paper.
    - joint_sizes: numbers of sizes for M_c against M_c^dp.
    - total_leaves: leaves of the censuses that are repaired with and without the public total.
    - float_groups, float_leaves, float_sizes, float_runs: the census on which solvers in floats are compared
      with the exact relaxations, and runs.
    """

    runs: int = 30
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0)
    leaves: int = LEAVES
    sizes: int = MAX_SIZE
    groups: int = GROUPS
    city_sizes: int = TAXIS
    taxi_sizes: int | None = None
    small_sizes: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    small_runs: int = 30
    time_limit: float = 1800.0
    joint_sizes: tuple[int, ...] = (10, 50, 200)
    joint_runs: int = 10
    window_runs: int = 30
    total_leaves: tuple[int, ...] = (COUNTIES, LEAVES)
    float_groups: int = GROUPS
    float_leaves: int = 104
    float_sizes: int = 100
    float_runs: int = 5


QUICK = Settings(
    runs=1,
    small_sizes=(5, 10),
    small_runs=3,
    time_limit=3.0,
    joint_sizes=(10,),
    joint_runs=3,
    window_runs=4,
    total_leaves=(152,),
    float_leaves=52,
    float_sizes=20,
    float_runs=1,
)
QUICK_NOTE = (
    "One run of Table 1 on data of full size; at levels 1 and 2 errors of one run vary by a few per cent. "
    "Figure 8 ends at N = 10 and three seconds: nothing follows for larger programs. The parts on solvers in "
    "floats and on the public total have few leaves and sizes: there only the order of errors counts."
)
"""What cannot be concluded from the quick settings."""

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


# The relaxations M_H^r and M_c^r by solvers in floats, against their exact optima.
#
# The published errors of the relaxations hardly depend on ε. Optima do. Solvers in floats stop at a
# tolerance relative to the size of the data: with x the counts themselves, the objective Σ x² − 2 ñx is
# about −Σ ñ², so a relative tolerance of 10⁻⁸ allows a feasible answer a distance of 10⁻⁴ ‖ñ‖ from the
# optimum, whatever ε is. With the differences x − ñ as unknowns, the same program has an objective and
# bounds of the size of the noise.
#
# Each solver has its default settings, in both forms. The program has the constraints of the paper's
# Figures 3 and 7; counts have no upper bounds but those that fix them (C2).

RELAXED = ("M_H^r", "M_c^r")
FORMS = ("counts", "differences")
"""The unknowns: the counts, or their differences from the noisy ones."""

TOLERANCE = 1e-8
"""The relative gap at which Clarabel and the barrier method of Gurobi stop by default."""

FEW_SIZES = 18
"""10 regions with these sizes and 0: 190 variables. Gurobi's package is licensed for 200 with squares."""


@dataclass(frozen=True, eq=False)
class ShiftedProgram:
    """minimize Σ w x² + c x, subject to lower ≤ A x ≤ upper and least ≤ x ≤ most."""

    weight: Floats
    slope: Floats
    matrix: Any
    lower: Floats
    upper: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, program: Program, center: Floats) -> ShiftedProgram:
        """The program with the unknowns ``x − center``, without constant and implied upper bounds."""
        weight, slope, _ = (np.asarray(part, float) for part in program.expanded())
        lower, upper = program.row_bounds
        moved = program.matrix @ center
        slope = slope + 2 * weight * center
        least, most = (np.asarray(side, float) for side in program.bounds)
        most = np.where(most == least, most, np.inf)
        return cls(weight, slope, program.matrix, lower - moved, upper - moved, least - center, most - center)


def instances(settings: Settings) -> dict[str, GroupSizes]:
    """A census, and a tree of 10 regions with the same number of groups."""
    groups = settings.float_groups
    leaves = census(0, groups, settings.float_leaves, settings.float_sizes)
    return {"10 regions": _ten_regions(groups), f"{leaves.hierarchy.size} regions": leaves}


def _ten_regions(groups: int) -> GroupSizes:
    rng = np.random.default_rng(0)
    columns = {"state": [*"AABBCC"], "part": [*"abcdef"]}
    places = Hierarchy.from_columns(columns, ["state", "part"], root="US", root_level="nation")
    shares = np.array([0.3, 0.2, 0.2, 0.1, 0.15, 0.05])
    counts = np.stack([rng.multinomial(many, shares) for many in national(rng, groups, FEW_SIZES)], axis=1)
    return GroupSizes(places, np.asarray(places.tree.sum_up(counts), dtype=np.int64))


def float_rows(settings: Settings, seed: int) -> DataFrame:
    """Errors of every solver and form; the methods' exact optima first."""
    sets = instances(settings)
    cases = crossed(data=sets, method=RELAXED, epsilon=settings.epsilons, run=range(settings.float_runs))
    return all_rows(_float_rows, cases, "relaxations by solvers in floats", (sets, seed))


def _float_rows(
    sets: dict[str, GroupSizes], seed: int, name: str, method: str, epsilon: float, run: int
) -> list[Row]:
    data, chosen = sets[name], METHODS[method]
    noise = noise_for(seed, "floats", name, method, epsilon, run)
    noisy, _ = measure(data, epsilon, noise, chosen)
    model = chosen.model(data.hierarchy, noisy, data.groups, None)
    seconds, best = timed(solve, model)
    what = {"allowed_distance": float(np.sqrt(TOLERANCE) * np.linalg.norm(noisy.astype(float)))}
    row: Row = {**what, "solver": "exact", "unknowns": "counts", "status": best.status, "seconds": seconds}
    made = [row | _float_errors(data, np.asarray(best.x), chosen.cumulative)]
    program = model.program()
    for solver, run_it in solvers_here(data.counts.size).items():
        for form in FORMS:
            center = np.zeros(noisy.size) if form == "counts" else noisy.ravel().astype(float)
            seconds, (status, x) = timed(run_it, ShiftedProgram.of(program, center))
            row = {**what, "solver": solver, "unknowns": form, "status": status, "seconds": seconds}
            if x is not None:
                answer = np.asarray(x + center).reshape(noisy.shape)
                row |= _float_errors(data, answer, chosen.cumulative)
                row["distance"] = float(np.linalg.norm(answer - np.asarray(best.x, float)))
            made.append(row)
    return made


def _float_errors(data: GroupSizes, answer: Any, cumulative: bool) -> Row:
    """Errors by level and violations of an answer, rounded as the methods do."""
    whole = np.rint(answer).astype(np.int64)
    return errors_of(data, differences(whole) if cumulative else whole)


def floats(every: DataFrame) -> Part:
    """Errors at the root by ε, for every solver and form of the program."""

    def errors(here: DataFrame) -> Row:
        row: Row = {"status": ", ".join(dict.fromkeys(here.status)), "distance": here.distance.mean()}
        row["allowed"] = here.allowed_distance.mean()
        means = here.groupby("epsilon").level_1.mean().items()
        row |= {f"L1_level_1_at_{epsilon:g}": mean for epsilon, mean in means}
        return row | {"violations": here.violations.mean()}

    texts = [
        "L1 error at the root, of rounded answers by default settings. Unknowns: the counts, or their "
        "differences from the noisy counts. Distance: from the optimum, before rounding, in L2; allowed: "
        "what a relative gap of 10⁻⁸ allows if the counts are the unknowns. PrimalInfeasible is a false "
        "claim."
    ]
    drawn, panels = plots.figure(9.4, 3.6, panels=2)
    larger = every[every.data == every.data.iloc[-1]]
    for axes, method in zip(panels, RELAXED, strict=True):
        lines = larger[larger.method == method].groupby(["solver", "unknowns"], sort=False)
        for k, ((solver, unknowns), line) in enumerate(lines):
            name = solver if solver == "exact" else f"{solver}, {unknowns}"
            plots.line(axes, line.groupby("epsilon").level_1, name, k, aside=1.03 ** (k - 2))
        plots.label(axes, method, "privacy budget ε", log="xy", ticks=every.epsilon)
    panels[0].set_ylabel("L1 error at the root (groups)")
    plots.beside(panels[-1])
    table = summed_up(every, ["data", "method", "solver", "unknowns"], errors)
    frames = {"float_solvers": table, "float_solvers_runs": every}
    return Part("float-solvers", "The relaxations by solvers in floats", texts, frames, drawn)


def solvers_here(variables: int) -> dict[str, Callable[[ShiftedProgram], tuple[str, Floats | None]]]:
    """The solvers that are installed and take so many variables."""
    small = variables <= 200 and importlib.util.find_spec("gurobipy") is not None
    return {"OSQP": by_osqp, "Clarabel": by_clarabel, **({"Gurobi": by_gurobi} if small else {})}


def by_osqp(stated: ShiftedProgram) -> tuple[str, Floats | None]:
    """OSQP with its default settings: tolerances of 10⁻³, absolute and relative."""
    import osqp
    import scipy

    sparse = scipy.sparse
    size = stated.weight.size
    solver = osqp.OSQP()
    solver.setup(
        sparse.diags(2 * stated.weight).tocsc(), stated.slope,
        sparse.vstack([stated.matrix, sparse.identity(size)]).tocsc(),
        np.concatenate([stated.lower, stated.least]), np.concatenate([stated.upper, stated.most]),
        verbose=False,
    )  # fmt: skip
    found = solver.solve(raise_error=False)
    status = str(found.info.status)
    return status, np.asarray(found.x, float) if status.startswith("solved") else None


def by_clarabel(stated: ShiftedProgram) -> tuple[str, Floats | None]:
    """Clarabel with its default settings: tolerances of 10⁻⁸."""
    import clarabel
    import scipy

    sparse = scipy.sparse
    equal = stated.lower == stated.upper
    above, below = ~equal & np.isfinite(stated.lower), ~equal & np.isfinite(stated.upper)
    unit, fixed = sparse.identity(stated.weight.size, format="csr"), stated.least == stated.most
    same = [stated.matrix[equal], unit[fixed]]
    less = [-stated.matrix[above], stated.matrix[below], -unit[~fixed]]
    sides = [
        stated.lower[equal], stated.least[fixed],
        -stated.lower[above], stated.upper[below], -stated.least[~fixed],
    ]  # fmt: skip
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrix = sparse.vstack([*same, *less]).tocsc()
    many = int(equal.sum() + fixed.sum())
    cones = [clarabel.ZeroConeT(many), clarabel.NonnegativeConeT(matrix.shape[0] - many)]
    bend = sparse.diags(2 * stated.weight).tocsc()
    found = clarabel.DefaultSolver(bend, stated.slope, matrix, np.concatenate(sides), cones, settings).solve()
    status = str(found.status)
    return status, np.asarray(found.x, float) if status == "Solved" else None


def by_gurobi(stated: ShiftedProgram) -> tuple[str, Floats | None]:
    """Gurobi with its default settings: its barrier method stops at a relative gap of 10⁻⁸."""
    import gurobipy
    import scipy

    sparse = scipy.sparse
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    x = model.addMVar(stated.weight.size, lb=stated.least, ub=stated.most)
    equal = stated.lower == stated.upper
    above, below = ~equal & np.isfinite(stated.lower), ~equal & np.isfinite(stated.upper)
    model.addConstr(stated.matrix[equal] @ x == stated.lower[equal])
    if above.any():
        model.addConstr(stated.matrix[above] @ x >= stated.lower[above])
    if below.any():
        model.addConstr(stated.matrix[below] @ x <= stated.upper[below])
    model.setObjective(x @ sparse.diags(stated.weight) @ x + stated.slope @ x)
    model.optimize()
    optimal = model.Status == gurobipy.GRB.OPTIMAL
    return ("optimal" if optimal else f"status {model.Status}"), np.asarray(x.X) if optimal else None


# The exact methods on the census, with and without the public total (H2).
#
# The published errors at level 1 are several times those of the noisy counts themselves. With (H2) ours are
# far below them. Without it, each size is repaired alone: thousands of leaves cannot be negative, their sum
# pulls the root up at every size, and nothing pulls it down. The cumulative counts are used in two ways:
# with the monotone fit of Algorithm 1, and as plain differences.
#
# The census has 7,592 leaves as the paper counts them, and 3,143, its number of counties.

WAYS = {"M_H^dp": ("counts",), "M_c^dp": ("monotone fit", "plain differences")}
"""What is repaired, by method."""


def total_rows(settings: Settings, homes: Path | None, seed: int) -> DataFrame:
    """Errors by level with and without (H2)."""
    cases = crossed(leaves=settings.total_leaves, method=WAYS, epsilon=settings.epsilons)
    return all_rows(_total_rows, cases, "without the public total", (settings, homes, seed))


def _total_rows(
    settings: Settings, homes: Path | None, seed: int, leaves: int, method: str, epsilon: float
) -> list[Row]:
    data = census(seed, settings.groups, leaves, settings.sizes, homes)
    chosen, tree = METHODS[method], data.hierarchy.tree
    noisy, _ = measure(data, epsilon, noise_for(seed, "total", leaves, method, epsilon), chosen)
    made = []
    for way in WAYS[method]:
        counts = noisy
        if way == "plain differences":
            counts = differences(noisy)
        elif way == "monotone fit":
            counts = noisy.copy()
            fit_regions(counts, data.hierarchy, data.groups, Step.solve)
        answers = {"unrepaired": counts, "with (H2)": optimum(HierarchyQIP(tree, counts, data.groups)),
                   "without (H2)": without_total(tree, counts)}  # fmt: skip
        for name, answer in answers.items():
            made.append({"repaired": way, "answer": name, **errors_of(data, answer)})
    return made


def optimum(model: HierarchyQIP | NonNegativeInference) -> Ints:
    """The proved optimum of a model."""
    found = solve(model)
    if found.status != "optimal":
        raise RuntimeError(f"consistency: {found.status}; {found.message}")
    return np.asarray(found.x)


def without_total(tree: Tree, noisy: Ints) -> Ints:
    """The nearest consistent counts ≥ 0 of any total: each size is a problem of its own."""
    equal = np.ones(tree.size, np.int64)
    sizes = [optimum(NonNegativeInference(tree, size, equal, integer=True)) for size in noisy.T]
    return np.stack(sizes, axis=1)


def raw_noise(name: str, epsilon: float, method: str) -> float:
    """Expected L1 error of the root's noisy counts, without repair.

    The noise is double-geometric with scale λ = 2L/ε for counts, and L/ε for cumulative counts, whose
    differences have the noise of two of them.
    """
    scale = (1 if method.startswith("M_c") else 2) * LEVELS / epsilon
    reach = int(60 * scale)
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    law /= law.sum()
    if method.startswith("M_c"):
        law = np.convolve(law, law)
    away = np.abs(np.arange(law.size) - law.size // 2)
    return SIZES[name] * float(law @ away)


def without_total_part(found: DataFrame) -> Part:
    """Errors by level, beside the published ones."""
    levels, printed = [f"level_{level}" for level in range(1, LEVELS + 1)], list[Row]()
    for method in WAYS:
        for (name, epsilon, other), errors in TABLE_1.items():
            if name == "census" and other == method:
                row = {"leaves": LEAVES, "method": method, "repaired": "", "epsilon": epsilon}
                known = zip(levels, errors, strict=False)
                printed.append({**row, "answer": "published", **dict(known)})
                printed.append({**row, "answer": "noise alone", "level_1": raw_noise(name, epsilon, method)})
    texts = [
        "L1 errors at level 1 on the census, one run; other levels are in the file without_total_levels. "
        "Noise alone: the expected error of noisy counts before any repair, the same on any data."
    ]
    by = ["method", "leaves", "repaired", "answer"]
    every = pd.concat([pd.DataFrame(printed), found])[
        ["leaves", "method", "repaired", "epsilon", "answer", *levels]
    ]
    root = every.assign(epsilon=[f"level_1_at_{e:g}" for e in every.epsilon]).pivot_table(
        index=by, columns="epsilon", values="level_1", sort=False
    )
    frames = {"without_total": root.rename_axis(columns=None).reset_index(), "without_total_levels": every}
    return Part("without-total", "Without the public total", texts, frames)


def about(sets: dict[str, GroupSizes], homes: bool) -> Part:
    """Statistics of the data, and a comparison of the census with the published totals."""
    rows = [
        {
            "data": name, "hierarchy": ", ".join(f"{n:,}" for n in data.hierarchy.tree.level_sizes),
            "sizes": data.counts.shape[1] - 1, "groups": data.groups,
            "individuals": int(data.counts[0] @ np.arange(data.counts.shape[1])), "cells": data.counts.size,
        }
        for name, data in sets.items()
    ]  # fmt: skip
    root = sets["census"].counts[0]
    scaled = np.array(PUBLISHED) * root.sum() / sum(PUBLISHED)
    totals = pd.DataFrame(
        {
            "size": ["1", "2", "3", "4", "5", "6", "7 or more"],
            "published_thousands": PUBLISHED,
            "scaled": np.rint(scaled).astype(int),
            "generated": [*root[1:7].tolist(), int(root[7:].sum())],
        }
    )
    shares = "workers' homes in the commuting file" if homes else "a lognormal law, because there is no file"
    texts = [
        "Census: the published national totals of 2010, a tail beyond size 7, and 50 outliers in 10 … "
        f"{root.size - 1:,}; the regions' shares are those of {shares}."
    ]
    return Part("data", "The data", texts, {"data": pd.DataFrame(rows), "census_totals": totals})


def table_1(runs: DataFrame, name: str) -> Part:
    """Error by level and violations, of one data set."""
    key = name.replace(", ", "_").replace(" ", "_")

    def beside(mine: DataFrame) -> dict[str, Any]:
        epsilon, method = float(mine.epsilon.iloc[0]), mine.method.iloc[0]
        whose = "taxi" if name.startswith("taxi") else name
        *published, violations = TABLE_1.get((whose, epsilon, method), (np.nan,) * 4)
        row = {"runs": mine.run.nunique(), **by_level(mine.l1, mine.level, "L1_level_{}", "±_{}")}
        row["violations"] = mine.violations.mean()
        row |= {f"published_{level}": errors for level, errors in enumerate(published, start=1)}
        return row | {"published_CV": violations}

    texts = [
        "Mean L1 error of all regions of a level, its standard deviation over runs (±), and mean number of "
        "(region, size) pairs whose children do not add up; beside the printed values."
    ]
    table = summed_up(runs[runs.data == name], ["epsilon", "method"], beside)
    return Part(f"table1-{key}", f"Table 1, {name}: L1 error by level", texts, {f"table1_{key}": table})


def figure_9(runs: DataFrame) -> Part:
    """Runtime against ε."""
    first = runs[runs.level == 1]
    table = first.groupby(["data", "method", "epsilon"]).seconds.agg(["median", "min", "max"]).reset_index()
    drawn = _by_epsilon(first, "seconds", "post-processing (seconds, proof included)", "median")
    texts = ["Medians over runs; bars from the least to the most. The paper: Gurobi 8, one 2.1 GHz core."]
    frames = {"figure9": table.rename(columns={"median": "median_seconds"})}
    return Part("figure9", "Figure 9: runtime", texts, frames, drawn)


def figure_10(runs: DataFrame) -> Part:
    """Error against ε."""
    total = runs.groupby(["data", "method", "epsilon", "run"])["l1"].sum().reset_index()
    table = total.groupby(["data", "method", "epsilon"]).l1.agg(["mean", "std", "count"]).reset_index()
    drawn = _by_epsilon(total, "l1", "L1 error, all levels (groups)")
    texts = ["L1 error of all levels together, means over runs; bars from the least to the largest run."]
    frames = {"figure10": table.rename(columns={"mean": "mean_L1", "count": "runs"})}
    return Part("figure10", "Figure 10: error", texts, frames, drawn)


def figure_8(found: DataFrame, time_limit: float) -> Part:
    """Runtime of all seven methods against N."""
    table = (
        found.groupby(["sizes", "method"], sort=False)
        .agg(
            variables=("variables", "first"),
            runs=("run", "count"),
            status=("status", lambda every: ", ".join(dict.fromkeys(every))),
            proved=("proved", "all"),
            median_seconds=("seconds", "median"),
            most_seconds=("seconds", "max"),
        )
        .reset_index()
    )
    drawn, (axes,) = plots.figure(7, 4)
    for name, here in table.groupby("method", sort=False):
        style = _style(str(name))
        axes.plot(here.sizes, here.median_seconds, **style)
        late = here[~here.proved]
        axes.plot(late.sizes, late.median_seconds, "o", fillstyle="none", markersize=13, color=style["color"])
    axes.axhline(time_limit, color="#888888", linestyle=":", linewidth=1)
    plots.label(axes, "", "number of sizes N", "seconds (ringed: stopped)", "y")
    plots.beside(axes)
    texts = [
        f"All seven methods on the small data with sizes to N, ε = 1; {time_limit:g} s for each integer "
        "program and for the tables of M_dp^OP; medians over runs. M_H and M_c by HiGHS, M_dp^OP by CP-SAT "
        "in the paper's window. A method that reaches the limit is run once, and not on larger N."
    ]
    frames = {"figure8": table, "figure8_runs": found}
    return Part("figure8", "Figure 8: runtime against N", texts, frames, drawn)


def joint_part(found: DataFrame) -> Part:
    """M_c^dp and M_c^r against the optimum of M_c."""

    def compared(here: DataFrame) -> dict[str, Any]:
        done = here.dropna()
        row = {"variables": int(here.variables.iloc[0]), "instances": len(here), "solved": len(done)}
        if done.empty:
            return row
        return row | {
            "M_c^dp_objective_excess": (done["objective M_c^dp"] / done["objective M_c"] - 1).mean(),
            "M_c^dp_optimal": int((done["objective M_c^dp"] == done["objective M_c"]).sum()),
            **{f"L1_{name}": done[f"l1 {name}"].mean() for name in ("M_c", "M_c^dp", "M_c^r")},
            "M_c^dp_closer": int((done["l1 M_c^dp"] < done["l1 M_c"]).sum()),
            "violations_M_c^r": done["violations M_c^r"].mean(),
        }

    texts = [
        "Excess: how much larger M_c^dp's objective (C1) is. Closer: the number of instances on which M_c^dp "
        "is nevertheless closer to the truth."
    ]
    frames = {"joint": summed_up(found, ["sizes", "epsilon"], compared), "joint_runs": found}
    return Part("joint", "M_c^dp against the joint optimum M_c", texts, frames)


def window(found: DataFrame) -> Part:
    """The effect of truncated domains."""
    table = (
        found.groupby(["epsilon", "window"], sort=False)
        .agg(
            half_width=("half_width", "first"),
            instances=("run", "count"),
            infeasible=("infeasible", "sum"),
            changed=("changed", "sum"),
            mean_objective_excess=("objective_excess", "mean"),
            mean_L1_excess=("l1_excess", "mean"),
        )
        .reset_index()
    )
    texts = [
        "Domains {ñ − δ … ñ + δ} ∩ ℤ₊ against all of ℤ₊, λ the noise's scale. Infeasible: without consistent "
        "counts of the right total. Excess: over the untruncated optimum, if feasible."
    ]
    return Part("window", "Truncated domains", texts, {"window": table})


def cells_part(found: DataFrame) -> Part:
    """The cost tables from constraint programs against those from slopes."""
    texts = [
        "Each cell of each cost table, computed by CP-SAT (M_dp^OP) and by merging slopes (M_H^dp, Eq. 4)."
    ]
    return Part("cells", "Cost tables, cell by cell", texts, {"cells": found})


def _style(method: str) -> dict[str, Any]:
    """The colour, marker and name of each method, the same in every figure."""
    letter, _, rest = method.partition("_")
    below, _, above = rest.partition("^")
    label = f"${letter}_{{{below}}}" + (f"^{{{above}}}$" if above else "$")
    return {**plots.style(list(METHODS).index(method)), "label": label}


def _by_epsilon(rows: DataFrame, value: str, unit: str, centre: str = "mean") -> Any:
    """One panel per data set, one line per method."""
    names: Sequence[str] = list(dict.fromkeys(rows.data))
    drawn, panels = plots.figure(4.2 * len(names) + 1.2, 3.6, panels=len(names))
    for axes, name in zip(panels, names, strict=True):
        for k, method in enumerate(SCALABLE):
            mine = rows[(rows.data == name) & (rows.method == method)].groupby("epsilon")[value]
            # Aside, so that coinciding lines remain visible.
            plots.line(axes, mine, "", k, centre, 1.04 ** (k - 1.5), **_style(method))
        plots.label(axes, name, "privacy budget ε", log="xy", ticks=rows.epsilon)
    panels[0].set_ylabel(unit)
    plots.beside(panels[-1])
    return drawn


def bounds(method: str) -> tuple[int, ...]:
    """The largest L1 error of each level on the taxis, whose number of groups is G; errors are whole.

    Two tables of counts ≥ 0 that both add up to G differ by at most 2G in L1: ‖x − y‖₁ ≤ ‖x‖₁ + ‖y‖₁. At
    every level the true counts add up to G, if every group is in one region of the level, as the paper's
    condition 4 (faithfulness) has it. So do the answers of the exact methods, by conditions 2 to 4.

    A rounded relaxation may miss G. A count moves by at most ½, so M_H^r adds up to at most G + RN/2 at a
    level of R regions and N sizes. Rounded cumulative counts remain monotone; their last entries, one a
    region, add up to at most G + R/2, so M_c^r does. At the root they are G itself. This holds if the program
    was solved: its answer before rounding satisfies (H2) to (H4), or (C2) to (C5).
    """
    extra = {"M_H^r": SIZES["taxi"] / 2, "M_c^r": 1 / 2}.get(method, 0.0)
    rounded = [0.0 if method == "M_c^r" and regions == 1 else extra * regions for regions in TAXI_REGIONS]
    return tuple(2 * TAXI_GROUPS + math.floor(more) for more in rounded)


def taxi_bound() -> Part:
    """Each published error of the taxis, its bound, and whether it is within."""
    rows = [
        {
            "epsilon": epsilon, "method": method, "level": level, "published": printed, "bound": limit,
            "verdict": "above the bound" if printed > limit else "within",
        }
        for (name, epsilon, method), errors in TABLE_1.items()
        if name == "taxi"
        for level, (printed, limit) in enumerate(zip(errors, bounds(method), strict=False), start=1)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    above = int((frame.verdict != "within").sum())
    least = math.ceil(float(frame.published[frame.method.str.endswith("dp")].max()) / 2)
    texts = [
        f"{above} of {len(frame)} published errors are above their bound, of the exact methods 2G = "
        f"{2 * TAXI_GROUPS:,} (with 3,973 leaves; with the 263 zones of the paper's text the bounds are "
        f"lower). If a group were a taxi in a zone, none would be above 2G from {least:,} groups on."
    ]
    return Part("taxi-bound", "The taxis' errors against their own G", texts, {"taxi_bound": frame})


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``taxi/`` (see `hierdp.data.taxi`) and ``us-commuting-2009-2013.parquet``. Without
    them there are no taxis, and the states' shares are synthetic. The same seed gives the same numbers,
    except times.
    """
    if data and data.is_file():
        raise InputError(f"{data} is a file; fioretto2019 takes a folder, since its data are not published")
    homes, taxis = present(data, FILE), present(data, "taxi")
    sets = {"census": census(seed, settings.groups, settings.leaves, settings.sizes, homes)}
    if settings.city_sizes:
        sets["taxis, made up"] = made_up_taxis(seed, settings.city_sizes)
    if taxis:
        sets["taxi"] = taxi(taxis, settings.taxi_sizes)
    # A few dozen regions, so that solvers can finish.
    small = sets.get("taxi") or census(seed, 100_000, 52, max(50, *settings.joint_sizes))
    runs = accuracy(sets, settings, seed)
    made = [
        about(sets, homes is not None),
        *(table_1(runs, name) for name in sets),
        taxi_bound(),
        floats(float_rows(settings, seed)),
        without_total_part(total_rows(settings, homes, seed)),
        figure_8(scalability(small, settings, seed), settings.time_limit),
        figure_9(runs),
        figure_10(runs),
        joint_part(joint(small, settings, seed)),
        window(windows(small, settings, seed)),
        cells_part(cells(small, settings, seed)),
    ]
    return Study("Fioretto & Van Hentenryck 2019, reproduced", made, said(settings, seed, sets))
