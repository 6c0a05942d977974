"""How often intervals cover the true counts of public data, and how wide they are, by size of the true count.

The data are the commuters of New England (two axes, by state and county), the precincts of four states (group
by age), the taxis of Manhattan (groups by size, also as count-of-counts), and histograms of DPBench by
clusters. Each is released many times with simulated noise. A row is a data set, a method, a level and a class
of true counts. The methods are:

- measured: ``hierdp query --confidence``, at most `EACH` counts of each class, level and release of flows,
  count-of-counts and clusters
- rows: of flows and count-of-counts, those of the rows of the release, which depend on the noise
- all together: ``--simultaneous``, of all rows, or of all counts; a count of these is a release
- linear programs: ``--method linear-programs``, and on the same counts "measured, the same counts"
- AMC: approximate Monte Carlo, the Census Bureau's parametric bootstrap (arXiv 2503.19714)
- SEA BLUE z, t, order: Awan et al.'s three intervals (arXiv 2409.04387) around the best linear unbiased
  estimate: with its exact variance, with one of 20 simulations, and with their order statistics
- posterior: the shortest of samples by Gibbs of counts of at least 0, all equally likely before

The counts of a class are not independent, as siblings share noise above them; their number says how many
there were. The rivals take longer, so they have fewer releases.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import t as student

from benchmarks.measuring import DATA, data_file
from hierdp import Hierarchy, Numbers, SimulatedNoise
from hierdp.counts.layout import Selection
from hierdp.counts.size_runs import SizeRuns
from hierdp.data.dpbench import dpbench
from hierdp.data.taxi import taxi
from hierdp.mechanisms.clustering.mechanism import clustering
from hierdp.mechanisms.count_of_counts import count_of_counts
from hierdp.mechanisms.group_size.mechanism import group_size
from hierdp.mechanisms.intervals import RowIntervals, each_miss, half_widths
from hierdp.mechanisms.registry import released_by
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import counts_in
from hierdp.mechanisms.tabulation.tree_estimate import FIXED
from hierdp.mechanisms.top_down.mechanism import top_down, true_table
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC
from hierdp.privacy.noise import gaussian, geometric
from hierdp.questions.intervals import METHODS, accuracy_of
from hierdp.record.release import Release
from hierdp.record.step import Step
from hierdp.record.written import ReleaseFolder
from hierdp.tables import Axis, GroupSizes, flows
from hierdp.tables.binning import Histogram
from hierdp.tables.tabulated import cross_table
from models import BlockInference, Workload
from solvers import fast

NEW_ENGLAND = {"23", "33", "50", "25", "44", "09"}
STATES = ("DE", "RI", "VT", "NM")
CLASSES = (0, 1, 10, 100, 1_000)
"""The least true counts of the classes."""

CONFIDENCES = (0.9, 0.95)

TOGETHER = "all together"

LADDER = (0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
"""The confidences of methods that may cover too rarely: at one of them they cover often enough."""

REPLICATES = 25
"""Second releases of a release; the Census Bureau has as many."""

SIMULATIONS = 20
"""Simulated errors for the variances of SEA BLUE, as its code has."""

RANGE = 50
"""The number of sizes of a range."""

EACH = 25
"""The most counts of a class and level of a release whose intervals are made, one by one."""

SWEEPS, KEPT = 600, 200
"""Of the posterior: rounds through all counts, of which the first third is dropped; samples that are kept."""

Counts = Mapping[str, Any]
"""By level, all counts in a fixed order."""


class Linear(NamedTuple):
    """All measurements of a release, and how its counts follow from the cells of all nodes."""

    model: BlockInference
    shown: Callable[[Any], Counts]
    """From an array, shape (nodes, cells)."""
    first: Callable[[str], Any]
    """Of a level, the cells of its first count, shape (cells,); the noise of all others is alike."""
    nodes: Callable[[str], slice]
    noise: str
    draw: Callable[[int], Any]
    """The noise of a run, shape (nodes, answers)."""


class Case(NamedTuple):
    """A data set and a mechanism."""

    name: str
    release: Callable[[int], Release]
    counts: Callable[[Any], Counts]
    """Of a table; of None, the true ones."""
    question: Callable[[str, int], Any]
    """A Selection; of a histogram, the first bin of a box and the one after its last, along each axis."""
    again: Callable[[Release, int], Any] | None = None
    """The table of a second release."""
    linear: Callable[[Any], Linear] | None = None
    sampled: bool = True
    """Whether the model's variables are counts of at least 0, which the posterior draws."""
    sums: int = 1
    """The number of levels, the last ones, that are sums of rows."""


