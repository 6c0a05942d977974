"""Forecasts made to add up, nearest to the given ones: along a tree, or along several crossed hierarchies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional, tolerance_for
from models.arithmetic.arrays import Array, Flags, Floats, Ints, read_only
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Kind, Term, rows_of
from models.witnesses.arrays import entry
from models.witnesses.program_certificate import lagrangian_certificate


@dataclass(frozen=True, eq=False)
class Reconciliation:
    """Coherent forecasts within bounds, nearest to base forecasts in weighted squares or absolute changes.

        minimize    Σ_i w_i |x_i − y_i|^p                Wickramasuriya, Turlach & Hyndman 2020, (4), with
                    or max_i w_i |x_i − y_i| if p is ∞   a diagonal matrix of weights
        subject to  x_a = Σ_{i part of a} x_i
                    for each aggregate a,
                    lower ≤ x ≤ upper, and whole if `integer`

    With `factors` F, errors have the covariance ``W = diag(1/w) + F Fᵀ``, and (x − y)ᵀ W⁻¹ (x − y) is
    minimized, in floats. As a program: Σ w_i u_i² + Σ z_k² with x − y = u + F z.

    A series may be part of several aggregates (a region's total and a purpose's), and an aggregate may be
    part of others. `NonNegativeInference` is the same problem along one tree, without upper bounds, and far
    faster for many series.

    Parameters
    ----------
    base : array, shape (series,)
        Base forecasts y of either sign.
    aggregate, part : int arrays, shape (links,)
        Series ``part[k]`` is part of series ``aggregate[k]``.
    weights : array, shape (series,), optional
        Positive; for least squares, the inverse of the variance of each forecast's error. Default: 1.
    lower, upper : array, shape () or (series,), optional
        Bounds, which may be infinite. Where both are equal, a series is fixed. Default: 0 and infinity.
    integer : bool
    p : 1, 2 or infinity
    factors : float array, shape (series, factors), optional
        Only with p = 2, over the reals.

    Raises
    ------
    ValueError
        If a shape does not fit, a weight is not positive, a lower bound is above its upper bound, a link is
        repeated, or a series is part of itself.

    Examples
    --------
    A total and two parts, whose forecasts do not add up:

    >>> model = Reconciliation([10, 4, 3], aggregate=[0, 0], part=[1, 2])
    >>> proof = model.certificate([9, 5, 4], {"prices": [-2]})
    >>> proof.optimal, proof.objective
    (True, 3)
    >>> model.certificate([10, 6, 4], {"prices": [-2]}).gap
    2
    """

    base: ArrayLike
    aggregate: ArrayLike
    part: ArrayLike
    weights: ArrayLike | None = None
    lower: ArrayLike = 0
    upper: ArrayLike | None = None
    integer: bool = False
    p: float = 2
    factors: ArrayLike | None = None

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "integer": {"integer": True}}
    random_up_to: ClassVar[int] = 1_000

    def __post_init__(self) -> None:
        base = exact.as_data("base", self.base)
        weights = np.ones(base.shape, np.int64) if self.weights is None else self.weights
        weights = exact.as_data("weights", weights)
        if weights.shape != base.shape:
            raise ValueError(f"weights have shape {weights.shape}; there are {base.size} series")
        wrong = np.flatnonzero(weights <= 0)
        if wrong.size:
            raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: leave a series without weight out")
        links = exact.as_data("aggregate", self.aggregate), exact.as_data("part", self.part)
        for name, ends in zip(("aggregate", "part"), links, strict=True):
            if ends.dtype != np.int64 or ends.shape != links[0].shape:
                raise ValueError(f"{name} must be integers, one for each link")
            wrong = np.flatnonzero((ends < 0) | (ends >= base.size))
            if wrong.size:
                raise ValueError(f"{name}[{wrong[0]}] is {ends[wrong[0]]}: series are 0 … {base.size - 1}")
        if self.p not in (1, 2, math.inf):
            raise ValueError(f"p must be 1, 2 or infinity, got {self.p!r}")
        if self.p == math.inf and np.any(weights.astype(float).astype(object) != weights):
            raise ValueError("with p = infinity, weights must be numbers that floats hold")
        if self.factors is not None:
            factors = np.array(self.factors, float)
            if factors.ndim != 2 or len(factors) != base.size or not np.isfinite(factors).all():
                raise ValueError(f"factors must be finite, with a row for each of the {base.size} series")
            if self.p != 2 or self.integer:
                raise ValueError("factors need p = 2 and forecasts that need not be whole")
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                own = 1 / exact.floats(weights)
                held = factors.T @ (factors / own[:, None]), own + (factors**2).sum(axis=1)
            if not all(np.isfinite(part).all() for part in held):
                raise ValueError("the squares of factors, or variances, pass what floats hold")
            object.__setattr__(self, "factors", read_only(factors))
        for name, value in zip(("aggregate", "part"), links, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "lower", _side("lower", self.lower, base.shape))
        object.__setattr__(self, "upper", _side("upper", self.upper, base.shape))
        lower, upper = self.bounds
        crossed = np.flatnonzero(lower > upper)
        if crossed.size:
            i = crossed[0]
            raise ValueError(f"series {i}: the lower bound {lower[i]} is above the upper bound {upper[i]}")
        pairs = links[0] * base.size + links[1]
        if np.unique(pairs).size < pairs.size:
            a, i = divmod(int(np.sort(pairs)[:-1][np.diff(np.sort(pairs)) == 0][0]), base.size)
            raise ValueError(f"series {i} is part of series {a} twice")
        _ = self.height

    @property
    def data(self) -> tuple[Array, Array]:
        """``(base, weights)``, shape (series,) each."""
        return np.asarray(self.base), np.asarray(self.weights)

    @property
    def links(self) -> tuple[Ints, Ints]:
        """``(aggregate, part)``."""
        return np.asarray(self.aggregate), np.asarray(self.part)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """``(lower, upper)``, shape (series,) each."""
        return np.asarray(self.lower), np.asarray(self.upper)

    @cached_property
    def height(self) -> Ints:
        """The longest chain of parts below each series, shape (series,): 0 at the bottom.

        Raises
        ------
        ValueError
            If a series is part of itself.
        """
        aggregate, part = self.links
        height = np.zeros(self.data[0].size, np.int64)
        for _ in range(self.aggregates.size + 1):
            taller = height.copy()
            np.maximum.at(taller, aggregate, height[part] + 1)
            if np.array_equal(taller, height):
                return height
            height = taller
        raise ValueError(f"series {int(height.argmax())} is part of itself, by way of others")

    @cached_property
    def aggregates(self) -> Ints:
        """The series that have parts, in order: one row of the program each."""
        return np.unique(self.links[0])

    @property
    def bottom(self) -> Flags:
        """Which series have no parts."""
        return np.asarray(self.height == 0)

    @property
    def always_proved(self) -> bool:
        """Over the reals, along trees, and where two trees cross; other whole forecasts are rounded."""
        return not self.integer or self.network is not None

    @cached_property
    def members(self) -> Any:
        """How often each series of the bottom is in each series; sparse, shape (bottom, series)."""
        aggregate, part = self.links
        n = self.data[0].size
        up = scipy.sparse.csr_matrix((np.ones(part.size), (part, aggregate)), (n, n))
        found = step = scipy.sparse.identity(n, format="csr")[np.flatnonzero(self.bottom)]
        for _ in range(int(self.height.max(initial=0))):
            step = step @ up
            found = found + step
        return found

    @cached_property
    def network(self) -> tuple[Ints, Ints] | None:
        """The ends of each series as an arc, ``(tail, head)``, if coherent forecasts are flows; else None.

        They are if the aggregates are two families, in each of which two aggregates that share series are
        one inside the other: two trees that cross. Node 0 is the roots of both; each aggregate has a node.
        A unit of a series of the bottom goes from node 0 through its aggregates of the first family, from the
        largest to the smallest, through the series itself, and through those of the second family back.
        """
        own, bottom = self.aggregates, np.flatnonzero(self.bottom)
        node, tail, head = np.zeros((3, self.data[0].size), np.int64)
        if not own.size:
            return tail, head
        inside = self.members[:, own]
        if np.any(inside.data > 1):
            return None
        size = np.asarray(inside.sum(axis=0)).ravel()
        shared = (inside.T @ inside).tocoo()
        cross = shared.data < np.minimum(size[shared.row], size[shared.col])
        pairs = shared.row[cross], shared.col[cross]
        graph = scipy.sparse.csr_matrix((shared.data[cross], pairs), shared.shape)
        _, piece = scipy.sparse.csgraph.connected_components(graph)
        roots = np.unique(piece, return_index=True)[1]
        away = scipy.sparse.csgraph.dijkstra(graph, indices=roots, unweighted=True, min_only=True)
        second = away % 2 == 1
        if np.any(second[pairs[0]] == second[pairs[1]]):
            return None
        node[own] = 1 + np.arange(own.size)
        for family, outer, inner in ((~second, tail, head), (second, head, tail)):
            inner[own[family]] = node[own[family]]
            row, column = inside[:, np.flatnonzero(family)].nonzero()
            order = np.lexsort([column, -size[family][column], row])
            row, above = row[order], own[family][column[order]]
            same = np.flatnonzero(row[1:] == row[:-1])
            outer[above[same + 1]] = node[above[same]]
            outer[bottom[row]] = node[above]  # the last and smallest one stays
        return tail, head

    def summed(self, x: Array) -> Array:
        """All series as sums of those at the bottom, shape (series, ...); others in x are ignored."""
        x = x.copy()
        aggregate, part = self.links
        for level in range(1, int(self.height.max(initial=0)) + 1):
            x[self.height == level] = 0
            here = self.height[aggregate] == level
            np.add.at(x, aggregate[here], x[part[here]])
        return x

    def program(self) -> Program:
        """The program above."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        base, weights = self.data
        aggregate, part = self.links
        rows = self.aggregates
        entries = (
            np.concatenate([np.arange(rows.size), np.searchsorted(rows, aggregate)]),
            np.concatenate([rows, part]),
            np.repeat([1.0, -1.0], [rows.size, part.size]),
        )
        zero = np.zeros(rows.size, np.int64)
        n, each = base.size, np.arange(base.size)
        x = Block("x", (n,), *self.bounds, self.integer)
        if self.factors is not None:
            shared = np.asarray(self.factors)
            series, factor = shared.nonzero()
            count = shared.shape[1]
            split = (
                np.concatenate([each, series, each]),
                np.concatenate([each, n + factor, n + count + each]),
                np.concatenate([np.ones(n), -shared[series, factor], -np.ones(n)]),
            )
            width = 2 * n + count
            blocks = [x, *(Block(name, (m,), -INFINITY) for name, m in (("shared", count), ("own", n)))]
            rows_ = [rows_of("errors", (n, width), split, base, base),
                     rows_of("sums", (rows.size, width), entries, zero, zero)]  # fmt: skip
            squares = [Term("quadratic", n + np.arange(count)), Term("quadratic", n + count + each, weights)]
            return Program("Reconciliation", blocks, rows_, squares)
        largest = self.p == math.inf
        sums = rows_of("sums", (rows.size, n + largest), entries, zero, zero)
        if not largest:
            kind: Kind = "quadratic" if self.p == 2 else "absolute"
            return Program("Reconciliation", [x], [sums], [Term(kind, each, weights, base)])
        beside = np.tile(each, 2), np.concatenate([each, np.full(n, n)])
        furthest = exact.fractions(weights) * exact.fractions(base)
        below, above = (
            rows_of(name, (n, n + 1), (*beside, np.concatenate([weights, np.full(n, sign)])), *sides)
            for name, sign, *sides in (("below", -1, -INFINITY, furthest), ("above", 1, furthest, INFINITY))
        )
        distance = Block("distance", (1,), 0, INFINITY)
        return Program("Reconciliation", [x, distance], [below, above, sums], [Term("linear", np.array([n]))])

    def _within(self, objective: Number) -> Program:
        """The program with bounds that all answers keep whose objective is not far above the one given.

        So the bound by any prices is at most the optimum, or is far above that objective, which no answer
        that keeps all rows then has. Without these bounds, the least error in prices of series without costs
        of their own would prove nothing.
        """
        base, weights = map(exact.fractions, self.data)
        if self.factors is None:
            reach = (2 * Fraction(objective) + max((weights * np.abs(base)).tolist()) + 1) / weights
        else:
            # |x_i − y_i|² is at most W_ii times the objective.
            variances = 1 / exact.floats(self.data[1]) + (np.asarray(self.factors) ** 2).sum(axis=1)
            reach = exact.fractions(2 * np.sqrt(variances) * math.sqrt(2 * float(objective) + 1))
        lower, upper = (side.astype(object) for side in self.bounds)
        lower, upper = np.maximum(lower, base - reach), np.minimum(upper, base + reach)
        x, *others = self._program.blocks
        return replace(self._program, blocks=[replace(x, lower=lower, upper=upper), *others])

    def row_prices(self, witness: Witness) -> Array:
        """The witness is prices of the program's rows."""
        return np.asarray(witness["prices"])

    def from_row_prices(self, _: Any, prices: Array) -> Witness:
        """The reverse of `row_prices`."""
        return {"prices": prices}

    def variables(self, x: Any) -> Array:
        """An answer as all variables of the program: also its largest change, or its errors by factors."""
        at: Array = self._answer(x)
        if self.factors is not None:
            return np.concatenate([exact.floats(at), *self._errors(at)])
        if self.p != math.inf:
            return at
        base, weights, exactly = map(exact.fractions, (*self.data, at))
        largest = max((weights * np.abs(exactly - base)).tolist(), default=Fraction(0))
        return exact.joined(at, largest if exact.is_exact(at) else exact.float_above(largest))

    def _errors(self, x: Array) -> tuple[Floats, Floats]:
        """The least costly errors of the factors and of each series that give x."""
        away, weights = exact.floats(x) - exact.floats(self.data[0]), exact.floats(self.data[1])
        factors = np.asarray(self.factors)
        system = np.eye(factors.shape[1]) + factors.T @ (weights[:, None] * factors)
        shared = np.linalg.solve(system, factors.T @ (weights * away))
        return shared, away - factors @ shared

    def relaxed(self) -> Self | None:
        """The same over the reals."""
        return replace(self, integer=False) if self.integer else None

    def objective(self, x: Any) -> Number:
        """Σ w |x − y|^p; an `int` or a `Fraction` if data and answer are exact."""
        base, weights = self.data
        x = self._answer(x)
        if self.factors is not None:
            shared, own = self._errors(x)
            return float(exact.floats(weights) @ own**2 + shared @ shared)
        if self.p != math.inf:
            return distance(x, base, int(self.p), weights)
        if all(map(exact.is_exact, (x, base, weights))):
            away = np.abs(exact.difference(x, base))
            largest: Number = max((exact.widened(weights, exact.reach(away)) * away).tolist(), default=0)
            return largest
        with np.errstate(over="ignore"):
            away = np.abs(exact.floats(x) - exact.floats(base))
            return float((exact.floats(weights) * away).max(initial=0.0))

    def violations(self, x: Any) -> list[str]:
        """Series that are not whole, out of bounds, or not the sum of their parts."""
        x = self._answer(x)
        slack = 0 if self.integer else tolerance_for(x, self.data[0])
        found = list(fractional(x)) if self.integer else []
        lower, upper = self.bounds
        (low, at), (high, _) = exact.comparable(lower, x), exact.comparable(upper, x)
        for i in np.flatnonzero((at < low - slack) | (at > high + slack)):
            found.append(f"bounds: series {i} is {x[i]}, not in {lower[i]} … {upper[i]}")
        aggregate, part = self.links
        x = exact.widened(x, x.size)
        held = np.zeros(x.shape, x.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(held, aggregate, x[part])
        for a in self.aggregates[np.abs(held - x)[self.aggregates] > slack]:
            found.append(f"sums: the parts of series {a} sum to {held[a]}, not {x[a]}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A price λ for the sum of each aggregate; exact, for any prices.

        With the charge c_i = Σ_{a has the part i} λ_a − λ_i on each unit of series i, where λ_i is 0 at the
        bottom,

            bound  =  Σ_i min over lower ≤ z ≤ upper (whole if `integer`) of ( w |z − y|^p + c z ).

        It is computed without rounding (`models.lagrangian_bound`). Over the reals some prices reach the
        optimum; over whole numbers too, if the hierarchy is a tree: its matrix is totally unimodular.
        Without a witness all prices are 0; `solvers.prove` finds others.

        Parameters
        ----------
        x : array, shape (series,)
            In floats, bounds and sums may be broken by a tolerance.
        witness : mapping, optional
            ``prices``, shape (aggregates,), in the order of the aggregates' numbers. With p = ∞, those of
            the program's rows: each change from below and from above, shape (series,), come first. So do
            those of each error with `factors`.
        """
        x = self._answer(x)
        objective, broken = self.objective(x), self.violations(x)
        if not objective < INFINITY:
            broken.append("x: costs pass what floats hold")
        if broken:
            return infeasible(objective, broken)
        prices = entry(witness, "prices")
        prices = np.zeros(self._program.matrix.shape[0], np.int64) if prices is None else np.asarray(prices)
        at = self.variables(x)
        separable = self.p != math.inf and self.factors is None
        program = self._program if separable else self._within(objective)
        proof = lagrangian_certificate(program, at, prices)
        reason = proof.reason if proof.optimal or proof.bound is None else LEFT
        if self.factors is None and exact.is_exact(x) and all(map(exact.is_exact, self.data)):
            return replace(proof, reason=reason)
        bound, gap = proof.bound, proof.gap
        if bound is not None and gap is not None and gap < INFINITY:
            bound, gap = exact.float_below(Fraction(bound)), exact.float_above(Fraction(gap))
        cost = exact.as_float(proof.objective)
        return replace(proof, objective=cost, bound=bound, gap=gap, reason=reason)

    def _answer(self, x: Any) -> Array:
        return answer_of(x, self.data[0].shape, self.integer)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees and crossed hierarchies; all or none of the series bounded, some of them fixed."""
        bottom = max(1, size // 2)
        groups = [rng.integers(0, max(1, bottom // 2), bottom) for _ in range(int(rng.integers(0, 3)))]
        aggregate, part, series = [], [], bottom
        for group in groups:
            numbers = np.unique(group, return_inverse=True)[1]
            aggregate.append(series + numbers)
            part.append(np.arange(bottom))
            series += int(numbers.max()) + 1
        aggregate.append(np.full(bottom if not groups else numbers.max() + 1, series))
        part.append(np.arange(bottom if not groups else series - bottom)[-aggregate[-1].size :])
        if groups:
            part[-1] = np.arange(series - aggregate[-1].size, series)
        links = np.concatenate(aggregate), np.concatenate(part)
        series += 1
        true: Array = rng.integers(0, int(rng.choice([2, 4, 100])), series)
        integer = bool(rng.random() < 0.5)
        plain = cls(np.zeros(series), *links)
        true = plain.summed(true)
        base: Array = true + rng.integers(-3, 4, series)
        weights: Any = rng.integers(1, 5, series)
        if not integer and rng.random() < 0.5:
            base = base + rng.normal(size=series)
            weights = rng.choice([0.05, 1.0, 7.5], series)
        upper = true + rng.integers(0, 4, series) if rng.random() < 0.5 else INFINITY
        lower = np.zeros(series, np.int64)
        if rng.random() < 0.3:
            fixed = rng.random(series) < 0.3
            lower, upper = np.where(fixed, true, lower), np.where(fixed, true, upper)
        return cls(base, *links, weights, lower, upper, integer)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, integer: bool = False) -> Self:
        """A product by place table with 80 % zeros, and the sums of both: two crossed hierarchies."""
        places = max(2, round(size**0.5))
        products = max(2, size // places)
        true = rng.poisson(rng.lognormal(1, 1, (places, products))) * (rng.random((places, products)) < 0.2)
        cells = places * products
        at = np.arange(cells)
        aggregate = np.concatenate([cells + at // products, cells + places + at % products])
        top = np.full(places, cells + places + products)
        links = np.concatenate([aggregate, top]), np.concatenate([at, at, cells + np.arange(places)])
        series = cells + places + products + 1
        plain = cls(np.zeros(series), *links)
        full = plain.summed(np.concatenate([true.ravel(), np.zeros(series - cells, np.int64)]))
        base = np.rint(full + rng.normal(size=series) * np.sqrt(1 + full)).astype(np.int64)
        return cls(base, *links, integer=integer)


def _side(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Bounds as an array of numbers, infinite where there are none.

    Raises `ValueError` if they have a wrong shape, or one is not a number.
    """
    missing = -INFINITY if name == "lower" else INFINITY
    side = exact.as_given(missing if given is None else given)
    if side.ndim == 0:
        side = np.broadcast_to(side, shape)
    if side.shape != shape:
        raise ValueError(f"{name} has shape {side.shape}; there are {shape[0]} series")
    if side.dtype != object:
        if side.dtype.kind not in "iuf" or np.isnan(side).any():
            raise ValueError(f"{name} must be numbers, or infinite where there is no bound")
        side = side.astype(np.float64) if side.dtype.kind == "f" else exact.signed(side)
    side = np.array(side)
    side.flags.writeable = False
    return side
