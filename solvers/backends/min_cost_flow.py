"""OR-tools' minimum cost flow: programs whose rows are a network, with whole data and convex costs.

Each row is a node and each variable an arc: after some rows have changed sign, every column has at most one
+1 and one −1. If one of the two is missing, the arc runs from or to the ground. The sum of a row is a
variable, too, between the row's bounds. Such a program has a whole optimum even without integrality, and a
flow finds it. A convex cost becomes parallel arcs, one for each linear piece; the cheapest fill first.
Squares need one arc for each unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from models.arithmetic.arrays import Flags, Ints
from models.programs.program import Program
from models.programs.terms import Term
from solvers.backends import session
from solvers.backends.record import Backend
from solvers.solution import Answer, Effort, NoAnswer, Status

BACKEND = Backend(
    "min-cost-flow", "min-cost flow (OR-tools)", "ortools", "Apache-2.0", __name__, integer=True,
    integer_quadratic=True, absolute=True, table=True, network_only=True, tolerant=False,
)  # fmt: skip

MOST_ARCS = 2_000_000

_LARGEST = 2**53
"""Programs hold their bounds as floats, in which not all larger whole numbers are exact."""

_STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "INFEASIBLE": "infeasible",
    "BAD_COST_RANGE": "unsupported",
    "BAD_CAPACITY_RANGE": "unsupported",
}


class Session(session.Session):
    """Nodes, arcs and supplies; it uses one thread, and has no time limit."""

    def __init__(self, program: Program, effort: Effort) -> None:  # noqa: ARG002
        self._size = program.size
        tail, head = _arcs(program.matrix)
        low, high, endless = _bounds(program)
        self._of, at, cost = _pieces(program, low, high, endless)
        self._room, self._cost = at[1] - at[0], cost
        self._tail, self._head = tail[self._of], head[self._of]
        self._start = low
        # Every arc starts at its lower bound; the pieces carry the rest.
        self._supply = np.zeros(program.matrix.shape[0] + 1, dtype=np.int64)
        np.add.at(self._supply, head, low)
        np.subtract.at(self._supply, tail, low)

        self._constant = int(_cost(program, np.arange(low.size), low).sum())

    def run(self, seconds: float | None) -> Answer:  # noqa: ARG002
        """Solve; the optimum is exact, so it is also the bound."""
        from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

        flow = SimpleMinCostFlow()
        arcs = flow.add_arcs_with_capacity_and_unit_cost(self._tail, self._head, self._room, self._cost)
        flow.set_nodes_supplies(np.arange(self._supply.size), self._supply)
        ended = flow.solve()
        status = _STATUS.get(ended.name, "error")
        if status != "optimal":
            return Answer(status, message="" if status == "infeasible" else f"the flow ended {ended.name}")
        x = self._start.copy()
        np.add.at(x, self._of, flow.flows(arcs))
        return Answer("optimal", x[: self._size], float(self._constant + flow.optimal_cost()))


def _unfit(why: str) -> NoAnswer:
    return NoAnswer("unsupported", f"no minimum cost flow: {why}")


def _whole(values: Any, what: str) -> Ints:
    array = np.asarray(values, float)
    if np.any(array != np.rint(array)):
        raise _unfit(f"a {what} is not whole")
    if array.size and np.abs(array).max() >= _LARGEST:
        raise _unfit(f"a {what} is beyond 2**53")
    return array.astype(np.int64)


def _arcs(matrix: Any) -> tuple[Ints, Ints]:
    """The tail and head of each variable, then of each row's sum; the ground is the last node."""
    rows, size = matrix.shape
    columns = sp.hstack([matrix, -sp.identity(rows)], format="csc")
    columns.eliminate_zeros()
    held = np.diff(columns.indptr)
    if np.any(np.abs(columns.data) != 1):
        raise _unfit("a coefficient is neither 1 nor -1")
    if held.max(initial=0) > 2:
        raise _unfit("a variable is in more than two rows")
    row, sign = columns.indices, columns.data > 0
    of = np.repeat(np.arange(size + rows), held)
    sign ^= _flipped(columns, held)[row]
    tail = np.full(size + rows, rows, dtype=np.int64)
    head = np.full(size + rows, rows, dtype=np.int64)
    tail[of[~sign]], head[of[sign]] = row[~sign], row[sign]
    return tail, head


