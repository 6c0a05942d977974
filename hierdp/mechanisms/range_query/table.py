"""The table of a range-query release: one row per node, with what answers and their errors need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.axes import Axis, Names, axis_of, tree_order
from hierdp.counts.boxes import END, FIRST, BoxTree, boxes_of
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.range_query.answers import Consistent, Covering, RangeAnswers
from hierdp.mechanisms.range_query.matrix import Matrix, strategy_in
from hierdp.mechanisms.range_query.tree import hierarchy_tree
from hierdp.mechanisms.range_query.wavelet import Wavelet
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


FROM, TO = "from", "to"
"""Suffixes of an axis's columns: labels of the first and the last bin of a node."""

LEAST_SQUARES = "least squares"
"""The repair with known standard errors; see `repairs` for the others."""


Source = Covering | Consistent | Wavelet | Matrix
"""What a method makes of its measurements: it answers ranges."""


def table_of(axes: Sequence[Axis], source: Source) -> DataFrame:
    """One row for each node of a tree, or for each bin."""
    return bin_table(axes, source) if isinstance(source, Wavelet | Matrix) else tree_table(axes, source)


def tree_table(axes: Sequence[Axis], source: Covering | Consistent) -> DataFrame:
    """One row for each node, from the root, which was not measured; with standard errors if known."""
    import pandas as pd

    boxes = source.boxes
    columns: dict[str, Any] = {"level": boxes.tree.level}
    hierarchy = axes[0].hierarchy if isinstance(axes[0], Names) else None
    if hierarchy is not None and _measured(hierarchy, boxes):
        columns |= _regions(hierarchy)
    columns |= _places(axes, boxes.low, boxes.high)
    columns["noise_variance"] = np.where(np.arange(boxes.tree.size) > 0, source.variance, np.nan)
    if isinstance(source, Consistent):
        columns["count"] = source.counts
        if source.linear:
            columns["standard_error"] = np.sqrt(source.noise.of_nodes())
    else:
        top = boxes.tree.nodes_of(1)
        columns["count"] = np.concatenate([[source.noisy[top].sum()], source.noisy[1:]])
        variance = np.concatenate([[source.variance[top].sum()], source.variance[1:]])
        columns["standard_error"] = np.sqrt(variance)
    return pd.DataFrame(columns)


def bin_table(axes: Sequence[Axis], source: Wavelet | Matrix) -> DataFrame:
    """One row for each bin."""
    import pandas as pd

    at = np.stack(np.unravel_index(np.arange(source.counts.size), source.counts.shape), axis=1)
    errors = np.sqrt(source.bin_variances()).ravel()
    columns = _places(axes, at, at + 1)
    return pd.DataFrame({**columns, "count": source.counts.ravel(), "standard_error": errors})


def settings_of(axes: Sequence[Axis], source: Source) -> dict[str, Any]:
    """The settings that `answers_of` needs in addition to the table."""
    about: dict[str, Any] = {
        "axes": [axis.as_dict() for axis in axes],
        "answers": type(source).__name__.lower(),
    }
    if isinstance(source, Matrix):
        about["strategy"] = source.strategy.tolist()
    return about | ({"variance": source.variance} if isinstance(source, Wavelet | Matrix) else {})


def answers_of(table: DataFrame, settings: Mapping[str, Any]) -> RangeAnswers:
    """The source of answers, from a released table and the settings in its manifest."""
    about = settings["range_query"]
    axes = axes_of(table, settings)
    shape = tuple(axis.bins for axis in axes)
    if about["answers"] == "wavelet":
        counts = table["count"].to_numpy(float).reshape(shape)
        return RangeAnswers(axes, Wavelet(counts, float(about["variance"])))
    if about["answers"] == "matrix":
        counts = table["count"].to_numpy(float).reshape(shape)
        strategy = strategy_in(about["strategy"])
        if strategy.shape[1] != counts.size:
            raise InputError(f"its strategy has {strategy.shape[1]} columns, not {counts.size}")
        return RangeAnswers(axes, Matrix(counts, float(about["variance"]), strategy=strategy))
    boxes = boxes_of(table, shape, [axis.name for axis in axes])
    variance = table["noise_variance"].to_numpy(float, na_value=np.nan)
    variance = np.where(np.isnan(variance), np.inf, variance)
    if about["answers"] == "consistent":
        linear = settings.get("repair", LEAST_SQUARES) == LEAST_SQUARES
        return RangeAnswers(axes, Consistent(boxes, table["count"].to_numpy(), variance, linear))
    return RangeAnswers(axes, Covering(boxes, table["count"].to_numpy(), variance))


def axes_of(table: DataFrame, settings: Mapping[str, Any]) -> tuple[Axis, ...]:
    """The axes of a released table, without hierarchies.

    Raises `InputError` if the table has another number of bins.
    """
    last = table[table["level"] == table["level"].max()] if "level" in table else table
    saved = settings["range_query"]["axes"]
    axes = tuple(_axis(each, last, len(saved)) for each in saved)
    shape = [axis.bins for axis in axes]
    if math.prod(shape) != len(last):
        raise InputError(f"it has {len(last)} rows of bins, not {' x '.join(map(str, shape))}")
    return axes


def _axis(each: Mapping[str, Any], last: DataFrame, axes: int) -> Axis:
    name = each["name"]
    if axes == 1:
        return axis_of(each, last[f"{name}_{FROM}"] if each["kind"] == "names" else ())
    bins = last.drop_duplicates(f"{name}_{FIRST}").sort_values(f"{name}_{FIRST}")
    return axis_of(each, bins[f"{name}_{FROM}"])


def _places(axes: Sequence[Axis], low: Ints, high: Ints) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for i, axis in enumerate(axes):
        first, end = low[:, i], high[:, i]
        begins, stops = axis.ends(first, end)
        found = {FIRST: first, END: end, FROM: begins, TO: stops}
        columns |= {f"{axis.name}_{what}": values for what, values in found.items()}
    return columns


def _measured(hierarchy: Hierarchy, boxes: BoxTree) -> bool:
    if not np.array_equal(hierarchy.tree.level_sizes, boxes.tree.level_sizes):
        return False
    regions = hierarchy_tree(hierarchy)
    return np.array_equal(regions.low, boxes.low) and np.array_equal(regions.high, boxes.high)


def _regions(hierarchy: Hierarchy) -> dict[str, Any]:
    names = [level[order] for level, order in zip(hierarchy.names, tree_order(hierarchy), strict=True)]
    level_names = np.array(hierarchy.levels, dtype=object)[hierarchy.tree.level]
    return {"level_name": level_names, "region": np.concatenate(names)}
