"""Checks of releases by the mechanisms of Qardaji et al. 2013."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.axes import Names
from hierdp.counts.boxes import BoxTree
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.range_query import matrix
from hierdp.mechanisms.range_query.answers import Consistent, Covering, RangeAnswers
from hierdp.mechanisms.range_query.matrix import QUERIES, STRATEGIES, Matrix, strategy_in
from hierdp.mechanisms.range_query.mechanism import COEFFICIENTS, level_query, post_process
from hierdp.mechanisms.range_query.plan import METHODS, Method
from hierdp.mechanisms.range_query.repairs import REPAIRS
from hierdp.mechanisms.range_query.table import FROM, answers_of, bin_table, told, tree_table
from hierdp.mechanisms.range_query.tree import grid_tree
from hierdp.mechanisms.range_query.wavelet import Wavelet, coefficients, counts_of, sensitivity
from hierdp.mechanisms.words import PERSON
from hierdp.privacy.expected import Expected, ExpectedSpend
from hierdp.privacy.noise import double_geometric_variance
from hierdp.privacy.twice import CountNoise, of_tree
from hierdp.record.compare import EXACT, compare, compare_settings
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay
from hierdp.record.shape import shape_of_bins

if TYPE_CHECKING:
    from pandas import DataFrame


CLOSE = 1e-7
"""Least squares by two machines agree at least as closely, in counts."""


def expected_spends(table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> Expected:
    """All Haar coefficients, or the levels of boxes below the root; the division of ε is not recorded."""
    if manifest["mechanism"] == "matrix":
        rows = strategy_in(manifest["settings"]["range_query"]["strategy"])
        return PERSON, [ExpectedSpend(QUERIES, matrix.sensitivity(rows), manifest["budget"]["epsilon"])]
    if manifest["mechanism"] == "Wavelet":
        shape = tuple(axis["bins"] for axis in manifest["settings"]["range_query"]["axes"])
        return PERSON, [ExpectedSpend(COEFFICIENTS, sensitivity(shape), manifest["budget"]["epsilon"])]
    levels = range(1, int(table["level"].max()) + 1)
    return PERSON, [ExpectedSpend(level_query(level), 1, None) for level in levels]


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> str:
    """Recompute the table of boxes or bins from its noisy counts, the only part that is taken as given."""
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    scales = [line["scale"] for line in manifest["budget"]["spends"]]
    answers = answers_of(table, settings)
    source: Covering | Consistent | Wavelet | Matrix
    if method.name == "Wavelet":
        (scale,) = scales
        source = Wavelet(answers.source.counts, double_geometric_variance(scale))  # type: ignore[attr-defined]
        again = bin_table(answers.axes, source)
        _check_whole(source.counts)
        saved.recover(COEFFICIENTS, np.rint(coefficients(source.counts)))
    elif method.name == "matrix":
        source, again = _again(answers, table, settings, scales)
        saved.recover(QUERIES, np.array(settings["noisy"]))
    else:
        boxes = answers.source.boxes  # type: ignore[attr-defined]
        _check_boxes(boxes, settings.get("branching"), method)
        noisy = table["noisy"].fillna(0).to_numpy(np.int64)
        repair = settings.get("repair")
        if repair not in (REPAIRS if method.consistent else (None,)):
            raise Differs(f"{method.name} has no repair {repair!r}")
        found = post_process(boxes, noisy, scales, repair, saved.solve)
        source = found.source
        again = tree_table(answers.axes, source, noisy)
        laws = [None, *map(CountNoise.of, manifest["budget"]["spends"])]
        saved.twice += of_tree(boxes.tree, noisy, laws, "counts")
        for level in range(1, boxes.tree.depth + 1):
            saved.recover(level_query(level), noisy[boxes.tree.nodes_of(level)])
    saved.end()
    if "region" in table:
        again = _with_regions(table, again, answers.axes[0].name, settings)
    compare(table, again)
    named = [axis.name for axis in answers.axes if isinstance(axis, Names)]
    if not set(settings.get("hierarchies", ())) <= set(named):
        raise Differs("the settings have a hierarchy without an axis")
    about = told(answers.axes, source)
    asked = {} if method.name in ("Wavelet", "matrix") else {"levels_asked": len(scales)}
    names = (
        "branching",
        "repair",
        "hierarchies",
        *(("strategy", "noisy") if method.name == "matrix" else ()),
    )
    given = {name: settings[name] for name in names if name in settings}
    compare_settings(settings, {"range_query": about, **asked, **given})
    return "it follows from its noisy counts and the steps"


def _again(
    answers: RangeAnswers, table: DataFrame, settings: Mapping[str, Any], scales: Sequence[float]
) -> tuple[Matrix, DataFrame]:
    """Least squares from the noisy answers, which are taken as given; machines round it differently."""
    source, (scale,) = answers.source, scales
    if not isinstance(source, Matrix) or settings["strategy"] not in STRATEGIES:
        raise Differs("a release of the method matrix has a strategy, and answers that follow from it")
    noisy = settings["noisy"]
    if len(noisy) != len(source.strategy) or not all(type(count) is int for count in noisy):
        raise Differs("the noisy answers are not whole numbers, one for each query of the strategy")
    found = Matrix.of(source.strategy, noisy, double_geometric_variance(scale), source.counts.shape)
    again = bin_table(answers.axes, found)
    for name in ("count", "standard_error"):
        same = np.isclose(table[name].to_numpy(float), again[name].to_numpy(float), rtol=CLOSE, atol=CLOSE)
        again[name] = np.where(same, table[name], again[name])
    return found, again


def _check_whole(counts: NDArray[np.float64]) -> None:
    """Check that a wavelet's counts come from whole coefficients, as far as floats are exact."""
    whole = np.rint(coefficients(counts))
    exact = np.abs(counts).sum() * counts.size < EXACT
    if exact and not np.array_equal(counts_of(whole), counts):
        raise Differs("the counts do not come from whole noisy coefficients")


def _check_boxes(boxes: BoxTree, branching: int | None, method: Method) -> None:
    """Check that the boxes of a grid are the method's; levels may have been left out."""
    if method.name.startswith("H_tree"):
        if branching is not None or len(boxes.shape) != 1:
            raise Differs(f"{method.name} measures the regions of one hierarchy")
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
    """Add the names of regions, which are saved nowhere else; those of the last level are the bins' names."""
    names = settings["hierarchies"][axis]
    last = (again["level"] == again["level"].max()).to_numpy()
    regions = table["region"].where(~last, again[f"{axis}_{FROM}"])
    if table.duplicated(["level", "region"]).any():
        raise Differs("a region appears twice in one level")
    again.insert(1, "level_name", np.asarray(names, dtype=object)[again["level"].to_numpy()])
    again.insert(2, "region", regions)
    return again


CHECKING = Checking(shape_of_bins, expected_spends, replay)
