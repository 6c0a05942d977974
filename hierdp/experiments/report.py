"""The report of an evaluation, and its tables in parts that fit a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hierdp.experiments.notice import NOTICE, WHY, WORST
from hierdp.metrics.cells import RANKED
from hierdp.reports.page import Bars, Section, page

if TYPE_CHECKING:
    from pandas import DataFrame

SIZES = ("cells", "l1", "mean_error", "rmse", "max_error", "relative", "bias")
FOUND = ("false_positives", "false_negatives", "negative")
ORDER = ("spearman", "kendall", "top_10", "top_100")


class Part(NamedTuple):
    """Some columns of the errors by level, with what they mean."""

    title: str
    text: str
    frame: DataFrame


def parts(errors: DataFrame) -> list[Part]:
    """The errors by level in parts; columns that are empty everywhere are left out."""
    known = {"level", *SIZES, *FOUND, *ORDER}
    own = [name for name in errors.columns if name not in known]
    made = [
        Part(
            "Errors by level",
            "L1 is the sum of absolute errors, relative is L1 divided by the sum of the true counts, bias "
            "is the sum of released minus true counts. Means are over all cells, also those that are 0.",
            _of(errors, SIZES),
        ),
        Part(
            "Invented and lost",
            "False positives are released counts over 0 whose true count is 0; false negatives are true "
            "counts over 0 whose released count is not.",
            _of(errors, FOUND),
        ),
        Part(
            "Order",
            f"Rank correlations among the {RANKED:,} cells with the largest true counts, those that are "
            "truly 0 included (all cells, if a level has no more), and the share of the 10 and 100 largest "
            "cells that are still among the largest. Empty where there are too few positive counts, or all "
            "are equal.",
            _of(errors, ORDER),
        ),
    ]
    if own:
        words = " ".join(MEANING[name] for name in own if name in MEANING)
        made.append(Part("Further metrics", words, _of(errors, own)))
    return [part for part in made if len(part.frame.columns) > 1 and len(part.frame)]


MEANING = {
    "emd_per_region": "The earth mover's distance is the number of entities to add or remove to turn the "
    "released groups of a region into the true ones.",
    "kld": "KLD is the Kullback–Leibler divergence of the released distribution from the true one, in nats.",
    "covered": "Covered is the share of counts with an interval whose interval covers the true count; it "
    "should be at least about the confidence.",
    "given_mean_error": "The mean error of the counts that were given to be repaired, where there were any.",
}
"""The field's own metrics, in words."""


def _of(errors: DataFrame, columns: Sequence[str]) -> DataFrame:
    there = errors[["level", *columns]].dropna(axis="columns", how="all")
    return there.dropna(how="all", subset=[name for name in there.columns if name != "level"])


def evaluation_page(
    release: str, cautions: Sequence[str], errors: DataFrame, by_size: DataFrame, worst: DataFrame
) -> str:
    """The report as HTML, marked NOT TO BE PUBLISHED on every page."""
    sections = [
        Section("What this is", [WHY, f"The release: {release}."]),
        *(
            Section(part.title, [part.text], frames=[part.frame], pictures=_bars(part))
            for part in parts(errors)
        ),
        Section(
            "Errors by size of the true count",
            ["The mean error of cells whose true count lies in a range, level by level."],
            frames=[by_size],
            pictures=_by_size(by_size),
        ),
        Section(
            "The worst cells",
            [
                f"The largest errors of each level (at most {WORST}), released minus true. The true count of "
                "such a cell is its released count minus the error: show them to nobody who may not see it."
            ],
            frames=[worst],
        ),
    ]
    warnings = [f"{NOTICE}: for inside the house.", *cautions]
    return page("Errors of a release", sections, warnings, banner=NOTICE)


def _bars(part: Part) -> list[Bars]:
    if "mean_error" not in part.frame:
        return []
    means = Bars("Mean absolute error by level", part.frame[["level", "mean_error"]], "mean_error")
    if "relative" not in part.frame:
        return [means]
    relative = part.frame[["level", "relative"]].fillna(0)
    return [means, Bars("L1 error by the sum of the true counts", relative, "relative")]


def _by_size(frame: DataFrame) -> list[Bars]:
    """Bars of the finest level's mean errors."""
    if not len(frame):
        return []
    last = frame["level"].iloc[-1]
    here = frame.loc[frame["level"] == last, ["true_count", "mean_error"]]
    return [Bars(f"Mean absolute error by size of the true count ({last})", here, "mean_error")]
