"""Columns that give the region of a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

from hierdp.counts.hierarchy import Hierarchy, as_names
from hierdp.errors import InputError, listed
from hierdp.tables.columns import Column, column_of, text_of
from hierdp.tables.sources import Table


@dataclass(frozen=True, eq=False)
class Prefixes(Sequence[str]):
    """Levels given by prefixes of one column of codes: a county's first two digits are its state.

    As a sequence, the names of the levels.

    Parameters
    ----------
    column : str
        Codes of the last level, as text, all of the same length.
    lengths : mapping of str to int
        For each level, from coarse to fine, its name and the number of leading characters of the code; the
        last level uses the whole code.

    Raises
    ------
    InputError
        If there are no lengths, or they do not increase from at least 1.

    Examples
    --------
    >>> list(Prefixes("fips", {"state": 2, "county": 5}))
    ['state', 'county']
    """

    column: str
    lengths: Mapping[str, int]

    def __post_init__(self) -> None:
        lengths = list(self.lengths.values())
        if not lengths:
            raise InputError("no prefixes: give each level's number of characters, such as state=2,county=5")
        if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in lengths):
            raise InputError(
                f"lengths of prefixes must be whole numbers of at least 1, got {listed(lengths)}"
            )
        if any(n >= after for n, after in pairwise(lengths)):
            raise InputError("prefixes must become longer from level to level, such as state=2,county=5")

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return list(self.lengths)[at]

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[str]:
        return iter(self.lengths)

    @property
    def length(self) -> int:
        """Number of characters of a whole code."""
        return list(self.lengths.values())[-1]


@dataclass(frozen=True)
class Axis:
    """The columns of a table that give the region of a row.

    Parameters
    ----------
    hierarchy : Hierarchy or None
        The regions. None: the regions in the data, which are then taken as public.
    columns : tuple of str
        The column of the region in the hierarchy's last level; without a hierarchy, the columns of all its
        levels from coarse to fine.
    prefixes : Prefixes, optional
        Instead of a column per level: how one column of codes gives all levels.

    Raises
    ------
    InputError
        If there is no column, or there are several with a hierarchy.
    """

    hierarchy: Hierarchy | None
    columns: tuple[str, ...]
    prefixes: Prefixes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_names(self.columns))
        if not self.columns:
            raise InputError("no column of regions; give the columns of the levels, from coarse to fine")
        if self.hierarchy is not None and len(self.columns) > 1:
            raise InputError(
                f"with a hierarchy, give one column, that of its last level, not {listed(self.columns)}"
            )

    @classmethod
    def of(cls, value: AxisLike) -> Axis:
        """An axis from itself, ``(hierarchy, column)``, `Prefixes`, or the columns of the levels.

        Raises
        ------
        InputError
            If it is none of these.
        """
        if isinstance(value, Axis):
            return value
        if isinstance(value, Hierarchy):
            raise InputError("with a hierarchy, give the column of its last level: (hierarchy, 'county')")
        if not isinstance(value, Sequence):
            raise InputError(
                f"an axis is the columns of its levels, from coarse to fine, or (hierarchy, column), not "
                f"of type {type(value).__name__}"
            )
        if isinstance(value, Prefixes):
            return cls(None, (value.column,), value)
        if not isinstance(value, str) and len(value) == 2 and isinstance(value[0], Hierarchy):
            return cls(value[0], as_names(value[1]))
        return cls(None, as_names(value))  # type: ignore[arg-type]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels given by the columns; with a hierarchy, the column of its last level."""
        return self.columns if self.prefixes is None else tuple(self.prefixes)

    def texts(self, table: Table) -> list[Column]:
        """The region of each of the levels, as text."""
        columns = [text_of(column_of(table, name)) for name in self.columns]
        if self.prefixes is None:
            return columns
        return [columns[0].substr(0, length) for length in self.prefixes.lengths.values()]


AxisLike = Axis | tuple[Hierarchy, str] | Sequence[str]
