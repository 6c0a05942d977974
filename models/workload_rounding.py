"""Whole histograms of one parent's children next to fractional ones, with the least change of their sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness, infeasible, judge
from models.children import LATER, OfChildren, bounds_of, first_unproved, rule_name
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.synthetic import heavy_tailed
from models.witnesses.arrays import entry
from models.witnesses.scaled import Scaled, divided, finite, minus, numbers, plus, raised, scaled, times
from models.workload import Workload


@dataclass(frozen=True, eq=False)
class WorkloadRounding(OfChildren):
    """Whole histograms of the children of one region, next to fractional ones.

        minimize    Σ_c Σ_q w_q ‖Q_q (z_c − x_c)‖₁        step 2 of TopDown (Abowd et al. 2022):
        subject to  ⌊x⌋ ≤ z ≤ ⌈x⌉,  z whole,              controlled rounding
                    Σ_c z_c = parent,
                    lower_c ≤ R z_c ≤ upper_c

    x_c is the fractional histogram of child c, Q_q a query of it, and R holds further sums whose values are
    public (where lower = upper) or bounded. Structural zeros are zeros of x.

    Parameters
    ----------
    workload : Workload
        The queries Q.
    values : array, shape (children, cells)
        x: floats, whole numbers or Fractions; at least one child.
    weights : array, shape (queries,), optional
        w ≥ 0; by default 1.
    parent : array of int, shape (cells,) or (problems, cells), optional
        The sum of the children's histograms.
    rules : Workload, optional
        The sums R, over the same attributes.
    lower, upper : arrays, shape (rules.size,) or (children, rules.size), optional
        Their bounds: whole, or infinite if there is none. Default: no bounds.
    offsets : array of int, shape (problems + 1,), optional
        Problems of several parents side by side: the first child of each, then the number of children.

    Raises
    ------
    ValueError
        If a shape does not fit, or if no rounding can add up to the parent or satisfy a rule; the message
        names the cell, or the sum and the child. Other contradictions are left to the backends.

    Examples
    --------
    Two children whose cells are rounded so that their totals change least.

    >>> workload = Workload.marginals((2,), [(), (0,)])
    >>> model = WorkloadRounding(workload, [[0.5, 0.5], [0.5, 1.5]], weights=[2, 1], parent=[1, 2])
    >>> model.objective([[0, 1], [1, 1]]), model.objective([[0, 0], [1, 2]])
    (Fraction(2, 1), Fraction(6, 1))
    >>> witness = {"prices": [0, 0], "answers": [[0, 0, 0], [0, 0, 0]]}
    >>> model.certificate([[0, 1], [1, 1]], witness).optimal
    True
    """

    workload: Workload
    values: ArrayLike
    weights: ArrayLike | None = None
    parent: ArrayLike | None = None
    rules: Workload | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    offsets: ArrayLike | None = field(default=None, metadata=LATER)

    each_child: ClassVar[tuple[str, ...]] = ("values", "lower", "upper")
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "rules": {"rules": True}}

    def __post_init__(self) -> None:
        workload = self.workload
        values = exact.as_data("values", self.values, 2)
        if values.shape != (len(values), workload.cells) or not len(values):
            raise ValueError(
                f"values have shape {values.shape}; they need {workload.cells} cells for each child, and at "
                "least one child"
            )
        far = np.argwhere((values >= 2**62) | (values <= -(2**62)))
        if far.size:
            raise ValueError(f"values[{far[0][0]}, {far[0][1]}] is beyond 62 bits")
        object.__setattr__(self, "values", values)
        weights = np.ones(len(workload.queries), np.int64) if self.weights is None else self.weights
        weights = exact.as_data("weights", weights)
        if weights.shape != (len(workload.queries),):
            raise ValueError(f"weights have shape {weights.shape}; there are {len(workload.queries)} queries")
        wrong = np.flatnonzero(weights < 0)
        if wrong.size:
            raise ValueError(f"the weight of query {wrong[0]} is {weights[wrong[0]]}: under 0")
        object.__setattr__(self, "weights", weights)
        self.check_offsets()
        if self.parent is not None:
            self._check_parent()
        self._check_rules()

    def _check_parent(self) -> None:
        parent = exact.as_data("parent", self.parent, len(self.price_shape))
        if parent.shape != self.price_shape or parent.dtype != np.int64:
            needed = " × ".join(map(str, self.price_shape))
            raise ValueError(f"parent must be {needed} whole numbers, got shape {parent.shape}")
        object.__setattr__(self, "parent", parent)
        least, most = (self.by_problem(exact.widened(side, self.children)) for side in self.neighbours)
        for k, j in np.argwhere((self.parents < least) | (self.parents > most))[:1]:
            raise ValueError(
                f"{self.named_cell(k, j)}: the children round to sums of {least[k, j]} … {most[k, j]} only, "
                f"and the parent has {self.parents[k, j]}"
            )

    def _check_rules(self) -> None:
        given = bounds_of(self.rules, self.workload, self.children, (self.lower, self.upper), whole=True)
        for name, side in zip(("lower", "upper"), given, strict=True):
            object.__setattr__(self, name, side)
        if self.rules is None:
            return
        lower, upper = given
        least, most = (self.rules.answers(side) for side in self.neighbours)
        for c, i in np.argwhere((lower > upper) | (upper < least) | (lower > most))[:1]:
            raise ValueError(
                f"rules, child {c}, {rule_name(self.rules, i)}: the cells round to sums of {least[c, i]} … "
                f"{most[c, i]} only, and the sum must be in {lower[c, i]} … {upper[c, i]}"
            )

    @property
    def data(self) -> tuple[Array, Array]:
        """``(values, weights)``, shapes (children, cells) and (queries,)."""
        return np.asarray(self.values), np.asarray(self.weights)

    @cached_property
    def neighbours(self) -> tuple[Ints, Ints]:
        """``(⌊x⌋, ⌈x⌉)`` as int64 arrays, shape (children, cells)."""
        values = self.data[0]
        if values.dtype == object:
            floor = np.array([v // 1 for v in values.ravel().tolist()], np.int64).reshape(values.shape)
            return floor, floor + (values != floor)
        return np.floor(values).astype(np.int64), np.ceil(values).astype(np.int64)

    @cached_property
    def exact_values(self) -> Scaled:
        """The values over a common unit; ``number`` has the shape (children, cells)."""
        number, unit = scaled([self.data[0]])
        return Scaled(number.reshape(self.shape), unit)

    @cached_property
    def targets(self) -> Scaled:
        """The answers to the queries on x, exact; ``number`` has the shape (children, workload.size)."""
        number, unit = self.exact_values
        return Scaled(self.workload.answers(number), unit)

    @cached_property
    def costs(self) -> Scaled:
        """The weight of each answer; shape (workload.size,)."""
        number, unit = scaled([self.data[1]])
        return Scaled(self.workload.by_answer(number), unit)

    @cached_property
    def _measured(self) -> Ints:
        """The positions, among all children's answers, of those with a positive weight."""
        return np.flatnonzero(np.tile(self.costs.number > 0, self.children))

    def program(self) -> Program:
        """The program above, with a whole variable for each answer with a positive weight."""
        number, unit = self.targets
        targets = [Fraction(int(held), unit) for held in number.ravel()[self._measured].tolist()]
        return self._program(np.array([*targets, None])[:-1])

    def exact_program(self) -> Program:
        """The same, with targets in floats if these hold them exactly: they are read faster."""
        targets = self.targets.in_floats()
        return self.program() if targets is None else self._program(targets.ravel()[self._measured])

    def _program(self, targets: Array) -> Program:
        measured = self._measured
        low, high = (self.workload.answers(side).ravel()[measured] for side in self.neighbours)
        weights = np.tile(self.workload.by_answer(self.data[1]), self.children)[measured]
        return Program(
            "WorkloadRounding",
            [
                Block("z", self.shape, *self.neighbours, integer=True),
                Block("answer", (measured.size,), low, high, integer=True),
            ],
            self.rows(measured),
            [Term("absolute", self.answer_size + np.arange(measured.size), weights, targets)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: parent, rules, then weighted answers."""
        price, charge, slope = self._witness(witness)
        parts = [] if self.parent is None else [price]
        return np.concatenate([*map(np.ravel, parts), charge.ravel(), slope.ravel()[self._measured]])

    def variables(self, x: Any) -> Array:
        """All variables of the program at an answer."""
        return self.all_variables(answer_of(x, self.shape, integer=True), self._measured)

    def from_row_prices(self, _: Any, prices: Array) -> Witness:
        """The reverse of `row_prices`."""
        return self.split_prices(prices, self._measured)

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q (z − x)‖₁, exact: a `Fraction`."""
        x = answer_of(x, self.shape, integer=True)
        number, unit = scaled([x])
        target, common = self.targets, math.lcm(unit, self.targets.unit)
        held = times(self.workload.answers(number.reshape(self.shape)), common // unit)
        away = np.abs(minus(held, target.over(common)))
        return Fraction(int(exact.total(times(self.costs.number, away))), common * self.costs.unit)

    def violations(self, x: Any) -> list[str]:
        """Fractions, cells that are not a neighbour, wrong sums over the children, and broken rules."""
        x = answer_of(x, self.shape, integer=True)
        found = list(fractional(x))
        if found:
            return found
        floor, ceil = self.neighbours
        for c, j in np.argwhere((x < floor) | (x > ceil)):
            found.append(f"neighbours: z[{c}, {j}] = {x[c, j]}, not in {floor[c, j]} … {ceil[c, j]}")
        return found + self.broken_sums(x, 0)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices of the parent's cells, of the rules and of the answers; exact, in linear time.

        Let λ be the prices of the parent's cells, ν those of the rules, and y those of the answers
        a = Q z. Let s be the bound that a rule's price belongs to: lower where ν > 0, upper where ν < 0. Then

            bound  =  Σ min over ⌊x⌋ ≤ z ≤ ⌈x⌉ of −(λ + Rᵀν + Qᵀy)·z
                      +  Σ min over whole a, Q⌊x⌋ ≤ a ≤ Q⌈x⌉, of ( w |a − Qx| + y·a )
                      +  λ·parent + ν·s

        for any prices (Lagrangian duality). If the queries and rules nest, the problem is a flow, and some
        prices reach the optimum; otherwise a gap may remain. Prices of infinite bounds count as 0.

        Without a witness, y is the negated slope of the answers' cost at z, and the other prices are 0; they
        prove little.

        Parameters
        ----------
        x : array, shape (children, cells)
        witness : mapping, optional
            ``prices``, the parent's shape: λ. ``rules``, shape (children, rules.size): ν. ``answers``, shape
            (children, workload.size): y.
        """
        x = answer_of(x, self.shape, integer=True)
        objective, broken = self.objective(x), self.violations(x)
        if broken:
            return infeasible(objective, broken)
        if witness is None:
            held = times(self.workload.answers(x), self.targets.unit)
            slope = times(np.sign(minus(self.targets.number, held)), self.costs.number)
            witness = {"answers": exact.fractions(slope) / self.costs.unit}
        price, charge, slope = self._witness(witness)
        gap = objective - self._bound(price, charge, slope)
        kept = {"prices": price, "rules": charge, "answers": slope}
        proof = judge(objective, gap, True, kept, "the witness leaves a gap")
        return proof if proof else replace(proof, unproved=first_unproved(self, x, kept))

    def _bound(self, price: Array, charge: Array, slope: Array) -> Fraction:
        """The bound of the certificate, in whole numbers over one unit."""
        number, unit = scaled([price, charge, slope])
        price, charge, slope = np.split(number, np.cumsum([price.size, charge.size]))
        charge, slope = charge.reshape(charge_shape := (self.children, -1)), slope.reshape(charge_shape)
        price = price.reshape(self.price_shape)
        reduced = plus(self.workload.spread(slope), self.by_child(price))
        paid = [times(price, 0 if self.parent is None else np.asarray(self.parent))]
        if self.rules is not None:
            lower, upper = (np.where(np.isfinite(s.astype(float)), s, 0) for s in self.sides)
            side = np.where(charge > 0, exact.signed(_whole(lower)), exact.signed(_whole(upper)))
            reduced, paid = plus(reduced, self.rules.spread(charge)), [*paid, times(charge, side)]
        floor, ceil = self.neighbours
        least = np.maximum(times(reduced, floor), times(reduced, ceil))
        bound = Fraction(int(sum(int(exact.total(part)) for part in paid)) - int(exact.total(least)), unit)
        target, cost = self.targets, self.costs
        common = math.lcm(unit, target.unit * cost.unit)
        weight = times(cost.number, common // (target.unit * cost.unit))
        slope = times(slope, common // unit)
        near = divided(target.number, target.unit), raised(target.number, target.unit)
        a = np.concatenate([self.workload.answers(np.stack(self.neighbours)), np.stack(near)])
        costs = plus(times(weight, np.abs(minus(times(a, target.unit), target.number))), times(slope, a))
        return bound + Fraction(int(exact.total(np.minimum.reduce(costs))), common)

    def _witness(self, witness: Witness | None) -> tuple[Array, Array, Array]:
        """The prices of the parent's cells, of the rules and of the answers, made valid; 0 where missing."""
        rows = 0 if self.rules is None else self.rules.size
        shapes = {
            "prices": self.price_shape,
            "rules": (self.children, rows),
            "answers": (self.children, self.workload.size),
        }
        found = []
        for name, shape in shapes.items():
            given = entry(witness, name)
            held = (
                np.zeros(shape, np.int64)
                if given is None
                else numbers(f"the witness's {name!r}", given, shape)
            )
            if not finite(held).all():
                raise ValueError(f"the witness's {name!r} must be finite")
            found.append(held)
        price, charge, slope = found
        lower, upper = self.sides
        unpaid = ((charge > 0) & (lower == -INFINITY)) | ((charge < 0) & (upper == INFINITY))
        return price if self.parent is not None else 0 * price, np.where(unpaid, 0, charge), slope

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any workload; with or without parents and rules; fractions with few digits, many of them whole."""
        workload = Workload.random(rng, int(rng.choice([1, 4, 16])))
        children = max(1, size // workload.cells)
        grain = int(rng.choice([1, 2, 3, 8, 1024]))
        over = rng.integers(0, 5 * grain, (children, workload.cells))
        over[rng.random(over.shape) < 0.3] //= grain
        values = exact.fractions(over) / grain
        if rng.random() < 0.6:
            values = values.astype(float)
        floor = cls(workload, values).neighbours[0]
        up = (values != floor) & (rng.random(values.shape) < 0.5)
        true = floor + up
        kinds: list[Any] = [None, rng.integers(0, 5, len(workload.queries)), [0.5] * len(workload.queries)]
        weights = kinds[rng.integers(0, 3)]
        parent = true.sum(axis=0) if rng.random() < 0.7 else None
        if rng.random() < 0.5:
            return cls(workload, values, weights, parent)
        rules = Workload.marginals(workload.shape, [(), (0,)][: rng.integers(1, 3)])
        held = rules.answers(true)
        lower = np.where(rng.random(held.shape) < 0.5, held, -INFINITY)
        upper = np.where(rng.random(held.shape) < 0.5, held + rng.integers(0, 2, held.shape), INFINITY)
        return cls(workload, values, weights, parent, rules, lower, upper)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, rules: bool = False) -> Self:
        """8 groups by 2 ages per child, queries of totals, groups and cells; with rules, public totals."""
        workload = Workload.marginals((8, 2), [(), (0,), (0, 1)])
        true = heavy_tailed(rng, (max(1, size // workload.cells), workload.cells))
        # Exchanges between pairs of children and of cells leave all sums of rows and columns whole.
        values, last = true.astype(float), len(true) // 2 * 2
        for j in (0, 1):
            one, two = values[0:last:2, j : 14 + j], values[1:last:2, j : 14 + j]
            share = rng.integers(0, 1 << 20, one[:, ::2].shape) / (1 << 20)
            moved = np.floor(np.minimum(np.minimum(one[:, ::2], two[:, 1::2]), 3) * share * 2**20) / 2**20
            for held, sign in ((one, -1), (two, 1)):
                held[:, ::2] += sign * moved
                held[:, 1::2] -= sign * moved
        parent = true.sum(axis=0)
        if not rules:
            return cls(workload, values, None, parent)
        totals = true.sum(axis=1, keepdims=True)
        return cls(workload, values, None, parent, Workload.marginals(workload.shape, [()]), totals, totals)


def _whole(side: Array) -> Array:
    """Whole bounds as integers."""
    return (
        side
        if side.dtype != np.float64
        else np.array([*map(int, side.ravel()), None])[:-1].reshape(side.shape)
    )
