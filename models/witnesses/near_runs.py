"""The least cost of a cut into runs, exactly: a cut that costs less than a given one is made of few runs.

Potentials d leave each run (i, j) a slack ``d[i] − d[j] + w(i, j)``. Along a cut the slacks add up to its
cost less ``d[n] − d[0]``. So if a cut costs less than a given one, no slack in it exceeds by how much the
given one is above ``d[n] − d[0]``, and what the other slacks may be below 0. Slacks are computed in floats,
and compared with more than that, rounding included; a shortest path through the runs that are left is found
exactly.

A place is a pair (r, j): the first j values are cut. With layers, r is the number of runs; without, it is 0.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Floats

MOST_NEAR, ALWAYS_NEAR = 20, 100_000
"""At most so many runs for each value, or so many in all, are compared exactly; if more may be part of a
better cut, no cut is proved."""

Place = tuple[int, int]
Begins = Mapping[Place, Sequence[Place]]
"""By the place where it ends, where a run may begin."""


def near_runs(
    last: Place, slacks: Callable[[Place], tuple[Sequence[Place], Floats]], near: float
) -> Begins | None:
    """The runs with a slack of at most `near` that lead to `last`; None if there are too many.

    - slacks: the places before one where a run may begin, and the slack of each such run.
    """
    most = max(ALWAYS_NEAR, MOST_NEAR * last[1])
    begins: dict[Place, Sequence[Place]] = {}
    waiting, seen, many = [(-last[0], -last[1])], {last}, 0
    while waiting:
        r, j = heapq.heappop(waiting)
        here = -r, -j
        if here[1] == 0:
            continue
        places, slack = slacks(here)
        begins[here] = [places[k] for k in np.flatnonzero(slack <= near).tolist()]
        many += len(begins[here])
        if many > most:
            return None
        for place in begins[here]:
            if place not in seen:
                seen.add(place)
                heapq.heappush(waiting, (-place[0], -place[1]))
    return begins


def shortest(begins: Begins, last: Place, cost: Callable[[int, int], Fraction]) -> Fraction | None:
    """The least cost of the cuts up to `last`; None if there is none."""
    least: dict[Place, Fraction] = {(0, 0): Fraction(0)}
    for here in sorted(begins):
        through = [least[place] + cost(place[1], here[1]) for place in begins[here] if place in least]
        if through:
            least[here] = min(through)
    return least.get(last)


def run_costs(
    values: Array, price: Fraction, noise: Fraction, begins: Begins
) -> Callable[[int, int], Fraction]:
    """The cost Σ ‖v − mean‖² + noise/count + price of each of these runs.

    - values: int64 or objects, shape (n,) or (n, features).
    """
    rows = values.reshape(len(values), -1)
    small = rows.dtype == np.int64 and exact.reach(rows) ** 2 * rows.size < 2**62
    held = rows if small else rows.astype(object)
    ends = [0, *sorted({j for _, j in begins})]
    none = np.zeros((1, rows.shape[1]), held.dtype)
    totals = np.concatenate([none, np.cumsum(held, axis=0)])[ends].tolist()
    squares = np.concatenate([none[:, 0], np.cumsum((held * held).sum(axis=1))])[ends].tolist()
    total, square = dict(zip(ends, totals, strict=True)), dict(zip(ends, squares, strict=True))
    known: dict[tuple[int, int], Fraction] = {}

    def cost(i: int, j: int) -> Fraction:
        if (i, j) not in known:
            away = sum((b - a) ** 2 for a, b in zip(total[i], total[j], strict=True))
            known[i, j] = square[j] - square[i] + Fraction(noise - away) / (j - i) + price
        return known[i, j]

    return cost
