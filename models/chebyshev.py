"""Whole counts of given totals with the least largest change (InfTDA; Boninsegna & Silvestri 2025, Eq. 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.certificate import Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term, rows_of
from models.segments import Spread, broken, by_pieces, by_segment, checked_segments
from models.synthetic import most_of, noisy_counts, random_noisy, segments_of


@dataclass(frozen=True, eq=False)
class Chebyshev:
    """Whole non-negative counts of a given total, nearest in Chebyshev distance.

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
    Certificate(optimal=True, objective=2, bound=2, gap=0, reason='the witness proves it: ...')
    """

    noisy: ArrayLike
    total: ArrayLike
    offsets: ArrayLike | None = None
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "many totals": {"each": 100}}

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy)
        if noisy.dtype != np.int64:
            raise ValueError(f"noisy must be integers, got {noisy.dtype}: round the counts first")
        totals, offsets = checked_segments(self.total, self.offsets, noisy.size)
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
        """Eq. 12, with one distance variable per segment."""
        noisy, totals, offsets = self.data
        n, m = noisy.size, totals.size
        segment = np.repeat(np.arange(m), np.diff(offsets))
        each = np.arange(n)
        # No answer is further away than these bounds; some solvers require finite domains.
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

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: equal shares of the condition that d − 1 violates.

        They prove a bound greater than d − 1 in each segment; distances are whole, so d is proved.
        """
        noisy, totals, offsets = self.data
        below, above, total = (np.full(size, Fraction(0)) for size in (noisy.size, noisy.size, totals.size))
        claimed = door.whole_array(witness, "least_distance", totals.shape)
        for j, d in enumerate([] if claimed is None else claimed.tolist()):
            own = np.arange(offsets[j], offsets[j + 1])
            y, e = noisy[own], d - 1
            positive = own[y > e]
            if d <= 0 or not own.size:
                continue
            if y.min() + e < 0:  # no count is negative
                below[own[y.argmin()]] = Fraction(-1)
            elif y.sum() + y.size * e < totals[j]:
                below[own], total[j] = Fraction(-1, own.size), Fraction(1, own.size)
            elif (noisy[positive] - e).sum() > totals[j]:
                above[positive], total[j] = Fraction(1, positive.size), Fraction(-1, positive.size)
        return np.concatenate([below, above, total])

    def apart(self, x: Any, witness: Witness) -> Iterator[tuple[Chebyshev, Array, Witness]]:
        """Each segment as a model of its own, with its answer and witness.

        The bound of its row prices is rounded up to its own least distance.
        """
        noisy, totals, offsets = self.data
        x = door.answer(x, noisy.shape, integer=True)
        least = np.asarray(witness["least_distance"])
        for j, total in enumerate(totals.tolist()):
            own = slice(int(offsets[j]), int(offsets[j + 1]))
            yield Chebyshev(noisy[own], total), x[own], {"least_distance": least[j : j + 1]}

    def objective(self, x: Any) -> Number:
        """Σ over segments of the largest change; an `int` for integer answers."""
        distances = self._distances(door.answer(x, np.shape(self.noisy), integer=True))
        return exact.total(distances)

    def violations(self, x: Any) -> list[str]:
        """Entries that are negative or not whole, and segments with a wrong sum."""
        noisy, totals, offsets = self.data
        return broken(door.answer(x, noisy.shape, integer=True), totals, offsets)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Distance d is least if no answer at d − 1 exists; linear time.

        At distance e, entry i lies from max(0, y_i − e) to y_i + e. So there is an answer at e ≥ 0 if and
        only if every y + e ≥ 0 and Σ max(0, y − e) ≤ c ≤ Σ (y + e) (Boninsegna & Silvestri 2025, Eq. 12).
        If a segment's d − 1 is negative or breaks one of these, it has no answer nearer than d.

        Without a witness, d is x's own distance, which proves every optimal x. If d − 1 breaks no condition,
        the bound is the largest of those that need no witness: d ≥ −y_i, n·d ≥ c − Σ y, and k·d ≥ Σ max(0, y)
        − c, where k is the number of positive y.

        Parameters
        ----------
        x : int array, shape (n,)
        witness : mapping, optional
            ``least_distance``, the d of each segment, whole numbers.
        """
        noisy, totals, offsets = self.data
        x = door.answer(x, noisy.shape, integer=True)
        distance = self._distances(x)
        objective = exact.total(distance)
        found = broken(x, totals, offsets)
        if found:
            return infeasible(objective, found)
        distance = distance.astype(np.int64, copy=False)
        claimed = door.whole_array(witness, "least_distance", distance.shape)
        bound = distance.copy()
        _ruled_out(noisy, totals, offsets, distance if claimed is None else claimed, bound)
        over = distance - bound
        gap = exact.total(over)
        worst = int(np.argmax(over)) if over.size else 0
        reason = "" if gap == 0 else (
            f"segment {worst} may have an answer at distance {bound[worst]}, this one is at {distance[worst]}"
        )  # fmt: skip
        return judge(objective, gap, True, {"least_distance": bound}, reason)

    def least_distance(self) -> Ints:
        """Each segment's optimal distance, shape (segments,), by bisection."""
        least = np.zeros(self.data[1].size, np.int64)
        _least_distances(*self.data, least)
        return least

    def _distances(self, x: Array) -> Array:
        noisy, _, offsets = self.data
        distances = np.zeros(offsets.size - 1, np.int64)
        if x.dtype == np.int64 and _largest_changes(x, noisy, offsets, distances):
            return distances
        return by_segment(np.maximum, np.abs(exact.difference(x, noisy)), offsets, empty=0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments, some of them empty or of one cell, of counts from `random_noisy`."""
        cuts = np.sort(rng.integers(0, size + 1, size=rng.integers(0, 1 + max(1, size // 3))))
        offsets = np.concatenate([[0], cuts, [size]])
        noisy = random_noisy(rng, (size,))
        near = by_segment(np.add, np.maximum(noisy, 0), offsets, empty=0)
        totals = np.maximum(0, near + rng.integers(-10, 11, size=near.size)) * (rng.random(near.size) < 0.8)
        return cls(noisy, np.where(np.diff(offsets) == 0, 0, totals), offsets)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, each: int | None = None, **options: Any) -> Self:
        """Noisy counts; the total is nine tenths of their positive part. `each`: entries per segment."""
        noisy = noisy_counts(rng, size)
        if each is None:
            return cls(noisy, most_of(noisy), **options)
        offsets = segments_of(size, each)
        return cls(noisy, most_of(noisy, offsets), offsets=offsets, **options)


@kernel(linear=True)
def _largest_changes(x: Any, noisy: Any, offsets: Any, distances: Any) -> bool:
    """Write each segment's largest |x − y|; False if an x is so large that a difference might not fit."""
    for j in range(distances.size):
        part, y = x[offsets[j] : offsets[j + 1]], noisy[offsets[j] : offsets[j + 1]]
        seen, largest = 0, 0
        for i in range(part.size):
            seen |= part[i] ^ (part[i] >> 63)
            largest = max(largest, abs(part[i] - y[i]))
        if seen >= 1 << 62:
            return False
        distances[j] = largest
    return True


@_largest_changes.without_numba
def _changes_in_arrays(x: Any, noisy: Any, offsets: Any, distances: Any) -> bool:
    if exact.reach(x) >= 1 << 62:
        return False
    (distances[:],) = by_pieces(offsets, lambda part, _: [(np.maximum, np.abs(x[part] - noisy[part]))])
    return True


@kernel(linear=True)
def _ruled_out(noisy: Any, totals: Any, offsets: Any, claimed: Any, bound: Any) -> None:
    """Write lower bounds on the segments' distances to `bound`: the claim if it holds, else a smaller one.

    `bound` has the distances of an answer before, which are not read here.
    """
    for j in range(totals.size):
        y, c, d = noisy[offsets[j] : offsets[j + 1]], totals[j], claimed[j]
        smallest, held, positive, many, above, nearer = 0, 0, 0, 0, 0, max(0, d - 1)
        for i in range(y.size):
            smallest = min(smallest, y[i])
            held += y[i]
            positive += max(0, y[i])
            many += y[i] > 0
            above += max(0, y[i] - nearer)
        bound[j] = -smallest
        if y.size:
            bound[j] = max(bound[j], -((held - c) // y.size))
        if many:
            bound[j] = max(bound[j], -((c - positive) // many))
        # Unless d is a bound already, the first two conditions hold at d - 1; this is the third.
        if d > bound[j] and above > c:
            bound[j] = d


@_ruled_out.without_numba
def _ruled_out_in_arrays(noisy: Any, totals: Any, offsets: Any, claimed: Any, bound: Any) -> None:
    nearer, add, size, own = np.maximum(claimed - 1, 0), np.add, np.diff(offsets), bound.copy()

    def terms(part: slice, each: Spread) -> list[tuple[np.ufunc, Any]]:
        y = noisy[part]
        above = y - each(nearer)
        return [(np.minimum, y), (add, y), (add, np.maximum(above, 0, out=above))]

    def positive_terms(part: slice, _: Any) -> list[tuple[np.ufunc, Any]]:
        return [(add, np.maximum(noisy[part], 0)), (add, (noisy[part] > 0) + 0)]

    least, held, above = by_pieces(offsets, terms)
    bound[:] = -np.minimum(least, 0)
    np.maximum(bound, -((held - totals) // np.maximum(size, 1)), out=bound, where=size > 0)
    np.maximum(bound, claimed, out=bound, where=above > totals)
    if (bound < own).any():  # no bound can be above the distance of an answer
        positive, many = by_pieces(offsets, positive_terms)
        np.maximum(bound, -((totals - positive) // np.maximum(many, 1)), out=bound, where=many > 0)


@kernel()
def _least_distances(noisy: Any, totals: Any, offsets: Any, least: Any) -> None:
    for j in range(totals.size):
        y, c = noisy[offsets[j] : offsets[j + 1]], totals[j]
        if y.size:
            low, high = max(0, -y.min(), -((y.sum() - c) // y.size)), y.max()
            while low < high:
                middle = (low + high) // 2
                if _above(y, middle) <= c:
                    high = middle
                else:
                    low = middle + 1
            least[j] = low


@kernel()
def _above(y: Any, d: int) -> Any:
    """Σ max(0, y − d)."""
    total = 0
    for i in range(y.size):
        total += max(0, y[i] - d)
    return total
