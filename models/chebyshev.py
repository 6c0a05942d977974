"""Row 11: the vector of whole numbers nearest to a noisy one in the largest change (InfTDA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, infeasible, judge
from models.model import answer_of, fractional, random_noisy
from models.program import INFINITY, Block, Program, Term, rows_of
from models.segments import by_segment, checked_segments

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Chebyshev:
    """Whole non-negative counts of a given total, as near as can be in Chebyshev distance.

    ::

        minimize    max_i |x_i − y_i|                        Boninsegna & Silvestri 2025, Eq. 6
        subject to  Σ_i x_i = c,  x ≥ 0,  x integer

    or, with one variable d for the distance (Eq. 12): minimize d subject to ``-d ≤ x − y ≤ d``. With
    `offsets`, many such problems side by side: each segment has its own total and its own distance, and
    the objective is the sum of the distances.

    Parameters
    ----------
    noisy : int array, shape (n,)
        The noisy counts y.
    total : int, or int array of shape (segments,)
        The total(s) c ≥ 0.
    offsets : int array, shape (segments + 1,), optional
        Segment j is ``noisy[offsets[j]:offsets[j + 1]]``. Default: one segment.

    Raises
    ------
    ValueError
        If the noisy counts are not integers, a total is negative, an empty segment has a total other than
        0, the offsets do not rise from 0 to n, or sums would not fit 62 bits.

    Examples
    --------
    >>> model = Chebyshev([5, 3, -2], total=4)
    >>> model.objective([4, 0, 0])
    3
    >>> model.certificate([3, 1, 0])
    Certificate(optimal=True, objective=2, bound=2, gap=0, reason='the prices prove it: ...')
    """

    noisy: ArrayLike
    total: ArrayLike
    offsets: ArrayLike | None = None

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy)
        if noisy.dtype != np.int64:
            raise ValueError(f"noisy must be integers, got {noisy.dtype}: round the counts first")
        if self.offsets is None:
            totals = np.array([exact.as_total("total", self.total)], dtype=np.int64)
            offsets = np.array([0, noisy.size], dtype=np.int64)
        else:
            totals, offsets = checked_segments(self.total, self.offsets, noisy.size)
        empty = np.flatnonzero((np.diff(offsets) == 0) & (totals > 0))
        if empty.size:
            raise ValueError(f"segment {empty[0]} is empty but its total is {totals[empty[0]]}, not 0")
        largest = exact.reach(noisy)
        if 2 * noisy.size * (largest + 1) + exact.reach(totals) >= 2**62:
            raise ValueError(f"{noisy.size} counts of up to {largest} add up beyond 62 bits")
        for name, value in (("noisy", noisy), ("total", totals), ("offsets", offsets)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def data(self) -> tuple[Ints, Ints, Ints]:
        """``(noisy, totals, offsets)`` as int64 arrays."""
        return np.asarray(self.noisy), np.asarray(self.total), np.asarray(self.offsets)

    def program(self) -> Program:
        """Eq. 12, a segment a distance variable."""
        noisy, totals, offsets = self.data
        n, m = noisy.size, totals.size
        segment = np.repeat(np.arange(m), np.diff(offsets))
        each = np.arange(n)
        # Every answer keeps these upper bounds; solvers that need finite domains are glad of them.
        furthest = by_segment(
            np.maximum, np.maximum(np.abs(noisy), totals[segment] - noisy), offsets, empty=0
        )
        beside = (np.tile(each, 2), np.concatenate([each, n + segment]))
        ones = np.ones(n)
        shape = (n, n + m)
        return Program(
            "Chebyshev",
            [Block("x", (n,), 0, totals[segment], True), Block("distance", (m,), 0, furthest, True)],
            [
                rows_of("below", shape, (*beside, np.concatenate([ones, -ones])), -INFINITY, noisy),
                rows_of("above", shape, (*beside, np.concatenate([ones, ones])), noisy, INFINITY),
                rows_of("total", (m, n + m), (segment, each, ones), totals, totals),
            ],
            [Term("linear", n + np.arange(m))],
        )

    def objective(self, x: Any) -> int | float:
        """Σ over segments of the largest change; an `int` for integer answers."""
        distances = self._distances(answer_of(x, np.shape(self.noisy), integer=True))
        return exact.total(distances)  # type: ignore[return-value]

    def violations(self, x: Any) -> list[str]:
        """Entries that are negative or not whole, and segments with a wrong sum."""
        noisy, totals, offsets = self.data
        x = answer_of(x, noisy.shape, integer=True)
        found = list(fractional(x))
        found += [f"x >= 0: x[{i}] = {x[i]}" for i in np.flatnonzero(x < 0)]
        sums = by_segment(np.add, exact.widened(x, x.size), offsets, empty=0)
        for j in np.flatnonzero(sums != totals):
            found.append(f"total: segment {j} adds up to {sums[j]}, not {totals[j]}")
        return found

    def certificate(self, x: Any) -> Certificate:
        """Distance d is least where no answer at d − 1 exists; linear time (times log n if x is not optimal).

        An answer at distance d exists just if d ≥ 0, every y + d ≥ 0 and
        Σ max(0, y − d) ≤ c ≤ Σ (y + d). The witness is each segment's ``least_distance``: x shows that it
        can be had, those three conditions that no smaller one can.
        """
        x = answer_of(x, np.shape(self.noisy), integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        distance = self._distances(x)
        least = self.least_distance(at_most=distance)
        gap = exact.total(distance - least)
        worst = int(np.argmax(distance - least)) if least.size else 0
        reason = "" if gap == 0 else (
            f"segment {worst} has an answer at distance {least[worst]}, this one is at {distance[worst]}"
        )  # fmt: skip
        return judge(objective, gap, True, {"least_distance": least}, reason)

    def least_distance(self, at_most: Ints) -> Ints:
        """Each segment's optimal distance, by bisection below distances known to be possible."""
        noisy, totals, offsets = self.data
        # No segment needs more than this (and sums at more might not fit 62 bits).
        largest = by_segment(np.maximum, np.abs(noisy), offsets, empty=0)
        high = np.minimum(at_most, largest - (-totals) // np.maximum(1, np.diff(offsets))).astype(np.int64)
        open_ = np.flatnonzero(self._possible(high - 1, np.arange(high.size)))
        high[open_] -= 1
        low = np.full(high.size, -1, dtype=np.int64)
        while open_.size:
            middle = (low[open_] + high[open_]) // 2
            possible = self._possible(middle, open_)
            high[open_[possible]] = middle[possible]
            low[open_[~possible]] = middle[~possible]
            open_ = open_[high[open_] - low[open_] > 1]
        return high

    def _possible(self, distance: Ints, segments: Ints) -> NDArray[np.bool_]:
        """Whether each of these segments has an answer at this distance."""
        noisy, totals, offsets = self.data
        lengths = np.diff(offsets)[segments]
        here = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(here[-1]) - np.repeat(here[:-1] - offsets[segments], lengths)
        y, d = noisy[within], np.repeat(distance, lengths)
        least = by_segment(np.add, np.maximum(0, y - d), here, empty=0)
        most = by_segment(np.add, y + d, here, empty=0)
        smallest = by_segment(np.minimum, y + d, here, empty=0)
        c = totals[segments]
        return (distance >= 0) & (smallest >= 0) & (least <= c) & (c <= most)

    def _distances(self, x: NDArray[Any]) -> NDArray[Any]:
        noisy, _, offsets = self.data
        return by_segment(np.maximum, np.abs(exact.difference(x, noisy)), offsets, empty=0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments (some of them empty or of one cell) of ugly counts."""
        cuts = np.sort(rng.integers(0, size + 1, size=rng.integers(0, 1 + max(1, size // 3))))
        offsets = np.concatenate([[0], cuts, [size]])
        noisy = random_noisy(rng, (size,))
        near = by_segment(np.add, np.maximum(noisy, 0), offsets, empty=0)
        totals = np.maximum(0, near + rng.integers(-10, 11, size=near.size)) * (rng.random(near.size) < 0.8)
        return cls(noisy, np.where(np.diff(offsets) == 0, 0, totals), offsets)
