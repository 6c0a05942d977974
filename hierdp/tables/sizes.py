"""Count groups by size in every region of a table.

The database adds up entities by group, and counts groups by region and size; only runs are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.counts.size_runs import LARGEST_SIZE, GroupSizes, Runs, SizeRuns
from hierdp.errors import InputError, listed
from hierdp.tables.axes import Axis
from hierdp.tables.columns import Column, Fault, column_of, refuse, text_of, whole_of
from hierdp.tables.persons import Persons, bounded, person_of
from hierdp.tables.places import OPTION, counted_regions, located, missing_regions, refuse_strangers
from hierdp.tables.sources import Table, read, run
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


Counted = tuple[Hierarchy, Ints, Ints, Ints]

MOST_PARTS = 256
"""The largest number of parts into which groups are divided if they do not fit into memory together."""

LIST = "the table of groups"


@dataclass(frozen=True)
class GroupColumns:
    """The arguments of `hierdp.tables.group_sizes`, which describes them."""

    axis: Axis
    group: tuple[str, ...]
    entities: str | None
    max_size: int
    unknown: str | None
    root: str
    root_level: str
    persons: Persons | None = None


def count_groups(source: Any, given: GroupColumns) -> Counted:
    """Count groups from a table of entities that includes their regions."""
    import ibis

    table, unknown = read(source), given.unknown
    entity, faults = whole_of(table, given.entities)
    person, missing = person_of(table, given.persons)
    faults += missing + missing_regions(table, given.axis, unknown)
    keys = _keys(table, given)
    faults += _clashes(keys, given)
    if unknown is None:
        faults += _missing(keys, given, f"the group is missing; {OPTION}, each region's as one group")
    refuse(table, faults)
    lost = ibis.literal(False)
    if unknown is None:
        keys = {key: _compact(table[name]) for key, name in zip(keys, given.group, strict=True)}
    else:
        lost = ibis.or_(*(key.isnull() for key in keys.values()))
        # All rows without a group form one group per region.
        keys = {name: lost.ifelse(unknown, key) for name, key in keys.items()}
    columns = {**keys, "lost": lost, "size": _capped(entity, given), **person}
    rows, (hierarchy,) = located(table, [given.axis], columns, unknown, given.root, given.root_level)
    if given.persons is not None:
        rows = bounded(rows, given.persons, "size", derived=["at0"])
    by = list(keys)
    if unknown is not None:  # one unnamed group per region; named groups in two regions are found by `at0`
        rows = rows.mutate(home=rows.lost.ifelse(rows.at0, -1))
        by += ["lost", "home"]

    def sized(part: Table) -> Table:
        groups = part.group_by(by).agg(size=_sum(part, given), at=part.at0.min(), end=part.at0.max())
        unnamed = groups.lost if unknown is not None else ibis.literal(False)
        return _counted(groups, given, torn=groups["at"] < groups.end, lost=unnamed)

    found = _in_parts(rows, list(keys), sized)
    place, torn, nameless, size, n = (found[name].to_numpy() for name in ("at", "torn", "lost", "size", "n"))
    refuse_strangers(rows, [given.axis], place < 0)
    if torn.any():
        groups = rows.group_by(by).agg(at=rows.at0.min(), end=rows.at0.max())
        _refuse_torn(groups.filter(groups["at"] < groups.end), given, hierarchy)
    if given.persons is not None:  # a row beyond the bound forms no group, and so no region
        counts = size > 0
        place, size, n, nameless = place[counts], size[counts], n[counts], nameless[counts]
        there = np.bincount(place, minlength=hierarchy.names[-1].size)
        hierarchy, to = counted_regions(given.axis, hierarchy, there, unknown)
        place = to[place]
    if unknown is not None:  # the unnamed group exists even without entities: groups are public
        bare = np.setdiff1d(np.arange(hierarchy.names[-1].size), place[nameless.astype(bool)])
        place, size = np.append(place, bare), np.append(size, np.zeros_like(bare))
        n = np.append(n, np.ones_like(bare))
    return hierarchy, *(part.astype(np.int64) for part in (place, size, n))


def count_listed_groups(source: Any, groups: Any, given: GroupColumns) -> Counted:
    """Count groups from a table of entities, and a table of all groups that includes their regions."""
    import ibis

    table, unknown = read(source), given.unknown
    listing = read(groups, beside=table)
    entity, faults = whole_of(table, given.entities)
    theirs, keys = _keys(table, given), _keys(listing, given, LIST)
    person, missing = person_of(table, given.persons)
    faults += missing
    if unknown is None:
        faults += _missing(theirs, given, f"the group is missing; {OPTION}")
    refuse(table, faults)
    faults = missing_regions(listing, given.axis, unknown, LIST) + _clashes(keys, given)
    refuse(listing, faults + _missing(keys, given, f"the group is missing in {LIST}; name it"), LIST)
    rows, (hierarchy,) = located(listing, [given.axis], keys, unknown, given.root, given.root_level)
    none = ibis.literal(0, "int64")
    listed_rows = rows.select(*keys, size=none, at=rows.at0.cast("int64"), listed=none + 1)
    counted = table.select(**theirs, size=_capped(entity, given), at=none - 1, listed=none, **person)
    if given.persons is not None:
        counted = bounded(counted, given.persons, "size")

    def sized(part: Table) -> Table:
        each = part.group_by(list(keys)).agg(
            size=part["size"].sum(), at=part["at"].max(), listed=part.listed.sum()
        )
        return _counted(each, given, listed=ibis.least(each.listed, 2).cast("int64"))

    found = _in_parts(listed_rows.union(counted), list(keys), sized)
    place, listed, size, n = (
        found[name].to_numpy().astype(np.int64) for name in ("at", "listed", "size", "n")
    )
    refuse_strangers(rows, [given.axis], (place < 0) & (listed > 0))
    if (listed > 1).any():
        each = rows.group_by(list(keys)).agg(n=rows.count())
        raise InputError(f"{_first(each.filter(each.n > 1), given)} has two rows in {LIST}; leave one")
    stranger = listed == 0
    if stranger.any() and unknown is None:
        names = counted.anti_join(rows, list(keys)).select(*keys).distinct()
        raise InputError(f"{_first(names, given)} is in the data and not in {LIST}; add it there, or {KEEP}")
    if unknown is not None:  # the unnamed group exists whether or not a row needs it
        place = np.append(place[~stranger], hierarchy.positions([unknown]))
        entities = min(given.max_size, int((size[stranger] * n[stranger]).sum()))
        size, n = np.append(size[~stranger], entities), np.append(n[~stranger], 1)
    return hierarchy, place, size, n


KEEP = "count such rows in a separate group (`unknown=NAME`)"


def _keys(table: Table, given: GroupColumns, where: str = "the data") -> dict[str, Column]:
    return {f"group{i}": text_of(column_of(table, name, where)) for i, name in enumerate(given.group)}


def _clashes(keys: Mapping[str, Column], given: GroupColumns) -> list[Fault]:
    if given.unknown is None:
        return []
    clash = f"a group is already called {given.unknown!r}; choose another name for unknown groups"
    named = zip(given.group, keys.values(), strict=True)
    return [(key == given.unknown, f"column {c!r}: {clash}") for c, key in named]


def _missing(keys: Mapping[str, Column], given: GroupColumns, what: str) -> list[Fault]:
    return [
        (key.isnull(), f"column {c!r}: {what}") for c, key in zip(given.group, keys.values(), strict=True)
    ]


def _compact(column: Column) -> Column:
    """A column of groups without missing values, in a form that needs little memory."""
    return column if column.type().is_integer() else text_of(column)


def _capped(entity: Column, given: GroupColumns) -> Column:
    """A row's entities, capped: then no sum overflows, and min(Σ min(n, K), K) = min(Σ n, K)."""
    import ibis

    return ibis.least(entity, ibis.literal(given.max_size, "int64"))


