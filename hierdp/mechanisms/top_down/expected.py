"""What to expect of a release of counts along hierarchies, without data: noise, and bounds on the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.query import Query
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import (
    Expected,
    Largest,
    LevelWeights,
    best_shares,
    deviation,
    frame,
    regions_of,
    shares_note,
    shares_plan,
)
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.top_down import queries
from hierdp.mechanisms.top_down.levels import depths_of, level_name, refinements
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.mechanisms.top_down.post_processing import METHODS
from hierdp.mechanisms.top_down.truth import levels
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.mechanisms.top_down.zeros import Zeros, zeros_of
from hierdp.privacy.budget import GAUSSIAN, check_delta, check_epsilon
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.privacy.threshold import EXACT
from hierdp.record.release import Release
from hierdp.tables import Flows, flows
from hierdp.tables.cells import axes_by_name
from models.arithmetic.arrays import Floats

BOUNDED = ("InfTDA", "InfTDA_large", "TDA_inf")
"""The methods with a utility theorem: answers of least Chebyshev distance."""

BOUND = (
    "bound: with probability {chance:.4g} %, no count of the level is off by more, whatever the data "
    "(Boninsegna & Silvestri 2025, with a union over all possible counts of each level). A release measures "
    "fewer counts, and is usually far more accurate."
)
UNKNOWN = (
    "The released counts are non-negative whole numbers that add up: their standard error depends on the "
    "true counts, and is not known. The noise is that before post-processing."
)
SIMULATE = (
    "The expected error depends on the counts. To simulate it, give the number of trips of a made-up table "
    "(`total`) or a public table (`like`)."
)
SIMULATED = (
    "simulated: means over {runs} releases of a {which} table ({total:,} trips in {cells:,} cells) with "
    "simulated noise. The mean error is over all possible counts of a level."
)
MOST_TRIPS = 2_000_000
"""The most trips of a made-up table that are drawn one by one."""

LEAST = 1e-6
"""The least part of a level's own noise in its variance."""

NO_BOUND = "No bound on the error is known for {why}."


