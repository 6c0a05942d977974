"""Counts by size over a tree of regions, made consistent (M_H; Fioretto & Van Hentenryck 2019, Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of, fractional, tolerance_for, too_far
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.rounding import Rounding
from models.certificate import LEFT, Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term
from models.programs.trees import children_sums
from models.synthetic import nation_counts, noise, random_noisy
from models.tree import Tree
from models.witnesses.arrays import exact_array, real_array, whole_array
from models.witnesses.lagrangian import lagrangian_bound
from models.witnesses.node_prices import NEVER, NodePrices, node_prices, root_prices, rows_of_families
from models.witnesses.tree_sums import SMALL, adds_up, charged_sums, consistent


@dataclass(frozen=True, eq=False)
class HierarchyQIP:
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
        noisy = exact.as_data("noisy", self.noisy, ndim=2)
        if noisy.shape[0] != self.tree.size or noisy.shape[1] == 0:
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs a row for each of the {self.tree.size} nodes "
                "of the tree and a column for each size"
            )
        object.__setattr__(self, "total", exact.as_total("total", self.total))
        if self.window is not None and (not isinstance(self.window, int | np.integer) or self.window < 0):
            raise ValueError(f"window must be a whole number >= 0, got {self.window!r}")
        if self.weights is not None:
            weights = exact.as_data("weights", self.weights)
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
        weights, levels = self.node_weights, range(self.tree.depth + 1)
        return sum(int(weights[self.tree.nodes_of(level)].max()) for level in levels)

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
        noisy, tree = self.counts, self.tree
        nodes, sizes = noisy.shape
        at_root = scipy.sparse.csr_matrix(
            (np.ones(sizes), (np.zeros(sizes), np.arange(sizes))), (1, nodes * sizes)
        )
        lower, upper = self.domain
        return Program(
            "HierarchyQIP",
            [Block("x", (nodes, sizes), lower, upper, self.integer)],
            [
                Rows("H2 total", at_root, np.array([self.total]), np.array([self.total])),
                children_sums("H3 consistency", tree, sizes),
            ],
            [Term("quadratic", np.arange(nodes * sizes), np.repeat(self.node_weights, sizes), noisy.ravel())],
        )

    def relaxed(self) -> Self | None:
        """M_H^r, over the reals; None if the model is real, or has a window or weights of nodes."""
        plain = self.integer and self.window is None and not self.weighs_nodes
        return replace(self, integer=False) if plain else None

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the root's of H2, then those of H3, negated."""
        below = exact.negated(np.asarray(witness["prices"])[self.tree.internal])
        return np.concatenate(exact.comparable(exact.as_given([witness["root_price"]]), below.ravel()))

    def objective(self, x: Any) -> Number:
        """Σ w·(n̂ − ñ)², an `int` for integer data, however large."""
        x = answer_of(x, self.counts.shape, self.integer)
        if self.weights is None:
            return distance(x, self.counts, p=2)
        if self.weighs_nodes:
            return distance(x, self.counts, 2, np.repeat(self.node_weights, x.shape[1]))
        cost: Number = 0
        for level, weight in enumerate(np.asarray(self.weights).tolist()):
            nodes = self.tree.nodes_of(level)
            cost += weight * distance(x[nodes], self.counts[nodes], p=2)
        return cost

    def violations(self, x: Any) -> list[str]:
        """Broken totals, sums of children, domains and integrality, named as in the paper."""
        x = answer_of(x, self.counts.shape, self.integer)
        return self._broken(x, self._near(x))

    def _near(self, x: Array) -> Array:
        """The answer that x stands for: in floats, the sums of its leaves, scaled to the total.

        With a window, counts may be outside it by a tolerance.
        """
        if self.integer or exact.is_exact(x):
            return x
        leaves = self.tree.leaves
        lower, upper = (0.0, None) if self.window is None else (side[leaves] for side in self.domain)
        near = consistent(self.tree, x, lower, upper)
        groups = float(near[0].sum())
        if groups > 0:
            near *= self.total / groups
        return near

    def _broken(self, x: Array, near: Array) -> list[str]:
        """The violations; `near` is the feasible answer beside x, which of exact answers is x itself."""
        noisy, tree = self.counts, self.tree
        whole = self.integer and x.dtype == noisy.dtype == np.int64
        if whole and adds_up(tree, x, self.total, self._own_domain):
            return []
        slack = 0 if self.integer else tolerance_for(x, noisy, np.array([self.total]))
        far = [] if near is x else too_far(x, near, slack)
        empty = self.total > 0 and not near[0].any()  # no factor gives these counts the total
        if near is not x and not far and not empty and self.window is None:
            return []
        found = [f"H4 {text}" for text in fractional(x)] if self.integer else []
        lower, upper = self.domain
        held, least = exact.comparable(x, lower)
        for r, s in np.argwhere((held < least - slack) | (held > upper + slack)):
            found.append(f"H4 domain: x[{r}, {s}] = {x[r, s]}, not in {lower[r, s]} … {upper[r, s]}")
        x = exact.widened(x, tree.size + noisy.shape[1])
        sums = tree.child_sums(x) if tree.internal.size else x[:0]
        for i, s in np.argwhere(np.abs(sums - x[tree.internal]) > slack):
            r = tree.internal[i]
            found.append(f"H3 consistency: node {r}, size {s}: children sum to {sums[i, s]}, not {x[r, s]}")
        groups = x[0].sum()
        if empty or abs(groups - self.total) > slack * noisy.shape[1]:
            found.append(f"H2 total: the root's counts sum to {groups}, not {self.total}")
        return found or far

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A price λ[r, s] for the children of every region, and one for the root's counts; linear time.

        The prices are multipliers of H2 and H3. With s = λ[r] − λ[parent of r], where λ is 0 for leaves and
        the root price stands above the root,

            bound  =  Σ min over z in D of ( w (z − ñ)² + s z )  +  root price · G.

        It holds for any prices (Lagrangian duality; `models.lagrangian_bound` computes the same, more
        slowly). Some prices reach the optimum: sums along a tree are a laminar family, so the program, with
        its squares made linear between whole numbers, is a network flow, and these prices are its duals
        (Ahuja, Magnanti & Orlin 1993, §14.4).

        Without a witness, prices are read off the counts: a region's price lies between the cost of its last
        unit and of its next one. Such prices exist if and only if the counts are optimal. Otherwise the gap
        is an upper bound, and a better witness may make it smaller.

        Parameters
        ----------
        x : array, shape (nodes, sizes)
            In floats, it stands for the sums of its leaves, scaled to the total, if these are nearby: theirs
            is the objective. A window may be left by a tolerance.
        witness : mapping, optional
            ``prices``, shape (nodes, sizes), where rows of leaves are ignored, and ``root_price``.
        """
        noisy = self.counts
        x = answer_of(x, noisy.shape, self.integer)
        near = self._near(x)
        if broken := self._broken(x, near):
            return infeasible(self.objective(x), broken)
        x = near
        objective = self.objective(x)
        exactly = exact.is_exact(x) and exact.is_exact(noisy) and self.integer
        x = x.astype(np.int64, copy=False) if exactly else x
        prices = self._given(witness, exactly) or self._prices(x)
        gap = 0 if exactly and prices.agree else self._dual_gap(x, prices, exactly)
        below = np.zeros(noisy.shape, prices.below.dtype)
        below[self.tree.internal] = prices.below
        shown, reason = {"root_price": prices.root, "prices": below}, prices.clash or LEFT
        if exactly:
            return judge(objective, gap, True, shown, reason)
        rounded = self._rounding(x, prices, float(objective), float(gap))
        if not self.integer:
            gained, error = charged_sums(
                self.tree, prices.below, x, SMALL * max(rounded.unit, float(objective))
            )
            root, missing = float(prices.root), float(x[0].sum()) - self.total
            error += abs(root) * rounding.of_total(x.shape[1], float(np.abs(x[0]).sum()) + self.total)
            gap, rounded = gap + gained + root * missing, rounded.plus(error)
        proof = judge(objective, gap, False, shown, reason, rounded)
        if proof.contradiction and not self.integer and self.window is not None:
            return infeasible(objective, [f"H4 domain: it costs {-gap:.6g} less than any within the window"])
        if proof.optimal or not self.integer:
            return proof
        # Floats with a bound on their rounding did not prove it: whole numbers and Fractions decide.
        cost = exact.cost(x, noisy, np.broadcast_to(self.node_weights[:, None], x.shape))
        bound = lagrangian_bound(self.program(), self.row_prices(shown))
        return judge_exactly(cost, bound, False, shown, reason, rounded.unit)

    def _rounding(self, x: Array, prices: NodePrices, objective: float, gap: float) -> Rounding:
        """Rounding of the certificate in floats; see `models.arithmetic.rounding`."""
        weights = float(self.node_weights.min()), float(self.node_weights.max())
        largest = max(rounding.reach(x, self.counts), float(self.total))
        steepest = max(rounding.reach(prices.below), abs(float(prices.root)))
        found = rounding.of_squares(gap, objective, x.size, weights, largest, steepest)
        return found.of_whole(x.size, weights[1], largest, steepest) if self.integer else found

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
        whole = answer_of(x, self.counts.shape, True).astype(np.int64, copy=False)
        return root_prices(self.tree, whole, self.counts)

    def _given(self, witness: Witness | None, exactly: bool) -> NodePrices | None:
        """The prices of a witness; None if it has none."""
        take: Any = real_array
        if exactly:
            take = whole_array if self.counts.dtype == np.int64 else exact_array
        below, root = take(witness, "prices", self.counts.shape), take(witness, "root_price", ())
        if below is None or root is None:
            return None
        return NodePrices(False, root.item(), below[self.tree.internal], "")

    @property
    def _own_domain(self) -> tuple[Array, Array] | tuple[None, None]:
        """`domain`; a pair of None without a window, when H4 only requires counts ≥ 0.

        The upper bound G follows from H2, so it needs no separate price.
        """
        return (None, None) if self.window is None else self.domain

    def _prices(self, x: Array) -> NodePrices:
        near = 0 if self.integer else tolerance_for(np.asarray(x, float), np.array([self.total]))
        weights = self.node_weights
        return node_prices(self.tree, x, self.counts, weights, self._own_domain, self.integer, near)

    def _dual_gap(self, x: Array, prices: NodePrices, exactly: bool) -> Number:
        """The objective minus the Lagrangian dual at any prices, if x has all sums."""
        noisy, inner = self.counts, self.tree.internal
        slope = np.empty(noisy.shape, prices.below.dtype)
        slope[0], slope[1:] = -prices.root, -prices.below[rows_of_families(self.tree)[1][1:]]
        slope[inner] += prices.below
        # f(x) + slope·x minus its minimum over the domain, cell by cell.
        lower, upper = self.domain
        w = self.node_weights[:, None]
        z = (2 * w * noisy - slope + w) // (2 * w) if self.integer and exactly else noisy - slope / (2 * w)
        if self.integer and not exactly:
            z = np.floor(z + 0.5)
        z = np.clip(z, lower, upper)
        return exact.dot(x - z, w * (x + z - 2 * noisy) + slope)

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
