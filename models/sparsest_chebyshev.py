"""Beyond the papers: of all nearest vectors, the one with the fewest positive entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models import exact
from models.certificate import Certificate, Witness, infeasible, judge
from models.chebyshev import Chebyshev
from models.model import answer_of
from models.program import INFINITY, Block, Program, Term, rows_of


@dataclass(frozen=True, eq=False)
class SparsestChebyshev:
    """Among all Chebyshev-optimal answers, one with the fewest non-zeros, then with the least L1 change.

        minimize    M·#{i : x_i > 0} + Σ_i |x_i − y_i|,     M = 1 + the largest L1 change possible
        subject to  Σ_i x_i = c,  x ≥ 0,  x integer,  |x_i − y_i| ≤ d*

    with d* the optimum of `Chebyshev`. IntOpt (Boninsegna & Silvestri 2025, §4.2) lowers small entries first
    to the same end, by rule of thumb: this is the yardstick for it.

    Parameters
    ----------
    noisy : int array, shape (n,)
    total : int

    Raises
    ------
    ValueError
        As `Chebyshev`, whose answers it chooses from.

    Examples
    --------
    >>> model = SparsestChebyshev([5, 3, 1, -2], total=5)
    >>> model.positives([4, 1, 0, 0]), model.positives([3, 1, 1, 0])
    (2, 3)
    """

    noisy: ArrayLike
    total: int

    def __post_init__(self) -> None:
        nearest = Chebyshev(self.noisy, self.total)
        object.__setattr__(self, "noisy", nearest.data[0])
        object.__setattr__(self, "total", int(nearest.data[1][0]))

    @property
    def counts(self) -> Any:
        """The noisy counts as an array."""
        return np.asarray(self.noisy)

    @property
    def distance(self) -> int:
        """d*: the optimum of `Chebyshev`."""
        return int(self._nearest.least_distance(np.array([2**62]))[0])

    @property
    def _nearest(self) -> Chebyshev:
        return Chebyshev(self.counts, self.total)

    @property
    def box(self) -> tuple[Any, Any]:
        """``(lower, upper)`` that keep every change within d*."""
        return np.maximum(0, self.counts - self.distance), self.counts + self.distance

    @property
    def price(self) -> int:
        """M: what a positive entry costs, more than all changes together can."""
        return int(self.counts.size) * self.distance + 1

    def program(self) -> Program:
        """A binary for each entry says whether it may be positive."""
        lower, upper = self.box
        n = self.counts.size
        each = np.arange(n)
        beside = (np.tile(each, 2), np.concatenate([each, n + each]))
        return Program(
            "SparsestChebyshev",
            [Block("x", (n,), lower, upper, True), Block("positive", (n,), 0, 1, True)],
            [
                rows_of(
                    "positive", (n, 2 * n), (*beside, np.concatenate([np.ones(n), -upper])), -INFINITY, 0
                ),
                rows_of("total", (1, 2 * n), (np.zeros(n), each, np.ones(n)), self.total, self.total),
            ],
            [Term("absolute", each, 1, self.counts), Term("linear", n + each, self.price)],
        )

    def positives(self, x: Any) -> int:
        """How many entries are positive."""
        return int(np.count_nonzero(np.asarray(x) > 0))

    def objective(self, x: Any) -> int:
        """M·(positive entries) + L1 change."""
        x = answer_of(x, self.counts.shape, integer=True)
        return self.price * self.positives(x) + int(exact.total(np.abs(x - self.counts)))

    def violations(self, x: Any) -> list[str]:
        """Those of `Chebyshev`, and changes beyond d*."""
        x = answer_of(x, self.counts.shape, integer=True)
        far = np.flatnonzero(np.abs(x - self.counts) > self.distance)
        found = self._nearest.violations(x)
        return found + [
            f"nearest: x[{i}] = {x[i]} is more than {self.distance} from its noisy count" for i in far
        ]

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """The fewest positive entries k, and the least L1 change with k of them; O(n log n), the gap exact.

        k: those that must be positive, and then the roomiest, until their upper bounds reach the total. L1:
        with S the positive entries, the change is at least Σ y⁻ + Σ_{i ∉ S} y⁺ + |Σ_{i ∈ S} y⁺ − c|, which
        only falls as Σ_{i ∈ S} y⁺ grows; the k largest entries make it least.
        """
        x = answer_of(x, self.counts.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        fewest = self.fewest()
        above = np.sort(np.maximum(self.counts, 0))
        held = int(exact.total(above[above.size - fewest :]))
        below = int(exact.total(np.maximum(-self.counts, 0)))
        least = below + int(exact.total(above)) - held + abs(held - self.total)
        gap = objective - (self.price * fewest + least)
        reason = f"an answer has {fewest} positive entries and an L1 change of {least}"
        return judge(objective, gap, True, {"fewest": fewest, "l1": least}, reason)

    def fewest(self) -> int:
        """The least number of positive entries that any Chebyshev-optimal answer has, exactly."""
        lower, upper = self.box
        must = lower > 0
        room = int(exact.total(upper[must]))
        optional = np.sort(upper[~must & (upper > 0)])[::-1]
        if room >= self.total:
            return int(must.sum())
        reached = room + np.cumsum(optional)
        return int(must.sum()) + int(np.searchsorted(reached, self.total)) + 1

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Sparse noisy counts: mostly noise about zero, some large."""
        large = rng.random(max(size, 1)) < 0.3
        noisy = np.where(large, rng.integers(5, 60, large.size), 0) + rng.integers(-4, 5, large.size)
        return cls(noisy, max(0, int(noisy[large].sum()) + int(rng.integers(-5, 6))))
