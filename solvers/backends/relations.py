"""Two-sided bounds as the relations that modelling libraries take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Relation = tuple[NDArray[Any], Literal["=", ">", "<"], Any]


def relations(
    body: Callable[[NDArray[Any]], Any], lower: NDArray[Any], upper: NDArray[Any]
) -> Iterator[Relation]:
    """``lower ≤ body ≤ upper`` as relations: the places, the kind, and the relation of ``body(places)``."""
    lower, upper = np.asarray(lower, float), np.asarray(upper, float)
    same = np.flatnonzero(lower == upper)
    below = np.flatnonzero(np.isfinite(lower) & (lower != upper))
    above = np.flatnonzero(np.isfinite(upper) & (lower != upper))
    if same.size:
        yield same, "=", body(same) == lower[same]
    if below.size:
        yield below, ">", body(below) >= lower[below]
    if above.size:
        yield above, "<", body(above) <= upper[above]
