"""Isotonic regression: the non-decreasing vector nearest to a noisy one (Kuo et al. 2018, §4.2 and §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import FEASIBILITY_TOLERANCE, answer_of, fractional, tolerance_for, too_far
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term, rows_of
from models.synthetic import noise, random_noisy
from models.witnesses.arrays import exact_array, real_array, whole_array
from models.witnesses.chains import Chains
from models.witnesses.isotonic_prices import Chain


@dataclass(frozen=True, eq=False)
class Isotonic:
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
    'the chain of costs breaks at x[1]'
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
        noisy = exact.as_data("noisy", self.noisy)
        if noisy.size == 0:
            raise ValueError("noisy is empty: there is nothing to order")
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, got {self.p!r}")
        object.__setattr__(self, "noisy", noisy)
        if self.offsets is not None:
            self._check_chains(noisy)
            return
        if self.weights is not None:
            weights = exact.as_data("weights", self.weights)
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
        cuts = exact.as_data("offsets", self.offsets)
        rises = cuts.dtype == np.int64 and cuts.size > 1 and cuts[0] == 0 and cuts[-1] == noisy.size
        if not rises or np.any(cuts[1:] <= cuts[:-1]):
            raise ValueError(f"offsets must rise from 0 to {noisy.size}")
        object.__setattr__(self, "offsets", cuts)
        for name in ("lower", "upper"):
            given = getattr(self, name)
            if given is None:
                raise ValueError(f"{name} is missing: problems side by side need both bounds")
            bound = exact.as_data(
                name, np.broadcast_to(given, cuts.size - 1) if np.ndim(given) == 0 else given
            )
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
    def chains(self) -> Chains | None:
        """The problems side by side; None without `offsets`."""
        if self.offsets is None:
            return None
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        return Chains(np.asarray(self.noisy), self.p, np.asarray(self.offsets), lower, upper)

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``; weights are int64 ones if none were given."""
        noisy = np.asarray(self.noisy)
        weights = np.ones(noisy.size, np.int64) if self.weights is None else np.asarray(self.weights)
        return noisy, weights

    @property
    def box(self) -> tuple[Number, Number]:
        """Bounds that some optimal answer satisfies: the given ones, otherwise the range of the data."""
        noisy, _ = self.data
        smallest, largest = (v.item() if isinstance(v, np.generic) else v for v in (noisy.min(), noisy.max()))
        if self.integer:
            smallest, largest = int(np.floor(smallest)), int(np.ceil(largest))
        caps = [b for b in (self.upper, self.last) if b is not None]
        high = min(caps) if caps else max(largest, smallest if self.lower is None else self.lower)
        low = self.lower if self.lower is not None else min(smallest, high)
        return low, high

    def program(self) -> Program:
        """The program above; a pinned last entry is a pair of equal bounds.

        Whole answers are bounded by `box`: solvers over the integers need finite domains.
        """
        noisy, weights = self.data
        n = noisy.size
        if (chains := self.chains) is not None:
            return self._program_of(chains)
        low, high = self.box if self.integer else (self.lower, self.upper)
        low, high = -INFINITY if low is None else low, INFINITY if high is None else high
        last = low if self.last is None else self.last
        lower = exact.joined(np.full(n - 1, low), last)
        upper = exact.joined(np.full(n - 1, high), high if self.last is None else last)
        step = np.arange(n - 1)
        entries = (np.tile(step, 2), np.concatenate([step, step + 1]), np.repeat([-1.0, 1.0], n - 1))
        return Program(
            f"Isotonic L{self.p}",
            [Block("x", (n,), lower, upper, self.integer)],
            [rows_of("increasing", (n - 1, n), entries, 0.0, INFINITY)],
            [Term("quadratic" if self.p == 2 else "absolute", np.arange(n), weights, noisy)],
        )

    def relaxed(self) -> Self | None:
        """The model over the reals; None if it is over the reals already, or has `offsets`."""
        return replace(self, integer=False) if self.integer and self.offsets is None else None

    def _program_of(self, chains: Chains) -> Program:
        chain, n = chains.chain, chains.y.size
        after = np.delete(np.arange(n), chains.offsets[:-1])
        row, ones = np.arange(after.size), np.ones(after.size)
        entries = np.tile(row, 2), np.concatenate([after - 1, after]), np.concatenate([-ones, ones])
        return Program(
            f"Isotonic L{self.p}",
            [Block("x", (n,), chains.lower[chain], chains.upper[chain], True)],
            [rows_of("increasing", (after.size, n), entries, 0.0, INFINITY)],
            [Term("quadratic" if self.p == 2 else "absolute", np.arange(n), 1, chains.y)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: those of the steps; bounds are not rows."""
        if (chains := self.chains) is not None:
            own = np.arange(chains.y.size) + chains.chain  # where each entry's own price is
            inner = np.delete(own, chains.offsets[:-1])
            return np.asarray(np.maximum(witness["prices"], 0))[inner]
        return np.asarray(np.maximum(witness["prices"], 0))[1 : np.size(self.noisy)]

    def objective(self, x: Any) -> Number:
        """Σ w·|x − y|^p; exact where data and answer are (`Fraction` entries are allowed)."""
        return distance(answer_of(x, np.shape(self.noisy), self.integer), *self._terms)

    def violations(self, x: Any) -> list[str]:
        """Falls, entries beyond the bounds, a wrong last entry, and fractions if `integer`."""
        x = answer_of(x, np.shape(self.noisy), self.integer)
        return self._broken(x, self._near(x))

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices λ ≥ 0 on the steps of the chain; linear time.

        With a price λ_i on each step x_{i−1} ≤ x_i, λ_0 on the lower bound and λ_n on the upper one,

            bound  =  Σ_i min over z of ( w_i |z − y_i|^p + (λ_{i+1} − λ_i) z )  +  λ_0 lower − λ_n upper,

        with z between the bounds (if none are given, the least and largest y: some optimal answer is within).

        It holds for any prices (Lagrangian duality); a negative one counts as 0. Some prices reach the
        optimum, because the costs are convex; over whole numbers, too, because the chain's matrix is totally
        unimodular (Ahuja & Orlin 2001). Without a witness, prices are read off x: they fall from step to step
        by the cost of its next and last units, and are 0 wherever x rises. These prove an optimal answer (in
        floats, up to rounding); for others the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``prices``, shape (n + 1,): first that of the lower bound, then that of the step to entry i at
            place i, last that of the upper bound. With `last`, shape (n,): the pinned entry is left out, and
            its step is the last price. With `offsets`, shape (n + problems,): whole prices, one problem after
            the other.
        """
        x = answer_of(x, np.shape(self.noisy), self.integer)
        objective = distance(x, *self._terms)
        if (chains := self.chains) is not None:
            return _of_chains(chains, x, objective, _broken_chains(chains, x), witness)
        near = self._near(x)
        if broken := self._broken(x, near):
            return infeasible(objective, broken)
        if near is not x:
            x, objective = near, distance(near, *self._terms)
        y, _, w = self._terms
        upper, whole = self.upper, x
        over: Number = 0
        exactly = all(exact.is_exact(part) for part in (x, y, w) if part is not None)
        if self.last is not None:
            # The pinned entry has one cost; x may be off by a tolerance there, and cost more or less.
            end = y[-1:], self.p, None if w is None else w[-1:]
            pinned = exact.objects([self.last], (1,)) if isinstance(self.last, Fraction) else [self.last]
            over = distance(x[-1:], *end) - distance(exact.as_given(pinned), *end)
            if x.size == 1:
                return judge(objective, over, exactly, {"prices": np.zeros(2, np.int64)}, LEFT)
            x, y, w, upper = x[:-1], y[:-1], None if w is None else w[:-1], self.last
        given = (exact_array if exactly or self.integer else real_array)(witness, "prices", (x.size + 1,))
        if exactly:
            chain = Chain(y, w, self.p, self.integer, self.lower, upper)
            return _exactly(chain, x, objective, self.box, given)
        in_floats = real_array(witness, "prices", (x.size + 1,)) if self.integer else given
        plain = Chain(_plain(y), None if w is None else _plain(w), self.p, self.integer, self.lower, upper)
        proof = _nearly(plain, _plain(x), objective, self.box, in_floats, float(over))
        if proof.optimal or not self.integer:
            return proof
        # Floats with a bound on their rounding did not prove it: whole numbers and Fractions decide.
        chain = replace(plain, y=exact.fractions(y), w=None if w is None else exact.fractions(w))
        noisy, weights = (exact.fractions(part) for part in self.data)
        cost = distance(whole.astype(object), noisy, self.p, weights)
        return _exactly(chain, x.astype(object), cost, self.box, given)

    @property
    def _terms(self) -> tuple[Array, Literal[1, 2], Array | None]:
        """The arguments of `distance` after the answer: y, p, and the weights, None if all are 1."""
        return np.asarray(self.noisy), self.p, None if self.weights is None else np.asarray(self.weights)

    def _near(self, x: Array) -> Array:
        """The feasible answer that x stands for: in floats, its running maximum within bounds."""
        if self.integer or exact.is_exact(x) or not self._falls_or_leaves(x):
            return x
        low, high = (None if end is None else exact.as_float(end) for end in (self.lower, self.upper))
        near = np.maximum.accumulate(x)
        if self.last is not None:
            high = exact.as_float(self.last)
        if low is not None or high is not None:
            near = np.clip(near, low, high)
        if self.last is not None:
            near[-1] = high
        return near

    def _falls_or_leaves(self, x: Array) -> bool:
        """Whether x falls anywhere, or is not within the bounds, or has a wrong last entry."""
        low, high, last = self.lower, self.upper, self.last
        inside = (low is None or x[0] >= low) and (high is None or x[-1] <= high)
        inside = inside and (last is None or x[-1] == last)
        # Without falls, all entries lie between the first and the last.
        return not inside or bool(np.any(x[1:] < x[:-1]))

    def _broken(self, x: Array, near: Array) -> list[str]:
        """The violations; `near` is the feasible answer beside x, which may be x itself."""
        if (chains := self.chains) is not None:
            return _broken_chains(chains, x)
        low, high, last = self.lower, self.upper, self.last
        ends = exact.as_given([end for end in (low, high, last) if end is not None])
        slack = 0 if self.integer else tolerance_for(x, np.asarray(self.noisy), ends)
        far = [] if near is x else too_far(x, near, slack)
        if near is not x and not far:
            return []
        if near is x and not self.integer and x.dtype.kind == "f":
            return []
        if (not self.integer or x.dtype == np.int64) and not self._falls_or_leaves(x):
            return []
        found = list(fractional(x)) if self.integer else []
        for i in np.flatnonzero(x[1:] < x[:-1] - slack):
            found.append(f"increasing: x[{i}] = {x[i]} > x[{i + 1}] = {x[i + 1]}")
        if low is not None:
            found += [f"lower: x[{i}] = {x[i]} < {low}" for i in np.flatnonzero(x < low - slack)]
        if high is not None:
            found += [f"upper: x[{i}] = {x[i]} > {high}" for i in np.flatnonzero(x > high + slack)]
        if last is not None and abs(exact.difference(x[-1:], np.array([last]))[0]) > slack:
            found.append(f"last: x[{x.size - 1}] = {x[-1]}, not {last}")
        return found or far

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
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number | Fraction):
        raise ValueError(f"{name} must be a number, got {value!r}")
    value = value.item() if isinstance(value, np.generic) else value
    if value != value or abs(value) == INFINITY:
        raise ValueError(f"{name} must be finite, got {value}: leave it out for no bound")
    if integer or (isinstance(value, float) and value.is_integer()):
        if value != int(value):
            raise ValueError(f"{name} is {value}, but the answer is to be whole numbers")
        return int(value)
    return value


def _whole(x: Array) -> Ints | None:
    """An answer as int64, if it is whole and not beyond 62 bits."""
    if x.dtype != np.int64 and (any(True for _ in fractional(x)) or max(map(abs, x.tolist())) >= 2**62):
        return None
    return x.astype(np.int64)


def _broken_chains(chains: Chains, x: Array) -> list[str]:
    whole = _whole(x)
    if whole is None:
        return list(fractional(x)) or ["an entry is beyond 62 bits"]
    wrong = np.flatnonzero(~chains.ordered(whole))
    return [f"problem {k}: it falls, or is not in {chains.lower[k]} … {chains.upper[k]}" for k in wrong]


def _of_chains(
    chains: Chains, x: Array, objective: Number, broken: list[str], witness: Witness | None
) -> Certificate:
    """The certificate of problems side by side: the gap is the sum of their gaps, each at least 0."""
    whole = _whole(x)
    if whole is None:
        return infeasible(objective, broken)
    if broken:
        return replace(infeasible(objective, broken), unproved=int(np.argmin(chains.ordered(whole))))
    given = whole_array(witness, "prices", (whole.size + chains.number,))
    gaps, prices = chains.gaps(whole, given)
    missed = np.flatnonzero(gaps > 0)
    gap = int(exact.total(gaps[missed])) if missed.size else 0
    first = int(missed[0]) if missed.size else None
    more = f" (and in {missed.size - 1} more)" if missed.size > 1 else ""
    proof = judge(objective, gap, True, {"prices": prices}, f"problem {first}: {LEFT}{more}")
    return replace(proof, unproved=first)


def _plain(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == object else array


def _exactly(
    chain: Chain, x: Array, objective: Number, box: tuple[Number, Number], given: Array | None
) -> Certificate:
    """The certificate in whole numbers and Fractions."""
    if given is not None:
        return judge(objective, chain.exact_gap(x, given, box), True, {"prices": given}, LEFT)
    prices, broke = chain.prices(x)
    gap = 0 if broke < 0 else chain.exact_gap(x, prices, box)
    return judge(objective, gap, True, {"prices": prices}, f"the chain of costs breaks at x[{broke}]")


def _nearly(
    chain: Chain, x: Array, objective: Number, box: tuple[Number, Number], given: Array | None, over: float
) -> Certificate:
    """The certificate in floats, at given prices, or the better of those read with and without tolerance.

    `over` is what the objective has beside the chain's own gap.
    """

    def judged(prices: Array, broke: int | None) -> Certificate:
        reason = LEFT if broke is None else f"the chain of costs breaks at x[{max(broke, 0)}]"
        gap = chain.gap(x, prices, box) + over
        rounding = chain.rounding(x, prices, box, gap, float(objective))
        return judge(objective, gap, False, {"prices": prices}, reason, rounding)

    if given is not None:
        return judged(np.maximum(given, 0), None)
    prices, broke = chain.prices(x)
    own = judged(prices, broke)
    if own.optimal:
        return own
    # Entries of a float solver's answer lie near the costs' kinks and bounds. If they are read as lying on
    # them, the prices may prove more.
    near, broke_near = chain.prices(x, FEASIBILITY_TOLERANCE * rounding.reach(x, chain.y))
    read = judged(near, broke_near if broke_near >= 0 else broke)
    return min((read, own), key=lambda proof: proof.gap or 0)
