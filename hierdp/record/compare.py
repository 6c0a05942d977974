"""Compare a recomputed table and settings with those of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import REGION, SIZES, Layout, Regions
from hierdp.counts.size_table import SizeTable, Table, frame_of
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs
from hierdp.record.cautions import FROM_DATA
from hierdp.record.files import REGIONS

if TYPE_CHECKING:
    from pandas import DataFrame, Series


EXACT = 2**51
"""Up to this size, a sum is recovered exactly from its mean: times the number of bins, rounded."""


def compare(table: Table, again: Table) -> None:
    """Check that two tables have the same columns, types and rows, in one order.

    Raises `Differs` if they differ; the message names the first row and column.
    """
    if isinstance(table, SizeTable) and isinstance(again, SizeTable):
        _compare_sizes(table, again)
        return
    table, again = frame_of(table), frame_of(again)
    if list(table.columns) != list(again.columns):
        raise Differs(f"the table's columns are {list(table.columns)}, not {list(again.columns)}")
    if len(table) != len(again):
        raise Differs(f"the table has {len(table)} rows, its steps give {len(again)}")
    for name in again:
        wrong = _differ(table[name], again[name])
        if wrong.any():
            raise Differs(
                f"row {int(np.argmax(wrong)) + 1} of the table: {name!r} is not what the steps give"
            )


def _compare_sizes(table: SizeTable, again: SizeTable) -> None:
    if table.counts.shape != again.counts.shape:
        raise Differs(f"the table has {len(table)} rows, its steps give {len(again)}")
    for cut in again.cuts():
        wrong = np.flatnonzero(table.counts[cut] != again.counts[cut])
        if wrong.size:
            row = cut.start * again.sizes + int(wrong[0]) + 1
            raise Differs(f"row {row} of the table: 'groups' is not what the steps give")


def _differ(column: Series[Any], again: Series[Any]) -> Any:
    if not _number(again):
        return column.astype(object).fillna("").to_numpy() != again.astype(object).fillna("").to_numpy()
    if column.dtype != again.dtype:
        return np.ones(len(column), dtype=bool)
    same = (column == again) | (column.isna() & again.isna())
    return ~same.fillna(False).to_numpy(dtype=bool)


def _number(column: Series[Any]) -> bool:
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype))


def compare_settings(settings: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Check that the settings are those that a release of this kind writes.

    What was taken from the data does not follow from the rest of a release: only warnings follow from it.

    Raises `Differs` if one is not; the message names the first.
    """
    if any(settings.get(name, True) is not True for name in FROM_DATA):
        raise Differs(f"the settings {' and '.join(FROM_DATA)} must be true or absent")
    for name in sorted((set(settings) | set(again)) - set(FROM_DATA)):
        if name not in again:
            raise Differs(f"the manifest has a setting {name!r} that no such release has")
        if name not in settings or settings[name] != again[name]:
            raise Differs(f"the setting {name!r} is not {again[name]!r}, as the rest of the release says")


def shape_of_regions(
    table: Table, settings: Mapping[str, Any], regions: Regions, columns: Sequence[str], *more: str
) -> str:
    """What is wrong with a table of regions, in words; empty if nothing is.

    It must have the given columns, and may have `more` after them. The settings have the levels of each axis
    (`axes`), or of the only one (`levels`).
    """
    if list(table.columns) not in (list(columns), [*columns, *more]):
        return f"its columns are {list(table.columns)}, not {list(columns)}"
    levels: Mapping[str, Any] = settings["axes"] if "axes" in settings else {REGION: settings["levels"]}
    if list(regions) != list(levels):
        return f"{REGIONS} has the axes {list(regions)}, not {list(levels)}"
    layout = Layout.of(table, settings)
    for axis, hierarchy in regions.items():
        if list(hierarchy.levels) != list(levels[axis]):
            return f"{REGIONS} has other levels of {axis} than the manifest"
        if layout.order is not None and layout.order.count(axis) != hierarchy.tree.depth:
            return f"the manifest's order does not go down to the last level of {axis}"
    if isinstance(table, SizeTable):  # its rows are those of its regions
        return ""
    rows = range(layout.levels(regions))
    if not table["level"].isin(rows).all():
        return f"a row has another level than {rows[0]} to {rows[-1]}"
    return next(filter(None, (_level(table[table["level"] == k], layout, regions, k) for k in rows)), "")


def _level(rows: DataFrame, layout: Layout, regions: Regions, level: int) -> str:
    try:
        places = layout.places(rows, regions, level)
    except InputError as unknown:
        return str(unknown)
    for axis, at in zip(layout.axes, places, strict=True):
        hierarchy, depth = regions[axis], layout.depth(axis, level)
        column = "level_name" if layout.order is None else f"{axis}_level"
        if (rows[column] != hierarchy.levels[depth]).any():
            return f"a row of level {level} has {axis} at another level than {hierarchy.levels[depth]!r}"
        if "parent" in rows:
            parents = hierarchy.frame()["parent"].fillna("").to_numpy(object)
            if (rows["parent"].fillna("") != parents[hierarchy.tree.nodes_of(depth)][at]).any():
                return f"a row of level {level} has another parent than its region in {REGIONS}"
    return ""


def shape_of_sizes(table: Table, manifest: Mapping[str, Any], regions: Regions) -> str:
    """`shape_of_regions` of a table of regions and sizes."""
    return shape_of_regions(table, manifest["settings"], regions, SIZES)


def shape_of_bins(_: DataFrame, __: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of bins, in words; empty if nothing is. It has no regions."""
    return f"a table of bins has no regions, but the release contains {REGIONS}" if regions else ""
