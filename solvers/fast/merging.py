"""Merging of estimates: the weighted average of each entry, rounded where it must be whole."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from models import Merging
from models.arithmetic import exact
from models.arithmetic.arrays import Array


def solve_merging(model: Merging) -> tuple[Array, None]:
    """The optimum, in linear time: over the reals in floats, or in Fractions if the sums do not fit 64 bits.

    Ties: half-way between two whole numbers, the even one is taken. Near a half, Fractions decide.
    """
    sums, mass = model.sums()
    if model.integer:
        return (
            nearest(sums, mass) if exact.is_exact(sums) and exact.is_exact(mass) else nearest_of(model)
        ), None
    if sums.dtype == object:
        pairs = zip(sums.tolist(), mass.tolist(), strict=True)
        return np.array([*(Fraction(s) / w for s, w in pairs), None], dtype=object)[:-1], None
    return sums.astype(np.float64) / mass.astype(np.float64), None


def nearest(sums: Array, mass: Array) -> Array:
    """The whole number nearest to each sums/mass, for exact ones; the even one if half-way."""
    up = (2 * sums + mass) // (2 * mass)
    tie = (2 * sums + mass == 2 * mass * up) & (up % 2 == 1)
    return np.asarray(up - tie)


def nearest_of(model: Merging) -> Array:
    """The whole number nearest to each mean of data in floats; Python integers if some are beyond 64 bits."""
    y, w = (exact.floats(part) for part in model.data)
    with np.errstate(all="ignore"):
        mean, largest = (w * y).sum(axis=0) / w.sum(axis=0), np.abs(y).max(axis=0)
        near = 4 * (len(y) + 4) * 2.0**-53 * largest  # by how much a mean may be off
        from_half = np.abs(mean - np.floor(mean) - 0.5)
        clear = (from_half > near) & (largest < 2.0**50) & ((w * np.abs(y) > 1e-280) | (y == 0)).all(axis=0)
    found = np.where(clear, np.rint(np.where(clear, mean, 0.0)), 0.0).astype(np.int64)
    if clear.all():
        return found
    at = np.flatnonzero(~clear)
    y, w = (exact.fractions(part[:, at]) for part in model.data)
    exactly = nearest((w * y).sum(axis=0), w.sum(axis=0))
    wide = exact.reach(exactly) >= 2**62
    answer = found.astype(object) if wide else found
    answer[at] = exactly if wide else exactly.astype(np.int64)
    return answer
