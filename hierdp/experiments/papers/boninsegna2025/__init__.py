"""Boninsegna & Silvestri 2025, repeated: Figures 3–6, the utility theorem, and a release for planners."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from hierdp.analysis.utility import (
    error_bound,
    error_bound_by_nodes,
    gauss_error_bound,
    stability_error_bound,
)
from hierdp.data.commuting import FILE, STATES, commuting
from hierdp.data.italy import italy
from hierdp.data.trips import SETS, SHARES, binary_areas, published, random_areas, trips
from hierdp.execution.resume import Row
from hierdp.experiments.run import all_rows, crossed, noise_for, present, said, seed_for, summed_up
from hierdp.experiments.study import Part, Study
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.metrics import group_sizes as metrics
from hierdp.privacy import conversion, threshold
from hierdp.privacy.conversion import PAPERS, papers_epsilon_of, papers_rho_of
from hierdp.privacy.noise import Drawn, ExactNoise, Law, Noise, SimulatedNoise
from hierdp.privacy.threshold import Changes, papers_threshold
from hierdp.record.release import Release
from hierdp.record.step import NotSolved, Step
from hierdp.reports import plots
from hierdp.tables import Flows
from models import Chebyshev, SparsestChebyshev
from models.arithmetic.arrays import Ints
from models.segments import by_segment

CHEBYSHEV = ("InfTDA", "InfTDA_large", "TDA_inf")
"""The methods that minimize the Chebyshev distance, to which the utility theorem applies."""

BASELINES = ("VanillaGauss", "SH")
"""The methods that measure the finest counts alone, to which Proposition 1 applies."""


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - delta, beta: β is the probability with which the utility theorem's bound may fail.
    - sets: the published data sets, from `hierdp.data.trips.SETS`.
    - drawn: data sets drawn from this study's seed: Pareto(1) flows between newly drawn areas.
    - methods: from `hierdp.mechanisms.top_down.METHODS`.
    - most_pairs: VanillaGauss draws noise for every possible pair; it runs if there are at most this many.
    - most_positive: TDA_inf solves an integer program per region; it runs if at most this many pairs have
      trips.
    - solver_runs: runs of TDA_inf, the slowest method.
    - time_limit: seconds for each integer program.
    - exact_runs: runs of InfTDA with exact noise, to measure its time.
    - sparse_epsilons: budgets of the comparison with the fewest positive counts.
    - largest: number of flows in the tables for planners.
    """

    runs: int = 10
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    delta: float = 1e-8
    beta: float = 0.05
    sets: tuple[str, ...] = SETS
    drawn: tuple[str, ...] = ("random sparse",)
    methods: tuple[str, ...] = ("InfTDA", "InfTDA_large", "TDA_L2", "TDA", "TDA_inf", "VanillaGauss", "SH")
    most_pairs: int = 2_000_000
    most_positive: int = 70_000
    solver_runs: int = 3
    time_limit: float = 60.0
    exact_runs: int = 1
    sparse_runs: int = 3
    sparse_epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    largest: int = 25


QUICK = Settings(
    runs=2,
    sets=("binary sparse", "random dense", "random sparse"),
    drawn=(),
    solver_runs=1,
    most_positive=1_000,
    exact_runs=0,
    sparse_runs=1,
    sparse_epsilons=(1.0,),
    time_limit=5.0,
    largest=15,
)
QUICK_NOTE = (
    "Two runs on the commuters and on three of the synthetic sets, all of full size, do not order methods "
    "whose errors are within a fifth of each other. TDA_inf is run on binary sparse alone."
)
"""What cannot be concluded from the quick settings."""


# The authors' results: means over their runs, at the finest level, for ε = 0.1, 1, 10 at δ = 1e-8.
#
# They are from the result files in their repository (aidaLabDEI/TDA_hierarchical, ``results``, February
# 2025; 10 runs, 5 on Italy), which the paper's figures show.


def half(epsilon: float, delta: float) -> float:
    """The ε for half of ρ, because the authors' top-down programs divide ρ by twice the number of levels.

    ``mechanism/TDA.py`` splits it into ``T=final_level * 2`` parts, but `final_level` already counts the
    levels of both axes, so half of the parts are never spent.
    """
    return papers_epsilon_of(papers_rho_of(epsilon, delta) / 2, delta)


def root_2(epsilon: float, delta: float) -> float:  # noqa: ARG001
    """√2·ε: the stability histogram used √2, the L2 sensitivity, instead of 2, the L1 sensitivity.

    Commit c700671 of June 2025 corrected this in ``mechanism/VanillaSH.py``; the results are older.
    """
    return math.sqrt(2) * epsilon


SPENT = {"InfTDA": half, "TDA_L2": half, "TDA_inf": half, "SH": root_2}
"""The ε at which our noise equals theirs, for methods whose noise differed from the requested ε."""

USERS = {
    "binary complete": (1_051_271, 65_536), "binary dense": (734_688, 32_768),
    "binary sparse": (23_302, 655), "random complete": (2_019_580, 189_225),
    "random dense": (1_003_943, 95_612), "random sparse": (67_840, 1_892),
}  # fmt: skip
"""Table 1: number of trips, and of pairs of areas with trips."""


