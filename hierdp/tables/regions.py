"""Read hierarchies from tables of regions in three forms: levels, codes, parents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy, factor
from hierdp.errors import InputError, listed
from hierdp.tables.axes import Axis
from hierdp.tables.columns import column_of, refuse, text_of
from hierdp.tables.places import refuse_blanks, seen, torn_codes
from hierdp.tables.sources import read, run

WHERE = "the table of regions"


def read_regions(
    source: Any, levels: Sequence[str], root: str = "all", root_level: str = "root"
) -> Hierarchy:
    """The hierarchy in a table of regions, whose columns are the levels from coarse to fine.

    Parameters
    ----------
    source : path, Database, DataFrame, Arrow or Ibis table
    levels : sequence of str, or Prefixes
        The columns, or one column of codes whose prefixes are the coarser regions.
    root, root_level : str
        Names of the region above all others, and of its level.

    Raises
    ------
    InputError
        See `read` and `Hierarchy.from_columns`.

    Examples
    --------
    >>> import pandas as pd
    >>> from hierdp.tables import Prefixes
    >>> counties = pd.DataFrame({"fips": ["01001", "01003", "02013"]})
    >>> read_regions(counties, Prefixes("fips", {"state": 2, "county": 5}), root="US")
    Hierarchy(root: 1, state: 2, county: 3)
    """
    table, axis = read(source), Axis.of(levels)
    texts = [(name, text_of(column_of(table, name, WHERE))) for name in axis.columns]
    missing = f"the region is missing in {WHERE}; each row needs a region at every level"
    faults = [(text.isnull(), f"column {name!r}: {missing}") for name, text in texts]
    refuse(table, [*faults, *torn_codes(texts[0][1], texts[0][0], axis)])
    return seen(table, axis, root, root_level, WHERE)


def read_parents(
    source: Any,
    child: str,
    parent: str,
    level: str | None = None,
    root: str = "all",
    root_level: str = "root",
) -> Hierarchy:
    """The hierarchy in a table with one row per region, which names its parent.

    Parameters
    ----------
    source : path, Database, DataFrame, Arrow or Ibis table
    child, parent : str
        Columns of the region and of its parent. A region without a parent is at the top; if every row has a
        parent, the parents that have no row are. Names are unique over all levels.
    level : str, optional
        Column with the name of the region's level. Default: level 1, level 2, ….
    root, root_level : str
        Names of the root and of its level, if there are several regions at the top. A single region at the
        top is itself the root.

    Raises
    ------
    InputError
        See `read`; also if a region has two parents or two levels or is its own ancestor, if a parent has no
        row although some regions have no parent.

    Notes
    -----
    A region without parts also stands, with its name, at every level below its own, if other branches are
    deeper.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"id": ["US", "01", "01001", "01003"], "in": [None, "US", "01", "01"]})
    >>> read_parents(rows, "id", "in")
    Hierarchy(root: 1, level 1: 1, level 2: 2)
    """
    table = read(source)
    given = (child, parent, *([level] if level else []))
    columns = [column_of(table, name, WHERE) for name in given]
    named = {f"c{i}": text_of(column) for i, column in enumerate(columns)}
    faults = [(named["c0"].isnull(), f"column {child!r}: the region is missing in {WHERE}; name it")]
    if level is not None:
        faults.append((named["c2"].isnull(), f"column {level!r}: the level is missing in {WHERE}; name it"))
    refuse(table, faults)
    distinct = table.select(**named).distinct()
    found = run(distinct.order_by(list(named)))
    refuse_blanks(table, list(zip(given, named.values(), strict=True)), found, WHERE)
    rows = found.to_pydict()
    return _tree(rows["c0"], rows["c1"], rows.get("c2"), root, root_level)


def read_hrc(path: str | Path, root: str = "all", root_level: str = "root") -> Hierarchy:
    """The hierarchy in an ``.hrc`` file of τ-ARGUS or sdcTable: a code a line, with an @ for each level.

    Parameters
    ----------
    path : path
        Text in UTF-8.
    root, root_level : str
        As of `read_parents`.

    Raises
    ------
    InputError
        If the file cannot be read, or a line has no code or is more than one level below the one before; and
        as `read_parents`.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}") from None
    codes, parents, above = list[str](), list[str | None](), list[str]()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        code = text.lstrip("@")
        depth = len(text) - len(code)
        if not text:
            continue
        if not code or depth > len(above):
            why = "has no code" if not code else "is more than one level below the line before it"
            raise InputError(f"{path}, line {number}, {why}: {line!r}")
        above[depth:] = [code]
        codes.append(code)
        parents.append(above[depth - 1] if depth else None)
    if not codes:
        raise InputError(f"{path} has no regions")
    order = sorted(range(len(codes)), key=lambda k: codes[k])
    return _tree([codes[k] for k in order], [parents[k] for k in order], None, root, root_level)


