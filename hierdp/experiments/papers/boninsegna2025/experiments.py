"""The runs, as rows of measurements that are not averaged."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.analysis.utility import (
    error_bound,
    error_bound_by_nodes,
    gauss_error_bound,
    stability_error_bound,
)
from hierdp.data.trips import binary_areas, trips
from hierdp.execution.resume import Row
from hierdp.experiments.papers.boninsegna2025 import authors
from hierdp.experiments.papers.boninsegna2025.settings import BASELINES, CHEBYSHEV, Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, seed_for
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.metrics import group_sizes as metrics
from hierdp.privacy import conversion, threshold
from hierdp.privacy.noise import Drawn, ExactNoise, Law, Noise, SimulatedNoise
from hierdp.privacy.threshold import Changes, papers_threshold
from hierdp.record.release import Release
from hierdp.record.step import NotSolved, Step
from hierdp.tables import Flows
from models import Chebyshev, SparsestChebyshev
from models.arithmetic.arrays import Ints
from models.segments import by_segment

if TYPE_CHECKING:
    from pandas import DataFrame

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
    cases = _cases(sets, [method for method in authors.SPENT if method in settings.methods], settings)
    return all_rows(_as_the_authors, cases, "with the authors' budgets", (sets, settings, seed))


def _as_the_authors(
    sets: Mapping[str, Flows], settings: Settings, seed: int, name: str, method: str, epsilon: float
) -> list[Row]:
    spent = authors.SPENT[method](epsilon, settings.delta)
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
