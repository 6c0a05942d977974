"""Many small problems side by side in one array: segment j is ``values[offsets[j]:offsets[j + 1]]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.kernels import kernel
from models.model import fractional


def checked_segments(total: ArrayLike, offsets: ArrayLike, size: int) -> tuple[Ints, Ints]:
    """Check one total per segment, and the offsets that cut `size` entries into segments; int64 arrays.

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


def by_segment(reduce: np.ufunc, values: Array, offsets: Ints, empty: int) -> Array:
    """Reduce each segment; `ufunc.reduceat` alone is wrong on empty ones."""
    full = np.diff(offsets) > 0
    out = np.full(offsets.size - 1, empty, dtype=values.dtype)
    if full.any():
        out[full] = reduce.reduceat(values, offsets[:-1][full])
    return out


def broken(x: Array, totals: Ints, offsets: Ints) -> list[str]:
    """The violations of an answer that must be whole, non-negative and of the right sum in every segment."""
    if x.dtype == np.int64 and adds_up(x, totals, offsets):
        return []
    found = list(fractional(x))
    found += [f"x >= 0: x[{i}] = {x[i]}" for i in np.flatnonzero(x < 0)]
    sums = by_segment(np.add, exact.widened(x, x.size), offsets, empty=0)
    for j in np.flatnonzero(sums != totals):
        found.append(f"total: segment {j} adds up to {sums[j]}, not {totals[j]}")
    return found


@kernel()
def adds_up(x: Any, totals: Any, offsets: Any) -> bool:
    """Whether no entry is negative and every segment has its total. False may also mean "not decided".

    The bitwise or of a segment's entries has the sign of the smallest and is at least the largest. If the
    number of entries times this bound might exceed 62 bits, the sum might have wrapped around, and False is
    returned.
    """
    for j in range(totals.size):
        part = x[offsets[j] : offsets[j + 1]]
        seen, held = 0, 0
        for i in range(part.size):
            seen |= part[i]
            held += part[i]
        if seen < 0 or held != totals[j] or float(seen) * part.size >= 2.0**62:
            return False
    return True
