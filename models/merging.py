"""Several estimates of the same sizes, averaged by their variances (Kuo et al. 2018, §5.3, Eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact, rounding
from models.arithmetic.answers import fractional
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.rounding import Rounding
from models.certificate import Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.synthetic import heavy_tailed, noise, random_noisy


@dataclass(frozen=True, eq=False)
class Merging:
    """Weighted least squares of several estimates; with weights 1/variance, inverse-variance averaging.

        minimize    Σ_i Σ_k w_ki (x_i − y_ki)²        Kuo et al. 2018, §5.3: Eq. 5 is its optimum over reals,
        subject to  x integer  (if `integer`)         k the parent's estimate and the child's; equal weights
                                                      give the plain average

    Rounding the average to the nearest whole number is optimal over whole numbers, entry by entry.

    Parameters
    ----------
    estimates : array, shape (sources, n)
        The estimates y, one row per source; int64 (exact throughout), float64, or exact objects.
    weights : array, shape (sources, n)
        Their positive weights w; only the ratios within an entry matter to the answer.
    integer : bool
        Whether x must be whole.

    Raises
    ------
    ValueError
        If an argument is malformed or empty, the shapes differ, or a weight is not positive.

    Examples
    --------
    >>> model = Merging([[10, 4], [16, 5]], [[2, 1], [1, 1]], integer=True)
    >>> model.objective([12, 4]), model.certificate([12, 4]).optimal
    (25, True)
    >>> model.certificate([13, 4]).gap
    3
    """

    estimates: ArrayLike
    weights: ArrayLike
    integer: bool = False

    def __post_init__(self) -> None:
        estimates = door.data("estimates", self.estimates, ndim=2)
        weights = door.data("weights", self.weights, ndim=2)
        if estimates.shape != weights.shape or estimates.size == 0:
            raise ValueError(
                f"estimates have shape {estimates.shape}, weights {weights.shape}: there must be a weight "
                "for each estimate, and one estimate at least"
            )
        wrong = np.argwhere(weights <= 0)
        if wrong.size:
            k, i = wrong[0]
            raise ValueError(f"weights[{k}, {i}] is {weights[k, i]}: weights must be positive")
        object.__setattr__(self, "estimates", estimates)
        object.__setattr__(self, "weights", weights)

    @property
    def data(self) -> tuple[Array, Array]:
        """``(estimates, weights)``, shape (sources, n) each."""
        return np.asarray(self.estimates), np.asarray(self.weights)

    def sums(self) -> tuple[Array, Array]:
        """``(Σ_k w·y, Σ_k w)`` of each entry, shape (n,); Python integers if 64 bits might not suffice.

        64 bits must also hold the certificate's products: the mass times a few values of the estimates' size.
        """
        y, w = self.data
        if y.dtype == w.dtype == np.int64:
            small = exact.fits(8 * len(y) * (exact.reach(y) + 1) * exact.reach(w))
            y, w = (y, w) if small else (y.astype(object), w.astype(object))
        elif exact.is_exact(y) and exact.is_exact(w):
            y, w = y.astype(object), w.astype(object)
        else:
            y, w = y.astype(float), w.astype(float)
        with np.errstate(over="ignore", invalid="ignore"):
            return (w * y).sum(axis=0), w.sum(axis=0)

    def program(self) -> Program:
        """The program above; whole answers are bounded by the estimates: integer solvers need it."""
        y, w = self.data
        n = y.shape[1]
        lower: ArrayLike = -INFINITY
        upper: ArrayLike = INFINITY
        if self.integer:
            least, most = y.min(axis=0), y.max(axis=0)
            if y.dtype == np.float64:
                lower, upper = np.floor(least), np.ceil(most)
            else:
                lower, upper = least // 1, -(-most // 1) if y.dtype == object else most
        terms = [Term("quadratic", np.arange(n), weight, at) for weight, at in zip(w, y, strict=True)]
        return Program("Merging", [Block("x", (n,), lower, upper, self.integer)], [], terms)

    def row_prices(self, witness: Witness) -> Array:  # noqa: ARG002
        """The witness as prices of the program's rows: an empty array, as there are no rows."""
        return np.empty(0, np.int64)

    def objective(self, x: Any) -> Number:
        """Σ w·(x − y)²; exact where data and answer are (`Fraction` entries are allowed)."""
        x, (y, w) = self._answer(x), self.data
        return sum((distance(x, at, 2, weight) for at, weight in zip(y, w, strict=True)), 0)

    def violations(self, x: Any) -> list[str]:
        """Entries that are not whole, if `integer`."""
        return list(fractional(self._answer(x))) if self.integer else []

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """The normal equations, entry by entry, with the mass W = Σ_k w and the residual R(x) = Σ_k w(x − y).

        At x + t an entry costs W·t² + 2R(x)·t more. Over the reals its cost therefore exceeds the least by
        R²/W, which is 0 if and only if R = 0 (Gauss's normal equations). Over whole numbers x is best if and
        only if a change by one does not lower the cost, W ± 2R ≥ 0, as the cost is convex. If this holds at
        x, the excess is 0; if it holds at z = x − round(R/W), the excess is what z saves; otherwise it is at
        most R²/W.

        No witness is needed: everything is read off x in one pass. The certificate returns ``residual`` (R)
        and ``mass`` (W), shape (n,), as its witness.
        """
        del witness
        x = self._answer(x)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        sums, mass = self.sums()
        exactly = all(exact.is_exact(part) for part in (x, *self.data))
        if not exactly:
            plain = exact.floats(x), exact.floats(sums), exact.floats(mass)
            if self.integer:
                return self._whole(x, *plain, exact.as_float(objective))
            return self._nearly(*plain, exact.as_float(objective))
        if exact.reach(x) > exact.reach(np.asarray(self.estimates)):
            x, sums, mass = x.astype(object), sums.astype(object), mass.astype(object)
        residual = mass * x - sums
        gap, reason = self._missed(residual, mass, True, np.arange(x.size))
        return judge(objective, gap, True, {"residual": residual, "mass": mass}, reason)

    def _whole(self, x: Array, near: Floats, sums: Floats, mass: Floats, objective: float) -> Certificate:
        """The certificate of whole numbers beside data in floats, without a tolerance.

        Floats with a bound on their rounding decide the clear entries, Fractions the others.
        """
        y, w = self.data
        with np.errstate(over="ignore", invalid="ignore"):
            residual = mass * near - sums
            size = mass * np.abs(near) + (np.abs(w * y)).sum(axis=0)
            wrong = 8 * (len(y) + 3) * (rounding.UNIT * size + rounding.LEAST * (1 + np.abs(near)))
            clear = (2 * (np.abs(residual) + wrong) <= mass * (1 - 1e-15)) & (np.abs(near) < 2.0**53)
        at = np.flatnonzero(~clear)
        y, w = (exact.fractions(part[:, at]) for part in self.data)
        mass_at = w.sum(axis=0)
        gap, reason = self._missed(mass_at * x[at].astype(object) - (w * y).sum(axis=0), mass_at, True, at)
        shown, unit = {"residual": residual, "mass": mass}, rounding.unit_of(*self.data[::-1])
        if gap == 0 and np.abs(near).max() < 2.0**53:
            error = 2 * rounding.UNIT * objective * (self.data[0].size + 8)
            proof = judge(objective, 0.0, False, shown, reason, Rounding(error, unit))
            if proof.optimal:
                return proof
        cost = self._exact_cost(x)
        proof = judge_exactly(cost, cost - gap, False, shown, reason, unit)
        return proof if gap == 0 else replace(proof, optimal=False, reason=reason)

    def _exact_cost(self, x: Array) -> Fraction:
        return sum((exact.cost(x, y, w) for y, w in zip(*self.data, strict=True)), Fraction(0))

    def _nearly(self, x: Floats, sums: Floats, mass: Floats, objective: float) -> Certificate:
        """That of real numbers in floats; each residual is off by a few units in the last place of W·|x|."""
        y = self.data[0]
        with np.errstate(over="ignore", invalid="ignore"):
            residual = mass * x - sums
            gap, reason = self._missed(residual, mass, False, np.arange(x.size))
        largest, light, heavy = rounding.reach(x, y), float(mass.min()), float(mass.max())
        wrong = 4 * (len(y) + 3) * (rounding.UNIT * largest + rounding.LEAST / light)
        rounded = rounding.of_balance(float(gap), objective, y.size, (light, heavy), largest, wrong)
        return judge(objective, gap, False, {"residual": residual, "mass": mass}, reason, rounded)

    def _missed(self, residual: Array, mass: Array, exactly: bool, at: Ints) -> tuple[Number, str]:
        """An upper bound on the total excess of the entries `at` over the least, and one that has some."""
        off = np.flatnonzero(np.abs(2 * residual) > mass if self.integer else residual != 0)
        reason = f"the weighted residuals of x[{at[off[0]]}] do not balance" if off.size else ""
        residual, mass = residual[off], mass[off]
        saved: Number = 0
        if self.integer:
            step = _rounded(-residual, mass)
            after = residual + mass * step
            best = np.abs(2 * after) <= mass
            # W·t² + 2R·t = t·(R(x) + R(z))
            saved = -exact.dot(step[best], (residual + after)[best])
            residual, mass = residual[~best], mass[~best]
        if not exactly:
            return saved + float(np.sum(residual**2 / mass)), reason
        pairs = zip(residual.tolist(), mass.tolist(), strict=True)
        return sum((Fraction(r) * r / w for r, w in pairs), saved), reason

    def _answer(self, x: Any) -> Array:
        return door.answer(x, self.data[0].shape[1:], self.integer)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Mostly two estimates, whole or over the reals; equal and unequal weights, many ties."""
        shape = int(rng.integers(1, 4)) if rng.random() < 0.3 else 2, max(1, size)
        weights = rng.integers(1, rng.choice([2, 5, 50]), size=shape)
        return cls(random_noisy(rng, shape), weights, integer=bool(rng.random() < 0.7))

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Two noisy estimates of the same counts, each with weights of its own; whole."""
        true = heavy_tailed(rng, size // 2)
        estimates = [true + noise(rng, true.size), true + noise(rng, true.size)]
        return cls(estimates, rng.integers(1, 50, (2, true.size)), **{"integer": True, **options})


def _rounded(a: Array, b: Array) -> Array:
    """a/b rounded to a whole number, for b > 0; a tie goes up."""
    if not (exact.is_exact(a) and exact.is_exact(b)):
        return np.asarray(np.rint(a / b))
    return np.asarray((2 * a + b) // (2 * b))
