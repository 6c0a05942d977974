"""Samplers: one table for a law, or, for double-geometric noise of a large scale, one table for each digit.

Double-geometric noise X is written as N·T + L with N = Bⁿ and 0 ≤ L < N. T = ⌊X/N⌋ has a law of its own
(`Quotient`). Given T ≥ 0, the n digits of L to base B are independent (`Digit`). Given T < 0, those of
N − 1 − L are, with the same laws. No sign is drawn, so there is no −0 to reject.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hierdp.privacy.tables.inversion import WORD, Table
from hierdp.privacy.tables.laws import Digit, DiscreteGaussian, Quotient
from hierdp.privacy.tables.random_words import WordSource
from models.arithmetic.arrays import Ints

BASE = 4096
"""Base of the digits: their tables fit into the processor's cache."""

ONE_TABLE = 128
"""Double-geometric noise up to this scale has one table. Beyond it, digits reduce the scale of T to at most
this."""

LARGEST_GAUSSIAN = 100_000
"""Largest scale of discrete Gaussian noise from a table: 15 MB, built in a second or two."""

KEPT = 32
"""Number of samplers kept in memory."""

LEAST, MOST = -(2**63), 2**63 - 1
"""The range of a count: sums beyond it are set to its ends, as OpenDP does."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Noise as whole numbers: N·T + L.

    - top: of T.
    - digits: of the digits of L, the lowest first.
    """

    top: Table
    digits: tuple[Table, ...] = ()
    base: int = BASE

    def draw(self, size: int, source: WordSource) -> tuple[Ints, dict[int, int]]:
        """Draw noise for `size` counts.

        Values that took more words are given by position, since they may exceed 64 bits.
        """
        parts, sure = zip(*(table.draw(size, source) for table in (self.top, *self.digits)), strict=True)
        noise: Ints = self._together(parts)
        again = {
            i: self._together([exact.get(i, int(part[i])) for part, exact in zip(parts, sure, strict=True)])
            for i in set().union(*sure)
        }
        if self.digits:  # otherwise there is only one part
            for part in parts:
                part.fill(0)
        return noise, again

    def _together(self, parts: Any) -> Any:
        """Combine the parts of a number, or of an array of numbers."""
        top, *digits = parts
        if not digits:
            return top
        low, unit = 0, 1
        for digit in digits:
            low, unit = low + unit * digit, unit * self.base
        return unit * top + low + (top < 0) * (unit - 1 - 2 * low)


def add(sampler: Sampler, counts: Ints, source: WordSource) -> Ints:
    """Add noise to counts.

    All noise is drawn before any count is read. Sums outside int64 become the nearest int64.
    """
    noise, again = sampler.draw(counts.size, source)
    noisy: Ints = counts + noise
    over = ((counts ^ noisy) & (noise ^ noisy)) < 0  # overflow: the sum has neither sign
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
