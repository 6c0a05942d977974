"""Housing with a heavy tail, as Kuo et al. 2018 (§6.1) build it: partially synthetic. Not real data.

In each state sizes 1 to 6, and 7 or more, are drawn with the shares of the published national table (the
paper has each state's own, which is not at hand); past 7 each size has r times as many groups as the one
before it, in expectation, with r = n₇/n₆; and 50 outliers of sizes up to 10,000 stand for group quarters.
That is 50 a state, not in all: only so do the paper's 2,352 distinct sizes come about (here some 2,310). A
state's groups are assigned to its counties at random, in proportion to the counties' sizes. With the paper's
number of groups there are some 623 million people; the paper, with its states' own tables, has 605 million.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""The paper's figures; the outliers are a state's."""

WEST_COAST = ("06", "41", "53")
"""California, Oregon and Washington, as files of commuters number them."""

COUNTIES = 60
"""Of an invented state."""


def housing(
    seed: int = 0,
    groups: int = GROUPS,
    homes: Path | None = None,
    counties: bool = True,
    states: Sequence[str] | None = None,
) -> SizeRuns:
    """Groups by size over nation → state → county.

    Parameters
    ----------
    seed : int
    groups : int
        Of the whole nation: some 100 a state at least.
    homes : path, optional
        A Parquet file of commuters with the columns ``origin_state``, ``origin_county``, ``workers``: its
        workers' homes give states and counties their shares. Without it 52 states of lognormal size are
        invented, each with 60 counties of lognormal size.
    counties : bool
        Whether to go on below the states.
    states : sequence of str, optional
        Of the nation these states alone, such as `WEST_COAST`; they are the same as in all of it.

    Returns
    -------
    SizeRuns

    Raises
    ------
    InputError
        If there are too few groups, or no such state.
    """
    names, shares = _from_homes(homes) if homes else _invented(seed)
    if groups < 2 * OUTLIERS * len(names):
        raise InputError(f"{groups:,} groups are too few: {len(names)} states have {OUTLIERS} outliers each")
    chosen = list(names if states is None else states)
    for state in chosen:
        if state not in names:
            raise InputError(f"no state {state!r}; there are {listed(names, most=len(names))}")
    weight = np.array([shares[state].sum() for state in names])
    rest = groups - 2 * OUTLIERS * len(names)
    sizes = 2 * OUTLIERS + np.random.default_rng(seed).multinomial(rest, weight / weight.sum())
    rows: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for number, state in enumerate(names):
        if state in chosen:
            rows += _state(np.random.default_rng([seed, number]), int(sizes[number]), shares[state])
    chosen = [state for state in names if state in chosen]
    columns = {
        "state": [state for state in chosen for _ in shares[state]],
        "county": [f"{state}/{i + 1:03}" for state in chosen for i in range(shares[state].size)],
    }
    root = ("US", "nation") if states is None else ("part", "part of the nation")
    places = Hierarchy.from_columns(columns, ["state", "county"], *root)  # sorted by name, as these are
    every = Runs.from_rows(rows).summed_up(places.tree)
    if counties:
        return SizeRuns(places, every)
    above = Hierarchy.from_columns({"state": chosen}, ["state"], *root)
    return SizeRuns(above, every.between(0, above.size))


def _state(
    rng: np.random.Generator, groups: int, shares: NDArray[np.float64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """A state's counties, in runs."""
    ratio = PUBLISHED[6] / (PUBLISHED[5] + PUBLISHED[6])  # n₇ + n₈ + … is the published last number
    tail = PUBLISHED[6] * (1 - ratio) * ratio ** np.arange(100)  # by size 107 it has long run out
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
