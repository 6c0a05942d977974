"""Group sizes over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from hierdp import execution
from hierdp.counts import size_table
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.histogram import cumulative
from hierdp.counts.size_table import SizeTable
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.group_size.repairs import METHODS, Method, paper_window, post_process
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, for_persons, persons_of
from hierdp.mechanisms.public import public_groups
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.words import ENTITY
from hierdp.metrics.group_sizes import constraint_violations
from hierdp.privacy.budget import Ledger, Spend, check_epsilon, split
from hierdp.privacy.noise import ExactNoise, Noise, NoisyCounts
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.tables import GroupSizes, group_sizes
from models.arithmetic.arrays import Ints

CELLS_AT_ONCE = 20_000_000
"""Counts that get noise at once; more would need further arrays of their size."""


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    noise: Noise | None = None,
    group: shared.Group,
    groups: shared.Groups = None,
    groups_from_data: shared.GroupsFromData = False,
    max_size: Annotated[
        int,
        Option(
            "Larger groups are counted in this size (top-coded). Choose it without looking at the data.",
            "NUMBER",
        ),
    ],
    entities: shared.Entities = None,
    levels: shared.Levels = None,
    regions: shared.Regions = None,
    region: shared.Region = None,
    regions_from_data: shared.RegionsFromData = False,
    root: shared.Root = "all",
    unknown: shared.UnknownOrNoGroup = None,
    person: shared.Person = None,
    rows_per_person: shared.RowsPerPerson = None,
    most_per_row: shared.MostPerRow = None,
    method: Annotated[
        str, Option("The method, by its name in the paper. See `hierdp mechanisms`.", "NAME")
    ] = "M_c^dp",
    backend: Annotated[
        str | None,
        Option(
            "Solver, for the methods with a choice. Default: highs (M_H, M_c), cp-sat (M_dp^OP), fast "
            "(M_c^r; M_H^r, or clarabel with `window`). See `hierdp solvers`.",
            "NAME",
        ),
    ] = None,
    time_limit: shared.TimeLimit = None,
    window: Annotated[
        int | None,
        Option(
            "Truncate domains to the noisy count ± this number. Default: no truncation.", "NUMBER", least=0
        ),
    ] = None,
) -> Release:
    """Release a table's groups by size: `hierdp.tables.group_sizes`, then `group_size`."""
    solver = SolverOptions(backend, time_limit, window)
    checked(method, solver, METHODS)  # before reading the table, which may be large
    public = public_groups(regions, groups, regions_from_data, groups_from_data)
    persons = persons_of(person, rows_per_person, most_per_row, entities)
    data = [
        group_sizes(
            source,
            group=group,
            groups=groups,
            max_size=max_size,
            entities=entities,
            levels=levels,
            regions=regions,
            region=region,
            root=root,
            unknown=unknown,
            persons=persons,
        )
    ]
    # The list gives the only reference away, so that the true counts do not take memory during solving.
    made = for_persons(lambda of_row: group_size(data.pop(), of_row, noise, method, solver), epsilon, persons)
    return public.of(counting(made, entities))


def group_size(
    data: GroupSizes,
    epsilon: float,
    noise: Noise | None = None,
    method: str = "M_c^dp",
    solver: SolverOptions | None = None,
) -> Release:
    """Release noisy counts of groups by size, made whole, non-negative and consistent over the tree.

    Parameters
    ----------
    data : GroupSizes
        True counts by region and size.
    epsilon : float
        Pure-DP budget, divided equally over the levels, including the root's.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`, by its name in the paper. The default was the most accurate in the paper.
    solver : SolverOptions, optional
        The solver, its time limit, and truncated domains, for the methods that have these options.

    Returns
    -------
    Release
        One row for each region and size.

    Raises
    ------
    InputError
        If ε is not a positive finite number, there is no such method, or it takes no such option.
    NotSolved
        If the chosen solver fails or runs out of time.
    """
    epsilon = check_epsilon(epsilon)
    solver = solver or SolverOptions()
    chosen = checked(method, solver, METHODS)
    noisy, spends = measure_all(data, epsilon, noise or ExactNoise(), chosen)
    places, groups = data.hierarchy, data.groups
    del data  # as large as the noisy counts
    if chosen.name == "M_dp^OP" and solver.window is None:
        solver = replace(solver, window=paper_window(spends[0].scale))
    repaired = post_process(noisy, places, groups, chosen, solver, overwrite=True)
    ledger = Ledger(epsilon, 0.0, ENTITY, spends)
    settings = settings_of(places, repaired.counts, groups, chosen, solver.window)
    table, regions = table_of(places, repaired.counts), {ALONE: places}
    return Release(chosen.name, table, ledger, repaired.steps, settings, regions=regions)


