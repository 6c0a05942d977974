"""Checks of releases by the mechanisms of Boninsegna & Silvestri 2025."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import cells_at, is_cells
from hierdp.measurements.measuring import MOST_RECOVERED, Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.top_down.levels import (
    Children,
    Level,
    depths_of,
    finest_places,
    level_name,
    level_query,
    refinements,
)
from hierdp.mechanisms.top_down.mechanism import TOTAL, post_process, settings_of, summed_up, table_of
from hierdp.mechanisms.top_down.repairs import METHODS, Method, nearest_fractions
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.mechanisms.top_down.zeros import zeros_of
from hierdp.privacy.budget import Ledger, Spend, split
from hierdp.privacy.expected import GAUSSIAN, GEOMETRIC, Expected, ExpectedSpend
from hierdp.privacy.noise import deviation_of, threshold
from hierdp.privacy.rounding import root_of
from hierdp.privacy.threshold import Changes, miss_of
from hierdp.privacy.twice import CountNoise, Twice
from hierdp.record.compare import compare, compare_settings
from hierdp.record.files import REGIONS
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay
from hierdp.record.step import Step
from hierdp.tables import Flows
from models import Chebyshev, FixedSum, Model
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


FLOATS = 1e-6
"""Allowed error of a solver's real answer, relative to the largest noisy count."""


# --- shape ---------------------------------------------------------------------------------------------


