"""Isotonic: real answers against all blocks; difficult, large and perturbed instances."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Isotonic
from solvers import fast, prove, solve
from tests.brute import isotonic_cost, isotonic_real, monotone
from tests.marks import quick, shares

WEIGHTS = {"equal": None, "mixed": (1, 2, 3, 1), "heavy end": (3, 1, 1, 5)}


def vectors(longest: int, values: range):
    return [y for n in range(1, longest + 1) for y in product(values, repeat=n)]


@shares(5)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("kind", quick(WEIGHTS, slow=lambda kind: kind != "mixed"))
def test_every_tiny_real_instance_exactly_in_fractions_and_nearly_in_floats(p, kind, share):
    real_bounds = [
        {},
        {"lower": 0},
        {"upper": Fraction(1, 2)},
        {"last": 1},
        {"lower": -1, "last": Fraction(1, 3)},
    ]
    tiny = vectors(3, range(-1, 3)) + list(product(range(-1, 2), repeat=4))
    for bounds in real_bounds:
        for y in tiny[share]:
            weights = None if WEIGHTS[kind] is None else WEIGHTS[kind][: len(y)]
            w = weights or (1,) * len(y)
            best = isotonic_real(y, w, p, **bounds)
            exactly = Isotonic(np.array(y, dtype=object), p=p, weights=weights, **bounds)
            x = fast.answer(exactly)[0]
            assert isotonic_cost(x, y, w, p) == best, exactly
            proof = exactly.certificate(x)
            assert proof.optimal, exactly
            assert proof.bound == proof.objective == best
            floats = Isotonic(y, p=p, weights=weights, **{k: float(v) for k, v in bounds.items()})
            near = fast.answer(floats)[0]
            assert float(floats.objective(near)) == pytest.approx(float(best), abs=1e-9)
            assert floats.certificate(near).optimal, floats


def exact_cost(model: Isotonic, x) -> int:
    noisy, weights = model.data
    return sum(
        w * abs(a - y) ** model.p
        for a, y, w in zip(x.tolist(), noisy.tolist(), weights.tolist(), strict=True)
    )


def test_fractions_as_whole_answers():
    y = np.array([Fraction(5, 2), Fraction(1, 3), Fraction(7, 2)], dtype=object)
    for p in (1, 2):
        model = Isotonic(y, p=p, integer=True)
        x = fast.answer(model)[0]
        best = min(isotonic_cost(z, y, (1, 1, 1), p) for z in monotone(3, -1, 5))
        proof = prove(model, x)
        assert proof.optimal
        assert proof.objective == best
        assert isinstance(proof.objective, Fraction)


def test_a_gap_beyond_64_bits_is_exact():
    model = Isotonic(np.arange(0, 10**9, 10**5)[::-1], integer=True)
    proof = prove(model, np.full(10**4, -(10**9)))
    assert not proof.optimal
    assert proof.gap > 2**63
    assert proof.objective == exact_cost(model, np.full(10**4, -(10**9)))
    far = Isotonic([0, 5] * 500, p=1, upper=10**15, weights=[10**6] * 1000, integer=True)
    proof = prove(far, np.arange(1000))
    assert proof.bound <= solve(far).objective


def test_an_unbounded_price_has_no_limit():
    model = Isotonic([-(10**13)] * 3, weights=[10**6] * 3, lower=0, integer=True)
    assert model.certificate([0, 0, 0]).optimal
    assert model.certificate([0, 0, 0]).objective == 3 * 10**32
    assert not model.certificate([0, 0, 1]).optimal
    floats = Isotonic([-1e18] * 3, weights=[1e6] * 3, lower=0.0)
    assert floats.certificate([0.0, 0.0, 0.0]).optimal


def test_means_beyond_64_bits():
    whole = solve(Isotonic([2**62 - 1, -(2**61), 10**18], integer=True))
    assert whole.status == "optimal"
    real = solve(Isotonic([10**18, 3, 10**17]))
    assert real.status == "optimal"
    assert real.x.dtype == np.float64
    enormous = solve(Isotonic(np.array([10**30, 1], dtype=object), p=1, integer=True))
    assert enormous.status == "optimal"
    assert enormous.objective == 10**30 - 1


def test_random_makes_instances_of_every_kind():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        model = Isotonic.random(rng, 8)
        seen.add((model.p, model.integer, model.lower is None, model.last is None, model.weights is None))
        assert solve(model).status == "optimal"
    assert len(seen) == 32


def test_means_of_huge_sums_do_not_swap_by_rounding():
    # Sums 127403434263521688 of 4 and 95552575697641270 of 3: floats order their means wrongly.
    y = np.array([31850858565880424, 31850858565880422, 31850858565880421, 31850858565880421])
    z = np.array([31850858565880425, 31850858565880423, 31850858565880422])
    x = fast.answer(Isotonic(np.append(y, z)))[0]
    assert y.sum() / 4 > z.sum() / 3
    assert (np.diff(x) >= 0).all()


@given(
    st.sampled_from([2, 2**20]).flatmap(
        lambda far: st.lists(st.tuples(st.integers(-far, far), st.integers(0, 3)), min_size=1, max_size=7)
    ),
    st.sampled_from([(2**28, 2**28), (-(2**28), 2**28), (2**27, 2**28), (0, 2**36)]),
    st.booleans(),
)
@settings(max_examples=70, deadline=None, derandomize=True)
def test_block_means_are_compared_exactly_where_products_overflow(pairs, near, integer):
    y, w = [near[0] + value for value, _ in pairs], [near[1] - less for _, less in pairs]
    model = Isotonic(y, weights=w, integer=integer)
    exactly = Isotonic(np.array(y, dtype=object), weights=w, integer=integer)
    assert exactly.certificate(fast.answer(exactly)[0]).optimal
    best = fast.answer(exactly)[0].astype(float)
    assert fast.answer(model)[0].astype(float) == pytest.approx(best, rel=1e-15)


@pytest.mark.parametrize("p", quick([2, 1]))
@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("kind", [int, float, object])
def test_bounds_cut_off_the_ends_in_every_kind_of_array(p, integer, kind):
    y = np.array([9, -4, 1, 1, 3, 2, 8, 8, 7]).astype(kind)
    free = fast.answer(Isotonic(y, p=p, integer=integer))[0]
    for low, high in [(None, None), (1, None), (None, 3), (1, 3), (2, 2), (20, 30), (-9, -5), (0.5, 7.25)]:
        if integer and isinstance(low, float):
            continue
        x = fast.answer(Isotonic(y, p=p, integer=integer, lower=low, upper=high))[0]
        assert x.tolist() == (free.tolist() if low is high is None else np.clip(free, low, high).tolist())
        last = 3 if high is None else high
        model = Isotonic(y, p=p, integer=integer, lower=None if low == 20 else low, last=last)
        x = fast.answer(model)[0]
        start = fast.answer(Isotonic(y[:-1], p=p, integer=integer))[0]
        assert x.tolist() == [*np.clip(start, model.lower if model.lower is not None else -99, last), last]
        assert model.certificate(x).optimal
    assert fast.answer(Isotonic(y[:1], p=p, integer=integer, last=3))[0].tolist() == [3]
    if not integer:
        third = fast.answer(Isotonic(y, p=p, lower=Fraction(1, 3), upper=Fraction(10, 3)))[0]
        assert [float(third[0]), float(third[-1])] == [free[0] if free[0] > 1 / 3 else 1 / 3, 10 / 3]


def test_each_bound_alone_is_kept():
    for bound, x, name in [
        ({"upper": 1}, [1, 2], "x[1] = 2, not at most 1"),
        ({"lower": 1}, [0, 2], "x[0] = 0, not at least 1"),
    ]:
        for integer in (True, False):
            assert Isotonic([1, 2], integer=integer, **bound).violations(x) == [name]


def test_whole_answers_get_no_tolerance():
    model = Isotonic([10**9, 0], integer=True)
    proof = prove(model, [5 * 10**8, 5 * 10**8 + 1])
    assert (proof.optimal, proof.gap) == (False, 10**9 + 1)


def test_a_whole_entry_costs_least_at_the_nearest_number():
    proof = Isotonic([0.7, 5.0], integer=True).certificate([0, 5], {"increasing": [0]})
    assert (proof.bound, proof.optimal) == (pytest.approx(0.3**2), False)


def test_without_weights_l1_is_the_same_as_with_weights_of_one():
    rng = np.random.default_rng(1)
    for _ in range(60):
        y = rng.integers(-3, 6, rng.integers(1, 12)) / rng.choice([1, 2])
        plain, weighted = Isotonic(y, p=1), Isotonic(y, p=1, weights=np.ones(y.size))
        assert (solve(plain).x == solve(weighted).x).all()


def test_means_beyond_53_bits_stay_whole():
    """The sums fit 64 bits, but a float cannot represent their mean."""
    y = [126100789566373888, 108086391056891904, -36028797018963968, 72057594037927936]
    x = fast.answer(Isotonic(y, lower=0, upper=2**60, integer=True))[0]
    assert x.tolist() == [(2 * sum(y[:3]) + 3) // 6] * 3 + y[3:]
    assert Isotonic(y, lower=0, upper=2**60, integer=True).certificate(x).optimal


def test_side_by_side_equals_separate_problems():
    rng = np.random.default_rng(0)
    for _ in range(25):
        lengths = rng.integers(1, 12, size=rng.integers(1, 5))
        offsets, scale = np.concatenate([[0], np.cumsum(lengths)]), int(rng.choice([1, 1, 2**40, 2**56]))
        lower = rng.integers(-2, 3, lengths.size) * scale
        upper = lower + rng.integers(0, 7, lengths.size) * scale
        noisy, p = rng.integers(-4, 9, offsets[-1]) * scale, int(rng.integers(1, 3))
        model = Isotonic(noisy, p, lower=lower, upper=upper, integer=True, offsets=offsets)
        parts = [model.part(k) for k in range(model.problems)]
        x = fast.answer(model)[0]
        assert x.tolist() == np.concatenate([fast.answer(part)[0] for part, _ in parts]).tolist()
        assert model.certificate(x).optimal
        prices = rng.integers(-5, 30, x.size - lengths.size) * int(rng.choice([1, 2**54]))
        other = x.copy()
        other[rng.integers(x.size)] += max(1, scale // 3)
        for answer, witness in ((x, {"increasing": prices}), (other, None)):
            proof = model.certificate(answer, witness)
            own = [part.certificate(answer[at], _of(witness, at, k)) for k, (part, at) in enumerate(parts)]
            assert proof.optimal == all(one.optimal for one in own)
            first = next((k for k, one in enumerate(own) if one.bound is None), None)
            if proof.bound is None:
                assert proof.unproved == first
            else:
                assert first is None
                assert proof.gap == sum(one.gap for one in own)
                assert proof.unproved == next((k for k, one in enumerate(own) if not one), None)


def _of(witness, at, k):
    return witness and {"increasing": witness["increasing"][at.start - k : at.stop - k - 1]}
