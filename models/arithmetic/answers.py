"""Answers as arrays: of the right shape, whole where they must be, floats within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array

FEASIBILITY_TOLERANCE = 1e-6
"""Relative amount by which an answer in floats may break a constraint; integer answers get none."""


def answer_of(x: Any, shape: tuple[int, ...], integer: bool) -> Array:
    """An answer as an array of the model's shape, in int64, float64 or objects.

    Whole floats become int64 for an integer model, if 64 bits hold them. The result may be the caller's own
    array: do not write to it.

    Raises
    ------
    ValueError
        If the shape is wrong, or an entry is not finite.
    """
    array = np.asarray(x)
    if array.shape != shape:
        raise ValueError(f"the answer has shape {array.shape}, the model {shape}")
    if array.dtype == object:
        return array
    if not np.issubdtype(array.dtype, np.floating):
        return array.astype(np.int64, copy=False)
    array = array.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.isfinite(array.sum())  # then all are finite, and no array of flags is needed
    if not plain and not np.isfinite(array).all():
        raise ValueError("the answer has entries that are not finite")
    whole = integer and np.all(array == np.rint(array)) and np.abs(array).max(initial=0) < 2.0**63
    return array.astype(np.int64) if whole else array


def tolerance_for(x: Array, *others: Array) -> float:
    """The difference up to which floats of this size count as equal; 0 for exact answers."""
    if not np.issubdtype(x.dtype, np.floating):
        return 0
    largest = max((max(float(a.max()), -float(a.min())) for a in (x, *others) if a.size), default=0.0)
    return FEASIBILITY_TOLERANCE * max(1.0, largest)


def fractional(x: Array) -> Iterator[str]:
    """The entries of an integer model's answer that are not whole numbers."""
    if np.issubdtype(x.dtype, np.floating):
        wrong = np.argwhere(x != np.rint(x))
    elif x.dtype == object:
        wrong = np.argwhere(np.vectorize(lambda value: value != int(value), otypes=[bool])(x))
    else:
        return
    for place in wrong:
        yield f"integer: x[{', '.join(map(str, place))}] = {x[tuple(place)]}"
