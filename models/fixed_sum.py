"""Row 13: whole non-negative counts of a given total, nearest in absolute changes or in squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, infeasible, judge
from models.chebyshev import Chebyshev
from models.exact import Number
from models.model import answer_of
from models.program import Block, Program, Term, rows_of
from models.segments import by_segment

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FixedSum:
    """Whole non-negative counts of a given total, nearest in the L1 or the L2 norm.

    ::

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

    def objective(self, x: Any) -> Number:
        """Σ |x − y|^p; an `int` for integer answers."""
        away = exact.difference(answer_of(x, np.shape(self.noisy), integer=True), np.asarray(self.noisy))
        return exact.total(np.abs(away)) if self.p == 1 else exact.dot(away, away)

    def violations(self, x: Any) -> list[str]:
        """Entries that are negative or not whole, and segments with a wrong sum: those of `Chebyshev`."""
        return Chebyshev(self.noisy, self.total, self.offsets).violations(x)

    def certificate(self, x: Any) -> Certificate:
        """A price a segment: Σ_i min_{z ≥ 0} (|z − y|^p − λ·z) + λ·c bounds every answer; exact.

        For p = 1 a unit costs 1 or −1, so λ is one of the two and linear time is enough. For p = 2 the
        k-th unit costs 2(k − y) − 1; if no last unit of x costs more than any next one, λ lies between. If
        not, bisection finds it in between. At these prices there is no duality gap.
        """
        noisy, totals, offsets = self.data
        x = answer_of(x, noisy.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        x = x.astype(np.int64)
        if self.p == 1:
            fewer = by_segment(np.add, np.abs(noisy), offsets, empty=0) - totals
            more = totals - by_segment(np.add, noisy, offsets, empty=0)
            price = np.where(more > fewer, 1, -1)
            gap = objective - exact.total(np.maximum(fewer, more))
        else:
            shift = self._shifts(x)
            price = 2 * shift - 1
            by = np.repeat(shift, np.diff(offsets))
            z = np.maximum(0, noisy + by)
            gap = exact.dot(x - z, x + z - 2 * (noisy + by) + 1)
        return judge(objective, gap, True, {"price": price}, "a unit moved within a segment would cost less")

    def _shifts(self, x: Ints) -> Ints:
        """For each segment an s such that max(0, y + s), some entries one less, is optimal (p = 2)."""
        noisy, totals, offsets = self.data
        away = x - noisy
        following = by_segment(np.minimum, away + 1, offsets, empty=0)
        last = by_segment(np.maximum, np.where(x > 0, away, -(2**62)), offsets, empty=0)
        # Where x is optimal, any shift from the last units' to the next ones' will do.
        low, high = following - 1, np.where(last <= following, following, last)
        open_ = np.flatnonzero(high - low > 1)
        while open_.size:
            middle = (low[open_] + high[open_]) // 2
            enough = self._held(middle, open_) >= totals[open_]
            high[open_[enough]] = middle[enough]
            low[open_[~enough]] = middle[~enough]
            open_ = open_[high[open_] - low[open_] > 1]
        return np.asarray(high)

    def _held(self, shift: Ints, segments: Ints) -> Ints:
        """Σ max(0, y + shift) of these segments."""
        noisy, _, offsets = self.data
        lengths = np.diff(offsets)[segments]
        here = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(here[-1]) - np.repeat(here[:-1] - offsets[segments], lengths)
        counts = np.maximum(0, noisy[within] + np.repeat(shift, lengths))
        return by_segment(np.add, counts, here, empty=0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments (some of them empty or of one cell) of ugly counts, in either norm."""
        noisy, totals, offsets = Chebyshev.random(rng, size).data
        return cls(noisy, totals, 1 if rng.random() < 0.5 else 2, offsets)
