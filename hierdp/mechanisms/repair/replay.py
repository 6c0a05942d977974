"""Checks of repairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.repair.methods import repaired
from hierdp.mechanisms.repair.table import AXIS, NAME, given_of, options_of, settings_of, table_of
from hierdp.record.compare import compare, compare_settings
from hierdp.record.files import REGIONS
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay

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


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """Repeat the repair from the given counts in the table, the only part that is taken as given."""
    given = given_of(table, regions[AXIS])
    if not given.measured[given.hierarchy.tree.leaves].all():
        raise Differs("a region of the last level has no given count")
    try:
        options = options_of(str(manifest["mechanism"]).removeprefix(NAME), manifest["settings"])
        counts = repaired(given, options, saved.solve)
    except InputError as wrong:
        raise Differs(str(wrong)) from None
    saved.end()
    compare(table, table_of(given, counts, options))
    compare_settings(manifest["settings"], settings_of(given, options))
    return "it follows from the given counts and the steps"


CHECKING = Checking(shape, None, replay)
