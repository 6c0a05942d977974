"""Invert a distribution function: a random word and a table give a value; ties take more words.

Let the whole number n be the first b bits of a uniform U in [0, 1), and E an edge: E ≤ 2ᵇF(k) ≤ E + 1. If
n < E, then U < F(k). If n > E, then U ≥ F(k). If n = E, the next bits decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.privacy.tables.laws import Law
from hierdp.privacy.tables.random_words import Words, WordSource
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel

WORD = 64
"""Bits of a random word."""

GUIDE = 20
"""The largest number of leading bits that look up where a word's search begins."""


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
