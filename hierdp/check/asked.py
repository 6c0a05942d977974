"""What each mechanism asks with noise, and at which price: public facts, which its budget has to tell.

Each mechanism's own modules are loaded for its own releases only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hierdp.check.found import FAILS, HOLDS, Found
from hierdp.check.shape import command_of
from hierdp.mechanisms.words import ENTITY, PERSON
from hierdp.privacy.budget import Ledger, split
from hierdp.privacy.noise import miss_of, threshold
from hierdp.record.properties import Regions
from hierdp.record.release import KNOWN, NOT_KNOWN

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.mechanisms.count_of_counts.plan import Plan

CLOSE = 1e-9
"""Relative: what rounding may do to a share of the budget."""

GEOMETRIC, GAUSSIAN, CHOICE = "double-geometric", "discrete Gaussian", "permute-and-flip"


class Asked(NamedTuple):
    """A line of a budget; `loss` is its part of ε or ρ, None where the release does not say which.

    `delta` is what the line must claim of δ at least; None where it must claim none.
    """

    query: str
    sensitivity: float
    loss: float | None
    noise: str = GEOMETRIC
    times: int = 1
    delta: float | None = None


Lines = tuple[str, list[Asked]]
"""The neighbouring relation, in words, and the lines."""


def check_asked(table: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Iterator[Found]:
    """That the budget's lines are the mechanism's: else a lower sensitivity would claim a lower loss."""
    makes = {
        "group-size": _group_size,
        "count-of-counts": _count_of_counts,
        "top-down": _top_down,
        "range-query": _range_query,
        "clustering": _clustering,
    }
    command = command_of(manifest["mechanism"])
    if command not in makes:  # a mechanism that is not ours
        return
    neighbours, lines = makes[command](table, manifest, regions)
    budget = manifest["budget"]
    wrong = _differs(lines, budget["spends"])
    if manifest["standard_errors"] != (KNOWN if "standard_error" in table else NOT_KNOWN):
        wrong = "what the manifest says of standard errors is not so"
    if budget["neighbouring_relation"] != neighbours:
        wrong = f"the neighbouring relation of this mechanism is: {neighbours}"
    yield Found(
        "budget: queries",
        FAILS if wrong else HOLDS,
        wrong or "the mechanism's queries and sensitivities",
    )


def _differs(lines: list[Asked], told: list[Mapping[str, Any]]) -> str:
    if len(lines) != len(told):
        return f"the mechanism makes {len(lines)} measurements, the manifest tells of {len(told)}"
    for line, spend in zip(lines, told, strict=True):
        kind = spend["noise"], spend.get("times", 1), spend["sensitivity"]
        if spend["query"] != line.query or kind != (line.noise, line.times, line.sensitivity):
            return (
                f"where the mechanism asks {line.query!r} with {line.noise} noise for a sensitivity of "
                f"{line.sensitivity:g}, the manifest has {spend['query']!r}, {spend['noise']}, "
                f"{spend['sensitivity']:g}"
            )
        loss = spend["rho"] if line.noise == GAUSSIAN else spend["epsilon"]
        if line.loss is not None and not math.isclose(loss, line.loss, rel_tol=CLOSE):
            return f"{line.query!r} has {line.loss:.9g} of the budget, and the manifest says {loss:.9g}"
        miss = spend.get("delta")
        if (miss is None) != (line.delta is None) or (
            miss is not None and line.delta is not None and not miss >= line.delta * (1 - CLOSE)
        ):
            return f"{line.query!r} costs a δ of {line.delta or 0:.3g}, and the manifest says {miss}"
    return ""


def _group_size(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Lines:
    from hierdp.mechanisms.group_size.repairs import METHODS

    (places,) = regions.values()
    method = METHODS[manifest["mechanism"]]
    what = "cumulative sizes" if method.cumulative else "sizes"
    shares = split(manifest["budget"]["epsilon"], len(places.levels))
    named = zip(places.levels, shares, strict=True)
    return ENTITY, [Asked(f"{what} by {name}", method.sensitivity, share) for name, share in named]


QUERIES = {"Hc": "cumulative sizes", "H": "sizes", "Hg": "sizes of groups in order"}


def _count_of_counts(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Lines:
    from hierdp.check.ties_groups import plan_in
    from hierdp.mechanisms.count_of_counts.mechanism import NOT_EMPTY, PRIVATE_GROUPS

    (places,) = regions.values()
    plan, levels = plan_in(manifest["settings"]), places.levels
    lines = [] if plan.size_budget is None else [Asked("largest size", 1, plan.size_budget)]
    if plan.group_budget is not None:
        share = plan.group_budget / len(levels)
        lines += [Asked(f"numbers of groups by {name}", 1, share) for name in levels]
    if manifest["settings"]["groups"]:
        lines += _of_levels(plan, levels[-1:] if plan.bottom_up else levels, manifest["budget"]["epsilon"])
    neighbours = ENTITY if plan.group_budget is None else PRIVATE_GROUPS
    return neighbours + (f"; {NOT_EMPTY}" if plan.smallest else ""), lines


def _of_levels(plan: Plan, levels: tuple[str, ...], epsilon: float) -> list[Asked]:
    from hierdp.mechanisms.count_of_counts.plan import budgets_of

    parts = zip(levels, plan.methods, budgets_of(plan, epsilon), strict=True)
    return [Asked(f"{QUERIES[how.form]} by {name}", how.sensitivity, share) for name, how, share in parts]


def _top_down(_: DataFrame, manifest: Mapping[str, Any], regions: Regions) -> Lines:
    from hierdp.check.ties_levels import no_flows, unit_of
    from hierdp.mechanisms.top_down.levels import depths_of, finest_places, level_name
    from hierdp.mechanisms.top_down.repairs import METHODS
    from hierdp.mechanisms.top_down.unit import root_of

    settings, budget = manifest["settings"], manifest["budget"]
    unit, data = unit_of(settings), no_flows(settings, regions)
    order = [data.axis_names.index(name) for name in settings["order"]]
    reached = depths_of(data.axes, order)[1:]
    epsilon, delta = budget["epsilon"], budget["delta"]
    last = f"counts by {level_name(data, reached[-1])}"
    if manifest["mechanism"] == "SH":
        changes = unit.changes_over(finest_places(data, reached[-1]))
        least = threshold(changes, epsilon, delta)
        miss = miss_of(changes, budget["spends"][0]["scale"], least)
        kept = f"{GEOMETRIC}, under {least} dropped"
        return unit.neighbours, [Asked(last, changes.in_all, epsilon, kept, delta=miss)]
    rho = Ledger.from_dict(budget).rho
    if METHODS[manifest["mechanism"]].repair is None:
        squared = unit.squared_sensitivity_over(finest_places(data, reached[-1]))
        return unit.neighbours, [Asked(last, root_of(squared), rho, GAUSSIAN)]
    shares = split(rho, len(order) + (not unit.bounded), settings.get("shares"))
    lines = [] if unit.bounded else [Asked("the total", float(unit.trips), shares[0], GAUSSIAN)]
    for depths, share in zip(reached, shares[-len(order) :], strict=True):
        squared = unit.squared_sensitivity_over(finest_places(data, depths))
        lines.append(Asked(f"counts by {level_name(data, depths)}", root_of(squared), share, GAUSSIAN))
    return unit.neighbours, lines


def _range_query(table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> Lines:
    if manifest["mechanism"] == "Wavelet":
        from hierdp.mechanisms.range_query.wavelet import sensitivity

        shape = tuple(axis["bins"] for axis in manifest["settings"]["range_query"]["axes"])
        return PERSON, [Asked("Haar coefficients", sensitivity(shape), manifest["budget"]["epsilon"])]
    levels = range(1, int(table["level"].max()) + 1)
    return PERSON, [Asked(f"counts by level {level}", 1, None) for level in levels]


def _clustering(table: DataFrame, manifest: Mapping[str, Any], _: Regions) -> Lines:
    from hierdp.mechanisms.clustering import php
    from hierdp.mechanisms.clustering.ahp_rules import RULES

    name, settings, epsilon = manifest["mechanism"], manifest["settings"], manifest["budget"]["epsilon"]
    if name in ("NF", "Laplace"):
        return PERSON, [Asked("counts", 1, epsilon)]
    if name == "SF":
        return PERSON, _structure_first(len(table), manifest)
    first, second = settings["epsilon_1"], settings["epsilon_2"]
    sums = Asked("sums of clusters", 1, second)
    if name in RULES:
        return PERSON, [Asked("counts, to sort and cluster the bins", 1, first), sums]
    if name == "GS":
        return PERSON, [Asked("counts, to sort the bins", 1, first), sums]
    rounds = max(1, len(table).bit_length() - 1)
    cuts = [
        Asked(f"where to cut each cluster, round {number}", php.SENSITIVITY, first / 2 / rounds, CHOICE)
        for number in range(1, rounds + 1)
    ]
    return PERSON, [*cuts, Asked("how many cuts to keep", php.SENSITIVITY, first / 2, CHOICE), sums]


def _structure_first(bins: int, manifest: Mapping[str, Any]) -> list[Asked]:
    from hierdp.mechanisms.clustering import structure_first

    settings, epsilon = manifest["settings"], manifest["budget"]["epsilon"]
    runs, lines = settings["clusters"], []
    if not 1 < runs < bins:
        return [Asked("sums of clusters", 1, epsilon)]
    if manifest["budget"]["spends"][0]["query"] == "largest count":  # else it was told
        share = structure_first.FOR_LARGEST
        first, epsilon = split(epsilon, 2, (share, 1 - share))
        lines.append(Asked("largest count", 1, first))
    cuts, sums = split(epsilon, 2, (settings["share"], 1 - settings["share"]))
    moved = structure_first.sensitivity(structure_first.bound_of(bins, settings["largest"])[1])
    lines.append(Asked(structure_first.query_of(runs), moved, cuts, CHOICE, runs - 1))
    return [*lines, Asked("sums of clusters", 1, sums)]
