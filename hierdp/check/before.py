"""Releases of 0.2.0 and before have no measurements: these are read from their tables and settings.

They are then checked as those of a newer release. This file does not change any more, and goes with the first
version that no longer checks releases of format 0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.measurements.file import FORMAT
from hierdp.measurements.measurement import Measurement, Measurements
from hierdp.measurements.measuring import Differs
from hierdp.privacy.budget import spends_of, split
from hierdp.record.written import Written
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

EXACT = 2**51
"""Up to this size, a sum is recovered exactly from its mean: times the number of bins, rounded."""

Manifest = Mapping[str, Any]


def upgraded(release: Written) -> Written:
    """The release with its measurements and the settings of newer ones; unchanged if it has measurements.

    Raises
    ------
    Differs
        If the measurements cannot be recovered.
    """
    manifest = release.manifest
    if release.measurements is not None or "measurements" in manifest:
        return release
    if manifest["mechanism"] not in CLUSTERINGS:
        return release
    settings, answers = _clustering(release.table, manifest)
    parts = zip(spends_of(manifest["budget"]), answers, strict=True)
    found = Measurements(tuple(Measurement(spend, each) for spend, each in parts))
    newer = {**manifest, "settings": settings, "measurements": FORMAT}
    return replace(release, manifest=newer, measurements=found)


def _clustering(table: DataFrame, manifest: Manifest) -> tuple[dict[str, Any], list[Ints]]:
    """The settings and the answers of a clustered histogram."""
    name, settings = manifest["mechanism"], manifest["settings"]
    spends = manifest["budget"]["spends"]
    clusters = table["cluster"].to_numpy(np.int64)
    sizes = np.bincount(clusters)
    means = np.zeros(sizes.size)
    means[clusters] = table["count"].to_numpy(np.float64)
    sums = np.rint(means * sizes)
    if not (np.abs(sums) < EXACT).all():
        raise Differs("sums of clusters are too large to be recovered from their means")
    last = sums.astype(np.int64)
    kept = {name: settings[name] for name in settings if name not in ("epsilon_1", "epsilon_2")}
    if name not in ("NF", "Laplace", "SF"):
        kept["share"] = _share_of(manifest["budget"]["epsilon"], settings["epsilon_1"], settings["epsilon_2"])
    if name == "Laplace":
        return kept, [last]
    if name == "NF":
        return kept, [table["noisy"].to_numpy(np.int64)]
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    if name == "SF":
        largest = [] if spends[0]["query"] != "largest count" else [np.array([kept.pop("largest")])]
        drawn = [starts[:0:-1] - np.arange(starts.size - 1, 0, -1)] if len(spends) > 1 else []
        return kept, [*largest, *drawn, last]
    if name == "PHP":
        return kept, [*_bisections(starts, clusters.size, settings["rounds"]), last]
    return kept, [table["noisy"].to_numpy(np.int64), last]


def _share_of(epsilon: float, first: float, second: float) -> float:
    """The share that divided the budget so, to the last bit: with the fewest digits."""
    for digits in range(1, 18):
        share = round(first / (first + second), digits)
        if 0 < share < 1 and split(epsilon, 2, (share, 1 - share)) == [first, second]:
            return share
    raise Differs(f"no share divides ε = {epsilon:g} into {first:g} and {second:g}")


def _bisections(starts: Ints, bins: int, rounds: int) -> list[Ints]:
    """Choices that lead to the released clusters: they were not kept, so any that do are accepted."""
    ends, answers = [(0, bins)], []
    for _ in range(rounds):
        ends = [(first, end) for first, end in ends if end - first > 1]
        inside = [starts[(starts > first) & (starts < end)] for first, end in ends]
        cuts = [int(those[those.size // 2]) if those.size else 0 for those in inside]
        relative = [max(0, cut - first) for (first, _), cut in zip(ends, cuts, strict=True)]
        answers.append(np.array(relative, dtype=np.int64))
        ends = [
            part
            for (first, end), cut in zip(ends, cuts, strict=True)
            if cut
            for part in ((first, cut), (cut, end))
        ]
    return [*answers, np.array([starts.size - 1])]


CLUSTERINGS: frozenset[str] = frozenset(
    ("AHP", "AHP-greedy", "AHP-empirical", "AHP-by-place", "NF", "SF", "PHP", "GS", "Laplace")
)
