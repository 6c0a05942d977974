"""The least cost of moving one distribution on a line to another."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact, rounding
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import FLOAT_TOLERANCE, LEFT, Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term, rows_of
from models.synthetic import random_noisy
from models.witnesses.scaled import scaled


@dataclass(frozen=True, eq=False)
class WassersteinDistance:
    """The first Wasserstein distance of two distributions on a line: all mass moved, at its way's length.

        minimize    d
        subject to  d ≥ Σ_k (z_{k+1} − z_k)·m_k                              Vallender 1974
                    m_k ≥ |F(z_k) − G(z_k)|  for each step between neighbours z_k, z_{k+1}

    F(z) and G(z) are the shares of the two distributions' mass up to z; at least their difference crosses the
    step, one way or the other.

    Parameters
    ----------
    u_values, v_values : arrays, shapes (n,) and (m,)
        Places, in any order: int64 or `Fraction` (the distance is then exact), or float64; up to 10³⁰⁰.
    u_weights, v_weights : arrays, shapes (n,) and (m,), optional
        The mass at each place, at least 0, of any sum above 0. Default: 1 everywhere.

    Raises
    ------
    ValueError
        If an argument is malformed, or a distribution has no mass.

    Examples
    --------
    >>> model = WassersteinDistance([0, 1, 3], [5, 6, 8])
    >>> model.certificate([5]).optimal
    True
    >>> model.certificate([6]).gap
    1
    """

    u_values: ArrayLike
    v_values: ArrayLike
    u_weights: ArrayLike | None = None
    v_weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        for side in "uv":
            values = door.data(f"{side}_values", getattr(self, f"{side}_values"))
            given = getattr(self, f"{side}_weights")
            weights = None if given is None else door.data(f"{side}_weights", given)
            if not values.size:
                raise ValueError(f"{side}_values is empty: a distribution has at least one place")
            if values.dtype.kind == "f" and rounding.reach(values) > door.LARGEST:
                raise ValueError(f"{side}_values has places beyond 1e300")
            if weights is not None:
                if weights.shape != values.shape:
                    raise ValueError(
                        f"{side}_weights has shape {weights.shape}, {side}_values {values.shape}"
                    )
                wrong = np.flatnonzero(weights < 0)
                if wrong.size:
                    raise ValueError(
                        f"{side}_weights[{wrong[0]}] is {weights[wrong[0]]}: no weight is negative"
                    )
                if not np.any(weights > 0):
                    raise ValueError(f"{side}_weights are all 0: a distribution has some mass")
            object.__setattr__(self, f"{side}_values", values)
            object.__setattr__(self, f"{side}_weights", weights)

    @property
    def masses(self) -> tuple[Array, Array]:
        """The weights of both distributions as whole numbers, each over a unit of its own."""
        both = (self.u_values, self.u_weights), (self.v_values, self.v_weights)
        u, v = (
            np.ones(np.size(x), np.int64) if w is None else scaled([np.asarray(w)]).number for x, w in both
        )
        return u, v

    @cached_property
    def steps(self) -> tuple[Array, Array, int]:
        """The lengths of the steps between neighbours; what crosses each, as whole numbers over a unit."""
        u, v = self.masses
        held = int(exact.total(u)), int(exact.total(v))
        if not exact.fits(held[0] * held[1]):
            u, v = u.astype(object), v.astype(object)
        order, z = self._line
        crossing = np.cumsum(np.concatenate([u * held[1], v * -held[0]])[order])[:-1]
        return exact.difference(z[1:], z[:-1]), crossing, held[0] * held[1]

    @cached_property
    def _line(self) -> tuple[Array, Array]:
        """The order of all places, and the places in this order."""
        places = exact.comparable(np.asarray(self.u_values), np.asarray(self.v_values))
        if object in (places[0].dtype, places[1].dtype):
            places = exact.fractions(places[0]), exact.fractions(places[1])
        z = np.concatenate(places)
        order = np.argsort(z)
        return order, z[order]

    @cached_property
    def least(self) -> tuple[Number, float]:
        """The distance, and a bound on its rounding.

        It is exact unless places are floats, and also if the bound is too wide to prove anything, as for a
        short way on a long line. Lengths and shares are rounded a few times, and so are their products.
        """
        z = self._line[1]
        if exact.is_exact(z):
            return self._exactly, 0.0
        shares, wrong = self._shares
        lengths = z[1:] - z[:-1]
        total, whole = float((lengths * np.abs(shares)).sum()), float(lengths.sum())
        lost = lengths.size * rounding.LEAST if whole else 0.0
        error = rounding.of_total(lengths.size, total) + 2 * wrong * whole + lost
        proves = error <= FLOAT_TOLERANCE / 8 * max(self._unit, total)
        return (total, error) if proves else (self._exactly, 0.0)

    @cached_property
    def _exactly(self) -> int | Fraction:
        """The distance without rounding; a float is a fraction."""
        (_, z), (_, crossing, unit) = self._line, self.steps
        z = z if exact.is_exact(z) else exact.fractions(z)
        found = Fraction(exact.dot(exact.difference(z[1:], z[:-1]), np.abs(crossing))) / unit
        return found.numerator if found.denominator == 1 else found

    @property
    def _shares(self) -> tuple[Array, float]:
        """What crosses each step, as floats with up to three roundings; and by how much more it is wrong.

        Weights in floats count as multiples of 2⁻⁶⁰ of their sum, so that their running sums are exact.
        """
        sides = []
        for values, given in ((self.u_values, self.u_weights), (self.v_values, self.v_weights)):
            weights = np.ones(np.size(values), np.int64) if given is None else np.asarray(given)
            total = exact.as_float(exact.total(weights))
            if weights.dtype == object or not total < INFINITY:
                break
            sides.append((weights / total * 2.0**60).astype(np.int64))
        else:
            if any(np.asarray(part).dtype.kind == "f" for part in (self.u_weights, self.v_weights)):
                order, count = self._line[0], sides[0].size + sides[1].size
                crossing = np.cumsum(np.concatenate([sides[0], -sides[1]])[order])[:-1]
                return crossing / 2.0**60, 2 * rounding.of_total(count, 1.0) + count * 2.0**-60
        _, crossing, unit = self.steps
        if crossing.dtype == object:  # Python divides integers of any size
            return np.array([part / unit for part in crossing.tolist()]), 0.0
        return np.asarray(crossing / unit), 0.0

    def program(self) -> Program:
        """The program above; d comes first."""
        lengths, crossing, unit = self.steps
        n = lengths.size
        entries = np.zeros(n + 1, np.int64), np.arange(n + 1), np.append(1, -lengths)
        least = exact.objects((Fraction(abs(part), unit) for part in crossing.tolist()), (n,))
        return Program(
            "WassersteinDistance",
            [Block("distance", (1,), -INFINITY, INFINITY), Block("crossing", (n,), least, INFINITY)],
            [rows_of("moves", (1, n + 1), entries, 0.0, INFINITY)],
            [Term("linear", np.zeros(1, np.int64))],
        )

    def row_prices(self, witness: Witness) -> Array:  # noqa: ARG002
        """The one row's price."""
        return np.ones(1, np.int64)

    def variables(self, x: Any) -> Array:
        """An answer as all variables of the program."""
        _, crossing, unit = self.steps
        shares = [Fraction(abs(part), unit) for part in crossing.tolist()]
        return exact.objects([*door.answer(x, (1,), integer=False).tolist(), *shares], (1 + crossing.size,))

    def objective(self, x: Any) -> Number:
        """The distance claimed."""
        claimed: Number = door.answer(x, (1,), integer=False).tolist()[0]
        return claimed

    def violations(self, x: Any) -> list[str]:
        """A distance below the cost of moving what must cross each step (in floats, by a tolerance)."""
        claimed, least, allowed = self.objective(x), *self._allowed(x)
        short = Fraction(least) - Fraction(claimed) > Fraction(allowed)
        return [f"moves: x[0] = {claimed}, and all moves cost {least}"] if short else []

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """What must cross each step of the line; time of a sort.

        Exact if the answer is no float, or the places are not: weights in floats are fractions. Otherwise
        lengths and weights are rounded, with a bound on the error (`least`). Needs no
        witness: the potentials that prove the bound rise from neighbour to neighbour by the length of the
        step where F > G, and fall by it where F < G.

        Parameters
        ----------
        x : array, shape (1,)
            The distance. In floats it may be too small by `FLOAT_TOLERANCE` of itself, or of the line's
            length if that is more, but at most of 1.
        witness : mapping, optional
            Unused.
        """
        claimed = self.objective(x)
        if broken := self.violations(x):
            return infeasible(claimed, broken)
        if not isinstance(claimed, float):
            return judge(claimed, claimed - self._exactly, True, {}, LEFT)
        least, error = self.least
        if not isinstance(least, float):
            return judge_exactly(Fraction(claimed), least, False, {}, LEFT, self._unit)
        return judge(claimed, claimed - least, False, {}, LEFT, rounding.Rounding(error, self._unit))

    @property
    def _unit(self) -> float:
        """The length of the line, or 1 if that is less."""
        first, last = self._line[1][[0, -1]].tolist()
        return min(1.0, exact.as_float(last - first))

    def _allowed(self, x: Any) -> tuple[Number, float]:
        """The distance, and by how much an answer may be less."""
        claimed = self.objective(x)
        if not isinstance(claimed, float):
            return self._exactly, 0.0
        least, error = self.least
        return least, FLOAT_TOLERANCE * max(self._unit, claimed) + error

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Whole places and floats, with and without weights of both kinds, some 0."""
        sides = []
        for _ in range(2):
            values = random_noisy(rng, (max(1, size // 2),))
            weights = [None, *np.maximum([[1], [0]], rng.integers(-1, 5, (2, values.size)))]
            kind = int(rng.integers(3))
            sides.append((values / 7 if rng.random() < 0.3 else values, weights[kind]))
            if kind == 2:
                sides[-1] = sides[-1][0], (weights[2] + (weights[2].sum() == 0)) / 3
        (u, a), (v, b) = sides
        return cls(u, v, a, b)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int) -> Self:
        """Two samples of normal distributions."""
        return cls(rng.normal(0, 10, max(1, size // 2)), rng.normal(1, 12, max(1, size // 2)))
