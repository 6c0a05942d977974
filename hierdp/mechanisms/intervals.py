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
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import ndtri

from hierdp.counts.selection import Selection
from hierdp.errors import InputError
from hierdp.measurements.measuring import OtherQuery, Recorded
from hierdp.measurements.rows import Measurement
from hierdp.mechanisms.linear_programs import Region
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Spend
from hierdp.privacy.noise import double_geometric_variance
from models import ConstrainedInference, Tree
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from solvers import fast

if TYPE_CHECKING:
    from hierdp.record.written import Written

Asked = TypeVar("Asked")

REST = 0.1
"""The part of the probability of a miss that is for bounds on other sums than the one in question."""


class Interval(NamedTuple):
    """The least and the largest that a sum of true counts is, unless chance fails; NaN if it is not known."""

    low: float = math.nan
    high: float = math.nan


class Intervals(Protocol):
    """Gives intervals for the sums of a release."""

    def of(self, selection: Selection, confidence: float) -> Interval:
        """The interval that covers the true sum with at least this probability."""

    def rows(self, confidence: float) -> tuple[Floats, Floats]:
        """The ends of the intervals of all rows of the release's table, in their order."""

    def unbiased(self, selection: Selection) -> Estimate:
        """The sum's unbiased estimate, from the measurements; NaN if a part of it was not measured."""

    def region(self, selection: Selection, miss: float) -> Region | None:
        """Bounds that hold all at once but for a probability; None if they say no more than `of`."""


class Estimate(NamedTuple):
    """A sum's unbiased estimate.

    Attributes
    ----------
    value, variance : float
    slack : float
        By how much it may be off beside the noise: rounding.
    """

    value: float = math.nan
    variance: float = math.nan
    slack: float = 0.0


def checked_confidence(confidence: float) -> float:
    """The confidence, if it is one.

    Raises
    ------
    InputError
    """
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InputError(f"the confidence must be between 0 and 1, such as 0.9; got {confidence}")
    return float(confidence)


def variance_of(spend: Spend) -> float:
    """The variance of a measurement's noise, or a little more: σ² of discrete Gaussian noise."""
    if spend.noise == GAUSSIAN:
        return spend.scale**2
    if spend.noise.startswith(GEOMETRIC):
        return double_geometric_variance(spend.scale)
    raise InputError(f"there are no intervals from a measurement with {spend.noise} noise")


def half_widths(variance: Floats, miss: float, noises: Collection[str] = (GAUSSIAN,)) -> Floats:
    """`half_width` of several sums, as an array of the same shape."""
    each, at = np.unique(variance, return_inverse=True)
    return np.array([half_width(one, miss, noises) for one in each.tolist()])[at].reshape(np.shape(variance))


def half_width(variance: float, miss: float, noises: Collection[str] = (GAUSSIAN,)) -> float:
    """What a weighted sum of noise exceeds in absolute value with at most a probability.

    A sum of independent noise is nearly normal, or, of few double-geometric ones, between normal and Laplace:
    the larger of the two quantiles is used. The noise is whole, so its law has steps: up to half a step is
    added, and a whole one for double-geometric noise, which may be 0 nearly always.

    Parameters
    ----------
    variance : float
    miss : float
        The probability, of both tails together.
    noises : collection of str
        The laws, by their names in a budget.

    Examples
    --------
    >>> round(half_width(100.0, 0.1), 2), round(half_width(100.0, 0.05, [GEOMETRIC]), 2)
    (16.95, 22.18)
    """
    if variance == 0:
        return 0.0
    quantile = float(-ndtri(miss / 2))
    if GEOMETRIC not in noises:
        return quantile * math.sqrt(variance) + 0.5
    return max(quantile, -math.log(miss) / math.sqrt(2)) * math.sqrt(variance) + 1.0


def interval(value: float, down: float, up: float, low: float = 0.0, high: float = math.inf) -> Interval:
    """The whole numbers from ``value − down`` to ``value + up`` that are at least `low` and at most `high`.

    If there are none, the noise was larger than the interval allows for: the nearest of the latter.

    Examples
    --------
    >>> interval(3.4, 5.2, 5.2), interval(-9.0, 4.0, 4.0)
    (Interval(low=0.0, high=8.0), Interval(low=0.0, high=0.0))
    """
    close = 1e-9 * max(1.0, abs(value))  # rounding must not cut off an end
    first, last = math.ceil(value - down - close), math.floor(value + up + close)
    return Interval(min(max(low, float(first)), high), max(min(high, float(last)), low))


