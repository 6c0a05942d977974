"""Checks of releases of tables of several attributes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.tabulation.budget import Measurement, Unit, measurements, rho_of_each
from hierdp.mechanisms.tabulation.constraints import broken_bounds, constraints_of
from hierdp.mechanisms.tabulation.measure import variances
from hierdp.mechanisms.tabulation.mechanism import settings_of, standard_errors
from hierdp.mechanisms.tabulation.methods import JOINT, TREE, Settings, post_process
from hierdp.mechanisms.tabulation.options import OVER_THE_TREE, UNBIASED, settings_for
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.tabulation.problem import Measured
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.table import REGION, counts_in, table_of
from hierdp.privacy.budget import Ledger
from hierdp.privacy.expected import GAUSSIAN, Expected, ExpectedSpend
from hierdp.privacy.twice import CountNoise, Twice, of_tree
from hierdp.record.compare import compare, compare_settings
from hierdp.record.files import REGIONS
from hierdp.record.properties import Regions
from hierdp.record.replay import Replay
from hierdp.record.step import Step
from models import Workload
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

Manifest = Mapping[str, Any]


def shape(table: DataFrame, manifest: Manifest, regions: Regions) -> str:
    """What is wrong with the table, in words: its columns and regions, and the plan's public constraints."""
    settings, unbiased = manifest["settings"], manifest["mechanism"] in UNBIASED
    if len(regions) != 1:
        return f"{REGIONS} lists {len(regions)} hierarchies, not one"
    (places,) = regions.values()
    if list(settings["levels"]) != list(places.levels):
        return f"{REGIONS} has other levels than the manifest"
    queries = queries_of(settings)
    columns = [*REGION, *queries.plan.attributes, "count", *(["standard_error"] if unbiased else [])]
    if list(table.columns) != columns:
        return f"its columns are {list(table.columns)}, not {columns}"
    if unbiased:
        return ""
    try:
        counts = counts_in(table, queries, places)
        if any(held[:, queries.zeros].any() for held in counts):
            return "a cell is positive that is a structural zero of the plan"
        return broken_bounds(queries, places, counts, "total" in settings)
    except InputError as why:
        return str(why)


def expected_spends(_: DataFrame, manifest: Manifest, regions: Regions) -> Expected:
    """Each level's queries, with the plan's shares of ρ."""
    settings, rho = manifest["settings"], Ledger.from_dict(manifest["budget"]).rho
    queries, unit = queries_of(settings), unit_of(settings)
    (places,) = regions.values()
    measured = measurements(queries, places.levels, unit)
    lines = [
        ExpectedSpend(one.name, one.sensitivity, share, GAUSSIAN)
        for one, share in zip(measured, rho_of_each(rho, measured), strict=True)
    ]
    return unit.neighbours(queries.plan.invariants), lines


def replay(saved: Replay, table: DataFrame, manifest: Manifest, regions: Regions) -> str:
    """Repeat the post-processing, from the noisy answers that the steps start from."""
    settings, method = manifest["settings"], manifest["mechanism"]
    (places,) = regions.values()
    queries, unit = queries_of(settings), unit_of(settings)
    measured = measurements(queries, places.levels, unit)
    how = settings_for(method, queries, places.levels, measured)
    counts = counts_in(table, queries, places)
    constraints = constraints_of(queries, places, counts, unit.bounded)
    rho = Ledger.from_dict(manifest["budget"]).rho
    variance = variances(queries, len(counts), measured, rho)
    if method in OVER_THE_TREE:
        noisy, known = _noisy_of_tree(saved, queries, places)
    elif method == "Joint":
        noisy, known = _noisy_of_all(saved, queries, places)
    else:
        noisy, known = _noisy_of_families(saved, queries, places, how, variance < np.inf)
    answers = Measured(places, queries.workload, noisy, variance)
    last: deque[Step] = deque(maxlen=1)  # of GLS, the only one
    found, steps = post_process(answers, constraints, method, how, saved.solve, last)
    saved.end()
    errors = standard_errors(steps[0].model, places) if method in UNBIASED else None
    compare(table, table_of(queries, places, found, errors))
    total = settings.get("total") if method in UNBIASED else int(found[0].sum())
    again = settings_of(places, queries.plan, unit, total, settings.get("backend"))
    compare_settings(settings, again)
    laws = [CountNoise.of(spend) for spend in manifest["budget"]["spends"]]
    saved.twice += _twice(queries, places, noisy, known, dict(zip(measured, laws, strict=True)))
    start = queries.workload.start
    for one in measured:
        if known[one.query]:
            saved.recover(one.name, noisy[one.level][:, start[one.query] : start[one.query + 1]])
    return "each level is the answers of its steps"


