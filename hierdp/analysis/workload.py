"""Workloads of equally likely queries: one `Axis` per dimension."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hierdp.errors import InputError
from models import Tree
from models.arithmetic.arrays import Floats


@dataclass(frozen=True)
class Axis:
    """The queries along one dimension of n bins, numbered from 1: all ranges, all prefixes, or the whole.

    They enter only through K[s, t], the number of queries that contain both s and t:
    min(s, t)·(n + 1 − max(s, t)), n + 1 − max(s, t), or 1.
    """

    kind: Literal["range", "prefix", "whole"]

    def queries(self, n: int) -> int:
        """Number of queries."""
        return {"range": n * (n + 1) // 2, "prefix": n, "whole": 1}[self.kind]

    def length(self, n: int) -> float:
        """Mean number of bins of a query."""
        return {"range": (n + 2) / 3, "prefix": (n + 1) / 2, "whole": float(n)}[self.kind]

    def holding(self, n: int, first: int, last: int) -> int:
        """Number of queries that contain the bins first … last."""
        return {"range": first * (n + 1 - last), "prefix": n + 1 - last, "whole": 1}[self.kind]

    def apart(self, n: int) -> float:
        """The coefficient of −Σ f[s] f[t] |s − t| in fᵀKf, for weights f that sum to 0."""
        return {"range": (n + 1) / 2, "prefix": 0.5, "whole": 0.0}[self.kind]

    @property
    def off(self) -> float:
        """The coefficient of −(Σ s f[s])² in fᵀKf."""
        return 1.0 if self.kind == "range" else 0.0

    def root(self, n: int, middle: Any, distance: Any) -> Any:
        """πᵀKπ for a distribution π with mean `middle` and mean distance `distance` between two draws."""
        if self.kind == "range":
            return (n + 1) * (middle - distance / 2) - middle * middle
        return n + 1 - middle - distance / 2 if self.kind == "prefix" else 1.0

    def gram(self, n: int) -> Floats:
        """K as a matrix; shape (n, n)."""
        s = np.arange(1.0, n + 1)
        low, high = np.minimum.outer(s, s), n + 1 - np.maximum.outer(s, s)
        return np.asarray({"range": low * high, "prefix": high, "whole": np.ones((n, n))}[self.kind])


RANGE, PREFIX, WHOLE = Axis("range"), Axis("prefix"), Axis("whole")


def level_sizes(bins: int, branching: int) -> list[int]:
    """Nodes of each level along one dimension, from the leaves to the root.

    Raises `InputError` if there are no bins, or the branching factor is below 2.

    >>> level_sizes(10, 4)
    [10, 3, 1]
    >>> level_sizes(1, 2)
    [1, 1]
    """
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}")
    if branching < 2:
        raise InputError(f"the branching factor must be at least 2, got {branching}")
    sizes = [bins, -(-bins // branching)]  # even a single bin has its own level below the root
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // branching))
    return sizes


def height(bins: int, branching: int) -> int:
    """The number of measured levels, h = ⌈log_b n⌉, which excludes the root; 1 for a single bin."""
    return len(level_sizes(bins, branching)) - 1


def range_tree(bins: int, branching: int, dimensions: int = 1) -> Tree:
    """The hierarchy of Qardaji, Yang & Li 2013 over bins^dimensions cells; each level is in C order.

    >>> range_tree(10, 4)
    Tree(nodes per level: 1, 3, 10)
    >>> range_tree(3, 2, dimensions=2).levels[1]
    array([0, 0, 1, 0, 0, 1, 2, 2, 3])
    """
    sizes = level_sizes(bins, branching)
    levels = []
    for below, above in pairwise(sizes):
        along = np.arange(below) // branching
        parents = along
        for _ in range(dimensions - 1):
            parents = np.add.outer(parents * above, along)
        levels.append(parents.ravel())
    return Tree(levels[::-1])
