"""True groups by size, beside those of a release of group-size or count-of-counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hierdp.counts.layout import Regions
from hierdp.counts.rows import laid_out
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.errors import InputError
from hierdp.mechanisms.truth import Settings, TruthReader, region_column
from hierdp.metrics.level import Level, sparse_level
from hierdp.metrics.runs import earth_movers_runs
from hierdp.tables.sizes import group_runs
from models.arithmetic.arrays import Ints


def options(source: Any, _: Any, _settings: Settings, regions: Regions, columns: Settings) -> dict[str, Any]:
    """See `TruthReader.options`; the regions are the release's."""
    if "group" not in columns:
        raise InputError("name the column that identifies a row's group (`group`)")
    (places,) = regions.values()
    where = columns.get("groups")
    region = region_column(source if where is None else where, places.levels[-1], columns.get("region"))
    return {**columns, "regions": places, "region": region}


def levels(data: SizeRuns, table: Any, settings: Settings, regions: Regions) -> list[Level]:
    """Each level's numbers of groups by region and size, with the earth mover's distance per region.

    Larger groups are counted in the release's last size on both sides.
    """
    (places,) = regions.values()
    tree, largest = places.tree, int(settings["max_size"])
    width = largest + 1
    true, released = data.runs.capped(largest), laid_out(table).runs(places)
    distance = earth_movers_runs(true, released)
    found = []
    for number, name in enumerate(places.levels):
        nodes = tree.nodes_of(number)
        before, after = (_keyed(side.between(nodes.start, nodes.stop), width) for side in (true, released))
        here = distance[nodes]
        more = {"emd_per_region": float(here.sum() / here.size)}

        def names(keys: Ints, known: Any = places.names[number]) -> Sequence[str]:
            pairs = zip(keys // width, keys % width, strict=True)
            return [f"{known[region]}, size {size}" for region, size in pairs]

        cells = here.size * (width - int(settings.get("smallest_size", 0)))
        found.append(sparse_level(name, before, after, cells, names, more=more))
    return found


def _keyed(runs: Runs, width: int) -> tuple[Ints, Ints]:
    return runs.row * width + runs.sizes, runs.counts


READING = ("group", "groups", "entities", "levels", "regions", "region", "root", "unknown")

TRUTH = TruthReader(
    "how many groups of each size each region has",
    READING,
    group_runs,
    ("group", "groups", "entities", "region", "unknown"),
    options,
    levels,
)
