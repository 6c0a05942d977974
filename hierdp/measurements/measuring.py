"""Two implementations of `measure`: one measures the true counts, the other has recorded answers.

A mechanism's function reaches what depends on a person only through `measure`. So it can be run again from
recorded measurements, and gives the same release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from hierdp.measurements import file
from hierdp.measurements.file import NARROW, MeasurementsFile, Writer, joined, put
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.query import Query
from hierdp.measurements.redundant_sums import OfLevel, Recovered, RedundantSums, of_parents, redundant_sums
from hierdp.measurements.rows import Measurement, Piece
from hierdp.privacy.budget import CHOICE, GAUSSIAN, Spend, split, sum_of
from hierdp.privacy.decaying_threshold import decay_of, decided
from hierdp.privacy.noise import Noise, announce
from models import Tree
from models.arithmetic.arrays import Ints

CLOSE = 1e-9
"""Relative tolerance for the rounding of a share of the budget."""

MOST_RECOVERED = 1_000_000
"""Noisy counts beyond this number are not tested by themselves: sums that were measured twice suffice."""


class Measure(Protocol):
    """Answers a query with noise."""

    def __call__(self, query: Query, /) -> Measurement:
        """The noisy answers, with the record of their noise."""

    def each(self, query: Query, sizes: Iterable[int], /) -> Iterator[Ints]:
        """The noisy answers to a query `in_parts`, one part at a time, of which only that one is held.

        Parts are taken in the order of the queries; further queries may be asked before.

        - query: without `groups`.
        - sizes: the number of answers of each part, above 0, as `query.of` makes them.
        """

    def end(self) -> None:
        """Say that no further query follows: the true counts are not needed any more."""


class MeasureTruth:
    """Measures true counts: of a release's code, only this sees them.

    - truth: the true counts, as the queries take them.
    """

    def __init__(self, truth: Any, noise: Noise) -> None:
        self._truth, self._noise = truth, noise
        self._made = Recording()

    def __call__(self, query: Query) -> Measurement:
        """Measure a query, and record the answers and the loss."""
        if query.noise == CHOICE:
            made = self._chosen(query)
        elif query.splits is not None:
            made = self._decided(query, query.splits)
        elif query.threshold is not None:
            made = self._large(query)
        else:
            made = self._noisy(query)
        self._made.add(made)
        return made

    def each(self, query: Query, sizes: Iterable[int]) -> Iterator[Ints]:
        """Measure a query in parts, and record the answers and the loss."""
        announce(query.answers, self._noise)
        return self._parts(query, zip(query.of(self._truth), sizes, strict=True))

    def end(self) -> None:
        """Forget the true counts."""
        self._truth = None

    @property
    def measurements(self) -> Measurements:
        """All measurements so far."""
        return self._made.measurements

    def _parts(self, query: Query, true: Iterable[tuple[Ints, int]]) -> Iterator[Ints]:
        at = 0
        for part, size in true:
            noisy = self._draw(part, query)
            self._made.add(noisy, at)
            at += size
            yield noisy.answers

    def _noisy(self, query: Query) -> Measurement:
        true = query.of(self._truth)
        if not query.in_parts:
            return self._draw(true, query)
        answers: Ints = np.empty(query.answers, dtype=NARROW if query.answers > file.ROWS else np.int64)
        at = 0
        for part in true:
            noisy = self._draw(part, query)
            answers = put(answers, at, noisy.answers)
            at += noisy.answers.size
        return Measurement(noisy.spend, answers)

    def _draw(self, true: Ints, query: Query) -> Measurement:
        drawn = self._noise.draw(query.law, true)
        return Measurement(drawn.spend, drawn.answers.ravel())

    def _large(self, query: Query) -> Measurement:
        positions, counts = query.of(self._truth)
        drawn = self._noise.draw(query.law, counts)
        assert drawn.positions is not None
        return Measurement(drawn.spend, drawn.answers, positions[drawn.positions])

    def _decided(self, query: Query, tree: Tree) -> Measurement:
        decay = decay_of(query.loss, max(2, tree.most_children))
        split, spend = decided(tree, query.of(self._truth), query.name, self._noise, decay)
        return Measurement(spend, split[tree.internal])

    def _chosen(self, query: Query) -> Measurement:
        if not query.in_sequence:
            return self._draw(query.of(self._truth), query)
        scores, each = query.of(self._truth), replace(query.law, loss=split(query.loss, query.times)[0])
        answers: list[int] = []
        losses = []
        for _ in range(query.times):
            drawn = self._noise.draw(each, [scores(answers)])
            answers.append(int(drawn.answers[0]))
            losses.append(drawn.spend.epsilon or 0.0)
        return Measurement(replace(drawn.spend, epsilon=sum_of(losses), times=query.times), np.array(answers))


class Differs(Exception):
    """A release differs from what its measurements and saved steps give; the message says how."""


class OtherQuery(Differs):
    """A mechanism asks another query than the one that was recorded."""


class Pieces(Protocol):
    """Measurements that can be read in parts."""

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The noise of each."""

    def pieces(self) -> Iterator[Piece]:
        """See `Measurements.pieces`."""


