"""Intervals for bins and boxes of a histogram by clusters.

Some methods measure every bin before they choose clusters. A bin's own noisy count is unbiased, whatever
clusters follow from it. The others measure only the sums of clusters, with noise that is independent of the
choice of the clusters. The mean of a cluster is biased for a bin of it, by an unknown amount. But a part of a
cluster is at least 0, and at most the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.mechanisms.clustering.published import SUMS
from hierdp.mechanisms.intervals import (
    Interval,
    RowIntervals,
    each_miss,
    from_errors,
    half_width,
    interval,
    measured_in,
    unknown,
    variance_of,
)
from hierdp.mechanisms.mechanism import Mechanism
from hierdp.mechanisms.range_query.reading import answers_in
from hierdp.privacy.budget import GEOMETRIC, Allowed
from hierdp.record.step import Solving
from hierdp.record.written import ReleaseFolder
from models.arithmetic.arrays import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class ClusterIntervals:
    """Intervals of a histogram by clusters.

    Raises `InputError` if it has no measurements, or others than its table.
    """

    release: ReleaseFolder

    def boxes(self, low: Ints, high: Ints, miss: float) -> list[Interval]:
        """The intervals of boxes ``low … high − 1``, shape (boxes, axes), for this probability of a miss."""
        shape = [axis.bins for axis in answers_in(self.release.table, self.release.manifest["settings"]).axes]
        found = []
        for first, end in zip(low, high, strict=True):
            inside = np.zeros(shape, bool)
            inside[tuple(map(slice, first, end))] = True
            found.append(self._sum(inside.ravel(), miss))
        return found

    def rows(self, miss: float, together: bool, _: Solving) -> RowIntervals:
        """See `Intervals`."""
        table = self.release.table
        if "standard_error" in table:
            return from_errors(self.release, miss, together, [GEOMETRIC])
        if "noisy" in table:
            half = half_width(self._variance, each_miss(miss, len(table), together), [GEOMETRIC])
            return RowIntervals(table["noisy"].to_numpy(float), np.full(len(table), half))
        clusters, sums, variance = self._clusters()
        each = each_miss(miss, sums.size, together)
        two, one = (half_width(variance, share, [GEOMETRIC]) for share in (each, 2 * each))
        part = np.bincount(clusters)[clusters] > 1
        return RowIntervals(sums[clusters], np.where(part, one, two), down=np.where(part, np.inf, two))

    def _sum(self, inside: Flags, miss: float) -> Interval:
        table = self.release.table
        if not inside.any():
            return Interval(0.0, 0.0)
        counts = next((name for name in ("standard_error", "noisy") if name in table), None)
        if counts is not None:
            noisy = table["count" if counts == "standard_error" else counts].to_numpy(float)
            half = half_width(int(inside.sum()) * self._variance, miss, [GEOMETRIC])
            return interval(float(noisy[inside].sum()), half, half)
        clusters, sums, variance = self._clusters()
        held, size = np.bincount(clusters, inside.astype(float)), np.bincount(clusters)
        full, touched = held == size, held > 0
        down, up = (half_width(int(one.sum()) * variance, miss, [GEOMETRIC]) for one in (full, touched))
        lowest, highest = float(sums[full].sum()), float(sums[touched].sum())
        return interval(highest, highest - lowest + down, up)

    def _clusters(self) -> tuple[Ints, Floats, float]:
        clusters = self.release.table["cluster"].to_numpy(np.int64)
        sums = [one for one in measured_in(self.release) if one.spend.query.startswith(SUMS)]
        if not sums or sums[0].answers.size != clusters.max() + 1:
            raise unknown(self.release, "its measurements are not of its table; see `hierdp check`")
        return clusters, sums[0].answers.astype(float), variance_of(sums[0].spend)

    @property
    def _variance(self) -> float:
        """That of the noise of each bin, if all were measured."""
        return variance_of(measured_in(self.release)[0].spend)


def intervals(_: Mechanism[Any], _facts: Any, _allowed: Allowed, release: ReleaseFolder) -> ClusterIntervals:
    """The intervals of a release, which follow from its table and its measurements."""
    return ClusterIntervals(release)
