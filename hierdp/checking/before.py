"""Releases of 0.2.0 and before have no measurements: these are read from their tables, settings and proofs.

They are then checked as those of a newer release. This file does not change any more, and goes with the first
version that no longer checks releases of format 0.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import cells_at
from hierdp.counts.rows import frame_of
from hierdp.counts.size_table import fits, narrow
from hierdp.measurements.file import FORMAT
from hierdp.measurements.measurement import Measurement, Measurements
from hierdp.measurements.measuring import Differs
from hierdp.privacy.budget import spends_of, split
from hierdp.record.proofs import read_each
from hierdp.record.written import TooLarge, Written
from models import Model, Workload
from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.instances import unpacked

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.mechanisms.tabulation.budget import Share
    from hierdp.mechanisms.tabulation.queries import Queries

EXACT = 2**51
"""Up to this size, a sum is recovered exactly from its mean: times the number of bins, rounded."""

Manifest = Mapping[str, Any]


def upgraded(release: Written, proofs: Path, limit: int) -> Written:
    """The release with its measurements and the settings of newer ones; unchanged if it has measurements.

    Raises `Differs` if the measurements cannot be recovered.
    """
    manifest = release.manifest
    if release.measurements is not None or "measurements" in manifest:
        return release
    table, positions, untested = release.table, None, frozenset[str]()
    if manifest["mechanism"] in CLUSTERINGS:
        settings, answers = _clustering(table, manifest)
    elif manifest["mechanism"] in RANGES:
        settings, answers = _ranges(table, manifest)
        table = table.drop(columns="noisy", errors="ignore")
    elif manifest["mechanism"] in GROUP_SIZES:
        settings, answers = manifest["settings"], _group_sizes(release, proofs, limit)
    elif COUNTS_OF_COUNTS.fullmatch(manifest["mechanism"]):
        settings, answers = manifest["settings"], _counts_of_counts(release, proofs, limit)
    elif manifest["mechanism"] in TABULATIONS:
        settings = manifest["settings"]
        answers, untested = _tables(release, proofs, limit)
    elif manifest["mechanism"] in FINEST:
        settings, (answers, positions) = manifest["settings"], _finest(release)
    elif manifest["mechanism"] in LEVELS:
        settings, answers = manifest["settings"], _levels(release, proofs, limit)
    else:
        return release
    parts = zip(spends_of(manifest["budget"]), answers, strict=True)
    found = Measurements(tuple(Measurement(spend, each, positions) for spend, each in parts))
    newer = {**manifest, "settings": settings, "measurements": FORMAT}
    return replace(release, manifest=newer, table=table, measurements=found, untested=untested)


class _Solved(NamedTuple):
    """A step's name, and its model, which files of format 0.2 have."""

    step: str
    model: Model


def _models(release: Written, proofs: Path, limit: int) -> Iterator[_Solved]:
    if proofs.is_file():
        lines = release.manifest["solved"]
        yield from map(
            _Solved._make, read_each(proofs, lambda arrays: unpacked(arrays).model, lines, limit, True)
        )


def _clustering(table: DataFrame, manifest: Manifest) -> tuple[dict[str, Any], list[Ints]]:
    name, settings = manifest["mechanism"], manifest["settings"]
    spends = manifest["budget"]["spends"]
    clusters = table["cluster"].to_numpy(np.int64)
    sizes = np.bincount(clusters)
    means = np.zeros(sizes.size)
    means[clusters] = table["count"].to_numpy(np.float64)
    sums = np.rint(means * sizes)
    if not (np.abs(sums) < EXACT).all():
        raise Differs("sums of clusters are too large to be recovered from their means")
    last = sums.astype(np.int64)
    kept = {name: settings[name] for name in settings if name not in ("epsilon_1", "epsilon_2")}
    if name not in ("NF", "Laplace", "SF"):
        kept["share"] = _share_of(manifest["budget"]["epsilon"], settings["epsilon_1"], settings["epsilon_2"])
    if name == "Laplace":
        return kept, [last]
    if name == "NF":
        return kept, [table["noisy"].to_numpy(np.int64)]
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    if name == "SF":
        largest = [] if spends[0]["query"] != "largest count" else [np.array([kept.pop("largest")])]
        drawn = [starts[:0:-1] - np.arange(starts.size - 1, 0, -1)] if len(spends) > 1 else []
        return kept, [*largest, *drawn, last]
    if name == "PHP":
        return kept, [*_bisections(starts, clusters.size, settings["rounds"]), last]
    return kept, [table["noisy"].to_numpy(np.int64), last]


