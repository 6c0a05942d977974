"""The passes of least squares: first over sums of cells, which later passes then keep.

A pass measures some of the queries. Its histograms have only the attributes that these keep, so its answer is
unique. Constraints on other attributes become constraints on the sums that they imply.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from hierdp.mechanisms.tabulation.nesting import tighten
from models import Workload, WorkloadLeastSquares
from models.arithmetic.arrays import Array, Flags, Floats, Ints

UNIT = 2.0**-20
"""Fractional answers are rounded to multiples of this before the next step uses them. Their sums are then
exact in floats, in any order."""


@dataclass(frozen=True, eq=False)
class Family:
    """One parent's children, or those of several: their noisy answers, and the constraints.

    - noisy, shape (children, workload.size)
    - weights, shape (queries,) or (children, queries)
    - parent, int64 array, shape (cells,), or (parents, cells) with `offsets`: None for the root, which is
      treated as the only child of no parent.
    - zeros, shape (cells,)
    - lower, upper, float arrays, shape (children, sums.size)
    - regions, names: the names of the children and of the sums, for messages.
    """

    workload: Workload
    noisy: Array
    weights: Floats
    parent: Ints | None
    zeros: Flags
    sums: Workload | None
    lower: Floats
    upper: Floats
    regions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    offsets: Ints | None = None
    """Of several parents, the first child of each, then the number of children."""

    @property
    def cuts(self) -> Ints:
        """The first child of each parent, then the number of children."""
        return np.array([0, len(self.noisy)]) if self.offsets is None else self.offsets

    def added_up(self, each: Array) -> Array:
        """The sum over the children of each parent; shape (children, n) → (parents, n)."""
        return np.asarray(np.add.reduceat(each, self.cuts[:-1], axis=0))

    def by_child(self, each: Array) -> Array:
        """Each parent's row for all of its children; shape (parents, n) → (children, n)."""
        return np.repeat(each, np.diff(self.cuts), axis=0)

    @property
    def model(self) -> WorkloadLeastSquares:
        """Non-negative least squares over all queries."""
        none = self.sums is None
        return WorkloadLeastSquares(
            self.workload,
            self.noisy,
            self.weights,
            self.parent,
            self.zeros if self.zeros.any() else None,
            self.sums,
            None if none else self.lower,
            None if none else self.upper,
            self.offsets,
        )

    def measures(self, queries: tuple[int, ...]) -> bool:
        """Whether a query that keeps all attributes that these keep is measured for every child."""
        return self._finest(queries) is not None

    def single(self, queries: tuple[int, ...]) -> Workload:
        """The finest of some queries alone."""
        finest = self._finest(queries)
        assert finest is not None
        return Workload(self.workload.shape, [self.workload.queries[finest]])

    def _finest(self, queries: tuple[int, ...]) -> int | None:
        """The first of these queries that is measured for every child and refines all the others."""
        rows = self.workload.row
        measured = np.all(np.reshape(self.weights > 0, (-1, len(rows))), axis=0)
        for q in queries:
            if measured[q] and all(_refines(rows[q], rows[other]) for other in queries):
                return q
        return None

    def _is_all(self, queries: tuple[int, ...]) -> bool:
        """Whether `over` states this family again: all queries, with every cell, and one of sums at most."""
        measured = self.weights.reshape(-1, len(self.workload.queries)) > 0
        several = self.sums is not None and len(self.sums.queries) > 1
        if several or queries != tuple(range(measured.shape[1])):
            return False
        return bool((measured & self.workload.detailed).all(axis=0).any())

    def over(self, queries: tuple[int, ...], fixed: list[tuple[Workload, Floats]]) -> Family:
        """The family whose histograms have one cell for each answer of the finest of some queries.

        - queries: the positions of the queries of a pass, with one that refines all the others.
        - fixed: one query each, over the same attributes as the workload, and the children's answers to it
          from earlier passes, which are kept.
        """
        if not fixed and self._is_all(queries):
            return self.implied()
        finest = self._finest(queries)
        assert finest is not None
        kept = self.workload.queries[finest]
        cell = self.workload.row[finest] - self.workload.start[finest]
        shape = tuple(int(np.max(recode)) + 1 for recode in kept)

        def coarse(query: Sequence[ArrayLike]) -> tuple[Ints, ...]:
            """The query on the coarse histogram; an attribute that it would have to split is summed out."""
            found = []
            for recode, by in zip(query, map(np.asarray, kept), strict=True):
                _, first = np.unique(by, return_index=True)
                fits = np.array_equal(np.asarray(recode)[first][by], recode)
                found.append(np.asarray(recode)[first] if fits else np.zeros(first.size, np.int64))
            return tuple(found)

        workload = Workload(shape, [coarse(self.workload.queries[q]) for q in queries])
        columns = [np.arange(self.workload.start[q], self.workload.start[q + 1]) for q in queries]
        given = [] if self.sums is None else _single(self.sums, self.lower, self.upper)
        rules: dict[bytes, tuple[Workload, Floats, Floats]] = {}
        for query, *sides in [*given, *((w, held, held) for w, held in fixed)]:
            rule = Workload(shape, [coarse(query.queries[0])])
            into = np.zeros(query.size, np.int64)
            into[query.row[0]] = rule.row[0][cell]
            low, high = (_added(side, into, rule.size) for side in sides)
            key = rule.row.tobytes()
            if key in rules and np.any(low < high):
                low, high = np.maximum(low, rules[key][1]), np.minimum(high, rules[key][2])
            if np.any(low > 0) or np.any(np.isfinite(high)):
                rules[key] = rule, low, high
        zeros = np.ones(workload.cells, bool)
        np.logical_and.at(zeros, cell, self.zeros)
        parent = None
        if self.parent is not None:
            parent = np.zeros((*self.parent.shape[:-1], workload.cells), np.int64)
            np.add.at(parent.T, cell, self.parent.T)
        bounds = [np.zeros((len(self.noisy), 0))]
        sums = [rule.queries[0] for rule, _, _ in rules.values()]
        family = Family(
            workload,
            self.noisy[:, np.concatenate(columns)],
            self.weights[..., list(queries)],
            parent,
            zeros,
            Workload(shape, sums) if sums else None,
            np.concatenate([*bounds, *(low for _, low, _ in rules.values())], axis=1),
            np.concatenate([*bounds, *(high for _, _, high in rules.values())], axis=1),
            offsets=self.offsets,
        )
        return family.implied()

    def implied(self) -> Family:
        """The same family with sums that the parent, or sums that contain each other, force to a value.

        If a fixed total is the sum of its parts' upper bounds, for example, these become equations. Least
        squares then has an interior to start from. Queries without a bound are left out.
        """
        if self.sums is None:
            return self
        room = self.sums.answers(np.where(self.zeros, 0, 1)) > 0
        low, high = self.lower.copy(), np.where(room, self.upper, 0.0)
        if self.parent is not None:
            held = self.by_child(self.sums.answers(np.atleast_2d(self.parent)).astype(float))
            tighten(low, high, held, held, lambda each: self.by_child(self.added_up(each)))
        rows = self.sums.row - self.sums.start[:-1, None]
        parts = [slice(int(a), int(b)) for a, b in zip(self.sums.start, self.sums.start[1:], strict=False)]
        for (coarse, into), (fine, inner) in itertools.permutations(zip(parts, rows, strict=True), 2):
            if not _refines(inner, into) or np.array_equal(inner, into):
                continue
            _, first = np.unique(inner, return_index=True)
            for k in range(coarse.stop - coarse.start):
                these = fine.start + np.flatnonzero(into[first] == k)
                least, most = low[:, these].T.copy(), high[:, these].T.copy()
                at = coarse.start + k
                low[:, at] = np.maximum(low[:, at], least.sum(axis=0))
                high[:, at] = np.minimum(high[:, at], most.sum(axis=0))
                tighten(least, most, low[:, at], high[:, at])
                low[:, these], high[:, these] = least.T, most.T
        forced = low == high
        low, high = np.where(forced, low, self.lower), np.where(forced, high, self.upper)
        binding = [np.any(low[:, p] > 0) or np.any(np.isfinite(high[:, p])) for p in parts]
        if not any(binding):
            none = np.zeros((len(low), 0))
            return replace(self, sums=None, lower=none, upper=none)
        columns = np.repeat(binding, self.sums.sizes)
        kept = [query for query, binds in zip(self.sums.queries, binding, strict=True) if binds]
        sums = Workload(self.sums.shape, kept)
        return replace(self, sums=sums, lower=low[:, columns], upper=high[:, columns])


