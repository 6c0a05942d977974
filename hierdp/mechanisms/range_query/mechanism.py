"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hierdp.counts.axes import Axis, Names
from hierdp.counts.boxes import boxes_of
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.expected import Expected
from hierdp.mechanisms.mechanism import Mechanism, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, public_axes
from hierdp.mechanisms.range_query.answers import Answers, RangeAnswers
from hierdp.mechanisms.range_query.expected import PlannedRangeQuery
from hierdp.mechanisms.range_query.hierarchical import hierarchical
from hierdp.mechanisms.range_query.matrix import MOST_BINS, STRATEGIES, matrix, strategy_in
from hierdp.mechanisms.range_query.plan import METHODS as METHODS
from hierdp.mechanisms.range_query.plan import RangeQueryMethod, chosen, plan_of
from hierdp.mechanisms.range_query.table import Source, answers_of, axes_of, settings_of, table_of
from hierdp.mechanisms.range_query.wavelet import wavelet
from hierdp.mechanisms.relations import PERSON
from hierdp.privacy.budget import Allowed
from hierdp.privacy.noise import Noise
from hierdp.record.compare import shape_of_bins
from hierdp.record.release import Release
from hierdp.record.step import Solving
from hierdp.tables.binning import Histogram, checked_axes, histogram, named_regions
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

CLOSE = 1e-7
"""Least squares by two machines agree at least as closely, in counts."""


class RangeRelease(Release):
    """A release that answers queries; bins are numbered from 0, and queries exclude their upper end."""

    @cached_property
    def answers(self) -> RangeAnswers:
        """Computes the answers, from the released table and settings only."""
        return answers_of(self.table, self.settings)

    def range(self, low: ArrayLike, high: ArrayLike) -> Answers:
        """Estimates and standard errors of the bins ``low … high − 1``; see `RangeAnswers.range`."""
        return self.answers.range(low, high)

    def prefix(self, high: ArrayLike) -> Answers:
        """Estimates and standard errors of the first `high` bins."""
        return self.answers.prefix(high)

    def box(self, low: ArrayLike, high: ArrayLike) -> Answers:
        """Estimates and standard errors of boxes; see `RangeAnswers.box`."""
        return self.answers.box(low, high)


@dataclass(frozen=True, eq=False)
class Bins:
    """What is public of a histogram.

    - levels: the names of the levels of the axes with a hierarchy.
    - shares: of a release, those of all levels.
    - rows: of one by the matrix mechanism, the queries of its strategy.
    - released: its table.
    """

    axes: Sequence[Axis]
    levels: Mapping[str, Sequence[str]]
    shares: Sequence[float] | None = None
    rows: Ints | None = None
    released: DataFrame | None = None


