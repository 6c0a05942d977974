"""The models' programs as a user of cvxpy would write them.

Each takes a model's data and returns an answer in the model's shape. Nothing is tuned: the solvers are those
that cvxpy chooses if no commercial one is installed, with their default tolerances. If the program is over
the reals only, its answer is rounded.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from benchmarks.peers.shared import families, run_costs, tables_of


def solved(cost: Any, rows: list[Any], solver: str) -> None:
    cp.Problem(cp.Minimize(cost), rows).solve(solver)


def isotonic(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.size)
    cost = cp.sum_squares(x - y) if model.p == 2 else cp.norm1(x - y)
    solved(cost, [cp.diff(x) >= 0], "OSQP" if model.p == 2 else "CLARABEL")
    return x.value


def path(model: Any) -> Any:
    """Clustering and segmentation as a shortest path, with one variable for each possible run."""
    first, end, cost = run_costs(model)
    n = np.size(model.values)
    taken = cp.Variable(first.size, boolean=True)
    each, one = np.arange(first.size), np.ones(first.size)
    through = sp.csr_matrix((np.concatenate([one, -one]), (np.concatenate([first, end]), np.tile(each, 2))))
    ends = np.zeros(n + 1)
    ends[0], ends[-1] = 1, -1
    rows = [through @ taken == ends]
    if model.clusters is not None:
        rows.append(cp.sum(taken) == model.clusters)
    solved(cost @ taken, rows, "HIGHS")
    x = np.zeros(n)
    x[first[taken.value > 0.5]] = 1
    return x


def merging(model: Any) -> Any:
    y, w = np.asarray(model.estimates, float), np.asarray(model.weights, float)
    x = cp.Variable(y.shape[1], integer=True)
    cost = sum(cp.sum_squares(cp.multiply(np.sqrt(w[k]), x - y[k])) for k in range(len(y)))
    solved(cost, [], "SCIP")
    return x.value


def matching(model: Any) -> Any:
    (sizes, counts), (child_sizes, child_counts, _) = model.parent, model.children
    x = cp.Variable(model.shape, nonneg=True)
    cost = cp.sum(cp.multiply(np.abs(np.subtract.outer(sizes, child_sizes)), x))
    solved(cost, [cp.sum(x, axis=1) == counts, cp.sum(x, axis=0) == child_counts], "CLARABEL")
    return x.value


def fixed_sum(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.size, integer=True)
    squares = getattr(model, "p", 2) == 2
    cost = cp.sum_squares(x - y) if squares else cp.norm1(x - y)
    solved(cost, [x >= 0, cp.sum(x) == int(np.sum(model.total))], "SCIP" if squares else "HIGHS")
    return x.value


def fixed_sum_rounded(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.size)
    solved(cp.sum_squares(x - y), [x >= 0, cp.sum(x) == int(model.total)], "OSQP")
    return np.rint(x.value)


def chebyshev(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.size, integer=True)
    solved(cp.norm_inf(x - y), [x >= 0, cp.sum(x) == int(np.sum(model.total))], "HIGHS")
    return x.value


def sparsest(model: Any) -> Any:
    """In two steps: the least distance, then the fewest positives within it, ties by the change."""
    y = np.asarray(model.noisy, float)
    near = cp.Variable(y.size, integer=True)
    problem = cp.Problem(cp.Minimize(cp.norm_inf(near - y)), [near >= 0, cp.sum(near) == int(model.total)])
    distance = round(float(problem.solve("HIGHS")))
    x, used = cp.Variable(y.size, integer=True), cp.Variable(y.size, boolean=True)
    most = np.maximum(y + distance, 0)
    rows = [x >= 0, cp.sum(x) == int(model.total), cp.abs(x - y) <= distance, x <= cp.multiply(most, used)]
    solved(float(model.price) * cp.sum(used) + cp.norm1(x - y), rows, "HIGHS")
    return x.value


def rounding(model: Any) -> Any:
    v = np.asarray(model.values, float)
    x = cp.Variable(v.size, integer=True)
    rows = [x >= np.floor(v), x <= np.ceil(v), cp.sum(x) == int(model.total)]
    solved(cp.norm1(x - v), rows, "HIGHS")
    return x.value


def cost_table(model: Any) -> Any:
    """A binary for each cell of the tables; exactly one is chosen for each child."""
    child, value, cost = tables_of(model)
    taken = cp.Variable(child.size, boolean=True)
    rows = [cp.sum(taken[child == c]) == 1 for c in range(len(model.tables))]
    solved(cost @ taken, [*rows, value @ taken == int(model.total)], "HIGHS")
    x = np.zeros(len(model.tables))
    np.add.at(x, child, np.rint(taken.value) * value)
    return x


def hierarchy(model: Any) -> Any:
    return _hierarchy(model, integer=True)


def hierarchy_rounded(model: Any) -> Any:
    return np.rint(_hierarchy(model, integer=False))


def _hierarchy(model: Any, integer: bool) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.shape, integer=integer)
    rows = [x >= 0, cp.sum(x[0]) == int(model.total), *_sums(model.tree, x)]
    solved(cp.sum_squares(x - y), rows, "SCIP" if integer else "OSQP")
    return x.value


def cumulative(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.shape, integer=model.integer)
    rows = [x >= 0, x[0, -1] == int(model.total), cp.diff(x, axis=1) >= 0, *_sums(model.tree, x)]
    solved(cp.sum_squares(x - y), rows, "SCIP" if model.integer else "OSQP")
    return x.value


def tree_matching(model: Any) -> Any:
    e = np.asarray(model.estimates, float)
    x = cp.Variable(e.shape, integer=True)
    cost = cp.sum(cp.abs(x[:, :-1] - e[:, :-1]) @ np.asarray(model.steps, float))
    rows = [x >= 0, cp.diff(x, axis=1) >= 0, x[:, -1] == e[:, -1], *_sums(model.tree, x)]
    solved(cost, rows, "HIGHS")
    return x.value


def tree_chebyshev(model: Any) -> Any:
    y = np.asarray(model.noisy, float)
    x = cp.Variable(y.size, integer=True)
    rows = [x >= 0, x[0] == int(model.total), *_sums(model.tree, x)]
    solved(cp.norm_inf(x[1:] - y[1:]), rows, "HIGHS")
    return x.value


def inference(model: Any) -> Any:
    y, variance = np.asarray(model.noisy, float), np.broadcast_to(model.variance, np.shape(model.noisy))
    x = cp.Variable(y.size)
    solved(cp.sum_squares(cp.multiply(1 / np.sqrt(variance), x - y)), _sums(model.tree, x), "OSQP")
    return x.value


def non_negative(model: Any) -> Any:
    y, w = np.asarray(model.noisy, float), np.asarray(model.weights, float)
    x = cp.Variable(y.size, integer=model.integer)
    cost = cp.sum_squares(cp.multiply(np.sqrt(w), x - y))
    solved(cost, [x >= 0, *_sums(model.tree, x)], "SCIP" if model.integer else "OSQP")
    return x.value


def _sums(tree: Any, x: Any) -> list[Any]:
    return [cp.sum(x[children], axis=0) == x[parent] for parent, children in families(tree)]


def budget(model: Any) -> Any:
    a = np.asarray(model.weights, float)
    e = cp.Variable(a.size, pos=True)
    solved(a @ cp.power(e, -2), [cp.sum(e) == float(model.epsilon)], "CLARABEL")
    return e.value


def strategy(model: Any) -> Any:
    x = cp.Variable((model.bins, model.bins), PSD=True)
    solved(cp.matrix_frac(np.asarray(model.workload, float).T, x), [cp.diag(x) <= 1], "SCS")
    return x.value
