"""The seven post-processing methods of Fioretto & Van Hentenryck 2019, from noisy counts to group sizes.

They use only noisy counts and public facts. The paper's mechanisms differ in the measurement (counts by size,
or cumulative ones), in the program, and in how it is solved; a user may choose another solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import differences
from hierdp.mechanisms.solver_options import Deadline, SolverOptions
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC
from hierdp.record.step import (
    NotProved,
    NotSolved,
    Solving,
    Step,
    require_proved,
    solve_all,
    solved,
)
from models import CostTable, CumulativeQIP, HierarchyQIP, Isotonic, Model, Tree
from models.arithmetic.arrays import Ints
from models.check.reader import NEVER
from models.programs.layout import layout_of

if TYPE_CHECKING:
    from hierdp.mechanisms.group_size.cost_tables import Divide
    from solvers.fast.hierarchy_blocks import Counts


INTEGER = "highs"
"""Default solver of the integer programs. With piecewise linear squares between whole numbers the programs
are linear, with tight relaxations. So HiGHS solves thousands of variables, and other solvers not even
hundreds."""

CELLS_A_BLOCK = 20_000_000
"""Cells of the sizes that are made consistent together. Solving them takes some 110 bytes each."""

CELLS_OF_A_TABLE = 4
"""Cells of a cost table in one task, each with a constraint program of some 5 ms."""


@dataclass(frozen=True)
class GroupSizeMethod:
    """One of the paper's mechanisms.

    - cumulative: whether cumulative sizes (Lemma 6) are measured, or counts by size (Lemma 4).
    - solving: makes the function that solves the problems, from `SolverOptions`.
    - takes: the `SolverOptions` that it supports.
    - consistent: whether its counts add up along the hierarchy. Those of rounded relaxations need not.
    - fitted: whether each region's cumulative sizes are made monotone on their own, before all regions'
      counts by size are made consistent. Otherwise one program does both.
    """

    name: str
    cumulative: bool
    solving: Callable[[SolverOptions], Solving]
    takes: tuple[str, ...]
    consistent: bool = True
    fitted: bool = False

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of one level's query: how many answers an entity changes, each by one.

        Adding or removing an entity in a group of size k changes only c_k or c_{k−1} of the group's region,
        by one; or two of its counts by size, each by one. This requires size 0 among the sizes, and public
        groups; otherwise losing its last entity would remove a group from every c_k. So the L2 sensitivity,
        of Gaussian noise, is its root: 1, or √2.
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

    def model(
        self, places: Hierarchy, noisy: Ints, groups: int, window: int | None, weights: Ints | None = None
    ) -> Model:
        """The program over all regions; `noisy` are cumulative sizes (Fig. 7) or counts by size (Fig. 3).

        Only the latter takes weights of the levels.
        """
        if self.cumulative and not self.fitted:
            return CumulativeQIP(places.tree, noisy, groups, integer=self.consistent)
        return HierarchyQIP(places.tree, noisy, groups, self.consistent, window, weights)


def post_process(
    noisy: Ints,
    places: Hierarchy,
    groups: int,
    method: GroupSizeMethod,
    solve: Solving,
    window: int | None = None,
    whole: Ints | None = None,
    overwrite: bool = False,
    weights: Ints | None = None,
) -> Ints:
    """A method's post-processing: counts by size, shape (nodes, sizes), from the measurement.

    - noisy, int64 or int32 array, shape (nodes, sizes): counts by size, or cumulative ones, as measured by
      the method.
    - whole, int64 array, shape (sizes,): the root's counts, if they are known; the result does not depend on
      it. Many sizes are made consistent in blocks, and its sums are how many groups each block holds. By
      default, these numbers are searched for.
    - overwrite: whether `noisy` may be overwritten by the result, which saves the memory of an array.
    - weights, int64 array, shape (levels,): of squares, if the levels' noise differs. Then all sizes are made
      consistent together, which takes twice the memory at 20 million cells.

    Raises `NotProved` if the answers of the blocks do not fit together; `NotSolved` if the chosen solver
    fails or runs out of time, or the window is too narrow.
    """
    regions, sizes = noisy.shape
    blocks = method.blocks(regions, sizes, window) if weights is None else [slice(0, sizes)]
    counts = noisy if overwrite else noisy.copy()
    if method.fitted:
        fit_regions(counts, places, groups, solve)
    if len(blocks) > 1:
        consistent_blocks(method, places, counts, groups, solve, blocks, whole)
        return counts
    model = method.model(places, counts, groups, window, weights)
    try:
        step = solve(method.step, model)
    except NotSolved as none:
        if none.status != "infeasible" or window is None:
            raise
        raise NotSolved("infeasible", f"{none}; choose a wider window than {window}, or none") from none
    answer = np.asarray(step.solution.x)
    if not method.consistent:
        answer = np.rint(answer).astype(np.int64)
    return differences(answer) if isinstance(model, CumulativeQIP) else answer


def consistent_blocks(
    method: GroupSizeMethod,
    places: Hierarchy,
    counts: Ints,
    groups: int,
    solve: Solving,
    blocks: Sequence[slice],
    whole: Ints | None = None,
) -> None:
    """The step over all regions in blocks of sizes, whose answers together are that of all sizes.

    Each block is optimal for its share of the groups, by its certificate. The blocks are so together because
    their root prices have one in common (`HierarchyQIP.root_prices`).

    - method, places, groups, solve, whole: as in `post_process`.
    - counts, int64 or int32 array, shape (nodes, sizes): the noisy counts, which the answers replace.
    - blocks: which sizes are made consistent together.

    Raises `NotProved` if they have none in common, or the shares do not add up.
    """
    parts = [counts[:, cut] for cut in blocks]
    answers: Sequence[Counts | None] = [None] * len(blocks)
    if whole is None:
        shares, answers = solve_blocks(places.tree, parts, groups)
    else:
        shares = [int(whole[cut].sum()) for cut in blocks]
    held, lowest, highest = 0, -NEVER, NEVER
    tasks = zip(map(method.block, blocks), parts, shares, answers, strict=True)
    steps = solve_all(partial(block_of_sizes, places.tree), tasks, solve, method.step)
    for part, step in zip(parts, steps, strict=True):
        model: Any = step.model
        low, high = model.root_prices(step.solution.x)
        held, lowest, highest = held + model.total, max(lowest, low), min(highest, high)
        part[:] = np.asarray(step.solution.x)
    if held != groups:
        raise NotProved(f"{method.step}: the blocks of sizes hold {held} groups, not {groups}")
    if lowest > highest:
        raise NotProved(f"{method.step}: a group moved from one block of sizes to another would cost less")


def block_of_sizes(
    tree: Tree, solve: Any, name: str, noisy: Ints, groups: int, answer: Counts | None
) -> Step:
    """Solve counts of some sizes over all regions, of so many groups; or prove an answer by `Step.solve`."""
    known = {} if answer is None else {"known": answer.of(tree)}
    step: Step = solve(name, HierarchyQIP(tree, noisy, groups), **known)
    return step


def solve_blocks(tree: Tree, parts: Sequence[Ints], groups: int) -> tuple[list[int], list[Counts]]:
    """How many groups each block of sizes holds in the optimum, and its answer, from their noisy counts."""
    from solvers.fast.hierarchy_blocks import block_answers

    shared = tree, layout_of(tree)
    return block_answers(
        tree, parts, groups, lambda work, items: execution.each(work, items, "blocks of sizes", shared)
    )


def paper_window(scale: float, law: str = GEOMETRIC) -> int:
    """δ = 3·⌈2λ²⌉, as in the paper: three times the variance of noise of scale λ; or 3·⌈σ²⌉."""
    return 3 * math.ceil((1 if law == GAUSSIAN else 2) * scale**2)


# --- solvers -------------------------------------------------------------------------------------------


def _fast(_: SolverOptions) -> Solving:
    return Step.solve


def _integer(solver: SolverOptions) -> Solving:
    return partial(_by, solver.backend or INTEGER, solver)


def _relaxed(solver: SolverOptions) -> Solving:
    return partial(_by, solver.backend or ("fast" if solver.window is None else "clarabel"), solver)


def _tables(solver: SolverOptions) -> Solving:
    """The dynamic program, with one constraint program for each cell of its cost tables (the paper's Fig. 5).

    The tables span the domains: without a window, all of 0 … G, for tiny G only.
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
    from hierdp.mechanisms.group_size.cost_tables import solve_by_tables

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
    from hierdp.mechanisms.group_size.cost_tables import by_program

    return by_program(backend, deadline.left())(row, values)  # the time left when the task begins


_SOLVER = ("backend", "time_limit")

METHODS = {
    method.name: method
    for method in (
        GroupSizeMethod("M_H", False, _integer, (*_SOLVER, "window")),
        GroupSizeMethod("M_H^r", False, _relaxed, (*_SOLVER, "window"), consistent=False),
        GroupSizeMethod("M_H^dp", False, _fast, ("window",)),
        GroupSizeMethod("M_dp^OP", False, _tables, (*_SOLVER, "window")),
        GroupSizeMethod("M_c", True, _integer, _SOLVER),
        GroupSizeMethod("M_c^r", True, _relaxed, _SOLVER, consistent=False),
        GroupSizeMethod("M_c^dp", True, _fast, ("window",), fitted=True),
    )
}
"""The methods, by their names in the paper (§9)."""


CELLS_A_TASK = 200_000
"""Cells of the regions that one task of `execution` makes monotone: some 50 ms of work."""

MONOTONE = "monotone sizes"
"""How the name of a step of some regions begins."""


def fit_regions(counts: Ints, places: Hierarchy, groups: int, solve: Solving) -> None:
    """Replace each region's noisy cumulative sizes by counts by size: monotone ones, from 0 to all groups.

    The model itself does the rounding of line 3 of the algorithm, which is optimal there.

    - counts, int64 or int32 array, shape (nodes, sizes)
    """
    regions, sizes = counts.shape
    cuts = execution.chunks(regions, CELLS_A_TASK // sizes)
    tasks = ((region_names(places, cut), counts[cut], groups) for cut in cuts)
    for cut, fitted in zip(cuts, solve_all(monotone_counts, tasks, solve, MONOTONE), strict=True):
        counts[cut] = fitted


def region_names(places: Hierarchy, nodes: slice) -> list[str]:
    """The names of some regions' fits, in level order."""
    names, start = [], 0
    for level, regions in zip(places.levels, places.names, strict=True):
        here = regions[max(0, nodes.start - start) : max(0, nodes.stop - start)]
        names += [f"{level} {region}" for region in here]
        start += regions.size
    return names


def monotone_counts(solve: Solving, names: Sequence[str], noisy: Ints, groups: int) -> Ints:
    """Counts by size of some regions, from their monotone fits, which are one model."""
    offsets = np.arange(len(noisy) + 1) * noisy.shape[1]
    fit = Isotonic(noisy.ravel(), p=2, lower=0, upper=groups, integer=True, offsets=offsets)
    step = solve(f"{MONOTONE} from {names[0]} on", fit, names)
    return differences(np.asarray(step.solution.x).reshape(noisy.shape))
