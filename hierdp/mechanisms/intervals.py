"""Intervals for sums of true counts, from the measurements of a release: an unbiased estimate, and its noise.

The measurements are the true counts plus noise of a known law, and nobody repaired them. So any weights that
give a sum of true counts from the true answers give an unbiased estimate of it from the noisy ones, with a
variance that is known. The weights of least variance are searched, but nothing depends on how: that they
reproduce the sum, and the variance that they have, are computed from the weights alone. What is public then
shortens the interval, and costs no confidence: counts are whole, are at least 0, and have public totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import wraps
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from hierdp.counts.layout import Selection
from hierdp.counts.size_table import Ends
from hierdp.errors import InputError
from hierdp.measurements.measuring import OtherQuery, ReplayRecorded
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms.linear_programs import Region
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Spend
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving
from models import ConstrainedInference, Tree
from models.arithmetic.arrays import Array, Flags, Floats, Ints

if TYPE_CHECKING:
    from hierdp.record.written import ReleaseFolder

Asked = TypeVar("Asked")
Source = TypeVar("Source")

REST = 0.1
"""The part of the probability of a miss that is for bounds on other sums than the one in question."""

LEAST_SQUARES = "intervals: least squares"
"""The step of a release that the intervals of its rows start from, where it solves none like it anyway."""

NONE = 1e-9
"""The variance of noise that is 0 nearly always: least squares divides by it."""

FEW = 1_000
"""For so many normal probabilities at once, SciPy's functions take longer to load than to do without."""

CLOSE = 1e-9
"""By how much an end may be off, relative to the estimate, at least 1: sums of floats in another order."""


class Interval(NamedTuple):
    """The least and the largest that a sum of true counts is, unless chance fails; NaN if it is not known."""

    low: float = math.nan
    high: float = math.nan


class Intervals(Protocol):
    """Gives intervals for the sums of a release."""

    def of(self, selection: Selection, confidence: float) -> Interval:
        """The interval that covers the true sum with at least this probability."""

    def rows(self, miss: float, together: bool, solve: Solving) -> RowIntervals:
        """The intervals of all rows of the release's table.

        - miss: the probability with which each one may miss the true count, or, `together`, any of them.
        - solve: what solves models: the release by the fast path, a check by the saved answers.
        """

    def unbiased(self, selection: Selection) -> Estimate:
        """The sum's unbiased estimate, from the measurements; NaN if a part of it was not measured.

        Its variance is 0 only if the sum is public. It is that of the released sum if the release is linear.
        """

    def region(self, selection: Selection, miss: float) -> Region | None:
        """Bounds that hold all at once but for a probability; None if they say no more than `of`."""


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """The intervals of all rows of a table, in their order.

    - value: unbiased estimates; NaN where none is known.
    - half: what their errors exceed with at most the probability of a miss.
    - down: that downwards, if it differs; infinite where nothing is known.

    >>> found = RowIntervals(np.array([3.4, -9.0]), np.array([5.2, 4.0]))
    >>> found.ends()
    Ends(lower=array([0, 0]), upper=array([8, 0]))
    >>> found.wrong(Ends(np.array([0, 0]), np.array([8, 1]))).tolist()
    [False, True]
    """

    value: Floats
    half: Floats
    high: Floats | float = math.inf
    whole: bool = True
    down: Floats | None = None

    def ends(self, close: float = CLOSE) -> Ends:
        """The columns `lower` and `upper`; int64 if all are whole and known.

        As `interval`: the whole numbers from ``value − half`` to ``value + half`` that are possible, or the
        possible one that is nearest. Both ends are moved outwards by `close`, relative to the estimate.
        """
        slack = close * np.maximum(1.0, np.abs(self.value))
        down = self.half if self.down is None else self.down
        first, last = self.value - down - slack, self.value + self.half + slack
        if self.whole:
            first, last = np.ceil(first), np.floor(last)
        first, last = np.clip(first, 0.0, self.high), np.clip(last, 0.0, self.high)
        if self.whole and not np.isnan(self.value).any():
            return Ends(first.astype(np.int64), last.astype(np.int64))
        return Ends(first, last)

    def wrong(self, ends: Ends) -> Flags:
        """Which intervals of a release are not these.

        Another machine may add the same floats in another order, and then round an estimate next to a whole
        number to either side. So an end has to be between those without `CLOSE` and those with twice that.
        """
        least, most = self.ends(0.0), self.ends(2 * CLOSE)
        right = (most.lower <= ends.lower) & (ends.lower <= least.lower)
        right &= (least.upper <= ends.upper) & (ends.upper <= most.upper)
        unknown = np.isnan(self.value)
        return np.where(unknown, ~(np.isnan(ends.lower) & np.isnan(ends.upper)), ~right)


