"""Accuracy of the tabulation's methods on the same noisy measurements, by level and query.

The data are persons by precinct, 8 groups and 2 ages (2020). Each run draws noise once, simulated, and gives
the same measurements to every method: all four marginals on every level, with equal shares of one ρ. InfTDA
has the attributes as further axes, its own measurements, and the same ρ.

Three sets of invariants are compared: the nation's total alone, which is public if neighbouring tables differ
by replacing one person; also the states' totals, as in 2020; also the counties'. A total that is fixed is not
measured; its share goes to the other queries of its level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.measuring import DATA, data_file, on_cpu
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation import methods
from hierdp.mechanisms.tabulation.methods import Settings, Tables
from hierdp.mechanisms.tabulation.problem import Constraints, Measured
from hierdp.mechanisms.tabulation.solving import solve_step
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise, gaussian
from hierdp.record.spool import Steps
from hierdp.tables.cells import Flows
from models import Workload
from models.arithmetic.arrays import Floats, Ints

FILE = "us-precincts-2020.parquet"
EPSILON, DELTA = 10.0, 1e-10
LEVELS = ("state", "county", "precinct")
QUERIES = ("total", "group", "age", "group*age")
PASSES = Settings(((0,), (1, 2, 3)))
"""The totals first, then all other queries, as in the redistricting data of 2020."""

METHODS = ("TopDown", "BlueDown", "GLS")
ROUNDED = "GLS rounded"
"""The cells of the regions of the last level, clipped at 0, rounded and added up."""


@dataclass(frozen=True, eq=False)
class Nation:
    """True tables of every region.

    - shape: the number of categories of each attribute.
    - leaves, int64 array, shape (regions of the last level, cells)
    """

    regions: Hierarchy
    shape: tuple[int, int]
    leaves: Ints

    @classmethod
    def of(cls, persons: pd.DataFrame) -> Nation:
        """From columns state, county, precinct, group, age and persons."""
        given = persons.astype(dict.fromkeys((*LEVELS, "group", "age"), object))
        given["county"] = given.county.fillna(given.state + ", no county")
        regions = Hierarchy.from_columns(given, list(LEVELS))
        group, age = (pd.Categorical(given[name]) for name in ("group", "age"))
        shape = (group.categories.size, age.categories.size)
        leaves = np.zeros((regions.names[-1].size, math.prod(shape)), np.int64)
        cells = group.codes.astype(np.int64) * shape[1] + age.codes
        np.add.at(leaves, (regions.positions(given.precinct.to_numpy()), cells), given.persons)
        return cls(regions, shape, leaves)

    @classmethod
    def read(cls, folder: Path, states: Sequence[str]) -> Nation:
        """Some states of the file in a folder; all if none is named."""
        chosen = [("state", "in", list(states))] if states else None
        return cls.of(pd.read_parquet(data_file(folder, FILE), filters=chosen))

    @cached_property
    def workload(self) -> Workload:
        """All marginals, in the order of `QUERIES`."""
        return Workload.marginals(self.shape, [(), (0,), (1,), (0, 1)])

    @cached_property
    def true(self) -> Tables:
        """The tables of every level."""
        return self.added_up(self.leaves)

    def added_up(self, leaves: Ints) -> Tables:
        """The tables of every level from those of the last."""
        tree = self.regions.tree
        every = tree.sum_up(leaves)
        return [every[tree.nodes_of(level)] for level in range(tree.depth + 1)]


def measured(nation: Nation, fixed: int, rho: float, seed: int) -> tuple[Measured, Constraints]:
    """Noisy answers, and the totals of the levels 0, …, `fixed` as invariants."""
    workload, noise = nation.workload, SimulatedNoise(seed)
    levels = len(nation.true)
    noisy = []
    variance = np.full((levels, len(QUERIES)), np.inf)
    for level, tables in enumerate(nation.true):
        answers = workload.answers(tables)
        queries = range(1 if level <= fixed else 0, len(QUERIES))
        for q in queries:
            part = slice(int(workload.start[q]), int(workload.start[q + 1]))
            drawn = noise.draw(
                gaussian(QUERIES[q], math.sqrt(2), rho / levels / len(queries)), answers[:, part]
            )
            answers[:, part] = drawn.answers
            variance[level, q] = drawn.spend.scale**2
        noisy.append(answers)
    total = Workload.marginals(nation.shape, [()])
    bounds = [np.repeat(tables.sum(axis=1, keepdims=True).astype(float), 2, axis=1) for tables in nation.true]
    for side in bounds[fixed + 1 :]:
        side[:] = (0, np.inf)
    lower, upper = ([side[:, [i]] for side in bounds] for i in (0, 1))
    none = np.zeros(workload.cells, bool)
    return (
        Measured(nation.regions, workload, noisy, variance),
        Constraints(none, total, lower, upper, ["total"]),
    )


def solved_by(method: str, measurements: Measured, constraints: Constraints) -> Tables:
    """A method's tables, each step proved."""
    return methods.METHODS[method](measurements, constraints, PASSES, Steps(solve_step))[0]


