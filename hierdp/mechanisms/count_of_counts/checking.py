"""Checks of releases by the methods of Kuo et al. 2018."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Table
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.count_of_counts.mechanism import neighbours_of, released_runs, table_of
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, plan_of
from hierdp.mechanisms.description import BOTTOM_UP
from hierdp.privacy.budget import Allowed
from hierdp.record.compare import shape_of_sizes
from hierdp.record.step import NotProved, Solving, Step
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


def rerun(
    measure: Measure, solve: Solving, table: Table, manifest: Mapping[str, Any], regions: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public regions and groups."""
    (places,) = regions.values()
    settings = manifest["settings"]
    plan = plan_in(settings)
    if plan.name != manifest["mechanism"]:
        raise Differs(f"the mechanism is {manifest['mechanism']!r}, but the settings name {plan.name!r}")
    public = plan.group_budget is None
    groups, total = (_groups_of(table, places), None) if public else (None, settings["groups"])
    allowed = Allowed.stated(manifest["budget"])
    try:
        made, found = released_runs(places, groups, allowed, measure, solve, plan, total)
    except NotProved as other:
        raise Differs(str(other)) from None
    return table_of(places, made), found


def _groups_of(table: Table, places: Hierarchy) -> Ints:
    try:
        return laid_out(table).runs(places).groups
    except InputError as wrong:
        raise Differs(str(wrong)) from None


def plan_in(settings: Mapping[str, Any]) -> CountOfCountsPlan:
    """The plan that the settings describe."""
    method = " x ".join(settings["methods"])
    return _plan(f"{BOTTOM_UP} {method}" if "merge" not in settings else method, settings)


def _plan(method: str, settings: Mapping[str, Any]) -> CountOfCountsPlan:
    """The plan of a method, with what else the settings say."""
    taken = ("merge", "size_budget", "group_budget", "shares")
    options = {name: settings[name] for name in taken if name in settings}
    largest, smallest = settings["max_size"], settings["smallest_size"]
    return plan_of(method, settings["levels"], max_size=largest, smallest=smallest, **options)


def other(
    name: str, settings: Mapping[str, Any], *, merge: str | None = None
) -> tuple[str, dict[str, Any], Solving]:
    """What another method needs that measures the same, such as Hc2 after Hc, or another `merge`."""
    plan = _plan(name, settings if merge is None else {**settings, "merge": merge})
    kept = {**settings, "methods": [method.name for method in plan.methods], "merge": plan.merge}
    if plan.bottom_up:
        del kept["merge"]
        if merge is not None:
            raise InputError(f"{plan.name} takes no `merge`: only the last level is measured")
    return plan.name, kept, Step.solve


def _other(name: str, manifest: Mapping[str, Any], **options: Any) -> Any:
    return other(name, manifest["settings"], **options)


CHECKING = Checking(
    shape_of_sizes,
    rerun=rerun,
    other=_other,
    takes=("merge",),
    neighbours=lambda manifest: neighbours_of(plan_in(manifest["settings"])),
)
