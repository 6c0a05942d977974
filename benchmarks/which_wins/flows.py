"""Origin/destination tables: the methods of Boninsegna & Silvestri 2025."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.which_wins.rows import Row, row
from hierdp.counts.hierarchy import Hierarchy
from hierdp.data import FLIGHTS
from hierdp.data.commuting import FILE, STATES
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.metrics.group_sizes import top_down_errors
from hierdp.reproduce.runs import noise_for
from hierdp.tables import Flows, flows

FLOWS = "origin/destination"
DELTA = 1e-8

METHODS = ("InfTDA", "InfTDA_large", "TDA_L2", "TDA", "VanillaGauss", "SH")
AREAS = {"New England": 6, "Northeast": 9}
"""Parts of the United States: the first states of `hierdp.data.commuting.STATES`."""

ERRORS = {
    "l1": "L1",
    "max_error": "largest error",
    "false_discovery_rate": "share of invented flows",
    "false_negatives": "missed flows",
}
"""Errors of `top_down_errors`, and how they are called here."""


@dataclass(frozen=True, eq=False)
class Case:
    """A table and a budget."""

    data: str
    table: Flows
    epsilon: float


def cases(data: Path) -> list[Case]:
    """Flights by airport, and commuters by county."""
    airports = {"origin": ["origin"], "destination": ["destination"]}
    sets = {"flights": flows(FLIGHTS, axes=airports, count="flights")}
    if (data / FILE).exists():
        sets |= {name: within(data / FILE, tuple(STATES)[:many]) for name, many in AREAS.items()}
    return [Case(name, table, epsilon) for name, table in sets.items() for epsilon in (0.1, 1.0, 10.0)]


def within(path: Path, states: tuple[str, ...]) -> Flows:
    """The commuters within some states, by state and county of both ends."""
    import pandas as pd

    table: Any = pd.read_parquet(path)
    table = table[table.origin_state.isin(states) & table.dest_state.isin(states)].reset_index(drop=True)
    ends = [
        table[[f"{end}_state", f"{end}_county"]].set_axis(["state", "county"], axis=1)
        for end in ("origin", "dest")
    ]
    both = pd.concat(ends)
    counties = Hierarchy.from_columns(
        {c: both[c].to_numpy() for c in both}, ("state", "county"), "all", "area"
    )
    axes = {"origin": (counties, "origin_county"), "destination": (counties, "dest_county")}
    return flows(table, axes=axes, count="workers")


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run, level and error; errors of cells that are not released included."""
    truth = true_table(case.table)
    for method in METHODS:
        for run in range(runs):
            noise = noise_for(seed, case.data, case.epsilon, run)
            made = top_down(case.table, case.epsilon, DELTA, noise, method)
            found = top_down_errors(truth, made.table)
            for each in found[found.level > 0].itertuples():
                for name, metric in ERRORS.items():
                    yield row(
                        kind=FLOWS, data=case.data, epsilon=case.epsilon, level=int(each.level),
                        name=str(each.name), depth=len(found), metric=metric, method=method, run=run,
                        error=float(getattr(each, name)),
                    )  # fmt: skip
