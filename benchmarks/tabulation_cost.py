"""How the cost of the tabulation's methods grows with the cells of a region, and with the regions.

All tables are made up: heavy-tailed counts. CPU seconds, proofs included; a curve stops after the first case
beyond the limit.

Cells: one parent and 5 children; the queries are the total, each attribute, and every cell. Regions: a nation
with 20 counties in a state and 20 precincts in a county, 16 cells, all marginals.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.measuring import on_cpu
from benchmarks.tabulation import DELTA, EPSILON, METHODS, Nation, measured, solved_by
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation.family import nested, whole_histograms
from hierdp.mechanisms.tabulation.passes import Family
from hierdp.privacy.conversion import rho_of
from hierdp.record.spool import Steps
from models import BlockInference, Workload
from models.synthetic import heavy_tailed, noise
from models.tree import Tree
from solvers import solve

RACES = (1, 2, 4, 8, 16, 32, 63)
"""Categories of the fourth attribute; the others have 8, 2 and 2, as in the redistricting data of 2020."""

CHILDREN = 5
STATES = (1, 4, 16)
EACH = 20


def by_cells(limit: float, races: tuple[int, ...] = RACES) -> Iterator[dict[str, Any]]:
    """One parent's children: least squares over the two levels; or level by level, and rounding."""
    down = True
    for number in races:
        shape = (8, 2, 2, number)
        rng = np.random.default_rng(0)
        workload = Workload.marginals(shape, [(), (0,), (1,), (2,), (3,), (0, 1, 2, 3)])
        true = heavy_tailed(rng, (CHILDREN, workload.cells))
        parent, queries = true.sum(axis=0), len(workload.queries)
        answers = workload.answers(np.concatenate([parent[None], true]))
        noisy = answers + noise(rng, answers.shape)
        tree = BlockInference(
            Tree([np.zeros(CHILDREN, np.int64)]), workload, noisy, np.ones((2, queries), np.int64)
        )
        row: dict[str, Any] = {"cells": workload.cells, "GLS": on_cpu(lambda: solve(tree))[0]}  # noqa: B023
        if down:
            none = np.zeros((CHILDREN, 0))
            family = Family(
                workload,
                noisy[1:],
                np.ones(queries),
                parent,
                np.zeros(workload.cells, bool),
                None,
                none,
                none,
            )
            how, steps = ([tuple(range(queries))], nested(workload, None)), Steps()
            row["least squares and rounding"], _ = on_cpu(lambda: whole_histograms(steps, "a", family, *how))  # noqa: B023
            row["by"] = ", ".join(step.solution.backend for step in steps.kept)
            down = row["least squares and rounding"] <= limit
        yield row


def nation(states: int, seed: int = 0) -> Nation:
    """Made-up tables of 16 cells."""
    counties = np.repeat(np.arange(states), EACH)
    precincts = np.repeat(np.arange(counties.size), EACH)
    tree = Tree([np.zeros(states, np.int64), counties, precincts])
    names = [np.array([f"{i:07d}" for i in range(n)], dtype=object) for n in tree.level_sizes]
    regions = Hierarchy(("root", "state", "county", "precinct"), tuple(names), tree)
    return Nation(regions, (8, 2), heavy_tailed(np.random.default_rng(seed), (precincts.size, 16)))


def by_regions(limit: float, states: tuple[int, ...] = STATES) -> Iterator[dict[str, Any]]:
    """All methods on nations of more and more states."""
    running = set(METHODS)
    for number in states:
        made = nation(number)
        data = measured(made, 1, rho_of(EPSILON, DELTA), 0)
        row: dict[str, Any] = {"regions": made.regions.tree.size}
        for method in METHODS:
            if method in running:
                row[method] = on_cpu(lambda: solved_by(method, *data))[0]  # noqa: B023
                row[f"{method}, ms a region"] = 1e3 * row[method] / row["regions"]
                if row[method] > limit:
                    running.discard(method)
        yield row


def run(*, limit: Annotated[float, "CPU seconds of a case"] = 20.0) -> Iterator[dict[str, Any]]:
    list(by_cells(limit, RACES[:1]))  # compiled, not timed
    yield from by_cells(limit)
    yield from by_regions(limit)


def draw(rows: pd.DataFrame, folder: Path) -> None:
    """CPU seconds of a family by its cells."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(5, 3.2))
    for name in ("least squares and rounding", "GLS"):
        panel.loglog(rows.cells, rows[name], marker="o", label=name)
    panel.set(xlabel="cells of a region", ylabel="CPU seconds, 5 regions")
    panel.legend()
    figure.tight_layout()
    figure.savefig(folder / "tabulation-cost.png", dpi=110)
