"""The cost of a run of values, Σ (v − mean)² + noise/count: exact, or to twice a float's precision."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel

VECTORS: Any = {"error_model": "numpy"}
"""Division by zero is not checked, so that loops over divisions vectorize; searches are twice as fast."""

Sums = tuple[Floats, ...]


def run_cost(values: Array, noise: Number) -> Number:
    """Σ (v − mean)² + noise/count of one run; a `Fraction` for exact values."""
    count = values.size
    if exact.is_exact(values):
        total = exact.total(values)
        return Fraction(exact.dot(values, values)) + (Fraction(noise) - Fraction(total) ** 2) / count
    away = values - np.mean(values)
    return float(np.sum(away * away) + float(noise) / count)


def cost_of(values: Array, starts: Ints, noise: Number) -> Number:
    """The sum of `run_cost` over all runs, given their starts; a `Fraction` for exact values."""
    ends = np.append(starts[1:], values.size)
    if not exact.is_exact(values):
        return cost_in_floats(starts, float(noise), sums_of(values))
    away = exact.difference(values, np.full_like(values, values[values.size // 2]))
    totals = np.add.reduceat(exact.widened(away, values.size), starts)
    # Runs are grouped by length: few divisions.
    order = np.argsort(ends - starts, kind="stable")
    lengths, at, sizes = np.unique((ends - starts)[order], return_index=True, return_counts=True)
    totals = totals[order]
    if totals.dtype == np.int64 and exact.reach(totals) ** 2 * totals.size < 2**62:
        held = np.add.reduceat(totals * totals, at).tolist()
    else:
        held = [exact.dot(part, part) for part in np.split(totals, at[1:])]
    whole = math.lcm(*lengths.tolist())
    shares = [whole // length for length in lengths.tolist()]
    noises = sum(size * share for size, share in zip(sizes.tolist(), shares, strict=True))
    means = sum(square * share for square, share in zip(held, shares, strict=True))
    cost: Number = exact.dot(away, away) + (Fraction(noise) * noises - means) / whole
    return cost


def cost_in_floats(starts: Ints, noise: float, sums: Sums) -> float:
    """`cost_of` in floats, from the sums of `sums_of`."""
    ends = np.append(starts[1:], sums[0].size - 1)
    return math.fsum(_all_squares(sums, starts, ends)) + math.fsum(noise / (ends - starts))


def sums_of(values: Array) -> Sums:
    """Running sums of values and of squares, each as a float and its rounding error; shape (n + 1,) each.

    The middle value is subtracted from all first: the costs are the same, and fewer digits are lost.
    """
    away = exact.difference(values, np.full_like(values, values[values.size // 2]))
    return _sums(away.astype(np.float64))


def sums_error(values: Array, sums: Sums, cost: float) -> float:
    """A bound on the total rounding error of a cut's run costs from `sums_of`, for cuts of at most this cost.

    Let q = Σ v². If values and running sums are whole and small enough to be exact, the error of a run's cost
    is three units of 2^-106 of its own Σ v². Otherwise the error of each running sum is n units of 2^-105 of
    itself, which is less than 2^-103·n²·q in all along a cut. Also, each value is rounded to within 2^-53 of
    itself, which changes the root of a cut's cost by at most 2^-53·√q.
    """
    q = float(sums[2][-1])
    if values.dtype == np.int64 and q < 2.0**52 * 2.0**52 and exact.reach(values) < 2**52:
        return 2.0**-101 * q
    return 2.0**-103 * float(values.size) ** 2 * q + 2.0**-51 * math.sqrt(max(cost, 0.0) * q)


@kernel()
def _product(a: float, b: float) -> Any:
    """``a·b`` as a float and its rounding error (Dekker)."""
    high = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@kernel()
def _add(sums: Any, rest: Any, i: int, high: float, low: float) -> None:
    """Write ``sums[i] + (high, low)`` to ``sums[i + 1]``, to twice the precision (Knuth)."""
    total = sums[i] + high
    part = total - sums[i]
    lost = (sums[i] - (total - part)) + (high - part) + rest[i] + low
    sums[i + 1] = total + lost
    rest[i + 1] = lost - (sums[i + 1] - total)


@kernel()
def _sums(v: Any) -> Sums:
    """Running sums of v and of its squares, each as a float and its rounding error; shape (n + 1,) each."""
    n = v.size
    p, p_rest, q, q_rest = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        _add(p, p_rest, i, v[i], 0.0)
        square, lacks = _product(v[i], v[i])
        _add(q, q_rest, i, square, lacks)
    return p, p_rest, q, q_rest


@_sums.without_numba
def _sums_in_arrays(v: Any) -> Sums:
    product: Any = _product.py_func
    found = [*_running(v.astype(float), np.zeros(v.size)), *_running(*product(v, v))]
    return tuple(np.append(0.0, part) for part in found)


def _running(high: Floats, low: Floats) -> tuple[Floats, Floats]:
    """Running sums of numbers, each a float and its rounding error, as such: of many parts side by side."""
    n = high.size
    rows = max(2, math.isqrt(n) // 4)
    parts = -(-n // rows)
    sums = np.zeros((2, parts * rows))
    sums[0, :n], sums[1, :n] = high, low
    sums = np.ascontiguousarray(sums.reshape(2, parts, rows).swapaxes(1, 2))
    for row in range(1, rows):
        sums[:, row] = _added(sums[:, row - 1], sums[:, row])
    if parts > 1:
        before = _running(*sums[:, -1, :-1])
        sums[:, :, 1:] = _added(np.array(before)[:, None], sums[:, :, 1:])
    found = sums.swapaxes(1, 2).reshape(2, -1)[:, :n]
    return found[0], found[1]


def _added(a: Any, b: Any) -> tuple[Any, Any]:
    """The sums of two arrays of numbers, each a float and its rounding error (Knuth)."""
    total = a[0] + b[0]
    part = total - a[0]
    lost = (a[0] - (total - part)) + (b[0] - part) + a[1] + b[1]
    high = total + lost
    return high, lost - (high - total)


def spreads(sums: Sums, i: Ints, j: Ints | int, count: Floats) -> Floats:
    """`spread` of many runs of bins i … j − 1; shape (runs,)."""
    (p, p_rest, q, q_rest), to = ([one[at] for one in sums] for at in (i, j))
    product: Any = _product.py_func
    total = to[0] - p
    part = to[0] - total
    lacks = (to[0] - (total + part)) + (part - p) + (to[1] - p_rest)
    square, square_rest = product(total, total)
    mean = square / count
    back, back_rest = product(mean, count)
    mean_rest = ((square - back) - back_rest + square_rest + 2.0 * total * lacks) / count
    whole = to[2] - q
    part = to[2] - whole
    whole_rest = (to[2] - (whole + part)) + (part - q) + (to[3] - q_rest)
    found: Floats = np.maximum((whole - mean) + (whole_rest - mean_rest), 0.0)
    return found


def rough_spreads(begin: tuple[Any, Any], end: tuple[Any, Any], count: Any, noise: float = 0.0) -> Any:
    """`spreads` and noise/count within `rough_error` and 4u·noise, from the first floats of the running sums.

    `begin` and `end` have the sums of values and of squares, ``(sums[0][i], sums[2][i])``.
    """
    total = end[0] - begin[0]
    return (end[1] - begin[1]) - (total * total - noise) / count


def rough_error(sums: Sums) -> float:
    """A bound on the error of each of `rough_spreads`.

    Let u = 2^-53, A the largest running sum of values, Q that of squares, and M the largest value. A run's
    sum T has an error of 4uA at most, and |T|/count ≤ M: 8uAM + 16u²A² for its mean square. The sum of
    squares has an error of 3uQ. The square, the quotient and the difference are rounded, by 4uQ.
    """
    p, _, q, _ = sums
    total, most = float(np.abs(p).max()), float(np.abs(np.diff(p)).max(initial=0.0))
    return 2.0**-49 * (float(q.max()) + total * (most + 2.0**-50 * total))


@kernel(**VECTORS)
def spread(p: float, p_rest: float, q: float, q_rest: float, to: Any, count: float) -> Any:
    """Σ (v − mean)² over `count` bins: Σ v² minus (Σ v)²/count, to twice the precision of a float.

    The arguments are the running sums before the first bin and, as the tuple `to`, after the last.
    """
    total = to[0] - p
    part = to[0] - total
    lacks = (to[0] - (total + part)) + (part - p) + (to[1] - p_rest)
    square, square_rest = _product(total, total)
    mean = square / count
    back, back_rest = _product(mean, count)
    mean_rest = ((square - back) - back_rest + square_rest + 2.0 * total * lacks) / count
    whole = to[2] - q
    part = to[2] - whole
    whole_rest = (to[2] - (whole + part)) + (part - q) + (to[3] - q_rest)
    return max(0.0, (whole - mean) + (whole_rest - mean_rest))


@kernel(**VECTORS)
def squares(sums: Any, i: int, j: int) -> Any:
    """Σ (v − mean)² over bins i … j − 1."""
    p, p_rest, q, q_rest = sums
    return spread(p[i], p_rest[i], q[i], q_rest[i], (p[j], p_rest[j], q[j], q_rest[j]), float(j - i))


@kernel(**VECTORS)
def run_column(sums: Any, low: int, j: int, costs: Any) -> None:
    """Write w(low, j), w(low + 1, j), … to `costs`, as many as it holds; loops over slices vectorize."""
    rows = slice(low, low + costs.size)
    p, p_rest, q, q_rest = sums[0][rows], sums[1][rows], sums[2][rows], sums[3][rows]
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    longest = float(j - low)
    for k in range(costs.size):
        costs[k] = spread(p[k], p_rest[k], q[k], q_rest[k], to, longest - k)


@run_column.without_numba
def _run_column_in_arrays(sums: Sums, low: int, j: int, costs: Floats) -> None:
    i = np.arange(low, low + costs.size)
    costs[:] = spreads(sums, i, j, (j - i).astype(float))


@kernel(**VECTORS)
def _all_squares(sums: Any, starts: Any, ends: Any) -> Any:
    found = np.empty(starts.size)
    for k in range(starts.size):
        found[k] = squares(sums, starts[k], ends[k])
    return found


@_all_squares.without_numba
def _all_squares_in_arrays(sums: Any, starts: Any, ends: Any) -> Any:
    return spreads(sums, starts, ends, (ends - starts).astype(float))
