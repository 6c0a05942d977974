"""Errors of releases by optimal plans, beside equal shares: persons by precinct, 8 groups and 2 ages.

Simulated noise. A row has the mean squared errors of the named answers, with both shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA
from benchmarks.tabulation import DELTA, Nation
from hierdp import plan
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables.tabulated import CrossTable

NAMED = (
    ("county:group", "precinct:age"),
    ("state:detailed", "county:detailed", "precinct:group"),
    ("county:detailed", "precinct:total"),
)
SHARES = "level_shares", "query_shares"


def run(
    *,
    data: Annotated[Path, "a folder with us-precincts-2020.parquet"] = DATA,
    states: tuple[str, ...] = ("DE", "NH", "RI", "VT"),
    epsilon: float = 1.0,
    runs: int = 3,
) -> Iterator[dict[str, Any]]:
    nation = Nation.read(data, states)
    attributes = {"group": [str(i) for i in range(nation.shape[0])], "age": ["0", "1"]}
    table = CrossTable(nation.regions, attributes, nation.leaves)
    equal = {"attributes": attributes, "queries": ["total", "group", "age", "detailed"]}
    shape = {"epsilon": epsilon, "delta": DELTA, "regions": nation.regions}
    for named in NAMED:
        for method in ("TopDown", "BlueDown"):
            best = plan("tabulation", plan=equal, method=method, optimize=named, **shape).plan
            assert best is not None
            errors = {}
            for name, shares in (("equal", {}), ("optimal", {one: best[one] for one in SHARES})):
                given = plan_of({**equal, **shares})
                made = [
                    tabulate(table, given, epsilon, DELTA, SimulatedNoise(seed), method).table
                    for seed in range(runs)
                ]
                errors[name] = np.mean([_errors(one, nation, given, named) for one in made], axis=0)
            ratio = float(errors["optimal"].sum() / errors["equal"].sum())
            each = {f"{name} MSE": " ".join(f"{e:.1f}" for e in found) for name, found in errors.items()}
            yield {"named": ", ".join(named), "method": method, **each, "ratio of sums": ratio}


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