def queries_of(settings: Mapping[str, Any]) -> Queries:
    """The queries of the plan in a manifest."""
    return Queries(plan_of(settings["plan"]))


def unit_of(settings: Mapping[str, Any]) -> Unit:
    """Whom the guarantee protects, according to the settings."""
    return Unit("total" in settings, settings.get("rows_a_person", 1))


def rows_of_a_person(settings: Mapping[str, Any]) -> int | None:
    """The number of rows of a person, if persons join or leave; None if one is replaced."""
    unit = unit_of(settings)
    return None if unit.bounded else unit.rows


# --- noisy answers, from the steps -----------------------------------------------------------------------

Noisy = tuple[list[Ints], list[bool]]
"""For each level, the noisy answers of its regions, and whether all of them are known, by query."""


def _noisy_of_tree(saved: Replay, queries: Queries, places: Hierarchy) -> Noisy:
    """The noisy answers in the step that begins with all regions; it leaves recoded queries out."""
    workload = queries.workload
    step = saved.peek(TREE, places.size * workload.cells)
    given = np.asarray(getattr(step.model, "noisy", ()))
    noisy = np.zeros((places.size, workload.size), np.int64)
    first, known = 0, []
    for q, query in enumerate(workload.queries):
        known.append(Workload(workload.shape, [query]).is_marginal)
        if not known[-1]:
            continue
        size = int(workload.sizes[q])
        if given.ndim != 2 or len(given) != places.size or given.shape[1] < first + size:
            raise Differs(f"step {TREE!r} does not have the noisy answers of every region")
        noisy[:, workload.start[q] : workload.start[q + 1]] = given[:, first : first + size]
        first += size
    return [noisy[places.tree.nodes_of(level)] for level in range(places.tree.depth + 1)], known


def _noisy_of_all(saved: Replay, queries: Queries, places: Hierarchy) -> Noisy:
    """The noisy answers in the step with the tables of all regions."""
    workload = queries.workload
    noisy = np.asarray(getattr(saved.peek(JOINT, places.size * workload.cells).model, "noisy", ()))
    if noisy.shape != (places.size, workload.size):
        raise Differs(f"step {JOINT!r} does not have the noisy answers of every region")
    by_level = [noisy[places.tree.nodes_of(level)] for level in range(places.tree.depth + 1)]
    return by_level, [True] * len(workload.queries)


def _noisy_of_families(
    saved: Replay, queries: Queries, places: Hierarchy, how: Settings, measured: Any
) -> Noisy:
    """The noisy answers in the least squares of each parent's children; unknown where the parent is empty.

    Parameters
    ----------
    saved : Replay
    queries : Queries
    places : Hierarchy
    how : Settings
    measured : bool array, shape (levels, queries)
        What was measured on each level.
    """
    workload, tree = queries.workload, places.tree
    noisy = [np.zeros((int(size), workload.size), np.int64) for size in tree.level_sizes]
    seen = [np.zeros((int(size), len(workload.queries)), bool) for size in tree.level_sizes]
    families = {name: (level, these) for name, level, these in _families(places)}
    for step in saved.coming():
        name, _, what = step.step.rpartition(": ")
        if not what.startswith("least squares") or name not in families:
            continue
        level, these = families[name]
        asked = _queries_of_pass(what, how, workload, measured[level])
        columns = np.concatenate([np.arange(workload.start[q], workload.start[q + 1]) for q in asked])
        given = np.asarray(getattr(step.model, "noisy", ()))
        if given.shape != (these.size, columns.size):
            raise Differs(f"step {step.step!r} does not have the noisy answers of its regions")
        noisy[level][np.ix_(these, columns)] = given
        seen[level][np.ix_(these, np.array(asked))] = True
    return noisy, np.all(np.concatenate(seen), axis=0).tolist()


