"""Counts along hierarchies, released level by level from the top, and methods for comparison.

Boninsegna & Silvestri 2025. Only children of regions with a positive released count are measured, so the cost
depends on the release, not on the number of possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import already_for_persons, counting, persons_of, refuse_public_total
from hierdp.mechanisms.public import public_axes
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.top_down.levels import (
    Children,
    Level,
    depths_of,
    finest_cells_of,
    finest_places,
    level_name,
    level_query,
    nodes_above,
    refinements,
    refuse_clashes,
    root,
    table,
)
from hierdp.mechanisms.top_down.repairs import METHODS, Method
from hierdp.mechanisms.top_down.unit import ONE_TRIP, Unit
from hierdp.mechanisms.top_down.zeros import Zeros, zeros_of
from hierdp.privacy.budget import Ledger, Spend, check_delta, check_epsilon, split
from hierdp.privacy.conversion import CONVERSIONS, TIGHTER, rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import ExactNoise, Noise, deviation_of, threshold
from hierdp.privacy.rounding import root_of
from hierdp.privacy.threshold import EXACT
from hierdp.privacy.whom import whom_of
from hierdp.record.release import Release
from hierdp.record.step import Solving, Step
from hierdp.tables import AxisLike, Flows, flows
from hierdp.tables.cells import axes_by_name
from hierdp.tables.persons import Persons
from models.arithmetic.arrays import Ints

Found = tuple[list[Level], list[Step], list[Spend]]

TOTAL = "the total"
"""What is measured of unbounded neighbours' root, as the budget names it."""

MOST_CELLS = 20_000_000
"""The most possible finest cells for VanillaGauss, whose exact noise takes minutes."""


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    delta: Annotated[
        float, Option("The δ of (ε, δ)-DP: far below 1 / number of people, such as 1e-8.", "NUMBER")
    ],
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
    bounded: Annotated[
        bool,
        Option(
            "Also protect whether a person is in the table at all: then the total is noisy, not public.",
            flag="--unbounded",
        ),
    ] = True,
    shares: Annotated[
        Sequence[float] | None,
        Option(
            "Relative budget of a level; one per level, from the top (with unbounded neighbours, the total "
            "first). Default: equal.",
            "NUMBER",
            flag="--share",
        ),
    ] = None,
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
    checked(method, solver, METHODS)  # before reading the table, which may be large
    check_delta(delta)
    named = axes_by_name(axes)
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

    Raises
    ------
    InputError
        If `trips` are given with persons, or persons with a public total, which joining or leaving changes.
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
    order = refinements(data, first)
    noise, rho = noise or ExactNoise(), CONVERSIONS[conversion](epsilon, delta)
    if chosen.model is not None:
        budgets = split(rho, len(order) + (not unit.bounded), shares)
        levels, steps, spends = _level_by_level(
            data, order, budgets, noise, chosen, unit, solver, zeros_of(zeros, data)
        )
    elif zeros is not None:
        raise InputError(f"{method} takes no `zeros`: it does not go level by level")
    elif shares is not None:
        raise InputError(f"{method} takes no `shares`: it measures only the finest counts")
    elif method == "SH":
        levels, steps, spends = _stable(data, order, epsilon, delta, noise, unit, rule)
    else:
        levels, steps, spends = _all_cells(data, order, rho, noise, unit)
    ledger = Ledger(epsilon, delta, unit.neighbours, tuple(spends), conversion, threshold=rule)
    settings = settings_of(data, order, data.total, unit, shares, solver.backend, zeros)
    regions = dict(zip(data.axis_names, data.axes, strict=True))
    made = table_of(data, levels, deviation_of(spends[0]) if method == "VanillaGauss" else None)
    return Release(chosen.name, made, ledger, tuple(steps), settings, regions=regions)


def settings_of(
    data: Flows,
    order: Sequence[int],
    total: int,
    unit: Unit,
    shares: Sequence[float] | None,
    backend: str | None,
    zeros: str | None = None,
) -> dict[str, Any]:
    """The settings for the manifest; only the axes and the unknown region of `data` are used."""
    return {
        "axes": {name: list(axis.levels) for name, axis in zip(data.axis_names, data.axes, strict=True)},
        "order": [data.axis_names[axis] for axis in order],
        **({} if data.unknown is None else {"unknown": data.unknown}),
        **({} if unit.trips == 1 else {"trips_a_person": unit.trips, "all_different": unit.distinct}),
        **({"total": total} if unit.bounded else {}),
        **({} if shares is None else {"shares": [float(share) for share in shares]}),
        **({} if backend is None else {"backend": backend}),
        **({} if zeros is None else {"zeros": zeros}),
    }


def table_of(data: Flows, levels: Sequence[Level], deviation: float | None = None) -> Any:
    """One row for each node with a positive count; only the axes of `data` are used.

    If counts are not post-processed, the standard deviation of the finest counts' noise gives the standard
    errors.
    """
    made = table(data, levels)
    if deviation is not None:
        cells = np.concatenate([finest_cells_of(data.axes, level)[level.shown] for level in levels])
        made["standard_error"] = deviation * np.sqrt(cells)
    return made


def inf_tda(
    data: Flows, epsilon: float, delta: float, noise: Noise | None = None, first: str | None = None
) -> Release:
    """InfTDA: level by level, discrete Gaussian noise and the nearest consistent counts (IntOpt)."""
    return top_down(data, epsilon, delta, noise, first=first)


def true_table(data: Flows, first: str | None = None) -> Any:
    """The true counts in the form of a release's table, for experiments."""
    below = nodes_above(data.axes, refinements(data, first), data.cells, data.counts)
    return table(data, [root(data.axes, data.total), *(nodes.level for nodes in below)])


