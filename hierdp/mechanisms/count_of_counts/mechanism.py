"""Groups by size over a hierarchy, up to very large sizes: Kuo et al. 2018.

Each region's groups are estimated separately, with independent noise, and the estimates are then made to add
up. Noise is drawn region by region: one draw per possible size with Hc, one per group with Hg. Only the
post-processed runs are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns, resized
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.count_of_counts.at_once import at_once
from hierdp.mechanisms.count_of_counts.estimates import Region, Sizes, numbers_of
from hierdp.mechanisms.count_of_counts.plan import (
    AT_ONCE,
    MAX_SIZE,
    Plan,
    budgets_of,
    check_at_once,
    plan_of,
)
from hierdp.mechanisms.count_of_counts.private import private_groups, private_size
from hierdp.mechanisms.count_of_counts.side_by_side import estimates, measured_regions, steps_of
from hierdp.mechanisms.count_of_counts.top_down import bottom_up, top_down
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, for_persons, persons_of
from hierdp.mechanisms.public import public_groups
from hierdp.mechanisms.words import ENTITY
from hierdp.privacy.budget import Ledger, Spend, check_epsilon, of_one_row
from hierdp.privacy.noise import ExactNoise, Noise, announce
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving, Step
from hierdp.tables.runs import group_runs
from models.arithmetic.arrays import Ints
from models.tree import Tree

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
            "rather too large, which costs little accuracy. It costs time: Hc draws exact noise for every "
            "size up to it in every region, some 100,000 numbers per second on two cores. With the default, "
            "200 regions take minutes; with noise from tables, seconds.",
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
            "In place of `max_size`: the part of ε for estimating it. A small part suffices, such as 0.001 "
            "for a bound about 7,000 too high.",
            "NUMBER",
            above=0,
            instead_of="max_size",
        ),
    ] = None,
    group_budget: Annotated[
        float | None,
        Option("The part of ε for the numbers of groups, if these are not public.", "NUMBER", above=0),
    ] = None,
    shares: Annotated[
        Sequence[float] | None,
        Option(
            "The relative part of a level in the rest of ε; one per level, from the root. Default: equal "
            "parts.",
            "NUMBER",
            flag="--share",
        ),
    ] = None,
) -> Release:
    """Release a table's groups by size: `hierdp.tables.runs.group_runs`, then `count_of_counts`."""
    names = _level_names(levels, regions)
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
    budget = check_epsilon(epsilon)
    if persons is not None:  # for a person, like ε
        parts = {name: options[name] for name in ("size_budget", "group_budget") if options[name] is not None}
        options |= {name: of_one_row(part, persons.rows) for name, part in parts.items()}
        budget = of_one_row(budget, persons.rows)
    budgets_of(plan_of(method, names, **options), budget)  # before reading the table, which may be large
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
    made = for_persons(lambda own: count_of_counts(data, own, noise, method, **options), epsilon, persons)
    return public.of(counting(made, entities))


def count_of_counts(
    data: SizeRuns, epsilon: float, noise: Noise | None = None, method: str = "Hc", **options: Any
) -> Release:
    """Release noisy numbers of groups by size, made whole, non-negative and consistent over the tree.

    Parameters
    ----------
    data : SizeRuns
        True counts by region and size.
    epsilon : float
        Pure-DP budget, divided equally over the levels, including the root's, unless there are `shares`.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private. In every
        region, Hg draws one number for each group, and Hc and naive one for each size up to K.
    method : str
        See `plan_of`.
    **options
        `merge`, `max_size`, `smallest`, `size_budget`, `group_budget`, `shares`: see `plan_of`.

    Returns
    -------
    Release
        One row for each region and size with groups.

    Raises
    ------
    InputError
        See `plan_of`; or if ε is not a valid budget or its parts leave nothing, or a group is empty although
        none may be.
    """
    epsilon = check_epsilon(epsilon)
    places = data.hierarchy
    plan = plan_of(method, places.levels, **options)
    if plan.merge == AT_ONCE and not plan.bottom_up:
        check_at_once(places.levels, places.tree.size, plan)
    measured = measure(data, epsilon, noise or ExactNoise(), plan)
    steps = measured.steps
    runs = post_process(measured, places, plan, steps)
    ledger = Ledger(epsilon, 0.0, neighbours_of(plan), measured.spends)
    settings = settings_of(plan, places, measured.max_size, int(measured.groups[0]))
    table, regions = table_of(places, runs), {ALONE: places}
    return Release(plan.name, table, ledger, steps.kept, settings, tuple(steps.proved), regions=regions)


def neighbours_of(plan: Plan) -> str:
    """The neighbouring relation, in words."""
    relation = ENTITY if plan.group_budget is None else PRIVATE_GROUPS
    return relation + (f"; {NOT_EMPTY}" if plan.smallest else "")


