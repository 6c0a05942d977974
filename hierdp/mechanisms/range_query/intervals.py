"""Intervals for ranges and boxes of a histogram."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.intervals import Interval, half_width, interval, measured_in, unknown
from hierdp.mechanisms.range_query.answers import Consistent, RangeAnswers
from hierdp.privacy.budget import GEOMETRIC
from hierdp.record.written import Written
from models import ConstrainedInference
from models.arithmetic.arrays import Floats, Ints
from solvers import fast


def intervals(
    release: Written, answers: RangeAnswers, low: Ints, high: Ints, confidence: float
) -> list[Interval]:
    """The intervals of boxes, from an estimate that is linear in the noise.

    Counts that were made non-negative or whole are not: then the estimate is that of least squares, from the
    measurements.

    Parameters
    ----------
    release : Written
    answers : RangeAnswers
        Of its table.
    low, high : int64 arrays, shape (boxes, axes)
    confidence : float
    """
    source = answers.source
    if isinstance(source, Consistent) and not source.linear:
        noisy = _noisy(release, source)
        found, _ = fast.answer(ConstrainedInference(source.boxes.tree, noisy, source.variance))
        answers = replace(answers, source=replace(source, counts=np.asarray(found, float), linear=True))
    estimates, errors = answers.box(low, high)
    if np.isnan(errors).any():
        raise InputError(
            f"there are no intervals for {release.manifest['mechanism']}: its bins have the means of "
            "clusters, whose bias depends on the true counts"
        )
    halves = [half_width(error**2, 1 - confidence, [GEOMETRIC]) for error in errors.tolist()]
    return [interval(value, half, half) for value, half in zip(estimates.tolist(), halves, strict=True)]


def _noisy(release: Written, source: Consistent) -> Floats:
    """The noisy counts of all nodes; 0 on levels that were not measured."""
    tree = source.boxes.tree
    levels = [tree.nodes_of(level) for level in range(tree.depth + 1)]
    measured = [nodes for nodes in levels if np.isfinite(source.variance[nodes]).all()]
    found, answers = np.zeros(tree.size), measured_in(release)
    if [one.answers.size for one in answers] != [nodes.stop - nodes.start for nodes in measured]:
        raise unknown(release, "its measurements are not of its table; see `hierdp check`")
    for nodes, one in zip(measured, answers, strict=True):
        found[nodes] = one.answers
    return found
