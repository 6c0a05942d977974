"""Check many whole, bounded isotonic chains side by side in one pass, with one verdict for each.

Chain k is ``y[offsets[k]:offsets[k + 1]]``, with the bounds ``lower[k]`` and ``upper[k]``. Its prices, one
more than it has entries, are ``prices[offsets[k] + k:offsets[k + 1] + k + 1]``. The verdict on a chain is the
one that `models.witnesses.isotonic_prices` gives on it alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags, Ints, read_only
from models.arithmetic.kernels import kernel
from models.witnesses.isotonic_prices import FREE, Chain, scan_prices


class Chains(NamedTuple):
    """Minimize Σ |x − y|^p over ``lower[k] ≤ x_0 ≤ x_1 ≤ … ≤ upper[k]`` in each chain k, x whole."""

    y: Ints
    p: int
    offsets: Ints
    lower: Ints
    upper: Ints

    @property
    def number(self) -> int:
        """The number of chains."""
        return int(self.lower.size)

    @property
    def chain(self) -> Ints:
        """The chain of each entry."""
        return np.repeat(np.arange(self.number), np.diff(self.offsets))

    def ordered(self, x: Ints) -> Flags:
        """Which chains of an answer are within their bounds and do not fall."""
        found = np.empty(self.number, np.bool_)
        _ordered(x, self.offsets, self.lower, self.upper, found)
        return found

    def gaps(self, x: Ints, given: Ints | None) -> tuple[Array, Ints]:
        """The exact gap between each chain's cost and the bound that its prices prove; and the prices.

        - x, int array, shape (n,): a feasible answer.
        - given, int array, shape (n + chains,), optional: Prices. By default, they are read off x.
        """
        if given is None:
            prices, missed = self._read_off(x)
        else:
            prices, missed = np.maximum(given, 0), np.arange(self.number)
        gaps = np.zeros(self.number, np.int64)
        if not missed.size:
            return gaps, prices
        if self._fits(x, prices):
            x, y = read_only(x), read_only(self.y)
            _gaps(x, y, self.p, self.offsets, self.lower, self.upper, missed, read_only(prices), gaps)
            return gaps, prices
        exactly = gaps.astype(object)
        for k in missed.tolist():
            chain, part, own = self._alone(k)
            exactly[k] = chain.exact_gap(x[part], prices[own], (chain.lower, chain.upper))
        return exactly, prices

    def _read_off(self, x: Ints) -> tuple[Ints, Ints]:
        """Prices that are read off x, and the chains that they do not prove; the others have no gap."""
        reach = 2 + max(exact.reach(x), exact.reach(self.y))
        if 8 * reach * int(np.diff(self.offsets).max(initial=0)) < FREE:
            prices, proved = np.empty(x.size + self.number, np.int64), np.empty(self.number, np.bool_)
            x, y = read_only(x), read_only(self.y)
            _scan(x, y, self.p, self.offsets, self.lower, self.upper, prices, proved)
            return prices, np.flatnonzero(~proved)
        found = [chain.prices(x[part]) for chain, part, _ in map(self._alone, range(self.number))]
        missed = [k for k, (_, broke) in enumerate(found) if broke >= 0]
        return np.concatenate([price for price, _ in found]), np.array(missed, np.int64)

    def _fits(self, x: Ints, prices: Ints) -> bool:
        """Whether all sums of a chain provably fit 64 bits."""
        reach = 2 + max(exact.reach(part) for part in (x, self.y, self.lower, self.upper))
        longest, charge = int(np.diff(self.offsets).max(initial=0)), 2 * exact.reach(prices)
        return longest * 8 * (reach * reach + (charge + reach) * (charge + reach)) < FREE

    def _alone(self, k: int) -> tuple[Chain, slice, slice]:
        """A chain by itself, its entries, and its prices."""
        start, stop = self.offsets[k : k + 2].tolist()
        part = slice(start, stop)
        chain = Chain(self.y[part], None, self.p, True, int(self.lower[k]), int(self.upper[k]))
        return chain, part, slice(start + k, stop + k + 1)


@kernel()
def _ordered(x: Any, offsets: Any, lower: Any, upper: Any, found: Any) -> None:
    for k in range(found.size):
        fine, before = True, lower[k]
        for i in range(offsets[k], offsets[k + 1]):
            fine = fine and x[i] >= before
            before = x[i]
        found[k] = fine and before <= upper[k]


@kernel()
def _scan(x: Any, y: Any, p: int, offsets: Any, lower: Any, upper: Any, prices: Any, proved: Any) -> None:
    """Prices of each chain that are read off x, and whether they prove it."""
    for k in range(proved.size):
        start, stop = offsets[k], offsets[k + 1]
        a, b, price = x[start:stop], y[start:stop], prices[start + k : stop + k + 1]
        at_low, at_high = a[0] <= lower[k], a[a.size - 1] >= upper[k]
        proved[k] = scan_prices(a, b, None, p, True, 0, at_low, at_high, FREE, price) < 0


@kernel()
def _gaps(
    x: Any, y: Any, p: int, offsets: Any, lower: Any, upper: Any, missed: Any, prices: Any, out: Any
) -> None:  # fmt: skip
    """The gaps of some chains at given prices, written to `out`.

    The prices of the bounds are not needed, as each entry's minimum is taken between the bounds.
    """
    for k in missed:
        start, stop, low, high = offsets[k], offsets[k + 1], lower[k], upper[k]
        a, b, price = x[start:stop], y[start:stop], prices[start + k : stop + k + 1]
        n = a.size
        gap = 0
        for i in range(n):
            charge = (price[i + 1] if i < n - 1 else 0) - (price[i] if i > 0 else 0)
            if p == 2:
                z = min(max((2 * b[i] - charge + 1) // 2, low), high)
                gap += (a[i] - b[i]) ** 2 - (z - b[i]) ** 2 - charge * z
                continue
            z = min(max(b[i], low), high)
            least = abs(z - b[i]) + charge * z
            least = min(least, abs(low - b[i]) + charge * low)
            least = min(least, abs(high - b[i]) + charge * high)
            gap += abs(a[i] - b[i]) - least
        out[k] = gap
