"""Sums of products of whole numbers, exact whatever their size.

The sum of the squares of a census overflows 64 bits. These helpers add up blocks that provably fit int64, and
add the blocks as Python integers. The objective of integer data is therefore an exact `int`.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel

Number = int | float | Fraction

_BLOCK_BITS = 14
_SAFE_BITS = 62 - _BLOCK_BITS


def is_exact(array: Array) -> bool:
    """Whether arithmetic on this array is exact: integers, or Python numbers (Fractions) as objects."""
    return bool(np.issubdtype(array.dtype, np.integer) or array.dtype == object)


def fractions(values: Any) -> Array:
    """The same numbers as Fractions, in the same shape; infinities stay."""
    found = np.empty(np.shape(values), object)
    for place, value in enumerate(np.ravel(values).tolist()):
        found.flat[place] = value if abs(value) == math.inf else Fraction(value)
    return found


def float_below(value: Fraction) -> float:
    """The largest float that is at most this number.

    Examples
    --------
    >>> float_below(Fraction(1, 3)) < Fraction(1, 3) < float_below(-Fraction(1, 3)) * -1
    True
    """
    try:
        near = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return near if near <= value else math.nextafter(near, -math.inf)


def counted(cost: Fraction, exactly: bool) -> Number:
    """A cost, as a float unless it is of exact numbers; infinite if floats cannot hold it."""
    try:
        return cost if exactly else float(cost)
    except OverflowError:
        return math.inf


def signed(array: Array) -> Array:
    """Integers of any width as int64, so that narrow ones do not wrap around; other arrays unchanged."""
    if array.dtype == np.int64 or not (np.issubdtype(array.dtype, np.integer) or array.dtype == bool):
        return array
    beyond = array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max
    return array.astype(object if beyond else np.int64)


def _bits(array: Ints) -> int:
    return reach(array).bit_length()


def dot(a: Array, b: Array) -> Number:
    """Σ a·b of two arrays of one shape: an `int` for integer arrays, however large; see `is_exact`.

    Examples
    --------
    >>> dot(np.array([2**40, 3]), np.array([2**40, -1])) == 2**80 - 3
    True
    """
    a, b = signed(np.ravel(a)), signed(np.ravel(b))
    if a.dtype == object or b.dtype == object:
        products: Number = sum((x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)), 0)
        return products
    if not (np.issubdtype(a.dtype, np.integer) and np.issubdtype(b.dtype, np.integer)):
        # Not by BLAS: its sums depend on the number of threads, which differs between machines.
        return float((a.astype(np.float64, copy=False) * b.astype(np.float64, copy=False)).sum())
    if _bits(a) + _bits(b) <= _SAFE_BITS:
        high, low = _dot(read_only(a), read_only(b))
        return (int(high) << 32) + int(low)
    if _bits(a) < _bits(b):
        a, b = b, a
    half = _bits(a) // 2
    return (int(dot(a >> half, b)) << half) + int(dot(a & ((1 << half) - 1), b))


@kernel()
def _dot(a: Any, b: Any) -> Any:
    """Σ a·b as ``(high, low)`` (``high · 2³² + low``); each block's sum must fit. Slices vectorize."""
    high, low = 0, 0
    for start in range(0, a.size, 1 << _BLOCK_BITS):
        u, v = a[start : start + (1 << _BLOCK_BITS)], b[start : start + (1 << _BLOCK_BITS)]
        held = 0
        for i in range(u.size):
            held += u[i] * v[i]
        high += held >> 32
        low += held & 0xFFFFFFFF
    return high, low


@kernel()
def _total(a: Any) -> Any:
    """Σ a as ``(high, low)``, worth ``high · 2³² + low``."""
    high, low = 0, 0
    for i in range(a.size):
        high += a[i] >> 32
        low += a[i] & 0xFFFFFFFF
    return high, low


def reach(a: Array) -> int:
    """Largest absolute value of integers, as a Python `int` (NumPy's abs of the least int64 is negative)."""
    return max(int(a.max()), -int(a.min()), 0) if a.size else 0


def widened(a: Array, times: int = 1) -> Array:
    """The array itself, or Python integers if the sum of `times` of its values might exceed 62 bits."""
    a = signed(a)
    return a.astype(object) if a.dtype == np.int64 and reach(a) * times >= 2**62 else a


def difference(a: Array, b: Array) -> Array:
    """``a - b``, in Python integers if 64 bits might not hold it."""
    return np.asarray(widened(a) - widened(b))


def weighted_squares(weights: Array, a: Array) -> Number:
    """Σ weights·a², exact for integers and objects.

    Examples
    --------
    >>> weighted_squares(np.array([10**6]), np.array([10**13])) == 10**32
    True
    """
    weights, a = signed(weights), signed(a)
    if is_exact(weights) and is_exact(a) and object not in (weights.dtype, a.dtype):
        weights = widened(weights, reach(a))
    return dot(weights * a, a)


def total(a: Array) -> Number:
    """Σ a, exact for integers and objects."""
    a = signed(a)
    if a.dtype == object:
        held: Number = sum(a.ravel().tolist(), 0)
        return held
    if not is_exact(a):
        return float(np.sum(a))
    high, low = _total(read_only(np.ravel(a)))
    return (int(high) << 32) + int(low)


def as_data(name: str, values: Any, ndim: int = 1) -> Array:
    """Check a model's data: a read-only int64 or float64 (or exact object) array of finite numbers.

    Raises
    ------
    ValueError
        If an entry is not a finite number, or the number of axes is wrong; the message says where.
    """
    array = np.array(values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axis(es), got shape {array.shape}")
    if array.dtype == object:
        if not all(isinstance(v, int | Fraction | np.integer) for v in array.flat):
            raise ValueError(f"{name}: an object array may hold only int and Fraction")
    elif np.issubdtype(array.dtype, np.integer) or array.dtype == bool or array.size == 0:
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{name} has values beyond 64-bit signed integers")
        array = array.astype(np.int64, copy=False)  # it is a copy already
    elif np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64, copy=False)
        wrong = np.flatnonzero(~np.isfinite(array))
        if wrong.size:
            where = np.unravel_index(wrong[0], array.shape)
            raise ValueError(f"{name}[{', '.join(map(str, where))}] is {array[where]}: it must be finite")
    else:
        raise ValueError(f"{name} must be numbers, got dtype {array.dtype}")
    array.flags.writeable = False
    return array


def as_total(name: str, value: Any) -> int:
    """Check a public total: a whole number ≥ 0."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < 0:
        raise ValueError(f"{name} is {value}: no non-negative counts add up to it")
    if value >= 2**62:
        raise ValueError(f"{name} is {value}: beyond 62 bits")
    return int(value)
