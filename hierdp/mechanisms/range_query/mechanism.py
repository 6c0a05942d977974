"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any

from numpy.typing import ArrayLike

from hierdp.counts.axes import Axis, Names
from hierdp.measurements.measuring import Measure, Measuring
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, for_persons, persons_of
from hierdp.mechanisms.public import public_axes
from hierdp.mechanisms.range_query.answers import Answers, RangeAnswers
from hierdp.mechanisms.range_query.hierarchical import hierarchical
from hierdp.mechanisms.range_query.matrix import MOST_BINS, matrix
from hierdp.mechanisms.range_query.plan import METHODS as METHODS
from hierdp.mechanisms.range_query.plan import RangeQueryMethod, chosen, plan_of
from hierdp.mechanisms.range_query.table import Source, answers_of, settings_of, table_of
from hierdp.mechanisms.range_query.wavelet import wavelet
from hierdp.mechanisms.relations import PERSON
from hierdp.privacy.budget import Ledger, check_epsilon
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving
from hierdp.tables.binning import Histogram, checked_axes, histogram, named_regions

if TYPE_CHECKING:
    from pandas import DataFrame


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


@documented
def from_table(
    source: Any,
    *,
    epsilon: float,
    noise: Noise | None = None,
    axes: shared.Bins,
    regions_from_data: shared.RegionsFromData = False,
    count: shared.Count = None,
    unknown: shared.Unknown = None,
    clip: shared.Clip = False,
    person: shared.Person = None,
    rows_per_person: shared.RowsPerPerson = None,
    most_per_row: shared.MostPerRow = None,
    method: Annotated[
        str,
        Option(
            "H_b^c, H_b, H_2, H_2^c, Flat, Wavelet, Quadtree, matrix; H_tree or H_tree^c to measure the "
            "regions of a hierarchy among the axes. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "H_b^c",
    branching: Annotated[
        int | None,
        Option(
            "For H_b and H_b^c: branching factor along each dimension. Default: the best for the number of "
            "bins.",
            "NUMBER",
            least=2,
        ),
    ] = None,
    budget: Annotated[
        str | Sequence[float] | None,
        Option(
            "Split of ε over the levels: equal (default for one dimension), geometric (for more), "
            "quadtree (Cormode et al. 2012) or optimized; or shares of the levels, from the top "
            "(on the command line by --share).",
            "NAME",
            form="name or shares",
        ),
    ] = None,
    repair: Annotated[
        str | None,
        Option(
            "For consistent methods (^c and Quadtree): least squares (default), non-negative, or whole (and "
            "non-negative). Only least squares has standard errors.",
            "NAME",
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        Option(
            f"For matrix, with at most {MOST_BINS} bins: the queries that are measured. p-identity "
            "(default), eigen-select or optimal (which would be best for Gaussian noise).",
            "NAME",
        ),
    ] = None,
) -> RangeRelease:
    """Release a table's counts by bin: `hierdp.tables.binning.histogram`, then `range_query`."""
    given = {"branching": branching, "budget": budget, "repair": repair, "strategy": strategy}
    picked = chosen(method, **given)  # before reading the table
    axes, persons = checked_axes(axes), persons_of(person, rows_per_person, most_per_row, count)
    places = named_regions(axes)
    public = public_axes(places, regions_from_data)
    if not isinstance(budget, str | None) and unknown is None:
        named = {name: Names.of(name, known) for name, known in places.items() if known is not None}
        if len(named) == len(places):  # the bins are known; refuses shares that do not fit
            bins = [named[one[0]] if isinstance(one, tuple) else one for one in axes]
            plan_of(bins, 1.0, picked, branching, budget)
    data = histogram(source, axes, count, unknown, clip, persons)
    options: Any = given
    made = for_persons(lambda of_row: range_query(data, of_row, noise, method, **options), epsilon, persons)
    return public.of(counting(made, count))


def range_query(
    data: Histogram,
    epsilon: float,
    noise: Noise | None = None,
    method: str = "H_b^c",
    *,
    branching: int | None = None,
    budget: str | Sequence[float] | None = None,
    repair: str | None = None,
    strategy: str | None = None,
) -> RangeRelease:
    """Release a noisy histogram of one or more dimensions that answers ranges, prefixes and boxes.

    Parameters
    ----------
    data : Histogram
        True counts.
    epsilon : float
        Pure-DP budget.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`: "H_b^c", the paper's recommendation; "H_b", "H_2", "H_2^c", "Flat", "Wavelet",
        "matrix", "Quadtree" (2 along each axis, budget quadtree), or "H_tree" or "H_tree^c" over the
        regions of a given hierarchy. Methods with ^c are made consistent by least squares.
    branching : int, optional
        Branching factor along each axis. Default: the best for the number of bins; see `best_branching`.
    budget : "equal", "geometric", "quadtree", "optimized", or a sequence of shares from the top, optional
        Division of ε over the levels. Default: equal in one dimension, as the paper recommends; geometric in
        more. A level of a grid with a share of 0 is left out.
    repair : str, optional
        For consistent methods: "least squares" (default), "non-negative" or "whole" (and non-negative). The
        latter two are nearest to the noisy counts among counts with the total of least squares, or, with ",
        free total", among all. They are not linear, so their standard errors are unknown.
    strategy : str, optional
        For "matrix": the queries that are measured, one of `hierdp.mechanisms.range_query.matrix.STRATEGIES`.
        Default: "p-identity".

    Returns
    -------
    RangeRelease
        One row for each node (wavelet, matrix: each bin); `range`, `prefix` and `box` answer queries.

    Raises
    ------
    InputError
        If ε is not a positive finite number, or an option does not fit.

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
    epsilon = check_epsilon(epsilon)
    given = {"branching": branching, "budget": budget, "repair": repair, "strategy": strategy}
    picked = chosen(method, **given)
    options = {name: value for name, value in given.items() if value is not None}
    measure, steps = Measuring(data.counts.ravel(), noise or ExactNoise()), Steps()
    table, settings = published(picked, data.axes, epsilon, measure, steps, **options)
    made = measure.measurements
    ledger = Ledger(epsilon, 0.0, PERSON, made.spends)
    return RangeRelease(picked.name, table, ledger, steps.kept, settings, measurements=made)


def published(
    method: RangeQueryMethod,
    axes: Sequence[Axis],
    epsilon: float,
    measure: Measure,
    solve: Solving,
    **options: Any,
) -> tuple[DataFrame, dict[str, Any]]:
    """The table and the settings of a release: a function of its measurements and of public facts.

    - measure, solve: what answers queries about the true counts of the bins, shape (bins,), and what solves
      models.
    - **options: the method's own.
    """
    runs: dict[str, Callable[..., tuple[Source, dict[str, Any]]]] = {"Wavelet": wavelet, "matrix": matrix}
    run = runs.get(method.name) or partial(hierarchical, method=method)
    source, settings = run(axes, epsilon, measure, solve, **options)
    levels = {
        axis.name: list(axis.hierarchy.levels)
        for axis in axes
        if isinstance(axis, Names) and axis.hierarchy is not None
    }
    more = {"hierarchies": levels} if levels else {}
    return table_of(axes, source), {"range_query": settings_of(axes, source), **settings, **more}
