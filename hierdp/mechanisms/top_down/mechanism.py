"""Counts along hierarchies, released level by level from the top, and methods for comparison.

Boninsegna & Silvestri 2025. Only children of regions with a positive released count are measured, so the cost
depends on the release, not on the number of possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.counts.layout import Regions, cells_at
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs, Measure
from hierdp.measurements.query import Query
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import Expected
from hierdp.mechanisms.mechanism import Mechanism, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, public_axes
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.top_down import queries
from hierdp.mechanisms.top_down.expected import (
    BOUND,
    BOUNDED,
    DROPPED,
    NO_BOUND,
    UNBIASED,
    UNKNOWN,
    PlannedTopDown,
    nodes_of,
    parts_of_variances,
    row_of_level,
)
from hierdp.mechanisms.top_down.levels import (
    Axes,
    Children,
    Level,
    depths_of,
    finest_cells_of,
    level_name,
    nodes_above,
    refinements,
    refuse_clashes,
    root,
    table,
)
from hierdp.mechanisms.top_down.post_processing import METHODS, TopDownMethod
from hierdp.mechanisms.top_down.queries import TrueCounts, finest_shape, shares_of
from hierdp.mechanisms.top_down.zeros import zeros_of
from hierdp.mechanisms.unit import ONE_TRIP, PrivacyUnit
from hierdp.privacy.budget import GAUSSIAN, Allowed, check_delta, check_epsilon
from hierdp.privacy.conversion import CONVERSIONS, TIGHTER
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import Noise, deviation_of
from hierdp.privacy.threshold import EXACT
from hierdp.record.compare import shape_of_regions
from hierdp.record.release import Release
from hierdp.record.step import Solving
from hierdp.tables import AxisLike, Flows, flows
from hierdp.tables.cells import axes_by_name
from models.arithmetic.arrays import Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_CELLS = 20_000_000
"""The most possible finest cells for VanillaGauss, whose exact noise takes minutes."""


@documented
@dataclass(frozen=True, kw_only=True)
class TopDown(Mechanism[Axes]):
    """Release a table's counts along hierarchies, made whole, non-negative and consistent at every level.

    A release has one row for each node with a positive count, at every level. VanillaGauss adds noise to all
    finest cells, so its counts may be negative, and its total is not the public one; it has standard errors.
    The stability histogram, SH, is (ε, δ)-DP by itself; the other methods are ρ-zCDP.
    """

    epsilon: float
    delta: shared.Delta
    axes: Annotated[
        Mapping[str, AxisLike],
        Option(
            "The axes by name, such as origin and destination; for each, the columns of its levels from "
            "coarse to fine, or (hierarchy, column).",
            form="axes",
        ),
    ]
    regions_from_data: shared.RegionsFromData = False
    count: shared.Count = None
    unknown: shared.Unknown = None
    person: shared.Person = None
    rows_per_person: shared.RowsPerPerson = None
    most_per_row: shared.MostPerRow = None
    first: Annotated[str | None, Option("The axis refined first. Default: the last one.", "NAME")] = None
    method: Annotated[
        str,
        Option(
            "InfTDA; or InfTDA_large, which loses fewer small counts and invents more; or TDA_inf, TDA_L2, "
            "TDA, VanillaGauss or SH, for comparison. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "InfTDA"
    trips: Annotated[
        int,
        Option(
            "Number of trips of each person in the table, to protect all of them; with unbounded "
            "neighbours, the largest number. Noise grows with it.",
            "NUMBER",
            least=1,
        ),
    ] = 1
    distinct: Annotated[
        bool,
        Option(
            "With `trips`: all trips of one person are in different cells of the table. This reduces the "
            "noise, except with `unknown`, whose cells stand for many places. Use it only if it is true. "
            "With `person`, it is enforced: a person counts once per cell."
        ),
    ] = False
    bounded: shared.Bounded = True
    shares: shared.Shares = None
    zeros: Annotated[
        str | None,
        Option(
            "Two axes, such as origin=destination, that no trip has the same finest place on. These cells "
            "are structural zeros: they are neither measured nor filled.",
            "AXIS=AXIS",
            flag="--zero",
        ),
    ] = None
    backend: Annotated[
        str | None, Option("Solver of TDA_inf, TDA_L2 or TDA; see `hierdp solvers`.", "NAME")
    ] = None
    time_limit: shared.TimeLimit = None

    NAME: ClassVar = "top-down"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("shares", "backend", "zeros")
    BY_ROW: ClassVar = False
    OF_THE_REPAIR: ClassVar = ("backend", "time_limit")
    ROUNDED: ClassVar = tuple(name for name, method in METHODS.items() if method.rounding)
    MOST_SIMULATED: ClassVar = 100_000
    PLANNED: ClassVar = PlannedTopDown

    @staticmethod
    def shape(table: Any, manifest: Mapping[str, Any], regions: Regions, /) -> str:
        """See `Mechanism`."""
        settings = manifest["settings"]
        axes = (part for name in settings["axes"] for part in (f"{name}_level", name))
        return shape_of_regions(table, settings, regions, ["level", *axes, "count"], "standard_error")

    @property
    def chosen(self) -> TopDownMethod:
        """See `Mechanism`."""
        method: TopDownMethod = super().chosen
        method.refuse(self.shares, self.zeros)
        return method

    @property
    def unit(self) -> PrivacyUnit:
        """See `Mechanism`: one person with some trips; sensitivities are theirs."""
        names = "person", "rows_per_person", "most_per_row", "trips", "distinct"
        persons: dict[str, Any] = {name: getattr(self, name) for name in names}
        return PrivacyUnit.of(**persons, counts=self.count, replaced=self.bounded, by_row=False)

    @property
    def loss(self) -> Loss:
        """See `Mechanism`."""
        allowed = self.allowed
        if self.method == "SH":
            return self.unit.loss(allowed.epsilon, None, allowed.delta)
        return self.unit.loss(None, allowed.loss)

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **changes: Any) -> Self:
        """See `Mechanism`."""
        settings = manifest["settings"]
        names = {"first": settings["order"][0], "bounded": "total" in settings}
        unit = {"trips": settings.get("trips", 1), "distinct": settings.get("distinct", True)}
        return super().of(manifest, **{**names, **unit, **changes})

    def lists(self) -> Public:
        """See `Mechanism`."""
        named = axes_by_name(self.axes)
        levels = sum(
            len(axis.levels) if axis.hierarchy is None else axis.hierarchy.tree.depth
            for axis in named.values()
        )
        shares_of(1.0, levels, self.unit, self.shares)
        regions = {name: axis.hierarchy for name, axis in named.items()}
        return public_axes(regions, self.regions_from_data)

    def read(self, source: Any) -> Flows:
        """See `Mechanism`."""
        axes, persons = axes_by_name(self.axes), self.unit.enforced
        return flows(
            source, axes=axes, count=self.count, unknown=self.unknown, persons=persons, distinct=self.distinct
        )

    def facts(self, data: Flows) -> tuple[Axes, TrueCounts]:
        """See `Mechanism`."""
        refuse_clashes(data.axis_names)
        if self.chosen.model is not None:
            zeros_of(self.zeros, data)  # the data must not contain any
        total = data.total if self.bounded else None
        return Axes.of(data, total), TrueCounts(data, refinements(data, self.first))

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, _: Any) -> Axes:
        """See `Mechanism`; raises `Differs` if an axis does not have the unknown region."""
        settings = manifest["settings"]
        names, unknown = tuple(settings["axes"]), settings.get("unknown")
        axes = tuple(regions[name] for name in names)
        if unknown is not None and any((axis.positions([unknown]) < 0).any() for axis in axes):
            raise Differs(f"an axis has no region {unknown!r} for unknown places")
        nothing = np.empty(0, dtype=np.int64)
        data = Flows(axes, names, nothing.reshape(0, len(names)), nothing, unknown)
        return Axes(data, settings.get("total"))

    def regions_of(self, facts: Axes) -> Regions:
        """See `Mechanism`."""
        return facts.regions

    def truth_of(self, facts: Axes, table: Any) -> TrueCounts:
        """See `Mechanism`."""
        data, order = facts.data, self.order(facts)
        about = {"order": [data.axis_names[axis] for axis in order], "axes": dict.fromkeys(data.axis_names)}
        places, counts = cells_at(table, about, facts.regions, len(order))
        cells = np.stack(places, axis=1)
        along = np.lexsort(cells.T[::-1])
        return TrueCounts(replace(data, cells=cells[along], counts=counts[along]), order)

    def order(self, facts: Axes) -> list[int]:
        """The axis that each level refines."""
        return refinements(facts.data, self.first)

    def queries_of(self, facts: Axes, allowed: Allowed) -> list[Query]:
        """See `Mechanism`: all possible nodes of each level; `run` measures those below positive counts."""
        data, order, unit = facts.data, self.order(facts), self.unit
        reached = depths_of(data.axes, order)
        if self.method == "SH":
            return [queries.stable(data, order, unit, allowed.epsilon, allowed.delta, allowed.threshold)]
        if self.chosen.model is None:
            return [queries.level(data, reached[-1], unit, allowed.loss, nodes_of(data, reached[-1]))]
        zeros, shares = zeros_of(self.zeros, data), shares_of(allowed.loss, len(order), unit, self.shares)
        total = [] if self.bounded else [queries.total(unit, shares[0])]
        return total + [
            queries.level(
                data, depths, unit, share, nodes_of(data, depths) - (zeros.number(depths) if zeros else 0)
            )
            for depths, share in zip(reached[1:], shares[-len(order) :], strict=True)
        ]

    def run(
        self, facts: Axes, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[DataFrame, dict[str, Any]]:
        """See `Mechanism`: measure a level and repair it, from the top; or the finest cells alone."""
        data, method, unit, deviation = facts.data, self.chosen, self.unit, None
        if method.model is not None:
            model, by_solver = method.model, self.backend is not None

            def repaired(children: Children, measured: Measurement) -> Ints:
                problem = model(measured.answers, children.above.counts, children.offsets)
                return method.answer(solve(level_name(data, children.depths), problem), by_solver)

            levels = self.level_by_level(facts, allowed, measure, repaired)
        else:
            levels, deviation = self.finest(facts, allowed, measure)
        counts: DataFrame = table(data, levels)
        if deviation is not None:
            cells = np.concatenate([finest_cells_of(data.axes, level)[level.shown] for level in levels])
            counts["standard_error"] = deviation * np.sqrt(cells)
        return counts, {
            "axes": {name: list(axis.levels) for name, axis in facts.regions.items()},
            "order": [data.axis_names[axis] for axis in self.order(facts)],
            **({} if data.unknown is None else {"unknown": data.unknown}),
            **({} if unit.rows == 1 else {"trips": unit.rows, "distinct": unit.distinct}),
            **({} if facts.total is None else {"total": facts.total}),
            **self.settings(),
        }

    def settings(self) -> dict[str, Any]:
        """See `Mechanism`."""
        settings = super().settings()
        if self.shares is not None:
            settings["shares"] = [float(share) for share in self.shares]
        return settings

    def level_by_level(
        self,
        facts: Axes,
        allowed: Allowed,
        measure: Measure,
        repaired: Callable[[Children, Measurement], Ints],
    ) -> list[Level]:
        """Algorithm 1, or that of Appendix B with unbounded neighbours, with any post-processing of a level.

        - repaired: gives the counts of a level's children from their noisy counts.

        Returns: the nodes with a positive count, from the root.
        """
        data, order, total, zeros = (
            facts.data,
            self.order(facts),
            facts.total,
            zeros_of(self.zeros, facts.data),
        )
        budgets = shares_of(allowed.loss, len(order), self.unit, self.shares)
        if total is None:
            noisy = measure(queries.total(self.unit, budgets[0])).answers
            levels = [root(data.axes, max(0, int(noisy[0])))]
        else:
            levels = [root(data.axes, total)]
        kept = np.zeros(1, dtype=np.int64)
        for axis, share in zip(order, budgets[-len(order) :], strict=True):
            children = Children(data.axes[axis].tree, levels[-1], axis, zeros)
            public = total if len(levels) == 1 else None
            measured = measure(queries.children_of(data, children, kept, self.unit, share, public))
            counts = repaired(children, measured)
            kept = np.flatnonzero(counts)
            levels.append(children.level(kept, counts[kept]))
        measure.end()
        return levels

    def finest(self, facts: Axes, allowed: Allowed, measure: Measure) -> tuple[list[Level], float | None]:
        """VanillaGauss (Theorem 6), SH (Theorem 8): noisy finest cells, with their sums.

        Returns:
        - list of Level: the nodes with counts other than 0, from the root.
        - float or None: the standard deviation of the noise of VanillaGauss.
        """
        data, shape, deviation = facts.data, finest_shape(facts.data), None
        if self.method == "VanillaGauss" and math.prod(shape) > MOST_CELLS:
            raise InputError(
                "VanillaGauss draws noise for every possible finest cell, here "
                f"{' × '.join(map(str, shape))} = {math.prod(shape):,}; at most {MOST_CELLS:,} are allowed. "
                "Choose another method, or coarser regions"
            )
        (query,) = self.queries_of(facts, allowed)
        measured = measure(query)
        measure.end()
        positions, counts = measured.positions, measured.answers
        if positions is None:
            positions, deviation = np.flatnonzero(counts), deviation_of(measured.spend)
            counts = counts[positions]
        cells = np.stack(np.unravel_index(positions, shape), axis=1).astype(np.int64)
        below = [nodes.level for nodes in nodes_above(data.axes, self.order(facts), cells, counts)]
        return [root(data.axes, int(counts.sum())), *below], deviation

    # Plans.

    @property
    def answers_per_count(self) -> int | None:
        """See `Mechanism`; None for sums of finest cells."""
        return None if self.chosen.model is None else 1

    def parts_of_variances(self, facts: Axes) -> Floats:
        """See `Mechanism`: those of least squares level by level."""
        levels = self.queries_of(facts, self.allowed)[-len(self.order(facts)) :]
        parts = parts_of_variances([1, *(query.answers for query in levels)])
        return parts[self.bounded :, self.bounded :]

    @property
    def has_bound(self) -> bool:
        """Whether a theorem bounds the errors: of answers of least Chebyshev distance."""
        return self.bounded and self.method in BOUNDED

    def planned_rows(self, facts: Axes, allowed: Allowed, planned: PlannedTopDown) -> list[dict[str, Any]]:
        """See `Mechanism`; with a bound on the error of a level's counts."""
        data, asked = facts.data, self.queries_of(facts, allowed)
        reached = depths_of(data.axes, self.order(facts))
        names = [level_name(data, depths) if level else "total" for level, depths in enumerate(reached)]
        if self.chosen.model is None:
            rows = [row_of_level(level, name, asked[0]) for level, name in enumerate(names)]
            for row, depths in zip(rows, reached, strict=True):
                if self.method == "VanillaGauss":
                    cells = nodes_of(data, reached[-1]) / nodes_of(data, depths)
                    row["standard_error"] = row["noise_deviation"] * math.sqrt(cells)
            return rows
        rows = [
            row_of_level(level, names[level], query) for level, query in enumerate(asked, int(self.bounded))
        ]
        levels = asked[not self.bounded :]
        scales = [query.sensitivity / math.sqrt(2 * query.loss) for query in levels]
        nodes = [query.answers for query in levels]
        for row in rows:
            above, row["bound"] = row["level"], math.nan
            if self.has_bound and above:
                row["bound"] = error_bound_by_nodes(scales[:above], nodes[:above], planned.failure)
        return rows

    def planned_notes(self, facts: Axes, planned: PlannedTopDown) -> Sequence[str]:
        """See `Mechanism`."""
        if self.chosen.model is None:
            hidden = self.queries_of(facts, self.allowed)[0].threshold
            return [UNBIASED if hidden is None else DROPPED.format(least=hidden.least)]
        why = f"{self.method}, whose answers are not of least Chebyshev distance"
        bound = NO_BOUND.format(why=why if self.bounded else "a noisy total")
        if self.has_bound:
            bound = BOUND.format(chance=100 * (1 - planned.failure))
        return [UNKNOWN, bound]

    def expected(self, planned: PlannedTopDown) -> Expected:
        """See `Mechanism`; with the errors of simulated releases, if a table is made up or public."""
        found = super().expected(planned)
        mechanism = self if found.plan is None else replace(self, shares=found.plan["shares"])
        zeros = zeros_of(self.zeros, planned.data)
        return planned.simulated(found, zeros, lambda data, noise: release_counts(mechanism, data, noise))


