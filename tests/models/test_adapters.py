"""Answers of other libraries, right and wrong ones, through `models.adapters`."""

import re
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats

from models import Isotonic, MinCostFlow, WassersteinDistance, adapters
from models.testing import instances
from solvers import assert_optimal, fast, prove
from tests.marks import quick

SEEDS = quick([range(15), range(15, 300)])


def proof_of(claim):
    return prove(claim.model, claim.x)


def values(rng, n):
    """Random, tied, huge or tiny numbers."""
    kinds = [
        rng.normal(0, 10, n),
        rng.integers(0, 4, n),
        rng.integers(-(10**9), 10**9, n),
        1e9 + rng.random(n),
        1e-9 * rng.random(n),
        np.repeat(rng.normal(0, 5, n), 3)[:n],
    ]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_isotonic_regression(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        y = values(rng, int(rng.integers(1, 30)))
        weights, increasing = rng.integers(1, 5, y.size) if seed % 2 else None, seed % 3 > 0
        x = optimize.isotonic_regression(y, weights=weights, increasing=increasing).x
        claim = adapters.isotonic_regression(x, y, weights, increasing=increasing)
        assert claim.certificate().optimal
        assert proof_of(claim).optimal
        step = (0.01 if increasing else -0.01) * np.ptp(y)
        for k in range(y.size if step else 0):  # all from entry k on too high
            moved = x + step * (np.arange(y.size) >= k)
            assert not proof_of(
                adapters.isotonic_regression(moved, y, weights, increasing=increasing)
            ).optimal


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_kmeans(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        array = values(rng, int(rng.integers(1, 8)))
        n = array.size
        k = int(rng.integers(1, n + 1))
        ordered = np.argsort(array, kind="stable")
        found = {}
        for starts in combinations(range(1, n), k - 1):
            labels = np.empty(n, int)
            labels[ordered] = np.isin(np.arange(n), starts).cumsum()
            exact = [np.var(array[labels == one] - array[0]) * (labels == one).sum() for one in range(k)]
            found[tuple(labels)] = sum(exact)
        least = min(found.values())
        size = max(1e-300, np.ptp(array) ** 2)
        for labels, cost in found.items():
            proved = proof_of(adapters.kmeans1d(labels, array, k)).optimal
            if cost > least + 1e-5 * max(min(1, size), least):
                assert not proved
            if cost <= least * (1 + 1e-12):
                assert proved


def test_clusters_with_values_of_another_between_are_refused():
    with pytest.raises(ValueError, match="cluster 0 has values of another"):
        adapters.kmeans1d([0, 1, 0], [1, 2, 3], 2)
    assert adapters.kmeans1d([0, 1, 0], [1, 1, 1], 2).certificate().optimal
    assert adapters.kmeans1d([0, 0, 0, 1], [1, 1, 1, 4], 3).certificate().optimal
    assert not adapters.kmeans1d([0, 0, 0], [1, 2, 4], 2).certificate()


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_assignments(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows, columns, maximize = (*rng.integers(1, 5, 2).tolist(), bool(seed % 2))
        cost = values(rng, rows * columns).reshape(rows, columns)
        claim = adapters.linear_sum_assignment(
            *optimize.linear_sum_assignment(cost, maximize), cost, maximize
        )
        assert proof_of(claim).optimal
        few = min(rows, columns)
        for chosen in permutations(range(max(rows, columns)), few):
            pairs = (range(few), chosen) if rows <= columns else (chosen, range(few))
            other = adapters.linear_sum_assignment(*pairs, cost, maximize)
            worse = (
                other.model.objective(other.x) > claim.model.objective(claim.x) + 1e-6 * np.abs(cost).max()
            )
            assert not (worse and proof_of(other).optimal)
        twice = adapters.linear_sum_assignment([0] * few, [0] * few, cost, maximize)
        assert few == 1 or twice.model.violations(twice.x)


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_transport_and_distances_along_a_line(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        # On a grid, so that distances are exact: whole masses have no tolerance.
        u, v = (rng.integers(-300, 300, int(rng.integers(1, 9))) / 64 for _ in range(2))
        a, b = rng.integers(1, 5, u.size), rng.integers(1, 5, v.size)
        distance = stats.wasserstein_distance(u, v, a, b)
        assert adapters.wasserstein_distance(distance, u, v, a, b).certificate().optimal
        for factor in (0.99, 1.01):
            claim = adapters.wasserstein_distance(factor * distance, u, v, a, b)
            assert not claim.certificate().optimal
            assert not proof_of(claim).optimal
            assert bool(claim.model.violations(claim.x)) == (factor < 1)
        M = np.abs(u[:, None] - v[None])
        for one, other in ((a * b.sum(), b * a.sum()), (a / a.sum(), b / b.sum())):
            plan, i, j = np.zeros(M.shape, one.dtype), np.argsort(u), np.argsort(v)
            left = [np.array(one[i]), np.array(other[j])]
            r = s = 0
            while r < u.size and s < v.size:  # along the line from its end
                moved = min(left[0][r], left[1][s])
                plan[i[r], j[s]] = moved
                left[0][r] -= moved
                left[1][s] -= moved
                r, s = (r + 1, s) if left[0][r] <= left[1][s] else (r, s + 1)
            claim = adapters.emd(plan, one, other, M)
            assert one.dtype.kind == "f" or isinstance(claim.model, MinCostFlow)
            assert proof_of(claim).optimal
            if np.ptp(M.sum(axis=1)) > 0 and min(M.shape) > 1:
                product = np.outer(one, other) / one.sum()  # moves mass both ways
                if (product * M).sum() > 1.001 * (plan * M).sum() and product.dtype == one.dtype:
                    assert not proof_of(adapters.emd(product, one, other, M)).optimal


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_linear_programs(seeds):
    proved = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rows, columns = rng.integers(1, 6, 2)
        A = rng.integers(0, 4, (rows, columns))
        inside = rng.integers(0, 5, columns)
        problem = {"c": rng.integers(-5, 6, columns), "A_ub": A, "b_ub": A @ inside + 1, "bounds": (0, 9)}
        res = optimize.linprog(**problem)
        assert adapters.linprog(res, **problem).certificate().optimal
        if rows > 1:
            equal = problem | {"A_eq": A[:1], "b_eq": A[:1] @ inside}
            res = optimize.linprog(**equal)
            assert adapters.linprog(res, **equal).certificate().optimal
        rule = optimize.LinearConstraint(A, -np.inf, A @ inside + 1)
        whole = {"integrality": np.ones(columns), "bounds": optimize.Bounds(0, 9), "constraints": rule}
        res = optimize.milp(problem["c"], **whole)
        proof = proof_of(adapters.milp(res, problem["c"], **whole))
        assert proof.gap >= 0
        proved += proof.optimal
        res.x = inside
        other = proof_of(adapters.milp(res, problem["c"], **whole))
        assert other.bound <= proof.objective
    assert proved > len(seeds) / 4


def test_no_answer_of_linprog_is_named():
    problem = {"c": [1], "A_ub": [[1]], "b_ub": [-1]}
    with pytest.raises(ValueError, match="the result has no answer"):
        adapters.linprog(optimize.linprog(**problem), **problem)


def test_a_path_with_edges_of_negative_weight():
    edges = [("a", "b", 4), ("a", "c", 5), ("c", "b", -2), ("b", "d", 1), ("c", "d", 3)]
    assert_optimal(*adapters.shortest_path("acbd", edges)[:2])
    with pytest.raises(AssertionError, match=r"not optimal: it costs 5, and \[0 1 1 1 0\] costs 4"):
        assert_optimal(*adapters.shortest_path("abd", edges)[:2])
    with pytest.raises(ValueError, match="no edge leads from 'a' to 'd'"):
        adapters.shortest_path("ad", edges)


def test_change_points():
    """PELT of ruptures 1.1.10 drops a place that only a run too short made worse."""
    signal = [4.0, 2.0, 4.0, 4.0, 1.0, 0.0, 2.0, 2.0, 0.0, 3.0, 1.0, 0.0, 2.0]
    options = {"pen": 1.0, "min_size": 2, "jump": 2}
    assert_optimal(*adapters.ruptures([4, 6, 13], signal, **options)[:2])
    with pytest.raises(AssertionError, match=r"not optimal: it costs 14.25, and \[1 0 0 0 1 0 1 0"):
        assert_optimal(*adapters.ruptures([4, 6, 10, 13], signal, **options)[:2])
    with pytest.raises(AssertionError, match="not feasible: jump: a run begins at value 5"):
        assert_optimal(*adapters.ruptures([5, 13], signal, **options)[:2])
    with pytest.raises(ValueError, match="the last break must be 13"):
        adapters.ruptures([4, 6], signal, pen=1.0)
    with pytest.raises(ValueError, match="give n_bkps or pen"):
        adapters.ruptures([4, 13], signal)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_reconciled_forecasts(nonnegative):
    S = np.vstack([np.ones((1, 4)), np.kron(np.eye(2), np.ones((1, 2))), np.eye(4)])
    rng = np.random.default_rng(0)
    for _ in range(10):
        y_hat, variance = rng.normal(1, 3, 7), S.sum(axis=1)
        scaled = S / np.sqrt(variance)[:, None], y_hat / np.sqrt(variance)
        b = optimize.nnls(*scaled)[0] if nonnegative else np.linalg.lstsq(*scaled)[0]
        claim = adapters.reconciliation(S @ b, S, y_hat, variance, nonnegative)
        assert claim.certificate().optimal
        other = adapters.reconciliation(S @ (b + np.eye(4)[0] / 10), S, y_hat, variance, nonnegative)
        assert not other.certificate().optimal
        assert not proof_of(other).optimal


@pytest.mark.parametrize(
    ("x", "message"),
    [([2, 1, 4], "not feasible: increasing"), ([1, 1, 4], r"not optimal: it costs 4, and \[2 2 4\] costs 2")],
)
def test_an_assertion_says_what_is_wrong(x, message):
    with pytest.raises(AssertionError, match=message):
        assert_optimal(Isotonic([3, 1, 4], integer=True), x)


def test_an_assertion_of_what_prices_cannot_prove():
    claim = adapters.linear_program([0, 1], [2, 3], [[2, 2]], 1, np.inf, integer=True)
    with pytest.raises(AssertionError, match=r"it costs 3, and \[1 0\] costs 2"):
        assert_optimal(claim.model, claim.x)
    claim = adapters.linear_program([1, 0], [2, 3], [[2, 2]], 1, np.inf, integer=True)
    with pytest.raises(AssertionError, match="not proved: it costs 2, and the best bound found is 1 "):
        assert_optimal(claim.model, claim.x)


@settings(max_examples=20, deadline=None)
@given(instances(MinCostFlow), st.booleans())
def test_a_strategy_makes_instances(model, whole):
    x, _ = fast.answer(model)
    assert_optimal(model, x if whole else x.astype(float))


def test_masses_without_a_sign_are_masses():
    plan, M = np.array([[1, 0], [1, 2]], np.uint8), np.array([[0, 1], [1, 0]], np.uint8)
    claim = adapters.emd(plan, np.array([1, 3], np.uint8), np.array([2, 2], np.uint8), M)
    assert proof_of(claim).optimal
    large = [2.0**63, 2.0**63]  # whole, and beyond what the exact model takes
    assert not proof_of(adapters.emd([[0, 2.0**63], [2.0**63, 0]], large, large, [[0, 1], [1, 0]])).optimal


def test_a_short_way_on_a_long_line_is_proved():
    """The bound on rounding grows with the line; where it says nothing, the distance is computed exactly."""
    model = WassersteinDistance([1 / 3, 0.0], [0.1, 0.1, 9e15, 0.0], [2, 1], [0.1, 1e-8, 0.1, 1e300])
    assert model.certificate([2 / 9]).optimal
    assert not model.certificate([0.23]).optimal
    assert not model.certificate([0.21]).optimal


COST = [[1.0, 9.0], [9.0, 9.0]]
S = [[1, 1], [1, 0], [0, 1]]


assign = adapters.linear_sum_assignment


def reconciled(variance):
    return adapters.reconciliation([11, 4, 7], S, [12, 3, 6], variance)


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (lambda: assign([0, 1], [0, -1], COST), "col_ind has -1: it must be from 0 to 1"),
        (lambda: assign([0, 2], [0, 1], COST), "row_ind has 2: it must be from 0 to 1"),
        (lambda: assign([0, 1], [1, 0], [[1, np.inf], [2, 3]]), "row 0 and column 1 are paired, which"),
        (lambda: adapters.isotonic_regression([2, 2], [3, 1], [1, 0]), "weights[1] is 0: weights must be"),
        (lambda: adapters.ruptures([-1, 4], np.zeros(4), n_bkps=1), "the breaks must be above 0 and rise"),
        (lambda: adapters.ruptures([2, 2, 4], np.zeros(4), n_bkps=2), "the breaks must be above 0 and rise"),
        (lambda: adapters.emd([[1, 0, 0], [1, 2, 0]], [1, 3], [2, 2], COST), "G has shape (2, 3), M (2, 2)"),
        (lambda: reconciled(np.triu(np.ones((3, 3)))), "must be symmetric"),
        (lambda: reconciled([1, 0, 1]), "variance has 0.0: variances must be"),
        (lambda: reconciled([1, -1, 1]), "variance has -1.0: variances must"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_a_library_did_not_answer_is_refused(claim, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        claim()


@pytest.mark.parametrize(
    "form",
    [
        {"constraints": ([[2, 1]], -np.inf, 4)},
        {"constraints": ([2, 1], -np.inf, 4)},
        {"constraints": [([[2, 1]], -np.inf, 4)]},
        {"constraints": [([[2, 1]], 1, 4), optimize.LinearConstraint([[1, 0]], 0, 3)]},
        {"constraints": optimize.LinearConstraint(sparse.csr_matrix([[2, 1]]), -np.inf, 4), "bounds": None},
        {"constraints": ([[2, 1]], -np.inf, 4), "bounds": (0, 9)},
        {"constraints": ([[2, 1]], -np.inf, 4), "bounds": ([0, 0], [9, 8])},
        {"constraints": ([[2, 1]], -np.inf, 4), "bounds": optimize.Bounds(0, [9, 8]), "integrality": [1, 0]},
    ],
    ids=range(8),
)
def test_milp_takes_what_scipy_takes(form):
    problem = {"c": [-1, -1], "integrality": 1, **form}
    proof = proof_of(adapters.milp(optimize.milp(**problem), **problem))
    assert (proof.optimal, proof.objective) == (True, -4)


@pytest.mark.parametrize("bounds", [(0, 3), [0, 3], [(0, 3)], [(0, 3), (0, None)], None, (0, None)], ids=str)
def test_linprog_takes_what_scipy_takes(bounds):
    problem = {"c": [-1, 1], "A_ub": [[1, 1]], "b_ub": [4], "bounds": bounds}
    proof = adapters.linprog(optimize.linprog(**problem), **problem).certificate()
    assert (proof.optimal, proof.objective) == (True, -4 if bounds in (None, (0, None)) else -3)


def test_whole_variables_of_linprog():
    problem = {"c": [-1.0, -1], "A_ub": [[2.0, 1]], "b_ub": [4.5], "integrality": [1, 1]}
    claim = adapters.linprog(optimize.linprog(**problem), **problem)
    assert claim.witness is None
    assert proof_of(claim).objective == -4


def test_a_linear_program_of_fractions_is_not_rounded():
    tenth = Fraction(1, 10)
    claim = adapters.linear_program([1, 1], [-1, -1], [[tenth, 2 * tenth]], -np.inf, 3 * tenth, (0, 1), True)
    assert proof_of(claim).optimal
    near = [Fraction(999_999_999, 10**9), 1]
    assert adapters.linear_program(near, [-1, -1], [[1, 1]], 0, 2, (0, 1), True).x.tolist() == [1, 1]
    assert adapters.linear_program(near, [-1, -1], [[1, 1]], 0, 2, (0, 1)).x.tolist() == near


@pytest.mark.parametrize("kinds", [(2, 2), (0, 2), (3, 1)])
def test_semi_continuous_variables_of_highs_are_refused(kinds):
    """0 is allowed beside 2 to 5: read as 2 to 5, the answer (2, 2) would be proved."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    variables = [solver.addVariable(2, 5, obj=1) for _ in kinds]
    for variable, kind in zip(variables, kinds, strict=True):
        solver.changeColIntegrality(variable.index, highspy.HighsVarType(kind))
    solver.run()
    with pytest.raises(ValueError, match="semi-continuous and semi-integer variables are not supported"):
        adapters.highs(solver)
