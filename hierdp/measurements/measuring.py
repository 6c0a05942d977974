"""Two implementations of `measure`: one measures the true counts, the other has recorded answers.

A mechanism's function reaches what depends on a person only through `measure`. So it can be run again from
recorded measurements, and gives the same release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hierdp.measurements import file
from hierdp.measurements.file import NARROW, put
from hierdp.measurements.measurement import Measurement, Measurements
from hierdp.measurements.query import Query
from hierdp.measurements.recording import Recording
from hierdp.measurements.twice import measured_twice
from hierdp.privacy.budget import split, sum_of
from hierdp.privacy.expected import CHOICE, GAUSSIAN
from hierdp.privacy.noise import Noise
from hierdp.privacy.twice import Recovered, Twice
from models.arithmetic.arrays import Ints

CLOSE = 1e-9
"""Relative tolerance for the rounding of a share of the budget."""

MOST_RECOVERED = 1_000_000
"""Noisy counts beyond this number are not tested by themselves: sums that were measured twice suffice."""


class Measure(Protocol):
    """Answers a query with noise."""

    def __call__(self, query: Query, /) -> Measurement:
        """The noisy answers, with the record of their noise."""

    def end(self) -> None:
        """Say that no further query follows: the true counts are not needed any more."""


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
        self._made = Recording()

    def __call__(self, query: Query) -> Measurement:
        """Measure a query, and record the answers and the loss."""
        made = self._chosen(query) if query.noise == CHOICE else self._noisy(query)
        self._made.add(made)
        return made

    def end(self) -> None:
        """Forget the true counts."""
        self._truth = None

    @property
    def measurements(self) -> Measurements:
        """All measurements so far."""
        return self._made.measurements

    def _noisy(self, query: Query) -> Measurement:
        draw: Any = self._noise.gaussian if query.noise == GAUSSIAN else self._noise.geometric
        true = query.of(self._truth)
        kind = NARROW if query.answers > file.ROWS else np.int64
        answers: Ints = np.empty(query.answers if query.in_parts else 0, dtype=kind)
        at = 0
        for part in true if query.in_parts else (true,):
            noisy = draw(part, query.name, query.sensitivity, query.loss)
            answers = put(answers, at, noisy.counts.ravel()) if query.in_parts else noisy.counts
            at += noisy.counts.size
        return Measurement(noisy.spend, answers)

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
    measurements : iterable of Measurement

    Attributes
    ----------
    asked : int
        The number of measurements that the mechanism has asked for.
    ended : bool
        Whether it has asked for all of them, and no more.
    twice : list of Twice
        What was measured twice; known at the end.
    recovered : list of Recovered
        The noisy counts of each measurement with noise on counts; beyond `MOST_RECOVERED`, none.
    """

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        self._left = iter(measurements)
        self._asked: list[tuple[Query, Measurement]] = []
        self.asked, self.ended = 0, False
        self.twice: list[Twice] = []
        self.recovered: list[Recovered] = []

    def __call__(self, query: Query) -> Measurement:
        """The recorded answers.

        Raises
        ------
        OtherQuery
            If the next measurement is of another query: by its name, noise, sensitivity, share of the
            budget, or number of answers.
        """
        found = next(self._left, None)
        if found is None:
            raise OtherQuery(f"the mechanism measures {query.name!r}, which the budget does not list")
        if not query.in_parts:
            found = Measurement(found.spend, found.answers.astype(np.int64, copy=False))
        if why := _differs(query, found):
            raise OtherQuery(why)
        self.asked += 1
        self._asked.append((query, found))
        return found

    def end(self) -> None:
        """Check that no measurement is left, and forget the answers.

        Raises
        ------
        OtherQuery
            If one is left; the message names it.
        """
        left = next(self._left, None)
        if left is not None:
            raise OtherQuery(f"the mechanism does not measure {left.spend.query!r}")
        self.twice += measured_twice(self._asked)
        for query, found in self._asked:
            if query.noise != CHOICE:
                self._recover(found)
        self._asked, self.ended = [], True

    def _recover(self, found: Measurement) -> None:
        if found.answers.size + sum(each.noisy.size for each in self.recovered) <= MOST_RECOVERED:
            self.recovered.append(Recovered(found.spend.query, found.answers.astype(np.int64)))


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
