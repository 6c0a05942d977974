"""All methods that answer one question, with simulated noise on a table that is not secret, and their errors.

Groups by size have two errors per region: the earth mover's distance of Kuo et al. 2018, and the L1 error of
the counts by size of Fioretto & Van Hentenryck 2019. Budgets are those of the whole release; groups may be
empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.mechanisms import count_of_counts, group_size
from hierdp.mechanisms.clustering import METHODS as CLUSTERINGS
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.mechanisms.group_size.post_processing import METHODS as BY_SIZE
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.metrics.group_sizes import top_down_errors
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import all_ranges_error, prefix_sums
from hierdp.metrics.runs import earth_movers_runs
from hierdp.privacy.budget import GEOMETRIC
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables import Flows, GroupSizes
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Ints

ZCDP = ", zCDP"
"""Follows the names of methods with Gaussian noise that also have ε-DP."""

EMD, L1 = "entities to move", "counts by size, L1"
KLD, BINS, RANGES = "KLD", "squared error of a bin", "squared error of a range"

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

FLOW_METHODS = ("InfTDA", "InfTDA_large", "TDA_L2", "TDA", "VanillaGauss", "SH")

FLOW_ERRORS = {
    "l1": "L1",
    "max_error": "largest error",
    "false_discovery_rate": "share of invented flows",
    "false_negatives": "missed flows",
}
"""Errors of `top_down_errors`, and how they are called here."""

COMMANDS = {
    "bottom-up Hc": "count-of-counts --method bottom-up",
    "bottom-up Hg": 'count-of-counts --method "bottom-up Hg"',
    "top-down Hc": "count-of-counts",
    "top-down Hc, plain": "count-of-counts --merge plain",
    "top-down Hg": "count-of-counts --method Hg",
    "Hc, all levels at once": 'count-of-counts --merge "at once"',
    "M_c^dp": "group-size",
    "M_H^dp": "group-size --method M_H^dp",
    "InfTDA": "top-down",
    **{name: f"top-down --method {name}" for name in FLOW_METHODS[1:]},
    "AHP": "clustering",
    **{name: f"clustering --method {name}" for name in ("AHP-by-place", "NF", "PHP", "GS", "Laplace")},
    **{name: f"clustering --method {name}" for name in ("PrivTree", "DAWA")},
    "DAWA for bins": "clustering --method DAWA --workload bins",
    "H_b^c": "range-query",
    "non-negative H_b^c": "range-query --repair non-negative",
    "H_2^c": "range-query --method H_2^c",
    "Wavelet": "range-query --method Wavelet",
    "Quadtree": "range-query --method Quadtree",
}
"""`hierdp release …` of every method."""


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
    ways: Iterable[str] = WAYS,
    law: str = GEOMETRIC,
) -> Iterator[Error]:
    """Of every method for groups by size, or some, per region of a level.

    - loss: ε or, if the law of the noise is discrete Gaussian, ρ.
    """
    places = data.hierarchy
    true = data.runs.capped(max_size)
    by_size = true.dense(max_size)
    dense = GroupSizes(places, by_size)
    for way in ways:
        chosen = WAYS[way]
        if "at once" in chosen and (len(places.levels) > 3 or int(true.distinct[0]) > 5_000):
            continue
        for run in range(runs):
            drawn = noise(chosen[0] if chosen else way, run)
            if chosen:
                plan = plan_of(chosen[0], places.levels, merge=chosen[1], max_size=max_size)
                measured = count_of_counts.measure(data, loss, drawn, plan, law=law)
                made = count_of_counts.post_process(measured, places, plan)
            else:
                method = BY_SIZE[way]
                noisy, _ = group_size.measure(dense, loss, drawn, method, law)
                released = group_size.post_process(
                    noisy, places, dense.groups, method, method.solving(SolverOptions())
                )
                made = Runs.from_dense(released)
            yield from errors_of_levels(data, max_size, way, run, made)


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
    table: Flows, epsilon: float, delta: float, runs: int, noise: Noise, methods: Iterable[str] = FLOW_METHODS
) -> Iterator[Error]:
    """Of every method for flows, or some; errors of cells that are not released included."""
    truth = true_table(table)
    for method in methods:
        for run in range(runs):
            made = top_down(table, epsilon, delta, noise("", run), method)
            found = top_down_errors(truth, made.table)
            each: Any
            for each in found[found.level > 0].itertuples():
                for name, metric in FLOW_ERRORS.items():
                    value = float(getattr(each, name))
                    yield Error(method, run, int(each.level), str(each.name), len(found), metric, value)


Publish = Callable[[Ints, float, SimulatedNoise], NDArray[np.float64]]


def _clusters(
    name: str, counts: Ints, epsilon: float, noise: SimulatedNoise, **options: str
) -> NDArray[np.float64]:
    made = CLUSTERINGS[name].publish(counts, epsilon, noise, **options)
    return made.counts.reshape(counts.shape)


def _ranges(
    name: str, repair: str | None, counts: Ints, epsilon: float, noise: SimulatedNoise
) -> NDArray[np.float64]:
    made = range_query(Histogram.of(counts), epsilon, noise, name, repair=repair)
    at = np.indices(counts.shape).reshape(counts.ndim, -1).T
    return np.asarray(made.box(at, at + 1)[0]).reshape(counts.shape)


PUBLISH: dict[str, Publish] = {
    **{name: partial(_clusters, name) for name in ("AHP", "AHP-by-place", "NF", "PHP", "GS", "Laplace")},
    "PrivTree": partial(_clusters, "PrivTree"),
    "DAWA": partial(_clusters, "DAWA"),
    "DAWA for bins": partial(_clusters, "DAWA", workload="bins"),
    "H_b^c": partial(_ranges, "H_b^c", None),
    "non-negative H_b^c": partial(_ranges, "H_b^c", "non-negative"),
    "H_2^c": partial(_ranges, "H_2^c", None),
    "Wavelet": partial(_ranges, "Wavelet", None),
    "Quadtree": partial(_ranges, "Quadtree", None),
}
"""SF is left out: it takes seconds to minutes. Its errors are in docs/zhang2014.md."""

MAPS = (
    "AHP", "AHP-by-place", "PHP", "Laplace", "PrivTree", "DAWA", "DAWA for bins",
    "H_b^c", "non-negative H_b^c", "Quadtree", "Wavelet",
)  # fmt: skip
"""Methods on a map: all of two dimensions, and some on the flattened map."""


def errors_of_bins(counts: Ints, epsilon: float, runs: int, noise: Noise) -> Iterator[Error]:
    """Of every method for histograms of one or two dimensions; KLD, a bin's and a range's squared error."""
    flat = counts.ndim == 1
    for method in (name for name in PUBLISH if name != "Quadtree") if flat else MAPS:
        for run in range(runs):
            made = PUBLISH[method](counts, epsilon, noise("", run))
            found = {
                KLD: kld(counts.ravel(), made.ravel()),
                BINS: float(((counts - made) ** 2).mean()),
                RANGES: all_ranges_error(counts, made) if flat else all_boxes_error(counts, made),
            }
            for metric, error in found.items():
                yield Error(method, run, 0, "", 1, metric, error)


def all_boxes_error(true: Ints, released: NDArray[np.float64]) -> float:
    """Mean squared error over 20,000 boxes of a map, with corners drawn uniformly; always the same boxes."""
    prefixes, rng = prefix_sums(released - true), np.random.default_rng(0)
    (a, b), (c, d) = (np.sort(rng.integers(0, n + 1, (20_000, 2)), axis=1).T for n in true.shape)
    kept = (a < b) & (c < d)
    a, b, c, d = (each[kept] for each in (a, b, c, d))
    return float(((prefixes[b, d] - prefixes[a, d] - prefixes[b, c] + prefixes[a, c]) ** 2).mean())
