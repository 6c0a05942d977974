"""Clustered histograms: AHP (Zhang et al. 2014), and the methods that the paper compares it with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from hierdp.counts.axes import Axis, axis_of
from hierdp.counts.layout import Regions
from hierdp.errors import InputError, listed, options_listed, unknown_name
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.clustering.ahp import ahp
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.dawa import dawa
from hierdp.mechanisms.clustering.expected import PlannedClustering
from hierdp.mechanisms.clustering.grouping_smoothing import gs
from hierdp.mechanisms.clustering.noise_first import laplace, noise_first
from hierdp.mechanisms.clustering.php import php
from hierdp.mechanisms.clustering.priv_tree import priv_tree
from hierdp.mechanisms.clustering.published import ClusteringMethod, Published
from hierdp.mechanisms.clustering.structure_first import structure_first
from hierdp.mechanisms.expected import Expected
from hierdp.mechanisms.mechanism import Mechanism, release_counts
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.public import Public, public_axes
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


METHODS = {
    method.name: method
    for method in (
        *(ClusteringMethod(name, partial(ahp, rule=rule), ("share", "eta")) for name, rule in RULES.items()),
        ClusteringMethod("PrivTree", priv_tree, ("share",)),
        ClusteringMethod("DAWA", dawa, ("share", "workload")),
        ClusteringMethod("NF", noise_first, ()),
        ClusteringMethod("SF", structure_first, ("share", "clusters", "largest")),
        ClusteringMethod("PHP", php, ("share",)),
        ClusteringMethod("GS", gs, ("share", "width")),
        ClusteringMethod("Laplace", laplace, ()),
    )
}
"""The methods, by their names in Zhang et al. 2014, §6; two newer ones, PrivTree and DAWA; and one of ours,
AHP-by-place. Their AHP is greedy, for speed; ours is optimal.
"""


def checked(method: str, options: Mapping[str, Any]) -> ClusteringMethod:
    """The method of that name, if it takes these options.

    Raises `InputError` if there is no such method, or it takes no such option.
    """
    if method not in METHODS:
        raise InputError(unknown_name(method, METHODS, "no method"))
    chosen = METHODS[method]
    for option in options:
        if option not in chosen.takes:
            takes = options_listed(chosen.takes) or "no options"
            raise InputError(f"{method} takes no `{option}`; it takes {takes}")
    return chosen


@documented
@dataclass(frozen=True, kw_only=True)
class Clustering(Mechanism[Sequence[Axis]]):
    """Release a table's counts by bin; the bins of a cluster have their common mean.

    PrivTree and DAWA halve all axes of a histogram of two or more dimensions; the other methods flatten it,
    with the last axis fastest, as in DPBench. A release has one row for each bin: the axes' labels,
    `cluster`, `noisy` (the counts measured to make the clusters, if there are any), `count`. Counts are
    means, and may be negative. Laplace also has `standard_error`, because its only error is noise.
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
            "AHP, AHP-greedy or AHP-empirical; PrivTree, DAWA or AHP-by-place, if neighbouring bins are "
            "alike; or NF, SF, PHP, GS or Laplace, for comparison. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "AHP"
    share: Annotated[
        float | None,
        Option(
            "Share of ε for finding clusters, between 0 and 1 (not for NF, Laplace); the rest is for their "
            "counts. Default: AHP 0.7, DAWA 0.25, others 0.5.",
            "NUMBER",
        ),
    ] = None
    eta: Annotated[
        float | None, Option("AHP: noisy counts below η·ln(bins)/ε₁ are set to 0. Default: 0.35.", "NUMBER")
    ] = None
    clusters: Annotated[
        int | None, Option("SF: number of clusters. Default: a tenth of the bins.", "NUMBER", least=1)
    ] = None
    largest: Annotated[
        int | None,
        Option(
            "SF: a public upper bound on the counts. Default: a noisy maximum, for ε/20.", "NUMBER", least=1
        ),
    ] = None
    width: Annotated[int | None, Option("GS: bins per cluster. Default: √bins.", "NUMBER", least=1)] = None
    workload: Annotated[
        str | None, Option("DAWA: what clusters are measured for, ranges (default) or single bins.", "NAME")
    ] = None

    NAME: ClassVar = "clustering"
    METHODS: ClassVar = METHODS
    SETTINGS: ClassVar = ("share", "eta", "clusters", "largest", "width", "workload")
    RELATION: ClassVar = PERSON
    PLANNED: ClassVar = PlannedClustering
    shape = staticmethod(shape_of_bins)

    @property
    def chosen(self) -> ClusteringMethod:
        """See `Mechanism`."""
        return checked(self.method, self.settings())

    def lists(self) -> Public:
        """See `Mechanism`."""
        return public_axes(named_regions(checked_axes(self.axes)), self.regions_from_data)

    def read(self, source: Any) -> Histogram:
        """See `Mechanism`."""
        axes = checked_axes(self.axes)
        return histogram(source, axes, self.count, self.unknown, self.clip, self.unit.enforced)

    def facts(self, data: Histogram) -> tuple[Sequence[Axis], Ints]:
        """See `Mechanism`; the true counts have shape (bins,), the last axis fastest."""
        clash = {"cluster", "noisy", "count", "standard_error"} & {axis.name for axis in data.axes}
        if clash:
            columns = listed(sorted(clash))
            raise InputError(f"an axis is called {columns}, like a column of the result; rename it")
        return data.axes, data.counts.ravel()

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> Sequence[Axis]:
        """See `Mechanism`; the names of bins are those of the table."""
        return () if table is None else axes_of(table, manifest["settings"]["axes"])

    def run(
        self, facts: Sequence[Axis], allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[DataFrame, dict[str, Any]]:
        """See `Mechanism`: find clusters, and measure their sums."""
        shape = tuple(axis.bins for axis in facts)
        published = self.chosen.run(shape, allowed.loss, measure, solve, **self.settings())
        return table_of(facts, published), {
            "axes": [axis.as_dict() for axis in facts],
            **published.settings,
        }

    def expected(self, planned: PlannedClustering) -> Expected:
        """See `Mechanism`."""
        self.check_options()
        return planned.expected(self.method, self.epsilon, self.settings())


def clustering(
    data: Histogram, epsilon: float, noise: Noise | None = None, method: str = "AHP", **options: Any
) -> Release:
    """A release of true counts in memory; `options` are those of `Clustering`, without columns and lists.

    >>> from hierdp.privacy.noise import SimulatedNoise
    >>> data = Histogram.of([40, 41, 2, 0, 39, 1, 1, 0])
    >>> clustering(data, 1.0, SimulatedNoise(1)).table["cluster"].tolist()
    [1, 1, 0, 0, 1, 0, 0, 0]
    """
    return release_counts(Clustering(epsilon=epsilon, axes=(), method=method, **options), data, noise)


def table_of(axes: Sequence[Axis], published: Published) -> DataFrame:
    """One row for each bin, the last axis fastest."""
    import pandas as pd

    places = np.unravel_index(np.arange(published.counts.size), [axis.bins for axis in axes])
    columns: dict[str, Any] = {
        axis.name: np.asarray(axis.labels, dtype=object)[at] for axis, at in zip(axes, places, strict=True)
    }
    columns["cluster"] = published.clusters
    if published.noisy is not None:
        columns["noisy"] = published.noisy
    columns["count"] = published.counts
    if published.standard_error is not None:
        columns["standard_error"] = published.standard_error
    return pd.DataFrame(columns)


def axes_of(table: DataFrame, saved: list[Mapping[str, Any]]) -> list[Axis]:
    """The axes of a released table of all bins; names are as they are in it.

    Raises `Differs` if it has another number of bins, or two bins of an axis have the same name.
    """
    shape = tuple(each["bins"] for each in saved)
    if len(table) != math.prod(shape):
        raise Differs(f"the table has {len(table)} bins, but the axes have {math.prod(shape)}")
    found = []
    for at, each in enumerate(saved):
        step = math.prod(shape[at + 1 :])
        axis = axis_of(each, table[each["name"]].to_numpy(object)[np.arange(shape[at]) * step])
        if len(set(axis.labels)) < len(axis.labels):
            raise Differs(f"two bins of {each['name']!r} have the same name")
        found.append(axis)
    return found
