"""Whole histograms of every node of a tree, consistent and nearest to all noisy answers at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible, judge_exactly
from models.children import bounds_of, rule_name
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows, Term
from models.programs.trees import children_sums
from models.synthetic import heavy_tailed, noise
from models.tree import Tree
from models.witnesses.arrays import entry
from models.witnesses.block_squares import squares
from models.witnesses.lagrangian import lagrangian_bound
from models.workload import Workload, answers_of_nodes


@dataclass(frozen=True, eq=False)
class JointTables:
    """Whole histograms of every node of a tree, nearest to the noisy answers of all nodes at once.

        minimize    Σ_v Σ_q w[level of v, q] ‖Q_q x_v − y_{v,q}‖²      TopDown's levels (Abowd et al. 2022)
        subject to  Σ_{u child of v} x_u = x_v      for every v        in one problem
                    with children,
                    lower_v ≤ R x_v ≤ upper_v,
                    x[v, j] = 0 for structural zeros;  x ≥ 0, whole

    x_v is the histogram of node v, Q_q a query of it, and y_{v,q} the noisy answer. R holds further sums,
    whose values are public (where lower = upper) or bounded.

    There is no fast path: an integer program with crossing queries is hard in general. Exact backends solve
    small ones.

    Parameters
    ----------
    tree : Tree
    workload : Workload
        The queries Q, recoded ones included.
    noisy : array, shape (nodes, workload.size)
        Noisy answers y, nodes in level order.
    weights : array, shape (depth + 1, queries)
        w ≥ 0, the inverse of the variance of each query's answers on each level; 0 for queries that were not
        measured there, whose noisy answers are ignored. Floats count as the fractions that they are.
    zeros : array of bool, shape (cells,), optional
        Structural zeros: combinations that cannot occur.
    sums : Workload, optional
        The sums R, over the same attributes.
    lower, upper : arrays, shape (sums.size,) or (nodes, sums.size), optional
        Their bounds: whole, or infinite if there is none. Default: no bounds.

    Raises
    ------
    ValueError
        If a shape does not fit, or a lower bound is above its upper bound. Other contradictions are left to
        the backends.

    Examples
    --------
    A parent and two children with one cell each: the three noisy counts do not add up.

    >>> model = JointTables(Tree([[0, 0]]), Workload.marginals((1,), [(0,)]), [[9], [4], [2]], [[1], [1]])
    >>> model.objective([[8], [5], [3]])
    3
    >>> model.certificate([[8], [5], [3]], {"prices": [-2, 2, -2, -2]}).optimal
    True
    """

    tree: Tree
    workload: Workload
    noisy: ArrayLike
    weights: ArrayLike
    zeros: ArrayLike | None = None
    sums: Workload | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None

    random_up_to: ClassVar[int] = 100  # an integer program without a fast path

    def __post_init__(self) -> None:
        tree, workload = self.tree, self.workload
        noisy, weights = answers_of_nodes(tree, workload, self.noisy, self.weights)
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)
        if self.zeros is not None:
            zeros = np.array(self.zeros)
            if zeros.dtype != bool or zeros.shape != (workload.cells,):
                raise ValueError(
                    f"zeros must be True or False for each of {workload.cells} cells, got shape "
                    f"{zeros.shape} of {zeros.dtype}"
                )
            zeros.flags.writeable = False
            object.__setattr__(self, "zeros", zeros)
        given = bounds_of(self.sums, workload, tree.size, (self.lower, self.upper), whole=True)
        for name, side in zip(("lower", "upper"), given, strict=True):
            object.__setattr__(self, name, side)
        lower, upper = self.sides
        for v, i in np.argwhere(lower > upper)[:1]:
            raise ValueError(
                f"sums, node {v}, {self._sum_name(i)}: the lower bound {lower[v, i]} is above the upper "
                f"bound {upper[v, i]}"
            )

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)`` as arrays."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an answer: nodes by cells."""
        return self.tree.size, self.workload.cells

    @property
    def answer_size(self) -> int:
        """How many numbers an answer holds."""
        return self.tree.size * self.workload.cells

    @property
    def sides(self) -> tuple[Array, Array]:
        """``(lower, upper)`` of the sums, shape (nodes, sums.size) each."""
        if self.sums is None:
            return np.zeros((self.tree.size, 0)), np.zeros((self.tree.size, 0))
        return np.asarray(self.lower), np.asarray(self.upper)

    @cached_property
    def most(self) -> Array:
        """The most that each cell can hold, from the bounds of its node, its ancestors and descendants.

        Shape (nodes, cells); infinite if nothing bounds a cell.
        """
        tree, upper = self.tree, self.sides[1]
        # Floats hold infinity, and whole numbers up to 2^53; beyond that, Python numbers do.
        largest = max((abs(value) for value in upper.ravel().tolist() if abs(value) < INFINITY), default=0)
        kind: Any = float if largest * tree.size <= exact.FLOAT_WHOLE else object
        most = np.full(self.shape, INFINITY, kind)
        if self.sums is not None:
            for row in self.sums.row:
                most = np.minimum(most, np.maximum(upper[:, row], 0).astype(kind))
        if self.zeros is not None:
            most[:, np.asarray(self.zeros)] = 0
        for level in range(tree.depth, 0, -1):
            nodes = tree.nodes_of(level)
            reach = np.zeros(self.shape, kind)
            np.add.at(reach, tree.parent[nodes], most[nodes])
            inner = np.unique(tree.parent[nodes])
            most[inner] = np.minimum(most[inner], reach[inner])
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            most[nodes] = np.minimum(most[nodes], most[tree.parent[nodes]])
        return most

    @cached_property
    def _weight(self) -> Array:
        """The weight of each answer; shape (nodes, workload.size)."""
        return self.workload.by_answer(self.data[1])[self.tree.level]

    @cached_property
    def _measured(self) -> Ints:
        """The positions in ``noisy.ravel()`` of the answers with a positive weight."""
        return np.flatnonzero(self._weight.ravel() > 0)

    def program(self) -> Program:
        """The program above, with a whole variable for each measured answer."""
        return self._program

    @cached_property
    def _program(self) -> Program:
        measured, most = self._measured, self.most
        others, each = measured.size, scipy.sparse.identity(self.tree.size)
        queries = scipy.sparse.kron(each, self.workload.matrix, "csr")[measured]
        link = scipy.sparse.hstack([queries, -scipy.sparse.identity(others)], "csr")
        rows = [children_sums("consistency", self.tree, self.workload.cells, others)]
        if self.sums is not None:
            held = scipy.sparse.kron(each, self.sums.matrix, "csr")
            held.resize((held.shape[0], self.answer_size + others))
            lower, upper = self.sides
            rows.append(Rows("sums", held, lower.ravel(), upper.ravel()))
        return Program(
            "JointTables",
            [
                Block("x", self.shape, 0, most, integer=True),
                Block("answer", (others,), 0, self.workload.answers(most).ravel()[measured], integer=True),
            ],
            [*rows, Rows("queries", link, *np.zeros((2, others)))],
            [
                Term(
                    "quadratic",
                    self.answer_size + np.arange(others),
                    self._weight.ravel()[measured],
                    self.data[0].ravel()[measured],
                )
            ],
        )

    def variables(self, x: Any) -> Array:
        """All variables of the program at an answer: the histograms, then the measured answers."""
        x = answer_of(x, self.shape, integer=True)
        return np.concatenate([x.ravel(), self.workload.answers(x).ravel()[self._measured]])

    def from_row_prices(self, _: Any, prices: Array) -> Witness:
        """The witness is prices of the program's rows."""
        return {"prices": prices}

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q x − y‖²; exact (an `int`, or a `Fraction`) if noisy answers and x are."""
        x = answer_of(x, self.shape, integer=True)
        cost, exactly = squares(self.tree, self.workload, self.data, x), exact.is_exact(self.data[0])
        return cost.numerator if exactly and cost.denominator == 1 else exact.as_objective(cost, exactly)

    def violations(self, x: Any) -> list[str]:
        """Fractions, negative counts, broken structural zeros, children's sums, and bounds of sums."""
        x = answer_of(x, self.shape, integer=True)
        found = list(fractional(x))
        found += [f"domain: x[{v}, {j}] = {x[v, j]}, under 0" for v, j in np.argwhere(x < 0)]
        if self.zeros is not None:
            wrong = np.argwhere(np.asarray(self.zeros) & (x != 0))
            found += [f"zeros: x[{v}, {j}] = {x[v, j]}, not 0" for v, j in wrong]
        tree, x = self.tree, exact.widened(x, max(self.shape))
        held = tree.child_sums(x) if tree.internal.size else x[:0]
        for i, j in np.argwhere(held != x[tree.internal]):
            v = tree.internal[i]
            found.append(f"consistency: node {v}, cell {j}: children sum to {held[i, j]}, not {x[v, j]}")
        if self.sums is not None:
            held, (lower, upper) = self.sums.answers(x), self.sides
            (low, at), (high, _) = exact.comparable(lower, held), exact.comparable(upper, held)
            for v, i in np.argwhere((at < low) | (at > high)):
                which = f"sums: node {v}, {self._sum_name(i)}"
                found.append(f"{which}: {held[v, i]}, not in {lower[v, i]} … {upper[v, i]}")
        return found

    def _sum_name(self, i: int) -> str:
        assert self.sums is not None
        return rule_name(self.sums, i)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """One price for each row of the program: exact, for any prices.

        The bound is `models.lagrangian_bound` of the program. Prices cannot prove more than the relaxation
        over the reals, with the squares made linear between whole numbers. So a gap may remain even for an
        optimal answer, and is then stated.

        Without a witness all prices are 0; each noisy answer is then fitted alone. `solvers.prove` searches
        for better ones.

        Parameters
        ----------
        x : array, shape (nodes, cells)
        witness : mapping, optional
            ``prices``, shape (rows of the program,).
        """
        x = answer_of(x, self.shape, integer=True)
        objective, broken = self.objective(x), self.violations(x)
        if not objective < INFINITY:
            broken.append("x: squares pass what floats hold")
        if broken:
            return infeasible(objective, broken)
        given = entry(witness, "prices")
        if given is None:
            given = np.zeros(self._program.matrix.shape[0], np.int64)
        cost, bound = squares(self.tree, self.workload, self.data, x), lagrangian_bound(self._program, given)
        exactly, unit = not isinstance(objective, float), rounding.unit_of(self.data[1], self.data[0])
        proof = judge_exactly(cost, bound, exactly, {"prices": given}, LEFT, unit)
        return replace(proof, objective=objective)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees and workloads of any shape, recoded queries among them; with or without zeros and sums."""
        workload = Workload.random(rng, int(rng.choice([1, 2, 4, 8])))
        if workload.shape[0] > 2 and rng.random() < 0.3:
            recoded = Workload.marginals(workload.shape, [{0: np.arange(workload.shape[0]) // 2}])
            workload = Workload(workload.shape, [*workload.queries, *recoded.queries])
        depth = int(rng.integers(0, 3))
        branching = max(1, round(2 * max(1, size // workload.cells) ** (1 / max(1, depth))) - 1)
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.3))
        leaves = rng.integers(0, int(rng.choice([2, 5, 100])), (tree.leaves.size, workload.cells))
        leaves[:, rng.random(workload.cells) < rng.choice([0.0, 0.3])] = 0
        true = np.asarray(tree.sum_up(leaves))
        noisy = workload.answers(true) + rng.integers(-4, 5, (tree.size, workload.size))
        count = (depth + 1, len(workload.queries))
        kinds: list[Any] = [
            np.ones(count, np.int64),
            rng.integers(0, 5, count),
            rng.choice([0.0, 0.05, 1.0, 7.5], count),
        ]
        weights = kinds[rng.integers(0, 3)]
        zeros = (true[0] == 0) & (rng.random(workload.cells) < 0.5) if rng.random() < 0.5 else None
        if rng.random() < 0.3:
            return cls(tree, workload, noisy, weights, zeros)
        sums = Workload.marginals(workload.shape, [(), (0,)][: rng.integers(1, 3)])
        held = sums.answers(true)
        lower = np.where(rng.random(held.shape) < 0.3, held - rng.integers(0, 3, held.shape), -INFINITY)
        upper = np.where(rng.random(held.shape) < 0.3, held + rng.integers(0, 3, held.shape), INFINITY)
        lower[0, 0] = upper[0, 0] = held[0, 0]
        return cls(tree, workload, noisy, weights, zeros, sums, lower, upper)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int) -> Self:
        """A state and its counties with 8 groups by 2 ages, all four marginals, and a public total."""
        workload = Workload.marginals((8, 2), [(), (0,), (1,), (0, 1)])
        counties = max(1, size // workload.cells - 1)
        tree = Tree([np.zeros(counties, np.int64)])
        leaves = heavy_tailed(rng, (counties, workload.cells))
        true = np.asarray(tree.sum_up(leaves))
        answers, ones = workload.answers(true), np.ones((2, 4), np.int64)
        total = np.full((tree.size, 1), INFINITY)
        total[0] = true[0].sum()
        sums = Workload.marginals(workload.shape, [()])
        lower = np.where(np.isfinite(total), total, -INFINITY)
        return cls(tree, workload, answers + noise(rng, answers.shape), ones, None, sums, lower, total)
