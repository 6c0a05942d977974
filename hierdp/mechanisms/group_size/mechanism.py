"""Group sizes over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import cumulative
from hierdp.counts.size_table import SizeTable, narrow
from hierdp.measurements.measuring import Measure, Measuring
from hierdp.measurements.query import Query
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.description import ENTITY
from hierdp.mechanisms.group_size.post_processing import (
    METHODS,
    GroupSizeMethod,
    paper_window,
    post_process,
)
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, persons_of, rows_of
from hierdp.mechanisms.public import level_names, public_groups
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.weights import whole_weights
from hierdp.metrics.group_sizes import constraint_violations
from hierdp.privacy.budget import GEOMETRIC, Allowed, Ledger, PersonRows, split
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving
from hierdp.tables import GroupSizes, group_sizes
from models import Tree
from models.arithmetic.arrays import Ints

CELLS_AT_ONCE = 20_000_000
"""Counts that get noise at once; more would need further arrays of their size."""


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    delta: shared.Concentrated = None,
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
    shares: shared.Shares = None,
) -> Release:
    """Release a table's groups by size: `hierdp.tables.group_sizes`, then `group_size`."""
    solver = SolverOptions(backend, time_limit, window)
    checked(method, solver, METHODS)  # before reading the table, which may be large
    split(Allowed.of(epsilon, delta).loss, len(level_names(levels, regions)), shares)
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
    made = group_size(data.pop(), epsilon, noise, method, solver, delta, rows_of(persons), shares)
    return public.of(counting(made, entities))


def group_size(
    data: GroupSizes,
    epsilon: float,
    noise: Noise | None = None,
    method: str = "M_c^dp",
    solver: SolverOptions | None = None,
    delta: float | None = None,
    person: PersonRows | None = None,
    shares: Sequence[float] | None = None,
) -> Release:
    """Release noisy counts of groups by size, made whole, non-negative and consistent over the tree.

    Parameters
    ----------
    data : GroupSizes
        True counts by region and size.
    epsilon : float
        The budget, divided equally over the levels, including the root's, unless there are `shares`.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`, by its name in the paper. The default was the most accurate in the paper.
    solver : SolverOptions, optional
        The solver, its time limit, and truncated domains, for the methods that have these options.
    delta : float, optional
        With it, (ε, δ) is converted to ρ-zCDP, and the noise is Gaussian.
    person : PersonRows, optional
        The most rows of a person, who has the budget.
    shares : sequence of float, optional
        The relative parts of the levels in the budget, from the root. Where they differ, a level's counts
        weigh in proportion to 1/scale² of its noise, except in M_c and M_c^r, which weigh all levels alike.

    Returns
    -------
    Release
        One row for each region and size.

    Raises
    ------
    InputError
        If ε or δ is out of range, there is no such method, it takes no such option, or the shares do not
        fit the levels.
    NotSolved
        If the chosen solver fails or runs out of time.
    """
    allowed = Allowed.of(epsilon, delta, 1 if person is None else person.times)
    solver = solver or SolverOptions()
    chosen = checked(method, solver, METHODS)
    places, groups, sizes = data.hierarchy, data.groups, data.counts.shape[1]
    measure, steps = Measuring(data.counts, noise or ExactNoise()), Steps(chosen.solving(solver))
    del data  # `measure` forgets the true counts as soon as all is measured
    counts, settings = released_sizes(
        places, groups, sizes, allowed, measure, steps, chosen, solver.window, shares=shares
    )
    return Release(
        chosen.name,
        SizeTable(places, counts),
        Ledger(float(epsilon), delta or 0.0, ENTITY, measure.measurements.spends, person=person),
        steps.kept,
        settings,
        regions={ALONE: places},
        measurements=measure.measurements,
    )


def m_c_dp(data: GroupSizes, epsilon: float, noise: Noise | None = None) -> Release:
    """M_c^dp, the paper's best method: noisy cumulative sizes, made monotone by region, then consistent."""
    return group_size(data, epsilon, noise, "M_c^dp")


def released_sizes(
    places: Hierarchy,
    groups: int,
    sizes: int,
    allowed: Allowed,
    measure: Measure,
    solve: Solving,
    method: GroupSizeMethod,
    window: int | None = None,
    whole: Ints | None = None,
    shares: Sequence[float] | None = None,
) -> tuple[Ints, dict[str, Any]]:
    """Measure every level, then make the noisy counts whole, non-negative and consistent.

    - sizes: how many sizes there are, 0 included.
    - measure: answers queries about the true counts, shape (regions, sizes).
    - window, whole: as in `post_process`.
    - shares: as in `group_size`.

    Returns:
    - counts, int64 or int32 array, shape (regions, sizes)
    """
    noisy, scales = noisy_sizes(places, groups, sizes, allowed, measure, method, shares)
    if window is None and method.name == "M_dp^OP":
        window = paper_window(max(scales), allowed.noise)
    weights = weights_of(scales, noisy, groups, window)
    counts = post_process(noisy, places, groups, method, solve, window, whole, True, weights)
    return counts, settings_of(places, counts, groups, method, window, shares)


