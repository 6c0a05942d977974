"""The seven post-processing steps of Fioretto & Van Hentenryck 2019, from noisy counts to group sizes.

They see noisy counts and public facts only. The paper's mechanisms differ in what is measured (counts by
size, or cumulative ones) and in the program solved; ours let the solver of each be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.histogram import differences
from hierdp.mechanisms.deadline import Deadline
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.record.step import Solving, Step, require_proved, solved
from models import CostTable, CumulativeQIP, HierarchyQIP, Isotonic, Model
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from solvers.backends.cost_tables import Divide


INTEGER = "highs"
"""Default solver of the integer programs. With the squares as lines between whole numbers they are linear,
and their relaxations so close that HiGHS finishes thousands of variables where others do not hundreds."""

CELLS_A_TASK = 200_000
"""Cells of the regions that are made monotone in one task of `execution`: some 50 ms of work."""

SIDE_BY_SIDE = 1_000
"""Regions from which on those of a task are one model, with one line in the manifest: with a model each, most
of the time would go to handling models of a few numbers."""

AT_ONCE = "monotone sizes"
"""What a step of many regions is called."""

CELLS_OF_A_TABLE = 4
"""Cells of a cost table that are solved in one task, a constraint program each: some 20 ms."""


@dataclass(frozen=True, eq=False)
class Repaired:
    """Counts by size, shape (nodes, sizes), and the problems solved on the way."""

    counts: Ints
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Method:
    """One of the paper's mechanisms.

    Attributes
    ----------
    name : str
        The paper's.
    cumulative : bool
        Whether cumulative sizes are measured (Lemma 6) or counts by size (Lemma 4).
    repair : callable
        From ``(noisy, hierarchy, groups, solver)`` to `Repaired`.
    takes : tuple of str
        What of `How` it leaves open.
    consistent : bool
        Whether its counts add up along the hierarchy; the rounded relaxations' need not.
    """

    name: str
    cumulative: bool
    repair: Callable[[Ints, Hierarchy, int, SolverOptions], Repaired]
    takes: tuple[str, ...]
    consistent: bool = True

    @property
    def sensitivity(self) -> int:
        """L1, of one level's query.

        An entity more or less in a group of size k changes only c_k or c_{k−1} of that group's region, by
        one; or two of its counts by size, each by one. It takes size 0 among the sizes, and public groups:
        else losing its last entity would take a group out of every c_k.
        """
        return 1 if self.cumulative else 2


def paper_window(scale: float) -> int:
    """δ = 3·⌈2λ²⌉: three times the variance, as the paper has it, of double-geometric noise of scale λ."""
    return 3 * math.ceil(2 * scale**2)


def m_h(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_H: the hierarchy QIP (Fig. 3) by an integer programming solver; default HiGHS."""
    model = HierarchyQIP(places.tree, noisy, groups, window=solver.window)
    step = _by(solver.backend or INTEGER, "consistency of all regions", model, solver)
    return Repaired(_answer(step), (step,))


