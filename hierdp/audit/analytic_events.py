"""Events that need no search: the true counts show which released numbers differ between the two tables.

For a count that differs by one and gets double-geometric noise, the best event is that the noisy count is at
least the larger of the two true counts. The events here require this of all released numbers that differ at
once, or add these numbers up in the direction of the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from hierdp.audit.events import Condition, Event, whole
from hierdp.privacy.budget import CHOICE
from hierdp.privacy.noise import Drawn, Law, SimulatedNoise
from hierdp.record.case import Seen
from models.arithmetic.arrays import Ints


class ZeroNoise(SimulatedNoise):
    """No noise, for the made-up tables of an audit: shows which numbers differ, and by how much."""

    def __init__(self) -> None:
        super().__init__(0)

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """The counts without noise; those that reach a threshold; the first of the largest scores."""
        drawn = super().draw(law, true)
        if law.noise == CHOICE:
            return replace(drawn, answers=largest(true))
        if law.threshold is None:
            return replace(drawn, answers=true.copy())
        kept = np.flatnonzero(true >= law.threshold.least)
        return replace(drawn, answers=true[kept], positions=kept)


def largest(scores: Sequence[Ints]) -> Ints:
    """The position of the largest score of each array; the first if several are equal."""
    return np.array([np.argmax(part) for part in scores], dtype=np.int64)


def moves(truths: tuple[Seen, Seen]) -> dict[str, tuple[float, float]]:
    """The released numbers that differ between the two tables without noise, with both values."""
    first, second = truths
    names = sorted(first.keys() | second.keys())
    pairs = {name: (first.get(name, 0.0), second.get(name, 0.0)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def parts_of(moved: dict[str, tuple[float, float]]) -> list[dict[str, tuple[float, float]]]:
    """All differing numbers; those of one kind, such as noisy, in all steps; of one column; each alone."""
    kinds: dict[str, dict[str, tuple[float, float]]] = {}
    for name, pair in moved.items():
        column = name.partition("[")[0]
        for kind in {"", column.partition(" of ")[0], column, name}:
            kinds.setdefault(kind, {})[name] = pair
    return list({tuple(part): part for part in kinds.values()}.values())


def all_over(moved: dict[str, tuple[float, float]]) -> Iterator[Event]:
    """The events that all differing numbers of a part reach their values in one of the tables."""
    for part, swapped in product(parts_of(moved), (False, True)):
        yield Event(
            tuple(_beyond(name, *(pair if swapped else pair[::-1])) for name, pair in part.items()), swapped
        )


def _beyond(name: str, here: float, there: float) -> Condition:
    """The condition that a number is at `there` or beyond, coming from `here`."""
    sign = 1 if there > here else -1
    return Condition(((name, sign),), sign * there, False)


def direction(moved: dict[str, tuple[float, float]], names: Sequence[str]) -> Ints:
    """Weights of a sum of the numbers that differ, each in proportion to its difference."""
    return whole(np.array([moved[name][1] - moved[name][0] if name in moved else 0.0 for name in names]))