def each_miss(miss: float, number: int, together: bool) -> float:
    """The probability of a miss of each of a number of intervals; `together`, by Bonferroni's inequality.

    It holds however the errors depend on each other. Šidák's is for normal ones, and less than 6 % larger at
    any miss up to 0.1.
    """
    return miss / max(1, number) if together else miss


def from_errors(
    release: ReleaseFolder, miss: float, together: bool, noises: Collection[str], whole: bool = True
) -> RowIntervals:
    """The intervals of a table whose counts are linear in the noise, with their standard errors."""
    table = release.table
    errors = table["standard_error"].to_numpy(float)
    each = each_miss(miss, int((errors > 0).sum()), together)
    total = release.manifest["settings"].get("total", math.inf)
    half = half_widths(errors**2, each, noises)
    return RowIntervals(table["count"].to_numpy(float), half, float(total), whole)


class Estimate(NamedTuple):
    """A sum's unbiased estimate.

    - slack: by how much it may be off beside the noise: rounding.
    """

    value: float = math.nan
    variance: float = math.nan
    slack: float = 0.0


def last_kept(unbiased: Callable[[Source, Selection], Estimate]) -> Callable[[Source, Selection], Estimate]:
    """`unbiased` of a source that keeps the last sum's: its interval starts from the same least squares."""

    @wraps(unbiased)
    def found(self: Source, selection: Selection) -> Estimate:
        if vars(self).get("_last", (None,))[0] is not selection:
            vars(self)["_last"] = selection, unbiased(self, selection)
        estimate: Estimate = vars(self)["_last"][1]
        return estimate

    return found


def checked_confidence(confidence: float) -> float:
    """The confidence, if it is one."""
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InputError(f"the confidence must be between 0 and 1, such as 0.9; got {confidence}")
    return float(confidence)


def variance_of(spend: Spend) -> float:
    """The variance of a measurement's noise, or a little more: σ² of discrete Gaussian noise, and `NONE`."""
    if spend.noise == GAUSSIAN:
        return max(NONE, spend.scale**2)
    if spend.noise.startswith(GEOMETRIC):
        return max(NONE, double_geometric_variance(spend.scale))
    raise InputError(f"there are no intervals from a measurement with {spend.noise} noise")


def half_widths(variance: Floats, miss: float, noises: Collection[str] = (GAUSSIAN,)) -> Floats:
    """`half_width` of several sums, as an array of the same shape."""
    each, at = np.unique(variance, return_inverse=True)
    return np.array([half_width(one, miss, noises) for one in each.tolist()])[at].reshape(np.shape(variance))


def half_width(variance: float, miss: float, noises: Collection[str] = (GAUSSIAN,)) -> float:
    """What a weighted sum of noise exceeds in absolute value with at most a probability.

    A sum of independent noise, with weights from −1 to 1, is nearly normal, or, of few double-geometric ones,
    between normal and one such noise of its variance: the larger of the two quantiles is used. The noise is
    whole, so its law has steps: up to half a step is added, and a whole one for double-geometric noise, which
    may be 0 nearly always.

    - miss: the probability, of both tails together.

    >>> round(half_width(100.0, 0.1), 2), round(half_width(100.0, 0.05, [GEOMETRIC]), 2)
    (16.95, 22.2)
    """
    if variance == 0:
        return 0.0
    quantile = -NormalDist().inv_cdf(miss / 2)
    if GEOMETRIC not in noises:
        return quantile * math.sqrt(variance) + 0.5
    return max(quantile * math.sqrt(variance), -math.log(miss) / rate_of(variance)) + 1.0


def rate_of(variance: float) -> float:
    """The rate of double-geometric noise: P(noise = k) ∝ exp(−rate·|k|), the inverse of its scale."""
    return 2 * math.asinh(math.sqrt(0.5 / variance))