@documented
@dataclass(frozen=True, kw_only=True)
class RangeQuery(Mechanism[Bins]):
    """Release a histogram of one or more dimensions that answers ranges, prefixes and boxes.

    A release has one row for each node (wavelet, matrix: each bin). Methods with ^c are made consistent by
    least squares. A level of a grid with a share of 0 is left out.
    """

    epsilon: float
    axes: shared.Bins
    regions_from_data: shared.RegionsFromData = False
    count: shared.Count = None
    unknown: shared.Unknown = None
    clip: shared.Clip = False
    person: shared.Person = None
    rows_per_person: shared.RowsPerPerson = None
    most_per_row: shared.MostPerRow = None
    method: Annotated[
        str,
        Option(
            "H_b^c, H_b, H_2, H_2^c, Flat, Wavelet, Quadtree, matrix; H_tree or H_tree^c to measure the "
            "regions of a hierarchy among the axes. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "H_b^c"
    branching: Annotated[
        int | None,
        Option(
            "For H_b and H_b^c: branching factor along each dimension. Default: the best for the number of "
            "bins.",
            "NUMBER",
            least=2,
        ),
    ] = None
    budget: Annotated[
        str | Sequence[float] | None,
        Option(
            "Split of ε over the levels: equal (default for one dimension), geometric (for more), "
            "quadtree (Cormode et al. 2012) or optimized; or shares of the levels, from the top "
            "(on the command line by --share).",
            "NAME",
            form="name or shares",
        ),
    ] = None
    repair: Annotated[
        str | None,
        Option(
            "For consistent methods (^c and Quadtree): least squares (default), non-negative, or whole (and "
            "non-negative). Only least squares has standard errors.",
            "NAME",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        Option(
            f"For matrix, with at most {MOST_BINS} bins: the queries that are measured. p-identity "
            "(default), eigen-select or optimal (which would be best for Gaussian noise).",
            "NAME",
        ),
    ] = None

    NAME: ClassVar = "range-query"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("branching", "repair", "strategy")
    RELATION: ClassVar = PERSON
    OF_THE_REPAIR: ClassVar = ("repair",)
    PLANNED: ClassVar = PlannedRangeQuery
    RELEASE: ClassVar = RangeRelease
    shape = staticmethod(shape_of_bins)

    @property
    def chosen(self) -> RangeQueryMethod:
        """See `Mechanism`."""
        return chosen(self.method, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options that are given."""
        options = {name: getattr(self, name) for name in ("branching", "budget", "repair", "strategy")}
        return {name: value for name, value in options.items() if value is not None}

    def lists(self) -> Public:
        """See `Mechanism`."""
        axes = checked_axes(self.axes)
        places = named_regions(axes)
        public = public_axes(places, self.regions_from_data)
        if not isinstance(self.budget, str | None) and self.unknown is None:
            named = {name: Names.of(name, known) for name, known in places.items() if known is not None}
            if len(named) == len(places):  # the bins are known; refuses shares that do not fit
                bins = [named[axis[0]] if isinstance(axis, tuple) else axis for axis in axes]
                plan_of(bins, 1.0, self.chosen, self.branching, self.budget)
        return public

    def read(self, source: Any) -> Histogram:
        """See `Mechanism`."""
        axes = checked_axes(self.axes)
        return histogram(source, axes, self.count, self.unknown, self.clip, self.unit.enforced)

    def facts(self, data: Histogram) -> tuple[Bins, Ints]:
        """See `Mechanism`; the true counts have shape (bins,), the last axis fastest."""
        levels = {
            axis.name: list(axis.hierarchy.levels)
            for axis in data.axes
            if isinstance(axis, Names) and axis.hierarchy is not None
        }
        return Bins(data.axes, levels), data.counts.ravel()

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> Bins:
        """See `Mechanism`; the names of bins are those of the table."""
        settings, rows = manifest["settings"], None
        if table is None:
            return Bins((), {})
        if self.method == "matrix":
            if settings["strategy"] not in STRATEGIES:
                raise Differs(f"there is no strategy {settings['strategy']!r}")
            rows = strategy_in(settings["range_query"]["strategy"])
        shares = None if self.method in ("Wavelet", "matrix") else settings.get("shares")
        return Bins(*axes_in(table, settings), shares, rows, table)

    def check_measured(self, settings: Mapping[str, Any]) -> None:
        """See `Mechanism`."""
        if self.method == "matrix" and "strategy" not in settings:
            raise Differs("matrix measures the queries of a strategy, which this release does not have")
        if self.method not in ("Wavelet", "matrix") and "shares" not in settings:
            raise Differs(f"{self.method} measures levels of boxes, which this release does not have")

    def run(
        self, facts: Bins, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[DataFrame, dict[str, Any]]:
        """See `Mechanism`."""
        runs: dict[str, Callable[..., tuple[Source, dict[str, Any]]]] = {
            "Wavelet": wavelet,
            "matrix": partial(matrix, rows=facts.rows),
        }
        run = runs.get(self.method) or partial(hierarchical, method=self.chosen)
        recorded = {} if facts.shares is None else {"budget": facts.shares}
        source, settings = run(facts.axes, allowed.loss, measure, solve, **self.options, **recorded)
        table = table_of(facts.axes, source)
        if facts.released is not None and self.method == "matrix":
            table = _rounded_alike(table, facts.released)
        more = {"hierarchies": facts.levels} if facts.levels else {}
        return table, {"range_query": settings_of(facts.axes, source), **settings, **more}

    def expected(self, planned: PlannedRangeQuery) -> Expected:
        """See `Mechanism`: all methods are compared."""
        return planned.expected(self.epsilon)


def range_query(
    data: Histogram, epsilon: float, noise: Noise | None = None, method: str = "H_b^c", **options: Any
) -> RangeRelease:
    """A release of true counts in memory; `options` are those of `RangeQuery`, without columns and lists.

    Examples
    --------
    >>> import numpy as np
    >>> from hierdp.privacy.noise import SimulatedNoise
    >>> data = Histogram.of(np.full(64, 100), "age")
    >>> made = range_query(data, epsilon=1, noise=SimulatedNoise(0))
    >>> estimate, error = made.range([0, 10], [64, 20])
    >>> estimate.round(1), error.round(1)
    (array([6396.3,  988.4]), array([7.5, 5.8]))
    """
    made = release_counts(RangeQuery(epsilon=epsilon, axes=(), method=method, **options), data, noise)
    assert isinstance(made, RangeRelease)
    return made


def axes_in(table: DataFrame, settings: Mapping[str, Any]) -> tuple[list[Axis], Mapping[str, Sequence[str]]]:
    """The axes, and the hierarchies of which the table has only the names of the levels."""
    axes: list[Axis] = list(axes_of(table, settings))
    hierarchies = settings.get("hierarchies", {})
    named = [axis.name for axis in axes if isinstance(axis, Names)]
    if not set(hierarchies) <= set(named):
        raise Differs("the settings have a hierarchy without an axis")
    for axis in axes:
        if isinstance(axis, Names) and len(set(axis.labels)) < axis.bins:
            raise Differs(f"two bins of {axis.name!r} have the same name")
    if "region" in table:
        (axis,) = axes
        assert isinstance(axis, Names)
        boxes = boxes_of(table, [axis.bins], [axis.name])
        regions = table["region"].to_numpy(object)
        names = [regions[boxes.tree.nodes_of(level)] for level in range(boxes.tree.depth)]
        hierarchy = Hierarchy(tuple(hierarchies[axis.name]), (*names, axis.names), boxes.tree)
        axes = [replace(axis, hierarchy=hierarchy)]
    return axes, hierarchies


def _rounded_alike(made: DataFrame, table: DataFrame) -> DataFrame:
    """The table with the released numbers where they are the same but for the rounding of least squares."""
    for name in ("count", "standard_error"):
        same = np.isclose(table[name].to_numpy(float), made[name].to_numpy(float), rtol=CLOSE, atol=CLOSE)
        made[name] = np.where(same, table[name], made[name])
    return made
