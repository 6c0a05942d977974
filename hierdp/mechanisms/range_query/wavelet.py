"""The Haar wavelet (Privelet: Xiao, Wang & Gehrke 2011), in whole numbers.

A coefficient of the Haar transform is half the difference of the means of two halves; times its number of
bins, it is the difference of their sums, a whole number. The mechanism adds noise to these: to the total, and
to left minus right for each node of the binary tree. Adding a row changes the total by one, and one
difference by one on each level. So the paper's generalised sensitivity, 1 + ⌈log₂ N⌉, is the plain L1
sensitivity of these whole numbers, and all of them get double-geometric noise of one scale. In d dimensions
each axis is transformed in turn, and sensitivities multiply. A node without a sibling has no difference, so
bins need not be padded to a power of 2.

Counts are recovered by halving: x = (sum ± difference)/2, which are multiples of 2^-h. They and their sums
are exact in floats as long as the total times N stays within 53 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.analysis.workload import height, range_tree
from hierdp.counts.axes import Axis
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms.range_query.answers import Summed
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving
from models.arithmetic.arrays import Floats, Ints

COEFFICIENTS = "Haar coefficients"
"""The measurement, as named in the budget."""


def wavelet(
    axes: Sequence[Axis], epsilon: float, measure: Measure, _: Solving
) -> tuple[Wavelet, dict[str, Any]]:
    """Measure all coefficients, and invert them; see `hierdp.mechanisms.range_query.hierarchical`."""
    shape = tuple(axis.bins for axis in axes)

    def of(truth: Ints) -> Ints:
        return coefficients(truth.reshape(shape)).ravel()

    found = measure(Query(COEFFICIENTS, sensitivity(shape), epsilon, prod(shape), of))
    measure.end()
    variance = double_geometric_variance(found.spend.scale)
    return Wavelet(counts_of(found.answers.reshape(shape)), variance), {}


def sensitivity(shape: tuple[int, ...]) -> int:
    """L1 sensitivity of all coefficients together: Π (1 + ⌈log₂ n⌉).

    >>> sensitivity((4096,)), sensitivity((256, 256)), sensitivity((1,))
    (13, 81, 1)
    """
    return prod(1 + (height(n, 2) if n > 1 else 0) for n in shape)


def coefficients(counts: NDArray[Any]) -> NDArray[Any]:
    """The whole-number Haar transform along every axis, of the same shape.

    Along an axis: the total, then the differences of the top level, and so on, down to those of pairs of
    bins.

    >>> coefficients(np.array([5, 2, 7, 1, 4]))
    array([19, 11, -1,  3,  6])
    """
    for axis in range(counts.ndim):
        counts = np.moveaxis(_forward(np.moveaxis(counts, axis, 0)), 0, axis)
    return counts


def counts_of(transformed: NDArray[Any]) -> Floats:
    """The inverse of `coefficients`, in floats."""
    counts = transformed.astype(np.float64)
    for axis in range(counts.ndim):
        counts = np.moveaxis(_backward(np.moveaxis(counts, axis, 0)), 0, axis)
    return counts


def _forward(values: NDArray[Any]) -> NDArray[Any]:
    found = []
    while len(values) > 1:
        pairs = len(values) // 2
        left, right = values[: 2 * pairs : 2], values[1 : 2 * pairs : 2]
        found.append(left - right)
        values = np.concatenate([left + right, values[2 * pairs :]])
    return np.concatenate([values, *reversed(found)])


def _backward(transformed: Floats) -> Floats:
    sizes = [len(transformed)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    values, used = transformed[:1], 1
    for size in sizes[-2::-1]:
        pairs = size // 2
        sums, apart = values[:pairs], transformed[used : used + pairs]
        below = np.empty((size, *values.shape[1:]))
        below[: 2 * pairs : 2], below[1 : 2 * pairs : 2] = (sums + apart) / 2, (sums - apart) / 2
        below[2 * pairs :] = values[pairs:]
        values, used = below, used + pairs
    return values


@dataclass(frozen=True, eq=False)
class Wavelet(Summed):
    """Bins from noisy coefficients with equal variances."""

    @cached_property
    def _along(self) -> list[ConsistentVariance]:
        return [unit_noise(n) for n in self.counts.shape]

    def variances(self, low: Ints, high: Ints) -> Floats:
        """Variances of boxes; axes are transformed one after another, so a box's variance is a product."""
        out = np.full(len(low), self.variance)
        for axis, noise in enumerate(self._along):
            out *= noise.of_ranges(low[:, axis], high[:, axis])
        return out

    def bin_variances(self) -> Floats:
        """The variance of each bin, of the counts' shape."""
        out: NDArray[Any] = np.array(self.variance)
        for noise in self._along:
            out = np.multiply.outer(out, noise.of_nodes()[noise.tree.leaves])
        return out


def unit_noise(bins: int) -> ConsistentVariance:
    """The covariance along one axis, for coefficients of variance 1.

    Given a sum, a difference of variance 1 is equivalent to two independent counts of variance ½ that are
    made to add up to the sum. So the wavelet is a consistent binary hierarchy of such measurements without
    its root, in which a node with one child is not measured.
    """
    tree = range_tree(bins, 2)
    if bins == 1:
        return ConsistentVariance(tree, [np.inf, 1.0])
    variance = np.where(np.diff(tree.children[0]) == 2, 1.0, np.inf)
    variance[0], variance[tree.leaves] = np.inf, 0.5
    return ConsistentVariance(tree, variance)
