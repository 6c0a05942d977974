"""Two implementations of `measure`: one measures the true counts, the other has recorded answers.

A mechanism's function reaches what depends on a person only through `measure`. So it can be run again from
recorded measurements, and gives the same release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np

from hierdp.measurements.measurement import Measurement, Measurements
from hierdp.measurements.query import Query, sums_by
from hierdp.privacy.budget import split, sum_of
from hierdp.privacy.expected import CHOICE, GAUSSIAN
from hierdp.privacy.noise import Noise
from hierdp.privacy.twice import CountNoise, Twice, of_tree
from models import Tree

CLOSE = 1e-9
"""Relative tolerance for the rounding of a share of the budget."""


class Measure(Protocol):
    """Answers a query with noise."""

    def __call__(self, query: Query, /) -> Measurement:
        """The noisy answers, with the record of their noise."""


class Measuring:
    """Measures true counts: of a release's code, only this sees them.

    Parameters
    ----------
    truth : object
        The true counts, as the queries take them.
    noise : Noise
    """

    def __init__(self, truth: Any, noise: Noise) -> None:
        self._truth, self._noise = truth, noise
        self._made: list[Measurement] = []

    def __call__(self, query: Query) -> Measurement:
        """Measure a query, and record the answers and the loss."""
        made = self._chosen(query) if query.noise == CHOICE else self._noisy(query)
        self._made.append(made)
        return made

    @property
    def measurements(self) -> Measurements:
        """All measurements so far."""
        return Measurements(tuple(self._made))

    def _noisy(self, query: Query) -> Measurement:
        draw = self._noise.gaussian if query.noise == GAUSSIAN else self._noise.geometric
        noisy = draw(query.of(self._truth), query.name, query.sensitivity, query.loss)  # type: ignore[arg-type]
        return Measurement(noisy.spend, noisy.counts)

    def _chosen(self, query: Query) -> Measurement:
        sensitivity = int(query.sensitivity)
        if not query.in_sequence:
            chosen, spend = self._noise.choose(query.of(self._truth), query.name, sensitivity, query.loss)
            return Measurement(spend, chosen)
        scores, share = query.of(self._truth), split(query.loss, query.times)[0]
        answers: list[int] = []
        losses = []
        for _ in range(query.times):
            chosen, spend = self._noise.choose([scores(answers)], query.name, sensitivity, share)
            answers.append(int(chosen[0]))
            losses.append(spend.epsilon or 0.0)
        return Measurement(replace(spend, epsilon=sum_of(losses), times=query.times), np.array(answers))


class Differs(Exception):
    """A release differs from what its measurements and saved steps give; the message says how."""


class OtherQuery(Differs):
    """A mechanism asks another query than the one that was recorded."""


class Recorded:
    """Has recorded answers, which it gives only to the queries that they answer, in their order.

    Parameters
    ----------
    measurements : Measurements
    """

    def __init__(self, measurements: Measurements) -> None:
        self._left = list(reversed(measurements.parts))
        self._asked: list[tuple[Query, Measurement]] = []

    def __call__(self, query: Query) -> Measurement:
        """The recorded answers.

        Raises
        ------
        OtherQuery
            If the next measurement is of another query: by its name, noise, sensitivity, share of the
            budget, or number of answers.
        """
        if not self._left:
            raise OtherQuery(f"the mechanism measures {query.name!r}, which the budget does not list")
        found = self._left.pop()
        if why := _differs(query, found):
            raise OtherQuery(why)
        self._asked.append((query, found))
        return found

    @property
    def asked(self) -> int:
        """The number of measurements that the mechanism has asked for."""
        return len(self._asked)

    def end(self) -> None:
        """Check that no measurement is left.

        Raises
        ------
        OtherQuery
            If one is left; the message names it.
        """
        if self._left:
            raise OtherQuery(f"the mechanism does not measure {self._left[-1].spend.query!r}")

    def noisy_counts(self) -> Iterator[Measurement]:
        """The measurements with noise on counts."""
        return (found for query, found in self._asked if query.noise != CHOICE)

    def redundant(self) -> Iterator[Twice]:
        """What was measured twice: a tree's levels; or all counts, then sums that were chosen by their noise."""
        yield from self._levels()
        sums = [(query.groups, found) for query, found in self._asked if query.groups is not None]
        for groups, found in sums[1:]:
            (every, first), size = sums[0], found.answers.size
            if np.array_equal(every, np.arange(groups.size)):
                off = (sums_by(first.answers, groups) - found.answers).astype(np.float64)
                laws = CountNoise.of(asdict(found.spend)), CountNoise.of(asdict(first.spend))
                ones = np.ones(size, dtype=np.int64)
                yield Twice(found.spend.query, off, laws[0], ones, laws[1], chosen_of=0)

    def _levels(self) -> Iterator[Twice]:
        trees: dict[int, tuple[Tree, dict[int, Measurement]]] = {}
        for query, found in self._asked:
            if query.level is not None:
                tree, level = query.level
                trees.setdefault(id(tree), (tree, {}))[1][level] = found
        for tree, levels in trees.values():
            level, found = next(iter(levels.items()))
            noisy = np.zeros((tree.size, found.answers.size // int(tree.level_sizes[level])), np.int64)
            laws: list[CountNoise | None] = [None] * (tree.depth + 1)
            for level, found in levels.items():
                noisy[tree.nodes_of(level)] = found.answers.reshape(-1, noisy.shape[1])
                laws[level] = CountNoise.of(asdict(found.spend))
            yield from of_tree(tree, noisy, laws, "counts")


def _differs(query: Query, found: Measurement) -> str:
    """How a recorded measurement differs from a query, in words; empty if it does not."""
    spend = found.spend
    if (spend.query, spend.noise, spend.times, spend.sensitivity) != (
        *(query.name, query.noise, query.times),
        query.sensitivity,
    ):
        return (
            f"the mechanism measures {query.name!r} with {query.noise} noise for a sensitivity of "
            f"{query.sensitivity:g}, but the manifest has {spend.query!r}, {spend.noise}, "
            f"{spend.sensitivity:g}"
        )
    loss = spend.rho if query.noise == GAUSSIAN else spend.epsilon
    if loss is None or not math.isclose(loss, query.loss, rel_tol=CLOSE):
        return f"{query.name!r} has {query.loss:.9g} of the budget, but the manifest says {loss}"
    if spend.delta is not None:
        return f"{query.name!r} has no δ, but the manifest says {spend.delta}"
    if found.answers.shape != (query.answers,):
        return f"{query.name!r} has {query.answers} answers, but {found.answers.size} are recorded"
    if query.allowed is not None and not query.allowed(found.answers):
        return f"an answer to {query.name!r} is not among its candidates"
    return ""
