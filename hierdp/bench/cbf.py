"""Conic models in the Conic Benchmark Format, version 1 (Friberg 2016): second-order and matrix cones.

The two models that are not a `Program` have a form in cvxpy. cvxpy turns it into ``minimize cᵀx`` with
``b − Ax`` in a product of cones, in the order of SCS: zero, non-negative, second-order, semidefinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from hierdp.execution import folder as folders
from models.arithmetic.arrays import Array, Floats


def write_cbf(model: Any, x: Array, path: Path) -> Path:
    """Write a conic model, in units in which its optimum is the model's.

    Parameters
    ----------
    model : BudgetSplit or StrategySDP
    x : array
        Any answer; the problem that cvxpy gets has other units, in which its cost shows.
    path : path
        An existing file is replaced.
    """
    import cvxpy as cp

    problem, answer = model.cvxpy()
    (variable,) = problem.variables()
    variable.value = np.ones(variable.shape)
    variable.value = np.asarray(x, float) / answer.value
    scale = float(model.objective(x)) / float(problem.objective.value)
    data = problem.get_problem_data(cp.SCS, solver_opts={"use_quad_obj": False})[0]
    with folders.file_appearing(path) as aside:
        aside.write_text("\n".join(_lines(data, scale)) + "\n", encoding="utf-8")
    return path


def _lines(data: dict[str, Any], scale: float) -> Iterator[str]:
    dims, cost = data["dims"], scale * np.asarray(data["c"], float)
    if dims.exp or dims.p3d:
        raise ValueError("exponential and power cones are not written")
    linear = dims.zero + dims.nonneg + sum(dims.soc)
    matrix, side = sp.csr_matrix(data["A"]), np.asarray(data["b"], float)
    yield from ("# b - A x in a product of cones; numbers have 17 digits", "VER", "1", "", "OBJSENSE", "MIN")
    if dims.psd:
        yield from ("", "PSDCON", str(len(dims.psd)), *map(str, dims.psd))
    yield from ("", "VAR", f"{cost.size} 1", f"F {cost.size}")
    cones = [("L=", dims.zero), ("L+", dims.nonneg), *(("Q", size) for size in dims.soc)]
    kept = [f"{name} {size}" for name, size in cones if size]
    if linear:
        yield from ("", "CON", f"{linear} {len(kept)}", *kept)
    held = np.flatnonzero(cost)
    yield from ("", "OBJACOORD", str(held.size), *(f"{j} {cost[j]:.17g}" for j in held.tolist()))
    head = sp.coo_matrix(matrix[:linear])
    yield from _coordinates("ACOORD", _entries(head.row, head.col, -head.data))
    yield from _coordinates(
        "BCOORD", _entries(np.flatnonzero(side[:linear]), side[np.flatnonzero(side[:linear])])
    )
    at, less, fixed = linear, [], []
    for k, size in enumerate(dims.psd):
        row, column, unit = _lower_triangle(size)
        count = row.size
        block, own = sp.coo_matrix(matrix[at : at + count]), side[at : at + count] / unit
        places = block.row
        less += _entries(
            np.full(places.size, k), block.col, row[places], column[places], -block.data / unit[places]
        )
        own_at = np.flatnonzero(own)
        fixed += _entries(np.full(own_at.size, k), row[own_at], column[own_at], own[own_at])
        at += count
    if dims.psd:
        yield from _coordinates("HCOORD", less)
        yield from _coordinates("DCOORD", fixed)


def _lower_triangle(size: int) -> tuple[Array, Array, Floats]:
    """Rows and columns of a symmetric matrix in SCS's order, and the factors of its entries there."""
    column, row = np.triu_indices(size)
    return row, column, np.where(row == column, 1.0, np.sqrt(2.0))


def _entries(*columns: Array) -> list[str]:
    *places, values = (part.tolist() for part in columns)
    return [" ".join([*map(str, at), f"{value:.17g}"]) for *at, value in zip(*places, values, strict=True)]


def _coordinates(name: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield from ("", name, str(len(entries)), *entries)
