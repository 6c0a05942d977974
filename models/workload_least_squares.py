"""Non-negative histograms of one parent's children, nearest to their noisy answers to a workload."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.certificate import FLOAT_TOLERANCE, PROVED, Certificate, Witness
from models.children import LATER, OfChildren, for_each_child, keep_bounds
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Answers, Each, Sums
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import heavy_tailed, noise
from models.workload import Workload


@dataclass(frozen=True, eq=False)
class WorkloadLeastSquares(OfChildren, ByProgram):
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
    (True, 5, 0)
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
        noisy = door.data("noisy", self.noisy, 2)
        children, queries = noisy.shape[0], len(workload.queries)
        if noisy.shape != (children, workload.size) or not children:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs {workload.size} answers for each child, "
                "and at least one child"
            )
        weights = door.data("weights", self.weights, np.ndim(self.weights))
        weights = for_each_child("weights", weights, children, queries)
        wrong = np.argwhere(weights < 0)
        if wrong.size:
            c, q = wrong[0]
            raise ValueError(f"the weight of query {q} of child {c} is {weights[c, q]}: under 0")
        blind = np.flatnonzero(~(weights[:, workload.detailed] > 0).any(axis=1))
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
        parent = door.data("parent", self.parent, len(self.price_shape))
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
        keep_bounds(self, self.rules, self.children)
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
                    f"rules, child {c}, {self.rules.named(i)}: {why} ({lower[c, i]} … {upper[c, i]})"
                )
        if self.parent is None:
            return
        held = self.rules.answers(self.parents)
        least, most = self.by_problem(np.maximum(lower, 0)), self.by_problem(upper)
        # Sums of floats may be off by rounding; whole numbers are not.
        slack = 0 if lower.dtype == upper.dtype == np.int64 else 1e-9 * np.maximum(1, held.astype(float))
        for k, i in np.argwhere((least > held + slack) | (most < held - slack))[:1].tolist():
            which = f"rules, {'' if self.offsets is None else f'parent {k}, '}{self.rules.named(i)}"
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
    def _own(self) -> Ints:
        """The query of every cell alone whose answers are the centers of each child's cells."""
        detailed = np.flatnonzero(self.workload.detailed)
        first: Ints = detailed[(self.data[1][:, detailed] > 0).argmax(axis=1)]
        return first

    @cached_property
    def _others(self) -> tuple[Workload, Ints, Ints | None]:
        """The other measured queries; the places of their answers in those of all; which are measured."""
        left = self.data[1] > 0
        left[np.arange(self.children), self._own] = False
        kept = np.flatnonzero(left.any(axis=0))
        others = Workload(self.workload.shape, [self.workload.queries[q] for q in kept.tolist()])
        places = np.flatnonzero(np.isin(np.repeat(np.arange(left.shape[1]), self.workload.sizes), kept))
        measured = others.by_answer(left[:, kept])
        return others, places, None if measured.all() else np.flatnonzero(measured)

    def program(self) -> Program:
        """The program above. Prices of the parent's cells, of the rules and of the answers prove an answer.

        Each child's cells cost what its first query of every cell alone says; the answers to the other
        queries are variables of their own. The problem is convex, so there are such prices, and those of the
        answers follow from x: they are the negated slopes ``−2w(Qx − y)``.
        """
        (noisy, weights), workload = self.data, self.workload
        own, (others, places, chosen) = self._own, self._others
        each = np.arange(self.children)[:, None]
        center = noisy[each, workload.row[own]]
        heavy = np.broadcast_to(weights[each, own[:, None]], self.shape)
        several = self.offsets is not None
        part = np.repeat(self.home, workload.cells) if several else None
        blocks = [
            Block("x", self.shape, 0, self.most, cost=Square(center, _one(heavy), by_value=True), part=part)
        ]
        rows = []
        if self.parent is not None:
            sums = Sums(self.cuts, (workload.cells,))
            part = np.repeat(np.arange(self.problems), workload.cells) if several else None
            rows.append(Rows("parent", {"x": sums}, self.parents, self.parents, part=part))
        if self.rules is not None:
            part = np.repeat(self.home, self.rules.size) if several else None
            held = {"x": Answers(self.rules, self.children, each="child")}
            rows.append(Rows("rules", held, *self.sides, part=part, slack=FEASIBILITY_TOLERANCE))
        if places.size:
            answers = Answers(others, self.children, chosen, each="child")
            heavy = others.by_answer(
                weights[:, np.unique(np.searchsorted(workload.start, places, "right") - 1)]
            )
            target, part = noisy[:, places], np.repeat(self.home, places.size) if several else None
            if chosen is not None:
                target, heavy = target.ravel()[chosen], heavy.ravel()[chosen]
                part = part[chosen] if part is not None else None
            cost = Square(target, _one(heavy), by_value=True)
            blocks.append(Block("answer", answers.rows, -INFINITY, cost=cost, part=part))
            rows.append(Rows("queries", {"x": answers, "answer": Each(answers.rows, -1)}, 0, 0, part=part))
        return Program("WorkloadLeastSquares", blocks, rows)

    def _operator(self, name: str) -> Any:
        return next((rows.operators["x"] for rows in self._structure[1] if rows.name == name), None)

    def auxiliary(self, x: Array) -> dict[str, Array]:
        """The answers to the queries that are variables."""
        operator = self._operator("queries")
        return {} if operator is None else {"answer": operator.apply(x)}

    def repaired(self, x: Floats) -> Floats:
        """Without negative counts, and scaled to the parent's cells; rules may be broken by a tolerance."""
        near = np.where(self.fixed, 0.0, np.maximum(x, 0.0))
        if self.rules is not None and (empty := self.sides[1] <= 0).any():
            near[self.rules.spread(empty.astype(np.int64)) > 0] = 0.0
        if self.parent is None:
            return near
        held = self.by_problem(near)
        scale = exact.floats(self.parents) / np.where(held > 0, held, 1.0)
        return np.asarray(near * (scale if self.offsets is None else self.by_child(scale)))

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:  # noqa: ARG002
        """Prices read off an answer; they prove an optimal one if no rule binds."""
        return self.completed(values, {})

    def completed(self, values: dict[str, Array], prices: dict[str, Array]) -> dict[str, Array]:
        """Prices, and those of the answers; without prices of the parent's cells, what is best for x.

        That is the mean of the children's slopes, weighted by what they hold.
        """
        exactly = exact.is_exact(values["x"]) and exact.is_exact(self.data[0])
        found = dict(prices)
        if "answer" in values and "queries" not in found:
            found["queries"] = -self._slope(1, values["answer"], exactly)
        if self.parent is not None and "parent" not in found:
            slope = self._slope(0, values["x"], exactly)
            for name in ("rules", "queries"):
                if name in found:
                    slope = slope - self._operator(name).transpose(found[name]).reshape(self.shape)
            held = np.maximum(values["x"], 0)
            sums = self.by_problem(held)
            found["parent"] = self.by_problem(slope * held) / np.where(sums > 0, sums, 1)
        return found

    def witness_of(self, witness: Witness, problem: int) -> Witness:
        """The part of a witness that is about one problem; prices of the answers follow from x."""
        kept = {name: prices for name, prices in witness.items() if name != "queries"}
        return super().witness_of(kept, problem)

    def _slope(self, block: int, v: Array, exactly: bool) -> Array:
        """``2w(v − y)`` of the variables of a block."""
        cost: Any = self._structure[0][block].cost
        parts = (v, *cost.data)
        v, center, weight = (
            map(exact.fractions, parts) if exactly else (exact.floats(np.asarray(p)) for p in parts)
        )
        slopes: Array = 2 * weight * (v - center)
        return slopes

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prove by prices of the rows that the answer is optimal, or bound how far it is from the optimum.

        Problems side by side are proved together. In floats, the gap of all has to be within the tolerance of
        each; those with a smaller one are also proved alone.

        Parameters
        ----------
        x : array, shape (children, cells)
            In floats, it stands for the answer without negative counts and scaled to the parent's cells, if
            that is nearby; rules may be broken by a tolerance.
        witness : mapping, optional
            ``parent``, the parent's shape: prices of its cells. ``rules``, shape (children, rules.size).
            ``queries``: prices of the answers; by default, those that follow from x.
        """
        proof = super().certificate(x, witness)
        if self.offsets is None or not isinstance(proof.objective, float):
            return proof
        x, unproved = self._answer(x), None
        prices = None if witness is None else self._prices(witness)
        for k in np.flatnonzero(self._alone(exact.floats(x), proof)).tolist():
            part, here = self.part(k)
            one = part.certificate(x[here], prices and self.witness_of(prices, k))
            if one.bound is None:
                return replace(one, objective=proof.objective, unproved=k)
            if not one and unproved is None:
                unproved, proof = k, replace(proof, reason=one.reason)
        if proof.bound is None:
            return proof
        return replace(
            proof,
            optimal=unproved is None,
            reason=PROVED if unproved is None else proof.reason,
            unproved=unproved,
        )

    def _alone(self, x: Floats, proof: Certificate) -> Flags:
        """Which problems side by side the proof of all does not prove within their own tolerances."""
        if not proof:
            return np.ones(self.problems, bool)
        noisy, weights = (exact.floats(part) for part in self.data)
        values, cost = self._values(self.repaired(x)), np.zeros(self.problems)
        blocks: Any = self._structure[0]
        for block in blocks:
            center, weight = (exact.floats(np.asarray(part)) for part in block.cost.data)
            each = weight * (values[block.name] - center) ** 2
            cost += np.bincount(block.part, each.ravel(), self.problems)
        data = np.maximum(self._largest(noisy), exact.floats(self.parents).max(axis=1, initial=0.0))
        own = self._largest(x)
        unit = np.minimum(1.0, self._largest(weights) * data * data)
        slack = FEASIBILITY_TOLERANCE * np.where(own < 1, np.maximum(own, np.minimum(1.0, data)), own)
        far = np.logical_or.reduceat(np.abs(values["x"] - x).max(axis=1) > slack[self.home], self.cuts[:-1])
        gap = np.asarray(exact.as_float(proof.gap or 0))
        return np.asarray(far | ~(gap <= FLOAT_TOLERANCE * np.maximum(unit, cost)))

    def _largest(self, each: Floats) -> Floats:
        """The largest absolute value of each problem; shape (children, n) → (problems,)."""
        return np.maximum.reduceat(np.abs(each).max(axis=1, initial=0.0), self.cuts[:-1])

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


def _one(numbers: Array) -> Array:
    """Numbers, or their one value if they are all the same."""
    first = numbers.flat[0]
    return np.asarray(first) if (numbers == first).all() else numbers
