"""The matrix mechanism's strategy SDP by ascent of its dual, with one eigenvalue problem per step.

The dual is to maximize 2‖W D^½‖_* − Σμ over the diagonals D = diag(μ) > 0. With s = √μ, the nuclear norm is
convex in s, so its tangent at the present s is a lower bound. With the tangent in place of the norm, the
maximum is at s_i ← m_i/s_i, where m is the diagonal of (D^½ WᵀW D^½)^½. So no step decreases the dual (a
minorize–maximize step). A fixed point μ has X_ii = 1 for X = D^-½ (D^½ WᵀW D^½)^½ D^-½: this X is feasible,
and its duality gap is 0. Before that, X is scaled to be feasible, and its gap is computed.

Such steps are slow where queries have very different weights, so the steps so far are combined to one for
which the change of log μ would be least if it were linear (Anderson acceleration; Walker & Ni 2011). Where
this decreases the bound, the plain step is taken instead.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from models import StrategySDP
from models.arithmetic.arrays import Floats

ENOUGH = 1e-9
"""Relative duality gap at which the ascent ends."""

STEPS = 2_000
"""The most steps. After them the ascent ends with a larger gap, which the certificate reports."""

NEAR = 6e-4
"""The gap is computed once the changes of log μ are this close to each other: it is about their square."""

COMBINED = 8
"""How many steps are combined."""

FAR = 10.0
"""A combination changes log μ by at most this much."""


def solve_strategy(model: StrategySDP) -> tuple[Floats, None]:
    """An X with a unit diagonal and a relative gap of at most `ENOUGH`, or the result of `STEPS` steps."""
    gram = model.gram
    price = np.log(np.diag(gram))  # log μ
    prices: list[Floats] = []
    changes: list[Floats] = []
    best = 0.0
    for step in range(STEPS):
        s = np.exp(price / 2)
        values, vectors = la.eigh(gram * np.outer(s, s))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        m = np.diag(root)
        # At the prices so far the bound is tr(root)²/Σμ; X is root over s·sᵀ, scaled to a unit diagonal.
        bound = float(m.sum()) ** 2 / float(s @ s)
        if len(prices) > 1 and bound < best and step < STEPS - 1:
            price = prices[-1] + changes[-1]
            prices, changes = [], []
            continue
        best = bound
        change = 2 * (np.log(m) - price)
        if np.ptp(change) <= NEAR or step == STEPS - 1:
            x = root / np.sqrt(np.outer(m, m))
            cost = model.objective(x)
            if cost - bound <= ENOUGH * cost:
                break
        prices, changes = [*prices, price][-COMBINED:], [*changes, change][-COMBINED:]
        price = _next(np.array(prices), np.array(changes))
    return np.asarray(x), None


def _next(prices: Floats, changes: Floats) -> Floats:
    """The combination of the steps whose change would be least; the last step, if that leads far away."""
    usual = prices[-1] + changes[-1]
    if len(prices) > 1:
        share = np.linalg.lstsq(np.diff(changes, axis=0).T, changes[-1], rcond=None)[0]
        found = usual - share @ np.diff(prices + changes, axis=0)
        if np.abs(found - prices[-1]).max() <= FAR:
            return np.asarray(found)
    return np.asarray(usual)
