"""The matrix mechanism's strategy SDP by ascent of its dual, with one eigenvalue problem per step.

The dual is to maximize 2‖W D^½‖_* − Σμ over the diagonals D = diag(μ) > 0. With s = √μ, the nuclear norm is
convex in s, so its tangent at the present s is a lower bound. With the tangent in place of the norm, the
maximum is at s_i ← m_i/s_i, where m is the diagonal of (D^½ WᵀW D^½)^½. So no step decreases the dual (a
minorize–maximize step). A fixed point μ has X_ii = 1 for X = D^-½ (D^½ WᵀW D^½)^½ D^-½: this X is feasible,
and its duality gap is 0. Before that, X is scaled to be feasible, and its gap is computed.
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


def solve_strategy(model: StrategySDP) -> tuple[Floats, None]:
    """An X with a unit diagonal and a relative gap of at most `ENOUGH`, or the result of `STEPS` steps."""
    gram = model.gram
    price = np.diag(gram).copy()
    for _ in range(STEPS):
        s = np.sqrt(price)
        values, vectors = la.eigh(gram * np.outer(s, s))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        m = np.diag(root)
        # At the prices so far the bound is tr(root)²/Σμ; X is root over s·sᵀ, scaled to a unit diagonal.
        x = root / np.sqrt(np.outer(m, m))
        cost = model.objective(x)
        bound = float(m.sum()) ** 2 / float(price.sum())
        if cost - bound <= ENOUGH * cost:
            break
        price = m * m / price
    return np.asarray(x), None
