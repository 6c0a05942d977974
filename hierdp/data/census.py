"""Synthetic households like those of the 2010 census, built as by Fioretto & Van Hentenryck 2019 (§9).

The numbers of groups of sizes 1 to 6, and of 7 or more, are the published national totals, scaled to the
paper's number of groups. Above 7, the expected number of groups of each size is r times that of the previous
size, with r = n₇/n₆. Some outliers represent group quarters. The region of each household is drawn with the
regions' shares.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.tables import GroupSizes

PUBLISHED = (31_399, 39_487, 18_638, 16_122, 7_367, 2_784, 1_740)
"""Thousands of households of 1, 2, …, 6 people and of 7 or more, 2010 (Census Bureau, Table HH-4)."""

GROUPS = 117_630_445
LEAVES = 7_592
STATES = 52
MAX_SIZE = 1_000
OUTLIERS = 50
"""The paper's figures; the states are 50, Puerto Rico and the District of Columbia."""


def census(
    seed: int = 0,
    groups: int = GROUPS,
    leaves: int = LEAVES,
    max_size: int = MAX_SIZE,
    homes: Path | None = None,
) -> GroupSizes:
    """Groups by size over nation → state → part of a county.

    Parameters
    ----------
    seed : int
    groups, leaves, max_size : int
        Default: the paper's values. At least 1,000 groups, 52 leaves, and sizes to 10.
    homes : path, optional
        A Parquet file of commuters with the columns ``origin_state``, ``origin_county``, ``workers``. The
        workers' homes determine the shares of states and counties. Counties (or states, if there are fewer
        leaves than counties) are divided into equal parts, the largest parts first, until there are enough
        leaves. Default: 52 states of lognormal size are divided instead.

    Returns
    -------
    GroupSizes

    Raises
    ------
    InputError
        If a number is too small.
    """
    if leaves < STATES or max_size < 10 or groups < 1_000:
        raise InputError(
            f"{groups:,} groups, {leaves:,} leaves, sizes to {max_size:,}: a census needs at least "
            f"1,000 groups, {STATES} leaves and sizes to 10"
        )
    rng = np.random.default_rng(seed)
    names, shares = _from_homes(homes, leaves) if homes else _invented(rng)
    parts = [
        (state, f"{state}/{county}/{i + 1}", share / n)
        for (state, county), share, n in zip(names, shares, _parts(shares, leaves), strict=True)
        for i in range(n)
    ]
    parts.sort(key=lambda part: part[1])  # as a hierarchy sorts its regions
    columns = {"state": [part[0] for part in parts], "part": [part[1] for part in parts]}
    states = Hierarchy.from_columns(columns, ["state", "part"], root="US", root_level="nation")
    chances = np.array([part[2] for part in parts])
    counts = np.zeros((leaves, max_size + 1), dtype=np.int64)
    for size, many in enumerate(national(rng, groups, max_size)):
        counts[:, size] = rng.multinomial(many, chances / chances.sum())
    return GroupSizes(states, np.asarray(states.tree.sum_up(counts), dtype=np.int64))


def national(rng: np.random.Generator, groups: int, max_size: int) -> NDArray[np.int64]:
    """Number of groups of each size in the nation, shape (max_size + 1,); the sum is `groups`."""
    outliers = rng.integers(10, max_size + 1, size=OUTLIERS)
    exact = np.array(PUBLISHED) / sum(PUBLISHED) * (groups - OUTLIERS)
    rounded = np.floor(exact).astype(np.int64)
    rounded[np.argsort(rounded - exact, kind="stable")[: groups - OUTLIERS - rounded.sum()]] += 1
    # n₇ + n₈ + … = n₆ r/(1 − r) is the last published total.
    ratio = PUBLISHED[6] / (PUBLISHED[5] + PUBLISHED[6])
    tail = ratio ** np.arange(max_size - 6)
    counts = np.zeros(max_size + 1, dtype=np.int64)
    counts[1:7] = rounded[:6]
    counts[7:] = rng.multinomial(rounded[6], tail / tail.sum())
    return counts + np.bincount(outliers, minlength=max_size + 1)


def _from_homes(path: Path, leaves: int) -> tuple[list[tuple[str, str]], NDArray[np.float64]]:
    import pandas as pd

    flows = pd.read_parquet(path, columns=["origin_state", "origin_county", "workers"])
    homes = flows.groupby(["origin_state", "origin_county"])["workers"].sum()
    if len(homes) > leaves:
        homes = homes.groupby("origin_state").sum()
        return [(str(state), "all") for state in homes.index], homes.to_numpy(float)
    return [(str(state), str(county)) for state, county in homes.index], homes.to_numpy(float)


def _invented(rng: np.random.Generator) -> tuple[list[tuple[str, str]], NDArray[np.float64]]:
    return [(f"S{i + 1:02}", "all") for i in range(STATES)], rng.lognormal(0.0, 1.0, STATES)


def _parts(shares: NDArray[np.float64], leaves: int) -> NDArray[np.int64]:
    """The number of parts of each county, at least one; the largest parts are divided first."""
    cuts = np.ones(shares.size, dtype=np.int64)
    largest = [(-share, county) for county, share in enumerate(shares.tolist())]
    heapq.heapify(largest)
    for _ in range(leaves - shares.size):
        county = largest[0][1]
        cuts[county] += 1
        heapq.heapreplace(largest, (-shares[county] / cuts[county], county))
    return cuts