def authors_results() -> DataFrame:
    """Their means at the finest level: largest error, share of false discoveries, false negatives, seconds.

    False negatives are the share of the pairs with trips for which the release has none; seconds are on 8
    cores at 3.9 GHz, including exact noise.
    """
    return pd.read_csv(Path(__file__).with_name("authors.csv"))


EXACT = "InfTDA, exact noise"
as_published = partial(top_down, conversion=conversion.PAPERS, rule=threshold.PAPERS)
"""As releases are made, but with the paper's ρ and the paper's threshold."""


def accuracy(sets: Mapping[str, Flows], settings: Settings, seed: int) -> DataFrame:
    """Errors by level and seconds of every run, with the utility theorem's bounds.

    All methods of a run use the same seed, which reduces the random differences between them.
    """
    cases = _cases(sets, settings.methods, settings)
    return all_rows(_accuracy, cases, "error of every method", (sets, settings, seed))


def _cases(sets: Mapping[str, Flows], methods: Iterable[str], settings: Settings) -> list[Row]:
    every = crossed(data=sets, method=methods, epsilon=settings.epsilons)
    return [case for case in every if _feasible(case["method"], sets[case["data"]], settings)]


def _finished(
    data: Flows, name: str, method: str, epsilon: float, spent: float, settings: Settings, seed: int
) -> Iterator[tuple[Row, Release]]:
    """All runs of one method and ε; if one reaches the time limit, the following ones are skipped."""
    for run in range(settings.solver_runs if method == "TDA_inf" else settings.runs):
        try:
            seconds, made = _run(data, method, spent, settings, noise_for(seed, name, epsilon, run))
        except NotSolved as failure:
            if failure.broken:
                raise
            return
        yield {"run": run, "seconds": seconds}, made


def _accuracy(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, method: str, epsilon: float
) -> list[Row]:
    _warm_up(settings)
    data, rows = sets[name], list[Row]()
    for row, made in _finished(data, name, method, epsilon, epsilon, settings, seed):
        bounds = (_bounds if method in CHEBYSHEV else _baseline)(data, made, settings)
        for level, errors in enumerate(errors_of(_truth(data), made)):
            rows.append({**row, **errors, **{bound: values[level] for bound, values in bounds.items()}})
    return rows


_truth = lru_cache(maxsize=1)(true_table)


def exact_seconds(sets: Mapping[str, Flows], settings: Settings) -> DataFrame:
    """Seconds of InfTDA with exact noise, as in a private release."""
    cases = crossed(data=sets, method=[EXACT], epsilon=settings.epsilons, run=range(settings.exact_runs))
    return all_rows(_exact_seconds, cases, "time with exact noise", (sets, settings))


def _exact_seconds(
    sets: Mapping[str, Flows], settings: Settings, name: str, _method: str, epsilon: float, _run_number: int
) -> list[Row]:
    seconds, made = _run(sets[name], "InfTDA", epsilon, settings, ExactNoise())
    post_processing = sum(step.solution.solve_seconds for step in made.steps)
    return [{"seconds": seconds, "draws": sum(measured_of(made)), "post_processing": post_processing}]


def as_the_authors(sets: Mapping[str, Flows], settings: Settings, seed: int) -> DataFrame:
    """Errors at the finest level with the budgets that the authors' programs spent (see `authors`)."""
    cases = _cases(sets, [method for method in SPENT if method in settings.methods], settings)
    return all_rows(_as_the_authors, cases, "with the authors' budgets", (sets, settings, seed))


def _as_the_authors(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, method: str, epsilon: float
) -> list[Row]:
    spent = SPENT[method](epsilon, settings.delta)
    found = _finished(sets[name], name, method, epsilon, spent, settings, seed)
    return [{"run": row["run"], **errors_of(_truth(sets[name]), made)[-1]} for row, made in found]


def fewest(sets: Mapping[str, Flows], settings: Settings, seed: int) -> DataFrame:
    """IntOpt's number of positive counts against the minimum at the least distance, per level."""
    cases = crossed(data=sets, epsilon=settings.sparse_epsilons, run=range(settings.sparse_runs))
    return all_rows(_fewest_positive, cases, "fewest positive counts", (sets, settings, seed))


def _fewest_positive(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, epsilon: float, run: int
) -> list[Row]:
    rows = []
    noise = _Listening(seed_for(seed, name, epsilon, run))
    made = as_published(sets[name], epsilon, settings.delta, noise, "InfTDA")
    for level, (step, true) in enumerate(zip(made.steps, noise.true, strict=True), start=1):
        found = sparsest(step)
        row: Row = {"level": level, "cells": true.size, "truly_positive": int((true > 0).sum())}
        row["problems_that_differ"] = found.differing
        for method, x in (("IntOpt", np.asarray(step.solution.x)), ("fewest", found.x)):
            row |= {
                f"positive_{method}": int((x > 0).sum()),
                f"false_positive_{method}": int(((x > 0) & (true == 0)).sum()),
                f"false_negative_{method}": int(((x == 0) & (true > 0)).sum()),
                f"l1_{method}": metrics.l1(true, x),
            }
        rows.append(row)
    return rows


