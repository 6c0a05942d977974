"""Tables of several attributes for every region, from noisy answers on every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.errors import InputError
from hierdp.measurements.measuring import Measure, Measuring
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import already_for_persons, counting, persons_of, refuse_public_total
from hierdp.mechanisms.public import public_tables
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.tabulation import methods
from hierdp.mechanisms.tabulation.budget import ONE_PERSON, Unit, shares
from hierdp.mechanisms.tabulation.constraints import constraints_of
from hierdp.mechanisms.tabulation.contradiction import explaining
from hierdp.mechanisms.tabulation.lookahead import refuse_dead_ends
from hierdp.mechanisms.tabulation.measure import noisy_answers
from hierdp.mechanisms.tabulation.options import METHODS, refuse_unused, settings_for
from hierdp.mechanisms.tabulation.plan import TabulationPlan, plan_of
from hierdp.mechanisms.tabulation.problem import Constraints
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.solving import solving_of
from hierdp.mechanisms.tabulation.table import table_of
from hierdp.privacy.budget import Ledger, check_delta, check_epsilon
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.privacy.whom import whom_of
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving
from hierdp.tables.axes import Axis
from hierdp.tables.persons import Persons
from hierdp.tables.tabulated import CrossTable, cross_table

if TYPE_CHECKING:
    from pandas import DataFrame

TOGETHER, CELLS = "cells_of_a_step", 30_000
"""A setting of releases whose steps have several families, and its value. By a chosen or limited solver, each
family has a step."""

MOST = 400_000
"""Solved steps with more variables in all are saved at once, not kept in memory."""


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    delta: shared.Delta,
    noise: Noise | None = None,
    attributes: Annotated[
        Sequence[str] | None,
        Option(
            "A column of categories, with all of these: age=old,young; or a file (.csv, .parquet) with a "
            "column of that name: age=ages.csv. The name alone: see `attributes_from_data`. In Python, also "
            "a dict of lists.",
            "NAME[=CATEGORIES]",
            flag="--attribute",
        ),
    ] = None,
    attributes_from_data: Annotated[
        bool,
        Option(
            "For attributes without a list: use the categories that occur in the data. They are then "
            "published exactly, whatever ε is, so the only person of a category is not protected. The "
            "release warns of it.",
            flag="--attribute-from-data",
        ),
    ] = False,
    levels: shared.Levels = None,
    regions: shared.Regions = None,
    region: shared.Region = None,
    regions_from_data: shared.RegionsFromData = False,
    root: shared.Root = "all",
    count: shared.Count = None,
    unknown: shared.Unknown = None,
    person: shared.Person = None,
    rows_per_person: shared.RowsPerPerson = None,
    most_per_row: shared.MostPerRow = None,
    bounded: shared.Bounded = True,
    plan: Annotated[
        Any,
        Option(
            "A TOML file with any of the following options and more, such as recodes; or a plan that comes "
            "with hierdp: redistricting-2020. Options replace its entries. In Python, also a dict.",
            "FILE",
            form="path",
        ),
    ] = None,
    queries: Annotated[
        Sequence[str] | None,
        Option(
            'What is measured on each level: total, detailed (every cell), or attributes: "group*age". '
            "Default: the total, each attribute, and every cell.",
            "NAME",
            flag="--query",
        ),
    ] = None,
    level_shares: Annotated[
        Sequence[str] | None,
        Option(
            "A level's share of the budget, such as state=1/4; the root's is root. Give one for every level; "
            "0: not measured. Default: equal.",
            "LEVEL=SHARE",
            flag="--level-share",
        ),
    ] = None,
    query_shares: Annotated[
        Sequence[str] | None,
        Option(
            "A query's share of each level's budget, total=1/4, or of one level's, state:total=1/4. Give one "
            "for every query; 0: not measured. Default: equal, without queries that invariants fix.",
            "[LEVEL:]QUERY=SHARE",
            flag="--query-share",
        ),
    ] = None,
    invariants: Annotated[
        Sequence[str] | None,
        Option(
            "Publish a query's true answers on a level, such as state:total. The guarantee does not cover "
            "them. The release warns of it.",
            "LEVEL:QUERY",
            flag="--invariant",
        ),
    ] = None,
    bounds: Annotated[
        Sequence[str] | None,
        Option(
            "Public bounds on a query's answers in each region of a level, such as county:total:1..; they "
            "must not depend on the data.",
            "LEVEL:QUERY:LOWER..UPPER",
            flag="--bound",
        ),
    ] = None,
    zeros: Annotated[
        Sequence[str] | None,
        Option(
            "A combination of categories that is known to be empty everywhere: "
            '"home=nursing,age=under 18". A person who has it is an error.',
            "NAME=CATEGORY,…",
            flag="--zero",
        ),
    ] = None,
    passes: Annotated[
        Sequence[str] | None,
        Option(
            "Queries of a pass of least squares, which later passes keep. Repeat it for each pass, in order. "
            "Default: the method's.",
            "QUERIES",
            flag="--pass",
        ),
    ] = None,
    rounding: Annotated[
        Sequence[str] | None,
        Option(
            "A query whose answers rounding keeps near the fractional ones. Default: the method's.", "NAME"
        ),
    ] = None,
    method: Annotated[
        str,
        Option(
            "TopDown: level by level; BlueDown: least squares over all regions first, then level by level; "
            "GLS: that least squares, fractional, with standard errors; Joint: all levels at once, if there "
            "are few cells. BlueDown and GLS take no recoded queries.",
            "NAME",
        ),
    ] = "TopDown",
    backend: Annotated[str | None, Option("Solver; see `hierdp solvers`. Default: fast.", "NAME")] = None,
    time_limit: shared.TimeLimit = None,
) -> Release:
    """Release tables of attributes by region: `hierdp.tables.tabulated.cross_table`, then `tabulate`."""
    solver = SolverOptions(backend, time_limit)
    checked(method, solver, METHODS)  # before reading the table, which may be large
    check_delta(delta)
    persons = persons_of(person, rows_per_person, most_per_row, count)
    unit = unit_of(persons, bounded)
    given = _plan(
        plan,
        attributes=attributes,
        queries=queries,
        level_shares=level_shares,
        query_shares=query_shares,
        invariants=invariants,
        bounds=bounds,
        zeros=zeros,
        passes=passes,
        rounding=rounding,
    )
    if (levels is None) == (regions is None) or (regions is None) != (region is None):
        raise InputError("give the regions by `levels`, or by both `regions` and `region`")
    axis = Axis.of(levels) if levels is not None else Axis(regions, as_names(region or ()))
    names = ("root", *axis.levels) if regions is None else regions.levels
    given.check_levels(names)
    public = public_tables(regions, regions_from_data, given.unlisted, attributes_from_data)
    if not given.unlisted:
        known = Queries(given)
        _refuse_unfit(method, known, names, unit, None if regions is None else regions.tree.size)
    data = cross_table(
        source,
        axis=axis,
        attributes=given.attributes,
        count=count,
        root=root,
        unknown=unknown,
        persons=persons,
    )
    made = tabulate(data, given, epsilon, delta, noise, method, unit, solver)
    return public.of(counting(already_for_persons(made, persons), count))


def loss_of(
    *,
    epsilon: float,
    delta: float,
    bounded: bool = True,
    person: str | None = None,
    rows_per_person: int | None = None,
    most_per_row: int | None = None,
    count: str | None = None,
    **_: Any,
) -> Loss:
    """The most that `from_table` costs with these options; other options do not matter."""
    unit = unit_of(persons_of(person, rows_per_person, most_per_row, count), bounded)
    whom = whom_of(person, rows_per_person, most_per_row, count)
    return Loss.of(whom, rho=rho_of(check_epsilon(epsilon), check_delta(delta)), replaces=unit.bounded)


def unit_of(persons: Persons | None, bounded: bool) -> Unit:
    """Whom the guarantee protects.

    Raises `InputError` if persons have several rows and the total is public, which joining or leaving
    changes.
    """
    if persons is None:
        return Unit(bounded)
    refuse_public_total(persons, bounded)
    return Unit(False, persons.rows)


def _plan(plan: str | Path | Mapping[str, Any] | None, **options: Any) -> TabulationPlan:
    if plan is None and options["attributes"] is None:
        raise InputError("no attributes: name the columns of categories (`attributes`), or a plan (`plan`)")
    return plan_of(plan, **options)


def tabulate(
    data: CrossTable,
    plan: TabulationPlan,
    epsilon: float,
    delta: float,
    noise: Noise | None = None,
    method: str = "TopDown",
    unit: Unit = ONE_PERSON,
    solver: SolverOptions | None = None,
) -> Release:
    """Release noisy tables of every region that satisfy public constraints and add up over the regions.

    Parameters
    ----------
    data : CrossTable
        True counts.
    plan : TabulationPlan
        The queries, their shares of the budget, invariants, bounds and structural zeros.
    epsilon, delta : float
        Converted to ρ-zCDP.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`.
    unit : Unit
        Whom the guarantee protects. Default: a person is replaced by another, so the total is public.
    solver : SolverOptions, optional
        The solver and its time limit.

    Returns
    -------
    Release
        A row for each region and cell with a positive count; of "GLS", for every region and cell, with its
        standard error.

    Raises
    ------
    InputError
        If ε or δ is out of range, the plan does not fit the data, or its constraints contradict each other.
    NotSolved
        If the constraints exclude each other in other ways, or the chosen solver fails or runs out of time.
    """
    epsilon, delta, solver = check_epsilon(epsilon), check_delta(delta), solver or SolverOptions()
    checked(method, solver, METHODS)
    places = data.hierarchy
    plan = plan.with_categories(data.categories)
    plan.check_levels(places.levels)
    queries, tree = Queries(plan), places.tree
    _refuse_zeros(queries, data)
    _refuse_unfit(method, queries, places.levels, unit, tree.size)
    everywhere = np.asarray(tree.sum_up(data.counts), np.int64)
    true = [everywhere[tree.nodes_of(level)] for level in range(tree.depth + 1)]
    constraints = constraints_of(queries, places, true, unit.bounded)
    refuse_dead_ends(method, queries.workload, constraints, places)
    measure, steps = Measuring(true, noise or ExactNoise()), Steps(solving_of(solver), MOST)
    del everywhere, true  # `measure` forgets the true counts as soon as all is measured
    rho = rho_of(epsilon, delta)
    with explaining():
        table, settings = released_tables(
            *(queries, places, unit, rho, constraints, measure, steps, method),
            solver.backend,
            together_of(method, solver),
        )
    found = measure.measurements
    ledger = Ledger(epsilon, delta, unit.neighbours(plan.invariants), found.spends)
    made = Release(method, table, ledger, steps.kept, settings, regions={ALONE: places}, measurements=found)
    if plan.invariants:
        made = made.taking_as_public(invariants=", ".join(":".join(one) for one in plan.invariants))
    return made


def released_tables(
    queries: Queries,
    places: Hierarchy,
    unit: Unit,
    rho: float,
    constraints: Constraints,
    measure: Measure,
    solve: Solving,
    method: str,
    backend: str | None = None,
    together: int = 0,
) -> tuple[DataFrame, dict[str, Any]]:
    """Measure every level, then make the noisy answers into tables: a release, without its record.

    Names in the table are categories.

    - constraints: public facts: invariants, bounds and structural zeros; of tables with a public total, that
      total, too.
    - measure: answers queries about the true histograms of each level, shape (regions of the level, cells).
    - together: families with up to this many cells in all are one step.
    """
    how = settings_for(method, queries, places.levels, shares(queries, places.levels, unit))
    how = replace(how, together=together)
    run = methods.METHODS[method]
    counts, errors = run(noisy_answers(queries, places, unit, rho, measure), constraints, how, solve)
    settings = settings_of(places, queries.plan, unit, int(np.rint(counts[0].sum())), backend)
    settings |= {TOGETHER: together} if together else {}
    return table_of(queries, places, counts, errors), settings


def together_of(method: str, solver: SolverOptions) -> int:
    """How many cells a step may have: those of one family, if a solver is chosen, or limited in time."""
    return CELLS if method in ("TopDown", "BlueDown") and solver == SolverOptions() else 0


def _refuse_unfit(
    method: str, queries: Queries, levels: Sequence[str], unit: Unit, regions: int | None
) -> None:
    """Refuse a plan that the method does not take, or does not use."""
    measured = shares(queries, levels, unit)
    settings_for(method, queries, levels, measured, regions)
    refuse_unused(method, queries, measured)


def _refuse_zeros(queries: Queries, data: CrossTable) -> None:
    """Refuse a table with persons where the plan says that there are none."""
    for cells in queries.plan.zeros:
        if data.counts[:, queries.mask(cells, "a structural zero").ravel()].any():
            named = ", ".join(f"{name} = {' or '.join(chosen)}" for name, chosen in cells.items())
            raise InputError(
                f"a row has {named}, a structural zero of the plan: fix the row, or leave out the zero"
            )


def settings_of(
    places: Hierarchy, plan: TabulationPlan, unit: Unit, total: int, backend: str | None
) -> dict[str, Any]:
    """The settings for the manifest."""
    return {
        "levels": list(places.levels),
        "plan": plan.as_dict(),
        **({"total": total} if unit.bounded else {}),
        **({} if unit.rows == 1 else {"rows_a_person": unit.rows}),
        **({} if backend is None else {"backend": backend}),
    }
