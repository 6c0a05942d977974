"""A workload given as a list of queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis import wavelet
from hierdp.analysis.consistent import ConsistentVariance
from hierdp.analysis.regular import of_ranges
from hierdp.analysis.workload import level_sizes, range_tree
from hierdp.errors import InputError
from models.arithmetic.arrays import Floats, Ints

WORK = 1 << 31
"""Limit on cells × boxes for given boxes of two or more dimensions."""


@dataclass(frozen=True, eq=False)
class ExplicitWorkload:
    """A list of equally likely ranges or boxes.

    Parameters
    ----------
    bins : int
        Number of bins along each dimension; they are numbered from 0.
    start, stop : int arrays, shape (queries,) or (queries, dimensions)
        Each box contains the bins ``start … stop − 1`` along each dimension.

    Raises
    ------
    InputError
        If there are no queries, or a query is empty or goes beyond the bins.
    """

    bins: int
    start: ArrayLike
    stop: ArrayLike

    def __post_init__(self) -> None:
        start, stop = np.asarray(self.start), np.asarray(self.stop)
        if start.shape != stop.shape or start.ndim not in (1, 2) or start.size == 0:
            raise InputError(
                "start and stop of ranges must have the same shape and at least one entry, "
                f"got {start.shape} and {stop.shape}"
            )
        for name, ends in (("start", start), ("stop", stop)):
            if not np.issubdtype(ends.dtype, np.integer):
                raise InputError(f"the {name} of each range must be an integer, got {ends.dtype}")
        start, stop = (ends.reshape(len(ends), -1).astype(np.int64) for ends in (start, stop))
        wrong = np.flatnonzero(((start < 0) | (start >= stop) | (stop > self.bins)).any(axis=1))
        if wrong.size:
            r = wrong[0]
            raise InputError(
                f"range {r} is {_box_text(start[r], stop[r])}: it must contain a bin and lie within "
                f"0 … {self.bins - 1} (a stop is the first bin after the range)"
            )
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "stop", stop)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """``(start, stop)``, shape (queries, dimensions) each."""
        return np.asarray(self.start), np.asarray(self.stop)

    @property
    def dimensions(self) -> int:
        """See `Queries`."""
        return int(self.ends[0].shape[1])

    def __str__(self) -> str:
        count = len(self.ends[0])
        return f"the mean of {count:,} given {'ranges' if self.dimensions == 1 else 'boxes'}"

    def cells(self) -> float:
        """See `Queries`."""
        start, stop = self.ends
        return float(np.mean(np.prod((stop - start).astype(float), axis=1)))

    def nodes_used(self, branching: int) -> Floats:
        """See `Queries`."""
        low, high = self.ends
        sizes = level_sizes(self.bins, branching)
        found = []
        for below, above in pairwise(sizes):
            own = np.prod((high - low).astype(float), axis=1)
            # Parents that lie entirely inside the box; the last one may be short.
            up = -(-low // branching)
            top = np.maximum(np.where(high == below, above, high // branching), up)
            covered = np.minimum(top * branching, below) - np.minimum(up * branching, below)
            parents = np.prod(covered.astype(float), axis=1) if above > 1 else 0.0
            found.append(float(np.mean(own - parents)))
            low, high = up, top
        return np.array(found)

    def consistent(self, branching: int, variance: ArrayLike) -> float:
        """See `Queries`."""
        variance, sizes = np.asarray(variance, float), level_sizes(self.bins, branching)
        if variance.shape != (len(sizes) - 1,):
            raise ValueError(
                f"variance has shape {variance.shape}, expected ({len(sizes) - 1},): one per level"
            )
        if not np.isfinite(variance[0]):
            above = self._in_groups(branching) if variance.size > 1 else None
            return np.inf if above is None else above.consistent(branching, variance[1:])
        start, stop = self.ends
        if self.dimensions == 1:
            return float(np.mean(of_ranges(self.bins, branching, 1 / variance, start[:, 0], stop[:, 0])))
        cells = self.bins**self.dimensions
        if cells * len(start) > WORK:
            raise InputError(
                f"{len(start):,} boxes over {cells:,} cells are too many to analyse; give fewer boxes"
            )
        tree = range_tree(self.bins, branching, self.dimensions)
        noise = ConsistentVariance(tree, np.append(np.inf, np.repeat(variance[::-1], tree.level_sizes[1:])))
        return float(np.mean([noise.of_query(inside.ravel()) for inside in self._insides()]))

    def level_shares(self, branching: int, variance: ArrayLike) -> Floats:
        """See `Queries`; for boxes by finite differences, to about six digits.

        Raises `ValueError` if a query needs a level whose variance is infinite.
        """
        variance = np.asarray(variance, float)
        if not np.isfinite(variance[0]):
            above = self._in_groups(branching) if variance.size > 1 else None
            if above is None:
                raise ValueError("a query has an infinite variance: it needs a level that is not measured")
            return np.append(0.0, above.level_shares(branching, variance[1:]))
        if self.dimensions == 1:
            precision, (start, stop) = 1 / variance, (ends[:, 0] for ends in self.ends)
            moved = [
                np.imag(np.mean(of_ranges(self.bins, branching, each, start, stop))) / 1e-30
                for each in precision * (1 + 1e-30j * np.eye(precision.size))
            ]
            return np.maximum(-np.array(moved) * precision, 0.0)
        found = np.zeros(variance.size)
        for i in np.flatnonzero(np.isfinite(variance)):
            step = np.ones(variance.size)
            step[i] = 1 + 1e-3
            up, down = (self.consistent(branching, moved) for moved in (variance * step, variance / step))
            found[i] = (up - down) / (variance[i] * (step[i] - 1 / step[i]))
        return np.maximum(found, 0.0)

    def _in_groups(self, branching: int) -> ExplicitWorkload | None:
        """The same queries over the nodes above the bins; None if one of them contains a part of a node."""
        start, stop = self.ends
        if np.any(start % branching) or np.any((stop % branching > 0) & (stop < self.bins)):
            return None
        return ExplicitWorkload(-(-self.bins // branching), start // branching, -(-stop // branching))

    def wavelet(self, epsilon: float) -> float:
        """See `Queries`."""
        return float(np.mean(wavelet.of_ranges(self.bins, epsilon, *self.ends)))

    def gram(self) -> tuple[Floats, int]:
        """See `Queries`."""
        inside = np.array([inside.ravel() for inside in self._insides()])
        return inside.T @ inside, len(inside)

    def _insides(self) -> Iterator[Floats]:
        """Each box as an array of 0 and 1."""
        for low, high in zip(*self.ends, strict=True):
            inside = np.zeros((self.bins,) * self.dimensions)
            inside[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = 1
            yield inside


def _box_text(start: Ints, stop: Ints) -> str:
    return " × ".join(f"[{a}, {b})" for a, b in zip(start.tolist(), stop.tolist(), strict=True))
