"""True tables of every region, beside those of a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import counts_in
from hierdp.mechanisms.truth import Settings, TruthReader, region_column
from hierdp.metrics.level import Level
from hierdp.tables.axes import Axis
from hierdp.tables.tabulated import CrossTable, cross_table
from models.arithmetic.arrays import Array, Ints


def options(source: Any, _: Any, settings: Settings, regions: Regions, columns: Settings) -> dict[str, Any]:
    """See `TruthReader.options`; the regions and the categories are the release's."""
    (places,) = regions.values()
    region = region_column(source, places.levels[-1], columns.get("region"))
    return {**columns, "regions": places, "region": region, "plan": settings["plan"]}


def read(
    source: Any,
    *,
    attributes: Any = None,
    plan: Any = None,
    levels: Sequence[str] | None = None,
    regions: Hierarchy | None = None,
    region: str | None = None,
    **more: Any,
) -> CrossTable:
    """See `TruthReader.read`."""
    named = plan_of(plan, **({} if attributes is None else {"attributes": attributes})).attributes
    axis = Axis.of(levels) if regions is None else Axis.of((regions, region))  # type: ignore[arg-type]
    return cross_table(source, axis=axis, attributes=named, **more)


def levels(data: CrossTable, table: Any, settings: Settings, regions: Regions) -> list[Level]:
    """Each level's totals, counts by each attribute, and counts by all of them."""
    (places,) = regions.values()
    queries = Queries(plan_of(settings["plan"]))
    released = counts_in(table, queries, places)
    true = np.asarray(places.tree.sum_up(data.counts), np.int64)
    found = []
    for number, name in enumerate(places.levels):
        here = true[places.tree.nodes_of(number)]
        for what, kept in _marginals(queries):
            before, after = (
                np.ravel(_marginal(side, queries.shape, kept)) for side in (here, released[number])
            )
            labels = [queries.variables[list(queries.plan.attributes)[axis]].labels for axis in kept]

            def names(at: Ints, number: int = number, labels: Any = labels) -> Sequence[str]:
                shape = (places.names[number].size, *(len(each) for each in labels))
                region, *codes = np.unravel_index(at, shape)
                parts = [[each[code] for code in column] for each, column in zip(labels, codes, strict=True)]
                return [", ".join(cell) for cell in zip(places.names[number][region], *parts, strict=True)]

            sums = len(kept) < len(queries.shape)
            found.append(Level(f"{name}: {what}", before, after, before.size, names, sums=sums))
    return found


def _marginals(queries: Queries) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The attributes that are kept, in words and by position."""
    names = list(queries.plan.attributes)
    yield "total", ()
    if len(names) > 1:
        yield from ((name, (axis,)) for axis, name in enumerate(names))
    yield "every cell", tuple(range(len(names)))


def _marginal(counts: Array, shape: Sequence[int], kept: Sequence[int]) -> Array:
    summed = tuple(axis + 1 for axis in range(len(shape)) if axis not in kept)
    found: Array = counts.reshape(len(counts), *shape).sum(axis=summed)
    return found


TRUTH = TruthReader(
    "counts by region and category",
    ("attributes", "plan", "levels", "regions", "region", "root", "count", "unknown"),
    read,
    ("region", "count", "unknown"),
    options,
    levels,
)
