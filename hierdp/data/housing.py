"""Partially synthetic housing data with a heavy tail, built as by Kuo et al. 2018 (§6.1).

In each state, sizes 1 to 6, and 7 or more, are drawn with the shares of the published national table. (The
paper uses each state's own table, which we do not have.) Above 7, the expected number of groups of each size
is r times that of the previous size, with r = n₇/n₆. In each state, 50 outliers of sizes up to 10,000
represent group quarters. The number is per state, not in total: only then are there about as many distinct
sizes as the paper's 2,352 (here about 2,310). A state's groups are assigned to its counties at random, in
proportion to the counties' sizes. With the paper's number of groups there are about 623 million people; the
paper, with the states' own tables, has 605 million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data.census import PUBLISHED, STATES
from hierdp.errors import InputError, listed

GROUPS = 240_908_081
MAX_SIZE = 10_000
OUTLIERS = 50
"""The paper's values; `OUTLIERS` is per state."""

WEST_COAST = ("06", "41", "53")
"""California, Oregon and Washington, by FIPS code."""

COUNTIES = 60
"""Number of counties of a synthetic state."""


def housing(
    seed: int = 0,
    groups: int = GROUPS,
    homes: Path | None = None,
    counties: bool = True,
    states: Sequence[str] | None = None,
) -> SizeRuns:
    """Groups by size over nation → state → county.

    - groups: number of groups in the nation, at least 100 per state.
    - homes: a Parquet file of commuters with the columns ``origin_state``, ``origin_county``, ``workers``.
      The workers' homes determine the shares of states and counties. Default: 52 synthetic states of
      lognormal size, each with 60 counties of lognormal size.
    - counties: whether to include the level of counties.
    - states: include only these states, such as `WEST_COAST`; their data are the same as in the whole nation.

    Raises `InputError` if there are too few groups, or a state is unknown.
    """
    names, shares = county_shares(seed, homes)
    if groups < 2 * OUTLIERS * len(names):
        raise InputError(
            f"{groups:,} groups are too few for {len(names)} states; give at least "
            f"{2 * OUTLIERS * len(names):,}"
        )
    chosen = chosen_of(names, states)
    weight = np.array([shares[state].sum() for state in names])
    rest = groups - 2 * OUTLIERS * len(names)
    sizes = 2 * OUTLIERS + np.random.default_rng(seed).multinomial(rest, weight / weight.sum())
    rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for number, state in enumerate(names):
        if state in chosen:
            rows += _state(np.random.default_rng([seed, number]), int(sizes[number]), shares[state])
    return placed(rows, [state for state in names if state in chosen], shares, counties, states is None)


def county_shares(seed: int, homes: Path | None) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """The states, and the weights of each state's counties: of workers' homes, or made up."""
    return _from_homes(homes) if homes else _invented(seed)


def chosen_of(names: Sequence[str], states: Sequence[str] | None) -> list[str]:
    """The states to include: all, or those asked for.

    Raises `InputError` if a state is unknown.
    """
    chosen = list(names if states is None else states)
    for state in chosen:
        if state not in names:
            raise InputError(f"unknown state {state!r}; choose from {listed(names, most=len(names))}")
    return chosen


def placed(
    rows: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    chosen: Sequence[str],
    shares: Mapping[str, NDArray[np.float64]],
    counties: bool,
    nation: bool,
) -> SizeRuns:
    """The hierarchy over the counties of the chosen states, with `rows` of sizes and counts, one a county."""
    columns = {
        "state": [state for state in chosen for _ in shares[state]],
        "county": [f"{state}/{i + 1:03}" for state in chosen for i in range(shares[state].size)],
    }
    root = ("US", "nation") if nation else ("part", "part of the nation")
    places = Hierarchy.from_columns(columns, ["state", "county"], *root)  # sorted by name, as these are
    every = Runs.from_rows(rows).summed_up(places.tree)
    if counties:
        return SizeRuns(places, every)
    above = Hierarchy.from_columns({"state": list(chosen)}, ["state"], *root)
    return SizeRuns(above, every.between(0, above.size))


def _state(
    rng: np.random.Generator, groups: int, shares: NDArray[np.float64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Sizes and counts of each county of a state."""
    ratio = PUBLISHED[6] / (PUBLISHED[5] + PUBLISHED[6])  # n₇ + n₈ + … is the last published number
    tail = PUBLISHED[6] * (1 - ratio) * ratio ** np.arange(100)  # negligible beyond size 107
    expected = np.concatenate([PUBLISHED[:6], tail])
    counts = np.zeros(MAX_SIZE + 1, dtype=np.int64)
    counts[1 : 1 + expected.size] = rng.multinomial(groups - OUTLIERS, expected / expected.sum())
    counts += np.bincount(rng.integers(1, MAX_SIZE + 1, size=OUTLIERS), minlength=MAX_SIZE + 1)
    there = np.flatnonzero(counts)
    by_county = rng.multinomial(counts[there], shares / shares.sum())
    return [(there, by_county[:, county]) for county in range(shares.size)]


def _from_homes(path: Path) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    import pandas as pd

    flows = pd.read_parquet(path, columns=["origin_state", "origin_county", "workers"])
    homes = flows.groupby(["origin_state", "origin_county"])["workers"].sum()
    found = {str(state): here.to_numpy(float) for state, here in homes.groupby(level=0)}
    return list(found), found


def _invented(seed: int) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    rng = np.random.default_rng([seed, STATES])
    sizes = rng.lognormal(0.0, 1.0, STATES)[:, None] * rng.lognormal(0.0, 1.0, (STATES, COUNTIES))
    names = [f"S{i + 1:02}" for i in range(STATES)]
    return names, dict(zip(names, sizes, strict=True))
