"""That the table is what the proved steps gave: else one could prove one thing and publish another.

How answers become a table is the mechanism's own, so each has a tie of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.check.counts import Regions, cells_at, is_cells, is_sizes
from hierdp.check.replay import Differs, Replay
from hierdp.hierarchy import Hierarchy
from hierdp.histogram import differences
from hierdp.mechanisms.top_down.levels import Children, Level
from hierdp.proofs import Kept
from models import CumulativeQIP, HierarchyQIP, Isotonic

if TYPE_CHECKING:
    from pandas import DataFrame

Ints = NDArray[np.int64]


Tie = Callable[[Iterator[Kept]], str]
"""From a release's steps, in order, to words on how they give the table; raises `Differs` if they do not."""


def tie_of(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Tie | None:
    """The tie of the mechanism that made a table; None if its counts stay as measured, or it is not ours."""
    from hierdp.check.ties_bins import check_clusters, check_ranges
    from hierdp.check.ties_groups import check_groups
    from hierdp.mechanisms.group_size import repairs as group_size_repairs
    from hierdp.mechanisms.top_down import repairs as top_down_repairs

    name, settings = manifest["mechanism"], manifest["settings"]
    alone = next(iter(regions.values())) if len(regions) == 1 else None
    if is_sizes(table) and alone is not None:
        if name in group_size_repairs.METHODS:
            return GroupSizeTie(table, settings, alone)
        return lambda steps: check_groups(Replay(steps), table, manifest, alone)
    if is_cells(settings, table):
        method = top_down_repairs.METHODS.get(name)
        return None if method is None or method.repair is None else LevelTie(table, settings, regions)
    if "range_query" in settings or "cluster" in table:
        check = check_ranges if "range_query" in settings else check_clusters
        return lambda steps: check(Replay(steps), table, manifest)
    return None


class GroupSizeTie:
    """Fioretto & Van Hentenryck 2019: the last step's answer is the table; before it one fit a region."""

    def __init__(self, table: DataFrame, settings: Mapping[str, Any], regions: Hierarchy) -> None:
        self.tree, self.groups = regions.tree, settings["groups"]
        self.counts = table["groups"].to_numpy().reshape(regions.size, -1)
        self.fits: list[Ints] = []
        self.wrong = "there is no step over all regions"
        frame, sizes = regions.frame(), self.counts.shape[1]
        rows = np.repeat(np.arange(regions.size), sizes)
        same = [np.array_equal(table[name], frame[name].to_numpy()[rows]) for name in ("level", "region")]
        same.append(np.array_equal(table["size"], np.tile(np.arange(sizes), regions.size)))
        self.misplaced = "" if all(same) else "the table's rows are not the regions and sizes in their order"

    def __call__(self, steps: Iterator[Kept]) -> str:
        """See the regions' fits, and the step over all regions."""
        for kept in steps:
            if isinstance(kept.model, Isotonic):
                self.fits.append(np.asarray(kept.x))
            else:
                self.wrong = self._last(kept)
        if self.misplaced or self.wrong:
            raise Differs(self.misplaced or self.wrong)
        return "it is the last step's answer"

    def _last(self, kept: Kept) -> str:
        model, where = kept.model, f"step {kept.step!r}"
        if not isinstance(model, HierarchyQIP | CumulativeQIP):
            return f"{where} is a {type(model).__name__}"
        same = [np.array_equal(*pair) for pair in zip(model.tree.levels, self.tree.levels, strict=False)]
        if model.tree.depth != self.tree.depth or not all(same):
            return f"{where} is over another hierarchy than the table's"
        if model.total != self.groups:
            return f"{where} has {model.total} groups, the manifest {self.groups}"
        if self.fits and not np.array_equal(differences(np.stack(self.fits)), model.noisy):
            return f"{where} starts from other sizes than the regions' fits give"
        answer = np.rint(kept.x).astype(np.int64)
        counts = differences(answer) if isinstance(model, CumulativeQIP) else answer
        differs = _where(counts, self.counts)
        return differs and f"{where} {differs}"


class LevelTie:
    """Boninsegna & Silvestri 2025: each level of the table is a step's answer, of children of that above."""

    def __init__(self, table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> None:
        self.table, self.settings, self.regions = table, settings, regions
        self.levels = len(settings["order"])
        self.seen = 0

    def _level(self, number: int) -> Level:
        places, counts = cells_at(self.table, self.settings, self.regions, number)
        axes, order = self.settings["axes"], self.settings["order"]
        depths = tuple(order[:number].count(axis) for axis in axes)
        return Level(depths, np.stack(places, axis=1), counts)

    def __call__(self, steps: Iterator[Kept]) -> str:
        """See level after level."""
        for kept in steps:
            self.seen += 1
            wrong = self._wrong(kept.model, np.asarray(kept.x))
            if wrong:
                raise Differs(f"step {kept.step!r} {wrong}")
        empty = not self.table["count"].any()
        if self.seen != self.levels and not (empty and self.seen == 0):
            raise Differs(f"there are {self.seen} steps for {self.levels} levels")
        return "each level is its step's answer, below the level above"

    def _wrong(self, model: Any, answer: Ints) -> str:
        if self.seen > self.levels:
            return "is one too many for the table's levels"
        axis = self.settings["order"][self.seen - 1]
        above, told = self._level(self.seen - 1), self._level(self.seen)
        children = Children(self.regions[axis].tree, above, list(self.settings["axes"]).index(axis))
        if not np.array_equal(np.atleast_1d(model.total), above.counts):
            return "has other totals than the level above in the table"
        if answer.size != children.size or not np.array_equal(model.offsets, children.offsets):
            return "is not over the children of the level above in the table"
        kept = np.flatnonzero(answer)
        found = children.level(kept, answer[kept])
        if not np.array_equal(found.places, told.places):
            return "gave a count to other cells than the table has"
        return _where(found.counts, told.counts)


def _where(answer: Ints, counts: Ints) -> str:
    """Where an answer is not what the table holds; empty if nowhere."""
    if answer.shape != counts.shape:
        return f"has {answer.size} counts, the table {counts.size}"
    wrong = np.argwhere(answer != counts)
    if not wrong.size:
        return ""
    return f"gave {answer[tuple(wrong[0])]} where the table has {counts[tuple(wrong[0])]}"