@documented
def expected(
    *,
    epsilon: float,
    delta: shared.Delta,
    axes: Annotated[
        Mapping[str, Any],
        Option(
            "The axes by name; for each, its Hierarchy or (hierarchy, column) as for a release, or the "
            "number of regions on each level, from coarse to fine: {'state': 52, 'county': 3221}. These are "
            "divided among those above as evenly as possible.",
            form="planned axes",
        ),
    ],
    first: Annotated[str | None, Option("The axis refined first. Default: the last one.", "NAME")] = None,
    method: Annotated[str, Option("The method; see `hierdp mechanisms`.", "NAME")] = "InfTDA",
    trips: Annotated[int, Option("The (largest) number of trips of a person.", "NUMBER", least=1)] = 1,
    distinct: Annotated[
        bool, Option("With `trips`: all trips of one person are in different cells.")
    ] = False,
    bounded: shared.Bounded = True,
    shares: shared.Shares = None,
    optimize: LevelWeights = None,
    largest: Largest = False,
    zeros: Annotated[
        str | None,
        Option(
            "Two axes that no trip has the same finest place on, such as origin=destination.",
            "AXIS=AXIS",
            flag="--zero",
        ),
    ] = None,
    failure: Annotated[
        float, Option("The probability with which a bound may fail.", "NUMBER", above=0, most=0.5)
    ] = 0.05,
    total: Annotated[
        int | None,
        Option(
            "Simulate the error, on a made-up table with this number of trips, whose places are popular by "
            "Zipf's law.",
            "NUMBER",
            least=1,
        ),
    ] = None,
    like: Annotated[
        Any,
        Option(
            "In place of `total`: simulate the error on this public table, such as last year's. Name its "
            "columns by `axes`, as for a release.",
            "TABLE",
            form="table",
        ),
    ] = None,
    count: Annotated[
        str | None, Option("With `like`: the column of counts. Default: each row counts as one.", "COLUMN")
    ] = None,
    runs: Annotated[
        int, Option("With `total` or `like`: simulated releases.", "NUMBER", least=1, most=1000)
    ] = 5,
) -> Expected:
    """The noise of each level of a release of counts along hierarchies, bounds on the error, and its size."""
    check_epsilon(epsilon), check_delta(delta)
    chosen, unit = checked(method, SolverOptions(), METHODS), Unit(trips, distinct, bounded)
    if total is not None and like is not None:
        raise InputError("give `total`, for a made-up table, or `like`, a public one, not both")
    data = flows_of(axes) if like is None else _public(like, axes, count)
    order = refinements(data, first)
    reached, known_zeros = depths_of(data.axes, order)[1:], zeros_of(zeros, data)
    nodes = [_nodes(data, depths) - (known_zeros.number(depths) if known_zeros else 0) for depths in reached]
    if optimize is not None:
        there = [queries.level(data, depths, unit, 1.0, 1) for depths in reached]
        measured = there if bounded else [queries.total(unit, 1.0), *there]
        sensitivities = [one.sensitivity for one in measured]
        parts = parts_of_variances([1, *nodes])[bounded:, bounded:]
        shares = best_shares(optimize, sensitivities, shares, GAUSSIAN, largest, parts)
    if total is not None:
        data = made_up(data, total, known_zeros)

    def simulated(found: Expected) -> Expected:
        if not data.counts.size:
            return replace(found, notes=(*found.notes, SIMULATE))

        def release(noise: SimulatedNoise) -> Release:
            return top_down(data, epsilon, delta, noise, method, unit, shares, first, zeros=zeros)

        return with_simulated(found, data, release, runs, "made-up" if like is None else "public")

    chosen.refuse(shares, zeros)
    if chosen.model is None:
        return simulated(_finest(data, order, epsilon, delta, unit, method))
    budgets = queries.shares_of(rho_of(epsilon, delta), len(order), unit, shares)
    rows, scales = list[dict[str, Any]](), list[float]()
    if not bounded:
        rows.append(_row(0, "total", queries.total(unit, budgets[0])) | {"bound": np.nan})
    known = bounded and method in BOUNDED
    for level, (depths, share) in enumerate(zip(reached, budgets[-len(order) :], strict=True), start=1):
        query = queries.level(data, depths, unit, share, nodes[level - 1])
        scales.append(query.sensitivity / math.sqrt(2 * share))
        bound = error_bound_by_nodes(scales, nodes[:level], failure) if known else np.nan
        rows.append(_row(level, level_name(data, depths), query) | {"bound": bound})
    why = "a noisy total" if not bounded else f"{method}, whose answers are not of least Chebyshev distance"
    more = BOUND.format(chance=100 * (1 - failure)) if known else NO_BOUND.format(why=why)
    notes = (UNKNOWN, more) if optimize is None or shares is None else (shares_note(shares), UNKNOWN, more)
    return simulated(
        Expected(method, frame(rows), notes, epsilon, answers=1, plan=shares_plan(shares, optimize))
    )


def parts_of_variances(nodes: Sequence[int]) -> Floats:
    """The part of each level's noise (a column) in the mean variance of each level's counts, from the root's.

    Of least squares level by level: the k children of a node share what its count lacks of the sum of their
    noisy ones, so that a child's variance is (1 − 1/k)·σ² + 1/k² of its parent's. All nodes of a level have
    equally many children here. A level with one child each still gets a little of the budget.

    - nodes: their number on each level, from the root's.
    """
    found = np.eye(len(nodes))
    for level in range(1, len(nodes)):
        children = nodes[level] / nodes[level - 1]
        found[level] = found[level - 1] / children**2
        found[level, level] = max(1 - 1 / children, LEAST)
    return found


def _public(source: Any, axes: Any, count: str | None) -> Flows:
    """The counts of a public table, whose regions are those of the axes or, with columns, its own."""
    return flows(source, axes=axes_by_name(axes), count=count)


def made_up(shape: Flows, total: int, zeros: Zeros | None = None) -> Flows:
    """A table of a shape with a number of trips, made up from a fixed seed.

    The popularity of the places of each axis is 1, 1/2, 1/3, … in random order, and both ends of a trip are
    independent. Of more than `MOST_TRIPS` trips, that many are drawn and multiplied.
    """
    rng = np.random.default_rng(0)
    drawn = min(total, MOST_TRIPS)
    sizes = [int(axis.tree.level_sizes[-1]) for axis in shape.axes]
    ends = []
    for size in sizes:
        weights = 1 / (1 + rng.permutation(size))
        ends.append(rng.choice(size, drawn, p=weights / weights.sum()))
    cells = np.stack(ends, axis=1).astype(np.int64)
    if zeros is not None:
        cells = cells[~zeros.among([axis.tree.depth for axis in shape.axes], cells)]
    cells, often = np.unique(cells, axis=0, return_counts=True)
    if not often.size:
        raise InputError("`zeros` leave no cell for a made-up table: give other axes")
    counts = often.astype(np.int64) * total // int(often.sum())
    counts[np.argmax(counts)] += total - int(counts.sum())
    there = counts > 0
    return Flows(shape.axes, shape.axis_names, cells[there], counts[there], shape.unknown)


