"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013.

The mechanism measures a hierarchy of boxes over the bins, level by level, except its root, with
double-geometric noise. A row is in one box of each level, so a level's query has L1 sensitivity 1, and the
levels' budgets add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from hierdp.counts.axes import Names
from hierdp.counts.boxes import BoxTree
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, for_persons, persons_of
from hierdp.mechanisms.public import public_axes
from hierdp.mechanisms.range_query import matrix
from hierdp.mechanisms.range_query.answers import Answers, Consistent, Covering, RangeAnswers
from hierdp.mechanisms.range_query.matrix import MOST_BINS, STRATEGIES
from hierdp.mechanisms.range_query.plan import METHODS as METHODS
from hierdp.mechanisms.range_query.plan import Plan, chosen, plan_of
from hierdp.mechanisms.range_query.repairs import Repaired, repaired
from hierdp.mechanisms.range_query.table import LEAST_SQUARES, answers_of, bin_table, told, tree_table
from hierdp.mechanisms.range_query.wavelet import Wavelet, coefficients, counts_of, sensitivity
from hierdp.mechanisms.words import PERSON
from hierdp.privacy.budget import Ledger, check_epsilon
from hierdp.privacy.noise import ExactNoise, Noise, NoisyCounts, double_geometric_variance
from hierdp.record.release import Release
from hierdp.record.step import Solving, Step
from hierdp.tables.binning import Histogram, checked_axes, histogram, named_regions
from models.arithmetic.arrays import Ints

NO_NOISE = 1e-200
"""Variances below this count as 0; inverses of this one can still be added up in floats."""


COEFFICIENTS = "Haar coefficients"
"""The wavelet's measurement, as named in the budget."""


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
    chosen(method, **given)  # before reading the table
    axes, persons = checked_axes(axes), persons_of(person, rows_per_person, most_per_row, count)
    public = public_axes(named_regions(axes), regions_from_data)
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
        more.
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
    >>> from hierdp.privacy.noise import SimulatedNoise
    >>> data = Histogram.of(np.full(64, 100), "age")
    >>> made = range_query(data, epsilon=1, noise=SimulatedNoise(0))
    >>> estimate, error = made.range([0, 10], [64, 20])
    >>> estimate.round(1), error.round(1)
    (array([6396.3,  988.4]), array([7.5, 5.8]))
    """
    epsilon = check_epsilon(epsilon)
    picked = chosen(method, branching=branching, budget=budget, repair=repair, strategy=strategy)
    noise = noise or ExactNoise()
    if picked.name == "Wavelet":
        return _wavelet(data, epsilon, noise)
    if picked.name == "matrix":
        return _matrix(data, epsilon, noise, STRATEGIES[0] if strategy is None else strategy)
    plan = plan_of(data.axes, epsilon, picked, branching, budget)
    measured = measure(data.counts, plan, noise)
    repair = (repair or LEAST_SQUARES) if picked.consistent else None
    noisy, scales = noisy_of(measured), [level.spend.scale for level in measured]
    found = post_process(plan.boxes, noisy, scales, repair)
    ledger = Ledger(epsilon, 0.0, PERSON, tuple(level.spend for level in measured))
    settings = {
        "range_query": told(data.axes, found.source),
        "levels_asked": len(plan.epsilons),
        **({} if plan.branching is None else {"branching": plan.branching}),
        **({} if repair is None else {"repair": repair}),
        **_hierarchy(data),
    }
    return RangeRelease(
        picked.name, tree_table(data.axes, found.source, noisy), ledger, found.steps, settings
    )


def measure(counts: Ints, plan: Plan, noise: Noise) -> list[NoisyCounts]:
    """Measure the nodes, one level at a time, without the root: the only results from the true counts."""
    tree = plan.boxes.tree
    true = tree.sum_up(counts.ravel())
    levels = enumerate(plan.epsilons, start=1)
    return [
        noise.geometric(np.asarray(true[tree.nodes_of(level)]), level_query(level), 1, share)
        for level, share in levels
    ]


def level_query(level: int) -> str:
    """The measurement of a level, as named in the budget."""
    return f"counts by level {level}"


def noisy_of(measured: Sequence[NoisyCounts]) -> Ints:
    """The noisy counts of all nodes; 0 for the root, which is not measured."""
    return np.concatenate([[0], *(level.counts for level in measured)])


@dataclass(frozen=True, eq=False)
class Processed:
    """The source of answers, and the solved problems."""

    source: Covering | Consistent
    steps: tuple[Any, ...]


def post_process(
    boxes: BoxTree, noisy: Ints, scales: Sequence[float], repair: str | None, solving: Solving = Step.solve
) -> Processed:
    """The method's post-processing: the source of answers, from the measurement.

    Parameters
    ----------
    boxes : BoxTree
    noisy : int64 array, shape (nodes,)
        0 for the root, which is not measured.
    scales : sequence of float
        Scale of the noise of each level below the root.
    repair : str or None
        See `range_query`; None for a method that is not made consistent.
    solving : callable
        Solves the problems.
    """
    each = np.array([np.inf, *map(double_geometric_variance, scales)])
    each = np.maximum(each, NO_NOISE)
    variance = np.repeat(each, boxes.tree.level_sizes)
    if repair is None:
        return Processed(Covering(boxes, noisy, variance), ())
    made: Repaired = repaired(boxes.tree, noisy, each, repair, solving)
    return Processed(Consistent(boxes, made.counts, variance, repair == LEAST_SQUARES), made.steps)


def _wavelet(data: Histogram, epsilon: float, noise: Noise) -> RangeRelease:
    shape = data.counts.shape
    measured = noise.geometric(coefficients(data.counts), COEFFICIENTS, sensitivity(shape), epsilon)
    source = Wavelet(counts_of(measured.counts), double_geometric_variance(measured.spend.scale))
    ledger = Ledger(epsilon, 0.0, PERSON, (measured.spend,))
    settings = {"range_query": told(data.axes, source), **_hierarchy(data)}
    return RangeRelease("Wavelet", bin_table(data.axes, source), ledger, (), settings)


def _matrix(data: Histogram, epsilon: float, noise: Noise, name: str) -> RangeRelease:
    rows = matrix.whole_strategy(name, data.counts.shape)
    true = matrix.true_answers(rows, np.asarray(data.counts, np.int64))
    measured = noise.geometric(true, matrix.QUERIES, matrix.sensitivity(rows), epsilon)
    variance = double_geometric_variance(measured.spend.scale)
    source = matrix.Matrix.of(rows, measured.counts, variance, data.counts.shape)
    ledger = Ledger(epsilon, 0.0, PERSON, (measured.spend,))
    settings = {
        "range_query": told(data.axes, source),
        "strategy": name,
        "noisy": measured.counts.tolist(),
        **_hierarchy(data),
    }
    return RangeRelease("matrix", bin_table(data.axes, source), ledger, (), settings)


def _hierarchy(data: Histogram) -> dict[str, Any]:
    """The hierarchies that name bins."""
    levels = {
        axis.name: list(axis.hierarchy.levels)
        for axis in data.axes
        if isinstance(axis, Names) and axis.hierarchy is not None
    }
    return {"hierarchies": levels} if levels else {}
