"""Groups by size over a hierarchy, up to very large sizes: Kuo et al. 2018.

Each region's groups are estimated separately, with independent noise, and the estimates are then made to add
up. A region has one answer per possible size with Hc, one per group with Hg. Only some of the noisy answers
are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.measuring import Measure, Measuring
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.count_of_counts.estimates import (
    CountOfCountsMethod,
    Sizes,
    Together,
    estimates,
    size_query,
)
from hierdp.mechanisms.count_of_counts.plan import (
    AT_ONCE,
    MAX_SIZE,
    CountOfCountsPlan,
    budgets_of,
    check_at_once,
    measured_regions,
    plan_of,
    steps_of,
)
from hierdp.mechanisms.count_of_counts.private import private_groups, private_size
from hierdp.mechanisms.count_of_counts.top_down import at_once, bottom_up, top_down
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, persons_of, rows_of
from hierdp.mechanisms.public import level_names, public_groups
from hierdp.mechanisms.relations import ENTITY
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Allowed, Ledger, PersonRows
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving, Step
from hierdp.tables.sizes import group_runs
from models.arithmetic.arrays import Ints

NOT_EMPTY = "it is public that no group is empty"
PRIVATE_GROUPS = (
    "one entity joins or leaves a group, or comes or goes with a group of its own; or a group without "
    "entities comes or goes; regions are public"
)


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
        str,
        Option(
            "The measurement: Hc (best for dense sizes), Hg (better for few, large sizes; draws noise for "
            "every group), Hc2, Hg1, naive; or one per level, from the root: 'Hg x Hc x Hc'; or, for the "
            "finest level only, 'bottom-up'.",
            "NAMES",
        ),
    ] = "Hc",
    merge: Annotated[
        Literal["weighted", "plain", "at once"],
        Option(
            "How two levels' estimates of a group's size are merged: weighted by inverse variance, or by "
            "their plain average. With three levels, also 'at once': nearest to all estimates together, "
            "often better above the finest level."
        ),
    ] = "weighted",
    max_size: Annotated[
        int,
        Option(
            "Larger groups are counted in this size (top-coded). Choose it without looking at the data, and "
            "rather too large: that costs time, as Hc draws noise for every size in every region, but little "
            "accuracy.",
            "NUMBER",
        ),
    ] = MAX_SIZE,
    smallest: Annotated[
        int,
        Option(
            "It is public that every group has at least one entity: no size 0 is released. With `person`, a "
            "group of which no row is counted has size 1.",
            flag="--no-empty-groups",
            value=1,
        ),
    ] = 0,
    size_budget: Annotated[
        float | None,
        Option(
            "In place of `max_size`: the part of ε for estimating it; with `delta`, that part of ρ. A small "
            "part suffices, such as 0.001 for a bound about 7,000 too high.",
            "NUMBER",
            above=0,
            instead_of="max_size",
        ),
    ] = None,
    group_budget: Annotated[
        float | None,
        Option(
            "The part of ε for the numbers of groups, if these are not public; with `delta`, that part of ρ.",
            "NUMBER",
            above=0,
        ),
    ] = None,
    shares: shared.Shares = None,
) -> Release:
    """Release a table's groups by size: `hierdp.tables.sizes.group_runs`, then `count_of_counts`."""
    names = level_names(levels, regions)
    options: dict[str, Any] = {
        "merge": merge,
        "max_size": max_size,
        "smallest": smallest,
        "size_budget": size_budget,
        "group_budget": group_budget,
        "shares": shares,
    }
    given = regions, groups, regions_from_data, groups_from_data
    public = public_groups(*given, can_hide=True, hidden=group_budget is not None)
    persons = persons_of(person, rows_per_person, most_per_row, entities)
    Allowed.of(epsilon, delta), budgets_of(plan_of(method, names, **options), epsilon)  # before reading
    data = group_runs(
        source,
        group=group,
        groups=groups,
        entities=entities,
        levels=levels,
        regions=regions,
        region=region,
        root=root,
        unknown=unknown,
        persons=persons,
    )
    if persons is not None:  # a group whose rows are all beyond the bound is not empty in the table
        data = SizeRuns(data.hierarchy, data.runs.raised(smallest))
    # The list gives the only reference away, so that the true counts do not take memory during solving.
    held = [data]
    del data
    options |= {"delta": delta, "person": rows_of(persons)}
    made = count_of_counts(held.pop(), epsilon, noise, method, **options)
    return public.of(counting(made, entities))