class ReplayRecorded:
    """Has recorded answers, which it gives only to the queries that they answer, in their order.

    - measured: the number of measurements that the mechanism has asked for.
    - ended: whether it has asked for all of them, and no more.
    - redundant: what was measured twice; known at the end.
    - recovered: the noisy counts of measurements with noise on counts, in parts; beyond `MOST_RECOVERED`,
      none.
    """

    def __init__(self, measurements: Pieces) -> None:
        self._spends, self._left = measurements.spends, measurements.pieces()
        self._next = next(self._left, None)
        self._answered: list[tuple[Query, Measurement]] = []
        self._levels: dict[bytes, OfLevel] = {}
        self._before: Measurement | None = None
        self.measured, self.ended = 0, False
        self.redundant: list[RedundantSums] = []
        self.recovered: list[Recovered] = []

    def __call__(self, query: Query) -> Measurement:
        """The recorded answers.

        Raises `OtherQuery` if the next measurement is of another query: by its name, noise, sensitivity,
        share of the budget, or number of answers.
        """
        if query.threshold is not None:
            return self._large(query, query.threshold.least)
        spend, parts = self._found(query)
        answers = joined(parts, query.answers)
        if not query.in_parts:
            answers = answers.astype(np.int64, copy=False)
        if query.allowed is not None and not query.allowed(answers):
            raise OtherQuery(f"an answer to {query.name!r} is not among its candidates")
        found = Measurement(spend, answers)
        if query.groups is not None or query.cells is not None:
            self._answered.append((query, found))
        if query.parents is not None:
            self.redundant.append(of_parents(query.parents, self._before, found))
        self._before = found if query.groups is None and query.level is None else None
        for _ in self._compared(query, spend, (answers,)):
            pass
        return found

    def each(self, query: Query, sizes: Iterable[int]) -> Iterator[Ints]:
        """The recorded answers, in parts; raises as a call does."""
        spend, parts = self._found(query)
        return self._compared(query, spend, _cut(parts, sizes, query.answers))

    def end(self) -> None:
        """Check that no measurement is left, and forget the answers.

        Raises `OtherQuery` if one is left; the message names it.
        """
        if self.measured < len(self._spends):
            raise OtherQuery(f"the mechanism does not measure {self._spends[self.measured].query!r}")
        self.redundant += redundant_sums(self._answered)
        self._answered, self._before, self.ended = [], None, True

    def _found(self, query: Query) -> tuple[Spend, Iterator[Ints]]:
        """The next measurement, if it is of this query: its noise, and its answers in parts."""
        spend = self._spend(query)
        return spend, self._parts(query, self.measured - 1)

    def _spend(self, query: Query) -> Spend:
        number = self.measured
        if number == len(self._spends):
            raise OtherQuery(f"the mechanism measures {query.name!r}, which the budget does not list")
        spend = self._spends[number]
        if why := _differs(query, spend):
            raise OtherQuery(why)
        self.measured += 1
        return spend

    def _large(self, query: Query, least: int) -> Measurement:
        spend = self._spend(query)
        parts = [*self._pieces(self.measured - 1)]
        known = [part.positions for part in parts if part.positions is not None]
        none = np.empty(0, dtype=np.int64)
        answers = np.concatenate([none, *(part.answers for part in parts)])
        found = Measurement(spend, answers, np.concatenate([none, *known]))
        if why := _not_over(query, least, found):
            raise OtherQuery(why)
        self._recover(spend.query, answers)
        return found

    def _pieces(self, number: int) -> Iterator[Measurement]:
        while self._next is not None and self._next[0] == number:
            yield self._next[1]
            self._next = next(self._left, None)

    def _parts(self, query: Query, number: int) -> Iterator[Ints]:
        found = 0
        for part in self._pieces(number):
            found += part.answers.size
            if found <= query.answers:
                yield part.answers
        if found != query.answers:
            raise OtherQuery(f"{query.name!r} has {query.answers} answers, but {found} are recorded")

    def _compared(self, query: Query, spend: Spend, parts: Iterable[Ints]) -> Iterator[Ints]:
        """The same parts, which are compared with what else is known of their noise."""
        level = None
        if query.level is not None:
            alike = b"" if query.cells is None else query.cells.tobytes()
            level = self._levels[alike] = OfLevel(query, spend, self._levels.get(alike))
        for part in parts:
            if level is not None and part.size:
                self.redundant += level.add(part)
            if query.noisy:
                self._recover(spend.query, part)
            yield part

    def _recover(self, query: str, noisy: Ints) -> None:
        if noisy.size + sum(each.noisy.size for each in self.recovered) <= MOST_RECOVERED:
            self.recovered.append(Recovered(query, noisy.astype(np.int64)))