def commuters(folder: Path) -> Iterator[Case]:
    """Flows, at two budgets."""
    rows = pd.read_parquet(data_file(folder, "us-commuting-2009-2013.parquet"))
    rows = rows[rows["origin_state"].isin(NEW_ENGLAND) & rows["dest_state"].isin(NEW_ENGLAND)]
    both = {
        level: np.concatenate([rows[f"{end}_{level}"] for end in ("origin", "dest")])
        for level in ("state", "county")
    }
    places = Hierarchy.from_columns(both, ["state", "county"])
    axes = {"origin": (places, "origin_county"), "destination": (places, "dest_county")}
    data = flows(rows, axes=axes, count="workers")
    depths = {0: (0, 0), 1: (0, 1), 2: (1, 1), 3: (1, 2), 4: (2, 2)}
    shape = {level: tuple(places.names[d].size for d in of) for level, of in depths.items()}
    named = {f"{places.levels[a]} × {places.levels[b]}": k for k, (a, b) in depths.items() if k}
    origins = f"workers by {places.levels[2]} of origin"

    def counts(table: pd.DataFrame | None) -> Counts:
        table, found = true_table(data) if table is None else table, {}
        for name, level in named.items():
            here, held = table[table["level"] == level], np.zeros(shape[level])
            at = [
                pd.Index(places.names[d]).get_indexer(pd.Index(here[axis]))
                for d, axis in zip(depths[level], ("origin", "destination"), strict=True)
            ]
            held[at[0], at[1]] = here["count"]
            found[name] = held.ravel()
        return {**found, origins: found[name].reshape(shape[4]).sum(axis=1)}

    def question(name: str, at: int) -> Selection:
        level = named.get(name, 4)
        masks = [np.zeros(n, bool) for n in shape[level]]
        if name == origins:
            masks[0][at], masks[1][:] = True, True
        else:
            for mask, place in zip(masks, np.unravel_index(at, shape[level]), strict=True):
                mask[place] = True
        return Selection(level, {"origin": masks[0], "destination": masks[1]}, {})

    for epsilon in (1.0, 0.1):

        def release(run: int, epsilon: float = epsilon) -> Release:
            return top_down(data, epsilon, 1e-8, SimulatedNoise(run), "InfTDA")

        yield Case(f"commuters of New England, ε = {epsilon:g}", release, counts, question, _again)


def precincts(folder: Path) -> Iterator[Case]:
    """Persons by precinct, group and age."""
    every = pd.read_parquet(data_file(folder, "us-precincts-2020.parquet"))
    for state in STATES:
        yield _state(state, every[every["state"] == state])


