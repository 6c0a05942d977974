"""What the post-processing of tables starts from: noisy answers of every region, and public constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.nesting import NestedSums
from models import Workload
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class Measured:
    """The noisy answers of every region to a workload.

    - workload: the queries, over all attributes.
    - noisy (sequence of int64 arrays): for each level from the root, shape (regions of the level,
      workload.size); ignored where a query was not measured.
    - variance, shape (levels, queries): the variance of each query's noise; infinite if it was not measured
      on that level.
    """

    regions: Hierarchy
    workload: Workload
    noisy: Sequence[Ints]
    variance: Floats

    @property
    def tree(self) -> Tree:
        """The tree of regions."""
        return self.regions.tree

    @cached_property
    def weights(self) -> Floats:
        """The inverse of the variances, 0 if not measured; shape (levels, queries)."""
        return 1 / np.asarray(self.variance, float)

    def children(self, level: int) -> list[Ints]:
        """For each region of a level, the positions of its children within the next level."""
        start, child = self.tree.children
        first, below = self.tree.nodes_of(level), self.tree.level_start[level + 1]
        return [child[start[v] : start[v + 1]] - below for v in range(first.start, first.stop)]


@dataclass(frozen=True, eq=False)
class Constraints:
    """What every table has to satisfy. Public.

    - zeros, shape (cells,): structural zeros: combinations of categories that cannot occur in any region.
    - sums: sums that are fixed or bounded, over the same attributes as the workload.
    - lower, upper: for each level, shape (regions of the level, sums.size): whole, or infinite if there is no
      bound. A sum with equal bounds is fixed (an invariant).
    - names: the name of each sum, for messages; shape (sums.size,).
    """

    zeros: Flags
    sums: Workload | None = None
    lower: Sequence[Array] = ()
    upper: Sequence[Array] = ()
    names: Sequence[str] = ()

    def tightened(self, regions: Hierarchy) -> Constraints:
        """The same constraints, with those that they imply for the levels above: the children's, added up.

        If the bounded sums nest, a child's bounds are first tightened by each other. With a fixed total, for
        example, an upper bound on one group is a lower bound on the others.

        Raises `InputError` if a sum's lower bound is then above its upper bound; the message names the region
        and the sum.
        """
        if self.sums is None:
            return self
        room = self.sums.answers(np.where(self.zeros, 0, 1)) > 0
        nested = self.nested
        below = None if isinstance(nested, tuple) or nested.are_disjoint else nested
        lower, upper = list[Floats](), list[Floats]()
        tight: tuple[Floats, Floats] | None = None
        for level in range(regions.tree.depth, -1, -1):
            low = np.maximum(np.asarray(self.lower[level], float), 0)
            high = np.where(room, np.asarray(self.upper[level], float), np.minimum(self.upper[level], 0))
            if lower:
                parents = np.asarray(regions.tree.levels[level])
                low = np.maximum(low, by_parent(lower[0], parents))
                high = np.minimum(high, by_parent(upper[0], parents))
                if below is not None and tight is not None:
                    least, most = (by_parent(side.T, parents).T for side in tight)
                    below.raise_bounds(low, high, least, most)
            for region, i in np.argwhere(low > high)[:1].tolist():
                self._refuse(regions, level, region, i, (low[region, i], high[region, i]), "regions")
            if below is not None:
                held = below.added_up(low, high)
                self.refuse_parts(regions, level, below, *held)
                tight = below.tight(*held)
            lower.insert(0, low)
            upper.insert(0, high)
        return replace(self, lower=tuple(lower), upper=tuple(upper))

    @cached_property
    def nested(self) -> NestedSums | tuple[int, int]:
        """The sums that are bounded below the root, as a tree; or two of them that cross."""
        assert self.sums is not None
        sides = zip(self.lower[1:], self.upper[1:], strict=True)
        bounded = [np.any((np.asarray(low) > 0) | (np.asarray(high) < np.inf), axis=0) for low, high in sides]
        chosen = np.any([np.zeros(self.sums.size, bool), *bounded], axis=0)
        return NestedSums.of(self.sums, chosen, self.zeros)

    def refuse_parts(
        self, regions: Hierarchy, level: int, nested: NestedSums, low: Floats, high: Floats
    ) -> None:
        """Refuse bounds of a level that contradict those of their parts, from `NestedSums.added_up`."""
        for k, region in np.argwhere(low > high)[:1].tolist():
            i = int(nested.answers[k][0]) if nested.answers[k].size else None
            self._refuse(regions, level, region, i, (low[k, region], high[k, region]), "sums")

    def _refuse(
        self, regions: Hierarchy, level: int, region: int, i: int | None, ends: tuple[float, float], of: str
    ) -> None:
        name = "all cells" if i is None else self.names[i]
        raise InputError(
            f"{regions.levels[level]} {regions.names[level][region]!r}: {name} must be at least {ends[0]:g} "
            f"and at most {ends[1]:g}, with the bounds of the {of} in it added up. Bounds, invariants and "
            "structural zeros contradict each other: change one"
        )


def by_parent(held: Floats, parents: Ints) -> Floats:
    """The sums of rows of siblings; shape (children, n) → (parents, n). Every parent has children."""
    order = np.argsort(parents, kind="stable")
    first = np.searchsorted(parents[order], np.arange(int(parents.max()) + 1))
    return np.asarray(np.add.reduceat(held[order], first))
