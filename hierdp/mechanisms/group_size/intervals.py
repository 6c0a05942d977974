"""Intervals for numbers of groups by size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hierdp.counts.selection import Selection
from hierdp.mechanisms.group_size.mechanism import noisy_sizes
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.intervals import (
    Interval,
    answered,
    ends,
    half_width,
    half_widths,
    interval,
    measured_in,
    tree_estimate,
    unknown,
    variance_of,
)
from hierdp.privacy.budget import GEOMETRIC
from hierdp.record.written import Written
from models import BlockInference, Workload
from models.arithmetic.arrays import Floats, Ints
from solvers import solve


@dataclass(frozen=True, eq=False)
class GroupSizeIntervals:
    """Intervals from the sizes of all regions, cumulative or not.

    Parameters
    ----------
    release : Written

    Raises
    ------
    InputError
        If it has no measurements, or others than its method makes.
    """

    release: Written

    @cached_property
    def _noisy(self) -> Ints:
        """The noisy counts, shape (regions, sizes)."""
        manifest, (places,) = self.release.manifest, self.release.regions.values()
        settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
        size, epsilon = settings["max_size"] + 1, manifest["budget"]["epsilon"]
        noisy, _ = answered(
            self.release,
            lambda measure: noisy_sizes(places, settings["groups"], size, epsilon, measure, method),
        )
        return noisy

    @cached_property
    def _variance(self) -> Floats:
        """The variance of each region's noise."""
        (places,) = self.release.regions.values()
        each = [variance_of(one.spend) for one in measured_in(self.release)]
        return np.asarray(each)[places.tree.level]

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        (places,), ((_, regions),) = self.release.regions.values(), selection.regions.items()
        settings = self.release.manifest["settings"]
        method, groups = METHODS[self.release.manifest["mechanism"]], settings["groups"]
        chosen = np.zeros(settings["max_size"] + 1)
        named = selection.categories.get("size")
        chosen[slice(None) if named is None else np.array(named, np.int64)] = 1
        nodes = np.zeros(places.tree.size, bool)
        nodes[places.tree.nodes_of(selection.level)] = regions
        if not nodes.any() or not chosen.any():
            return Interval(0.0, 0.0)
        if chosen.all() and nodes.all(where=places.tree.level == selection.level):
            return Interval(float(groups), float(groups))
        # Σ of sizes a … b is the cumulative count of b, less that of a − 1.
        signs = chosen - np.append(chosen[1:], 0.0) if method.cumulative else chosen
        weights, estimate = tree_estimate(places.tree, self._variance, nodes)
        value = float(weights @ (self._noisy @ signs))
        half = half_width(estimate.variance * float(np.abs(signs).sum()), 1 - confidence, [GEOMETRIC])
        half += estimate.slack * groups
        return interval(value, half, half, 0.0, float(groups))

    def rows(self, confidence: float) -> tuple[Floats, Floats]:
        """See `Intervals`.

        Raises
        ------
        InputError
            If least squares cannot be proved.
        """
        (places,), settings = self.release.regions.values(), self.release.manifest["settings"]
        sizes, each = settings["max_size"] + 1, [variance_of(one.spend) for one in measured_in(self.release)]
        query = Workload.marginals((sizes,), [(0,)])
        model = BlockInference(places.tree, query, self._noisy, 1 / np.array(each)[:, None])
        solution = solve(model)
        if solution.certificate is None or not solution.certificate.optimal:
            raise unknown(self.release, "least squares over its measurements is not proved")
        counts = np.asarray(solution.x, float)
        variance = np.broadcast_to(model.variance(np.eye(sizes)[0])[:, None], counts.shape)
        if METHODS[self.release.manifest["mechanism"]].cumulative:
            counts = np.diff(counts, axis=1, prepend=0.0)
            variance = variance * np.where(np.arange(sizes) == 0, 1, 2)
        half = half_widths(variance, 1 - confidence, [GEOMETRIC])
        return ends(counts.ravel(), half.ravel(), float(settings["groups"]))


def intervals(release: Written) -> GroupSizeIntervals:
    """The intervals of a release."""
    return GroupSizeIntervals(release)
