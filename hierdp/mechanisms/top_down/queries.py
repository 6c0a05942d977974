"""What a release of counts along hierarchies measures, and the true counts that its queries take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from hierdp.errors import InputError
from hierdp.measurements.query import Parents, Query, over_threshold
from hierdp.mechanisms.top_down.levels import (
    Children,
    Nodes,
    depths_of,
    finest_places,
    level_query,
    nodes_above,
)
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.budget import GAUSSIAN, split
from hierdp.privacy.noise import threshold
from hierdp.privacy.rounding import root_of
from hierdp.tables import Flows
from models.arithmetic.arrays import Ints

TOTAL = "the total"
"""What is measured of unbounded neighbours' root, as the budget names it."""


class TrueCounts:
    """The true counts of a table, as the queries take them. Only `MeasureTruth` sees it."""

    def __init__(self, data: Flows, order: Sequence[int]) -> None:
        self._data, self._order = data, order
        self._among = np.zeros(1, dtype=np.int64)  # positions of the true nodes; -1 if not measured

    @property
    def total(self) -> Ints:
        """The total, shape (1,)."""
        return np.array([self._data.total], dtype=np.int64)

    @property
    def positive(self) -> tuple[Ints, Ints]:
        """The positions of the positive finest cells among all, in ascending order, and their counts."""
        at = np.ravel_multi_index(tuple(self._data.cells.T), finest_shape(self._data))
        return at.astype(np.int64), self._data.counts

    @property
    def all(self) -> Ints:
        """The counts of all finest cells, the last axis fastest."""
        counts = np.zeros(math.prod(finest_shape(self._data)), dtype=np.int64)
        at, positive = self.positive
        counts[at] = positive
        return counts

    def below(self, children: Children, kept: Ints) -> Ints:
        """The counts of all children of a level's nodes, one level after the other.

        - kept (int64 array): the positions of their parents among the children of the level before.
        """
        true = next(self._levels)
        self._among = true.among(children, _positions(kept, self._among))
        there = self._among >= 0
        counts = np.zeros(children.size, dtype=np.int64)
        counts[self._among[there]] = true.level.counts[there]
        return counts

    @cached_property
    def _levels(self) -> Iterator[Nodes]:
        data = self._data
        return iter(nodes_above(data.axes, self._order, data.cells, data.counts))


def _positions(kept: Ints, among: Ints) -> Ints:
    """Positions among the kept children, from positions among all children; -1 if not kept."""
    if not kept.size:
        return np.full_like(among, -1)
    at = np.minimum(np.searchsorted(kept, among), kept.size - 1)
    return np.where(kept[at] == among, at, -1)


def finest_shape(data: Flows) -> tuple[int, ...]:
    """The number of finest places of each axis."""
    return tuple(int(axis.tree.level_sizes[-1]) for axis in data.axes)


def shares_of(rho: float, levels: int, unit: PrivacyUnit, shares: Sequence[float] | None) -> list[float]:
    """The ρ of each level below the root, from the top, preceded by that of the total if it is not public."""
    return split(rho, levels + (not unit.replaced), shares)


def total(unit: PrivacyUnit, share: float) -> Query:
    """The query of the total; a person changes it by all their trips."""
    return Query(TOTAL, float(unit.rows), share, 1, lambda true: true.total, GAUSSIAN, which=())


def level(
    data: Flows,
    depths: Sequence[int],
    unit: PrivacyUnit,
    share: float,
    answers: int,
    of: Callable[[TrueCounts], Ints] = lambda true: true.all,
    parents: Parents | None = None,
    among: Ints | None = None,
) -> Query:
    """The query of some nodes of a level, or of all finest cells.

    - data: only the axes and the unknown region are used.
    - depths: the level reached on each axis.
    - share: ρ.
    - of: their true counts. Default: those of all finest cells.
    - among, int64 array, shape (parents, axes): the places of the nodes whose children they are.
    """
    squared = unit.squared_sensitivity(finest_places(data, depths))
    which = (np.asarray(depths), *(() if among is None else (among,)))
    about = root_of(squared), share, answers, of, GAUSSIAN
    return Query(level_query(data, depths), *about, parents=parents, which=which)


def children_of(
    data: Flows, children: Children, kept: Ints, unit: PrivacyUnit, share: float, public: int | None
) -> Query:
    """The query of all children of the nodes of a level.

    - data: only the axes and the unknown region are used.
    - kept (int64 array): the positions of their parents among the answers to the query before.
    - share: ρ.
    - public: the total, if it is their parent and public.
    """
    parents = Parents(kept, children.offsets, public)

    def of(true: TrueCounts) -> Ints:
        return true.below(children, kept)

    return level(data, children.depths, unit, share, children.size, of, parents, children.above.places)


def stable(
    data: Flows, order: Sequence[int], unit: PrivacyUnit, epsilon: float, delta: float, rule: str
) -> Query:
    """The query of a stability histogram: finest cells whose noisy count reaches a threshold.

    - data: only the axes and the unknown region are used.
    - rule: what sets the threshold: one of `hierdp.privacy.threshold.THRESHOLDS`.
    """
    finest = depths_of(data.axes, order)[-1]
    changes = unit.changes(finest_places(data, finest))
    least, possible = threshold(changes, epsilon, delta, rule), math.prod(finest_shape(data))
    if possible >= 2**63:
        raise InputError(f"SH numbers all possible finest cells in 64 bits, but there are {possible:.3g}")
    name = level_query(data, finest)
    query = over_threshold(name, changes, epsilon, possible, lambda true: true.positive, least)
    return replace(query, which=(np.asarray(finest),))
