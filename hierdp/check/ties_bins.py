"""The ties of tables of bins: range queries (Qardaji et al. 2013) and clusters (Zhang et al. 2014)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.check.replay import Differs, Replay
from hierdp.mechanisms.clustering import ahp, grouping_smoothing, noise_first
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.published import sums_of
from hierdp.mechanisms.range_query.mechanism import found_from
from hierdp.mechanisms.range_query.table import answers_of, bin_table, tree_table
from hierdp.mechanisms.range_query.wavelet import Wavelet
from hierdp.noise import double_geometric_variance

if TYPE_CHECKING:
    from pandas import DataFrame

Ints = NDArray[np.int64]

EXACT = 2**51
"""Sums up to which a mean, times its number of bins and rounded, is the sum."""


def check_ranges(replay: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> str:
    """The table made again from its noisy counts; only those are taken as they are.

    Raises
    ------
    Differs
        If it is another.
    """
    settings = manifest["settings"]
    scales = [line["scale"] for line in manifest["budget"]["spends"]]
    answers = answers_of(table, settings)
    source = answers.source
    if isinstance(source, Wavelet):
        (scale,) = scales
        again = bin_table(answers.axes, Wavelet(source.counts, double_geometric_variance(scale)))
    else:
        boxes = source.boxes  # type: ignore[attr-defined]
        noisy = table["noisy"].fillna(0).to_numpy(np.int64)
        found = found_from(boxes, noisy, scales, settings.get("repair"), replay.solve)
        again = tree_table(answers.axes, found.source, noisy)
    replay.end()
    for column in again:
        if not table[column].equals(again[column]):
            raise Differs(f"the column {column!r} is not what the noisy counts and the steps give")
    return "it is what its noisy counts and the steps give"


def check_clusters(replay: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> str:
    """Clusters and means again: clusters from noisy counts, where these made them, means from whole sums.

    Raises
    ------
    Differs
        If they are others.
    """
    clusters, counts = table["cluster"].to_numpy(np.int64), table["count"].to_numpy(np.float64)
    again = _clusters(replay, table, manifest)
    replay.end()
    if again is None:
        first = np.concatenate([[0], np.diff(clusters)])
        if clusters[0] != 0 or not np.isin(first, (0, 1)).all():
            raise Differs("the clusters are not runs of neighbouring bins")
    elif not np.array_equal(again, clusters):
        raise Differs("the clusters are not those that the noisy counts and the steps give")
    sizes = np.bincount(clusters)
    last = np.zeros(sizes.size, dtype=np.float64)
    last[clusters] = counts
    sums = np.rint(last * sizes)
    if manifest["mechanism"] == "NF":
        sums = sums_of(table["noisy"].to_numpy(np.int64), clusters)
    known = (np.abs(sums) < EXACT)[clusters]
    if not np.array_equal((sums / sizes)[clusters][known], counts[known]):
        raise Differs("the counts are not the means of their clusters' whole noisy sums")
    if "standard_error" in table:
        told = manifest["budget"]["spends"][0]["standard_deviation"]
        if (table["standard_error"] != told).any():
            raise Differs("the standard errors are not those of the noise")
    return "each bin has its cluster's mean, and the clusters are what was measured and solved"


def _clusters(replay: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> Ints | None:
    """The cluster of each bin, where noisy counts and public facts decide that; None where chance has."""
    name, settings = manifest["mechanism"], manifest["settings"]
    if name in ("SF", "PHP", "Laplace"):
        return None
    noisy = table["noisy"].to_numpy(np.int64)
    if name in RULES:
        parts = settings["epsilon_1"], settings["epsilon_2"], settings["eta"]
        return ahp.clustered(noisy, *parts, RULES[name], replay.solve)[0]
    if name == "NF":
        return noise_first.clustered(noisy, manifest["budget"]["epsilon"], replay.solve)[0]
    if name == "GS":
        return grouping_smoothing.clustered(noisy, settings["width"])
    raise Differs(f"this version knows no mechanism {name!r} that makes such a table")
