"""Intervals for numbers of groups by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hierdp.counts.layout import Selection
from hierdp.mechanisms.group_size.mechanism import GroupSize, PublicGroups
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
    tree_estimate,
    variance_of,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.privacy.budget import Allowed, Spend
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from models import BlockInference, Tree, Workload
from models.arithmetic.arrays import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class GroupSizeIntervals:
    """Intervals from the sizes of all regions, cumulative or not."""

    mechanism: GroupSize
    facts: PublicGroups
    noisy: Ints
    spends: Sequence[Spend]

    @property
    def _tree(self) -> Tree:
        return self.facts.places.tree

    @property
    def _groups(self) -> float:
        return float(self.facts.groups or 0)

    @cached_property
    def _variance(self) -> Floats:
        return np.array([variance_of(spend) for spend in self.spends])[self._tree.level]

    @cached_property
    def _laws(self) -> set[str]:
        return {spend.noise for spend in self.spends}

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        found = self.unbiased(selection)
        half = half_width(found.variance, 1 - confidence, self._laws) + found.slack
        return interval(found.value, half, half, 0.0, self._groups)

    @last_kept
    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: that of least squares."""
        tree, (nodes, signs) = self._tree, self._chosen(selection)
        if not nodes.any() or not signs.any():
            return Estimate(0.0, 0.0)
        if self._all_sizes(selection) and nodes.all(where=tree.level == selection.level):
            return Estimate(self._groups, 0.0)
        weights, found = tree_estimate(tree, self._variance, nodes)
        variance = found.variance * float(np.abs(signs).sum())
        return Estimate(float(weights @ (self.noisy @ signs)), variance, found.slack * self._groups)

    def region(self, selection: Selection, miss: float) -> Region | None:
        """See `Intervals`: on these sizes in the question's regions, and in those that they are in."""
        nodes, signs = self._chosen(selection)
        if not nodes.any() or not signs.any():
            return None
        variance = self._variance * float(np.abs(signs).sum())
        own = self.of(selection, 1 - miss * (1 - REST))
        return chain(self._tree, self.noisy @ signs, variance, nodes, own, miss, self._groups, self._laws)

    def _chosen(self, selection: Selection) -> tuple[Flags, Floats]:
        """The nodes of a question, and the sign of each of a node's noisy answers in its number of groups."""
        tree, ((_, regions),) = self._tree, selection.regions.items()
        chosen = np.zeros(self.mechanism.max_size + 1)
        named = selection.categories.get("size")
        chosen[slice(None) if named is None else np.array(named, np.int64)] = 1
        nodes = np.zeros(tree.size, bool)
        nodes[tree.nodes_of(selection.level)] = regions
        # Σ of sizes a … b is the cumulative count of b, less that of a − 1.
        cumulative = self.mechanism.chosen.cumulative
        return nodes, chosen - np.append(chosen[1:], 0.0) if cumulative else chosen

    def _all_sizes(self, selection: Selection) -> bool:
        named = selection.categories.get("size")
        return named is None or len(set(named)) == self.mechanism.max_size + 1

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """See `Intervals`."""
        sizes, each = self.mechanism.max_size + 1, [variance_of(spend) for spend in self.spends]
        query = Workload.marginals((sizes,), [(0,)])
        model = BlockInference(self._tree, query, self.noisy, 1 / np.array(each)[:, None])
        counts = np.asarray(solve(LEAST_SQUARES, model).solution.x, float)
        variance = np.broadcast_to(model.variance(np.arange(sizes) == 0)[:, None], counts.shape)
        if self.mechanism.chosen.cumulative:
            counts = np.diff(counts, axis=1, prepend=0.0)
            variance = variance * np.where(np.arange(sizes) == 0, 1, 2)
        half = half_widths(variance, each_miss(miss, counts.size, together), self._laws)
        return RowIntervals(counts.ravel(), half.ravel(), self._groups)


def intervals(
    mechanism: GroupSize, facts: PublicGroups, allowed: Allowed, release: ReleaseFolder
) -> GroupSizeIntervals:
    """The intervals of a release.

    Raises `InputError` if it has no measurements, or others than its method makes.
    """
    noisy, spends = answered(release, lambda measure: mechanism.noisy(facts, allowed, measure))
    return GroupSizeIntervals(mechanism, facts, noisy, spends)
