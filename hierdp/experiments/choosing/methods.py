"""All methods that answer one question, with simulated noise on a table that is not secret, and their errors.

Which methods there are follows from the registry of mechanisms, so that none can be left out; `NOT_FOR` names
those that do not release a kind of table.

Groups by size have two errors per region: the earth mover's distance of Kuo et al. 2018, and the L1 error of
the counts by size of Fioretto & Van Hentenryck 2019. Budgets are those of the whole release; groups may be
empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import Any, NamedTuple

import numpy as np

from hierdp.counts.axes import Names
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.mechanisms import count_of_counts, group_size
from hierdp.mechanisms.clustering import METHODS as CLUSTERINGS
from hierdp.mechanisms.count_of_counts.estimates import METHODS as ESTIMATES
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.mechanisms.description import BOTTOM_UP
from hierdp.mechanisms.group_size.post_processing import METHODS as BY_SIZE
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.range_query.answers import Covering
from hierdp.mechanisms.registry import MECHANISMS
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.tabulation import plan as tabulation_plan
from hierdp.mechanisms.tabulation import tabulate
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.mechanisms.top_down.levels import depths_of, refinements
from hierdp.metrics.group_sizes import top_down_errors
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import all_ranges_error, box_sums, prefix_sums
from hierdp.metrics.runs import earth_movers_runs
from hierdp.privacy.budget import GEOMETRIC
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import NotProved
from hierdp.tables import Flows, GroupSizes
from hierdp.tables.binning import Histogram
from hierdp.tables.tabulated import CrossTable
from models.arithmetic.arrays import Floats, Ints

ZCDP = ", zCDP"
"""Follows the names of methods with Gaussian noise that also have ε-DP."""

HALF = ", ε/2"
"""Follows the names of methods for flows that protect a trip that joins or leaves: replacing one is both."""

EMD, L1 = "entities to move", "counts by size, L1"
KLD, BINS, RANGES = "KLD", "squared error of a bin", "squared error of a range"

SIZES, OF_GROUPS = "they release sizes of groups", "they protect rows, not one entity of a group"

NOT_FOR: dict[str, dict[str, str]] = {
    "groups": dict.fromkeys(("top-down", "tabulation", "clustering", "range-query"), OF_GROUPS),
    "flows": dict.fromkeys(("group-size", "count-of-counts"), SIZES),
    "bins": {
        **dict.fromkeys(("group-size", "count-of-counts"), SIZES),
        **dict.fromkeys(("top-down", "tabulation"), "they have (ε, δ)-DP; bins are ranked under ε-DP"),
        **dict.fromkeys(("H_tree", "H_tree^c"), "they measure regions, which bins do not have"),
    },
}
"""The mechanisms, and methods of the others, that do not release a kind of table, and why."""

MOST = {
    "M_c": 1_000,
    "M_c^r": 200_000,
    "AHP-greedy": 20_000,
    "AHP-empirical": 100_000,
    "TDA_inf": 500,
    "Joint": 100,
    "SF": 4_096,
    "matrix": 256,
    "at once": 5_000,
}
"""The most cells that a slow method is simulated on: regions × sizes, flows, bins; "at once": true sizes."""

MOST_FLOWS = 200_000
"""The most possible flows for mechanisms that measure all of them."""

SAME = {"M_H": "M_H^dp", "M_dp^OP": "M_H^dp"}
"""Methods that solve the problem of another one by a slower solver: their errors are the same."""


@dataclass(frozen=True)
class Way:
    """A method with its options.

    - mechanism, method: as in the registry.
    - command: the arguments of `hierdp release` for them.
    - options: those that are not the defaults.
    - most: the most cells of a table that it is simulated on.
    """

    mechanism: str
    method: str
    command: str
    options: Mapping[str, Any] = field(default_factory=dict)
    most: float = math.inf


def _way(mechanism: str, method: str, /, **options: Any) -> Way:
    """A method; in `options`, its name may be a more special one."""
    name = options.get("method", method)
    words = {} if name == MECHANISMS[mechanism].methods[0].name else {"method": name}
    words |= {option: value for option, value in options.items() if option != "method"}
    given = [f"--{key} " + (f'"{value}"' if " " in value else value) for key, value in words.items()]
    most = MOST.get(options.get("merge", method), math.inf)
    return Way(mechanism, method, " ".join([mechanism, *given]), options, most)


def _all(mechanism: str, kind: str) -> dict[str, Way]:
    """The methods of a mechanism that release a kind of table."""
    names = (one.name for one in MECHANISMS[mechanism].methods)
    return {name: _way(mechanism, name) for name in names if name not in NOT_FOR[kind]}


def ways_of_groups(levels: int = 3) -> dict[str, Way]:
    """The methods for groups by size, by name, and two with other merges; "at once" is `TreeMatching`.

    Of those with a method for each level, all with Hc and Hg for up to three levels, those that change once
    from the top down for more.
    """
    most = 2 if levels > 3 else 3
    mixes = [mix for mix in product(("Hc", "Hg"), repeat=levels) if 1 < len([*groupby(mix)]) <= most]
    found: dict[str, Way] = {}
    for one in MECHANISMS["count-of-counts"].methods:
        if one.name == BOTTOM_UP:
            names = {f"{BOTTOM_UP} {each}": f"{BOTTOM_UP} {each}".removesuffix(" Hc") for each in ESTIMATES}
        elif " x " in one.name:
            names = {" x ".join(mix): " x ".join(mix) for mix in mixes}
        else:
            names = {f"top-down {one.name}": one.name}
        found |= {name: _way("count-of-counts", one.name, method=method) for name, method in names.items()}
    found["top-down Hc, plain"] = _way("count-of-counts", "Hc", merge="plain")
    if levels == 3:
        found["Hc, all levels at once"] = _way("count-of-counts", "Hc", merge="at once")
    return {**found, **_all("group-size", "groups")}


def ways_of_flows(axes: int = 2) -> dict[str, Way]:
    """The methods for flows, by name; mechanisms for bins have half of ε (`HALF`)."""
    bins = {**_all("clustering", "flows"), **_all("range-query", "flows")}
    dense = {f"{name}{HALF}": way for name, way in bins.items() if axes == 1 or "H_tree" not in name}
    if axes > 1:  # the first has the regions, the others are attributes
        dense = {**_all("tabulation", "flows"), **dense}
    cut = {name: replace(way, most=min(way.most, MOST_FLOWS)) for name, way in dense.items()}
    return {**_all("top-down", "flows"), **cut}


def ways_of_bins() -> dict[str, Way]:
    """The methods for histograms, by name, and two with other options."""
    return {
        **_all("clustering", "bins"),
        **_all("range-query", "bins"),
        "DAWA for bins": _way("clustering", "DAWA", workload="bins"),
        "non-negative H_b^c": _way("range-query", "H_b^c", repair="non-negative"),
    }


FLOW_ERRORS = {
    "l1": "L1",
    "max_error": "largest error",
    "false_discovery_rate": "share of invented flows",
    "false_negatives": "missed flows",
}
"""Errors of `top_down_errors`, and how they are called here."""


COMMANDS = {
    name: way.command
    for ways in (ways_of_groups(), ways_of_flows(1), ways_of_flows(), ways_of_bins())
    for name, way in ways.items()
}
"""`hierdp release …` of every method; those with a method for each level, for three levels."""


class Error(NamedTuple):
    """One error of one simulated release: on a level of so many, each summed up over the level."""

    method: str
    run: int
    level: int
    name: str
    depth: int
    metric: str
    error: float


Noise = Callable[[str, int], SimulatedNoise]
"""The noise of a query and run: methods that measure the same share it."""


def errors_of_groups(
    data: SizeRuns,
    max_size: int,
    loss: float,
    runs: int,
    noise: Noise,
    names: Iterable[str] | None = None,
    law: str = GEOMETRIC,
) -> Iterator[Error]:
    """Of every method for groups by size, or of some, per region of a level.

    - loss: ε or, if the law of the noise is discrete Gaussian, ρ.
    """
    places, ways = data.hierarchy, ways_of_groups(len(data.hierarchy.levels))
    true = data.runs.capped(max_size)
    by_size = true.dense(max_size)
    for name in ways if names is None else names:
        way = ways[SAME.get(name, name)]
        cells = int(true.distinct[0]) if way.options.get("merge") == "at once" else by_size.size
        if cells > way.most:
            continue
        for run in range(runs):
            if way.mechanism == "count-of-counts":
                options = {"method": way.method, **way.options}
                plan = plan_of(levels=places.levels, max_size=max_size, **options)
                measured = count_of_counts.measure(data, loss, noise(options["method"], run), plan, law=law)
                made = count_of_counts.post_process(measured, places, plan)
            else:
                method, drawn = BY_SIZE[way.method], noise(way.method, run)
                noisy, _ = group_size.measure(GroupSizes(places, by_size), loss, drawn, method, law)
                solving = method.solving(SolverOptions("fast" if "backend" in method.takes else None))
                try:
                    found = group_size.post_process(noisy, places, int(true.groups[0]), method, solving)
                except NotProved:
                    break
                made = Runs.from_dense(found)
            yield from errors_of_levels(data, max_size, name, run, made)


def errors_of_levels(data: SizeRuns, max_size: int, way: str, run: int, made: Runs) -> Iterator[Error]:
    """Of released groups by size, per region of a level."""
    places, true = data.hierarchy, data.runs.capped(max_size)
    away = np.abs(true.dense(max_size) - made.dense(max_size)).sum(axis=1)
    found = {EMD: earth_movers_runs(true, made), L1: away}
    for level, name in enumerate(places.levels):
        nodes = places.tree.nodes_of(level)
        for metric, error in found.items():
            mean = float(error[nodes].sum()) / (nodes.stop - nodes.start)
            yield Error(way, run, level, name, len(places.levels), metric, mean)


def errors_of_flows(
    table: Flows,
    epsilon: float,
    delta: float,
    runs: int,
    noise: Noise,
    names: Iterable[str] | None = None,
) -> Iterator[Error]:
    """Of every method for flows, or some; errors of cells that are not released included."""
    ways, truth = ways_of_flows(len(table.axes)), true_table(table)
    sizes = [int(axis.tree.level_sizes[-1]) for axis in table.axes]
    for name in ways if names is None else names:
        way = ways[name]
        if math.prod(sizes) > way.most:
            continue
        for run in range(runs):
            if way.mechanism == "top-down":
                made = top_down(table, epsilon, delta, noise("", run), name)
                found = top_down_errors(truth, made.table)
                each: Any
                for each in found[found.level > 0].itertuples():
                    for key, metric in FLOW_ERRORS.items():
                        value = float(getattr(each, key))
                        yield Error(name, run, int(each.level), str(each.name), len(found), metric, value)
            else:
                yield from _errors_of_cells(table, way, name, run, epsilon, delta, noise("", run))


def _errors_of_cells(
    table: Flows, way: Way, name: str, run: int, epsilon: float, delta: float, noise: SimulatedNoise
) -> Iterator[Error]:
    """Of a mechanism that measures all possible flows, as `top_down_errors`."""
    leaves = [int(axis.tree.level_sizes[-1]) for axis in table.axes]
    true: Ints = np.zeros(leaves, np.int64)
    true[tuple(table.cells.T)] = table.counts
    if way.mechanism == "tabulation":
        cells, answer = _tabulated(table, true, way.method, epsilon, delta, noise), None
    else:
        axes = tuple(Names.of(*one) for one in zip(table.axis_names, table.axes, strict=True))
        cells, answer = released(Histogram(true, axes), way, epsilon / 2, noise)
    reached = depths_of(table.axes, refinements(table, None))
    for level, depths in enumerate(reached[1:], start=1):
        widths = [  # the leaves below each region, which are neighbours
            np.asarray(axis.tree.sum_up(np.ones(size, np.int64)))[axis.tree.nodes_of(depth)]
            for axis, size, depth in zip(table.axes, leaves, depths, strict=True)
        ]
        ends = np.stack([one.ravel() for one in np.meshgrid(*map(np.cumsum, widths), indexing="ij")], axis=1)
        begins = ends - np.stack([one.ravel() for one in np.meshgrid(*widths, indexing="ij")], axis=1)
        here = box_sums(prefix_sums(true), begins, ends)
        made = box_sums(prefix_sums(cells), begins, ends) if answer is None else answer(begins, ends)
        away, positive = np.abs(made - here), made > 0
        invented = (positive & (here == 0)).sum() / max(1, positive.sum())
        missed = ((here > 0) & ~positive).sum()
        called = zip(table.axis_names, table.axes, depths, strict=True)
        shown = " × ".join(f"{axis} {places.levels[depth]}" for axis, places, depth in called)
        for metric, error in zip(
            FLOW_ERRORS.values(), (away.sum(), away.max(), invented, missed), strict=True
        ):
            yield Error(name, run, level, shown, len(reached), metric, float(error))


def _tabulated(
    table: Flows, true: Ints, method: str, epsilon: float, delta: float, noise: SimulatedNoise
) -> Floats:
    """The cells of a tabulation with default queries: regions of the first axis, the others as attributes."""
    places, others = table.axes[0], table.axis_names[1:]
    attributes = {
        name: tuple(map(str, range(size))) for name, size in zip(others, true.shape[1:], strict=True)
    }
    plan = tabulation_plan.plan_of({"attributes": attributes})
    counts = true.reshape(true.shape[0], -1)
    made: Any = tabulate(CrossTable(places, attributes, counts), plan, epsilon, delta, noise, method).table
    last = made[made.level == len(places.levels) - 1]
    region = places.positions(last["region"].to_numpy(object))
    at = [region, *(last[name].to_numpy(np.int64) for name in others)]
    cells: Floats = np.zeros(true.shape)
    cells[tuple(at)] = last["count"]
    return cells


Answer = Callable[[Ints, Ints], Floats]
"""Sums of boxes of bins."""


def released(
    data: Histogram, way: Way, epsilon: float, noise: SimulatedNoise
) -> tuple[Floats, Answer | None]:
    """A histogram's bins; and how boxes are answered, if not by their sums."""
    shape = data.counts.shape
    if way.mechanism == "clustering":
        made = CLUSTERINGS[way.method].publish(data.counts, epsilon, noise, **way.options)
        return np.asarray(made.counts).reshape(shape), None
    source = range_query(data, epsilon, noise, way.method, **way.options).answers.source
    at = np.indices(shape).reshape(len(shape), -1).T
    bins = np.asarray(source.estimates(at, at + 1), float).reshape(shape)
    return bins, source.estimates if isinstance(source, Covering) else None