def _share_of(epsilon: float, first: float, second: float) -> float:
    """The share that divided the budget so, to the last bit: with the fewest digits."""
    for digits in range(1, 18):
        share = round(first / (first + second), digits)
        if 0 < share < 1 and split(epsilon, 2, (share, 1 - share)) == [first, second]:
            return share
    raise Differs(f"no share divides ε = {epsilon:g} into {first:g} and {second:g}")


def _bisections(starts: Ints, bins: int, rounds: int) -> list[Ints]:
    """Choices that lead to the released clusters: they were not kept, so any that do are accepted."""
    ends, answers = [(0, bins)], []
    for _ in range(rounds):
        ends = [(first, end) for first, end in ends if end - first > 1]
        inside = [starts[(starts > first) & (starts < end)] for first, end in ends]
        cuts = [int(those[those.size // 2]) if those.size else 0 for those in inside]
        relative = [max(0, cut - first) for (first, _), cut in zip(ends, cuts, strict=True)]
        answers.append(np.array(relative, dtype=np.int64))
        ends = [
            part
            for (first, end), cut in zip(ends, cuts, strict=True)
            if cut
            for part in ((first, cut), (cut, end))
        ]
    return [*answers, np.array([starts.size - 1])]


def _ranges(table: DataFrame, manifest: Mapping[str, Any]) -> tuple[dict[str, Any], list[Ints]]:
    settings, spends = dict(manifest["settings"]), manifest["budget"]["spends"]
    shape = [axis["bins"] for axis in settings["range_query"]["axes"]]
    if manifest["mechanism"] == "Wavelet":
        counts = table["count"].to_numpy(np.float64).reshape(shape)
        if not np.abs(counts).sum() * counts.size < EXACT:
            raise Differs("the counts are too large for their coefficients to be recovered")
        from hierdp.mechanisms.range_query.wavelet import coefficients

        return settings, [np.rint(coefficients(counts)).astype(np.int64).ravel()]
    if manifest["mechanism"] == "matrix":
        noisy = settings.pop("noisy")
        if not all(type(count) is int for count in noisy):
            raise Differs("the noisy answers are not whole numbers")
        return settings, [np.array(noisy, dtype=np.int64)]
    measured, level = table["noisy"], table["level"].to_numpy()
    if str(measured.dtype) != "Int64" or not np.array_equal(measured.isna(), level == 0):
        raise Differs("the column 'noisy' does not have a whole number for all but the root")
    if settings.pop("levels_asked") != len(spends):
        raise Differs("the manifest has another number of levels than its budget")
    answers = [measured[level == k].to_numpy(np.int64) for k in range(1, len(spends) + 1)]
    shares = [spend["epsilon"] for spend in spends]
    if "branching" in settings:  # levels of a grid may have been left out: they are known by their widths
        axis = int(np.argmax(shape))
        ends = table[f"{settings['range_query']['axes'][axis]['name']}_end"].to_numpy()
        widths = [int(ends[np.argmax(level == k)]) for k in range(1, len(spends) + 1)]
        shares = _of_grid(dict(zip(widths, shares, strict=True)), shape[axis], settings["branching"])
    return {**settings, "shares": shares}, answers


def _of_grid(shares: dict[int, float], bins: int, branching: int) -> list[float]:
    """The shares of all levels of a grid, from the top, given those of some by the width of their boxes."""
    widths = [1]
    while branching > 1 and widths[-1] * branching < bins:
        widths.append(widths[-1] * branching)
    if not set(shares) <= set(widths):
        raise Differs(f"the boxes are not those of a grid whose axes branch by {branching}")
    return [shares.get(width, 0.0) for width in reversed(widths)]


RANGES: frozenset[str] = frozenset(
    ("H_b^c", "H_2^c", "H_tree^c", "Quadtree", "H_b", "H_2", "H_tree", "Flat", "Wavelet", "matrix")
)


def _group_sizes(release: Written, proofs: Path, limit: int) -> list[Ints]:
    """The answers for each level, from the noisy counts that the saved steps start from.

    Without steps nothing follows from the answers, so zeros stand for them.
    """
    (places,) = release.regions.values()
    sizes = release.manifest["settings"]["max_size"] + 1
    if len(release.table) != places.size * sizes:  # before arrays of that shape are made
        raise Differs(f"the table has {len(release.table)} rows, not {places.size} × {sizes}")
    noisy: Ints = np.zeros((places.size, sizes), dtype=narrow(release.manifest["settings"]["groups"]))
    row = column = 0
    for step in _models(release, proofs, limit):
        part = np.asarray(getattr(step.model, "noisy", ()))
        if not fits(part, noisy.dtype):
            noisy = noisy.astype(np.int64)
        if part.ndim == 1:  # fits of regions
            part = part.reshape(-1, sizes)
            noisy[row : row + len(part)] = part
            row += len(part)
        elif row:  # after the fits
            break
        else:  # a block of sizes, or all
            noisy[:, column : column + part.shape[1]] = part
            column += part.shape[1]
    return [noisy[places.tree.nodes_of(level)].ravel() for level in range(len(places.levels))]


def _counts_of_counts(release: Written, proofs: Path, limit: int) -> list[Ints]:
    """The answers for K, the numbers of groups and the sizes, from the settings and the saved steps.

    Numbers that stand for many groups are repeated, which has the same nearest sizes. Without steps nothing
    follows from the answers, so zeros stand for them.
    """
    (places,) = release.regions.values()
    settings = release.manifest["settings"]
    answers, levels = list[Ints](), len(places.levels)
    if "size_budget" in settings:
        above = math.ceil(5 * math.sqrt(2) / settings["size_budget"])
        answers.append(np.array([settings["max_size"] - above]))
    sizes = _numbers_of_sizes(frame_of(release.table), settings, levels)
    if (needed := 16 * sum(sizes)) > limit:
        raise TooLarge("its noisy counts", needed, limit)
    numbers: Ints = np.zeros((places.size, 1), dtype=np.int64)
    found, room = list[Ints](), sum(sizes)
    for step in _models(release, proofs, limit):
        noisy: Any = getattr(step.model, "noisy", ())
        weights: Any = getattr(step.model, "weights", None)
        if step.step.startswith("numbers of groups, "):
            numbers = noisy
        elif not step.step.startswith(("matching: ", "merging: ")):
            room -= len(noisy) if weights is None else int(exact.total(weights))
            if room < 0:
                raise Differs(f"step {step.step!r} has more noisy numbers than were measured")
            found.append(noisy if weights is None else np.repeat(noisy, weights))
    if "group_budget" in settings:
        answers += [numbers[places.tree.nodes_of(level), 0] for level in range(levels)]
    whole = np.concatenate([*found, np.zeros(room, dtype=np.int64)])
    return answers + np.split(whole, np.cumsum(sizes)[:-1]) if sizes else answers


def _numbers_of_sizes(table: DataFrame, settings: Mapping[str, Any], levels: int) -> list[int]:
    """How many numbers each measurement of sizes has; regions without groups were not measured."""
    numbers, methods = [], settings["methods"] if settings["groups"] else []
    for level, method in enumerate(methods, start=levels - len(methods)):
        here = table[(table["level"] == level).to_numpy()]
        each = settings["max_size"] - settings["smallest_size"] + (method == "naive")
        in_order = method in ("Hg", "Hg1")
        numbers.append(int(here["groups"].sum()) if in_order else each * here["region"].nunique())
    return numbers


COUNTS_OF_COUNTS = re.compile("(bottom-up )?(naive|Hc2?|Hg1?)( × (naive|Hc2?|Hg1?))*")

GROUP_SIZES: frozenset[str] = frozenset(("M_H", "M_H^r", "M_H^dp", "M_dp^OP", "M_c", "M_c^r", "M_c^dp"))


def _tables(release: Written, proofs: Path, limit: int) -> tuple[list[Ints], frozenset[str]]:
    """The answers to each query, from the steps that start from them, and the queries with unknown answers.

    Where nothing follows from an answer, as below a region without persons, no step has it, and 0 stands for
    it.
    """
    from hierdp.mechanisms.tabulation.checking import queries_of, unit_of
    from hierdp.mechanisms.tabulation.measure import level_queries

    (places,) = release.regions.values()
    queries, unit = queries_of(release.manifest["settings"]), unit_of(release.manifest["settings"])
    queries_of_levels, start = level_queries(queries, places, unit, 1.0), queries.workload.start
    noisy = np.zeros((places.size, queries.workload.size), dtype=np.int64)
    known = np.zeros((places.size, len(queries.plan.queries)), dtype=bool)
    steps, method = _models(release, proofs, limit), release.manifest["mechanism"]
    for name, nodes, which, given in _noisy_tables(
        steps, queries, places, method, [share for share, _ in queries_of_levels]
    ):
        columns = np.concatenate([np.arange(start[q], start[q + 1]) for q in which])
        if given.ndim != 2 or len(given) != nodes.size or given.shape[1] < columns.size:
            raise Differs(f"step {name!r} does not have the noisy answers of its regions")
        noisy[np.ix_(nodes, columns)] = given[:, : columns.size]  # after them, sums that are fixed
        known[np.ix_(nodes, np.array(which))] = True
    answers, untested = list[Ints](), set[str]()
    for share, query in queries_of_levels:
        here, q = places.tree.nodes_of(share.level), share.query
        answers.append(noisy[here, start[q] : start[q + 1]].ravel())
        if not known[here, q].all():
            untested.add(query.name)
    return answers, frozenset(untested)


def _noisy_tables(
    steps: Iterator[_Solved], queries: Queries, places: Hierarchy, method: str, shares: Sequence[Share]
) -> Iterator[tuple[str, Ints, list[int], Any]]:
    """The steps that start from noisy answers: name, regions, queries, and the answers."""
    from hierdp.mechanisms.tabulation.options import settings_for

    every, families = np.arange(places.size), dict(_families(places))
    passes = settings_for(method, queries, places.levels, shares).passes
    done = dict.fromkeys(families, 0)
    for step in steps:
        given = np.asarray(getattr(step.model, "noisy", ()))
        if step.step == "tables of all regions":
            yield step.step, every, list(range(len(queries.plan.queries))), given
            return
        if step.step == "least squares over all regions":
            alone = [Workload(queries.shape, [query]) for query in queries.workload.queries]
            yield step.step, every, [q for q, one in enumerate(alone) if one.is_marginal], given
            return
        family, _, what = step.step.rpartition(": ")
        what, _, number = what.partition(", pass ")
        if what == "least squares":  # of this pass, and of those that waited for it
            last = int(number or len(passes))
            which = [q for one in passes[done[family] if number else 0 : last] for q in one]
            done[family] = last
            yield step.step, families[family], which, given


def _families(places: Hierarchy) -> Iterator[tuple[str, Ints]]:
    yield f"{places.levels[0]} {places.names[0][0]}", np.arange(1)
    start, child = places.tree.children
    for level in range(places.tree.depth):
        first = int(places.tree.level_start[level])
        for node, name in enumerate(places.names[level], start=first):
            yield f"{places.levels[level + 1]} in {name}", child[start[node] : start[node + 1]]


TABULATIONS: frozenset[str] = frozenset(("TopDown", "BlueDown", "GLS", "Joint"))


def _levels(release: Written, proofs: Path, limit: int) -> list[Ints]:
    """The answers for the total, if it is not public, and each level: the noisy counts of the saved steps.

    A noisy total below 0 was released as 0. Without steps nothing follows from the answers, so zeros stand
    for those of the first level, and the others are not asked for.
    """
    settings, table = release.manifest["settings"], release.table
    answers = [] if "total" in settings else [table["count"].to_numpy(np.int64)[:1]]
    if proofs.is_file():
        given = (getattr(step.model, "noisy", ()) for step in _models(release, proofs, limit))
        answers += [np.asarray(noisy, dtype=np.int64) for noisy in given]
    else:
        from hierdp.mechanisms.top_down.checking import no_flows
        from hierdp.mechanisms.top_down.levels import Children, root
        from hierdp.mechanisms.top_down.zeros import zeros_of

        data = no_flows(settings, release.regions)
        axis = data.axis_names.index(settings["order"][0])
        zeros = zeros_of(settings.get("zeros"), data)
        first = Children(data.axes[axis].tree, root(data.axes, 0), axis, zeros)
        answers.append(np.zeros(first.size, dtype=np.int64))
    missing = len(release.manifest["budget"]["spends"]) - len(answers)
    return answers + [np.empty(0, dtype=np.int64)] * missing


def _finest(release: Written) -> tuple[list[Ints], Ints | None]:
    """The answers for the finest cells, of which the table has those that are not 0; and, of SH, which."""
    settings = release.manifest["settings"]
    places, counts = cells_at(release.table, settings, release.regions, len(settings["order"]))
    shape = [release.regions[name].names[-1].size for name in settings["axes"]]
    at = np.ravel_multi_index(tuple(places), shape)
    along = np.argsort(at)
    if release.manifest["mechanism"] == "SH":
        return [counts[along].astype(np.int64)], at[along]
    if math.prod(shape) > MOST_CELLS:
        raise Differs(f"no release has noisy counts of {' × '.join(map(str, shape))} cells")
    answers = np.zeros(math.prod(shape), dtype=np.int64)
    answers[at] = counts
    return [answers], None


MOST_CELLS = 20_000_000
"""The most cells of VanillaGauss."""

FINEST = frozenset(("VanillaGauss", "SH"))

LEVELS: frozenset[str] = frozenset(("InfTDA", "InfTDA_large", "TDA_inf", "TDA_L2", "TDA"))

CLUSTERINGS: frozenset[str] = frozenset(
    ("AHP", "AHP-greedy", "AHP-empirical", "AHP-by-place", "NF", "SF", "PHP", "GS", "Laplace")
)
