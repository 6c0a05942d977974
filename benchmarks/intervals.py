"""How often intervals cover the true counts of public data, and how wide they are, by size of the true count.

The data are the commuters of New England (two axes, by state and county), the precincts of Delaware (group by
age), and households made up like the census (group sizes). Each is released many times with simulated noise.
A row is a data set, a method, a level and a class of true counts, for the intervals of ``hierdp query
--confidence`` ("measured") and, of far fewer releases, for those of the Census Bureau's approximate Monte
Carlo method ("AMC"), a parametric bootstrap. The counts of a class are not independent, as siblings share
noise above them; their number says how many there were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.measuring import DATA, data_file
from hierdp import Hierarchy, SimulatedNoise
from hierdp.counts.selection import Selection
from hierdp.data.census import census
from hierdp.mechanisms.group_size.mechanism import group_size
from hierdp.mechanisms.intervals import Intervals
from hierdp.mechanisms.registry import released_by
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import counts_in
from hierdp.mechanisms.top_down.mechanism import top_down, true_table
from hierdp.record.release import Release
from hierdp.record.written import Written
from hierdp.tables import Axis, flows
from hierdp.tables.tabulated import cross_table

NEW_ENGLAND = {"23", "33", "50", "25", "44", "09"}
CLASSES = (0, 1, 10, 100, 1_000)
"""The least true counts of the classes."""

CONFIDENCES = (0.9, 0.95)

REPLICATES = 25
"""Second releases of a release; the Census Bureau has as many."""

EACH = 25
"""The most counts of a class and level of a release whose intervals are made, one by one."""

Counts = Mapping[str, Any]
"""By level, all counts in a fixed order."""

Question = Callable[[str, int], Selection]
"""From a level and the position of a count: its question."""

Case = tuple[str, Callable[[int], Release], Callable[[Any], Counts], Question]
"""Its name, the release of a seed, the counts of a table (None: the true ones), the question of a count."""


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
                pd.Index(places.names[d]).get_indexer(here[axis])
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

        yield f"commuters of New England, ε = {epsilon:g}", release, counts, question


def precincts(folder: Path) -> Iterator[Case]:
    """Persons by precinct, group and age."""
    rows = pd.read_parquet(data_file(folder, "us-precincts-2020.parquet"))
    rows = rows[rows["state"] == "DE"]
    plan = plan_of({"attributes": {name: sorted(rows[name].unique()) for name in ("group", "age")}})
    data = cross_table(
        rows, axis=Axis.of(["county", "precinct"]), attributes=plan.attributes, count="persons"
    )
    tree, queries = data.hierarchy.tree, Queries(plan)
    everywhere = np.asarray(tree.sum_up(data.counts))
    levels = list(data.hierarchy.levels)
    groups = [str(name) for name in plan.attributes["group"] or ()]
    ages = [str(name) for name in plan.attributes["age"] or ()]

    def counts(table: pd.DataFrame | None) -> Counts:
        found: dict[str, Any] = {}
        tables = (
            [everywhere[tree.nodes_of(k)] for k in range(tree.depth + 1)]
            if table is None
            else counts_in(table, queries, data.hierarchy)
        )
        for name, held in zip(levels, tables, strict=True):
            shaped = np.asarray(held, float).reshape(len(held), len(groups), len(ages))
            found[f"{name}: group × age"] = shaped.ravel()
            found[f"{name}: group"] = shaped.sum(axis=2).ravel()
        return found

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
        return tabulate(data, plan, 2.0, 1e-10, SimulatedNoise(run), "TopDown")

    yield "precincts of Delaware, ε = 2", release, counts, question


def households(_: Path) -> Iterator[Case]:
    """Households by size, made up."""
    data = census(groups=200_000, leaves=104, max_size=50)
    places, sizes = data.hierarchy, data.counts.shape[1]

    def counts(table: pd.DataFrame | None) -> Counts:
        held = data.counts if table is None else table["groups"].to_numpy().reshape(data.counts.shape)
        levels = {
            name: np.asarray(held[places.tree.nodes_of(k)]) for k, name in enumerate(places.levels) if k
        }
        return {
            **{name: part.ravel() for name, part in levels.items()},
            **{f"{name}: 2 to 4": part[:, 2:5].sum(axis=1) for name, part in levels.items()},
        }

    def question(name: str, at: int) -> Selection:
        level, *several = name.split(": ")
        number = places.levels.index(level)
        region = np.zeros(int(places.tree.level_sizes[number]), bool)
        place, size = (at, 0) if several else divmod(at, sizes)
        region[place] = True
        return Selection(number, {"region": region}, {"size": ["2", "3", "4"] if several else [str(size)]})

    for method in ("M_c^dp", "M_H^dp"):

        def release(run: int, method: str = method) -> Release:
            return group_size(data, 1.0, SimulatedNoise(run), method)

        yield f"households, ε = 1, {method}", release, counts, question


SETS = {"commuters": commuters, "precincts": precincts, "households": households}


def run(
    *,
    only: Annotated[tuple[str, ...], "of: commuters, precincts, households"] = tuple(SETS),
    data: Annotated[Path, "a folder with the data"] = DATA,
    runs: Annotated[int, "releases"] = 200,
    replicated: Annotated[int, f"releases of which {REPLICATES} second ones are made"] = 3,
) -> Iterator[dict[str, Any]]:
    for chosen in only:
        for name, release, counts, question in SETS[chosen](data):
            truth = counts(None)
            yield from _rows(name, "measured", runs, truth, partial(_measured, release, truth, question))
            if released_by(release(0).mechanism).released_again is not None:
                again = partial(_amc, release, truth, counts)
                yield from _rows(name, "AMC", replicated, truth, again)


def _measured(release: Any, truth: Counts, question: Question, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals of some counts of each class and level."""
    made = release(run)
    source: Intervals = released_by(made.mechanism).intervals_of(
        Written(made.manifest(), made.counts, dict(made.regions), made.measurements)
    )
    rng = np.random.default_rng(run)
    for level, true in truth.items():
        classes = _class(true)
        for each in np.unique(classes):
            there = np.flatnonzero(classes == each)
            at = rng.choice(there, min(EACH, there.size), replace=False)
            for confidence in CONFIDENCES:
                found = np.array([source.of(question(level, int(one)), confidence) for one in at])
                yield confidence, level, at, found[:, 0], found[:, 1]