@dataclass(frozen=True, eq=False)
class Sparsest:
    """The answers of a level with the fewest positive counts, and how many of its problems they improve."""

    x: Ints
    differing: int


def sparsest(step: Step) -> Sparsest:
    """The answers of a level's Chebyshev problems with the fewest positive counts, each proved.

    IntOpt's answer is kept if it already has the fewest.
    """
    model = step.model
    assert isinstance(model, Chebyshev)
    noisy, totals, offsets = model.data
    x = np.array(step.solution.x)
    positives = by_segment(np.add, (x > 0).astype(np.int64), offsets, empty=0)
    distance = by_segment(np.maximum, np.abs(x - noisy), offsets, empty=0)
    more = np.flatnonzero(positives > _fewest(model, distance))
    for j in more:
        here = slice(offsets[j], offsets[j + 1])
        best = Step.solve(step.name, SparsestChebyshev(noisy[here], int(totals[j])))
        x[here] = best.solution.x
    return Sparsest(x, more.size)


def _fewest(model: Chebyshev, distance: Ints) -> Ints:
    """`SparsestChebyshev.fewest` for all problems at once.

    It takes the largest counts until their bounds reach the total. Counts beyond the distance, which must
    stay positive, are among the largest.
    """
    noisy, totals, offsets = model.data
    owner = np.repeat(np.arange(totals.size), np.diff(offsets))
    along = np.lexsort((-noisy, owner))
    y, far = noisy[along], distance[owner]
    upper = np.maximum(y + far, 0)
    reached = np.cumsum(upper) - upper
    before = reached - np.append(reached, 0)[offsets[:-1]][owner]
    needed = (y > far) | (before < totals[owner])
    return np.asarray(by_segment(np.add, needed.astype(np.int64), offsets, empty=0))


@cache
def _warm_up(settings: Settings) -> None:
    """Compile the kernels and start the solvers before anything is timed."""
    tiny = trips(binary_areas(2), 0.5)
    for method in settings.methods:
        _run(tiny, method, 1.0, settings, SimulatedNoise(0))


def _feasible(method: str, data: Flows, settings: Settings) -> bool:
    if method == "VanillaGauss":
        return int(np.prod([axis.names[-1].size for axis in data.axes])) <= settings.most_pairs
    return method != "TDA_inf" or data.counts.size <= settings.most_positive


def _run(data: Flows, method: str, epsilon: float, settings: Settings, noise: Noise) -> tuple[float, Release]:
    """Seconds from the data in memory to the released table, proofs included."""
    solver = SolverOptions(time_limit=settings.time_limit) if method == "TDA_inf" else None
    started = time.perf_counter()
    made = as_published(data, epsilon, settings.delta, noise, method, solver=solver)
    return time.perf_counter() - started, made


def errors_of(truth: DataFrame, made: Release) -> list[Row]:
    """Errors, one row for each level; false negatives also as a share of the positive true counts."""
    errors = metrics.top_down_errors(truth, made.table)
    positive = truth.groupby("level").size().to_numpy()
    errors["false_negative_rate"] = errors["false_negatives"] / positive
    return [{str(name): value for name, value in row.items()} for row in errors.to_dict("records")]


def _bounds(data: Flows, made: Release, settings: Settings) -> dict[str, list[float]]:
    """Three bounds at each level: Theorem 4's, one for all possible nodes, and one for the measured nodes."""
    levels = len(made.steps)
    scales = [spend.scale for spend in made.ledger.spends]
    possible = list(possible_nodes(data, made.settings["order"]))
    widest = max(int(np.diff(axis.tree.children[0]).max()) for axis in data.axes)
    rho, beta = made.ledger.rho, settings.beta
    closed = [error_bound(level, widest, levels, rho, beta) for level in range(1, levels + 1)]
    return {
        "theorem": [0.0, *closed],
        "bound_possible": _prefixes(scales, possible, beta),
        "bound_measured": _prefixes(scales, measured_of(made), beta),
    }


def _baseline(data: Flows, made: Release, settings: Settings) -> dict[str, list[float]]:
    """Proposition 1 at each level, for the methods that measure only the finest counts."""
    if made.mechanism not in BASELINES:
        return {}
    order, spend = made.settings["order"], made.ledger.spends[0]
    nodes = [1, *possible_nodes(data, order)]
    found = []
    for many, below in zip(nodes, cells_below(data, order), strict=True):
        if made.mechanism == "SH":
            positive = data.counts.size
            least = papers_threshold(Changes(2, 2, 1, 1), spend.scale, settings.delta)
            bound = stability_error_bound(spend.scale, least, min(below, positive), positive, settings.beta)
        else:
            bound = gauss_error_bound(spend.scale, below, many, settings.beta)
        found.append(float(bound))
    return {"proposition": found}


def cells_below(data: Flows, order: list[str]) -> list[int]:
    """The largest number of finest cells in a cell of each level, the root's first."""
    depths = dict.fromkeys(data.axis_names, 0)
    largest = dict[str, list[int]]()
    for name, axis in zip(data.axis_names, data.axes, strict=True):
        leaves = np.asarray(axis.tree.sum_up(np.ones(axis.tree.leaves.size, np.int64)))
        levels = range(axis.tree.depth + 1)
        largest[name] = [int(leaves[axis.tree.nodes_of(level)].max()) for level in levels]
    found = [math.prod(each[0] for each in largest.values())]
    for refined in order:
        depths[refined] += 1
        found.append(math.prod(largest[one][depth] for one, depth in depths.items()))
    return found


