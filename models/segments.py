"""Many small problems side by side in one array: segment j is ``values[offsets[j]:offsets[j + 1]]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import exact

Ints = NDArray[np.int64]


def checked_segments(total: ArrayLike, offsets: ArrayLike, size: int) -> tuple[Ints, Ints]:
    """A total a segment, and offsets that cut `size` entries into them, as int64 arrays.

    Raises
    ------
    ValueError
        If they are not integers, a total is negative, or the offsets do not rise from 0 to `size`.
    """
    totals, cuts = exact.as_data("total", total), exact.as_data("offsets", offsets)
    if totals.dtype != np.int64 or cuts.dtype != np.int64:
        raise ValueError("total and offsets must be integers")
    if cuts.size != totals.size + 1 or cuts[0] != 0 or cuts[-1] != size or np.any(np.diff(cuts) < 0):
        raise ValueError(
            f"offsets must rise from 0 to {size} in {totals.size + 1} steps, one more than there are totals"
        )
    if totals.size and totals.min() < 0:
        j = int(np.argmin(totals))
        raise ValueError(f"total of segment {j} is {totals[j]}: no non-negative counts add up to it")
    return totals, cuts


def by_segment(reduce: np.ufunc, values: NDArray[Any], offsets: Ints, empty: int) -> NDArray[Any]:
    """Reduce each segment; `ufunc.reduceat` alone is wrong on empty ones."""
    full = np.diff(offsets) > 0
    out = np.full(offsets.size - 1, empty, dtype=values.dtype)
    if full.any():
        out[full] = reduce.reduceat(values, offsets[:-1][full])
    return out