def _families(places: Hierarchy) -> Iterator[tuple[str, int, Ints]]:
    """The regions that are fitted together: their name in steps, their level, and their positions in it."""
    yield f"{places.levels[0]} {places.names[0][0]}", 0, np.arange(1)
    start, child = places.tree.children
    for level in range(places.tree.depth):
        nodes, below = places.tree.nodes_of(level), places.tree.level_start[level + 1]
        for at, node in enumerate(range(nodes.start, nodes.stop)):
            name = f"{places.levels[level + 1]} in {places.names[level][at]}"
            yield name, level + 1, child[start[node] : start[node + 1]] - below


def _queries_of_pass(what: str, how: Settings, workload: Workload, measured: Any) -> tuple[int, ...]:
    """The queries of a step of least squares: those of its pass, and of passes that wait for it."""
    every: tuple[int, ...] = sum(how.passes, ())
    _, _, number = what.partition(", pass ")
    if not number:
        return every
    waiting: tuple[int, ...] = ()
    for at, queries in enumerate(how.passes, start=1):
        waiting += queries
        if at == int(number):
            return waiting
        if at < len(how.passes) and _measures(workload, waiting, measured):
            waiting = ()
    raise Differs(f"there is no {what!r}")


def _measures(workload: Workload, queries: Sequence[int], measured: Any) -> bool:
    """Whether one of some queries is measured and refines all the others."""
    rows = workload.row
    return any(
        measured[q]
        and all(len(np.unique(rows[[q, other]], axis=1).T) == len(np.unique(rows[q])) for other in queries)
        for q in queries
    )


def _twice(
    queries: Queries,
    places: Hierarchy,
    noisy: Sequence[Ints],
    known: Sequence[bool],
    laws: Mapping[Measurement, CountNoise],
) -> Iterator[Any]:
    """The queries that are measured on a level and on the next, where all regions' answers are known."""
    workload = queries.workload
    by_level = {(one.level, one.query): law for one, law in laws.items()}
    everywhere = np.concatenate(noisy)
    for q, query in enumerate(queries.plan.queries):
        if known[q]:
            part = everywhere[:, workload.start[q] : workload.start[q + 1]]
            each = [by_level.get((level, q)) for level in range(places.tree.depth + 1)]
            yield from of_tree(places.tree, part, each, query)
    yield from _refined(queries, noisy, known, by_level)


def _refined(
    queries: Queries, noisy: Sequence[Ints], known: Sequence[bool], laws: Mapping[tuple[int, int], CountNoise]
) -> Iterator[Twice]:
    """Answers to a query, less the sums of the answers to the finest query of the same level."""
    workload, start = queries.workload, queries.workload.start
    finest = int(np.argmax(workload.sizes))
    fine = workload.row[finest] - start[finest]
    for (level, q), law in laws.items():
        below = laws.get((level, finest))
        if q == finest or below is None or not (known[q] and known[finest]):
            continue
        pairs = np.unique(np.stack([fine, workload.row[q] - start[q]]), axis=1)
        if np.unique(pairs[0]).size < pairs.shape[1]:
            continue  # the finest query does not refine this one
        size = int(workload.sizes[q])
        sums = np.zeros((size, len(noisy[level])), np.int64)
        np.add.at(sums, pairs[1], noisy[level][:, start[finest] + pairs[0]].T)
        off = (noisy[level][:, start[q] : start[q + 1]] - sums.T).astype(np.float64)
        counts = np.broadcast_to(np.bincount(pairs[1], minlength=size), off.shape)
        query = queries.plan.queries
        what = f"{query[q]} and {query[finest]} of level {level}"
        yield Twice(what, off.ravel(), below, counts.ravel(), law)


CHECKING = Checking(shape, expected_spends, replay, rows_of_a_person=rows_of_a_person)
