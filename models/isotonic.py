"""Isotonic regression: the non-decreasing vector nearest to a noisy one (Kuo et al. 2018, §4.2 and §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats
from models.arithmetic.exact import Number
from models.model import ByProgram
from models.programs.costs import Absolute, Square
from models.programs.operators import Steps
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import noise, random_noisy


@dataclass(frozen=True, eq=False)
class Isotonic(ByProgram):
    """Isotonic regression, weighted, bounded, with a pinned end, over reals or whole numbers.

        minimize    Σ_i w_i |x_i − y_i|^p                     Kuo et al. 2018, §4.2 (Hg), §4.3 (Hc);
        subject to  lower ≤ x_0 ≤ x_1 ≤ … ≤ x_{n−1} ≤ upper   Fioretto & Van Hentenryck 2019, Alg. 1 line 2
                    x_{n−1} = last      (if given: Hc ends at G)
                    x integer           (if `integer`)

    With `offsets`, many such problems side by side, over whole numbers and each with its own bounds; the
    objective is their sum.

    Parameters
    ----------
    noisy : array, shape (n,)
        The noisy values y, int64 (exact throughout) or float64.
    p : 1 or 2
    weights : array, shape (n,), optional
        Positive weights w, default 1.
    lower, upper : number, optional
        Bounds on all entries. With `offsets` both are needed, and may be int arrays of shape (problems,).
    last : number, optional
        The public value of the last entry.
    integer : bool
        Whether x must be whole.
    offsets : int array, shape (problems + 1,), optional
        Problem k is ``noisy[offsets[k]:offsets[k + 1]]``, with at least one entry. Default: one problem.

    Raises
    ------
    ValueError
        If an argument is malformed, a weight is not positive, or the bounds admit no answer
        (``lower > upper``, `last` outside them, bounds or last not whole for an integer answer).

    Examples
    --------
    >>> model = Isotonic([3, 1, 4], integer=True)
    >>> model.certificate([2, 2, 4]).optimal
    True
    >>> model.certificate([1, 1, 4]).reason
    'the witness leaves a gap'
    >>> both = Isotonic([3, 1, 4, 0], lower=0, upper=[5, 3], integer=True, offsets=[0, 2, 4])
    >>> both.certificate([2, 2, 2, 2]).optimal, both.certificate([2, 2, 3, 3]).unproved
    (True, 1)
    """

    noisy: ArrayLike
    p: Literal[1, 2] = 2
    weights: ArrayLike | None = None
    lower: Any = None
    upper: Any = None
    last: float | None = None
    integer: bool = False
    offsets: ArrayLike | None = None
    variants: ClassVar[dict[str, dict[str, Any]]] = {"L2": {}, "L1": {"p": 1}, "L2, whole": {"integer": True}}

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy)
        if noisy.size == 0:
            raise ValueError("noisy is empty: there is nothing to order")
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        object.__setattr__(self, "noisy", noisy)
        if self.offsets is not None:
            self._check_chains(noisy)
            return
        if self.weights is not None:
            weights = door.data("weights", self.weights)
            if weights.shape != noisy.shape:
                raise ValueError(f"weights have shape {weights.shape}, noisy {noisy.shape}")
            wrong = np.flatnonzero(weights <= 0)
            if wrong.size:
                raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: weights must be positive")
            object.__setattr__(self, "weights", weights)
        for name in ("lower", "upper", "last"):
            bound = _bound(name, getattr(self, name), self.integer)
            if noisy.dtype == np.int64 and isinstance(bound, int) and abs(bound) >= 2**62:
                raise ValueError(f"{name} is {bound}: beyond 62 bits")
            object.__setattr__(self, name, bound)
        low, high, last = self.lower, self.upper, self.last
        if low is not None and high is not None and low > high:
            raise ValueError(f"lower is {low}, above upper, {high}: no answer fits")
        if last is not None and ((low is not None and last < low) or (high is not None and last > high)):
            raise ValueError(f"last is {last}, outside lower … upper ({low} … {high}): no answer fits")

    def _check_chains(self, noisy: Array) -> None:
        """Check a model with `offsets`: its other fields are restricted."""
        whole = self.integer and noisy.dtype == np.int64
        if not whole or self.weights is not None or self.last is not None:
            raise ValueError(
                "offsets: problems side by side are whole, without weights or a pinned last entry"
            )
        cuts = door.data("offsets", self.offsets)
        rises = cuts.dtype == np.int64 and cuts.size > 1 and cuts[0] == 0 and cuts[-1] == noisy.size
        if not rises or np.any(cuts[1:] <= cuts[:-1]):
            raise ValueError(f"offsets must rise from 0 to {noisy.size}")
        object.__setattr__(self, "offsets", cuts)
        for name in ("lower", "upper"):
            given = getattr(self, name)
            if given is None:
                raise ValueError(f"{name} is missing: problems side by side need both bounds")
            bound = door.data(name, np.broadcast_to(given, cuts.size - 1) if np.ndim(given) == 0 else given)
            if bound.dtype != np.int64 or bound.size != cuts.size - 1 or exact.reach(bound) >= 2**62:
                raise ValueError(f"{name} must be a whole number for each of the {cuts.size - 1} problems")
            object.__setattr__(self, name, bound)
        low, high = np.asarray(self.lower), np.asarray(self.upper)
        if (wrong := np.flatnonzero(low > high)).size:
            k = wrong[0]
            raise ValueError(f"problem {k}: lower is {low[k]}, above upper, {high[k]}: no answer fits")

    @property
    def problems(self) -> int:
        """How many problems there are side by side."""
        return 1 if self.offsets is None else int(np.size(self.offsets)) - 1

    def part(self, problem: int) -> tuple[Isotonic, slice]:
        """One of the problems side by side as a model of its own, and the slice of its entries."""
        if self.offsets is None:
            return self, slice(None)
        cuts = np.asarray(self.offsets)
        here = slice(int(cuts[problem]), int(cuts[problem + 1]))
        lower, upper = (int(bound[problem]) for bound in (self.lower, self.upper))
        noisy = np.asarray(self.noisy)[here]
        return Isotonic(noisy, self.p, lower=lower, upper=upper, integer=True), here

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``; weights are int64 ones if none were given."""
        noisy = np.asarray(self.noisy)
        weights = np.ones(noisy.size, np.int64) if self.weights is None else np.asarray(self.weights)
        return noisy, weights

    @property
    def box(self) -> tuple[Number, Number]:
        """Bounds that some optimal answer satisfies: the given ones, otherwise the range of the data."""
        noisy = np.asarray(self.noisy)
        smallest, largest = (v.item() if isinstance(v, np.generic) else v for v in (noisy.min(), noisy.max()))
        if self.integer:
            smallest, largest = int(np.floor(smallest)), int(np.ceil(largest))
        caps = [b for b in (self.upper, self.last) if b is not None]
        high = min(caps) if caps else max(largest, smallest if self.lower is None else self.lower)
        low = self.lower if self.lower is not None else min(smallest, high)
        return low, high

    def program(self) -> Program:
        """The program above; a pinned last entry is a pair of equal bounds."""
        noisy, n = np.asarray(self.noisy), np.size(self.noisy)
        low, high = (
            -INFINITY if self.lower is None else self.lower,
            INFINITY if self.upper is None else self.upper,
        )
        box = self.box if self.integer and self.offsets is None else (low, high)
        part, starts = None, np.zeros(1, np.int64)
        if self.offsets is not None:
            starts, part = (
                np.asarray(self.offsets)[:-1],
                np.repeat(np.arange(self.problems), np.diff(self.offsets)),
            )
            low, high = np.asarray(low)[part], np.asarray(high)[part]
            box = low, high
        if self.last is not None:
            low, high = (exact.joined(np.full(n - 1, end), self.last) for end in (low, high))
            box = (
                exact.joined(np.full(n - 1, box[0]), self.last),
                exact.joined(np.full(n - 1, box[1]), self.last),
            )
        cost = (Square if self.p == 2 else Absolute)(noisy, 1 if self.weights is None else self.weights)
        inner = None if part is None else np.delete(part, starts)
        return Program(
            f"Isotonic L{self.p}",
            [Block("x", (n,), low, high, self.integer, cost, part, box)],
            [Rows("increasing", {"x": Steps(n, starts)}, 0, INFINITY, part=inner)],
        )

    def repaired(self, x: Floats) -> Floats:
        """The running maximum, within the bounds."""
        near = np.maximum.accumulate(x)
        high = self.upper if self.last is None else self.last
        if self.lower is not None or high is not None:
            low, high = (None if end is None else exact.as_float(end) for end in (self.lower, high))
            near = np.clip(near, low, high)
        if self.last is not None:
            near[-1] = high
        return near

    def relaxed(self) -> Self | None:
        """The model over the reals; None if it is over the reals already, or has `offsets`."""
        return replace(self, integer=False) if self.integer and self.offsets is None else None

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any mix of norm, weights, bounds, pinned end and integrality."""
        noisy = random_noisy(rng, (max(size, 1),))
        if rng.random() < 0.6:
            noisy = np.sort(noisy) + rng.integers(-3, 4, size=noisy.size)
        low = int(rng.integers(-3, 4)) if rng.random() < 0.5 else None
        high = int(rng.integers(4, 60)) if rng.random() < 0.5 else None
        last = int(rng.integers(4 if low is None else low, 60)) if rng.random() < 0.4 else None
        if last is not None and high is not None:
            last = min(last, high)
        return cls(
            noisy,
            p=1 if rng.random() < 0.5 else 2,
            weights=rng.integers(1, 5, size=noisy.size) if rng.random() < 0.5 else None,
            lower=low,
            upper=high,
            last=last,
            integer=bool(rng.random() < 0.6),
        )

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Cumulative counts plus noise."""
        noisy = np.cumsum(rng.integers(0, 3, size, dtype=np.int8), dtype=np.int64)
        noisy += noise(rng, size, 100.0)
        return cls(noisy, **options)


def _bound(name: str, value: Any, integer: bool) -> Any:
    if value is None:
        return None
    value = door.scalar(name, value)
    if value != value or abs(value) == INFINITY:
        raise ValueError(f"{name} must be finite, got {value}: leave it out for no bound")
    if integer or (isinstance(value, float) and value.is_integer()):
        if value != int(value):
            raise ValueError(f"{name} is {value}, but the answer is to be whole numbers")
        return int(value)
    return value
