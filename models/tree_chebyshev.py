"""Beyond the papers: the Chebyshev problems of a whole tree at once, not level by level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term, rows_of
from models.programs.trees import children_sums
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree
from models.witnesses.scaled import scaled
from models.witnesses.tree_sums import broken_sums


@dataclass(frozen=True, eq=False)
class TreeChebyshev:
    """Whole non-negative counts over a tree, consistent, with the least largest change of any node.

        minimize    max over all nodes r below the root of w_r |x_r − y_r|
        subject to  x_root = c,  Σ_{s child of r} x_s = x_r,  x ≥ 0,  x integer

    InfTDA (Boninsegna & Silvestri 2025) solves a Chebyshev problem for each family in turn, from the root
    down, with the parent's count given. This model solves all of them at once. Weights in the ratio of
    1/standard error bound changes by multiples of the standard errors.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts in level order; the root's is ignored. Fractions and floats are taken by value.
    total : int
        The root's public count c ≥ 0.
    weights : int array, shape (nodes,), optional
        Whole weights w ≥ 1; the root's is ignored. Default: all 1.

    Raises
    ------
    ValueError
        If there is not a count and a whole weight for each node, c is negative, a weight is under 1, or sums
        would not fit 62 bits; fractional counts are whole multiples of a unit, and must fit in it.

    Examples
    --------
    >>> model = TreeChebyshev(Tree([[0, 0], [0, 0, 1]]), [0, 6, 4, 9, 1, 2], total=10)
    >>> model.objective([10, 7, 3, 7, 0, 3])
    2
    >>> model.certificate([10, 7, 3, 7, 0, 3], {"node": 1, "lower": [3], "upper": [1]}).bound
    2
    >>> TreeChebyshev(Tree([[0, 0]]), [0, 5, 2], total=10, weights=[1, 1, 3]).objective([10, 8, 2])
    3
    >>> TreeChebyshev(Tree([[0, 0]]), [0, 5.5, 2.25], total=10).objective([10, 7, 3])
    Fraction(3, 2)
    """

    tree: Tree
    noisy: ArrayLike
    total: int
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy)
        if noisy.size != self.tree.size:
            raise ValueError(f"noisy must hold a number for each of the {self.tree.size} nodes")
        object.__setattr__(self, "total", door.total("total", self.total))
        object.__setattr__(self, "noisy", noisy)
        if 4 * noisy.size * (-(-exact.reach(self.in_units) // self.unit) + self.total + 1) >= 2**62:
            raise ValueError(f"{noisy.size} counts of up to {np.abs(noisy).max()} add up beyond 62 bits")
        if self.weights is not None:
            weights = door.data("weights", self.weights)
            if weights.dtype != np.int64 or weights.size != noisy.size or weights[1:].min(initial=1) < 1:
                raise ValueError(f"weights must hold a whole number >= 1 for each of the {noisy.size} nodes")
            object.__setattr__(self, "weights", read_only(np.concatenate([[1], weights[1:]])))
        if 4 * self.furthest >= 2**62:
            size = f"weights of up to {exact.reach(self.node_weights)} and counts in units of 1/{self.unit}"
            raise ValueError(f"changes with {size} exceed 62 bits")

    @property
    def counts(self) -> Ints:
        """The noisy counts as an array."""
        return np.asarray(self.noisy)

    @cached_property
    def unit(self) -> int:
        """The least whole number u such that all counts below the root are multiples of 1/u."""
        return scaled([self.counts[1:]]).unit

    @cached_property
    def in_units(self) -> Array:
        """The noisy counts in multiples of 1/`unit`, shape (nodes,); the root's is rounded down."""
        if self.counts.dtype == np.int64:
            return self.counts
        root = exact.objects([math.floor(self.counts[0]) * self.unit], (1,))
        whole = np.concatenate([root, scaled([self.counts[1:]]).number])
        return read_only(whole.astype(np.int64) if exact.fits(exact.reach(whole)) else whole)

    @property
    def node_weights(self) -> Ints:
        """The weight of each node, shape (nodes,)."""
        return np.ones(self.tree.size, np.int64) if self.weights is None else np.asarray(self.weights)

    @property
    def rounds(self) -> bool:
        """Whether the changes that a distance allows are rounded to whole counts one by one."""
        return self.weights is not None or self.unit > 1

    @property
    def furthest(self) -> int:
        """A distance that all consistent counts keep, in multiples of 1/`unit`."""
        return exact.reach(self.node_weights) * (exact.reach(self.in_units) + self.unit * self.total + 1)

    def program(self) -> Program:
        """One distance variable for all nodes."""
        n, w = self.tree.size, self.node_weights[1:]
        whole = self.unit == 1
        y = w * (self.in_units if whole else exact.fractions(self.counts))[1:]
        below = np.arange(1, n)
        beside = (np.tile(below - 1, 2), np.concatenate([below, np.full(n - 1, n)]))
        ones, shape = np.ones(n - 1), (n - 1, n + 1)
        lower = np.zeros(n, np.int64)
        lower[0] = self.total
        furthest = -(-self.furthest // self.unit)
        return Program(
            "TreeChebyshev",
            [Block("x", (n,), lower, self.total, True), Block("distance", (1,), 0, furthest, whole)],
            [
                rows_of("below", shape, (*beside, np.concatenate([w, -ones])), -INFINITY, y),
                rows_of("above", shape, (*beside, np.concatenate([w, ones])), y, INFINITY),
                children_sums("consistency", self.tree, others=1),
            ],
            [Term("linear", np.array([n]))],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: shares of the nodes of A and B, added up along paths.

        The bound that they prove is that of the two sets, before it is rounded up. With weights, or with
        fractional counts, there are none: changes are rounded one by one, which no prices show.
        """
        if self.rounds:
            return np.zeros(0)
        tree, y = self.tree, np.concatenate([[self.total], self.in_units[1:]])
        above, below, along = np.zeros((3, tree.size), np.int64)
        for side, name in ((above, "lower"), (below, "upper")):
            given = door.whole_array(witness, name, (-1,))
            if given is not None and given.size and 0 <= given.min() <= given.max() < tree.size:
                side[given] = 1
        moving, least = int((above + below)[1:].sum()), int(np.argmin(y))
        if int(((above - below) * y).sum()) < -int(y[least]) * moving or not moving:
            above[:] = below[:] = 0  # x ≥ 0 proves more
            below[least], moving = int(y[least] < 0), 1
        else:
            along = below - above
            for level in range(1, tree.depth + 1):
                own = tree.nodes_of(level)
                along[own] += along[tree.parent[own]]
        prices = np.concatenate([-below[1:], above[1:], along[tree.internal]])
        return np.array([Fraction(price, moving) for price in prices.tolist()])

    def objective(self, x: Any) -> Number:
        """The largest weighted change below the root: an `int`, or a Fraction for fractional counts."""
        x = exact.widened(door.answer(x, self.counts.shape, integer=True), self.unit) * self.unit
        away = np.abs(exact.difference(x, self.in_units))[1:]
        weights = self.node_weights[1:]
        if exact.reach(away) * exact.reach(weights) >= 2**62:  # of an answer that breaks constraints
            largest = max(w * d for w, d in zip(weights.tolist(), away.tolist(), strict=True))
        else:
            largest = (weights * away).max(initial=0)
        return self._distance(int(largest))

    def _distance(self, units: int) -> Number:
        """A distance in multiples of 1/`unit`, as a number."""
        return units if self.unit == 1 else Fraction(units, self.unit)

    def violations(self, x: Any) -> list[str]:
        """Negative counts and fractions, wrong sums, a wrong root."""
        return broken_sums(self.tree, door.answer(x, self.counts.shape, integer=True), self.total)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Two sets of nodes whose counts contradict each other at a smaller distance; linear time.

        Let r be a node, A a set of nodes of its subtree, none of them below another, and B a set of nodes
        such that each leaf of the subtree is, or is below, exactly one of them. Then Σ_A x ≤ x_r = Σ_B x. At
        distance d, x_a ≥ ⌈y_a − d/w_a⌉ and x_b ≤ ⌊y_b + d/w_b⌋, except that the root's count is c. If the
        first bounds add up to more over A than the second ones over B, no answer has distance d. Some such
        sets leave no gap: this is Hoffman's circulation theorem (1960) on a tree. For whole counts without
        weights, d is the largest that the sets exclude; otherwise the witness gives it, and as w·(x − y) is a
        multiple of 1/`unit`, the bound is the next one.

        Without a witness, the bound is the largest −w_r·y_r, as no count is negative; `solvers.prove` finds
        the sets.

        Parameters
        ----------
        x : int array, shape (nodes,)
        witness : mapping, optional
            ``node``, r, shape (), and ``lower`` and ``upper``, the nodes of A and B, int arrays. Sets that do
            not meet these conditions prove nothing. With weights or fractional counts also ``distance``, d in
            multiples of 1/`unit`, shape ().
        """
        x = door.answer(x, self.counts.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        units = max(0, -int((self.node_weights * self.in_units)[1:].min(initial=0)))
        node = door.whole_array(witness, "node", ())
        lower, upper = (door.whole_array(witness, name, (-1,)) for name in ("lower", "upper"))
        distance = door.whole_array(witness, "distance", ()) if self.rounds else np.array(0)
        proof = {}
        if node is not None and lower is not None and upper is not None and distance is not None:
            units = max(units, self._clash(int(node), lower, upper, int(distance)))
            proof = {"node": node, "lower": lower, "upper": upper}
            proof |= {"distance": distance} if self.rounds else {}
        bound = self._distance(units)
        reason = f"an answer with no change over {bound} is not ruled out"
        return judge(objective, objective - bound, True, proof, reason)

    def _clash(self, node: int, lower: Ints, upper: Ints, distance: int) -> int:
        """A distance that two sets need, in multiples of 1/`unit`; 0 if they break the conditions."""
        tree, size = self.tree, self.tree.size
        named = np.concatenate([[node], lower, upper])
        if named.min() < 0 or named.max() >= size:
            return 0
        inside = np.zeros(size, np.int64)
        inside[node] = 1
        above, below = np.bincount(lower, minlength=size), np.bincount(upper, minlength=size)
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            for marks in (inside, above, below):
                marks[nodes] += marks[tree.parent[nodes]]
        leaves = tree.leaves[inside[tree.leaves] > 0]
        if above.max(initial=0) > 1 or not inside[lower].all() or not inside[upper].all():
            return 0
        if not np.all(below[leaves] == 1):
            return 0
        y, u = self.in_units.copy(), self.unit
        y[0] = self.total * u
        if self.rounds:
            if not 0 <= distance <= self.furthest:
                return 0
            room = distance // self.node_weights
            room[0] = 0
            least, most = -((room - y)[lower] // u), (y + room)[upper] // u
            return distance + 1 if exact.total(least) > exact.total(most) else 0
        away = int(exact.total(y[lower])) - int(exact.total(y[upper]))
        moving = int((lower > 0).sum() + (upper > 0).sum())
        return max(0, -(-away // moving)) if moving else 0

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """A tree of about `size` nodes with counts from `random_noisy`."""
        depth = int(rng.integers(0, 4))
        branching = max(1, round(2 * size ** (1 / max(depth, 1))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.3))
        noisy = random_noisy(rng, (tree.size,))
        total = max(0, int(noisy[0]) + int(rng.integers(-3, 4)))
        weights = rng.integers(1, 30, tree.size) if rng.random() < 0.3 else None
        return cls(tree, noisy, total, weights)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree, and the true total."""
        return cls(*binary_counts(rng, size), **options)