def m_h_relaxed(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_H^r: the QIP without integrality, its answer rounded; default solver `fast`, in windows Clarabel."""
    model = HierarchyQIP(places.tree, noisy, groups, integer=False, window=solver.window)
    default = "fast" if solver.window is None else "clarabel"
    step = _by(solver.backend or default, "relaxed consistency of all regions", model, solver)
    return Repaired(np.rint(_answer(step)).astype(np.int64), (step,))


def m_h_dp(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_H^dp: the QIP by the fast path (the paper's dynamic program, untruncated unless asked)."""
    model = HierarchyQIP(places.tree, noisy, groups, window=solver.window)
    step = Step.solve("consistency of all regions", model)
    return Repaired(_answer(step), (step,))


def m_dp_op(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_dp^OP: the dynamic program with each cell of its cost tables a constraint program (Fig. 5).

    The tables span the domains: without a window that is all of 0 … G, for tiny G only.
    """
    from solvers.backends.cost_tables import solve_by_tables

    model = HierarchyQIP(places.tree, noisy, groups, window=solver.window)
    deadline = Deadline.of("consistency of all regions", solver.time_limit)
    solution, _ = solve_by_tables(model, _by_programs(solver.backend or "cp-sat", deadline))
    found = solved(deadline.step, solution, deadline.limit)
    step = require_proved(deadline.step, model, found, deadline.fast)
    return Repaired(_answer(step), (step,))


def _by_programs(backend: str, deadline: Deadline) -> Divide:
    """`by_program`, some cells a task."""

    def divide(row: CostTable, values: range) -> list[tuple[int, Ints]]:
        cuts = execution.chunks(len(values), CELLS_OF_A_TABLE)
        tasks = [(row, values[cut], backend, deadline) for cut in cuts]
        return [cell for part in execution.each(_cells, tasks, "a table of costs") for cell in part]

    return divide


def _cells(row: CostTable, values: range, backend: str, deadline: Deadline) -> list[tuple[int, Ints]]:
    from solvers.backends.cost_tables import by_program

    return by_program(backend, deadline.left())(row, values)  # what is left as the task begins


def m_c(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_c: monotone and consistent cumulative sizes at once (Fig. 7); default solver HiGHS."""
    step = _by(
        solver.backend or INTEGER, "monotone and consistent", _cumulative(noisy, places, groups), solver
    )
    return Repaired(differences(_answer(step)), (step,))


def m_c_relaxed(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_c^r: the same without integrality, its cumulative counts rounded; default solver `fast`."""
    model = replace(_cumulative(noisy, places, groups), integer=False)
    step = _by(solver.backend or "fast", "relaxed, monotone and consistent", model, solver)
    return Repaired(differences(np.rint(_answer(step)).astype(np.int64)), (step,))


def m_c_dp(noisy: Ints, places: Hierarchy, groups: int, solver: SolverOptions) -> Repaired:
    """M_c^dp (Algorithm 1): a monotone fit for each region, then the hierarchy QIP by the fast path.

    The rounding of the algorithm's line 3 is done in the isotonic model itself: rounding is optimal there.
    """
    names = region_names(places)
    fits = monotone_at_once if len(noisy) >= SIDE_BY_SIDE else _monotone
    tasks = [(names[cut], noisy[cut], groups) for cut in together(*noisy.shape)]
    steps = [step for part in execution.each(fits, tasks, "monotone sizes") for step in part]
    sizes = differences(np.concatenate([_answer(step) for step in steps]).reshape(noisy.shape))
    consistent = m_h_dp(sizes, places, groups, solver)
    return Repaired(consistent.counts, (*steps, *consistent.steps))


def region_names(places: Hierarchy) -> list[str]:
    """The names of the regions' fits, in level order."""
    return [
        f"{level} {region}"
        for level, regions in zip(places.levels, places.names, strict=True)
        for region in regions
    ]


def together(regions: int, sizes: int) -> list[slice]:
    """Which regions are made monotone in one task."""
    return execution.chunks(regions, CELLS_A_TASK // sizes)


def monotone_at_once(
    names: Sequence[str], noisy: Ints, groups: int, solving: Solving = Step.solve
) -> list[Step]:
    """A monotone fit for each of some regions, as one model."""
    offsets = np.arange(len(noisy) + 1) * noisy.shape[1]
    fit = Isotonic(noisy.ravel(), p=2, lower=0, upper=groups, integer=True, offsets=offsets)
    return [solving(f"{AT_ONCE} from {names[0]} on", fit, names)]


def _monotone(names: Sequence[str], noisy: Ints, groups: int) -> list[Step]:
    """A monotone fit for each of some regions."""
    fits = [Isotonic(row, p=2, lower=0, upper=groups, integer=True) for row in noisy]
    return [Step.solve(name, fit) for name, fit in zip(names, fits, strict=True)]


_SOLVER = ("backend", "time_limit")

METHODS = {
    method.name: method
    for method in (
        Method("M_H", False, m_h, (*_SOLVER, "window")),
        Method("M_H^r", False, m_h_relaxed, (*_SOLVER, "window"), consistent=False),
        Method("M_H^dp", False, m_h_dp, ("window",)),
        Method("M_dp^OP", False, m_dp_op, (*_SOLVER, "window")),
        Method("M_c", True, m_c, _SOLVER),
        Method("M_c^r", True, m_c_relaxed, _SOLVER, consistent=False),
        Method("M_c^dp", True, m_c_dp, ("window",)),
    )
}
"""By the paper's names (§9)."""


def _cumulative(noisy: Ints, places: Hierarchy, groups: int) -> CumulativeQIP:
    return CumulativeQIP(places.tree, noisy, groups)


def _by(backend: str, name: str, model: Model, solver: SolverOptions) -> Step:
    """Solve by a backend of choice; its answer, too, goes before the model's certificate."""
    deadline = Deadline.of(name, solver.time_limit)
    if backend == "fast":
        found = solved(name, deadline.fast(model), solver.time_limit)
    else:
        found = deadline.solve(model, backend)
    return require_proved(name, model, found, deadline.fast)


def _answer(step: Step) -> NDArray[np.int64]:
    return np.asarray(step.solution.x)
