"""StrategySDP: closed forms, a search over small strategies, Clarabel, a bound below the paper's Table 3."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from models import StrategySDP, strategy_sdp
from solvers import fast, solve, worker
from solvers.backends.conic import ConicPlan, is_conic
from solvers.backends.table import find
from solvers.fast import strategy as fast_strategy
from solvers.solution import Effort


def ranges(n: int) -> np.ndarray:
    first, last = np.triu_indices(n)
    return ((first[:, None] <= np.arange(n)) & (np.arange(n) <= last[:, None])).astype(np.int64)


def some_strategy(rng: np.random.Generator, n: int) -> np.ndarray:
    a = rng.normal(size=(n + 1, n)) * np.exp(rng.normal(size=(n + 1, 1)))
    x = a.T @ a + 1e-3 * np.eye(n)
    return x / np.sqrt(np.outer(np.diag(x), np.diag(x)))


def test_closed_forms():
    assert solve(StrategySDP(np.diag([1, 2, 5]))).objective == pytest.approx(30)
    assert solve(StrategySDP(np.diag([1, 2, 5]))).x == pytest.approx(np.eye(3))
    assert solve(StrategySDP([[-3.0]])).objective == pytest.approx(9)
    two = solve(StrategySDP([[1, 0], [0, 1], [1, 1]]))
    assert two.objective == pytest.approx(2 + np.sqrt(3), rel=1e-9)
    assert two.x == pytest.approx(np.array([[1, 2 - np.sqrt(3)], [2 - np.sqrt(3), 1]]), abs=1e-4)


def test_the_ascent_takes_few_steps_and_as_many_as_it_needs(monkeypatch):
    steps, eigh = [], fast_strategy.la.eigh
    monkeypatch.setattr(fast_strategy.la, "eigh", lambda a: steps.append(a) or eigh(a))
    prefixes = solve(StrategySDP(np.tril(np.ones((40, 40)))))
    assert (prefixes.status, len(steps) < 15) == ("optimal", True)  # plain steps: 19
    steps.clear()
    polynomials = solve(StrategySDP(np.vander(np.linspace(1, 2, 6), 6)))  # nearly dependent columns
    assert (polynomials.status, 40 < len(steps) < 250) == ("optimal", True)  # plain steps: 396
    weights = np.exp(np.random.default_rng(0).normal(0, 2, (60, 1)))
    steps.clear()
    weighted = solve(StrategySDP(np.tril(np.ones((60, 60))) * weights))
    assert (weighted.status, len(steps) < 150) == ("optimal", True)  # plain steps: 316


@pytest.mark.slow
def test_a_search_over_small_strategies_finds_nothing_better():
    rng = np.random.default_rng(0)
    for n in (2, 3):
        for workload in (
            ranges(n),
            np.tril(np.ones((n, n))),
            rng.integers(-2, 4, (n + 2, n)) + np.eye(n + 2, n),
        ):
            model = StrategySDP(workload)
            solution = solve(model)
            assert solution.status == "optimal"

            def cost(r, model=model, n=n):
                x = np.eye(n)
                x[np.triu_indices(n, 1)] = r
                return min(1e9, model.objective(x + x.T - np.eye(n)))

            found = minimize(cost, np.zeros(n * (n - 1) // 2), method="Nelder-Mead", tol=1e-9).fun
            assert solution.objective == pytest.approx(found, rel=1e-5)


@pytest.mark.slow
def test_every_bound_is_under_every_cost():
    rng = np.random.default_rng(1)
    for _ in range(40):
        model = StrategySDP.random(rng, int(rng.integers(1, 80)))
        best = solve(model)
        assert best.status == "optimal", best
        assert best.gap <= 1e-8 * best.objective
        for _ in range(5):
            proof = model.certificate(some_strategy(rng, model.bins))
            assert proof.bound <= best.objective * (1 + 1e-9)
            assert proof.objective >= best.bound * (1 - 1e-9)
            assert proof.gap == proof.objective - proof.bound
            assert proof.optimal == (proof.gap <= 1e-7 * proof.objective)
            price = np.exp(rng.normal(0, 2, model.bins))
            assert 2 * model.nuclear_norm(price) - price.sum() <= best.objective * (1 + 1e-9)


def test_the_prices_are_a_witness():
    model = StrategySDP(ranges(6))
    proof = model.certificate(fast.answer(model)[0])
    price = proof.witness["prices"]
    assert 2 * model.nuclear_norm(price) - price.sum() == pytest.approx(proof.bound, rel=1e-12)
    worse = model.certificate(0.9 * fast.answer(model)[0])
    assert worse.objective == pytest.approx(proof.objective / 0.9)
    assert worse.bound == pytest.approx(proof.bound)
    assert worse.witness["prices"] == pytest.approx(price, rel=1e-6)
    assert not worse.optimal


def test_faint_workloads_are_held_to_the_same_standard():
    model = StrategySDP(ranges(3) * 1e-5)
    proof = model.certificate(np.eye(3))
    assert proof.gap < 1e-7
    assert not proof
    assert solve(model).status == "optimal"


def test_clarabel_agrees():
    rng = np.random.default_rng(3)
    for workload in (ranges(9), np.tril(np.ones((7, 7))), np.eye(2), rng.normal(size=(12, 6)), [[3]]):
        model = StrategySDP(workload)
        answer, _, _ = worker.run(find("clarabel"), ConicPlan(model), Effort(), 60.0)
        assert answer.status == "optimal", answer
        x = answer.variables.reshape(model.bins, model.bins)
        assert model.violations(x) == []
        assert model.objective(x) == pytest.approx(solve(model).objective, rel=1e-6)
        assert model.certificate(x).gap <= 1e-6 * model.objective(x)


def test_no_published_method_is_under_the_bound():
    # Table 3, ε = 1: the best method at each N; 2·(optimum)/queries bounds every Laplace matrix mechanism.
    flat = {16: 12.00, 32: 22.67, 64: 44.00}
    best = {16: 12.00, 32: 22.67, 64: 37.07}
    for n, published in best.items():
        model = StrategySDP(ranges(n))
        queries = n * (n + 1) // 2
        assert 2 * model.objective(np.eye(n)) / queries == pytest.approx(flat[n], abs=0.005)
        bound = 2 * solve(model).bound / queries
        assert 0.2 * published < bound < published


def test_it_is_no_program():
    assert is_conic(StrategySDP([[1]]))
    with pytest.raises(NotImplementedError, match=r"StrategySDP .* see cvxpy\(\)"):
        StrategySDP([[1]]).program()


def test_an_answer_whose_cost_floats_do_not_know_is_not_proved():
    """The optimum is so near to a singular matrix that costs may be wrong by more than the tolerance."""
    model = StrategySDP([[1, 1], [0, 1e-9]])
    proof = model.certificate([[1, 1 - 1e-9], [1 - 1e-9, 1]])
    assert proof.gap <= 1e-7 * proof.objective
    assert (proof.optimal, proof.reason[:18]) == (False, "X is nearly singul")


def test_the_cost_of_hundreds_of_bins_is_known():
    """A bound on its rounding error by bins² and X's condition number would pass the tolerance."""
    bins = 300
    between = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    proof = StrategySDP(np.tril(np.ones((bins, bins)))).certificate(0.99**between)
    assert proof.reason.startswith("the duality gap is")


