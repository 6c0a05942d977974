"""Flows as tables: TopDown and BlueDown, with destinations as an attribute of origins, beside InfTDA.

Commuters of New England by county, simulated noise, equal ε and δ. A row has the means of the L1 errors of
the cells, of the sums by states, and of the states' totals as destinations; the largest error; the share of
invented cells and the number of missed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA, data_file
from benchmarks.which_wins.flows import AREAS, DELTA, within
from hierdp.data.commuting import FILE, STATES
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.methods import METHODS as TABULATIONS
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.top_down import top_down
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables import Flows
from hierdp.tables.tabulated import CrossTable
from models.arithmetic.arrays import Ints

METHODS = ("InfTDA", "TDA_L2", "TopDown", "BlueDown")


def run(
    *,
    data: Annotated[Path, f"a folder with {FILE}"] = DATA,
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0),
    runs: int = 5,
) -> Iterator[dict[str, Any]]:
    flows = within(data_file(data, FILE), tuple(STATES)[: AREAS["New England"]])
    places = flows.axes[0]
    state, n = np.asarray(places.tree.levels[-1]), int(places.tree.level_sizes[-1])
    true: Ints = np.zeros((n, n), np.int64)
    true[flows.cells[:, 0], flows.cells[:, 1]] = flows.counts
    for epsilon in epsilons:
        for method in METHODS:
            made = [released(flows, true, method, epsilon, SimulatedNoise(k)) for k in range(runs)]
            yield {"epsilon": epsilon, "method": method, **errors(made, true, state)}


def released(flows: Flows, true: Ints, method: str, epsilon: float, noise: SimulatedNoise) -> Ints:
    """The cells of a release, origins by destinations."""
    origins, destinations = flows.axes
    made: Ints = np.zeros_like(true)
    if method in TABULATIONS:
        names = [str(name) for name in destinations.names[-1]]
        state = np.asarray(destinations.tree.levels[-1])
        groups = {
            str(name): [names[i] for i in np.flatnonzero(state == k)]
            for k, name in enumerate(destinations.names[1])
        }
        given: dict[str, Any] = {"attributes": {"destination": names}, "queries": ["total", "destination"]}
        if method != "BlueDown":  # which would not use answers about states
            given["recodes"] = {"state": {"attribute": "destination", "categories": groups}}
            given["queries"].insert(1, "state")
        plan = plan_of(given)
        table: Any = tabulate(
            CrossTable(origins, {"destination": names}, true), plan, epsilon, DELTA, noise, method
        ).table
        last, column = table[table.level == table.level.max()], "region"
    else:
        table = top_down(flows, epsilon, DELTA, noise, method).table
        last, column = table[table.level == table.level.max()], "origin"
    at = (
        axis.positions(last[c].to_numpy(object))
        for axis, c in zip(flows.axes, (column, "destination"), strict=True)
    )
    made[tuple(at)] = last["count"]
    return made


def errors(made: list[Ints], true: Ints, state: Ints) -> dict[str, float]:
    """The means of errors over releases."""
    sums = np.equal.outer(np.arange(state.max() + 1), state).astype(np.int64)
    away = [one - true for one in made]
    return {
        "cells": float(np.mean([np.abs(a).sum() for a in away])),
        "by state": float(np.mean([np.abs(sums @ a @ sums.T).sum() for a in away])),
        "destination states": float(np.mean([np.abs(sums @ a.sum(axis=0)).sum() for a in away])),
        "largest": float(np.mean([np.abs(a).max() for a in away])),
        "invented": float(np.mean([((one > 0) & (true == 0)).sum() / (one > 0).sum() for one in made])),
        "missed": float(np.mean([((one == 0) & (true > 0)).sum() for one in made])),
    }
