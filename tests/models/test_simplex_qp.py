"""SimplexQP: tiny instances over the reals; weights against rounding; backends; difficult, large ones."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import SimplexQP
from solvers import fast, prove, solve
from solvers.fast.fixed_total import _held, _price, _units
from tests.brute import compositions
from tests.marks import quick, shares


def cost(x, y, w):
    return sum(b * (Fraction(a) - Fraction(c)) ** 2 for a, c, b in zip(x, y, w, strict=True))


def over_the_reals(y, w, total):
    """The real optimum: the best over all sets of positive entries with equal marginal costs."""
    best = None
    for size in range(len(y) + 1):
        for inside in combinations(range(len(y)), size):
            x = [Fraction(0)] * len(y)
            if inside:
                held = total - sum(Fraction(y[i]) for i in inside)
                spread = sum(1 / Fraction(w[i]) for i in inside)
                for i in inside:
                    x[i] = Fraction(y[i]) + held / spread / Fraction(w[i])
            if sum(x) == total and min(x) >= 0 and (best is None or cost(x, y, w) < cost(best, y, w)):
                best = x
    return best


def rounded_as_kuo(x, total):
    """§4.1: the r largest fractional parts are rounded up, the rest down; ties go to the first."""
    down = [v // 1 for v in x]
    order = sorted(range(len(x)), key=lambda i: (down[i] - x[i], i))
    for i in order[: total - sum(down)]:
        down[i] += 1
    return down


def cheapest_units(y, w, total):
    """Take the cheapest next unit each time; ties go to the first entry. Slow, but easy to verify."""
    x = [0] * len(y)
    for _ in range(total):
        i = min(range(len(y)), key=lambda i: (Fraction(w[i]) * (2 * (x[i] + 1 - Fraction(y[i])) - 1), i))
        x[i] += 1
    return x


@pytest.mark.parametrize("n", quick([1, 2, 3], first=2))
@shares(7)
def test_every_tiny_instance_over_the_reals(n, share):
    cases = list(product(product(range(-1, 3), repeat=n), product([1, 3], repeat=n), [0, 4]))[
        :: 3 if n == 3 else 1
    ]
    for y, w, total in cases[share]:
        model = SimplexQP(y, total, None if set(w) == {1} else w, integer=False)
        best = over_the_reals(y, w, total)
        least = cost(best, y, w)
        solution = solve(model)
        assert solution.status == "optimal"
        assert solution.x == pytest.approx([float(v) for v in best], abs=1e-12)
        # Exact answers, Fractions or integers, get exact gaps.
        assert model.certificate(np.array(best, dtype=object)).gap == 0
        assert all(prove(model, x).gap == cost(x, y, w) - least for x in compositions(total, n))


def test_rounding_the_largest_fractional_parts_is_optimal_for_equal_weights_only():
    for y in product([-1.25, 0.0, 0.5, 0.75, 2.25], repeat=3):
        for total in (1, 2, 4):
            model = SimplexQP(y, total)
            rounded = rounded_as_kuo(over_the_reals(y, [1] * 3, total), total)
            assert model.certificate(rounded).optimal
    # An entry of small weight changes in place of three of large weight.
    y, w, total = [0.4, 0.4, 0.4, 0.0], [100, 100, 100, 1], 2
    real = over_the_reals([Fraction(v) for v in y], w, total)
    model = SimplexQP(y, total, w)
    assert [round(float(v), 3) for v in real] == [0.408, 0.408, 0.408, 0.777]
    rounded = rounded_as_kuo(real, total)
    assert rounded == [1, 0, 0, 1]
    assert solve(model).x.tolist() == [0, 0, 0, 2]  # more than one unit from the real answer
    assert prove(model, rounded).gap == pytest.approx(17)
    # The same for whole data.
    whole = SimplexQP([0, 1], 3, [5, 2])
    rounded = rounded_as_kuo(over_the_reals([0, 1], [5, 2], 3), 3)
    assert rounded == [1, 2]
    assert whole.certificate(rounded).gap == 0
    worse = any(
        not SimplexQP(y, total, w).certificate(rounded_as_kuo(over_the_reals(y, w, total), total))
        for y in product(range(-1, 3), repeat=3)
        for w in ((1, 4, 9), (9, 1, 9))
        for total in (1, 2, 3)
    )
    assert worse


def test_costs_that_differ_in_the_last_digits_are_distinguished():
    rng = np.random.default_rng(4)
    for scale in (1e-9, 1e-6, 1.0):
        y = 1000.5 + scale * rng.permutation(30)
        w = np.where(np.arange(30) % 2, 1.0, 1.0 + scale)
        for total in (1, 7, 15, 29):
            for weights in (None, w):
                expected = cheapest_units(y.tolist(), [1] * 30 if weights is None else w.tolist(), total)
                assert solve(SimplexQP(y, total, weights)).x.tolist() == expected


def test_far_values_are_exact():
    y, w = [2**40, -(2**40), 5], [2**10, 3, 2**16]
    model = SimplexQP(y, 2**41 + 7, w)
    solution = solve(model)
    assert solution.status == "optimal"
    assert solution.gap == 0
    assert type(solution.objective) is int
    assert solution.objective == cost(solution.x.tolist(), y, w)
    worse = solution.x + np.array([1000, 0, -1000]) * (1 if solution.x[2] >= 1000 else -1)
    assert prove(model, worse).gap == cost(worse.tolist(), y, w) - solution.objective


def test_nothing_at_all():
    for integer in (True, False):
        solution = solve(SimplexQP([], 0, integer=integer))
        assert (solution.status, solution.objective, solution.x.size) == ("optimal", 0, 0)


def test_a_single_weight_stands_for_all_where_none_are_given():
    y, w = SimplexQP([4, 5, 6], 3).data
    assert (y.tolist(), w.tolist()) == ([4, 5, 6], [1, 1, 1])
    assert w.strides == (0,)


@given(
    st.integers(-(2**50), 2**50), st.integers(1, 2**20), st.integers(-(2**51), 2**51), st.integers(1, 2**61)
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_units_are_counted_exactly_in_floats_too(y, m, price, total):
    y //= 2 * m
    exactly = min(max((price + m * (2 * y + 1)) // (2 * m), 0), total)
    assert _units(y, m, total, price, None) == exactly
    assert _units(y, m, total, price, 1.0) == exactly
    edge = 2 * m * 7 - m * (2 * y + 1)  # here the seventh unit costs exactly the price
    for off in (-1, 0, 1):
        assert _units(y, m, total, edge + off, 1.0) == min(7 if off >= 0 else 6, total)


def test_no_unit_is_counted_beyond_the_total():
    assert _units(0.0, 1e-300, 5, 2**40, 1.0) == 5
    assert _units(0, 1, 5, 2**40, None) == 5
    assert _units(-9.0, 2.0, 5, 1, 1.0) == 0
    for n in (32, 64, 128):  # n · 2^57, which wraps in 64 bits for some n
        assert _held(np.zeros(n, np.int64), None, 2**57, 2**60, None) > 2**57


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", quick([57, 20, 45, 50], first=2))
def test_far_counts_are_answered_exactly(bits, weighted):
    rng = np.random.default_rng(bits)
    for n in (2, 3, 40, 300):
        y = rng.integers(-(2**bits), 2**bits, n)
        w = rng.integers(1, min(100, 2 ** (58 - bits) // 4 + 2), n) if weighted else None
        for total in (1, 12345, 2**bits // 3, 2**bits + 1):
            model = SimplexQP(y, total, w)
            solution = solve(model)
            assert (solution.status, solution.gap) == ("optimal", 0)
            x = solution.x.copy()
            i, j = np.argmax(x), rng.integers(0, n)
            moved = int(rng.integers(0, x[i] + 1))
            x[i] -= moved
            x[j] += moved
            assert prove(model, x).gap == model.objective(x) - solution.objective


def test_ties_between_units_go_to_the_first():
    for far in (0, 2**40, 2**55):
        assert fast.answer(SimplexQP([far] * 5, 3))[0].tolist() == [1, 1, 1, 0, 0]
        assert fast.answer(SimplexQP([far, far - 1, far, far], 2))[0].tolist() == [1, 0, 1, 0]
        assert fast.answer(SimplexQP([-far] * 3, far + 2))[0].tolist() == [
            far // 3 + (i < (far + 2) % 3) + (far + 2) // 3 - far // 3 for i in range(3)
        ]


def test_real_answers_may_miss_by_a_small_part_of_the_largest():
    small = SimplexQP([1, 2, 3], 4, integer=False)
    assert small.violations([-5e-7, 1 + 5e-7, 3]) == []
    assert small.violations([-5e-6, 1 + 5e-6, 3]) == ["x[0] = -5e-06, beyond its bound 0.0"]
    assert small.violations([-3e-6, -3e-6, 4 + 6e-6])[0] == "x[0] = -3e-06, beyond its bound 0.0"
    assert small.violations([1, 1, 2 + 3e-6]) == []  # scaled to the total, no entry is off by more than 2e-6
    assert small.violations([1, 1, 2 + 5e-6]) == ["total: the sum is 4.000005, not 4.0"]
    large = SimplexQP([1, 2, 3], 10**6, integer=False)
    assert large.violations([-0.5, 0.5, 10**6]) == []
    assert large.violations([-2.0, 2.0, 10**6]) == ["x[0] = -2.0, beyond its bound 0.0"]


def test_a_guessed_price_at_which_all_entries_are_zero_is_dropped():
    y = np.array([10.0, 20.0, -50.0])
    assert _price(y, None, 20, -1e3) == _price(y, None, 20, np.inf) == -10


@pytest.mark.slow
def test_an_optimum_of_zeros_first_is_proved():
    # The entries that determine the first price are all 0.
    y = np.concatenate([np.full(20_000, -50.0), [10.0, 20.0]])
    for integer in (True, False):
        model = SimplexQP(y, 20, integer=integer)
        solution = solve(model)
        assert solution.status == "optimal"
        assert solution.x[-2:].tolist() == [5, 15]
    worse = np.zeros(20_002)
    worse[-2:] = 4, 16
    # The bound is lowered by its rounding: 2^12 additions in each of 245 blocks lose at most 5e-13 of it.
    assert prove(model, worse).gap == pytest.approx(2, abs=6e-13 * model.objective(worse))


def test_a_missing_sum_gains_nothing():
    model = SimplexQP([10, 20], 20, integer=False)
    assert 0 <= model.certificate([5.0, 15.0]).gap < 1e-11  # the bound is lowered by its rounding
    over = [5.0, 15 + 1e-5]  # costs 1e-4 less
    assert model.objective(over) == pytest.approx(50 - 1e-4, abs=1e-9)
    short = prove(model, over)
    assert short.objective == pytest.approx(50, abs=1e-9)
    assert short.bound == pytest.approx(50, abs=1e-9)


def test_prices_are_finite_where_nothing_is_taken():
    for y in ([1, -2], [1.5, -2.0]):
        for integer in (True, False):
            proof = SimplexQP(y, 0, integer=integer).certificate(np.zeros(2))
            assert proof.optimal
            assert abs(proof.witness["total"]) < 100
