"""The result of a method that releases a histogram by clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import NoisyCounts
from hierdp.record.step import Step
from models.arithmetic.arrays import Ints

SUMS = "sums of clusters"
"""The last measurement, as named in the budget."""


@dataclass(frozen=True, eq=False)
class Published:
    """A released histogram: estimates only, no true counts.

    Attributes
    ----------
    counts : float64 array, shape (n,)
        One for each bin: means of noisy sums, which need not be whole or positive.
    clusters : int64 array, shape (n,)
        The number of each bin's cluster.
    spends : tuple of Spend
    steps : tuple of Step
        The optimization problems solved on the way.
    settings : mapping
        The public parameters that were used.
    noisy : int64 array, shape (n,), optional
        The noisy count of each bin, if the clusters were made from these.
    """

    counts: NDArray[np.float64]
    clusters: Ints
    spends: tuple[Spend, ...]
    steps: tuple[Step, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    noisy: Ints | None = None


@dataclass(frozen=True)
class Method:
    """A way to release a histogram.

    Attributes
    ----------
    name : str
    publish : callable
        Takes ``(counts, epsilon, noise, **options)``, with counts of shape (n,), and returns `Published`.
    takes : tuple of str
        Its options.
    """

    name: str
    publish: Callable[..., Published]
    takes: tuple[str, ...]


def sums_of(counts: Ints, clusters: Ints) -> Ints:
    """The sum of each cluster's counts."""
    sums = np.zeros(int(clusters.max()) + 1, dtype=np.int64)
    np.add.at(sums, clusters, counts)
    return sums


def of_clusters(clusters: Ints, sums: NoisyCounts, spends: Sequence[Spend], **more: Any) -> Published:
    """Give each bin the mean of its cluster: the cluster's noisy sum divided by its number of bins."""
    means = sums.counts / np.bincount(clusters, minlength=sums.counts.size)
    return Published(means[clusters], clusters, tuple(spends), **more)
