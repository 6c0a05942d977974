"""Intervals for numbers of groups by size, from each region's own answers.

Sums of sizes are differences of cumulative counts, C(s) groups of at most size s. Hc measures these, H the
terms of their sums. Hg measures all sizes in order: g₁ ≤ g₂ ≤ …, and C(s) ≥ k if and only if g_k ≤ s. The
mean of the answers of a block of sizes that ends at the k-th, less what its noise exceeds rarely, is a lower
bound on g_k, as no size of the block is larger; one that begins there gives an upper bound. Which blocks are
used does not depend on any answer, and the probability of a miss is divided among them.

Where numbers of groups are secret, sizes are measured of as many groups as were estimated. So a sum may be
off by the difference between the true number and this one, which has an interval of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import MOST_NAMED, Selection
from hierdp.counts.rows import laid_out
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms.count_of_counts.estimates import Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.mechanism import CountOfCounts, PublicPlaces
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, measured_regions
from hierdp.mechanisms.count_of_counts.private import NUMBERS
from hierdp.mechanisms.intervals import (
    Estimate,
    Interval,
    RowIntervals,
    each_miss,
    half_width,
    half_widths,
    interval,
    measured_in,
    unknown,
    variance_of,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.privacy.budget import Allowed
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from models.arithmetic.arrays import Floats, Ints

BLOCKS = (1, 4, 16, 64, 256, 1_024)
"""The numbers of sizes, in order, whose means bound one of them."""


class LevelAnswers(NamedTuple):
    """A level's regions, where each one's answers begin, these, their noise's variance, and their form."""

    regions: Ints
    ends: Ints
    answers: Ints
    variance: float
    form: str


