"""Which recorded answers measure the same sums twice: their differences are pure noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hierdp.measurements.query import Parents, Query, sums_by
from hierdp.measurements.rows import Measurement
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import double_geometric_variance
from models.arithmetic.arrays import Ints

Answered = Sequence[tuple[Query, Measurement]]


def redundant_sums(answered: Answered) -> Iterator[RedundantSums]:
    """What was measured twice, of queries with `groups` or `cells`.

    - All counts, then sums that were chosen by their noise.
    - On a level of a tree, sums of cells, then the answers to the finest query that divides these sums.
    """
    sums = [(query.groups, found) for query, found in answered if query.groups is not None]
    for groups, found in sums[1:]:
        every, first = sums[0]
        if np.array_equal(every, np.arange(groups.size)):
            off = sums_by(first.answers, groups) - found.answers
            yield _twice(found.spend.query, off, first.spend, found.spend, np.ones(off.size, np.int64), 0)
    for query, found in answered:
        finer = [one for one in answered if one[0].level == query.level and _divides(one[0], query)]
        if finer:
            yield _of_cells(query, found, *max(finer, key=lambda one: one[0].answers))


def _divides(fine: Query, coarse: Query) -> bool:
    """Whether each answer to the coarse query is a sum of answers to the fine one, which has more."""
    if fine.cells is None or coarse.cells is None or fine.answers <= coarse.answers:
        return False
    return np.array_equal(_into(fine.cells, coarse.cells)[fine.cells], coarse.cells)


def _into(fine: Ints, coarse: Ints) -> Ints:
    into = np.zeros(int(fine.max()) + 1, np.int64)
    into[fine] = coarse
    return into


def _of_cells(query: Query, found: Measurement, fine: Query, parts: Measurement) -> RedundantSums:
    """Sums of cells with the sums of the finer answers that they consist of."""
    assert fine.cells is not None
    assert query.cells is not None
    into = _into(fine.cells, query.cells)
    sums = sums_by(parts.answers.reshape(-1, into.size).T, into).T
    off = found.answers.reshape(sums.shape) - sums
    counts = np.broadcast_to(np.bincount(into), off.shape)
    return _twice(f"{found.spend.query} and {parts.spend.query}", off, found.spend, parts.spend, counts)


def of_parents(parents: Parents, above: Measurement | None, found: Measurement) -> RedundantSums:
    """How nodes differ from the sums of their children: nodes chosen by their noisy counts, or a public one.

    `above` are the answers to the query before, among which are those of the nodes.
    """
    at, offsets, public = parents
    sums = np.diff(np.concatenate([[0], np.cumsum(found.answers)])[offsets])
    what, children = f"{found.spend.query} and above", np.diff(offsets)
    if public is not None:
        law = CountNoise.of(asdict(found.spend))
        return RedundantSums(what, (public - sums).astype(np.float64), law, children, None)
    assert above is not None
    return _twice(what, above.answers[at] - sums, above.spend, found.spend, children, above.answers.size)


class OfLevel:
    """The answers of a level of a tree, and how their parents' differ from their sums.

    The answers are taken in parts, whole nodes one after the other. Those of the last level are not held.

    - query: with a `level`.
    - before: the level that was measured before, which is overwritten.
    """

    def __init__(self, query: Query, spend: Spend, before: Self | None) -> None:
        assert query.level is not None
        self._tree, self._level = query.level
        size = int(self._tree.level_sizes[self._level])
        self._nodes = np.arange(size) if query.nodes is None else query.nodes
        self._each = query.answers // max(1, self._nodes.size)
        self._spend, self._at = spend, 0
        last = self._level == self._tree.depth
        self._own: Ints = np.zeros((0 if last else self._nodes.size, self._each), dtype=np.int64)
        self._above = None
        if before is not None and before._is_above(self):
            self._above = before
            self._children = np.zeros(before._nodes.size, dtype=np.int64)

    def _is_above(self, other: Self) -> bool:
        """Whether the other level's answers add up to these; with other numbers of answers, they do not."""
        return self._tree is other._tree and (self._level + 1, self._each) == (other._level, other._each)

    def add(self, answers: Ints) -> Iterator[RedundantSums]:
        """Take the answers of the next nodes; after the last, give the differences to the level above."""
        part = answers.reshape(-1, self._each)
        here = slice(self._at, self._at + len(part))
        self._at = here.stop
        if self._own.size:
            self._own[here] = part
        if self._above is not None:
            parents = np.asarray(self._tree.levels[self._level - 1])[self._nodes[here]]
            above = np.searchsorted(self._above._nodes, parents)
            there = np.unique(above)
            self._above._own[there] -= sums_by(part, np.searchsorted(there, above))
            self._children += np.bincount(above, minlength=self._children.size)
        if self._above is not None and self._at == self._nodes.size:
            there = np.flatnonzero(self._children)
            off = self._above._own[there]
            counts = np.broadcast_to(self._children[there, np.newaxis], off.shape)
            what = f"{self._above._spend.query} and {self._spend.query}"
            yield _twice(what, off, self._above._spend, self._spend, counts)
            self._above = None


