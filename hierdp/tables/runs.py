"""Count groups by size in every region, for all sizes that occur in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import LARGEST_SIZE, Runs, SizeRuns
from hierdp.tables import counted_groups
from hierdp.tables.persons import Persons


def group_runs(
    source: Any,
    *,
    group: Sequence[str],
    groups: Any = None,
    levels: Sequence[str] | None = None,
    regions: Hierarchy | None = None,
    region: str | None = None,
    entities: str | None = None,
    max_size: int = LARGEST_SIZE,
    root: str = "all",
    root_level: str = "root",
    unknown: str | None = None,
    persons: Persons | None = None,
) -> SizeRuns:
    """Count groups by size in every region, like `hierdp.tables.group_sizes`, for all sizes that occur.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"state": ["A", "A", "B"], "house": [1, 2, 3], "people": [1, 70_000, 1]})
    >>> data = group_runs(rows, levels=["state"], group=["house"], entities="people")
    >>> data.runs.of(0)
    (array([    1, 70000]), array([2, 1]))
    """
    hierarchy, place, size, n = counted_groups(
        source,
        levels=levels,
        regions=regions,
        region=region,
        group=group,
        groups=groups,
        entities=entities,
        max_size=max_size,
        root=root,
        root_level=root_level,
        unknown=unknown,
        persons=persons,
    )
    leaves = Runs.added(place, size, n, hierarchy.names[-1].size)
    return SizeRuns(hierarchy, leaves.summed_up(hierarchy.tree))