class Measuring(Protocol):
    """Gives noisy counts, level by level: by noise on the true counts, or as saved in a release."""

    def __call__(self, children: Children, kept: Ints, /) -> Ints:
        """Noisy counts of all children of a level; `kept` are its nodes' positions when it was measured."""


def post_process(
    data: Flows,
    order: Sequence[int],
    top: int,
    measured: Measuring,
    method: Method,
    solving: Solving,
    zeros: Zeros | None = None,
) -> tuple[list[Level], list[Step]]:
    """Algorithm 1 with any post-processing of a level; the children of positive nodes are measured.

    Parameters
    ----------
    data : Flows
        Only the axes are used.
    order : sequence of int
        The axis that each level refines.
    top : int
        The total, public or noisy.
    measured : callable
    method : Method
        A method with a model.
    solving : callable
        Solves the problems.
    zeros : Zeros, optional

    Returns
    -------
    list of Level
        The nodes with a positive count, from the root.
    list of Step
    """
    assert method.model is not None
    levels, steps, kept = [root(data.axes, top)], list[Step](), np.zeros(1, dtype=np.int64)
    for axis in order:
        children = Children(data.axes[axis].tree, levels[-1], axis, zeros)
        model = method.model(measured(children, kept), levels[-1].counts, children.offsets)
        steps.append(solving(level_name(data, children.depths), model))
        answer = np.asarray(steps[-1].solution.x)
        kept = np.flatnonzero(answer)
        levels.append(children.level(kept, answer[kept]))
    return levels, steps


class _Measured:
    """Noise on the true counts of the children of released nodes, level by level."""

    def __init__(
        self, data: Flows, order: Sequence[int], budgets: Sequence[float], noise: Noise, unit: Unit
    ) -> None:
        self.spends: list[Spend] = []
        self._data, self._noise, self._unit = data, noise, unit
        self._levels = zip(nodes_above(data.axes, order, data.cells, data.counts), budgets, strict=True)
        self._among = np.zeros(1, dtype=np.int64)  # positions of the true nodes; -1 if not measured

    def __call__(self, children: Children, kept: Ints, /) -> Ints:
        """See `Measuring`."""
        true, share = next(self._levels)
        self._among = true.among(children, _positions(kept, self._among))
        counts = np.zeros(children.size, dtype=np.int64)
        counts[self._among[self._among >= 0]] = true.level.counts[self._among >= 0]
        squared = self._unit.squared_sensitivity_over(finest_places(self._data, children.depths))
        query = level_query(self._data, children.depths)
        measured = self._noise.gaussian(counts, query, root_of(squared), share)
        self.spends.append(measured.spend)
        return measured.counts


def _level_by_level(
    data: Flows,
    order: Sequence[int],
    budgets: Sequence[float],
    noise: Noise,
    method: Method,
    unit: Unit,
    solver: SolverOptions,
    zeros: Zeros | None,
) -> Found:
    """Algorithm 1, or that of Appendix B with unbounded neighbours."""
    top, spends = data.total, list[Spend]()
    if not unit.bounded:
        total = noise.gaussian(np.array([top], dtype=np.int64), TOTAL, float(unit.trips), budgets[0])
        top, spends = max(0, int(total.counts[0])), [total.spend]
    measured = _Measured(data, order, budgets[-len(order) :], noise, unit)
    levels, steps = post_process(data, order, top, measured, method, method.solving(solver), zeros)
    return levels, steps, [*spends, *measured.spends]


def _positions(kept: Ints, among: Ints) -> Ints:
    """Positions among the kept children, from positions among all children; -1 if not kept."""
    if not kept.size:
        return np.full_like(among, -1)
    at = np.minimum(np.searchsorted(kept, among), kept.size - 1)
    return np.where(kept[at] == among, at, -1)


def _stable(
    data: Flows, order: Sequence[int], epsilon: float, delta: float, noise: Noise, unit: Unit, rule: str
) -> Found:
    """The stability histogram (Theorem 8) of the finest counts, with their sums."""
    finest = depths_of(data.axes, order)[-1]
    changes = unit.changes_over(finest_places(data, finest))
    least = threshold(changes, epsilon, delta, rule)
    kept, measured = noise.stable(data.counts, level_query(data, finest), changes, epsilon, least)
    return summed_up(data, order, data.cells[kept], measured.counts), [], [measured.spend]


def _all_cells(data: Flows, order: Sequence[int], rho: float, noise: Noise, unit: Unit) -> Found:
    """Noise on every possible finest cell (Theorem 6), with their sums."""
    shape = [int(axis.tree.level_sizes[-1]) for axis in data.axes]
    possible = math.prod(shape)
    if possible > MOST_CELLS:
        raise InputError(
            f"VanillaGauss draws noise for every possible finest cell, here {' × '.join(map(str, shape))} = "
            f"{possible:,}; at most {MOST_CELLS:,} are allowed. Choose another method, or coarser regions"
        )
    counts = np.zeros(possible, dtype=np.int64)
    counts[np.ravel_multi_index(tuple(data.cells.T), shape)] = data.counts
    finest = depths_of(data.axes, order)[-1]
    sensitivity = root_of(unit.squared_sensitivity_over(finest_places(data, finest)))
    measured = noise.gaussian(counts, level_query(data, finest), sensitivity, rho)
    there = np.flatnonzero(measured.counts)
    cells = np.stack(np.unravel_index(there, shape), axis=1).astype(np.int64)
    return summed_up(data, order, cells, measured.counts[there]), [], [measured.spend]


def summed_up(data: Flows, order: Sequence[int], cells: Ints, counts: Ints) -> list[Level]:
    """All levels, from the finest cells; only the axes of `data` are used."""
    below = [nodes.level for nodes in nodes_above(data.axes, order, cells, counts)]
    return [root(data.axes, int(counts.sum())), *below]
