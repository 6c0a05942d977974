"""Consistent counts of least variance from noisy counts of a tree's nodes (Qardaji, Yang & Li 2013, §3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Children
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class ConstrainedInference(ByProgram):
    """The consistent counts of least variance: generalised least squares over a tree.

        minimize    Σ_v (x[v] − n[v])² / V[v]               Qardaji, Yang & Li 2013, §3.3
        subject to  Σ_{u child of v} x[u] = x[v]            for every v with children
                    x real

    n[v] is the noisy count of node v and V[v] its variance. The paper states the two passes that solve it
    for complete b-ary trees of one variance; here the tree may be ragged and every node has its own.

    `BlockInference` has this problem as its case of one cell, but not at this price: on binary trees of 2,047
    and 131,071 nodes its answer takes 23 and 15 times the CPU time, its exact certificate 180 and 900 times.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; int64 and objects (`int`, `Fraction`) are exact throughout.
    variance : number, or array of shape (nodes,)
        V > 0 of all nodes, or of each. Infinite for a node that was not measured, such as the paper's root;
        its noisy count is ignored.

    Raises
    ------
    ValueError
        If a shape does not fit the tree, a noisy count is not finite, or a variance is not positive.

    Examples
    --------
    >>> model = ConstrainedInference(Tree([[0, 0]]), [9, 2, 1], variance=1)
    >>> model.objective([7, 4, 3])
    Fraction(12, 1)
    >>> model.certificate([7, 4, 3]).optimal
    True
    >>> model.certificate([8, 4, 4]).gap
    2
    """

    tree: Tree
    noisy: ArrayLike
    variance: ArrayLike

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy)
        nodes = self.tree.size
        if noisy.shape != (nodes,):
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs an entry for each of the {nodes} nodes"
            )
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "variance", _variances(self.variance, nodes))

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, variance)``, shape (nodes,) each; noisy counts of infinite variance are 0 here."""
        noisy, variance = np.asarray(self.noisy), np.asarray(self.variance)
        ignored = variance == INFINITY
        return np.where(ignored, 0, noisy) if ignored.any() else noisy, variance

    @cached_property
    def level_variance(self) -> Array | None:
        """V of each level, shape (depth + 1,); None if nodes of one level differ."""
        variance, start = np.asarray(self.variance), self.tree.level_start
        each = variance[start[:-1]]
        one = variance.strides == (0,)  # one number, broadcast
        same = one or all(np.all(variance[self.tree.nodes_of(k)] == v) for k, v in enumerate(each))
        return each if same else None

    def program(self) -> Program:
        """The program above, a convex QP; nodes of infinite variance cost nothing."""
        cost = self._cost
        weight = cost.data[1] if self.level_variance is None else 1 / self.level_variance.astype(float)
        return self._program_with(cost, not np.isin(np.frexp(weight)[0], (0, 0.5)).all())

    def exact_program(self) -> Program:
        """The same program with weights in fractions; `program` rounds most of them to floats."""
        return self._program_with(Square(*self._cost.exactly), False)

    @property
    def _cost(self) -> Square:
        noisy, variance = self.data
        return Square(noisy, over=variance[0] if variance.strides == (0,) else variance)

    def _program_with(self, cost: Square, rounded: bool) -> Program:
        shape = (self.tree.size,)
        return Program(
            "ConstrainedInference",
            [Block("x", shape, -INFINITY, INFINITY, cost=cost)],
            [Rows("consistency", {"x": Children(self.tree, shape)}, 0, 0)],
            rounded=rounded,
        )

    def repaired(self, x: Floats) -> Floats:
        """The sums of its leaves."""
        return self.tree.consistent(x)

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:  # noqa: ARG002
        """The solution of the normal equations, in two passes over the data; the answer is not read.

        Up the tree: the sums over each node's children of their best estimates from their own subtrees, and
        of the variances of these. Down the tree: the price of each node's children.
        """
        tree, (noisy, variance), depth = self.tree, self.data, self.tree.depth
        exactly = exact.is_exact(values["x"]) and exact.is_exact(noisy)
        levels, many = self.level_variance, tree.branching
        if many is not None and levels is not None:  # then one number does for all nodes of a level
            each: list[Any] = [levels[k : k + 1] for k in range(depth + 1)]
        else:
            many, each = None, [variance[tree.nodes_of(k)] for k in range(depth + 1)]
        each = [exact.fractions(v) if exactly else v.astype(float) for v in each]
        n = exact.fractions(noisy) if exactly else noisy.astype(float, copy=False)
        sums, spread = [0 * n[:1]] * (depth + 1), [0 * n[:1]] * (depth + 1)
        price = np.zeros_like(n)
        with np.errstate(all="ignore"):
            for k in range(depth, 0, -1):
                below, s, v = sums[k], spread[k], each[k]
                alone = (s == 0) | (s == INFINITY)  # no estimate from below
                share = _by_value(np.where(alone, 1, s / (v + s)))
                sums[k - 1] = tree.sums_at(k - 1, below + share * (n[tree.nodes_of(k)] - below))
                error = _by_value(np.where((v == INFINITY) & ~alone, s, v * share))
                spread[k - 1] = tree.sums_at(k - 1, error) if many is None else error * many[k - 1]
            for k in range(depth):
                at, s, v = tree.nodes_of(k), spread[k], each[k]
                alone, free = (s == 0) | (s == INFINITY), v == INFINITY
                own = _by_value(np.where(alone | free, 0, 2 / (v + s)))
                kept = _by_value(np.where(alone, 0, np.where(free, 1, v / (v + s))))
                price[at] = own * (n[at] - sums[k])
                if k:
                    price[at] += kept * price[tree.parent[at]]
        return {"consistency": -price[tree.internal]}

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one variance, one per level, or one per node; some are infinite."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.5))
        kinds: list[Any] = [
            rng.integers(1, 9),
            rng.integers(1, 9, size=depth + 1)[tree.level],
            rng.integers(1, 9, size=tree.size),
            rng.choice([1e-3, 1.0, 7.5, 1e4], size=tree.size),
        ]
        variance = np.broadcast_to(np.asarray(kinds[rng.integers(0, 4)], dtype=float), (tree.size,)).copy()
        if tree.size > 1 and rng.random() < 0.5:
            variance[0] = INFINITY
            variance[1:][rng.random(tree.size - 1) < rng.choice([0.0, 0.3])] = INFINITY
        return cls(tree, random_noisy(rng, (tree.size,)), variance)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree, all of one variance."""
        tree, noisy, _ = binary_counts(rng, size)
        return cls(tree, noisy, **{"variance": 200, **options})


def _variances(given: Any, nodes: int) -> Array:
    values = door.sides("variance", given)
    exactly = values.ravel() if values.dtype == object else np.empty(0)
    if not all(v in (0, INFINITY) or 0 < abs(exact.as_float(v)) < INFINITY for v in exactly):
        raise ValueError("variance: floats must be able to hold it, between 5e-324 and 1.8e308")
    if values.ndim == 0:
        values = np.broadcast_to(values, (nodes,))
    if values.shape != (nodes,):
        raise ValueError(f"variance has shape {values.shape}; it needs one entry, or one for each of {nodes}")
    positive = values > 0
    if not positive.all():
        wrong = np.flatnonzero(~positive)
        raise ValueError(f"variance[{wrong[0]}] is {values[wrong[0]]}: variances must be positive")
    return values


def _by_value(shares: Array) -> Array:
    """Shares of infinite variances, which are the floats 0 and 1, as whole numbers among Fractions."""
    if shares.dtype != object:
        return shares
    whole = [int(v) if isinstance(v, float) and v in (0.0, 1.0) else v for v in shares.flat]
    return exact.objects(whole, shares.shape)