def errors_of_bins(
    counts: Ints, epsilon: float, runs: int, noise: Noise, names: Iterable[str] | None = None
) -> Iterator[Error]:
    """Of every method for histograms, or some; KLD, a bin's and a range's squared error."""
    ways, data = ways_of_bins(), Histogram.of(counts)
    for name in ways if names is None else names:
        if counts.size > ways[name].most:
            continue
        for run in range(runs):
            made, answer = released(data, ways[name], epsilon, noise("", run))
            sums = counts.ndim == 1 and answer is None
            found = {
                KLD: kld(counts.ravel(), made.ravel()),
                BINS: float(((counts - made) ** 2).mean()),
                RANGES: all_ranges_error(counts, made) if sums else boxes_error(counts, made, answer),
            }
            for metric, error in found.items():
                yield Error(name, run, 0, "", 1, metric, error)


def boxes_error(true: Ints, released: Floats, answer: Answer | None = None) -> float:
    """Mean squared error over 20,000 boxes, with corners drawn uniformly; always the same boxes."""
    rng = np.random.default_rng(0)
    ends = np.stack([np.sort(rng.integers(0, n + 1, (20_000, 2)), axis=1) for n in true.shape], axis=2)
    low, high = ends[(ends[:, 0] < ends[:, 1]).all(axis=1)].transpose(1, 0, 2)
    made = box_sums(prefix_sums(released), low, high) if answer is None else answer(low, high)
    return float(((made - box_sums(prefix_sums(true), low, high)) ** 2).mean())