def _tree(
    child: list[str], parent: list[str | None], level: list[str] | None, root: str, root_level: str
) -> Hierarchy:
    for i, name in enumerate(child[1:], start=1):
        if name == child[i - 1]:
            ends = (parent[i - 1], parent[i])
            what = f"parents, {listed(ends)}" if ends[0] != ends[1] else "levels"
            advice = "each region has one row, and unique names"
            ups = [up for up in parent if up is not None]
            if ends[0] != ends[1] and len(set(ups)) == len(ups):  # swapped, each has one parent
                advice += "; or are the columns of the region and of its parent swapped?"
            raise InputError(f"region {name!r} has two {what}: {advice}")
    own_rows = set(child)
    unlisted = sorted({up for up in parent if up is not None and up not in own_rows})
    if None in parent and unlisted:
        part = child[parent.index(unlisted[0])]
        raise InputError(
            f"region {part!r} has the parent {unlisted[0]!r}, which has no row in {WHERE}: correct the "
            "name, or add its row"
        )
    codes, names = factor([*child, *(p or child[0] for p in parent)])
    above = np.full(names.size, -1, dtype=np.int64)
    for i, up in enumerate(parent):
        if up is not None:
            above[i] = codes[len(child) + i]
    depth = _depths(above, names)
    inner = np.zeros(names.size, dtype=bool)
    inner[above[above >= 0]] = True
    leaves = np.flatnonzero(~inner)
    deepest = int(depth.max())
    by_level = _level_names(names, depth, level, len(child))
    paths = [leaves]
    for d in range(deepest, 0, -1):  # a region that ends above a level stands there itself
        paths.append(np.where(depth[paths[-1]] == d, above[paths[-1]], paths[-1]))
    columns = {by_level[d]: names[path] for d, path in enumerate(reversed(paths))}
    tops = np.flatnonzero(depth == 0)
    if tops.size > 1 or deepest == 0:
        return Hierarchy.from_columns(columns, list(columns), root, root_level)
    top = by_level.pop(0) if level is not None else root_level
    below = list(columns)[1:]
    return Hierarchy.from_columns(columns, below, str(names[tops[0]]), top)


def _depths(above: NDArray[np.int64], names: NDArray[Any]) -> NDArray[np.int64]:
    depth = np.zeros(above.size, dtype=np.int64)
    at = above.copy()
    while (at >= 0).any():
        depth[at >= 0] += 1
        if depth.max() > above.size:
            lost = names[np.argmax(depth)]
            raise InputError(f"region {lost!r} is its own ancestor; fix {WHERE}")
        at = np.where(at >= 0, above[at], -1)
    return depth


def _level_names(
    names: NDArray[Any], depth: NDArray[np.int64], level: list[str] | None, given: int
) -> list[str]:
    """A name for each depth; only the first `given` regions have a row, and so a level."""
    deepest = int(depth.max())
    if level is None:
        alone = int((depth == 0).sum()) == 1 and deepest > 0
        return [f"level {d + (not alone)}" for d in range(deepest + 1)]
    found: list[str | None] = [None] * (deepest + 1)
    for i in range(given):
        known = found[depth[i]]
        if known is not None and known != level[i]:
            raise InputError(
                f"region {names[i]!r} has level {level[i]!r}, but other regions of the same depth have "
                f"{known!r}; all regions of a level must have the same depth"
            )
        found[depth[i]] = level[i]
    if len(set(found)) < len(found):
        raise InputError(f"regions of different depths have the same level: {listed(found)}; rename one")
    return [name or "top" for name in found]
