"""Whole histograms of every node of a tree, consistent and nearest to all noisy answers at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.children import keep_bounds
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Answers, Children, Each
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import heavy_tailed, noise
from models.tree import Tree
from models.witnesses.scaled import exact_cost
from models.workload import Workload, answers_of_nodes


@dataclass(frozen=True, eq=False)
class JointTables(ByProgram):
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
    >>> model.certificate([[8], [5], [3]], {"consistency": [[-2]], "queries": [2, -2, -2]}).optimal
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
        keep_bounds(self, self.sums, tree.size, whole=True)
        lower, upper = self.sides
        for v, i in np.argwhere(lower > upper)[:1]:
            assert self.sums is not None
            raise ValueError(
                f"sums, node {v}, {self.sums.named(i)}: the lower bound {lower[v, i]} is above the upper "
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
        kind: Any = float if largest * tree.size * self.workload.cells <= exact.FLOAT_WHOLE else object
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
    def _measured(self) -> tuple[Ints, Square]:
        """The flat positions of the answers with a positive weight, and the cost of these answers."""
        noisy, weights = self.data
        weight = self.workload.by_answer(weights)[self.tree.level].ravel()
        at = np.flatnonzero(weight > 0)
        return at, Square(noisy.ravel()[at], weight[at])

    def program(self) -> Program:
        """The program above, with a whole variable for each measured answer.

        Prices of its rows cannot prove more than the relaxation over the reals, with the squares made linear
        between whole numbers. So a gap may remain even for an optimal answer, and is then stated. Without
        prices, each noisy answer is fitted alone; `solvers.prove` searches for better ones.
        """
        (at, cost), most, nodes = self._measured, self.most, self.tree.size
        queries = Answers(self.workload, nodes, at, each="node")
        rows = [Rows("consistency", {"x": Children(self.tree, self.shape)}, 0, 0)]
        if self.sums is not None:
            rows.append(Rows("sums", {"x": Answers(self.sums, nodes, each="node")}, *self.sides))
        rows.append(Rows("queries", {"x": queries, "answer": Each(at.shape, -1)}, 0, 0))
        return Program(
            "JointTables",
            [
                Block("x", self.shape, 0, most, True),
                Block("answer", at.shape, 0, queries.apply(most), True, cost),
            ],
            rows,
        )

    def auxiliary(self, x: Array) -> dict[str, Array]:
        """The measured answers."""
        return {"answer": self.workload.answers(x).ravel()[self._measured[0]]}

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q x − y‖², exact also of floats: an `int`, or a `Fraction`."""
        cost = exact_cost(self._measured[1], self.auxiliary(self._answer(x))["answer"])
        return cost.numerator if cost.denominator == 1 else cost

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
