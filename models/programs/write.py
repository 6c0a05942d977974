"""Programs as files, and as the objects of HiGHS and Pyomo, which the backends of `solvers` use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from models.programs.reformulate import without_tables
from models.programs.terms import Formulation
from models.programs.texts import lp_lines, mps_lines, stated


def to_highs(program: Formulation) -> Any:
    """A `highspy.HighsModel` of a program without absolute terms, integrality included."""
    import highspy

    if program.has("absolute"):
        raise ValueError(
            "absolute terms must be rewritten first: see models.programs.reformulate.without_absolutes"
        )
    bend, cost, constant = program.expanded()
    diagonal = 2 * bend
    model = highspy.HighsModel()
    lp = model.lp_
    lp.num_col_, lp.num_row_ = program.size, program.matrix.shape[0]
    lp.col_cost_, lp.offset_ = cost, constant
    lp.col_lower_, lp.col_upper_ = program.bounds
    lp.row_lower_, lp.row_upper_ = program.row_bounds
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.matrix.indptr
    lp.a_matrix_.index_ = program.matrix.indices
    lp.a_matrix_.value_ = program.matrix.data
    if program.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in program.integer]
    if diagonal.any():
        held = np.flatnonzero(diagonal)
        hessian = model.hessian_
        hessian.dim_, hessian.format_ = program.size, highspy.HessianFormat.kTriangular
        hessian.start_ = np.searchsorted(held, np.arange(program.size + 1))
        hessian.index_, hessian.value_ = held, diagonal[held]
    return model


def to_pyomo(program: Formulation) -> Any:
    """A Pyomo `ConcreteModel`: variables ``v``, constraints ``row``, objective ``obj``; no absolute terms."""
    import pyomo.environ as pyo

    lower, upper = program.bounds
    model = pyo.ConcreteModel()
    model.v = pyo.Var(range(program.size))
    for i, variable in model.v.items():
        variable.domain = pyo.Integers if program.integer[i] else pyo.Reals
        variable.setlb(None if np.isinf(lower[i]) else lower[i])
        variable.setub(None if np.isinf(upper[i]) else upper[i])
    variables = [model.v[i] for i in range(program.size)]
    matrix, (row_lower, row_upper) = program.matrix, program.row_bounds
    model.row = pyo.Constraint(range(matrix.shape[0]))
    for i in range(matrix.shape[0]):
        model.row[i] = row_to_pyomo(matrix, i, variables, row_lower[i], row_upper[i])
    costs = []
    for term in program.objective:
        weights, centers = (np.asarray(part, float).tolist() for part in term.data)
        for w, c, i in zip(weights, centers, term.index.tolist(), strict=True):
            v = variables[i]
            if term.kind == "linear":
                costs.append(w * v)
            else:
                costs.append(w * (v - c) ** 2 if term.kind == "quadratic" else w * abs(v - c))
    model.obj = pyo.Objective(expr=pyo.quicksum(costs))
    return model


def row_to_pyomo(matrix: Any, i: int, variables: list[Any], lower: float, upper: float) -> Any:
    """Row i of a sparse matrix as a Pyomo relation between its bounds; it is skipped if it has none."""
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    inside = slice(matrix.indptr[i], matrix.indptr[i + 1])
    body = LinearExpression(
        linear_coefs=matrix.data[inside].tolist(), linear_vars=[variables[j] for j in matrix.indices[inside]]
    )
    low, high = (None if np.isinf(bound) else float(bound) for bound in (lower, upper))
    if low is None and high is None:
        return pyo.Constraint.Skip
    return (body == low) if low is not None and low == high else (low, body, high)


def write(program: Formulation, path: Path) -> Path:
    """Write the program to `.mps`, `.lp` or `.nl`, first to a temporary file beside the path.

    `models.programs.texts` has the form of `.mps` and `.lp`; Pyomo writes `.nl`.

    Raises `ValueError` if the suffix is none of the three; `OSError` if the file cannot be written; nothing
    is left behind.
    """
    lines = {".mps": mps_lines, ".lp": lp_lines}
    if path.suffix not in {*lines, ".nl"}:
        raise ValueError(f"cannot write {path.name}: the suffix must be .mps, .lp or .nl")
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        if path.suffix == ".nl":
            to_pyomo(without_tables(program)).write(str(aside), io_options={"symbolic_solver_labels": False})
        else:
            with aside.open("w", encoding="ascii", newline="\n") as out:
                out.writelines(f"{line}\n" for line in lines[path.suffix](stated(program)))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def quiet_highs() -> Any:
    """A `highspy.Highs` that prints nothing.

    Since 1.16 its constructor prints HiGHS's version, while it enables callbacks, before options can be set.
    """
    import highspy

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> Any:
            self.setOptionValue("output_flag", False)
            return super().enableCallbacks()

    return Quiet()
