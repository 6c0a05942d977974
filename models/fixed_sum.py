"""Non-negative counts of given totals, nearest to noisy ones in absolute changes or in (weighted) squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats, Ints, read_only
from models.chebyshev import Chebyshev
from models.model import ByProgram
from models.programs.costs import Absolute, Square
from models.programs.operators import Sums
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.segments import checked_segments


@dataclass(frozen=True, eq=False)
class FixedSum(ByProgram):
    """Non-negative counts of a given total, nearest in the L1 or the L2 norm.

        minimize    Σ_i w_i |x_i − y_i|^p        what Boninsegna & Silvestri 2025 compare Eq. 6 with:
        subject to  Σ_i x_i = c,  x ≥ 0          the same constraints, another norm
                    x integer   (if `integer`)

    With `offsets`, many such problems side by side, each with its own total; the objective is their sum.
    `SimplexQP` is the same problem in squares, with one total.

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy counts y: int64, or float64 for p = 2 with `weights` or over the reals.
    total : int, or int array of shape (segments,)
        The total(s) c ≥ 0.
    p : 1 or 2
    offsets : int array, shape (segments + 1,), optional
        Segment j is ``noisy[offsets[j]:offsets[j + 1]]``. Default: one segment.
    weights : array, shape (n,), optional
        Positive weights w, int64 or float64, default 1; for p = 2 only.
    integer : bool
        Whether the answer must be whole; False for p = 2 only.

    Raises
    ------
    ValueError
        If p is neither 1 nor 2, an argument is malformed, a weight is not positive, a total is negative, an
        empty segment has a total other than 0, the offsets do not rise from 0 to n, or sums or costs would
        not fit 62 bits.

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
    weights: ArrayLike | None = None
    integer: bool = True
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        "L1": {"p": 1},
        "L1, many totals": {"p": 1, "each": 100},
        "L2, many totals": {"p": 2, "each": 100},
    }
    takes_floats: ClassVar[bool] = False
    """Whether the noisy counts may be floats in any case."""

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        whole = self.integer and self.weights is None
        if self.p == 1 and not whole:
            raise ValueError("weights, and answers over the reals, need p = 2")
        weights: Array | None = None
        if whole and not self.takes_floats:  # the same data under the same conditions
            noisy, totals, offsets = Chebyshev(self.noisy, self.total, self.offsets).data
        else:
            noisy = _plain("noisy", self.noisy)
            totals, offsets = checked_segments(self.total, self.offsets, noisy.size)
            weights = None if self.weights is None else _checked_weights(self.weights, noisy)
            _require_small_costs(noisy, weights, totals)
        for name, value in (("noisy", noisy), ("total", totals), ("offsets", offsets), ("weights", weights)):
            object.__setattr__(self, name, value)

    @property
    def data(self) -> tuple[Array, Ints, Ints]:
        """``(noisy, totals, offsets)``; totals and offsets are int64 arrays."""
        return self._segments

    @property
    def _segments(self) -> tuple[Array, Ints, Ints]:
        noisy, offsets = np.asarray(self.noisy), np.asarray(self.offsets)
        return noisy, read_only(np.atleast_1d(self.total)), offsets

    @property
    def _weights(self) -> Array:
        """The weights; int64 ones (a broadcast view) if none were given."""
        one = np.ones(1, np.int64)
        return (
            np.broadcast_to(one, np.shape(self.noisy)) if self.weights is None else np.asarray(self.weights)
        )

    def program(self) -> Program:
        """The program above. A price λ for each segment's units proves an answer.

        The costs are convex, so there are such prices (Ibaraki & Katoh 1988, *Resource Allocation Problems*,
        ch. 4). The k-th whole unit costs w(2(k − y) − 1) for p = 2, more than the one before: the best answer
        takes the c cheapest units, and λ is the cost of the last. Over the reals, λ is the slope of every
        positive entry. For p = 1 a unit costs 1 or −1.
        """
        noisy, totals, offsets = self._segments
        cost = (Square if self.p == 2 else Absolute)(noisy, 1 if self.weights is None else self.weights)
        most = totals[0] if totals.size == 1 else np.repeat(totals, np.diff(offsets))
        return Program(
            f"{type(self).__name__} L{self.p}",
            [Block("x", noisy.shape, 0, INFINITY, self.integer, cost, box=(0, most))],
            [Rows("total", {"x": Sums(offsets)}, totals, totals)],
        )

    def repaired(self, x: Floats) -> Floats:
        """Without negative entries, and each segment scaled to its total."""
        _, totals, offsets = self._segments
        near, sums = np.maximum(x, 0), Sums(offsets)
        with np.errstate(over="ignore"):
            held = sums.apply(near)
        factor = np.divide(totals, held, out=np.ones(totals.size), where=held > 0)
        return np.asarray(near * sums.transpose(factor))

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:
        """Prices read off an answer; for p = 1 they follow from the data: what one more unit costs."""
        if self.p == 2:
            return super().read(values, near)
        noisy, totals, offsets = self._segments
        return {"total": np.where(totals > Sums(offsets).apply(np.maximum(noisy, 0)), 1, -1)}

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Several segments, some of them empty or of one cell, of counts from `random_noisy`; either norm."""
        noisy, totals, offsets = Chebyshev.random(rng, size).data
        return cls(noisy, totals, 1 if rng.random() < 0.5 else 2, offsets)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, each: int | None = None, **options: Any) -> Self:
        """Noisy counts; the total is nine tenths of their positive part. `each`: entries per segment."""
        noisy, totals, offsets = Chebyshev.typical(rng, size, each).data
        if each is None:
            return cls(noisy, int(totals[0]), **options)
        return cls(noisy, totals, offsets=offsets, **options)


def _plain(name: str, values: ArrayLike) -> Array:
    array = door.data(name, values)
    if array.dtype == object:
        raise ValueError(f"{name} must be int64 or float64, not Python objects")
    return array


def _checked_weights(values: ArrayLike, noisy: Array) -> Array:
    weights = _plain("weights", values)
    if weights.shape != noisy.shape:
        raise ValueError(f"weights have shape {weights.shape}, noisy {noisy.shape}")
    wrong = np.flatnonzero(weights <= 0)
    if wrong.size:
        raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
    return weights


def _require_small_costs(noisy: Array, weights: Array | None, totals: Ints) -> None:
    """Refuse data whose unit costs might pass 64 bits, with room for the search for a price."""
    largest_weight: Any = 1 if weights is None or not weights.size else weights.max().item()
    largest, total = exact.reach(noisy), exact.reach(totals)
    if 16 * largest_weight * (largest + total + 2) >= 2**62:
        raise ValueError(
            f"counts of up to {max(largest, total)} times weights of up to {largest_weight}: "
            "their unit costs pass 62 bits"
        )
