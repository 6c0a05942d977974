"""The tie of Kuo et al. 2018: groups matched and merged level by level down to those of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.check.found import FAILS, HOLDS, OPEN, TIE, Found
from hierdp.hierarchy import Hierarchy
from hierdp.mechanisms.count_of_counts.at_once import runs_of
from hierdp.proofs import Kept
from hierdp.size_runs import Runs
from models import GroupMatching, Merging, TreeMatching

if TYPE_CHECKING:
    from pandas import DataFrame

Ints = NDArray[np.int64]


class MatchingTie:
    """Each level's merged groups are the parents that the next level matches; the last are the table's."""

    def __init__(self, table: DataFrame, regions: Hierarchy) -> None:
        self.tree = regions.tree
        self.table = [_released(table, regions, level) for level in range(self.tree.depth + 1)]
        self.level = 0
        self.merged: Runs | None = None
        self.matchings: list[tuple[GroupMatching, Any]] = []
        self.wrong = ""

    def see(self, kept: Kept) -> None:
        """A matching of a region's groups, or the merging of all those of a level."""
        if isinstance(kept.model, GroupMatching):
            self.matchings.append((kept.model, kept.x))
        elif isinstance(kept.model, Merging) and not self.wrong:
            self.level += 1
            why = self._merge(kept.model, np.asarray(kept.x))
            self.wrong = why and f"step {kept.step!r} {why}"
            self.matchings = []

    def _merge(self, model: Merging, sizes: Ints) -> str:
        if self.level > self.tree.depth:
            return "is one too many for the table's levels"
        parents = np.flatnonzero(self.table[self.level - 1].distinct)  # those that have groups
        if len(self.matchings) != parents.size:
            return f"follows {len(self.matchings)} matchings; {parents.size} regions above it have groups"
        family = np.asarray(self.tree.levels[self.level - 1])
        nodes, counts, above, below = [], [], [], []
        for parent, (matching, pairs) in zip(parents, self.matchings, strict=True):
            if self.merged is not None:
                groups = Runs.from_rows([matching.parent])
                if not _same(groups, self.merged.select([parent])):
                    return f"follows a matching of other groups than those of region {parent + 1} above it"
            of_child, children = matching.children[2], np.flatnonzero(family == parent)
            if len(matching.child_sizes) != children.size:  # type: ignore[arg-type]
                return f"follows a matching of region {parent + 1} above it with other regions than its own"
            nodes.append(children[of_child[pairs["child"]]])
            counts.append(pairs["count"])
            above.append(matching.parent[0][pairs["parent"]])
            below.append(matching.children[0][pairs["child"]])
        estimates = np.stack([np.concatenate(above), np.concatenate(below)])
        if not np.array_equal(model.estimates, estimates):
            return "merges other sizes than those that were matched"
        rows = int(self.tree.level_sizes[self.level])
        self.merged = Runs.added(np.concatenate(nodes), sizes, np.concatenate(counts), rows)
        return ""

    def verdict(self, complete: bool) -> Found:
        """Whether all fits together, down to the table."""
        if not complete:
            return Found(TIE, OPEN, "not all steps are kept")
        wrong = self.wrong
        if not self.table[0].groups.any() and not self.level and not self.matchings:
            return Found(TIE, HOLDS, "it has no groups, and nothing was matched")
        if not wrong and (self.merged is None or self.level < self.tree.depth):
            wrong = f"there are {self.level} mergings for {self.tree.depth} levels"
        elif not wrong and self.merged is not None and not _same(self.merged, self.table[-1]):
            wrong = "the last level's merged groups are not those of the table"
        return Found(TIE, FAILS if wrong else HOLDS, wrong or "it is what the last matching and merging give")


class AtOnceTie:
    """All levels matched at once: the one step's answer is the table."""

    def __init__(self, table: DataFrame, regions: Hierarchy) -> None:
        self.table = [_released(table, regions, level) for level in range(regions.tree.depth + 1)]
        self.tree = regions.tree
        self.found: list[Runs] = []

    def see(self, kept: Kept) -> None:
        """The matching of all levels; estimates before it are its data."""
        if isinstance(kept.model, TreeMatching):
            self.found.append(runs_of(kept.model, kept.x))

    def verdict(self, complete: bool) -> Found:
        """Whether it is the table, region by region."""
        if not complete:
            return Found(TIE, OPEN, "not all steps are kept")
        if len(self.found) != 1 or self.found[0].offsets.size != self.tree.size + 1:
            return Found(TIE, FAILS, "there is not one matching of all levels over these regions")
        (found,) = self.found
        for level, released in enumerate(self.table):
            nodes = self.tree.nodes_of(level)
            if not _same(found.between(nodes.start, nodes.stop), released):
                return Found(TIE, FAILS, f"level {level} of the table is not what the matching gives")
        return Found(TIE, HOLDS, "it is what the matching of all levels gives")


def _released(table: DataFrame, regions: Hierarchy, level: int) -> Runs:
    """The released groups of a level, a row a region."""
    import pandas as pd

    rows = table[table["level"] == level]
    at = pd.Index(regions.names[level], dtype=object).get_indexer(pd.Index(rows["region"], dtype=object))
    if (at < 0).any():
        raise ValueError(f"level {level} has a region that is not in the list of regions")
    sizes, counts = (rows[name].to_numpy(np.int64) for name in ("size", "groups"))
    return Runs.added(at.astype(np.int64), sizes, counts, regions.names[level].size)


def _same(one: Runs, other: Runs) -> bool:
    pairs = ((one.offsets, other.offsets), (one.sizes, other.sizes), (one.counts, other.counts))
    return all(np.array_equal(*pair) for pair in pairs)
