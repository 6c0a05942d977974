"""Merging of estimates: all tiny instances by brute force, exact gaps, ties, large and difficult data."""

import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from models import Merging
from solvers import solve


def cost(x, y, w):
    return sum(
        Fraction(w[k][i]) * (Fraction(x[i]) - Fraction(y[k][i])) ** 2
        for k in range(len(y))
        for i in range(len(x))
    )


def test_every_tiny_real_instance_is_judged_exactly_in_fractions():
    for values in product(range(3), repeat=2):
        for weights in product((1, 2), repeat=2):
            y, w = [[value] for value in values], [[weight] for weight in weights]
            model = Merging(np.array(y, object), w)
            mean = Fraction(values[0] * weights[0] + values[1] * weights[1], sum(weights))
            assert solve(model).x.tolist() == [mean]
            for x in (mean, mean + Fraction(1, 3), Fraction(0)):
                proof = model.certificate(np.array([x], object))
                assert proof.gap == cost([x], y, w) - cost([mean], y, w)
                assert proof.optimal == (x == mean)


def test_halves_go_to_the_even_number():
    pairs = [[0, 1, 2, 3, -1, -2, -3], [1, 2, 3, 4, 0, -1, -2]]
    ones = np.ones((2, 7), np.int64)
    assert solve(Merging(pairs, ones, integer=True)).x.tolist() == [0, 2, 2, 4, 0, -2, -2]
    halves = np.array(pairs) + 0.0
    assert solve(Merging(halves, ones, integer=True)).x.tolist() == [0, 2, 2, 4, 0, -2, -2]
    assert solve(Merging(np.array(pairs, object), ones, integer=True)).x.tolist() == [0, 2, 2, 4, 0, -2, -2]


@pytest.mark.parametrize("top", [2**31, 2**45, 2**59, 2**62 - 1])
def test_huge_whole_data_are_exact(top):
    rng = np.random.default_rng(top % 1000)
    y = rng.integers(-top, top, (2, 40))
    w = rng.integers(1, top, (2, 40))
    model = Merging(y, w, integer=True)
    found = solve(model)
    y, w = y.tolist(), w.tolist()
    assert found.status == "optimal"
    assert found.objective == cost(found.x.tolist(), y, w)
    for i in (0, 39):
        off = np.array(found.x, object)
        off[i] += 5
        proof = model.certificate(off)
        assert proof.gap == cost(off.tolist(), y, w) - cost(found.x.tolist(), y, w)
        assert proof.reason == f"the weighted residuals of x[{i}] do not balance"
    relaxed = Merging(y, w)
    exactly = [Fraction(a * c + b * d, a + b) for a, b, c, d in zip(w[0], w[1], y[0], y[1], strict=True)]
    assert [float(x) for x in solve(relaxed).x] == pytest.approx([float(x) for x in exactly], rel=1e-12)


def test_an_answer_far_from_the_estimates_is_judged_exactly():
    model = Merging([[3], [4]], [[2**40], [1]], integer=True)
    for x in (2**61, -(2**61)):
        assert model.certificate([x]).gap == cost([x], [[3], [4]], [[2**40], [1]]) - 1


def test_floats_are_judged_to_rounding():
    rng = np.random.default_rng(5)
    y, w = rng.normal(0, 50, (2, 500)), rng.uniform(0.1, 9, (2, 500))
    for integer in (False, True):
        model = Merging(y, w, integer=integer)
        found = solve(model)
        assert found.status == "optimal"
        assert model.certificate(found.x).gap >= 0
        mean = (y * w).sum(0) / w.sum(0)
        assert np.allclose(found.x, np.rint(mean) if integer else mean)
        assert not model.certificate(np.asarray(found.x) + 1).optimal


def test_fractional_answers_of_whole_models_are_refused():
    model = Merging([[1], [2]], [[1], [1]], integer=True)
    assert model.violations([1.5]) == ["integer: x[0] = 1.5"]
    assert model.certificate([1.5]).bound is None
    assert Merging([[1], [2]], [[1], [1]]).certificate([1.5]).optimal


