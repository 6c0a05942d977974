"""Non-negative least squares for a parent's children: by hand, other solvers, contradictions, broken code."""

from dataclasses import replace

import numpy as np
import pytest

import solvers.fast.workload_least_squares as fast_path
from models import SimplexQP, Workload, WorkloadLeastSquares
from solvers import fast, solve
from solvers.fast import children_newton

TWO = Workload.marginals((2,), [(), (0,)])
TOTAL = Workload.marginals((2,), [()])


def test_small_example_computed_by_hand():
    """Without x ≥ 0, child 0 would be (4, −1) and child 1 (2, 2); see the certificate's docstring."""
    model = WorkloadLeastSquares(TWO, [[3, 4, -1], [4, 2, 2]], [0, 1], parent=[6, 1])
    assert np.allclose(solve(model).x, [[4, 0], [2, 1]])
    proof = model.certificate([[4, 0], [2, 1]])
    assert (proof.optimal, proof.objective, proof.gap) == (True, 2, 0)
    worse = model.certificate([[4, 1], [2, 0]])
    assert not worse.optimal
    assert worse.gap >= 6


def test_one_total_and_no_other_query_is_the_simplex_qp():
    rng = np.random.default_rng(0)
    for _ in range(3):
        noisy = rng.integers(-3, 9, 6)
        one = SimplexQP(noisy, 12, integer=False)
        cells = Workload.marginals((6,), [(0,)])
        rule = Workload.marginals((6,), [()])
        other = WorkloadLeastSquares(cells, noisy[None], [1], None, None, rule, 12, 12)
        assert np.allclose(solve(other).x[0], solve(one).x)
        children = WorkloadLeastSquares(Workload.marginals((1,), [(0,)]), noisy[:, None], [1], [12])
        assert np.allclose(solve(children).x[:, 0], solve(one).x)


@pytest.mark.parametrize("rules", [False, True])
def test_a_state_of_254_counties_is_proved(rules):
    model = WorkloadLeastSquares.typical(np.random.default_rng(0), 254 * 16, rules=rules)
    found = solve(model)
    assert found.status == "optimal"
    assert found.gap <= 1e-9 * found.objective


def test_an_answer_is_proved_by_the_witness_of_another():
    model = WorkloadLeastSquares.typical(np.random.default_rng(1), 160)
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    share = np.full(model.shape, 1 / model.children) * np.asarray(model.parent)
    other = model.certificate(share, proof.witness)
    assert not other.optimal
    assert other.bound == pytest.approx(proof.bound, rel=1e-9)


def test_fixed_totals_of_millions_are_proved():
    """The totals are fixed twice, by rules and by the parent; large prices would magnify rounding errors."""
    rng = np.random.default_rng(1)
    workload = Workload.marginals((2, 2), [(), (0, 1)])
    true = rng.integers(1, 3_000_000, (4, 4))
    noisy, totals = workload.answers(true) + rng.normal(0, 0.01, (4, 5)), true.sum(axis=1, keepdims=True)
    rules = Workload.marginals((2, 2), [()])
    model = WorkloadLeastSquares(workload, noisy, [0.05, 0.1], true.sum(axis=0), None, rules, totals, totals)
    found = solve(model)
    assert found.certificate.optimal
    assert np.abs(found.witness["parent"]).max() < 1


def test_a_wrong_active_set_is_not_proved(monkeypatch):
    model = WorkloadLeastSquares.typical(np.random.default_rng(0), 160)
    assert solve(model).status == "optimal"

    def averaged(p):
        p.cells[:, fast_path.X] = p.parent / len(p.cells)
        p.cells[:, fast_path.SLOPE] = 1.0
        return 1

    monkeypatch.setattr(fast_path, "children_newton", averaged)
    found = solve(model)
    assert found.status == "unsupported"
    assert "leave a gap" in found.message


def test_rules_and_zeros_bind():
    rule = {"rules": TOTAL, "lower": [[2], [-np.inf]], "upper": [[2], [np.inf]]}
    model = WorkloadLeastSquares(
        TWO, [[9, 5, 4], [0, 0, 0]], [1, 1], [5, 5], [[False, True], [False, False]], **rule
    )
    found = solve(model)
    assert found.status == "optimal"
    assert np.allclose(found.x, [[2, 0], [3, 5]])
    assert model.violations([[2, 1], [3, 4]]) == [
        "x[0, 1] = 1, not 0",
        "rules: child 0, query 0, answer 0, is 3, not 2",
    ]
    assert model.violations([[-1, 3], [3, 4]])[0] == "x[0, 0] = -1, not at least 0"
    assert "parent: the sum, cell 0, is 2, not 5" in model.violations([[2, 0], [0, 5]])


def test_constraints_that_contradict_each_other_are_not_answered():
    """Bounds by age and by region contradict each other; no single sum shows it."""
    cross = Workload.marginals((2, 2), [(0, 1)])
    rules = Workload.marginals((2, 2), [(0,), (1,)])
    model = WorkloadLeastSquares(
        cross, [[1, 1, 1, 1]], [1], None, None, rules, [4, 4, 0, 0], [np.inf, np.inf, 1, 1]
    )
    assert solve(model).status == "unsupported"
    assert solve(model, "highs").status == "infeasible"


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12])
def test_no_prices_excuse_sums_that_are_off(shift):
    """The tolerance for sums of large counts is wide. An answer that uses it to cost less is refused.

    Prices of fixed totals can all be shifted against the parent's, at no cost.
    """
    workload = Workload.marginals((1,), [(0,)])
    noisy, parent = [[5e8], [5e8 + 1]], [10**9]
    totals = Workload.marginals((1,), [()])
    fixed = [[5e8], [5e8]]
    model = WorkloadLeastSquares(workload, noisy, [1e6], parent, None, totals, fixed, fixed)
    assert not model.violations(noisy)  # within the tolerance
    witness = {"parent": [[-shift]], "rules": [[shift], [shift]]}
    best = solve(model)
    prices = {name: np.asarray(best.witness[name]) + np.asarray(witness[name]) for name in witness}
    assert best.status == "optimal"
    assert not model.certificate(noisy, prices).optimal


