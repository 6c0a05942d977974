"""What the post-processing of tables starts from: noisy answers of every region, and public constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from models import Workload
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class Measured:
    """The noisy answers of every region to a workload.

    Parameters
    ----------
    regions : Hierarchy
    workload : Workload
        The queries, over all attributes.
    noisy : sequence of int64 arrays
        For each level from the root, shape (regions of the level, workload.size); ignored where a query was
        not measured.
    variance : float array, shape (levels, queries)
        The variance of each query's noise; infinite if it was not measured on that level.
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

    Parameters
    ----------
    zeros : bool array, shape (cells,)
        Structural zeros: combinations of categories that cannot occur in any region.
    sums : Workload or None
        Sums that are fixed or bounded, over the same attributes as the workload.
    lower, upper : sequences of arrays
        For each level, shape (regions of the level, sums.size): whole, or infinite if there is no bound. A
        sum with equal bounds is fixed (an invariant).
    names : sequence of str
        The name of each sum, for messages; shape (sums.size,).
    """

    zeros: Flags
    sums: Workload | None = None
    lower: Sequence[Array] = ()
    upper: Sequence[Array] = ()
    names: Sequence[str] = ()

    def tightened(self, regions: Hierarchy) -> Constraints:
        """The same constraints, with those that they imply for the levels above: the children's, added up.

        Raises
        ------
        InputError
            If a sum's lower bound is then above its upper bound; the message names the region and the sum.
        """
        if self.sums is None:
            return self
        room = self.sums.answers(np.where(self.zeros, 0, 1)) > 0
        lower, upper = list[Floats](), list[Floats]()
        tree = regions.tree
        for level in range(tree.depth, -1, -1):
            low = np.maximum(np.asarray(self.lower[level], float), 0)
            high = np.where(room, np.asarray(self.upper[level], float), np.minimum(self.upper[level], 0))
            if lower:
                parents = np.asarray(tree.levels[level])
                order = np.argsort(parents, kind="stable")
                first = np.searchsorted(parents[order], np.arange(len(low)))
                low = np.maximum(low, np.add.reduceat(lower[0][order], first))
                high = np.minimum(high, np.add.reduceat(upper[0][order], first))
            for region, i in np.argwhere(low > high)[:1].tolist():
                raise InputError(
                    f"{regions.levels[level]} {regions.names[level][region]!r}: {self.names[i]} must be at "
                    f"least {low[region, i]:g} and at most {high[region, i]:g}, with the bounds of the "
                    "regions in it added up. Bounds, invariants and structural zeros contradict each other: "
                    "change one"
                )
            lower.insert(0, low)
            upper.insert(0, high)
        return replace(self, lower=tuple(lower), upper=tuple(upper))
