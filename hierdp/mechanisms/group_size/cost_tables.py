"""The dynamic program of Fioretto & Van Hentenryck 2019, §6: a table of costs for every node and size.

Bottom-up, τ(v) = (v − ñ)² + φ(v), where φ(v) is the cost of the best division of v among the children (Fig.
5); top-down, the divisions are read off. Each φ(v) is a `CostTable`. The paper computes them by constraint
programs (M_dp^OP, here `by_program`) or by merging the children's slopes (M_H^dp, here `by_slopes`). The time
grows with the width of the domains. `solve` has a fast path without
tables.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models import CostTable, HierarchyQIP
from models.arithmetic.arrays import Ints
from solvers.fast.cost_table import merged_table, solve_cost_table
from solvers.prove import prove
from solvers.solution import NoAnswer, Solution
from solvers.solve import solve


@dataclass(frozen=True, eq=False)
class Table:
    """τ at ``start, start + 1, …``, and the best division of each of these values among the children."""

    start: int
    costs: Ints
    divisions: tuple[Ints, ...] = field(default=(), repr=False)


Divide = Callable[[CostTable, range], list[tuple[int, Ints]]]
"""φ(v) and its division for each of a range of values, given the children's tables (of any total)."""


def by_slopes(row: CostTable, values: range) -> list[tuple[int, Ints]]:
    """Merge the slopes of the children's tables (Eq. 4)."""
    least, costs = merged_table(row)
    return [(int(costs[v - least]), solve_cost_table(CostTable(row.tables, v, row.start))[0]) for v in values]


def by_program(backend: str = "cp-sat", time_limit: float | None = None) -> Divide:
    """Solve one constraint program for each value; the time limit covers all of them together."""
    end = None if time_limit is None else time.perf_counter() + time_limit

    def divide(row: CostTable, values: range) -> list[tuple[int, Ints]]:
        found = []
        for v in values:
            left = None if end is None else end - time.perf_counter()
            if left is not None and left <= 0:
                raise NoAnswer("time_limit", f"stopped after {time_limit:g} s, between two cells of a table")
            # One thread: starting more takes as long as the solve, and may change which optimum is found.
            row_of = CostTable(row.tables, v, row.start)
            solution = solve(row_of, backend, left, threads=1, stating_counts=True)
            if solution.status != "optimal" or solution.x is None:
                raise NoAnswer(solution.status, f"a cell of a table: {solution.message}")
            found.append((int(solution.objective or 0), np.asarray(solution.x)))
        return found

    return divide


def solve_by_tables(model: HierarchyQIP, divide: Divide) -> tuple[Solution, dict[tuple[int, int], Table]]:
    """The QIP's optimum by the two phases, and all the tables by (node, size).

    - model: an integer model. Give it a window, since the tables span the domains.
    - divide: `by_slopes`, or the result of `by_program`.

    Returns: status "infeasible" if the domains contain no consistent counts of the total.
    """
    started = time.perf_counter()
    nodes, sizes = model.counts.shape
    start, child = model.tree.children
    lower, upper = model.domain
    weights = model.node_weights
    tables: dict[tuple[int, int], Table] = {}

    def said(status: Any, x: Any = None, message: str = "") -> Solution:
        seconds = time.perf_counter() - started
        if x is None:
            return Solution("cost tables", "", status, solve_seconds=seconds, message=message)
        proof = prove(model, x)
        status = "optimal" if proof.optimal else "feasible"
        return Solution("cost tables", "", status, x, proof.objective, proof.bound, 0.0, seconds,
                        "" if proof.optimal else proof.reason, certificate=proof)  # fmt: skip

    try:
        for r in range(nodes - 1, -1, -1):
            for s in range(sizes):
                below = [tables[c, s] for c in child[start[r] : start[r + 1]].tolist()]
                domain = range(int(lower[r, s]), int(upper[r, s]) + 1)
                made = _table(int(model.counts[r, s]), int(weights[r]), domain, below, divide)
                if made is None:
                    return said("infeasible", message=f"node {r}, size {s}: no value in its domain"), tables
                tables[r, s] = made
        roots = [tables[0, s] for s in range(sizes)]
        low, high = _reach(roots)
        if not low <= model.total <= high:
            message = f"the root's domains add up to {low} … {high}, not to {model.total}"
            return said("infeasible", message=message), tables
        ((_, shares),) = divide(_row(roots, model.total), range(model.total, model.total + 1))
    except NoAnswer as failure:
        return said(failure.status, message=str(failure)), tables
    x = np.zeros((nodes, sizes), np.int64)
    x[0] = shares
    for r in range(nodes):
        children = child[start[r] : start[r + 1]]
        for s in range(sizes if children.size else 0):
            table = tables[r, s]
            x[children, s] = table.divisions[x[r, s] - table.start]
    return said("optimal", x), tables


def _table(noisy: int, weight: int, domain: range, below: list[Table], divide: Divide) -> Table | None:
    """Fig. 5 for one node and size, None if its domain is empty."""
    low, high = domain.start, domain.stop - 1
    if below:
        least, most = _reach(below)
        low, high = max(low, least), min(high, most)
    if low > high:
        return None
    values = range(low, high + 1)
    own = weight * (np.array(values) - noisy) ** 2
    if not below:
        return Table(low, own)
    found = divide(_row(below, low), values)
    return Table(low, own + np.array([cost for cost, _ in found]), tuple(parts for _, parts in found))


def _row(tables: list[Table], total: int) -> CostTable:
    return CostTable([table.costs for table in tables], total, np.array([table.start for table in tables]))


def _reach(tables: list[Table]) -> tuple[int, int]:
    """Least and largest sum of one value of each table."""
    least = sum(table.start for table in tables)
    return least, least + sum(table.costs.size - 1 for table in tables)
