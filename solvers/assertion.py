"""`assert_optimal`: one line that tests an answer, whoever found it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from models import Certificate, Model, Program
from solvers import fast
from solvers.prove import prove
from solvers.solve import solve

MOST_SHOWN = 200
"""Characters of a better answer that a message shows."""


def assert_optimal(model: Model | Program, x: Any, time_limit: float = 60.0) -> Certificate:
    """Prove that an answer is optimal, or say what is wrong with it.

    Parameters
    ----------
    model : Model or Program
    x : array, in the model's shape
        For a program, all its variables.
    time_limit : float
        Seconds for the search for a better answer by HiGHS, if there is no fast path.

    Returns
    -------
    Certificate
        The proof.

    Raises
    ------
    AssertionError
        If the answer breaks a constraint, if a better one is found (which the message shows), or if nothing
        proves the answer.

    Examples
    --------
    >>> from models import Isotonic
    >>> assert_optimal(Isotonic([3, 1, 4], integer=True), [2, 2, 4]).gap
    0
    >>> assert_optimal(Isotonic([3, 1, 4], integer=True), [1, 1, 4])
    Traceback (most recent call last):
    AssertionError: not optimal: it costs 4, and [2 2 4] costs 2
    """
    proof = prove(model, x)
    if proof.optimal:
        return proof
    if proof.gap is None:
        raise AssertionError(proof.reason)
    better = _better(model, proof, time_limit)
    if better is not None:
        raise AssertionError(f"not optimal: it costs {proof.objective}, and {better}")
    raise AssertionError(
        f"not proved: it costs {proof.objective}, and the best bound found is {proof.bound} ({proof.reason})"
    )


def _better(model: Any, proof: Certificate, time_limit: float) -> str | None:
    """An answer that costs less than one that was not proved, in words."""
    x = None
    with suppress(fast.NoFastPath):
        x, _ = fast.answer(model)
    if x is None:
        with suppress(ValueError):  # it is not installed, or the program is too large to state
            x = solve(model, "highs", time_limit).x
    if x is None:
        return None
    cost = model.value(np.asarray(x)) if isinstance(model, Program) else model.objective(x)
    if not cost < proof.objective:
        return None
    shown = np.array2string(np.asarray(x), max_line_width=10_000, threshold=50)
    shown = shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…"
    return f"{shown} costs {cost}"
