"""The relaxations M_H^r and M_c^r by solvers in floats, against their exact optima.

The published errors of the relaxations hardly depend on ε. Optima do. Solvers in floats stop at a tolerance
relative to the size of the data: with x the counts themselves, the objective Σ x² − 2 ñx is about −Σ ñ², so a
relative tolerance of 10⁻⁸ allows a feasible answer a distance of 10⁻⁴ ‖ñ‖ from the optimum, whatever ε is.
With the differences x − ñ as unknowns, the same program has an objective and bounds of the size of the noise.

Each solver has its default settings, in both forms. The program has the constraints of the paper's Figures 3
and 7; counts have no upper bounds but those that fix them (C2).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import differences
from hierdp.data.census import census, national
from hierdp.execution.resume import Row
from hierdp.experiments.papers.fioretto2019.experiments import errors_of
from hierdp.experiments.papers.fioretto2019.settings import Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, summed_up, timed
from hierdp.experiments.study import Part
from hierdp.mechanisms.group_size import measure
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.reports import plots
from hierdp.tables import GroupSizes
from models import Program
from models.arithmetic.arrays import Floats
from solvers import solve

if TYPE_CHECKING:
    from pandas import DataFrame

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


def rows(settings: Settings, seed: int) -> DataFrame:
    """Errors of every solver and form; the methods' exact optima first."""
    sets = instances(settings)
    cases = crossed(data=sets, method=RELAXED, epsilon=settings.epsilons, run=range(settings.float_runs))
    return all_rows(_rows, cases, "relaxations by solvers in floats", (sets, seed))


def _rows(
    sets: dict[str, GroupSizes], seed: int, name: str, method: str, epsilon: float, run: int
) -> list[Row]:
    data, chosen = sets[name], METHODS[method]
    noise = noise_for(seed, "floats", name, method, epsilon, run)
    noisy, _ = measure(data, epsilon, noise, chosen)
    model = chosen.model(data.hierarchy, noisy, data.groups, None)
    seconds, best = timed(solve, model)
    what = {"allowed_distance": float(np.sqrt(TOLERANCE) * np.linalg.norm(noisy.astype(float)))}
    row: Row = {**what, "solver": "exact", "unknowns": "counts", "status": best.status, "seconds": seconds}
    made = [row | _errors(data, np.asarray(best.x), chosen.cumulative)]
    program = model.program()
    for solver, run_it in solvers_here(data.counts.size).items():
        for form in FORMS:
            center = np.zeros(noisy.size) if form == "counts" else noisy.ravel().astype(float)
            seconds, (status, x) = timed(run_it, ShiftedProgram.of(program, center))
            row = {**what, "solver": solver, "unknowns": form, "status": status, "seconds": seconds}
            if x is not None:
                answer = np.asarray(x + center).reshape(noisy.shape)
                row |= _errors(data, answer, chosen.cumulative)
                row["distance"] = float(np.linalg.norm(answer - np.asarray(best.x, float)))
            made.append(row)
    return made


def _errors(data: GroupSizes, answer: Any, cumulative: bool) -> Row:
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