def _amc(release: Any, truth: Counts, counts: Any, run: int) -> Iterator[tuple[Any, ...]]:
    """The intervals of all counts, from second releases."""
    made = release(run)
    again = released_by(made.mechanism).released_again
    manifest, estimate = made.manifest(), counts(made.table)
    second = [
        counts(again(made.table, manifest, made.regions, SimulatedNoise(1_000 * run + 100 + b)))
        for b in range(REPLICATES)
    ]
    for level in truth:
        for confidence in CONFIDENCES:
            low, high = amc(estimate[level], np.array([one[level] for one in second]), confidence)
            yield confidence, level, np.arange(low.size), low, high


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


def _rows(name: str, how: str, runs: int, truth: Counts, intervals: Any) -> Iterator[dict[str, Any]]:
    found = defaultdict[tuple[float, str, int], list[Any]](list)
    for number in range(runs):
        for confidence, level, at, low, high in intervals(number):
            true = truth[level][at]
            hit, classes = (low <= true) & (true <= high), _class(true)
            for one in np.unique(classes).tolist():
                part = classes == one
                found[confidence, level, one].append((part.sum(), hit[part].sum(), (high - low)[part].sum()))
    for (confidence, level, one), parts in sorted(found.items()):
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


def _class(counts: Any) -> Any:
    return np.searchsorted(CLASSES, counts, side="right") - 1


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    by = rows.groupby(["data", "interval", "confidence", "least"], sort=False)
    made = by.agg(
        levels=("level", "size"),
        least_covered=("covered", "min"),
        most_covered=("covered", "max"),
        width=("width", "median"),
    )
    return made.reset_index()
