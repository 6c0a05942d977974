"""Sums over regions and categories of a released table, whatever released it.

A table has rows for the regions of each level, along one hierarchy or several, and perhaps columns of
categories (sizes, attributes). A question such as ``county=Kings|Queens; size=1:4`` selects regions of each
hierarchy and categories of each column; its answer is the sum of these rows, on the coarsest level that has
such regions. Rows that a table leaves out are zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.labels import Labels, code_of, named
from hierdp.counts.layout import REGION, Layout, Selection
from hierdp.counts.rows import laid_out
from hierdp.errors import InputError, listed

if TYPE_CHECKING:
    pass


class Answer(NamedTuple):
    """The answer to a question.

    Attributes
    ----------
    estimate : int or float
    standard_error : float
        NaN if it is not known.
    level : int
        The level of the counts.
    cells : int
        The number of counts in the sum, with those of 0.
    """

    estimate: int | float
    standard_error: float
    level: int = 0
    cells: int = 1


class Chosen(NamedTuple):
    """Regions of one level of an axis, as a mask over that level."""

    level: int
    regions: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Questions:
    """Answers questions from a release's table, manifest and regions.

    Parameters
    ----------
    table : DataFrame or SizeTable
    settings : mapping
        As in the manifest.
    regions : mapping of str to Hierarchy
        As in the release, by axis.
    labels : mapping of str to str
        Names of codes, which questions may use in place of the codes.

    Raises
    ------
    InputError
        If the table has no regions.
    """

    table: Any
    settings: Mapping[str, Any]
    regions: Mapping[str, Hierarchy]
    labels: Labels = field(default_factory=dict)

    def __post_init__(self) -> None:
        axes = self._layout.axes
        if not axes or (set(axes) != set(self.regions)):
            raise InputError("its table has no regions: it answers ranges (--range)")

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.table, self.settings)

    @cached_property
    def categories(self) -> dict[str, list[str]]:
        """The categories of each column that has some, as text."""
        return laid_out(self.table).categories(self.settings)

    def ask(self, text: str) -> Answer:
        """The answer to a question such as ``county=Kings|Queens; size=1:4``.

        A name of a level selects regions of it; a name of an axis (``region``, if there is one), regions of
        any one level; ``AXIS.LEVEL`` a level of an axis. Columns that are not named are summed over.

        Raises
        ------
        InputError
            If there is no such column, region or category; the message names it.
        """
        return self._sum(self.selection(text))

    def selection(self, text: str) -> Selection:
        """What a question adds up; see `ask`."""
        chosen: dict[str, Chosen] = {}
        kept: dict[str, list[str]] = {}
        for column, names in parsed(text).items():
            if column in self.categories:
                kept[column] = self._kept(column, names, text)
                continue
            axis, levels = self._place(column, text)
            if axis in chosen:
                raise InputError(f"{text!r}: {axis!r} is selected twice; name one level of it")
            chosen[axis] = self._chosen(axis, levels, names, text)
        needed = {axis: part.level for axis, part in chosen.items()}
        level = next(
            k
            for k in range(self._layout.levels(self.regions))
            if all(self._layout.depth(axis, k) >= depth for axis, depth in needed.items())
        )
        return Selection(
            level, {axis: self._mask(axis, level, chosen.get(axis)) for axis in self.regions}, kept
        )

    def _place(self, column: str, text: str) -> tuple[str, range]:
        """The axis that a column selects from, and its levels."""
        if len(self.regions) == 1 and column == REGION:
            column = next(iter(self.regions))
        if column in self.regions:
            return column, range(len(self.regions[column].levels))
        found = [
            (axis, level)
            for axis, hierarchy in self.regions.items()
            for level, name in enumerate(hierarchy.levels)
            if column in (name, f"{axis}.{name}")
        ]
        if not found:
            there = [*self.regions, *self.categories]
            there += [self._column(axis, k) for axis in self.regions
                      for k in range(1, len(self.regions[axis].levels))]  # fmt: skip
            raise InputError(f"{text!r}: no column {column!r}; there are {listed(dict.fromkeys(there), 20)}")
        if len(found) > 1:
            which = [f"{axis}.{column}" for axis, _ in found]
            raise InputError(f"{text!r}: {column!r} is a level of several axes; write {listed(which)}")
        axis, level = found[0]
        return axis, range(level, level + 1)

    def _column(self, axis: str, level: int) -> str:
        """The name of a level as a question gives it: with its axis if it may be another column."""
        name = self.regions[axis].levels[level]
        columns = [*self.regions, *self.categories, *([REGION] if len(self.regions) == 1 else [])]
        columns += [level for hierarchy in self.regions.values() for level in hierarchy.levels]
        return name if columns.count(name) == 1 else f"{axis}.{name}"

    def _chosen(self, axis: str, levels: Sequence[int], names: list[str], text: str) -> Chosen:
        hierarchy = self.regions[axis]
        there = {level: set(hierarchy.names[level]) for level in levels}
        every = sorted(set().union(*there.values()))
        names = [self._code(name, every, text) for name in names]
        fitting = [level for level in levels if there[level] >= set(names)]
        if len(fitting) != 1:
            if fitting:
                joined = "|".join(names)
                which = [f"{self._column(axis, level)}={joined}" for level in fitting]
                raise InputError(f"{text!r}: {joined!r} is on several levels; write {listed(which, 20)}")
            raise InputError(f"{text!r}: {listed(names)} are not regions of one level")
        return Chosen(fitting[0], np.isin(hierarchy.names[fitting[0]], names))

    def _kept(self, column: str, names: list[str], text: str) -> list[str]:
        known = self.categories[column]
        found: list[str] = []
        for name in names:
            if column == "size" and ":" in name:
                found += _sizes(name, known, text)
            else:
                found.append(self._code(name, known, text))
        return list(dict.fromkeys(found))

    def _code(self, name: str, known: Sequence[str], text: str) -> str:
        try:
            return code_of(name, known, self.labels)
        except InputError as wrong:
            raise InputError(f"{text!r}: {wrong.marked}") from None

    def _sum(self, selection: Selection) -> Answer:
        level, masks, kept = selection
        cells = math.prod(int(mask.sum()) for mask in masks.values())
        cells *= math.prod(len(kept.get(name, known)) for name, known in self.categories.items())
        found, error = laid_out(self.table).summed(selection, self.settings, self.regions, cells)
        return Answer(found, error, level, cells)

    def _mask(self, axis: str, level: int, part: Chosen | None) -> NDArray[np.bool_]:
        """The selected regions of an axis at the depth that a level of the table has reached."""
        hierarchy, depth = self.regions[axis], self._layout.depth(axis, level)
        if part is None:
            return np.ones(int(hierarchy.tree.level_sizes[depth]), dtype=bool)
        mask = part.regions
        for above in range(part.level, depth):
            mask = mask[np.asarray(hierarchy.tree.levels[above])]
        return mask


def _sizes(name: str, known: Sequence[str], text: str) -> list[str]:
    """The sizes of a range, which excludes its upper end; an omitted end is that of all sizes."""
    low, _, high = (part.strip() for part in name.partition(":"))
    if not all(end.isdigit() or not end for end in (low, high)):
        raise InputError(f"{text!r}: write sizes as whole numbers, LOW:HIGH")
    least, end = int(low or 0), int(high) if high else int(known[-1]) + 1
    if end < least:
        raise InputError(f"{text!r}: {high} comes before {low}")
    return [size for size in known if least <= int(size) < end]


def with_names(text: str, labels: Labels) -> str:
    """A question with the names of its codes, and the codes of its names.

    Examples
    --------
    >>> with_names("county=06037|06073; size=1:4", {"06037": "Los Angeles", "06073": "San Diego"})
    'county=06037 Los Angeles|06073 San Diego; size=1:4'
    """
    code_of = {name: code for code, name in labels.items()}

    def both(name: str) -> str:
        return named(name if name in labels else code_of.get(name, name), labels)

    return "; ".join(f"{column}={'|'.join(map(both, names))}" for column, names in parsed(text).items())


def parsed(text: str) -> dict[str, list[str]]:
    """The names that a question selects, by column.

    Raises
    ------
    InputError
        If a part is not ``COLUMN=NAME``, or a column is named twice.

    Examples
    --------
    >>> parsed("county=Kings|Queens; size=1:4")
    {'county': ['Kings', 'Queens'], 'size': ['1:4']}
    """
    found: dict[str, list[str]] = {}
    for part in normalize("NFC", text).split(";"):
        if not part.strip():
            continue
        column, equals, names = part.partition("=")
        column = column.strip()
        values = [name.strip() for name in names.split("|")]
        if not equals or not column or not all(values):
            raise InputError(f"{text!r}: write COLUMN=NAME or COLUMN=NAME|NAME, separated by semicolons")
        if column in found:
            raise InputError(f"{text!r}: {column!r} is named twice; join its names by |")
        found[column] = values
    return found
