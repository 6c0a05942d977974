"""How many groups have each size: the methods of Kuo et al. 2018 and Fioretto & Van Hentenryck 2019.

Two errors per region: the earth mover's distance of Kuo et al., and the L1 error of the counts by size of
Fioretto & Van Hentenryck. All noise is independent; budgets are those of the whole release; groups may be
empty. M_c^dp and M_H^dp are Fioretto & Van Hentenryck 2019's.
"""

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
from hierdp.mechanisms import count_of_counts, group_size
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.metrics.runs import earth_movers_runs
from hierdp.reproduce.runs import noise_for
from hierdp.tables import GroupSizes

WAYS: dict[str, tuple[str, ...]] = {
    "bottom-up Hc": ("bottom-up", "weighted"),
    "bottom-up Hg": ("bottom-up Hg", "weighted"),
    "top-down Hc": ("Hc", "weighted"),
    "top-down Hc, plain": ("Hc", "plain"),
    "top-down Hg": ("Hg", "weighted"),
    "Hc, all levels at once": ("Hc", "at once"),
    "M_c^dp": (),
    "M_H^dp": (),
}
"""Method and merge of `count_of_counts`; none for the methods of `group_size`. "At once" is `TreeMatching` of
the levels' estimates, which is in neither paper, for up to three levels and up to 5,000 true sizes."""


SIZES = "group sizes"
EMD, L1 = "entities to move", "counts by size, L1"


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
    places = case.counts.hierarchy
    true = case.counts.runs.capped(case.max_size)
    by_size = true.dense(case.max_size)
    dense = GroupSizes(places, by_size)
    for way, chosen in WAYS.items():
        if "at once" in chosen and (len(places.levels) > 3 or int(true.distinct[0]) > 5_000):
            continue
        for run in range(runs):
            query = chosen[0] if chosen else way  # methods with one query share their noise
            noise = noise_for(seed, case.figure, case.data, case.at, query, run)
            if chosen:
                plan = plan_of(chosen[0], places.levels, merge=chosen[1], max_size=case.max_size)
                measured = count_of_counts.measure(case.counts, case.epsilon, noise, plan)
                made = count_of_counts.post_process(measured, places, plan)
                released = made.dense(case.max_size)
            else:
                method = METHODS[way]
                noisy, _ = group_size.measure(dense, case.epsilon, noise, method)
                released = group_size.post_process(
                    noisy, places, dense.groups, method, method.solving(SolverOptions())
                )
                made = Runs.from_dense(released)
            found = {EMD: earth_movers_runs(true, made), L1: np.abs(by_size - released).sum(axis=1)}
            for level, name in enumerate(places.levels):
                nodes = places.tree.nodes_of(level)
                for metric, error in found.items():
                    yield row(
                        kind=SIZES, figure=case.figure, data=case.data, at=case.at, epsilon=case.epsilon,
                        level=level, name=name, depth=len(places.levels), metric=metric, method=way, run=run,
                        error=float(error[nodes].sum()) / (nodes.stop - nodes.start),
                    )  # fmt: skip


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
