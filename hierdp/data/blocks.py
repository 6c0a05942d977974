"""Groups by size in the counties of the United States, from a table of one's own.

For the data of Kuo et al. 2018 that are not included: blocks by number of white or Hawaiian people, or
households by size, which follow from the 2010 Census Summary File 1.

Of census blocks by number of native Hawaiians, the authors publish the nation's row in their repository
`yzk5145/coco`, file ``data/Hawaiian_nation_H.npy``; entry 0 counts blocks without native Hawaiians. The rows
of states and counties are not available here. Each block lies in a county at random, in proportion to the
counties' weights. So the root is the paper's, and the levels below it are not: the real blocks concentrate in
a few counties.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data.housing import chosen_of, county_shares, placed
from hierdp.errors import InputError

COLUMNS = ("state", "county", "size", "groups")


def blocks(path: Path) -> SizeRuns:
    """Groups by size over nation → state → county.

    - path: a Parquet or CSV file with the columns ``state`` and ``county`` (of the whole nation, such as
      51001), ``size`` (people of a group) and ``groups`` (how many groups of the county have it).

    Raises `InputError` if a column is missing, or a size or number is not whole and at least 0.
    """
    import pandas as pd

    try:
        read = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
        table = read[list(COLUMNS)].astype({"state": str, "county": str, "size": "int64", "groups": "int64"})
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"{path} is not a table of {', '.join(COLUMNS)}: {error}") from None
    if (table[["size", "groups"]] < 0).any(axis=None):
        raise InputError(f"{path} contains sizes or groups below 0")
    codes = {name: table[name].to_numpy() for name in ("state", "county")}
    places = Hierarchy.from_columns(codes, ("state", "county"), "US", "nation")
    leaf = pd.Index(places.names[-1]).get_indexer(pd.Index(codes["county"]))
    sizes, groups = (np.asarray(table[name], dtype=np.int64) for name in ("size", "groups"))
    leaves = Runs.added(np.asarray(leaf, dtype=np.int64), sizes, groups, places.names[-1].size)
    return SizeRuns(places, leaves.summed_up(places.tree))


FILE = "Hawaiian_nation_H.npy"


def hawaiian(
    file: Path,
    seed: int = 0,
    homes: Path | None = None,
    counties: bool = True,
    states: Sequence[str] | None = None,
) -> SizeRuns:
    """Blocks by number of native Hawaiians over nation → state → county.

    - file: the nation's blocks by size, from size 0.
    - homes, counties, states: as in `hierdp.data.housing.housing`.

    Raises `InputError` if a state is unknown.
    """
    names, shares = county_shares(seed, homes)
    chosen = chosen_of(names, states)
    nation = np.load(file).astype(np.int64)
    there = np.flatnonzero(nation)
    weights = np.concatenate([shares[state] for state in names])
    by_county = np.random.default_rng([seed, there.size]).multinomial(nation[there], weights / weights.sum())
    kept = np.repeat([state in chosen for state in names], [shares[state].size for state in names])
    rows = [(there, by_county[:, county]) for county in np.flatnonzero(kept)]
    return placed(rows, [state for state in names if state in chosen], shares, counties, states is None)
