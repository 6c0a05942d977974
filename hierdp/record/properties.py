"""The properties of a released table: whole, non-negative, consistent counts, and the public total."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.boxes import boxes_of
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import attributes_of, cells_at, is_cells, is_sizes
from hierdp.counts.size_table import SizeTable, Table
from hierdp.errors import InputError
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

Regions = Mapping[str, Hierarchy]

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
    values = table["groups" if is_sizes(table) else "count"].to_numpy()
    whole = bool(np.issubdtype(values.dtype, np.integer))
    return {
        "whole": "" if whole else f"row {_first(values != np.rint(values))} is not a whole number",
        "non_negative": f"row {_first(values < 0)} is negative" if (values < 0).any() else "",
        "consistent": _sums(table, settings, regions) if whole or not is_sizes(table) else None,
        "total": _total(table, values, settings),
    }


def _broken_sizes(table: SizeTable, settings: Mapping[str, Any]) -> dict[str, str | None]:
    """`broken` for a large table, whose counts are whole."""
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
            region = np.concatenate(table.hierarchy.names)[tree.internal[wrong[0]]]
            return f"region {region!r}, size {size}: the regions below do not add up to it"
    return ""


def _first(wrong: NDArray[np.bool_]) -> int:
    return int(np.argmax(wrong)) + 1


def _sums(table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> str | None:
    try:
        if is_sizes(table):
            return _size_sums(table)
        if is_cells(settings, table) and set(settings["axes"]) <= set(regions):
            return _cell_sums(table, settings, regions)
        if attributes_of(table) and len(regions) == 1:
            (hierarchy,) = regions.values()
            return _table_sums(table, hierarchy)
        if "range_query" in settings and settings["range_query"]["answers"] == "consistent":
            return _box_sums(table, settings)
    except (InputError, KeyError, IndexError) as why:
        return str(why)
    return None


def _size_sums(table: DataFrame) -> str:
    import pandas as pd

    if table.empty:  # with noisy numbers of groups, there may be none
        return ""
    level, size, groups = (table[name].to_numpy() for name in ("level", "size", "groups"))
    region, names = pd.factorize(table["region"], use_na_sentinel=False)
    above, parents = pd.factorize(table["parent"])
    parent = np.append(names.get_indexer(parents), -1)[above]  # -1 if missing, or not a region
    span = int(size.max()) + 1
    for depth in range(1, int(level.max()) + 1):
        low, high = level == depth, level == depth - 1
        there = np.zeros(len(names) + 1, bool)
        there[region[high]] = True
        lost = ~there[parent[low]]
        if lost.any():
            return f"region {names[region[low][lost][0]]!r} has no parent in the level above"
        keys = [of[rows].astype(np.int64) * span + size[rows] for of, rows in ((parent, low), (region, high))]
        wrong = _differs(keys[0], groups[low], keys[1], groups[high])
        if wrong is not None:
            place, wrong_size = divmod(wrong, span)
            return f"region {names[place]!r}, size {wrong_size}: the regions below do not add up to it"
    return ""


def _cell_sums(table: DataFrame, settings: Mapping[str, Any], regions: Regions) -> str:
    axes, order = list(settings["axes"]), settings["order"]
    above, counts = cells_at(table, settings, regions, 0)
    allowed = _rounding(table["count"].to_numpy())
    for level, axis in enumerate(order, start=1):
        places, values = cells_at(table, settings, regions, level)
        depth = order[:level].count(axis)
        parent = list(places)
        at = axes.index(axis)
        parent[at] = np.asarray(regions[axis].tree.levels[depth - 1])[places[at]]
        shape = [int(regions[name].tree.level_sizes[order[: level - 1].count(name)]) for name in axes]
        keys = [np.ravel_multi_index(tuple(part), shape) for part in (parent, above)]
        wrong = _differs(keys[0], values, keys[1], counts, allowed)
        if wrong is not None:
            cell = np.unravel_index(wrong, shape)
            named = ", ".join(
                f"{name} {regions[name].names[order[: level - 1].count(name)][i]!r}"
                for name, i in zip(axes, cell, strict=True)
            )
            return f"level {level - 1}, {named}: the cells below do not add up to it"
        above, counts = places, values
    return ""


def _table_sums(table: DataFrame, hierarchy: Hierarchy) -> str:
    import pandas as pd

    names = attributes_of(table)
    cell, cells = np.zeros(len(table), np.int64), 1
    for name in names:
        codes, labels = pd.factorize(table[name].to_numpy(object))
        cell, cells = cell * len(labels) + codes, cells * len(labels)
    level, counts = table["level"].to_numpy(), table["count"].to_numpy()
    at = np.full(len(table), -1, np.int64)
    for depth, regions in enumerate(hierarchy.names):
        here = level == depth
        index = pd.Index(regions, dtype=object)
        at[here] = index.get_indexer(table["region"].to_numpy(object)[here])
    if (at < 0).any():
        return f"row {_first(at < 0)}: there is no such region"
    for depth, parents in enumerate(hierarchy.tree.levels):
        above, below = level == depth, level == depth + 1
        keys = np.asarray(parents)[at[below]] * cells + cell[below]
        others = at[above] * cells + cell[above]
        wrong = _differs(keys, counts[below], others, counts[above], _rounding(counts))
        if wrong is not None:
            row = table[names].iloc[int(np.argmax(cell == wrong % cells))]
            named = ", ".join(f"{name} {row[name]!r}" for name in names)
            region = hierarchy.names[depth][wrong // cells]
            return f"region {region!r}, {named}: the regions below do not add up to it"
    return ""


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
    """The tolerance for sums of these counts: 0 for whole ones."""
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


def _total(table: DataFrame, values: NDArray[Any], settings: Mapping[str, Any]) -> str | None:
    """Whether the table's total equals the public total in the manifest."""
    public = settings.get("groups" if is_sizes(table) else "total")
    if public is None or "level" not in table:
        return None
    found = values[table["level"].to_numpy() == 0].sum()
    return "" if found == public else f"the table's total is {found}, the manifest's {public}"
