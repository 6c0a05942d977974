"""Whole non-negative counts of given totals, nearest to noisy ones in absolute changes or in squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.segments import broken
from models.certificate import Certificate, Witness, infeasible, judge
from models.chebyshev import Chebyshev
from models.model import answer_of
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.witnesses.arrays import whole_array


@dataclass(frozen=True, eq=False)
class FixedSum:
    """Whole non-negative counts of a given total, nearest in the L1 or the L2 norm.

        minimize    Σ_i |x_i − y_i|^p            what Boninsegna & Silvestri 2025 compare Eq. 6 with:
        subject to  Σ_i x_i = c,  x ≥ 0,  x integer   the same constraints, another norm

    With `offsets`, many such problems side by side, each with its own total; the objective is their sum.

    Parameters
    ----------
    noisy : int array, shape (n,)
        The noisy counts y.
    total : int, or int array of shape (segments,)
        The total(s) c ≥ 0.
    p : 1 or 2
    offsets : int array, shape (segments + 1,), optional
        Segment j is ``noisy[offsets[j]:offsets[j + 1]]``. Default: one segment.

    Raises
    ------
    ValueError
        If p is neither 1 nor 2, the noisy counts are not integers, a total is negative, an empty segment
        has a total other than 0, the offsets do not rise from 0 to n, or sums would not fit 62 bits.

    Examples
    --------
    >>> model = FixedSum([5, 3, -2], total=4, p=2)
    >>> model.objective([3, 1, 0]), model.certificate([3, 1, 0]).optimal
    (12, True)
    >>> FixedSum([5, 3, -2], total=4, p=1).certificate([4, 0, 0]).optimal
    True
    """

    noisy: ArrayLike
    total: ArrayLike
    p: Literal[1, 2] = 2
    offsets: ArrayLike | None = None
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "L1": {"p": 1},
        "L1, many totals": {"p": 1, "each": 100},
        "L2, many totals": {"p": 2, "each": 100},
    }

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        same = Chebyshev(self.noisy, self.total, self.offsets)  # the same data under the same conditions
        for name, value in zip(("noisy", "total", "offsets"), same.data, strict=True):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> tuple[Ints, Ints, Ints]:
        """``(noisy, totals, offsets)`` as int64 arrays."""
        return np.asarray(self.noisy), np.asarray(self.total), np.asarray(self.offsets)

    def program(self) -> Program:
        """The program above; its total bounds every count."""
        noisy, totals, offsets = self.data
        n, m = noisy.size, totals.size
        segment = np.repeat(np.arange(m), np.diff(offsets))
        each = np.arange(n)
        return Program(
            f"FixedSum L{self.p}",
            [Block("x", (n,), 0, totals[segment], True)],
            [rows_of("total", (m, n), (segment, each, np.ones(n)), totals, totals)],
            [Term("quadratic" if self.p == 2 else "absolute", each, 1, noisy)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: those of the segments."""
        return np.asarray(witness["price"])

    def objective(self, x: Any) -> Number:
        """Σ |x − y|^p; an `int` for integer answers."""
        noisy = np.asarray(self.noisy)
        return distance(answer_of(x, noisy.shape, integer=True), noisy, self.p)

    def violations(self, x: Any) -> list[str]:
        """Entries that are negative or not whole, and segments with a wrong sum."""
        noisy, totals, offsets = self.data
        return broken(answer_of(x, noisy.shape, integer=True), totals, offsets)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A price λ for each segment's units, exact; linear time.

            bound  =  Σ over segments of  Σ_i min over whole z ≥ 0 of ( |z − y_i|^p − λ z )  +  λ c.

        It holds whatever the prices are (Lagrangian duality), and some reach the optimum, for the costs are
        convex and rise by more with every unit (Ibaraki & Katoh 1988, *Resource Allocation Problems*, ch. 4).
        For p = 1 a unit costs 1 or −1: the better of these two prices needs no witness. For p = 2 the k-th
        unit costs 2(k − y) − 1. If none of the last units of x costs more than any next one, a price in
        between proves x optimal; if not, the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``price``, shape (segments,), whole; an even price for p = 2 is raised by one. Not read for p = 1.
        """
        noisy, totals, offsets = self.data
        x = answer_of(x, noisy.shape, integer=True)
        objective = distance(x, noisy, self.p)
        found = broken(x, totals, offsets)
        if found:
            return infeasible(objective, found)
        if self.p == 1:
            sums, sizes = np.zeros((2, totals.size), np.int64)
            _sums(noisy, offsets, sums, sizes)
            fewer, more = sizes - totals, totals - sums
            price = np.where(more > fewer, 1, -1)
            gap = objective - exact.total(np.maximum(fewer, more))
        else:
            x = x.astype(np.int64, copy=False)
            given = whole_array(witness, "price", totals.shape)
            shift, optimal = np.zeros(totals.size, np.int64), False
            if given is None:
                optimal = bool(_shifts(x, noisy, offsets, shift))
            else:
                shift = (given + 2) // 2
            price = 2 * shift - 1
            gap = 0 if optimal else self._miss(x, shift)
        return judge(objective, gap, True, {"price": price}, "a unit moved within a segment would cost less")

    def _miss(self, x: Ints, shift: Ints) -> Number:
        """By how much Σ (x − y)² − λ·x exceeds the least that it can be, at these shifts' prices 2s − 1."""
        noisy, _, offsets = self.data
        free = noisy + np.repeat(shift, np.diff(offsets))
        z = np.maximum(0, free)
        # (x − y)² − λ·x is (x − free)² + x, and what does not depend on x.
        return distance(x, free, 2) + exact.total(x) - distance(z, free, 2) - exact.total(z)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments, some of them empty or of one cell, of counts from `random_noisy`; either norm."""
        noisy, totals, offsets = Chebyshev.random(rng, size).data
        return cls(noisy, totals, 1 if rng.random() < 0.5 else 2, offsets)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, each: int | None = None, **options: Any) -> Self:
        """Noisy counts whose total is nine tenths of what is positive; `each`: entries of a segment."""
        same = Chebyshev.typical(rng, size, each)
        return cls(*same.data[:2], offsets=same.data[2], **options)


@kernel()
def _sums(noisy: Any, offsets: Any, sums: Any, sizes: Any) -> None:
    """Each segment's Σ y and Σ |y|."""
    for j in range(sums.size):
        y = noisy[offsets[j] : offsets[j + 1]]
        held, size = 0, 0
        for i in range(y.size):
            held += y[i]
            size += abs(y[i])
        sums[j], sizes[j] = held, size


@kernel()
def _shifts(x: Any, noisy: Any, offsets: Any, shift: Any) -> bool:
    """For each segment an s such that max(0, y + s), some entries one less, is optimal if x is (p = 2).

    Then any s from the costliest last unit's to the cheapest next one's does; if not, it is half-way.
    True if x is such an answer in all segments.
    """
    optimal = True
    for j in range(shift.size):
        part, y = x[offsets[j] : offsets[j + 1]], noisy[offsets[j] : offsets[j + 1]]
        if y.size == 0:
            continue
        following, last = part[0] - y[0] + 1, -(1 << 62)
        for i in range(y.size):
            away = part[i] - y[i]
            following = min(following, away + 1)
            last = max(last, away if part[i] > 0 else last)
        shift[j] = following
        if last > following:
            shift[j] = following + (last - following) // 2
            optimal = False
    return optimal
