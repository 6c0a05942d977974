"""Distances, sums and products against plain Python, for integers of any size, Fractions and floats."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Isotonic
from models.arithmetic import exact, kernels
from models.arithmetic.distance import _integers, distance
from models.check import reader
from tests.marks import quick

LEAST, MOST = -(2**63), 2**63 - 1
BLOCK = 2**14

numbers = st.one_of(
    st.integers(-9, 9),
    st.integers(0, 63).flatmap(lambda bits: st.integers(max(LEAST, -(2**bits)), min(MOST, 2**bits))),
    st.sampled_from([LEAST, LEAST + 1, MOST, MOST - 1, 2**62, -(2**62), 2**61, 2**32, 2**31, -(2**24)]),
)
rows = st.lists(st.tuples(numbers, numbers, numbers), max_size=30)


@pytest.fixture
def as_in_a_release(monkeypatch):
    """Blocks are compiled, not run by Python: their sums may exceed the width of machine integers."""
    monkeypatch.setattr(kernels, "SMALL", 1_000)


def plain(x, y, p, weights=None):
    """Σ w·|x − y|^p in Python numbers."""
    x, y = np.ravel(x).tolist(), np.ravel(y).tolist()
    weights = [1] * len(x) if weights is None else np.ravel(weights).tolist()
    return sum(w * abs(a - b) ** p for a, b, w in zip(x, y, weights, strict=True))


def check(x, y, weights):
    """Check both powers, with and without weights; results for integers are `int` and exact."""
    for p in (1, 2):
        for w in (None, weights):
            found = distance(x, y, p, w)
            assert type(found) is int
            assert found == plain(x, y, p, w)


@given(rows)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_whole_numbers_of_any_size(given_rows):
    x, y, w = np.array(given_rows, dtype=np.int64).reshape(-1, 3).T.copy()
    check(x, y, w)


@pytest.mark.usefixtures("as_in_a_release")
@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize(
    "bits", quick([5, 15, 16, 23, 24, 25, 31, 47, 48, 49, 61, 62], slow=lambda bits: bits != 24)
)
def test_full_blocks_at_every_width(bits, size):
    """All products of a block are as large as possible: at some of these widths its sum exceeds 64 bits."""
    most = np.full(size, 2**bits - 1)
    for weight in (1, 2**10, 2**33):
        check(most, np.zeros_like(most), np.full(size, weight))
        check(-most, np.zeros_like(most), np.full(size, -weight))


@pytest.mark.usefixtures("as_in_a_release")
def test_products_of_one_bit_more_than_a_block_may_have():
    """The factors are not powers of two, so products of 50 bits already exceed 64 bits in a full block."""
    nothing = np.zeros(BLOCK, np.int64)
    for bits in (48, 49, 50, 51):
        x, w, v = (np.full(BLOCK, 2**width - 1) for width in (23, bits - 23, bits - 46))
        assert exact.dot(x, w) == BLOCK * int(x[0]) * int(w[0])
        assert distance(x, nothing, 1, w) == BLOCK * int(x[0]) * int(w[0])
        assert distance(x, nothing, 2, v) == BLOCK * int(x[0]) ** 2 * int(v[0])


@pytest.mark.usefixtures("as_in_a_release")
@pytest.mark.slow
def test_one_large_entry_among_small_ones_of_another_block():
    x = np.arange(3 * BLOCK)
    for place in (0, BLOCK - 1, BLOCK, 3 * BLOCK - 1):
        for large in (2**40, MOST, LEAST):
            y, w = np.zeros_like(x), np.ones_like(x)
            y[place] = w[place] = large
            check(x, y, w)


def test_differences_that_wrap_around_to_small_ones():
    x = np.array([MOST, LEAST, MOST, LEAST, MOST])
    y = np.array([LEAST, MOST, LEAST + 9, MOST - 9, MOST - 1])
    check(x, y, np.array([1, 2, 3, 4, MOST]))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.uint64, bool])
def test_narrow_and_unsigned_types_do_not_wrap_around(kind):
    least, most = (0, 1) if kind is bool else (np.iinfo(kind).min, np.iinfo(kind).max)
    x = np.array([least, most, most, 1, 0], dtype=kind)
    y = x[::-1].copy()
    check(x, y, x)
    check(x, np.array([2**60, -5, MOST, LEAST, 2]), x)
    check(x, y, np.array([2**62, 3, -1, 2**40, 1]))
    assert exact.total(x) == sum(map(int, x))
    assert exact.dot(x, y) == sum(int(a) * int(b) for a, b in zip(x, y, strict=True))
    assert exact.weighted_squares(x, y) == sum(int(a) * int(b) ** 2 for a, b in zip(x, y, strict=True))
    assert exact.difference(x, y).tolist() == [int(a) - int(b) for a, b in zip(x, y, strict=True)]


def test_arrays_of_any_memory_layout():
    x = np.arange(24).reshape(4, 6) ** 5
    for a, b in ((x, x[::-1]), (x[:, ::2], x[:, 1::2]), (x.T, x.T[::-1]), (x[0, ::3], x[1, ::-3])):
        check(a, b, b + 1)
        check(a.astype(np.int32), b, b)


def test_empty_arrays_have_distance_zero():
    for shape in (0, (0, 3)):
        nothing = np.zeros(shape, dtype=np.int64)
        check(nothing, nothing, nothing)
        assert distance(nothing.astype(float), nothing, 2) == 0.0


def test_fractions_and_python_integers():
    x = np.array([Fraction(1, 3), 2**70, -1], dtype=object)
    y = np.array([Fraction(1, 2), 5, 2], dtype=object)
    w = np.array([Fraction(6), 1, Fraction(1, 7)], dtype=object)
    for p in (1, 2):
        for a, b, c in ((x, y, w), (x, y, None), (np.array([1, 2, 3]), y, np.array([4, 5, 6])), (y, y, w)):
            assert distance(a, b, p, c) == plain(a, b, p, c)
    assert type(distance(x, y, 1)) is Fraction


@pytest.mark.slow
def test_floats_wherever_there_is_one():
    rng = np.random.default_rng(0)
    for size in (1, 100, 2 * BLOCK + 7):
        x, y, w = rng.normal(0, 1e3, size), rng.integers(-999, 999, size), rng.integers(0, 9, size)
        for p in (1, 2):
            for a, b, c in ((x, y, None), (y, x, w), (y, w, x), (x, 2 * x, x)):
                found = distance(a, b, p, c)
                assert type(found) is float
                exactly = plain(a, b, p, c)
                assert found == pytest.approx(exactly, rel=1e-12, abs=1e-12 * plain(np.abs(a), -abs(b), p, c))


def test_totals_of_many_and_of_halves():
    x = np.full(2**17 + 3, MOST)
    assert exact.total(x) == x.size * MOST
    assert exact.total(-x - 1) == x.size * LEAST
    assert exact.total(np.array([[0.5, 2], [1, 1]])) == 4.5
    assert exact.total(np.array([Fraction(1, 3)] * 3, dtype=object)) == 1
    assert exact.total(np.zeros((0, 2), dtype=np.int64)) == 0
    assert exact.dot(np.array([[0.5, 2]]), np.array([[3, 4]])) == 9.5
    assert exact.dot(np.array([Fraction(1, 3)], dtype=object), np.array([2**62])) == Fraction(2**62, 3)


@pytest.mark.slow
def test_a_kernel_is_compiled_once_for_data_and_answers(monkeypatch):
    """Models' data are read-only and answers are writable, which are two types for Numba."""
    called = (_integers, exact._dot, reader._along)
    for kernel in called:
        monkeypatch.setattr(kernel, "_always", True)
        monkeypatch.setattr(kernel, "_compiled", None)  # without the types that other tests called it with
    data, answer = np.arange(3), np.arange(3)
    data.flags.writeable = False
    for x, y in ((data, answer), (answer, data), (answer, answer)):
        assert (distance(x, y, 2, y), exact.dot(x, y)) == (0, 5)
        assert Isotonic(y, weights=y + 1).certificate(x).optimal
    assert all(kernel.signatures for kernel in called)
    for kernel, signature in [(one, signature) for one in called for signature in one.signatures]:
        arrays = [kind for kind in signature if hasattr(kind, "mutable")]
        read = arrays[:-1] if kernel is reader._along else arrays  # it writes to its last
        assert not any(kind.mutable for kind in read)
