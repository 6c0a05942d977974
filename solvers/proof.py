"""The exact gap of any answer: its model's certificate, and where that leaves a gap, a proved optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models import Certificate, Model
from solvers.front import solve


def prove(model: Model, x: Any) -> Certificate:
    """The certificate of an answer, with the gap that it truly has.

    Most models' own certificates find it. Where one leaves a gap that may be too wide (relaxed answers, data
    beyond 64 bits), the fast path's answer, if its certificate proves it optimal, supplies the bound.

    Parameters
    ----------
    model : Model
    x : array, in the model's shape

    Returns
    -------
    Certificate
        With the fast answer's witness where its prices were needed.

    Examples
    --------
    >>> from models import Isotonic
    >>> model = Isotonic([9, 0, 0, 0], integer=True)
    >>> prove(model, [4, 4, 4, 4]).gap == model.objective([4, 4, 4, 4]) - model.objective([2, 2, 2, 2])
    True
    """
    own = model.certificate(x)
    if own.optimal or own.gap is None:
        return own
    best = solve(model).certificate
    if best is None or not best.optimal or best.bound is None or best.bound < own.objective - own.gap:
        return own
    gap = max(own.objective - best.bound, 0)  # floats may round to just below
    return replace(own, bound=best.bound, gap=gap, witness=best.witness)
