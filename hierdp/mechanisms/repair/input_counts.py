"""The counts to repair: their regions, in a tree, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from models.arithmetic.arrays import Floats


@dataclass(frozen=True, eq=False)
class InputCounts:
    """Counts along a hierarchy that somebody else has noised or estimated.

    - counts, int64 or float64 array, shape (regions,): 0 where nothing was measured.
    - measured, shape (regions,): True for every region of the last level.
    - errors, float64 array, shape (regions,): standard errors, NaN where nothing was measured, or a fixed
      count has none. Default: all counts are equally uncertain.
    - tables: whether the regions of the first level are independent tables.
    """

    hierarchy: Hierarchy
    counts: NDArray[Any]
    measured: NDArray[np.bool_]
    errors: Floats | None = None
    tables: bool = False

    @cached_property
    def variance(self) -> Floats:
        """The variance of each count, 1 without standard errors; infinite where nothing was measured."""
        errors = np.ones(self.counts.size) if self.errors is None else self.errors
        return np.where(self.measured, errors, np.inf) ** 2

    @property
    def whole(self) -> bool:
        """Whether all counts are whole."""
        return self.counts.dtype == np.int64

    def name(self, region: int) -> str:
        """A region and its level, for messages and names of steps."""
        tree, at = self.hierarchy.tree, int(region)
        level = int(tree.level[at])
        named = self.hierarchy.names[level][at - int(tree.level_start[level])]
        return f"{self.hierarchy.levels[level]} {named!r}"

    def fixed_level(self, levels: Sequence[str]) -> int:
        """The finest of the levels whose counts stay as given; these are checked.

        Raises `InputError` if there is no such level, a count there is missing, negative or not whole, or the
        counts of a coarser fixed level are not the sums of those of the finest one.
        """
        there = self.hierarchy.levels
        for name in levels:
            if name not in there:
                raise InputError(f"no level {name!r} to fix; the levels are {listed(there)}")
        depths = sorted(there.index(name) for name in levels)
        if depths[-1] == len(there) - 1:
            raise InputError(
                f"level {there[-1]!r} is the last: if its counts are fixed, nothing is left to repair"
            )
        for depth in depths:
            self._check_fixed(depth)
        self._check_sums(depths)
        return depths[-1]

    def _check_fixed(self, depth: int) -> None:
        nodes = np.arange(self.counts.size)[self.hierarchy.tree.nodes_of(depth)]
        counts = self.counts[nodes]
        for wrong, what in (
            (~self.measured[nodes], "is missing"),
            (counts < 0, "is negative"),
            (counts != np.rint(counts), "is not whole"),
        ):
            if wrong.any():
                region = self.name(nodes[np.argmax(wrong)])
                raise InputError(f"the fixed count of {region} {what}: correct it, or do not fix its level")

    def _check_sums(self, depths: Sequence[int]) -> None:
        tree = self.hierarchy.tree
        sums = self.counts[tree.nodes_of(depths[-1])].astype(np.int64)
        for depth in range(depths[-1] - 1, depths[0] - 1, -1):
            above = np.zeros(int(tree.level_sizes[depth]), np.int64)
            np.add.at(above, np.asarray(tree.levels[depth]), sums)
            sums = above
            nodes = tree.nodes_of(depth)
            if depth in depths and (wrong := sums != self.counts[nodes]).any():
                region = self.name(nodes.start + int(np.argmax(wrong)))
                finest = self.hierarchy.levels[depths[-1]]
                raise InputError(
                    f"the fixed count of {region} is not the sum of the fixed counts of level {finest!r} "
                    "below it: correct them, or fix one of the two levels"
                )
