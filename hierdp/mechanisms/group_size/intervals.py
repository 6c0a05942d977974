"""Intervals for numbers of groups by size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hierdp.counts.layout import Selection
from hierdp.mechanisms.group_size.mechanism import noisy_sizes
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.intervals import (
    LEAST_SQUARES,
    REST,
    Estimate,
    Interval,
    RowIntervals,
    answered,
    chain,
    each_miss,
    half_width,
    half_widths,
    interval,
    last_kept,
    measured_in,
    tree_estimate,
    variance_of,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.privacy.budget import Allowed
from hierdp.record.step import Solving
from hierdp.record.written import Written
from models import BlockInference, Workload
from models.arithmetic.arrays import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class GroupSizeIntervals:
    """Intervals from the sizes of all regions, cumulative or not.

    Raises `InputError` if it has no measurements, or others than its method makes.
    """

    release: Written

    @cached_property
    def _noisy(self) -> Ints:
        manifest, (places,) = self.release.manifest, self.release.regions.values()
        settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
        size, allowed = settings["max_size"] + 1, Allowed.stated(manifest["budget"])
        noisy, _ = answered(
            self.release,
            lambda measure: noisy_sizes(
                places, settings["groups"], size, allowed, measure, method, settings.get("shares")
            ),
        )
        return noisy

    @cached_property
    def _variance(self) -> Floats:
        (places,) = self.release.regions.values()
        each = [variance_of(one.spend) for one in measured_in(self.release)]
        return np.asarray(each)[places.tree.level]

    @cached_property
    def _laws(self) -> set[str]:
        return {one.spend.noise for one in measured_in(self.release)}

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        found, groups = self.unbiased(selection), float(self.release.manifest["settings"]["groups"])
        half = half_width(found.variance, 1 - confidence, self._laws) + found.slack
        return interval(found.value, half, half, 0.0, groups)

    @last_kept
    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: that of least squares."""
        groups, (nodes, signs) = self.release.manifest["settings"]["groups"], self._chosen(selection)
        if not nodes.any() or not signs.any():
            return Estimate(0.0, 0.0)
        (places,) = self.release.regions.values()
        if self._all_sizes(selection) and nodes.all(where=places.tree.level == selection.level):
            return Estimate(float(groups), 0.0)
        weights, found = tree_estimate(places.tree, self._variance, nodes)
        variance = found.variance * float(np.abs(signs).sum())
        return Estimate(float(weights @ (self._noisy @ signs)), variance, found.slack * groups)

    def region(self, selection: Selection, miss: float) -> Region | None:
        """See `Intervals`: on these sizes in the question's regions, and in those that they are in."""
        (places,), groups = self.release.regions.values(), float(self.release.manifest["settings"]["groups"])
        nodes, signs = self._chosen(selection)
        if not nodes.any() or not signs.any():
            return None
        number = float(np.abs(signs).sum())
        own = self.of(selection, 1 - miss * (1 - REST))
        return chain(
            places.tree, self._noisy @ signs, self._variance * number, nodes, own, miss, groups, self._laws
        )

    def _chosen(self, selection: Selection) -> tuple[Flags, Floats]:
        """The nodes of a question, and the sign of each of a node's noisy answers in its number of groups."""
        (places,), ((_, regions),) = self.release.regions.values(), selection.regions.items()
        chosen = np.zeros(self.release.manifest["settings"]["max_size"] + 1)
        named = selection.categories.get("size")
        chosen[slice(None) if named is None else np.array(named, np.int64)] = 1
        nodes = np.zeros(places.tree.size, bool)
        nodes[places.tree.nodes_of(selection.level)] = regions
        # Σ of sizes a … b is the cumulative count of b, less that of a − 1.
        cumulative = METHODS[self.release.manifest["mechanism"]].cumulative
        return nodes, chosen - np.append(chosen[1:], 0.0) if cumulative else chosen

    def _all_sizes(self, selection: Selection) -> bool:
        named, sizes = selection.categories.get("size"), self.release.manifest["settings"]["max_size"] + 1
        return named is None or len(set(named)) == sizes

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """See `Intervals`."""
        (places,), settings = self.release.regions.values(), self.release.manifest["settings"]
        sizes, each = settings["max_size"] + 1, [variance_of(one.spend) for one in measured_in(self.release)]
        query = Workload.marginals((sizes,), [(0,)])
        model = BlockInference(places.tree, query, self._noisy, 1 / np.array(each)[:, None])
        counts = np.asarray(solve(LEAST_SQUARES, model).solution.x, float)
        variance = np.broadcast_to(model.variance(np.arange(sizes) == 0)[:, None], counts.shape)
        if METHODS[self.release.manifest["mechanism"]].cumulative:
            counts = np.diff(counts, axis=1, prepend=0.0)
            variance = variance * np.where(np.arange(sizes) == 0, 1, 2)
        half = half_widths(variance, each_miss(miss, counts.size, together), self._laws)
        return RowIntervals(counts.ravel(), half.ravel(), float(settings["groups"]))


intervals = GroupSizeIntervals