def down_if_shown(
    value: Floats, above: Floats, variance: float, miss: float, noises: Collection[str] = (GAUSSIAN,)
) -> Floats:
    """How far below their noisy counts true counts may be that are shown since these are above a limit.

    A count of 0 is shown if its noise is large, and then an interval around the noisy count does not reach
    down to 0. Given that it is shown, a noisy count y or more has the probability
    P(true + noise ≥ y) / P(true + noise > limit). The true count is at least the least one for which that is
    half the probability of a miss; the ratio increases with the true count. The upper end needs no change,
    since a count that is too low is shown more rarely.

    - value: whole noisy counts.
    - above (array of that shape): the limit of each, or a larger number, which gives a larger distance.
    - miss: the probability, of both ends together.

    Returns: at most `value`: true counts are at least 0.

    >>> down_if_shown(np.array([9.0, 99.0]), np.array([5.0, 5.0]), 25.0, 0.1).round(1)
    array([9. , 8.7])
    """
    scale = math.sqrt(variance)
    shape, (each, at) = value.shape, np.unique(value + 1j * above, return_inverse=True)  # many are alike
    value, above = each.real, each.imag

    def log_at_least(count: Floats, true: Floats) -> Floats:
        away = count - true
        if GEOMETRIC not in noises:
            return log_normal((0.5 - away) / scale)
        rate = rate_of(variance)
        far = -rate * np.maximum(away, 0.0) - math.log1p(math.exp(-rate))
        near = np.log1p(-np.exp(-rate * (1 - np.minimum(away, 0.0))) / (1 + math.exp(-rate)))
        return np.where(away > 0, far, near)

    low, high = np.zeros(value.shape), np.array(value, float)
    wanted = math.log(miss / 2)

    def enough(true: Floats) -> Flags:
        return np.asarray(log_at_least(value, true) - log_at_least(above + 1, true) >= wanted)

    at_zero = enough(low)
    for _ in range(60):  # halves the distance each time, to the last digit
        middle = (low + high) / 2
        there = enough(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return np.asarray(np.where(at_zero, value, value - high)[at].reshape(shape))


def log_normal(at: Floats) -> Floats:
    """The logarithm of the probability that a standard normal number is at most this.

    >>> log_normal(np.array([-40.0, 0.0])).round(4).tolist()
    [-804.6084, -0.6931]
    """
    if at.size > FEW:
        from scipy.special import log_ndtr  # as long to load as a small check

        return np.asarray(log_ndtr(at))
    return np.array([_log_normal(each) for each in at.ravel().tolist()]).reshape(at.shape)


def _log_normal(at: float) -> float:
    if at > -30:
        return math.log(math.erfc(-at / math.sqrt(2)) / 2)
    square = at * at  # the asymptotic series of Mills's ratio; the next term is below 2e-12
    tail = (-1 + (3 - (15 - 105 / square) / square) / square) / square
    return -square / 2 - math.log(-at * math.sqrt(2 * math.pi)) + math.log1p(tail)


def interval(value: float, down: float, up: float, low: float = 0.0, high: float = math.inf) -> Interval:
    """The whole numbers from ``value − down`` to ``value + up`` that are at least `low` and at most `high`.

    If there are none, the noise was larger than the interval allows for: the nearest of the latter.

    >>> interval(3.4, 5.2, 5.2), interval(-9.0, 4.0, 4.0)
    (Interval(low=0.0, high=8.0), Interval(low=0.0, high=0.0))
    """
    close = CLOSE * max(1.0, abs(value))  # rounding must not cut off an end
    first, last = math.ceil(value - down - close), math.floor(value + up + close)
    return Interval(min(max(low, float(first)), high), max(min(high, float(last)), low))


def tree_estimate(tree: Tree, variance: Floats, chosen: Flags) -> tuple[Floats, Estimate]:
    """The weights of the best unbiased estimate of a sum of nodes' counts, from noisy counts of all nodes.

    With A the sums of leaves that the nodes are, V the variances and q = Σ over chosen nodes of their row of
    A, the weights are V⁻¹ A (Aᵀ V⁻¹ A)⁻¹ q. Least squares gives (Aᵀ V⁻¹ A)⁻¹ Aᵀ V⁻¹ y for any y: here for
    the y that is V at the chosen nodes and 0 elsewhere.

    - variance, shape (nodes,): of each node's noise; infinite if it was not measured. The chosen ones were.
    - chosen, shape (nodes,): nodes of which none is in another.

    Returns:
    - weights, shape (nodes,)
    - estimate: for noisy counts that are all 0: its variance, and its slack for each unit of the root's
      count.
    """
    from solvers import fast  # a check of a release's rows needs none

    model = ConstrainedInference(tree, np.where(chosen, variance, 0.0), variance)
    found, _ = fast.answer(model)
    weights = np.asarray(found, float) / variance
    return weights, checked_weights(tree, weights[:, None], variance[:, None], chosen[:, None].astype(float))


def checked_weights(tree: Tree, weights: Floats, variance: Floats, wanted: Array) -> Estimate:
    """What weights on the noisy counts of all nodes estimate, computed from the weights alone.

    - weights, shape (nodes, cells): how often each cell of each node is added up.
    - variance, shape (nodes, cells): the variance of each noise; where it is infinite, the weight has to be
      0.
    - wanted, shape (nodes, cells): how often each cell of each node should be, by any of the weights that
      mean the same.

    Returns: its slack: the most by which a person's weight differs from what it should be.
    """
    measured = np.isfinite(variance)
    squares = np.where(measured, weights, 0.0) ** 2 * np.where(measured, variance, 0.0)
    return Estimate(0.0, float(squares.sum()), off(tree, np.where(measured, weights, 0.0) - wanted))


def off(tree: Tree, difference: Floats) -> float:
    """The largest sum along a path from the root to a leaf, in absolute value; shape (nodes, cells)."""
    held = np.array(difference, float)
    for level in range(1, tree.depth + 1):
        nodes = tree.nodes_of(level)
        held[nodes] += held[np.asarray(tree.parent[nodes])]
    return float(np.abs(held[tree.leaves]).max(initial=0.0))


def chain(
    tree: Tree,
    noisy: Floats,
    variance: Floats,
    nodes: Flags,
    own: Interval,
    miss: float,
    most: float = math.inf,
    noises: Collection[str] = (GAUSSIAN,),
) -> Region | None:
    """The bounds on a sum over nodes of one level, and on that over the nodes that they are in.

    - noisy, variance, shape (nodes,): the measured count of each node, with independent noise; its variance,
      infinite without one.
    - nodes, shape (nodes,): those of the sum.
    - own: the bounds of their sum, which fail with the probability ``miss * (1 - REST)``.
    - miss: the probability that any bound fails.

    Returns: None if no node that they are in was measured.
    """
    above = [nodes]
    while not above[-1][0]:
        above.append(np.isin(np.arange(tree.size), tree.parent[above[-1]]))
    measured = [k for k, held in enumerate(above) if k and np.isfinite(variance[held]).all()]
    region = Region(np.full(len(above), most), (np.arange(len(above)) == 0).astype(np.int64))
    region.keep(np.array([0]), 1, *own)
    for k in range(1, len(above)):
        region.keep(np.array([k, k - 1]), [1, -1], 0, math.inf)
    for k in measured:
        value = float(noisy[above[k]].sum())
        half = half_width(float(variance[above[k]].sum()), miss * REST / len(measured), noises)
        region.keep(np.array([k]), 1, max(0.0, value - half), max(0.0, value + half))
    return region if measured else None


def lifted(mask: Flags, parents: Sequence[Ints], every: bool) -> Flags:
    """Which regions of a level above have a selected one in them, or none that is not.

    - parents: for each level from there up, each region's parent.
    """
    for parent in parents:
        count = np.bincount(parent, mask.astype(float))
        mask = count == np.bincount(parent) if every else count > 0
    return np.asarray(mask)


def filled(tree: Tree, level: int, mask: Flags, above: int) -> bool:
    """Whether the selected regions of a level are all of those in some regions of a level above."""
    parents = [np.asarray(tree.levels[k]) for k in range(above, level)]
    held = lifted(mask, parents[::-1], every=True)
    for parent in parents:
        held = held[parent]
    return bool((held == mask).all())


def unknown(release: ReleaseFolder, why: str) -> InputError:
    """What is raised where no interval is known."""
    return InputError(f"there are no intervals for {release.manifest['mechanism']}: {why}")


def answered(release: ReleaseFolder, ask: Callable[[ReplayRecorded], Asked]) -> Asked:
    """What a mechanism's own queries get from the recorded answers.

    Raises `InputError` if the release has no measurements, or others than the mechanism's.
    """
    if release.measurements is None:
        raise unknown(release, "the release has no measurements.parquet")
    try:
        return ask(ReplayRecorded(release.measurements))
    except OtherQuery as other:
        raise unknown(release, f"{other}; see `hierdp check`") from None


def measured_in(release: ReleaseFolder) -> list[Measurement]:
    """The measurements of a release, in their order; raises as `answered` if it has none."""
    return answered(release, lambda _: list(release.measurements or ()))
