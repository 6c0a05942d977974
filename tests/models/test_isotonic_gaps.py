"""Isotonic: exact gaps of suboptimal answers, and the second algorithm for the optimum that gives them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Isotonic
from solvers import fast, prove
from solvers.fast.isotonic import optimum
from tests.brute import isotonic_cost, isotonic_real, monotone

pytestmark = pytest.mark.slow

WEIGHTS = [None, (1, 2, 3, 1), (3, 1, 1, 5)]


def test_bounds_that_are_no_integers_keep_the_gap_exact():
    for bound in (Fraction(1, 3), 0.1, 0.5):
        for p, kind in product((1, 2), (int, object)):
            model = Isotonic(np.array([2, -1, 0, 3], dtype=kind), p=p, lower=bound, upper=bound + 2)
            low, high = Fraction(bound), Fraction(bound + 2)
            least = isotonic_real([2, -1, 0, 3], (1,) * 4, p, lower=low, upper=high)
            for x in ([1, 1, 1, 2], [1, 1, 2, 2], [low, low, low, high], [low, 1, 1, high]):
                x = np.array(x, dtype=int if x[0] == 1 else object)
                proof = prove(model, x)
                gap = isotonic_cost(x.tolist(), [2, -1, 0, 3], (1,) * 4, p) - least
                assert (proof.gap, proof.optimal) == (gap, gap == 0), (model, x)
            above = np.array([low + Fraction(1, 10**30)] * 3 + [high], dtype=object)
            best = np.array([low] * 3 + [high], dtype=object)
            away = Isotonic(np.array([-1, -1, -1, 3], dtype=kind), p=p, lower=bound, upper=bound + 2)
            assert away.certificate(best).optimal
            assert 0 < prove(away, above).gap < Fraction(1, 10**28)


@pytest.mark.parametrize("p", [1, 2])
def test_partitioning_finds_the_least_optimal_answer(p):
    for weights, y in product(WEIGHTS, product(range(-1, 3), repeat=4)):
        w = None if weights is None else np.array(weights)
        feasible = np.array(monotone(4, -1, 2))
        cost = (np.abs(feasible - y) ** p * (1 if w is None else w)).sum(axis=1)
        least = feasible[cost == cost.min()].min(axis=0)
        assert np.array_equal(optimum(np.array(y), w, p, True), least)
        assert np.array_equal(optimum(np.array(y, object), w, p, True), least)
        assert np.array_equal(optimum(np.array(y, float), w, p, True), least)
        if p == 1:
            for kind in (int, float, object):
                assert np.array_equal(
                    optimum(np.array(y, kind) / 2 if kind is float else np.array(y, kind), w, 1, False),
                    least / 2 if kind is float else least,
                )


def test_partitioning_keeps_the_last_digit_of_large_whole_numbers():
    """The ends of the range of values must not become floats."""
    for y in (2**63 - 1, -(2**63) + 1, 2**60 + 1):
        found = optimum(np.array([y]), np.array([10**20], object), 1, False)
        assert found.tolist() == [y]


values = st.one_of(
    st.integers(-5, 5),
    st.fractions(-4, 4, max_denominator=5),
    st.sampled_from([10**30, -(10**30), Fraction(1, 10**30), 2**61, -(2**62), 2**63 - 1, 10**9]),
)


@given(st.lists(values, min_size=1, max_size=12), st.data(), st.booleans(), st.sampled_from([1, 2]))
@settings(max_examples=70, deadline=None, derandomize=True)
def test_partitioning_agrees_with_the_fast_path_on_ugly_numbers(y, data, integer, p):
    weight = st.one_of(st.integers(1, 9), st.fractions(Fraction(1, 9), 9, max_denominator=9), st.just(10**20))
    weights = data.draw(st.none() | st.lists(weight, min_size=len(y), max_size=len(y)))
    w = None if weights is None else np.array(weights, dtype=object)
    if all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in y) and data.draw(st.booleans()):
        y = np.array(y, np.int64)
    else:
        y = np.array(y, dtype=object)
    model = Isotonic(y, p=p, weights=w, integer=integer)
    if y.dtype == object or w is not None:
        best = model.objective(fast.answer(model)[0])
        z = optimum(y, w, p, integer)
        assert (z[1:] >= z[:-1]).all()
        assert isotonic_cost(z.tolist(), y.tolist(), (1,) * len(y) if w is None else w.tolist(), p) == best
    x = np.full(y.size, int(data.draw(st.integers(-10, 10))), dtype=object)
    proof = prove(model, x)
    assert (
        proof.gap == isotonic_cost(x, y.tolist(), (1,) * len(y) if w is None else w.tolist(), p) - proof.bound
    )
    assert proof.gap >= 0


def test_skewed_data_split_in_few_rounds():
    rng = np.random.default_rng(8)
    for scale in (1, 20, 100):
        y = np.exp(rng.normal(0, scale, 20_000))
        for noisy in (y, np.sort(y), np.sort(y)[::-1], np.sort(y) * rng.uniform(0.5, 2, y.size)):
            z = optimum(noisy, None, 2, False, exactly=False)
            assert (np.diff(z) >= 0).all()
            assert z == pytest.approx(fast.answer(Isotonic(noisy))[0], rel=1e-7)


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
@settings(max_examples=70, deadline=None, derandomize=True)
def test_gaps_in_floats_are_exact_to_rounding(y, p, integer, bounded, data):
    sizes = {"min_size": len(y), "max_size": len(y)}
    weights = data.draw(st.none() | st.lists(st.floats(0.01, 100), **sizes))
    bounds = {"lower": -3, "upper": 50.5 if not integer else 50} if bounded else {}
    model = Isotonic(np.array(y), p=p, weights=weights, integer=integer, **bounds)
    x = np.sort(data.draw(st.lists(st.integers(-3, 50), **sizes)))
    if not integer:
        x = np.clip(x + data.draw(st.floats(0, 0.5)), -3, 50.5)
    proof = prove(model, x)
    best = model.objective(fast.answer(model)[0])
    tolerance = 1e-9 * max(1.0, float(proof.objective))
    assert proof.gap == pytest.approx(float(proof.objective - best), abs=tolerance)
    assert proof.bound <= best + tolerance


def test_gaps_of_a_hundred_thousand_entries():
    rng = np.random.default_rng(3)
    n = 10**5
    y = np.sort(rng.integers(0, 10**9, n)) + rng.integers(-(10**8), 10**8, n)
    w = rng.integers(1, 10, n)
    for model in (
        Isotonic(y, integer=True, lower=0, last=10**9),
        Isotonic(y, p=1, integer=True, weights=w),
        Isotonic(y, p=1, upper=9 * 10**8),
    ):
        best = fast.answer(model)[0]
        x = np.minimum(best + np.arange(n) // 1000, 9 * 10**8)
        x[-1] = 10**9 if model.last is not None else x[-1]
        proof = prove(model, x)
        assert type(proof.gap) is int
        assert proof.gap == model.objective(x) - model.objective(best) > 0
    real = Isotonic(y, weights=w, lower=0)
    best = fast.answer(real)[0]
    x = best + np.arange(n) * 1000
    assert prove(real, x).gap == pytest.approx(real.objective(x) - real.objective(best), rel=1e-9)


def test_huge_whole_data_and_answers_in_floats():
    model = Isotonic([2**61, -(2**61), 7, 2**60], p=1, weights=[10**6] * 4)
    best = fast.answer(model)[0]
    assert model.certificate(best).optimal
    assert model.certificate(best.astype(float)).optimal
    off = prove(model, best + 2.0**50)
    assert off.gap == pytest.approx(float(model.objective(best + 2**50) - model.objective(best)))
    wide = Isotonic([0.5, 0.25], lower=-1e30, upper=1e30)
    assert wide.certificate(fast.answer(wide)[0]).optimal
    assert prove(wide, [0.0, 1e30]).gap == pytest.approx(1e60)
    assert Isotonic([0.5, -1e25], p=1, integer=True).certificate([0, 0]).optimal


def test_a_whole_answer_that_rounding_makes_look_best_is_not():
    proof = prove(Isotonic([2**60, 2**60 - 1]), [2**60, 2**60])
    assert (proof.optimal, proof.objective, proof.bound, proof.gap) == (
        False,
        1,
        Fraction(1, 2),
        Fraction(1, 2),
    )


def test_answers_are_read_through_any_strides():
    y = np.array([5, 1, 4, 2, 3, 9])
    model = Isotonic(y, integer=True)
    x = fast.answer(model)[0]
    wide = np.zeros(12, int)
    wide[::2] = x
    assert model.certificate(wide[::2]).optimal
    wide[2::2] += 1
    assert prove(model, wide[::2]).gap == model.objective(wide[::2]) - model.objective(x)


def test_partitioning_of_whole_numbers_beyond_64_bits():
    rng = np.random.default_rng(5)
    for top, heaviest in ((2**50, 2**10), (2**52, 2**12), (2**60, 9), (2**63 - 1, 1)):
        y = rng.integers(-top, top, 40)
        w = rng.integers(1, heaviest + 1, 40)
        for p in (1, 2):
            z = optimum(y, w, p, True)
            assert z.tolist() == optimum(y.astype(object), w.astype(object), p, True).tolist()
            fine = Isotonic(y.astype(object), p=p, weights=w, integer=True)
            assert fine.objective(z) == fine.objective(fast.answer(fine)[0])
    assert optimum(np.array([1e25, -1e25]), None, 1, True).tolist() == [int(-1e25)] * 2


def test_blocks_cut_in_two_by_rounding_do_not_fall():
    y, w = np.array([0.1, 0.1 + 0.2, 0, 0]), np.full(4, 0.1)
    z = optimum(y, w, 2, False, exactly=False)
    assert z == pytest.approx([0.1] * 4)
    assert (np.diff(z) >= 0).all()
