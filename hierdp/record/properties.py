"""The properties of a released table: whole, non-negative, consistent counts, and the public total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.boxes import boxes_of
from hierdp.counts.layout import REGION, Layout, Regions
from hierdp.counts.size_table import SizeTable, Table
from hierdp.errors import InputError
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

DENSE = 4
"""Sums by key have an array up to this many times as long as the list of keys; otherwise keys are sorted."""

ROUNDING = 1e-6
"""Tolerance for sums of fractional counts, relative to the largest count."""


def holds(table: Table, settings: Mapping[str, Any], regions: Regions) -> dict[str, bool | None]:
    """For a manifest: whether each property holds; None if it does not apply."""
    return {name: None if why is None else not why for name, why in broken(table, settings, regions).items()}


def broken(table: Table, settings: Mapping[str, Any], regions: Regions) -> dict[str, str | None]:
    """For each property, where it is violated; empty if it holds, None if it does not apply."""
    if isinstance(table, SizeTable):
        return _broken_sizes(table, settings)
    layout = Layout.of(table, settings)
    values = table[layout.value].to_numpy()
    whole = bool(np.issubdtype(values.dtype, np.integer))
    return {
        "whole": "" if whole else f"row {_first(values != np.rint(values))} is not a whole number",
        "non_negative": f"row {_first(values < 0)} is negative" if (values < 0).any() else "",
        "consistent": _consistent(table, layout, settings, regions),
        "total": _total(table, values, settings.get("groups" if layout.sizes else "total")),
    }


def _broken_sizes(table: SizeTable, settings: Mapping[str, Any]) -> dict[str, str | None]:
    counts, stated = table.counts, settings.get("groups")
    least = int(counts.argmin())
    found = int(counts[0].sum())
    total = "" if found == stated else f"the table's total is {found}, the manifest's {stated}"
    return {
        "whole": "",
        "non_negative": f"row {least + 1} is negative" if counts.flat[least] < 0 else "",
        "consistent": _sums_by_size(table),
        "total": None if stated is None else total,
    }


def _sums_by_size(table: SizeTable) -> str:
    tree = table.hierarchy.tree
    for size in range(table.sizes):
        column = table.counts[:, size].astype(np.int64)
        wrong = np.flatnonzero(tree.child_sums(column) != column[tree.internal])
        if wrong.size:
            node = tree.internal[wrong[0]]
            region = np.concatenate(table.hierarchy.names)[node]
            return _apart(int(tree.level[node]), f"{REGION} {region!r}, size {size}")
    return ""


def _first(wrong: NDArray[np.bool_]) -> int:
    return int(np.argmax(wrong)) + 1


def _consistent(
    table: DataFrame, layout: Layout, settings: Mapping[str, Any], regions: Regions
) -> str | None:
    try:
        if layout.axes and set(layout.axes) <= set(regions):
            return _sums(table, layout, regions)
        if "range_query" in settings and settings["range_query"]["answers"] == "consistent":
            return _box_sums(table, settings)
    except (InputError, KeyError, IndexError) as why:
        return str(why)
    return None


def _sums(table: DataFrame, layout: Layout, regions: Regions) -> str:
    """Whether the counts of each region and category are the sums of those of the regions below it."""
    import pandas as pd

    category, labels = np.zeros(len(table), np.int64), list[NDArray[Any]]()
    for column in layout.categories:
        codes, known = pd.factorize(table[column].to_numpy(), use_na_sentinel=False)
        category = category * len(known) + codes
        labels.append(np.asarray(known))
    categories = math.prod(map(len, labels))
    level_of, values = table["level"].to_numpy(), table[layout.value].to_numpy()
    keys, counts = np.empty(0, np.int64), values[:0]
    for level in range(layout.levels(regions)):
        rows = np.flatnonzero(level_of == level)
        places, shape = layout.places(table.iloc[rows], regions, level), layout.shape(regions, level)
        if level:
            axis, above = layout.refined(level), layout.shape(regions, level - 1)
            at = layout.axes.index(axis)
            parents = np.asarray(regions[axis].tree.levels[layout.depth(axis, level) - 1])[places[at]]
            under = _keys([*places[:at], parents, *places[at + 1 :]], above, category[rows], categories)
            wrong = _differs(under, values[rows], keys, counts, _rounding(values))
            if wrong is not None:
                *cell, code = np.unravel_index(wrong, [*above, categories])
                names = [
                    regions[axis].names[layout.depth(axis, level - 1)][i]
                    for axis, i in zip(layout.axes, cell, strict=True)
                ]
                kinds = np.unravel_index(code, [len(known) for known in labels]) if labels else ()
                names += [known[i : i + 1].tolist()[0] for known, i in zip(labels, kinds, strict=True)]
                named = zip((*layout.axes, *layout.categories), names, strict=True)
                return _apart(level - 1, ", ".join(f"{column} {name!r}" for column, name in named))
        keys, counts = _keys(places, shape, category[rows], categories), values[rows]
    return ""


def _apart(level: int, cell: str) -> str:
    return f"level {level}, {cell}: the counts below do not add up to it"


def _keys(places: Sequence[Ints], shape: Sequence[int], category: Ints, categories: int) -> Ints:
    return np.asarray(np.ravel_multi_index((*places, category), (*shape, categories)), np.int64)


def _box_sums(table: DataFrame, settings: Mapping[str, Any]) -> str:
    axes = settings["range_query"]["axes"]
    boxes = boxes_of(table, [axis["bins"] for axis in axes], [axis["name"] for axis in axes])
    counts = table["count"].to_numpy()
    missed = np.abs(boxes.tree.child_sums(counts) - counts[boxes.tree.internal])
    allowed = _rounding(counts)
    if (missed > allowed).any():
        row = boxes.tree.internal[np.argmax(missed > allowed)] + 1
        return f"row {row}: the boxes below do not add up to it"
    return ""


def _rounding(counts: NDArray[Any]) -> float:
    if np.issubdtype(counts.dtype, np.integer):
        return 0.0
    return ROUNDING * max(1.0, float(np.abs(counts).max(initial=0)))


def _differs(
    keys: Ints, values: NDArray[Any], others: Ints, theirs: NDArray[Any], allowed: float = 0.0
) -> int | None:
    """The smallest key at which the sums of two sets of values differ by more than is allowed."""
    least = min(int(part.min(initial=0)) for part in (keys, others))
    most = max(int(part.max(initial=0)) for part in (keys, others))
    kind = np.result_type(values, theirs)
    if least == 0 and most < DENSE * (keys.size + others.size):
        at, where = None, (keys, others)
        sums = np.zeros(most + 1, dtype=kind)
    else:
        at, both = np.unique(np.concatenate([keys, others]), return_inverse=True)
        where = both[: keys.size], both[keys.size :]
        sums = np.zeros(at.size, dtype=kind)
    np.add.at(sums, where[0], values)
    np.subtract.at(sums, where[1], theirs)
    wrong = np.flatnonzero(np.abs(sums) > allowed if allowed else sums)
    if not wrong.size:
        return None
    return int(wrong[0] if at is None else at[wrong[0]])


def _total(table: DataFrame, values: NDArray[Any], public: Any) -> str | None:
    if public is None or "level" not in table:
        return None
    found = values[table["level"].to_numpy() == 0].sum()
    return "" if found == public else f"the table's total is {found}, the manifest's {public}"
