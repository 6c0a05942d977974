"""Find the region of each row in a hierarchy, or say why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.tables.axes import Axis
from hierdp.tables.columns import Column, Fault, column_of, refuse, text_of
from hierdp.tables.sources import Table, run
from models.arithmetic.arrays import Ints


def missing_regions(table: Table, axis: Axis, unknown: str | None, where: str = "the data") -> list[Fault]:
    """Faults: missing regions, unless `unknown` names a region for such rows, and codes of wrong length."""
    faults = []
    for name in axis.columns:
        text = text_of(column_of(table, name, where))
        if unknown is None:
            faults.append((text.isnull(), f"column {name!r}: the region is missing; {OPTION}"))
        faults += torn_codes(text, name, axis)
    return faults


def torn_codes(text: Column, name: str, axis: Axis) -> list[Fault]:
    """Faults: codes of the wrong length, which may have lost leading zeros."""
    if axis.prefixes is None:
        return []
    length = axis.prefixes.length
    lost = f"the code does not have {length} characters; did it lose leading zeros? Keep codes as text"
    return [((text.length() != length).fill_null(False), f"column {name!r}: {lost}")]


OPTION = "fix the row, or count such rows under a separate name (`unknown=NAME`)"


def refuse_blanks(table: Table, named: Sequence[tuple[str, Column]], distinct: Table, where: str) -> None:
    """Refuse names that begin or end with a blank, which would be different regions: ` 06037` and `06037`.

    `distinct` has the distinct names, one column for each of `named`; only a wrong name is looked up in the
    rows.
    """
    import pyarrow.compute as pc

    for (column, text), names in zip(named, distinct.columns, strict=True):
        padded = names.filter(pc.not_equal(pc.utf8_trim_whitespace(names), names))
        if len(padded):
            first = padded[0].as_py()
            what = (
                f"column {column!r}: the name {first!r} begins or ends with a blank; strip names in {where}"
            )
            refuse(table, [((text == first).fill_null(False), what)])


def seen(
    table: Table, axis: Axis, root: str, root_level: str, where: str = "the data", given: Table | None = None
) -> Hierarchy:
    """The hierarchy of the regions in the data; rows with a missing region at any level are ignored.

    If `table` has sums of rows, `given` has the rows, of which messages give the number.
    """
    texts = dict(zip(axis.levels, axis.texts(table), strict=True))
    lines = table if given is None else given
    spelt = table.select(*(text.name(level) for level, text in texts.items()))
    rows = run(spelt.drop_null().distinct().order_by(spelt.columns))
    if not rows.num_rows:
        raise InputError(f"no row has a region in all of the columns {listed(axis.columns)}")
    wide = dict(zip(axis.levels, axis.texts(lines), strict=True))
    named = [(level if axis.prefixes is None else axis.columns[0], text) for level, text in wide.items()]
    refuse_blanks(lines, named, rows, where)
    columns = {name: rows[name] for name in spelt.columns}
    return Hierarchy.from_columns(columns, axis.levels, root, root_level)


def located(
    table: Table,
    axes: Sequence[Axis],
    columns: Mapping[str, Column],
    unknown: str | None,
    root: str = "all",
    root_level: str = "root",
    given: Table | None = None,
) -> tuple[Table, list[Hierarchy]]:
    """The columns and, for each axis i, `leaf{i}`, the region's name, and `at{i}`, its position or -1.

    About `given` see `seen`.
    """
    import ibis
    import pyarrow as pa

    hierarchies, leaves = [], {}
    for i, axis in enumerate(axes):
        hierarchy = axis.hierarchy or seen(table, axis, root, root_level, given=given)
        hierarchies.append(hierarchy if unknown is None else hierarchy.with_unknown(unknown))
        texts = axis.texts(table)
        lost = ibis.or_(*(text.isnull() for text in texts))
        leaves[f"leaf{i}"] = lost.ifelse(None, texts[-1])
    rows = table.select(**columns, **leaves)
    for i, hierarchy in enumerate(hierarchies):
        names = hierarchy.names[-1]
        places = ibis.memtable(
            pa.table(
                {f"name{i}": pa.array(names, pa.string()), f"at{i}": np.arange(names.size, dtype=np.int32)}
            )
        )
        rows = rows.left_join(places, rows[f"leaf{i}"] == places[f"name{i}"]).drop(f"name{i}")
        stranger = -1 if unknown is None else int(hierarchy.positions([unknown])[0])
        rows = rows.mutate(rows[f"at{i}"].fill_null(stranger).name(f"at{i}"))
    return rows, hierarchies


def counted_regions(
    axis: Axis, hierarchy: Hierarchy, counts: NDArray[Any], unknown: str | None
) -> tuple[Hierarchy, Ints]:
    """The regions of an axis in which a row counts, and the new position of each region, -1 for the others.

    For a table whose rows per person are bounded. Without a list of regions, a region exists because a row
    counts there; otherwise one person could add any number of regions. Listed regions all stay, and so does
    the region for unknown ones.

    - counts, number or bool array, shape (regions of the last level,): what counts in each.

    Raises `InputError` if the regions are those in the data, and nothing counts.
    """
    names, kept = hierarchy.names[-1], np.asarray(counts) > 0
    if unknown is not None:
        kept[hierarchy.positions([unknown])] = True
    if axis.hierarchy is not None or kept.all():
        return hierarchy, np.arange(names.size)
    if not kept.any():
        raise InputError(f"no row counts, so column {axis.columns[-1]!r} gives no region: {NOTHING}")
    columns = {level: regions[kept] for level, regions in hierarchy.columns().items()}
    root = str(hierarchy.names[0][0])
    fewer = Hierarchy.from_columns(columns, hierarchy.levels[1:], root, hierarchy.levels[0])
    return fewer, np.where(kept, np.cumsum(kept) - 1, -1)


NOTHING = "give a public list, or fix the column of counts, which is 0 in every row that is left"


def refuse_strangers(rows: Table, axes: Sequence[Axis], strange: NDArray[np.bool_]) -> None:
    """Refuse regions in the data that are not in the hierarchy; `strange` marks them."""
    if not strange.any():
        return
    for i, axis in enumerate(axes):
        names = run(rows.filter(rows[f"at{i}"] < 0).select(f"leaf{i}").distinct().order_by(f"leaf{i}"))
        if names.num_rows:
            raise InputError(
                f"column {axis.columns[-1]!r} has {names.num_rows} region(s) not in the table of regions: "
                f"{listed(names[0].to_pylist())}. Add them there, or count their rows in a separate region "
                "(`unknown=NAME`)"
            )
