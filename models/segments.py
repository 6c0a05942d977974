"""Many small problems side by side in one array: segment j is ``values[offsets[j]:offsets[j + 1]]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.answers import fractional
from models.arithmetic.arrays import PIECE, Array, Ints, read_only
from models.arithmetic.kernels import kernel

Spread = Callable[[Array], Any]


def checked_segments(total: ArrayLike, offsets: ArrayLike | None, size: int) -> tuple[Ints, Ints]:
    """Check one total per segment, and the offsets that cut `size` noisy counts into segments; int64 arrays.

    Without offsets there is one segment, and one total.

    Raises `ValueError` if they are not integers, a total is negative, an empty segment has a total other than
    0, or the offsets do not rise from 0 to `size`.
    """
    if offsets is None:
        one = door.total("total", total)
        if size == 0 and one:
            raise ValueError(f"noisy is empty but its total is {one}, not 0")
        return np.array([one], np.int64), np.array([0, size], np.int64)
    totals, cuts = door.data("total", total), door.data("offsets", offsets)
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


def by_pieces(
    offsets: Ints, terms: Callable[[slice, Spread], Sequence[tuple[np.ufunc, Array]]]
) -> list[Array]:
    """Reduce several terms by segment, some thousands of entries at a time; 0 for empty segments.

    `terms` returns the reductions and terms of a slice of the entries. It is given a function that makes, of
    a value for each segment, one for each entry of the slice; or one for all, if they are of one segment.
    """
    full = np.flatnonzero(offsets[1:] > offsets[:-1])
    starts, size = offsets[full], int(offsets[-1])
    out: list[Array] = []
    for begin in range(0, max(size, 1), PIECE):
        end = min(begin + PIECE, size)
        a = max(int(np.searchsorted(starts, begin, side="right")) - 1, 0)
        b = int(np.searchsorted(starts, end))
        cuts = np.maximum(starts[a:b], begin) - begin
        lengths = np.append(cuts[1:], end - begin) - cuts if cuts.size else cuts
        for k, (f, v) in enumerate(terms(slice(begin, end), partial(_spread, full[a:b], lengths))):
            values = f.reduceat(v, cuts) if cuts.size > 1 else np.array([f.reduce(v)]) if size else v
            if begin == 0:
                out.append(np.zeros(offsets.size - 1, values.dtype))
            elif starts[a] < begin:  # the segment of which a part came before
                values[0] = f(out[k][full[a]], values[0])
            out[k][full[a:b]] = values
    return out


def _spread(whose: Ints, lengths: Ints, values: Array) -> Any:
    return values[whose[0]] if whose.size == 1 else np.repeat(values[whose], lengths)


def within(sizes: Ints) -> Ints:
    """Positions within segments of these sizes: 0, 1, … in each."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def broken(x: Array, total: ArrayLike, offsets: Ints, integer: bool = True) -> list[str]:
    """The violations of an exact answer that must be non-negative and have the right sum in every segment.

    It must also be whole if `integer`.
    """
    totals: Ints = read_only(np.atleast_1d(total))
    if x.dtype == np.int64 and adds_up(read_only(np.ascontiguousarray(x)), totals, offsets):
        return []
    return [*(fractional(x) if integer else []), *_wrong(x, total, totals, offsets, 0, 0)]


def _wrong(
    x: Array, total: ArrayLike, totals: Ints, offsets: Ints, slack: float, slacks: Any
) -> Iterator[str]:
    yield from (f"x >= 0: x[{i}] = {x[i]}" for i in np.flatnonzero(x < -slack))
    sums = by_segment(np.add, exact.widened(x, x.size), offsets, empty=0)
    for j in np.flatnonzero(abs(sums - totals) > slacks):
        whose = f"segment {j} adds up" if np.ndim(total) else "the counts add up"
        yield f"total: {whose} to {sums[j]}, not {totals[j]}"


@kernel(linear=True)
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


@adds_up.without_numba
def _adds_up_in_arrays(x: Any, totals: Any, offsets: Any) -> bool:
    seen, held = by_pieces(offsets, lambda part, _: [(f, x[part]) for f in (np.bitwise_or, np.add)])
    fits = seen.min(initial=0) >= 0 and float(seen.max(initial=0)) * x.size < 2.0**62
    return bool(fits and np.array_equal(held, totals))
