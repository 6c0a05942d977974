"""Beyond the papers: consistent counts over a tree with the least sum of absolute changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of
from models.arithmetic.arrays import Array, Ints
from models.certificate import Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.programs.trees import children_sums
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree
from models.witnesses.arrays import whole_array
from models.witnesses.tree_sums import broken_sums


@dataclass(frozen=True, eq=False)
class TreeAbsolute:
    """Whole non-negative counts over a tree, consistent, with the least weighted sum of absolute changes.

        minimize    Σ_v w_v |x_v − y_v|
        subject to  Σ_{u child of v} x_u = x_v,  x ≥ 0,  x integer;  and x_root = c, if a total is given

    Least absolute deviations: with weights proportional to 1/scale, the likeliest counts under Laplace noise.
    A few counts that are far off change the others less than they do in least squares.

    Parameters
    ----------
    tree : Tree
    noisy : int array, shape (nodes,)
        Noisy counts in level order.
    weights : int array, shape (nodes,), optional
        Whole weights w ≥ 0; 0 for a node that was not measured. Default: all 1.
    total : int, optional
        The root's public count c ≥ 0. Default: the root's count is estimated as well.

    Raises
    ------
    ValueError
        If noisy counts and weights are not one whole number per node, a weight or c is negative, or sums
        would not fit 62 bits.

    Examples
    --------
    >>> model = TreeAbsolute(Tree([[0, 0]]), [9, 2, 4])
    >>> model.objective([6, 2, 4]), model.certificate([6, 2, 4], {"prices": [1, 0, 0]}).optimal
    (3, True)
    """

    tree: Tree
    noisy: ArrayLike
    weights: ArrayLike | None = None
    total: int | None = None

    def __post_init__(self) -> None:
        nodes = self.tree.size
        noisy = exact.as_data("noisy", self.noisy)
        if noisy.dtype != np.int64 or noisy.size != nodes:
            raise ValueError(f"noisy must hold a whole number for each of the {nodes} nodes")
        object.__setattr__(self, "noisy", noisy)
        if self.weights is not None:
            weights = exact.as_data("weights", self.weights)
            if weights.dtype != np.int64 or weights.size != nodes or weights.min(initial=0) < 0:
                raise ValueError(f"weights must hold a whole number >= 0 for each of the {nodes} nodes")
            object.__setattr__(self, "weights", weights)
        if self.total is not None:
            object.__setattr__(self, "total", exact.as_total("total", self.total))
        reach = nodes * (exact.reach(noisy) + (self.total or 0) + 1)
        heaviest = sum(
            int(self.node_weights[self.tree.nodes_of(k)].max()) for k in range(self.tree.depth + 1)
        )
        if 4 * reach >= 2**62 or 4 * heaviest >= 2**62:
            raise ValueError(f"{nodes} counts of up to {exact.reach(noisy)} add up beyond 62 bits")

    @property
    def counts(self) -> Ints:
        """The noisy counts as an array."""
        return np.asarray(self.noisy)

    @property
    def node_weights(self) -> Ints:
        """The weight of each node, shape (nodes,)."""
        return np.ones(self.tree.size, np.int64) if self.weights is None else np.asarray(self.weights)

    def program(self) -> Program:
        """The program above."""
        n = self.tree.size
        lower, upper = np.zeros(n, np.int64), np.full(n, INFINITY if self.total is None else self.total)
        if self.total is not None:
            lower[0] = self.total
        measured = np.flatnonzero(self.node_weights)
        terms = [Term("absolute", measured, self.node_weights[measured], self.counts[measured])]
        return Program(
            "TreeAbsolute",
            [Block("x", (n,), lower, upper, True)],
            [children_sums("consistency", self.tree)],
            terms if measured.size else [],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the prices of inner nodes, negated."""
        return exact.negated(np.asarray(witness["prices"])[self.tree.internal])

    def objective(self, x: Any) -> int:
        """Σ w |x − y|, as a Python integer."""
        x = answer_of(x, self.counts.shape, integer=True)
        return int(exact.dot(self.node_weights, np.abs(exact.difference(x, self.counts))))

    def violations(self, x: Any) -> list[str]:
        """Negative counts and fractions, wrong sums, a wrong root."""
        return broken_sums(self.tree, answer_of(x, self.counts.shape, integer=True), self.total)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Prices λ[v] of the inner nodes' sums, charged to the children; linear time.

        With λ = 0 for leaves and above the root, and s_v = λ[v] − λ[parent of v],

            bound  =  Σ_v min over whole z ≥ 0 of ( w_v |z − y_v| + s_v z ),   z = c at a root with a total

        is at most the optimum for any prices (Lagrangian duality). A minimum is −∞ if s_v < −w_v; else it is
        at z = 0 or z = y_v. The rows are those of a tree, so the program's relaxation has whole vertices and
        its dual whole prices: some prices leave no gap.

        Without a witness, all prices are 0: the bound then proves only counts that are consistent as given.

        Parameters
        ----------
        x : int array, shape (nodes,)
        witness : mapping, optional
            ``prices``, whole, shape (nodes,): λ; entries for leaves are ignored.
        """
        x = answer_of(x, self.counts.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        price = whole_array(witness, "prices", self.counts.shape)
        bound = None if price is None else self._bound(price)
        if price is None or bound is None:
            price = np.zeros(self.tree.size, np.int64)
            bound = self._bound(price)
            assert bound is not None
        gap = objective - bound
        return judge(objective, gap, True, {"prices": price}, f"the witness leaves a gap of {gap}")

    def _bound(self, price: Array) -> int | None:
        """The Lagrangian bound of some prices; None if it is −∞."""
        tree, y, w = self.tree, self.counts.astype(object), self.node_weights.astype(object)
        price = price.astype(object)
        price[tree.leaves] = 0
        above = price[tree.parent]
        above[0] = 0
        slope = price - above
        free = slice(0 if self.total is None else 1, None)
        if (slope[free] < -w[free]).any():
            return None
        at_noisy, at_zero = slope * y, w * abs(y)
        least = np.where((y > 0) & (at_noisy < at_zero), at_noisy, at_zero)
        if self.total is not None:
            least[0] = w[0] * abs(self.total - y[0]) + slope[0] * self.total
        return int(least.sum())

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """A tree of about `size` nodes with counts from `random_noisy`; weights and a total in some."""
        depth = int(rng.integers(0, 4))
        branching = max(1, round(2 * size ** (1 / max(depth, 1))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.3))
        noisy = random_noisy(rng, (tree.size,))
        weights = rng.integers(0, 5, size=tree.size) if rng.random() < 0.6 else None
        total = max(0, int(noisy[0]) + int(rng.integers(-3, 4))) if rng.random() < 0.5 else None
        return cls(tree, noisy, weights, total)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree."""
        tree, noisy, _ = binary_counts(rng, size)
        return cls(tree, noisy, **options)
