"""Intervals for the answers to questions, from a release's measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hierdp.check.budget import budget_of_one_row
from hierdp.counts.selection import Selection
from hierdp.counts.size_table import frame_of
from hierdp.errors import InputError, unknown_name
from hierdp.execution import progress
from hierdp.mechanisms.intervals import REST, Interval, Intervals, checked_confidence, unknown
from hierdp.mechanisms.registry import released_by
from hierdp.questions.tables import Answer
from hierdp.record.written import Written

if TYPE_CHECKING:
    from pandas import DataFrame

ESTIMATE, LINEAR_PROGRAMS = METHODS = ("estimate", "linear-programs")
"""The methods for intervals."""

FAILURE = 0.05
"""The probability with which a level's utility bound may fail."""


def intervals_of(
    release: Written, selections: Sequence[Selection], confidence: float, method: str = ESTIMATE
) -> dict[str, list[float]]:
    """The columns `low` and `high` of answers: with at least this probability, the true sum is between them.

    Parameters
    ----------
    release : Written
    selections : sequence of Selection
    confidence : float
        For each answer by itself.
    method : str
        One of `METHODS`.

    Raises
    ------
    InputError
        If no intervals are known for the release, or there is no such method; the message says why.
    """
    if method not in METHODS:
        raise InputError(unknown_name(method, METHODS, "no method of intervals"))
    source, of = _source(release, confidence), _by_estimate if method == ESTIMATE else _by_linear_programs
    each = progress.steps(selections, "intervals", len(selections))
    found = [of(source, selection, confidence) for selection in each]
    return {"low": [one.low for one in found], "high": [one.high for one in found]}


def _by_estimate(source: Intervals, selection: Selection, confidence: float) -> Interval:
    return source.of(selection, confidence)


def _by_linear_programs(source: Intervals, selection: Selection, confidence: float) -> Interval:
    """What all bounds imply; without others than that of the sum itself, or if they contradict, that one."""
    region = source.region(selection, 1 - confidence)
    if region is None:
        return source.of(selection, confidence)
    ends = region.interval()
    return source.of(selection, 1 - (1 - confidence) * (1 - REST)) if ends is None else Interval(*ends)


def unbiased_of(release: Written, selections: Sequence[Selection]) -> dict[str, list[float]]:
    """The columns `unbiased` and `unbiased_error`: estimates from the measurements, with standard errors.

    NaN if a part of the answer was not measured.

    Raises
    ------
    InputError
        If the release has no measurements from which to estimate.
    """
    source = _source(release)
    each = progress.steps(selections, "unbiased estimates", len(selections))
    found = [source.unbiased(selection) for selection in each]
    return {
        "unbiased": [one.value for one in found],
        "unbiased_error": [math.sqrt(one.variance) for one in found],
    }


def table_of(release: Written, confidence: float) -> DataFrame:
    """The released table with the columns `low` and `high`: intervals of its counts, each by itself.

    Raises
    ------
    InputError
        As `intervals_of`.
    """
    low, high = _source(release, confidence).rows(confidence)
    return frame_of(release.table).assign(low=low, high=high)


def _source(release: Written, confidence: float = 0.5) -> Intervals:
    checked_confidence(confidence)
    mechanism = released_by(release.manifest["mechanism"])
    if mechanism is None:
        raise unknown(release, "this version does not know the mechanism")
    # The mechanism's queries are those of a row, also where the guarantee is for a person with several.
    return mechanism.intervals_of(replace(release, manifest=budget_of_one_row(release.manifest)))


def bounds_of(release: Written, answers: Sequence[Answer]) -> dict[str, list[float]]:
    """The column `bound` of single counts: by a theorem, no count of the level is off by more.

    It fails with a probability of at most `FAILURE`. There is no such column if there is no such theorem.
    """
    mechanism = released_by(release.manifest["mechanism"])
    function: Any = None if mechanism is None else mechanism.bounds
    bounds = function and function(release.table, release.manifest, release.regions, FAILURE)
    if not bounds:
        return {}
    return {"bound": [bounds[one.level] if one.cells == 1 else math.nan for one in answers]}
