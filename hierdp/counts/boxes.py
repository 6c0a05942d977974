"""Trees whose nodes are boxes of bins, and reading them from a released table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hierdp.errors import InputError
from models import Tree
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

FIRST, END = "first", "end"
"""Suffixes of an axis's columns in a released table: the bins of a node, excluding the end."""


@dataclass(frozen=True, eq=False)
class BoxTree:
    """A tree whose nodes are boxes of bins.

    - tree: all leaves are at the last level, one for each bin, in C order.
    - low, high, int64 arrays, shape (nodes, axes): a node contains the bins ``low[v] … high[v] − 1``, along
      each axis.
    """

    tree: Tree
    shape: tuple[int, ...]
    low: Ints
    high: Ints

    @property
    def bins(self) -> int:
        """Number of bins."""
        return prod(self.shape)


def tree_of_boxes(shape: tuple[int, ...], level: Ints, low: Ints, high: Ints) -> BoxTree:
    """Rebuild the tree from the boxes of its nodes, level by level, as in a written release.

    On each level the boxes are all the combinations of some cuts of each axis, in C order.

    Raises `InputError` if they are not the nodes of a tree.
    """
    parents: list[Ints] = []
    above: list[Ints] = []
    for k in range(int(level.max(initial=-1)) + 1):
        here = low[level == k]
        cuts = [np.unique(here[:, axis]) for axis in range(len(shape))]
        if len(here) != prod(cut.size for cut in cuts):
            raise InputError(f"the boxes of level {k} are not a grid: this is no released hierarchy")
        if k:
            at = [np.searchsorted(a, here[:, axis], "right") - 1 for axis, a in enumerate(above)]
            parents.append(np.ravel_multi_index(tuple(at), [a.size for a in above]).astype(np.int64))
        above = cuts
    if not parents or [cut.size for cut in above] != list(shape):
        raise InputError("the last level's boxes are not the bins: this is no released hierarchy")
    return BoxTree(Tree(parents), shape, low, high)


def boxes_of(table: DataFrame, shape: Sequence[int], names: Sequence[str]) -> BoxTree:
    """The tree of a released table with one row per node, over axes with these names and numbers of bins.

    Raises `InputError` if the rows are not the nodes of a tree.
    """
    low, high = (
        np.stack([table[f"{name}_{what}"].to_numpy(np.int64) for name in names], axis=1)
        for what in (FIRST, END)
    )
    return tree_of_boxes(tuple(shape), table["level"].to_numpy(), low, high)
