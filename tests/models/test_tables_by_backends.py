"""The models of tables of several attributes, by every backend that takes them."""

import numpy as np
import pytest

from models import BlockInference, JointTables, Tree, Workload, WorkloadLeastSquares, WorkloadRounding
from solvers import solve
from solvers.backends.table import find
from tests.marks import quick

QUERIES = Workload.marginals((3, 2), [(), (0,), (0, 1)])
TOTAL = Workload.marginals((3, 2), [()])
RNG = np.random.default_rng(1)
TRUE = RNG.integers(0, 6, (3, 6))
NOISY = QUERIES.answers(TRUE) + RNG.integers(-3, 4, (3, QUERIES.size))
TREE = Tree([[0, 0]])
ALL_NOISY = QUERIES.answers(np.asarray(TREE.sum_up(TRUE[:2]))) + RNG.integers(-2, 3, (3, QUERIES.size))
TOTALS = TOTAL.answers(TRUE).astype(float)

MODELS = {
    "least squares": WorkloadLeastSquares(
        QUERIES, NOISY, [1, 2, 1], TRUE.sum(axis=0), None, TOTAL, TOTALS - 1, TOTALS + 1
    ),
    "rounding": WorkloadRounding(QUERIES, TRUE + RNG.integers(1, 8, (3, 6)) / 8, rules=TOTAL, lower=3),
    "all regions": JointTables(TREE, QUERIES, ALL_NOISY, [[1, 1, 1], [1, 2, 1]], None, TOTAL, 0, 30),
    "least squares over the tree": BlockInference(TREE, QUERIES, ALL_NOISY, [[1, 1, 1], [1, 2, 1]]),
}
REALS = ("highs", "clarabel", "osqp", "pdlp", "scs", "cvxpy:highs", "pyomo:highs", "gurobi")
WHOLE = ("highs", "ortools:scip", "cvxpy:highs", "pyomo:highs", "scip", "gurobi")
CASES = [
    *((name, backend) for name in ("least squares", "least squares over the tree") for backend in REALS),
    *(("rounding", backend) for backend in WHOLE),
    *(("all regions", backend) for backend in (*WHOLE, "cp-sat")),
]
"""SCIP reaches the least squares over reals, too, but is slow to prove them."""


@pytest.mark.parametrize(("name", "backend"), quick(CASES, first=1))
def test_every_backend_that_takes_a_model_finds_its_optimum(name, backend):
    try:
        find(backend)
    except ValueError as missing:
        pytest.skip(str(missing))
    model = MODELS[name]
    found = solve(model, backend)
    assert found.status == "optimal", found.message
    best = solve(model, "highs") if name == "all regions" else solve(model)
    # PDLP's and SCS's tolerances are about 1e-6.
    assert float(found.objective) == pytest.approx(float(best.objective), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pdlp", "clarabel", "osqp"])
@pytest.mark.parametrize("name", ["rounding", "all regions"])
def test_solvers_over_the_reals_give_a_bound(name, backend):
    found = solve(MODELS[name], backend)
    assert found.status == "relaxed"
    assert found.bound <= float(solve(MODELS[name], "highs").objective) + 1e-3