def _twice(
    what: str, off: Ints, own: Spend, parts: Spend, counts: Ints, chosen_of: int | None = None
) -> RedundantSums:
    laws = [CountNoise.of(asdict(one)) for one in (parts, own)]
    return RedundantSums(what, off.ravel().astype(np.float64), laws[0], counts.ravel(), laws[1], chosen_of)


Floats = NDArray[np.floating[Any]]


class CountNoise(NamedTuple):
    """The law of one count's noise."""

    gaussian: bool
    scale: float

    @classmethod
    def of(cls, spend: Mapping[str, Any]) -> CountNoise:
        """The law of a recorded measurement: double-geometric or discrete Gaussian noise on each count."""
        if spend["noise"] not in ("double-geometric", "discrete Gaussian"):
            raise ValueError(f"{spend['noise']} is not added to counts")
        return cls(spend["noise"] == "discrete Gaussian", float(spend["scale"]))

    @property
    def variance(self) -> float:
        """The variance; for the discrete Gaussian, the bound σ² (Canonne, Kamath & Steinke 2020)."""
        return self.scale**2 if self.gaussian else double_geometric_variance(self.scale)

    def characteristic(self, at: Floats) -> Floats:
        """E cos(at·X), which is never negative."""
        turned = at - 2 * np.pi * np.rint(at / (2 * np.pi))
        if not self.gaussian:
            q, p = math.exp(-1 / self.scale), -math.expm1(-1 / self.scale)
            return np.asarray(p**2 / (p**2 + 4 * q * np.sin(turned / 2) ** 2))
        if self.scale < 1:
            whole = np.arange(-40, 41)
            mass = np.exp(-(whole**2) / (2 * self.scale**2))
            return np.asarray(np.maximum(0.0, np.cos(np.multiply.outer(turned, whole)) @ mass / mass.sum()))
        # Poisson's summation formula; other images are 10¹⁷ times less
        above, whole = (
            sum(np.exp(-(((point + 2 * np.pi * image) * self.scale) ** 2) / 2) for image in (-1, 0, 1))
            for point in (turned, np.float64(0))
        )
        return np.asarray(above / whole)

    def log_moment(self, s: Floats) -> Floats:
        """An upper bound on ln E exp(s·X); for the discrete Gaussian, that of the continuous one (ibid.)."""
        if self.gaussian:
            return np.asarray((s * self.scale) ** 2 / 2)
        rate = 1 / self.scale
        below = np.log(-np.expm1(s - rate)) + np.log(-np.expm1(-s - rate))
        return np.asarray(2 * math.log(-math.expm1(-rate)) - below)


class Recovered(NamedTuple):
    """The noisy counts of a measurement, as the release is computed from them.

    - noisy (int64 array)
    """

    query: str
    noisy: Ints


class RedundantSums(NamedTuple):
    """Differences between two measurements of the same sums, which are pure noise.

    - differences, shape (n,)
    - law: law of the noise of each count in the sum of children.
    - counts, shape (n,): how many counts have that noise in each difference.
    - own: law of the noise of the parent; None if the parent is public.
    - chosen_of: if the parents were chosen by their noisy counts, the number that they were chosen from, or 0
      if unknown. None if all parents are present.
    - near_zero: the "differences" are noisy counts: their distances from 0.
    """

    what: str
    differences: Floats
    law: CountNoise
    counts: Ints
    own: CountNoise | None
    chosen_of: int | None = None
    near_zero: bool = False
