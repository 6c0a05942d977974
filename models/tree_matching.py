"""Beyond the papers: the matchings of a whole tree at once, not family by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.distance import distance
from models.certificate import Certificate, Witness, infeasible, judge
from models.group_matching import Table, as_runs
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows, Term
from models.programs.trees import children_sums
from models.synthetic import nation_counts
from models.tree import Tree
from models.witnesses.arrays import whole_array


@dataclass(frozen=True, eq=False)
class TreeMatching:
    """One size for each group of a tree of regions, nearest in total to its estimated sizes at all levels.

    Each group is in one region per level, and every region has one estimated size per group. Match
    groups and estimated sizes at all levels at once, and give each group a size t, such that the total change
    is least:

        minimize    Σ_groups Σ_levels |s_level(group) − t(group)|
        subject to  in each region, its groups have its estimated sizes, each once

    On two levels some optimal t is one of the two sizes, and this is `GroupMatching` (Kuo et al. 2018, §5.2).
    On three levels the cost is half the sum of |s − s′| over all three pairs of levels. Given the sizes t,
    the regions are independent, and sorting is an optimal matching of each; so only the number of groups of
    each size in each region has to be chosen. Let v_1 < v_2 < … be all sizes that occur in an estimate, e_rk
    the number of estimated sizes of r up to v_k, and x_rk the number of groups of r with t up to v_k:

        minimize    Σ_r Σ_k (v_{k+1} − v_k) · |x_rk − e_rk|     earth mover's distances to all estimates
        subject to  x_rk ≤ x_r,k+1
                    x_r,last = groups of r
                    Σ_{c child of r} x_ck = x_rk
                    x ≥ 0, x integer

    The answer is x, shape (nodes, sizes): a consistent release at the least total distance. (Sizes between
    two neighbours v_k, v_{k+1} are not needed, as the cost is linear between them.)

    Top-down matching, family by family, is optimal for Σ |s − s′| over parents and children: that sum is
    separable by family (Kuo et al., Lemma 5.4 on each). It is not optimal here, because the root's groups are
    matched before the third level is considered. On three levels it costs at most twice the optimum, which is
    at least either family's cost alone.

    On up to three levels the optimum is that of a flow, and whole. Given the counts of a region above the
    leaves, sorting is an optimal way to share them among its leaves, at the distance between these counts and
    the leaves' estimates taken together. Two laminar families of sums remain. Three such families (as in the
    program above, or on four levels) are not totally unimodular. On more than three levels there is therefore
    no fast path, and the best known prices, those of blocks of up to three levels, may leave a gap.

    Parameters
    ----------
    tree : Tree
    sizes : sequence of tables of runs
        One per node in level order, as `GroupMatching` takes them: a pair ``(sizes, counts)`` of int arrays,
        or an array of shape (runs, 2).

    Raises
    ------
    ValueError
        If a table is malformed, there is not one per node, a node and its children differ in their number of
        groups, or costs would not fit 62 bits.

    Examples
    --------
    Two regions of one group each. Their own sizes, 0 and 1, match the root's 0 and 2 in this order; the sizes
    at the level below match them in the opposite order, and differ more.

    >>> tree = Tree([[0, 0], [0, 1]])
    >>> model = TreeMatching(tree, [([0, 2], [1, 1]), ([0], [1]), ([1], [1]), ([2], [1]), ([0], [1])])
    >>> top_down = [[1, 2, 2], [1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]]
    >>> at_once = [[1, 1, 2], [0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]]
    >>> prices = [[0, 1], [-1, -1], [1, 0], [1, 0], [-1, -1]]
    >>> model.objective(top_down), model.certificate(at_once, {"prices": prices})
    (4, Certificate(optimal=True, objective=3, bound=3, gap=0, ...))
    """

    tree: Tree
    sizes: Sequence[Table]

    def __post_init__(self) -> None:
        given = list(self.sizes)
        if len(given) != self.tree.size:
            raise ValueError(f"there are {len(given)} tables of sizes for {self.tree.size} nodes")
        tables = tuple(as_runs(f"sizes[{r}]", table) for r, table in enumerate(given))
        object.__setattr__(self, "sizes", tables)
        above = [int(exact.total(counts)) for _, counts in tables]
        if max(above) >= 2**62:
            raise ValueError(f"there are {max(above)} groups: beyond 62 bits")
        start, child = self.tree.children
        for r in self.tree.internal:
            below = sum(above[c] for c in child[start[r] : start[r + 1]])
            if below != above[r]:
                raise ValueError(f"node {r} has {above[r]} groups, its children together {below}")
        far = int(self.points[-1]) - int(self.points[0])
        if 8 * (self.tree.size + 1) * far >= 2**62:
            raise ValueError(f"sizes as far apart as {far}: costs along the tree pass 62 bits")

    @cached_property
    def points(self) -> Ints:
        """All sizes that occur in an estimate, ascending, shape (sizes,); 0 if there are no groups."""
        tables: Any = self.sizes
        found = np.unique(np.concatenate([sizes[counts > 0] for sizes, counts in tables]))
        return found if found.size else np.zeros(1, np.int64)

    @cached_property
    def estimates(self) -> Ints:
        """e: the number of estimated sizes of each node that are at most each point, shape (nodes, sizes)."""
        tables: Any = self.sizes
        counted = np.zeros((self.tree.size, self.points.size), np.int64)
        for row, (sizes, counts) in zip(counted, tables, strict=True):
            held = counts > 0
            np.add.at(row, np.searchsorted(self.points, sizes[held]), counts[held])
        return np.cumsum(counted, axis=1)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an answer: nodes by points."""
        return self.tree.size, self.points.size

    @property
    def steps(self) -> Ints:
        """Widths between neighbouring points, shape (sizes − 1,)."""
        return np.diff(self.points)

    def program(self) -> Program:
        """The second form above."""
        nodes, sizes = self.shape
        e, leaves = self.estimates, self.tree.leaves
        lower, upper = np.zeros(e.shape, np.int64), np.repeat(e[:, -1:], sizes, axis=1)
        lower[:, -1] = e[:, -1]
        rows, cost = [children_sums("consistency", self.tree, sizes)], []
        if sizes > 1:
            step = scipy.sparse.diags(
                [-np.ones(sizes - 1), np.ones(sizes - 1)], [0, 1], shape=(sizes - 1, sizes)
            )
            at_leaf = (np.ones(leaves.size), (np.arange(leaves.size), leaves))
            rises = scipy.sparse.kron(
                scipy.sparse.csr_matrix(at_leaf, (leaves.size, nodes)), step, format="csr"
            )
            zero = np.zeros(rises.shape[0])
            rows.append(Rows("monotone", rises, zero, np.full(zero.size, INFINITY)))
            inner = np.arange(e.size).reshape(e.shape)[:, :-1].ravel()
            cost.append(Term("absolute", inner, np.tile(self.steps, nodes), e[:, :-1].ravel()))
        return Program("TreeMatching", [Block("x", e.shape, lower, upper, True)], rows, cost)

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: sums along paths, and values of a leaf's steps."""
        tree = self.tree
        together = np.clip(witness["prices"], -self.steps, self.steps)
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            together[nodes] += together[tree.parent[nodes]]
        rest = np.cumsum(together[tree.leaves][:, ::-1], axis=1)[:, ::-1]  # Σ of a leaf's prices from k on
        after = np.pad(rest, ((0, 0), (0, 1)))[:, 1:]
        least = np.minimum(rest.min(axis=1, initial=0), 0)
        consistent = np.pad(together[tree.internal], ((0, 0), (0, 1)))
        return np.concatenate([consistent.ravel(), (after - least[:, None]).ravel()])

    def objective(self, x: Any) -> exact.Number:
        """Σ_r Σ_k (v_{k+1} − v_k) · |x_rk − e_rk|, an `int` for whole answers."""
        x = answer_of(x, self.shape, integer=True)
        steps = np.broadcast_to(self.steps, (self.tree.size, self.points.size - 1))
        return distance(x[:, :-1], self.estimates[:, :-1], 1, steps)

    def violations(self, x: Any) -> list[str]:
        """Fractions, negative and falling counts, wrong numbers of groups, wrong sums of children."""
        x = answer_of(x, self.shape, integer=True)
        tree = self.tree
        found = list(fractional(x))
        found += [f"x >= 0: x[{r}, {k}] = {x[r, k]}" for r, k in np.argwhere(x < 0)]
        for r, k in np.argwhere(x[:, 1:] < x[:, :-1]):
            found.append(f"monotone: node {r}: x[{r}, {k}] = {x[r, k]} > x[{r}, {k + 1}] = {x[r, k + 1]}")
        for r in np.flatnonzero(x[:, -1] != self.estimates[:, -1]):
            found.append(f"groups: node {r} has {self.estimates[r, -1]}, sizes are given to {x[r, -1]}")
        inner = tree.internal
        sums = tree.child_sums(exact.widened(x, tree.size)) if inner.size else x[:0]
        for i, k in np.argwhere(sums != x[inner]):
            r = inner[i]
            found.append(f"consistency: node {r}, size {k}: children sum to {sums[i, k]}, not {x[r, k]}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check prices in each region for each step between sizes, shape (nodes, sizes − 1).

        Prices p_rk are clipped to ± the step's width w_k, so that ``w_k·|x_rk − e_rk| ≥ p_rk (x_rk − e_rk)``.
        The objective is therefore at least Σ_r Σ_k p_rk (x_rk − e_rk). Let P be the sum of the prices of a
        leaf and of all regions above it. The minimum over all feasible x puts all groups of a leaf at the
        size that is best for P: see `bound`. This is the Lagrangian dual of the flow (Ahuja, Magnanti & Orlin
        1993, §16.2). On up to three levels the prices of the optimal flow leave no gap.

        Without a witness the slopes at x are tried, ``w_k·sign(x_rk − e_rk)``; `solvers.prove` finds better
        ones.

        Parameters
        ----------
        x : int array, shape (nodes, sizes)
        witness : mapping, optional
            ``prices``, whole numbers.
        """
        x = answer_of(x, self.shape, integer=True)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        prices = whole_array(witness, "prices", (self.tree.size, self.points.size - 1))
        if prices is None:
            prices = self.steps * np.sign(x.astype(np.int64) - self.estimates)[:, :-1]
        bound = max(self.bound(prices), 0)
        reason = f"sizes at a total distance of {bound} are not ruled out"
        return judge(objective, objective - bound, True, {"prices": prices}, reason)

    def bound(self, prices: Ints) -> int:
        """The lower bound that prices, shape (nodes, sizes − 1), prove when clipped to the steps' widths."""
        prices = np.clip(prices, -self.steps, self.steps)
        together, tree = prices.copy(), self.tree
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            together[nodes] += together[tree.parent[nodes]]
        above = np.cumsum(together[tree.leaves][:, ::-1], axis=1)
        least = np.minimum(above.min(axis=1, initial=0), 0)
        held = exact.dot(self.estimates[tree.leaves, -1], least)
        return int(held) - int(exact.dot(prices, self.estimates[:, :-1]))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape, most of up to three levels, with few and many sizes, ties, empty regions."""
        depth = int(rng.choice([0, 1, 2, 2, 2, 3]))
        tree = Tree.random(rng, depth, int(rng.integers(1, 5)), ragged=bool(rng.random() < 0.3))
        far = int(rng.choice([2, 4, 12, 1000]))
        each = max(1, size // tree.size)
        groups = np.asarray(tree.sum_up(rng.integers(0, rng.integers(2, 3 + each), tree.leaves.size)))
        kinds = [rng.integers(0, far, int(rng.integers(1, 2 + min(each, far)))) for _ in range(tree.size)]
        tables = [
            (sizes, rng.multinomial(n, np.full(sizes.size, 1 / sizes.size)))
            for sizes, n in zip(kinds, groups, strict=True)
        ]
        return cls(tree, tables)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """A nation, its states and their counties, with up to 300 sizes; estimates are off by up to 2."""
        tree, true = nation_counts(rng, size, most=300)
        tables = []
        for row in true:
            held = np.flatnonzero(row)
            moved = np.maximum(0, held + rng.integers(-2, 3, held.size)).clip(0, row.size - 1)
            tables.append((moved, row[held]))
        return cls(tree, tables, **options)
