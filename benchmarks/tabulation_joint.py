"""How far the level-by-level methods are from the joint optimum, on trees that an integer program can solve.

The tables are made up: a nation, 2 states and 4 counties, of 4 cells. `Joint` minimizes the weighted squares
of all levels over whole, consistent tables. The same measurements are given to all methods; ρ = 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tabulation import Nation, errors, measured, solved_by
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation.joint import joint_model
from models.tree import Tree

RHO = 0.5
METHODS = ("TopDown", "BlueDown", "Joint")


def nation(rng: np.random.Generator) -> Nation:
    """A made-up nation of 2 groups by 2 ages, with many small counts."""
    tree = Tree([[0, 0], [0, 0, 1, 1]])
    names = [np.array([f"{i}" for i in range(n)], dtype=object) for n in tree.level_sizes]
    counts = rng.geometric(0.15, (tree.leaves.size, 4)) - 1
    return Nation(Hierarchy(("root", "state", "county"), tuple(names), tree), (2, 2), counts)


def run(*, runs: int = 20) -> Iterator[dict[str, Any]]:
    """The cost, the errors and the time of each method in each run."""
    for seed in range(runs):
        made = nation(np.random.default_rng(seed))
        measurements, constraints = measured(made, 0, RHO, seed)
        model = joint_model(measurements, constraints)
        for method in METHODS:
            tables = solved_by(method, measurements, constraints)
            away = errors(made, tables)
            yield {
                "seed": seed, "method": method, "cost": float(model.objective(np.concatenate(tables))),
                "county: total": away[-1][0], "county: cells": away[-1][-1],
            }  # fmt: skip


def summary(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    best = rows[rows.method == "Joint"].set_index("seed").cost
    rows = rows.assign(**{"cost above Joint's": rows.cost / best.reindex(rows.seed).to_numpy() - 1})
    by = rows.groupby("method", sort=False)
    return {
        "Means": by[["county: total", "county: cells", "cost above Joint's"]].mean().reset_index(),
        "Cost above Joint's": by["cost above Joint's"].agg(["min", "max"]).reset_index(),
    }
