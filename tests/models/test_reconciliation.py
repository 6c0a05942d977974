"""Reconciled forecasts: optimal along trees, proved gaps elsewhere, clear errors."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from models import NonNegativeInference, Reconciliation, Tree
from models.testing import instances
from solvers import prove, solve
from solvers.fast import NoFastPath, answer
from tests.marks import quick
from tests.models.families import reconciliation


def sums_of_the_bottom(model):
    lower, upper = (side.astype(np.int64) for side in model.bounds)
    kinds = [range(lower[i], upper[i] + 1) if model.bottom[i] else [0] for i in range(lower.size)]
    for held in product(*kinds):
        x = model.summed(np.array(held))
        if not model.violations(x):
            yield x


@pytest.mark.parametrize("kind", ["tree", "crossed"])
def test_whole_forecasts_along_trees_and_two_that_cross_are_the_best_of_all(kind):
    checked = 0
    for model in reconciliation(True, [kind], 30):
        costs = [model.objective(x) for x in sums_of_the_bottom(model)]
        if model.p == np.inf:
            with pytest.raises(NoFastPath, match="only squared changes"):
                answer(model)
            x = solve(model, "highs").x
            proof = prove(model, x)
        else:
            x, witness = answer(model)
            proof = model.certificate(x, witness)
        assert proof.objective == min(costs)
        # The largest change of whole forecasts may pass that of real ones.
        assert proof.optimal or (model.p == np.inf and proof.bound <= min(costs))
        checked += 1
    assert checked >= 60


@pytest.mark.parametrize("p", quick([1, 2]))
def test_far_whole_forecasts_of_unequal_weights_are_proved(p):
    """The best ones are up to hundreds of units from the relaxed ones, and weights are up to a million."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        model = Reconciliation.random(rng, int(rng.integers(3, 60)))
        whole = np.rint(model.data[0] * rng.choice([1, 1, 100])).astype(np.int64)
        weights = rng.choice([1, 30, 1_000, 1_000_000], whole.size)
        lower = np.zeros(whole.size, np.int64) if rng.random() < 0.5 else None
        model = replace(model, base=whole, weights=weights, lower=lower, upper=None, integer=True, p=p)
        x, witness = answer(model)
        assert model.network is not None
        assert model.certificate(x, witness).optimal


def test_fractions_are_no_hindrance():
    half = [Fraction(21, 2), Fraction(-1, 3), Fraction(10, 7)]
    model = Reconciliation(half, [0, 0], [1, 2], [Fraction(1, 2), Fraction(2, 3), 3], integer=True)
    x, witness = answer(model)
    assert model.certificate(x, witness).optimal
    assert model.objective(x) == min(model.objective([a + b, a, b]) for a in range(9) for b in range(15))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0**-70, 2.0**-70], "pass 62 bits"),
        ([2.0**-70] * 3, "pass 61 bits"),
        ([5e-324] * 3, "too small"),
    ],
)
def test_weights_too_small_for_whole_costs_are_refused(weights, message):
    with pytest.raises(NoFastPath, match=message):
        answer(Reconciliation([10, 4, 3], [0, 0], [1, 2], weights, integer=True))


def test_sums_that_three_attributes_share_are_no_network():
    (model, *_) = reconciliation(True, ["three"])
    assert model.network is None
    assert not model.always_proved
    twice = Reconciliation(np.zeros(3), [0, 0, 1], [1, 2, 2])  # series 2 is in series 0 twice
    assert twice.network is None


def test_rounded_forecasts_of_three_hierarchies_come_with_a_true_gap():
    exactly, checked = 0, 0
    for model in reconciliation(True, ["three"], 100):
        if model.p != 2:
            continue
        try:
            x, witness = answer(model)
        except NoFastPath:
            continue
        least = min(model.objective(each) for each in sums_of_the_bottom(model))
        proof = model.certificate(x, witness)
        assert proof.objective >= least >= proof.bound
        exactly += proof.objective == least
        checked += 1
    assert checked > 40
    assert exactly > checked / 2


