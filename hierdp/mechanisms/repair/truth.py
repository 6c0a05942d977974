"""True counts by region, beside those of a repair and what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.errors import InputError, listed
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.mechanisms.repair.reading import read_given
from hierdp.mechanisms.repair.table import GIVEN
from hierdp.mechanisms.truth import Settings, TruthReader
from hierdp.metrics.level import Level
from models.arithmetic.arrays import Ints

ROUNDED = 1e-9
"""Relative difference that rounding of sums of fractional counts may make."""


def options(_: Any, __: Any, _settings: Settings, regions: Regions, columns: Settings) -> dict[str, Any]:
    """See `TruthReader.options`; the columns of regions have the names of the release's levels."""
    (places,) = regions.values()
    if "count" not in columns:
        raise InputError("name the column of the true counts (`count`)")
    top = {"root": str(places.names[0][0]), "root_level": places.levels[0]}
    return {**columns, "levels": places.levels[1:], **top}


def levels(data: InputCounts, table: Any, _: Settings, regions: Regions) -> list[Level]:
    """Each level's counts; the true counts of inner regions are the sums of those of the last level."""
    (places,) = regions.values()
    tree, true = places.tree, _true(data, places)
    released, given = (table[name].to_numpy(float, na_value=np.nan) for name in ("count", GIVEN))
    if np.issubdtype(table["count"].dtype, np.integer):
        released = table["count"].to_numpy(np.int64)
    found = []
    for number, name in enumerate(places.levels):
        at = tree.nodes_of(number)

        def names(where: Ints, known: Any = places.names[number]) -> Sequence[str]:
            return list(known[where])

        found.append(Level(name, true[at], released[at], at.stop - at.start, names, given=given[at]))
    return found


def _true(data: InputCounts, places: Hierarchy) -> Any:
    """The true count of each region of the release.

    Raises `InputError` if the true table has other regions, or an inner region's count is not the sum of
    those below it.
    """
    own, tree = data.hierarchy, data.hierarchy.tree
    for level, known in enumerate(places.names):
        for these, others, where in (
            (known, own.names[level], "the true table has no row for"),
            (own.names[level], known, "the release has no"),
        ):
            lost = sorted(set(these) - set(others))
            if lost:
                raise InputError(
                    f"{where} {places.levels[level]} {listed(lost)}: give the release's own regions"
                )
    sums = tree.sum_up(data.counts[tree.leaves])
    wrong = data.measured & (np.abs(sums - data.counts) > ROUNDED * np.maximum(1, np.abs(sums)))
    if wrong.any():
        region = data.name(int(np.argmax(wrong)))
        raise InputError(
            f"the true count of {region} is not the sum of those below it: correct it, or leave out the rows "
            "of inner regions"
        )
    return np.concatenate([
        sums[own.tree.nodes_of(level)][_places(known, own.names[level])]
        for level, known in enumerate(places.names)
    ])  # fmt: skip


def _places(names: Any, among: Any) -> Ints:
    import pandas as pd

    found: Ints = pd.Index(among, dtype=object).get_indexer(names).astype(np.int64)
    return found


TRUTH = TruthReader("counts by region", ("levels", "count", "root"), read_given, ("count",), options, levels)