def top_down(
    data: Flows,
    epsilon: float,
    delta: float,
    noise: Noise | None = None,
    method: str = "InfTDA",
    unit: PrivacyUnit = ONE_TRIP,
    shares: Sequence[float] | None = None,
    first: str | None = None,
    solver: SolverOptions | None = None,
    conversion: str = TIGHTER,
    rule: str = EXACT,
    zeros: str | None = None,
) -> Release:
    """A release of true counts in memory; for its options see `TopDown`.

    - unit: what one person can change. Default: tables that differ by replacing one trip, so the total is
      public.
    - conversion: from (ε, δ) to ρ: one of `hierdp.privacy.conversion.CONVERSIONS`.
    - rule: what sets the threshold of "SH": one of `hierdp.privacy.threshold.THRESHOLDS`.
    """
    solver = solver or SolverOptions()
    checked(method, solver, METHODS)  # also refuses a window, which no option here passes on
    persons: dict[str, Any] = {"trips": unit.rows}
    if unit.column is not None:
        persons = {"person": unit.column, "rows_per_person": unit.rows}
    mechanism = TopDown(
        epsilon=epsilon, delta=delta, axes={}, method=method, distinct=unit.distinct, bounded=unit.replaced,
        shares=shares, first=first, zeros=zeros, backend=solver.backend, time_limit=solver.time_limit,
        **persons,
    )  # fmt: skip
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    rho = CONVERSIONS[conversion](epsilon, delta)
    return release_counts(mechanism, data, noise, Allowed(rho, GAUSSIAN, epsilon, delta, conversion, rule))


def inf_tda(
    data: Flows, epsilon: float, delta: float, noise: Noise | None = None, first: str | None = None
) -> Release:
    """InfTDA: level by level, discrete Gaussian noise and the nearest consistent counts (IntOpt)."""
    return top_down(data, epsilon, delta, noise, first=first)


def true_table(data: Flows, first: str | None = None) -> DataFrame:
    """The true counts in the form of a release's table, for experiments."""
    below = nodes_above(data.axes, refinements(data, first), data.cells, data.counts)
    made: DataFrame = table(data, [root(data.axes, data.total), *(nodes.level for nodes in below)])
    return made
