"""The seven post-processing methods of Fioretto & Van Hentenryck 2019, from noisy counts to group sizes.

They use only noisy counts and public facts. The paper's mechanisms differ in the measurement (counts by size,
or cumulative ones), in the program, and in how it is solved; a user may choose another solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.histogram import differences
from hierdp.mechanisms.deadline import Deadline
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.record.step import (
    NotProved,
    NotSolved,
    Problem,
    Solving,
    Step,
    require_proved,
    solve_each,
    solved,
)
from models import CostTable, CumulativeQIP, HierarchyQIP, Isotonic, Model, Tree
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from solvers.cost_tables import Divide


INTEGER = "highs"
"""Default solver of the integer programs. With piecewise linear squares between whole numbers the programs
are linear, with tight relaxations. So HiGHS solves thousands of variables, and other solvers not even
hundreds."""

CELLS_A_TASK = 200_000
"""Cells of the regions that one task of `execution` makes monotone: some 50 ms of work."""

SIDE_BY_SIDE = 1_000
"""From this number of regions on, the regions of a task form one model, with one line in the manifest. With
separate models, most of the time would go to handling tiny models."""

CELLS_A_BLOCK = 20_000_000
"""Cells of the sizes that are made consistent together. Solving them takes some 110 bytes each."""

AT_ONCE = "monotone sizes"
"""How the name of a step of many regions begins."""

CELLS_OF_A_TABLE = 4
"""Cells of a cost table in one task, each with a constraint program of some 20 ms."""


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
        The name in the paper.
    cumulative : bool
        Whether cumulative sizes (Lemma 6) are measured, or counts by size (Lemma 4).
    solving : callable
        Makes the function that solves the problems, from `SolverOptions`.
    takes : tuple of str
        The `SolverOptions` that it supports.
    consistent : bool
        Whether its counts add up along the hierarchy. Those of rounded relaxations need not.
    fitted : bool
        Whether each region's cumulative sizes are made monotone on their own, before all regions' counts
        by size are made consistent. Otherwise one program does both.
    """

    name: str
    cumulative: bool
    solving: Callable[[SolverOptions], Solving]
    takes: tuple[str, ...]
    consistent: bool = True
    fitted: bool = False

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of one level's query.

        Adding or removing an entity in a group of size k changes only c_k or c_{k−1} of the group's region,
        by one; or two of its counts by size, each by one. This requires size 0 among the sizes, and public
        groups; otherwise losing its last entity would remove a group from every c_k.
        """
        return 1 if self.cumulative else 2

    def query(self, level: str) -> str:
        """The measurement of a level, as named in the budget."""
        return f"{'cumulative sizes' if self.cumulative else 'sizes'} by {level}"

    @property
    def step(self) -> str:
        """The name of the step over all regions."""
        joint = self.cumulative and not self.fitted
        what = "monotone and consistent" if joint else "consistency of all regions"
        return what if self.consistent else f"relaxed{',' if joint else ''} {what}"

    def block(self, sizes: slice) -> str:
        """The name of the step over all regions, for some sizes."""
        return f"{self.step}, sizes {sizes.start} to {sizes.stop - 1}"

    def blocks(self, regions: int, sizes: int, window: int | None) -> list[slice]:
        """The sizes that are made consistent together: all if they are few, or one program needs them."""
        apart = self.solving is _fast and window is None
        return execution.chunks(sizes, CELLS_A_BLOCK // regions if apart else sizes)

    def model(self, places: Hierarchy, noisy: Ints, groups: int, window: int | None) -> Model:
        """The program over all regions; `noisy` are cumulative sizes (Fig. 7) or counts by size (Fig. 3)."""
        if self.cumulative and not self.fitted:
            return CumulativeQIP(places.tree, noisy, groups, integer=self.consistent)
        return HierarchyQIP(places.tree, noisy, groups, integer=self.consistent, window=window)


def post_process(
    noisy: Ints,
    places: Hierarchy,
    groups: int,
    method: Method,
    solver: SolverOptions | None = None,
    solving: Solving | None = None,
    side_by_side: bool | None = None,
    blocks: Sequence[slice] | None = None,
    shares: Shares | None = None,
) -> Repaired:
    """A method's post-processing: counts by size, from the measurement.

    Parameters
    ----------
    noisy : int64 array, shape (nodes, sizes)
        Counts by size, or cumulative ones, as measured by the method.
    places : Hierarchy
    groups : int
        The public number of groups.
    method : Method
    solver : SolverOptions, optional
        The solver, its time limit, and truncated domains.
    solving : callable, optional
        Solves the problems. Default: the solver of the method and of `solver`.
    side_by_side : bool, optional
        Whether the fits of many regions are one step. Default: True from `SIDE_BY_SIDE` regions on.
    blocks : sequence of slice, optional
        Which sizes are made consistent together. Default: `Method.blocks`.
    shares : callable, optional
        What says how many groups each block holds. Default: a search.

    Raises
    ------
    NotProved
        If the answers of the blocks do not fit together.
    NotSolved
        If the chosen solver fails or runs out of time, or a window is too narrow.
    """
    solver = solver or SolverOptions()
    solving = solving or method.solving(solver)
    fits: list[Step] = []
    if method.fitted:
        # Algorithm 1. The model itself does the rounding of line 3, which is optimal there.
        several = len(noisy) >= SIDE_BY_SIDE if side_by_side is None else side_by_side
        names, make = region_names(places), monotone_at_once if several else monotone
        tasks = [(names[cut], noisy[cut], groups) for cut in together(*noisy.shape)]
        fits = list(solve_each(make, tasks, solving, "monotone sizes"))
        fitted = np.concatenate([np.asarray(fit.solution.x) for fit in fits])
        noisy = differences(fitted.reshape(noisy.shape))
    blocks = method.blocks(len(noisy), noisy.shape[1], solver.window) if blocks is None else blocks
    if len(blocks) > 1:
        steps = consistent_blocks(method, places, noisy, groups, solving, blocks, shares or share_out)
        return Repaired(np.concatenate([step.solution.x for step in steps], axis=1), (*fits, *steps))
    model = method.model(places, noisy, groups, solver.window)
    try:
        step = solving(method.step, model)
    except NotSolved as none:
        if none.status != "infeasible" or solver.window is None:
            raise
        wider = f"{none}; choose a wider window than {solver.window}, or none"
        raise NotSolved("infeasible", wider) from none
    answer = np.asarray(step.solution.x)
    if not method.consistent:
        answer = np.rint(answer).astype(np.int64)
    counts = differences(answer) if isinstance(model, CumulativeQIP) else answer
    return Repaired(counts, (*fits, step))


Shares = Callable[[Tree, Sequence[Ints], int], Iterable[int]]
"""From a tree, the noisy counts of some blocks of sizes, and the number of groups, to that of each block."""


def consistent_blocks(
    method: Method,
    places: Hierarchy,
    noisy: Ints,
    groups: int,
    solving: Solving,
    blocks: Sequence[slice],
    shares: Shares,
) -> list[Step]:
    """The step over all regions in blocks of sizes, whose answers together are that of all sizes.

    Each block is optimal for its share of the groups, by its certificate. The blocks are so together because
    their root prices have one in common (`HierarchyQIP.root_prices`).

    Raises
    ------
    NotProved
        If they have none, or the shares do not add up.
    """
    parts = [noisy[:, cut] for cut in blocks]
    names, held = [method.block(cut) for cut in blocks], []
    tasks = []
    for name, part, share in zip(names, parts, shares(places.tree, parts, groups), strict=True):
        held.append(share)
        tasks.append((name, part, share))
    steps = list(solve_each(partial(block_of_sizes, places.tree), tasks, solving, method.step))
    ends: list[Any] = [step.model.root_prices(step.solution.x) for step in steps]  # type: ignore[attr-defined]
    if sum(held) != groups:
        raise NotProved(f"{method.step}: the blocks of sizes hold {sum(held)} groups, not {groups}")
    if max(low for low, _ in ends) > min(high for _, high in ends):
        raise NotProved(f"{method.step}: a group moved from one block of sizes to another would cost less")
    return steps


def block_of_sizes(tree: Tree, name: str, noisy: Ints, groups: int) -> list[Problem]:
    """Counts of some sizes over all regions, of so many groups."""
    return [(name, HierarchyQIP(tree, noisy, groups), ())]


def share_out(tree: Tree, parts: Sequence[Ints], groups: int) -> list[int]:
    """How many groups each block of sizes holds in the optimum."""
    from solvers.fast.hierarchy_blocks import block_totals

    return block_totals(
        parts, groups, lambda work, items: execution.each(work, items, "groups of each block", (tree,))
    )


def region_names(places: Hierarchy) -> list[str]:
    """The names of the regions' fits, in level order."""
    return [
        f"{level} {region}"
        for level, regions in zip(places.levels, places.names, strict=True)
        for region in regions
    ]


