"""What one unit changes in every query of a release: its true answers for two neighbouring tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hierdp.measurements.measurement import Measurement
from hierdp.measurements.measuring import MeasureTruth
from hierdp.measurements.query import Query
from hierdp.mechanisms.mechanism import Mechanism
from hierdp.privacy.budget import CHOICE, GAUSSIAN
from hierdp.privacy.noise import Noise, SimulatedNoise
from models.arithmetic.arrays import Ints


class Change(NamedTuple):
    """How much a query's true answers differ between two tables.

    - change: in the norm of the sensitivity: L1, or L2 of Gaussian noise; of scores, the largest.
    """

    query: str
    change: float
    sensitivity: float

    @property
    def understated(self) -> bool:
        """Whether the sensitivity is smaller, so that the release is less private than it says."""
        return self.change > self.sensitivity * (1 + 1e-12)


def changes_of(
    mechanism: Mechanism[Any], data: Any, neighbour: Any, noise: Noise | None = None
) -> list[Change]:
    """What two tables that differ in one unit change in each query, also in those that follow from answers.

    Parameters
    ----------
    mechanism : Mechanism
    data, neighbour
        True counts, as `Mechanism.read` gives them. The noise and the answers are those of `data`.
    noise : Noise, optional
        Default: `SimulatedNoise(0)`.

    Returns
    -------
    list of Change
        In the order of the queries. The release is private as it says only if none is `understated`.
    """
    mechanism.check_options()
    (facts, truth), (_, other) = mechanism.facts(data), mechanism.facts(neighbour)
    both = _Both(truth, other, noise or SimulatedNoise(0))
    mechanism.run(facts, mechanism.allowed, both, mechanism.solving)
    return both.changes


class _Both:
    """Measures one table, and compares each query's true answers with those of its neighbour."""

    def __init__(self, truth: Any, neighbour: Any, noise: Noise) -> None:
        self._measure, self._truth, self._neighbour = MeasureTruth(truth, noise), truth, neighbour
        self.changes: list[Change] = []

    def __call__(self, query: Query) -> Measurement:
        own, other = self._true(query)
        measured = self._measure(replace(query, of=lambda _: own))
        self._note(query, own, other, measured.answers)
        return measured

    def each(self, query: Query, sizes: Iterable[int]) -> Iterator[Ints]:
        own, other = self._true(query)
        self._note(query, own, other, None)
        return self._measure.each(replace(query, of=lambda _: own), sizes)

    def end(self) -> None:
        self._measure.end()

    def _true(self, query: Query) -> tuple[Any, Any]:
        """The true answers of both tables, each asked once: what they are may follow from earlier queries."""
        pair = query.of(self._truth), query.of(self._neighbour)
        return (list(pair[0]), list(pair[1])) if query.in_parts else pair

    def _note(self, query: Query, own: Any, other: Any, answers: Ints | None) -> None:
        if query.threshold is not None:
            change = _of_sparse(own, other)
        elif query.noise == CHOICE and query.in_sequence:
            assert answers is not None
            earlier = [answers[:number].tolist() for number in range(answers.size)]
            change = max((_largest(own(before), other(before)) for before in earlier), default=0.0)
        elif query.noise == CHOICE:
            change = max((_largest(*scores) for scores in zip(own, other, strict=True)), default=0.0)
        elif query.splits is not None:
            change = _largest(own, other)
        else:
            away = np.abs(_flat(own, query) - _flat(other, query))
            change = math.sqrt(int((away**2).sum())) if query.noise == GAUSSIAN else float(away.sum())
        self.changes.append(Change(query.name, change, float(query.sensitivity)))


def _flat(answers: Any, query: Query) -> Ints:
    parts = [np.ravel(part) for part in (answers if query.in_parts else [answers])]
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)


def _largest(scores: Ints, others: Ints) -> float:
    return float(np.abs(np.asarray(scores, float) - np.asarray(others, float)).max(initial=0.0))


def _of_sparse(counts: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> float:
    one, other = ({int(at): int(n) for at, n in zip(*side, strict=True)} for side in (counts, others))
    return float(sum(abs(one.get(at, 0) - other.get(at, 0)) for at in {*one, *other}))