def by_inftda(nation: Nation, seed: int) -> Tables:
    """InfTDA with the regions, the groups and the ages as axes."""
    axes = (
        nation.regions,
        *(
            Hierarchy.flat(name, [f"{name} {i}" for i in range(n)])
            for name, n in zip(("group", "age"), nation.shape, strict=True)
        ),
    )
    place, cell = np.nonzero(nation.leaves)
    cells = np.stack([place, *np.unravel_index(cell, nation.shape)], axis=1)
    flows = Flows(axes, ("region", "group", "age"), cells, nation.leaves[place, cell])
    made = top_down(flows, EPSILON, DELTA, SimulatedNoise(seed)).table
    last = made[made.level == made.level.max()]
    found = np.zeros_like(nation.leaves)
    at = [axis.positions(last[name].to_numpy()) for axis, name in zip(axes, flows.axis_names, strict=True)]
    np.add.at(found, (at[0], at[1] * nation.shape[1] + at[2]), last["count"].to_numpy())
    return nation.added_up(found)


def of_one_run(
    nation: Nation, fixed: int, seed: int, methods: Sequence[str] = METHODS
) -> Iterator[dict[str, Any]]:
    """The errors of every method, from the same measurements: mean over regions and answers."""
    measurements, constraints = measured(nation, fixed, rho_of(EPSILON, DELTA), seed)
    jobs = {name: partial(solved_by, name, measurements, constraints) for name in methods}
    if fixed == 0:
        jobs["InfTDA"] = partial(by_inftda, nation, seed)
    names = nation.regions.levels
    for name, job in jobs.items():
        spent, tables = on_cpu(job)
        shown = {name: tables}
        if name == "GLS":
            shown[ROUNDED] = nation.added_up(np.rint(np.maximum(tables[-1], 0)).astype(np.int64))
        for shown_as, found in shown.items():
            for level, error in enumerate(errors(nation, found)):
                for query, value in zip(QUERIES, error, strict=True):
                    yield {
                        "invariants": names[fixed], "seed": seed, "method": shown_as, "level": names[level],
                        "query": query, "error": value, "cpu": spent,
                    }  # fmt: skip


def errors(nation: Nation, found: Tables) -> list[Floats]:
    """For each level, the mean absolute error of each query's answers."""
    start = nation.workload.start[:-1]
    away = [
        np.abs(nation.workload.answers(one) - nation.workload.answers(true)).mean(axis=0)
        for one, true in zip(found, nation.true, strict=True)
    ]
    return [np.add.reduceat(one, start) / nation.workload.sizes for one in away]


def study(
    nation: Nation, runs: int, invariants: Sequence[str] = ("root", *LEVELS[:2])
) -> Iterator[pd.DataFrame]:
    """A row for each set of invariants, run, method, level and query."""
    for name in invariants:
        fixed = nation.regions.levels.index(name)
        for seed in range(runs):
            methods = METHODS if fixed == 0 else ("TopDown", "BlueDown")
            yield pd.DataFrame(of_one_run(nation, fixed, seed, methods))
            print(f"invariants: {name}, run {seed + 1} of {runs}", flush=True)


def accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over the runs, as text; rows are levels and queries, columns methods."""
    by = rows.groupby(["level", "query", "method"], sort=False).error
    mean, spread = by.mean(), by.std(ddof=1) / np.sqrt(by.size())
    text = pd.Series([f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True)], mean.index)
    return text.unstack("method", sort=False)


def ratios(rows: pd.DataFrame, one: str = "BlueDown", other: str = "TopDown") -> pd.DataFrame:
    """The error of a method over that of another: median, least and largest over the runs."""
    keys = ["invariants", "level", "query", "seed"]
    pairs = rows.pivot_table("error", keys, "method", sort=False)
    pairs = pairs[pairs[other] > 0]
    return (pairs[one] / pairs[other]).groupby(keys[:-1], sort=False).agg(["median", "min", "max"]).round(3)


def draw(rows: pd.DataFrame, folder: Path) -> None:
    """The error by level, a panel for each query; without `ROUNDED`, which is far off."""
    import matplotlib.pyplot as plt

    kept = rows[(rows.invariants == "root") & (rows.method != ROUNDED)]
    methods = list(dict.fromkeys(kept.method))
    figure, panels = plt.subplots(1, len(QUERIES), figsize=(12, 3.4), sharey=True)
    for panel, query in zip(panels, QUERIES, strict=True):
        for i, method in enumerate(methods):
            part = kept[(kept["query"] == query) & (kept.method == method)]
            by = part.groupby("level", sort=False).error
            at = np.arange(len(by)) + 0.1 * (i - (len(methods) - 1) / 2)
            panel.errorbar(at, by.mean(), by.std(), marker="o", ls="", capsize=2, label=method)
        panel.set_xticks(range(len(by)), list(by.groups))
        panel.set(title=query, ylim=(0, None))
    panels[0].set_ylabel("mean absolute error, persons")
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "tabulation-accuracy.png", dpi=90)


def run(
    *,
    states: Annotated[tuple[str, ...], "postal codes; empty for all"] = ("DE", "ME", "RI", "VT"),
    runs: int = 10,
    data: Annotated[Path, f"a folder with {FILE}"] = DATA,
    invariants: Annotated[tuple[str, ...], "levels whose totals are fixed"] = ("root", *LEVELS[:2]),
) -> Iterator[pd.DataFrame]:
    nation = Nation.read(data, states)
    print(f"{nation.regions}; ρ = {rho_of(EPSILON, DELTA):.3f}", flush=True)
    yield from study(nation, runs, invariants)


def summary(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = {
        f"Mean absolute error, totals fixed down to: {name}": accuracy(part).reset_index()
        for name, part in rows.groupby("invariants", sort=False)
    }
    cpu = rows.groupby(["invariants", "method"], sort=False).cpu.median().unstack("method", sort=False)
    found["BlueDown's error over TopDown's"] = ratios(rows).reset_index()
    return {**found, "CPU seconds, median": cpu.round(2).reset_index()}
