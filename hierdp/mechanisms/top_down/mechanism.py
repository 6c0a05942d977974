"""Counts along hierarchies, released level by level from the top, and methods for comparison.

Boninsegna & Silvestri 2025. Only children of regions with a positive released count are measured, so the cost
depends on the release, not on the number of possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements.measuring import Measure, Measuring
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import already_for_persons, counting, persons_of, refuse_public_total
from hierdp.mechanisms.public import public_axes
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.top_down import queries
from hierdp.mechanisms.top_down.levels import (
    Children,
    Level,
    depths_of,
    finest_cells_of,
    level_name,
    nodes_above,
    refinements,
    refuse_clashes,
    root,
    table,
)
from hierdp.mechanisms.top_down.post_processing import METHODS, TopDownMethod
from hierdp.mechanisms.top_down.queries import TrueCounts, finest_shape, shares_of
from hierdp.mechanisms.top_down.unit import ONE_TRIP, Unit
from hierdp.mechanisms.top_down.zeros import zeros_of
from hierdp.privacy.budget import Ledger, check_delta, check_epsilon
from hierdp.privacy.conversion import CONVERSIONS, TIGHTER, rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import ExactNoise, Noise, deviation_of
from hierdp.privacy.threshold import EXACT
from hierdp.privacy.whom import whom_of
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving
from hierdp.tables import AxisLike, Flows, flows
from hierdp.tables.cells import axes_by_name
from hierdp.tables.persons import Persons
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_CELLS = 20_000_000
"""The most possible finest cells for VanillaGauss, whose exact noise takes minutes."""


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    delta: shared.Delta,
    noise: Noise | None = None,
    axes: Annotated[
        Mapping[str, AxisLike],
        Option(
            "The axes by name, such as origin and destination; for each, the columns of its levels from "
            "coarse to fine, or (hierarchy, column).",
            form="axes",
        ),
    ],
    regions_from_data: shared.RegionsFromData = False,
    count: shared.Count = None,
    unknown: shared.Unknown = None,
    person: shared.Person = None,
    rows_per_person: shared.RowsPerPerson = None,
    most_per_row: shared.MostPerRow = None,
    first: Annotated[str | None, Option("The axis refined first. Default: the last one.", "NAME")] = None,
    method: Annotated[
        str,
        Option(
            "InfTDA; or InfTDA_large, which loses fewer small counts and invents more; or TDA_inf, TDA_L2, "
            "TDA, VanillaGauss or SH, for comparison. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "InfTDA",
    trips: Annotated[
        int,
        Option(
            "Number of trips of each person in the table, to protect all of them; with unbounded "
            "neighbours, the largest number. Noise grows with it.",
            "NUMBER",
            least=1,
        ),
    ] = 1,
    distinct: Annotated[
        bool,
        Option(
            "With `trips`: all trips of one person are in different cells of the table. This reduces the "
            "noise, except with `unknown`, whose cells stand for many places. Use it only if it is true. "
            "With `person`, it is enforced: a person counts once per cell."
        ),
    ] = False,
    bounded: shared.Bounded = True,
    shares: shared.Shares = None,
    zeros: Annotated[
        str | None,
        Option(
            "Two axes, such as origin=destination, that no trip has the same finest place on. These cells "
            "are structural zeros: they are neither measured nor filled.",
            "AXIS=AXIS",
            flag="--zero",
        ),
    ] = None,
    backend: Annotated[
        str | None, Option("Solver of TDA_inf, TDA_L2 or TDA; see `hierdp solvers`.", "NAME")
    ] = None,
    time_limit: shared.TimeLimit = None,
) -> Release:
    """Release a table's counts along hierarchies: `hierdp.tables.flows`, then `top_down`."""
    persons = persons_of(person, rows_per_person, most_per_row, count)
    solver, unit = SolverOptions(backend, time_limit), unit_of(persons, trips, distinct, bounded)
    checked(method, solver, METHODS).refuse(shares, zeros)  # before reading the table, which may be large
    named = axes_by_name(axes)
    levels = sum(
        len(one.levels) if one.hierarchy is None else one.hierarchy.tree.depth for one in named.values()
    )
    check_delta(delta), shares_of(1.0, levels, unit, shares)
    public = public_axes({name: axis.hierarchy for name, axis in named.items()}, regions_from_data)
    data = flows(source, axes=named, count=count, unknown=unknown, persons=persons, distinct=distinct)
    made = top_down(data, epsilon, delta, noise, method, unit, shares, first, solver, zeros=zeros)
    return public.of(counting(already_for_persons(made, persons), count, trips))


