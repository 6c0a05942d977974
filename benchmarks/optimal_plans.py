"""Errors of releases by optimal plans, beside equal shares: persons by precinct, flows, and groups by size.

Simulated noise. A row has the mean squared errors of what is named, with both shares: of answers (8 groups
and 2 ages by precinct), or of the counts of every level, from the top, whose weights are named. `there` is
the ratio of mean squared errors on the level with the largest weight, `absolute` that of absolute errors; of
count-of-counts (Hc), of entities to move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA
from benchmarks.tabulation import DELTA, Nation
from benchmarks.which_wins import flows, sizes
from hierdp import plan
from hierdp.counts.rows import laid_out
from hierdp.counts.size_runs import SizeRuns
from hierdp.mechanisms.count_of_counts import count_of_counts
from hierdp.mechanisms.group_size import group_size
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.top_down.truth import levels
from hierdp.metrics.runs import earth_movers_runs
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables import Flows, GroupSizes
from hierdp.tables.tabulated import CrossTable
from models.arithmetic.arrays import Floats

NAMED = (
    ("county:group", "precinct:age"),
    ("state:detailed", "county:detailed", "precinct:group"),
    ("county:detailed", "precinct:total"),
)
SHARES = "level_shares", "query_shares"
MUCH = 100
"""The weight of the level that is asked for; others have 1."""

Errors = Callable[[SimulatedNoise, Any], tuple[Any, Any]]
"""Of a release with this noise and these shares: each level's mean squared and mean absolute error."""


def run(
    *,
    data: Annotated[Path, "a folder with us-precincts-2020.parquet, commuters and households"] = DATA,
    states: tuple[str, ...] = ("DE", "NH", "RI", "VT"),
    epsilon: float = 1.0,
    runs: int = 3,
    only: Annotated[tuple[str, ...], "of persons, flows, groups"] = ("persons", "flows", "groups"),
) -> Iterator[dict[str, Any]]:
    if "persons" in only:
        yield from _persons(data, states, epsilon, runs)
    if "flows" in only:
        for name, table in {case.data: case.table for case in flows.cases(data)}.items():
            yield from _flows(name, table, epsilon, runs)
    if "groups" in only:
        for name, (counts, largest) in sizes.data_sets(data, 0).items():
            yield from _groups(name, counts, largest, epsilon, runs)


def _persons(data: Path, states: tuple[str, ...], epsilon: float, runs: int) -> Iterator[dict[str, Any]]:
    nation = Nation.read(data, states)
    attributes = {"group": [str(i) for i in range(nation.shape[0])], "age": ["0", "1"]}
    table = CrossTable(nation.regions, attributes, nation.leaves)
    equal = {"attributes": attributes, "queries": ["total", "group", "age", "detailed"]}
    shape = {"epsilon": epsilon, "delta": DELTA, "regions": nation.regions}
    for named in NAMED:
        for method in ("TopDown", "BlueDown"):
            best = plan("tabulation", plan=equal, method=method, optimize=named, **shape).plan
            assert best is not None
            errors = []
            for shares in ({}, {one: best[one] for one in SHARES}):
                given = plan_of({**equal, **shares})
                made = [
                    tabulate(table, given, epsilon, DELTA, SimulatedNoise(seed), method).table
                    for seed in range(runs)
                ]
                errors.append(np.mean([_errors(one, nation, given, named) for one in made], axis=0))
            yield {"table": " ".join(states), "named": ", ".join(named), "method": method, **_ratio(*errors)}


def _errors(made: Any, nation: Nation, given: Any, named: tuple[str, ...]) -> list[float]:
    """The mean squared error of each of the named answers."""
    levels, queries = list(nation.regions.levels), Queries(given)
    last = made[made.level == len(levels) - 1]
    cells = last.group.astype(int) * nation.shape[1] + last.age.astype(int)
    leaves = np.zeros_like(nation.leaves)
    leaves[nation.regions.positions(last.region.to_numpy(object)), cells] = last["count"]
    away = nation.added_up(leaves - nation.leaves)
    found = []
    for one in named:
        level, _, query = one.partition(":")
        found.append(float((queries.workload_of([query]).answers(away[levels.index(level)]) ** 2).mean()))
    return found


