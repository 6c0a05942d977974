"""The tree of regions, as one array of parent positions per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.arithmetic.arrays import Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree in level order.

    Nodes are numbered level by level: the root is 0, then come the nodes of level 1 in their order, then
    those of level 2, and so on. A node without children is a leaf, at any level, so a tree may be
    ragged.

    Parameters
    ----------
    levels : sequence of int arrays
        ``levels[k][i]`` is the *position within level k* of the parent of node ``i`` of level ``k + 1``
        (level 0 holds the root alone, so ``levels[0]`` is all zeros).

    Raises
    ------
    ValueError
        If a parent position points outside the level above, or a level is empty.

    Examples
    --------
    >>> tree = Tree([[0, 0], [0, 0, 1]])
    >>> tree
    Tree(nodes per level: 1, 2, 3)
    >>> tree.parent
    array([-1,  0,  0,  1,  1,  2])
    >>> tree.leaves
    array([3, 4, 5])
    >>> tree.sum_up(np.array([1, 2, 3]))
    array([6, 3, 3, 1, 2, 3])
    """

    levels: Sequence[ArrayLike]

    def __post_init__(self) -> None:
        above, checked = 1, []
        for number, level in enumerate(self.levels, start=1):
            parents = np.asarray(level)
            if parents.ndim != 1 or parents.size == 0:
                raise ValueError(
                    f"level {number} must be a non-empty one-dimensional array of parent positions, "
                    f"got shape {parents.shape}"
                )
            if not np.issubdtype(parents.dtype, np.integer):
                raise ValueError(f"level {number}: parent positions must be integers, got {parents.dtype}")
            parents = parents.astype(np.int64)
            wrong = np.flatnonzero((parents < 0) | (parents >= above))
            if wrong.size:
                raise ValueError(
                    f"level {number}, node {wrong[0]}: parent position {parents[wrong[0]]} is not in "
                    f"0 … {above - 1}, the nodes of level {number - 1}"
                )
            parents.flags.writeable = False
            checked.append(parents)
            above = parents.size
        object.__setattr__(self, "levels", tuple(checked))

    @cached_property
    def level_sizes(self) -> Ints:
        """Number of nodes of each level, root first; shape (depth + 1,)."""
        return np.array([1, *(np.size(level) for level in self.levels)], dtype=np.int64)

    @cached_property
    def level_start(self) -> Ints:
        """First node of each level, then the number of nodes; shape (depth + 2,)."""
        return np.concatenate([[0], np.cumsum(self.level_sizes)]).astype(np.int64)

    @property
    def depth(self) -> int:
        """Number of levels below the root."""
        return len(self.levels)

    @property
    def size(self) -> int:
        """Number of nodes, the root included."""
        return int(self.level_start[-1])

    @cached_property
    def parent(self) -> Ints:
        """Parent of each node, -1 for the root; shape (size,)."""
        start = self.level_start
        below = [np.asarray(level) + start[k] for k, level in enumerate(self.levels)]
        return np.concatenate([np.array([-1]), *below]).astype(np.int64)

    @cached_property
    def level(self) -> Ints:
        """Level of each node; shape (size,)."""
        return np.repeat(np.arange(self.depth + 1), self.level_sizes)

    @cached_property
    def children(self) -> tuple[Ints, Ints]:
        """``(start, child)``: the children of node r are ``child[start[r]:start[r + 1]]``, in order."""
        child = 1 + np.argsort(self.parent[1:], kind="stable")
        counts = np.bincount(self.parent[1:], minlength=self.size)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), child.astype(np.int64)

    @cached_property
    def branching(self) -> Ints | None:
        """Children of each node of a level, shape (depth,), if all have equally many, in order; else None."""
        sizes = self.level_sizes
        each = sizes[1:] // sizes[:-1]
        regular = all(
            np.array_equal(level, np.repeat(np.arange(above), b))
            for level, above, b in zip(self.levels, sizes[:-1], each, strict=True)
        )
        return each if regular else None

    @cached_property
    def most_children(self) -> int:
        """The largest number of children of a node."""
        each = np.diff(self.children[0]) if self.branching is None else self.branching
        return int(each.max(initial=0))

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without children, in order."""
        return np.flatnonzero(np.diff(self.children[0]) == 0)

    @cached_property
    def internal(self) -> Ints:
        """The nodes with children, in order."""
        return np.flatnonzero(np.diff(self.children[0]) > 0)

    def nodes_of(self, level: int) -> slice:
        """The nodes of a level, as a slice of the node axis."""
        return slice(int(self.level_start[level]), int(self.level_start[level + 1]))

    def heaviest(self, weights: Ints) -> int:
        """The sum of each level's largest weight, at least that of any path from the root."""
        return sum(int(weights[self.nodes_of(level)].max()) for level in range(self.depth + 1))

    def sum_up(self, leaf_values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Counts of every node from those of the leaves.

        Parameters
        ----------
        leaf_values : array, shape (leaves, ...)
            One row per leaf, in the order of `leaves`.

        Returns
        -------
        array, shape (size, ...), of the same dtype
        """
        out = np.zeros((self.size, *leaf_values.shape[1:]), dtype=leaf_values.dtype)
        out[self.leaves] = leaf_values
        self.add_up(out)
        return out

    def add_up(self, values: NDArray[Any]) -> None:
        """Add the children's rows to each node's row, in place, level by level; shape (size, ...)."""
        if self.branching is not None:
            for level in range(self.depth - 1, -1, -1):
                values[self.nodes_of(level)] += self.sums_at(level, values[self.nodes_of(level + 1)])
            return
        start, child = self.children
        cuts = np.searchsorted(self.internal, self.level_start)
        for level in range(self.depth - 1, -1, -1):
            nodes = self.internal[cuts[level] : cuts[level + 1]]
            first, end = start[nodes[0]], start[nodes[-1] + 1]
            rows = values[child[first:end]]
            values[nodes] += np.add.reduceat(rows, start[nodes] - first, axis=0, dtype=values.dtype)

    def sums_at(self, level: int, below: NDArray[Any]) -> NDArray[Any]:
        """For each node of a level, the sum over its children's rows; shape (nodes of the level, ...)."""
        if self.branching is not None:
            return sums_of(below, int(self.branching[level]))
        sums = np.zeros((int(self.level_sizes[level]), *below.shape[1:]), below.dtype)
        np.add.at(sums, np.asarray(self.levels[level]), below)
        return sums

    def consistent(self, x: NDArray[Any], least: Any = None, most: Any = None) -> NDArray[Any]:
        """The consistent counts beside x: its leaves within their bounds, and the sums over them.

        - x, float array, shape (size, ...)
        - least, most, number, or array of the shape of the leaves' counts, optional
        """
        leaves = x[self.leaves]
        if least is not None:
            np.maximum(leaves, np.asarray(least, float), out=leaves)
        if most is not None:
            np.minimum(leaves, np.asarray(most, float), out=leaves)
        return np.asarray(self.sum_up(leaves))

    def child_sums(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """For each internal node, the sum of its children's rows; shape (internal, ...)."""
        start, child = self.children
        return np.asarray(np.add.reduceat(values[child], start[self.internal], axis=0))

    @classmethod
    def random(cls, rng: np.random.Generator, depth: int, branching: int, ragged: bool = False) -> Tree:
        """A tree of the given depth whose nodes have 1 … `branching` children (or none, if ragged)."""
        levels, above = [], 1
        for _ in range(depth):
            counts = rng.integers(1, branching + 1, size=above)
            if ragged and above > 1:
                counts[rng.integers(0, above)] = 0
            parents = np.repeat(np.arange(above), counts)
            if rng.random() < 0.5:
                parents = rng.permutation(parents)
            levels.append(parents)
            above = parents.size
        return cls(levels)

    def __repr__(self) -> str:
        return f"Tree(nodes per level: {', '.join(map(str, self.level_sizes))})"


FEW = 8
"""Up to so many rows, it is fastest to add up one after another."""


def sums_of(rows: NDArray[Any], many: int) -> NDArray[Any]:
    """The sum of every `many` consecutive rows."""
    if many > FEW:
        sums: NDArray[Any] = rows.reshape(-1, many, *rows.shape[1:]).sum(axis=1, dtype=rows.dtype)
        return sums
    sums = rows[::many].copy()
    for k in range(1, many):
        sums += rows[k::many]
    return sums
