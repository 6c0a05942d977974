"""Named regions over a tree: nation → state → county."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.errors import InputError, listed, unknown_column
from models.arithmetic.arrays import Ints
from models.tree import Tree

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Series

Names = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Regions by level, each inside one region of the level above. Public: it contains no counts.

    Every region above the last level holds at least one of the level below, so the leaves of `tree` are
    the regions of the last level, in its order.

    Parameters
    ----------
    levels : sequence of str
        Names of the levels, from the root.
    names : sequence of str arrays
        Names of the regions of each level; the root level has one. Names are unique within a level. They may
        repeat across levels (the state and the city of New York).
    tree : Tree
        The parent of each region, in the order of `names`.

    Raises
    ------
    InputError
        If the three arguments do not fit each other, or a name occurs twice in a level.

    Examples
    --------
    >>> columns = {"zone": ["East", "East", "West"], "airport": ["JFK", "BOS", "LAX"]}
    >>> places = Hierarchy.from_columns(columns, ["zone", "airport"], root="USA", root_level="nation")
    >>> places
    Hierarchy(nation: 1, zone: 2, airport: 3)
    >>> places.names[2]
    array(['BOS', 'JFK', 'LAX'], dtype=object)
    >>> places.positions(["LAX", "BOS", "SJU"])
    array([ 2,  0, -1])
    >>> places.path(2, 1)
    ('USA', 'East', 'JFK')
    """

    levels: tuple[str, ...]
    names: tuple[Names, ...]
    tree: Tree

    def __post_init__(self) -> None:
        levels = tuple(self.levels)
        names = tuple(np.array(list(level), dtype=object) for level in self.names)
        if not len(levels) == len(names) == self.tree.depth + 1 or self.tree.depth == 0:
            raise InputError(
                f"{len(levels)} level names and {len(names)} lists of regions do not fit {self.tree}: "
                "give one of each per level, including the root, and at least one level below the root"
            )
        if len(set(levels)) < len(levels):
            raise InputError(f"the levels {listed(levels)} are not all different; rename one")
        for level, regions, size in zip(levels, names, self.tree.level_sizes, strict=True):
            if regions.size != size:
                raise InputError(f"level {level!r} has {regions.size} names for {size} regions")
            if len(set(regions)) < regions.size:
                raise InputError(f"two regions of level {level!r} have the same name; make names unique")
            regions.flags.writeable = False
        if self.tree.leaves.size != self.tree.level_sizes[-1]:
            raise InputError(f"a region above the level {levels[-1]!r} holds no region of the level below")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "names", names)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, ArrayLike] | DataFrame,
        levels: Sequence[str],
        root: str = "all",
        root_level: str = "root",
    ) -> Hierarchy:
        """A hierarchy from columns of region names, with one or more rows for each region of the last level.

        Parameters
        ----------
        columns : mapping of arrays, or DataFrame
            Region names of any type. Numbers are converted to text (1 and 1.0 become "1").
        levels : sequence of str
            Columns from coarse to fine, without the root.
        root, root_level : str
            Name of the root region and of its level.

        Raises
        ------
        InputError
            If levels are empty, repeated or unknown, a name is missing (null, NaN, empty), a region has two
            parents, or columns have no rows or unequal lengths.
        """
        levels = as_names(levels)
        if not levels:
            raise InputError("no levels: name at least one column that holds regions")
        if len({root_level, *levels}) <= len(levels):
            raise InputError(
                f"a level is repeated: {listed((root_level, *levels))} (the first is the root's); "
                "each level needs its own name and column"
            )
        names, parents = [np.array([root], dtype=object)], []
        above: Ints | None = None
        for level in levels:
            if level not in columns:
                raise unknown_column(level, map(str, columns), "the table of regions")
            region, found = factor(columns[level])
            above = np.zeros(region.size, dtype=np.int64) if above is None else above
            if region.size != above.size:
                raise InputError(
                    f"column {level!r} has {region.size} rows; the columns before it have {above.size}"
                )
            if region.size == 0:
                raise InputError("the table of regions has no rows")
            if (region < 0).any():
                raise InputError(
                    f"row {np.argmax(region < 0) + 1}, column {level!r}: the region is missing; "
                    "each row needs a region at every level"
                )
            order = np.argsort(found)
            region = np.argsort(order)[region]
            parent = np.empty(found.size, dtype=np.int64)
            parent[region] = above
            torn = np.flatnonzero(parent[region] != above)
            if torn.size:
                row = torn[0]
                raise InputError(
                    f"region {found[order[region[row]]]!r} of level {level!r} has two parents, "
                    f"{listed(sorted([names[-1][above[row]], names[-1][parent[region[row]]]]))}: "
                    f"{_wrong_order(columns, levels)}make names "
                    "unique, for example by prefixing each with its parent's (state code + county code)"
                )
            names.append(found[order])
            parents.append(parent)
            above = region
        return cls((root_level, *levels), tuple(names), Tree(parents))

    @classmethod
    def flat(cls, name: str, values: ArrayLike, root: str = "all", root_level: str = "root") -> Hierarchy:
        """A hierarchy with one level below the root, called `name`, with the distinct `values` as regions."""
        return cls.from_columns({name: values}, [name], root, root_level)

    @property
    def size(self) -> int:
        """Number of regions at all levels, including the root."""
        return self.tree.size

    @cached_property
    def _index(self) -> Index[Any]:
        import pandas as pd

        return pd.Index(self.names[-1], dtype=object)

    def positions(self, names: ArrayLike) -> Ints:
        """Positions of regions within the last level, by name; -1 for unknown or missing names.

        Parameters
        ----------
        names : array, shape (n,)
            Names of any type, converted as in `from_columns`.

        Returns
        -------
        int64 array, shape (n,)
        """
        import pandas as pd

        if isinstance(names, pd.Series) and (is_named(names) or isinstance(names.dtype, pd.StringDtype)):
            return places_of(names, self.names[-1])
        codes, found = factor(names)
        # A missing name has code -1, which indexes the -1 appended at the end.
        return np.append(self._index.get_indexer(found), -1).astype(np.int64)[codes]  # type: ignore[arg-type]

    def path(self, level: int, position: int) -> tuple[str, ...]:
        """Names from the root down to the region at a position within a level (level 0 is the root)."""
        if not (0 <= level < len(self.levels) and 0 <= position < self.names[level].size):
            raise IndexError(f"no region {position} at level {level} of {self!r}")
        walk = []
        for above in range(level, 0, -1):
            walk.append(self.names[above][position])
            position = np.asarray(self.tree.levels[above - 1])[position]
        return (self.names[0][0], *reversed(walk))

    def columns(self) -> dict[str, Names]:
        """For each level below the root, the region of each leaf; the inverse of `from_columns`."""
        at = np.arange(self.names[-1].size)
        out = {}
        for level in range(self.tree.depth, 0, -1):
            out[self.levels[level]] = self.names[level][at]
            at = np.asarray(self.tree.levels[level - 1])[at]
        return dict(reversed(out.items()))

    def with_unknown(self, name: str) -> Hierarchy:
        """The same hierarchy with an additional region `name` at each level below the root, in a chain.

        The region is added whether or not any row needs it, so that the regions of a release do not depend
        on the data. Positions change, because regions stay sorted by name.

        Raises
        ------
        InputError
            If the name is empty, or a region has this name already.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of the unknown region must be a non-empty text, got {name!r}")
        for level, regions in zip(self.levels, self.names, strict=True):
            if (regions == name).any():
                raise InputError(
                    f"level {level!r} already has a region {name!r}; choose another name for the unknown one"
                )
        columns = {level: np.append(regions, name) for level, regions in self.columns().items()}
        return Hierarchy.from_columns(columns, self.levels[1:], self.names[0][0], self.levels[0])

    def listing(self) -> dict[str, NDArray[Any]]:
        """All regions in level order: `level` (0 is the root), `level_name`, `region`, `parent`."""
        parents = [np.array([None], dtype=object)]
        for above, level in zip(self.names[:-1], self.tree.levels, strict=True):
            parents.append(above[np.asarray(level)])
        return {
            "level": self.tree.level,
            "level_name": np.array(self.levels, dtype=object)[self.tree.level],
            "region": np.concatenate(self.names),
            "parent": np.concatenate(parents),
        }

    def frame(self) -> DataFrame:
        """The `listing` as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.listing())

    def __repr__(self) -> str:
        sizes = zip(self.levels, self.tree.level_sizes, strict=True)
        return f"Hierarchy({', '.join(f'{level}: {size}' for level, size in sizes)})"