def settings_of(plan: Plan, places: Hierarchy, max_size: int, groups: int) -> dict[str, Any]:
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
    """The estimates of the regions: the only results from the true counts.

    Attributes
    ----------
    runs : Runs
        One row for each region; with a bottom-up plan, those above the last level are empty.
    weights : int64 or float64 array, shape (runs,)
        1/variance of each group's size, in one unit.
    groups : int64 array, shape (regions,)
        Numbers of groups, public or estimated.
    max_size : int
        K, public or estimated.
    spends : tuple of Spend
    steps : Steps
    """

    runs: Runs
    weights: NDArray[Any]
    groups: Ints
    max_size: int
    spends: tuple[Spend, ...]
    steps: Steps


def measure(data: SizeRuns, epsilon: float, noise: Noise, plan: Plan) -> Measured:
    """Estimate every region, with independent noise."""
    places, true = data.hierarchy, data.runs
    tree, steps, spends = places.tree, Steps(), list[Spend]()
    rest = budgets_of(plan, epsilon)
    if plan.smallest and (true.sizes == 0).any():
        region = np.concatenate(places.names)[true.row[true.sizes == 0][-1]]
        raise InputError(f"region {region!r} has an empty group; leave smallest at 0, or remove such groups")
    largest, groups = plan.max_size, true.groups
    if plan.size_budget is not None:
        largest, spend = private_size(true.between(0, 1), plan.size_budget, noise)
        spends.append(spend)
    if plan.group_budget is not None:
        groups, paid = private_groups(places, groups, plan.group_budget, noise, steps)
        spends += paid
    true = true.capped(largest)
    domain = Sizes(largest, plan.smallest)
    announce(_draws(tree, groups, plan, domain), noise)
    at = measured_regions(tree, groups, plan)
    # The progress bar counts the regions that go in, because estimates come out in batches.
    regions = _regions(places, true, groups, plan, domain, rest, at)
    regions = progress.steps(regions, "noise and repair, region by region", at.size)
    shared = steps_of(at, tree.level, groups, plan, domain)
    found: list[Runs] = []
    by_level: dict[tuple[int, Spend], None] = {}
    together = (list(islice(regions, len(of))) for of in shared)
    for of, got in zip(shared, estimates(together, noise), strict=True):
        found.append(got.runs)
        steps.add(got.step)
        if got.spend is not None:
            by_level[int(tree.level[of[0]]), got.spend] = None  # once per level: its regions share no entity
    spends += [spend for _, spend in by_level]
    runs = Runs.stacked(found).placed(at, tree.size)
    return Measured(runs, weights_of(runs, tree.level, plan, rest), groups, largest, tuple(spends), steps)


def _draws(tree: Tree, groups: Ints, plan: Plan, domain: Sizes) -> int:
    """Number of draws for all regions; bottom-up, for those of the last level."""
    first = int(tree.level_start[-2]) if plan.bottom_up else 0
    there = zip(groups[first:].tolist(), tree.level[first:].tolist(), strict=True)
    return sum(numbers_of(n, plan.method_of(level), domain) for n, level in there)


def _regions(
    places: Hierarchy, true: Runs, groups: Ints, plan: Plan, domain: Sizes, budgets: Sequence[float], at: Ints
) -> Iterator[Region]:
    """Yield the regions to measure."""
    names = np.concatenate(places.names)
    for r in at.tolist():
        level, n = int(places.tree.level[r]), int(groups[r])
        sizes = true.of(r)
        if plan.group_budget is not None:
            sizes = resized(*sizes, n, plan.smallest)
        budget = budgets[0 if plan.bottom_up else level]
        yield Region(sizes, n, plan.method_of(level), domain, budget, (places.levels[level], str(names[r])))


def post_process(measured: Measured, places: Hierarchy, plan: Plan, solving: Solving = Step.solve) -> Runs:
    """Compute consistent groups by size of all regions from their estimates."""
    tree, runs = places.tree, measured.runs
    if plan.bottom_up:
        return bottom_up(tree, runs.between(int(tree.level_start[-2]), tree.size))
    if plan.merge == AT_ONCE:
        return at_once(tree, runs, solving)
    names = [str(name) for name in np.concatenate(places.names)]
    return top_down(tree, runs, measured.weights, plan.merge == "weighted", names, solving)


def weights_of(runs: Runs, level_of: Ints, plan: Plan, budgets: Sequence[float]) -> NDArray[Any]:
    """1/variance of each group's size.

    If all levels have the same budget, weights are whole numbers in units of ε²/8, and merging is exact.
    """
    if plan.bottom_up:
        return runs.counts
    level = level_of[runs.row]
    precision = np.array([method.precision for method in plan.methods])
    weights: NDArray[Any] = runs.counts * precision[level]
    if len(set(budgets)) == 1:
        return weights
    return np.asarray(weights * (np.array(budgets) / max(budgets))[level] ** 2)


def _level_names(levels: Sequence[str] | None, regions: Hierarchy | None) -> Sequence[str]:
    if regions is not None:
        return regions.levels
    return ["root", *([levels] if isinstance(levels, str) else levels or ())]


def table_of(places: Hierarchy, runs: Runs) -> Any:
    """One row for each region and size with groups."""
    frame = places.frame()
    table = frame.loc[frame.index.repeat(runs.distinct)].reset_index(drop=True)
    return table.assign(size=runs.sizes, groups=runs.counts)
