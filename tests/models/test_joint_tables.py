"""Whole tables of a whole tree at once: brute force, two backends, prices, bad data."""

import math
from fractions import Fraction

import numpy as np
import pytest

from models import HierarchyQIP, JointTables, Tree, Workload, lagrangian_bound
from solvers import prove, solve
from tests.marks import quick
from tests.models.families import joint_answers

TWO = Workload.marginals((2,), [(), (0,)])
TOTAL = Workload.marginals((2,), [()])


def instance(seed, weights=None):
    """A root with two children of two cells, whose total is public, and a bound for one child."""
    rng = np.random.default_rng(seed)
    true = np.asarray(Tree([[0, 0]]).sum_up(rng.integers(0, 3, (2, 2))))
    noisy = TWO.answers(true) + rng.integers(-3, 4, (3, 3))
    held = TOTAL.answers(true).astype(float)
    lower, upper = held.copy(), held.copy()
    lower[1:], upper[2] = -np.inf, np.inf
    given = [[1, 2], [3, 1]] if weights is None else weights
    return JointTables(Tree([[0, 0]]), TWO, noisy, given, None, TOTAL, lower, upper)


@pytest.mark.parametrize("seed", quick(range(8), first=3))
def test_the_answer_is_the_best_of_all(seed):
    model = instance(seed)
    least = min(map(model.objective, joint_answers(model)))
    found = solve(model, "highs")
    assert (found.status, found.objective) == ("optimal", least)
    proof = prove(model, found.x)
    assert proof.bound <= least
    assert proof.optimal == (proof.gap == 0)
    again = model.certificate(found.x, proof.witness)
    assert (again.bound, again.optimal) == (proof.bound, proof.optimal)


def test_most_optima_are_proved_by_the_prices_found():
    proofs = [prove(instance(seed), solve(instance(seed), "highs").x) for seed in range(6)]
    assert sum(proof.optimal for proof in proofs) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_two_backends_agree(seed):
    model = JointTables.random(np.random.default_rng([7, seed]), 30)
    highs, other = solve(model, "highs"), solve(model, "ortools:scip")
    assert (highs.status, other.status) == ("optimal", "optimal")
    assert float(highs.objective) == pytest.approx(float(other.objective), rel=1e-9, abs=1e-6)


@pytest.mark.slow
def test_cp_sat_agrees_on_bounded_tables_with_whole_weights():
    model = instance(1)
    assert solve(model, "cp-sat").objective == solve(model, "highs").objective


def test_no_prices_prove_more_than_the_optimum():
    rng = np.random.default_rng(0)
    for seed in range(2):
        model = instance(seed)
        answers = list(joint_answers(model))
        least, rows = min(map(model.objective, answers)), model.program().matrix.shape[0]
        good = model.row_prices(prove(model, answers[0]).witness)
        for _ in range(8):
            prices = good + rng.integers(-2, 3, rows) * rng.integers(0, 2, rows)
            proof = model.certificate(answers[0], model.from_row_prices(None, prices))
            assert proof.bound <= least
            general = lagrangian_bound(model.program(), model.row_prices(proof.witness))
            assert proof.bound == (math.ceil(general) if math.isfinite(general) else general)


def test_one_query_of_the_cells_and_a_total_is_the_hierarchy_qip():
    tree, rng = Tree([[0, 0], [0, 1, 1]]), np.random.default_rng(2)
    noisy = rng.integers(-2, 20, (tree.size, 2))
    total = int(noisy[0].clip(0).sum())
    bounds = np.full((tree.size, 1), np.inf)
    bounds[0] = total
    cells = Workload.marginals((2,), [(0,)])
    lower = np.where(np.isinf(bounds), -np.inf, bounds)
    model = JointTables(tree, cells, noisy, [[1], [1], [1]], None, TOTAL, lower, bounds)
    assert solve(model, "highs").objective == solve(HierarchyQIP(tree, noisy, total)).objective


def test_cells_are_bounded_by_their_node_its_parent_and_its_children():
    bounds = [[np.inf], [5], [np.inf], [2], [1]]
    tree = Tree([[0, 0], [1, 1]])
    model = JointTables(
        tree, TWO, np.zeros((5, 3)), np.ones((3, 2)), [False, True], TOTAL, -np.inf, np.array(bounds)
    )
    assert model.most.tolist() == [[8, 0], [5, 0], [3, 0], [2, 0], [1, 0]]


def test_broken_constraints_are_named():
    model = instance(3)
    x = next(joint_answers(model))
    assert model.violations(x) == []
    total = int(x[0].sum())
    assert model.violations(x + np.array([[1, 0], [0, 0], [0, 0]])) == [
        "consistency: node 0, column 0, less the sum of its children, is 1, not 0",
        f"sums: node 0, query 0, answer 0, is {total + 1}, not {total}",
    ]
    zeros = JointTables(Tree([]), TWO, [[1, 1, 1]], [[1, 1]], [False, True])
    assert zeros.violations([[1, 1]]) == ["x[0, 1] = 1, not 0", "answer[2] = 1, not 0"]
    assert zeros.violations([[-1, 0]])[0] == "x[0, 0] = -1, not at least 0"
    assert zeros.violations([[0.5, 0]])[0] == "integer: x[0, 0] = 1/2 is not a whole number"
    assert not zeros.certificate([[1, 1]])


def test_weights_in_floats_count_as_the_fractions_that_they_are():
    model = instance(0, [[0.1, 0.5], [0.25, 0.0]])
    x = next(joint_answers(model))
    away = TWO.answers(x) - np.asarray(model.noisy)
    squares = [int((away[0, :1] ** 2).sum()), int((away[0, 1:] ** 2).sum()), int((away[1:, :1] ** 2).sum())]
    expected = Fraction(0.1) * squares[0] + Fraction(1, 2) * squares[1] + Fraction(1, 4) * squares[2]
    assert model.objective(x) == expected