def _wrong_order(columns: Any, levels: Sequence[str]) -> str:
    """A hint if another order of the levels forms a hierarchy; else an empty text."""
    codes = {level: factor(columns[level])[0] for level in levels if level in columns}
    if len({column.size for column in codes.values()}) > 1 or any((c < 0).any() for c in codes.values()):
        return ""  # other messages report these errors
    order = sorted(codes, key=lambda level: int(codes[level].max()))  # by the number of regions
    if all(_one_each(codes[below], codes[above]) for above, below in pairwise(order)):
        fits = "reversed" if order == list(levels)[::-1] else "in another order"
        return f"are the levels {fits}? From coarse to fine, {listed(order)} would fit. If not, "
    return ""


def _one_each(region: Ints, above: Ints) -> bool:
    parent = np.empty(int(region.max()) + 1, dtype=np.int64)
    parent[region] = above
    return bool((parent[region] == above).all())


def as_names(names: Sequence[str]) -> tuple[str, ...]:
    """A tuple of names; a single `str` is one name, not a sequence of characters."""
    return (names,) if isinstance(names, str) else tuple(names)


def is_named(column: Series[Any]) -> bool:
    """Whether a column has categories: of many rows, each name is held and compared once."""
    return bool(column.dtype == "category")


def places_of(column: Series[Any], names: Names) -> Ints:
    """The position of each entry of a column among distinct names; -1 for others, and missing ones."""
    import pandas as pd

    if is_named(column) and len(column) < len(column.cat.categories):
        texts = column.cat.categories.array.take(column.cat.codes.to_numpy(), allow_fill=True)
        return places_of(pd.Series(texts), names)
    if is_named(column):
        of_name = np.append(places_of(pd.Series(column.cat.categories), names), -1)
        return np.asarray(of_name[column.cat.codes])  # the code of a missing entry is -1
    if isinstance(column.dtype, pd.StringDtype):  # pandas would make an object of each text
        import pyarrow as pa
        import pyarrow.compute as pc

        held = pa.array(column)
        found = pc.index_in(held, value_set=pa.array(names, held.type), skip_nulls=True)
        return np.asarray(found.fill_null(-1).to_numpy(), np.int64)
    known = pd.Index(names, dtype=object)
    at: Ints = known.get_indexer(column.to_numpy(object)).astype(np.int64)  # type: ignore[arg-type]
    return at