def _flows(name: str, table: Flows, epsilon: float, runs: int) -> Iterator[dict[str, Any]]:
    shape = {"epsilon": epsilon, "delta": flows.DELTA}
    shape["axes"] = dict(zip(table.axis_names, table.axes, strict=True))
    for method in ("InfTDA", "TDA_L2"):

        def errors(noise: SimulatedNoise, shares: Any, method: str = method) -> tuple[Any, Any]:
            made = top_down(table, epsilon, flows.DELTA, noise, method, shares=shares)
            each = levels(table, made.table, made.settings, made.regions)[1:]
            away = [np.abs(one.released - one.true) / one.cells for one in each]
            return [(one * one * level.cells).sum() for one, level in zip(away, each, strict=True)], [
                one.sum() for one in away
            ]

        yield from _by_level(name, "top-down", method, errors, runs, shape)


def _groups(name: str, counts: SizeRuns, largest: int, epsilon: float, runs: int) -> Iterator[dict[str, Any]]:
    places, true = counts.hierarchy, counts.runs.capped(largest)
    dense = true.dense(largest)
    for method in ("M_c^dp", "M_H^dp", "Hc"):

        def errors(noise: SimulatedNoise, shares: Any, method: str = method) -> tuple[Any, Any]:
            if method == "Hc":
                made = count_of_counts(counts, epsilon, noise, max_size=largest, shares=shares)
            else:
                made = group_size(GroupSizes(places, dense), epsilon, noise, method, shares=shares)
            found = laid_out(made.table).runs(places)
            away = found.dense(largest) - dense
            apart = earth_movers_runs(true, found) if method == "Hc" else np.abs(away).mean(axis=1)
            cuts = [places.tree.nodes_of(level) for level in range(len(places.levels))]
            return [(away[cut] ** 2).mean() for cut in cuts], [apart[cut].mean() for cut in cuts]

        mechanism = "count-of-counts" if method == "Hc" else "group-size"
        shape = {"epsilon": epsilon, "regions": places, "max_size": largest}
        yield from _by_level(name, mechanism, method, errors, runs, shape)


def _by_level(
    name: str, mechanism: str, method: str, errors: Errors, runs: int, shape: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The last level asked for, and the first."""
    equal = _mean(errors, runs, None)
    count = len(equal[0])
    for asked in (count - 1, 0):
        weights = [MUCH if level == asked else 1 for level in range(count)]
        best = plan(mechanism, method=method, optimize=weights, **shape).plan
        assert best is not None
        optimal = _mean(errors, runs, best["shares"])
        ratio = _ratio(equal[0], optimal[0], weights)
        named = ", ".join(map(str, weights))
        absolute = float(optimal[1][asked] / equal[1][asked])
        there = float(optimal[0][asked] / equal[0][asked])
        yield {
            "table": name, "named": named, "method": method, **ratio, "there": there, "absolute": absolute,
        }  # fmt: skip


def _mean(errors: Errors, runs: int, shares: Sequence[float] | None) -> Floats:
    return np.asarray(np.mean([errors(SimulatedNoise(seed), shares) for seed in range(runs)], axis=0))


def _ratio(equal: Floats, optimal: Floats, weights: Sequence[float] | float = 1.0) -> dict[str, Any]:
    each = {"equal": equal, "optimal": optimal}
    shown = {f"{name} MSE": " ".join(f"{e:.4g}" for e in found) for name, found in each.items()}
    before, after = (float((np.asarray(weights) * found).sum()) for found in each.values())
    return {**shown, "ratio of sums": after / before}
