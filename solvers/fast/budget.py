"""Budget splits: in closed form if variances add up, by an interior point if measurements are combined."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from models import BudgetSplit
from models.arithmetic.arrays import Floats
from models.certificate import Witness

CLOSE = 1e-11
"""The relative gap at which the interior point ends."""

LARGEST = 1e-6
"""Errors within this part of the largest may have multipliers."""

MOST_STEPS = 400
"""Newton steps, of which some 60 suffice."""


def solve_budget(model: BudgetSplit) -> tuple[Floats, Witness | None]:
    """The optimum; the shares add up to ε within rounding.

    Without `information`, shares in proportion to the cube roots of the weights (Qardaji, Yang & Li 2013,
    §3.5); with a diagonal one and a single error, to the square roots of weight over information (Xiao et al.
    2023, Theorem 5); else by an interior point.
    """
    weights, epsilon = model.data
    if model.information is None:
        roots = np.cbrt(weights)
    elif np.ndim(model.information) == 1 and len(weights) == 1:
        roots = np.sqrt(np.divide(weights[0], model.information, where=weights[0] > 0, out=0 * weights[0]))
    else:
        share, errors = _interior(weights / weights.max(), np.asarray(model.information))
        return epsilon * share, {"errors": errors}
    return np.asarray(epsilon * (roots / roots.sum())), None


def _interior(weights: Floats, information: Floats) -> tuple[Floats, Floats]:
    """Minimize the largest error on the simplex: a path of Newton steps, and the errors' multipliers.

    minimize  T·t − Σ ln(t − f_e(x)) − Σ ln x  over t and x with Σx = 1, for growing T; f_e(x) = Σ a_e/(Cx).
    At its optimum the multipliers 1/(T(t − f_e)) leave a gap of (errors + shares)/T (Boyd & Vandenberghe
    2004, §11.2). A single error needs no t: T·f(x) is in place of the first two terms.
    """
    used = np.flatnonzero(weights.any(axis=0))
    weights = weights[:, used]
    matrix = np.diag(information)[used] if information.ndim == 1 else information[used]
    size = matrix.max()
    matrix, (errors, n) = matrix / size, (len(weights), matrix.shape[1])
    x = np.full(n, 1 / n)
    t = 2 * float((weights @ (1 / (matrix @ x))).max())
    sharp = (errors + n) / t

    alone = errors == 1

    def height(x: Floats, t: float) -> float:
        if not (x > 0).all():
            return np.inf
        values = weights @ (1 / (matrix @ x))
        if alone:
            return float(sharp * values[0] - np.log(x).sum())
        room = t - values
        return sharp * t - float(np.log(room).sum() + np.log(x).sum()) if (room > 0).all() else np.inf

    for _ in range(MOST_STEPS):
        z = matrix @ x
        values = weights @ (1 / z)
        room = np.array([sharp]) if alone else 1 / (t - values)
        # All steps are relative to x and t, so that the system is well scaled.
        each = matrix * x / z[:, None]
        slopes = -room[:, None] * ((weights / z) @ each)
        first = np.append(slopes.sum(axis=0) - 1, (sharp - room.sum()) * t)  # 0 for t, if alone
        second = np.zeros((n + 2, n + 2))
        second[:n, :n] = (each.T * (2 * (room @ weights) / z)) @ each + np.eye(n)
        second[n, n] = t * t * (room @ room)
        if not alone:
            second[:n, :n] += slopes.T @ slopes
            second[:n, n] = second[n, :n] = -(t * room) @ slopes
        second[:n, n + 1] = second[n + 1, :n] = x  # keeps the sum
        step = np.linalg.solve(second, np.append(-first, 1 - x.sum()))[: n + 1]
        gain, length, here = float(-first @ step), 1.0, height(x, t)
        while height(x * (1 + length * step[:n]), t * (1 + length * step[n])) > here - 0.1 * length * gain:
            length /= 2
            if length < 1e-9:
                break
        if length < 1e-9:  # rounding allows no more
            break
        x, t = x * (1 + length * step[:n]), t * (1 + length * step[n])
        if gain < 0.1:
            if (errors + n) / sharp < CLOSE * float(values.max()):
                break
            sharp *= 8
    x = x / x.sum()
    return x, _multipliers(weights, matrix, x)


def _multipliers(weights: Floats, matrix: Floats, x: Floats) -> Floats:
    """Of the largest errors, such that all shares have the same slope: t − f would lose digits."""
    z = matrix @ x
    values = weights @ (1 / z)
    largest = np.flatnonzero(values >= values.max() * (1 - LARGEST))
    slopes = (weights[largest] / z**2) @ matrix / values.max()
    found = np.zeros(len(weights))
    found[largest] = nnls((slopes * np.sqrt(x)).T, np.sqrt(x))[0] if largest.size > 1 else 1.0
    return np.asarray(found / found.sum())
