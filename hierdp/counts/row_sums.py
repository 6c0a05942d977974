"""Whether the counts of a table's regions, or boxes of bins, add up to those above them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.boxes import boxes_of
from hierdp.counts.layout import Layout, Regions, Settings, rows_of, wrong_sum
from hierdp.errors import InputError
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

DENSE = 4
"""Sums by key have an array up to this many times as long as the list of keys; otherwise keys are sorted."""

ROUNDING = 1e-6
"""Tolerance for sums of fractional counts, relative to the largest count."""


def wrong_sums(table: DataFrame, layout: Layout, settings: Settings, regions: Regions) -> str | None:
    """Where the counts of a table do not add up; empty if they do, None if no sums are claimed."""
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
        codes, known = pd.factorize(table[column], use_na_sentinel=False)
        category = category * len(known) + codes
        labels.append(np.asarray(known))
    categories = math.prod(map(len, labels))
    level_of, values = table["level"].to_numpy(), table[layout.value].to_numpy()
    keys, counts = np.empty(0, np.int64), values[:0]
    for level in range(layout.levels(regions)):
        rows = np.flatnonzero(level_of == level)
        places, shape = layout.places(rows_of(table, level), regions, level), layout.shape(regions, level)
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
                return wrong_sum(level - 1, ", ".join(f"{column} {name!r}" for column, name in named))
        keys, counts = _keys(places, shape, category[rows], categories), values[rows]
    return ""


def _keys(places: Sequence[Ints], shape: Sequence[int], category: Ints, categories: int) -> Ints:
    return np.asarray(np.ravel_multi_index((*places, category), (*shape, categories)), np.int64)


def _box_sums(table: DataFrame, settings: Settings) -> str:
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