def with_simulated(
    found: Expected, data: Flows, release: Callable[[SimulatedNoise], Release], runs: int, which: str
) -> Expected:
    """What to expect, with the errors of simulated releases of a table that is not secret."""
    means, largest = list[list[float]](), list[list[float]]()
    for run in progress.steps(range(runs), "simulated releases", runs):
        made = release(SimulatedNoise(run))
        errors = [
            np.abs(one.released - one.true) for one in levels(data, made.table, made.settings, made.regions)
        ]
        order = [data.axis_names.index(name) for name in made.settings["order"]]
        cells = [_nodes(data, depths) for depths in depths_of(data.axes, order)]
        means.append([float(e.sum()) / n for e, n in zip(errors, cells, strict=True)])
        largest.append([float(e.max(initial=0)) for e in errors])
    table = found.table.copy()
    at = table["level"].to_numpy()
    bound = table.pop("bound") if "bound" in table else None
    table["simulated_mean_error"] = np.mean(means, axis=0)[at]
    table["simulated_largest_error"] = np.mean(largest, axis=0)[at]
    if bound is not None:
        table["bound"] = bound
    words = SIMULATED.format(runs=runs, which=which, total=data.total, cells=data.counts.size)
    return replace(found, table=table, notes=(*found.notes, words))


def _finest(
    data: Flows, order: Sequence[int], epsilon: float, delta: float, unit: Unit, method: str
) -> Expected:
    """The methods that measure only the finest cells; the levels above are their sums."""
    reached = depths_of(data.axes, order)
    finest = _nodes(data, reached[-1])
    if method == "VanillaGauss":
        query = queries.level(data, reached[-1], unit, rho_of(epsilon, delta), finest)
        note = (
            "The counts are unbiased. standard_error is the root of the mean variance of a level's counts; "
            "it is the same for all if their numbers of finest cells are."
        )
    else:
        query = queries.stable(data, order, unit, epsilon, delta, EXACT)
        assert query.threshold is not None
        note = (
            f"Noisy counts under {query.threshold.least:,} are dropped, and cells without a row have no "
            "noise: the error depends on how many small counts there are, and is not known. The noise is "
            "that of a kept cell."
        )
    rows = []
    for level, depths in enumerate(reached):
        each = finest / _nodes(data, depths)
        row = _row(level, level_name(data, depths) if level else "total", query)
        if method == "VanillaGauss":
            row["standard_error"] = row["noise_deviation"] * math.sqrt(each)
        rows.append(row)
    return Expected(method, frame(rows), (note,), epsilon)


def flows_of(axes: Mapping[str, Any]) -> Flows:
    """Axes without counts: hierarchies, or numbers of regions by level.

    Raises `InputError` if an axis is neither.
    """
    if not isinstance(axes, Mapping) or not axes:
        raise InputError(
            "give the axes by name (`axes`), each with its numbers of regions, such as "
            "origin: state 52, county 3221, or with its hierarchy"
        )
    found: dict[str, Hierarchy] = {}
    for name, axis in axes.items():
        if isinstance(axis, tuple | list) and axis and isinstance(axis[0], Hierarchy):
            axis = axis[0]
        if isinstance(axis, Mapping):
            axis = regions_of([f"{level}={number}" for level, number in axis.items()])
        if not isinstance(axis, Hierarchy):
            raise InputError(
                f"axis {name!r}: give its hierarchy, or the number of regions of each level; columns of a "
                "table are for `like`"
            )
        found[name] = axis
    nothing = np.empty(0, np.int64)
    return Flows(tuple(found.values()), tuple(found), nothing.reshape(0, len(found)), nothing)


def _nodes(data: Flows, depths: Sequence[int]) -> int:
    return math.prod(int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True))


def _row(level: int, name: str, query: Query) -> dict[str, Any]:
    return {
        "level": level,
        "counts_of": name,
        "query": query.name,
        "measured": query.answers,
        "noise_deviation": deviation(query.noise, query.sensitivity, query.loss),
        "standard_error": np.nan,
    }
