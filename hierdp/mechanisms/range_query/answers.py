"""Answer range, prefix and box queries from a released histogram, with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.analysis.consistent import ConsistentVariance
from hierdp.counts.axes import Axis
from hierdp.counts.boxes import BoxTree
from hierdp.errors import InputError
from hierdp.mechanisms.range_query.boxes import box_covers, box_variances, run_covers
from hierdp.metrics.ranges import box_sums, prefix_sums
from models.arithmetic.arrays import Floats, Ints

if TYPE_CHECKING:
    from pandas import DataFrame


class Answers(NamedTuple):
    """The answers to queries; arrays of the queries' shape.

    Attributes
    ----------
    estimate : int64 or float64 array
        Whole if the released counts are.
    standard_error : float64 array
        The root of the exact variance of the estimate. NaN if it is unknown, because counts were made
        non-negative or whole, which is not linear.
    """

    estimate: NDArray[Any]
    standard_error: Floats


class AnswerSource(Protocol):
    """The interface of what computes answers; queries are boxes ``low … high − 1``, shape (queries, axes)."""

    def estimates(self, low: Ints, high: Ints) -> NDArray[Any]:
        """Sums of the counts in the boxes."""

    def variances(self, low: Ints, high: Ints) -> Floats:
        """Their variances; NaN if unknown."""


@dataclass(frozen=True, eq=False)
class Covering:
    """Independent noisy counts: an answer is the sum of the fewest nodes that cover the query (§3.2)."""

    boxes: BoxTree
    noisy: Ints
    variance: Floats

    def estimates(self, low: Ints, high: Ints) -> NDArray[Any]:
        """See `AnswerSource`."""
        return self._sums(self.noisy, low, high)

    def variances(self, low: Ints, high: Ints) -> Floats:
        """See `AnswerSource`."""
        return self._sums(np.where(np.isfinite(self.variance), self.variance, 0.0), low, high)

    def _sums(self, values: NDArray[Any], low: Ints, high: Ints) -> NDArray[Any]:
        if self.boxes.tree.depth == 1:  # only the bins: the flat method
            return box_sums(prefix_sums(values[1:].reshape(self.boxes.shape)), low, high)
        if len(self.boxes.shape) == 1:
            return run_covers(self.boxes, values, low[:, 0], high[:, 0])
        return box_covers(self.boxes, values, low, high)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Consistent counts: an answer is the sum of the query's bins, whose noise is correlated.

    - counts, shape (nodes,): counts by least squares, or by a further post-processing.
    - variance, float64 array, shape (nodes,): variance of each node's own noise; infinite if the node was not
      measured.
    - linear: whether the counts are those of least squares, which is linear in the noise. The variance of
      other counts depends on the true counts, and is unknown.
    """

    boxes: BoxTree
    counts: NDArray[Any]
    variance: Floats
    linear: bool = True

    @cached_property
    def noise(self) -> ConsistentVariance:
        """The variance of answers, from the nodes' own noise."""
        return ConsistentVariance(self.boxes.tree, self.variance)

    @cached_property
    def _prefixes(self) -> NDArray[Any]:
        return prefix_sums(self.counts[self.boxes.tree.leaves].reshape(self.boxes.shape))

    def estimates(self, low: Ints, high: Ints) -> NDArray[Any]:
        """See `AnswerSource`."""
        return box_sums(self._prefixes, low, high)

    def variances(self, low: Ints, high: Ints) -> Floats:
        """See `AnswerSource`."""
        if not self.linear:
            return np.full(len(low), np.nan)
        if len(self.boxes.shape) == 1:
            return self.noise.of_ranges(low[:, 0], high[:, 0])
        return box_variances(self.boxes, self.noise, low, high)


@dataclass(frozen=True, eq=False)
class Summed:
    """Counts of one bin each: an answer is the sum of the query's bins.

    - counts: of the bins' shape.
    - variance: of the independent noise of each bin; NaN if the errors are not known.
    """

    counts: NDArray[Any]
    variance: float = np.nan

    @cached_property
    def _prefixes(self) -> NDArray[Any]:
        return prefix_sums(self.counts)

    def estimates(self, low: Ints, high: Ints) -> NDArray[Any]:
        """See `AnswerSource`."""
        return box_sums(self._prefixes, low, high)

    def variances(self, low: Ints, high: Ints) -> Floats:
        """See `AnswerSource`."""
        return np.asarray(np.prod(high - low, axis=1) * self.variance)