def _cut(parts: Iterator[Ints], sizes: Iterable[int], answers: int) -> Iterator[Ints]:
    """The same answers in parts of these sizes; after the last one, `parts` are at their end."""
    held: Ints = np.empty(0, dtype=np.int64)
    left = answers
    for size in sizes:
        found, missing = list[Ints](), size
        while missing > held.size:
            found.append(held)
            missing -= held.size
            held = next(parts)
        found.append(held[:missing])
        held, left = held[missing:], left - size
        if not left:
            for _ in parts:  # there are none, or the mechanism has another query
                pass
        yield np.concatenate(found)


def _differs(query: Query, spend: Spend) -> str:
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
    delta, claimed = query.delta, spend.delta
    if (delta is None) != (claimed is None) or not math.isclose(claimed or 0, delta or 0, rel_tol=CLOSE):
        return f"{query.name!r} costs a δ of {delta or 0:.9g}, but the manifest says {claimed}"
    return ""


def _not_over(query: Query, least: int, found: Measurement) -> str:
    at = found.positions
    if at is None or at.shape != found.answers.shape or (np.diff(at, prepend=-1) <= 0).any():
        return f"the positions of the answers to {query.name!r} are not in ascending order"
    if at.size and at[-1] >= query.answers:
        return f"{query.name!r} has {query.answers} answers, but one has the position {at[-1]}"
    if (under := found.answers[found.answers < least]).size:
        return f"an answer to {query.name!r} is {under.min()}, below the threshold of {least}"
    return ""


class Recording:
    """Collects measurements: in memory, or all of them in a temporary file when they have many answers.

    The file is in a folder of its own in the system's folder for temporary files (``TMPDIR``). It contains
    noisy answers, but no true counts.
    """

    MOST = 4_000_000
    """Largest number of answers in memory."""

    def __init__(self) -> None:
        self._held: list[tuple[Measurement, int]] = []
        self._answers = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._file: Writer | None = None

    def add(self, measurement: Measurement, position: int = 0) -> None:
        """Keep a measurement or, from a position on, a further part of the last one.

        In memory it is kept as it is, so that it must not be changed.
        """
        self._answers += measurement.answers.size
        if self._file is None and self._answers > self.MOST:
            self._folder = TemporaryDirectory(prefix="hierdp-")
            self._file = Writer(Path(self._folder.name) / "measurements.parquet")
            held, self._held = self._held, []
            for one in held:
                self._file.add(*one)
        if self._file is None:
            self._held.append((measurement, position))
        else:
            self._file.add(measurement, position)

    @property
    def measurements(self) -> Measurements:
        """All of them. If they are in a file, nothing can be added afterwards."""
        if self._file is None or self._folder is None:
            return Measurements(tuple(self._whole()))
        self._file.close()
        return Measurements(MeasurementsFile(self._file.path, self._folder))

    def _whole(self) -> Iterator[Measurement]:
        starts = [at for at, (_, position) in enumerate(self._held) if not position]
        for start, end in pairwise([*starts, len(self._held)]):
            parts = [part for part, _ in self._held[start:end]]
            if len(parts) == 1:
                yield parts[0]
            else:
                yield Measurement(parts[0].spend, np.concatenate([one.answers for one in parts]))