@pytest.mark.parametrize("backend", ["highs", "clarabel"])
@pytest.mark.parametrize("kind", ["tree", "crossed"])
def test_largest_changes_over_the_reals_are_proved(kind, backend):
    checked = 0
    for model in reconciliation(False, [kind]):
        if model.p != np.inf:
            continue
        found = solve(model, backend)
        proof = prove(model, found.x)
        checked += 1
        if backend == "highs":
            assert proof.optimal
        # Its answers break bounds and sums by its own tolerance.
        assert found.objective == pytest.approx(solve(model, "highs").objective, abs=1e-5)
    assert checked > 5


def with_factors(seed):
    rng = np.random.default_rng(seed)
    model = Reconciliation.random(rng, int(rng.integers(6, 40)))
    factors = rng.normal(size=(model.data[0].size, int(rng.integers(1, 9)))) * rng.choice([0.1, 1, 10])
    return replace(model, integer=False, factors=factors)


@pytest.mark.parametrize("seed", range(12))
def test_correlated_errors_are_proved(seed):
    model = with_factors(seed)
    try:
        x, witness = answer(model)
    except NoFastPath:
        return
    proof = model.certificate(x, witness)
    assert proof.optimal
    other = solve(model, "clarabel")
    slack = 1e-5 * max(1.0, float(other.objective))  # the backend's own tolerance
    assert abs(proof.objective - other.objective) <= slack
    rng = np.random.default_rng(seed)
    weights, factors = model.data[1].astype(float), model.factors
    inverse = np.linalg.inv(np.diag(1 / weights) + factors @ factors.T)
    away = x - model.data[0]
    assert proof.objective == pytest.approx(away @ inverse @ away, rel=1e-6)  # inverses of condition 1e5
    for _ in range(20):  # whatever the prices, the bound is one
        prices = {name: held * rng.uniform(0.5, 2, held.size) for name, held in witness.items()}
        bound = model.certificate(x, prices).bound
        assert bound is None or bound <= proof.objective * (1 + 1e-7)


@settings(deadline=None)
@given(instances(Reconciliation, 40))
def test_forecasts_over_the_reals_are_proved(model):
    model = model.relaxed() or model
    try:
        x, witness = answer(model)
    except NoFastPath:
        return
    assert model.certificate(x, witness).optimal
    bottom = np.where(model.bottom, x, 0)
    np.testing.assert_array_equal(model.summed(bottom), x)  # the same additions in the same order


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("integer", [False, True])
def test_two_solvers_agree(seed, integer):
    model = Reconciliation.random(np.random.default_rng(seed), 24)
    if model.integer != integer:
        model = replace(model, base=np.rint(model.data[0]), weights=None, integer=integer)
    if integer:  # CP-SAT needs bounds
        model = replace(model, upper=np.minimum(model.bounds[1], 10_000).astype(np.int64))
    first = solve(model, "fast")
    for name in ["cp-sat", "highs"] if integer else ["clarabel", "highs"]:
        other = solve(model, name)
        slack = 1e-5 * max(1.0, abs(float(first.objective)))  # the backends' own tolerance
        assert other.objective <= first.objective + slack
        assert first.certificate.bound <= other.objective + slack


def test_the_same_as_non_negative_inference_along_a_tree():
    tree = Tree([[0, 0, 0], [0, 0, 1, 1, 2]])
    noisy, weights = np.array([9, 5, -2, 4, 1, 3, -4, 2, 4]), np.array([1, 2, 3, 1, 2, 2, 5, 1, 1])
    links = tree.parent[1:], np.arange(1, tree.size)
    for integer in (False, True):
        other = NonNegativeInference(tree, noisy, weights, integer)
        found = solve(Reconciliation(noisy, *links, weights, integer=integer), "fast")
        np.testing.assert_allclose(found.x, solve(other, "fast").x, atol=1e-12)  # numbers of one digit


def test_fixed_series_stay():
    model = Reconciliation([10, 4, 3], [0, 0], [1, 2], lower=[7, 0, 3], upper=[7, 9, 3])
    assert solve(model, "fast").x.tolist() == [7, 4, 3]
