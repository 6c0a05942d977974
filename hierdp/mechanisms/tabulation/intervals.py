"""Intervals for sums of tabulated counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy

from hierdp.counts.layout import Selection
from hierdp.mechanisms.intervals import (
    LEAST_SQUARES,
    REST,
    Estimate,
    Interval,
    RowIntervals,
    answered,
    each_miss,
    filled,
    from_errors,
    half_width,
    half_widths,
    interval,
    last_kept,
    off,
)
from hierdp.mechanisms.linear_programs import Region
from hierdp.mechanisms.tabulation.constraints import constraints_of
from hierdp.mechanisms.tabulation.measure import noisy_answers
from hierdp.mechanisms.tabulation.mechanism import PublicTables, Tabulation
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import counts_in, places_in
from hierdp.mechanisms.tabulation.tree_estimate import FIXED, tree_model
from hierdp.privacy.budget import GAUSSIAN, Allowed
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from models import BlockInference, Tree
from models.arithmetic import effects
from models.arithmetic.arrays import Flags, Floats


@dataclass(frozen=True, eq=False)
class TabulationIntervals:
    """Intervals from all marginals of all levels; which were measured does not depend on any answer.

    Raises `InputError` if it has no measurements, or others than its plan; or they do not determine all
    tables.
    """

    mechanism: Tabulation
    facts: PublicTables
    allowed: Allowed
    release: ReleaseFolder

    @property
    def tree(self) -> Tree:
        """The tree of regions."""
        return self.facts.places.tree

    @property
    def queries(self) -> Queries:
        """The plan."""
        return self.facts.queries

    @cached_property
    def model(self) -> BlockInference:
        """Least squares over all regions; sums that are public have a variance of next to nothing."""
        places, persons = self.facts.places, self.mechanism.unit
        asking = partial(noisy_answers, self.queries, places, persons, self.allowed.loss)
        counts = counts_in(self.release.table, self.queries, places)
        constraints = constraints_of(self.queries, places, counts, self.mechanism.bounded)
        return tree_model(answered(self.release, asking), constraints)

    def of(self, selection: Selection, confidence: float) -> Interval:
        """See `Intervals`."""
        found = self.unbiased(selection)
        half = half_width(found.variance, 1 - confidence) + found.slack
        return interval(found.value, half, half, 0.0, self._most)

    @last_kept
    def unbiased(self, selection: Selection) -> Estimate:
        """See `Intervals`: that of least squares."""
        nodes, cells = self._chosen(selection)
        if not cells.any() or not nodes.any():
            return Estimate(0.0, 0.0)
        weights, value, variance = self._weighted(nodes, cells.astype(float), selection.level)
        if self._public(selection):
            return Estimate(float(round(value)), 0.0)
        apart = off(self.tree, self._spread(weights) - nodes[:, None] * cells)
        most = float(np.abs(self.model.data[0]).max(initial=0.0)) if math.isinf(self._most) else self._most
        return Estimate(value, variance, apart * most)

    def region(self, selection: Selection, miss: float) -> Region | None:
        """See `Intervals`: on the tables of the question's regions and of those that they are in.

        Its counts are the cells of these tables, added up over the regions of a level. A cell has at most the
        count of the level above. The bounds are the answers of all levels that have a part in the question.
        """
        nodes, cells = self._chosen(selection)
        if not cells.any() or not nodes.any():
            return None
        model, levels, size = self.model, selection.level + 1, self.queries.zeros.size
        weight = np.asarray(model.workload.by_answer(np.asarray(model.data[1], float)))
        rows = scipy.sparse.csr_matrix(model.workload.matrix)
        asked = np.asarray(rows @ cells.astype(float)) > 0
        number = int((asked & (weight[:levels] > 0) & (weight[:levels] < 1 / FIXED)).sum())
        region = Region(
            np.where(np.tile(self.queries.zeros, levels), 0.0, self._most),
            np.concatenate([np.zeros((levels - 1) * size, np.int64), cells.astype(np.int64)]),
        )
        own = self.of(selection, 1 - miss * (1 - REST))
        region.keep(selection.level * size + np.flatnonzero(cells), 1, *own)
        for level in range(selection.level, -1, -1):
            held = np.asarray(model.data[0])[nodes].sum(axis=0, dtype=float)
            for answer in np.flatnonzero(asked & (weight[level] > 0)):
                variance = 0.0 if weight[level, answer] >= 1 / FIXED else nodes.sum() / weight[level, answer]
                half = half_width(float(variance), miss * REST / number)
                at = rows.indices[rows.indptr[answer] : rows.indptr[answer + 1]]
                region.keep(
                    level * size + at, 1, max(0.0, held[answer] - half), max(0.0, held[answer] + half)
                )
            if level:
                below, nodes = nodes, np.isin(np.arange(self.tree.size), self.tree.parent[nodes])
                same = below.sum() == np.isin(self.tree.parent, np.flatnonzero(nodes)).sum()
                for cell in np.flatnonzero(cells):
                    pair = np.array([(level - 1) * size + cell, level * size + cell])
                    region.keep(pair, [1, -1], 0, 0 if same else math.inf)
        return region

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """See `Intervals`."""
        places, table = self.facts.places, self.release.table
        if "standard_error" in table:
            return from_errors(self.release, miss, together, [GAUSSIAN])
        found = np.asarray(solve(LEAST_SQUARES, self.model).solution.x, float)
        one = np.zeros(self.model.workload.cells)
        one[0] = 1  # the model has marginals only, so all cells of a region have one variance
        each = half_widths(self.model.variance(one), each_miss(miss, len(table), together))
        value, half = np.empty(len(table)), np.empty(len(table))
        for level in range(self.tree.depth + 1):
            region, cell = places_in(table, self.queries, places, level)
            nodes = region + int(self.tree.level_start[level])
            at = (table["level"] == level).to_numpy()
            value[at], half[at] = found[nodes, cell], each[nodes]
        return RowIntervals(value, half, self._most)

    @property
    def _most(self) -> float:
        return float(self.release.manifest["settings"].get("total", math.inf))

    def _chosen(self, selection: Selection) -> tuple[Flags, Flags]:
        """The nodes and the cells of a question."""
        ((_, regions),) = selection.regions.items()
        nodes = np.zeros(self.tree.size, bool)
        nodes[self.tree.nodes_of(selection.level)] = regions
        return nodes, self._cells(selection) & ~self.queries.zeros

    def _public(self, selection: Selection) -> bool:
        """Whether each effect of the sum is fixed: in its regions, or in those above that they fill."""
        each, workload, level = self.model.data[1], self.model.workload, selection.level
        fixed = np.asarray(each, float) >= 1 / FIXED
        known = np.asarray(effects.eigenvalues(workload.shape, workload.summed, fixed.astype(int)) > 0)
        asked = self._cells(selection).astype(float)
        sizes = np.array(effects.squares(asked[None], workload.shape), float).ravel()
        ((_, regions),) = selection.regions.items()
        here = [k >= level or filled(self.tree, level, regions, k) for k in range(len(known))]
        return bool(
            np.asarray(known[here].any(axis=0))[sizes > 1e-9].all()
        )  # an effect is 0, or at least 1/cells

    def _cells(self, selection: Selection) -> Flags:
        """Which cells of a histogram a question adds up."""
        found = np.ones(self.queries.shape, bool)
        for axis, (name, categories) in enumerate(self.queries.plan.attributes.items()):
            if name in selection.categories:
                there = np.isin(np.asarray(categories, str), list(selection.categories[name]))
                found &= there.reshape([-1 if a == axis else 1 for a in range(found.ndim)])
        return found.ravel()

    def _weighted(self, nodes: Flags, cells: Floats, level: int) -> tuple[Floats, float, float]:
        """The weights of the best estimate of the cells' sum in these nodes, its value, and its variance.

        As `hierdp.mechanisms.intervals.tree_estimate`: least squares of answers that make the normal
        equations those of the question. A node's are the answers of the question's cells with each effect
        divided by the node's own information about it; if it has none, those of the nodes below it.
        """
        model, workload, tree = self.model, self.model.workload, self.tree
        needed = np.array(effects.squares(cells[None], workload.shape), float).ravel() > 0
        while (needed & (model.information[level] == 0)).any():
            level += 1  # the last level's queries determine its tables
            below = tree.nodes_of(level)
            nodes = np.where(
                np.isin(np.arange(tree.size), np.arange(below.start, below.stop)), nodes[tree.parent], False
            )
        from solvers import fast

        inverse = [1 / float(each) if each else 0.0 for each in model.information[level]]
        own = workload.answers(effects.scaled(cells[None], workload.shape, inverse))
        pulled = np.zeros((tree.size, workload.size))
        pulled[nodes] = own
        noisy, each = model.data
        found, _ = fast.answer(BlockInference(tree, workload, pulled, each))
        weight = workload.by_answer(np.asarray(each, float))[tree.level]
        weights = weight * workload.answers(np.asarray(found, float))
        there = weight > 0
        variance = float((weights[there] ** 2 / weight[there]).sum())
        return weights, float((weights * noisy).sum()), variance

    def _spread(self, weights: Floats) -> Floats:
        """How often the weights add up each cell of each node."""
        return np.asarray(self.model.workload.spread(weights), float)


intervals = TabulationIntervals
