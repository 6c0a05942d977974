"""The tie of Boninsegna & Silvestri 2025: level after level of the table, each below the one above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierdp.check.again import compare, compare_settings
from hierdp.check.noise import Law, Twice
from hierdp.check.replay import Differs, Replay
from hierdp.counts.layout import cells_at
from hierdp.mechanisms.top_down.levels import Children, Level, finest_places, level_name, refinements, root
from hierdp.mechanisms.top_down.mechanism import settings_of, summed_up, table_of
from hierdp.mechanisms.top_down.repairs import METHODS, ROUNDED, nearest_fractions
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Changes, deviation_of, threshold
from hierdp.record.properties import Regions
from hierdp.tables import Flows
from models import Chebyshev, FixedSum
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


FLOATS = 1e-6
"""Relative to the largest noisy count: how far off a solver's real answer may be."""


def check_levels(replay: Replay, table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> str:
    """Do the method's post-processing again; what comes out is the table.

    Raises
    ------
    Differs
        If it is not.
    """
    settings, method = manifest["settings"], METHODS[manifest["mechanism"]]
    names = tuple(settings["axes"])
    data = no_flows(settings, regions)
    order = [names.index(name) for name in settings["order"]]
    if not order or order != refinements(data, settings["order"][0]):
        raise Differs("the manifest's order does not refine the axes in turns")
    top = int(table.loc[table["level"] == 0, "count"].sum())
    if method.repair is None:
        levels = _summed(data, order, table, settings, regions)
        if method.name == "SH":
            changes = unit_of(settings).changes_over(finest_places(data, levels[-1].depths))
            _check_threshold(levels[-1], changes, manifest["budget"])
    else:
        levels = [root(data.axes, top)]
        laws = [Law.of(spend) for spend in manifest["budget"]["spends"]]
        unit = unit_of(settings)
        above = _root(levels[0].counts, None if unit.bounded else laws[0])
        for axis, law in zip(order, laws[-len(order) :], strict=True):
            how = method.name, "backend" in settings
            level, above = _below(replay, data, axis, levels[-1], *how, above, law)
            levels.append(level)
    replay.end()
    deviation = _deviation(manifest) if method.name == "VanillaGauss" else None
    compare(table, table_of(data, levels, deviation))
    backend = settings.get("backend") if "backend" in method.takes else None
    shares = None if method.repair is None else settings.get("shares")
    if method.repair is None:  # then no public total holds the counts
        top = settings.get("total", top)
    compare_settings(settings, settings_of(data, order, top, unit_of(settings), shares, backend))
    if method.repair is None:
        return "each level adds up the last, which is as it was measured"
    return "each level is its step's answer, below the level above"


def no_flows(settings: Mapping[str, Any], regions: Regions) -> Flows:
    """The axes that the settings tell of, and the unknown region; without counts.

    Raises
    ------
    Differs
        If an axis has no such region.
    """
    names, unknown = tuple(settings["axes"]), settings.get("unknown")
    axes = tuple(regions[name] for name in names)
    if unknown is not None and any((axis.positions([unknown]) < 0).any() for axis in axes):
        raise Differs(f"an axis has no region {unknown!r} for unknown places")
    return Flows(axes, names, np.empty((0, len(names)), np.int64), _none(), unknown)


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """What one person can change, as the settings tell."""
    trips, distinct = settings.get("trips_a_person", 1), settings.get("all_different", True)
    return Unit(trips, distinct, "total" in settings)


class _Noisy(NamedTuple):
    """Noisy counts of the cells that a level kept, their law, and of how many they were kept."""

    counts: Ints
    law: Law | None
    of: int | None


def _root(counts: Ints, law: Law | None) -> _Noisy:
    """Of a public total, without a law; else of a noisy one, which is not known where it was negative."""
    if law is None:
        return _Noisy(counts, None, None)
    return _Noisy(counts, law, 1 if (counts > 0).all() else 0)


def _below(
    replay: Replay,
    data: Flows,
    axis: int,
    above: Level,
    method: str,
    by_solver: bool,
    measured: _Noisy,
    law: Law,
) -> tuple[Level, _Noisy]:
    """A step's answer, of all children of the level above; and what was measured of those it keeps."""
    children = Children(data.axes[axis].tree, above, axis)
    name = level_name(data, children.depths)
    noisy = np.asarray(getattr(replay.peek(name, children.size).model, "noisy", ()))
    if noisy.shape != (children.size,):
        raise Differs(f"step {name!r} is not over the children of the level above in the table")
    totals, offsets = above.counts, children.offsets
    sums = np.diff(np.concatenate([[0], np.cumsum(noisy)])[offsets])
    off = (measured.counts - sums).astype(float)
    replay.twice.append(Twice(f"{name} and above", off, law, np.diff(offsets), measured.law, measured.of))
    rounding = ROUNDED.get(method)
    if rounding is None:
        answer = np.asarray(replay.solve(name, Chebyshev(noisy, totals, offsets)).solution.x)
    else:
        answer = np.asarray(replay.solve(name, FixedSum(noisy, totals, 2, offsets)).solution.x)
        floor, part = nearest_fractions(noisy, totals, offsets)
        nearest = rounding(floor, part, noisy, totals, offsets)
        if not (
            _as_near(answer, nearest, floor + part, noisy) if by_solver else np.array_equal(answer, nearest)
        ):
            raise Differs(f"step {name!r} has another answer than the nearest real one, rounded")
    kept = np.flatnonzero(answer)
    return children.level(kept, answer[kept]), _Noisy(noisy[kept], law, noisy.size)


def _as_near(answer: Ints, nearest: Ints, real: NDArray[np.float64], noisy: Ints) -> bool:
    """Whether an answer rounds as well: of equal parts, those that a solver's floats put a little higher."""
    slack = FLOATS * noisy.size * float(np.abs(noisy).max(initial=0))
    return bool(np.abs(answer - real).sum() <= np.abs(nearest - real).sum() + slack)


def _summed(
    data: Flows, order: list[int], table: DataFrame, settings: Mapping[str, Any], regions: Regions
) -> list[Level]:
    """All levels from the last."""
    places, counts = cells_at(table, settings, regions, len(order))
    return summed_up(data, order, np.stack(places, axis=1), counts)


def _check_threshold(finest: Level, changes: Changes, budget: Mapping[str, Any]) -> None:
    """That no count was kept that is to be dropped."""
    least = threshold(changes, budget["epsilon"], budget["delta"])
    under = finest.counts[finest.counts < least]
    if under.size:
        raise Differs(f"a count of the last level is {under.min()}, under the threshold of {least}")


def _deviation(manifest: Mapping[str, Any]) -> float | None:
    (line,) = manifest["budget"]["spends"]
    return deviation_of(
        Spend(**{name: value for name, value in line.items() if name != "standard_deviation"})
    )


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)
