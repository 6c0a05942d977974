"""Zhang et al. 2014, repeated: Tables 2–4, Figures 2–5, and the gain by optimal clustering."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, Series
from scipy.optimize import brentq

from hierdp.analysis.bayes_bound import least_errors
from hierdp.data.commuting import FILE, commuting
from hierdp.data.dpbench import dpbench, names, read_counts
from hierdp.data.taxi import taxi
from hierdp.errors import InputError
from hierdp.execution.resume import Row
from hierdp.experiments.run import (
    all_rows,
    by_level,
    crossed,
    noise_for,
    present,
    said,
    seed_for,
    summed_up,
    timed,
)
from hierdp.experiments.study import Part, Study, printed_rows
from hierdp.mechanisms.clustering import METHODS
from hierdp.mechanisms.clustering.ahp import ETA, SHARE, laplace_scale, sorted_counts
from hierdp.mechanisms.clustering.ahp_rules import RULES, greedy, optimal
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import range_error
from hierdp.privacy.budget import check_epsilon, split
from hierdp.privacy.noise import Noise, SimulatedNoise, geometric
from hierdp.record.step import Step
from hierdp.reports import plots
from models import BlockInference, Clustering, HierarchyQIP, Tree, Workload
from models.arithmetic.arrays import Floats, Ints

NO_THRESHOLD = "AHP-greedy η=0"
NARROW = "GS ⌈√n⌉"
STUDIED = (
    "AHP", "AHP-greedy", NO_THRESHOLD, "AHP-by-place", "NF", "SF", "PHP", "GS", NARROW, "Laplace",
)  # fmt: skip
"""In the order of the tables: methods of `hierdp.mechanisms.clustering.METHODS`, two of them with another
parameter. AHP-empirical, the slowest, is compared in `optimum` alone."""

PUBLISHED_METHODS = ("AHP-greedy", "NF", "SF", "PHP", "GS")
"""The columns of the paper's tables: its AHP is the greedy one (§6)."""

TABLES = printed_rows(__file__, "kld", keys=2)
"""As published: Tables 2–4, KLD by ε and data set, in the order of `PUBLISHED_METHODS`."""

PAPER_SIZED = {
    "Search Log, rebuilt": "Search Log",
    "NetTrace, rebuilt": "NetTrace",
    **{name: name for _, name in TABLES},
}
"""The paper's names of data sets with as many bins as it has: rebuilt ones, and its own files."""

COUNTERPARTS = {**PAPER_SIZED, "SEARCHLOGS": "Search Log", "NETTRACE": "NetTrace"}
"""The paper's names of the data sets; the last two have fewer bins."""

CHARACTERISTICS = printed_rows(__file__, "data")
"""As published: Table 1, bins, empty bins, mean, variance, largest count."""

FIGURE_NUMBERS = {"Search Log, rebuilt": 4, "NetTrace, rebuilt": 5}


@dataclass(frozen=True)
class Settings:
    """How much to run; `QUICK` takes about a minute on a laptop.

    - runs: runs of each method, data set and ε.
    - sets: data sets of DPBench, with two-dimensional ones flattened row by row, and those of `data.REBUILT`.
    - methods: see `METHODS`.
    - share: ε₁/ε of AHP. The paper: ε₂ "is normally set to ε/2" (§5). It does not state η, so η has hierdp's
      default, 0.35; one variant has 0.
    - width: bins of a cluster of GS. The paper: 100 "is one of the best group sizes used by GS" (footnote 4).
    - many_bins, few_runs, sf_runs: SF draws its boundaries one by one. With more than `many_bins` bins it
      uses `few_runs` runs of bins instead of n/10, and parameters are not tuned. It is run `sf_runs` times at
      most.
    - range_sizes: number of sizes of ranges, from one bin to half of the bins.
    - floors: floors for `hierdp.metrics.histogram.kld`, in people, to compare with its default.
    - tuned_runs: runs of each value of each parameter in the comparison with tuned parameters.
    - bound_runs: histograms drawn from the counts, to see that AHP's error does not depend on places.
    - hierarchy_epsilons: values of ε for AHP at the nodes of a hierarchy.
    """

    runs: int = 10
    epsilons: tuple[float, ...] = (1.0, 0.1, 0.01)
    sets: tuple[str, ...] = (
        "Search Log, rebuilt",
        "NetTrace, rebuilt",
        "SEARCHLOGS",
        "NETTRACE",
        "HEPTH",
        "INCOME",
        "ADULTFRANK",
        "GOWALLA-2D",
    )
    methods: tuple[str, ...] = STUDIED
    share: float = 0.5
    width: int = 100
    many_bins: int = 10_000
    few_runs: int = 64
    sf_runs: int = 3
    range_sizes: int = 12
    floors: tuple[float, ...] = (1.0, 1e-6)
    tuned_runs: int = 5
    bound_runs: int = 3
    hierarchy_runs: int = 10
    hierarchy_epsilons: tuple[float, ...] = (1.0, 0.1, 0.01)


QUICK = Settings(
    runs=1,
    epsilons=(0.1,),
    sets=("Search Log, rebuilt", "NetTrace, rebuilt"),
    range_sizes=8,
    tuned_runs=1,
    bound_runs=1,
    hierarchy_runs=1,
    hierarchy_epsilons=(0.1,),
)
QUICK_NOTE = (
    "One run at ε = 0.1 on the two sets of the paper's size: methods whose KLD differs by less than a tenth "
    "are not ordered, and nothing follows for other ε."
)
"""What cannot be concluded from the quick settings."""


# The histograms: DPBench's, two rebuilt at the paper's size; or, if these are missing, synthetic ones.
#
# The rebuilt ones have the paper's numbers of bins, the sums of DPBench's bins, and approximately the
# published number of empty bins and variance (see the table of the data). The size of errors can be
# compared, but they are not the paper's files.

