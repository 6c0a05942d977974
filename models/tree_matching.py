"""Beyond the papers: the matchings of a whole tree at once, not family by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.group_matching import Table, as_runs
from models.model import ByProgram
from models.programs.costs import Absolute
from models.programs.operators import Children, Rises
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Rows
from models.synthetic import nation_counts
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class TreeMatching(ByProgram):
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
    no fast path, and the best known prices, those of blocks of up to three levels, may leave a gap. On up to
    three levels the prices of the optimal flow leave none (Ahuja, Magnanti & Orlin 1993, §16.2).

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
    >>> prices = model.prices_of_rows([[0, 1], [-1, -1], [1, 0], [1, 0], [-1, -1]])
    >>> model.objective(top_down), model.certificate(at_once, prices)
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
        (nodes, sizes), leaves = self.shape, self.tree.leaves
        e = self.estimates
        lower, upper = np.zeros(e.shape, np.int64), np.repeat(e[:, -1:], sizes, axis=1)
        lower[:, -1] = e[:, -1]
        rows = [Rows("consistency", {"x": Children(self.tree, e.shape)}, 0, 0)]
        if sizes > 1:
            rows.append(Rows("monotone", {"x": Rises(leaves, e.shape)}, 0, INFINITY))
        weight = np.tile(np.append(self.steps, 0), (nodes, 1))
        return Program("TreeMatching", [Block("x", e.shape, lower, upper, True, Absolute(e, weight))], rows)

    def prices_of_rows(self, slopes: Ints) -> dict[str, Array]:
        """The prices of all rows, from a slope of each count's cost; these may be any numbers.

        The price of a region's sum is the sum P of its slopes and of those of all regions above it. Those of
        a leaf's steps put all its groups at the size that is best for P.

        - slopes, array, shape (nodes, sizes − 1): clipped to the slopes that there are, ± the steps' widths.
        """
        tree = self.tree
        together = np.clip(slopes, -self.steps, self.steps)
        for level in range(1, tree.depth + 1):
            nodes = tree.nodes_of(level)
            together[nodes] += together[tree.parent[nodes]]
        rest = np.cumsum(together[tree.leaves][:, ::-1], axis=1)[:, ::-1]  # Σ of a leaf's prices from k on
        after = np.pad(rest, ((0, 0), (0, 1)))[:, 1:]
        least = np.minimum(rest.min(axis=1, initial=0), 0)
        sums = np.pad(together[tree.internal], ((0, 0), (0, 1)))
        return {"consistency": sums, "monotone": after - least[:, None]}

    def read(self, values: dict[str, Array], near: float) -> dict[str, Array]:  # noqa: ARG002
        """The slopes at the answer; `solvers.prove` finds better prices."""
        away = exact.difference(values["x"], self.estimates)[:, :-1]
        return self.prices_of_rows(self.steps * np.sign(away).astype(np.int64))

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
