"""Checks of releases by the methods of Zhang et al. 2014, and those compared there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.axes import axis_of
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.clustering import ahp, grouping_smoothing, noise_first, php, structure_first
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.published import SUMS, sums_of
from hierdp.mechanisms.words import PERSON
from hierdp.privacy.budget import split
from hierdp.privacy.expected import CHOICE, Expected, ExpectedSpend
from hierdp.privacy.twice import CountNoise, Twice
from hierdp.record.compare import EXACT, compare, compare_settings
from hierdp.record.properties import Regions
from hierdp.record.replay import Differs, Replay
from hierdp.record.shape import shape_of_bins
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


MEASURED = (*RULES, "NF", "GS")
"""Methods whose clusters follow from the noisy counts in the table. Other methods draw theirs, and release
them."""


_PARTS = "epsilon_1", "epsilon_2"
SETTINGS = {
    **dict.fromkeys(RULES, (*_PARTS, "eta", "clusters")),
    "NF": ("clusters",),
    "SF": ("clusters", "share"),
    "PHP": (*_PARTS, "rounds"),
    "GS": (*_PARTS, "width"),
    "Laplace": (),
}
"""The settings of each method, besides its axes."""


def expected_spends(table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> Expected:
    """The measurements for the clusters, then those of their sums."""
    name, settings, epsilon = manifest["mechanism"], manifest["settings"], manifest["budget"]["epsilon"]
    if name in ("NF", "Laplace"):
        return PERSON, [ExpectedSpend(noise_first.COUNTS, 1, epsilon)]
    if name == "SF":
        return PERSON, _structure_first(len(table), manifest)
    first, second = settings["epsilon_1"], settings["epsilon_2"]
    sums = ExpectedSpend(SUMS, 1, second)
    if name in RULES:
        return PERSON, [ExpectedSpend(ahp.COUNTS, 1, first), sums]
    if name == "GS":
        return PERSON, [ExpectedSpend(grouping_smoothing.COUNTS, 1, first), sums]
    rounds = php.rounds_of(len(table))
    cuts = [
        ExpectedSpend(php.cut_query(number), php.SENSITIVITY, first / 2 / rounds, CHOICE)
        for number in range(1, rounds + 1)
    ]
    return PERSON, [*cuts, ExpectedSpend(php.NUMBER, php.SENSITIVITY, first / 2, CHOICE), sums]


def _structure_first(bins: int, manifest: Mapping[str, Any]) -> list[ExpectedSpend]:
    settings, epsilon = manifest["settings"], manifest["budget"]["epsilon"]
    runs, spends = settings["clusters"], []
    if not 1 < runs < bins:
        return [ExpectedSpend(SUMS, 1, epsilon)]
    if manifest["budget"]["spends"][0]["query"] == structure_first.LARGEST:  # otherwise it was given
        share = structure_first.FOR_LARGEST
        first, epsilon = split(epsilon, 2, (share, 1 - share))
        spends.append(ExpectedSpend(structure_first.LARGEST, 1, first))
    cuts, sums = split(epsilon, 2, (settings["share"], 1 - settings["share"]))
    moved = structure_first.sensitivity(structure_first.bound_of(bins, settings["largest"])[1])
    spends.append(ExpectedSpend(structure_first.query_of(runs), moved, cuts, CHOICE, runs - 1))
    return [*spends, ExpectedSpend(SUMS, 1, sums)]


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> str:
    """Recompute the clusters from noisy counts, if they came from these, and the means from whole sums."""
    clusters, counts = table["cluster"].to_numpy(np.int64), table["count"].to_numpy(np.float64)
    again = _clusters(saved, table, manifest)
    saved.end()
    if again is None:
        first = np.concatenate([[0], np.diff(clusters)])
        if clusters[0] != 0 or not np.isin(first, (0, 1)).all():
            raise Differs("the clusters are not runs of neighbouring bins")
    elif not np.array_equal(again, clusters):
        raise Differs("the clusters do not follow from the noisy counts and the steps")
    sizes = np.bincount(clusters)
    last = np.zeros(sizes.size, dtype=np.float64)
    last[clusters] = counts
    sums = np.rint(last * sizes)
    if manifest["mechanism"] == "NF":
        sums = sums_of(table["noisy"].to_numpy(np.int64), clusters)
    known = (np.abs(sums) < EXACT)[clusters]
    _recover(saved, table, manifest, sums if known.all() else None)
    if manifest["mechanism"] in (*RULES, "GS") and known.all():
        counted = np.bincount(clusters, weights=table["noisy"].to_numpy(float))
        off = (counted - sums).astype(np.float64)
        law_of_bins, law_of_sums = map(CountNoise.of, manifest["budget"]["spends"])
        ones = np.ones(sizes.size, dtype=np.int64)
        saved.twice.append(Twice("sums of clusters", off, law_of_sums, ones, law_of_bins, chosen_of=0))
    if not np.array_equal(last[clusters], counts):
        raise Differs("the bins of a cluster have different counts")
    if not np.array_equal((sums / sizes)[clusters][known], counts[known]):
        raise Differs("the counts are not the means of their clusters' whole noisy sums")
    _check_columns(table, manifest)
    settings = manifest["settings"]
    made = {"clusters": sizes.size, "rounds": php.rounds_of(len(table))}
    taken = {name: made.get(name, settings.get(name)) for name in ("axes", *SETTINGS[manifest["mechanism"]])}
    if (
        manifest["mechanism"] == "SF" and "largest" in settings
    ):  # with one run, it is neither given nor measured
        taken["largest"] = settings["largest"]
    compare_settings(settings, taken)
    return "each bin has its cluster's mean, and the clusters follow from the measurements and steps"


def _recover(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], sums: Any) -> None:
    """Collect the noisy bins, and the noisy sums of clusters if floats held them exactly."""
    name, spends = manifest["mechanism"], manifest["budget"]["spends"]
    if name in MEASURED:
        saved.recover(spends[0]["query"], table["noisy"].to_numpy(np.int64))
    if spends[0]["query"] == structure_first.LARGEST and manifest["settings"]["largest"] > 1:
        saved.recover(structure_first.LARGEST, np.array([manifest["settings"]["largest"]]))
    if name != "NF" and sums is not None:
        saved.recover(spends[-1]["query"], sums)


def _check_columns(table: DataFrame, manifest: Mapping[str, Any]) -> None:
    """Check that the bins are in order, and the columns are the method's."""
    name, about = manifest["mechanism"], manifest["settings"]["axes"]
    shape = tuple(each["bins"] for each in about)
    if len(table) != math.prod(shape):
        raise Differs(f"the table has {len(table)} bins, but the axes have {math.prod(shape)}")
    places = np.unravel_index(np.arange(len(table)), shape)
    again = {}
    for i, (each, at) in enumerate(zip(about, places, strict=True)):
        beside = [part for j, part in enumerate(places) if j != i]
        first = np.logical_and.reduce([part == 0 for part in beside]) if beside else np.full(len(table), True)
        labels = axis_of(each, table[each["name"]].to_numpy(object)[first]).labels
        if len(set(labels)) < len(labels):
            raise Differs(f"two bins of {each['name']!r} have the same name")
        again[each["name"]] = np.asarray(labels, dtype=object)[at]
    kept = ["cluster", *(["noisy"] if name in MEASURED else []), "count"]
    import pandas as pd

    made = pd.DataFrame({**again, **{column: table[column] for column in kept}})
    if name == "Laplace":
        made["standard_error"] = manifest["budget"]["spends"][0]["standard_deviation"]
    compare(table, made)


def _clusters(saved: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> Ints | None:
    """The cluster of each bin, if it follows from noisy counts and public facts; None if it was drawn."""
    name, settings = manifest["mechanism"], manifest["settings"]
    if name == "Laplace":
        return np.arange(len(table))
    if name not in MEASURED:
        return None
    noisy = table["noisy"].to_numpy(np.int64)
    if name in RULES:
        parts = settings["epsilon_1"], settings["epsilon_2"], settings["eta"]
        return ahp.clustered(noisy, *parts, RULES[name], saved.solve)[0]
    if name == "NF":
        return noise_first.clustered(noisy, manifest["budget"]["epsilon"], saved.solve)[0]
    return grouping_smoothing.clustered(noisy, settings["width"])


CHECKING = Checking(shape_of_bins, expected_spends, replay)
