"""Bounds on both sides as the relations that modelling libraries take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def relations(body: Callable[[NDArray[Any]], Any], lower: NDArray[Any], upper: NDArray[Any]) -> Iterator[Any]:
    """``lower ≤ body ≤ upper``, where ``body(places)`` picks from it: equal, at least, at most."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    same = np.flatnonzero(lower == upper)
    below = np.flatnonzero(np.isfinite(lower) & (lower != upper))
    above = np.flatnonzero(np.isfinite(upper) & (lower != upper))
    if same.size:
        yield body(same) == lower[same]
    if below.size:
        yield body(below) >= lower[below]
    if above.size:
        yield body(above) <= upper[above]