def _flipped(columns: Any, held: Ints) -> Flags:
    """Which rows have to change sign so that every variable in two rows leaves one and enters the other."""
    from scipy.sparse.csgraph import connected_components  # it loads SciPy's linear algebra

    rows = columns.shape[0]
    first = columns.indptr[:-1][held == 2]
    one, other = columns.indices[first], columns.indices[first + 1]
    alike = columns.data[first] == columns.data[first + 1]  # then exactly one of the two rows changes
    # Node i means "row i keeps its sign", node i + rows "it changes". Nodes of one component imply each
    # other.
    ends = np.concatenate([np.where(alike, other + rows, other), np.where(alike, other, other + rows)])
    graph = sp.coo_matrix((np.ones(ends.size), (np.concatenate([one, one + rows]), ends)), (2 * rows,) * 2)
    label = connected_components(graph, directed=False)[1]
    if np.any(label[:rows] == label[rows:]):
        raise _unfit("no signs of the rows make every variable leave one row and enter another")
    return np.asarray(label[:rows] > label[rows:])


def _bounds(program: Program) -> tuple[Ints, Ints, tuple[Any, Any]]:
    """Whole bounds of the variables and of the rows' sums, and which of them are infinite.

    A basic optimal flow is a sum of bounds and of centers, so the sum of all these bounds every arc.
    """
    low, high = (np.concatenate(pair) for pair in zip(program.bounds, program.row_bounds, strict=True))
    low[: program.size] = np.where(program.integer, np.ceil(low[: program.size]), low[: program.size])
    high[: program.size] = np.where(program.integer, np.floor(high[: program.size]), high[: program.size])
    if np.any(low > high):
        raise NoAnswer("infeasible", "the bounds of a variable or a row leave no value")
    endless = np.isinf(low), np.isinf(high)
    stated = [np.where(np.isfinite(side), np.abs(side), 0) for side in (low, high)]
    centers = sum(float(np.abs(np.asarray(term.data[1], float)).sum()) for term in program.objective)
    reach = np.ceil(sum(float(side.sum()) for side in stated) + centers) + 1
    low, high = np.where(endless[0], -reach, low), np.where(endless[1], reach, high)
    return _whole(low, "bound"), _whole(high, "bound"), endless


def _pieces(
    program: Program, low: Ints, high: Ints, endless: tuple[Any, Any]
) -> tuple[Ints, tuple[Ints, Ints], Ints]:
    """The linear pieces of the variables' costs: the variable, the two ends, and the cost of a unit."""
    owner, cuts = [np.arange(low.size)] * 2, [low, high]
    for term in program.objective:
        least, most = low[term.index], high[term.index]
        if np.unique(term.index).size < term.index.size:
            raise _unfit("one term has a variable twice")
        if term.kind == "absolute":
            owner.append(term.index)
            cuts.append(np.clip(_whole(term.data[1], "center"), least, most))
        elif term.kind != "linear":
            count = most - least + 1
            if count.sum() > MOST_ARCS:
                raise _unfit(
                    f"squares over {count.sum():,} units need an arc each; {MOST_ARCS:,} is the most"
                )
            owner.append(np.repeat(term.index, count))
            cuts.append(np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - least, count))
    of, at = np.unique(np.array([np.concatenate(owner), np.concatenate(cuts)]), axis=1)
    inside = of[1:] == of[:-1]
    of, left, right = of[1:][inside], at[:-1][inside], at[1:][inside]
    slope, rest = np.divmod(_cost(program, of, right) - _cost(program, of, left), right - left)
    if rest.any():
        raise _unfit("a cost is not whole")
    same = of[1:] == of[:-1]
    if np.any((slope[1:] < slope[:-1])[same]):
        raise _unfit("a cost is not convex")
    falls = (slope < 0) & endless[1][of] & (right == high[of])
    falls |= (slope > 0) & endless[0][of] & (left == low[of])
    if falls.any():
        raise _unfit("the cost of a variable without a bound falls without end")
    return of, (left, right), slope


def _cost(program: Program, of: Ints, at: Ints) -> Ints:
    """The costs of these variables at these whole numbers."""
    total = np.zeros(at.size, dtype=np.int64)
    for term in program.objective:
        place = np.full(program.size + program.matrix.shape[0], -1)
        place[term.index] = np.arange(term.index.size)
        held = place[of] >= 0
        total[held] += _whole(_term(term, place[of[held]], at[held].astype(float)), "cost")
    return total


def _term(term: Term, which: Ints, at: Any) -> Any:
    weight, center = (np.asarray(part, float)[which] for part in term.data)
    if term.kind == "linear":
        return weight * at
    if term.kind == "table":
        first = np.cumsum([0, *(table.size for table in term.tables)])[which]
        return np.concatenate(term.tables)[first + (at - center).astype(np.int64)]
    return weight * (np.abs(at - center) if term.kind == "absolute" else (at - center) ** 2)
