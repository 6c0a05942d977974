"""The columns, levels and regions that a table of regions and sizes must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import SIZES, Regions
from hierdp.counts.size_table import SizeTable, Table
from hierdp.record.files import REGIONS

if TYPE_CHECKING:
    from pandas import DataFrame


def shape_of_sizes(table: Table, manifest: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of regions and sizes, in words; empty if nothing is."""
    import pandas as pd

    if list(table.columns) != SIZES:
        return f"its columns are {list(table.columns)}, not {SIZES}"
    if len(regions) != 1:
        return f"{REGIONS} lists {len(regions)} hierarchies, not one"
    (hierarchy,) = regions.values()
    if list(manifest["settings"]["levels"]) != list(hierarchy.levels):
        return f"{REGIONS} has other levels than the manifest"
    if isinstance(table, SizeTable):
        return ""  # it was read as counts of these regions
    names = SIZES[:4]
    there = pd.MultiIndex.from_frame(hierarchy.frame()[names].fillna(""))
    rows = pd.MultiIndex.from_frame(table[names].fillna(""))
    strange = ~rows.isin(there)
    if strange.any():
        return f"row {int(strange.argmax()) + 1}: {REGIONS} has no such region of that level and parent"
    return ""


def shape_of_bins(_: DataFrame, __: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of bins, in words; empty if nothing is. It has no regions."""
    return f"a table of bins has no regions, but the release contains {REGIONS}" if regions else ""
