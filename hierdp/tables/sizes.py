"""Count groups by size in every region of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.counts.size_runs import LARGEST_SIZE, GroupSizes, Runs, SizeRuns
from hierdp.errors import InputError
from hierdp.tables.axes import Axis
from hierdp.tables.groups import GroupColumns, count_groups, count_listed_groups
from hierdp.tables.persons import Persons
from models.arithmetic.arrays import Ints

MOST_CELLS = 2**32  # 32 GiB; far above, the system would kill the process


def group_sizes(
    source: Any,
    *,
    levels: Sequence[str] | None = None,
    regions: Hierarchy | None = None,
    region: str | None = None,
    group: Sequence[str],
    groups: Any = None,
    entities: str | None = None,
    max_size: int,
    root: str = "all",
    root_level: str = "root",
    unknown: str | None = None,
    persons: Persons | None = None,
) -> GroupSizes:
    """Count groups by size in every region.

    Parameters
    ----------
    source : path, Database, DataFrame, Arrow or Ibis table
        Rows of entities, or of counts of entities; see `read`.
    levels : sequence of str, or Prefixes, optional
        Columns with the regions from coarse to fine. The regions in the data are taken as public.
    regions, region : Hierarchy and str, optional
        Instead of `levels`: the regions, and the column with the region of the last level.
    group : sequence of str
        Columns that together identify a group. A group lies in one region.
    groups : path, Database, DataFrame, Arrow or Ibis table, optional
        All groups, one row each, with their columns `group` and the columns of regions; then `source` needs
        no regions. The list is public. Without it, the groups in the data are taken as public. Listed groups
        without entities have size 0.
    entities : str, optional
        Column with numbers of entities; by default each row is one. A group may have 0 entities.
    max_size : int
        Larger groups are counted in this size (top-coded).
    root, root_level : str
        Names of the root and its level, with `levels`.
    unknown : str, optional
        Name of a separate region for rows whose region is missing (at any level) or not in `regions`, and of
        a separate group, in every region of the last level, for rows without a group (in any of its columns).
        Both exist whether or not a row needs them, so that they reveal nothing about the data; an unused
        group has 0 entities. With `groups`, which list the regions, there is only one such group, in the
        separate region, which also takes the rows of unlisted groups. By default such rows are an error.
    persons : Persons, optional
        The column of persons, and how many rows of one person count, or how many entities of one row. By
        default all count. Without `groups`, a group exists only if one of its rows counts, and a region in
        the data only if one of its groups exists.

    Raises
    ------
    InputError
        See the module; also if a group is in two regions, or twice in `groups`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"state": ["A", "A", "A", "B"], "house": [1, 1, 2, 3]})
    >>> sizes = group_sizes(rows, levels=["state"], group=["house"], max_size=3)
    >>> sizes.counts
    array([[0, 2, 1, 0],
           [0, 1, 1, 0],
           [0, 1, 0, 0]])
    >>> houses = pd.DataFrame({"state": ["A", "A", "B", "B"], "house": [1, 2, 3, 4]})
    >>> group_sizes(rows, groups=houses, levels=["state"], group=["house"], max_size=3).counts
    array([[1, 2, 1, 0],
           [0, 1, 1, 0],
           [1, 1, 0, 0]])
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
    if hierarchy.size * (int(max_size) + 1) > MOST_CELLS:
        raise InputError(
            f"{hierarchy.size} regions × {max_size} sizes do not fit; choose a smaller `max_size`"
        )
    tree, sizes = hierarchy.tree, int(max_size) + 1
    counts = np.zeros((tree.size, sizes), dtype=np.int64)
    for level in range(tree.depth, -1, -1):  # the groups are fewer than the counts
        np.add.at(counts[tree.nodes_of(level)].reshape(-1), place * sizes + size, n)
        if level:
            place = np.asarray(tree.levels[level - 1])[place]
    return GroupSizes(hierarchy, counts)


def counted_groups(
    source: Any,
    groups: Any = None,
    *,
    group: Sequence[str],
    max_size: int,
    levels: Sequence[str] | None = None,
    regions: Hierarchy | None = None,
    region: str | None = None,
    entities: str | None = None,
    root: str = "all",
    root_level: str = "root",
    unknown: str | None = None,
    persons: Persons | None = None,
) -> tuple[Hierarchy, Ints, Ints, Ints]:
    """The regions, and arrays of positions in their last level, sizes and numbers of groups, unsorted.

    The arguments are those of `group_sizes`. A position and size may occur twice.
    """
    if isinstance(max_size, bool) or not isinstance(max_size, int | np.integer) or not 0 < max_size < 2**31:
        raise InputError(f"`max_size` must be a whole number from 1 to 2³¹ - 1, got {max_size!r}")
    if (levels is None) == (regions is None) or (regions is None) != (region is None):
        raise InputError("give the regions by `levels`, or by both `regions` and `region`")
    axis = Axis.of(levels) if levels is not None else Axis(regions, as_names(region or ()))
    group = as_names(group)
    if not group:
        raise InputError("no column of groups; give at least one")
    columns = GroupColumns(axis, group, entities, int(max_size), unknown, root, root_level, persons)
    return count_groups(source, columns) if groups is None else count_listed_groups(source, groups, columns)


def group_runs(source: Any, **about: Any) -> SizeRuns:
    """Count groups by size in every region, like `group_sizes`, for all sizes that occur.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"state": ["A", "A", "B"], "house": [1, 2, 3], "people": [1, 70_000, 1]})
    >>> data = group_runs(rows, levels=["state"], group=["house"], entities="people")
    >>> data.runs.of(0)
    (array([    1, 70000]), array([2, 1]))
    """
    hierarchy, place, size, n = counted_groups(source, **{"max_size": LARGEST_SIZE, **about})
    leaves = Runs.added(place, size, n, hierarchy.names[-1].size)
    return SizeRuns(hierarchy, leaves.summed_up(hierarchy.tree))
