"""BudgetSplit: cubes exactly, all splits on a fine grid, weights of very different sizes, conic solvers."""

import math
import sys
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import BudgetSplit
from solvers import fast, solve, worker
from solvers.backends.conic import ConicPlan, is_conic
from solvers.backends.known import INFEASIBLE
from solvers.backends.table import find
from solvers.solution import Effort


def test_cubes_are_split_exactly():
    model = BudgetSplit([1, 8, 27, 64], epsilon=5)
    assert fast.answer(model)[0] == pytest.approx([0.5, 1, 1.5, 2])
    best = np.array([Fraction(k, 2) for k in range(1, 5)])
    assert model.objective(best) == Fraction(10**3, 5**2)
    assert model.certificate(best).optimal
    assert model.violations(best) == []
    assert solve(model).bound == pytest.approx(40)


@pytest.mark.slow
def test_no_split_of_a_fine_grid_is_better():
    steps = 24
    for weights in product([0.1, 1, 3, 50], repeat=3):
        model = BudgetSplit(weights, epsilon=0.7)
        solution = solve(model)
        assert solution.status == "optimal"
        assert sum(solution.x) == pytest.approx(0.7)
        for i, j in product(range(1, steps), repeat=2):
            if i + j < steps:
                x = np.array([i, j, steps - i - j]) * (0.7 / steps)
                proof = model.certificate(x)
                assert proof.bound == pytest.approx(solution.objective, rel=1e-12)
                assert proof.gap == pytest.approx(
                    proof.objective - solution.objective, abs=1e-9 * proof.objective
                )
                assert proof.optimal == (proof.objective <= solution.objective * (1 + 1e-7))
                assert proof.optimal or "would pay" in proof.reason


def test_small_weights_are_held_to_the_same_standard():
    model = BudgetSplit([1e-9, 8e-9], 1)
    proof = model.certificate([0.5, 0.5])
    assert proof.gap < 1e-7
    assert not proof
    assert model.certificate([1 / 3, 2 / 3]).optimal


def test_marginal_costs_are_equal():
    rng = np.random.default_rng(0)
    for _ in range(50):
        model = BudgetSplit.random(rng, 6)
        weights, _ = model.data
        price = model.certificate(fast.answer(model)[0]).witness["price"]
        x = fast.answer(model)[0]
        assert 2 * weights / x**3 == pytest.approx(np.full(x.size, price), rel=1e-9)


