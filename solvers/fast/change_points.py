"""Change points by dynamic programming over the places where runs may begin, without pruning.

Pruning as of PELT drops a place i at the end j once d[i] + w(i, j) > d[j]. With a least size of runs that is
wrong: for the next ends, a run that begins at j may be too short, and i still the best.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from models import ChangePoints
from models.arithmetic.arrays import Array, Ints
from models.certificate import Witness
from models.runs import marks_of

FAR = np.inf


def solve_change_points(model: ChangePoints) -> tuple[Ints, Witness]:
    """An optimal partition, and the least costs of all places as potentials.

    O(m²) for m places, or O(k·m²). If the model is `in_fractions`, costs are exact; otherwise floats.
    """
    values, _ = model.data
    places, paid = model.places, model.price if model.clusters is None else 0
    if model.in_fractions:
        columns = _exact_costs(values, places, Fraction(paid))
    else:
        columns = _float_costs(values, places, float(paid))
    layers = 1 if model.clusters is None else model.clusters
    d = np.full((layers + 1, places.size), FAR, object if model.in_fractions else float)
    begin = np.zeros(d.shape, np.int64)
    d[0, 0] = d[1, 0] = 0
    if model.clusters is not None:
        d[1:, 0] = FAR
    for j in range(1, places.size):
        last = int(np.searchsorted(places, places[j] - model.min_size, "right"))
        if not last:
            continue
        w = columns(j, last)
        for r in range(1, layers + 1):
            sums = (d[1] if model.clusters is None else d[r - 1])[:last] + w
            begin[r, j] = i = int(np.argmin(sums))
            d[r, j] = sums[i]
    starts, j = [], places.size - 1
    for r in range(layers, 0, -1):
        while j > 0:
            j = int(begin[r, j])
            starts.append(int(places[j]))
            if model.clusters is not None:
                break
    found = d[1] if model.clusters is None else d
    found = np.where(found == FAR, 0 * d[0, 0], found)
    return marks_of(np.array(starts[::-1], np.int64), len(values)), {"potentials": found}


def _float_costs(values: Array, places: Ints, price: float) -> Any:
    """A function of j and a number: the costs of the runs from the first places to place j."""
    away = values.astype(float) - values[len(values) // 2].astype(float)
    sums = np.vstack([np.zeros(away.shape[1]), np.cumsum(away, axis=0)])[places]
    squares = np.append(0.0, np.cumsum((away * away).sum(axis=1)))[places]

    def column(j: int, last: int) -> Array:
        step, many = sums[j] - sums[:last], places[j] - places[:last]
        least = (squares[j] - squares[:last]) - (step * step).sum(axis=1) / many
        return np.asarray(np.maximum(least, 0.0) + price)

    return column


def _exact_costs(values: Array, places: Ints, price: Fraction) -> Any:
    """The same in Fractions."""
    rows = [[Fraction(v) for v in row] for row in values.tolist()]
    sums, squares = [[Fraction(0)] * len(rows[0])], [Fraction(0)]
    for row in rows:
        sums.append([a + v for a, v in zip(sums[-1], row, strict=True)])
        squares.append(squares[-1] + sum(v * v for v in row))
    at = places.tolist()

    def column(j: int, last: int) -> Array:
        found = np.empty(last, object)
        for i in range(last):
            step = sum((b - a) ** 2 for a, b in zip(sums[at[i]], sums[at[j]], strict=True))
            found[i] = squares[at[j]] - squares[at[i]] - step / (at[j] - at[i]) + price
        return found

    return column
