"""What to expect of a release of counts along hierarchies, without data: noise, and bounds on the error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.expected import (
    Expected,
    frame,
    gaussian_deviation,
    geometric_deviation,
    regions_of,
)
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.top_down.levels import depths_of, finest_places, level_name, level_query, refinements
from hierdp.mechanisms.top_down.mechanism import TOTAL
from hierdp.mechanisms.top_down.repairs import METHODS
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.privacy.budget import check_delta, check_epsilon, split
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import threshold
from hierdp.privacy.rounding import root_of
from hierdp.tables import Flows

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
NO_BOUND = "No bound on the error is known for {why}."


@documented
def expected(
    *,
    epsilon: float,
    delta: Annotated[float, Option("The δ of (ε, δ)-DP.", "NUMBER")],
    axes: Annotated[
        Sequence[str],
        Option(
            "An axis, with the number of regions on each of its levels, from coarse to fine: "
            "origin=state:52,county:3221. Regions are divided among those above as evenly as possible.",
            "NAME=LEVEL:NUMBER,…",
            flag="--axis",
        ),
    ],
    first: Annotated[str | None, Option("The axis refined first. Default: the last one.", "NAME")] = None,
    method: Annotated[str, Option("The method; see `hierdp mechanisms`.", "NAME")] = "InfTDA",
    trips: Annotated[int, Option("The (largest) number of trips of a person.", "NUMBER", least=1)] = 1,
    distinct: Annotated[
        bool, Option("With `trips`: all trips of one person are in different cells.")
    ] = False,
    bounded: Annotated[bool, Option("The total is noisy, not public.", flag="--unbounded")] = True,
    shares: Annotated[
        Sequence[float] | None,
        Option("Relative budget of a level, from the top. Default: equal.", "NUMBER", flag="--share"),
    ] = None,
    failure: Annotated[
        float, Option("The probability with which a bound may fail.", "NUMBER", above=0, most=0.5)
    ] = 0.05,
) -> Expected:
    """The noise of each level of a release of counts along hierarchies, and bounds on the error."""
    check_epsilon(epsilon), check_delta(delta)
    chosen, unit = checked(method, SolverOptions(), METHODS), Unit(trips, distinct, bounded)
    data = flows_of([axes] if isinstance(axes, str) else axes)
    order = refinements(data, first)
    if chosen.model is None and shares is not None:
        raise InputError(f"{method} takes no shares: it measures only the finest counts")
    if chosen.model is None:
        return _finest(data, order, epsilon, delta, unit, method)
    budgets = split(rho_of(epsilon, delta), len(order) + (not bounded), shares)
    rows, scales, nodes = list[dict[str, Any]](), list[float](), list[int]()
    if not bounded:
        noise = gaussian_deviation(float(trips), budgets[0])
        rows.append(_row(0, "total", TOTAL, 1, noise) | {"bound": np.nan})
    for level, depths in enumerate(depths_of(data.axes, order)[1:], start=1):
        squared = unit.squared_sensitivity_over(finest_places(data, depths))
        share = budgets[level - bounded]
        scales.append(root_of(squared) / math.sqrt(2 * share))
        nodes.append(_nodes(data, depths))
        row = _row(level, level_name(data, depths), level_query(data, depths), nodes[-1],
                   gaussian_deviation(root_of(squared), share))  # fmt: skip
        known = bounded and method in BOUNDED
        rows.append(row | {"bound": error_bound_by_nodes(scales, nodes, failure) if known else np.nan})
    why = "a noisy total" if not bounded else f"{method}, whose answers are not of least Chebyshev distance"
    more = BOUND.format(chance=100 * (1 - failure)) if known else NO_BOUND.format(why=why)
    return Expected(method, frame(rows), (UNKNOWN, more), epsilon)


def _finest(
    data: Flows, order: Sequence[int], epsilon: float, delta: float, unit: Unit, method: str
) -> Expected:
    """The methods that measure only the finest cells; the levels above are their sums."""
    reached = depths_of(data.axes, order)
    places, finest = finest_places(data, reached[-1]), _nodes(data, reached[-1])
    if method == "VanillaGauss":
        noise = gaussian_deviation(root_of(unit.squared_sensitivity_over(places)), rho_of(epsilon, delta))
        note = (
            "The counts are unbiased. standard_error is the root of the mean variance of a level's counts; "
            "it is the same for all if their numbers of finest cells are."
        )
    else:
        changes = unit.changes_over(places)
        noise, least = geometric_deviation(changes.in_all, epsilon), threshold(changes, epsilon, delta)
        note = (
            f"Noisy counts under {least:,} are dropped, and cells without a row have no noise: the error "
            "depends on how many small counts there are, and is not known. The noise is that of a kept cell."
        )
    rows = []
    for level, depths in enumerate(reached):
        each = finest / _nodes(data, depths)
        row = _row(level, level_name(data, depths) if level else "total", level_query(data, reached[-1]),
                   finest, noise)  # fmt: skip
        rows.append(row | ({"standard_error": noise * math.sqrt(each)} if method == "VanillaGauss" else {}))
    return Expected(method, frame(rows), (note,), epsilon)


def flows_of(axes: Sequence[str]) -> Flows:
    """Axes with numbers of regions, without counts.

    Raises
    ------
    InputError
        If a text is not ``NAME=LEVEL:NUMBER,…``, or an axis is given twice.
    """
    found: dict[str, Hierarchy] = {}
    for text in axes:
        name, _, levels = (part.strip() for part in text.partition("="))
        if not name or ":" not in levels:
            raise InputError(f"axis {text!r}: write NAME=LEVEL:NUMBER,…, such as origin=state:52,county:3221")
        if name in found:
            raise InputError(f"axis {name!r} is given twice")
        found[name] = regions_of(["=".join(part.rsplit(":", 1)) for part in levels.split(",")])
    if not found:
        raise InputError("no axes: give each with its numbers of regions, as origin=state:52,county:3221")
    nothing = np.empty(0, np.int64)
    return Flows(tuple(found.values()), tuple(found), nothing.reshape(0, len(found)), nothing)


def _nodes(data: Flows, depths: Sequence[int]) -> int:
    """The number of possible counts of a level."""
    return math.prod(int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True))


def _row(level: int, name: str, query: str, measured: int, noise: float) -> dict[str, Any]:
    return {
        "level": level,
        "counts_of": name,
        "query": query,
        "measured": measured,
        "noise_deviation": noise,
        "standard_error": np.nan,
    }
