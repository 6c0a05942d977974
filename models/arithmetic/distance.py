"""Σ w·|x − y|^p in one pass over the arrays: exact for integers, whatever their size."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import PIECE, Array, read_only
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.rounding import BLOCK

_BLOCK = 1 << 14
_SAFE = 48
"""Bits of a product such that a block's products add up within 62 bits."""


def distance(x: Array, y: Array, p: int, weights: Array | None = None) -> Number:
    """Σ weights·|x − y|^p: an `int` for integer arrays, exact for objects, a float otherwise.

    - x, y, arrays of one shape
    - weights, array of that shape, optional: Default: all 1.

    Examples
    --------
    >>> distance(np.array([2**40, 1]), np.array([-(2**40), 3]), p=2) == 2**82 + 4
    True
    >>> distance(np.array([0.5]), np.array([2]), p=1, weights=np.array([3]))
    4.5
    """
    arrays = [exact.signed(np.ravel(a)) for a in (x, y)]
    w = None if weights is None else exact.signed(np.ravel(weights))
    given = arrays if w is None else [*arrays, w]
    if not any(a.dtype == object for a in given):
        seen = [*map(read_only, arrays), None if w is None else read_only(w)]
        if not all(map(exact.is_exact, given)):
            return float(_floats(*seen, p))
        high, low, fits = _integers(*seen, p)
        if fits:
            return (int(high) << 32) + int(low)
    away = exact.difference(*arrays)
    if w is None:
        return exact.total(np.abs(away)) if p == 1 else exact.dot(away, away)
    return exact.dot(w, np.abs(away)) if p == 1 else exact.weighted_squares(w, away)


@kernel()
def _bits(magnitude: int) -> int:
    """Bits of an absolute value; 64 for that of the least int64, which is negative."""
    bits = 0 if magnitude >= 0 else 64
    while magnitude > 0:
        magnitude >>= 1
        bits += 1
    return bits


@kernel(linear=True)
def _integers(x: Any, y: Any, w: Any, p: int) -> Any:
    """``(high, low, True)`` with the sum ``high · 2³² + low``; False if some product is too large.

    Blocks are slices, and flags are combined by bitwise or, so that the inner loops vectorize.
    """
    high, low = 0, 0
    for start in range(0, x.size, _BLOCK):
        a, b = x[start : start + _BLOCK], y[start : start + _BLOCK]
        inputs, weighing, largest, held = 0, 1, 0, 0
        if w is None:
            for i in range(a.size):
                d = a[i] - b[i]
                inputs |= (a[i] ^ (a[i] >> 63)) | (b[i] ^ (b[i] >> 63))
                largest |= abs(d)
                held += d * d if p == 2 else abs(d)
        else:
            c = w[start : start + _BLOCK]
            for i in range(a.size):
                d = a[i] - b[i]
                inputs |= (a[i] ^ (a[i] >> 63)) | (b[i] ^ (b[i] >> 63))
                largest |= abs(d)
                weighing |= abs(c[i])
                held += c[i] * (d * d if p == 2 else abs(d))
        if _bits(inputs) > 61 or _bits(weighing) + p * _bits(largest) > _SAFE:
            return 0, 0, False
        high += held >> 32
        low += held & 0xFFFFFFFF
    return high, low, True


@_integers.instead
@_integers.without_numba
def _integers_in_arrays(x: Any, y: Any, w: Any, p: int) -> Any:
    high, low = 0, 0
    for start in range(0, x.size, PIECE):
        a, b = x[start : start + PIECE], y[start : start + PIECE]
        weights = np.ones(1, np.int64) if w is None else w[start : start + PIECE]
        heaviest, reaches, away = exact.reach(weights), (exact.reach(a), exact.reach(b)), a - b
        if max(reaches) >= 2**61:
            return 0, 0, False
        most = 2**62 // PIECE
        if heaviest * sum(reaches) ** p > most and heaviest * exact.reach(away) ** p > most:
            return 0, 0, False
        costs = np.multiply(away, away, out=away) if p == 2 else np.abs(away, out=away)
        held = int(costs.sum() if w is None else np.einsum("i,i->", weights, costs))
        high += held >> 32
        low += held & 0xFFFFFFFF
    return high, low, True


@kernel(fastmath={"reassoc"})
def _floats(x: Any, y: Any, w: Any, p: int) -> float:
    """The sum in floats, block by block, to keep rounding errors small."""
    held = 0.0
    for start in range(0, x.size, BLOCK):
        a, b = x[start : start + BLOCK], y[start : start + BLOCK]
        part = 0.0
        if w is None:
            for i in range(a.size):
                d = float(a[i]) - float(b[i])
                part += d * d if p == 2 else abs(d)
        else:
            c = w[start : start + BLOCK]
            for i in range(a.size):
                d = float(a[i]) - float(b[i])
                part += c[i] * (d * d if p == 2 else abs(d))
        held += part
    return held


@_floats.without_numba
def _floats_in_arrays(x: Any, y: Any, w: Any, p: int) -> float:
    held = 0.0
    for start in range(0, x.size, BLOCK):
        away = x[start : start + BLOCK].astype(float) - y[start : start + BLOCK].astype(float)
        costs = away * away if p == 2 else np.abs(away)
        held += float((costs if w is None else w[start : start + BLOCK] * costs).sum())
    return held