def measured_of(made: Release) -> list[int]:
    """Number of measured nodes of each level; the level's answer contains all of them."""
    return [np.asarray(step.solution.x).size for step in made.steps]


def _prefixes(scales: list[float], nodes: list[int], beta: float) -> list[float]:
    return [error_bound_by_nodes(scales[:level], nodes[:level], beta) for level in range(len(nodes) + 1)]


def possible_nodes(data: Flows, order: list[str]) -> Iterator[int]:
    """Number of possible nodes of each level below the root, if the axes are refined in this order."""
    depths = dict.fromkeys(data.axis_names, 0)
    for name in order:
        depths[name] += 1
        sizes = [
            int(axis.tree.level_sizes[depths[n]]) for n, axis in zip(data.axis_names, data.axes, strict=True)
        ]
        yield int(np.prod(sizes))


class _Listening(SimulatedNoise):
    """Noise that records the true counts, so that false positives can be counted."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.true: list[Ints] = []

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `Noise.draw`."""
        self.true.append(true.copy())
        return super().draw(law, true)


DIAGONAL = ("InfTDA", "TDA_L2")
WHAT = ("max_error", "false_discovery_rate", "false_negative_rate", "trips_on_the_diagonal", "noisy_counts")


def without_diagonal(data: Flows) -> Flows:
    """The flows between different finest places."""
    apart = data.cells[:, 0] != data.cells[:, 1]
    return Flows(data.axes, data.axis_names, data.cells[apart], data.counts[apart])


def diagonal_rows(sets: Mapping[str, Flows], settings: Settings, seed: int) -> DataFrame:
    """Errors at the finest level with and without the declaration that the diagonal is 0."""
    cases = crossed(
        data=sets, method=DIAGONAL, epsilon=settings.sparse_epsilons, run=range(settings.sparse_runs)
    )
    apart = {name: without_diagonal(data) for name, data in sets.items()}
    return all_rows(_diagonal_rows, cases, "a zero diagonal", (apart, settings, seed))


def _diagonal_rows(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, method: str, epsilon: float, run: int
) -> list[Row]:
    data, found = sets[name], []
    truth, (one, other) = true_table(data), data.axis_names
    for zeros in (None, f"{one}={other}"):
        noise = noise_for(seed, "diagonal", name, epsilon, run)
        made = as_published(data, epsilon, settings.delta, noise, method, zeros=zeros)
        finest = made.table[made.table.level == made.table.level.max()]
        inside = int(finest[finest[one] == finest[other]]["count"].sum())
        cells = sum(measured_of(made))
        row: Row = {"declared": zeros is not None, WHAT[3]: inside, WHAT[4]: cells}
        found.append(row | errors_of(truth, made)[-1])
    return found


def diagonal_part(found: DataFrame) -> Part:
    """Means over runs, side by side."""
    by = ["data", "method", "epsilon", "declared"]
    table = found.groupby(by, sort=False)[list(WHAT)].mean().reset_index()
    table.insert(4, "runs", found.groupby(by, sort=False).size().to_numpy())
    texts = [
        "Data without the flows within a finest place. Declared: `--zero origin=destination` says so. The "
        "same seed for both; finest level."
    ]
    return Part("diagonal", "A zero diagonal (not in the paper)", texts, {"diagonal": table})


INVENTED = "#D55E00"


def planner(data: Flows, true: DataFrame, released: DataFrame, largest: int, said: str) -> list[Part]:
    """The three tables for trips between two axes of regions.

    - data: its axes: origin and destination, over the same hierarchy.
    - true, released: tables of all levels, in the form of a top-down release.
    - largest: rows of each table.
    - said: a sentence on the release's data and budget.
    """
    finest = _between(true, released, data, -1)
    coarse = _between(true, released, data, 1)
    return [
        _largest(finest, data, largest, said),
        _region(finest, data, largest, said),
        _matrix(coarse, data, said),
    ]


def _between(true: DataFrame, released: DataFrame, data: Flows, depth: int) -> DataFrame:
    """Flows between regions of one level, side by side."""
    sides = [
        table[(table["origin_level"] == data.axes[0].levels[depth])
              & (table["destination_level"] == data.axes[1].levels[depth])]
        for table in (true, released)
    ]  # fmt: skip
    return metrics.joined_cells(*sides)


def _largest(flows: DataFrame, data: Flows, most: int, said: str) -> Part:
    within = flows["origin"] == flows["destination"]
    frames = {
        "largest_within": _shown(metrics.largest_cells(flows[within], most), data),
        "largest_between": _shown(metrics.largest_cells(flows[~within], most), data),
    }
    texts = [f"{said} The largest true flows within a region and between two, with their released ranks."]
    return Part("largest", "The largest flows", texts, frames)