def loss_of(
    *,
    epsilon: float,
    delta: float,
    method: str = "InfTDA",
    trips: int = 1,
    distinct: bool = False,
    bounded: bool = True,
    person: str | None = None,
    rows_per_person: int | None = None,
    most_per_row: int | None = None,
    count: str | None = None,
    **_: Any,
) -> Loss:
    """The most that `from_table` costs with these options; other options do not matter."""
    unit = unit_of(persons_of(person, rows_per_person, most_per_row, count), trips, distinct, bounded)
    whom = whom_of(person, rows_per_person, most_per_row, count, trips)
    if method == "SH":
        return Loss.of(whom, epsilon, delta=check_delta(delta), replaces=unit.bounded)
    return Loss.of(whom, rho=rho_of(check_epsilon(epsilon), check_delta(delta)), replaces=unit.bounded)


def unit_of(persons: Persons | None, trips: int, distinct: bool, bounded: bool) -> Unit:
    """The unit of privacy: one person with `trips`, or with the rows that are counted of one person.

    Raises `InputError` if `trips` are given with persons, or persons with a public total, which joining or
    leaving changes.
    """
    if persons is None:
        return Unit(trips, distinct, bounded)
    refuse_public_total(persons, bounded)
    if trips != 1:
        given, instead = ("most_per_row", "it") if persons.column is None else ("person", "`rows_per_person`")
        raise InputError(f"`trips` cannot be given with `{given}`; give {instead} instead")
    if distinct and persons.column is None:
        raise InputError(
            "`distinct` cannot be given with `most_per_row`: one row counts several times in a cell"
        )
    return Unit(persons.rows, distinct, bounded)


def top_down(
    data: Flows,
    epsilon: float,
    delta: float,
    noise: Noise | None = None,
    method: str = "InfTDA",
    unit: Unit = ONE_TRIP,
    shares: Sequence[float] | None = None,
    first: str | None = None,
    solver: SolverOptions | None = None,
    conversion: str = TIGHTER,
    rule: str = EXACT,
    zeros: str | None = None,
) -> Release:
    """Release noisy counts of a table at every level, made whole, non-negative and consistent.

    Parameters
    ----------
    data : Flows
        True counts.
    epsilon, delta : float
        Converted to ρ-zCDP; the stability histogram ("SH") is (ε, δ)-DP by itself.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`. "VanillaGauss" adds noise to all finest cells, so its counts may be negative, and
        its total is not the public one.
    unit : Unit
        What one person can change. Default: tables that differ by replacing one trip, so the total is public.
    shares : sequence of float, optional
        The relative budget of each level below the root, from the top, preceded by that of the root if
        neighbours are unbounded. Default: equal.
    first : str, optional
        The axis refined first: "destination" gives the paper's destination tree. Default: the last axis.
    solver : SolverOptions, optional
        The solver and its time limit, for the methods that leave them open.
    conversion : str
        The conversion from (ε, δ) to ρ: one of `hierdp.privacy.conversion.CONVERSIONS`.
    rule : str
        What sets the threshold of "SH": one of `hierdp.privacy.threshold.THRESHOLDS`.
    zeros : str, optional
        Two axes, such as "origin=destination", that no trip has the same finest place on: structural zeros,
        which are neither measured nor filled. Public.

    Returns
    -------
    Release
        One row for each node with a positive count, at every level; for "VanillaGauss" with standard errors.

    Raises
    ------
    InputError
        If ε or δ is out of range; there is no such method or axis, or the method takes no such option; the
        shares do not fit the levels; `zeros` does not name two axes, or the data contradict it; two columns
        of the release would have one name; or "VanillaGauss" has too many possible cells.
    NotSolved
        If the chosen solver fails or runs out of time.
    """
    epsilon, delta, solver = check_epsilon(epsilon), check_delta(delta), solver or SolverOptions()
    chosen = checked(method, solver, METHODS)
    refuse_clashes(data.axis_names)
    if chosen.model is not None:
        zeros_of(zeros, data)  # the data must not contain any
    true = TrueCounts(data, refinements(data, first))
    measure, steps = Measuring(true, noise or ExactNoise()), Steps(chosen.solving(solver))
    total, backend = data.total if unit.bounded else None, solver.backend
    plan = TopDownPlan(
        chosen, epsilon, delta, unit, total, shares, first, backend, conversion, rule, zeros=zeros
    )
    found, settings = published(without_counts(data), plan, measure, steps)
    made = measure.measurements
    ledger = Ledger(epsilon, delta, unit.neighbours, made.spends, conversion, threshold=rule)
    regions = dict(zip(data.axis_names, data.axes, strict=True))
    return Release(chosen.name, found, ledger, steps.kept, settings, regions=regions, measurements=made)


