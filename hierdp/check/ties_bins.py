"""The ties of tables of bins: range queries (Qardaji et al. 2013) and clusters (Zhang et al. 2014)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.check.again import compare, compare_settings
from hierdp.check.noise import Law, Twice, of_tree
from hierdp.check.replay import Differs, Replay
from hierdp.counts.axes import Names, axis_of
from hierdp.mechanisms.clustering import ahp, grouping_smoothing, noise_first
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.published import sums_of
from hierdp.mechanisms.range_query.answers import Consistent, Covering
from hierdp.mechanisms.range_query.mechanism import found_from
from hierdp.mechanisms.range_query.plan import METHODS, Method
from hierdp.mechanisms.range_query.repairs import REPAIRS
from hierdp.mechanisms.range_query.table import FROM, answers_of, bin_table, told, tree_table
from hierdp.mechanisms.range_query.tree import BoxTree, grid_tree
from hierdp.mechanisms.range_query.wavelet import Wavelet, coefficients, counts_of
from hierdp.privacy.noise import double_geometric_variance

if TYPE_CHECKING:
    from pandas import DataFrame

Ints = NDArray[np.int64]

EXACT = 2**51
"""Sums up to which a mean, times its number of bins and rounded, is the sum."""


MEASURED = (*RULES, "NF", "GS")
"""Whose clusters follow from the noisy counts in the table; those of others are drawn, and public."""


_PARTS = "epsilon_1", "epsilon_2"
TOLD = {
    **dict.fromkeys(RULES, (*_PARTS, "eta", "clusters")),
    "NF": ("clusters",),
    "SF": ("clusters", "share"),
    "PHP": (*_PARTS, "rounds"),
    "GS": (*_PARTS, "width"),
    "Laplace": (),
}
"""The settings of each method, beside its axes."""


def check_ranges(replay: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> str:
    """The table made again from its noisy counts; only those are taken as they are.

    Raises
    ------
    Differs
        If it is another.
    """
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    scales = [line["scale"] for line in manifest["budget"]["spends"]]
    answers = answers_of(table, settings)
    source: Covering | Consistent | Wavelet
    if method.name == "Wavelet":
        (scale,) = scales
        source = Wavelet(answers.source.counts, double_geometric_variance(scale))  # type: ignore[attr-defined]
        again = bin_table(answers.axes, source)
        _check_whole(source.counts)
    else:
        boxes = answers.source.boxes  # type: ignore[attr-defined]
        _check_boxes(boxes, settings.get("branching"), method)
        noisy = table["noisy"].fillna(0).to_numpy(np.int64)
        repair = settings.get("repair")
        if repair not in (REPAIRS if method.consistent else (None,)):
            raise Differs(f"{method.name} has no repair {repair!r}")
        found = found_from(boxes, noisy, scales, repair, replay.solve)
        source = found.source
        again = tree_table(answers.axes, source, noisy)
        laws = [None, *map(Law.of, manifest["budget"]["spends"])]
        replay.twice += of_tree(boxes.tree, noisy, laws, "counts")
    replay.end()
    if "region" in table:
        again = _with_regions(table, again, answers.axes[0].name, settings)
    compare(table, again)
    named = [axis.name for axis in answers.axes if isinstance(axis, Names)]
    if not set(settings.get("hierarchies", ())) <= set(named):
        raise Differs("the settings have a hierarchy of no axis")
    about = told(answers.axes, source)
    asked = {} if method.name == "Wavelet" else {"levels_asked": len(scales)}
    given = {name: settings[name] for name in ("branching", "repair", "hierarchies") if name in settings}
    compare_settings(settings, {"range_query": about, **asked, **given})
    return "it is what its noisy counts and the steps give"


def _check_whole(counts: NDArray[np.float64]) -> None:
    """That a wavelet's counts come of whole coefficients, as far as floats hold these exactly."""
    whole = np.rint(coefficients(counts))
    exact = np.abs(counts).sum() * counts.size < EXACT
    if exact and not np.array_equal(counts_of(whole), counts):
        raise Differs("the counts do not come of whole noisy coefficients")


def _check_boxes(boxes: BoxTree, branching: int | None, method: Method) -> None:
    """That the boxes of a grid are the method's, whose levels may have been left out."""
    if method.name.startswith("H_tree"):
        if branching is not None or len(boxes.shape) != 1:
            raise Differs(f"{method.name} asks the regions of one hierarchy")
        return
    b = branching or 0
    if b < 2 or b != (max(2, *boxes.shape) if method.name == "Flat" else method.branching or b):
        raise Differs(f"{method.name} does not branch by {b}")
    grid = grid_tree(boxes.shape, b)
    known = {grid.low[part].tobytes() + grid.high[part].tobytes() for part in _levels(grid)}
    if not all(boxes.low[part].tobytes() + boxes.high[part].tobytes() in known for part in _levels(boxes)):
        raise Differs(f"the boxes are not those of a grid whose axes branch by {b}")


