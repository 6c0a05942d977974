"""Beyond row 14: noisy counts of every node of a tree, made to agree and not to be negative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, Witness, infeasible, judge
from models.distance import distance
from models.exact import Number
from models.exchange import NEVER, exchange
from models.layout import by_node, by_size, layout_of
from models.model import answer_of, fractional, random_noisy, tolerance_for
from models.node_prices import node_prices
from models.non_negative_prices import named_prices
from models.program import INFINITY, Block, Program, Rows, Term
from models.tree import Tree

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NonNegativeInference:
    """The consistent counts nearest to noisy ones among those that counts can be.

        minimize    Σ_v w[v] (x[v] − n[v])²              Qardaji, Yang & Li 2013, §3.3, with w = 1/variance
        subject to  Σ_{u child of v} x[u] = x[v]         for every v with children
                    x ≥ 0, and whole if `integer`

    `ConstrainedInference` without the last line has a closed form; with it, it is a quadratic program, or an
    integer one. `HierarchyQIP` is the same problem where the root's count is public and levels have one
    weight each.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; whole if `integer`.
    weights : array, shape (nodes,), optional
        Positive; 0 for inner nodes that were not asked, such as the paper's root. Only their ratios matter;
        whole numbers if `integer`. Default: 1 for all but the root, 0 for the root if it has children.
    integer : bool

    Raises
    ------
    ValueError
        If a shape does not fit the tree, a weight is negative or a leaf's 0, or, with `integer`, something is
        no whole number or costs pass 60 bits.

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

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy)
        nodes = self.tree.size
        if noisy.shape != (nodes,):
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs an entry for each of the {nodes} nodes"
            )
        weights = np.ones(nodes, np.int64) if self.weights is None else exact.as_data("weights", self.weights)
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
            # Every count of an optimal answer is at most the sum of what is positive.
            largest = int(exact.total(np.abs(noisy))) + exact.reach(noisy)
            if 4 * largest * _heaviest(self.tree, weights) >= NEVER:
                raise ValueError(f"counts of up to {largest}: their unit costs along the tree pass 60 bits")
        weights.flags.writeable = False
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)

    @property
    def data(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(noisy, weights)``, shape (nodes,) each."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    def program(self) -> Program:
        """The program above; nodes of weight 0 cost nothing."""
        noisy, weights = self.data
        tree = self.tree
        start, child = tree.children
        inner = tree.internal
        family = np.repeat(np.arange(inner.size), np.diff(start)[inner])
        below = scipy.sparse.csr_matrix(
            (-np.ones(child.size), (family, child)), shape=(inner.size, tree.size)
        )
        above = scipy.sparse.csr_matrix((np.ones(inner.size), (np.arange(inner.size), inner)), below.shape)
        asked = np.flatnonzero(weights)
        zero = np.zeros(inner.size)
        return Program(
            "NonNegativeInference",
            [Block("x", (tree.size,), 0, INFINITY, self.integer)],
            [Rows("consistency", scipy.sparse.csr_matrix(above + below), zero, zero)],
            [Term("quadratic", asked, weights[asked], noisy[asked])],
        )

    def row_prices(self, witness: Witness) -> NDArray[Any]:
        """The witness as prices of the program's rows: those of inner nodes, negative."""
        return np.asarray(-np.asarray(witness["prices"])[self.tree.internal])

    def objective(self, x: Any) -> Number:
        """Σ w·(x − n)²; an `int` where all of it is whole."""
        noisy, weights = self.data
        return distance(answer_of(x, noisy.shape, self.integer), noisy, 2, weights)

    def violations(self, x: Any) -> list[str]:
        """Negative and fractional counts, and nodes whose children do not sum to them."""
        tree = self.tree
        x = answer_of(x, (tree.size,), self.integer)
        slack = 0 if self.integer else tolerance_for(x)
        found = [*fractional(x)] if self.integer else []
        found += [f"domain: x[{v}] = {x[v]}, under 0" for v in np.flatnonzero(x < -slack)]
        x = exact.widened(x, tree.size)
        sums = tree.child_sums(x) if tree.internal.size else x[:0]
        for i in np.flatnonzero(np.abs(sums - x[tree.internal]) > slack):
            v = tree.internal[i]
            found.append(f"consistency: node {v}: children sum to {sums[i]}, not {x[v]}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """A price for each family that agrees with its members' counts; linear time where x is optimal.

        A unit of a node that holds some costs, at the margin, 2w(x − n) and the price of its children's
        units; it must be the price of its own family, which at the root is 0. The bound is the Lagrangian
        dual at the prices that x names. Over whole numbers a last and a next unit name an interval each; if
        these do not agree, exchanges make x optimal, and the gap is what they save: exact.
        """
        noisy, weights = self.data
        x = answer_of(x, noisy.shape, self.integer)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        if self.integer:
            x = x.astype(np.int64)
            prices = self._whole_prices(x)
            gap = 0 if prices.agree else objective - self.objective(self.exchanged(x))
            below = prices.below[1:, 0]
            return judge(objective, gap, True, {"prices": below}, prices.clash or "the prices leave a gap")
        price = np.zeros(noisy.size)
        given = (np.ascontiguousarray(part, float) for part in (x, noisy, weights))
        gap, worst, most = named_prices(self.tree.parent, *given, tolerance_for(x.astype(float)), price)
        reason = f"a unit of node {worst} costs {most:.6g} off its price"
        return judge(objective, max(gap, 0.0), False, {"prices": price}, reason)

    def exchanged(self, x: Ints) -> Ints:
        """The optimum over whole numbers, by exchanges of units from feasible whole counts.

        Units come from, and go to, a leaf beside the root that holds plenty and costs nothing.
        """
        tree, weights, plenty = self._with_plenty
        noisy = np.concatenate([[0, self.data[0][0], 0], self.data[0][1:]])
        held = np.concatenate([[x[0] + plenty, x[0], plenty], x[1:]])[:, None]
        layout = layout_of(tree)
        moved = by_size(held, layout.order)
        exchange(layout, by_size(noisy[:, None], layout.order), moved, 1, None, None, weights[layout.order])
        found = by_node(moved, layout.order)[:, 0]
        return np.concatenate([found[1:2], found[3:]])

    @cached_property
    def _with_plenty(self) -> tuple[Tree, Ints, int]:
        """The tree under one node more, beside a leaf of this many free units; and the nodes' weights."""
        levels = [np.array([0, 0]), *self.tree.levels]
        noisy, weights = self.data
        plenty = 2 * (int(exact.total(np.abs(noisy))) + noisy.size)
        return Tree(levels), np.concatenate([[0, weights[0], 0], weights[1:]]), plenty

    def _whole_prices(self, x: Ints) -> Any:
        tree, weights, plenty = self._with_plenty
        held = np.concatenate([[x[0] + plenty, x[0], plenty], x[1:]])[:, None]
        noisy = np.concatenate([[0, self.data[0][0], 0], self.data[0][1:]])[:, None]
        return node_prices(tree, held, noisy, weights, (None, None), True, 0)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one weight, one a level, or one a node; inner nodes not asked among them."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # half of that, on average
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


def _heaviest(tree: Tree, weights: Ints) -> int:
    """No path from the root weighs more than the heaviest nodes of all levels together."""
    return sum(int(weights[tree.nodes_of(level)].max()) for level in range(tree.depth + 1))
