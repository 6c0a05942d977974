"""Errors of ranges and boxes, against every range summed by hand."""

from fractions import Fraction

import numpy as np
import pytest

from hierdp.errors import InputError
from hierdp.metrics.ranges import (
    all_ranges_error,
    box_sums,
    prefix_sums,
    range_error,
    range_places,
    range_sizes,
)


def by_hand(error, box):
    places = np.ndindex(*(n - s + 1 for n, s in zip(error.shape, box, strict=True)))
    return [error[tuple(slice(a, a + s) for a, s in zip(at, box, strict=True))].sum().item() for at in places]


@pytest.mark.parametrize(
    ("shape", "sizes"), [((7,), [1, 3, 7]), ((5, 6), [(2, 3), (5, 6), 1]), ((2, 3, 2), [2])]
)
def test_errors_by_size_are_those_of_every_range(shape, sizes):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 9, shape)
    released = true + rng.integers(-4, 5, shape)
    for size in sizes:
        box = (size,) * len(shape) if isinstance(size, int) else size
        errors = by_hand(released - true, box)
        assert range_error(true, released, [size])[0] == np.mean(np.square(errors))
        assert range_error(true, released, [size], p=1)[0] == np.mean(np.abs(errors))
        assert range_error(true, released.astype(float), [size])[0] == pytest.approx(
            np.mean(np.square(errors))
        )


def test_sampled_ranges_are_the_same_for_every_release_and_fair():
    rng = np.random.default_rng(1)
    true = rng.integers(0, 50, 40)
    one, other = true + rng.integers(-9, 9, 40), true + 1
    low, high = next(range_places((40,), [7], 30, seed=5))
    assert ((high - low) == 7).all()
    assert low.min() >= 0
    assert high.max() <= 40
    sums = box_sums(prefix_sums(one - true), low, high)
    assert range_error(true, one, [7], queries=30, seed=5)[0] == np.mean(sums**2)
    assert range_error(true, other, [7], p=1, queries=30, seed=5)[0] == 7
    many = range_error(true, one, [7], queries=40_000)[0]
    assert many == pytest.approx(range_error(true, one, [7])[0], rel=0.05)
    starts = next(range_places((40,), [40], 100))[0]
    assert not starts.any()


def test_all_ranges_at_once():
    rng = np.random.default_rng(2)
    for n in (1, 2, 13):
        true = rng.integers(0, 9, n)
        released = true + rng.integers(-9, 9, n)
        errors = [e for size in range(1, n + 1) for e in by_hand(released - true, (size,))]
        assert all_ranges_error(true, released) == pytest.approx(np.mean(np.square(errors)), rel=1e-15)
        assert all_ranges_error(true, released + 0.5) == pytest.approx(
            np.mean(
                [
                    (e[0] + 0.5 * e[1]) ** 2
                    for e in zip(errors, [s for s in range(1, n + 1) for _ in range(n - s + 1)], strict=True)
                ]
            )
        )
    with pytest.raises(InputError, match="takes counts of one dimension"):
        all_ranges_error(np.zeros((2, 2)), np.zeros((2, 2)))


def test_squares_beyond_64_bits_are_summed_exactly():
    true, released = np.zeros(3, np.int64), np.array([2**40, 2**40, 1])
    squares = [2**80, 2**80, 1, 2**82, (2**40 + 1) ** 2, (2**41 + 1) ** 2]
    assert all_ranges_error(true, released) == float(Fraction(sum(squares), 6))
    assert range_error(true, released, [2])[0] == float(Fraction(2**82 + (2**40 + 1) ** 2, 2))


def test_unsigned_counts_do_not_wrap_around():
    true, released = np.array([5, 5], np.uint8), np.array([3, 7], np.uint8)
    assert prefix_sums(np.array([250, 250], np.uint8)).tolist() == [0, 250, 500]
    assert range_error(true, released, [1, 2]).tolist() == [4, 0]
    assert all_ranges_error(true, released) == pytest.approx(8 / 3)
    assert box_sums(prefix_sums(true), [[1], [0]], [[1], [2]]).tolist() == [0, 10]


def test_sizes_are_spread_evenly_and_bad_ones_named():
    assert range_sizes(4096, 5) == [1, 1025, 2048, 3072, 4096]
    assert range_sizes(3, 20) == [1, 2, 3]
    with pytest.raises(InputError, match="a query of 5 bins does not fit the histogram of 4"):
        range_error(np.zeros(4), np.zeros(4), [5])
    with pytest.raises(InputError, match="a query of 0 bins"):
        range_error(np.zeros(4), np.zeros(4), [0])
    with pytest.raises(InputError, match=r"a query of \(1, 2\) bins"):
        range_error(np.zeros(4), np.zeros(4), [(1, 2)])
    with pytest.raises(InputError, match=r"shape: \(4,\) and \(5,\)"):
        range_error(np.zeros(4), np.zeros(5), [1])
