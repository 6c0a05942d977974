"""Intervals for the answers to questions, and for all counts of a release, from its measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hierdp.checking.budget import budget_of_one_row
from hierdp.counts.layout import Selection
from hierdp.counts.rows import frame_of, with_ends
from hierdp.counts.size_table import CONFIDENCE, ENDS, Ends, covering
from hierdp.errors import InputError, listed, unknown_name
from hierdp.execution import progress
from hierdp.mechanisms import MechanismInfo
from hierdp.mechanisms.intervals import (
    REST,
    Estimate,
    Interval,
    Intervals,
    checked_confidence,
    each_miss,
    unknown,
)
from hierdp.mechanisms.registry import released_by
from hierdp.questions.tables import Answer
from hierdp.record import files
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving, Step
from hierdp.record.written import ReleaseFolder
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

ESTIMATE, LINEAR_PROGRAMS = METHODS = ("estimate", "linear-programs")
"""The methods for intervals."""

FAILURE = 0.05
"""The probability with which a level's utility bound may fail."""


def accuracy_of(
    release: ReleaseFolder,
    selections: Sequence[Selection],
    confidence: float = 0.0,
    simultaneous: bool = False,
    method: str = ESTIMATE,
    unbiased: bool = False,
) -> dict[str, list[float]]:
    """The columns that say how wrong answers may be.

    `standard_error` is exact: that of a linear estimate, 0 for a sum that is public, otherwise NaN. With a
    confidence, the true sum is between `lower` and `upper` with at least this probability. `unbiased` is the
    estimate from the measurements, with its `unbiased_error`; NaN if a part of the sum was not measured.

    Parameters
    ----------
    release : ReleaseFolder
    selections : sequence of Selection
    confidence : float
        For each answer by itself, or, if `simultaneous`, for all together. 0: no intervals.
    method : str
        Of intervals: one of `METHODS`.
    unbiased : bool

    Raises
    ------
    InputError
        If nothing is known for the release, or there is no such method; the message says why.
    """
    if method not in METHODS:
        raise InputError(unknown_name(method, METHODS, "no method of intervals"))
    source, linear = _source(release), "standard_error" in getattr(release.table, "columns", ())
    of = _by_estimate if method == ESTIMATE else _by_linear_programs
    if confidence:
        checked_confidence(confidence)
    each = 1 - each_miss(1 - confidence, len(selections), simultaneous)
    estimates, ends = list[Estimate](), list[Interval]()
    for one in progress.steps(selections, "errors and intervals", len(selections)):
        estimates.append(source.unbiased(one))
        ends += [of(source, one, each)] if confidence else []
    errors = [math.sqrt(one.variance) for one in estimates]
    found = {"standard_error": [error if linear or error == 0 else math.nan for error in errors]}
    if unbiased:
        found |= {"unbiased": [one.value for one in estimates], "unbiased_error": errors}
    if confidence:
        found |= dict(zip(ENDS, map(list, zip(*ends, strict=True)), strict=True))
    return found


def _by_estimate(source: Intervals, selection: Selection, confidence: float) -> Interval:
    return source.of(selection, confidence)


def _by_linear_programs(source: Intervals, selection: Selection, confidence: float) -> Interval:
    """What all bounds imply; without others than that of the sum itself, or if they contradict, that one."""
    region = source.region(selection, 1 - confidence)
    if region is None:
        return source.of(selection, confidence)
    ends = region.interval()
    return source.of(selection, 1 - (1 - confidence) * (1 - REST)) if ends is None else Interval(*ends)


def boxes_of(
    release: ReleaseFolder, low: Ints, high: Ints, confidence: float, simultaneous: bool = False
) -> dict[str, list[float]]:
    """`intervals_of` of boxes ``low … high − 1`` of a histogram; shape (boxes, axes)."""
    source: Any = _source(release)
    found = source.boxes(low, high, each_miss(1 - checked_confidence(confidence), len(low), simultaneous))
    return dict(zip(ENDS, map(list, zip(*found, strict=True)), strict=True))


def table_of(release: ReleaseFolder, confidence: float, simultaneous: bool = False) -> DataFrame:
    """The released table with the columns `lower` and `upper`: intervals of its counts.

    Raises
    ------
    InputError
        As `accuracy_of`.
    """
    return frame_of(with_ends(release.table, _ends(release, confidence, simultaneous, Step.solve)))


def check_confidence(mechanism: MechanismInfo, confidence: float) -> None:
    """Refuse a confidence that is none, or a mechanism without intervals, before noise is drawn.

    Raises
    ------
    InputError
    """
    checked_confidence(confidence)
    if mechanism.intervals is None:
        raise InputError(f"there are no intervals for releases of {mechanism.name}: leave out `confidence`")


def if_known(made: Release) -> Release:
    """`with_intervals` of `CONFIDENCE`, if they are known, and there are at most `files.LARGE` counts."""
    try:
        return made if len(made.counts) > files.LARGE else with_intervals(made, CONFIDENCE)
    except InputError:
        return made


def with_intervals(made: Release, confidence: float, simultaneous: bool = False) -> Release:
    """A release with intervals of all its counts, at no further budget.

    Raises
    ------
    InputError
        As `accuracy_of`, or if it has a column of that name.
    """
    if taken := [name for name in ENDS if name in made.counts]:
        raise InputError(
            f"intervals are in columns {listed(ENDS)}, and the data have a column {taken[0]!r} already: "
            "rename it, or leave out `confidence`"
        )
    manifest = {
        "mechanism": made.mechanism,
        "settings": dict(made.settings),
        "budget": None if made.budget is None else made.budget.as_dict(),
    }
    steps = Steps()
    release = ReleaseFolder(manifest, made.counts, dict(made.regions), made.measurements)
    ends = _ends(release, confidence, simultaneous, steps)
    for step in steps.kept:
        made.steps.append(step)
    covers = covering(confidence, simultaneous)
    about = {"confidence": confidence, "simultaneous": simultaneous, "covers": covers}
    return replace(made, ends=ends, intervals=about)


def _ends(release: ReleaseFolder, confidence: float, simultaneous: bool, solve: Solving) -> Ends:
    progress.watch_compiler()
    miss = 1 - checked_confidence(confidence)
    return _source(release).rows(miss, simultaneous, solve).ends()


def _source(release: ReleaseFolder) -> Intervals:
    mechanism = released_by(release.manifest["mechanism"])
    if mechanism is None:
        raise unknown(release, "this version does not know the mechanism")
    # The mechanism's queries are those of a row, also where the guarantee is for a person with several.
    return mechanism.intervals_of(replace(release, manifest=budget_of_one_row(release.manifest)))


def bounds_of(release: ReleaseFolder, answers: Sequence[Answer]) -> dict[str, list[float]]:
    """The column `bound` of single counts: by a theorem, no count of the level is off by more.

    It fails with a probability of at most `FAILURE`. There is no such column if there is no such theorem.
    """
    mechanism = released_by(release.manifest["mechanism"])
    function = mechanism and mechanism.bounds
    bounds = function and function(release.table, release.manifest, release.regions, FAILURE)
    if not bounds:
        return {}
    return {"bound": [bounds[one.level] if one.cells == 1 else math.nan for one in answers]}
