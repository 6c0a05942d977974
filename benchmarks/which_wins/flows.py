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
from hierdp.experiments.choosing.methods import errors_of_flows
from hierdp.experiments.run import noise_for
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables import Flows, flows

FLOWS = "origin/destination"
DELTA = 1e-8

AREAS = {"New England": 6, "Northeast": 9}
"""Parts of the United States: the first states of `hierdp.data.commuting.STATES`."""


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
    """One row per method, run, level and error."""

    def noise(_: str, run: int) -> SimulatedNoise:
        return noise_for(seed, case.data, case.epsilon, run)

    for each in errors_of_flows(case.table, case.epsilon, DELTA, runs, noise):
        yield row(kind=FLOWS, data=case.data, epsilon=case.epsilon, **each._asdict())