def count_of_counts(
    data: SizeRuns,
    epsilon: float,
    noise: Noise | None = None,
    method: str = "Hc",
    *,
    delta: float | None = None,
    person: PersonRows | None = None,
    **options: Any,
) -> Release:
    """Release noisy numbers of groups by size, made whole, non-negative and consistent over the tree.

    Parameters
    ----------
    data : SizeRuns
        True counts by region and size.
    epsilon : float
        The budget, divided equally over the levels, including the root's, unless there are `shares`.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private. In every
        region, Hg draws one number for each group, and Hc and naive one for each size up to K.
    method : str
        See `plan_of`.
    delta : float, optional
        With it, (ε, δ) is converted to ρ-zCDP, and the noise is Gaussian.
    person : PersonRows, optional
        The most rows of a person, who has the budget.
    **options
        `merge`, `max_size`, `smallest`, `size_budget`, `group_budget`, `shares`: see `plan_of`.

    Returns
    -------
    Release
        One row for each region and size with groups.

    Raises
    ------
    InputError
        See `plan_of`; or if ε or δ is out of range, or the parts of ε leave nothing, or a group is empty
        although none may be.
    """
    allowed = Allowed.of(epsilon, delta, 1 if person is None else person.times)
    places = data.hierarchy
    plan = plan_of(method, places.levels, **options)
    budgets_of(plan, epsilon)
    plan = plan.in_parts_of(allowed.loss, epsilon)
    if plan.merge == AT_ONCE and not plan.bottom_up:
        check_at_once(places.levels, places.tree.size, plan)
    groups, measure, steps = _public_groups(data, plan), Measuring(data.runs, noise or ExactNoise()), Steps()
    del data  # `measure` forgets the true counts as soon as all is measured
    runs, settings = released_runs(places, groups, allowed, measure, steps, plan)
    return Release(
        plan.name,
        table_of(places, runs),
        Ledger(float(epsilon), delta or 0.0, neighbours_of(plan), measure.measurements.spends, person=person),
        steps.kept,
        settings,
        regions={ALONE: places},
        measurements=measure.measurements,
    )


def _public_groups(data: SizeRuns, plan: CountOfCountsPlan) -> Ints | None:
    """The number of groups of each region, if it is public.

    Raises `InputError` if a group is empty although none may be.
    """
    places, true = data.hierarchy, data.runs
    if plan.smallest and (true.sizes == 0).any():
        region = np.concatenate(places.names)[true.row[true.sizes == 0][-1]]
        raise InputError(f"region {region!r} has an empty group; leave smallest at 0, or remove such groups")
    return true.groups if plan.group_budget is None else None


def released_runs(
    places: Hierarchy,
    groups: Ints | None,
    allowed: Allowed,
    measure: Measure,
    solve: Solving,
    plan: CountOfCountsPlan,
    total: int | None = None,
) -> tuple[Runs, dict[str, Any]]:
    """Estimate the groups by size of each region, then make the estimates add up.

    - groups, int64 array, shape (regions,): their numbers of groups, if these are public.
    - measure: answers queries about the true groups by size of all regions, `Runs`.
    - total: as in `measured`.
    """
    found = measured(places, groups, allowed, measure, solve, plan, total)
    runs = post_process(found, places, plan, solve)
    return runs, settings_of(plan, places, found.max_size, int(found.groups[0]))


def neighbours_of(plan: CountOfCountsPlan) -> str:
    """The neighbouring relation, in words."""
    relation = ENTITY if plan.group_budget is None else PRIVATE_GROUPS
    return relation + (f"; {NOT_EMPTY}" if plan.smallest else "")


def settings_of(plan: CountOfCountsPlan, places: Hierarchy, max_size: int, groups: int) -> dict[str, Any]:
    """The settings for the manifest; `max_size` and `groups`, the number of all, are public or estimated."""
    parts = {"size_budget": plan.size_budget, "group_budget": plan.group_budget}
    return {
        "levels": list(places.levels),
        "methods": [method.name for method in plan.methods],
        **({} if plan.bottom_up else {"merge": plan.merge}),
        "max_size": max_size,
        "max_size_is": "public" if plan.size_budget is None else "estimated: see the budget",
        "last_size_means": "this size or more",
        "smallest_size": plan.smallest,
        "groups": groups,
        "groups_are": "public" if plan.group_budget is None else "estimated: see the budget",
        **{name: part for name, part in parts.items() if part is not None},
        **({} if plan.shares is None else {"shares": list(plan.shares)}),
    }


@dataclass(frozen=True, eq=False)
class Measured:
    """The estimates of the regions, each by itself; they contain no true counts.

    - runs: one row for each region; with a bottom-up plan, those above the last level are empty.
    - weights, int64 or float64 array, shape (runs,): 1/variance of each group's size, in one unit.
    - groups, int64 array, shape (regions,): numbers of groups, public or estimated.
    - max_size: K, public or estimated.
    """

    runs: Runs
    weights: NDArray[Any]
    groups: Ints
    max_size: int


