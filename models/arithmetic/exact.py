"""Sums of products of whole numbers, exact whatever their size.

The sum of the squares of a census overflows 64 bits. These helpers add up blocks that provably fit int64, and
add the blocks as Python integers. The objective of integer data is therefore an exact `int`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel

Number = int | float | Fraction

FLOAT_WHOLE = 2**53
"""Floats hold all whole numbers up to this size."""

LIMIT = 2**62
"""Intermediate values of int64 arithmetic stay below it in size; twice as much still fits 64 bits."""

_INT64 = np.dtype(np.int64)
_BLOCK_BITS = 14
_SAFE_BITS = 62 - _BLOCK_BITS


def is_exact(array: Array) -> bool:
    """Whether arithmetic on this array is exact: integers, or Python numbers (Fractions) as objects."""
    return array.dtype.kind in "iuO"


def fractions(values: Any) -> Array:
    """The same numbers as Fractions, in the same shape; infinities stay."""
    found = np.empty(np.shape(values), object)
    for place, value in enumerate(np.ravel(values).tolist()):
        found.flat[place] = value if abs(value) == math.inf else Fraction(value)
    return found


def objects(values: Iterable[Any], shape: tuple[int, ...]) -> Array:
    """Python numbers as an object array of this shape."""
    array = np.empty(math.prod(shape), object)
    for place, value in enumerate(values):
        array[place] = value
    return array.reshape(shape)


def negated(values: Any) -> Array:
    """``-values``, in Python integers if 64 bits might not hold it."""
    return np.asarray(-widened(np.asarray(values)))


def comparable(a: Array, b: Array) -> tuple[Array, Array]:
    """The arrays, as objects if one holds floats and the other integers that floats would round.

    NumPy compares floats with integers as floats; Python compares their values.
    """
    kinds = a.dtype.kind + b.dtype.kind
    if "O" not in kinds and "f" in kinds and kinds != "ff":
        whole = b if a.dtype.kind == "f" else a
        if reach(whole) > FLOAT_WHOLE:
            return a.astype(object), b.astype(object)
    return a, b


def where(condition: Array, a: Array, b: Array) -> Array:
    """``np.where`` that rounds no integer to a float."""
    return np.where(condition, *comparable(a, b))


def together(parts: Sequence[Array]) -> Array:
    """The arrays, put end to end, none of their numbers rounded; int64 if there are none."""
    if len({part.dtype for part in parts}) > 1:
        large = any(part.dtype.kind in "iu" and reach(part) > FLOAT_WHOLE for part in parts)
        large = large or any(part.dtype == object for part in parts)
        if large:  # a float among Python's numbers would make floats of their sums
            parts = [fractions(part) if part.dtype.kind == "f" else part.astype(object) for part in parts]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def joined(values: Array, last: Any) -> Array:
    """The values and one more number, none of them rounded: floats only if they hold every one exactly."""
    one = objects([last], (1,)) if isinstance(last, Fraction) else np.array([last])
    return together([values, one])


def fits(largest: int | Fraction) -> bool:
    """Whether 64 bits hold every intermediate value of a proof, if none is larger than this in size.

    A certificate states such a bound before it computes with int64 arrays, from the largest values of data,
    answer and witness. Above it, Python integers take their place: the same code on object arrays, or
    `models.lagrangian_bound`. So no value of a proof can wrap. docs/theorem has a proof by machine that below
    the bound 64-bit arithmetic equals that of the integers.
    """
    return largest < LIMIT


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


def float_above(value: Fraction) -> float:
    """The smallest float that is at least this number.

    Examples
    --------
    >>> float_above(Fraction(0))
    0.0
    """
    return 0.0 - float_below(-value)


def as_float(value: Number) -> float:
    """The number as a float; infinite if floats cannot hold it."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def floats(array: Array) -> Array:
    """The numbers as float64; infinite where floats cannot hold them."""
    if array.dtype != object:
        return array.astype(float, copy=False)
    return np.array([as_float(value) for value in array.ravel().tolist()]).reshape(array.shape)


def as_objective(cost: Number, exactly: bool) -> Number:
    """A cost, as a float unless it is of exact numbers; infinite if floats cannot hold it."""
    return cost if exactly else as_float(cost)


def signed(array: Array) -> Array:
    """Integers of any width as int64, so that narrow ones do not wrap around; other arrays unchanged."""
    if array.dtype == _INT64 or array.dtype.kind not in "iub":
        return array
    beyond = array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max
    return objects(array.ravel().tolist(), array.shape) if beyond else array.astype(np.int64)


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
    if not (is_exact(a) and is_exact(b)):
        # Not by BLAS: its sums depend on the number of threads, which differs between machines.
        return float((a.astype(np.float64, copy=False) * b.astype(np.float64, copy=False)).sum())
    if _bits(a) + _bits(b) <= _SAFE_BITS:
        high, low = _dot(read_only(a), read_only(b))
        return (int(high) << 32) + int(low)
    if _bits(a) < _bits(b):
        a, b = b, a
    half = _bits(a) // 2
    return (int(dot(a >> half, b)) << half) + int(dot(a & ((1 << half) - 1), b))


@kernel(linear=True)
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


@_dot.without_numba
def _dot_in_arrays(a: Ints, b: Ints) -> Any:
    whole = a.size >> _BLOCK_BITS << _BLOCK_BITS
    blocks = np.einsum("ij,ij->i", *(part[:whole].reshape(-1, 1 << _BLOCK_BITS) for part in (a, b)))
    sums = np.append(blocks, np.einsum("i,i->", a[whole:], b[whole:]))
    return int((sums >> 32).sum()), int((sums & 0xFFFFFFFF).sum())


def reach(a: Array) -> int:
    """Largest absolute value of integers, as a Python `int` (NumPy's abs of the least int64 is negative)."""
    if not a.size:
        return 0
    return max(int(np.maximum.reduce(a, None)), -int(np.minimum.reduce(a, None)), 0)


def widened(a: Array, times: int = 1) -> Array:
    """The array itself, or Python integers if the sum of `times` of its values might exceed 62 bits."""
    a = signed(a)
    return a.astype(object) if a.dtype == np.int64 and not fits(reach(a) * times) else a


def difference(a: Array, b: Array) -> Array:
    """``a - b``, in Python integers if 64 bits might not hold it."""
    return np.asarray(widened(a) - widened(b))


def cost(x: Array, y: Array, weights: Array) -> Fraction:
    """Σ weights·(x − y)² without rounding, also of floats."""
    parts = (fractions(part).ravel() for part in (x, y, weights))
    return sum((w * (a - b) ** 2 for a, b, w in zip(*parts, strict=True)), Fraction(0))


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
    if fits(reach(a) * a.size):
        return int(a.sum())
    return (int((a >> 32).sum()) << 32) + int((a & 0xFFFFFFFF).sum())
