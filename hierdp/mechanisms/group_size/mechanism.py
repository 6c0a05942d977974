"""Groups by size over a hierarchy: the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.counts.size_runs import cumulative
from hierdp.counts.size_table import SizeTable, narrow
from hierdp.measurements.measuring import Differs, Measure, MeasureTruth
from hierdp.measurements.query import Query
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import PlannedLevels, PlannedRegions, RowsOfAPerson, places_of
from hierdp.mechanisms.group_size.post_processing import (
    METHODS,
    GroupSizeMethod,
    paper_window,
    post_process,
)
from hierdp.mechanisms.mechanism import Mechanism, PlannedShares, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, level_names, public_groups
from hierdp.mechanisms.relations import ENTITY
from hierdp.mechanisms.weights import whole_weights
from hierdp.metrics.group_sizes import constraint_violations
from hierdp.privacy.budget import GEOMETRIC, Allowed, Spend, split
from hierdp.privacy.noise import Noise
from hierdp.record.compare import shape_of_sizes
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.step import Solving
from hierdp.tables import GroupSizes, group_sizes
from models import Tree
from models.arithmetic.arrays import Ints

CELLS_AT_ONCE = 20_000_000
"""Counts that get noise at once; more would need further arrays of their size."""

NOTE = (
    "The released counts are non-negative whole numbers that add up: their error depends on the true counts, "
    "and no bound on it is known. The noise is that before post-processing."
)

ALIKE = (
    "weighs all levels alike, whatever their noise: uneven shares may make its counts less accurate, "
    "those of the levels with large shares included. M_c^dp and M_H^dp weigh levels by their noise."
)


@dataclass(frozen=True, eq=False)
class PublicGroups:
    """What is public of groups by size.

    - groups: their number; None in a plan, which does not know it.
    - whole, int array, shape (sizes,): the released counts of all regions together, if there is a release.
    """

    places: Hierarchy
    groups: int | None
    whole: Ints | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedGroupSize(PlannedShares):
    """The options of a plan for groups by size."""

    OF_THE_RELEASE: ClassVar = ("delta", "max_size", "method", "shares")

    levels: PlannedLevels = None
    regions: PlannedRegions = None
    rows_per_person: RowsOfAPerson = 1

    def facts(self, mechanism: GroupSize) -> PublicGroups:
        """See `Planned`."""
        return PublicGroups(places_of(self.levels, self.regions), None)


@documented
@dataclass(frozen=True, kw_only=True)
class GroupSize(Mechanism[PublicGroups]):
    """How many groups have each size, in every region.

    The budget is divided over the levels, including the root's: equally, or by `shares`. Then a level's
    counts weigh in proportion to 1/scale² of its noise, except in M_c and M_c^r, which weigh all levels
    alike.
    """

    epsilon: float
    delta: shared.Concentrated = None
    group: shared.Group
    groups: shared.Groups = None
    groups_from_data: shared.GroupsFromData = False
    max_size: Annotated[
        int,
        Option(
            "Larger groups are counted in this size (top-coded). Choose it without looking at the data.",
            "NUMBER",
        ),
    ]
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
        str, Option("The method, by its name in the paper. See `hierdp mechanisms`.", "NAME")
    ] = "M_c^dp"
    backend: Annotated[
        str | None,
        Option(
            "Solver, for the methods with a choice. Default: highs (M_H, M_c), cp-sat (M_dp^OP), fast "
            "(M_c^r; M_H^r, or clarabel with `window`). See `hierdp solvers`.",
            "NAME",
        ),
    ] = None
    time_limit: shared.TimeLimit = None
    window: Annotated[
        int | None,
        Option(
            "Truncate domains to the noisy count ± this number. Default: no truncation.", "NUMBER", least=0
        ),
    ] = None
    shares: shared.Shares = None

    NAME: ClassVar = "group-size"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("max_size", "window", "shares")
    RELATION: ClassVar = ENTITY
    COUNTED: ClassVar = "entities"
    OF_THE_REPAIR: ClassVar = ("backend", "time_limit", "window")
    FOLLOWS: ClassVar = ("constraint_violations",)
    PLANNED: ClassVar = PlannedGroupSize
    shape = staticmethod(shape_of_sizes)

    def lists(self) -> Public:
        """See `Mechanism`."""
        split(self.allowed.loss, len(level_names(self.levels, self.regions)), self.shares)
        return public_groups(self.regions, self.groups, self.regions_from_data, self.groups_from_data)

    def read(self, source: Any) -> GroupSizes:
        """See `Mechanism`."""
        names = "group", "groups", "max_size", "entities", "levels", "regions", "region", "root", "unknown"
        columns = {name: getattr(self, name) for name in names}
        return group_sizes(source, **columns, persons=self.unit.enforced)

    def facts(self, data: GroupSizes) -> tuple[PublicGroups, Ints]:
        """See `Mechanism`; the true counts have shape (regions, sizes)."""
        return PublicGroups(data.hierarchy, data.groups), data.counts

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> PublicGroups:
        """See `Mechanism`."""
        (places,) = regions.values()
        groups, whole = manifest["settings"]["groups"], None
        if table is not None:
            if not isinstance(table, SizeTable):  # before arrays of its shape are made
                raise Differs("the table does not have one row for each region and size, in order")
            whole = table.counts[0] if "solved" in manifest else None  # then the table is that of these steps
        return PublicGroups(places, groups, whole)

    def regions_of(self, facts: PublicGroups) -> Regions:
        """See `Mechanism`."""
        return {ALONE: facts.places}

    def queries_of(self, facts: PublicGroups, allowed: Allowed) -> list[Query]:
        """See `Mechanism`: one for each level, with its share of ε or ρ."""
        tree, levels = facts.places.tree, facts.places.levels
        losses = split(allowed.loss, len(levels), self.shares)
        return [
            query_of_level(tree, level, self.max_size + 1, name, allowed.part(loss), self.chosen)
            for level, (name, loss) in enumerate(zip(levels, losses, strict=True))
        ]

    def noisy(self, facts: PublicGroups, allowed: Allowed, measure: Measure) -> tuple[Ints, list[Spend]]:
        """Measure sizes, cumulative or not, one level at a time.

        Returns:
        - noisy, int64 array, shape (regions, sizes): of 32 bits if there are many, and these suffice for all
          of them and for the number of groups.
        - spends: of the levels.
        """
        levels = [measure(query) for query in self.queries_of(facts, allowed)]
        measure.end()
        kinds = [level.answers.dtype for level in levels]
        kind = np.result_type(narrow(facts.groups or 0), *kinds)
        noisy = np.concatenate([level.answers for level in levels], dtype=kind)
        return noisy.reshape(-1, self.max_size + 1), [level.spend for level in levels]

    def run(
        self, facts: PublicGroups, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[SizeTable, dict[str, Any]]:
        """See `Mechanism`: measure every level, then make the counts whole, non-negative and consistent."""
        groups, places = facts.groups, facts.places
        assert groups is not None
        noisy, spends = self.noisy(facts, allowed, measure)
        scales, method, window = [spend.scale for spend in spends], self.chosen, self.window
        if window is None and method.name == "M_dp^OP":
            window = paper_window(max(scales), allowed.noise)
        weights = weights_of(scales, noisy, groups, window)
        counts = post_process(noisy, places, groups, method, solve, window, facts.whole, True, weights)
        settings: dict[str, Any] = {
            "max_size": self.max_size,
            "last_size_means": "this size or more",
            "groups": groups,
            "levels": list(places.levels),
            **replace(self, window=window).settings(),
        }
        if not method.consistent:
            settings["constraint_violations"] = constraint_violations(places.tree, counts)
        return SizeTable(places, counts), settings

    def settings(self) -> dict[str, Any]:
        """See `Mechanism`."""
        shares = None if self.shares is None else [float(share) for share in self.shares]
        return {**super().settings(), **({} if shares is None else {"shares": shares})}

    @property
    def answers_per_count(self) -> int:
        """See `Mechanism`."""
        return 2 if self.chosen.cumulative else 1

    def planned_notes(self, facts: PublicGroups, planned: PlannedGroupSize) -> Sequence[str]:
        """See `Mechanism`."""
        alike = planned.optimize is not None and self.chosen.cumulative and not self.chosen.fitted
        return [NOTE, f"{self.method} {ALIKE}"] if alike else [NOTE]


def query_of_level(
    tree: Tree, level: int, sizes: int, name: str, share: Allowed, method: GroupSizeMethod
) -> Query:
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


def weights_of(scales: Sequence[float], noisy: Ints, groups: int, window: int | None) -> Ints | None:
    """Whole weights of the levels, in proportion to 1/scale²; None if all levels have the same noise."""
    if len(set(scales)) == 1:
        return None
    path = Tree([[0]] * (len(scales) - 1))  # weights are by level
    largest = float(abs(int(noisy.max()))) + abs(int(noisy.min())) + groups + (window or 0)
    return whole_weights(path, np.array(scales) ** 2, largest)


def group_size(
    data: GroupSizes, epsilon: float, noise: Noise | None = None, method: str = "M_c^dp", **options: Any
) -> Release:
    """A release of true counts in memory; `options` are those of `GroupSize`, without columns and lists."""
    size = data.counts.shape[1] - 1
    return release_counts(
        GroupSize(epsilon=epsilon, method=method, group=(), max_size=size, **options), data, noise
    )


def m_c_dp(data: GroupSizes, epsilon: float, noise: Noise | None = None) -> Release:
    """M_c^dp, the paper's best method: noisy cumulative sizes, made monotone by region, then consistent."""
    return group_size(data, epsilon, noise)


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
    size = data.counts.shape[1] - 1
    mechanism = GroupSize(epsilon=loss, method=method.name, group=(), max_size=size)
    facts, truth = mechanism.facts(data)
    noisy, spends = mechanism.noisy(facts, Allowed(loss, law), MeasureTruth(truth, noise))
    return noisy, spends[0].scale
