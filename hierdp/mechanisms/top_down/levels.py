"""The levels of a table of counts, as a tree that contains only the nodes that are needed.

A table with one hierarchy per axis (such as origin and destination) is a tree: the root has the total, and
each further level refines one axis by one of its levels, the axes taking turns. One sort makes a tree from
its leaves. The level below a released one consists of the children of its positive nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms.top_down.zeros import Zeros
from hierdp.tables import Flows
from models import Tree
from models.arithmetic.arrays import Ints


@dataclass(frozen=True, eq=False)
class Level:
    """Some nodes of one level: their positions along each axis, and their counts.

    - depths: the level reached on each axis.
    - places, int64 array, shape (n, axes): positions within those levels.
    - counts, int64 array, shape (n,)
    """

    depths: tuple[int, ...]
    places: Ints
    counts: Ints

    @property
    def shown(self) -> Ints:
        """The nodes with a row in a release: those with a positive count, and the root."""
        return np.flatnonzero(self.counts) if any(self.depths) else np.arange(1)


def root(axes: Sequence[Hierarchy], count: int) -> Level:
    """The level above all others."""
    return Level((0,) * len(axes), np.zeros((1, len(axes)), np.int64), np.array([count], np.int64))


def refinements(data: Flows, first: str | None) -> list[int]:
    """The axis that each level refines: in turns from `first`, skipping axes without a further level."""
    if first is not None and first not in data.axis_names:
        raise InputError(unknown_name(first, data.axis_names, "there is no axis"))
    start = len(data.axes) - 1 if first is None else data.axis_names.index(first)
    turns = [(start + i) % len(data.axes) for i in range(len(data.axes))]
    deepest = max(axis.tree.depth for axis in data.axes)
    return [a for depth in range(deepest) for a in turns if depth < data.axes[a].tree.depth]


def depths_of(axes: Sequence[Hierarchy], order: Sequence[int]) -> list[tuple[int, ...]]:
    """The level reached on each axis at each level of the tree, the root's included."""
    reached = [(0,) * len(axes)]
    for axis in order:
        reached.append(tuple(d + (i == axis) for i, d in enumerate(reached[-1])))
    return reached


ANY_NUMBER = 2**31
"""A number of places larger than any person's number of trips; see `Unit.trips`."""


def finest_places(data: Flows, depths: Sequence[int]) -> int:
    """The largest number of different finest places of trips that share a node at these depths.

    Without an unknown region, a place is a finest cell, so this is the number of finest cells in the largest
    node. An unknown region stands for any number of places, and every level has one. So its cells, including
    the finest, may contain all trips of a person, even if these differ in the table.

    - data: only the axes and the name of the unknown region are used.
    - depths: the level reached on each axis.
    """
    if data.unknown is not None:
        return ANY_NUMBER
    most = 1
    for axis, depth in zip(data.axes, depths, strict=True):
        leaves = axis.tree.sum_up(np.ones(axis.tree.leaves.size, dtype=np.int64))
        most *= int(leaves[axis.tree.nodes_of(depth)].max())
    return most


def finest_cells_of(axes: Sequence[Hierarchy], level: Level) -> Ints:
    """The number of finest cells in each node of a level; shape (n,)."""
    held = np.ones(level.counts.size, dtype=np.int64)
    for i, (axis, depth) in enumerate(zip(axes, level.depths, strict=True)):
        leaves = axis.tree.sum_up(np.ones(axis.tree.leaves.size, dtype=np.int64))
        held *= np.asarray(leaves[axis.tree.nodes_of(depth)])[level.places[:, i]]
    return held


