"""Non-negative counts of a given total nearest to noisy ones in weighted squares (Kuo et al. 2018, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic.arrays import Array
from models.fixed_sum import FixedSum
from models.synthetic import random_noisy


@dataclass(frozen=True, eq=False)
class SimplexQP(FixedSum):
    """Non-negative counts of a given total, nearest to noisy ones in weighted squares.

        minimize    Σ_i w_i (Ĥ[i] − H̃[i])²          Kuo et al. 2018, §4.1 (all w = 1);
        subject to  Ĥ[i] ≥ 0 for all i, Σ_i Ĥ[i] = G   stage 1 of the TopDown algorithm
                    Ĥ[i] integer   (if `integer`)

    This is `FixedSum` with p = 2 and one total, which is a number here; and noisy counts may be floats.

    §4.1 solves the problem over the reals and rounds up the r largest fractional parts. That is optimal
    over the integers if all weights are equal. Otherwise it may miss the optimum, which may be more than a
    unit away from the real answer.

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy counts H̃, int64 (exact throughout) or float64.
    total : int
        The public number of groups G ≥ 0.
    weights : array, shape (n,), optional
        Positive weights w, int64 or float64, default 1.
    integer : bool
        Whether the answer must be whole.

    Raises
    ------
    ValueError
        If an argument is malformed, a weight is not positive, the total is negative, there are no counts
        but the total is not 0, or the costs would not fit 62 bits.

    Examples
    --------
    >>> model = SimplexQP([5, 3, -2], total=4)
    >>> model.objective([3, 1, 0])
    12
    >>> model.certificate([3, 1, 0]).optimal
    True
    >>> model.certificate([4, 0, 0]).gap
    2
    """

    p: Literal[1, 2] = field(default=2, init=False)
    offsets: ArrayLike | None = field(default=None, init=False)
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "reals": {"integer": False}}
    takes_floats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "total", int(self._segments[1][0]))

    @property
    def data(self) -> tuple[Array, Array]:  # type: ignore[override]
        """``(noisy, weights)``; weights are int64 ones (a broadcast view) if none were given."""
        return np.asarray(self.noisy), self._weights

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any mix of weights and integrality; totals near the sum of the counts, 0, and far off."""
        noisy = random_noisy(rng, (max(size, 1),))
        near = int(np.maximum(noisy, 0).sum())
        totals = [0, near, max(0, near + int(rng.integers(-10, 11))), near // 3, 2 * near + size]
        return cls(
            noisy if rng.random() < 0.8 else noisy + rng.integers(0, 8, noisy.size) / 8,
            totals[rng.integers(0, len(totals))],
            rng.integers(1, 9, size=noisy.size) if rng.random() < 0.6 else None,
            integer=bool(rng.random() < 0.7),
        )