def _region(flows: DataFrame, data: Flows, most: int, said: str) -> Part:
    """The flows to the destination with the most trips from other regions."""
    between = flows[flows["origin"] != flows["destination"]]
    busiest = str(between.groupby("destination")["true"].sum().idxmax())
    here = flows[flows["destination"] == busiest]
    lost = (here["released"] == 0) & (here["true"] > 0)
    sizes = pd.cut(here["true"], [-1, 0, 9, 99, 999, 9_999, np.inf],
                   labels=["none", "1–9", "10–99", "100–999", "1,000–9,999", "10,000 and more"])  # fmt: skip
    errors = here.assign(missing=lost, error=(here["released"] - here["true"]).abs())
    by_size = errors.groupby(sizes.rename("true_flow"), observed=True).agg(
        flows=("true", "size"), true=("true", "sum"), released=("released", "sum"),
        missing=("missing", "sum"), largest_error=("error", "max"),
    )  # fmt: skip
    by_size = by_size.reset_index().astype({"true_flow": str})
    texts = [
        f"{said} All trips to {_name(busiest, data)}, the destination of the most trips from other regions: "
        f"{here['true'].sum():,} in truth, {here['released'].sum():,} released; from "
        f"{(here['true'] > 0).sum():,} origins in truth, {(here['released'] > 0).sum():,} released."
    ]
    frames = {"region_by_size": by_size, "region_largest": _shown(metrics.largest_cells(here, most), data)}
    return Part("region", "The flows of one region", texts, frames)


def _matrix(flows: DataFrame, data: Flows, said: str) -> Part:
    names = [str(name) for name in data.axes[0].names[1]]
    if set(names) <= set(STATES):
        names = [code for code in STATES if code in names]
    true, released = (_square(flows, names, side) for side in ("true", "released"))
    invented, missing = (released > 0) & (true == 0), (released == 0) & (true > 0)
    relative = np.abs(released - true) / np.maximum(true, 1)
    labels = [STATES.get(name, name) for name in names]
    drawn, panels = plots.figure(15.5, 5.6, panels=3)
    top = float(max(true.max(), released.max(), 2))
    for axes, values, title in zip(panels, (true, released), ("true", "released"), strict=False):
        image = _image(axes, values, labels, title, "viridis_r", 1, top)
    drawn.colorbar(image, ax=panels[:2], shrink=0.7, pad=0.01, label="trips (white: none)")
    exact = (true > 0) & (relative == 0)
    image = _image(panels[2], np.where(true > 0, np.maximum(relative, 1e-6), 0), labels,
                         "relative error", "cividis", 1e-4, 1)  # fmt: skip
    drawn.colorbar(
        image, ax=panels[2], shrink=0.7, pad=0.01, label="|released − true| / true (white: no true flow)"
    )
    rows, columns = np.nonzero(invented)
    panels[2].plot(columns, rows, "x", color=INVENTED, markersize=3, label=f"invented ({invented.sum():,})")
    panels[2].legend(loc="upper left", bbox_to_anchor=(0, -0.12), frameon=False, fontsize=8)
    for axes in panels:
        axes.set_ylabel("from")
        axes.set_xlabel("to")
    texts = [
        f"{said} {true.size:,} flows between {len(names)} regions; {int((true > 0).sum()):,} have trips. "
        f"{int(missing.sum())} of these are missing in the release, {int(invented.sum())} are released "
        f"although truly empty, {int(exact.sum())} are exact. The median relative error of a true flow is "
        f"{float(np.median(relative[true > 0])):.2%}, of a flow of 1,000 trips or more "
        f"{_median(relative[true >= 1000])}."
    ]
    return Part("matrix", "Who goes where: true against released", texts, {}, drawn)


def _median(values: NDArray[np.float64]) -> str:
    return f"{float(np.median(values)):.2%}" if values.size else "(there is none)"


def _square(flows: DataFrame, names: list[str], side: str) -> NDArray[np.int64]:
    table = flows.pivot_table(index="origin", columns="destination", values=side, aggfunc="sum", fill_value=0)
    return np.asarray(table.reindex(index=names, columns=names, fill_value=0), dtype=np.int64)


def _shown(flows: DataFrame, data: Flows) -> DataFrame:
    ends = {end: [_name(str(name), data) for name in flows[end]] for end in ("origin", "destination")}
    columns = ["origin", "destination", "true", "released", "error", "error_percent", "released_rank"]
    return flows.assign(**ends, error_percent=(100 * flows["relative_error"]).round(3) + 0.0)[columns]


def _name(region: str, data: Flows) -> str:
    """The name of a finest region, with its state if it is in the United States."""
    state = STATES.get(region[:2])
    return f"{region} ({state})" if state and data.axes[0].levels[0] == "nation" else region


def _image(
    axes: Any, values: Any, labels: list[str], title: str, colours: str, least: float, most: float
) -> Any:
    """A matrix as an image with a log colour scale; values that are not positive are white."""
    from matplotlib.colors import LogNorm

    shown = np.ma.masked_where(~(np.asarray(values, dtype=float) > 0), values)
    image = axes.imshow(shown, norm=LogNorm(least, most, clip=True), cmap=colours, interpolation="nearest")
    places = np.arange(len(labels))
    size = min(7.0, 250 / max(1, len(labels)))
    axes.set_xticks(places, labels, rotation=90, fontsize=size)
    axes.set_yticks(places, labels, fontsize=size)
    axes.tick_params(length=0, pad=1)
    axes.grid(visible=False)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    return image


