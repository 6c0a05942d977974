"""Counts by size over a tree of regions, made consistent (M_H; Fioretto & Van Hentenryck 2019, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Floats, Ints
from models.check.reader import NEVER, root_prices
from models.model import ByProgram
from models.programs.costs import Square
from models.programs.operators import Children, RootTotal
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import nation_counts, noise, random_noisy
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class HierarchyQIP(ByProgram):
    """Consistent counts by size nearest to noisy ones.

    M_H of Fioretto & Van Hentenryck 2019, Fig. 3, untruncated by default:

        minimize    Σ_r w_r ‖n̂^r − ñ^r‖²                                    (H1)
        subject to  Σ_s n̂^root_s = G                                        (H2, at the root)
                    Σ_{c child of r} n̂^c_s = n̂^r_s    for all r, s          (H3)
                    n̂^r_s ∈ D^r_s: whole numbers ≥ 0                         (H4)

    The paper prints (H2) for every region; that would contradict (H3), so here it holds at the root.
    The paper has no weights: w_r is 1 unless `weights` is given. ``integer=False`` is the relaxation M_H^r
    before rounding.

    Parameters
    ----------
    tree : Tree
        The regions; a region without children is a leaf, at any level.
    noisy : array, shape (nodes, sizes)
        Noisy counts ñ, one row per region in level order (the root first); int64 is exact throughout.
    total : int
        The public number of groups G ≥ 0.
    integer : bool
    window : int, optional
        The paper's truncated domains: D^r_s = {ñ − window … ñ + window} ∩ ℤ₊. Default: all of ℤ₊.
    weights : int array, shape (levels,) or (nodes,), optional
        Positive whole weights of the levels, the root's first, or of the nodes; only their ratios matter.
        Default: all 1. If counts differ in noise, weights proportional to 1/variance give the likeliest
        counts under normal noise.

    Raises
    ------
    ValueError
        If the shapes do not fit, G is negative, the window is not a whole number ≥ 0, or a weight is not a
        whole number ≥ 1.

    Examples
    --------
    >>> model = HierarchyQIP(Tree([[0, 0]]), [[3, 1], [2, 0], [2, -1]], total=5)
    >>> model.objective([[4, 1], [2, 1], [2, 0]])
    3
    >>> model.certificate([[4, 1], [2, 1], [2, 0]]).optimal
    True
    """

    tree: Tree
    noisy: ArrayLike
    total: int
    integer: bool = True
    window: int | None = None
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        noisy = door.data("noisy", self.noisy, ndim=2)
        if noisy.shape[0] != self.tree.size or noisy.shape[1] == 0:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs a row for each of the {self.tree.size} nodes "
                "of the tree and a column for each size"
            )
        object.__setattr__(self, "total", door.total("total", self.total))
        if self.window is not None and (not isinstance(self.window, int | np.integer) or self.window < 0):
            raise ValueError(f"window must be a whole number >= 0, got {self.window!r}")
        if self.weights is not None:
            weights = door.data("weights", self.weights)
            levels = self.tree.depth + 1
            if weights.shape not in ((levels,), (self.tree.size,)):
                there = f"{levels} levels and {self.tree.size} nodes"
                raise ValueError(f"weights have shape {weights.shape}; there are {there}")
            if weights.dtype != np.int64 or weights.min() < 1:
                raise ValueError("weights must be whole numbers >= 1: scale them, only their ratios matter")
            object.__setattr__(self, "weights", weights)
        largest = (exact.reach(noisy) if noisy.dtype == np.int64 else 0) + self.total + (self.window or 0)
        if noisy.dtype == np.int64 and 4 * largest * self.heaviest >= NEVER:
            raise ValueError(f"counts of up to {largest}: their unit costs along the tree pass 60 bits")
        object.__setattr__(self, "noisy", noisy)

    @property
    def counts(self) -> Array:
        """The noisy counts as an array, shape (nodes, sizes)."""
        return np.asarray(self.noisy)

    @property
    def node_weights(self) -> Ints:
        """The weight w of each node, shape (nodes,)."""
        if self.weights is None:
            return np.ones(self.tree.size, np.int64)
        weights = np.asarray(self.weights)
        return weights if self.weighs_nodes else weights[self.tree.level]

    @property
    def weighs_nodes(self) -> bool:
        """Whether nodes of one level may have different weights."""
        size = np.size(self.weights) if self.weights is not None else 0
        return size == self.tree.size != self.tree.depth + 1

    @property
    def heaviest(self) -> int:
        """The sum of the weights on a path from the root to the deepest level, or an upper bound on it."""
        if self.weights is None:
            return self.tree.depth + 1
        return self.tree.heaviest(self.node_weights)

    @property
    def domain(self) -> tuple[Array, Array]:
        """``(lower, upper)`` of every count, shape (nodes, sizes); `upper` is G without a window."""
        noisy = self.counts
        if self.window is None:
            return np.zeros(noisy.shape, np.int64), np.full(noisy.shape, self.total)
        low, high = (noisy, noisy) if noisy.dtype == np.int64 else (np.ceil(noisy), np.floor(noisy))
        return np.maximum(0, low - self.window), np.minimum(self.total, high + self.window)

    @property
    def reach(self) -> tuple[Array, Array]:
        """``(least, most)``: the range of each subtree's count within its domains, shape (nodes, sizes)."""
        start, child = self.tree.children
        least, most = (exact.widened(side.copy(), self.tree.size) for side in self.domain)
        for r in self.tree.internal[::-1]:
            family = child[start[r] : start[r + 1]]
            least[r] = np.maximum(least[r], least[family].sum(axis=0))
            most[r] = np.minimum(most[r], most[family].sum(axis=0))
        return least, most

    def why_infeasible(self) -> str:
        """A constraint that no counts can satisfy; empty if there is an answer (always, without a window)."""
        if self.window is None:
            return ""
        least, most = self.reach
        wrong = np.argwhere(least > most)
        if wrong.size:
            r, s = wrong[-1]
            lower, upper = (side[r, s] for side in self.domain)
            if lower > upper:
                return f"H4 domain: no whole number >= 0 for x[{r}, {s}] is within the window"
            return f"H3 consistency: node {r}, size {s}: {lower} … {upper} is out of its children's reach"
        low, high = exact.total(least[0]), exact.total(most[0])
        if low <= self.total <= high:
            return ""
        return f"H2 total: the windows let the root's counts sum to {low} … {high}, not {self.total}"

    def program(self) -> Program:
        """(H1)–(H4), with ``x[r, s]`` = n̂^r_s."""
        noisy, weight = self.counts, self.node_weights[:, None]
        cost = Square(noisy, 1 if self.weights is None else np.broadcast_to(weight, noisy.shape))
        lower, upper = (0, INFINITY) if self.window is None else self.domain
        return Program(
            "HierarchyQIP",
            [
                Block(
                    "x",
                    noisy.shape,
                    lower,
                    upper,
                    self.integer,
                    cost,
                    box=(lower, self.total) if self.window is None else None,
                )
            ],
            [
                Rows("H2 total", {"x": RootTotal(noisy.shape)}, self.total, self.total),
                Rows("H3 consistency", {"x": Children(self.tree, noisy.shape)}, 0, 0),
            ],
        )

    def repaired(self, x: Floats) -> Floats:
        """The sums of its leaves, scaled to the total."""
        leaves = self.tree.leaves
        lower, upper = (0.0, None) if self.window is None else (side[leaves] for side in self.domain)
        near = self.tree.consistent(x, lower, upper)
        groups = float(near[0].sum())
        if groups > 0:
            near *= self.total / groups
        return near

    def relaxed(self) -> Self | None:
        """M_H^r, over the reals; None if the model is real, or has a window or weights of nodes."""
        plain = self.integer and self.window is None and not self.weighs_nodes
        return replace(self, integer=False) if plain else None

    def root_prices(self, x: Any) -> tuple[int, int]:
        """The root prices that prove whole counts optimal: from the costliest last unit to the cheapest next.

        They show whether blocks of sizes that were solved apart are optimal together. Let each block of a
        problem's sizes be a problem of its own, with a share of G as its total. Then the blocks' answers are
        optimal for the whole if and only if each is optimal for its share, and their ranges of root prices
        have a price in common. With that price and the blocks' own prices for H3, the bounds of the blocks
        add up to the bound of the whole, and so do the objectives. If there is no common price, a unit moved
        from one block to another would cost less.

        Parameters
        ----------
        x : int64 array, shape (nodes, sizes)
            Optimal, as `certificate` proves; otherwise the range means nothing.

        Returns
        -------
        int, int
            ``lowest, highest``; ∓2⁶⁰ if there is no limit.

        Raises
        ------
        ValueError
            If the model is relaxed, or has fractions, weights or windows.
        """
        if (
            not self.integer
            or self.counts.dtype != np.int64
            or self.weights is not None
            or self.window is not None
        ):
            raise ValueError("root prices are for whole counts without weights and windows")
        whole = door.answer(x, self.counts.shape, True)
        return root_prices(self._structure, {"x": whole})

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape (ragged, one child, one node) with counts from `random_noisy`."""
        depth = int(rng.integers(0, 4))
        tree = Tree.random(rng, depth, branching=int(rng.integers(1, 5)), ragged=bool(rng.random() < 0.3))
        sizes = max(1, size // tree.size)
        noisy = random_noisy(rng, (tree.size, sizes))
        total = max(0, int(noisy[0].sum()) + int(rng.integers(-5, 6)))
        weights = rng.integers(1, 6, size=depth + 1) if rng.random() < 0.3 else None
        if weights is not None and weights[0] < 3:
            weights = rng.integers(1, 6, size=tree.size)
        return cls(tree, noisy, total if rng.random() < 0.9 else 0, weights=weights)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Counts by up to a thousand sizes in a nation, its states and their counties."""
        tree, true = nation_counts(rng, size, most=1_000)
        total = int(true[0].sum())
        true += noise(rng, true.shape)
        return cls(tree, true, total, **options)
