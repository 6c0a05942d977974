"""That the table is what the proved steps gave: else one could prove one thing and publish another.

How answers become a table is the mechanism's own, so each has a tie of its own here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hierdp.check.counts import Regions, cells_at, is_cells, is_sizes
from hierdp.check.found import FAILS, HOLDS, OPEN, TIE, Found
from hierdp.check.ties_matching import AtOnceTie, MatchingTie
from hierdp.hierarchy import Hierarchy
from hierdp.histogram import differences
from hierdp.mechanisms.count_of_counts.plan import AT_ONCE
from hierdp.mechanisms.top_down.levels import Children, Level
from hierdp.proofs import Kept
from models import CumulativeQIP, HierarchyQIP, Isotonic

if TYPE_CHECKING:
    from pandas import DataFrame

Ints = NDArray[np.int64]


class Tie(Protocol):
    """Sees each step once, in order, and says in the end whether they give the table."""

    def see(self, kept: Kept) -> None:
        """Take a step into account."""

    def verdict(self, complete: bool) -> Found:
        """What came of it; `complete` says whether all steps were there."""


def tie_of(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Tie:
    """The tie of the mechanism that made a table."""
    from hierdp.mechanisms.group_size import repairs as group_size_repairs
    from hierdp.mechanisms.top_down import repairs as top_down_repairs

    name, settings = manifest["mechanism"], manifest["settings"]
    if name in group_size_repairs.METHODS and is_sizes(table) and len(regions) == 1:
        return GroupSizeTie(table, settings, next(iter(regions.values())))
    if name in top_down_repairs.METHODS and is_cells(settings, table):
        return LevelTie(table, settings, regions)
    if "merge" in settings and is_sizes(table) and len(regions) == 1:  # Kuo et al. 2018, from the top
        tie = AtOnceTie if settings["merge"] == AT_ONCE else MatchingTie
        return tie(table, next(iter(regions.values())))
    return NoTie()


class NoTie:
    """Of mechanisms whose tables are not tied to their steps yet."""

    def see(self, kept: Kept) -> None:
        """Nothing."""

    def verdict(self, complete: bool) -> Found:  # noqa: ARG002
        """Not checked."""
        return Found(TIE, OPEN, "this mechanism's table cannot be made again from its steps alone")


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

    def see(self, kept: Kept) -> None:
        """A region's fit, or the step over all regions."""
        if isinstance(kept.model, Isotonic):
            self.fits.append(np.asarray(kept.x))
            return
        self.wrong = self._last(kept)

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

    def verdict(self, complete: bool) -> Found:
        """Whether all fits together."""
        if not complete:
            return Found(TIE, OPEN, "not all steps are kept")
        wrong = self.misplaced or self.wrong
        return Found(TIE, FAILS if wrong else HOLDS, wrong or "it is the last step's answer")


class LevelTie:
    """Boninsegna & Silvestri 2025: each level of the table is a step's answer, of children of that above."""

    def __init__(self, table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> None:
        self.table, self.settings, self.regions = table, settings, regions
        self.levels = len(settings["order"])
        self.seen = 0
        self.wrong: list[str] = []

    def _level(self, number: int) -> Level:
        places, counts = cells_at(self.table, self.settings, self.regions, number)
        axes, order = self.settings["axes"], self.settings["order"]
        depths = tuple(order[:number].count(axis) for axis in axes)
        return Level(depths, np.stack(places, axis=1), counts)

    def see(self, kept: Kept) -> None:
        """The next level."""
        self.seen += 1
        wrong = self._wrong(kept.model, np.asarray(kept.x))
        self.wrong += [f"step {kept.step!r} {wrong}"] if wrong else []

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

    def verdict(self, complete: bool) -> Found:
        """Whether all levels fit, and there are no others."""
        if not complete:
            return Found(TIE, OPEN, "not all steps are kept")
        if not self.wrong and self.seen not in (0, self.levels):
            self.wrong.append(f"there are {self.seen} steps for {self.levels} levels")
        if self.wrong:
            return Found(TIE, FAILS, self.wrong[0])
        return Found(TIE, HOLDS, "each level is its step's answer, below the level above")


def _where(answer: Ints, counts: Ints) -> str:
    """Where an answer is not what the table holds; empty if nowhere."""
    if answer.shape != counts.shape:
        return f"has {answer.size} counts, the table {counts.size}"
    wrong = np.argwhere(answer != counts)
    if not wrong.size:
        return ""
    return f"gave {answer[tuple(wrong[0])]} where the table has {counts[tuple(wrong[0])]}"
