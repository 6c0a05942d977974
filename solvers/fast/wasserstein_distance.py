"""Wasserstein distances on a line: the mean distance of quantiles (Vallender 1974)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from models import WassersteinDistance
from models.arithmetic import exact
from models.arithmetic.arrays import Array


def solve_wasserstein_distance(model: WassersteinDistance) -> tuple[Array, None]:
    """The distances of places with the same share below, times the shares that have these places."""
    sides = []
    masses = model.masses
    for values, own, other in zip((model.u_values, model.v_values), masses, masses[::-1], strict=True):
        order, much = np.argsort(np.asarray(values)), exact.total(other)
        wide = own if exact.fits(int(exact.total(own)) * int(much)) else own.astype(object)
        sides.append((np.asarray(values)[order], np.cumsum((wide * int(much))[order])))
    (u, a), (v, b) = sides
    ends = np.union1d(a, b)
    share = np.diff(ends, prepend=0)
    u, v = exact.comparable(u[np.searchsorted(a, ends)], v[np.searchsorted(b, ends)])
    if object in (u.dtype, v.dtype):
        u, v = exact.fractions(u), exact.fractions(v)
    apart = np.abs(exact.difference(u, v))
    if not exact.is_exact(apart):
        return np.array([float((apart * exact.floats(share / ends[-1])).sum())]), None
    found = Fraction(exact.dot(apart, share)) / int(ends[-1])
    return exact.objects([found], (1,)) if found.denominator > 1 else np.array([found.numerator]), None
