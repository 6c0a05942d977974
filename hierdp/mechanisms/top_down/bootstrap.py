"""A bound on the errors of a release by a theorem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.counts.layout import Regions, cells_at
from hierdp.mechanisms.top_down.levels import Children, Level, depths_of, root
from hierdp.mechanisms.top_down.mechanism import TopDown
from hierdp.mechanisms.top_down.zeros import zeros_of

if TYPE_CHECKING:
    from pandas import DataFrame


def bounds(
    table: DataFrame, manifest: Mapping[str, Any], regions: Regions, failure: float
) -> list[float] | None:
    """For each level, an error that no count exceeds, except with a probability; None if none is known.

    See `hierdp.analysis.utility`: the union is over the counts that the release measured.
    """
    settings = manifest["settings"]
    mechanism = TopDown.of(manifest)
    if not mechanism.has_bound:
        return None
    facts = mechanism.facts_of(manifest, regions, table)
    data, order, zeros = facts.data, mechanism.order(facts), zeros_of(mechanism.zeros, facts.data)
    found, scales, nodes = [0.0], list[float](), list[int]()
    above = root(data.axes, facts.total or 0)
    for level, (axis, spend) in enumerate(zip(order, manifest["budget"]["spends"], strict=True), start=1):
        nodes.append(Children(data.axes[axis].tree, above, axis, zeros).size)
        scales.append(spend["scale"])
        found.append(error_bound_by_nodes(scales, nodes, failure))
        places, counts = cells_at(table, settings, regions, level)
        along = np.lexsort(np.stack(places)[::-1])
        above = Level(depths_of(data.axes, order)[level], np.stack(places, axis=1)[along], counts[along])
    return found
