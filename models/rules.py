"""Bounds on sums of cells, which the models of a parent's children share."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Array
from models.programs.terms import INFINITY
from models.workload import Workload


def for_each_child(name: str, values: Array, children: int, each: int) -> Array:
    """One row for each child, read-only; shape (each,) or (children, each) → (children, each).

    Raises
    ------
    ValueError
        If the values have another shape.
    """
    if values.shape not in ((each,), (1, each), (children, each)):
        raise ValueError(
            f"{name} has shape {values.shape}; it needs {each} entries, or {each} for each of the "
            f"{children} children"
        )
    found = np.array(np.broadcast_to(values, (children, each)))
    found.flags.writeable = False
    return found


def bounds_of(
    rules: Workload | None, workload: Workload, children: int, given: tuple[Any, Any]
) -> tuple[Any, Any]:
    """``(lower, upper)`` of each child's sums, checked; infinite where none was given.

    Parameters
    ----------
    rules : Workload or None
        The sums; None if there are none.
    workload : Workload
        The model's, over the same attributes.
    children : int
    given : pair of arrays or None
        Lower and upper bounds, shape (), (rules.size,) or (children, rules.size).

    Raises
    ------
    ValueError
        If a bound has a wrong shape or is not a number, or if there are bounds without rules.
    """
    if rules is None:
        if any(side is not None for side in given):
            raise ValueError("lower and upper are bounds of rules; there are no rules")
        return None, None
    if rules.shape != workload.shape:
        raise ValueError(f"rules are over the shape {rules.shape}, not {workload.shape}")
    sides = []
    for name, side, missing in zip(("lower", "upper"), given, (-INFINITY, INFINITY), strict=True):
        side = np.array(missing if side is None else side)
        if side.dtype != object:
            if side.dtype.kind not in "iuf" or np.isnan(side).any():
                raise ValueError(f"{name} must be numbers, or infinite where there is no bound")
            side = side.astype(float) if side.dtype.kind == "f" else side.astype(np.int64)
        if side.ndim == 0:
            side = np.broadcast_to(side, (rules.size,))
        sides.append(for_each_child(name, side, children, rules.size))
    return sides[0], sides[1]


def rule_name(rules: Workload | None, i: int) -> str:
    """The name of rule i: its query, and its place among that query's answers."""
    assert rules is not None
    q = int(np.searchsorted(rules.start, i, "right")) - 1
    return f"query {q}, answer {i - rules.start[q]}"
