"""That a table has the columns, levels and regions of a release by the mechanism that the manifest names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hierdp.check.found import FAILS, HOLDS, Found
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import is_cells, is_sizes
from hierdp.mechanisms.registry import mechanism_of
from hierdp.mechanisms.words import BOTTOM_UP
from hierdp.record.files import REGIONS
from hierdp.record.properties import Regions

if TYPE_CHECKING:
    from pandas import DataFrame

SIZES = ["level", "level_name", "region", "parent", "size", "groups"]


def check_shape(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Iterator[Found]:
    """Of tables over regions; those of bins have none. A mechanism that is not ours may make any other."""
    settings = manifest["settings"]
    command = command_of(manifest["mechanism"])
    sizes, cells = is_sizes(table), is_cells(settings, table)
    bins = "range_query" in settings or {"cluster", "count"} <= set(table.columns)
    if command is None:
        wrong = "this version knows no such mechanism" if sizes or cells or bins else ""
    elif command in SIZES_BY:
        wrong = _sizes(table, settings, regions)
    elif command == "top-down":
        wrong = _cells(table, settings, regions) if cells else "the settings have no axes of such a table"
    else:
        wrong = f"such a table has no regions of its own, and there is {REGIONS}" if regions else ""
    if wrong or sizes or cells:
        named = f"{manifest['mechanism']}: {wrong}" if wrong else ""
        yield Found(
            "shape", FAILS if wrong else HOLDS, named or "columns, levels and regions as they should be"
        )


SIZES_BY = ("group-size", "count-of-counts")


def command_of(name: Any) -> str | None:
    """What of `hierdp release` makes a table of that mechanism; None if it is not one of ours."""
    parts = [mechanism_of(part) for part in str(name).removeprefix(f"{BOTTOM_UP} ").split(" × ")]
    if set(parts) == {"count-of-counts"}:
        return parts[0]
    return mechanism_of(str(name))


def _sizes(table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> str:
    import pandas as pd

    if list(table.columns) != SIZES:
        return f"its columns are {list(table.columns)}, not {SIZES}"
    if len(regions) != 1:
        return f"{REGIONS} lists {len(regions)} hierarchies, not one"
    (hierarchy,) = regions.values()
    if list(settings["levels"]) != list(hierarchy.levels):
        return f"{REGIONS} has other levels than the manifest"
    names = SIZES[:4]
    there = pd.MultiIndex.from_frame(hierarchy.frame()[names].fillna(""))
    rows = pd.MultiIndex.from_frame(table[names].fillna(""))
    strange = ~rows.isin(there)
    if strange.any():
        return f"row {int(strange.argmax()) + 1}: {REGIONS} has no such region of that level and parent"
    return ""


def _cells(table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> str:
    axes: Mapping[str, list[str]] = settings["axes"]
    order = list(settings["order"])
    columns = ["level", *(part for name in axes for part in (f"{name}_level", name)), "count"]
    if list(table.columns) not in (columns, [*columns, "standard_error"]):
        return f"its columns are {list(table.columns)}, not {columns}"
    if list(regions) != list(axes):
        return f"{REGIONS} has the axes {list(regions)}, not {list(axes)}"
    for name, hierarchy in regions.items():
        why = _axis(table, name, hierarchy, list(axes[name]), order)
        if why:
            return why
    return ""


def _axis(table: DataFrame, name: str, hierarchy: Hierarchy, levels: list[str], order: list[str]) -> str:
    if list(hierarchy.levels) != levels:
        return f"{REGIONS} has other levels of {name} than the manifest"
    if order.count(name) != hierarchy.tree.depth:
        return f"the manifest's order does not go down to the last level of {name}"
    for level in range(len(order) + 1):
        told = levels[order[:level].count(name)]
        if (table.loc[table["level"] == level, f"{name}_level"] != told).any():
            return f"a row of level {level} has {name} at another level than {told!r}"
    return ""
