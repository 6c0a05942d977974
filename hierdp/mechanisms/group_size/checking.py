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
from hierdp.mechanisms.group_size.post_processing import METHODS
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
    whole = table.counts[0] if "solved" in manifest else None  # then the table is that of these steps
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
            whole,
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


CHECKING = Checking(shape_of_sizes, rerun=rerun, neighbours=ENTITY, other=other)
