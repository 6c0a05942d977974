"""Noise of a law: from one table, or for double-geometric noise of a large scale from one for each digit.

Double-geometric noise X is written as N·T + L with N = Bⁿ and 0 ≤ L < N. T = ⌊X/N⌋ has a law of its own
(`Quotient`). Given T ≥ 0, the n digits of L to base B are independent (`Digit`). Given T < 0, those of
N − 1 − L are, with the same laws. There is no sign to draw, and so no −0 to reject.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hierdp.privacy.tables.inversion import WORD, Table
from hierdp.privacy.tables.laws import Digit, DiscreteGaussian, Quotient
from hierdp.privacy.tables.random_words import Source
from models.arithmetic.arrays import Ints

BASE = 4096
"""Of the digits: tables that the processor keeps near."""

ONE_TABLE = 128
"""Double-geometric noise up to this scale has one table. Beyond it, digits bring the scale of T under it."""

LARGEST_GAUSSIAN = 100_000
"""Of discrete Gaussian noise from a table: 15 MB, a second or two to make."""

KEPT = 32
"""Samplers that are kept in memory."""

LEAST, MOST = -(2**63), 2**63 - 1
"""What a count can be: sums beyond are set to these, as OpenDP does."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Noise as whole numbers: N·T + L.

    Attributes
    ----------
    top : Table
        Of T.
    digits : tuple of Table
        Of the digits of L, the lowest first.
    base : int
    """

    top: Table
    digits: tuple[Table, ...] = ()
    base: int = BASE

    def draw(self, size: int, source: Source) -> tuple[Ints, dict[int, int]]:
        """Noise of `size` counts. What took more words is given by position, as it may be beyond 64 bits."""
        parts, sure = zip(*(table.draw(size, source) for table in (self.top, *self.digits)), strict=True)
        noise: Ints = self._together(parts)
        again = {
            i: self._together([exact.get(i, int(part[i])) for part, exact in zip(parts, sure, strict=True)])
            for i in set().union(*sure)
        }
        if self.digits:  # else the noise is the one part
            for part in parts:
                part.fill(0)
        return noise, again

    def _together(self, parts: Any) -> Any:
        """The number, or an array of numbers, of its parts."""
        top, *digits = parts
        if not digits:
            return top
        low, unit = 0, 1
        for digit in digits:
            low, unit = low + unit * digit, unit * self.base
        return unit * top + low + (top < 0) * (unit - 1 - 2 * low)


def add(sampler: Sampler, counts: Ints, source: Source) -> Ints:
    """Counts with noise: all of it is drawn before a count is looked at.

    Sums that no int64 holds become the nearest one that does.
    """
    noise, again = sampler.draw(counts.size, source)
    noisy: Ints = counts + noise
    over = ((counts ^ noisy) & (noise ^ noisy)) < 0  # the sum has the sign of neither
    noisy[over] = np.where(noise[over] < 0, LEAST, MOST)
    for i, exact in again.items():
        noisy[i] = min(max(int(counts[i]) + exact, LEAST), MOST)
    noise.fill(0)
    return noisy


@lru_cache(KEPT)
def double_geometric(
    scale: Fraction, base: int = BASE, largest: int = ONE_TABLE, bits: int = WORD
) -> Sampler:
    """P(X = k) ∝ exp(−|k|/λ), of any scale λ."""
    digits = 0
    while scale > largest * base**digits:
        digits += 1
    lower = tuple(Table.of(Digit(scale, base**i, base), bits) for i in range(digits))
    return Sampler(Table.of(Quotient(scale, base**digits), bits), lower, base)


@lru_cache(KEPT)
def discrete_gaussian(scale: Fraction, bits: int = WORD) -> Sampler:
    """P(X = k) ∝ exp(−k²/2σ²), of a scale σ up to `LARGEST_GAUSSIAN`."""
    return Sampler(Table.of(DiscreteGaussian(scale), bits))