@given(
    st.lists(st.floats(1e-200, 1e60), min_size=1, max_size=30),
    st.sampled_from([1e-9, 0.1, 1, 1e6]),
    st.data(),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_weights_and_budgets_of_any_size(weights, epsilon, data):
    model = BudgetSplit(weights, epsilon)
    solution = solve(model)
    assert solution.status == "optimal", (solution, model)
    i = data.draw(st.integers(0, len(weights) - 1))
    if len(weights) > 1 and 0.01 < solution.x[i] / epsilon < 0.9:
        other = solution.x * (1 - 1.1 * solution.x[i] / epsilon) / (1 - solution.x[i] / epsilon)
        other[i] = 1.1 * solution.x[i]
        proof = model.certificate(other)
        assert not proof.optimal
        assert proof.objective > solution.objective
    assert not model.certificate(solution.x * 0.5).optimal


@pytest.mark.parametrize("backend", ["clarabel"])
def test_conic_solvers_agree(backend):
    rng = np.random.default_rng(2)
    for size in (1, 2, 5, 12):
        model = BudgetSplit.random(rng, size)
        answer, _, _ = worker.run(find(backend), ConicPlan(model), Effort(), 30.0)
        assert answer.status == "optimal", answer
        assert model.violations(answer.variables) == []
        assert float(model.objective(answer.variables)) == pytest.approx(solve(model).objective, rel=1e-6)
        assert answer.bound == pytest.approx(solve(model).objective, rel=1e-6)


def test_it_is_no_program():
    model = BudgetSplit([1], 1)
    assert is_conic(model)
    with pytest.raises(NotImplementedError, match=r"BudgetSplit .* see cvxpy\(\)"):
        model.program()
    assert solve(model, "highs").status == "unsupported"


def test_infeasible_answers_are_refused_by_name():
    model = BudgetSplit([1, 2], 1)
    assert model.violations([0.5, 0.25]) == ["total: the shares add up to 0.75, not 1"]
    assert model.violations([1.5, -0.5]) == ["epsilon > 0: x[1] = -0.5"]
    assert model.objective([1, 0]) == float("inf")
    proof = model.certificate([1, 0])
    assert not proof
    assert proof.bound is None
    # The tolerance is relative to the budget.
    assert BudgetSplit([1, 2], 1e-6).violations([4e-7, 5e-7])


@pytest.mark.parametrize(
    ("ended", "status", "bound"),
    [
        ("optimal", "optimal", 4.0),
        ("optimal_inaccurate", "feasible", None),
        ("user_limit", "time_limit", None),
        ("infeasible", "infeasible", None),
        ("unbounded", "unbounded", None),
        ("infeasible_inaccurate", "numerical", None),
        (None, "numerical", None),
    ],
)
def test_cvxpy_statuses_are_mapped(monkeypatch, ended, status, bound):
    """With a stand-in for cvxpy: its endings become statuses, and it receives accuracy and time limits."""
    options_of = {}

    class Failure(Exception):
        pass

    def run(solver, **options):
        options_of[solver] = options
        if ended is None:
            raise Failure("no pivot")

    kinds = {kind.upper(): kind for kind in ("optimal", "optimal_inaccurate", "infeasible", "unbounded")}
    stand_in = SimpleNamespace(SolverError=Failure, USER_LIMIT="user_limit", **kinds)
    monkeypatch.setitem(sys.modules, "cvxpy", stand_in)
    problem, x = SimpleNamespace(solve=run, status=ended), SimpleNamespace(value=[0.5, 1.5])
    model = SimpleNamespace(cvxpy=lambda: (problem, x), objective=lambda x: x.sum() + 2)
    for name in ("clarabel", "scs"):
        answer = ConicPlan(model).open(find(name), Effort())(2.5)
        assert (answer.status, answer.bound) == (status, bound)
        assert (answer.variables is not None) == (status in ("optimal", "feasible"))
        assert answer.message or answer.variables is not None
    assert options_of["CLARABEL"] == {
        "time_limit": 2.5, "tol_infeas_abs": INFEASIBLE, "tol_infeas_rel": INFEASIBLE,
    }  # fmt: skip
    assert options_of["SCS"]["time_limit_secs"] == 2.5
    assert options_of["SCS"]["eps_abs"] == options_of["SCS"]["eps_rel"] == 1e-9
    ConicPlan(model).open(find("scs"), Effort())(None)
    assert "time_limit_secs" not in options_of["SCS"]


@pytest.mark.parametrize("epsilon", [0.3, 2.0**-30 / 3, Fraction(1, 3)])
def test_exact_shares_add_up_exactly(epsilon):
    """Also where the budget is a float, which a sum of Fractions must not be rounded to."""
    model = BudgetSplit([1, 1, 1], epsilon)
    shares = np.array([Fraction(epsilon) / 3] * 3)
    assert model.certificate(shares).optimal
    assert model.certificate(shares.astype(float)).optimal
    shares[0] += Fraction(1, 2**100)
    assert not model.certificate(shares).optimal
    assert model.violations(shares)[0].startswith("total: the shares add up to")


def test_a_budget_that_floats_do_not_hold_is_refused():
    with pytest.raises(ValueError, match="it must be positive and finite"):
        BudgetSplit([1], 10**400)


# With information: variances of least squares


def informed(rng, errors, parts, measurements):
    weights = rng.random((errors, parts)) * (rng.random((errors, parts)) < 0.6)
    weights[:, 0] += 0.1
    known = rng.random((parts, measurements)) * (rng.random((parts, measurements)) < 0.4)
    known[:, rng.integers(measurements)] += 1e-2
    return BudgetSplit(weights, 0.7, known * 10 ** rng.uniform(-2, 2, parts)[:, None])


@pytest.mark.parametrize("errors", [1, 2, 5])
def test_splits_for_least_squares_are_proved_and_no_grid_has_less(errors):
    rng = np.random.default_rng(errors)
    for _ in range(8):
        model = informed(rng, errors, int(rng.integers(1, 9)), 3)
        found = solve(model)
        assert found.status == "optimal"
        assert found.gap <= 1e-9 * found.objective
        grid = [np.array([a, b, 40 - a - b]) / 40 * 0.7 for a in range(41) for b in range(41 - a)]
        assert found.objective <= min(map(model.objective, grid)) * (1 + 1e-9)


@pytest.mark.parametrize("size", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_large_splits_for_least_squares_are_proved(size):
    rng = np.random.default_rng(size)
    for errors in (1, 4, 30):
        found = solve(informed(rng, errors, 4 * size, size))
        assert found.status == "optimal"
        assert found.gap <= 1e-9 * found.objective


def squares(rng, errors, parts, measurements, size=3):
    """Parts that are matrices; some measurements and weights are singular."""

    def some(*shape):
        factors = rng.normal(size=(*shape, 2, size)) * (rng.random((*shape, 1, 1)) < 0.7)
        return factors.swapaxes(-1, -2) @ factors

    weights, told = some(errors, parts), some(parts, measurements)
    weights[:, 0] += 0.1 * np.eye(size)
    told[:, -1] += np.eye(size)
    weights, told = ((a + a.swapaxes(-1, -2)) / 2 for a in (weights, told))
    return BudgetSplit(weights, 0.7, told)


@pytest.mark.parametrize("errors", [1, 3])
def test_splits_of_matrices_are_proved_and_no_grid_has_less(errors):
    rng = np.random.default_rng(errors)
    for _ in range(6):
        model = squares(rng, errors, int(rng.integers(1, 4)), 3)
        found = solve(model)
        assert found.status == "optimal"
        assert found.gap <= 1e-8 * found.objective
        grid = [np.array([a, b, 40 - a - b]) / 40 * 0.7 for a in range(41) for b in range(41 - a)]
        assert found.objective <= min(map(model.objective, grid)) * (1 + 1e-9)
        other = solve(model, "clarabel")
        assert other.objective == pytest.approx(found.objective, rel=1e-5)  # its tolerance is 1e-8


def test_any_witness_of_matrices_gives_a_bound():
    rng = np.random.default_rng(5)
    for _ in range(20):
        model = squares(rng, 2, 2, 4)
        best = solve(model)
        for scales in (rng.normal(size=(2, 3, 3)), 1e6 * rng.random((2, 3, 3)), np.zeros((2, 3, 3)), None):
            witness = {"errors": rng.random(2)} | ({} if scales is None else {"scales": scales})
            x = rng.dirichlet(np.ones(4)) * 0.7
            proof = model.certificate(x, witness)
            assert proof.bound <= best.objective
            assert not proof.optimal
            assert not proof.contradiction


def test_diagonal_matrices_are_parts_of_numbers():
    rng = np.random.default_rng(2)
    model = informed(rng, 2, 6, 3)
    weights, told = np.asarray(model.weights), np.asarray(model.information) + 0.01
    numbers = BudgetSplit(weights, 0.7, told)
    one = BudgetSplit(
        np.stack([np.diag(row) for row in weights])[:, None], 0.7,
        np.stack([np.diag(column) for column in told.T])[None],
    )  # fmt: skip
    assert solve(one).objective == pytest.approx(solve(numbers).objective, rel=1e-9)
    x = rng.dirichlet(np.ones(3)) * 0.7
    assert one.certificate(x).bound == pytest.approx(numbers.certificate(x).bound, rel=1e-9)


def test_a_matrix_without_a_share_that_it_needs_has_no_error_below_infinity():
    first, second = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    model = BudgetSplit(second[None], 1, np.stack([first, second])[None])
    assert model.objective([1.0, 0.0]) == math.inf
    assert model.objective([0.0, 1.0]) == 1.0
    assert not model.certificate([1.0, 0.0]).optimal
    assert model.certificate([0.0, 1.0]).optimal


def test_a_diagonal_and_one_error_have_a_closed_form():
    model = BudgetSplit([1, 4, 9], 2, information=[1, 1, 1])
    assert solve(model).x == pytest.approx([1 / 3, 2 / 3, 1], rel=1e-12)
    assert solve(model).objective == pytest.approx(36 / 2, rel=1e-12)  # (1 + 2 + 3)²/ρ
    assert solve(BudgetSplit([1, 4, 9], 2, information=np.eye(3))).x == pytest.approx(
        [1 / 3, 2 / 3, 1], rel=1e-4
    )
    unused = solve(BudgetSplit([1, 0], 2, information=[2, 3]))
    assert (unused.x.tolist(), unused.objective) == ([2, 0], 1 / 4)


def test_errors_of_a_single_part_each_become_equal():
    """The largest of some; those of one part differ by a factor, so only one of them counts."""
    rng = np.random.default_rng(0)
    model = BudgetSplit([[8, 0, 0], [0, 3, 0], [2, 0, 0], [0, 3, 0]], 2, information=[2, 1, 5])
    assert solve(model).x.tolist() == [8 / 7, 6 / 7, 0]
    assert solve(model).status == "optimal"
    assert solve(model).objective == 7 / 2  # (8/2 + 3)/2
    for _ in range(20):
        parts = int(rng.integers(1, 9))
        weights, told = np.exp(rng.normal(0, 8, parts)), np.exp(rng.normal(0, 4, parts))
        found = solve(BudgetSplit(np.diag(weights), 0.7, told))  # the interior point fails for such weights
        assert found.status == "optimal"
        assert found.gap <= 1e-12 * found.objective  # of some ten roundings
    near = BudgetSplit(np.diag(np.arange(1.0, 6.0)), 0.7, told := rng.uniform(1, 3, 5))
    other = solve(BudgetSplit(near.weights, 0.7, np.diag(told)))  # by the interior point
    assert other.objective == pytest.approx(solve(near).objective, rel=1e-9)


@pytest.mark.parametrize("errors", [1, 3])
def test_any_witness_of_least_squares_gives_a_bound(errors):
    rng = np.random.default_rng(7)
    for _ in range(20):
        model = informed(rng, errors, 6, 4)
        best = solve(model)
        for scale in (1.0, 1e-3, 1e9):
            witness = {
                "errors": rng.random(errors) if rng.random() < 0.5 else best.certificate.witness["errors"],
                "scales": scale * rng.random(6) * (rng.random(6) < 0.8),
            }
            x = rng.dirichlet(np.ones(4)) * 0.7
            proof = model.certificate(x, witness)
            assert proof.bound <= best.objective
            assert not proof.optimal
            assert model.certificate(x).bound <= best.objective
            assert not proof.contradiction
    for none in ({"errors": [0.0] * errors}, {"scales": [0.0] * 6}):
        assert not model.certificate(x, none).optimal
    for wrong in ({"errors": "x"}, {"scales": [np.nan] * 6}):
        with pytest.raises(ValueError, match="the witness's"):
            model.certificate(x, wrong)


def test_splits_for_least_squares_are_those_of_clarabel():
    rng = np.random.default_rng(3)
    for errors in (1, 3):
        model = informed(rng, errors, 8, 5)
        other = solve(model, "clarabel")
        assert other.objective == pytest.approx(solve(model).objective, rel=1e-5)  # its tolerance is 1e-8


@pytest.mark.parametrize(
    ("weights", "information", "message"),
    [
        ([1, 2], [[1, 1]], "a row for each part"),
        ([1, -1], [1, 1], "at least 0"),
        ([1, 1], [1, np.inf], "finite"),
        ([[1, 1], [0, 0]], [1, 1], "no weights above 0"),
        ([1, 1], [1, 0], "not measured"),
        (np.eye(2)[None], np.ones((1, 1, 2, 3)), "a row for each part"),
        (np.eye(2)[None], np.array([[[[1.0, 2.0], [2.0, 1.0]]]]), r"at least 0 \(semidefinite\)"),
        (np.eye(2)[None], np.array([[[[1.0, 0.5], [0.0, 1.0]]]]), r"at least 0 \(semidefinite\)"),
        (np.eye(2)[None], np.ones((1, 1, 2, 2)), "not measured"),
    ],
)
def test_information_that_does_not_fit_is_named(weights, information, message):
    with pytest.raises(ValueError, match=message):
        BudgetSplit(weights, 1, information)


def test_a_share_below_0_breaks_a_constraint():
    model = BudgetSplit([1, 1], 1, information=[[1, 0], [1, 1]])
    assert model.violations([1.5, -0.5]) == ["epsilon > 0: x[1] = -0.5"]
    assert model.violations([1.0, 0.0]) == []
    assert model.objective([1.0, 0.0]) == 2.0
    assert model.objective([0.0, 1.0]) == math.inf
    assert not model.certificate([0.0, 1.0]).optimal
