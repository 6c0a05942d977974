"""Budget splits: in closed form if variances add up, by an interior point if measurements are combined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import nnls

from models import BudgetSplit
from models.arithmetic.arrays import Floats
from models.certificate import Witness

CLOSE = 1e-13
"""The relative gap at which the interior point ends."""

LARGEST = 1e-6
"""Errors within this part of the largest may have multipliers."""

MOST_STEPS = 400
"""Newton steps, of which some 60 suffice."""


def solve_budget(model: BudgetSplit) -> tuple[Floats, Witness | None]:
    """The optimum; the shares add up to ε within rounding.

    Without `information`, shares in proportion to the cube roots of the weights (Qardaji, Yang & Li 2013,
    §3.5); with a diagonal one and a single error, to the square roots of weight over information (Xiao et al.
    2023, Theorem 5); with a diagonal one and errors of a single part each, such that all are equal; else by
    an interior point.
    """
    weights, epsilon = model.data
    witness = None
    if model.information is None:
        roots = np.cbrt(weights)
    elif np.ndim(model.information) == 1 and len(weights) == 1:
        roots = np.sqrt(np.divide(weights[0], model.information, where=weights[0] > 0, out=0 * weights[0]))
    elif np.ndim(model.information) == 1 and (np.count_nonzero(weights, axis=1) == 1).all():
        each = np.divide(weights, model.information, where=weights > 0, out=0 * weights)
        roots, errors = each.max(axis=0), np.zeros(len(weights))
        np.maximum.at(errors, each.argmax(axis=0), roots)
        witness = {"errors": errors}
    else:
        informed = _squares if model.square else _numbers
        share, errors = _interior(*informed(weights / weights.max(), np.asarray(model.information)))
        return epsilon * share, {"errors": errors}
    return np.asarray(epsilon * (roots / roots.sum())), witness


Slopes = tuple[Floats, Floats, Callable[[Floats], Floats]]
"""The errors f_e at x, x_i·∂f_e/∂x_i, and the second derivatives (times x_i·x_j) of a weighted sum."""

Errors = tuple[int, int, Callable[[Floats], Floats], Callable[[Floats], Slopes]]
"""The numbers of errors and of shares; the errors of shares; and their derivatives."""


def _numbers(weights: Floats, information: Floats) -> Errors:
    """f_e(x) = Σ a_e/(Cx)."""
    used = np.flatnonzero(weights.any(axis=0))
    weights = weights[:, used]
    matrix = np.diag(information)[used] if information.ndim == 1 else information[used]
    matrix = matrix / matrix.max()

    def errors(x: Floats) -> Floats:
        return np.asarray(weights @ (1 / (matrix @ x)))

    def slopes(x: Floats) -> Slopes:
        z = matrix @ x
        each = matrix * x / z[:, None]

        def second(mix: Floats) -> Floats:
            return np.asarray((each.T * (2 * (mix @ weights) / z)) @ each)

        return weights @ (1 / z), -(weights / z) @ each, second

    return len(weights), matrix.shape[1], errors, slopes


def _squares(weights: Floats, information: Floats) -> Errors:
    """f_e(x) = Σ tr(a_e (Cx)⁻¹)."""
    information = information / information.max()
    parts, n = information.shape[:2]

    def inverse(x: Floats) -> Floats:
        return np.asarray(np.linalg.inv(np.tensordot(information, x, (1, 0))), float)

    def errors(x: Floats) -> Floats:
        return np.asarray(np.einsum("epij,pij->e", weights, inverse(x)))

    def slopes(x: Floats) -> Slopes:
        inner = inverse(x)
        each = inner[:, None] @ (information * x[:, None, None])

        def second(mix: Floats) -> Floats:
            turned = each @ (inner @ np.tensordot(mix, weights, 1))[:, None]  # S C_i S a
            rows = turned.reshape(parts, n, -1), each.swapaxes(2, 3).reshape(parts, n, -1)
            found = np.tensordot(*rows, ((0, 2), (0, 2)))
            return np.asarray(found + found.T)

        first = -np.einsum("epij,pnjk,pki->en", weights, each, inner, optimize=True)
        return np.einsum("epij,pij->e", weights, inner), first, second

    return len(weights), n, errors, slopes


def _interior(
    errors: int, n: int, errors_of: Callable[[Floats], Floats], slopes_of: Callable[[Floats], Slopes]
) -> tuple[Floats, Floats]:
    """Minimize the largest error on the simplex: a path of Newton steps, and the errors' multipliers.

    minimize  T·t − Σ ln(t − f_e(x)) − Σ ln x  over t and x with Σx = 1, for growing T. At its optimum the
    multipliers 1/(T(t − f_e)) leave a gap of (errors + shares)/T (Boyd & Vandenberghe 2004, §11.2). A single
    error needs no t: T·f(x) is in place of the first two terms.
    """
    x = np.full(n, 1 / n)
    t = 2 * float(errors_of(x).max())
    sharp = (errors + n) / t

    alone = errors == 1

    def height(x: Floats, t: float) -> float:
        if not (x > 0).all():
            return np.inf
        values = errors_of(x)
        if alone:
            return float(sharp * values[0] - np.log(x).sum())
        room = t - values
        return sharp * t - float(np.log(room).sum() + np.log(x).sum()) if (room > 0).all() else np.inf

    for _ in range(MOST_STEPS):
        # All steps are relative to x and t, so that the system is well scaled.
        values, slopes, curved = slopes_of(x)
        room = np.array([sharp]) if alone else 1 / (t - values)
        slopes = room[:, None] * slopes
        first = np.append(slopes.sum(axis=0) - 1, (sharp - room.sum()) * t)  # 0 for t, if alone
        second = np.zeros((n + 2, n + 2))
        second[:n, :n] = curved(room) + np.eye(n)
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
    return x, _multipliers(x, *slopes_of(x)[:2])


def _multipliers(x: Floats, values: Floats, slopes: Floats) -> Floats:
    """Of the largest errors, such that all shares have the same slope: t − f would lose digits."""
    largest = np.flatnonzero(values >= values.max() * (1 - LARGEST))
    steep = -slopes[largest] / values.max() / np.sqrt(x)
    found = np.zeros(len(values))
    found[largest] = nnls(steep.T, np.sqrt(x))[0] if largest.size > 1 else 1.0
    return np.asarray(found / found.sum())
