"""Checks of releases by the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hierdp.counts.layout import Regions
from hierdp.counts.size_table import SizeTable, Table
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.description import ENTITY
from hierdp.mechanisms.group_size.mechanism import released_sizes
from hierdp.mechanisms.group_size.post_processing import AT_ONCE, METHODS, Grouping
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.privacy.budget import Allowed
from hierdp.record.compare import shape_of_sizes
from hierdp.record.step import NotProved, Solving


def rerun(
    measure: Measure, solve: Solving, table: Table, manifest: Mapping[str, Any], regions: Regions
) -> tuple[Table, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public regions and groups."""
    (places,) = regions.values()
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    groups, sizes = settings["groups"], settings["max_size"] + 1
    if not isinstance(table, SizeTable):  # before arrays of its shape are made
        raise Differs("the table does not have one row for each region and size, in order")
    window = settings.get("window") if "window" in method.takes else None
    grouping = _grouping(table, manifest) if "solved" in manifest else None
    allowed = Allowed.stated(manifest["budget"])
    try:
        counts, again = released_sizes(
            places,
            groups,
            sizes,
            allowed,
            measure,
            solve,
            method,
            window,
            grouping,
            settings.get("shares"),
        )
    except NotProved as apart:
        raise Differs(str(apart)) from None
    return SizeTable(places, counts), again


def other(
    name: str,
    settings: Mapping[str, Any],
    *,
    window: int | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
) -> tuple[str, dict[str, Any], Solving]:
    """What another method needs that measures the same."""
    solver = SolverOptions(backend, time_limit, window)
    method = checked(name, solver, METHODS)
    kept = {option: value for option, value in settings.items() if option != "window"}
    return name, kept if window is None else {**kept, "window": window}, method.solving(solver)


def _grouping(table: SizeTable, manifest: Mapping[str, Any]) -> Grouping:
    """Which problems were solved together: in releases before 0.2.0, neither many regions nor some sizes."""
    batched = any(line["step"].startswith(AT_ONCE) for line in manifest["solved"])
    return Grouping(batched, _in_blocks(manifest), table.counts[0])


def _in_blocks(manifest: Mapping[str, Any]) -> bool:
    step = METHODS[manifest["mechanism"]].step
    return all(line["step"] != step for line in manifest["solved"])


CHECKING = Checking(shape_of_sizes, rerun=rerun, neighbours=ENTITY, other=other)
