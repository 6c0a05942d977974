"""The models over trees as a user of Pyomo would write them; see `with_pyomo`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from benchmarks.peers.shared import families
from benchmarks.peers.with_pyomo import REAL, WHOLE, absolutes, largest, solved, squares


def hierarchy(model: Any) -> Any:
    y = np.asarray(model.noisy)

    def state(m: Any) -> Any:
        _grid(m, model, y.shape, WHOLE)
        m.total = pyo.Constraint(expr=sum(m.x[0, s] for s in range(y.shape[1])) == int(model.total))
        return squares(m, _cells(y))

    return solved(state, y.shape)


def cumulative(model: Any) -> Any:
    y = np.asarray(model.noisy)

    def state(m: Any) -> Any:
        _grid(m, model, y.shape, WHOLE if model.integer else REAL)
        _rises(m, y.shape)
        m.total = pyo.Constraint(expr=m.x[0, y.shape[1] - 1] == int(model.total))
        return squares(m, _cells(y))

    return solved(state, y.shape)


def tree_matching(model: Any) -> Any:
    e, steps = np.asarray(model.estimates), np.asarray(model.steps).tolist()
    nodes, sizes = e.shape

    def state(m: Any) -> Any:
        _grid(m, model, e.shape, WHOLE)
        _rises(m, e.shape)
        m.groups = pyo.Constraint(range(nodes), rule=lambda m, r: m.x[r, sizes - 1] == int(e[r, -1]))
        cells = [(r, s) for r in range(nodes) for s in range(sizes - 1)]
        t = absolutes(m, _cells(e), cells)
        return sum(steps[s] * t[r, s] for r, s in cells)

    return solved(state, e.shape)


def _grid(m: Any, model: Any, shape: Any, domain: Any) -> None:
    nodes, sizes = shape
    below = dict(families(model.tree))
    m.x = pyo.Var(range(nodes), range(sizes), domain=domain)
    m.sums = pyo.Constraint(
        list(below), range(sizes), rule=lambda m, r, s: sum(m.x[int(c), s] for c in below[r]) == m.x[r, s]
    )


def _rises(m: Any, shape: Any) -> None:
    m.rises = pyo.Constraint(
        range(shape[0]), range(shape[1] - 1), rule=lambda m, r, s: m.x[r, s] <= m.x[r, s + 1]
    )


def _cells(y: Any) -> dict[tuple[int, int], int]:
    return {(r, s): value for r, row in enumerate(y.tolist()) for s, value in enumerate(row)}


def tree_chebyshev(model: Any) -> Any:
    y = np.asarray(model.noisy).tolist()

    def state(m: Any) -> Any:
        _nodes(m, model, WHOLE)
        m.total = pyo.Constraint(expr=m.x[0] == int(model.total))
        return largest(m, y, range(1, len(y)))

    return solved(state)


def inference(model: Any) -> Any:
    y = np.asarray(model.noisy).tolist()
    variance = np.broadcast_to(model.variance, len(y)).tolist()

    def state(m: Any) -> Any:
        _nodes(m, model, pyo.Reals)
        return squares(m, y, [1 / v for v in variance])

    return solved(state)


def non_negative(model: Any) -> Any:
    y, w = np.asarray(model.noisy).tolist(), np.asarray(model.weights).tolist()

    def state(m: Any) -> Any:
        _nodes(m, model, WHOLE if model.integer else REAL)
        return squares(m, y, w)

    return solved(state)


def _nodes(m: Any, model: Any, domain: Any) -> None:
    below = dict(families(model.tree))
    m.x = pyo.Var(range(model.tree.size), domain=domain)
    m.sums = pyo.Constraint(list(below), rule=lambda m, r: sum(m.x[int(c)] for c in below[r]) == m.x[r])