ORDER = ("InfTDA", "TDA_L2", "TDA", "TDA_inf", "VanillaGauss", "SH", EXACT, "InfTDA_large")
"""The colour and marker of each method, the same in every figure."""

NAMES = {"TDA_L2": "TDA$_{L2}$", "TDA_inf": "TDA$_\\infty$", "TDA": "TDA (two-phase)"}
METRICS = {
    "max_error": "largest error (trips)",
    "false_discovery_rate": "false discovery rate",
    "false_negative_rate": "false negatives (share)",
}


def about(sets: Mapping[str, Flows]) -> Part:
    """Statistics of the data, beside Table 1."""
    rows = []
    for name, data in sets.items():
        users, pairs = USERS.get(name, (None, None))
        rows.append(
            {
                "data": name, "areas": ", ".join(f"{n:,}" for n in data.axes[0].tree.level_sizes),
                "trips": data.total, "published_trips": f"{users:,}" if users else "",
                "pairs_with_trips": data.counts.size, "published_pairs": f"{pairs:,}" if pairs else "",
                "share_of_pairs": data.counts.size / data.axes[0].names[-1].size ** 2,
                "largest_flow": int(data.counts.max()),
            }
        )  # fmt: skip
    texts = ["The paper's six synthetic sets, drawn again from its seed; “drawn” ones have Pareto(1) flows."]
    return Part("data", "Table 1: the data", texts, {"data": pd.DataFrame(rows)})


def figures(runs: DataFrame, settings: Settings, real: Iterable[str]) -> list[Part]:
    """Figures 3 to 5: metrics by level of the tree."""
    means = f"By level of the tree, means of {settings.runs} runs with bars from the least to the largest. "
    bound = f"The dotted line bounds InfTDA's error with probability {1 - settings.beta:g}. "
    drawn = [name for name in dict.fromkeys(runs.data) if name not in REAL]
    sparse = [name for name in dict.fromkeys(runs.data) if "sparse" in name]
    made = [
        _figure("figure3", "Figure 3: real data", runs, [name], [*METRICS], settings,
                f"{means}{bound}In the tables, each column is a level.")
        for name in real
    ]  # fmt: skip
    return [
        *made,
        _figure("figure4", "Figure 4: largest error on synthetic data", runs, drawn, ["max_error"], settings,
                f"{means}Each column of the tables is a level; the data sets are in the order of the "
                "figure."),
        _figure("figure5", "Figure 5: false discoveries on sparse data", runs, sparse, [*METRICS][1:],
                settings, "The share of released cells that are truly empty, and the share of truly positive "
                "cells that the release misses (not in the paper). Methods trade one for the other."),
    ]  # fmt: skip


REAL = ("commuting", "Italy")
CASE = ["data", "method", "epsilon"]


def _figure(
    name: str, title: str, runs: DataFrame, sets: Sequence[str], metrics: Sequence[str], settings: Settings,
    text: str,
) -> Part:  # fmt: skip
    panels, frames = list(product(sets, metrics)), {}
    for one, metric in panels:
        of = ["" if one in REAL else f"_{_file(one)}", f"_{metric}" if len(metrics) > 1 else ""]
        frames[name + "".join(of)] = by_level(runs[runs.data == one], metric)
    return Part(name, title, [text], frames, _grid(runs, panels, settings))


def figure_6(runs: DataFrame, exact: DataFrame, settings: Settings) -> Part:
    """Time."""
    first = pd.concat([runs[runs.level == 0], exact])
    table = first.groupby(CASE, sort=False).seconds.agg(["median", "min", "max", "size"])
    table = table.rename(columns={"median": "median_seconds", "size": "runs"}).reset_index()
    known = authors_results().rename(columns={"seconds": "published_seconds"})
    table = table.merge(known[[*CASE, "published_seconds"]], "left", CASE)
    names = list(dict.fromkeys(first.data))
    drawn, panels, _ = plots.grid(len(names), 4, 3.1, 2.7)
    for axes, name in zip(panels, names, strict=True):
        for method, mine in first[first.data == name].groupby("method", sort=False):
            _line(axes, str(method), mine.groupby("epsilon").seconds, "median")
        plots.label(axes, name, "ε", log="xy", ticks=first.epsilon)
        axes.tick_params(labelsize=7)
    panels[0].set_ylabel("seconds")
    plots.below(drawn, panels, 6)
    texts = [
        "From the data in memory to the table of all levels, proofs included, with simulated noise unless "
        "noted. Published: the authors' Python on 8 cores at 3.9 GHz, with exact noise."
    ]
    if absent := _absent(runs, settings):
        texts.append(
            f"Left out as too large (VanillaGauss beyond {settings.most_pairs:,} possible pairs, TDA_∞ "
            f"beyond {settings.most_positive:,} with trips), or stopped after {settings.time_limit:g} s for "
            f"one program: {'; '.join(absent)}."
        )
    frames = {"figure6": table} | ({"exact_noise": exact} if len(exact) else {})
    return Part("figure6", "Figure 6: time", texts, frames, drawn)