def m_c_dp(data: GroupSizes, epsilon: float, noise: Noise | None = None) -> Release:
    """M_c^dp, the paper's best method: noisy cumulative sizes, made monotone by region, then consistent."""
    return group_size(data, epsilon, noise, "M_c^dp")


def measure(
    data: GroupSizes, epsilon: float, noise: Noise, method: Method = METHODS["M_c^dp"]
) -> list[NoisyCounts]:
    """Measure sizes, cumulative or not, one level at a time: the only results from the true counts."""
    noisy, spends = measure_all(data, epsilon, noise, method)
    nodes = map(data.hierarchy.tree.nodes_of, range(len(spends)))
    return [NoisyCounts(noisy[level], spend) for level, spend in zip(nodes, spends, strict=True)]


def measure_all(
    data: GroupSizes, epsilon: float, noise: Noise, method: Method
) -> tuple[Ints, tuple[Spend, ...]]:
    """`measure`, with the noisy counts of all levels in one array, shape (nodes, sizes).

    A large level is measured in parts. Their counts are separate, so all parts together are one measurement
    with the loss of any part.
    """
    tree, levels = data.hierarchy.tree, data.hierarchy.levels
    noisy: Ints = np.empty(data.counts.shape, np.int64)
    spends, at_once = [], max(1, CELLS_AT_ONCE // noisy[0].size)
    for level, (name, share) in enumerate(zip(levels, split(epsilon, len(levels)), strict=True)):
        nodes = tree.nodes_of(level)
        for cut in execution.chunks(nodes.stop - nodes.start, at_once):
            part = slice(nodes.start + cut.start, nodes.start + cut.stop)
            true = data.counts[part]
            asked = cumulative(true) if method.cumulative else true
            measured = noise.geometric(asked, method.query(name), method.sensitivity, share)
            noisy[part] = measured.counts
        spends.append(measured.spend)
    return noisy, tuple(spends)


def noisy_of(measured: Sequence[NoisyCounts]) -> Ints:
    """The noisy counts of all levels; shape (nodes, sizes)."""
    return np.concatenate([level.counts for level in measured])


def settings_of(
    hierarchy: Hierarchy, counts: Any, groups: int, method: Method, window: int | None
) -> dict[str, Any]:
    """The settings for the manifest; `counts` are the released ones, shape (regions, sizes)."""
    return {
        "max_size": counts.shape[1] - 1,
        "last_size_means": "this size or more",
        "groups": groups,
        "levels": list(hierarchy.levels),
        **({} if window is None else {"window": window}),
        **({} if method.consistent else _inconsistent(hierarchy, counts)),
    }


def _inconsistent(hierarchy: Hierarchy, counts: Any) -> dict[str, Any]:
    return {"constraint_violations": constraint_violations(hierarchy.tree, counts)}


def table_of(hierarchy: Hierarchy, counts: Ints) -> Any:
    """One row for each region and size: a DataFrame, or a `SizeTable` if that would be too large."""
    table = SizeTable(hierarchy, counts)
    return table if len(table) > size_table.LARGE else table.frame()
