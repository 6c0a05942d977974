"""Intervals for flows that were measured level by level.

A level's nodes are measured if their parents' released counts are positive, which follows from earlier noise
alone. So given the levels above, the noise of a level's answers is independent of which of them there are:
the sum of those that are in a question, plus or minus its own noise, covers their true sum. What was not
measured lies in nodes that were, and were released as 0: it is between 0 and their true sum. Which nodes
these are depends on their own noise, so their answers are low by selection. Two bounds hold nevertheless, and
the lower one is taken:

- each of the nodes of the level that might have been released as 0 exceeds its answer by more than a limit
  with a small part of the level's probability, and so does any of those that were;
- the true sum of all nodes of the level that have a part in the question, less that of all children of those
  that are positive. Both sets follow from earlier noise, so the difference of their answers is unbiased.

Most of the probability of a miss is for the first sum. The rest is divided equally among the levels above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hierdp.counts.layout import Selection
from hierdp.errors import InputError
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms.intervals import (
    REST,
    Estimate,
    Interval,
    RowIntervals,
    answered,
    down_if_shown,
    each_miss,
    from_errors,
    half_width,
    interval,
    lifted,
    measured_in,
    unknown,
    variance_of,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.mechanisms.top_down.levels import Axes, Children, Level, depths_of
from hierdp.mechanisms.top_down.mechanism import TopDown
from hierdp.mechanisms.top_down.queries import TOTAL
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Allowed
from hierdp.privacy.noise import threshold_of
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from hierdp.tables import Flows
from models.arithmetic.arrays import Array, Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class MeasuredLevel:
    """The measured nodes of a level.

    - places, int64 array, shape (n, axes): their positions along the axes.
    - noisy, int64 array, shape (n,)
    - variance: of the noise of each.
    - parent, int64 array, shape (n,): the position of each one's parent among the measured nodes of the level
      above.
    - counts, int64 array, shape (n,): the released counts. The children of positive ones are measured.
    """

    places: Ints
    noisy: Ints
    variance: float
    parent: Ints
    counts: Ints

    @cached_property
    def positive(self) -> Flags:
        """Which have a row in the release."""
        return np.asarray(self.counts > 0)

    @cached_property
    def needed(self) -> Floats:
        """A noisy count above this one gives a positive released one, if all others are as they are.

        Of each one with a row. A repair changes siblings by at most the largest change, and by no more if a
        noisy count is lowered that stays above it; and it lowers a count that has a row by no more than its
        noisy count is lowered.
        """
        change = np.zeros(int(self.parent.max(initial=-1)) + 1, np.int64)
        np.maximum.at(change, self.parent, np.abs(self.counts - self.noisy))
        needed = np.maximum(change[self.parent], self.noisy - self.counts)
        return np.asarray(needed[self.positive], float)


@dataclass(frozen=True, eq=False)
class TopDownIntervals:
    """Intervals of a release by InfTDA or its relatives, VanillaGauss, or, of single cells, SH.

    Raises `InputError` if it has no measurements, or others than its table.
    """

    mechanism: TopDown
    facts: Axes
    allowed: Allowed
    release: ReleaseFolder

    @property
    def _data(self) -> Flows:
        return self.facts.data

    @cached_property
    def _order(self) -> list[int]:
        return self.mechanism.order(self.facts)

    @cached_property
    def _measurements(self) -> list[Measurement]:
        return measured_in(self.release)

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        miss, most = 1 - confidence, self._most
        masks = [selection.regions[name] for name in self._data.axis_names]
        if not all(mask.any() for mask in masks):
            return Interval(0.0, 0.0)
        if selection.level == 0 and self._by_level:
            root = self.unbiased(selection)
            half = half_width(root.variance, miss)
            return interval(root.value, half, half, 0.0, most)
        if self.mechanism.method == "VanillaGauss":
            cells = self.unbiased(selection)
            half = half_width(cells.variance, miss)
            return interval(cells.value, half, half, 0.0, most)
        if self.mechanism.method == "SH":
            return self._over_threshold(self._finest(selection), miss, most)
        return self._level_by_level(selection.level, masks, miss, most)

    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: the sum of the level's answers, if all nodes above were released as positive."""
        total = self.facts.total
        masks = [selection.regions[name] for name in self._data.axis_names]
        if not all(mask.any() for mask in masks):
            return Estimate(0.0, 0.0)
        if self._by_level and total is not None and all(mask.all() for mask in masks):
            return Estimate(float(total), 0.0)
        if self.mechanism.method == "VanillaGauss":
            (measured,) = self._measurements
            finest = self._finest(selection)
            cells = measured.answers.reshape([mask.size for mask in finest])[np.ix_(*finest)]
            return Estimate(cells.sum(dtype=float), cells.size * variance_of(measured.spend))
        if self.mechanism.method == "SH":
            return Estimate()
        if selection.level == 0:
            return Estimate(float(self._measurements[0].answers[0]), variance_of(self._measurements[0].spend))
        level, here = selection.level, self._levels[selection.level - 1]
        for above, touched in self._above(level, masks):
            if (touched & ~self._levels[above - 1].positive).any():
                return Estimate()
        inside = self._among(level, level, masks, every=True)
        return Estimate(here.noisy[inside].sum(dtype=float), int(inside.sum()) * here.variance)

    def region(self, selection: Selection, miss: float) -> Region | None:
        """See `Intervals`: the bounds of the closed form, on each node that has a part in the question.

        Its counts are those of the measured nodes that have a part in the question, level by level, and, of
        those above that were released as 0, the parts that are in it.
        """
        level, masks = selection.level, [selection.regions[name] for name in self._data.axis_names]
        if not self._by_level or level < 2 or not all(mask.any() for mask in masks):
            return None
        inside = self._among(level, level, masks, every=True)
        above = [*self._above(level, masks), (level, inside)]
        zeros = [touched & ~self._levels[number - 1].positive for number, touched in above[:-1]]
        starts = np.cumsum([0, *(touched.sum() for _, touched in above), *(zero.sum() for zero in zeros)])
        size, depth = int(starts[-1]), len(above)
        at = [start + np.cumsum(touched) - 1 for start, (_, touched) in zip(starts, above, strict=False)]
        part = [start + np.cumsum(zero) - 1 for start, zero in zip(starts[depth:], zeros, strict=False)]
        wanted = (np.arange(size) >= starts[depth - 1]).astype(np.int64)
        region = Region(np.full(size, self._most), wanted)
        for k, (number, touched) in enumerate(above[:-1]):
            held, parent = self._levels[number - 1], self._levels[number].parent
            each, together = self._limits(number, touched, miss * REST / (level - 1))
            region.most[at[k][touched]] = np.clip(np.floor(held.noisy[touched] + each), 0, self._most)
            region.keep(at[k][zeros[k]], 1, 0, max(0.0, together))
            fully = self._among(number, level, masks, every=True)
            for node in np.flatnonzero(touched):
                children = at[k + 1][(parent == node) & above[k + 1][1]]
                below = part[k][[node]] if zeros[k][node] else children
                signs = np.append(1, np.full(below.size, -1))
                region.keep(np.append(at[k][node], below), signs, 0, 0 if fully[node] else math.inf)
        first = above[0][1]
        region.keep(at[0][first], 1, self._most if first.all() and self._most < math.inf else 0, self._most)
        value, down, up = self._measured(level, masks, miss * (1 - REST), miss)
        region.keep(at[-1][inside], 1, max(0.0, value - down), max(0.0, value + up))
        return region

    def rows(self, miss: float, together: bool, _: Solving) -> RowIntervals:
        """See `Intervals`; of SH, those of the last level, and NaN above.

        Which counts have a row depends on their own noise. An interval by itself covers the true count with
        this probability given that it has a row (see `down_if_shown`). Intervals that hold together are those
        of all counts that were measured, with a row or without: for each level a part of the probability,
        divided among its counts, whose number follows from noise above.
        """
        table, most = self.release.table, self._most
        if self.mechanism.method in ("VanillaGauss", "SH"):
            (measured,) = self._measurements
            cells = math.prod(axis.names[-1].size for axis in self._data.axes)
            if self.mechanism.method == "VanillaGauss":
                each = each_miss(miss, (1 + len(self._order)) * cells, together)
                return from_errors(self.release, each, False, [GAUSSIAN])
            value = np.where(table["level"] == len(self._order), table["count"].to_numpy(float), math.nan)
            half = half_width(variance_of(measured.spend), each_miss(miss, cells, together), [GEOMETRIC])
            down = up = np.full(len(table), half)
            if not together:
                least = np.full(len(table), threshold_of(measured.spend) - 1.0)
                down = down_if_shown(value, least, variance_of(measured.spend), miss, [GEOMETRIC])
            return RowIntervals(value, up, most, down=down)
        values: list[Floats] = [np.array([most])]
        halves: list[Floats] = [np.zeros(1)]
        noisy = [one for one in self._measurements if one.spend.query == TOTAL]
        each = miss / (len(self._order) + len(noisy)) if together else miss
        if noisy:
            values = [noisy[0].answers.astype(float)]
            halves = [np.array([half_width(variance_of(noisy[0].spend), each)])]
        downs = halves
        for here in self._levels:
            shown = here.noisy[here.positive].astype(float)
            half = half_width(here.variance, each_miss(each, here.noisy.size, together))
            values, halves = [*values, shown], [*halves, np.full(shown.size, half)]
            down = halves[-1] if together else down_if_shown(shown, here.needed, here.variance, each)
            downs = [*downs, down]
        return RowIntervals(np.concatenate(values), np.concatenate(halves), most, down=np.concatenate(downs))

    @property
    def _most(self) -> float:
        return math.inf if self.facts.total is None else float(self.facts.total)

    @property
    def _by_level(self) -> bool:
        return self.mechanism.method not in ("VanillaGauss", "SH")

    def _finest(self, selection: Selection) -> list[Flags]:
        depths = depths_of(self._data.axes, self._order)
        return [
            self._down(selection.regions[name], axis, depths[selection.level][axis], depths[-1][axis])
            for axis, name in enumerate(self._data.axis_names)
        ]

    def _above(self, level: int, masks: list[Flags]) -> list[tuple[int, Flags]]:
        return [(above, self._among(above, level, masks, every=False)) for above in range(1, level)]

    def _level_by_level(self, level: int, masks: list[Flags], miss: float, most: float) -> Interval:
        value, down, up = self._measured(level, masks, miss if level == 1 else miss * (1 - REST), miss)
        rest = sum(
            self._unmeasured(above, touched, miss * REST / (level - 1))
            for above, touched in self._above(level, masks)
        )
        return interval(value, down, up + rest, 0.0, most)

    def _measured(
        self, level: int, masks: list[Flags], miss: float, row: float
    ) -> tuple[float, float, float]:
        """The answers of a question's measured nodes, and how far below and above them the true sum may be.

        A single cell with a row has the interval of its row, with the probability `row` of a miss.
        """
        inside, here = self._among(level, level, masks, every=True), self._levels[level - 1]
        value, positive = here.noisy[inside].astype(float), here.positive[inside]
        if value.size == 1 and positive.all() and all(mask.sum() == 1 for mask in masks):
            needed = here.needed[inside[here.positive]]
            (down,) = down_if_shown(value, needed, here.variance, row).tolist()
            return float(value[0]), down, half_width(here.variance, row)
        half = half_width(value.size * here.variance, miss)
        return float(value.sum()), half, half

    def _unmeasured(self, level: int, touched: Flags, miss: float) -> float:
        """At most how much of a question about a level below is in nodes of a level released as 0."""
        here = self._levels[level - 1]
        zero = touched & ~here.positive
        if not zero.any():
            return 0.0
        each, together = self._limits(level, touched, miss)
        found = float(np.maximum(0, np.floor(here.noisy[zero] + each)).sum())
        return min(found, max(0.0, float(np.floor(together))))

    def _limits(self, level: int, touched: Flags, miss: float) -> tuple[float, float]:
        """By how much no touched node of a level exceeds its answer; the most in those released as 0.

        Both hold but for the given probability.
        """
        here, below, number = self._levels[level - 1], self._levels[level], int(touched.sum())
        if number <= 1:
            return half_width(here.variance, 2 * miss), math.inf
        each = half_width(here.variance, miss / number)
        children = touched[below.parent]
        apart = float(here.noisy[touched].sum(dtype=float) - below.noisy[children].sum(dtype=float))
        variance = number * here.variance + int(children.sum()) * below.variance
        return each, apart + half_width(variance, miss)

    def _among(self, level: int, of: int, masks: list[Flags], every: bool) -> Flags:
        """Which measured nodes of a level are inside a question about a level `of`, or have a part in it."""
        depths, places = depths_of(self._data.axes, self._order), self._levels[level - 1].places
        found = np.ones(len(places), bool)
        for axis, mask in enumerate(masks):
            tree = self._data.axes[axis].tree
            up = [
                np.asarray(tree.levels[d]) for d in range(depths[of][axis] - 1, depths[level][axis] - 1, -1)
            ]
            found &= lifted(mask, up, every)[places[:, axis]]
        return found

    def _down(self, mask: Flags, axis: int, depth: int, to: int) -> Flags:
        for level in range(depth, to):
            mask = mask[np.asarray(self._data.axes[axis].tree.levels[level])]
        return mask

    @cached_property
    def _levels(self) -> list[MeasuredLevel]:
        """The measured nodes of each level below the root: the mechanism, with the released counts."""
        table, found = self.release.table, list[MeasuredLevel]()

        def released(children: Children, measured: Measurement) -> Ints:
            nodes = children.level(np.arange(children.size), measured.answers)
            below = self._released(table, len(found) + 1, children.depths)
            row = place_of(self._keys(nodes), self._keys(below))
            if (row >= 0).sum() < below.counts.size:
                raise unknown(self.release, "its measurements are not of its table; see `hierdp check`")
            counts = np.where(row < 0, 0, np.append(below.counts, 0)[row])
            before = np.flatnonzero(found[-1].positive) if found else np.zeros(1, np.int64)
            parent = before[np.repeat(np.arange(children.offsets.size - 1), np.diff(children.offsets))]
            variance = variance_of(measured.spend)
            found.append(MeasuredLevel(nodes.places, measured.answers, variance, parent, counts))
            return counts

        facts, allowed = self.facts, self.allowed
        answered(
            self.release, lambda measure: self.mechanism.level_by_level(facts, allowed, measure, released)
        )
        return found

    def _released(self, table: Any, level: int, depths: tuple[int, ...]) -> Level:
        """The nodes of a level with a positive released count, and the root."""
        rows = table[table["level"] == level]
        places = np.zeros((len(rows), len(depths)), np.int64)
        for axis, (name, depth) in enumerate(zip(self._data.axis_names, depths, strict=True)):
            places[:, axis] = place_of(rows[name], self._data.axes[axis].names[depth])
            if (places[:, axis] < 0).any():
                raise unknown(
                    self.release, "its table has other regions than regions.csv; see `hierdp check`"
                )
        return Level(depths, places, rows["count"].to_numpy(np.int64))

    def _keys(self, level: Level) -> Ints:
        sizes = [int(axis.tree.level_sizes[d]) for axis, d in zip(self._data.axes, level.depths, strict=True)]
        if math.prod(sizes) >= 2**63:
            raise InputError(f"there are no intervals for levels of {math.prod(sizes):.3g} possible nodes")
        return np.asarray(np.ravel_multi_index(tuple(level.places.T), sizes), np.int64)

    def _over_threshold(self, finest: list[Flags], miss: float, most: float) -> Interval:
        """SH: a single finest cell, recorded or under the threshold: its noise is within the same limits."""
        (measured,) = self._measurements
        if any(mask.sum() > 1 for mask in finest):
            return Interval()
        assert measured.positions is not None
        cell = int(np.ravel_multi_index([int(mask.argmax()) for mask in finest], [m.size for m in finest]))
        at = int(np.searchsorted(measured.positions, cell))
        half = half_width(variance_of(measured.spend), miss, [GEOMETRIC])
        if at < measured.positions.size and measured.positions[at] == cell:
            value, least = (
                measured.answers[[at]].astype(float),
                np.array([threshold_of(measured.spend) - 1.0]),
            )
            variance = variance_of(measured.spend)
            (down,) = down_if_shown(value, least, variance, miss, [GEOMETRIC]).tolist()
            return interval(float(value[0]), down, half, 0.0, most)
        return interval(0.0, 0.0, threshold_of(measured.spend) - 1 + half, 0.0, most)


def place_of(wanted: Any, among: Array) -> Ints:
    """The position of each among different values; −1 if it is not there, or they are not different."""
    import pandas as pd

    known = pd.Index(among)
    found = known.get_indexer(pd.Index(wanted)) if known.is_unique else np.full(len(wanted), -1)
    return np.asarray(found, np.int64)


intervals = TopDownIntervals