@dataclass(frozen=True, eq=False)
class CountOfCountsIntervals:
    """Intervals from the answers of the regions of a question, by themselves.

    Raises `InputError` if the release has no measurements, or others than its table.
    """

    release: ReleaseFolder
    places: Hierarchy
    plan: CountOfCountsPlan

    @cached_property
    def _sizes(self) -> Sizes:
        return Sizes(self.plan.max_size, self.plan.smallest)

    @cached_property
    def _groups(self) -> Ints:
        """The number of groups of each region, public or estimated."""
        return np.asarray(laid_out(self.release.table).runs(self.places).groups)

    @cached_property
    def _levels(self) -> dict[int, LevelAnswers]:
        """The answers of each measured level."""
        places, found = self.places, dict[int, LevelAnswers]()
        regions = measured_regions(places.tree, self._groups, self.plan)
        for level in np.unique(places.tree.level[regions]).tolist():
            here, method = regions[places.tree.level[regions] == level], self.plan.method_of(level)
            each = numbers_of(1, method, self._sizes)
            numbers = self._groups[here] if method.form == "Hg" else each * (self._groups[here] > 0)
            ends = np.concatenate([[0], np.cumsum(numbers)])
            measured = self._named(method.query(places.levels[level]), int(ends[-1]))
            found[level] = LevelAnswers(
                here, ends, measured.answers, variance_of(measured.spend), method.form
            )
        return found

    def _of_node(self, node: int) -> LevelAnswers:
        """The answers of a region alone."""
        regions, ends, answers, variance, form = self._levels[int(self.places.tree.level[node])]
        at = int(np.searchsorted(regions, node))
        own = answers[ends[at] : ends[at + 1]]
        return LevelAnswers(regions[at : at + 1], np.array([0, own.size]), own, variance, form)

    @cached_property
    def _measurements(self) -> dict[str, Measurement]:
        return {one.spend.query: one for one in measured_in(self.release)}

    @cached_property
    def _laws(self) -> set[str]:
        return {one.spend.noise for one in self._measurements.values()}

    def _named(self, query: str, size: int) -> Measurement:
        found = self._measurements.get(query)
        if found is None or found.answers.size != size:
            raise unknown(self.release, "its measurements are not of its table; see `hierdp check`")
        return found

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        nodes = self._nodes(selection)
        return self._sum(nodes, *self._chosen(selection), 1 - confidence)

    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: of public numbers of groups, measured as counts; otherwise none is known."""
        nodes = self._nodes(selection)
        first, last = self._chosen(selection)
        if not first.size or not nodes.size:
            return Estimate(0.0, 0.0)
        nodes = self._below(nodes)
        nodes = nodes[self._groups[nodes] > 0]
        if self.plan.group_budget is not None:
            return Estimate()
        if self._form(nodes) == "Hg" and not self._every(first, last):
            return Estimate()
        return Estimate(*self._linear(nodes, first, last))

    def _nodes(self, selection: Selection) -> Ints:
        tree, ((_, mask),) = self.places.tree, selection.regions.items()
        return np.arange(tree.size)[tree.nodes_of(selection.level)][mask]

    def region(self, *_: object) -> Region | None:
        """See `Intervals`: regions are estimated by themselves."""
        return None

    def rows(self, miss: float, together: bool, _: Solving) -> RowIntervals:
        """See `Intervals`.

        Only sizes that occur in the release have a row, which depends on the noise. So the intervals of a
        region cover all of its sizes at once.
        """
        runs = laid_out(self.release.table).runs(self.places)
        each = each_miss(miss, self.places.tree.size, together) / self._number
        at = runs.sizes - self._sizes.smallest
        low, high = np.empty(at.size), np.empty(at.size)
        level = self.places.tree.level[runs.row]
        for depth in np.unique(level).tolist():
            here = np.flatnonzero(level == depth)
            if not self._by_region(depth):
                low[here], high[here] = self._of_level(depth, runs.row[here], at[here], each)
                continue
            here = here[np.argsort(runs.row[here], kind="stable")]
            for part in np.split(here, np.flatnonzero(np.diff(runs.row[here])) + 1):
                low[part], high[part] = self._of_sizes(runs.row[part[:1]], at[part], each)
        return RowIntervals(high, np.zeros(high.size), down=high - low)

    def _by_region(self, level: int) -> bool:
        """Whether the intervals of a level's rows are found region by region, not all at once."""
        summed = self.plan.bottom_up and level < self.places.tree.depth
        return summed or self._number == 1 or self.plan.method_of(level).form == "Hg"

    def _of_level(self, level: int, row: Ints, at: Ints, miss: float) -> tuple[Floats, Floats]:
        """`_of_sizes` of a size in each of many regions of a level."""
        off, most = np.zeros(row.size), self._groups[row].astype(float)
        if self.plan.group_budget is not None:
            miss = miss / 2
            off = self._off(level, row, miss)
        value, half = np.zeros(row.size), np.zeros(row.size)
        some = np.flatnonzero(most > 0)
        if some.size:
            answers = self._levels[level]
            value[some], number = self._differences(answers, row[some], at[some], at[some])
            half[some] = half_widths(answers.variance * number.astype(float), miss, self._laws)
        found = RowIntervals(value, half, most).ends()
        return np.maximum(0.0, found.lower - off), np.minimum(found.upper, most) + off

    def _of_sizes(self, node: Ints, at: Ints, miss: float) -> tuple[Floats, Floats]:
        """`_sum` of each of several sizes in one region."""
        if self.plan.group_budget is not None and self._number > 1:
            miss = miss / 2
        nodes, off = self._measured(node, miss)
        most = float(self._groups[nodes].sum())
        low, high = np.zeros(at.size), np.zeros(at.size)
        if self._number == 1 or not nodes.size:
            low += most
            high += most
        elif self._form(nodes) == "Hg":
            for cuts in (1, 2):
                here = (at > 0).astype(int) + (at < self._number - 1) == cuts
                for one in nodes.tolist():
                    down, up = self._ranked(one, at[here], at[here], miss / (cuts * nodes.size))
                    low[here] += down
                    high[here] += up
        else:
            value, variance = np.zeros(at.size), np.zeros(at.size)
            for one in nodes.tolist():
                answers = self._of_node(one)
                held, number = self._differences(answers, np.array([one]), at, at)
                value, variance = value + held, variance + number * answers.variance
            found = RowIntervals(value, half_widths(variance, miss, self._laws), most).ends()
            low, high = found.lower.astype(float), found.upper.astype(float)
        return np.maximum(0.0, low - off), np.minimum(high, most) + off

    @property
    def _number(self) -> int:
        """How many sizes there may be."""
        return self._sizes.largest + 1 - self._sizes.smallest

    def _chosen(self, selection: Selection) -> tuple[Ints, Ints]:
        """The first and the last of the sizes in a question, for each run of them, from the smallest size."""
        named = selection.categories.get("size")
        if named is None:
            return np.array([0]), np.array([self._number - 1])
        if self._sizes.largest >= MOST_NAMED:
            raise unknown(self.release, f"only some of its {self._sizes.largest:,} sizes can be named")
        found = np.zeros(self._sizes.largest + 1, np.int8)
        found[np.array(named, np.int64)] = 1
        steps = np.diff(found[self._sizes.smallest :], prepend=0, append=0)
        return np.flatnonzero(steps > 0), np.flatnonzero(steps < 0) - 1

    def _every(self, first: Ints, last: Ints) -> bool:
        return int((last - first + 1).sum()) == self._number

    def _form(self, nodes: Ints) -> str:
        return self.plan.method_of(int(self.places.tree.level[nodes[0]])).form if nodes.size else "H"

    def _below(self, nodes: Ints) -> Ints:
        """Some regions; with a bottom-up plan, those of the last level that are in them."""
        if not self.plan.bottom_up:
            return nodes
        inside = np.isin(np.arange(self.places.tree.size), nodes)
        for level in range(int(self.places.tree.level[nodes[0]]) + 1, self.places.tree.depth + 1):
            below = self.places.tree.nodes_of(level)
            inside[below] |= inside[self.places.tree.parent[below]]
        return np.flatnonzero(inside & (self.places.tree.level == self.places.tree.depth))

    def _sum(self, nodes: Ints, first: Ints, last: Ints, miss: float) -> Interval:
        """The interval of the groups of some sizes in regions of a level."""
        if not first.size or not nodes.size:
            return Interval(0.0, 0.0)
        if self.plan.group_budget is not None and not self._every(first, last):
            miss = miss / 2
        nodes, off = self._measured(nodes, miss)
        most = float(self._groups[nodes].sum())
        if self._form(nodes) == "Hg" and not self._every(first, last):
            cuts = int((first > 0).sum() + (last < self._number - 1).sum())
            ends = [self._ranked(node, first, last, miss / (cuts * nodes.size)) for node in nodes.tolist()]
            low, high = (float(sum(each.sum() for each in end)) for end in zip(*ends, strict=True))
        else:
            value, variance = self._linear(nodes, first, last)
            half = half_width(variance, miss, self._laws)
            low, high = interval(value, half, half, 0.0, most)
        return Interval(max(0.0, low - off), min(high, most) + off)

    def _measured(self, nodes: Ints, miss: float) -> tuple[Ints, float]:
        """The regions whose answers are for some regions, and by how many groups these may have more or less.

        - miss: the probability of the latter; 0 groups if numbers of groups are public.
        """
        off = 0.0
        nodes = self._below(nodes)
        if self.plan.group_budget is not None:
            off = float(self._off(int(self.places.tree.level[nodes[0]]), nodes, miss / nodes.size).sum())
        return nodes[self._groups[nodes] > 0], off

    def _off(self, level: int, nodes: Ints, miss: float) -> Floats:
        """By how many groups each region of a level may have more or less than estimated."""
        noisy = self._named(
            f"{NUMBERS} by {self.places.levels[level]}", int(self.places.tree.level_sizes[level])
        )
        half = half_width(variance_of(noisy.spend), miss, self._laws)
        away = np.abs(noisy.answers[nodes - int(self.places.tree.level_start[level])] - self._groups[nodes])
        return np.asarray(np.floor(away + half))

    def _linear(self, nodes: Ints, first: Ints, last: Ints) -> tuple[float, float]:
        """The sum of the answers, and its variance; of H, of the sizes or of all others."""
        if self._every(first, last):
            return float(self._groups[nodes].sum()), 0.0
        value = variance = 0.0
        for node in nodes.tolist():
            own = self._of_node(node)
            runs, numbers = self._differences(own, np.array([node]), first, last)
            held, number = float(runs.sum()), int(numbers.sum())
            if own.form == "H" and 2 * number > self._number:
                held += float(self._groups[node]) - float(own.answers.sum())
                number = self._number - number
            value, variance = value + held, variance + number * own.variance
        return value, variance

    def _differences(self, of: LevelAnswers, nodes: Ints, first: Ints, last: Ints) -> tuple[Floats, Ints]:
        """Of each run of sizes of a region, the sum of its answers, and how many answers that takes."""
        begin = of.ends[np.searchsorted(of.regions, nodes)]
        if of.form == "H":
            ends = np.stack([begin + first, begin + last + 1], axis=1).ravel()
            return np.add.reduceat(np.append(of.answers, 0), ends)[::2].astype(float), last - first + 1
        # Hc: the sizes from a to b are C(b) − C(a − 1), and C of the last is public
        above = np.where(
            last < self._number - 1, of.answers.take(begin + last, mode="clip"), self._groups[nodes]
        )
        below = np.where(first > 0, of.answers.take(begin + first - 1, mode="clip"), 0)
        number = (first > 0).astype(np.int64) + (last < self._number - 1)
        return (above - below).astype(float), number

    def _ranked(self, node: int, first: Ints, last: Ints, miss: float) -> tuple[Floats, Floats]:
        """The least and the largest number of groups of each run of sizes, from sizes in order.

        Each cumulative number that is not public is outside its bounds with at most this probability.
        """
        smallest, largest = self._bounds(node, miss)

        def at_most(at: Ints) -> tuple[Ints, Ints]:
            size = at + self._sizes.smallest
            ends = np.searchsorted(smallest, size + 1, "left"), np.searchsorted(largest, size, "right")
            last = at == self._number - 1
            known = [np.where(at < 0, 0, np.where(last, smallest.size, end)) for end in ends]
            return known[0], known[1]

        (under, over), (down, up) = at_most(first - 1), at_most(last)
        return np.maximum(0.0, down - over), np.maximum(0.0, up - under)

    @cached_property
    def _bounds(self) -> Callable[[int, float], tuple[Floats, Floats]]:
        """`_bounds_of`, of which the last ones are kept: many questions are about the same region."""
        return lru_cache(2)(self._bounds_of)

    def _bounds_of(self, node: int, miss: float) -> tuple[Floats, Floats]:
        """The least and the largest that each size of a region may be, from the smallest size on."""
        _, _, noisy, variance, _ = self._of_node(node)
        before = np.concatenate([[0.0], np.cumsum(noisy, dtype=float)])
        blocks = [size for size in BLOCKS if size <= noisy.size]
        least, most = np.full(noisy.size, -np.inf), np.full(noisy.size, np.inf)
        for size in blocks:
            half = half_width(size * variance, miss / len(blocks), self._laws) / size
            mean = (before[size:] - before[:-size]) / size
            np.maximum(least[size - 1 :], mean - half, out=least[size - 1 :])
            np.minimum(most[: mean.size], mean + half, out=most[: mean.size])
        # If the k-th is over a size, so are all after it.
        return np.maximum.accumulate(most), np.minimum.accumulate(least[::-1])[::-1]


def intervals(
    mechanism: CountOfCounts, facts: PublicPlaces, allowed: Allowed, release: ReleaseFolder
) -> CountOfCountsIntervals:
    """The intervals of a release."""
    return CountOfCountsIntervals(release, facts.places, mechanism.plan(facts, allowed))