def together(regions: int, sizes: int) -> list[slice]:
    """The regions that one task makes monotone."""
    return execution.chunks(regions, CELLS_A_TASK // sizes)


def monotone(names: Sequence[str], noisy: Ints, groups: int) -> list[Problem]:
    """Monotone fits of some regions, one model each."""
    fits = [Isotonic(row, p=2, lower=0, upper=groups, integer=True) for row in noisy]
    return [(name, fit, ()) for name, fit in zip(names, fits, strict=True)]


def monotone_at_once(names: Sequence[str], noisy: Ints, groups: int) -> list[Problem]:
    """Monotone fits of some regions, as one model."""
    offsets = np.arange(len(noisy) + 1) * noisy.shape[1]
    fit = Isotonic(noisy.ravel(), p=2, lower=0, upper=groups, integer=True, offsets=offsets)
    return [(f"{AT_ONCE} from {names[0]} on", fit, names)]


def paper_window(scale: float) -> int:
    """δ = 3·⌈2λ²⌉, as in the paper: three times the variance of noise of scale λ."""
    return 3 * math.ceil(2 * scale**2)


# --- solvers -------------------------------------------------------------------------------------------


def _fast(_: SolverOptions) -> Solving:
    return Step.solve


def _integer(solver: SolverOptions) -> Solving:
    """An integer programming solver."""
    return partial(_by, solver.backend or INTEGER, solver)


def _relaxed(solver: SolverOptions) -> Solving:
    """The fast path, or Clarabel for truncated domains."""
    return partial(_by, solver.backend or ("fast" if solver.window is None else "clarabel"), solver)


def _tables(solver: SolverOptions) -> Solving:
    """The dynamic program, with one constraint program for each cell of its cost tables (Fig.

    5). The tables span the domains: without a window, all of 0 … G, for tiny G only.
    """
    return partial(_by_tables, solver.backend or "cp-sat", solver)


def _by(backend: str, solver: SolverOptions, name: str, model: Model, _: Sequence[str] = ()) -> Step:
    """Solve by a chosen backend; the model's certificate checks its answer, too."""
    deadline = Deadline.of(name, solver.time_limit)
    if backend == "fast":
        found = solved(name, deadline.fast(model), solver.time_limit)
    else:
        found = deadline.solve(model, backend)
    return require_proved(name, model, found, deadline.fast)


def _by_tables(backend: str, solver: SolverOptions, name: str, model: Model, _: Sequence[str] = ()) -> Step:
    from solvers.cost_tables import solve_by_tables

    assert isinstance(model, HierarchyQIP)
    deadline = Deadline.of(name, solver.time_limit)
    solution = solve_by_tables(model, _by_programs(backend, deadline))[0]
    found = solved(name, solution, deadline.limit)
    return require_proved(name, model, found, deadline.fast)


def _by_programs(backend: str, deadline: Deadline) -> Divide:
    """`by_program`, with some cells per task."""

    def divide(row: CostTable, values: range) -> list[tuple[int, Ints]]:
        cuts = execution.chunks(len(values), CELLS_OF_A_TABLE)
        tasks = [(row, values[cut], backend, deadline) for cut in cuts]
        return [cell for part in execution.each(_cells, tasks, "a table of costs") for cell in part]

    return divide


def _cells(row: CostTable, values: range, backend: str, deadline: Deadline) -> list[tuple[int, Ints]]:
    from solvers.cost_tables import by_program

    return by_program(backend, deadline.left())(row, values)  # the time left when the task begins


_SOLVER = ("backend", "time_limit")

METHODS = {
    method.name: method
    for method in (
        Method("M_H", False, _integer, (*_SOLVER, "window")),
        Method("M_H^r", False, _relaxed, (*_SOLVER, "window"), consistent=False),
        Method("M_H^dp", False, _fast, ("window",)),
        Method("M_dp^OP", False, _tables, (*_SOLVER, "window")),
        Method("M_c", True, _integer, _SOLVER),
        Method("M_c^r", True, _relaxed, _SOLVER, consistent=False),
        Method("M_c^dp", True, _fast, ("window",), fitted=True),
    )
}
"""The methods, by their names in the paper (§9)."""
