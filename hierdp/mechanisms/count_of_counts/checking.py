"""Checks of releases by the methods of Kuo et al. 2018."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.counts.size_table import Table, runs_of
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.count_of_counts.mechanism import neighbours_of, released_runs, table_of
from hierdp.mechanisms.count_of_counts.plan import CountOfCountsPlan, plan_of
from hierdp.mechanisms.neighbours import BOTTOM_UP
from hierdp.record.shape import shape_of_sizes
from hierdp.record.step import NotProved, Solving
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
    several = any(line.get("problems", 1) > 1 for line in manifest["solved"])
    epsilon = manifest["budget"]["epsilon"]
    try:
        runs, found = released_runs(places, groups, epsilon, measure, solve, plan, total, several)
    except NotProved as other:
        raise Differs(str(other)) from None
    return table_of(places, runs), found


def _groups_of(table: Table, places: Hierarchy) -> Ints:
    """The released number of groups of each region."""
    try:
        return runs_of(table, places).groups
    except InputError as wrong:
        raise Differs(str(wrong)) from None


def plan_in(settings: Mapping[str, Any]) -> CountOfCountsPlan:
    """The plan that the settings describe."""
    alone = "merge" not in settings
    method = " x ".join(settings["methods"])
    taken = ("merge", "size_budget", "group_budget", "shares")
    options = {name: settings[name] for name in taken if name in settings}
    largest, smallest = settings["max_size"], settings["smallest_size"]
    named = f"{BOTTOM_UP} {method}" if alone else method
    return plan_of(named, settings["levels"], max_size=largest, smallest=smallest, **options)


CHECKING = Checking(
    shape_of_sizes,
    rerun=rerun,
    neighbours=lambda settings: neighbours_of(plan_in(settings)),
)
