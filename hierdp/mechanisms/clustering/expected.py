"""What to expect of a clustered histogram, without data: the noise in its counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from hierdp.analysis.bayes_bound import least_errors
from hierdp.mechanisms.clustering import ahp, dawa
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.dawa import cluster_deviation
from hierdp.mechanisms.clustering.structure_first import FOR_LARGEST
from hierdp.mechanisms.expected import Expected, RowsOfAPerson, frame, geometric_deviation
from hierdp.mechanisms.mechanism import Planned
from hierdp.mechanisms.option import Option
from hierdp.privacy.budget import check_share, of_one_row, split
from hierdp.tables import read
from hierdp.tables.columns import refuse, whole_of
from hierdp.tables.sources import run
from models.arithmetic.arrays import Ints

SHARES = {**dict.fromkeys(RULES, ahp.SHARE), "DAWA": dawa.SHARE}
"""The share of ε for finding clusters by default, if it is not a half."""

BIAS = (
    "The bins of a cluster share its mean: their bias depends on the data and on the clusters, so the "
    "standard error of a bin is not known. The noise of a bin of a cluster of n bins is that of its sum, "
    "divided by n."
)
REUSED = (
    "NF uses one measurement twice: clusters are chosen by the noise that their means contain, so the noise "
    "of a mean is not known either."
)
LEAST = (
    "On bins drawn from the {bins:,} public counts, no ε-DP method has a root mean squared error below "
    "{rmse:.4g} by bin, or a KLD below {kld:.4g}. A method that uses the places of the bins can be better on "
    "the bins as they are, if neighbours are alike."
)


@dataclass(frozen=True, kw_only=True)
class PlannedClustering(Planned):
    """The options of a plan for a clustered histogram."""

    OF_THE_RELEASE: ClassVar = ("method", "share", "clusters", "largest", "width", "workload")

    bins: Annotated[
        int, Option("The number of bins, of all axes together.", "NUMBER", least=1, form="planned bins")
    ]
    rows_per_person: RowsOfAPerson = 1
    public_counts: Annotated[
        Any,
        Option(
            "A table of public counts like those to be released, such as last year's, in a column `count`, "
            "one row for each bin. Adds the least error that a method without places can have on these.",
            "TABLE",
            form="table",
        ),
    ] = None

    def expected(self, method: str, epsilon: float, options: Mapping[str, Any]) -> Expected:
        """The noise in the counts of a clustered histogram, and the least error on bins like public ones."""
        rows, notes = _rows(of_one_row(epsilon, self.rows_per_person), self.bins, method, **options)
        if self.public_counts is not None:
            counts = _counts_of(self.public_counts)
            least = least_errors(counts, epsilon)
            notes = (*notes, LEAST.format(bins=counts.size, rmse=math.sqrt(least.mse), kld=least.kld))
        return Expected(method, frame(rows), notes, epsilon, ("counts_of",))


def _counts_of(source: Any) -> Ints:
    table = read(source)
    number, faults = whole_of(table, "count")
    refuse(table, faults, "the table of public counts")
    return np.asarray(run(table.select(n=number))["n"].to_numpy(), dtype=np.int64)


def _rows(
    budget: float,
    bins: int,
    method: str,
    share: float | None = None,
    clusters: int | None = None,
    largest: int | None = None,
    width: int | None = None,
    workload: str | None = None,
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows and the notes, for the ε of a row."""
    if method in ("Laplace", "NF"):
        noise = geometric_deviation(1, budget)
        error = noise if method == "Laplace" else math.nan
        return [_row("every bin", 1, noise, error)], () if method == "Laplace" else (BIAS, REUSED)
    known, many = False, "not known before the release"
    if method == "SF":
        runs = -(-bins // 10) if clusters is None else clusters
        if 1 < runs < bins and largest is None:
            budget = split(budget, 2, (FOR_LARGEST, 1 - FOR_LARGEST))[1]
        known = not 1 < runs < bins
        many = f"{runs:,}"
    if method == "GS":
        width = math.isqrt(bins - 1) + 1 if width is None else width
        many = f"{-(-bins // width):,}, of {width:,} bins each"
    part = check_share(share if share is not None else SHARES.get(method, 0.5))
    for_sums = budget if known else split(budget, 2, (part, 1 - part))[1]
    use = "bins" if method != "DAWA" else (workload or "ranges")
    sizes = {1, 10, 100, bins} if method != "GS" else {width or 1}
    rows = [
        _row(f"a bin in a cluster of {n:,}", n, cluster_deviation(max(1, bins // n), for_sums, use) / n)
        for n in sorted(sizes)
        if n <= bins
    ]
    return rows, (BIAS, f"Number of clusters: {many}.")


def _row(name: str, size: int, noise: float, error: float = np.nan) -> dict[str, Any]:
    return {"counts_of": name, "cluster": size, "noise_deviation": noise, "standard_error": error}
