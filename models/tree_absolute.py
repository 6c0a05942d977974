"""Beyond the papers: consistent counts over a tree with the least sum of absolute changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Ints
from models.model import ByProgram
from models.programs.costs import Absolute
from models.programs.operators import Children
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class TreeAbsolute(ByProgram):
    """Whole non-negative counts over a tree, consistent, with the least weighted sum of absolute changes.

        minimize    Σ_v w_v |x_v − y_v|
        subject to  Σ_{u child of v} x_u = x_v,  x ≥ 0,  x integer;  and x_root = c, if a total is given

    Least absolute deviations: with weights proportional to 1/scale, the likeliest counts under Laplace noise.
    A few counts that are far off change the others less than they do in least squares.

    The rows are those of a tree, so the program's relaxation has whole vertices and its dual whole prices:
    some prices of the sums prove an optimum.

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
    >>> model.objective([6, 2, 4]), model.certificate([6, 2, 4]).optimal
    (3, True)
    """

    tree: Tree
    noisy: ArrayLike
    weights: ArrayLike | None = None
    total: int | None = None

    def __post_init__(self) -> None:
        nodes = self.tree.size
        noisy = door.data("noisy", self.noisy)
        if noisy.dtype != np.int64 or noisy.size != nodes:
            raise ValueError(f"noisy must hold a whole number for each of the {nodes} nodes")
        object.__setattr__(self, "noisy", noisy)
        if self.weights is not None:
            weights = door.data("weights", self.weights)
            if weights.dtype != np.int64 or weights.size != nodes or weights.min(initial=0) < 0:
                raise ValueError(f"weights must hold a whole number >= 0 for each of the {nodes} nodes")
            object.__setattr__(self, "weights", weights)
        if self.total is not None:
            object.__setattr__(self, "total", door.total("total", self.total))
        reach = nodes * (exact.reach(noisy) + (self.total or 0) + 1)
        if 4 * reach >= 2**62 or 4 * self.tree.heaviest(self.node_weights) >= 2**62:
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
        y, total = self.counts, self.total
        lower: Any = 0
        upper: Any = INFINITY
        box = None
        if total is not None:
            lower, upper = np.zeros(y.size, np.int64), np.full(y.size, INFINITY)
            lower[0] = upper[0] = total
            box = lower, np.full(y.size, total)
        cost = Absolute(y, 1 if self.weights is None else self.weights)
        return Program(
            "TreeAbsolute",
            [Block("x", y.shape, lower, upper, True, cost, box=box)],
            [Rows("consistency", {"x": Children(self.tree, y.shape)}, 0, 0)],
        )

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
