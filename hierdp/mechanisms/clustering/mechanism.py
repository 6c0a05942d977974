"""Clustered histograms: AHP (Zhang et al. 2014), and the methods that the paper compares it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hierdp.counts.axes import Axis
from hierdp.errors import InputError, listed, options_listed, unknown_name
from hierdp.measurements.measuring import Measuring
from hierdp.mechanisms import shared_options as shared
from hierdp.mechanisms.clustering.ahp import ahp
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.dawa import dawa
from hierdp.mechanisms.clustering.grouping_smoothing import gs
from hierdp.mechanisms.clustering.noise_first import laplace, noise_first
from hierdp.mechanisms.clustering.php import php
from hierdp.mechanisms.clustering.priv_tree import priv_tree
from hierdp.mechanisms.clustering.published import ClusteringMethod, Published
from hierdp.mechanisms.clustering.structure_first import structure_first
from hierdp.mechanisms.option import Option, documented
from hierdp.mechanisms.persons import counting, for_persons, persons_of
from hierdp.mechanisms.public import public_axes
from hierdp.mechanisms.relations import PERSON
from hierdp.privacy.budget import Ledger, check_epsilon
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.tables.binning import Histogram, checked_axes, histogram, named_regions

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


def clustering(
    data: Histogram, epsilon: float, noise: Noise | None = None, method: str = "AHP", **options: Any
) -> Release:
    """Release noisy counts of all bins; the bins of a cluster have their common mean.

    PrivTree and DAWA halve all axes of a histogram of two or more dimensions; the other methods flatten it,
    with the last axis fastest, as in DPBench.

    Parameters
    ----------
    data : Histogram
        True counts.
    epsilon : float
        Pure-DP budget.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    method : str
        One of `METHODS`.
    **options
        The method's own options; see `ClusteringMethod.takes` and the functions in `METHODS`.

    Returns
    -------
    Release
        One row for each bin: the axes' labels, `cluster`, `noisy` (the counts measured to make the clusters,
        if there are any), `count`. Counts are means, and may be negative. Laplace also has `standard_error`,
        because its only error is noise.

    Raises
    ------
    InputError
        If ε is not a positive finite number, there is no such method, or it takes no such option.

    Examples
    --------
    >>> from hierdp.privacy.noise import SimulatedNoise
    >>> data = Histogram.of([40, 41, 2, 0, 39, 1, 1, 0])
    >>> clustering(data, 1.0, SimulatedNoise(1)).table["cluster"].tolist()
    [1, 1, 0, 0, 1, 0, 0, 0]
    """
    epsilon = check_epsilon(epsilon)
    chosen = checked(method, options)
    clash = {"cluster", "noisy", "count", "standard_error"} & {axis.name for axis in data.axes}
    if clash:
        raise InputError(f"an axis is called {listed(sorted(clash))}, like a column of the result; rename it")
    measure, steps = Measuring(data.counts.ravel(), noise or ExactNoise()), Steps()
    published = chosen.run(data.counts.shape, epsilon, measure, steps, **options)
    ledger = Ledger(epsilon, 0.0, PERSON, measure.measurements.spends)
    return Release(
        chosen.name,
        table_of(data.axes, published),
        ledger,
        steps.kept,
        {"axes": [axis.as_dict() for axis in data.axes], **published.settings},
        measurements=measure.measurements,
    )


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
            "AHP, AHP-greedy or AHP-empirical; PrivTree, DAWA or AHP-by-place, if neighbouring bins are "
            "alike; or NF, SF, PHP, GS or Laplace, for comparison. See `hierdp mechanisms`.",
            "NAME",
        ),
    ] = "AHP",
    share: Annotated[
        float | None,
        Option(
            "Share of ε for finding clusters, between 0 and 1 (not for NF, Laplace); the rest is for their "
            "counts. Default: AHP 0.7, DAWA 0.25, others 0.5.",
            "NUMBER",
        ),
    ] = None,
    eta: Annotated[
        float | None, Option("AHP: noisy counts below η·ln(bins)/ε₁ are set to 0. Default: 0.35.", "NUMBER")
    ] = None,
    clusters: Annotated[
        int | None, Option("SF: number of clusters. Default: a tenth of the bins.", "NUMBER")
    ] = None,
    largest: Annotated[
        int | None,
        Option("SF: a public upper bound on the counts. Default: a noisy maximum, for ε/20.", "NUMBER"),
    ] = None,
    width: Annotated[int | None, Option("GS: bins per cluster. Default: √bins.", "NUMBER")] = None,
    workload: Annotated[
        str | None, Option("DAWA: what clusters are measured for, ranges (default) or single bins.", "NAME")
    ] = None,
) -> Release:
    """Release a table's counts by bin: `hierdp.tables.binning.histogram`, then `clustering`."""
    given: dict[str, Any] = {"share": share, "eta": eta, "clusters": clusters, "largest": largest}
    given |= {"width": width, "workload": workload}
    options = {name: value for name, value in given.items() if value is not None}
    checked(method, options)  # before reading the table, which may be large
    axes, persons = checked_axes(axes), persons_of(person, rows_per_person, most_per_row, count)
    public = public_axes(named_regions(axes), regions_from_data)
    data = histogram(source, axes, count, unknown, clip, persons)
    made = for_persons(lambda of_row: clustering(data, of_row, noise, method, **options), epsilon, persons)
    return public.of(counting(made, count))


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
