"""A release's counts taken as the truth and released again, and a bound on its errors: post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.counts.layout import Regions, cells_at
from hierdp.measurements.measuring import Measuring
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down.checking import no_flows, plan_in
from hierdp.mechanisms.top_down.expected import BOUNDED
from hierdp.mechanisms.top_down.levels import Children, Level, depths_of, refinements, root
from hierdp.mechanisms.top_down.mechanism import published
from hierdp.mechanisms.top_down.queries import TrueCounts
from hierdp.mechanisms.top_down.zeros import zeros_of
from hierdp.privacy.noise import Noise
from hierdp.tables import Flows

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_SIMULATED = 100_000
"""The most rows of a release whose errors its report simulates, by releasing it five times again."""


def bootstrap(table: DataFrame, manifest: Mapping[str, Any], regions: Regions, noise: Noise) -> DataFrame:
    """The table of a second release, whose true counts are the released ones.

    It has the method, the budget and the noise of the first; only released counts are used.
    """
    settings, plan = manifest["settings"], replace(plan_in(manifest), backend=None)
    empty = no_flows(settings, regions)
    places, counts = cells_at(table, settings, regions, len(settings["order"]))
    cells = np.stack(places, axis=1)
    along = np.lexsort(cells.T[::-1])
    data = Flows(empty.axes, empty.axis_names, cells[along], counts[along], empty.unknown)
    measure = Measuring(TrueCounts(data, refinements(data, plan.first)), noise)
    solve = plan.method.solving(SolverOptions())
    return published(empty, plan, measure, solve)[0]


def bounds(
    table: DataFrame, manifest: Mapping[str, Any], regions: Regions, failure: float
) -> list[float] | None:
    """For each level, an error that no count exceeds, except with a probability; None if none is known.

    See `hierdp.analysis.utility`: the union is over the counts that the release measured.
    """
    settings = manifest["settings"]
    if manifest["mechanism"] not in BOUNDED or "total" not in settings:
        return None
    data = no_flows(settings, regions)
    order = [data.axis_names.index(name) for name in settings["order"]]
    zeros = zeros_of(settings.get("zeros"), data)
    found, scales, nodes = [0.0], list[float](), list[int]()
    above = root(data.axes, int(settings["total"]))
    for level, (axis, spend) in enumerate(zip(order, manifest["budget"]["spends"], strict=True), start=1):
        nodes.append(Children(data.axes[axis].tree, above, axis, zeros).size)
        scales.append(spend["scale"])
        found.append(error_bound_by_nodes(scales, nodes, failure))
        places, counts = cells_at(table, settings, regions, level)
        along = np.lexsort(np.stack(places)[::-1])
        above = Level(depths_of(data.axes, order)[level], np.stack(places, axis=1)[along], counts[along])
    return found
