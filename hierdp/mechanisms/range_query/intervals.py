"""Intervals for ranges and boxes of a histogram."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hierdp.mechanisms.intervals import (
    LEAST_SQUARES,
    Interval,
    RowIntervals,
    each_miss,
    from_errors,
    half_width,
    half_widths,
    interval,
    measured_in,
    unknown,
)
from hierdp.mechanisms.mechanism import Mechanism
from hierdp.mechanisms.range_query.answers import Consistent, RangeAnswers
from hierdp.mechanisms.range_query.reading import answers_in
from hierdp.privacy.budget import GEOMETRIC, Allowed
from hierdp.record.step import Solving, Step
from hierdp.record.written import ReleaseFolder
from models import ConstrainedInference
from models.arithmetic.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class RangeIntervals:
    """Intervals from an estimate that is linear in the noise.

    Counts that were made non-negative or whole are not: then the estimate is that of least squares, from the
    measurements.
    """

    release: ReleaseFolder

    @cached_property
    def _answers(self) -> RangeAnswers:
        return answers_in(self.release.table, self.release.manifest["settings"])

    def boxes(self, low: Ints, high: Ints, miss: float) -> list[Interval]:
        """The intervals of boxes ``low … high − 1``, shape (boxes, axes), for this probability of a miss."""
        answers = self._answers
        source = answers.source
        if isinstance(source, Consistent) and not source.linear:
            linear = replace(source, counts=self._least_squares(source, Step.solve), linear=True)
            answers = replace(answers, source=linear)
        estimates, errors = answers.box(low, high)
        halves = [half_width(error**2, miss, [GEOMETRIC]) for error in errors.tolist()]
        return [interval(value, half, half) for value, half in zip(estimates.tolist(), halves, strict=True)]

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """See `Intervals`."""
        if "standard_error" in self.release.table:
            return from_errors(self.release, miss, together, [GEOMETRIC])
        source = self._answers.source
        assert isinstance(source, Consistent), "the counts of all other methods have standard errors"
        variance = source.noise.of_nodes()
        half = half_widths(variance, each_miss(miss, variance.size, together), [GEOMETRIC])
        return RowIntervals(self._least_squares(source, solve), half)

    def _least_squares(self, source: Consistent, solve: Solving) -> Floats:
        model = ConstrainedInference(source.boxes.tree, self._noisy(source), source.variance)
        return np.asarray(solve(LEAST_SQUARES, model).solution.x, float)

    def _noisy(self, source: Consistent) -> Floats:
        """The noisy counts of all nodes; 0 on levels that were not measured."""
        tree = source.boxes.tree
        levels = [tree.nodes_of(level) for level in range(tree.depth + 1)]
        measured = [nodes for nodes in levels if np.isfinite(source.variance[nodes]).all()]
        found, answers = np.zeros(tree.size), measured_in(self.release)
        if [one.answers.size for one in answers] != [nodes.stop - nodes.start for nodes in measured]:
            raise unknown(self.release, "its measurements are not of its table; see `hierdp check`")
        for nodes, one in zip(measured, answers, strict=True):
            found[nodes] = one.answers
        return found


def intervals(_: Mechanism[Any], _facts: Any, _allowed: Allowed, release: ReleaseFolder) -> RangeIntervals:
    """The intervals of a release, which follow from its table and its measurements."""
    return RangeIntervals(release)