@dataclass(frozen=True)
class TopDownPlan:
    """What a release measures and how it repairs that, from public facts; see `top_down`.

    - total: the public total; only with unbounded neighbours it is not public.
    - backend: the chosen solver.
    """

    method: TopDownMethod
    epsilon: float
    delta: float
    unit: Unit = ONE_TRIP
    total: int | None = None
    shares: Sequence[float] | None = None
    first: str | None = None
    backend: str | None = None
    conversion: str = TIGHTER
    rule: str = EXACT
    zeros: str | None = None

    @property
    def rho(self) -> float:
        """The zCDP budget."""
        return CONVERSIONS[self.conversion](self.epsilon, self.delta)


def published(
    data: Flows, plan: TopDownPlan, measure: Measure, solve: Solving
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings of a release: a function of its measurements and of public facts.

    - data: without counts: only the axes and the unknown region are used.
    - measure: answers queries about `TrueCounts`.
    """
    order, method, unit, shares = refinements(data, plan.first), plan.method, plan.unit, plan.shares
    method.refuse(shares, plan.zeros)
    deviation = None
    if method.model is not None:
        model, answer = method.model, partial(method.answer, by_solver=plan.backend is not None)

        def repaired(children: Children, measured: Measurement) -> Ints:
            problem = model(measured.answers, children.above.counts, children.offsets)
            return answer(solve(level_name(data, children.depths), problem))

        levels = level_by_level(data, order, plan, measure, repaired)
    elif method.name == "SH":
        levels = stability_histogram(data, order, plan, measure)
    else:
        levels, deviation = all_cells(data, order, plan, measure)
    optional = {
        "total": plan.total,
        "shares": None if shares is None else [float(share) for share in shares],
        "backend": plan.backend,
        "zeros": plan.zeros,
    }
    return table_of(data, levels, deviation), {
        "axes": {name: list(axis.levels) for name, axis in zip(data.axis_names, data.axes, strict=True)},
        "order": [data.axis_names[axis] for axis in order],
        **({} if data.unknown is None else {"unknown": data.unknown}),
        **({} if unit.trips == 1 else {"trips": unit.trips, "distinct": unit.distinct}),
        **{name: value for name, value in optional.items() if value is not None},
    }


def level_by_level(
    data: Flows,
    order: Sequence[int],
    plan: TopDownPlan,
    measure: Measure,
    repaired: Callable[[Children, Measurement], Ints],
) -> list[Level]:
    """Algorithm 1, or that of Appendix B with unbounded neighbours, with any post-processing of a level.

    - data: only the axes and the unknown region are used.
    - repaired: gives the counts of a level's children from their noisy counts.

    Returns: the nodes with a positive count, from the root.
    """
    unit, total, zeros = plan.unit, plan.total, zeros_of(plan.zeros, data)
    budgets = shares_of(plan.rho, len(order), unit, plan.shares)
    if total is None:
        noisy = measure(queries.total(unit, budgets[0])).answers
        levels = [root(data.axes, max(0, int(noisy[0])))]
    else:
        levels = [root(data.axes, total)]
    kept = np.zeros(1, dtype=np.int64)
    for axis, share in zip(order, budgets[-len(order) :], strict=True):
        children = Children(data.axes[axis].tree, levels[-1], axis, zeros)
        public = total if len(levels) == 1 else None
        measured = measure(queries.children_of(data, children, kept, unit, share, public))
        counts = repaired(children, measured)
        kept = np.flatnonzero(counts)
        levels.append(children.level(kept, counts[kept]))
    measure.end()
    return levels


def all_cells(
    data: Flows, order: Sequence[int], plan: TopDownPlan, measure: Measure
) -> tuple[list[Level], float | None]:
    """VanillaGauss: noise on every possible finest cell (Theorem 6), with their sums.

    Returns:
    - list of Level: the nodes with counts other than 0, from the root.
    - float or None: the standard deviation of the noise.
    """
    shape = finest_shape(data)
    possible = math.prod(shape)
    if possible > MOST_CELLS:
        raise InputError(
            f"VanillaGauss draws noise for every possible finest cell, here {' × '.join(map(str, shape))} = "
            f"{possible:,}; at most {MOST_CELLS:,} are allowed. Choose another method, or coarser regions"
        )
    measured = measure(queries.level(data, depths_of(data.axes, order)[-1], plan.unit, plan.rho, possible))
    measure.end()
    there = np.flatnonzero(measured.answers)
    return summed_up(data, order, there, measured.answers[there]), deviation_of(measured.spend)


def stability_histogram(
    data: Flows, order: Sequence[int], plan: TopDownPlan, measure: Measure
) -> list[Level]:
    """SH: noisy positive counts over a threshold (Theorem 8), with their sums."""
    measured = measure(queries.stable(data, order, plan.unit, plan.epsilon, plan.delta, plan.rule))
    measure.end()
    assert measured.positions is not None
    return summed_up(data, order, measured.positions, measured.answers)


def summed_up(data: Flows, order: Sequence[int], positions: Ints, counts: Ints) -> list[Level]:
    """All levels, from some finest cells, by their positions among all; only the axes of `data` are used."""
    cells = np.stack(np.unravel_index(positions, finest_shape(data)), axis=1).astype(np.int64)
    below = [nodes.level for nodes in nodes_above(data.axes, order, cells, counts)]
    return [root(data.axes, int(counts.sum())), *below]


def table_of(data: Flows, levels: Sequence[Level], deviation: float | None = None) -> DataFrame:
    """One row for each node with a positive count; only the axes of `data` are used.

    If counts are not post-processed, the standard deviation of the finest counts' noise gives the standard
    errors.
    """
    made: DataFrame = table(data, levels)
    if deviation is not None:
        cells = np.concatenate([finest_cells_of(data.axes, level)[level.shown] for level in levels])
        made["standard_error"] = deviation * np.sqrt(cells)
    return made


def without_counts(data: Flows) -> Flows:
    """The axes and the unknown region, which are public."""
    return Flows(data.axes, data.axis_names, data.cells[:0], data.counts[:0], data.unknown)


def inf_tda(
    data: Flows, epsilon: float, delta: float, noise: Noise | None = None, first: str | None = None
) -> Release:
    """InfTDA: level by level, discrete Gaussian noise and the nearest consistent counts (IntOpt)."""
    return top_down(data, epsilon, delta, noise, first=first)


def true_table(data: Flows, first: str | None = None) -> DataFrame:
    """The true counts in the form of a release's table, for experiments."""
    below = nodes_above(data.axes, refinements(data, first), data.cells, data.counts)
    made: DataFrame = table(data, [root(data.axes, data.total), *(nodes.level for nodes in below)])
    return made
