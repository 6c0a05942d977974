"""The event of an audit: chosen on some runs of a mechanism, and bounded on others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from hierdp.audit.bound import at_least, at_most, least_epsilon, least_rho
from hierdp.record.case import Seen
from models.arithmetic.arrays import Floats, Ints

THRESHOLDS = 200
DEEPEST = 4
"""The most conditions that hold together in an event found by training."""

CUTS = 12
"""Thresholds of each released number that are tried for a condition."""

PAIRED = 20
"""With at most this many released numbers, the sums and differences of all pairs are also tried."""

FINEST = 100
"""The largest weight of a sum. Weights are integers, so that equal releases have equal sums."""

SHOWN = 3
"""The most terms of a sum, and the most conditions of an event, to print."""


@dataclass(frozen=True)
class Claim:
    """The privacy loss that a mechanism claims: ε at δ, and ρ under zCDP."""

    epsilon: float
    delta: float
    rho: float | None = None

    def loss(self, p: Floats, q: Floats) -> Floats:
        """A lower bound on the loss, in the unit of the composition: ρ under zCDP, else ε."""
        return least_epsilon(p, q, self.delta) if self.rho is None else least_rho(p, q)


@dataclass(frozen=True)
class Condition:
    """A weighted sum of released numbers is at least `threshold` or, if `below` is true, less."""

    weights: tuple[tuple[str, int], ...]
    threshold: float
    below: bool

    def holds(self, seen: Sequence[Seen]) -> NDArray[np.bool_]:
        """Whether the condition holds, for each run."""
        sums = np.array([sum(w * run.get(name, 0.0) for name, w in self.weights) for run in seen])
        return sums < self.threshold if self.below else sums >= self.threshold

    def __str__(self) -> str:
        most = sorted(self.weights, key=lambda pair: -abs(pair[1]))
        parts = [f"{w:+}·{n}" if abs(w) > 1 else f"{'-' if w < 0 else '+'}{n}" for n, w in most[:SHOWN]]
        more = f" … ({len(most)} terms)" if len(most) > SHOWN else ""
        return (
            f"{' '.join(parts).removeprefix('+')}{more} {'<' if self.below else '≥'} {self.threshold + 0.0:g}"
        )


@dataclass(frozen=True)
class Event:
    """The event that all conditions hold. `swapped`: it is likelier on the second table."""

    conditions: tuple[Condition, ...]
    swapped: bool

    def counts(self, seen: Sequence[Seen]) -> int:
        """The number of runs in which the event occurs."""
        hold = np.ones(len(seen), dtype=np.bool_)
        for condition in self.conditions:
            hold &= condition.holds(seen)
        return int(hold.sum())

    def __str__(self) -> str:
        more = f", … ({len(self.conditions)} in all)" if len(self.conditions) > SHOWN else ""
        return ", ".join(map(str, self.conditions[:SHOWN])) + more


def chosen(
    seen: tuple[Sequence[Seen], Sequence[Seen]],
    claim: Claim,
    miss: float,
    known: Sequence[Event] = (),
    directions: Sequence[Seen] = (),
) -> Event:
    """The event with the best bound on these runs: a sum's threshold, several numbers', or a known one.

    Half of the runs propose the sums, and thresholds that hold together. The other half choose among these
    and set the thresholds of sums, so that what overfits the first half has no advantage.

    Parameters
    ----------
    seen : two sequences of dict
        The runs on each table.
    claim : Claim
    miss : float
        The probability with which the compared bound may be wrong.
    known : sequence of Event
        Further events to try.
    directions : sequence of dict
        Weights of further sums to try.
    """
    names, first, second, margins = _columns(seen)
    learnt, scored = (first[::2], second[::2]), (first[1::2], second[1::2])
    low = [at_least(np.arange(len(side) + 1), len(side), miss / 2) for side in scored]
    high = [at_most(np.arange(len(side) + 1), len(side), miss / 2) for side in scored]
    best, found = -1.0, Event((), False)
    trained = [_together(names, learnt, claim, miss, swapped) for swapped in (False, True)]
    apart = seen[0][1::2], seen[1][1::2]
    for event in (*known, *trained):
        likely, unlikely = apart[::-1] if event.swapped else apart
        least = at_least(event.counts(likely), len(likely), miss / 2)
        most = at_most(event.counts(unlikely), len(unlikely), miss / 2)
        loss = float(claim.loss(least, most))
        if loss > best:
            best, found = loss, event
    given = [np.array([int(each.get(name, 0)) for name in names], dtype=np.int64) for each in directions]
    for weights in (*given, *margins, *_weights(*learnt)):
        sums = [np.sort(side @ weights) for side in scored]
        thresholds = np.unique(np.concatenate(sums))
        if thresholds.size > THRESHOLDS:
            thresholds = thresholds[np.linspace(0, thresholds.size - 1, THRESHOLDS).astype(int)]
        above = [side.size - np.searchsorted(side, thresholds) for side in sums]
        for below, swapped in product((False, True), repeat=2):
            hits_at = [side.size - n if below else n for side, n in zip(sums, above, strict=True)]
            p, q = (1, 0) if swapped else (0, 1)
            losses = claim.loss(low[p][hits_at[p]], high[q][hits_at[q]])
            at = int(np.argmax(losses))
            if losses[at] > best:
                best = float(losses[at])
                held = tuple((name, int(w)) for name, w in zip(names, weights, strict=True) if w)
                found = Event((Condition(held, float(thresholds[at]), below),), swapped)
    return found


def _columns(seen: tuple[Sequence[Seen], Sequence[Seen]]) -> tuple[list[str], Floats, Floats, Iterable[Ints]]:
    """The numbers that are not the same in all runs, each once, and weights of their margins.

    A margin is the sum of a column's numbers with the same label in one place of their names, such as all
    counts of a region. Values have the shape (runs, names).
    """
    runs = [run for side in seen for run in side]
    found: dict[bytes, tuple[str, Floats]] = {}
    at: dict[str, bytes] = {}
    for name in sorted({name for run in runs for name in run}):
        column = np.array([run.get(name, 0.0) for run in runs])
        if (column != column[0]).any():
            at[name] = column.tobytes()
            found.setdefault(at[name], (name, column))
    place = {values: i for i, values in enumerate(found)}
    margins: dict[tuple[str, int, str], Ints] = {}
    for name, values in at.items():
        column_name, _, labels = name.partition("[")
        for position, label in enumerate(("", *labels.rstrip("]").split(" "))):
            margin = margins.setdefault((column_name, position, label), np.zeros(len(found), dtype=np.int64))
            margin[place[values]] += 1
    several = {margin.tobytes(): margin for margin in margins.values() if margin.sum() > 1}
    table = np.array([column for _, column in found.values()]).reshape(len(found), len(runs)).T
    return (
        [name for name, _ in found.values()],
        table[: len(seen[0])],
        table[len(seen[0]) :],
        several.values(),
    )


def _together(
    names: Sequence[str], learnt: tuple[Floats, Floats], claim: Claim, miss: float, swapped: bool
) -> Event:
    """Conditions on single numbers that hold together: each is the one that improves the bound most."""
    likely, unlikely = learnt[::-1] if swapped else learnt
    held: tuple[Condition, ...] = ()
    best = 0.0
    if not len(likely) or not len(unlikely) or not names:
        return Event((), swapped)
    cuts = np.quantile(np.concatenate(learnt), np.linspace(0, 1, CUTS), axis=0, method="nearest")
    # shape (runs, cuts, names): whether a number is at least a cut; then the same for less than it
    reached = [side[:, None, :] >= cuts for side in (likely, unlikely)]
    reached = [np.concatenate([side, ~side], axis=1) for side in reached]
    inside = [np.ones(len(side), dtype=np.bool_) for side in reached]
    while len(held) < DEEPEST:
        hits = [(side & part[:, None, None]).sum(axis=0) for side, part in zip(reached, inside, strict=True)]
        low = at_least(hits[0], len(likely), miss / 2)
        losses = claim.loss(low, at_most(hits[1], len(unlikely), miss / 2))
        cut, name = divmod(int(np.argmax(losses)), len(names))
        if losses[cut, name] <= best:
            break
        best = float(losses[cut, name])
        inside = [part & side[:, cut, name] for side, part in zip(reached, inside, strict=True)]
        threshold = float(cuts[cut % CUTS, name])
        held += (Condition(((names[name], 1),), threshold, cut >= CUTS),)
    return Event(held, swapped)


def whole(weights: Floats) -> Ints:
    """Integer weights, at most `FINEST`, in nearly these proportions; all 0 if these are."""
    largest = np.abs(weights).max(initial=0)
    if not largest > 0:
        return np.zeros(weights.shape, dtype=np.int64)
    found = np.rint(FINEST * weights / largest).astype(np.int64)
    return np.asarray(found // np.gcd.reduce(found))


def _weights(first: Floats, second: Floats) -> Iterator[Ints]:
    """Weights: each released number alone, the sum of all, pairs, and Fisher's discriminant.

    Pairs are sums and differences of two numbers. Fisher's discriminant detects noise that cancels: a
    combination without noise has no variance and gets all the weight.
    """
    alone = np.eye(first.shape[1], dtype=np.int64)
    yield from alone
    yield alone.sum(axis=0)
    for one, other in combinations(alone if len(alone) <= PAIRED else (), 2):
        yield one + other
        yield one - other
    if len(first) < 2 or len(second) < 2:
        return
    spread = np.atleast_2d(np.cov(first, rowvar=False)) + np.atleast_2d(np.cov(second, rowvar=False))
    ridge = 1e-6 * max(float(np.trace(spread)), 1e-9) * alone
    direction = whole(np.linalg.solve(spread + ridge, first.mean(axis=0) - second.mean(axis=0)))
    if direction.any():
        yield direction
