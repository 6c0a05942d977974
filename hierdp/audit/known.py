"""Events that need no search: what is known of a mechanism says where two tables should come out apart.

Each measurement with double-geometric noise whose count the neighbour moves by one is a coin: at or over
the larger of the two true counts, or not. The events here ask that of all released numbers that move, at
once, or add them up along the direction in which they move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hierdp.audit.events import Condition, Event, Seen, whole
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Changes, NoisyCounts, SimulatedNoise, threshold
from models.arithmetic.arrays import Ints


class Undisturbed(SimulatedNoise):
    """No noise at all, for the made-up tables of an audit: tells what moves, and how far."""

    def __init__(self) -> None:
        super().__init__(0)

    def geometric(self, counts: Ints, query: str, sensitivity: int, epsilon: float) -> NoisyCounts:
        """The counts as they are."""
        return NoisyCounts(counts.copy(), super().geometric(counts, query, sensitivity, epsilon).spend)

    def gaussian(self, counts: Ints, query: str, sensitivity: float, rho: float) -> NoisyCounts:
        """The counts as they are."""
        return NoisyCounts(counts.copy(), super().gaussian(counts, query, sensitivity, rho).spend)

    def stable(
        self, counts: Ints, query: str, changes: Changes, epsilon: float, delta: float
    ) -> tuple[Ints, NoisyCounts]:
        """The counts that are large enough as they are."""
        _, made = super().stable(counts, query, changes, epsilon, delta)
        kept = np.flatnonzero(counts >= threshold(changes, epsilon, delta))
        return kept, NoisyCounts(counts[kept], made.spend)

    def choose(
        self, scores: Sequence[Ints], query: str, sensitivity: int, epsilon: float
    ) -> tuple[Ints, Spend]:
        """The largest scores, the first of equal ones."""
        _, spend = super().choose(scores, query, sensitivity, epsilon)
        return np.array([np.argmax(part) for part in scores], dtype=np.int64), spend


def moves(truths: tuple[Seen, Seen]) -> dict[str, tuple[float, float]]:
    """The released numbers that differ between two tables without noise, and both values."""
    first, second = truths
    names = sorted(first.keys() | second.keys())
    pairs = {name: (first.get(name, 0.0), second.get(name, 0.0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def all_over(moved: dict[str, tuple[float, float]]) -> Iterator[Event]:
    """All that moves comes out at the one table's value or beyond, seen from the other; and so by column."""
    columns = {name.partition("[")[0] for name in moved}
    parts = [moved, *({n: moved[n] for n in moved if n.startswith(f"{c}[")} for c in sorted(columns))]
    for part in parts if len(columns) > 1 else parts[:1]:
        for swapped in (False, True):
            conditions = tuple(
                _beyond(name, *(pair if swapped else pair[::-1])) for name, pair in part.items()
            )
            if conditions:
                yield Event(conditions, swapped)


def _beyond(name: str, here: float, there: float) -> Condition:
    """A number comes out at `there` or beyond, seen from `here`."""
    sign = 1 if there > here else -1
    return Condition(((name, sign),), sign * there, False)


def direction(moved: dict[str, tuple[float, float]], names: Sequence[str]) -> Ints:
    """Weights that add up what moves, each number by how far it does."""
    return whole(np.array([moved[name][1] - moved[name][0] if name in moved else 0.0 for name in names]))