def shape(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """What is wrong with a table of cells along several axes, in words; empty if nothing is."""
    settings = manifest["settings"]
    if not is_cells(settings, table):
        return "the settings lack the axes of such a table"
    axes: Mapping[str, list[str]] = settings["axes"]
    order = list(settings["order"])
    columns = ["level", *(part for name in axes for part in (f"{name}_level", name)), "count"]
    if list(table.columns) not in (columns, [*columns, "standard_error"]):
        return f"its columns are {list(table.columns)}, not {columns}"
    if list(regions) != list(axes):
        return f"{REGIONS} has the axes {list(regions)}, not {list(axes)}"
    wrong = (_axis(table, name, places, list(axes[name]), order) for name, places in regions.items())
    return next(filter(None, wrong), "")


def _axis(table: DataFrame, name: str, hierarchy: Hierarchy, levels: list[str], order: list[str]) -> str:
    if list(hierarchy.levels) != levels:
        return f"{REGIONS} has other levels of {name} than the manifest"
    if order.count(name) != hierarchy.tree.depth:
        return f"the manifest's order does not go down to the last level of {name}"
    for level in range(len(order) + 1):
        reached = levels[order[:level].count(name)]
        if (table.loc[table["level"] == level, f"{name}_level"] != reached).any():
            return f"a row of level {level} has {name} at another level than {reached!r}"
    return ""


# --- budget --------------------------------------------------------------------------------------------


def expected_spends(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Expected:
    """The measurement of the finest counts only; or of the total, if it is not public, and of each level."""
    settings, budget = manifest["settings"], manifest["budget"]
    unit, data = unit_of(settings), no_flows(settings, regions)
    order = [data.axis_names.index(name) for name in settings["order"]]
    reached = depths_of(data.axes, order)[1:]
    epsilon = budget["epsilon"]
    if manifest["mechanism"] == "SH":
        changes = unit.changes_over(finest_places(data, reached[-1]))
        least = _threshold(changes, budget)
        miss = miss_of(changes, budget["spends"][0]["scale"], least)
        noise, query = f"{GEOMETRIC}, under {least} dropped", level_query(data, reached[-1])
        return unit.neighbours, [ExpectedSpend(query, changes.in_all, epsilon, noise, delta=miss)]
    rho = Ledger.from_dict(budget).rho
    if METHODS[manifest["mechanism"]].model is None:
        return unit.neighbours, [_level(data, unit, reached[-1], rho)]
    shares = split(rho, len(order) + (not unit.bounded), settings.get("shares"))
    total = [] if unit.bounded else [ExpectedSpend(TOTAL, float(unit.trips), shares[0], GAUSSIAN)]
    parts = zip(reached, shares[-len(order) :], strict=True)
    return unit.neighbours, [*total, *(_level(data, unit, depths, share) for depths, share in parts)]


def _level(data: Flows, unit: Unit, depths: tuple[int, ...], share: float) -> ExpectedSpend:
    squared = unit.squared_sensitivity_over(finest_places(data, depths))
    return ExpectedSpend(level_query(data, depths), root_of(squared), share, GAUSSIAN)


# --- replay --------------------------------------------------------------------------------------------


def replay(saved: Replay, table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """Repeat the post-processing, from the noisy counts of the steps, or from the finest counts."""
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    data, unit = no_flows(settings, regions), unit_of(settings)
    order = [data.axis_names.index(name) for name in settings["order"]]
    if not order or order != refinements(data, settings["order"][0]):
        raise Differs("the manifest's order does not refine the axes in turns")
    top = int(table.loc[table["level"] == 0, "count"].sum())
    if method.model is None:
        levels = _summed(data, order, table, settings, regions)
        if method.name == "SH":
            changes = unit.changes_over(finest_places(data, levels[-1].depths))
            _check_threshold(levels[-1], changes, manifest["budget"])
        finest = _finest(data, levels[-1], dense=method.name != "SH")
        saved.recover(level_query(data, levels[-1].depths), finest)
    else:
        laws = [CountNoise.of(spend) for spend in manifest["budget"]["spends"]]
        measured = _Saved(saved, data, top, None if unit.bounded else laws[0], laws[-len(order) :])
        if not unit.bounded and top > 0:  # a noisy total below 0 is released as 0
            saved.recover(TOTAL, np.array([top]))
        solving = _Answers(saved, method, by_solver="backend" in settings)
        zeros = zeros_of(settings.get("zeros"), data)
        levels, _ = post_process(data, order, top, measured, method, solving, zeros)
    saved.end()
    deviation = _deviation(manifest) if method.name == "VanillaGauss" else None
    compare(table, table_of(data, levels, deviation))
    backend = settings.get("backend") if "backend" in method.takes else None
    shares = None if method.model is None else settings.get("shares")
    if method.model is None:  # then no public total constrains the counts
        top = settings.get("total", top)
    zeros_said = None if method.model is None else settings.get("zeros")
    compare_settings(settings, settings_of(data, order, top, unit, shares, backend, zeros_said))
    if method.model is None:
        return "each level is the sum of the last, which is the measurement"
    return "each level is its step's answer, consistent with the level above"


def no_flows(settings: Mapping[str, Any], regions: Regions) -> Flows:
    """The axes in the settings, and the unknown region, without counts.

    Raises
    ------
    Differs
        If an axis does not have that region.
    """
    names, unknown = tuple(settings["axes"]), settings.get("unknown")
    axes = tuple(regions[name] for name in names)
    if unknown is not None and any((axis.positions([unknown]) < 0).any() for axis in axes):
        raise Differs(f"an axis has no region {unknown!r} for unknown places")
    return Flows(axes, names, np.empty((0, len(names)), np.int64), _none(), unknown)


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """What one person can change, according to the settings."""
    trips, distinct = settings.get("trips_a_person", 1), settings.get("all_different", True)
    return Unit(trips, distinct, "total" in settings)


class _Saved:
    """The noisy counts of the saved steps, level by level; collects what was measured twice."""

    def __init__(
        self, saved: Replay, data: Flows, top: int, law: CountNoise | None, laws: Sequence[CountNoise]
    ) -> None:
        """`law` is the law of the total's noise, or None if it is public; `laws` are those of the levels."""
        self._saved, self._data, self._laws = saved, data, iter(laws)
        self._noisy, self._law = np.array([top], dtype=np.int64), law
        # A negative noisy total is unknown, because 0 was released; a public total was not chosen by its
        # noise.
        self._chosen_of = None if law is None else int(top > 0)

    def __call__(self, children: Children, kept: Ints, /) -> Ints:
        """See `hierdp.mechanisms.top_down.mechanism.Measuring`."""
        name, law = level_name(self._data, children.depths), next(self._laws)
        noisy = self._saved.peek_noisy(name, (children.size,))
        sums = np.diff(np.concatenate([[0], np.cumsum(noisy)])[children.offsets])
        off = (self._noisy[kept] - sums).astype(float)
        each = np.diff(children.offsets)
        self._saved.twice.append(Twice(f"{name} and above", off, law, each, self._law, self._chosen_of))
        self._saved.recover(level_query(self._data, children.depths), noisy)
        self._noisy, self._law, self._chosen_of = noisy, law, noisy.size
        return noisy


class _Answers:
    """The saved answers, each checked to be the rounded or the chosen one if the method says which it is."""

    def __init__(self, saved: Replay, method: Method, by_solver: bool) -> None:
        self._saved, self._rounding, self._by_solver = saved, method.rounding, by_solver
        self._choosing = method.choosing

    def __call__(self, name: str, model: Model, problems: Sequence[str] = (), /) -> Step:
        """See `hierdp.record.step.Solving`."""
        step = self._saved.solve(name, model, problems)
        if self._choosing is not None:
            assert isinstance(model, Chebyshev)
            if not np.array_equal(
                np.asarray(step.solution.x), self._choosing(*model.data, model.least_distance())
            ):
                raise Differs(f"step {name!r} does not lower the largest counts first")
        if self._rounding is None:
            return step
        assert isinstance(model, FixedSum)
        answer = np.asarray(step.solution.x)
        floor, part = nearest_fractions(*model.data)
        nearest = self._rounding(floor, part, *model.data)
        if self._by_solver:
            same = _as_near(answer, nearest, floor + part, model.data[0])
        else:
            same = np.array_equal(answer, nearest)
        if not same:
            raise Differs(f"step {name!r} does not have the rounded nearest real answer")
        return step


def _as_near(answer: Ints, nearest: Ints, real: NDArray[np.float64], noisy: Ints) -> bool:
    """Whether an answer rounds equally well, because a solver's floats may order equal parts differently."""
    slack = FLOATS * noisy.size * float(np.abs(noisy).max(initial=0))
    return bool(np.abs(answer - real).sum() <= np.abs(nearest - real).sum() + slack)


def _summed(
    data: Flows, order: list[int], table: DataFrame, settings: Mapping[str, Any], regions: Regions
) -> list[Level]:
    """All levels, from the last."""
    places, counts = cells_at(table, settings, regions, len(order))
    return summed_up(data, order, np.stack(places, axis=1), counts)


def _finest(data: Flows, level: Level, dense: bool) -> Ints:
    """The counts of the last level; if `dense`, of every cell: those that are not listed are 0."""
    if not dense:
        return level.counts
    shape = [int(axis.tree.level_sizes[-1]) for axis in data.axes]
    if math.prod(shape) > MOST_RECOVERED:
        return _none()
    counts = np.zeros(shape, dtype=np.int64)
    counts[tuple(level.places.T)] = level.counts
    return counts.ravel()


def _threshold(changes: Changes, budget: Mapping[str, Any]) -> int:
    """By the rule that the budget names."""
    return threshold(changes, budget["epsilon"], budget["delta"], Ledger.from_dict(budget).threshold)


def _check_threshold(finest: Level, changes: Changes, budget: Mapping[str, Any]) -> None:
    """Check that no count below the threshold was kept."""
    least = _threshold(changes, budget)
    under = finest.counts[finest.counts < least]
    if under.size:
        raise Differs(f"a count of the last level is {under.min()}, below the threshold of {least}")


def _deviation(manifest: Mapping[str, Any]) -> float | None:
    (line,) = manifest["budget"]["spends"]
    return deviation_of(
        Spend(**{name: value for name, value in line.items() if name != "standard_deviation"})
    )


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


def rows_of_a_person(settings: Mapping[str, Any]) -> int | None:
    """The number of rows of a person, if neighbours are unbounded; None if a person is replaced."""
    unit = unit_of(settings)
    return None if unit.bounded else unit.trips


CHECKING = Checking(
    shape,
    expected_spends,
    replay,
    rounded=[name for name, method in METHODS.items() if method.rounding],
    rows_of_a_person=rows_of_a_person,
)
