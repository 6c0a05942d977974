"""Intervals for sums of counts that somebody else has noised."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.counts.layout import Selection
from hierdp.mechanisms.intervals import (
    LEAST_SQUARES,
    REST,
    Estimate,
    Interval,
    RowIntervals,
    chain,
    each_miss,
    filled,
    from_errors,
    half_width,
    half_widths,
    interval,
    last_kept,
    tree_estimate,
    unknown,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.mechanisms.repair.mechanism import Repair
from hierdp.mechanisms.repair.table import AXIS
from hierdp.privacy.budget import GAUSSIAN, Allowed
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from models import ConstrainedInference
from models.arithmetic.arrays import Flags, Floats

EXACT = 1e-9
"""The variance of a count that is fixed, relative to the least of the others."""


@dataclass(frozen=True, eq=False)
class RepairIntervals:
    """Intervals from the given counts, if their errors are independent, unbiased and nearly normal.

    - variance, shape (regions,): of each count; infinite if it was not given.
    """

    release: ReleaseFolder
    given: InputCounts
    variance: Floats

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        found = self.unbiased(selection)
        half = half_width(found.variance, 1 - confidence) + found.slack
        if self.given.whole:
            return interval(found.value, half, half)
        return Interval(max(0.0, found.value - half), max(0.0, found.value + half))

    @last_kept
    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: that of least squares."""
        tree = self.given.hierarchy.tree
        nodes, level = self._nodes(selection), selection.level
        while not np.isfinite(self.variance[nodes]).all():  # all regions of the last level were given
            level += 1
            below = tree.nodes_of(level)
            moved = np.zeros(tree.size, bool)
            moved[below] = nodes[tree.parent[below]]
            nodes = moved
        if not nodes.any():
            return Estimate(0.0, 0.0)
        weights, found = tree_estimate(tree, self.variance, nodes)
        value = float(weights @ self._counts)
        start, mask = selection.level, selection.regions[AXIS]
        if any(k >= start or filled(tree, start, mask, k) for k in _fixed(self.release)):
            return Estimate(float(round(value)), 0.0)
        return Estimate(value, found.variance, found.slack * float(np.abs(self._counts).max(initial=0.0)))

    def region(self, selection: Selection, miss: float) -> Region | None:
        """See `Intervals`: on the question's regions, and on those that they are in."""
        nodes = self._nodes(selection)
        if not self.given.whole or not nodes.any():
            return None
        own = self.of(selection, 1 - miss * (1 - REST))
        return chain(self.given.hierarchy.tree, self._counts, self.variance, nodes, own, miss)

    @property
    def _counts(self) -> Floats:
        return np.where(self.given.measured, self.given.counts, 0).astype(float)

    def _nodes(self, selection: Selection) -> Flags:
        nodes = np.zeros(self.given.hierarchy.tree.size, bool)
        nodes[self.given.hierarchy.tree.nodes_of(selection.level)] = selection.regions[AXIS]
        return nodes

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """See `Intervals`."""
        tree = self.given.hierarchy.tree
        if "standard_error" in self.release.table:
            return from_errors(self.release, miss, together, [GAUSSIAN], self.given.whole)
        found = solve(LEAST_SQUARES, ConstrainedInference(tree, self.given.counts, self.variance))
        variance = ConsistentVariance(tree, self.variance).of_nodes()
        half = half_widths(variance, each_miss(miss, tree.size, together))
        return RowIntervals(np.asarray(found.solution.x, float), half, whole=self.given.whole)


def _fixed(release: ReleaseFolder) -> list[int]:
    """The levels whose counts stayed as they were given: whole numbers."""
    return [release.regions[AXIS].levels.index(name) for name in release.manifest["settings"]["fixed"]]


def intervals(_: Repair, given: InputCounts, __: Allowed, release: ReleaseFolder) -> RepairIntervals:
    """The intervals of a repair.

    Raises `InputError` if its counts were given without standard errors.
    """
    if given.errors is None:
        raise unknown(release, "its counts were given without standard errors (--standard-error)")
    exact = np.isin(given.hierarchy.tree.level, _fixed(release))
    least = float(np.min(given.errors, where=given.measured & ~exact, initial=math.inf))
    errors = np.where(exact, least * math.sqrt(EXACT), given.errors)
    return RepairIntervals(release, given, np.where(given.measured, errors, np.inf) ** 2)