def _state(state: str, rows: pd.DataFrame) -> Case:
    plan = plan_of({"attributes": {name: sorted(rows[name].unique()) for name in ("group", "age")}})
    data = cross_table(
        rows, axis=Axis.of(["county", "precinct"]), attributes=plan.attributes, count="persons"
    )
    tree, queries = data.hierarchy.tree, Queries(plan)
    everywhere = np.asarray(tree.sum_up(data.counts))
    levels = list(data.hierarchy.levels)
    groups = [str(name) for name in plan.attributes["group"] or ()]
    ages = [str(name) for name in plan.attributes["age"] or ()]

    def shown(held: Any) -> Counts:
        found: dict[str, Any] = {}
        for k, name in enumerate(levels):
            shaped = np.asarray(held[tree.nodes_of(k)], float).reshape(-1, len(groups), len(ages))
            found[f"{name}: group × age"] = shaped.ravel()
            found[f"{name}: group"] = shaped.sum(axis=2).ravel()
        return found

    def counts(table: pd.DataFrame | None) -> Counts:
        if table is None:
            return shown(everywhere)
        return shown(np.concatenate(counts_in(table, queries, data.hierarchy)))

    def first(name: str) -> Any:
        return np.arange(len(groups) * len(ages)) < (1 if name.endswith("age") else len(ages))

    def linear(source: Any) -> Linear:
        return Linear(
            source.model,
            shown,
            first,
            lambda name: tree.nodes_of(levels.index(name.split(": ")[0])),
            GAUSSIAN,
            partial(_gaussian, source.model),
        )

    def question(name: str, at: int) -> Selection:
        level, query = name.split(": ")
        number = levels.index(level)
        region = np.zeros(int(tree.level_sizes[number]), bool)
        if query == "group":
            place, group = divmod(at, len(groups))
            chosen = {"group": [groups[group]]}
        else:
            place, cell = divmod(at, len(groups) * len(ages))
            chosen = {"group": [groups[cell // len(ages)]], "age": [ages[cell % len(ages)]]}
        region[place] = True
        return Selection(number, {"region": region}, chosen)

    def release(run: int) -> Release:
        return tabulate(data, plan, 2.0, 1e-10, SimulatedNoise(run), "BlueDown")

    return Case(f"precincts of {state}, ε = 2", release, counts, question, _again, linear)


def taxis(folder: Path) -> Iterator[Case]:
    """Taxis by pickups."""
    data = taxi(folder / "taxi")
    places, sizes = data.hierarchy, data.counts.shape[1]
    tree, levels = places.tree, list(places.levels)

    def shown(held: Any) -> Counts:
        return {name: np.asarray(held[tree.nodes_of(k)], float).ravel() for k, name in enumerate(levels)}

    def counts(table: Any) -> Counts:
        return shown(data.counts if table is None else table.counts)

    def question(name: str, at: int) -> Selection:
        number = levels.index(name)
        region = np.zeros(int(tree.level_sizes[number]), bool)
        place, size = divmod(at, sizes)
        region[place] = True
        return Selection(number, {"region": region}, {"size": [str(size)]})

    for method in ("M_H^dp", "M_c^dp"):

        def release(run: int, method: str = method) -> Release:
            return group_size(data, 1.0, SimulatedNoise(run), method)

        def again(made: Release, seed: int, method: str = method) -> Any:
            released = GroupSizes(places, np.asarray(made.counts.counts))
            return group_size(released, 1.0, SimulatedNoise(seed), method).counts

        cumulative = method == "M_c^dp"

        def linear(source: Any, cumulative: bool = cumulative) -> Linear:
            each = 1 / source._variance[tree.level_start[:-1]]
            model = BlockInference(tree, Workload.marginals((sizes,), [(0,)]), source._noisy, each[:, None])
            scale = next(iter(source.release.measurements)).spend.scale
            return Linear(
                model,
                lambda held: shown(np.diff(held, axis=1, prepend=0.0) if cumulative else held),
                lambda _: (np.arange(sizes) < 2) * 1.0 if cumulative else (np.arange(sizes) < 1) * 1.0,
                lambda name: tree.nodes_of(levels.index(name)),
                GEOMETRIC,
                partial(_geometric, scale, (tree.size, sizes)),
            )

        yield Case(
            f"taxis of Manhattan, ε = 1, {method}", release, counts, question, again, linear, not cumulative
        )


def cumulative(folder: Path) -> Iterator[Case]:
    """Taxis by pickups, as count-of-counts; the last level is of ranges of sizes."""
    data = taxi(folder / "taxi")
    places, sizes = data.hierarchy, RANGE * math.ceil(data.counts.shape[1] / RANGE)
    tree, levels = places.tree, list(places.levels)
    dense = np.zeros((tree.size, sizes))
    dense[:, : data.counts.shape[1]] = data.counts
    ranges = f"{levels[-1]}, {RANGE} sizes"

    def counts(table: pd.DataFrame | None) -> Counts:
        held = dense
        if table is not None:
            held = np.zeros(dense.shape)
            value = table["count" if "count" in table else "groups"]
            for number in range(len(levels)):
                here = table["level"] == number
                at = pd.Index(places.names[number]).get_indexer(pd.Index(table["region"][here]))
                held[at + int(tree.level_start[number]), table["size"][here]] = value[here]
        last = held[tree.nodes_of(len(levels) - 1)].reshape(-1, sizes // RANGE, RANGE)
        found = {name: held[tree.nodes_of(k)].ravel() for k, name in enumerate(levels)}
        return {**found, ranges: last.sum(axis=2).ravel()}

    def question(name: str, at: int) -> Selection:
        number, width = (len(levels) - 1, RANGE) if name == ranges else (levels.index(name), 1)
        region = np.zeros(int(tree.level_sizes[number]), bool)
        place, first = divmod(at, sizes // width)
        region[place] = True
        named = [str(size) for size in range(first * width, (first + 1) * width)]
        return Selection(number, {"region": region}, {"size": named})

    for method in ("Hc", "Hg", "naive"):

        def release(run: int, method: str = method) -> Release:
            return count_of_counts(SizeRuns.of(data), 1.0, SimulatedNoise(run), method, max_size=sizes - 1)

        yield Case(f"taxis of Manhattan, ε = 1, {method}", release, counts, question)


def clusters(folder: Path) -> Iterator[Case]:
    """Histograms of 4,096 bins, on one axis and on two."""
    of = {
        name: (dpbench(folder / "dpbench", name), {f"{n} bins": n for n in (1, 16, 256)})
        for name in ("INCOME", "NETTRACE")
    }
    squares = dpbench(folder / "dpbench", "GOWALLA-2D").reshape(64, 4, 64, 4).sum(axis=(1, 3))
    of["GOWALLA-2D"] = squares, {f"{n} × {n} bins": n for n in (1, 4, 16)}
    for (name, (true, sides)), method in product(
        of.items(), ("AHP", "NF", "GS", "SF", "PHP", "PrivTree", "DAWA")
    ):
        yield _clusters(name, true, method, sides)


def _clusters(name: str, true: Any, method: str, sides: Mapping[str, int]) -> Case:
    axes = tuple(Numbers(f"axis {k}", 0, size, size) for k, size in enumerate(true.shape))
    data = Histogram(true, axes)

    def counts(table: Any) -> Counts:
        held = true if table is None else table["count"].to_numpy(float).reshape(true.shape)
        found = {}
        for level, side in sides.items():
            parts = [part for size in true.shape for part in (size // side, side)]
            found[level] = held.reshape(parts).sum(axis=tuple(range(1, len(parts), 2))).ravel()
        return found

    def question(level: str, at: int) -> tuple[Any, Any]:
        side = sides[level]
        low = np.array(np.unravel_index(at, [size // side for size in true.shape])) * side
        return low, low + side

    def release(run: int) -> Release:
        return clustering(data, 0.1, SimulatedNoise(run), method)

    return Case(f"{name}, ε = 0.1, {method}", release, counts, question, sums=3)


def _gaussian(model: BlockInference, run: int) -> Any:
    weights, source = _weights(model), SimulatedNoise(run)
    found = np.zeros((model.tree.size, model.workload.size))
    for level, row in enumerate(weights):
        nodes = model.tree.nodes_of(level)
        for weight in np.unique(row[(row > 0) & (row < 1 / FIXED)]):
            where, place = row == weight, found[nodes]
            drawn = source.draw(gaussian("", 1.0, weight / 2), np.zeros(place[:, where].shape, np.int64))
            place[:, where] = drawn.answers
    return found


def _geometric(scale: float, shape: tuple[int, int], run: int) -> Any:
    return SimulatedNoise(run).draw(geometric("", 1, 1 / scale), np.zeros(shape, np.int64)).answers


def _weights(model: BlockInference) -> Any:
    """The weight of each answer, shape (levels, answers)."""
    return np.asarray(model.workload.by_answer(np.asarray(model.data[1], float)), float)


def _again(made: Release, seed: int) -> Any:
    mechanism: Any = released_by(made.mechanism)
    return mechanism.bootstrap(made.table, made.manifest(), made.regions, SimulatedNoise(seed))


SETS = {
    "commuters": commuters,
    "precincts": precincts,
    "taxis": taxis,
    "count-of-counts": cumulative,
    "clusters": clusters,
}


def run(
    *,
    only: Annotated[tuple[str, ...], f"of: {', '.join(SETS)}"] = tuple(SETS),
    named: Annotated[str, "only data sets with this in their names"] = "",
    data: Annotated[Path, "a folder with the data"] = DATA,
    runs: Annotated[int, "releases"] = 200,
    replicated: Annotated[
        int, "releases of which AMC makes second ones; also for SEA BLUE and the posterior"
    ] = 3,
    programs: Annotated[int, "releases whose intervals are made by linear programs"] = 3,
) -> Iterator[dict[str, Any]]:
    for chosen in only:
        for case in SETS[chosen](data):
            if named not in case.name:
                continue
            truth = case.counts(None)
            for number, way in ((programs, _programs), (replicated, _amc)) if case.again else ():
                yield from _rows(case.name, number, truth, partial(way, case, truth))
            if case.linear is None:
                yield from _rows(case.name, runs, truth, partial(_measured, case, truth))
                continue
            yield from _rows(case.name, runs, truth, _all_measured(case, truth))
            for way in (_sea_blue, _posterior)[: 1 + case.sampled]:
                yield from _rows(case.name, replicated, truth, partial(way, case, truth))


def _written(made: Release) -> ReleaseFolder:
    return ReleaseFolder(made.manifest(), made.counts, dict(made.regions), made.measurements)


def source_of(made: Release) -> Any:
    mechanism: Any = released_by(made.mechanism)
    return mechanism.intervals_of(_written(made))


def _sampled(truth: Counts, run: int, most: int) -> Iterator[tuple[str, Any]]:
    """Some counts of each class and level."""
    rng = np.random.default_rng(run)
    for level, true in truth.items():
        classes = class_of(true)
        for each in np.unique(classes):
            there = np.flatnonzero(classes == each)
            yield level, np.sort(rng.choice(there, min(most, there.size), replace=False))


def _measured(case: Case, truth: Counts, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals of some counts of each class and level, and of all rows."""
    made = case.release(run)
    source = source_of(made)
    shown = [(level, np.flatnonzero(held)) for level, held in case.counts(made.table).items()]
    for together, confidence in product((False, True), CONFIDENCES):
        if case.sums == len(shown):
            break
        ends = source.rows(1 - confidence, together, Step.solve).ends()
        low, high = (case.counts(made.table.assign(count=end)) for end in ends)
        for level, at in shown[: len(shown) - case.sums]:
            yield TOGETHER if together else "rows", confidence, level, at, low[level][at], high[level][at]
    for level, at in _sampled(truth, run, EACH):
        asked = [case.question(level, int(one)) for one in at]
        for confidence in CONFIDENCES:
            if isinstance(asked[0], Selection):
                found = np.array([source.of(one, confidence) for one in asked])
            else:
                ends = np.array(asked)
                found = np.array(source.boxes(ends[:, 0], ends[:, 1], 1 - confidence))
            yield "measured", confidence, level, at, found[:, 0], found[:, 1]


def _all_measured(case: Case, truth: Counts) -> Callable[[int], Iterator[tuple[Any, ...]]]:
    """The intervals of all counts from linear measurements: runs share all but the noise.

    The first run's are compared with those of ``hierdp query`` for some counts.
    """
    assert case.linear is not None
    source = source_of(case.release(0))
    linear = case.linear(source)
    value, variance = _estimated(linear)
    number = sum(one.size for one in truth.values())
    halves = {
        (how, confidence, level): half_widths(
            variance[level], each_miss(1 - confidence, number, how == TOGETHER), [linear.noise]
        )
        for how, confidence, level in product(("measured", TOGETHER), CONFIDENCES, truth)
    }
    for level, at in _sampled(truth, 0, 3):
        ours = np.array(RowIntervals(value[level], halves["measured", 0.9, level]).ends())[:, at].T
        own = np.array([source.of(case.question(level, int(one)), 0.9) for one in at])
        assert np.abs(ours - own).max() <= 1, (level, ours, own)  # rounding at a whole number

    def intervals(run: int) -> Iterator[tuple[Any, ...]]:
        errors = errors_of(linear, linear.draw(run))
        for (how, confidence, level), half in halves.items():
            low, high = RowIntervals(truth[level] + errors[level], half).ends()
            yield how, confidence, level, np.arange(low.size), low, high

    return intervals


def errors_of(linear: Linear, noise: Any) -> Counts:
    """The errors of least squares: those of the noise alone, as they are linear."""
    model = linear.model
    return linear.shown(_least_squares(BlockInference(model.tree, model.workload, noise, model.data[1])))


def _estimated(linear: Linear) -> tuple[Counts, Counts]:
    """The best linear unbiased estimates of all counts, and their variances."""
    model = linear.model
    value = linear.shown(_least_squares(model))
    variance = {}
    for level, held in value.items():
        here = model.variance(linear.first(level))[linear.nodes(level)]
        variance[level] = np.repeat(here, held.size // here.size)
    return value, variance


def _least_squares(model: BlockInference) -> Any:
    return np.asarray(fast.answer(model)[0], float)


def _programs(case: Case, truth: Counts, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals by linear programs and by estimates, of a few counts."""
    there = _written(case.release(run))
    names = {METHODS[0]: "measured, the same counts", METHODS[1]: "linear programs"}
    for level, at in _sampled(truth, run, 5):
        chosen = [case.question(level, int(one)) for one in at]
        for method, name in names.items():
            found = accuracy_of(there, chosen, 0.9, method=method)
            yield name, 0.9, level, at, np.array(found["lower"]), np.array(found["upper"])


def _amc(case: Case, truth: Counts, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals of all counts, from second releases."""
    made = case.release(run)
    estimate = case.counts(made.counts)
    again: Any = case.again
    second = [case.counts(again(made, 1_000 * run + 100 + b)) for b in range(REPLICATES)]
    for level in truth:
        for confidence in LADDER:
            low, high = amc(estimate[level], np.array([one[level] for one in second]), confidence)
            yield "AMC", confidence, level, np.arange(low.size), low, high


def amc(released: Any, replicates: Any, confidence: float) -> tuple[Any, Any]:
    """The ends of approximate Monte Carlo intervals, as the Census Bureau's notebook computes them.

    A replicate is a release of the released counts. If the mean error of the replicates is large beside their
    standard deviation, the count is corrected by it, unless it is small. The interval is the count ± their
    root mean squared error times a quantile of Student's t with 5 degrees of freedom (Ashmead et al.,
    arXiv 2503.19714; github.com/uscensusbureau/AMC_Confidence_Intervals).

    Parameters
    ----------
    released : array, shape (counts,)
    replicates : array, shape (replicates, counts)
    confidence : float
    """
    released = np.asarray(released, float)
    bias, deviation = replicates.mean(axis=0) - released, replicates.std(axis=0, ddof=1)
    error = np.sqrt(((replicates - released) ** 2).mean(axis=0))
    large = (np.abs(bias) >= 0.5 * deviation) & (deviation > 0)
    corrected = (released > 5) & large & ((bias < 0) | (released >= 25))
    at, away = np.where(corrected, released - bias, released), student.ppf((1 + confidence) / 2, 5) * error
    return np.floor(np.maximum(at - away, 0)), np.ceil(at + away)


def _sea_blue(case: Case, truth: Counts, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals of all counts around the best linear unbiased estimate."""
    assert case.linear is not None
    linear = case.linear(source_of(case.release(run)))
    value, variance = _estimated(linear)
    errors = [errors_of(linear, linear.draw(1_000 * (run + 1) + k)) for k in range(SIMULATIONS)]
    for level in truth:
        away = np.sort(np.abs([one[level] for one in errors]), axis=0)
        for confidence in LADDER:
            tail = (1 + confidence) / 2
            widths = {
                "SEA BLUE z": float(ndtri(tail)) * np.sqrt(variance[level]),
                "SEA BLUE t": student.ppf(tail, SIMULATIONS) * np.sqrt((away**2).mean(axis=0)),
                "SEA BLUE order": away[math.ceil((SIMULATIONS - 1) * tail)],
            }
            for name, half in widths.items():
                low, high = RowIntervals(value[level], half).ends()
                yield name, confidence, level, np.arange(low.size), low, high


def _posterior(case: Case, truth: Counts, run: int) -> Iterator[tuple[Any, ...]]:
    """The shortest intervals of all counts that hold a share of the samples."""
    assert case.linear is not None
    linear = case.linear(source_of(case.release(run)))
    model = linear.model
    tree, workload = model.tree, model.workload
    start = np.maximum(_least_squares(model)[tree.leaves], 0.5)
    matrix = workload.matrix.tocsc()
    answers = np.array(
        [matrix.indices[matrix.indptr[c] : matrix.indptr[c + 1]] for c in range(workload.cells)]
    )
    weights = _weights(model)
    weights[weights >= 1 / FIXED] = 0  # the public total: with it, samples would hardly move
    left = np.asarray(model.data[0], float) - np.asarray(
        workload.answers(np.asarray(tree.sum_up(start))), float
    )
    above = np.array([_path(tree, int(leaf)) for leaf in tree.leaves])
    held = start.copy()
    samples: dict[str, list[Any]] = defaultdict(list)
    gap, rng = (SWEEPS - SWEEPS // 3) // KEPT, np.random.default_rng(run)
    _sweeps(rng, held, left, weights, answers, above, SWEEPS // 3)
    for _ in range(KEPT):
        _sweeps(rng, held, left, weights, answers, above, gap)
        for level, counts in linear.shown(np.asarray(tree.sum_up(held))).items():
            samples[level].append(counts.astype(np.float32))
    for level in truth:
        drawn = np.sort(samples[level], axis=0)
        for confidence in LADDER:
            many = min(KEPT - 1, math.ceil(confidence * KEPT))
            first = np.argmin(drawn[many:] - drawn[: KEPT - many], axis=0)
            at = np.arange(first.size)
            low, high = drawn[first, at], drawn[first + many, at]
            yield "posterior", confidence, level, at, np.floor(low), np.ceil(high)


def _path(tree: Any, leaf: int) -> list[int]:
    """The nodes from the root to a leaf."""
    found = [leaf]
    while found[-1]:
        found.append(int(tree.parent[found[-1]]))
    return found[::-1]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sweeps(rng: Any, held: Any, left: Any, weights: Any, answers: Any, above: Any, rounds: int) -> None:
    """Draw each cell of each leaf, given all others: a normal one of at least 0."""
    for _ in range(rounds):
        for i in range(held.shape[0]):
            for c in range(held.shape[1]):
                precision, pull = 0.0, 0.0
                for k in range(above.shape[1]):
                    for a in answers[c]:
                        precision += weights[k, a]
                        pull += weights[k, a] * left[above[i, k], a]
                deviation = 1 / np.sqrt(precision)
                mean = held[i, c] + pull / precision
                least = -mean / deviation
                if least < 0.5:
                    draw = rng.normal(0.0, 1.0)
                    while draw < least:
                        draw = rng.normal(0.0, 1.0)
                else:  # Robert 1995: exponential draws, some of them rejected
                    rate = (least + np.sqrt(least * least + 4)) / 2
                    draw = least + rng.exponential(1 / rate)
                    while rng.random() > np.exp(-((draw - rate) ** 2) / 2):
                        draw = least + rng.exponential(1 / rate)
                moved = max(0.0, mean + deviation * draw) - held[i, c]
                held[i, c] += moved
                for k in range(above.shape[1]):
                    for a in answers[c]:
                        left[above[i, k], a] -= moved


def _rows(name: str, runs: int, truth: Counts, intervals: Any) -> Iterator[dict[str, Any]]:
    found = defaultdict[tuple[str, float, str, int], list[Any]](list)
    for number in range(runs):
        together = defaultdict[float, list[Any]](list)
        for how, confidence, level, at, low, high in intervals(number):
            true = truth[level][at]
            hit, classes = (low <= true) & (true <= high), class_of(true)
            if how == TOGETHER:
                together[confidence].append((hit.all(), (high - low).mean(), hit.size))
                continue
            for one in np.unique(classes).tolist():
                part = classes == one
                held = part.sum(), hit[part].sum(), (high - low)[part].sum()
                found[how, confidence, level, one].append(held)
        for confidence, parts in together.items():
            hits, widths, sizes = zip(*parts, strict=True)
            found[TOGETHER, confidence, "all", 0].append((1, all(hits), np.average(widths, weights=sizes)))
    for (how, confidence, level, one), parts in sorted(found.items()):
        many, hits, width = np.sum(parts, axis=0)
        yield {
            "data": name,
            "interval": how,
            "confidence": confidence,
            "level": level,
            "least": CLASSES[one],
            "runs": runs,
            "counts": int(many),
            "covered": round(hits / many, 4),
            "width": round(width / many, 2),
        }


def class_of(counts: Any) -> Any:
    return np.searchsorted(CLASSES, counts, side="right") - 1


ENOUGH = 300
"""Classes of a level with fewer counts say little of a coverage near 90 %."""


def summary(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What each method covers, and how wide its intervals are where it covers often enough."""
    rows = rows.assign(data=rows["data"].str.replace(r"precincts of \w+", "precincts", regex=True))
    enough = rows[rows["counts"] >= ENOUGH]
    made = enough.groupby(["data", "interval", "confidence", "least"], sort=False).agg(
        levels=("level", "size"),
        least_covered=("covered", "min"),
        most_covered=("covered", "max"),
        width=("width", "median"),
    )
    made = made.reset_index()
    named = ("linear programs", "measured, the same counts")
    few = rows[rows["interval"].isin(named)].groupby(["data", "interval"], sort=False)
    return {
        "Coverage and width": made,
        "Width where 90 % are covered in every class": equal(made),
        "Linear programs": pd.DataFrame(
            [{"data": data, "interval": how, **_pooled(part)} for (data, how), part in few]
        ),
    }


def equal(made: pd.DataFrame) -> pd.DataFrame:
    """The widths at the least confidence with which all classes and levels are covered 88 % of the time."""
    found = []
    for (data, how), part in made.groupby(["data", "interval"], sort=False):
        covered = part.groupby("confidence")["least_covered"].min()
        first = covered[covered >= 0.88].index.min()
        widths = part[part["confidence"] == first].set_index("least")["width"]
        found.append({"data": data, "interval": how, "confidence": first, **widths})
    return pd.DataFrame(found)


def _pooled(part: pd.DataFrame) -> dict[str, Any]:
    """Of all counts of all classes and levels."""
    shares = part["counts"] / part["counts"].sum()
    held = {name: float((part[name] * shares).sum()) for name in ("covered", "width")}
    return {"counts": int(part["counts"].sum()), **held}