def _added(side: Floats, into: Ints, size: int) -> Floats:
    """The bounds of coarser sums: those of the finer ones in them, added up."""
    total = np.zeros((len(side), size))
    np.add.at(total.T, into, side.T)
    return total


def _refines(fine: Ints, coarse: Ints) -> bool:
    """Whether each answer of the coarse query is a sum of answers of the fine one."""
    _, first, back = np.unique(fine, return_index=True, return_inverse=True)
    return np.array_equal(coarse[first][back.ravel()], coarse)


def _single(sums: Workload, lower: Floats, upper: Floats) -> list[tuple[Workload, Floats, Floats]]:
    """Each query of the sums alone, with its bounds."""
    parts = [slice(int(a), int(b)) for a, b in zip(sums.start, sums.start[1:], strict=False)]
    return [
        (Workload(sums.shape, [query]), lower[:, part], upper[:, part])
        for query, part in zip(sums.queries, parts, strict=True)
    ]


def snapped(x: Floats, family: Family) -> Floats:
    """Fractional answers as multiples of `UNIT`, within the cells' bounds, that add up to the parent.

    What rounding changes in a sum over the children goes to those with the most room.

    - x, shape (children, cells)
    """
    low, high = np.zeros(x.shape), np.where(family.zeros, 0.0, np.full(x.shape, np.inf))
    if family.sums is not None:
        for q in np.flatnonzero(family.sums.detailed):
            low = np.maximum(low, family.lower[:, family.sums.row[q]])
            high = np.minimum(high, family.upper[:, family.sums.row[q]])
    held = np.clip(np.round(np.asarray(x, float) / UNIT) * UNIT, low, high)
    if family.parent is not None:
        missing = np.atleast_2d(family.parent) - family.added_up(held)
        room = np.where(family.by_child(missing) > 0, high - held, held - low)
        most = np.maximum.reduceat(room, family.cuts[:-1], axis=0)
        enough = np.asarray((most >= np.abs(missing)).all(axis=1))
        for k in np.flatnonzero(~enough).tolist():
            here = slice(*family.cuts[k : k + 2].tolist())
            _give(held[here], low[here], high[here], missing[k])
        child = np.where(room == family.by_child(most), np.arange(len(held))[:, None], len(held))
        first = np.minimum.reduceat(child, family.cuts[:-1], axis=0)  # the one with the most room takes all
        missing[~enough] = 0
        at, cell = np.nonzero(missing)
        held[first[at, cell], cell] += missing[at, cell]
    return held


def _give(held: Floats, low: Floats, high: Floats, missing: Floats) -> None:
    """Add to the children's numbers what their sums lack, in place; first to those with the most room."""
    room = np.where(missing > 0, high - held, held - low)
    order = np.argsort(-room, axis=0, kind="stable")
    first = np.take_along_axis(np.where(np.isinf(room), np.abs(missing), room), order, axis=0)
    taken = np.clip(np.abs(missing) - (np.cumsum(first, axis=0) - first), 0, first)
    np.put_along_axis(held, order, np.take_along_axis(held, order, 0) + np.sign(missing) * taken, 0)
