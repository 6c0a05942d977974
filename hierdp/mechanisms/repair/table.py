"""The table of a repair, with one row per region: what was given, and what it was repaired to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.record.files import REGIONS

if TYPE_CHECKING:
    from pandas import DataFrame

AXIS = "region"
"""The name of the only axis of a repair's table."""

PREFIX = "repair: "
"""A repair's manifest names its method after these characters."""

WEIGHTS = {"chebyshev": "1 / standard error", "least-absolute": "1 / standard error"}
"""The weights of methods that do not weigh by 1 / standard error²."""

GIVEN, GIVEN_ERROR = "given", "given_standard_error"


def table_of(given: InputCounts, counts: NDArray[Any], method: str) -> DataFrame:
    """One row per region, in level order; counts that were not given are missing.

    With given standard errors, the repair by least squares has those of its counts: exact if the errors of
    the given counts are independent, because the repair is linear in them.
    """
    import pandas as pd

    hierarchy = given.hierarchy
    tree, missing = hierarchy.tree, ~given.measured
    columns: dict[str, Any] = {
        "level": tree.level,
        f"{AXIS}_level": np.array(hierarchy.levels, dtype=object)[tree.level],
        AXIS: np.concatenate(hierarchy.names),
    }
    if given.whole:
        columns[GIVEN] = pd.arrays.IntegerArray(np.where(missing, 0, given.counts), missing)
    else:
        columns[GIVEN] = np.where(missing, np.nan, given.counts)
    if given.errors is not None:
        columns[GIVEN_ERROR] = given.errors
    columns["count"] = counts
    if given.errors is not None and method == "least-squares":
        columns["standard_error"] = np.sqrt(ConsistentVariance(tree, given.variance).of_nodes())
    return pd.DataFrame(columns)


def given_of(table: DataFrame, hierarchy: Hierarchy, tables: bool = False) -> InputCounts:
    """The given counts of a repair's table, whose rows are the regions in level order."""
    column = table[GIVEN]
    measured = column.notna().to_numpy()
    kind = np.int64 if str(column.dtype) == "Int64" else np.float64
    counts = column.fillna(0).to_numpy(kind)
    errors = table[GIVEN_ERROR].to_numpy(float) if GIVEN_ERROR in table else None
    return InputCounts(hierarchy, counts, measured, errors, tables)


def settings_of(given: InputCounts, method: str, fixed: Sequence[str], window: int | None) -> dict[str, Any]:
    """The public parameters, for the manifest: those of a table over one axis, and the repair's options."""
    hierarchy = given.hierarchy
    settings: dict[str, Any] = {
        "axes": {AXIS: list(hierarchy.levels)},
        "order": [AXIS] * hierarchy.tree.depth,
        "fixed": list(fixed),
        "window": window,
        "weights": "equal" if given.errors is None else WEIGHTS.get(method, "1 / standard error²"),
    }
    if given.tables:
        settings["tables"] = True
    if hierarchy.levels[0] in fixed:
        settings["total"] = int(given.counts[0])
    return settings


def shape_of(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a repair's rows, in words; empty if nothing is."""
    if list(regions) != [AXIS]:
        return f"{REGIONS} has the axes {list(regions)}, not {[AXIS]}"
    hierarchy = regions[AXIS]
    if manifest["settings"]["axes"] != {AXIS: list(hierarchy.levels)}:
        return f"{REGIONS} has other levels than the manifest"
    if len(table) != hierarchy.size:
        return f"the table has {len(table)} rows for {hierarchy.size} regions"
    names = np.concatenate(hierarchy.names)
    strange = (table[AXIS].to_numpy(object) != names) | (table["level"].to_numpy() != hierarchy.tree.level)
    return f"row {int(strange.argmax()) + 1} is not that of its region in {REGIONS}" if strange.any() else ""