def factor(values: ArrayLike) -> tuple[Ints, Names]:
    """Codes of region names, and the distinct names as text in order of appearance; missing is -1.

    Only the distinct values are converted to text, so each row costs one hash.
    """
    import pandas as pd

    raw: Any = values
    if hasattr(raw, "to_pandas"):  # Arrow, Polars
        raw = raw.to_pandas()
    elif not hasattr(raw, "dtype"):  # NumPy would convert a NaN among strings to "nan"; object arrays do not
        raw = pd.Series(list(raw), dtype=object)
    codes, found = pd.factorize(raw)
    are_texts = isinstance(found.dtype, pd.StringDtype)  # iterating would make an Arrow scalar of each
    texts: Iterable[str | None] = map(_text, found.tolist() if are_texts else pd.Index(found))
    again, names = pd.factorize(np.array([*texts, None], dtype=object))  # None: for code -1, as above
    return again.astype(np.int64)[codes], np.asarray(names, dtype=object)


def _text(value: Any) -> str | None:
    """A region's name as text, or None if it is missing; `tables` has the same rules in SQL."""
    if isinstance(value, str):
        return normalize("NFC", value) or None
    if value is None or value != value:  # NaN and NaT differ from themselves
        return None
    if isinstance(value, datetime):
        clock = value.replace(tzinfo=None)
        return str(clock.date() if clock.time() == time() else clock)
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