@pytest.mark.parametrize("apart", [1, 1e-2, 1e-5, 1e-9])
def test_costs_are_as_exact_as_their_bound_says(apart):
    """Against Fractions: tr(W X⁻¹ Wᵀ) for two bins, whose X⁻¹ is known."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        w, (a, b) = rng.normal(size=(3, 2)), rng.uniform(0.5, 1, 2)
        c = (1 - apart * rng.uniform(0.1, 1)) * np.sqrt(a * b)
        x = np.array([[a, c], [c, b]])
        u, v, wide = (Fraction(float(number)) for number in (a, b, c))
        rows = [[Fraction(number) for number in row] for row in w.tolist()]
        true = sum(v * p * p - 2 * wide * p * q + u * q * q for p, q in rows) / (u * v - wide * wide)
        off = abs(Fraction(StrategySDP(w).objective(x)) / true - 1)
        assert off <= strategy_sdp._cost_error(np.linalg.cholesky(x))


def test_an_exact_answer_is_symmetric_and_its_sensitivity_at_most_1():
    """A tolerance is for floats only."""
    model, tiny, half = StrategySDP([[1, 0], [0, 1], [1, 1]]), Fraction(1, 2**60), Fraction(1, 2)
    good = [[1, half], [half, 1]]
    assert model.violations(np.array(good, object)) == []
    lopsided, above = [[1, half + tiny], [half, 1]], [[1 + tiny, half], [half, 1]]
    assert model.violations(np.array(lopsided, object))[0].startswith("symmetry: X[0, 1]")
    assert model.violations(np.array(above, object))[0].startswith("sensitivity: X[0, 0]")
    for broken in (lopsided, above):
        assert model.certificate(np.array(broken, object)).bound is None
        assert model.violations(np.array(broken, float)) == []
    assert model.violations([[1, 2**63 - 1], [-(2**63), 1]])[0].startswith("symmetry: X[0, 1]")


def test_an_answer_that_is_not_definite_costs_infinitely_much():
    assert StrategySDP(ranges(2)).certificate([[1, 2], [2, 1]]).objective == float("inf")