def _levels(boxes: BoxTree) -> list[slice]:
    return [boxes.tree.nodes_of(level) for level in range(boxes.tree.depth + 1)]


def _with_regions(table: DataFrame, again: DataFrame, axis: str, settings: Mapping[str, Any]) -> DataFrame:
    """With the regions' names, which are nowhere else: those of the last level are the bins'."""
    names = settings["hierarchies"][axis]
    last = (again["level"] == again["level"].max()).to_numpy()
    regions = table["region"].where(~last, again[f"{axis}_{FROM}"])
    if table.duplicated(["level", "region"]).any():
        raise Differs("a region is twice in one level")
    again.insert(1, "level_name", np.asarray(names, dtype=object)[again["level"].to_numpy()])
    again.insert(2, "region", regions)
    return again


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
    if manifest["mechanism"] in (*RULES, "GS") and known.all():
        counted = np.bincount(clusters, weights=table["noisy"].to_numpy(float))
        off = (counted - sums).astype(np.float64)
        law_of_bins, law_of_sums = map(Law.of, manifest["budget"]["spends"])
        ones = np.ones(sizes.size, dtype=np.int64)
        replay.twice.append(Twice("sums of clusters", off, law_of_sums, ones, law_of_bins, chosen_of=0))
    if not np.array_equal(last[clusters], counts):
        raise Differs("the bins of a cluster have not one count")
    if not np.array_equal((sums / sizes)[clusters][known], counts[known]):
        raise Differs("the counts are not the means of their clusters' whole noisy sums")
    _check_columns(table, manifest)
    settings = manifest["settings"]
    made = {"clusters": sizes.size, "rounds": max(1, len(table).bit_length() - 1)}
    taken = {name: made.get(name, settings.get(name)) for name in ("axes", *TOLD[manifest["mechanism"]])}
    if manifest["mechanism"] == "SF" and "largest" in settings:  # of one run, it is neither told nor asked
        taken["largest"] = settings["largest"]
    compare_settings(settings, taken)
    return "each bin has its cluster's mean, and the clusters are what was measured and solved"


def _check_columns(table: DataFrame, manifest: Mapping[str, Any]) -> None:
    """The bins in their order, and no other columns than the method's."""
    name, about = manifest["mechanism"], manifest["settings"]["axes"]
    shape = tuple(each["bins"] for each in about)
    if len(table) != math.prod(shape):
        raise Differs(f"the table has {len(table)} bins, the axes {math.prod(shape)}")
    places = np.unravel_index(np.arange(len(table)), shape)
    again = {}
    for i, (each, at) in enumerate(zip(about, places, strict=True)):
        beside = [part for j, part in enumerate(places) if j != i]
        first = np.logical_and.reduce([part == 0 for part in beside]) if beside else np.full(len(table), True)
        labels = axis_of(each, table[each["name"]].to_numpy(object)[first]).labels
        if len(set(labels)) < len(labels):
            raise Differs(f"two bins of {each['name']!r} have one name")
        again[each["name"]] = np.asarray(labels, dtype=object)[at]
    kept = ["cluster", *(["noisy"] if name in MEASURED else []), "count"]
    import pandas as pd

    made = pd.DataFrame({**again, **{column: table[column] for column in kept}})
    if name == "Laplace":
        made["standard_error"] = manifest["budget"]["spends"][0]["standard_deviation"]
    compare(table, made)


def _clusters(replay: Replay, table: DataFrame, manifest: Mapping[str, Any]) -> Ints | None:
    """The cluster of each bin, where noisy counts and public facts decide that; None where chance has."""
    name, settings = manifest["mechanism"], manifest["settings"]
    if name == "Laplace":
        return np.arange(len(table))
    if name not in MEASURED:
        return None
    noisy = table["noisy"].to_numpy(np.int64)
    if name in RULES:
        parts = settings["epsilon_1"], settings["epsilon_2"], settings["eta"]
        return ahp.clustered(noisy, *parts, RULES[name], replay.solve)[0]
    if name == "NF":
        return noise_first.clustered(noisy, manifest["budget"]["epsilon"], replay.solve)[0]
    return grouping_smoothing.clustered(noisy, settings["width"])
