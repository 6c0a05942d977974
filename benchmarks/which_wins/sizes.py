"""How many groups have each size: the methods of Kuo et al. 2018 and Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.which_wins.rows import Row, row
from hierdp import tables
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data.census import census
from hierdp.data.taxi import taxi
from hierdp.demo import read
from hierdp.experiments.choosing.methods import errors_of_groups
from hierdp.experiments.run import noise_for
from hierdp.privacy.noise import SimulatedNoise

SIZES = "group sizes"

HEADS = {
    "bottom-up Hc": "BU Hc",
    "bottom-up Hg": "BU Hg",
    "top-down Hc": "TD Hc",
    "top-down Hc, plain": "plain",
    "top-down Hg": "TD Hg",
    "Hc, all levels at once": "at once",
    "M_c^dp": "$M_c^{dp}$",
    "M_H^dp": "$M_H^{dp}$",
}
"""The methods in figures and tables, and how tables call them."""


@dataclass(frozen=True, eq=False)
class Case:
    """One point of a figure: data, bound on the sizes, budget."""

    figure: str
    data: str
    at: float
    counts: SizeRuns
    max_size: int
    epsilon: float = 1.0


def by_epsilon(sets: dict[str, tuple[SizeRuns, int]], epsilons: tuple[float, ...]) -> Iterator[Case]:
    """Every data set at every budget; K is the largest size that it is released to."""
    for name, (data, largest) in sets.items():
        for epsilon in epsilons:
            yield Case("epsilon", name, epsilon, data, largest, epsilon)


def by_bound(taxis: SizeRuns) -> Iterator[Case]:
    """The taxi data at increasingly loose bounds K."""
    for largest in (5_000, 20_000, 100_000):
        yield Case("bound", "taxi", largest, taxis, largest)


def by_depth(seed: int) -> Iterator[Case]:
    """The same 64 leaves under trees of 2 to 7 levels: 64 children, 8 × 8, 4 × 4 × 4, …, 2 × … × 2."""
    leaves = [_skewed(np.random.default_rng([seed, 1, leaf]), 2_000, 500) for leaf in range(64)]
    for parts in ((64,), (8, 8), (4, 4, 4), (4, 2, 2, 4), (2, 2, 4, 2, 2), (2,) * 6):
        yield Case("depth", "64 leaves", len(parts) + 1, _tree(leaves, parts), 500)


def by_density(seed: int) -> Iterator[Case]:
    """8 × 8 regions of 1,000 groups, whose sizes are spread evenly over ever more possible ones."""
    for largest in (10, 100, 1_000, 10_000):
        leaves = []
        for leaf in range(64):
            sizes = np.random.default_rng([seed, 2, largest, leaf]).integers(1, largest + 1, 1_000)
            leaves.append(np.unique(sizes, return_counts=True))
        yield Case("density", "64 leaves", 1_000 / largest, _tree(leaves, (8, 8)), largest)


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per method, run, level and error."""

    def noise(query: str, run: int) -> SimulatedNoise:
        return noise_for(seed, case.figure, case.data, case.at, query, run)

    for each in errors_of_groups(case.counts, case.max_size, case.epsilon, runs, noise):
        about = {"figure": case.figure, "data": case.data, "at": case.at, "epsilon": case.epsilon}
        yield row(kind=SIZES, **about, **each._asdict())


def _skewed(rng: np.random.Generator, groups: int, largest: int) -> tuple[Any, Any]:
    """Many small groups, a few large ones."""
    sizes = np.minimum(1 + np.floor(rng.pareto(1.2, groups) * 3), largest).astype(np.int64)
    return np.unique(sizes, return_counts=True)


def _tree(leaves: list[tuple[Any, Any]], parts: tuple[int, ...]) -> SizeRuns:
    """Regions divided into the given numbers of parts, level by level, with these leaves."""
    total = len(leaves)
    columns, count = {}, 1
    for level, part in enumerate(parts, start=1):
        count *= part
        columns[f"level {level}"] = [f"{leaf // (total // count):02}" for leaf in range(total)]
    places = Hierarchy.from_columns(columns, list(columns))
    return SizeRuns(places, Runs.from_rows(leaves).summed_up(places.tree))


def data_sets(data: Path, seed: int) -> dict[str, tuple[SizeRuns, int]]:
    """The data sets, each with the largest size that it is released to."""
    sets: dict[str, tuple[SizeRuns, int]] = {}
    if (data / "taxi").is_dir():
        sets["taxi"] = SizeRuns.of(taxi(data / "taxi")), 5_000
    flights, _ = read()
    sets["flights"] = SizeRuns.of(flights), flights.counts.shape[1] - 1
    homes = data / "us-households-7-pumas.parquet"
    if homes.exists():
        made = tables.group_sizes(
            homes, group=["household"], levels=["state", "puma"], entities="persons", max_size=20
        )
        sets["households"] = SizeRuns.of(made), 20
    sets["census"] = SizeRuns.of(census(seed, 1_176_304, 520, 1_000)), 1_000
    return sets


def cases(data: Path, seed: int) -> list[Case]:
    """All cases, of the data in the folder and those made from the seed."""
    sets = data_sets(data, seed)
    found = [*by_epsilon(sets, (0.1, 1.0)), *by_depth(seed), *by_density(seed), *by_epsilon(sets, (0.3, 3.0))]
    return [*found, *by_bound(sets["taxi"][0])] if "taxi" in sets else found
