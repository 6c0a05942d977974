"""Beyond the papers: of all nearest vectors, the one with the fewest positive entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.certificate import Certificate, Witness, infeasible, judge
from models.chebyshev import Chebyshev
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term, rows_of
from models.synthetic import noisy_counts


@dataclass(frozen=True, eq=False)
class SparsestChebyshev:
    """Among all Chebyshev-optimal answers, one with the fewest non-zeros, then with the least L1 change.

        minimize    M·#{i : x_i > 0} + Σ_i |x_i − y_i|,     M = 1 + the largest L1 change possible
        subject to  Σ_i x_i = c,  x ≥ 0,  x integer,  |x_i − y_i| ≤ d*

    with d* the optimum of `Chebyshev`. IntOpt (Boninsegna & Silvestri 2025, §4.2) lowers small entries first,
    a heuristic for the same aim; this model measures how well it does.

    Parameters
    ----------
    noisy : int array, shape (n,)
    total : int

    Raises
    ------
    ValueError
        As for `Chebyshev`, from whose answers it chooses.

    Examples
    --------
    >>> model = SparsestChebyshev([5, 3, 1, -2], total=5)
    >>> model.positives([4, 1, 0, 0]), model.positives([3, 1, 1, 0])
    (2, 3)
    """

    noisy: ArrayLike
    total: int
    random_up_to: ClassVar[int] = 10_000  # the objective passes 64 bits

    def __post_init__(self) -> None:
        nearest = Chebyshev(self.noisy, self.total)
        object.__setattr__(self, "noisy", nearest.data[0])
        object.__setattr__(self, "total", int(nearest.data[1][0]))

    @property
    def counts(self) -> Any:
        """The noisy counts as an array."""
        return np.asarray(self.noisy)

    @cached_property
    def distance(self) -> int:
        """d*: the optimum of `Chebyshev`."""
        return int(self._nearest.least_distance()[0])

    @property
    def _nearest(self) -> Chebyshev:
        return Chebyshev(self.counts, self.total)

    @property
    def box(self) -> tuple[Any, Any]:
        """``(lower, upper)`` that keep every change within d*."""
        return np.maximum(0, self.counts - self.distance), self.counts + self.distance

    @property
    def price(self) -> int:
        """M, the cost of a positive entry: more than all changes together can cost."""
        return int(self.counts.size) * self.distance + 1

    def program(self) -> Program:
        """The program above, with a binary for each entry that is 1 if the entry may be positive."""
        lower, upper = self.box
        n = self.counts.size
        each = np.arange(n)
        beside = np.tile(each, 2), np.concatenate([each, n + each])
        most = np.concatenate([np.ones(n, np.int64), -upper])
        return Program(
            "SparsestChebyshev",
            [Block("x", (n,), lower, upper, True), Block("positive", (n,), 0, 1, True)],
            [
                rows_of("positive", (n, 2 * n), (*beside, most), -INFINITY, 0),
                rows_of("total", (1, 2 * n), (np.zeros(n), each, np.ones(n)), self.total, self.total),
            ],
            [Term("absolute", each, 1, self.counts), Term("linear", n + each, self.price)],
        )

    def positives(self, x: Any) -> int:
        """How many entries are positive."""
        return int(np.count_nonzero(np.asarray(x) > 0))

    def objective(self, x: Any) -> int:
        """M·(positive entries) + L1 change."""
        x = door.answer(x, self.counts.shape, integer=True)
        return self.price * self.positives(x) + int(exact.total(np.abs(exact.difference(x, self.counts))))

    def violations(self, x: Any) -> list[str]:
        """Those of `Chebyshev`, and changes beyond d*."""
        x = door.answer(x, self.counts.shape, integer=True)
        far = np.flatnonzero(np.abs(exact.difference(x, self.counts)) > self.distance)
        found = self._nearest.violations(x)
        return found + [
            f"nearest: x[{i}] = {x[i]} is more than {self.distance} from its noisy count" for i in far
        ]

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A threshold σ of the noisy counts: two sums then bound the number and the change; linear time.

        The certificate of `Chebyshev` proves that d is the least distance. At d, let S be the set of positive
        entries: all those with y > d, and some others. For any τ > 0, the upper bounds u of these others add
        up to at most τ for each, plus Σ max(0, u − τ) over all entries that may be in S. Together with the
        rest they must reach the total, which gives a least number k of entries in S. The change is at least
        Σ_{i ∉ S} |y_i| + Σ_{i ∈ S} max(0, −y_i) + |h − c| with h = Σ_{i ∈ S} max(0, y_i). This does not rise
        with h, and if S has k entries, h ≤ k·σ + Σ max(0, y − σ) for any σ ≥ 0. With more entries, the
        objective is at least M·(k + 1). Both sums are the linear programming dual of choosing the k largest
        numbers (Ogryczak & Tamir 2003); if σ is the k-th largest noisy count and τ = σ + d, both hold with
        equality.

        Without a witness, σ is the least noisy count of a positive entry of x.

        Parameters
        ----------
        x : int array, shape (n,)
        witness : mapping, optional
            ``threshold``, the whole number σ, shape ().
        """
        x = door.answer(x, self.counts.shape, integer=True)
        nearest = self._nearest.certificate(x)
        if not nearest.optimal:
            return infeasible(self.objective(x), self.violations(x))
        y, d = self.counts, int(nearest.objective)
        price = int(y.size) * d + 1
        positive = x > 0
        objective = price * int(np.count_nonzero(positive)) + int(exact.total(np.abs(x - y)))
        given: Any = door.whole_array(witness, "threshold", ())
        if given is None:
            given = y[positive].min() if positive.any() else y.max(initial=0)
        threshold = int(given)
        must, may = y > d, (y <= d) & (y + d > 0)
        fewest = int(np.count_nonzero(must))
        short = self.total - int(exact.total(y[must])) - fewest * d
        each = threshold + d
        if short > 0 and each > 0:
            spare = int(exact.total(np.maximum(y[may] + (d - each), 0)))
            fewest += max(0, -((spare - short) // each))
        sigma = max(threshold, 0)
        held = fewest * sigma + int(exact.total(np.maximum(y - sigma, 0)))
        change = max(0, int(exact.total(np.abs(y))) - held + abs(held - self.total))
        bound = min(price * fewest + change, price * (fewest + 1))
        reason = f"{fewest} positive entries and an L1 change of {change} are not ruled out"
        return judge(objective, objective - bound, True, {"threshold": np.array(threshold)}, reason)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Sparse noisy counts: mostly noise about zero, some large."""
        large = rng.random(max(size, 1)) < 0.3
        noisy = np.where(large, rng.integers(5, 60, large.size), 0) + rng.integers(-4, 5, large.size)
        return cls(noisy, max(0, int(noisy[large].sum()) + int(rng.integers(-5, 6))))

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts; the total is half the sum of the positive ones."""
        noisy = noisy_counts(rng, size)
        return cls(noisy, int(np.maximum(noisy, 0).sum()) // 2, **options)