def ends(value: Floats, half: Floats, high: float = math.inf) -> tuple[Floats, Floats]:
    """`interval` for arrays, of counts from 0 to `high`."""
    close = 1e-9 * np.maximum(1.0, np.abs(value))
    first, last = np.ceil(value - half - close), np.floor(value + half + close)
    return np.clip(first, 0.0, high), np.clip(last, 0.0, high)


def tree_estimate(tree: Tree, variance: Floats, chosen: Flags) -> tuple[Floats, Estimate]:
    """The weights of the best unbiased estimate of a sum of nodes' counts, from noisy counts of all nodes.

    With A the sums of leaves that the nodes are, V the variances and q = Σ over chosen nodes of their row of
    A, the weights are V⁻¹ A (Aᵀ V⁻¹ A)⁻¹ q. Least squares gives (Aᵀ V⁻¹ A)⁻¹ Aᵀ V⁻¹ y for any y: here for
    the y that is V at the chosen nodes and 0 elsewhere.

    Parameters
    ----------
    tree : Tree
    variance : array, shape (nodes,)
        Of each node's noise; infinite if it was not measured. The chosen ones were.
    chosen : bool array, shape (nodes,)
        Nodes of which none is in another.

    Returns
    -------
    weights : array, shape (nodes,)
    estimate : Estimate
        For noisy counts that are all 0: its variance, and its slack for each unit of the root's count.
    """
    model = ConstrainedInference(tree, np.where(chosen, variance, 0.0), variance)
    found, _ = fast.answer(model)
    weights = np.asarray(found, float) / variance
    return weights, checked_weights(tree, weights[:, None], variance[:, None], chosen[:, None].astype(float))


def checked_weights(tree: Tree, weights: Floats, variance: Floats, wanted: Array) -> Estimate:
    """What weights on the noisy counts of all nodes estimate, computed from the weights alone.

    Parameters
    ----------
    tree : Tree
    weights : array, shape (nodes, cells)
        How often each cell of each node is added up.
    variance : array, shape (nodes, cells)
        The variance of each noise; where it is infinite, the weight has to be 0.
    wanted : array, shape (nodes, cells)
        How often each cell of each node should be, by any of the weights that mean the same.

    Returns
    -------
    Estimate
        Its slack: the most by which a person's weight differs from what it should be.
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

    Parameters
    ----------
    tree : Tree
    noisy, variance : arrays, shape (nodes,)
        The measured count of each node, with independent noise; its variance, infinite without one.
    nodes : bool array, shape (nodes,)
        Those of the sum.
    own : Interval
        The bounds of their sum, which fail with the probability ``miss * (1 - REST)``.
    miss : float
        The probability that any bound fails.
    most : float
        The largest count of all.
    noises : collection of str
        The laws of the noise.

    Returns
    -------
    Region or None
        None if no node that they are in was measured.
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

    Parameters
    ----------
    mask : bool array
        The selected regions of a level.
    parents : sequence of int arrays
        For each level from there up, each region's parent.
    every : bool
    """
    for parent in parents:
        count = np.bincount(parent, mask.astype(float))
        mask = count == np.bincount(parent) if every else count > 0
    return np.asarray(mask)


def unknown(release: Written, why: str) -> InputError:
    """What is raised where no interval is known."""
    return InputError(f"there are no intervals for {release.manifest['mechanism']}: {why}")


def answered(release: Written, ask: Callable[[Recorded], Asked]) -> Asked:
    """What a mechanism's own queries get from the recorded answers.

    Raises
    ------
    InputError
        If the release has no measurements, or others than the mechanism's.
    """
    if release.measurements is None:
        raise unknown(release, "the release has no measurements.parquet; release again with this version")
    try:
        return ask(Recorded(release.measurements))
    except OtherQuery as other:
        raise unknown(release, f"{other}; see `hierdp check`") from None


def measured_in(release: Written) -> list[Measurement]:
    """The measurements of a release, in their order; raises as `answered` if it has none."""
    return answered(release, lambda _: list(release.measurements or ()))
