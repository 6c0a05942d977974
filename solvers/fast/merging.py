"""Merging of estimates: the weighted average of each entry, rounded where it must be whole."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from models import Merging
from models.arithmetic import exact
from models.arithmetic.arrays import Array


def solve_merging(model: Merging) -> tuple[Array, None]:
    """The optimum, in linear time: over the reals in floats, or in Fractions if the sums do not fit 64 bits.

    Ties: half-way between two whole numbers, the even one is taken.
    """
    sums, mass = model.sums()
    if model.integer and not exact.is_exact(sums) and not (np.abs(sums) < 2.0**62 * mass).all():
        y, w = map(exact.fractions, model.data)  # means beyond 64 bits, or sums beyond floats
        sums, mass = (w * y).sum(axis=0), w.sum(axis=0)
    if model.integer:
        return nearest(sums, mass), None
    if sums.dtype == object:
        pairs = zip(sums.tolist(), mass.tolist(), strict=True)
        return np.array([*(Fraction(s) / w for s, w in pairs), None], dtype=object)[:-1], None
    return sums.astype(np.float64) / mass.astype(np.float64), None


def nearest(sums: Array, mass: Array) -> Array:
    """The whole number nearest to each sums/mass, exact for exact data; the even one if half-way."""
    if not (exact.is_exact(sums) and exact.is_exact(mass)):
        return np.asarray(np.rint(sums / mass).astype(np.int64))
    up = (2 * sums + mass) // (2 * mass)
    tie = (2 * sums + mass == 2 * mass * up) & (up % 2 == 1)
    return np.asarray(up - tie)
