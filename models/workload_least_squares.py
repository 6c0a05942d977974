"""Non-negative histograms of one parent's children, nearest to their noisy answers to a workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of, tolerance_for, too_far
from models.arithmetic.arrays import Array, Flags, Ints
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible, judge_exactly, judge_floats
from models.children import LATER, OfChildren, bounds_of, for_each_child, rule_name
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.synthetic import heavy_tailed, noise
from models.witnesses.arrays import exact_array, real_array
from models.witnesses.children_squares import batched, dual_bound, in_floats, squares
from models.workload import Workload


@dataclass(frozen=True, eq=False)
class WorkloadLeastSquares(OfChildren):
    """Non-negative histograms of the children of one region, nearest to noisy answers of a workload.

        minimize    Σ_c Σ_q w[c, q] ‖Q_q x_c − y_{c,q}‖²        step 1 of TopDown (Abowd et al. 2022)
        subject to  x ≥ 0,  Σ_c x_c = parent,
                    lower_c ≤ R x_c ≤ upper_c,
                    x[c, j] = 0 for structural zeros;  x real

    x_c is the histogram of child c, Q_q a query of it, and y_{c,q} the noisy answer. R holds further sums,
    whose values are public (where lower = upper) or bounded.

    Parameters
    ----------
    workload : Workload
        The queries Q.
    noisy : array, shape (children, workload.size)
        Noisy answers y; at least one child.
    weights : array, shape (queries,) or (children, queries)
        w ≥ 0; 0 for queries that were not measured. In each child, a query that counts every cell
        alone must have a positive weight, so that the answer is unique.
    parent : array, shape (cells,) or (problems, cells), optional
        The sum of the children's histograms, non-negative.
    zeros : array of bool, shape (cells,) or (children, cells), optional
        Structural zeros: combinations that cannot occur.
    rules : Workload, optional
        The sums R, over the same attributes.
    lower, upper : arrays, shape (rules.size,) or (children, rules.size), optional
        Their bounds; infinite if there is none. Default: no bounds.
    offsets : array of int, shape (problems + 1,), optional
        Problems of several parents side by side: the first child of each, then the number of children.

    Raises
    ------
    ValueError
        If a shape does not fit, or if sums show that the constraints contradict each other; the message names
        the cell, or the sum, and the child. Other contradictions are left to the backends.

    Examples
    --------
    >>> workload = Workload.marginals((2,), [(), (0,)])
    >>> model = WorkloadLeastSquares(workload, [[4, 5, -2], [3, 1, 3]], weights=[0, 1], parent=[6, 2])
    >>> proof = model.certificate([[5, 0], [1, 2]])
    >>> proof.optimal, proof.objective, proof.gap
    (True, Fraction(5, 1), Fraction(0, 1))
    """

    workload: Workload
    noisy: ArrayLike
    weights: ArrayLike
    parent: ArrayLike | None = None
    zeros: ArrayLike | None = None
    rules: Workload | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    offsets: ArrayLike | None = field(default=None, metadata=LATER)

    each_child: ClassVar[tuple[str, ...]] = ("noisy", "weights", "zeros", "lower", "upper")
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "rules": {"rules": True}}

    def __post_init__(self) -> None:
        workload = self.workload
        noisy = exact.as_data("noisy", self.noisy, 2)
        children, queries = noisy.shape[0], len(workload.queries)
        if noisy.shape != (children, workload.size) or not children:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs {workload.size} answers for each child, "
                "and at least one child"
            )
        weights = exact.as_data("weights", self.weights, np.ndim(self.weights))
        weights = for_each_child("weights", weights, children, queries)
        wrong = np.argwhere(weights < 0)
        if wrong.size:
            c, q = wrong[0]
            raise ValueError(f"the weight of query {q} of child {c} is {weights[c, q]}: under 0")
        blind = np.flatnonzero(weights[:, workload.detailed].sum(axis=1) == 0)
        if blind.size:
            raise ValueError(f"child {blind[0]}: no query of every cell has a positive weight")
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)
        zeros = np.zeros((1, workload.cells), bool) if self.zeros is None else np.array(self.zeros)
        if zeros.dtype != bool:
            raise ValueError(f"zeros must be True or False for each cell, got dtype {zeros.dtype}")
        if self.zeros is not None:
            object.__setattr__(self, "zeros", for_each_child("zeros", zeros, children, workload.cells))
        self.check_offsets()
        if self.parent is not None:
            self._check_parent()
        self._check_rules()

    def _check_parent(self) -> None:
        parent = exact.as_data("parent", self.parent, len(self.price_shape))
        if parent.shape != self.price_shape:
            each = "" if self.offsets is None else f" for each of {self.problems} parents"
            cells = self.workload.cells
            raise ValueError(f"parent has shape {parent.shape}; there are {cells} cells{each}")
        for at in np.argwhere(parent < 0)[:1]:
            where, held = ", ".join(map(str, at)), parent[tuple(at)]
            raise ValueError(f"parent[{where}] is {held}: no counts of children add up to it")
        object.__setattr__(self, "parent", parent)
        if self.zeros is not None:
            zero = np.logical_and.reduceat(np.asarray(self.zeros), self.cuts[:-1], axis=0)
            for k, j in np.argwhere(zero & (self.parents > 0))[:1]:
                raise ValueError(
                    f"{self.named_cell(k, j)} is a structural zero of every child, and the parent has "
                    f"{self.parents[k, j]} there"
                )

    def _check_rules(self) -> None:
        given = bounds_of(self.rules, self.workload, self.children, (self.lower, self.upper))
        for name, side in zip(("lower", "upper"), given, strict=True):
            object.__setattr__(self, name, side)
        if self.rules is None:
            return
        lower, upper = self.sides
        room = self.rules.answers(np.where(self.fixed, 0, 1)) > 0
        for wrong, why in (
            (lower > upper, "its lower bound is above its upper bound"),
            (upper < 0, "its upper bound is under 0"),
            (~room & (lower > 0), "all its cells are 0, and its lower bound is not"),
        ):
            places = np.argwhere(wrong)
            if places.size:
                c, i = places[0]
                raise ValueError(
                    f"rules, child {c}, {rule_name(self.rules, i)}: {why} ({lower[c, i]} … {upper[c, i]})"
                )
        if self.parent is None:
            return
        held = self.rules.answers(self.parents)
        least, most = self.by_problem(np.maximum(lower, 0)), self.by_problem(upper)
        # Sums of floats may be off by rounding; whole numbers are not.
        slack = 0 if lower.dtype == upper.dtype == np.int64 else 1e-9 * np.maximum(1, held.astype(float))
        for k, i in np.argwhere((least > held + slack) | (most < held - slack))[:1].tolist():
            which = f"rules, {'' if self.offsets is None else f'parent {k}, '}{rule_name(self.rules, i)}"
            raise ValueError(
                f"{which}: the children's bounds add up to {least[k, i]} … {most[k, i]}, and the parent has "
                f"{held[k, i]}"
            )

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``, shapes (children, workload.size) and (children, queries)."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    @cached_property
    def fixed(self) -> Flags:
        """The cells that are 0 in every answer: structural zeros, and where the parent has 0."""
        fixed = np.zeros(self.shape, bool) if self.zeros is None else np.array(self.zeros)
        return fixed if self.parent is None else fixed | (self.parents == 0)[self.home]

    @cached_property
    def most(self) -> Array:
        """The most that each cell can hold: 0, the parent's count, or infinity; shape (children, cells)."""
        if self.parent is None:
            return np.where(self.fixed, 0, INFINITY)
        return np.where(self.fixed, 0, self.parents[self.home])

    @cached_property
    def curvature(self) -> Array:
        """The weight of all queries that count every cell alone, in Fractions; shape (children, 1)."""
        return np.asarray(exact.fractions(self.data[1][:, self.workload.detailed]).sum(axis=1, keepdims=True))

    @cached_property
    def _weight(self) -> Array:
        """The weight of each answer; shape (children, workload.size)."""
        return self.workload.by_answer(self.data[1])

    @cached_property
    def _measured(self) -> Ints:
        """The positions in ``noisy.ravel()`` of the answers with a positive weight."""
        return np.flatnonzero(self._weight.ravel() > 0)

    def program(self) -> Program:
        """The program above, with a variable for each measured answer."""
        measured = self._measured
        return Program(
            "WorkloadLeastSquares",
            [Block("x", self.shape, 0, self.most), Block("answer", (measured.size,), -INFINITY, INFINITY)],
            self.rows(measured),
            [
                Term(
                    "quadratic",
                    self.answer_size + np.arange(measured.size),
                    self._weight.ravel()[measured],
                    self.data[0].ravel()[measured],
                )
            ],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: parent, rules, then the answers' slopes, negated.

        The slopes are taken at the witness's point; for queries of every cell, at the minimizer in the bound.
        """
        point, price, charge = self._witness(witness, None, True)
        noisy, weight = exact.fractions(self.data[0]), exact.fractions(self._weight)
        answers = self.workload.answers(point)
        reduced = self._slope(point, True) - self.by_child(price) - self._charged(charge)
        least = self._least(point, reduced, self.curvature)
        for q in np.flatnonzero(self.workload.detailed):
            row = self.workload.row[q]
            answers[:, row] = least
        slopes = (-2 * weight * (answers - noisy)).ravel()[self._measured]
        paid = [] if self.parent is None else [price.ravel()]
        return np.concatenate([*paid, charge.ravel(), slopes])

    def variables(self, x: Any) -> Array:
        """All variables of the program at an answer."""
        return self.all_variables(answer_of(x, self.shape, integer=False), self._measured)

    def from_row_prices(self, x: Any, prices: Array) -> Witness:
        """The reverse of `row_prices`, with the slopes taken at x."""
        found = self.split_prices(prices, self._measured)
        return {"prices": found["prices"], "rules": found["rules"], "point": x}

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q x − y‖²; a `Fraction` if noisy answers and x are exact (even if weights are floats)."""
        x = answer_of(x, self.shape, integer=False)
        return exact.as_objective(squares(self, x), self._exactly(x))

    def _exactly(self, x: Array) -> bool:
        """Whether costs of an answer are shown as Fractions."""
        return exact.is_exact(x) and exact.is_exact(self.data[0])

    def violations(self, x: Any) -> list[str]:
        """Negative counts, broken structural zeros, wrong sums over the children, and broken rules."""
        x = answer_of(x, self.shape, integer=False)
        return self._broken(x, self._near(x))

    def _near(self, x: Array) -> Array:
        """The answer that x stands for: of floats, without negative counts and scaled to the parent's cells.

        Rules may be broken by a tolerance.
        """
        if exact.is_exact(x):
            return x
        near = np.where(self.fixed, 0.0, np.maximum(x, 0.0))
        if self.parent is None:
            return near
        held = self.by_problem(near)
        scale = self.parents.astype(float) / np.where(held > 0, held, 1.0)
        return np.asarray(near * (scale if self.offsets is None else self.by_child(scale)))

    def _broken(self, x: Array, near: Array) -> list[str]:
        """The violations; `near` is the answer that x stands for, which of exact answers is x itself."""
        parent = np.zeros(0) if self.parent is None else np.asarray(self.parent)
        slack = tolerance_for(x, self.data[0], parent)
        far = [] if near is x else too_far(x, near, slack)
        found = [f"domain: x[{c}, {j}] = {x[c, j]}, under 0" for c, j in np.argwhere(x < -slack)]
        found += [f"zeros: x[{c}, {j}] = {x[c, j]}, not 0" for c, j in np.argwhere(self.fixed & (x > slack))]
        if near is not x and self.parent is not None:
            lost = (self.by_problem(near) == 0) & (self.parents > 0)  # no factor gives it its sum
            for k, j in np.argwhere(lost):
                held, where = self.by_problem(x)[k, j], self.named_cell(k, j)
                found.append(f"parent: {where}: the children sum to {held}, not {self.parents[k, j]}")
        return found + self.broken_sums(x, slack) or far

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices of the parent's cells and of the rules, and a point where slopes are taken; linear time.

        Let p be the point, g the slope 2 Σ_q w_q Q_qᵀ(Q_q p − y), λ the prices of the parent's cells, ν those
        of the rules, s the bound that a rule's price belongs to (lower where ν > 0, upper where ν < 0), and
        d = g − λ − Rᵀν. The objective f is convex, and its queries of every cell alone have the weight κ. So
        f(z) ≥ f(p) + g·(z − p) + κ ‖z − p‖², and

            bound  =  f(p) − g·p + λ·parent + ν·s + Σ min over 0 ≤ z ≤ most of ( d z + κ (z − p)² )

        for any p, λ and ν (Lagrangian duality). It reaches the optimum if p is optimal and λ and ν its
        multipliers. Prices of infinite bounds count as 0.

        Without a witness, p is x, λ the mean of the children's slopes, weighted by x, and ν is 0. These prove
        an optimal x if no rule binds (in floats, up to rounding).

        Parameters
        ----------
        x : array, shape (children, cells)
            Cost and bound are computed without rounding; of floats, too, unless computing in floats, with
            all that rounding may change, proves the answer (`children_squares.in_floats`). Of floats, a gap
            is allowed (see `Certificate`). An answer in floats stands for the one scaled to the parent's
            cells, if that is nearby; rules may be broken by a tolerance.
        witness : mapping, optional
            ``prices``, the parent's shape: λ. ``rules``, shape (children, rules.size): ν. ``point``, shape
            (children, cells): p; by default x.
        """
        x = answer_of(x, self.shape, integer=False)
        near = self._near(x)
        if self.offsets is not None:
            exactly = self._exactly(x)
            return batched(self, x, near, self._witness(witness, near, exactly), exactly)
        exactly, broken = self._exactly(x), self._broken(x, near)
        if not broken and not exact.is_exact(near):
            point, price, charge = self._witness(witness, near, False)
            found = in_floats(self, self.most, near, price, charge) if np.array_equal(point, near) else None
            kept = {"prices": price, "rules": charge, "point": point}
            if (proof := judge_floats(found, kept, self._unit)) is not None:
                return proof
        x = x if broken else near
        cost = squares(self, x)
        objective = exact.as_objective(cost, exactly)
        if not objective < INFINITY:
            broken.append("x: squares pass what floats hold")
        if broken:
            return infeasible(objective, broken)
        point, price, charge = self._witness(witness, x, exactly)
        bound = dual_bound(self, self.most, point, price, charge)
        kept = {"prices": price, "rules": charge, "point": point}
        return judge_exactly(cost, bound, exactly, kept, LEFT, self._unit)

    @property
    def _unit(self) -> float:
        parent = None if self.parent is None else np.asarray(self.parent)
        return rounding.unit_of(self.data[1], self.data[0], parent)

    def _witness(self, witness: Witness | None, x: Array | None, exactly: bool) -> tuple[Any, Any, Any]:
        """The point, the prices of the parent's cells and those of the rules, made valid."""
        read: Any = exact_array if exactly else real_array
        rows = 0 if self.rules is None else self.rules.size
        point: Any = read(witness, "point", self.shape)
        if point is None:
            if x is None:
                raise ValueError("the witness holds no 'point'")
            point = x if exactly else x.astype(float, copy=False)
        charge: Any = read(witness, "rules", (self.children, rows))
        if charge is None:
            charge = np.zeros((self.children, rows))
        lower, upper = self.sides
        unpaid = ((charge > 0) & (lower == -INFINITY)) | ((charge < 0) & (upper == INFINITY))
        charge = np.where(unpaid, 0, charge)
        price: Any = read(witness, "prices", self.price_shape)
        if self.parent is None:
            price = np.zeros(self.price_shape)
        if exactly:
            point, charge = exact.fractions(point), exact.fractions(charge)
        if price is None:
            price = self._read(point, charge, exactly)
        return point, exact.fractions(price) if exactly else price, charge

    def _read(self, point: Array, charge: Array, exactly: bool) -> Array:
        """For each of the parent's cells, the mean of the children's slopes, weighted by what they hold."""
        slope, held = self._slope(point, exactly) - self._charged(charge), np.maximum(point, 0)
        sums = self.by_problem(held)
        found = self.by_problem(slope * held) / np.where(sums > 0, sums, 1)
        return np.asarray(found.reshape(self.price_shape))

    def _slope(self, x: Array, exactly: bool) -> Array:
        """The gradient of the objective; shape (children, cells)."""
        noisy, weight = self.data[0], self._weight
        noisy, weight = (
            (exact.fractions(noisy), exact.fractions(weight)) if exactly else (noisy, weight.astype(float))
        )
        return self.workload.spread(2 * weight * (self.workload.answers(x) - noisy))

    def _charged(self, charge: Array) -> Array:
        """What the rules' prices charge to each cell; shape (children, cells)."""
        if self.rules is None:
            return np.zeros(self.shape, charge.dtype)
        return self.rules.spread(charge)

    def _least(self, point: Array, reduced: Array, curvature: Array) -> Array:
        """Where ``reduced·z + curvature·(z − point)²`` is least within the bounds."""
        return np.asarray(np.minimum(np.maximum(point - reduced / (2 * curvature), 0), self.most))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any workload; with or without parent, zeros and rules; true counts that are often 0."""
        workload = Workload.random(rng, int(rng.choice([1, 4, 16])))
        children = max(1, size // workload.cells)
        true = rng.integers(0, int(rng.choice([2, 5, 100])), (children, workload.cells))
        true[:, rng.random(workload.cells) < rng.choice([0.0, 0.3])] = 0
        noisy = workload.answers(true) + rng.integers(-4, 5, (children, workload.size))
        kinds: list[Any] = [
            np.ones(len(workload.queries), np.int64),
            rng.integers(1, 9, (children, len(workload.queries))),
            rng.choice([0.05, 1.0, 7.5], len(workload.queries)),
        ]
        weights = kinds[rng.integers(0, 3)]
        parent = true.sum(axis=0) if rng.random() < 0.7 else None
        zeros = (true == 0) & (rng.random(true.shape) < 0.5) if rng.random() < 0.5 else None
        if rng.random() < 0.5:
            return cls(workload, noisy, weights, parent, zeros)
        rules = Workload.marginals(workload.shape, [(), (0,)][: rng.integers(1, 3)])
        held = rules.answers(true)
        lower = np.where(rng.random(held.shape) < 0.5, held - rng.integers(0, 3, held.shape), -INFINITY)
        upper = np.where(rng.random(held.shape) < 0.5, held + rng.integers(0, 3, held.shape), INFINITY)
        lower, upper = (
            (held, held) if rng.random() < 0.3 else (lower, np.maximum(upper, np.maximum(lower, 0)))
        )
        return cls(workload, noisy, weights, parent, zeros, rules, lower, upper)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, rules: bool = False) -> Self:
        """Children with 8 groups by 2 ages and all four marginals; with rules, their totals are public."""
        workload = Workload.marginals((8, 2), [(), (0,), (1,), (0, 1)])
        true = heavy_tailed(rng, (max(1, size // workload.cells), workload.cells))
        answers = workload.answers(true)
        noisy, ones, parent = answers + noise(rng, answers.shape), np.ones(4, np.int64), true.sum(axis=0)
        if not rules:
            return cls(workload, noisy, ones, parent)
        totals = answers[:, :1]
        public = Workload.marginals(workload.shape, [()])
        return cls(workload, noisy, ones, parent, None, public, totals, totals)