def test_the_reason_names_no_entry_that_is_optimal():
    model = Merging([[0, 5], [1, 5]], [[1, 1], [1, 1]], integer=True)
    assert (
        model.certificate([1, 6]).reason == "the weighted residuals of x[1] do not balance"
    )  # 1 is as close as 0


def test_a_neighbour_that_is_worse_by_a_hair_is_not_proved():
    """At a half, rounding in floats makes the other neighbour look better by 1e-11."""
    model = Merging(
        [[1001.9656580211335], [995.6428571428571]], [[49.57142857142857], [14.958333333333334]], integer=True
    )
    assert solve(model).x.tolist() == [1001]
    assert model.certificate([1001]).optimal
    other = model.certificate([1000])
    assert not other.optimal
    assert 0 < other.gap < 1e-9
    assert other.reason == "the weighted residuals of x[0] do not balance"


@pytest.mark.parametrize("seed", range(40))
def test_whole_answers_beside_floats_have_no_tolerance(seed):
    """Means at a half, or off by a unit in the last place, and huge ones: proved only if the nearest."""
    rng, n = np.random.default_rng(seed), 6
    if seed % 2:
        w = rng.integers(1, 2**20, (2, n)) / 2.0 ** rng.integers(0, 20)
        first = rng.integers(-1000, 1000, n) + rng.choice([0.25, 0.1, 1 / 3], n)
        middle = rng.integers(-9, 9, n) + 0.5
        y = np.stack([first, (middle * w.sum(axis=0) - w[0] * first) / w[1]])
        y += rng.choice([0, 1, -1], y.shape) * np.spacing(np.abs(y))
    else:
        y, w = rng.normal(0, 10.0 ** rng.integers(-3, 19), (2, n)), rng.uniform(1e-3, 9, (2, n))
    model = Merging(y, w, integer=True)
    found = solve(model)
    best = cost(found.x.tolist(), y, w)
    assert found.certificate.optimal
    assert Fraction(found.certificate.bound) <= best
    for i, step in product(range(n), (-1, 1)):
        other = found.x.tolist()
        other[i] += step
        proof, more = model.certificate(other), cost(other, y, w) - best
        assert more >= 0
        assert proof.optimal == (more == 0)
        assert Fraction(proof.bound) <= best


def test_floats_whose_squares_overflow_prove_nothing_and_raise_nothing():
    """Sums that 64 bits do not hold are Python integers; products with the answer in floats are infinite."""
    large = 2**27
    model = Merging(
        np.array([[large, 0], [-large // 2, 0]], object),
        np.array([[large, large], [2 * large, 3 * large]], object),
    )
    proof = model.certificate([-1e290, -1e290])
    assert not proof.optimal
    assert proof.bound == -np.inf
    assert proof.objective == np.inf
    assert Merging(np.array([[10**299], [0]], object), [[1], [1]]).certificate([0.5]).bound == -np.inf


@pytest.mark.parametrize("number", [10**301, Fraction(10**400, 7), Fraction(1, 10**301), -(10**400)])
def test_numbers_that_floats_do_not_hold_are_no_data(number):
    for data in ([[number], [0]], [[1], [1]]), ([[1], [1]], [[abs(number)], [1]]):
        with pytest.raises(ValueError, match="must be between 1e-300 and 1e300"):
            Merging(*(np.array(part, object) for part in data))


@pytest.mark.parametrize(
    ("estimates", "best"),
    [
        ([[2.0**64], [2.0**64]], [2**64]),
        ([[2.0**63], [2.0**63]], [2**63]),
        ([[-(2.0**70), 3.5], [2.0**66, 1.5]], [-(2**69) + 2**65, 2]),
        ([[1e299, 1.0], [1e299, 2.5]], [int(1e299), 2]),
    ],
)
def test_whole_means_beyond_64_bits_do_not_wrap(estimates, best):
    model = Merging(np.array(estimates), np.ones(np.shape(estimates)), integer=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve(model)
    assert found.x.tolist() == best
    assert found.certificate.optimal
