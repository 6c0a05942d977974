"""Two-sided bounds as the relations that modelling libraries take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from models.arithmetic.arrays import Array

Relation = tuple[Array, Literal["=", ">", "<"], Any]


def relations(body: Callable[[Array], Any], lower: Array, upper: Array) -> Iterator[Relation]:
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
