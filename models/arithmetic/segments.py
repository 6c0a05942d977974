"""Many small problems side by side in one array: segment j is ``values[offsets[j]:offsets[j + 1]]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import FEASIBILITY_TOLERANCE, fractional, tolerance_for
from models.arithmetic.arrays import Array, Ints, read_only
from models.arithmetic.kernels import kernel


def checked_segments(total: ArrayLike, offsets: ArrayLike | None, size: int) -> tuple[Ints, Ints]:
    """Check one total per segment, and the offsets that cut `size` noisy counts into segments; int64 arrays.

    Without offsets there is one segment, and one total.

    Raises
    ------
    ValueError
        If they are not integers, a total is negative, an empty segment has a total other than 0, or the
        offsets do not rise from 0 to `size`.
    """
    if offsets is None:
        one = exact.as_total("total", total)
        if size == 0 and one:
            raise ValueError(f"noisy is empty but its total is {one}, not 0")
        return np.array([one], np.int64), np.array([0, size], np.int64)
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
    empty = np.flatnonzero((np.diff(cuts) == 0) & (totals > 0))
    if empty.size:
        raise ValueError(f"segment {empty[0]} is empty but its total is {totals[empty[0]]}, not 0")
    return totals, cuts


def by_segment(reduce: np.ufunc, values: Array, offsets: Ints, empty: int) -> Array:
    """Reduce each segment; `ufunc.reduceat` alone is wrong on empty ones."""
    full = np.diff(offsets) > 0
    out = np.full(offsets.size - 1, empty, dtype=values.dtype)
    if full.any():
        out[full] = reduce.reduceat(values, offsets[:-1][full])
    return out


def broken(x: Array, total: ArrayLike, offsets: Ints, integer: bool = True) -> list[str]:
    """The violations of an answer that must be non-negative and have the right sum in every segment.

    It must also be whole if `integer`; otherwise floats may miss by `FEASIBILITY_TOLERANCE`.
    """
    totals: Ints = read_only(np.atleast_1d(total))
    held = read_only(np.ascontiguousarray(x))
    if x.dtype == np.int64 and adds_up(held, totals, offsets):
        return []
    if (
        x.dtype == np.float64
        and not integer
        and _nearly_adds_up(held, totals, offsets, FEASIBILITY_TOLERANCE)
    ):
        return []
    slack = 0 if integer else tolerance_for(x)
    found = list(fractional(x)) if integer else []
    found += [f"x >= 0: x[{i}] = {x[i]}" for i in np.flatnonzero(x < -slack)]
    sums = by_segment(np.add, exact.widened(x, x.size), offsets, empty=0)
    for j in np.flatnonzero(abs(sums - totals) > slack * np.maximum(1, np.diff(offsets))):
        whose = f"segment {j} adds up" if np.ndim(total) else "the counts add up"
        found.append(f"total: {whose} to {sums[j]}, not {totals[j]}")
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


@kernel(fastmath={"reassoc"})
def _nearly_adds_up(x: Any, totals: Any, offsets: Any, tolerance: float) -> bool:
    """Whether each segment's negative floats, and its sum's error per entry, are within the tolerance."""
    for j in range(totals.size):
        begin, end = offsets[j], offsets[j + 1]
        mean = totals[j] // max(1, end - begin)
        below, over = 0.0, float((end - begin) * mean - totals[j])
        for start in range(begin, end, 1024):  # partial sums around the mean: little rounding
            part = 0.0
            for i in range(start, min(start + 1024, end)):
                below += x[i] * (1.0 if x[i] < 0 else 0.0)
                part += x[i] - mean
            over += part
        if max(-below, abs(over) / max(1, end - begin)) > tolerance:
            return False
    return True
