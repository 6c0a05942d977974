"""Groups by size in the counties of the United States, from a table of one's own.

For the data of Kuo et al. 2018 that are not included: blocks by number of white or Hawaiian people, or
households by size, which follow from the 2010 Census Summary File 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
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