WHAT = {
    "Search Log, rebuilt": "SEARCHLOGS with each bin's people spread evenly at random over eight",
    "NetTrace, rebuilt": "NETTRACE with each bin spread over sixteen along a falling curve",
    "SEARCHLOGS": "searches for “Obama” by time, 2004–2010: the paper's Search Log in fewer bins",
    "NETTRACE": "outside hosts by host of a university, sorted: the paper's NetTrace in fewer bins",
    "HEPTH": "citations in high energy physics",
    "INCOME": "persons by income",
    "ADULTFRANK": "persons of the census sample “Adult”, nearly all of them in one bin",
    "GOWALLA-2D": "check-ins by place, 256 × 256, flattened row by row",
    "drawn, sorted": "Pareto counts in every twentieth bin, sorted: not real",
    "drawn, by time": "a daily curve, a few bursts and empty nights: not real",
}

REBUILT = {"Search Log, rebuilt": "SEARCHLOGS", "NetTrace, rebuilt": "NETTRACE"}
"""Data sets of the paper's size, and the set of DPBench from which each is rebuilt."""


def histograms(folder: Path | None, wanted: tuple[str, ...], seed: int, bins: int = 4096) -> dict[str, Ints]:
    """Flattened true counts by name: the requested sets that the folder has, or two synthetic ones.

    A file of counts instead of a folder is one set, with the file's name: Location.csv.
    """
    if folder and folder.is_file():
        return {folder.stem: read_counts(folder).ravel()}
    here = folder / "dpbench" if folder else None
    found: dict[str, Ints] = {}
    for name in wanted:
        source = REBUILT.get(name, name)
        if here and source in names(here):
            counts = dpbench(here, source).ravel()
            if name in REBUILT:
                counts = search_log(counts, seed) if name.startswith("Search") else net_trace(counts)
            found[name] = counts
    return found or drawn(seed, bins)


