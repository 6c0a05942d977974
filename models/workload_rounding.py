"""Whole histograms of one parent's children next to fractional ones, with the least change of their sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.children import LATER, OfChildren, keep_bounds
from models.model import ByProgram
from models.programs.costs import Absolute
from models.programs.operators import Answers, Each, Sums
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import heavy_tailed
from models.witnesses.scaled import Scaled, exact_cost, scaled
from models.workload import Workload


@dataclass(frozen=True, eq=False)
class WorkloadRounding(OfChildren, ByProgram):
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
    >>> prices = {"parent": [[0, 0]], "queries": [[0, 0, 0], [0, 0, 0]]}
    >>> model.certificate([[0, 1], [1, 1]], prices).optimal
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
        values = door.data("values", self.values, 2)
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
        weights = door.data("weights", weights)
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
        parent = door.data("parent", self.parent, len(self.price_shape))
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
        keep_bounds(self, self.rules, self.children, whole=True)
        if self.rules is None:
            return
        lower, upper = self.sides
        least, most = (self.rules.answers(side) for side in self.neighbours)
        for c, i in np.argwhere((lower > upper) | (upper < least) | (lower > most))[:1]:
            raise ValueError(
                f"rules, child {c}, {self.rules.named(i)}: the cells round to sums of {least[c, i]} … "
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
    def costs(self) -> Scaled:
        """The weight of each answer; shape (workload.size,)."""
        number, unit = scaled([self.data[1]])
        return Scaled(self.workload.by_answer(number), unit)

    @cached_property
    def measured(self) -> Ints:
        """The queries with a positive weight."""
        return np.flatnonzero(self.data[1] > 0)

    @cached_property
    def _answers(self) -> tuple[Workload, Absolute]:
        """The measured queries, and the cost of all children's answers to them."""
        queries = Workload(self.workload.shape, [self.workload.queries[q] for q in self.measured])
        targets = Scaled(queries.answers(self.exact_values.number), self.exact_values.unit)
        held = targets.number if targets.unit == 1 else targets.in_floats()
        if held is None:
            held = exact.fractions(targets.number) / targets.unit
        weights = queries.by_answer(self.data[1][self.measured])
        return queries, Absolute(held, np.broadcast_to(weights, held.shape))

    def program(self) -> Program:
        """The program above, with a whole variable for each answer of a query with a positive weight.

        If the queries and rules nest, it is a flow, and some prices reach the optimum; otherwise a gap may
        remain.
        """
        (queries, cost), (low, high) = self._answers, self.neighbours
        part, shape = None if self.offsets is None else self.home, (self.children, queries.size)
        of_answers, of_cells = (_repeated(part, each) for each in (queries.size, self.workload.cells))
        rows = []
        if self.parent is not None:
            sums = Sums(self.cuts, (self.workload.cells,))
            of = None if part is None else np.repeat(np.arange(self.problems), self.workload.cells)
            rows.append(Rows("parent", {"z": sums}, self.parents, self.parents, part=of))
        if self.rules is not None:
            held = Answers(self.rules, self.children, each="child")
            rows.append(Rows("rules", {"z": held}, *self.sides, part=_repeated(part, self.rules.size)))
        both = {"z": Answers(queries, self.children), "answer": Each(shape, -1)}
        rows.append(Rows("queries", both, 0, 0, part=of_answers))
        least, most = (queries.answers(side) for side in (low, high))
        return Program(
            "WorkloadRounding",
            [
                Block("z", self.shape, low, high, True, part=of_cells),
                Block("answer", shape, least, most, True, cost, of_answers),
            ],
            rows,
        )

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q (z − x)‖₁, exact also of floats: a `Fraction`."""
        return exact_cost(self._answers[1], self.auxiliary(self._answer(x))["answer"])

    def auxiliary(self, x: Array) -> dict[str, Array]:
        """The answers."""
        return {"answer": self._answers[0].answers(x)}

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:  # noqa: ARG002
        """The slopes of the answers' costs; they prove little. Fast paths and solvers find better prices."""
        (targets, weights), held = self._answers[1].data, values["answer"]
        return {"queries": ((held < targets) * 1 - (held > targets)) * weights}

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


def _repeated(part: Ints | None, each: int) -> Ints | None:
    """The problem of each of so many numbers of every child; None if there is one problem."""
    return None if part is None else np.repeat(part, each)
