"""Checks of repairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import Regions
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.repair.mechanism import released
from hierdp.mechanisms.repair.table import AXIS, NAME, given_of, options_of
from hierdp.record.files import REGIONS
from hierdp.record.step import Solving

if TYPE_CHECKING:
    from pandas import DataFrame


def shape(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
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


def rerun(
    measure: Measure, solve: Solving, table: DataFrame, manifest: Mapping[str, Any], regions: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the given counts in the table, the only part that is not checked."""
    given = given_of(table, regions[AXIS])
    if not given.measured[given.hierarchy.tree.leaves].all():
        raise Differs("a region of the last level has no given count")
    measure.end()
    try:
        options = options_of(str(manifest["mechanism"]).removeprefix(NAME), manifest["settings"])
        return released(given, options, solve)
    except InputError as wrong:
        raise Differs(str(wrong)) from None


CHECKING = Checking(shape, rerun=rerun)