def measured(
    places: Hierarchy,
    groups: Ints | None,
    allowed: Allowed,
    measure: Measure,
    solve: Solving,
    plan: CountOfCountsPlan,
    total: int | None = None,
    batched: bool | None = None,
) -> Measured:
    """Measure K and the numbers of groups, if they are secret, then the groups by size of each level.

    - places, groups, allowed, measure, solve, plan: as in `released_runs`.
    - total: the estimated number of all groups, if it is secret, and known from a release.
    - batched: whether regions share steps; the estimates do not depend on it. Default: if they are many.
    """
    largest, tree, levels = plan.max_size, places.tree, levels_of(places, plan, allowed)
    if plan.size_budget is not None:
        largest = private_size(allowed.part(plan.size_budget), measure)
    if plan.group_budget is not None:
        groups = private_groups(places, allowed.part(plan.group_budget), measure, solve, total)
    assert groups is not None, "public numbers of groups are given"
    domain, secret = Sizes(largest, plan.smallest), plan.group_budget is not None
    at = measured_regions(tree, groups, plan)
    steps = [
        Together(of, groups[of], plan.method_of(int(tree.level[of[0]])), domain, secret)
        for of in steps_of(at, tree.level, groups, plan, domain, batched)
    ]
    runs = Runs.stacked(_estimates(places, levels, measure, solve, steps)).placed(at, tree.size)
    budgets = [share.loss for _, _, share in levels]
    return Measured(runs, weights_of(runs, tree.level, plan, budgets, allowed.noise), groups, largest)


def levels_of(
    places: Hierarchy, plan: CountOfCountsPlan, allowed: Allowed
) -> list[tuple[int, CountOfCountsMethod, Allowed]]:
    """The levels whose groups by size are measured, each with its method and its part of what is allowed."""
    levels = [places.tree.depth] if plan.bottom_up else range(places.tree.depth + 1)
    return list(zip(levels, plan.methods, map(allowed.part, budgets_of(plan, allowed.loss)), strict=True))


def _estimates(
    places: Hierarchy,
    levels: Sequence[tuple[int, CountOfCountsMethod, Allowed]],
    measure: Measure,
    solve: Solving,
    steps: Sequence[Together],
) -> Iterator[Runs]:
    level_of, names = places.tree.level, np.concatenate(places.names)
    answers = list[Iterator[Ints]]()
    for level, _, share in levels:
        here = [step for step in steps if level_of[step.regions[0]] == level]
        if here:  # otherwise there are no groups at all
            query = size_query(places.levels[level], share, here, places)
            answers.append(measure.each(query, _sizes(here)))
    measure.end()

    def name(regions: Ints) -> list[str]:
        level = places.levels[level_of[regions[0]]]
        return [f"{level} {region}" for region in names[regions].tolist()]

    shown = progress.steps(steps, "noise and repair, step by step", len(steps))
    return estimates(chain.from_iterable(answers), solve, shown, name)


def _sizes(steps: Sequence[Together]) -> Iterator[int]:
    return chain.from_iterable(step.sizes for step in steps)


def measure(
    data: SizeRuns,
    loss: float,
    noise: Noise,
    plan: CountOfCountsPlan,
    batched: bool | None = None,
    law: str = GEOMETRIC,
) -> Measured:
    """The estimates of all regions, with independent noise; see `measured`.

    - loss: ε or, if the law of the noise is discrete Gaussian, ρ; parts of the plan are parts of it.
    """
    groups, measuring = _public_groups(data, plan), Measuring(data.runs, noise)
    return measured(data.hierarchy, groups, Allowed(loss, law), measuring, Step.solve, plan, None, batched)


def post_process(
    measured: Measured, places: Hierarchy, plan: CountOfCountsPlan, solving: Solving = Step.solve
) -> Runs:
    """Compute consistent groups by size of all regions from their estimates."""
    tree, runs = places.tree, measured.runs
    if plan.bottom_up:
        return bottom_up(tree, runs.between(int(tree.level_start[-2]), tree.size))
    if plan.merge == AT_ONCE:
        return at_once(tree, runs, solving)
    names = np.concatenate(places.names)
    return top_down(tree, runs, measured.weights, plan.merge == "weighted", names, solving)


def weights_of(
    runs: Runs, level_of: Ints, plan: CountOfCountsPlan, budgets: Sequence[float], noise: str = GEOMETRIC
) -> NDArray[Any]:
    """1/variance of each group's size.

    If all levels have the same budget, weights are whole numbers in units of ε²/8, or of ρ, and merging is
    exact.
    """
    if plan.bottom_up:
        return runs.counts
    level = level_of[runs.row]
    precision = np.array([method.precision(noise) for method in plan.methods])
    weights: NDArray[Any] = runs.counts * precision[level]
    if len(set(budgets)) == 1:
        return weights
    power = 1 if noise == GAUSSIAN else 2
    return np.asarray(weights * (np.array(budgets) / max(budgets))[level] ** power)


def table_of(places: Hierarchy, runs: Runs) -> Any:
    """One row for each region and size with groups."""
    frame = places.frame()
    table = frame.loc[frame.index.repeat(runs.distinct)].reset_index(drop=True)
    return table.assign(size=runs.sizes, groups=runs.counts)