def test_large_counts_lose_no_digits_of_the_gap():
    """A bound that is the difference of squares of 10⁹ would be wrong by 10⁴ of a cost of 10."""
    noisy = np.array([[2e9 + 3, 1e9 + 1, 1e9], [10.0, 4.0, 5.0]])
    model = WorkloadLeastSquares(TWO, noisy, [1, 1], [10**9 + 6, 10**9 + 6])
    x, witness = fast.answer(model)
    assert model.certificate(x, witness).optimal


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("rules", [False, True])
def test_systems_of_many_cells_and_of_few(monkeypatch, few, rules):
    """Of many cells, the prices are found by conjugate gradients from systems of the sums."""
    monkeypatch.setattr(fast_path, "FEW", few)
    rng = np.random.default_rng(0)
    workload = Workload.marginals((4, 4), [(), (0,), (1,), (0, 1)])
    true = rng.poisson(2, (3, 16))
    true[0] += true.sum(axis=0) == 0
    noisy = workload.answers(true) + rng.integers(-4, 5, (3, 25))
    given = {}
    if rules:
        groups = Workload.marginals((4, 4), [(0,)])
        held = groups.answers(true)
        given = {"rules": groups, "lower": held, "upper": held}
    model = WorkloadLeastSquares(workload, noisy, [1, 2, 3, 4], true.sum(axis=0), **given)
    assert len(fast_path._problem(model).children.gain) == (16 if few else 0)
    assert solve(model).certificate.gap <= 1e-9


def hard(kind, seed):
    """Large counts, small ones, weights that differ or are small, ties, or one child unlike others."""
    rng = np.random.default_rng([seed, 7])
    size = int(rng.choice([10, 40, 200]))
    if seed % 2:
        model = WorkloadLeastSquares.random(rng, size)
    else:
        model = WorkloadLeastSquares.typical(rng, 2 * size, rules=bool(seed % 4))
    noisy, weights = model.data
    if kind in ("huge", "tiny"):
        power = rng.integers(6, 12)
        by = 10 ** int(power) if kind == "huge" else 10.0**-power
        names = ("noisy", "parent", "lower", "upper")
        given = {name: getattr(model, name) for name in names if getattr(model, name) is not None}
        return replace(model, **{name: np.asarray(part) * by for name, part in given.items()})
    if kind == "weights":
        return replace(model, weights=weights * 10.0 ** rng.integers(-3, 4, weights.shape))
    if kind == "light":
        return replace(model, weights=weights * 10.0 ** -rng.integers(0, 100))
    if kind == "tied":
        return replace(model, noisy=np.full(noisy.shape, int(rng.integers(-1, 3))))
    noisy = noisy.copy()
    noisy[0] *= 10**6
    return replace(model, noisy=noisy)


@pytest.mark.parametrize("kind", ["huge", "tiny", "weights", "light", "tied", "one child"])
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 60), marks=pytest.mark.slow)])
def test_hard_instances_are_proved(kind, seeds):
    """Of 60, at most two with binding rules at very different scales are left to another backend."""
    unsolved = []
    for seed in seeds:
        found = solve(hard(kind, seed))
        assert found.status in ("optimal", "unsupported"), (seed, found.message)
        if found.status == "unsupported":
            unsolved.append(seed)
    assert len(unsolved) <= len(seeds) // 25, unsolved


def test_active_sets_that_cycle_are_found_by_the_line_search(monkeypatch):
    """Without the quick corrections of active sets, each child is solved by the projected Newton method."""
    monkeypatch.setattr(children_newton, "TURNS", 0)
    for seed in range(4):
        model = WorkloadLeastSquares.random(np.random.default_rng([4, seed]), 20)
        problem = fast_path._problem(model)
        assert children_newton.children_newton.py_func(problem.children) > 0
        quick = solve(model)
        assert np.allclose(problem.children.cells[:, fast_path.X] * problem.unit, quick.x[:, problem.columns])


@pytest.mark.parametrize(("children", "few"), [(10, 1), (40, 4)])
def test_a_cell_with_few_persons_among_many_is_divided(children, few):
    """At the first prices, no child seems to have any of them."""
    rng = np.random.default_rng(7 if children == 10 else 0)
    workload = Workload.marginals((2, 2), [(), (0,), (1,), (0, 1)])
    true = rng.poisson(10_000, (children, 4))
    true[:, 3] = 0
    true[0, 3] = few
    noisy = workload.answers(true)
    noisy = noisy + rng.normal(0, 12, noisy.shape)
    model = WorkloadLeastSquares(workload, noisy, [0.004] * 4, true.sum(axis=0))
    assert solve(model).certificate.gap <= 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_an_only_child_loses_no_digits_to_sums_of_great_weight(seed):
    """Cells weigh 500 times less than sums of pairs here, as in a plan that is optimal for these."""
    rng = np.random.default_rng(seed)
    workload = Workload.marginals((14, 8, 2), [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
    parent = np.maximum(0, rng.integers(-20_000, 120_000, workload.cells) + rng.normal(size=workload.cells))
    noisy = workload.answers(parent[None]) + rng.normal(size=(1, workload.size))
    model = WorkloadLeastSquares(workload, noisy, [0.33, 0.33, 0.33, 0.002], parent)
    x, witness = fast.answer(model)
    assert np.array_equal(x, parent[None])
    assert model.certificate(x, witness).optimal
