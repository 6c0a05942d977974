"""Programs as files, and as the objects of the libraries that write them.

HiGHS writes `.mps` and `.lp`, Pyomo writes `.nl`. Both libraries also solve the objects that they write, so
the backends of `solvers` use the same two functions.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from models.programs.reformulate import without_absolutes, without_tables
from models.programs.terms import Formulation


def to_highs(program: Formulation, names: bool = False) -> Any:
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
    if names:
        lp.model_name_ = "".join(c if c.isalnum() else "_" for c in program.name)
        lp.col_names_, lp.row_names_ = program.variable_names(), program.row_names()
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
        linear_coefs=matrix.data[inside].tolist(),
        linear_vars=[variables[j] for j in matrix.indices[inside]],
    )
    low, high = (None if np.isinf(bound) else float(bound) for bound in (lower, upper))
    if low is None and high is None:
        return pyo.Constraint.Skip
    return (body == low) if low is not None and low == high else (low, body, high)


def write(program: Formulation, path: Path) -> Path:
    """Write the program to `.mps`, `.qps`, `.lp` or `.nl`, first to a temporary file beside the path.

    In an `.lp`, the constant of the objective is the cost of a last variable ``constant``, fixed at 1,
    because readers treat a bare number beside squares differently (Gurobi drops it after them, SCIP refuses
    it before them). HiGHS writes 15 digits of each number. A `.qps` is an `.mps` with squares.

    Raises
    ------
    ValueError
        If the suffix is none of the four.
    OSError
        If the file cannot be written; nothing is left behind.
    """
    if path.suffix not in {".mps", ".qps", ".lp", ".nl"}:
        raise ValueError(f"cannot write {path.name}: the suffix must be .mps, .qps, .lp or .nl")
    suffix = ".mps" if path.suffix == ".qps" else path.suffix
    aside = path.with_name(f".{path.stem}.{os.getpid()}{suffix}")
    try:
        aside.touch()  # on a path that cannot be opened HiGHS crashes the whole process
        if path.suffix == ".nl":
            to_pyomo(without_tables(program)).write(str(aside), io_options={"symbolic_solver_labels": False})
        else:
            _write_highs(without_absolutes(without_tables(program)), aside)
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


def _write_highs(program: Formulation, path: Path) -> None:
    import highspy

    highs = quiet_highs()
    if highs.passModel(to_highs(program, names=True)) == highspy.HighsStatus.kError:
        raise ValueError(f"HiGHS does not take the program {program.name}")
    if path.suffix == ".lp":
        _name_constant(highs)
    if highs.writeModel(str(path)) == highspy.HighsStatus.kError or not path.exists():
        raise OSError(f"HiGHS could not write {path}")


def _name_constant(highs: Any) -> None:
    """Make the objective's constant the cost of a variable fixed at 1."""
    cost = highs.getLp().offset_
    if cost:
        highs.addCol(cost, 1.0, 1.0, 0, [], [])
        highs.passColName(highs.getNumCol() - 1, "constant")
        highs.changeObjectiveOffset(0.0)
