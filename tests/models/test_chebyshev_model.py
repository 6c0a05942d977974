"""Chebyshev: all tiny vectors and totals against IntOpt's loop; difficult and large ones."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Chebyshev
from models.segments import adds_up
from solvers import fast, prove, solve
from tests.brute import compositions, intopt
from tests.marks import quick


def all_vectors(n: int, values: range) -> np.ndarray:
    return np.array(list(product(values, repeat=n)), dtype=np.int64).reshape(-1, n)


@pytest.mark.parametrize("n", quick([1, 2, 3, 4], first=3))
def test_every_tiny_vector_is_answered_as_intopt_answers(n):
    values = range(-3, 5)
    for total in range(7):
        vectors = all_vectors(n, values)
        model = Chebyshev(vectors.ravel(), np.full(len(vectors), total), n * np.arange(len(vectors) + 1))
        expected = [intopt(y.tolist(), total) for y in vectors]
        got = fast.answer(model)[0].reshape(-1, n)
        assert np.array_equal(got, expected)


@given(st.integers(0, 10**6))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_random_segments_equal_the_loop_each(seed):
    model = Chebyshev.random(np.random.default_rng(seed), 30)
    noisy, totals, offsets = model.data
    solution = solve(model)
    assert solution.status == "optimal"
    assert solution.bound == solution.objective
    if np.abs(noisy).max(initial=0) < 2000:
        for j in range(totals.size):
            part = slice(offsets[j], offsets[j + 1])
            assert solution.x[part].tolist() == intopt(noisy[part].tolist(), int(totals[j]))


def test_larger_vectors_equal_the_loop():
    rng = np.random.default_rng(11)
    for n in (50, 200, 1000):
        for spread in (3, 100):
            y = rng.integers(-spread, 3 * spread, n)
            for total in (0, int(y.sum().clip(0)), int(np.maximum(y, 0).sum()) + 7, 5 * n * spread, n // 3):
                assert solve(Chebyshev(y, total)).x.tolist() == intopt(y.tolist(), total)


def test_nothing_at_all():
    for model in (Chebyshev([], 0), Chebyshev([], [], [0]), Chebyshev([], [0, 0], [0, 0, 0])):
        solution = solve(model)
        assert (solution.status, solution.objective, solution.x.size) == ("optimal", 0, 0)


def test_objectives_of_many_far_segments_are_exact():
    y = np.full(100, -(2**54))
    solution = solve(Chebyshev(y, np.zeros(100, np.int64), np.arange(101)))
    assert solution.status == "optimal"
    assert solution.objective == 100 * 2**54
    assert type(solution.objective) is int


int64s = st.one_of(
    st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**61, 2**62, 2**63 - 1])
)


@given(st.lists(st.lists(int64s, max_size=6), max_size=4), st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_sums_and_changes_of_any_answer_are_exact(parts, data):
    offsets = np.cumsum([0, *map(len, parts)])
    x = np.array([v for part in parts for v in part], dtype=np.int64)
    y = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=x.size, max_size=x.size)), dtype=np.int64)
    # Correct totals where possible, including totals that are correct only modulo 2^64.
    sums = [sum(part) % 2**64 for part in parts]
    totals = np.array(
        [v if part and v < 2**61 else 0 for v, part in zip(sums, parts, strict=True)], dtype=np.int64
    )
    right = x.min(initial=0) >= 0 and [sum(part) for part in parts] == totals.tolist()
    if adds_up(x, totals, offsets):
        assert right
    model = Chebyshev(y, totals, offsets)
    assert (model.violations(x) == []) == right
    cut = [slice(a, b) for a, b in pairwise(offsets)]
    changes = [
        max([abs(a - b) for a, b in zip(x[c].tolist(), y[c].tolist(), strict=True)], default=0) for c in cut
    ]
    for given_ in (x, x.astype(object), np.repeat(x, 2)[::2]):
        assert model.objective(given_) == sum(changes)
        assert type(model.objective(given_)) is int
        assert (model.violations(given_) == []) == right


def test_small_answers_need_no_second_look():
    assert adds_up(np.array([3, 0, 4]), np.array([3, 0, 4]), np.array([0, 2, 2, 3]))
    assert not adds_up(np.array([3, 0, 4]), np.array([3, 0, 5]), np.array([0, 2, 2, 3]))
    assert not adds_up(np.array([5, -2, 4]), np.array([3, 0, 4]), np.array([0, 2, 2, 3]))
    assert not adds_up(np.array([1, 4]), np.array([0, 4]), np.array([0, 1, 2]))
    many = np.full(1000, 2**50)
    assert adds_up(many, np.array([1000 * 2**50]), np.array([0, 1000]))
    # Eight of 2^61 add up to 0 in 64 bits.
    wraps = np.full(8, 2**61)
    assert not adds_up(wraps, np.array([0]), np.array([0, 8]))
    assert Chebyshev([0] * 8, 0).violations(wraps) == [f"total: segment 0 adds up to {2**64}, not 0"]
    # A single large count is still correct.
    assert Chebyshev([0] * 8, 2**61).violations([0] * 7 + [2**61]) == []


def test_the_least_distance_of_all_tiny_vectors():
    for total in range(7):
        vectors = all_vectors(3, range(-3, 5))
        offsets = 3 * np.arange(len(vectors) + 1)
        model = Chebyshev(vectors.ravel(), np.full(len(vectors), total), offsets)
        answers = np.array(list(compositions(total, 3)))
        least = np.abs(vectors[:, None, :] - answers[None]).max(axis=2).min(axis=1)
        assert np.array_equal(model.least_distance(), least)


def test_distances_near_62_bits_are_exact():
    total = 2**62 - 100
    for y, least in [([0], total), ([0, 0], total // 2), ([-3, 5, 1], -(-(total - 3) // 3))]:
        model = Chebyshev(y, total)
        solution = solve(model)
        assert (solution.status, solution.objective) == ("optimal", least)
        heaped = [total] + [0] * (len(y) - 1)
        assert prove(model, heaped).gap == total - y[0] - least
    assert Chebyshev([-(2**58), 2**58], 0).certificate([0, 0]).optimal
    # A count that must fall as far as it can, beside one that could rise.
    model = Chebyshev([2**58, 0], 5)
    assert prove(model, [0, 5]).gap == model.objective([0, 5]) - solve(model).objective == 5


def test_the_cost_of_an_answer_whose_sum_wraps():
    assert Chebyshev([1, 1, 1], 1).objective([2**63 - 1, 2**63 - 1, 3]) == 2**63 - 2
