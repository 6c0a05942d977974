"""Methods that release a histogram by clusters: functions of noisy answers, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.measurements.measuring import MeasureTruth
from hierdp.privacy.noise import Noise
from hierdp.record.step import Step
from models.arithmetic.arrays import Ints

SUMS = "sums of clusters"
"""The last measurement, as named in the budget."""


@dataclass(frozen=True, eq=False)
class Published:
    """A released histogram: estimates only, no true counts.

    - counts, float64 array, shape (n,): one for each bin: means of noisy sums, which need not be whole or
      positive.
    - clusters, int64 array, shape (n,): the number of each bin's cluster.
    - settings: the options, with their defaults, and what follows from them and from the measurements.
    - noisy, int64 array, shape (n,): the noisy count of each bin, if the clusters were made from these.
    - standard_error: that of each bin, if it is known.
    """

    counts: NDArray[np.float64]
    clusters: Ints
    settings: Mapping[str, Any] = field(default_factory=dict)
    noisy: Ints | None = None
    standard_error: float | None = None


@dataclass(frozen=True)
class ClusteringMethod:
    """A way to release a histogram.

    - run: takes ``(shape, epsilon, measure, solve, **options)``: the number of bins along each axis, the
      budget for tables that differ by one person in one bin, what answers queries about the true counts of
      the bins, shape (bins,), and what solves models. Returns `Published`.
    """

    name: str
    run: Callable[..., Published]
    takes: tuple[str, ...]

    def publish(self, counts: Ints, epsilon: float, noise: Noise, **options: Any) -> Published:
        """Run it on true counts, of the axes' shape, with the fast paths."""
        return self.run(counts.shape, epsilon, MeasureTruth(counts.ravel(), noise), Step.solve, **options)


def of_clusters(
    clusters: Ints, sums: NDArray[Any], settings: Mapping[str, Any], noisy: Ints | None = None
) -> Published:
    """Give each bin the mean of its cluster: the cluster's noisy sum divided by its number of bins."""
    means = sums / np.bincount(clusters, minlength=sums.size)
    return Published(means[clusters], clusters, settings, noisy)
