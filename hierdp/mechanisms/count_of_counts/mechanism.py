"""Groups by size over a hierarchy, up to very large sizes: Kuo et al. 2018.

Each region's groups are estimated separately, with independent noise, and the estimates are then made to add
up. A region has one answer per possible size with Hc, one per group with Hg. Only some of the noisy answers
are in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.counts.rows import laid_out
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.measuring import Differs, Measure, MeasureTruth
from hierdp.measurements.query import Query
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.count_of_counts.estimates import (
    METHODS,
    CountOfCountsMethod,
    Sizes,
    Together,
    estimates,
    numbers_of,
    size_query,
)
from hierdp.mechanisms.count_of_counts.plan import (
    AT_ONCE,
    MAX_SIZE,
    MERGES,
    CountOfCountsPlan,
    budgets_of,
    check_at_once,
    measured_regions,
    plan_of,
    steps_of,
)
from hierdp.mechanisms.count_of_counts.private import private_groups, private_size
from hierdp.mechanisms.count_of_counts.top_down import at_once, bottom_up, top_down
from hierdp.mechanisms.expected import PlannedLevels, PlannedRegions, RowsOfAPerson, deviation, places_of
from hierdp.mechanisms.mechanism import Mechanism, PlannedShares, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, level_names, public_groups
from hierdp.mechanisms.relations import ENTITY
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Allowed
from hierdp.privacy.noise import Noise
from hierdp.record.compare import shape_of_sizes
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.step import Solving, Step
from hierdp.tables.sizes import group_runs
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

NOT_EMPTY = "it is public that no group is empty"
PRIVATE_GROUPS = (
    "one entity joins or leaves a group, or comes or goes with a group of its own; or a group without "
    "entities comes or goes; regions are public"
)
NOTE = (
    "The released sizes are monotone whole numbers, matched along the hierarchy: their error depends on the "
    "true sizes. Kuo et al. 2018 prove no bound on the earth mover's distance. Their estimate (§5.1): in a "
    "run of n groups of one size, each size has the variance in column size_variance, divided by n, by the "
    "level's ε (or ρ). A release merges the estimates of all levels, which lowers it."
)


@dataclass(frozen=True, eq=False)
class PublicPlaces:
    """What is public of groups by size.

    - groups, int64 array, shape (regions,): their numbers of groups, if these are public.
    - total: the estimated number of all groups, if it is secret, and known from a release.
    """

    places: Hierarchy
    groups: Ints | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedCountOfCounts(PlannedShares):
    """The options of a plan for groups by size, up to very large sizes."""

    OF_THE_RELEASE: ClassVar = (
        "delta",
        "method",
        "max_size",
        "smallest",
        "size_budget",
        "group_budget",
        "shares",
    )

    levels: PlannedLevels = None
    regions: PlannedRegions = None
    groups: Annotated[
        int | None,
        Option(
            "The number of groups, of which Hg measures each; or a public table of all, one row each.",
            "NUMBER",
            form="planned groups",
        ),
    ] = None
    rows_per_person: RowsOfAPerson = 1

    def facts(self, mechanism: CountOfCounts) -> PublicPlaces:
        """See `Planned`."""
        return PublicPlaces(places_of(self.levels, self.regions))


@documented
@dataclass(frozen=True, kw_only=True)
class CountOfCounts(Mechanism[PublicPlaces]):
    """How many groups have each size, up to very large sizes, in every region.

    The budget is divided over the levels, including the root's: equally, or by `shares`. In every region, Hg
    draws noise for each group, and Hc and naive for each size up to K. A release has one row for each region
    and size with groups.
    """

    epsilon: float
    delta: shared.Concentrated = None
    group: shared.Group
    groups: shared.Groups = None
    groups_from_data: shared.GroupsFromData = False
    entities: shared.Entities = None
    levels: shared.Levels = None
    regions: shared.Regions = None
    region: shared.Region = None
    regions_from_data: shared.RegionsFromData = False
    root: shared.Root = "all"
    unknown: shared.UnknownOrNoGroup = None
    person: shared.Person = None
    rows_per_person: shared.RowsPerPerson = None
    most_per_row: shared.MostPerRow = None
    method: Annotated[
        str,
        Option(
            "The measurement: Hc (best for dense sizes), Hg (better for few, large sizes; draws noise for "
            "every group), Hc2, Hg1, naive; or one per level, from the root: 'Hg x Hc x Hc'; or, for the "
            "finest level only, 'bottom-up'.",
            "NAMES",
        ),
    ] = "Hc"
    merge: Annotated[
        Literal["weighted", "plain", "at once"],
        Option(
            "How two levels' estimates of a group's size are merged: weighted by inverse variance, or by "
            "their plain average. With three levels, also 'at once': nearest to all estimates together, "
            "often better above the finest level."
        ),
    ] = "weighted"
    max_size: Annotated[
        int,
        Option(
            "Larger groups are counted in this size (top-coded). Choose it without looking at the data, and "
            "rather too large: that costs time, as Hc draws noise for every size in every region, but little "
            "accuracy.",
            "NUMBER",
        ),
    ] = MAX_SIZE
    smallest: Annotated[
        int,
        Option(
            "It is public that every group has at least one entity: no size 0 is released. With `person`, a "
            "group of which no row is counted has size 1.",
            flag="--no-empty-groups",
            value=1,
        ),
    ] = 0
    size_budget: Annotated[
        float | None,
        Option(
            "In place of `max_size`: the part of ε for estimating it; with `delta`, that part of ρ. A small "
            "part suffices, such as 0.001 for a bound about 7,000 too high.",
            "NUMBER",
            above=0,
            instead_of="max_size",
        ),
    ] = None
    group_budget: Annotated[
        float | None,
        Option(
            "The part of ε for the numbers of groups, if these are not public; with `delta`, that part of ρ.",
            "NUMBER",
            above=0,
        ),
    ] = None
    shares: shared.Shares = None

    NAME: ClassVar = "count-of-counts"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("merge", "max_size", "size_budget", "group_budget", "shares")
    COUNTED: ClassVar = "entities"
    OF_THE_REPAIR: ClassVar = ("merge",)
    PLANNED: ClassVar = PlannedCountOfCounts
    NOTES: ClassVar = (NOTE,)
    shape = staticmethod(shape_of_sizes)

    def plan(self, facts: PublicPlaces, allowed: Allowed) -> CountOfCountsPlan:
        """The methods by level; parts of ε are parts of what is allowed, which is ρ, or the ε of one row."""
        return self.named(facts.places.levels).in_parts_of(allowed.loss, self.epsilon)

    def named(self, levels: Sequence[str]) -> CountOfCountsPlan:
        """The methods by level, with parts of ε.

        Raises `InputError` if an option is out of range, does not fit the levels, or nothing is left of ε.
        """
        names = "merge", "max_size", "smallest", "size_budget", "group_budget", "shares"
        plan = plan_of(self.method, levels, **{name: getattr(self, name) for name in names})
        budgets_of(plan, self.epsilon)
        return plan

    def name_of(self, facts: PublicPlaces) -> str:
        """See `Mechanism`: with the method of every level."""
        return self.named(facts.places.levels).name

    @property
    def chosen(self) -> None:
        """See `Mechanism`; methods are chosen by level (`plan`)."""

    @property
    def solving(self) -> Solving:
        """See `Mechanism`."""
        return Step.solve

    @property
    def unit(self) -> PrivacyUnit:
        """See `Mechanism`."""
        relation = ENTITY if self.group_budget is None else PRIVATE_GROUPS
        return replace(super().unit, relation=relation + (f"; {NOT_EMPTY}" if self.smallest else ""))

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **changes: Any) -> Self:
        """See `Mechanism`; the budget is the loss, of which the settings state parts.

        Raises `InputError` if the method takes no `merge`.
        """
        settings, merge = manifest["settings"], changes.pop("merge", None)
        fixed = {
            "epsilon": Allowed.stated(manifest["budget"]).loss,
            "delta": None,
            "smallest": settings["smallest_size"],
            "merge": merge or settings.get("merge", MERGES[0]),
        }
        mechanism = super().of(manifest, **{**fixed, **changes})
        plan = mechanism.named(settings["levels"])
        if merge is not None and plan.bottom_up:
            raise InputError(f"{plan.name} takes no `merge`: only the last level is measured")
        return replace(mechanism, method=plan.name)

    def lists(self) -> Public:
        """See `Mechanism`."""
        given = self.regions, self.groups, self.regions_from_data, self.groups_from_data
        public = public_groups(*given, can_hide=True, hidden=self.group_budget is not None)
        self.named(level_names(self.levels, self.regions))
        return public

    def read(self, source: Any) -> SizeRuns:
        """See `Mechanism`."""
        names = "group", "groups", "entities", "levels", "regions", "region", "root", "unknown"
        persons = self.unit.enforced
        data = group_runs(source, **{name: getattr(self, name) for name in names}, persons=persons)
        if persons is None:
            return data
        # a group whose rows are all beyond the bound is not empty in the table
        return SizeRuns(data.hierarchy, data.runs.raised(self.smallest))

    def facts(self, data: SizeRuns) -> tuple[PublicPlaces, Runs]:
        """See `Mechanism`; the true counts are groups by size of all regions.

        Raises `InputError` if an option does not fit the levels, or a group is empty although none may be.
        """
        places, plan = data.hierarchy, self.named(data.hierarchy.levels)
        if plan.merge == AT_ONCE and not plan.bottom_up:
            check_at_once(places.levels, places.tree.size, plan)
        return PublicPlaces(places, _public_groups(data, plan)), data.runs

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> PublicPlaces:
        """See `Mechanism`."""
        (places,) = regions.values()
        if self.method != manifest["mechanism"]:
            raise Differs(
                f"the mechanism is {manifest['mechanism']!r}, but the settings name {self.method!r}"
            )
        if self.group_budget is not None:
            return PublicPlaces(places, total=manifest["settings"]["groups"])
        if table is None:
            return PublicPlaces(places)
        try:
            return PublicPlaces(places, laid_out(table).runs(places).groups)
        except InputError as wrong:
            raise Differs(str(wrong)) from None

    def regions_of(self, facts: PublicPlaces) -> Regions:
        """See `Mechanism`."""
        return {ALONE: facts.places}

    def queries_of(self, facts: PublicPlaces, allowed: Allowed) -> list[Query]:
        """See `Mechanism`: the groups by size of each level; there are none for a plan, which knows none."""
        plan, places = self.plan(facts, allowed), facts.places
        groups = np.zeros(places.tree.size, np.int64) if facts.groups is None else facts.groups
        domain, nodes = Sizes(plan.max_size, plan.smallest), np.arange(places.tree.size)
        found = []
        for level, method, share in levels_of(places, plan, allowed):
            of = nodes[places.tree.nodes_of(level)]
            step = Together(of, groups[of], method, domain, plan.group_budget is not None)
            found.append(size_query(places.levels[level], share, [step], places))
        return found

    def run(
        self, facts: PublicPlaces, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[DataFrame, dict[str, Any]]:
        """See `Mechanism`: estimate the groups by size of each region, then make the estimates add up."""
        places, plan = facts.places, self.plan(facts, allowed)
        found = measured(places, facts.groups, allowed, measure, solve, plan, facts.total)
        runs = post_process(found, places, plan, solve)
        return table_of(places, runs), settings_of(plan, places, found.max_size, int(found.groups[0]))

    @property
    def answers_per_count(self) -> None:
        """See `Mechanism`: released sizes are no sums of answers."""

    def planned_rows(self, facts: PublicPlaces, allowed: Allowed, planned: Any) -> list[dict[str, Any]]:
        """See `Mechanism`."""
        plan, places, rows = self.plan(facts, allowed), facts.places, list[dict[str, Any]]()
        for level, method, share in levels_of(places, plan, allowed):
            number = int(places.tree.level_sizes[level])
            cells = number * numbers_of(1, method, Sizes(plan.max_size, plan.smallest))
            sensitivity = share.sensitivity(method.sensitivity)
            unit = share.loss if share.noise == GAUSSIAN else share.loss**2 / 8
            rows.append(
                {
                    "level": level,
                    "counts_of": places.levels[level],
                    "regions": number,
                    "query": method.query(places.levels[level]),
                    "measured": planned.groups if method.form == "Hg" else cells,
                    "noise_deviation": deviation(share.noise, sensitivity, share.loss),
                    "standard_error": np.nan,
                    "size_variance": 1 / (method.precision(share.noise) * unit),
                }
            )
        return rows


def count_of_counts(
    data: SizeRuns, epsilon: float, noise: Noise | None = None, method: str = "Hc", **options: Any
) -> Release:
    """A release of true counts in memory; of `CountOfCounts`, all options but columns and lists."""
    return release_counts(CountOfCounts(epsilon=epsilon, method=method, group=(), **options), data, noise)


def _public_groups(data: SizeRuns, plan: CountOfCountsPlan) -> Ints | None:
    """The number of groups of each region, if it is public.

    Raises `InputError` if a group is empty although none may be.
    """
    places, true = data.hierarchy, data.runs
    if plan.smallest and (true.sizes == 0).any():
        region = np.concatenate(places.names)[true.row[true.sizes == 0][-1]]
        raise InputError(f"region {region!r} has an empty group; leave smallest at 0, or remove such groups")
    return true.groups if plan.group_budget is None else None


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

    - groups, total: as in `PublicPlaces`.
    - measure: answers queries about the true groups by size of all regions, `Runs`.
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
    groups, measuring = _public_groups(data, plan), MeasureTruth(data.runs, noise)
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


def table_of(places: Hierarchy, runs: Runs) -> DataFrame:
    """One row for each region and size with groups."""
    frame = places.frame()
    table = frame.loc[frame.index.repeat(runs.distinct)].reset_index(drop=True)
    return table.assign(size=runs.sizes, groups=runs.counts)
