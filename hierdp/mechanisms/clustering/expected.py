"""What to expect of a clustered histogram, without data: the noise in its counts."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from hierdp.mechanisms.clustering.ahp import SHARE
from hierdp.mechanisms.clustering.mechanism import checked
from hierdp.mechanisms.clustering.structure_first import FOR_LARGEST
from hierdp.mechanisms.expected import Expected, RowsOfAPerson, frame, geometric_deviation
from hierdp.mechanisms.option import Option, documented
from hierdp.privacy.budget import check_share, of_one_row, split

BIAS = (
    "The bins of a cluster share its mean: their bias depends on the data and on the clusters, so the "
    "standard error of a bin is not known. The noise of a bin of a cluster of n bins is that of its sum, "
    "divided by n."
)
REUSED = (
    "NF uses one measurement twice: clusters are chosen by the noise that their means contain, so the noise "
    "of a mean is not known either."
)


@documented
def expected(
    *,
    epsilon: float,
    bins: Annotated[int, Option("The number of bins, of all axes together.", "NUMBER", least=1)],
    method: Annotated[str, Option("The method; see `hierdp mechanisms`.", "NAME")] = "AHP",
    share: Annotated[
        float | None, Option("Share of ε for finding clusters. Default: the method's.", "NUMBER")
    ] = None,
    clusters: Annotated[int | None, Option("SF: number of clusters.", "NUMBER", least=1)] = None,
    largest: Annotated[
        int | None, Option("SF: a public upper bound on the counts.", "NUMBER", least=1)
    ] = None,
    width: Annotated[int | None, Option("GS: bins per cluster.", "NUMBER", least=1)] = None,
    rows_per_person: RowsOfAPerson = 1,
) -> Expected:
    """The noise in the counts of a clustered histogram."""
    given = {"share": share, "clusters": clusters, "largest": largest, "width": width}
    checked(method, {name: value for name, value in given.items() if value is not None})
    budget = of_one_row(epsilon, rows_per_person)
    if method in ("Laplace", "NF"):
        noise = geometric_deviation(1, budget)
        error = noise if method == "Laplace" else math.nan
        rows = [_row("every bin", 1, noise, error)]
        return Expected(
            method, frame(rows), () if method == "Laplace" else (BIAS, REUSED), epsilon, ("counts_of",)
        )
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
    part = check_share(share if share is not None else SHARE if method.startswith("AHP") else 0.5)
    noise = geometric_deviation(1, budget if known else split(budget, 2, (part, 1 - part))[1])
    sizes = {1, 10, 100, bins} if method != "GS" else {width or 1}
    rows = [_row(f"a bin in a cluster of {n:,}", n, noise / n) for n in sorted(sizes) if n <= bins]
    return Expected(method, frame(rows), (BIAS, f"Number of clusters: {many}."), epsilon, ("counts_of",))


def _row(name: str, size: int, noise: float, error: float = np.nan) -> dict[str, Any]:
    return {"counts_of": name, "cluster": size, "noise_deviation": noise, "standard_error": error}
