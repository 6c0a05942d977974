"""Exact arithmetic on arrays of integers, fractions and floats: whole numbers over a common unit.

A float is a whole number over a power of two, so nothing is rounded. Arrays are int64 as long as their values
provably fit, and Python integers otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags
from models.programs.costs import Absolute, Square

LIMIT = 2**62
"""Values of int64 arrays stay below it; twice as much still fits 64 bits."""


_UNITS = frozenset(1 << power for power in range(512))
"""Numbers up to `FLOAT_WHOLE` over these are exact in floats."""


class Scaled(NamedTuple):
    """The numbers ``number / unit``; `number` is an int64 array or an array of Python integers."""

    number: Array
    unit: int

    def over(self, unit: int) -> Array:
        """The same numbers as whole numbers over `unit`, a multiple of their own unit."""
        return self.number if unit == self.unit else times(self.number, unit // self.unit)

    def in_floats(self) -> Array | None:
        """The numbers as floats, if these hold all of them exactly."""
        held = exact.reach(self.number) <= exact.FLOAT_WHOLE and self.unit in _UNITS
        return self.number.astype(np.float64) / self.unit if held else None

    def value(self, place: int) -> Fraction:
        """One of the numbers."""
        return Fraction(int(self.number[place]), self.unit)


def finite(array: Array) -> Flags:
    """Which entries are neither infinite nor NaN."""
    if array.dtype == object:
        flags = (not isinstance(v, float | np.floating) or math.isfinite(v) for v in array.flat)
        return np.fromiter(flags, bool, array.size).reshape(array.shape)
    return np.asarray(np.isfinite(array))


def scaled(parts: Sequence[Array]) -> Scaled:
    """Arrays of finite numbers, concatenated, over their least common unit."""
    each = [_scaled(np.ravel(part)) for part in parts if part.size]
    if not each:
        return Scaled(np.empty(0, np.int64), 1)
    unit = math.lcm(*(one.unit for one in each))
    return Scaled(np.concatenate([one.over(unit) for one in each]), unit)


def over_one_unit(*arrays: Array) -> tuple[list[Any], int]:
    """The arrays as whole numbers over their least common unit, in their shapes; and the unit."""
    together = scaled(arrays)
    parts = np.split(together.number, np.cumsum([array.size for array in arrays])[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)], together.unit


def exact_cost(cost: Square | Absolute, v: Array) -> Fraction:
    """The cost of variables, also of floats without rounding."""
    (held, center), unit = over_one_unit(v, np.asarray(cost.center))
    (weight,), heavy = over_one_unit(np.asarray(cost.weight))
    away = np.abs(minus(held, center))
    total: Any = exact.weighted_squares(weight, away) if cost.power == 2 else exact.dot(weight, away)
    return Fraction(total, heavy * unit**cost.power)


def _scaled(array: Array) -> Scaled:
    if array.dtype == object:
        fractions = [v if type(v) in (int, Fraction) else _fraction(v) for v in array.tolist()]
        unit = math.lcm(*{f.denominator for f in fractions})
        whole = [f.numerator * (unit // f.denominator) for f in fractions]
        return Scaled(np.array([*whole, None], dtype=object)[:-1], unit)  # the None keeps NumPy from guessing
    if not np.issubdtype(array.dtype, np.floating):
        return Scaled(exact.signed(array), 1)
    most = max(array.max(), -array.min())
    digits = 52 - math.frexp(most)[1]  # so many binary digits after the point leave 52 in all
    if 0 <= digits <= 62:
        held = array * 2.0**digits
        if (held == np.rint(held)).all():
            units = held.astype(np.int64)
            every = int(np.bitwise_or.reduce(units))
            zeros = min(digits, (every & -every).bit_length() - 1) if every else digits
            return Scaled(units >> zeros, 1 << (digits - zeros))
    part, power = np.frexp(array)
    number, power = (part * 2.0**53).astype(np.int64), power - 53  # array = number * 2**power
    even = np.where(number == 0, 1, number & -number)
    spare = np.frexp(even.astype(np.float64))[1] - 1  # how often 2 divides the number
    number, power = number >> spare, np.where(number == 0, 0, power + spare)
    down = min(0, int(power.min()))
    return Scaled(times(number, _powers(np.where(number == 0, 0, power - down))), 1 << -down)


def _fraction(value: Any) -> Fraction:
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _powers(exponent: Array) -> Array:
    """Powers of 2."""
    if exponent.max() < 62:
        return np.left_shift(1, exponent.astype(np.int64))
    return np.array([*(1 << e for e in exponent.tolist()), None], dtype=object)[:-1]


def _fits(a: Array, b: Array) -> bool:
    return a.dtype != object and b.dtype != object


def times(a: Any, b: Any) -> Array:
    """``a * b``, exactly."""
    a, b = exact.signed(np.asarray(a)), exact.signed(np.asarray(b))
    if _fits(a, b) and exact.reach(a) * exact.reach(b) < LIMIT:
        return np.asarray(a * b)
    return np.asarray(a.astype(object) * b.astype(object), dtype=object)


def plus(a: Any, b: Any) -> Array:
    """``a + b``, exactly."""
    a, b = exact.signed(np.asarray(a)), exact.signed(np.asarray(b))
    if _fits(a, b) and exact.reach(a) + exact.reach(b) < LIMIT:
        return np.asarray(a + b)
    return np.asarray(a.astype(object) + b.astype(object), dtype=object)


def minus(a: Any, b: Any) -> Array:
    """``a - b``, exactly."""
    a, b = exact.signed(np.asarray(a)), exact.signed(np.asarray(b))
    if _fits(a, b) and exact.reach(a) + exact.reach(b) < LIMIT:
        return np.asarray(a - b)
    return np.asarray(a.astype(object) - b.astype(object), dtype=object)


def gathered(index: Array, values: Array, size: int) -> Array:
    """The sums of the values of each index, shape (size,), exactly."""
    fits = values.dtype != object and exact.reach(values) * values.size < LIMIT
    held = np.zeros(size, np.int64 if fits else object)
    if fits and (np.diff(index, prepend=-1) > 0).all():  # each once
        held[index] = values
        return held
    np.add.at(held, index, values if fits else values.astype(object))
    return held


def running(values: Array) -> Array:
    """Running sums, exactly."""
    fits = values.dtype != object and exact.reach(values) * values.size < LIMIT
    return np.asarray(np.cumsum(values if fits else values.astype(object)))


def divided(a: Array, unit: int) -> Array:
    """``a / unit``, rounded down."""
    return np.asarray((a if unit < LIMIT else a.astype(object)) // unit)


def raised(a: Array, unit: int) -> Array:
    """``a / unit``, rounded up."""
    return times(divided(times(a, -1), unit), -1)
