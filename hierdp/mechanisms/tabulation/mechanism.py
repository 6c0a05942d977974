"""Tables of several attributes for every region, from noisy answers on every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.counts.layout import Regions
from hierdp.errors import InputError
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import Expected
from hierdp.mechanisms.mechanism import Mechanism, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, public_tables
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.tabulation import methods
from hierdp.mechanisms.tabulation.budget import ONE_PERSON, relation_of, shares
from hierdp.mechanisms.tabulation.constraints import broken_bounds, constraints_of
from hierdp.mechanisms.tabulation.contradiction import explaining
from hierdp.mechanisms.tabulation.expected import PlannedTabulation
from hierdp.mechanisms.tabulation.lookahead import refuse_dead_ends
from hierdp.mechanisms.tabulation.measure import level_queries, noisy_answers
from hierdp.mechanisms.tabulation.options import METHODS, UNBIASED, refuse_unused, settings_for
from hierdp.mechanisms.tabulation.plan import TabulationPlan, plan_of
from hierdp.mechanisms.tabulation.problem import Constraints
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.tabulation.solving import solving_of
from hierdp.mechanisms.tabulation.table import REGION, counts_in, table_of
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.budget import Allowed
from hierdp.privacy.noise import Noise
from hierdp.record.compare import shape_of_regions
from hierdp.record.files import ALONE
from hierdp.record.release import Release
from hierdp.record.step import Solving
from hierdp.tables.axes import Axis
from hierdp.tables.tabulated import CrossTable, cross_table
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

CELLS = 30_000
"""Families with up to so many cells in all are one step of the fast paths. By a chosen solver, each is a step
of its own."""


@dataclass(frozen=True, eq=False)
class PublicTables:
    """What is public of tables of attributes.

    - constraints: invariants, bounds and structural zeros; of tables with a public total, that total, too.
      None in questions about intervals.
    """

    places: Hierarchy
    queries: Queries
    constraints: Constraints | None = None


@documented
@dataclass(frozen=True, kw_only=True)
class Tabulation(Mechanism[PublicTables]):
    """Release tables of attributes that satisfy public constraints and add up over the regions.

    A release has a row for each region and cell with a positive count; of GLS, for every region and cell,
    with its standard error.
    """

    epsilon: float
    delta: shared.Delta
    attributes: Annotated[
        Sequence[str] | None,
        Option(
            "A column of categories, with all of these: age=old,young; or a file (.csv, .parquet) with a "
            "column of that name: age=ages.csv. The name alone: see `attributes_from_data`. In Python, also "
            "a dict of lists.",
            "NAME[=CATEGORIES]",
            flag="--attribute",
        ),
    ] = None
    attributes_from_data: Annotated[
        bool,
        Option(
            "For attributes without a list: use the categories that occur in the data. They are then "
            "published exactly, whatever ε is, so the only person of a category is not protected. The "
            "release warns of it.",
            flag="--attribute-from-data",
        ),
    ] = False
    levels: shared.Levels = None
    regions: shared.Regions = None
    region: shared.Region = None
    regions_from_data: shared.RegionsFromData = False
    root: shared.Root = "all"
    count: shared.Count = None
    unknown: shared.Unknown = None
    person: shared.Person = None
    rows_per_person: shared.RowsPerPerson = None
    most_per_row: shared.MostPerRow = None
    bounded: shared.Bounded = True
    plan: Annotated[
        Any,
        Option(
            "A TOML file with any of the following options and more, such as recodes; or a plan that comes "
            "with hierdp: redistricting-2020. Options replace its entries. In Python, also a dict.",
            "FILE",
            form="path",
        ),
    ] = None
    queries: Annotated[
        Sequence[str] | None,
        Option(
            'What is measured on each level: total, detailed (every cell), or attributes: "group*age". '
            "Default: the total, each attribute, and every cell.",
            "NAME",
            flag="--query",
        ),
    ] = None
    level_shares: Annotated[
        Sequence[str] | None,
        Option(
            "A level's share of the budget, such as state=1/4; the root's is root. Give one for every level; "
            "0: not measured. Default: equal.",
            "LEVEL=SHARE",
            flag="--level-share",
        ),
    ] = None
    query_shares: Annotated[
        Sequence[str] | None,
        Option(
            "A query's share of each level's budget, total=1/4, or of one level's, state:total=1/4. Give one "
            "for every query; 0: not measured. Default: equal, without queries that invariants fix.",
            "[LEVEL:]QUERY=SHARE",
            flag="--query-share",
        ),
    ] = None
    invariants: Annotated[
        Sequence[str] | None,
        Option(
            "Publish a query's true answers on a level, such as state:total. The guarantee does not cover "
            "them. The release warns of it.",
            "LEVEL:QUERY",
            flag="--invariant",
        ),
    ] = None
    bounds: Annotated[
        Sequence[str] | None,
        Option(
            "Public bounds on a query's answers in each region of a level, such as county:total:1..; they "
            "must not depend on the data.",
            "LEVEL:QUERY:LOWER..UPPER",
            flag="--bound",
        ),
    ] = None
    zeros: Annotated[
        Sequence[str] | None,
        Option(
            "A combination of categories that is known to be empty everywhere: "
            '"home=nursing,age=under 18". A person who has it is an error.',
            "NAME=CATEGORY,…",
            flag="--zero",
        ),
    ] = None
    passes: Annotated[
        Sequence[str] | None,
        Option(
            "Queries of a pass of least squares, which later passes keep. Repeat it for each pass, in order. "
            "Default: the method's.",
            "QUERIES",
            flag="--pass",
        ),
    ] = None
    rounding: Annotated[
        Sequence[str] | None,
        Option(
            "A query whose answers rounding keeps near the fractional ones. Default: the method's.", "NAME"
        ),
    ] = None
    method: Annotated[
        str,
        Option(
            "TopDown: level by level; BlueDown: least squares over all regions first, then level by level; "
            "GLS: that least squares, fractional, with standard errors; Joint: all levels at once, if there "
            "are few cells. BlueDown and GLS take no recoded queries.",
            "NAME",
        ),
    ] = "TopDown"
    backend: Annotated[str | None, Option("Solver; see `hierdp solvers`. Default: fast.", "NAME")] = None
    time_limit: shared.TimeLimit = None

    NAME: ClassVar = "tabulation"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("plan", "backend")
    BY_ROW: ClassVar = False
    OF_THE_REPAIR: ClassVar = ("backend", "time_limit")
    MOST_IN_MEMORY: ClassVar = 400_000
    MOST_SIMULATED: ClassVar = 10_000
    PLANNED: ClassVar = PlannedTabulation

    @staticmethod
    def shape(table: Any, manifest: Mapping[str, Any], regions: Regions, /) -> str:
        """See `Mechanism`: also what is wrong with the plan's public constraints."""
        settings, unbiased = manifest["settings"], manifest["mechanism"] in UNBIASED
        queries = Queries(plan_of(settings["plan"]))
        columns = [*REGION, *queries.plan.attributes, "count", *(["standard_error"] if unbiased else [])]
        if wrong := shape_of_regions(table, settings, regions, columns):
            return wrong
        (places,) = regions.values()
        if unbiased:
            return ""
        try:
            counts = counts_in(table, queries, places)
            if any(held[:, queries.zeros].any() for held in counts):
                return "a cell is positive that is a structural zero of the plan"
            return broken_bounds(queries, places, counts, "total" in settings)
        except InputError as why:
            return str(why)

    @cached_property
    def whole_plan(self) -> TabulationPlan:
        """The plan of the file, with the options in place of its entries."""
        if isinstance(self.plan, TabulationPlan):
            return self.plan
        if self.plan is None and self.attributes is None:
            columns = "name the columns of categories (`attributes`), or a plan (`plan`)"
            raise InputError(f"no attributes: {columns}")
        names = "attributes", "queries", "level_shares", "query_shares", "invariants", "bounds", "zeros"
        return plan_of(self.plan, **{name: getattr(self, name) for name in (*names, "passes", "rounding")})

    @property
    def solving(self) -> Solving:
        """See `Mechanism`."""
        return solving_of(self.solver)

    @property
    def unit(self) -> PrivacyUnit:
        """See `Mechanism`: a person; sensitivities are theirs. The relation names the invariants."""
        names = "person", "rows_per_person", "most_per_row"
        persons: dict[str, Any] = {name: getattr(self, name) for name in names}
        unit = PrivacyUnit.of(
            **persons, counts=self.count, replaced=self.bounded, distinct=False, by_row=False
        )
        if self.plan is None and self.attributes is None:
            return unit
        return replace(unit, relation=relation_of(unit, self.whole_plan.invariants))

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **changes: Any) -> Self:
        """See `Mechanism`."""
        settings, rows = manifest["settings"], manifest["settings"].get("rows_a_person", 1)
        unit: dict[str, Any] = {"bounded": "total" in settings}
        if rows > 1:
            unit |= {"person": "a person", "rows_per_person": rows}
        return super().of(manifest, **{**unit, **changes})

    def lists(self) -> Public:
        """See `Mechanism`."""
        plan, regions = self.whole_plan, self.regions
        if (self.levels is None) == (regions is None) or (regions is None) != (self.region is None):
            raise InputError("give the regions by `levels`, or by both `regions` and `region`")
        names = ("root", *self.axis.levels) if regions is None else regions.levels
        plan.check_levels(names)
        public = public_tables(regions, self.regions_from_data, plan.unlisted, self.attributes_from_data)
        if not plan.unlisted:
            self.refuse_unfit(Queries(plan), names, None if regions is None else regions.tree.size)
        return Public({**self.published_answers, **public.words}, public.settings)

    @property
    def published_answers(self) -> dict[str, str]:
        """The invariants, for the manifest's `taken_as_public`."""
        invariants = ", ".join(":".join(pair) for pair in self.whole_plan.invariants)
        return {"invariants": invariants} if invariants else {}

    @property
    def axis(self) -> Axis:
        """The columns of regions."""
        return (
            Axis.of(self.levels)
            if self.levels is not None
            else Axis(self.regions, as_names(self.region or ()))
        )

    def refuse_unfit(self, queries: Queries, levels: Sequence[str], regions: int | None) -> None:
        """Refuse a plan that the method does not take, or does not use."""
        measured = shares(queries, levels, self.unit)
        settings_for(self.method, queries, levels, measured, regions)
        refuse_unused(self.method, queries, measured)

    def check_measured(self, settings: Mapping[str, Any]) -> None:
        """See `Mechanism`."""
        queries = Queries(self.whole_plan)
        refuse_unused(self.method, queries, shares(queries, settings["levels"], self.unit))

    def read(self, source: Any) -> CrossTable:
        """See `Mechanism`."""
        return cross_table(
            source,
            axis=self.axis,
            attributes=self.whole_plan.attributes,
            count=self.count,
            root=self.root,
            unknown=self.unknown,
            persons=self.unit.enforced,
        )

    def facts(self, data: CrossTable) -> tuple[PublicTables, list[Ints]]:
        """See `Mechanism`; the true histograms of each level have shape (regions of the level, cells)."""
        places, plan = data.hierarchy, self.whole_plan.with_categories(data.categories)
        plan.check_levels(places.levels)
        queries, tree = Queries(plan), places.tree
        _refuse_zeros(queries, data)
        self.refuse_unfit(queries, places.levels, tree.size)
        true = _by_level(places, data.counts)
        constraints = constraints_of(queries, places, true, self.bounded)
        refuse_dead_ends(self.method, queries.workload, constraints, places)
        return PublicTables(places, queries, constraints), true

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> PublicTables:
        """See `Mechanism`; the invariants are those of the table, which publishes them."""
        (places,), queries, constraints = regions.values(), Queries(self.whole_plan), None
        if table is not None:
            constraints = constraints_of(queries, places, counts_in(table, queries, places), self.bounded)
        return PublicTables(places, queries, constraints)

    def regions_of(self, facts: PublicTables) -> Regions:
        """See `Mechanism`."""
        return {ALONE: facts.places}

    def truth_of(self, facts: PublicTables, table: Any) -> list[Ints]:
        """See `Mechanism`."""
        return _by_level(facts.places, counts_in(table, facts.queries, facts.places)[-1])

    def queries_of(self, facts: PublicTables, allowed: Allowed) -> list[Query]:
        """See `Mechanism`."""
        return [query for _, query in level_queries(facts.queries, facts.places, self.unit, allowed.loss)]

    def run(
        self, facts: PublicTables, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[DataFrame, dict[str, Any]]:
        """See `Mechanism`: measure every level, then make the noisy answers into tables."""
        queries, places, unit = facts.queries, facts.places, self.unit
        how = settings_for(self.method, queries, places.levels, shares(queries, places.levels, unit))
        how = replace(how, together=CELLS if self.backend is None else 0)
        noisy = noisy_answers(queries, places, unit, allowed.loss, measure)
        assert facts.constraints is not None
        counts, errors = methods.METHODS[self.method](noisy, facts.constraints, how, solve)
        return table_of(queries, places, counts, errors), {
            "levels": list(places.levels),
            "plan": queries.plan.as_dict(),
            **({"total": int(np.rint(counts[0].sum()))} if self.bounded else {}),
            **({} if unit.rows == 1 else {"rows_a_person": unit.rows}),
            **({} if self.backend is None else {"backend": self.backend}),
        }

    def explaining(self) -> AbstractContextManager[Any]:
        """See `Mechanism`."""
        return explaining()

    def expected(self, planned: PlannedTabulation) -> Expected:
        """See `Mechanism`; the categories of the attributes may be numbers only."""
        self.chosen, Allowed.of(self.epsilon, self.delta)
        return planned.expected(self)


def tabulate(
    data: CrossTable,
    plan: TabulationPlan,
    epsilon: float,
    delta: float,
    noise: Noise | None = None,
    method: str = "TopDown",
    unit: PrivacyUnit = ONE_PERSON,
    solver: SolverOptions | None = None,
    person: str | None = None,
) -> Release:
    """A release of true counts in memory by a plan; see `Tabulation`.

    - unit: whom the guarantee protects. Default: a person is replaced by another, so the total is public.
    - person: the column that named the persons, if they have several rows.
    """
    solver = solver or SolverOptions()
    persons: dict[str, Any] = {}
    if person is not None or unit.rows > 1:
        persons = {"person": person or "a person", "rows_per_person": unit.rows}
    mechanism = Tabulation(
        epsilon=epsilon, delta=delta, plan=plan, method=method, bounded=unit.replaced,
        backend=solver.backend, time_limit=solver.time_limit, **persons,
    )  # fmt: skip
    return release_counts(mechanism, data, noise).taking_as_public(**mechanism.published_answers)


def _by_level(places: Hierarchy, counts: Ints) -> list[Ints]:
    tree = places.tree
    everywhere = np.asarray(tree.sum_up(counts), np.int64)
    return [everywhere[tree.nodes_of(level)] for level in range(tree.depth + 1)]


def _refuse_zeros(queries: Queries, data: CrossTable) -> None:
    """Refuse a table with persons where the plan says that there are none."""
    for cells in queries.plan.zeros:
        if data.counts[:, queries.mask(cells, "a structural zero").ravel()].any():
            named = ", ".join(f"{name} = {' or '.join(chosen)}" for name, chosen in cells.items())
            raise InputError(
                f"a row has {named}, a structural zero of the plan: fix the row, or leave out the zero"
            )