def finest(runs: DataFrame, same: DataFrame) -> Part:
    """The finest level, beside the authors' result files."""
    here = runs[runs.level == runs.groupby("data")["level"].transform("max")].groupby(CASE, sort=False)
    metrics = list(METRICS)
    table = here.size().rename("runs").reset_index()
    again = same.groupby(CASE)[metrics].mean().add_prefix("same_noise_").reset_index()
    known = (
        authors_results()
        .drop(columns="seconds")
        .rename(columns=lambda name: name if name in CASE else f"published_{name}")
    )
    for more in (here[metrics].mean().reset_index(), again, known):
        table = table.merge(more, "left", CASE)
    order = [f"{kind}{metric}" for metric in metrics for kind in ("", "same_noise_", "published_")]
    table = table[[*CASE, "runs", *order]]
    texts = [
        "Means at the finest level. Same noise: with the budgets that the authors' programs spent (half of "
        "ρ; √2·ε for SH). Agreement: ratios of ours to theirs, and largest differences of shares."
    ]
    frames = {"finest": table, "agreement": agreement(table)}
    return Part("finest", "Beside the authors' results", texts, frames)


def agreement(table: DataFrame) -> DataFrame:
    """Ratios of largest errors, and differences of shares, to the published means."""

    def compared(here: DataFrame) -> dict[str, Any]:
        row: dict[str, Any] = {"means": len(here)}
        for budget, noise in (("whole", ""), ("their", "same_noise_")):
            ratio = here[f"{noise}max_error"] / here.published_max_error
            for statistic in ("median", "min", "max") if ratio.notna().any() else ():
                row[f"{budget}_budget_{statistic}"] = round(ratio.agg(statistic), 2)
        for metric in list(METRICS)[1:]:
            away = (here[f"same_noise_{metric}"] - here[f"published_{metric}"]).abs().max()
            row[f"their_budget_{metric}"] = away
        return row

    return summed_up(table[table.published_max_error.notna()], ["method"], compared)


def italy_part(same: DataFrame) -> Part:
    """The authors' results on Italy, beside ours on the commuters with the same budgets."""
    metrics = list(METRICS)
    ours = same[same.data == "commuting"].groupby(["method", "epsilon"])[metrics].mean()
    theirs = authors_results().query("data == 'Italy'").set_index(["method", "epsilon"])[metrics]
    both = theirs.add_prefix("Italy_published_").join(ours.add_prefix("commuters_"))
    order = [f"{kind}{metric}" for metric in metrics for kind in ("Italy_published_", "commuters_")]
    texts = ["Finest level, with the budgets that the authors' programs spent."]
    frames = {"italy": both[order].reset_index()}
    return Part("italy", "Italy, published, beside the commuters", texts, frames)


def utility(runs: DataFrame, settings: Settings) -> Part:
    """Every run against the utility theorem."""
    here = runs[runs.method.isin(CHEBYSHEV) & (runs.level > 0)]

    def compared(mine: DataFrame) -> dict[str, Any]:
        row = {"runs": mine.groupby("method").run.nunique().sum(), "levels_of_runs": len(mine)}
        finest = mine[mine.level == mine.level.max()]
        for bound in ("theorem", "bound_possible", "bound_measured"):
            row[f"{bound}_fails"] = int((mine.max_error > mine[bound]).sum())
            row[f"{bound}_largest_ratio"] = (mine.max_error / mine[bound]).max()
            row[f"{bound}_finest"] = round(finest[bound].mean())
        return row | {"largest_error_finest": finest.max_error.max()}

    texts = [
        f"Each level of each run of {' and '.join(CHEBYSHEV)} against three bounds, each of which may fail "
        f"with probability β = {settings.beta:g}: Theorem 4 with the largest number of children as b, and "
        "unions over the possible and over the measured nodes of each level. The second table: the baselines "
        "against Proposition 1; the most finest cells below a node stand for b^(T−ℓ)."
    ]
    frames = {"utility": summed_up(here, ["data", "epsilon"], compared)}
    if "proposition" in runs:
        frames["proposition"] = summed_up(runs[runs.method.isin(BASELINES)], CASE, _proposition)
    return Part("utility", "The utility theorem", texts, frames)


def _proposition(mine: DataFrame) -> dict[str, Any]:
    """Errors of a baseline over their bounds."""
    ratio = mine.max_error / mine.proposition
    row = {"levels_of_runs": len(mine), "fails": int((ratio > 1).sum()), "largest_ratio": ratio.max()}
    for end, there in {"root": mine.level == 0, "finest": mine.level == mine.level.max()}.items():
        row |= {f"{end}_bound": mine.proposition[there].max(), f"{end}_ratio": ratio[there].max()}
    return row


def fewest_part(found: DataFrame) -> Part:
    """IntOpt against the fewest positive counts."""
    groups = found.drop(columns="run").groupby(["data", "epsilon", "level"], sort=False)
    table = groups.mean().reset_index()
    table.insert(3, "runs", groups.size().to_numpy())
    kinds = ("positive", "false_positive", "false_negative")
    counts = [f"{kind}_{method}" for kind in kinds for method in ("IntOpt", "fewest")]
    texts = [
        "From the same noisy counts and parents at every level: totals over levels, ε and runs, and means by "
        "level, without those where IntOpt has no false positive. L1: the distance from the truth."
    ]
    frames = {
        "fewest": found.groupby("data", sort=False)[counts].sum().reset_index(),
        "fewest_by_level": table[table["false_positive_IntOpt"] > 0],
    }
    return Part("fewest", "Fewest false positives: IntOpt against the optimum", texts, frames)


