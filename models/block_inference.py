"""Consistent histograms of least variance from noisy marginals of every node of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import door, effects, exact, rounding
from models.arithmetic.answers import tolerance_for, too_far
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import Number
from models.certificate import LEFT, Certificate, Witness, infeasible, judge_exactly, judge_floats
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows, Term
from models.programs.trees import children_sums
from models.synthetic import heavy_tailed, noise, random_noisy
from models.tree import Tree
from models.witnesses.block_squares import dual_bound, in_floats, squares
from models.workload import Workload, answers_of_nodes


@dataclass(frozen=True, eq=False)
class BlockInference:
    """The best linear unbiased estimate of every node's histogram, from noisy marginals of every node.

        minimize    Σ_v Σ_q w[level of v, q] ‖Q_q x_v − y_{v,q}‖²      Cumings-Menon & Zhuravlev 2024;
        subject to  Σ_{u child of v} x_u = x_v      for every v        Ghazi et al. 2026
                    with children; x real

    x_v is a histogram over the workload's attributes, Q_q a marginal of it, and y_{v,q} the noisy answer with
    the variance 1/w. With one attribute of one category this is `ConstrainedInference`.

    Parameters
    ----------
    tree : Tree
    workload : Workload
        Marginals only: their squares are diagonal in one basis (see `models.arithmetic.effects`).
    noisy : array, shape (nodes, workload.size)
        Noisy answers y, nodes in level order; int64 and objects (`int`, `Fraction`) are exact throughout.
    weights : array, shape (depth + 1, queries)
        w ≥ 0, the inverse of the variance of each query's answers on each level; 0 for queries that were not
        measured there, whose noisy answers are ignored. Floats count as the fractions that they are.

    Raises
    ------
    ValueError
        If a shape does not fit, a query is not a marginal, a weight is negative, or the queries measured on a
        level with leaves do not determine a histogram. (A query of every cell does.)

    Examples
    --------
    >>> workload = Workload.marginals((2,), [(), (0,)])
    >>> noisy = [[10, 4, 5], [4, 1, 3], [5, 3, 1]]
    >>> model = BlockInference(Tree([[0, 0]]), workload, noisy, weights=[[1, 1], [1, 1]])
    >>> model.certificate([[4, 5], [1, 3], [3, 2]]).optimal
    False
    >>> model.variance([1, 1]).round(3)
    array([0.444, 0.444, 0.444])
    """

    tree: Tree
    workload: Workload
    noisy: ArrayLike
    weights: ArrayLike

    def __post_init__(self) -> None:
        workload, tree = self.workload, self.tree
        if not workload.is_marginal:
            raise ValueError("BlockInference takes marginals; a query recodes an attribute's categories")
        noisy, weights = answers_of_nodes(tree, workload, self.noisy, self.weights)
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)
        for level in np.unique(tree.level[tree.leaves]):
            if np.any(effects.exists(workload.shape) & (self.information[level] == 0)):
                raise ValueError(
                    f"level {level} has leaves, and its queries do not determine their histograms: "
                    "measure every cell there"
                )

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)`` as arrays."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an answer: nodes by cells."""
        return self.tree.size, self.workload.cells

    @cached_property
    def information(self) -> Array:
        """The eigenvalue of each effect on each level, in Fractions; shape (depth + 1, 2^attributes)."""
        return effects.eigenvalues(self.workload.shape, self.workload.summed, exact.fractions(self.data[1]))

    @cached_property
    def _weight(self) -> Array:
        """The weight of each answer on each level; shape (depth + 1, workload.size)."""
        return self.workload.by_answer(self.data[1])

    def program(self) -> Program:
        """The program above, with a variable for each measured answer."""
        noisy, _ = self.data
        nodes, cells = self.shape
        measured = self._measured
        queries = scipy.sparse.kron(scipy.sparse.identity(nodes), self.workload.matrix, "csr")[measured]
        count, each = measured.size, scipy.sparse.identity
        return Program(
            "BlockInference",
            [Block("x", (nodes, cells), -INFINITY, INFINITY), Block("answer", (count,), -INFINITY, INFINITY)],
            [
                children_sums("consistency", self.tree, cells, others=count),
                Rows("queries", scipy.sparse.hstack([queries, -each(count)], "csr"), *np.zeros((2, count))),
            ],
            [
                Term(
                    "quadratic",
                    nodes * cells + np.arange(count),
                    self._weight[self.tree.level].ravel()[measured],
                    noisy.ravel()[measured],
                )
            ],
        )

    @cached_property
    def _measured(self) -> Ints:
        """The positions in ``noisy.ravel()`` of the answers that were measured."""
        return np.flatnonzero(self._weight[self.tree.level].ravel() > 0)

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: inner nodes' prices, negated, then the answers'.

        An answer's price is 2w(y − a), where a is the answer at the histogram that minimizes the
        Lagrangian at the nodes' prices.
        """
        price = door.exact_array(witness, "prices", self.shape)
        if price is None:
            raise ValueError("the witness holds no 'prices'")
        tree, workload = self.tree, self.workload
        price = self._valid(exact.fractions(price))
        charge = price - self._above(price)
        slopes = []
        for k in range(tree.depth + 1):
            nodes, weight = tree.nodes_of(k), exact.fractions(self._weight[k])
            noisy = exact.fractions(self.data[0][nodes])
            pulled = workload.spread(2 * weight * noisy) - charge[nodes]
            inverse = [Fraction(0) if v == 0 else 1 / (2 * v) for v in self.information[k]]
            best = effects.scaled(pulled, workload.shape, inverse)
            slopes.append(2 * weight * (noisy - workload.answers(best)))
        answers = np.concatenate(slopes).ravel()[self._measured]
        return np.concatenate([-price[tree.internal].ravel(), answers])

    def objective(self, x: Any) -> Number:
        """Σ w ‖Q x − y‖²; a `Fraction` where noisy answers and x are exact (even if weights are floats)."""
        x = door.answer(x, self.shape, integer=False)
        return exact.as_objective(self._cost(x), self._exactly(x))

    def _cost(self, x: Array) -> Fraction:
        return squares(self.tree, self.workload, self.data, x)

    def _exactly(self, x: Array) -> bool:
        """Whether costs of an answer are shown as Fractions."""
        return exact.is_exact(x) and exact.is_exact(self.data[0])

    def violations(self, x: Any) -> list[str]:
        """Cells of inner nodes that differ from the sum over the children; of floats, over the leaves."""
        x = door.answer(x, self.shape, integer=False)
        return self._broken(x, self._near(x))

    def _near(self, x: Array) -> Array:
        """The feasible answer that x stands for: of floats, the sums of its leaves."""
        return x if exact.is_exact(x) else self.tree.consistent(x)

    def _broken(self, x: Array, near: Array) -> list[str]:
        slack, inner = tolerance_for(x, self.data[0]), self.tree.internal
        far = [] if near is x else too_far(x, near, slack)
        if not inner.size or (near is not x and not far):
            return []
        sums = self.tree.child_sums(exact.widened(x, self.tree.size))
        broken = np.argwhere(np.abs(sums - x[inner]) > slack)
        return [
            f"consistency: node {inner[i]}, cell {j}: children sum to {sums[i, j]}, not {x[inner[i], j]}"
            for i, j in broken
        ] or [*far]

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices λ[v] of every node's cells, charged to its children; linear in the number of nodes.

        With λ = 0 for leaves and above the root, s_v = λ[v] − λ[parent of v], the slope
        g_v = 2 Σ_q w_q Q_qᵀ(Q_q x_v − y_{v,q}) and A_v = Σ_q w_q Q_qᵀQ_q,

            bound  =  Σ_v min over z of ( Σ_q w_q ‖Q_q z − y_{v,q}‖² + s_v·z )

        for any prices (Lagrangian duality). A_v scales each effect (`models.arithmetic.effects`), so a bound
        is a sum of squares of effects. If a level's queries do not measure an effect, s_v must be 0 in it:
        such prices are replaced by the parent's. If x is consistent, the gap is
        Σ_v ¼ (g_v + s_v)ᵀ A_v⁻¹ (g_v + s_v), so g_v + s_v = 0 for all nodes (the normal equations) proves x.

        Without a witness, a node's prices are read off x: the mean over its children c of g_c + λ[c]. They
        prove an optimal x; for others the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (nodes, cells)
            Cost and bound are computed without rounding; of floats, too, unless computing in floats, with
            all that rounding may change, proves the answer (`block_squares.in_floats`). Of floats, a gap is
            allowed (see `Certificate`). An answer in floats stands for the sums of its leaves, if these are
            nearby.
        witness : mapping, optional
            ``prices``, shape (nodes, cells): λ; entries for leaves are ignored.
        """
        x = door.answer(x, self.shape, integer=False)
        near = self._near(x)
        exactly, broken = self._exactly(x), self._broken(x, near)
        unit = rounding.unit_of(self.data[1], self.data[0])
        if not broken and not exact.is_exact(near):
            price = self._price(witness, near, False)
            found = in_floats(self.tree, self.workload, self.data, self.information, near, price)
            if (proof := judge_floats(found, {"prices": price}, unit)) is not None:
                return proof
        x = x if broken else near
        cost = self._cost(x)
        objective = exact.as_objective(cost, exactly)
        if not objective < INFINITY:
            broken.append("x: squares pass what floats hold")
        if broken:
            return infeasible(objective, broken)
        price = self._price(witness, x, exactly)
        bound = dual_bound(self.tree, self.workload, self.data, self.information, price)
        return judge_exactly(cost, bound, exactly, {"prices": price}, LEFT, unit)

    def _price(self, witness: Witness | None, x: Array, exactly: bool) -> Array:
        """The witness's prices made valid, or those read off x."""
        read: Any = door.exact_array if exactly else door.real_array
        price: Any = read(witness, "prices", self.shape)
        if price is None:
            price = self._read(self._slope(exact.fractions(x) if exactly else x.astype(float), exactly))
        return self._valid(exact.fractions(price) if exactly else price.copy())

    def _slope(self, x: Array, exactly: bool) -> Array:
        """The gradient of the objective at x; shape (nodes, cells)."""
        noisy, workload = self.data[0], self.workload
        slopes = []
        for k in range(self.tree.depth + 1):
            nodes = self.tree.nodes_of(k)
            weight, y = self._weight[k], noisy[nodes]
            weight, y = (
                (exact.fractions(weight), exact.fractions(y)) if exactly else (weight.astype(float), y)
            )
            slopes.append(workload.spread(2 * weight * (workload.answers(x[nodes]) - y)))
        return np.concatenate(slopes)

    def _read(self, slope: Array) -> Array:
        """For each inner node, the mean over its children of slope plus price; 0 for leaves."""
        tree, (start, child) = self.tree, self.tree.children
        price = np.zeros_like(slope)
        for k in range(tree.depth - 1, -1, -1):
            nodes = np.arange(tree.size)[tree.nodes_of(k)]
            nodes = nodes[start[nodes + 1] > start[nodes]]
            below = child[start[nodes[0]] : start[nodes[-1] + 1]]
            sums = np.add.reduceat((slope + price)[below], start[nodes] - start[nodes[0]], axis=0)
            price[nodes] = sums / (start[nodes + 1] - start[nodes])[:, None]
        return price

    def _above(self, price: Array) -> Array:
        """The price charged to each node's cells: its parent's, and 0 for the root."""
        above = price[self.tree.parent]
        above[0] = 0
        return above

    def _valid(self, price: Array) -> Array:
        """Set prices to 0 at leaves, and to the parent's in effects that a level leaves out; exactly."""
        tree, shape = self.tree, self.workload.shape
        price[tree.leaves] = 0
        missing = (self.information == 0) & effects.exists(shape)
        for k in np.flatnonzero(missing.any(axis=1)).tolist():
            price = exact.fractions(price)
            nodes = tree.nodes_of(k)
            above = price[tree.parent[nodes]] if k else np.zeros_like(price[nodes])
            price[nodes] -= effects.scaled(price[nodes] - above, shape, missing[k].astype(np.int64))
        return price

    def variance(self, query: ArrayLike) -> Floats:
        """The variance of a linear query of each node's estimate.

        The estimate of an effect of a node has a variance that depends on the tree and on the effect alone;
        a query's variance is the sum over effects of this times the query's own squared effect.

        Parameters
        ----------
        query : array, shape (cells,)
            The query's coefficients: ones for the total, a single one for a cell.

        Returns
        -------
        array, shape (nodes,)
        """
        coefficients = np.asarray(query, float)
        if coefficients.shape != (self.workload.cells,):
            raise ValueError(
                f"the query has shape {coefficients.shape}; there are {self.workload.cells} cells"
            )
        squares = np.array(effects.squares(coefficients[None], self.workload.shape), float)
        return np.asarray(self.effect_variance @ squares)

    @cached_property
    def subtree_information(self) -> Floats:
        """The information in each node's subtree about each effect of it; shape (nodes, 2^attributes).

        It is the inverse of the variance of the estimate from the subtree alone: what the node's own answers
        tell, and what the sum of its children's estimates tells.
        """
        return np.asarray(1 / self._pass_up[0])

    @cached_property
    def _pass_up(self) -> tuple[Floats, Floats]:
        """The variance of each effect of each node's estimate from its subtree, and of its children's sum."""
        tree, (start, child) = self.tree, self.tree.children
        information = np.where(effects.exists(self.workload.shape), self.information.astype(float), 1.0)
        own = information[tree.level]
        variance = np.zeros_like(own)
        spread = np.zeros_like(own)
        for k in range(tree.depth, -1, -1):
            nodes = np.arange(tree.size)[tree.nodes_of(k)]
            inner = nodes[start[nodes + 1] > start[nodes]]
            if inner.size:
                below = child[start[inner[0]] : start[inner[-1] + 1]]
                spread[inner] = np.add.reduceat(variance[below], start[inner] - start[inner[0]], axis=0)
                own[inner] += 1 / spread[inner]
            variance[nodes] = 1 / own[nodes]
        return variance, spread

    @cached_property
    def effect_variance(self) -> Floats:
        """The variance of each effect of each node's estimate; shape (nodes, 2^attributes).

        The pass up finds the variance of each node's estimate from its subtree; the pass down, from all data.
        """
        tree, (variance, spread) = self.tree, self._pass_up
        variance = variance.copy()
        for k in range(1, tree.depth + 1):
            level = tree.nodes_of(k)
            parent = tree.parent[level]
            share = variance[level] / spread[parent]
            variance[level] += share * share * (variance[parent] - spread[parent])
        return np.where(effects.exists(self.workload.shape), variance, 0.0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees and marginals of any shape; levels without leaves may lack some queries."""
        workload = Workload.random(rng, int(rng.choice([1, 4, 16])))
        nodes = max(1, size // workload.cells)
        depth = int(rng.integers(0, 4))
        branching = max(1, round(2 * nodes ** (1 / max(1, depth))) - 1)
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.5))
        kinds: list[Any] = [
            np.ones((depth + 1, len(workload.queries)), np.int64),
            rng.integers(1, 9, size=(depth + 1, len(workload.queries))),
            rng.choice([0.05, 1.0, 7.5], size=(depth + 1, len(workload.queries))),
        ]
        weights = kinds[rng.integers(0, 3)]
        leafless = np.setdiff1d(np.arange(depth + 1), tree.level[tree.leaves])
        dropped = rng.random((depth + 1, len(workload.queries))) < rng.choice([0.0, 0.5])
        weights[leafless] *= ~dropped[leafless]
        return cls(tree, workload, random_noisy(rng, (tree.size, workload.size)), weights)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int) -> Self:
        """A nation, its states and their counties, with 8 groups by 2 ages and all four marginals."""
        workload = Workload.marginals((8, 2), [(), (0,), (1,), (0, 1)])
        nodes = max(3, size // workload.cells)
        states = max(1, nodes // 60)
        tree = Tree([np.zeros(states, np.int64), np.sort(np.arange(nodes - 1 - states) % states)])
        leaves = heavy_tailed(rng, (tree.leaves.size, workload.cells))
        true = workload.answers(np.asarray(tree.sum_up(leaves)))
        return cls(tree, workload, true + noise(rng, true.shape), np.ones((tree.depth + 1, 4), np.int64))