@dataclass(frozen=True, eq=False)
class RangeAnswers:
    """A released histogram that answers queries.

    Bins are numbered from 0 along each axis. Queries include their lower bin and exclude their upper one,
    like slices. `axes[i].position` finds the bin of a number, a date or a name.
    """

    axes: tuple[Axis, ...]
    source: AnswerSource

    def range(self, low: ArrayLike, high: ArrayLike) -> Answers:
        """Counts of the bins ``low … high − 1`` of a histogram of one dimension.

        Parameters
        ----------
        low, high : int arrays of one shape, or numbers
            ``0 ≤ low ≤ high ≤ bins``; an empty range has the exact answer 0.

        Raises
        ------
        InputError
            If the histogram has more axes, or a range is not within the bins.
        """
        if len(self.axes) != 1:
            zeros, ones = ([end] * len(self.axes) for end in (0, 1))
            raise InputError(
                f"this histogram has {len(self.axes)} axes: use box(low, high), with one number per axis, "
                f"such as box({zeros}, {ones}) for the first bin"
            )
        low, high = np.broadcast_arrays(np.asarray(low), np.asarray(high))
        return self.box(low[..., None], high[..., None])

    def prefix(self, high: ArrayLike) -> Answers:
        """Counts of the first `high` bins: the cumulative histogram."""
        return self.range(np.zeros_like(np.asarray(high)), high)

    def box(self, low: ArrayLike, high: ArrayLike) -> Answers:
        """Counts of the bins ``low … high − 1`` along each axis.

        Parameters
        ----------
        low, high : int arrays, shape (…, axes)

        Raises
        ------
        InputError
            If a box is not within the bins.
        """
        low, high = np.broadcast_arrays(np.asarray(low), np.asarray(high))
        shape, axes = low.shape[:-1], len(self.axes)
        if low.ndim == 0 or low.shape[-1] != axes:
            raise InputError(f"a box needs {axes} number(s), one per axis, not an array of shape {low.shape}")
        if not all(np.issubdtype(end.dtype, np.integer) for end in (low, high)):
            raise InputError("bins have whole numbers; see axes[i].position for values")
        low, high = (end.reshape(-1, axes).astype(np.int64) for end in (low, high))
        bins = np.array([axis.bins for axis in self.axes])
        wrong = np.argwhere((low < 0) | (low > high) | (high > bins))
        if wrong.size:
            query, axis = wrong[0]
            raise InputError(
                f"query {query + 1}, {self.axes[axis].name}: bins {low[query, axis]} … {high[query, axis]} "
                f"are not within 0 … {bins[axis]}, or end before they begin"
            )
        full = (low < high).all(axis=1)
        found = self.source.estimates(low[full], high[full])
        estimate, variance = np.zeros(len(low), dtype=found.dtype), np.zeros(len(low))
        estimate[full] = found
        variance[full] = self.source.variances(low[full], high[full])
        return Answers(estimate.reshape(shape), np.sqrt(variance).reshape(shape))

    @property
    def before_repair(self) -> RangeAnswers | None:
        """The same queries before counts were made non-negative or whole: only standard errors are right.

        None if the counts were not repaired in that way.
        """
        source = self.source
        if not isinstance(source, Consistent) or source.linear:
            return None
        return RangeAnswers(self.axes, replace(source, linear=True))

    @property
    def bins(self) -> tuple[int, ...]:
        """Number of bins along each axis."""
        return tuple(axis.bins for axis in self.axes)


def answers_frame(answers: Answers, named: Sequence[str]) -> DataFrame:
    """Answers as a table with one row for each query."""
    import pandas as pd

    estimate, error = answers
    return pd.DataFrame({"query": list(named), "estimate": estimate, "standard_error": error})