def by_level(runs: DataFrame, metric: str) -> DataFrame:
    """Means over runs: one row per method and ε, one column per level."""
    table = runs[runs.level > 0].pivot_table(
        index=["method", "epsilon"], columns="level", values=metric, aggfunc="mean", sort=False
    )
    return table.rename(columns=str).rename_axis(columns=None).reset_index()


def _grid(runs: DataFrame, panels: Sequence[tuple[str, str]], settings: Settings) -> Any:
    """One row per data set and metric, one column per ε."""
    columns = len(settings.epsilons)
    drawn, cells = plots.figure(3.6 * columns + 1.3, 2.5 * len(panels), panels=columns, rows=len(panels))
    for k, axes in enumerate(cells):
        (name, metric), epsilon = panels[k // columns], settings.epsilons[k % columns]
        here = runs[(runs.data == name) & (runs.epsilon == epsilon) & (runs.level > 0)]
        for method, mine in here.groupby("method", sort=False):
            _line(axes, str(method), mine.groupby("level")[metric])
        if metric == "max_error":
            bound = here[here.method == "InfTDA"].groupby("level").bound_measured.mean()
            axes.plot(bound.index, bound, ":", color=plots.COLOURS[0], linewidth=1.2)
        else:
            axes.set_ylim(-0.03, 1.03)
        below, left = "level" * (k >= len(cells) - columns), METRICS[metric] * (k % columns == 0)
        log = "y" * (metric == "max_error")
        plots.label(axes, f"{name}, ε = {epsilon:g}", below, left, log, here.level)
        axes.tick_params(labelsize=7)
    plots.below(drawn, cells, 6)
    return drawn


def _line(axes: Any, method: str, groups: Any, centre: str = "mean") -> None:
    place = ORDER.index(method)
    style = {"markersize": 3.5, "zorder": 3 + len(ORDER) - place}  # the first on top
    plots.line(axes, groups, NAMES.get(method, method), place, centre, **style)


def _absent(runs: DataFrame, settings: Settings) -> list[str]:
    """Methods with the data sets for which they have no run at some ε."""
    there = set(zip(runs.data, runs.method, runs.epsilon, strict=True))
    found = []
    for method in settings.methods:
        names = dict.fromkeys(runs.data)
        without = [n for n in names if any((n, method, e) not in there for e in settings.epsilons)]
        if without:
            found.append(f"{method} on {', '.join(without)}")
    return found


def _file(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``us-commuting-2009-2013.parquet`` (see `hierdp.data.commuting`), or the paper's
    own file (see `hierdp.data.italy`); without either, the last synthetic set is used instead. The same seed
    gives the same numbers, except times.
    """
    sets: dict[str, Flows] = {name: published(name) for name in settings.sets}
    sets |= {f"{name}, drawn": drawn(name, seed) for name in settings.drawn}
    sparse = {name: flows for name, flows in sets.items() if "sparse" in name}
    real = real_data(data)
    sets |= real
    sparse |= real
    runs = accuracy(sets, settings, seed)
    known = {name: sets[name] for name in settings.sets} | real
    same = as_the_authors(known, settings, seed)
    shown = list(sets)[-1]
    made = [
        about(sets),
        *figures(runs, settings, real),
        figure_6(runs, exact_seconds(sets, settings), settings),
        finest(runs, same),
        *([italy_part(same)] if "commuting" in real else []),
        utility(runs, settings),
        fewest_part(fewest(sparse, settings, seed)),
        diagonal_part(diagonal_rows(sparse, settings, seed)),
        *planned(shown, sets[shown], settings, seed),
    ]
    return Study("Boninsegna & Silvestri 2025, reproduced", made, said(settings, seed, sets))


def real_data(data: Path | None) -> dict[str, Flows]:
    """Italy's commuters if `data` is a file, those of the United States if it is a folder that has them."""
    if data is not None and data.is_file():
        return {"Italy": italy(data)}
    there = present(data, FILE)
    return {"commuting": commuting(there)} if there else {}


def drawn(name: str, seed: int) -> Flows:
    """Draw a data set of one kind from a seed, with the paper's numbers of levels and Pareto(1) flows."""
    partition, filled = name.split()
    areas = binary_areas() if partition == "binary" else random_areas(seed)
    return trips(areas, SHARES[filled], seed)


def planned(name: str, data: Flows, settings: Settings, seed: int) -> list[Part]:
    """Tables for planners, from one release by InfTDA at the middle ε."""
    epsilon = settings.epsilons[len(settings.epsilons) // 2]
    noise = noise_for(seed, name, epsilon, 0)
    made = top_down(data, epsilon, settings.delta, noise, "InfTDA", conversion=PAPERS)
    caption = f"InfTDA on {name}, ε = {epsilon:g}, δ = {settings.delta:g}, one run."
    return planner(data, true_table(data), made.table, settings.largest, caption)