def weights_of(scales: Sequence[float], noisy: Ints, groups: int, window: int | None) -> Ints | None:
    """Whole weights of the levels, in proportion to 1/scale²; None if all levels have the same noise."""
    if len(set(scales)) == 1:
        return None
    path = Tree([[0]] * (len(scales) - 1))  # weights are by level
    largest = float(abs(int(noisy.max()))) + abs(int(noisy.min())) + groups + (window or 0)
    return whole_weights(path, np.array(scales) ** 2, largest)


def noisy_sizes(
    places: Hierarchy,
    groups: int,
    sizes: int,
    allowed: Allowed,
    measure: Measure,
    method: GroupSizeMethod,
    shares: Sequence[float] | None = None,
) -> tuple[Ints, list[float]]:
    """Measure sizes, cumulative or not, one level at a time.

    Returns:
    - noisy, int64 array, shape (regions, sizes): of 32 bits if there are many, and these suffice for all of
      them and for the number of groups.
    - scales: of the levels' noise.
    """
    levels = [measure(query) for query in queries(places, sizes, allowed, method, shares)]
    measure.end()
    kinds = [level.answers.dtype for level in levels]
    noisy = np.concatenate([level.answers for level in levels], dtype=np.result_type(narrow(groups), *kinds))
    return noisy.reshape(-1, sizes), [level.spend.scale for level in levels]


def queries(
    places: Hierarchy,
    sizes: int,
    allowed: Allowed,
    method: GroupSizeMethod,
    shares: Sequence[float] | None = None,
) -> list[Query]:
    """The queries: one for each level, with its share of ε or ρ; by default, an equal one."""
    named = zip(places.levels, split(allowed.loss, len(places.levels), shares), strict=True)
    return [
        _query(places.tree, level, sizes, name, allowed.part(share), method)
        for level, (name, share) in enumerate(named)
    ]


def _query(tree: Tree, level: int, sizes: int, name: str, share: Allowed, method: GroupSizeMethod) -> Query:
    """The query of a level; a large level is measured in parts."""
    nodes = tree.nodes_of(level)

    def of(counts: Ints) -> Iterator[Ints]:
        for cut in execution.chunks(nodes.stop - nodes.start, CELLS_AT_ONCE // sizes):
            true = counts[nodes][cut]
            yield cumulative(true) if method.cumulative else true

    size = (nodes.stop - nodes.start) * sizes
    sensitivity = share.sensitivity(method.sensitivity)
    return Query(
        *(method.query(name), sensitivity, share.loss, size, of, share.noise),
        level=(tree, level),
        in_parts=True,
    )


def measure(
    data: GroupSizes,
    loss: float,
    noise: Noise,
    method: GroupSizeMethod = METHODS["M_c^dp"],
    law: str = GEOMETRIC,
) -> tuple[Ints, float]:
    """The noisy counts of all levels, shape (regions, sizes), and the scale of their noise.

    - loss: ε or, if the law of the noise is discrete Gaussian, ρ.
    """
    measuring, sizes = Measuring(data.counts, noise), data.counts.shape[1]
    noisy, scales = noisy_sizes(data.hierarchy, data.groups, sizes, Allowed(loss, law), measuring, method)
    return noisy, scales[0]


def settings_of(
    hierarchy: Hierarchy,
    counts: Any,
    groups: int,
    method: GroupSizeMethod,
    window: int | None,
    shares: Sequence[float] | None = None,
) -> dict[str, Any]:
    """The settings for the manifest; `counts` are the released ones, shape (regions, sizes)."""
    return {
        "max_size": counts.shape[1] - 1,
        "last_size_means": "this size or more",
        "groups": groups,
        "levels": list(hierarchy.levels),
        **({} if window is None else {"window": window}),
        **({} if shares is None else {"shares": [float(share) for share in shares]}),
        **({} if method.consistent else _inconsistent(hierarchy, counts)),
    }


def _inconsistent(hierarchy: Hierarchy, counts: Any) -> dict[str, Any]:
    return {"constraint_violations": constraint_violations(hierarchy.tree, counts)}
