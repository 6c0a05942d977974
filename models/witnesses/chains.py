"""Check many whole, bounded isotonic chains side by side in one pass, with one verdict for each.

Chain k is ``y[offsets[k]:offsets[k + 1]]``, with the bounds ``lower[k]`` and ``upper[k]``. Its prices, one
more than it has entries, are ``prices[offsets[k] + k:offsets[k + 1] + k + 1]``. The verdict on a chain is the
one that `models.witnesses.isotonic_prices` gives on it alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags, Ints, read_only
from models.arithmetic.kernels import kernel
from models.witnesses.isotonic_prices import FREE, Chain, scan_prices

_FITS = 2.0**61


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

        Parameters
        ----------
        x : int array, shape (n,)
            A feasible answer.
        given : int array, shape (n + chains,), optional
            Prices. By default, they are read off x.
        """
        prices = np.zeros(x.size + self.number, np.int64) if given is None else np.maximum(given, 0)
        if not self._fits(x, given):
            return self._one_by_one(x, given)
        out = np.zeros(self.number, np.int64)
        x, y = read_only(x), read_only(self.y)
        _gaps(x, y, self.p, self.offsets, self.lower, self.upper, given is None, prices, out)
        return out, prices

    def _fits(self, x: Ints, given: Ints | None) -> bool:
        """Whether all sums of a chain provably fit 64 bits."""
        reach = 2.0 + max(exact.reach(part) for part in (x, self.y, self.lower, self.upper))
        longest = float(np.diff(self.offsets).max(initial=0))
        own = 4.0 * reach * longest  # no price read off x is larger
        charge = 2 * (own if given is None else float(exact.reach(given)))
        return longest * 8 * (reach * reach + (charge + reach) * (charge + reach)) < _FITS

    def _one_by_one(self, x: Ints, given: Ints | None) -> tuple[Array, Ints]:
        """`gaps` in Python integers, one chain after the other."""
        gaps, prices = np.zeros(self.number, object), []
        for k, part, own in self._parts():
            chain = Chain(self.y[part], None, self.p, True, int(self.lower[k]), int(self.upper[k]))
            box, broke = (chain.lower, chain.upper), 0
            if given is None:
                price, broke = chain.prices(x[part])
            else:
                price = given[own]
            gaps[k] = 0 if given is None and broke < 0 else chain.exact_gap(x[part], price, box)
            prices.append(price)
        return gaps, np.concatenate(prices)

    def _parts(self) -> Iterator[tuple[int, slice, slice]]:
        ends = self.offsets.tolist()
        for k, (start, stop) in enumerate(itertools.pairwise(ends)):
            yield k, slice(start, stop), slice(start + k, stop + k + 1)


@kernel()
def _ordered(x: Any, offsets: Any, lower: Any, upper: Any, found: Any) -> None:
    for k in range(found.size):
        fine, before = True, lower[k]
        for i in range(offsets[k], offsets[k + 1]):
            fine = fine and x[i] >= before
            before = x[i]
        found[k] = fine and before <= upper[k]


@kernel()
def _gaps(
    x: Any, y: Any, p: int, offsets: Any, lower: Any, upper: Any, own: bool, prices: Any, out: Any
) -> None:  # fmt: skip
    """Each chain's gap, written to `out`; with `own`, at prices that are read off x into `prices`.

    The prices of the bounds are not needed, as each entry's minimum is taken between the bounds.
    """
    for k in range(out.size):
        start, stop, low, high = offsets[k], offsets[k + 1], lower[k], upper[k]
        a, b, price = x[start:stop], y[start:stop], prices[start + k : stop + k + 1]
        n = a.size
        if own and scan_prices(a, b, None, p, True, 0, a[0] <= low, a[n - 1] >= high, FREE, price) < 0:
            continue
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
