"""The columns, levels and regions that a table must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import REGION, SIZES, Layout, Regions
from hierdp.counts.size_table import SizeTable, Table
from hierdp.errors import InputError
from hierdp.record.files import REGIONS

if TYPE_CHECKING:
    from pandas import DataFrame


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