def drawn(seed: int, bins: int) -> dict[str, Ints]:
    """Two synthetic histograms from a seed."""
    rng = np.random.default_rng(seed_for(seed, "histograms", bins))
    tail = np.zeros(bins)
    tail[: max(1, bins // 20)] = rng.pareto(1.2, max(1, bins // 20)) + 1
    time = np.arange(bins)
    curve = np.clip(60 * np.sin(time * 2 * np.pi / 96), 0, None)
    for start in rng.integers(0, bins, 5):
        curve += 900 * np.exp(-np.clip(time - start, 0, None) / 20) * (time >= start)
    return {
        "drawn, sorted": np.sort(tail.astype(np.int64))[::-1],
        "drawn, by time": rng.poisson(curve).astype(np.int64),
    }


SEARCH_LOG = 8
"""Bins of Search Log (32,768) in each of SEARCHLOGS (4,096)."""

NET_TRACE = 16
LARGEST = 1_423
"""Bins of NetTrace (65,536) in each of NETTRACE, and its largest count as printed."""


def search_log(counts: Ints, seed: int) -> Ints:
    """Each bin's people, distributed uniformly at random over eight bins."""
    rng = np.random.default_rng(seed_for(seed, "Search Log"))
    return np.asarray(rng.multinomial(counts, np.full(SEARCH_LOG, 1 / SEARCH_LOG)).ravel(), dtype=np.int64)


def net_trace(counts: Ints, largest: int = LARGEST) -> Ints:
    """Sorted counts: a hyperbola from the largest in the first bin, geometric falls in the others.

    Within a bin, the curve runs between the geometric means with the previous and the next bin, and is scaled
    to the bin's sum.
    """
    there = counts[counts > 0]
    means = there / NET_TRACE
    edges = np.sqrt(means[:-1] * means[1:])
    place = np.arange(NET_TRACE)
    falls = [_hyperbola(largest, float(there[0]), place)] if there.size else []
    for start, end in zip(edges, np.append(edges[1:], means[-1:]), strict=False):
        falls.append(start * (end / start) ** ((place + 0.5) / NET_TRACE))
    finer = np.zeros(counts.size * NET_TRACE, dtype=np.int64)
    for k, (fall, total) in enumerate(zip(falls, there.tolist(), strict=True)):
        ends = np.rint(np.cumsum(fall) * (total / fall.sum())).astype(np.int64)
        finer[k * NET_TRACE : (k + 1) * NET_TRACE] = np.diff(ends, prepend=0)
    return np.sort(finer)[::-1].copy()


def _hyperbola(largest: int, total: float, place: Ints) -> NDArray[np.float64]:
    """``largest/(1 + j/a)`` with the given total; nearly flat if `largest` is below the mean."""
    low, high = 1e-6, 1e9
    for _ in range(100):
        a = np.sqrt(low * high)
        low, high = (low, a) if (largest / (1 + place / a)).sum() > total else (a, high)
    return np.asarray(largest / (1 + place / low))


Sets = Mapping[str, Ints]


def sizes_of(bins: int, many: int) -> list[int]:
    """Sizes of ranges, evenly spaced in logarithms from 1 to half of the bins."""
    return sorted({int(size) for size in np.rint(np.geomspace(1, max(1, bins // 2), many))})


def publisher(name: str, bins: int, settings: Settings) -> Callable[..., Any]:
    """A method with the paper's parameters, where it states them."""
    method = name.partition(" ")[0]
    options: dict[str, Any] = {}
    if method.startswith("AHP"):
        options["share"] = settings.share
    if name == NO_THRESHOLD:
        options["eta"] = 0.0
    if name == "GS":
        options["width"] = min(settings.width, bins)
    if name == "SF" and bins > settings.many_bins:
        options["clusters"] = settings.few_runs
    return partial(METHODS[method].publish, **options)


def accuracy(sets: Sets, settings: Settings, seed: int) -> tuple[DataFrame, DataFrame]:
    """KLD, squared error by bin and seconds of every run; and its squared error by size of range.

    The methods of a run draw from the same seed: the AHP variants cluster the same noisy counts.
    """
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    found = all_rows(_accuracy, cases, "error of every method", (sets, settings, seed))
    ranges = found[["data", "epsilon", "run", "method", "size", "mse"]]
    return found[found["size"] == 1].drop(columns="size").reset_index(drop=True), ranges


def _accuracy(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    """One row for each method and size of range."""
    warm_up(settings.methods)
    counts, rows = sets[name], []
    sizes = sizes_of(counts.size, settings.range_sizes)
    for method in settings.methods:
        if method == "SF" and run >= settings.sf_runs:
            continue
        publish = publisher(method, counts.size, settings)
        seconds, made = timed(publish, counts, epsilon, noise_for(seed, name, epsilon, run))
        found: Row = {
            "method": method, "kld": kld(counts, made.counts),
            **{f"kld_{floor:g}": kld(counts, made.counts, floor) for floor in settings.floors},
            "clusters": int(made.clusters.max()) + 1, "seconds": seconds,
        }  # fmt: skip
        errors = range_error(counts, made.counts, sizes).tolist()
        rows += [{**found, "size": size, "mse": error} for size, error in zip(sizes, errors, strict=True)]
    return rows


def tuned(sets: Sets, settings: Settings, seed: int) -> DataFrame:
    """Squared error per bin for values of each parameter, with the others at their defaults."""
    cases = [
        {"data": name, "epsilon": epsilon, "method": method, "parameter": option, "value": value}
        for name, counts in sets.items()
        if counts.size <= settings.many_bins
        for epsilon in settings.epsilons
        for method, option in PARAMETERS
        if method in settings.methods
        for value in (None, *values_of(option, counts.size))
    ]
    return all_rows(_tuned, cases, "parameters", (sets, settings, seed))


def _tuned(
    sets: Sets, settings: Settings, seed: int,
    name: str, epsilon: float, method: str, option: str, value: float | None,
) -> list[Row]:  # fmt: skip
    given: dict[str, Any] = {} if value is None else {option: value}
    errors = []
    for run in range(settings.tuned_runs):
        noise = noise_for(seed, "tuned", name, epsilon, run)
        made = METHODS[method].publish(sets[name], epsilon, noise, **given)
        errors.append(((made.counts - sets[name]) ** 2).mean())
    return [{"mse": np.mean(errors)}]


PARAMETERS = (("AHP", "eta"), ("AHP", "share"), ("SF", "clusters"), ("PHP", "share"), ("GS", "width"))
"""The parameters that are tuned, one at a time."""


def values_of(option: str, bins: int) -> list[float] | list[int]:
    """The values to try."""
    if option == "eta":
        return [0.0, 0.2, 0.5, 1.0, 2.0]
    if option == "share":
        return [0.1, 0.25, 0.5, 0.75, 0.9]
    return sorted({max(1, bins // part) for part in (4, 16, 64, 256, 1024)})


@cache
def warm_up(methods: tuple[str, ...]) -> None:
    """Compile the kernels before anything is timed."""
    counts = np.arange(64) ** 2
    for method in methods:
        publisher(method, counts.size, Settings())(counts, 1.0, SimulatedNoise(0))


KNOWN = "AHP, counts known"
"""The optimal clusters of the true counts: not private, and a bound for clusterings of noisy counts."""

RIVALS = tuple(rule for rule in RULES if rule != "AHP")
"""The rules that the optimum is compared with."""


def rules(sets: Sets, settings: Settings, seed: int) -> DataFrame:
    """For each rule: cost on the noisy counts, expected error on the true counts, clusters, and seconds.

    `expected_mse` is E(H̃ − H)² per bin given the clusters: their AE on the true counts plus the variance of
    the noise. So the comparison of rules does not depend on the second draw of noise.
    """
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    return all_rows(_rules, cases, "clustering rules", (sets, seed))


@cache
def _warm_up() -> None:
    """Compile the kernels before anything is timed."""
    for find in RULES.values():
        find(np.arange(300), 1.0, Step.solve)


def _rules(sets: Sets, seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    _warm_up()
    counts, rows = sets[name], list[Row]()
    for_order, for_sums = split(epsilon, 2, (SHARE, 1 - SHARE))
    noise = noise_for(seed, "rules", name, epsilon, run)
    noisy = noise.draw(geometric("counts, to sort and cluster the bins", 1, for_order), counts)
    values, order = sorted_counts(noisy.answers, for_order, ETA)
    scale = laplace_scale(for_sums)
    model = Clustering(values, scale)
    for rule, find in RULES.items():
        seconds, marks = timed(find, values, scale, Step.solve)
        error = expected_mse(counts[order], np.cumsum(marks) - 1, for_sums)
        row = {"rule": rule, "cost": float(model.objective(marks)), "clusters": int(marks.sum())}
        rows.append(row | {"seconds": seconds, "expected_mse": error})
    true = np.sort(counts)
    marks = optimal(true, scale, Step.solve)
    error = expected_mse(true, np.cumsum(marks) - 1, for_sums)
    return [*rows, {"rule": KNOWN, "clusters": int(marks.sum()), "expected_mse": error}]


def expected_mse(counts: Ints, clusters: Ints, epsilon_2: float) -> float:
    """Mean squared error by bin of these clusters' means, over the double-geometric noise of their sums."""
    sizes = np.bincount(clusters)
    means = np.bincount(clusters, weights=counts) / sizes
    variance = 2 * math.exp(-epsilon_2) / math.expm1(-epsilon_2) ** 2
    return float((((counts - means[clusters]) ** 2).sum() + (variance / sizes).sum()) / counts.size)


def optimum_part(found: DataFrame, settings: Settings) -> Part:
    """Cost, error and time of each rule relative to the optimum, run by run."""
    run, setting = ["data", "epsilon", "run"], ["data", "epsilon", "rule"]
    best = found.loc[found.rule == "AHP", [*run, "cost", "expected_mse"]]
    every = found.merge(best, "left", run, suffixes=("", "_AHP"))
    every["over"] = every.expected_mse / every.expected_mse_AHP
    every["cost_over"] = every.cost / every.cost_AHP
    table = every.groupby(setting, sort=False).agg(
        clusters=("clusters", "median"), cost_over_optimal=("cost_over", "mean"),
        expected_mse=("expected_mse", "mean"), error_over_optimal=("over", "mean"),
        closer_than_optimal=("over", lambda over: f"{int((over < 1).sum())} of {len(over)}"),
        seconds=("seconds", "median"),
    ).reset_index()  # fmt: skip
    table.insert(7, "±", every.groupby(setting, sort=False).over.std().to_numpy())
    table.loc[~table.rule.isin(RIVALS), "closer_than_optimal"] = ""
    texts = [
        "The same noisy, thresholded, sorted counts clustered by each rule. Cost: the objective of Theorem "
        "4.2, over its minimum. Error: the expected squared error by bin on the true counts, given the "
        f"clusters; ratios are means of {settings.runs} runs, ± their standard deviation; closer: the runs "
        f"in which the rule has a lower error than the optimum. “{KNOWN}” is not private. Seconds: medians, "
        "proofs included."
    ]
    return Part("optimum", "The gain by optimal clustering", texts, {"optimum": table}, _rules_figure(every))


def _rules_figure(every: DataFrame) -> Any:
    """Error relative to that of the optimum: one panel per ε, one row per data set."""
    names = list(dict.fromkeys(every.data))
    epsilons = list(dict.fromkeys(every.epsilon))
    drawn, panels = plots.figure(2.9 * len(epsilons) + 1.2, 0.45 * len(names) + 1.4, panels=len(epsilons))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        axes.axvline(1, color="#888888", lw=1)
        for k, rule in enumerate(RIVALS):
            mine = every[(every.epsilon == epsilon) & (every.rule == rule)].groupby("data", sort=False).over
            centre = mine.mean()
            places = np.arange(len(names)) + 0.18 * (k - 1)
            reach = [centre - mine.min(), mine.max() - centre]
            style = plots.style(k + 1)
            axes.errorbar(centre, places, xerr=reach, capsize=2, linestyle="none", label=rule, **style)
        plots.label(axes, f"ε = {epsilon:g}", "error over that of the optimum", log="x")
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.invert_yaxis()
    plots.beside(panels[-1])
    return drawn


SAMPLES = (0.5, 0.1)
"""The shares β of people in a sample."""


def before_sampling(epsilon: float, beta: float) -> float:
    """The ε of a method on a sample that loses `epsilon` in all.

    By Theorem 4.1, a method of ε on a sample that has each row by chance β loses ln(1 + β(e^ε − 1)).
    """
    return math.log1p(math.expm1(epsilon) / beta)


def theorem_part(sets: Sets, settings: Settings, seed: int) -> Part:
    """Both theorems, from one run of each data set and ε."""
    cases, given = crossed(data=sets, epsilon=settings.epsilons), (sets, settings, seed)
    frames = {
        "sampling": all_rows(_sampled, cases, "sorting a sample", given),
        "gaps": all_rows(_gaps, cases, "gaps worth a cut", given),
    }
    texts = [
        "Theorem 4.1: on a sample with a share β of the people, sorting may spend more than ε₁ and lose ε₁ "
        "in all. Signal: a difference of two counts over the noise, relative to no sample. Error: the "
        "expected squared error of the optimal clusters, relative to sorting everybody. (The paper's "
        "inequality of §4.1 gives the sample less than ε₁, as if it cost privacy; its conclusion holds.)",
        "Theorem 5.3: clusters with a gap that is certainly worth a cut. Large: clusters of more than "
        "(ε/ε₂)² bins (§5), and their bins.",
    ]
    return Part("theorems", "Theorems 4.1 and 5.3 on the data", texts, frames)


def _sampled(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float) -> list[Row]:
    counts, rows = sets[name], []
    for_order, for_sums = split(epsilon, 2, (settings.share, 1 - settings.share))
    whole = _error(counts, counts, 1.0, for_order, for_sums, seed, name, epsilon)
    rng = np.random.default_rng(seed_for(seed, "sample", name, epsilon))
    for beta in SAMPLES:
        spent = before_sampling(for_order, beta)
        drawn = rng.binomial(counts, beta)
        error = _error(counts, drawn, beta, spent, for_sums, seed, name, epsilon)
        rows.append(
            {
                "epsilon_1": for_order, "beta": beta,
                "epsilon_on_the_sample": spent, "signal": beta * spent / for_order,
                "error_over_no_sample": error / whole,
            }
        )  # fmt: skip
    return rows


def _error(counts: Ints, drawn: Ints, beta: float, for_order: float, for_sums: float, *about: Any) -> float:
    """The expected error of optimal clusters if they are found from the noisy counts of a sample."""
    noisy = noise_for(about[0], "theorems", *about[1:]).draw(geometric("counts", 1, for_order), drawn).answers
    values, order = sorted_counts(noisy, for_order, ETA)
    marks = optimal(np.rint(values / beta).astype(np.int64), laplace_scale(for_sums), Step.solve)
    return expected_mse(counts[order], np.cumsum(marks) - 1, for_sums)


def _gaps(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float) -> list[Row]:
    counts = sets[name]
    for_order, for_sums = split(epsilon, 2, (settings.share, 1 - settings.share))
    noise = noise_for(seed, "theorems", name, epsilon)
    values, _ = sorted_counts(noise.draw(geometric("counts", 1, for_order), counts).answers, for_order, ETA)
    scale, width = laplace_scale(for_sums), min(settings.width, counts.size)
    fixed = (np.arange(counts.size) % width == 0).astype(np.int64)
    row: Row = {
        "width_of_GS": width,
        "least_gap": math.sqrt(2 * (width * width - width + 1)) * scale / (width - 1),
    }  # fmt: skip
    for rule, marks in (
        ("GS", fixed),
        ("AHP-greedy", greedy(values, scale, Step.solve)),
        ("AHP", optimal(values, scale, Step.solve)),
    ):
        clusters = np.split(values, np.flatnonzero(marks)[1:])
        worth = sum(gaps_to_split(cluster, 1 / scale).size > 0 for cluster in clusters)
        row |= {f"clusters_{rule}": len(clusters), f"worth_a_cut_{rule}": worth}
        large = [cluster.size for cluster in clusters if cluster.size > (epsilon / for_sums) ** 2]
        row |= {f"large_{rule}": len(large), f"bins_in_large_{rule}": sum(large)}
    return [row]


def gaps_to_split(values: ArrayLike, epsilon: float) -> Ints:
    """Theorem 5.3: the places where dividing a cluster certainly does not increase its expected error.

    If values j and j + 1 of an ascending cluster of w values differ by at least √(2(w² − w + 1))/(ε₂(w − 1)),
    then err(C) ≥ err(C₁) + err(C₂) for its first j values and the rest, with err = Σ (value − mean)² +
    2/(|C|·ε₂²). The condition is sufficient, not necessary.

    Parameters
    ----------
    values : array, shape (w,)
        The cluster, in ascending order.
    epsilon : float
        ε₂, for Laplace noise of scale 1/ε₂ on the cluster's sum.

    Returns
    -------
    int64 array
        The numbers j of values before each such gap.

    Raises
    ------
    InputError
        If the values do not ascend, or ε is not a positive number.

    Examples
    --------
    >>> gaps_to_split([1, 2, 9, 10], epsilon=0.5).tolist()
    [2]
    """
    cluster = np.asarray(values, dtype=np.float64)
    epsilon = check_epsilon(epsilon)
    gaps = np.diff(cluster)
    if cluster.ndim != 1 or not (gaps >= 0).all():
        raise InputError("the values of a cluster must be in ascending order")
    w = cluster.size
    if w < 2:
        return np.zeros(0, dtype=np.int64)
    least = math.sqrt(2 * (w * w - w + 1)) / (epsilon * (w - 1))
    return np.flatnonzero(gaps >= least).astype(np.int64) + 1


CLOSE = 1.5
"""Published and ours agree if one is at most this many times the other."""


def divergence(p: ArrayLike, q: ArrayLike) -> float:
    """Σ p ln(p/q) of two histograms divided by their sums, where p is positive."""
    one, other = np.asarray(p, np.float64), np.asarray(q, np.float64)
    there = one > 0
    one, other = one / one.sum(), other / other.sum()
    return float(one[there] @ np.log(one[there] / other[there]))


def definitions(true: ArrayLike, released: ArrayLike) -> dict[str, float]:
    """The divergence by each definition; the first is the study's."""
    before, after = np.asarray(true, np.float64), np.asarray(released, np.float64)
    least = 1 / before.size
    raised: Floats = np.maximum(after, least)
    both = (before > 0) & (after > 0)
    ours = kld(np.asarray(true), after)
    return {
        "ours": ours,
        "floor of 1": kld(np.asarray(true), after, 1.0),
        "floor of 1e-6": kld(np.asarray(true), after, 1e-6),
        "1 added to every bin": divergence(before + 1, np.maximum(after, 0) + 1),
        "the other way round": divergence(raised, np.maximum(before, least)),
        "the same, floor of 1": divergence(np.maximum(after, 1), np.maximum(before, 1)),
        "positive bins alone": divergence(before[both], after[both]),
        "absolute values": divergence(before, np.maximum(np.abs(after), least)),
        "sorted after release": divergence(np.sort(before), np.sort(raised)),
        "in bits": ours / float(np.log(2)),
    }


def definition_parts(sets: Sets, settings: Settings, seed: int) -> list[Part]:
    """Every published cell of sets of the paper's size by every definition, one run each."""
    cases = [
        {"data": name, "epsilon": epsilon, "method": method, "published": printed}
        for name in sets
        if name in PAPER_SIZED
        for epsilon in settings.epsilons
        for method, printed in published(name, epsilon).items()
    ]
    if not cases:
        return []
    frame = all_rows(_definitions, cases, "other definitions", (sets, settings, seed))
    texts = [f"One run: how many of {len(frame)} published cells are within a factor of {CLOSE:g}, and each."]
    frames = {"definitions_near": near(frame), "definitions": frame}
    return [Part("definitions", "Other definitions of the divergence", texts, frames)]


def near(frame: DataFrame) -> DataFrame:
    """How many cells of each definition are near the published ones, and whose."""
    rows = []
    for name in frame.columns[4:]:
        close = frame.method[np.abs(np.log(frame[name] / frame.published)) <= np.log(CLOSE)].value_counts()
        which = ", ".join(f"{method} {close[method]}" for method in PUBLISHED_METHODS if method in close)
        rows.append({"definition": name, "cells": int(close.sum()), "which": which})
    return pd.DataFrame(rows)


def _definitions(
    sets: Sets, settings: Settings, seed: int, name: str, epsilon: float, method: str, _printed: float
) -> list[Row]:
    counts = sets[name]
    made = publisher(method, counts.size, settings)(counts, epsilon, noise_for(seed, name, epsilon, 0))
    return [{**definitions(counts, made.counts)}]


def bound(runs: DataFrame, sets: Sets, settings: Settings, seed: int) -> Part:
    """The bound on every set, beside the published KLDs of AHP."""
    mean = runs.groupby(["data", "epsilon", "method"])[["kld", "mse"]].mean()
    rows = []
    for name, counts in sets.items():
        for epsilon in settings.epsilons:
            least = least_errors(counts, epsilon)
            ours = mean.xs((name, epsilon), level=("data", "epsilon"))
            row: dict[str, Any] = {
                "data": name, "epsilon": epsilon, "least_kld": least.kld, "AHP_kld": ours.kld["AHP"],
                "AHP_kld_on_draws": np.nan, "below_by_place": ", ".join(ours.index[ours.kld < least.kld]),
                "least_mse": least.mse, "AHP_mse": ours.mse["AHP"],
                "published_AHP_kld": np.nan, "published_is": "", "epsilon_needed": np.nan,
            }  # fmt: skip
            printed = published(name, epsilon).get("AHP-greedy")
            if printed and name in PAPER_SIZED:
                row |= {
                    "AHP_kld_on_draws": _on_draws(counts, epsilon, settings, seed),
                    "published_AHP_kld": printed,
                    "published_is": "above" if printed >= least.kld else "below",
                    "epsilon_needed": _needed(counts, printed),
                }
            rows.append(row)
    texts = [
        "No ε-DP method has a lower KLD or squared error by bin on average over histograms whose bins are "
        "drawn from these counts (`hierdp.analysis.bayes_bound`); for one fixed histogram this is a "
        "heuristic. The methods below it are listed; the last column is the least ε with the published KLD."
    ]
    return Part("bound", "The least errors without places", texts, {"bound": pd.DataFrame(rows)})


def _needed(counts: Ints, printed: float) -> float:
    """The least ε with which this KLD is possible; NaN if it is not within 10⁻⁴ … 100."""

    def off(log: float) -> float:
        return least_errors(counts, math.exp(log)).kld - printed

    low, high = math.log(1e-4), math.log(100)
    return math.exp(brentq(off, low, high, xtol=1e-5)) if off(low) > 0 > off(high) else math.nan


def _on_draws(counts: Ints, epsilon: float, settings: Settings, seed: int) -> float:
    """The KLD of AHP on histograms drawn from the counts: the mean, weighted by numbers of people."""
    rng = np.random.default_rng(seed_for(seed, "draws", epsilon))
    total = weighted = 0.0
    for run in range(settings.bound_runs):
        drawn = rng.choice(counts, counts.size)
        made = publisher("AHP", drawn.size, settings)(drawn, epsilon, noise_for(seed, "draws", epsilon, run))
        weighted += float(drawn.sum()) * kld(drawn, made.counts)
        total += float(drawn.sum())
    return weighted / total


Regional = tuple[tuple[str, ...], Tree, NDArray[np.int64]]
"""Names of the levels, the tree, and true counts of shape (nodes, bins)."""

WAYS = (
    "Laplace", "AHP", "Laplace, inference", "AHP, inference", "Laplace, QIP", "AHP, QIP", "mixed, QIP",
    "Laplace, leaves only", "AHP, leaves only",
)  # fmt: skip
SHOWN = ("AHP", "Laplace, inference", "AHP, inference", "Laplace, QIP", "AHP, QIP", "mixed, QIP")


def hierarchical_parts(settings: Settings, data: Path | None, seed: int) -> list[Part]:
    """The experiment on the available data; no part if there are none."""
    sets = regional(data)
    if not sets:
        return []
    runs = regional_errors(sets, settings, seed)
    text = (
        "Root mean squared errors per bin, by level; ± over runs. A histogram at every region, by noise on "
        "every bin (Laplace) or optimal clustering (AHP), with equal shares of ε; made consistent by "
        "BlockInference with equal variances (inference), or by HierarchyQIP with its total (QIP). Mixed: "
        "AHP at the leaves, plain noise above. Leaves only: all of ε at the leaves, added up."
    )
    frames = {f"hierarchical_{name}": _regions_table(runs[runs.data == name]) for name in sets}
    drawn = _regions_figure(runs, sets)
    return [Part("hierarchical", "AHP at every region of a hierarchy", [text], frames, drawn)]


def regional(data: Path | None) -> dict[str, Regional]:
    """Taxis by size in Manhattan, and workers by county of work in each home state."""
    sets: dict[str, Regional] = {}
    if there := present(data, "taxi"):
        taxis = taxi(there)
        sets["taxi"] = taxis.hierarchy.levels, taxis.hierarchy.tree, taxis.counts[:, 1:]
    if there := present(data, FILE):
        trips = commuting(there)
        counties = trips.axes[0]
        states = counties.tree.nodes_of(1)
        home = counties.tree.parent[counties.tree.leaves][trips.cells[:, 0]] - states.start
        tree = Tree([np.zeros(states.stop - states.start, np.int64)])
        leaves = np.zeros((tree.leaves.size, trips.axes[1].names[-1].size), dtype=np.int64)
        np.add.at(leaves, (home, trips.cells[:, 1]), trips.counts)
        sets["commuting"] = ("nation", "state"), tree, np.asarray(tree.sum_up(leaves))
    return sets


def regional_errors(sets: Mapping[str, Regional], settings: Settings, seed: int) -> DataFrame:
    """Root mean squared error by level of every run."""
    cases = crossed(data=sets, epsilon=settings.hierarchy_epsilons, run=range(settings.hierarchy_runs))
    return all_rows(_regional_errors, cases, "AHP at every region", (sets, seed))


def _regional_errors(
    sets: Mapping[str, Regional], seed: int, name: str, epsilon: float, run: int
) -> list[Row]:
    levels, tree, true = sets[name]
    released = regional_answers(tree, true, epsilon, noise_for(seed, "hierarchical", name, epsilon, run))
    return [
        {"way": way, "level": level, "rmse": float(np.sqrt(((counts - true)[nodes] ** 2).mean()))}
        for way, counts in released.items()
        for level, nodes in zip(levels, map(tree.nodes_of, range(len(levels))), strict=True)
    ]


def regional_answers(tree: Tree, true: NDArray[np.int64], epsilon: float, noise: Noise) -> dict[str, Floats]:
    """The counts of each of `WAYS`, by name, shape (nodes, bins)."""
    share = epsilon / (tree.depth + 1)

    def each(method: str, counts: NDArray[np.int64], budget: float) -> Floats:
        return np.stack([METHODS[method].publish(row, budget, noise).counts for row in counts])

    plain, ahp = each("Laplace", true, share), each("AHP", true, share)
    mixed = plain.copy()
    mixed[tree.leaves] = ahp[tree.leaves]
    inferred = inference(tree, plain), inference(tree, ahp)
    totals = [max(0, round(float(counts[0].sum()))) for counts in inferred]
    leaves = [
        np.asarray(tree.sum_up(each(method, true[tree.leaves], epsilon))) for method in ("Laplace", "AHP")
    ]
    whole = [qip(tree, plain, totals[0]), qip(tree, ahp, totals[1]), qip(tree, mixed, totals[0])]
    return dict(zip(WAYS, (plain, ahp, *inferred, *whole, *leaves), strict=True))


def qip(tree: Tree, noisy: Floats, total: int) -> Floats:
    """The whole, non-negative, consistent counts nearest to the rounded noisy ones."""
    model = HierarchyQIP(tree, np.rint(noisy).astype(np.int64), total)
    return np.asarray(Step.solve("consistency of all regions", model).solution.x, dtype=np.float64)


def inference(tree: Tree, noisy: Floats) -> Floats:
    """Consistent counts by least squares, each bin by itself."""
    bins = Workload.marginals(noisy.shape[1:], [(0,)])
    model = BlockInference(tree, bins, noisy, np.ones((tree.depth + 1, 1)))
    return np.asarray(Step.solve("consistency of all regions", model).solution.x)


def _regions_table(runs: DataFrame) -> DataFrame:
    return summed_up(
        runs,
        ["epsilon", "way"],
        lambda mine: {"runs": mine.run.nunique()} | by_level(mine.rmse, mine.level, "{}", "±_{}"),
    )


def _regions_figure(runs: DataFrame, sets: Mapping[str, Regional]) -> Any:
    panels = [(name, level) for name, (levels, _, _) in sets.items() for level in levels]
    drawn, axes = plots.figure(2.6 * len(panels), 3.6, len(panels))
    for panel, (name, level) in zip(axes, panels, strict=True):
        mean = runs[(runs.data == name) & (runs.level == level)].groupby(["way", "epsilon"]).rmse.mean()
        for k, way in enumerate(SHOWN):
            ratio = (mean[way] / mean["Laplace"]).sort_index()
            panel.plot(ratio.index, ratio.to_numpy(), label=way, **plots.style(k))
        panel.axhline(1, color="#888888", linewidth=1)
        plots.label(panel, f"{name}: {level}", "ε, of all levels", log="xy", ticks=runs.epsilon)
    ends = np.array([panel.get_ylim() for panel in axes])
    for panel in axes:  # one scale for all, to compare them
        panel.set_ylim(ends[:, 0].min(), ends[:, 1].max())
        plots.plain_log(panel.yaxis)
    axes[0].set_ylabel("RMSE per bin over that of plain noise")
    plots.below(drawn, axes[:1], len(SHOWN))
    return drawn


DRAWN = ("AHP", "NF", "AHP-by-place", "SF", "PHP", "GS", "Laplace")
"""The methods in the figures, with their colours and markers; AHP-greedy would coincide with AHP."""

WIN = 0.999
"""Means of runs that differ by less than this ratio count as equal."""


def about(sets: Sets) -> Part:
    """Statistics of the data, beside the paper's Table 1."""
    rows: list[dict[str, Any]] = []
    for name, counts in sets.items():
        values = (counts.size, int((counts == 0).sum()), counts.mean(), counts.var(), int(counts.max()))
        people, ordered = int(counts.sum()), bool((np.diff(counts) <= 0).all())
        rows.append(_row(name, people, ordered, values))
        known = COUNTERPARTS.get(name, "")
        if known and f"published: {known}" not in {row["data"] for row in rows}:
            printed = CHARACTERISTICS[known]
            people, ordered = round(printed[0] * printed[2]), known == "NetTrace"
            rows.append(_row(f"published: {known}", people, ordered, printed))
    texts = [
        "The paper's own files are not available here; see docs/zhang2014.md for how two are rebuilt.",
        "; ".join(f"{name}: {WHAT[name]}" for name in sets if name in WHAT) + ".",
    ]
    return Part("data", "Table 1: the data", texts, {"data": pd.DataFrame(rows)})


def _row(name: str, people: int, ordered: bool, values: Sequence[float]) -> dict[str, Any]:
    columns = ("bins", "empty_bins", "mean", "variance", "largest")
    return {
        "data": name,
        "people": people,
        "sorted": "yes" if ordered else "no",
        **dict(zip(columns, values, strict=True)),
    }


def tables(runs: DataFrame, settings: Settings) -> Part:
    """Tables 2–4: KLD of all methods on all data."""
    rows = []
    for (name, epsilon), mine in runs.groupby(["data", "epsilon"], sort=False):
        values = mine.groupby("method").kld
        known = pd.Series(published(str(name), float(str(epsilon))), dtype=float)
        whats = {"published": known, "mean": values.mean(), "±": values.std(), "runs": values.size()}
        for what, cells in whats.items():
            if len(cells):
                row = cells.reindex(settings.methods).astype(float).to_dict()
                rows.append({"data": name, "epsilon": epsilon, "what": what, **row})
    texts = [
        "KLD in nats; a released bin below 1/n counts as 1/n, for n bins. The paper's AHP is the greedy one."
    ]
    return Part("kld", "Tables 2–4: KLD", texts, {"kld": pd.DataFrame(rows)})


def published(name: str, epsilon: float) -> dict[str, float]:
    """The printed KLD by method, on the paper's data set that this one stands for."""
    values = TABLES.get((epsilon, COUNTERPARTS.get(name)), ())
    return dict(zip(PUBLISHED_METHODS, values, strict=False))


def orderings(runs: DataFrame, settings: Settings) -> Part:
    """The five methods of the paper from best to worst, beside the published order."""

    def ordered(mine: DataFrame) -> dict[str, Any]:
        mean = mine.groupby("method").kld.mean()
        five = [m for m in PUBLISHED_METHODS if m in mean.index]
        known = published(mine.data.iloc[0], float(mine.epsilon.iloc[0]))
        row: dict[str, Any] = {
            "order": _order(mean[five]), "best_of_all": mean.idxmin(),
            "best_rival_over_AHP-greedy": mean[five[1:]].min() / mean[five[0]] if len(five) > 1 else np.nan,
            "published_order": _order(pd.Series(known)) if known else "",
            "pairs_as_published": "",
        }  # fmt: skip
        if known:
            pairs = list(combinations(five, 2))
            same = sum((mean[a] < mean[b]) == (known[a] < known[b]) for a, b in pairs)
            row["pairs_as_published"] = f"{same} of {len(pairs)}"
        floors = {floor: mine.groupby("method")[f"kld_{floor:g}"].mean()[five] for floor in settings.floors}
        return row | {f"order_floor_{floor:g}": _order(means) for floor, means in floors.items()}

    texts = ["From the least mean KLD to the largest (= within 0.1 %). Floors: of released bins, in people."]
    return Part("orderings", "Orderings", texts, {"orderings": summed_up(runs, ["epsilon", "data"], ordered)})


def figures(ranges: DataFrame, settings: Settings) -> list[Part]:
    """Figures 2–5: squared error by size of range, one figure per data set and one panel per ε."""
    return [_figure(ranges[ranges.data == name], str(name), settings) for name in dict.fromkeys(ranges.data)]


def _figure(ranges: DataFrame, name: str, settings: Settings) -> Part:
    found = ranges.groupby(["epsilon", "size", "method"], sort=False).mse
    mean, count = found.mean(), len(settings.epsilons)
    drawn, panels = plots.figure(3.0 * count + 1.4, 3.3, panels=count)
    for axes, epsilon in zip(panels, settings.epsilons, strict=True):
        for k, method in enumerate(DRAWN):
            mine = ranges[(ranges.epsilon == epsilon) & (ranges.method == method)].groupby("size").mse
            plots.line(axes, mine, method, k, aside=1.06 ** (k - 3))  # coinciding lines remain visible
        plots.label(axes, f"ε = {epsilon:g}", "size of the range (bins)", log="y")
        axes.set_xscale("log", base=2)
    panels[0].set_ylabel("mean squared error (people²)")
    plots.beside(panels[-1])
    number = FIGURE_NUMBERS.get(name)
    title = f"Figure {number}: range queries on {name}" if number else f"Range queries on {name}"
    texts = [
        f"Means of {settings.runs} runs, bars from the least to the largest; greedy AHP lies on AHP's line."
    ]
    key = f"ranges_{name.lower().replace(', ', '_').replace(' ', '_').replace('-', '_')}"
    order = [method for method in settings.methods if (ranges.method == method).any()]
    frames = {
        key: mean.unstack("method")[order].reset_index(),
        f"{key}_spread": found.std().unstack("method")[order].reset_index(),
    }
    return Part(key, title, texts, frames, drawn)


def claims(ranges: DataFrame) -> Part:
    """The claims of §6 about the figures, counted."""
    mean = ranges.groupby(["data", "epsilon", "size", "method"], sort=False).mse.mean().unstack("method")

    def counted(here: DataFrame) -> dict[str, Any]:
        rivals = here[[m for m in PUBLISHED_METHODS[1:] if m in here and here[m].notna().all()]].min(axis=1)
        mine = here["AHP-greedy"]
        over = (rivals / mine).agg(["min", "median", "max"]).to_numpy()
        return {
            "sizes": len(here),
            "AHP-greedy_under_all_rivals": int((mine < rivals).sum()),
            "AHP-greedy_under_Laplace": int((mine < here.Laplace).sum()),
            **{
                f"rival_over_AHP-greedy_{name}": x
                for name, x in zip(("least", "median", "most"), over, strict=True)
            },
            "grows_with_size": int((np.diff(mine.to_numpy()) > 0).sum()),
        }

    texts = [
        "Of the drawn sizes: where the greedy AHP has less error, and in how many steps its error grows."
    ]
    frames = {"claims": summed_up(mean, ["data", "epsilon"], counted)}
    return Part("claims", "The paper's claims about its figures", texts, frames)


def seconds(runs: DataFrame) -> Part:
    """The time of every method."""
    found = runs.groupby(["data", "method"], sort=False).agg(
        median_seconds=("seconds", "median"),
        longest_seconds=("seconds", "max"),
        clusters=("clusters", "median"),
    )
    texts = ["From true counts to released bins, with simulated noise, proofs included, over all ε."]
    return Part("seconds", "Time", texts, {"seconds": found.reset_index()})


def tuning(found: DataFrame, settings: Settings) -> list[Part]:
    """The gain by parameters tuned on the data, which is not private; no part if all have many bins."""
    if found.empty:
        return []

    def tried(mine: DataFrame) -> dict[str, Any]:
        usual, values = mine[mine.value.isna()].mse.iloc[0], mine[mine.value.notna()]
        row = {"default_mse": usual}
        for end, place in (("best", values.mse.argmin()), ("worst", values.mse.argmax())):
            one = values.iloc[int(place)]
            row |= {f"{end}_value": one.value, f"{end}_over_default": one.mse / usual}
        return row

    texts = [
        f"Squared error by bin over that of the default, means of {settings.tuned_runs} runs. Choosing a "
        "value here would not be private. Defaults: η = 0.35, ε₁ = 0.7 ε for AHP, ⌈√n⌉ bins per cluster for "
        "GS."
    ]
    frames = {"tuning": summed_up(found, ["data", "epsilon", "method", "parameter"], tried)}
    return [Part("tuning", "Parameters tuned on the data", texts, frames)]


def _order(means: Series[float]) -> str:
    """``a < b = c``."""
    ranked = means.sort_values(kind="stable")
    text = ""
    before = None
    for name, value in ranked.items():
        sign = "" if before is None else " = " if before >= value * WIN else " < "
        text += f"{sign}{name}"
        before = value
    return text


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``dpbench/`` (see `hierdp.data.dpbench`), or a file of counts. Missing data sets
    are left out; if all are missing, two synthetic histograms are used. The same seed gives the same numbers,
    except times.
    """
    sets = histograms(data, settings.sets, seed)
    runs, ranges = accuracy(sets, settings, seed)
    made = [
        about(sets),
        tables(runs, settings),
        orderings(runs, settings),
        bound(runs, sets, settings, seed),
        *definition_parts(sets, settings, seed),
        theorem_part(sets, settings, seed),
        *figures(ranges, settings),
        claims(ranges),
        optimum_part(rules(sets, settings, seed), settings),
        *tuning(tuned(sets, settings, seed), settings),
        *hierarchical_parts(settings, data, seed),
        seconds(runs),
    ]
    return Study("Zhang et al. 2014, reproduced", made, said(settings, seed, sets))
