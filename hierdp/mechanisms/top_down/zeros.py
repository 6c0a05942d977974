"""Structural zeros: cells that cannot be, such as trips from a place to itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.tables import Flows
from models.arithmetic.arrays import Flags, Ints


class Pair(NamedTuple):
    """Two axes, by position: no trip has the same finest place on both."""

    first: int
    second: int


@dataclass(frozen=True, eq=False)
class Zeros:
    """The nodes that contain structural zeros only. Public.

    A node is one if its region on both axes has a single finest place, and the same one. All other nodes have
    a finest cell that can be, so they can have any count.

    - unknown: the region for all places without a region. It stands for many places, so trips inside it can
      be.
    """

    axes: Sequence[Hierarchy]
    pair: Pair
    unknown: str | None = None

    def among(self, depths: Sequence[int], places: Ints) -> Flags:
        """Whether each node contains structural zeros only.

        - depths: the level reached on each axis.
        - places, int64 array, shape (n, axes): positions within those levels.
        """
        first, second = (self._only[side][depths[a]][places[:, a]] for side, a in enumerate(self.pair))
        return np.asarray((first == second) & (first >= 0))

    def number(self, depths: Sequence[int]) -> int:
        """How many of all nodes of a level contain structural zeros only."""
        first, second = (self._only[side][depths[a]] for side, a in enumerate(self.pair))
        both = np.intersect1d(first[first >= 0], second[second >= 0]).size
        others = (axis.tree.level_sizes[d] for axis, d in zip(self.axes, depths, strict=True))
        among = math.prod(int(size) for a, size in enumerate(others) if a not in self.pair)
        return both * among

    @cached_property
    def _only(self) -> tuple[list[Ints], list[Ints]]:
        """For each of both axes, level and region: the number of its finest place; -1 if it has several."""
        numbers = {name: i for i, name in enumerate(self.axes[self.pair.first].names[-1])}
        numbers.pop(self.unknown, None)
        found = []
        for axis in (self.axes[a] for a in self.pair):
            own = np.array([numbers.get(name, -1) for name in axis.names[-1]], np.int64)
            tree = axis.tree
            leaves, sums = tree.sum_up(np.ones_like(own)), tree.sum_up(own)
            only = np.where(np.asarray(leaves) == 1, np.asarray(sums), -1)
            found.append([only[tree.nodes_of(depth)] for depth in range(tree.depth + 1)])
        return found[0], found[1]


def zeros_of(text: str | None, data: Flows) -> Zeros | None:
    """The structural zeros that a text such as ``"origin=destination"`` describes.

    Raises `InputError` if it does not name two axes with a place in common, or the data contain such a cell.
    """
    if text is None:
        return None
    names = tuple(part.strip() for part in text.split("="))
    if len(data.axis_names) < 2:
        raise InputError("`zeros` names two axes, and this table has only one")
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(data.axis_names):
        raise InputError(
            f"`zeros` is {text!r}: give two of the axes {listed(data.axis_names)}, such as "
            f"{'='.join(data.axis_names[:2])}"
        )
    zeros = Zeros(data.axes, Pair(*(data.axis_names.index(name) for name in names)), data.unknown)
    depths = [axis.tree.depth for axis in data.axes]
    one, other = (set(data.axes[a].names[-1]) - {data.unknown} for a in zeros.pair)
    if not one & other:
        raise InputError(f"`zeros` is {text!r}, but no place is in both axes: are their names the same?")
    if zeros.among(depths, data.cells).any():
        raise InputError(
            f"the table has rows with the same place as {names[0]} and {names[1]}, which `zeros={text}` "
            "says cannot be: leave these rows out, or leave `zeros` out"
        )
    return zeros
