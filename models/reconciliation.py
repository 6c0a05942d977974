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
from scipy.sparse.linalg import lsqr

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Flags, Floats, Ints, read_only
from models.check.checker import Structure
from models.model import ByProgram
from models.programs.costs import Absolute, Linear, Square
from models.programs.operators import Each, Sparse, Spread
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows

ROUNDS = 5
"""How often forecasts in floats are moved at most, so that sums keep their bounds."""


@dataclass(frozen=True, eq=False)
class Reconciliation(ByProgram):
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
    >>> proof = model.certificate([9, 5, 4], {"sums": [-2]})
    >>> proof.optimal, proof.objective
    (True, 3)
    >>> model.certificate([10, 6, 4], {"sums": [-2]}).gap
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
        base = door.data("base", self.base)
        weights = np.ones(base.shape, np.int64) if self.weights is None else self.weights
        weights = door.data("weights", weights)
        if weights.shape != base.shape:
            raise ValueError(f"weights have shape {weights.shape}; there are {base.size} series")
        wrong = np.flatnonzero(weights <= 0)
        if wrong.size:
            raise ValueError(f"weights[{wrong[0]}] is {weights[wrong[0]]}: leave a series without weight out")
        links = door.data("aggregate", self.aggregate), door.data("part", self.part)
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
            if factors.ndim != 2 or len(factors) != base.size:
                raise ValueError(
                    f"factors have shape {factors.shape}; expected a row for each of the {base.size} series "
                    "and a column for each factor"
                )
            if not np.isfinite(factors).all():
                raise ValueError("factors must be finite")
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

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """Each aggregate less the sum of its parts; shape (aggregates, series)."""
        (aggregate, part), own = self.links, self.aggregates
        row = np.concatenate([np.arange(own.size), np.searchsorted(own, aggregate)])
        entries = np.repeat([1.0, -1.0], [own.size, part.size]), (row, np.concatenate([own, part]))
        return scipy.sparse.csr_matrix(entries, (own.size, self.data[0].size))

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
        """The program above. A price for the sum of each aggregate proves an answer.

        Over the reals there are such prices for every optimal answer; over whole numbers too if the hierarchy
        is a tree, as its matrix is totally unimodular. With p = ∞ and with `factors`, further rows have
        prices: each change from below and from above, and each error.
        """
        base, weights = self.data
        n, named = base.size, ("series {}, less the sum of its parts,", self.aggregates)
        sums = Rows("sums", {"x": Sparse(self.matrix, *named)}, 0, 0)
        x = Block("x", (n,), *self.bounds, self.integer)
        if self.factors is not None:
            shared, none = np.asarray(self.factors), np.zeros(n, np.int64)
            split = {"x": Each((n,)), "shared": Sparse(-shared), "own": Each((n,), -1)}
            count = shared.shape[1]
            errors = [
                Block("shared", (count,), -INFINITY, cost=Square(np.zeros(count, np.int64))),
                Block("own", (n,), -INFINITY, cost=Square(none, weights)),
            ]
            return Program("Reconciliation", [x, *errors], [Rows("errors", split, base, base), sums])
        if self.p != math.inf:
            cost = (Square if self.p == 2 else Absolute)(base, weights)
            return Program("Reconciliation", [replace(x, cost=cost)], [sums])
        change = Sparse(scipy.sparse.diags(exact.floats(weights)))
        given, all_ = exact.fractions(weights) * exact.fractions(base), np.array([0, n])
        below = Rows("below", {"x": change, "distance": Spread(all_, -1)}, -INFINITY, given)
        above = Rows("above", {"x": change, "distance": Spread(all_)}, given, INFINITY)
        return Program("Reconciliation", [x, Block("distance", (1,), cost=Linear(1))], [below, above, sums])

    def auxiliary(self, x: Array) -> dict[str, Array]:
        """With p = ∞, the largest change; with `factors`, the least costly errors that give x."""
        base, weights = self.data
        if self.factors is not None:
            factors, heavy = np.asarray(self.factors), exact.floats(weights)
            away = exact.floats(x) - exact.floats(base)
            system = np.eye(factors.shape[1]) + factors.T @ (heavy[:, None] * factors)
            shared = np.linalg.solve(system, factors.T @ (heavy * away))
            if not exact.is_exact(x):
                return {"shared": shared, "own": away - factors @ shared}
            of_shared = Sparse(factors).apply(exact.fractions(shared))
            return {"shared": shared, "own": exact.fractions(x) - exact.fractions(base) - of_shared}
        if self.p != math.inf:
            return {}
        changes = exact.fractions(weights) * np.abs(exact.fractions(x) - exact.fractions(base))
        largest = max(changes.tolist(), default=0)
        held = largest if exact.is_exact(x) else exact.float_above(Fraction(largest))
        return {"distance": door.numbers("the largest change", [held])}

    def repaired(self, x: Floats) -> Floats:
        """Series of the bottom within their bounds, and their sums.

        Where the bounds of sums are broken by more than rounding, those of the bottom move, by least squares.
        """
        lower, upper = map(exact.floats, self.bounds)
        bottom, rounded = np.flatnonzero(self.bottom), np.zeros(x.size)
        size = abs(self.matrix)
        x = self.summed(np.clip(x, lower, upper))
        for left in range(ROUNDS, -1, -1):
            short = np.clip(x, lower, upper) - x
            rounded[self.aggregates] = 2.0**-48 * (size @ np.abs(x))
            broken = np.flatnonzero(np.abs(short) > rounded)
            free = np.flatnonzero(((x > lower) & (x < upper))[bottom])
            if not (left and broken.size and free.size):
                break
            parts = self.members[free][:, broken].T
            x[bottom[free]] += lsqr(parts, short[broken], atol=1e-15, btol=1e-15)[0]
            x = self.summed(np.clip(x, lower, upper))
        return np.where(np.abs(short) <= rounded, x + short, x)

    def within(self, values: dict[str, Array]) -> Structure:
        """Series without a cost of their own get bounds that all answers keep that are not far worse.

        Without these, the least error in prices would prove nothing.
        """
        (x, *others), rows = self._structure
        if x.cost is not None:
            return self._structure
        base, weights = self.data
        costs: list[Any] = [block.cost and block.cost.value(values[block.name]) for block in others]
        heavy, cost = exact.floats(weights), 2 * exact.as_float(sum(costs)) + 1
        if self.factors is None:
            reach = (cost + float((heavy * np.abs(exact.floats(base))).max(initial=0.0))) / heavy
        else:  # |x_i − y_i|² is at most the variance of its error times the cost
            variance = 1 / heavy + (np.asarray(self.factors) ** 2).sum(axis=1)
            reach = 2 * np.sqrt(variance * cost)
        lower, upper = (side.astype(object) for side in self.bounds)
        center, reach = exact.fractions(base), exact.fractions(reach)
        x = replace(x, lower=np.maximum(lower, center - reach), upper=np.minimum(upper, center + reach))
        return [x, *others], rows

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
    side = door.sides(name, missing if given is None else given)
    if side.ndim == 0:
        side = np.broadcast_to(side, shape)
    if side.shape != shape:
        raise ValueError(f"{name} has shape {side.shape}; there are {shape[0]} series")
    return side
