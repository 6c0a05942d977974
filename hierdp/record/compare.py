"""Compare a recomputed table and settings with those of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import REGION, SIZES, Layout, Regions
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Table
from hierdp.measurements.measuring import Differs
from hierdp.record.files import REGIONS

if TYPE_CHECKING:
    from pandas import DataFrame


def compare(table: Table, again: Table) -> None:
    """Check that two tables have the same columns, types and rows, in one order.

    Raises `Differs` if they differ; the message names the first row and column.
    """
    if wrong := laid_out(again).difference(table):
        raise Differs(wrong)


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
    return laid_out(table).misplaced(layout, regions)


def shape_of_sizes(table: Table, manifest: Mapping[str, Any], regions: Regions) -> str:
    """`shape_of_regions` of a table of regions and sizes."""
    return shape_of_regions(table, manifest["settings"], regions, SIZES)


def shape_of_bins(_: DataFrame, __: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of bins, in words; empty if nothing is. It has no regions."""
    return f"a table of bins has no regions, but the release contains {REGIONS}" if regions else ""