def _sum(part: Table, given: GroupColumns) -> Column:
    each_one = given.entities is None and given.persons is None
    return part.count() if each_one else part["size"].sum()  # a sum takes twice the memory


def _counted(groups: Table, given: GroupColumns, **also: Column) -> Table:
    import ibis

    capped = groups.mutate(**also, size=ibis.least(groups["size"], given.max_size).cast("int64"))
    return capped.group_by(["at", *also, "size"]).agg(n=capped.count())


def _in_parts(rows: Table, keys: Sequence[str], sized: Callable[[Table], Table]) -> Any:
    """Apply `sized` to the rows, one part of the groups at a time if not all fit into memory together."""
    import pyarrow as pa

    parts = 1
    while True:
        try:
            if parts == 1:
                return run(sized(rows))
            hashed = sum(rows[key].hash() % parts for key in keys)
            split = rows.mutate(part=hashed.abs() % parts)
            return pa.concat_tables(run(sized(split.filter(split.part == p))) for p in range(parts))
        except MemoryError:
            if parts >= MOST_PARTS:
                raise
            parts *= 4


def _first(groups: Table, given: GroupColumns) -> str:
    first = run(groups.order_by([f"group{i}" for i in range(len(given.group))]).limit(1)).to_pylist()[0]
    return "the group " + ", ".join(f"{c}={str(first[f'group{i}'])!r}" for i, c in enumerate(given.group))


def _refuse_torn(groups: Table, given: GroupColumns, hierarchy: Hierarchy) -> None:
    keys = [f"group{i}" for i in range(len(given.group))]
    first = run(groups.order_by(keys).limit(1)).to_pylist()[0]
    regions = listed(hierarchy.names[-1][first[end]] for end in ("at", "end"))
    more = [*given.group, given.axis.columns[-1]]
    options = " ".join(f"`group={column}`" for column in more)
    raise InputError(
        f"{_first(groups, given)} lies in two regions, {regions}, but must lie in one: fix the rows, or "
        f"identify groups by several columns, such as {options}"
    )
