"""Checks of releases of tables of several attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hierdp.counts.layout import Regions
from hierdp.errors import InputError
from hierdp.measurements.measuring import Measure
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.tabulation.budget import Unit, shares
from hierdp.mechanisms.tabulation.constraints import broken_bounds, constraints_of
from hierdp.mechanisms.tabulation.mechanism import TOGETHER, released_tables, together_of
from hierdp.mechanisms.tabulation.options import METHODS, UNBIASED, refuse_unused
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.solving import solving_of
from hierdp.mechanisms.tabulation.table import REGION, counts_in
from hierdp.privacy.budget import Ledger
from hierdp.record.compare import shape_of_regions
from hierdp.record.step import Solving

if TYPE_CHECKING:
    from pandas import DataFrame

Manifest = Mapping[str, Any]


def shape(table: DataFrame, manifest: Manifest, regions: Regions) -> str:
    """What is wrong with the table, in words: its columns and regions, and the plan's public constraints."""
    settings, unbiased = manifest["settings"], manifest["mechanism"] in UNBIASED
    queries = queries_of(settings)
    columns = [*REGION, *queries.plan.attributes, "count", *(["standard_error"] if unbiased else [])]
    if wrong := shape_of_regions(table, settings, regions, columns):
        return wrong
    (places,) = regions.values()
    if unbiased:
        return ""
    try:
        counts = counts_in(table, queries, places)
        if any(held[:, queries.zeros].any() for held in counts):
            return "a cell is positive that is a structural zero of the plan"
        return broken_bounds(queries, places, counts, "total" in settings)
    except InputError as why:
        return str(why)


def rerun(
    measure: Measure, solve: Solving, table: DataFrame, manifest: Manifest, regions: Regions
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings, from the measurements, the steps, and the public plan and regions.

    The invariants are those of the table, which publishes them.
    """
    settings = manifest["settings"]
    rho = Ledger.from_dict({**manifest["budget"], "spends": []}).rho  # another check adds up the spends
    (places,) = regions.values()
    queries, unit = queries_of(settings), unit_of(settings)
    constraints = constraints_of(queries, places, counts_in(table, queries, places), unit.bounded)
    return released_tables(
        *(queries, places, unit, rho, constraints, measure, solve, manifest["mechanism"]),
        settings.get("backend"),
        settings.get(TOGETHER, 0),
    )


def queries_of(settings: Mapping[str, Any]) -> Queries:
    """The queries of the plan in a manifest."""
    return Queries(plan_of(settings["plan"]))


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """Whom the guarantee protects, according to the settings."""
    return Unit("total" in settings, settings.get("rows_a_person", 1))


def other(
    name: str, settings: Mapping[str, Any], *, backend: str | None = None, time_limit: float | None = None
) -> tuple[str, dict[str, Any], Solving]:
    """What another method needs that measures the same."""
    solver = SolverOptions(backend, time_limit)
    checked(name, solver, METHODS)
    queries, unit = queries_of(settings), unit_of(settings)
    refuse_unused(name, queries, shares(queries, settings["levels"], unit))
    kept = {option: value for option, value in settings.items() if option not in ("backend", TOGETHER)}
    kept |= {TOGETHER: together} if (together := together_of(name, solver)) else {}
    return name, kept if backend is None else {**kept, "backend": backend}, solving_of(solver)


def neighbours(manifest: Mapping[str, Any]) -> str:
    """The neighbouring relation, in words."""
    return unit_of(manifest["settings"]).neighbours(plan_of(manifest["settings"]["plan"]).invariants)


def rows_of_a_person(manifest: Mapping[str, Any]) -> int | None:
    """The number of rows of a person, if persons join or leave; None if one is replaced."""
    unit = unit_of(manifest["settings"])
    return None if unit.bounded else unit.rows


def _other(name: str, manifest: Mapping[str, Any], **options: Any) -> Any:
    return other(name, manifest["settings"], **options)


CHECKING = Checking(
    shape,
    rerun=rerun,
    neighbours=neighbours,
    rows_of_a_person=rows_of_a_person,
    other=_other,
    takes=("backend", "time_limit"),
)
