"""Checks of releases by the mechanisms of Qardaji et al. 2013."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.axes import Axis, Names
from hierdp.counts.boxes import boxes_of
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.range_query.matrix import STRATEGIES, strategy_in
from hierdp.mechanisms.range_query.mechanism import published
from hierdp.mechanisms.range_query.plan import METHODS, chosen
from hierdp.mechanisms.range_query.table import axes_of
from hierdp.mechanisms.relations import PERSON
from hierdp.record.compare import shape_of_bins
from hierdp.record.step import Solving, Step

if TYPE_CHECKING:
    from pandas import DataFrame

CLOSE = 1e-7
"""Least squares by two machines agree at least as closely, in counts."""


def rerun(
    measure: Measure, solve: Solving, table: DataFrame, manifest: Mapping[str, Any], _: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public axes."""
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    options = {name: settings[name] for name in ("branching", "repair") if name in settings}
    options = {name: value for name, value in options.items() if name in method.takes}
    chosen(method.name, **options)
    if method.name == "matrix":
        if settings["strategy"] not in STRATEGIES:
            raise Differs(f"there is no strategy {settings['strategy']!r}")
        rows = strategy_in(settings["range_query"]["strategy"])
        options = {"strategy": settings["strategy"], "rows": rows}
    elif method.name != "Wavelet":
        options["budget"] = settings["shares"]
    axes, hierarchies = _axes(table, settings)
    made, found = published(method, axes, manifest["budget"]["epsilon"], measure, solve, **options)
    return _rounded_alike(made, table) if method.name == "matrix" else made, found | hierarchies


def other(
    name: str, settings: Mapping[str, Any], *, repair: str | None = None
) -> tuple[str, dict[str, Any], Solving]:
    """What another method needs that measures the same."""
    chosen(name, repair=repair)
    kept = {option: value for option, value in settings.items() if option != "repair"}
    if name == "matrix" and "strategy" not in kept:
        raise Differs("matrix measures the queries of a strategy, which this release does not have")
    if name not in ("Wavelet", "matrix") and "shares" not in kept:
        raise Differs(f"{name} measures levels of boxes, which this release does not have")
    return name, kept if repair is None else {**kept, "repair": repair}, Step.solve


def _axes(table: DataFrame, settings: Mapping[str, Any]) -> tuple[list[Axis], dict[str, Any]]:
    """The axes, and the hierarchies of which the table has only the names of the levels."""
    axes: list[Axis] = list(axes_of(table, settings))
    hierarchies = settings.get("hierarchies", {})
    named = [axis.name for axis in axes if isinstance(axis, Names)]
    if not set(hierarchies) <= set(named):
        raise Differs("the settings have a hierarchy without an axis")
    for axis in axes:
        if isinstance(axis, Names) and len(set(axis.labels)) < axis.bins:
            raise Differs(f"two bins of {axis.name!r} have the same name")
    if "region" in table:
        (axis,) = axes
        assert isinstance(axis, Names)
        boxes = boxes_of(table, [axis.bins], [axis.name])
        regions = table["region"].to_numpy(object)
        names = [regions[boxes.tree.nodes_of(level)] for level in range(boxes.tree.depth)]
        hierarchy = Hierarchy(tuple(hierarchies[axis.name]), (*names, axis.names), boxes.tree)
        axes = [replace(axis, hierarchy=hierarchy)]
    return axes, {"hierarchies": hierarchies} if hierarchies else {}


def _rounded_alike(made: DataFrame, table: DataFrame) -> DataFrame:
    """The table with the released numbers where they are the same but for the rounding of least squares."""
    for name in ("count", "standard_error"):
        same = np.isclose(table[name].to_numpy(float), made[name].to_numpy(float), rtol=CLOSE, atol=CLOSE)
        made[name] = np.where(same, table[name], made[name])
    return made


def _other(name: str, manifest: Mapping[str, Any], **options: Any) -> Any:
    return other(name, manifest["settings"], **options)


CHECKING = Checking(
    shape_of_bins,
    rerun=rerun,
    neighbours=PERSON,
    other=_other,
    takes=("repair",),
)
