"""Consistent non-negative counts of a tree's nodes, nearest to noisy ones in weighted squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats
from models.check.reader import NEVER
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Children
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class NonNegativeInference(ByProgram):
    """Consistent and non-negative counts, nearest to noisy ones in weighted squares.

        minimize    Σ_v w[v] (x[v] − n[v])²              Qardaji, Yang & Li 2013, §3.3, with w = 1/variance
        subject to  Σ_{u child of v} x[u] = x[v]         for every v with children
                    x ≥ 0, and whole if `integer`

    Without the last line this is `ConstrainedInference`, which has a closed form; with it, it is a
    quadratic program, or an integer one. `HierarchyQIP` of one size is the integer program with the root's
    count fixed. Without a fixed count it would still lack the real data, and the weights of 0 under which
    optima are not unique: its prices are differences of whole squares. Its fast path takes a third of the
    time (binary trees of 2,047 and 131,071 nodes), because it needs no others.

    Prices of the sums prove an optimum: over the reals as for any convex program; over whole numbers because
    sums along a tree are a laminar family, whose matrix is totally unimodular. With the squares made linear
    between whole numbers, the linear program has whole optima, and its duals are such prices (Schrijver 1986,
    §19.3; Murota 2003, ch. 6).

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; whole if `integer`.
    weights : array, shape (nodes,), optional
        Positive; 0 for inner nodes that were not measured, such as the paper's root. Only their ratios
        matter; whole numbers if `integer`. Default: 1 for all but the root, 0 for the root if it has
        children.
    integer : bool

    Raises
    ------
    ValueError
        If a shape does not fit the tree, a weight is negative, or 0 at a leaf; with `integer`, also if
        a noisy count or a weight is not whole, or costs pass 60 bits.

    Examples
    --------
    >>> model = NonNegativeInference(Tree([[0, 0], [0, 0]]), [0, 4, 3, 5, -3])
    >>> model.objective([7.5, 4.5, 3, 4.5, 0])
    9.5
    >>> model.certificate([7.5, 4.5, 3, 4.5, 0]).optimal
    True
    """

    tree: Tree
    noisy: ArrayLike
    weights: ArrayLike | None = None
    integer: bool = False
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "integer": {"integer": True}}

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy)
        nodes = self.tree.size
        if noisy.shape != (nodes,):
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs an entry for each of the {nodes} nodes"
            )
        weights = np.ones(nodes, np.int64) if self.weights is None else door.data("weights", self.weights)
        if self.weights is None and self.tree.depth:
            weights[0] = 0
        if weights.shape != (nodes,):
            raise ValueError(f"weights have shape {weights.shape}; there are {nodes} nodes")
        least = np.zeros(nodes)
        least[self.tree.leaves] = np.finfo(float).tiny
        wrong = np.flatnonzero(weights < least)
        if wrong.size:
            raise ValueError(
                f"weights[{wrong[0]}] is {weights[wrong[0]]}: they are positive, or 0 for an inner node"
            )
        if object in (noisy.dtype, weights.dtype):
            raise ValueError("noisy and weights are numbers of 64 bits, not objects")
        if self.integer:
            if noisy.dtype != np.int64 or weights.dtype != np.int64:
                raise ValueError("over whole numbers, noisy counts and weights must be whole: scale weights")
            # Every count of an optimal answer is at most the sum of the positive noisy counts.
            largest = int(exact.total(np.abs(exact.widened(noisy)))) + exact.reach(noisy)
            if 4 * largest * self.tree.heaviest(weights) >= NEVER:
                raise ValueError(f"counts of up to {largest}: their unit costs along the tree pass 60 bits")
        weights.flags.writeable = False
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``, shape (nodes,) each."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    def program(self) -> Program:
        """The program above; nodes of weight 0 cost nothing."""
        noisy, weights = self.data
        shape = noisy.shape
        return Program(
            "NonNegativeInference",
            [Block("x", shape, 0, INFINITY, self.integer, Square(noisy, weights))],
            [Rows("consistency", {"x": Children(self.tree, shape)}, 0, 0)],
        )

    def repaired(self, x: Floats) -> Floats:
        """The sums of its leaves."""
        return self.tree.consistent(x, least=0.0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one weight, one per level, or one per node; some inner nodes not measured."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.5))
        integer = bool(rng.random() < 0.5)
        kinds: list[Any] = [
            np.ones(tree.size, np.int64),
            rng.integers(1, 9, size=depth + 1)[tree.level],
            rng.integers(1, 9, size=tree.size),
        ]
        if not integer:
            kinds.append(rng.choice([0.05, 1.0, 7.5, 100.0], size=tree.size))
        weights = kinds[rng.integers(0, len(kinds))]
        if rng.random() < 0.7:
            weights[tree.internal[rng.random(tree.internal.size) < rng.choice([0.0, 0.3])]] = 0
            weights[0] = 0 if depth else weights[0]
        return cls(tree, random_noisy(rng, (tree.size,)), weights, integer)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree, over the reals."""
        tree, noisy, _ = binary_counts(rng, size)
        return cls(tree, noisy, **options)
