"""Samplers: one table for a law, or, for double-geometric noise of a large scale, one table for each digit.

Double-geometric noise X is written as N·T + L with N = Bⁿ and 0 ≤ L < N. T = ⌊X/N⌋ has a law of its own
(`Quotient`). Given T ≥ 0, the n digits of L to base B are independent (`Digit`). Given T < 0, those of
N − 1 − L are, with the same laws. No sign is drawn, so there is no −0 to reject.

A random word and a table give a value; ties take more words (`decide`). Let the whole number n be the first b
bits of a uniform U in [0, 1), and E an edge: E ≤ 2ᵇF(k) ≤ E + 1. If n < E, then U < F(k). If n > E, then U ≥
F(k). If n = E, the next bits decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hierdp.privacy.tables.laws import Digit, DiscreteGaussian, Law, Quotient
from hierdp.privacy.tables.random_words import Words, WordSource
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel

WORD = 64
"""Bits of a random word."""

GUIDE = 20
"""The largest number of leading bits that look up where a word's search begins."""

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
def discrete_gaussian(scale: Fraction) -> Sampler:
    """P(X = k) ∝ exp(−k²/2σ²), of a scale σ up to `LARGEST_GAUSSIAN`."""
    return Sampler(Table.of(DiscreteGaussian(scale), WORD))


def decide(law: Law, word: int, source: WordSource, near: int = 0, bits: int = WORD) -> int:
    """The value that a word decides, together with as many further words as are needed.

    - word: the first word.
    - source: source of the further words.
    - near: the value at which the search begins.
    """
    number, have = word, bits
    while True:
        found = _value(law, number, have, near)
        if found is not None:
            return found
        more = np.zeros(1, dtype=np.uint64)
        source(more)
        number, have = (number << bits) | int(more[0]), have + bits
        more.fill(0)


def _value(law: Law, number: int, bits: int, near: int) -> int | None:
    """The k with F(k − 1) ≤ U < F(k) for all U that begin with these bits; None if there are several.

    The smallest and the largest number are left undecided, since no edge lies beyond them.
    """
    if not 0 < number < (1 << bits) - 1:
        return None
    low, high, step = near, near, 1
    while law.edge(low, bits) >= number:
        low, step = low - step, 2 * step
    step = 1
    while law.edge(high, bits) <= number:
        high, step = high + step, 2 * step
    while high - low > 1:  # F(low) ≤ U < F(high)
        k = (low + high) // 2
        edge = law.edge(k, bits)
        if edge == number:
            return None
        low, high = (k, high) if edge < number else (low, k)
    return high


@dataclass(frozen=True, eq=False)
class Table:
    """A law, ready for the first word of each draw.

    - first: the value of the first edge.
    - edges, uint64 array, shape (values,): edges of the values `first`, `first` + 1, …; the first is 0 and
      the last 2ᵇⁱᵗˢ − 1.
    - guide (int32 array): for each prefix of a word, the first edge that is not below it.
    - shift: number of bits of a word after its prefix.
    """

    law: Law
    bits: int
    first: int
    edges: Words
    guide: Array
    shift: int

    @classmethod
    def of(cls, law: Law, bits: int = WORD) -> Table:
        """The table of a law."""
        first, edges = law.edges(bits)
        array = np.array(edges, dtype=np.uint64)
        if edges[0] != 0 or edges[-1] != (1 << bits) - 1 or (array[1:] < array[:-1]).any():
            raise ArithmeticError("the edges of a table must ascend from 0 to the largest word")
        leading = min(GUIDE, bits, array.size.bit_length() + 1)
        shift = bits - leading
        starts = np.arange(1 << leading, dtype=np.uint64) << np.uint64(shift)
        guide = np.searchsorted(array, starts).astype(np.int32)
        return cls(law, bits, first, read_only(array), read_only(guide), shift)

    def draw(self, size: int, source: WordSource) -> tuple[Ints, dict[int, int]]:
        """Draw `size` values.

        Those that took more than one word are given by position, since they may exceed 64 bits; the array has
        0 there.
        """
        words, values = np.zeros(size, dtype=np.uint64), np.empty(size, dtype=np.int64)
        try:
            source(words)
            unsure = _look_up(words, self.edges, self.guide, np.uint64(self.shift), self.first, values)
            if not unsure:
                return values, {}
            at = np.flatnonzero(self.edges[values - self.first] == words).tolist()
            exact = {i: decide(self.law, int(words[i]), source, int(values[i]), self.bits) for i in at}
            values[at] = 0
            return values, exact
        finally:
            words.fill(0)


@kernel(nogil=True)
def _look_up(words: Any, edges: Any, guide: Any, shift: Any, first: int, values: Any) -> int:
    """Look up the value of each word, and count the words that are on an edge."""
    unsure = 0
    for i in range(words.size):
        word = words[i]
        j = int(guide[word >> shift])
        while edges[j] < word:
            j += 1
        unsure += edges[j] == word
        values[i] = first + j
    return unsure
