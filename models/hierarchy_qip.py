"""Rows 7 and 8: counts by size over a tree of regions, made consistent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, infeasible, judge
from models.exact import Number
from models.model import answer_of, fractional, random_noisy, tolerance_for
from models.program import Block, Program, Rows, Term
from models.tree import Tree

UNBOUNDED = 1 << 60
"""Stands for an infinite unit cost in int64; a model's data are checked to keep costs far below."""


@dataclass(frozen=True, eq=False)
class HierarchyQIP:
    """The M_H post-processing of Fioretto & Van Hentenryck 2019 (Fig. 3), untruncated by default.

    ::

        minimize    Σ_r ‖n̂^r − ñ^r‖²                                        (H1)
        subject to  Σ_s n̂^root_s = G                                        (H2, at the root)
                    Σ_{c child of r} n̂^c_s = n̂^r_s    for all r, s          (H3)
                    n̂^r_s ∈ D^r_s: whole numbers ≥ 0                         (H4)

    The paper prints (H2) for every region; that would contradict (H3), and means the root. With
    ``integer=False`` it is the relaxation M_H^r before rounding.

    Parameters
    ----------
    tree : Tree
        The regions; a region without children is a leaf, at any level.
    noisy : array, shape (nodes, sizes)
        Noisy counts ñ, a row a region in level order (the root first); int64 is exact throughout.
    total : int
        The public number of groups G ≥ 0.
    integer : bool
    window : int, optional
        The paper's truncated domains: D^r_s = {ñ − window … ñ + window} ∩ ℤ₊. Default: all of ℤ₊.

    Raises
    ------
    ValueError
        If the shapes do not fit, G is negative, or the window is not a whole number ≥ 0.

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

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy, ndim=2)
        if noisy.shape[0] != self.tree.size or noisy.shape[1] == 0:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs a row for each of the {self.tree.size} nodes "
                "of the tree and a column for each size"
            )
        object.__setattr__(self, "total", exact.as_total("total", self.total))
        if self.window is not None and (not isinstance(self.window, int | np.integer) or self.window < 0):
            raise ValueError(f"window must be a whole number >= 0, got {self.window!r}")
        largest = (exact.reach(noisy) if noisy.dtype == np.int64 else 0) + self.total + (self.window or 0)
        if noisy.dtype == np.int64 and 4 * largest * (self.tree.depth + 1) >= UNBOUNDED:
            raise ValueError(f"counts of up to {largest}: their unit costs along the tree pass 60 bits")
        object.__setattr__(self, "noisy", noisy)

    @property
    def counts(self) -> NDArray[Any]:
        """The noisy counts as an array, shape (nodes, sizes)."""
        return np.asarray(self.noisy)

    @property
    def domain(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(lower, upper)`` of every count, shape (nodes, sizes); `upper` is G where there is no window."""
        noisy = self.counts
        if self.window is None:
            return np.zeros(noisy.shape, np.int64), np.full(noisy.shape, self.total)
        low, high = (noisy, noisy) if noisy.dtype == np.int64 else (np.ceil(noisy), np.floor(noisy))
        return np.maximum(0, low - self.window), np.minimum(self.total, high + self.window)

    def program(self) -> Program:
        """(H1)–(H4), with ``x[r, s]`` = n̂^r_s."""
        noisy, tree = self.counts, self.tree
        nodes, sizes = noisy.shape
        start, child = tree.children
        internal = tree.internal
        family = np.repeat(np.arange(internal.size), np.diff(start)[internal])
        below = sp.csr_matrix((-np.ones(child.size), (family, child)), shape=(internal.size, nodes))
        above = sp.csr_matrix((np.ones(internal.size), (np.arange(internal.size), internal)), below.shape)
        consistency = sp.kron(above + below, sp.identity(sizes), format="csr")
        at_root = sp.csr_matrix((np.ones(sizes), (np.zeros(sizes), np.arange(sizes))), (1, nodes * sizes))
        lower, upper = self.domain
        zero = np.zeros(consistency.shape[0])
        return Program(
            "HierarchyQIP",
            [Block("x", (nodes, sizes), lower, upper, self.integer)],
            [
                Rows("H2 total", at_root, np.array([self.total]), np.array([self.total])),
                Rows("H3 consistency", consistency, zero, zero),
            ],
            [Term("quadratic", np.arange(nodes * sizes), 1, noisy.ravel())],
        )

    def objective(self, x: Any) -> Number:
        """Σ (n̂ − ñ)², an `int` for integer data, however large."""
        away = exact.difference(answer_of(x, self.counts.shape, self.integer), self.counts)
        return exact.dot(away, away)

    def violations(self, x: Any) -> list[str]:
        """Broken totals, sums of children, domains and integrality, by the paper's names."""
        noisy, tree = self.counts, self.tree
        x = answer_of(x, noisy.shape, self.integer)
        slack = 0 if self.integer else tolerance_for(x)
        found = [f"H4 {text}" for text in fractional(x)] if self.integer else []
        lower, upper = self.domain
        for r, s in np.argwhere((x < lower - slack) | (x > upper + slack)):
            found.append(f"H4 domain: x[{r}, {s}] = {x[r, s]}, not in {lower[r, s]} … {upper[r, s]}")
        x = exact.widened(x, tree.size + noisy.shape[1])
        sums = tree.child_sums(x) if tree.internal.size else x[:0]
        for i, s in np.argwhere(np.abs(sums - x[tree.internal]) > slack):
            r = tree.internal[i]
            found.append(f"H3 consistency: node {r}, size {s}: children sum to {sums[i, s]}, not {x[r, s]}")
        groups = x[0].sum()
        if abs(groups - self.total) > slack * noisy.shape[1]:
            found.append(f"H2 total: the root's counts sum to {groups}, not {self.total}")
        return found

    def certificate(self, x: Any) -> Certificate:
        """A price at every node that agrees along the tree; linear time.

        Going up, each subtree gets the cost of its last unit and of its next one; brothers, and at the root
        the sizes, must admit a common price between the dearest last and the cheapest next unit. Going
        down, such prices are chosen. The bound is the Lagrangian dual at these prices (multipliers of H2
        and H3), so it holds whatever they are; the gap is 0 just if x is optimal.
        """
        noisy = self.counts
        x = answer_of(x, noisy.shape, self.integer)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        exactly = exact.is_exact(x) and exact.is_exact(noisy) and self.integer
        near = 0 if exactly else tolerance_for(np.asarray(x, float))
        last, following = self._own_costs(x, near)
        below_last, below_next = self._subtree_costs(last, following)
        root_price, price, above = self._prices(last, following, below_last, below_next)

        # f(x) + (own price) x against its least value over the domain, node by node, size by size.
        slope = price - above
        lower, upper = self.domain
        z = noisy - slope / 2
        if self.integer:
            z = (2 * noisy - slope + 1) // 2 if exactly else np.floor(z + 0.5)
        z = np.clip(z, lower, upper)
        gap: Number = exact.dot(x - z, x + z - 2 * noisy + slope)
        if not exactly:
            sums = self.tree.child_sums(x) if self.tree.internal.size else x[:0]
            inner = self.tree.internal
            gap += exact.dot(price[inner], sums - x[inner]) + root_price * (float(x[0].sum()) - self.total)
            gap = max(gap, 0.0)
        reason = "" if gap == 0 else self._complaint(below_last, below_next)
        return judge(objective, gap, exactly, {"root_price": root_price, "prices": price}, reason)

    def _own_costs(self, x: NDArray[Any], near: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Each node's own cost of its last unit and of its next one; ∓UNBOUNDED at the ends of its domain."""
        slope = 2 * (x - self.counts)
        half = 1 if self.integer else 0
        lower, upper = self.domain
        # A bound that comes from G alone can bind no optimal answer without H2 binding too.
        at_top = (x >= upper - near) if self.window is not None else np.zeros(x.shape, bool)
        return (
            np.where(x <= lower + near, -UNBOUNDED, slope - half),
            np.where(at_top, UNBOUNDED, slope + half),
        )

    def _subtree_costs(
        self, last: NDArray[Any], following: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each internal node, the dearest last and cheapest next unit among its children's subtrees."""
        tree = self.tree
        start, child = tree.children
        below_last = np.full_like(last, 0)
        below_next = np.full_like(following, 0)
        total_last, total_next = last.copy(), following.copy()
        for level in range(tree.depth - 1, -1, -1):
            nodes = np.arange(tree.size)[tree.nodes_of(level)]
            nodes = nodes[np.diff(start)[nodes] > 0]
            if not nodes.size:
                continue
            family = child[start[nodes[0]] : start[nodes[-1] + 1]]
            cuts = start[nodes] - start[nodes[0]]
            below_last[nodes] = np.maximum.reduceat(total_last[family], cuts, axis=0)
            below_next[nodes] = np.minimum.reduceat(total_next[family], cuts, axis=0)
            total_last[nodes] = np.maximum(last[nodes] + below_last[nodes], -UNBOUNDED)
            total_next[nodes] = np.minimum(following[nodes] + below_next[nodes], UNBOUNDED)
        return below_last, below_next

    def _prices(
        self,
        last: NDArray[Any],
        following: NDArray[Any],
        below_last: NDArray[Any],
        below_next: NDArray[Any],
    ) -> tuple[Any, NDArray[Any], NDArray[Any]]:
        """``(root price, each node's price to its children, each node's price from above)``."""
        tree = self.tree
        top_last = np.maximum(last[0] + below_last[0], -UNBOUNDED).max()
        top_next = np.minimum(following[0] + below_next[0], UNBOUNDED).min()
        root_price = _between(top_last, top_next, np.zeros_like(top_last))
        price = np.zeros_like(last)
        above = np.empty_like(last)
        above[0] = root_price
        inner = np.zeros(tree.size, bool)
        inner[tree.internal] = True
        for level in range(tree.depth + 1):
            nodes = np.arange(tree.size)[tree.nodes_of(level)]
            if level:
                above[nodes] = price[tree.parent[nodes]]
            nodes = nodes[inner[nodes]]
            low = np.maximum(above[nodes] - following[nodes], below_last[nodes])
            high = np.minimum(above[nodes] - last[nodes], below_next[nodes])
            price[nodes] = _between(low, high, above[nodes])
        return root_price.item(), price, above

    def _complaint(self, below_last: NDArray[Any], below_next: NDArray[Any]) -> str:
        """Where prices clash: a unit that one child would give up for more than another asks for it."""
        inner = self.tree.internal
        clash = np.argwhere(below_last[inner] > below_next[inner])
        if clash.size:
            r, s = inner[clash[0][0]], clash[0][1]
            return f"size {s}: a unit moved between the children of node {r} would cost less"
        return "a unit moved from one size to another would cost less"

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape (ragged, one child, one node) with ugly counts and totals."""
        depth = int(rng.integers(0, 4))
        tree = Tree.random(rng, depth, branching=int(rng.integers(1, 5)), ragged=bool(rng.random() < 0.3))
        sizes = max(1, size // tree.size)
        noisy = random_noisy(rng, (tree.size, sizes))
        total = max(0, int(noisy[0].sum()) + int(rng.integers(-5, 6)))
        return cls(tree, noisy, total if rng.random() < 0.9 else 0)


def _between(low: Any, high: Any, near: Any) -> Any:
    """A price in [low, high], the one nearest to `near`; where the interval is empty, its middle."""
    middle = low + (high - low) // 2 if np.issubdtype(np.asarray(low).dtype, np.integer) else (low + high) / 2
    return np.where(low <= high, np.clip(near, low, np.maximum(low, high)), middle)
