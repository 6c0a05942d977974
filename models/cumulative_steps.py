"""Steps of Dykstra's projections on monotone and on consistent counts, with momentum, and what they prove."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from models.projections import Consistent, Floats, downwards, nearest_row, upwards


class Steps:
    """Projections in turns, with momentum, from prices of 0: see `CumulativeQIP.dykstra`.

    Attributes
    ----------
    prices, nearest : float arrays, shape (nodes, columns)
        After the last step: the prices are normal to the monotone set at `nearest`.
    """

    def __init__(self, tree: Consistent, noisy: Floats, last: float) -> None:
        self.prices, self.nearest, self._before = (np.zeros_like(noisy) for _ in range(3))
        columns = noisy.shape[1]
        self._given = noisy, last, tree.inner(columns), tree.inner(columns), *tree.parts
        self._momentum = 1.0

    def go(self, steps: int) -> None:
        """So many steps on."""
        held = self.prices, self._before, self.nearest
        self.prices, self._before, self._momentum = _go(steps, self._momentum, *held, *self._given)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _guess(ahead: float, prices: Any, before: Any, out: Any) -> None:
    """Where the next step starts from: further along the last one."""
    for i in range(out.size):
        out[i] = prices[i] + ahead * (prices[i] - before[i])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _priced(moved: Any, near: Any, guess: Any, prices: Any, before: Any) -> float:
    """Put the new prices to `before`; over 0 if from the guess to them is away from the last ones."""
    astray = 0.0
    for i in range(moved.size):
        price = moved[i] - near[i]
        astray += (guess[i] - price) * (price - prices[i])
        before[i] = price
    return astray


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _step(
    ahead: float, prices: Any, before: Any, nearest: Any, noisy: Any, last: float, best: Any, sums: Any,
    parent: Any, number: Any, up: Any, down: Any,
) -> bool:  # fmt: skip
    """One step: new prices to `before`, the nearest monotone counts, and whether the momentum led astray.

    Row by row, from the leaves to the root and back, so that little is read and written. The guess is taken
    off the noisy counts, which are made consistent, and added again: of a leaf it need not be.
    """
    columns = noisy.shape[1]
    start, held = np.empty(columns, np.int64), np.empty(columns)
    moved, guess = np.empty(columns), np.empty(columns)
    for k in range(sums.shape[0]):
        for i in range(columns):
            sums[k, i] = 0.0
    for r in range(parent.size - 1, -1, -1):
        _guess(ahead, prices[r], before[r], guess)
        row = moved if number[r] < 0 else best[number[r]]
        for i in range(columns):
            row[i] = noisy[r, i] - guess[i]
        upwards(row, sums, r, parent, number, up)
    astray = 0.0
    for r in range(parent.size):
        _guess(ahead, prices[r], before[r], guess)
        leaf, above = number[r] < 0, number[parent[r]]  # of the root some row that is not used
        for i in range(columns):
            moved[i] = noisy[r, i] if leaf else best[number[r], i]
        if r > 0:
            downwards(moved, best[above], sums[above], down[r])
        if not leaf:
            for i in range(columns):
                best[number[r], i] = moved[i]
                moved[i] += guess[i]
        nearest_row(moved, nearest[r], r == 0, last, start, held)
        astray += _priced(moved, nearest[r], guess, prices[r], before[r])
    return astray > 0.0


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _go(
    steps: int, momentum: float, prices: Any, before: Any, nearest: Any, noisy: Any, last: float,
    best: Any, sums: Any, parent: Any, number: Any, up: Any, down: Any,
) -> Any:  # fmt: skip
    """So many steps: the last prices, those before them, and the momentum."""
    for _ in range(steps):
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = (momentum - 1.0) / faster
        astray = _step(ahead, prices, before, nearest, noisy, last, best, sums, parent, number, up, down)
        prices, before = before, prices
        momentum = 1.0 if astray else faster
    return prices, before, momentum


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def squared(a: Any, b: Any) -> float:
    """‖a − b‖², row by row."""
    found = 0.0
    for r in range(a.shape[0]):
        held = 0.0
        for i in range(a.shape[1]):
            held += (a[r, i] - b[r, i]) ** 2
        found += held
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def times_difference(prices: Any, a: Any, b: Any) -> float:
    """⟨prices, a − b⟩, row by row."""
    found = 0.0
    for r in range(a.shape[0]):
        held = 0.0
        for i in range(a.shape[1]):
            held += prices[r, i] * (a[r, i] - b[r, i])
        found += held
    return found
