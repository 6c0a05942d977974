"""Errors of range and box queries on a released histogram, by query size, for experiments on public data.

All queries of a size are computed from one table of prefix sums. Integer counts stay exact up to the final
mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.errors import InputError
from models.arithmetic import exact
from models.arithmetic.arrays import Ints

Sizes = Iterable[int | Sequence[int]]


def prefix_sums(values: ArrayLike) -> NDArray[Any]:
    """Sums of all leading boxes: ``P[i, j, …]`` is the sum of ``values[:i, :j, …]``.

    Examples
    --------
    >>> prefix_sums([3, 1, 4])
    array([0, 3, 4, 8])
    """
    held = _signed(values)
    held = np.pad(held, [(1, 0)] * held.ndim)
    for axis in range(held.ndim):
        held = held.cumsum(axis)
    return held


def box_sums(prefixes: NDArray[Any], lows: ArrayLike, highs: ArrayLike) -> NDArray[Any]:
    """Sums of the boxes ``low ≤ bin < high``, from prefix sums by inclusion and exclusion.

    Parameters
    ----------
    prefixes : array with one axis per dimension
        See `prefix_sums`.
    lows, highs : int arrays, shape (n, dimensions)
    """
    ends = np.asarray(lows), np.asarray(highs)
    corners = list(product((0, 1), repeat=prefixes.ndim))
    total = np.zeros(len(ends[0]), dtype=prefixes.dtype)
    for corner in corners:
        at = tuple(ends[side][:, axis] for axis, side in enumerate(corner))
        total += prefixes[at] if (prefixes.ndim - sum(corner)) % 2 == 0 else -prefixes[at]
    return total


def range_error(
    true: ArrayLike, released: ArrayLike, sizes: Sizes, p: int = 2, queries: int | None = None, seed: int = 0
) -> NDArray[np.float64]:
    """Mean |released − true|^p over the ranges of each size: mean squared error, or absolute with p = 1.

    Parameters
    ----------
    true, released : arrays of the same shape, with one axis per dimension
        Counts by bin.
    sizes : iterable of int, or of tuples of int
        Number of bins of a query along each dimension; a single number applies to all dimensions.
    p : 1 or 2
    queries : int, optional
        Number of ranges of each size, at places drawn uniformly. Default: all ranges. With the same seed, all
        releases are compared on the same ranges.
    seed : int

    Returns
    -------
    float64 array, shape (sizes,)

    Raises
    ------
    InputError
        If the shapes differ, or a size is not between 1 and the number of bins.

    Examples
    --------
    >>> range_error([3, 1, 4], [4, 1, 2], sizes=[1, 3])
    array([1.66666667, 1.        ])
    """
    before, after = _signed(true), _signed(released)
    if before.shape != after.shape or before.ndim == 0:
        raise InputError(f"true and released counts differ in shape: {before.shape} and {after.shape}")
    prefixes = prefix_sums(after - before)
    if queries is None:
        errors = [_all(prefixes, _box(size, before.shape)) for size in sizes]
    else:
        errors = [box_sums(prefixes, *ends) for ends in range_places(before.shape, sizes, queries, seed)]
    return np.array([_mean(each.ravel(), p) for each in errors])


def range_places(
    shape: tuple[int, ...], sizes: Sizes, queries: int, seed: int = 0
) -> Iterator[tuple[Ints, Ints]]:
    """Ranges of each size at places drawn uniformly: those that `range_error` uses with the same seed.

    Yields
    ------
    low, high : int64 arrays, shape (queries, dimensions)
        The ranges ``low … high − 1`` of each size.
    """
    rng = np.random.default_rng(seed)
    for size in sizes:
        box = _box(size, shape)
        low = np.stack([rng.integers(0, n - s + 1, queries) for n, s in zip(shape, box, strict=True)], axis=1)
        yield low, low + np.array(box)


def all_ranges_error(true: ArrayLike, released: ArrayLike) -> float:
    """Mean squared error over all N(N + 1)/2 ranges of one dimension, in O(N).

    With D the prefix sums of the errors, it is 2/(N(N+1)) · ((N+1) ΣD² − (ΣD)²).

    Examples
    --------
    >>> all_ranges_error([3, 1, 4], [4, 1, 2])
    1.8333333333333333
    """
    prefixes = prefix_sums(_signed(released) - _signed(true))
    if prefixes.ndim != 1:
        raise InputError(f"all_ranges_error takes counts of one dimension, got {prefixes.ndim}")
    n = prefixes.size - 1
    if not exact.is_exact(prefixes):
        return float(2 * prefixes.var() * (n + 1) / n)  # (N+1)ΣD² − (ΣD)² would cancel
    spread = (n + 1) * exact.dot(prefixes, prefixes) - exact.total(prefixes) ** 2
    return float(Fraction(2 * spread) / (n * (n + 1)))


def range_sizes(bins: int, many: int = 20) -> list[int]:
    """Evenly spaced range sizes from 1 to the number of bins; all sizes if there are fewer than `many`.

    Examples
    --------
    >>> range_sizes(4096, 5)
    [1, 1025, 2048, 3072, 4096]
    """
    return sorted({int(size) for size in np.rint(np.linspace(1, bins, many))})


def _signed(values: ArrayLike) -> NDArray[Any]:
    """Integer counts as int64, since differences of unsigned integers would wrap around; floats unchanged."""
    held = np.asarray(values)
    return held.astype(np.int64) if held.dtype.kind in "iub" else held


def _box(size: int | Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    given = np.asarray(size)
    box = tuple(int(s) for s in (given if given.ndim else given.repeat(len(shape))))
    if len(box) != len(shape) or not all(1 <= s <= n for s, n in zip(box, shape, strict=True)):
        raise InputError(
            f"a query of {size} bins does not fit the histogram of {' × '.join(map(str, shape))} bins"
        )
    return box


def _all(prefixes: NDArray[Any], box: tuple[int, ...]) -> NDArray[Any]:
    """The sums of all boxes of one size."""
    held = prefixes
    for axis, size in enumerate(box):
        low, high = [slice(None)] * held.ndim, [slice(None)] * held.ndim
        low[axis], high[axis] = slice(None, -size), slice(size, None)
        held = held[tuple(high)] - held[tuple(low)]
    return held


def _mean(errors: NDArray[Any], p: int) -> float:
    total = exact.dot(errors, errors) if p == 2 else exact.total(np.abs(errors))
    return float(Fraction(total) / errors.size) if exact.is_exact(errors) else float(total / errors.size)