@dataclass(frozen=True, eq=False)
class Children:
    """All children, along one axis, of the nodes of a level: node i's are ``offsets[i]:offsets[i + 1]``.

    Structural zeros are not among them. Only their number is stored; `level` describes those that are kept.
    """

    tree: Tree
    above: Level
    axis: int
    zeros: Zeros | None = None

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The level reached on each axis by the children."""
        return tuple(d + (i == self.axis) for i, d in enumerate(self.above.depths))

    @cached_property
    def _all(self) -> Ints:
        """The first child of each node, if structural zeros are counted."""
        start, _ = self.tree.children
        number = start[self._node + 1] - start[self._node]
        return np.concatenate([[0], np.cumsum(number)]).astype(np.int64)

    @cached_property
    def _possible(self) -> Ints | None:
        """The positions, among all children, of those that are not structural zeros; None if all are."""
        if self.zeros is None:
            return None
        impossible = self.zeros.among(self.depths, self._places(np.arange(self._all[-1])))
        return np.flatnonzero(~impossible) if impossible.any() else None

    @cached_property
    def offsets(self) -> Ints:
        """The first child of each node."""
        if self._possible is None:
            return self._all
        return np.searchsorted(self._possible, self._all).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of children."""
        return int(self.offsets[-1])

    def level(self, kept: Ints, counts: Ints) -> Level:
        """The children at these positions, in ascending order, with their counts."""
        return Level(
            self.depths, self._places(kept if self._possible is None else self._possible[kept]), counts
        )

    def at(self, parents: Ints, ranks: Ints) -> Ints:
        """The positions of children by their parent's position and their rank among its possible children.

        -1 where the parent's position is. No child is a structural zero.
        """
        found = np.where(parents >= 0, self._all[parents] + ranks, -1)
        if self._possible is not None:
            found = np.where(found >= 0, np.searchsorted(self._possible, found), -1)
        return found

    def _places(self, among_all: Ints) -> Ints:
        """Positions within the levels, shape (n, axes), of children numbered with structural zeros."""
        start, child = self.tree.children
        # Every node above the last level has a child, so offsets increase strictly and identify the parent.
        parent = np.searchsorted(self._all, among_all, side="right") - 1
        places = self.above.places[parent]
        which = start[self._node[parent]] + among_all - self._all[parent]
        places[:, self.axis] = child[which] - self.tree.level_start[self.depths[self.axis]]
        return places

    @cached_property
    def _node(self) -> Ints:
        tree, depth = self.tree, self.above.depths[self.axis]
        return np.asarray(self.above.places[:, self.axis] + tree.level_start[depth])


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one level that contain at least one of some leaves.

    - level: the nodes with the sums of their leaves.
    - parent, int64 array, shape (n,): position among the `Nodes` of the level above.
    - rank, int64 array, shape (n,): the node's position among its parent's possible children.
    """

    level: Level
    parent: Ints
    rank: Ints

    def among(self, children: Children, parents: Ints) -> Ints:
        """The position of each node among the children of another set of nodes; -1 if its parent is absent.

        `parents` are the positions of the level above in that set, -1 if absent.
        """
        return children.at(parents[self.parent], self.rank)


def nodes_above(axes: Sequence[Hierarchy], order: Sequence[int], cells: Ints, counts: Ints) -> list[Nodes]:
    """For each level below the root, the nodes that contain a cell, with the sums of their cells.

    - order: the axis that each level refines; see `refinements`.
    - cells, int64 array, shape (n, axes): positions within the last levels; distinct.
    - counts, int64 array, shape (n,)
    """
    reached = depths_of(axes, order)[1:]
    columns = _ancestors(axes, order, cells)
    along = _sorted([columns[i] for i in range(len(order))], [axes[a].tree for a in order], reached, order)
    counts = counts[along]
    new = np.zeros(counts.size, dtype=bool)
    new[:1] = True
    above, found = np.zeros(counts.size, dtype=np.int64), []
    for number, (axis, depths) in enumerate(zip(order, reached, strict=True)):
        column = columns[number][along]
        new[1:] |= column[1:] != column[:-1]
        starts = np.flatnonzero(new)
        sums = np.add.reduceat(counts, starts) if starts.size else counts
        places = np.zeros((starts.size, len(axes)), dtype=np.int64)
        for i, depth in enumerate(depths):
            if depth:
                places[:, i] = columns[_level_of(order, i, depth)][along[starts]]
        tree = axes[axis].tree
        node = places[:, axis] + tree.level_start[depths[axis]]
        found.append(Nodes(Level(depths, places, sums), above[starts], _ranks(tree)[node]))
        above = np.cumsum(new) - 1
    return found


def _level_of(order: Sequence[int], axis: int, depth: int) -> int:
    return [level for level, refined in enumerate(order) if refined == axis][depth - 1]


def _ancestors(axes: Sequence[Hierarchy], order: Sequence[int], cells: Ints) -> list[Ints]:
    columns: dict[int, Ints] = {}
    for i, axis in enumerate(axes):
        place = cells[:, i]
        for depth in range(axis.tree.depth, 0, -1):
            columns[_level_of(order, i, depth)] = place
            place = np.asarray(axis.tree.levels[depth - 1])[place]
    return [columns[level] for level in range(len(order))]


def _sorted(
    columns: Sequence[Ints], trees: Sequence[Tree], reached: Sequence[tuple[int, ...]], order: Sequence[int]
) -> Ints:
    """The order of the cells in the tree; columns are packed into as few keys as 62 bits allow."""
    keys: list[Ints] = []
    room = 1
    for column, tree, depths, axis in zip(columns, trees, reached, order, strict=True):
        size = int(tree.level_sizes[depths[axis]])
        if keys and room * size < 2**62:
            keys[-1], room = keys[-1] * size + column, room * size
        else:
            keys, room = [*keys, column], size
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _ranks(tree: Tree) -> Ints:
    start, child = tree.children
    ranks = np.zeros(tree.size, dtype=np.int64)
    ranks[child] = np.arange(child.size) - start[tree.parent[child]]
    return ranks


def level_name(data: Flows, depths: Sequence[int]) -> str:
    """``origin state × destination county``."""
    named = [
        f"{name} {axis.levels[d]}"
        for name, axis, d in zip(data.axis_names, data.axes, depths, strict=True)
        if d
    ]
    return " × ".join(named)


def level_query(data: Flows, depths: Sequence[int]) -> str:
    """The measurement of a level, as named in the budget."""
    return f"counts by {level_name(data, depths)}"


def table(data: Flows, levels: Sequence[Level]) -> Any:
    """A DataFrame with one row for each node with a positive count, and one for the root."""
    import pandas as pd

    parts = []
    for number, level in enumerate(levels):
        there = level.shown
        part: dict[str, Any] = {"level": np.full(there.size, number)}
        for i, (name, axis) in enumerate(zip(data.axis_names, data.axes, strict=True)):
            part[f"{name}_level"] = axis.levels[level.depths[i]]
            names = pd.Series(axis.names[level.depths[i]]).array
            part[name] = names.take(level.places[there, i])
        part["count"] = level.counts[there]
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def refuse_clashes(axis_names: Sequence[str]) -> None:
    """Refuse names of axes that clash with columns: each axis has two columns in a release.

    Raises `InputError` if two columns would have the same name.
    """
    columns = ["level", "count", *(f"{name}_level" for name in axis_names)]
    for name in axis_names:
        if name in columns:
            raise InputError(
                f"an axis cannot be called {name!r}: a column of the release has that name; choose another"
            )


@dataclass(frozen=True, eq=False)
class Axes:
    """What is public of a table of flows.

    - data: its axes and the unknown region, without counts.
    - total: None if it is not public.
    """

    data: Flows
    total: int | None

    @classmethod
    def of(cls, data: Flows, total: int | None) -> Axes:
        """Of a table, without its counts."""
        return cls(Flows(data.axes, data.axis_names, data.cells[:0], data.counts[:0], data.unknown), total)

    @property
    def regions(self) -> dict[str, Hierarchy]:
        """By axis."""
        return dict(zip(self.data.axis_names, self.data.axes, strict=True))
