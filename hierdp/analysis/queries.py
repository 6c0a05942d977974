"""Workloads: the queries to prepare for, and each method's mean variance over them.

`Regular` is a product of all ranges, all prefixes, or the whole along each dimension; its means need no list
of queries. A list of queries is a `hierdp.analysis.explicit_workload.ExplicitWorkload`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis import grids, wavelet
from hierdp.analysis.workload import PREFIX, RANGE, WHOLE, Axis
from hierdp.errors import InputError
from models.arithmetic.arrays import Floats


class Queries(Protocol):
    """The interface of a workload. Variances have one entry per level, leaves first: shape (h,)."""

    @property
    def bins(self) -> int:
        """Number of bins along each dimension."""

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""

    def __str__(self) -> str:
        """A description in words."""

    def cells(self) -> float:
        """Mean number of cells of a query."""

    def nodes_used(self, branching: int) -> Floats:
        """Mean number of nodes of each level that a query uses without inference; shape (h,)."""

    def consistent(self, branching: int, variance: ArrayLike) -> float:
        """Mean variance of H_b^c."""

    def level_shares(self, branching: int, variance: ArrayLike) -> Floats:
        """The coefficient of each level's variance in that mean; shape (h,)."""

    def wavelet(self, epsilon: float) -> float:
        """Mean variance of Privelet."""

    def gram(self) -> tuple[Floats, int]:
        """WᵀW, shape (bins, bins), and the number of queries; one dimension only."""


@dataclass(frozen=True)
class Regular:
    """All ranges, all prefixes or the whole along each dimension.

    Examples
    --------
    >>> queries = Regular.ranges(16)
    >>> queries.cells(), round(queries.consistent(2, [32] * 4), 2)
    (6.0, 34.46)
    """

    bins: int
    axes: tuple[Axis, ...]

    @classmethod
    def ranges(cls, bins: int, dimensions: int = 1) -> Regular:
        """All ranges, or all boxes in d dimensions."""
        return cls(bins, (RANGE,) * dimensions)

    @classmethod
    def marginals(cls, bins: int, dimensions: int, ways: int) -> Regular:
        """All prefixes of all k-way marginals: [0, j₁] × … × [0, j_k] in any k dimensions, the others whole.

        The dimensions are alike, so the mean for one choice of k dimensions is the mean over all choices.

        Raises
        ------
        InputError
            If k is not in 1 … dimensions.
        """
        if not 1 <= ways <= dimensions:
            raise InputError(
                f"there are no {ways}-way marginals of {dimensions} dimensions; choose 1 … {dimensions}"
            )
        return cls(bins, (PREFIX,) * ways + (WHOLE,) * (dimensions - ways))

    @property
    def dimensions(self) -> int:
        """See `Queries`."""
        return len(self.axes)

    def __str__(self) -> str:
        kinds = [axis.kind for axis in self.axes]
        if "range" in kinds:
            return "all ranges" if self.dimensions == 1 else "all boxes"
        ways = kinds.count("prefix")
        return "all prefixes" if self.dimensions == 1 else f"all {ways}-way marginal prefixes"

    def cells(self) -> float:
        """See `Queries`."""
        return grids.flat(self.bins, 1.0, self.axes)

    def nodes_used(self, branching: int) -> Floats:
        """See `Queries`."""
        queries = math.prod(axis.queries(self.bins) for axis in self.axes)
        return np.array([used / queries for used in grids.nodes_used(self.bins, branching, self.axes)])

    def consistent(self, branching: int, variance: ArrayLike) -> float:
        """See `Queries`."""
        return grids.consistent(self.bins, branching, variance, self.axes)

    def level_shares(self, branching: int, variance: ArrayLike) -> Floats:
        """See `Queries`."""
        return grids.level_shares(self.bins, branching, variance, self.axes)

    def wavelet(self, epsilon: float) -> float:
        """See `Queries`."""
        return wavelet.mean_variance(self.bins, epsilon, self.axes)

    def gram(self) -> tuple[Floats, int]:
        """See `Queries`."""
        return self.axes[0].gram(self.bins), self.axes[0].queries(self.bins)
