"""True counts by cell, level by level, beside those of a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.layout import Regions, cells_at
from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms.top_down.levels import level_name, nodes_above
from hierdp.mechanisms.truth import Settings, TruthReader, region_column
from hierdp.metrics.level import Level, sparse_level
from hierdp.tables import Flows, flows
from models.arithmetic.arrays import Ints


def options(source: Any, _: Any, settings: Settings, regions: Regions, columns: Settings) -> dict[str, Any]:
    """See `TruthReader.options`; the axes are the release's, their default columns the last levels'."""
    named = dict(columns.get("axes") or {})
    for name in named:
        if name not in regions:
            raise InputError(unknown_name(name, regions, "there is no axis"))
    finest = [hierarchy.levels[-1] for hierarchy in regions.values()]
    axes = {}
    for name, hierarchy in regions.items():
        level = hierarchy.levels[-1]
        flag = f"`axes={name}=COLUMN`"
        if name not in named and finest.count(level) > 1:
            raise InputError(f"several axes end in {level!r}: name the column of axis {name!r} ({flag})")
        axes[name] = (hierarchy, region_column(source, level, named.get(name), flag))
    unknown = {} if "unknown" not in settings else {"unknown": settings["unknown"]}
    given = {name: value for name, value in columns.items() if name != "axes"}
    return {**unknown, **given, "axes": axes}


def levels(data: Flows, table: Any, settings: Settings, regions: Regions) -> list[Level]:
    """Each level's counts by cell."""
    order = [data.axis_names.index(name) for name in settings["order"]]
    zero = np.zeros((1, len(data.axes)), np.int64)
    true = [((0,) * len(data.axes), zero, np.array([data.total]))]
    for nodes in nodes_above(data.axes, order, data.cells, data.counts):
        true.append((nodes.level.depths, nodes.level.places, nodes.level.counts))
    found = []
    for number, (depths, places, counts) in enumerate(true):
        shape = [int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True)]
        before = _keyed(list(places.T), counts, shape)
        after = _keyed(*cells_at(table, settings, regions, number), shape)
        known = [axis.names[d] for axis, d in zip(data.axes, depths, strict=True)]

        def names(keys: Ints, known: Any = known, shape: Any = shape) -> Sequence[str]:
            parts = [part[at] for part, at in zip(known, np.unravel_index(keys, shape), strict=True)]
            return [" → ".join(cell) for cell in zip(*parts, strict=True)]

        name = level_name(data, depths) or "total"
        found.append(sparse_level(name, before, after, math.prod(shape), names))
    return found


def _keyed(places: Sequence[Ints], counts: NDArray[Any], shape: Sequence[int]) -> tuple[Ints, NDArray[Any]]:
    keys = np.asarray(np.ravel_multi_index(tuple(places), shape), np.int64)
    order = np.argsort(keys)
    return keys[order], counts[order]


TRUTH = TruthReader(
    "counts by cell, level by level",
    ("axes", "count", "unknown"),
    flows,
    ("axes", "count", "unknown"),
    options,
    levels,
)
