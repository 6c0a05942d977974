"""The models' programs as a user of Pyomo would write them, for HiGHS, the solver that comes with hierdp.

Each takes a model's data and returns an answer in the model's shape. If the solver does not accept a program,
it raises, and that is the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from benchmarks.peers.shared import run_costs, tables_of

WHOLE, REAL = pyo.NonNegativeIntegers, pyo.NonNegativeReals


def solved(state: Callable[[Any], Any], shape: Any = None) -> Any:
    m = pyo.ConcreteModel()
    m.cost = pyo.Objective(expr=state(m))
    try:
        pyo.SolverFactory("highs").solve(m)
    except Exception as refusal:  # of any kind: the message does not name the cause
        degree = m.cost.polynomial_degree()
        what = {None: "no such powers", 2: "no squares of whole numbers"}.get(degree, "not this program")
        raise RuntimeError(f"HiGHS takes {what}: {type(refusal).__name__} of Pyomo") from refusal
    x = np.array([pyo.value(m.x[i]) for i in m.x])
    return x if shape is None else x.reshape(shape)


def squares(m: Any, y: Any, w: Any = None) -> Any:
    return sum((1 if w is None else w[i]) * (m.x[i] - y[i]) ** 2 for i in m.x)


def absolutes(m: Any, y: Any, over: Any = None) -> Any:
    """Variables t ≥ |x − y|."""
    m.each = pyo.Set(initialize=list(m.x) if over is None else over)
    m.t = pyo.Var(m.each)
    m.above, m.below = pyo.ConstraintList(), pyo.ConstraintList()
    for i in m.each:
        m.above.add(m.t[i] >= m.x[i] - y[i])
        m.below.add(m.t[i] >= y[i] - m.x[i])
    return m.t


def largest(m: Any, y: Any, over: Any) -> Any:
    """A variable d ≥ all |x − y|."""
    m.d = pyo.Var()
    m.above = pyo.Constraint(over, rule=lambda m, i: m.d >= m.x[i] - y[i])
    m.below = pyo.Constraint(over, rule=lambda m, i: m.d >= y[i] - m.x[i])
    return m.d


def isotonic(model: Any) -> Any:
    y = np.asarray(model.noisy, float).tolist()

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(len(y)))
        m.order = pyo.Constraint(range(len(y) - 1), rule=lambda m, i: m.x[i] <= m.x[i + 1])
        return squares(m, y) if model.p == 2 else sum(absolutes(m, y).values())

    return solved(state)


def path(model: Any) -> Any:
    """Clustering and segmentation as a shortest path, with one variable for each possible run."""
    first, end, cost = (part.tolist() for part in run_costs(model))
    n = np.size(model.values)
    leave: list[list[int]] = [[] for _ in range(n + 1)]
    enter: list[list[int]] = [[] for _ in range(n + 1)]
    for run, (i, j) in enumerate(zip(first, end, strict=True)):
        leave[i].append(run)
        enter[j].append(run)

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(len(first)), domain=pyo.Binary)
        m.flow = pyo.Constraint(
            range(n),
            rule=lambda m, i: sum(m.x[r] for r in leave[i]) - sum(m.x[r] for r in enter[i]) == int(i == 0),
        )
        if model.clusters is not None:
            m.runs = pyo.Constraint(expr=sum(m.x[r] for r in m.x) == model.clusters)
        return sum(cost[r] * m.x[r] for r in m.x)

    x = np.zeros(n)
    x[np.asarray(first)[solved(state) > 0.5]] = 1
    return x


def merging(model: Any) -> Any:
    y, w = np.asarray(model.estimates).tolist(), np.asarray(model.weights).tolist()

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(len(y[0])), domain=pyo.Integers)
        return sum(squares(m, at, weight) for at, weight in zip(y, w, strict=True))

    return solved(state)


def matching(model: Any) -> Any:
    (sizes, counts), (below, child_counts, _) = model.parent, model.children

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(sizes.size), range(below.size), domain=REAL)
        m.parent = pyo.Constraint(
            range(sizes.size), rule=lambda m, i: sum(m.x[i, j] for j in range(below.size)) == int(counts[i])
        )
        m.child = pyo.Constraint(
            range(below.size),
            rule=lambda m, j: sum(m.x[i, j] for i in range(sizes.size)) == int(child_counts[j]),
        )
        return sum(abs(int(sizes[i]) - int(below[j])) * m.x[i, j] for i, j in m.x)

    return solved(state, model.shape)


def fixed_sum(model: Any) -> Any:
    y = np.asarray(model.noisy).tolist()

    def state(m: Any) -> Any:
        _total(m, len(y), model)
        return squares(m, y) if getattr(model, "p", 2) == 2 else sum(absolutes(m, y).values())

    return solved(state)


def chebyshev(model: Any) -> Any:
    y = np.asarray(model.noisy).tolist()

    def state(m: Any) -> Any:
        _total(m, len(y), model)
        return largest(m, y, range(len(y)))

    return solved(state)


def sparsest(model: Any) -> Any:
    """In two steps: the least distance, then the fewest positives within it, ties by the change."""
    y = np.asarray(model.noisy).tolist()
    distance = int(np.abs(np.rint(chebyshev(model)) - y).max())

    def state(m: Any) -> Any:
        _total(m, len(y), model)
        m.used = pyo.Var(range(len(y)), domain=pyo.Binary)
        m.on = pyo.Constraint(range(len(y)), rule=lambda m, i: m.x[i] <= max(y[i] + distance, 0) * m.used[i])
        m.box = pyo.Constraint(range(len(y)), rule=lambda m, i: (y[i] - distance, m.x[i], y[i] + distance))
        return model.price * sum(m.used.values()) + sum(absolutes(m, y).values())

    return solved(state)


def _total(m: Any, n: int, model: Any) -> None:
    m.x = pyo.Var(range(n), domain=WHOLE)
    m.total = pyo.Constraint(expr=sum(m.x[i] for i in m.x) == int(np.sum(model.total)))


def rounding(model: Any) -> Any:
    v = np.asarray(model.values, float).tolist()

    def state(m: Any) -> Any:
        sides = [(int(np.floor(at)), int(np.ceil(at))) for at in v]
        m.x = pyo.Var(range(len(v)), domain=pyo.Integers, bounds=dict(enumerate(sides)))
        m.total = pyo.Constraint(expr=sum(m.x[i] for i in m.x) == int(model.total))
        return sum(absolutes(m, v).values())

    return solved(state)


def cost_table(model: Any) -> Any:
    """A binary for each cell of the tables; exactly one is chosen for each child."""
    child, value, cost = (part.tolist() for part in tables_of(model))
    cells: list[list[int]] = [[] for _ in model.tables]
    for k, c in enumerate(child):
        cells[c].append(k)

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(len(child)), domain=pyo.Binary)
        m.one = pyo.Constraint(range(len(cells)), rule=lambda m, c: sum(m.x[k] for k in cells[c]) == 1)
        m.total = pyo.Constraint(expr=sum(value[k] * m.x[k] for k in m.x) == int(model.total))
        return sum(cost[k] * m.x[k] for k in m.x)

    x = np.zeros(len(cells))
    np.add.at(x, child, np.rint(solved(state)) * value)
    return x


def budget(model: Any) -> Any:
    a = np.asarray(model.weights, float).tolist()

    def state(m: Any) -> Any:
        m.x = pyo.Var(range(len(a)), bounds=(1e-9, None), initialize=float(model.epsilon) / len(a))
        m.total = pyo.Constraint(expr=sum(m.x[i] for i in m.x) == float(model.epsilon))
        return sum(a[i] / m.x[i] ** 2 for i in m.x)

    return solved(state)
