"""Checks of releases by the mechanisms of Boninsegna & Silvestri 2025."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import Regions
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.top_down.mechanism import TopDownPlan, published
from hierdp.mechanisms.top_down.post_processing import METHODS
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.privacy.budget import rules_of
from hierdp.record.compare import shape_of_regions
from hierdp.record.step import NotProved, Solving
from hierdp.tables import Flows

if TYPE_CHECKING:
    from pandas import DataFrame


def rerun(
    measure: Measure, solve: Solving, _: DataFrame, manifest: Mapping[str, Any], regions: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public axes."""
    try:
        return published(no_flows(manifest["settings"], regions), plan_in(manifest), measure, solve)
    except NotProved as other:
        raise Differs(str(other)) from None


def plan_in(manifest: Mapping[str, Any]) -> TopDownPlan:
    """The plan that a manifest describes."""
    settings, budget = manifest["settings"], manifest["budget"]
    method, (conversion, rule) = METHODS[manifest["mechanism"]], rules_of(budget)
    options = {name: settings.get(name) for name in ("total", "shares", "zeros")}
    backend = settings.get("backend") if "backend" in method.takes else None
    first, unit = settings["order"][0], unit_of(settings)
    return TopDownPlan(
        *(method, budget["epsilon"], budget["delta"], unit),
        **options, first=first, backend=backend, conversion=conversion, rule=rule,
    )  # fmt: skip


def no_flows(settings: Mapping[str, Any], regions: Regions) -> Flows:
    """The axes in the settings, and the unknown region, without counts.

    Raises `Differs` if an axis does not have that region.
    """
    names, unknown = tuple(settings["axes"]), settings.get("unknown")
    axes = tuple(regions[name] for name in names)
    if unknown is not None and any((axis.positions([unknown]) < 0).any() for axis in axes):
        raise Differs(f"an axis has no region {unknown!r} for unknown places")
    nothing = np.empty(0, dtype=np.int64)
    return Flows(axes, names, nothing.reshape(0, len(names)), nothing, unknown)


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """What one person can change, according to the settings."""
    return Unit(settings.get("trips", 1), settings.get("distinct", True), "total" in settings)


def neighbours(manifest: Mapping[str, Any]) -> str:
    """The neighbouring relation, in words."""
    return unit_of(manifest["settings"]).neighbours


def rows_of_a_person(manifest: Mapping[str, Any]) -> int | None:
    """The number of rows of a person, if neighbours are unbounded; None if a person is replaced."""
    unit = unit_of(manifest["settings"])
    return None if unit.bounded else unit.trips


def shape(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of cells along several axes, in words; empty if nothing is."""
    settings = manifest["settings"]
    columns = ["level", *(part for name in settings["axes"] for part in (f"{name}_level", name)), "count"]
    return shape_of_regions(table, settings, regions, columns, "standard_error")


CHECKING = Checking(
    shape,
    rerun=rerun,
    neighbours=neighbours,
    rounded=[name for name, method in METHODS.items() if method.rounding],
    rows_of_a_person=rows_of_a_person,
)
