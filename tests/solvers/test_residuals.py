"""Primal and dual residuals: zero at an optimum with its prices, otherwise the size of the violation."""

import numpy as np
import pytest

from models import Chebyshev, ConstrainedInference, HierarchyQIP, Isotonic, SimplexQP, Tree
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from solvers import backends, solve
from solvers.residuals import dual, primal
from tests.marks import quick

RNG = np.random.default_rng(0)
MODELS = {
    "squares over a chain": Isotonic(RNG.integers(0, 100, 30), integer=False),
    "absolutes between bounds": Isotonic(RNG.integers(0, 100, 30), p=1, lower=20, upper=70, integer=False),
    "squares over a tree": HierarchyQIP(
        Tree([[0, 0], [0, 0, 1]]), RNG.integers(-3, 20, (6, 3)), 30, integer=False
    ),
    "variances": ConstrainedInference.random(RNG, 30),
    "a linear program": Chebyshev([5, 3, -2, 7], total=4).program().relaxed(),
}
FIRST = ("highs", "glop", "pdlp", "clarabel")
TELLS_PRICES = ("highs", "gurobi", "glop", "pdlp", "clarabel", "osqp", "scs", "cvxpy:highs")


@pytest.mark.parametrize("name", quick(TELLS_PRICES, slow=lambda name: name not in FIRST))
@pytest.mark.parametrize("what", MODELS)
def test_prices_prove_optima_whatever_the_backends_signs(name, what):
    if name not in {one.name for one in backends() if one.installed}:
        pytest.skip(f"{name} is not installed")
    found = solve(MODELS[what], name, time_limit=20)
    if found.status == "unsupported":
        assert name == "glop"
        return
    assert found.status == "optimal"
    assert found.primal_residual < 1e-6
    assert found.dual_residual < 1e-4


def small():
    """Minimize 2(x − 3)² + |y − 1| + z subject to 0 ≤ x, y, z ≤ 10, x + y + z = 6 and x − z ≥ 1."""
    entries = [0, 0, 0, 1, 1], [0, 1, 2, 0, 2], [1, 1, 1, 1, -1]
    rows = rows_of("r", (2, 3), entries, np.array([6.0, 1]), np.array([6.0, np.inf]))
    objective = [
        Term("quadratic", np.array([0]), 2, 3),
        Term("absolute", np.array([1]), 1, 1),
        Term("linear", np.array([2])),
    ]
    return Program("small", [Block("v", (3,), 0, 10)], [rows], objective)


def test_by_hand():
    program = small()
    # x = 3.25, y = 2.75, z = 0: the price of the sum is 1, and the reduced cost of z is 1 − 1 = 0.
    best, prices = np.array([3.25, 2.75, 0.0]), np.array([1.0, 0.0])
    assert primal(program, best) == 0
    assert dual(program, best, prices) == 0
    assert dual(program, best, np.array([1.5, 0.0])) == 0.5  # y has slope 1, and is not at a kink
    assert dual(program, best, np.array([1.0, 0.25])) == 0.25  # a price for a row that is not tight
    assert (
        dual(program, np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.0])) == 0.5
    )  # y is at a kink; x and z are not
    assert primal(program, np.array([-2.0, 8, 0])) == 3.0  # x − z violates by 3, more than x by 2
    assert primal(program, np.array([1.0, 11, 0])) == 6.0


def test_integrality_violations_count():
    program = Program("whole", [Block("v", (2,), 0, 10, integer=True)], [], [Term("linear", np.arange(2))])
    assert primal(program, np.array([0.25, 1.0])) == 0.25
    assert primal(program, np.array([0.75, 1.0])) == 0.25


def test_each_residual_counts_alone():
    """A bound that no row knows of, and a price of a row with room that its variable's cost makes up for."""
    row = rows_of("r", (1, 1), ([0], [0], [1]), np.array([-5.0]), np.array([np.inf]))
    program = Program("one", [Block("v", (1,), 0, 10)], [row], [Term("linear", np.array([0]))])
    assert primal(program, np.array([0.0])) == 0
    assert primal(program, np.array([-3.0])) == primal(program, np.array([13.0])) == 3
    assert dual(program, np.array([0.0]), np.array([0.0])) == 0
    assert dual(program, np.array([0.0]), np.array([1.0])) == 1


def test_prices_of_lines_are_not_the_programs():
    """Integer squares are stated as lines, whose prices are not those of the rows (once a bug)."""
    model = SimplexQP(np.random.default_rng(0).normal(size=30) * 10, total=50)
    found = solve(model, "highs", time_limit=20)
    assert found.status == "optimal"
    assert found.dual_residual is None
