"""What to expect of a release of counts along hierarchies, without data: noise, and bounds on the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.query import Query
from hierdp.mechanisms.expected import Expected, deviation, regions_of
from hierdp.mechanisms.mechanism import PlannedShares
from hierdp.mechanisms.option import Option
from hierdp.mechanisms.top_down.levels import Axes, depths_of
from hierdp.mechanisms.top_down.truth import levels
from hierdp.mechanisms.top_down.zeros import Zeros
from hierdp.privacy.noise import SimulatedNoise
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

UNBIASED = (
    "The counts are unbiased. standard_error is the root of the mean variance of a level's counts; "
    "it is the same for all if their numbers of finest cells are."
)
DROPPED = (
    "Noisy counts under {least:,} are dropped, and cells without a row have no noise: the error depends on "
    "how many small counts there are, and is not known. The noise is that of a kept cell."
)

NO_BOUND = "No bound on the error is known for {why}."


@dataclass(frozen=True, kw_only=True)
class PlannedTopDown(PlannedShares):
    """The options of a plan for counts along hierarchies."""

    OF_THE_RELEASE: ClassVar = ("delta", "first", "method", "trips", "distinct", "bounded", "shares", "zeros")

    axes: Annotated[
        Mapping[str, Any],
        Option(
            "The axes by name; for each, its Hierarchy or (hierarchy, column) as for a release, or the "
            "number of regions on each level, from coarse to fine: {'state': 52, 'county': 3221}. These are "
            "divided among those above as evenly as possible.",
            form="planned axes",
        ),
    ]
    failure: Annotated[
        float, Option("The probability with which a bound may fail.", "NUMBER", above=0, most=0.5)
    ] = 0.05
    total: Annotated[
        int | None,
        Option(
            "Simulate the error, on a made-up table with this number of trips, whose places are popular by "
            "Zipf's law.",
            "NUMBER",
            least=1,
        ),
    ] = None
    like: Annotated[
        Any,
        Option(
            "In place of `total`: simulate the error on this public table, such as last year's. Name its "
            "columns by `axes`, as for a release.",
            "TABLE",
            form="table",
        ),
    ] = None
    count: Annotated[
        str | None, Option("With `like`: the column of counts. Default: each row counts as one.", "COLUMN")
    ] = None
    runs: Annotated[
        int, Option("With `total` or `like`: simulated releases.", "NUMBER", least=1, most=1000)
    ] = 5

    def facts(self, _: Any) -> Axes:
        """See `Planned`."""
        return Axes.of(self.data, None)

    @cached_property
    def data(self) -> Flows:
        """The axes; the counts of the public table, if there is one."""
        if self.total is not None and self.like is not None:
            raise InputError("give `total`, for a made-up table, or `like`, a public one, not both")
        if self.like is None:
            return flows_of(self.axes)
        return flows(self.like, axes=axes_by_name(self.axes), count=self.count)

    def simulated(
        self, found: Expected, zeros: Zeros | None, release: Callable[[Flows, SimulatedNoise], Release]
    ) -> Expected:
        """What to expect, with the errors of simulated releases of the public table, or a made-up one."""
        data = self.data if self.total is None else made_up(self.data, self.total, zeros)
        if not data.counts.size:
            return replace(found, notes=(*found.notes, SIMULATE))
        which = "made-up" if self.like is None else "public"
        return with_simulated(found, data, partial(release, data), self.runs, which)


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
        cells = [nodes_of(data, depths) for depths in depths_of(data.axes, order)]
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


def nodes_of(data: Flows, depths: Sequence[int]) -> int:
    """The number of all possible nodes of a level."""
    return math.prod(int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True))


def row_of_level(level: int, name: str, query: Query) -> dict[str, Any]:
    """A plan's row of the query of a level."""
    return {
        "level": level,
        "counts_of": name,
        "query": query.name,
        "measured": query.answers,
        "noise_deviation": deviation(query.noise, query.sensitivity, query.loss),
        "standard_error": np.nan,
    }
