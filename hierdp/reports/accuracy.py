"""How accurate a release is expected to be, from its own files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import covering
from hierdp.reports.page import Bars, Section, number

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 12
"""The most measurements that are shown; the ledger has all."""

TITLE = "How accurate to expect it"
REPAIRED = (
    "This is the noise before the counts were made to fit together. Sums of many counts are usually nearer "
    "to the truth than the table says; the exact error after that step is not known."
)
NOT_SIMULATED = (
    "That step may also change counts on average, depending on their size. By how much was not simulated for "
    "this release."
)
ADDED_UP = (
    "So a sum of k counts released as {counts} is off by about {mean:.3g} · k on average, and by about "
    "{deviation:.3g} · √k by chance: from {least:,} counts on, mostly by the average. To add up many counts, "
    "take the estimates from the noisy ones, which are right on average: hierdp query --unbiased."
)
SIMULATED = (
    "That step also changes counts on average, depending on their size. The second table says by how much, "
    "in a simulation by whoever made the release, which hierdp check does not repeat: the finest released "
    "counts were taken as the truth, and released again {times} times by the same method with the same "
    "noise. The true counts differ from the released ones, and so may their errors."
)


INTERVALS = "Each count has an interval: {said}. The table says how wide these are."


def intervals_section(table: Any, manifest: Mapping[str, Any]) -> list[Section]:
    """The widths of the intervals by level, also relative to the counts; nothing if there are none."""
    import pandas as pd

    about = manifest.get("intervals")
    if about is None:
        return []
    rows = []
    for name, counts, lower, upper in laid_out(table).levels():
        width = upper - lower
        known = ~np.isnan(width)
        if known.any():
            large = known & (counts > 0)
            share = float(np.median(width[large] / counts[large])) if large.any() else math.nan
            rows.append([name, int(known.sum()), float(np.median(width[known])), float(f"{share:.3g}")])
    frame = pd.DataFrame(rows, columns=["level", "counts", "median width", "width by count"])
    text = INTERVALS.format(said=covering(about["confidence"], about["simultaneous"]))
    bars = Bars("Width of an interval by its count, the median of each level", frame, frame.columns[-1])
    return [Section("How wrong a count may be", [text], pictures=[bars] if rows else [])]


def accuracy_section(table: Any, manifest: Mapping[str, Any]) -> Section:
    """Standard errors where they are known; otherwise the noise of each measurement."""
    if "standard_error" in table:
        known = table[table["standard_error"].notna()]
        if len(known):
            return _of_errors(known)
    if manifest["budget"] is None:
        return Section(
            TITLE, ["That depends on the given counts, of whose errors nothing was said in standard errors."]
        )
    return _of_noise(manifest)


def _of_errors(known: DataFrame) -> Section:
    """The smallest, the median and the largest standard error of each level."""
    import pandas as pd

    by = next((name for name in ("level_name", "level") if name in known), None)
    groups = [("all", known)] if by is None else list(known.groupby(by, sort=False, observed=True))
    rows = []
    for name, held in groups:
        errors = [float(f"{held['standard_error'].agg(of):.3g}") for of in ("min", "median", "max")]
        rows.append([str(name), len(held), *(number(error, 3) for error in errors)])
    columns = ["level", "counts", "smallest", "median", "largest standard error"]
    text = (
        "Each count has its standard error in the column standard_error: about 68 of 100 counts are within "
        "one standard error of the true count, and about 95 within two."
    )
    return Section(TITLE, [text], frames=[pd.DataFrame(rows, columns=columns)])


def _of_noise(manifest: Mapping[str, Any]) -> Section:
    """The noise of each measurement, and the counts to which it adds at most a tenth."""
    import pandas as pd

    spends = [spend for spend in manifest["budget"]["spends"] if spend.get("standard_deviation") is not None]
    if not spends:
        return Section(TITLE, ["The noise of this release has no standard deviation that could be shown."])
    rows = []
    for spend in spends[:MOST]:
        reach = reach_of(spend)
        deviation = number(float(f"{spend['standard_deviation']:.3g}"), 3)
        rows.append([spend["query"], deviation, f"± {reach:,}", f"{10 * reach:,}"])
    words, frames = _of_sizes(manifest)
    more = f" The first {MOST} of {len(spends)} measurements are shown." if len(spends) > MOST else ""
    texts = [
        "Random noise was added to each measured number. The table says how much: 95 of 100 noisy numbers "
        "are within the given distance of the true ones. If the true number is at least that of the last "
        f"column, this is at most a tenth of it.{more}",
        *([REPAIRED] if manifest["solved"] else []),
        *words,
    ]
    columns = ["measurement", "standard deviation", "95 of 100 within", "a tenth of"]
    return Section(TITLE, texts, frames=[pd.DataFrame(rows, columns=columns), *frames])


def _of_sizes(manifest: Mapping[str, Any]) -> tuple[list[str], list[DataFrame]]:
    """The simulated errors by size in words and tables, and those of sums; see `hierdp.questions.bias`."""
    import pandas as pd

    simulated = manifest.get("simulated_errors")
    if simulated is None:
        repaired = manifest["solved"] and manifest["holds"].get("non_negative")
        return [NOT_SIMULATED] if repaired else [], []
    rows, sums = [], []
    for group in simulated["classes"]:
        least, most, mean = group["from"], group["to"], float(group["mean_error"])
        name = f"{least:,}" + (" or more" if most is None else f" to {most:,}" if most > least else "")
        zeros = "" if group["became_0"] is None else f"{100 * float(group['became_0']):.3g} %"
        rows.append([name, group["counts"], f"{mean:+.3g}", zeros])
        deviation = float(group.get("deviation", 0))
        if mean and deviation and (enough := (deviation / mean) ** 2) <= group["counts"]:
            sums.append((math.ceil(enough), name, abs(mean), deviation))
    words = [SIMULATED.format(times=simulated["times"])]
    frames = [pd.DataFrame(rows, columns=["released count", "counts", "mean error", "became 0"])]
    if sums:  # those that the average dominates from the fewest counts on
        enough, name, mean, deviation = min(sums, key=lambda each: each[0])
        words.append(ADDED_UP.format(counts=name, mean=mean, deviation=deviation, least=enough))
        many = [10**power for power in range(math.ceil(math.log10(10 * enough)) + 1)]
        rows = [[k, number(k * mean, 3), number(math.sqrt(k) * deviation, 3)] for k in many]
        frames.append(pd.DataFrame(rows, columns=["counts added up", "off on average by", "by chance by"]))
    return words, frames


def reach_of(spend: Mapping[str, Any]) -> int:
    """The least whole number that at least 95 % of the draws of a measurement's noise do not exceed.

    Double-geometric noise has P(|X| > k) = 2a^(k+1) / (1 + a) with a = e^(−1/scale). For Gaussian noise, this
    is 1.96 standard deviations, rounded up.
    """
    if "geometric" not in spend["noise"]:
        return math.ceil(1.96 * float(spend["standard_deviation"]) - 1e-9)
    decay = -1 / float(spend["scale"])
    return max(0, math.ceil((math.log(0.025) + math.log1p(math.exp(decay))) / decay - 1 - 1e-9))
