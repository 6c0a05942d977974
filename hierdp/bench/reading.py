"""Read MPS and LP files by other readers as well: by HiGHS, and by Gurobi if it is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.programs.file_program import FileProgram
from models.programs.read import read_program, read_text
from models.programs.texts import CONSTANT, Stated
from models.programs.write import quiet_highs

Reader = Callable[[Path], Stated]


def read_strictly(path: Path) -> Stated:
    """Read a file by `models.programs.read.read_program`, in doubles."""
    return read_program(path).stated()


def read_by_highs(path: Path) -> Stated:
    """Read a file by HiGHS. What is to be maximized is stated as its negative, to be minimized.

    Raises
    ------
    ValueError
        If HiGHS refuses it.
    """
    import highspy

    highs = quiet_highs()
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise ValueError(f"HiGHS does not read {path.name} without complaint")
    lp, hessian = highs.getLp(), highs.getModel().hessian_
    size, square = lp.num_col_, np.zeros(lp.num_col_)
    form = sp.csc_matrix if lp.a_matrix_.format_ == highspy.MatrixFormat.kColwise else sp.csr_matrix
    held = lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_
    matrix = sp.csr_matrix(form(held, shape=(lp.num_row_, size)))
    matrix.eliminate_zeros()
    if hessian.dim_:
        doubled = sp.csc_matrix((hessian.value_, hessian.index_, hessian.start_), shape=(size, size))
        square = doubled.diagonal() / 2
        if (doubled - sp.diags(doubled.diagonal())).nnz:
            raise ValueError(f"HiGHS reads products of two variables in {path.name}")
    whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] or [False] * size
    sign = -1.0 if lp.sense_ == highspy.ObjSense.kMaximize else 1.0
    return Stated(lp.model_name_, list(lp.col_names_), np.array(lp.col_lower_), np.array(lp.col_upper_),
                  np.array(whole, bool), sign * np.array(lp.col_cost_), sign * square, sign * lp.offset_,
                  list(lp.row_names_), matrix, np.array(lp.row_lower_), np.array(lp.row_upper_))  # fmt: skip


def read_by_gurobi(path: Path) -> Stated:
    """Read a file by Gurobi."""
    import gurobipy as gp

    with gp.Env(params={"OutputFlag": 0}) as env, gp.read(str(path), env) as model:
        columns = model.getVars()
        places = {column.VarName: j for j, column in enumerate(columns)}
        quadratic: Any = model.getObjective() if model.IsQP else None
        square = np.zeros(len(columns))
        for k in range(0 if quadratic is None else quadratic.size()):
            square[places[quadratic.getVar1(k).VarName]] += quadratic.getCoeff(k)
        rows = model.getConstrs()
        sides = {"=": (1, 1), "<": (0, 1), ">": (1, 0)}
        lower, upper = (np.array(model.getAttr(side, columns)) for side in ("LB", "UB"))
        lower[lower <= -gp.GRB.INFINITY], upper[upper >= gp.GRB.INFINITY] = -np.inf, np.inf
        return Stated(
            model.ModelName, list(places), lower, upper,
            np.array([column.VType != "C" for column in columns]), np.array(model.getAttr("Obj", columns)),
            square, float(model.ObjCon), [row.ConstrName for row in rows], sp.csr_matrix(model.getA()),
            np.array([row.RHS if sides[row.Sense][0] else -np.inf for row in rows]),
            np.array([row.RHS if sides[row.Sense][1] else np.inf for row in rows]),
        )  # fmt: skip


def readers() -> dict[str, Reader]:
    """The readers of this machine: two everywhere, and Gurobi if it is installed."""
    found: dict[str, Reader] = {"hierdp": read_strictly, "HiGHS": read_by_highs}
    if find_spec("gurobipy"):
        found["Gurobi"] = read_by_gurobi
    return found


def difference(made: Stated, read: Stated, rounding: float = 0.0) -> str:
    """The first part in which a program differs from what was read; empty if nothing does.

    Doubles are to be the same, or to differ by at most the share `rounding` of themselves; a constant that a
    file states by a variable fixed at 1 is one.
    """
    if CONSTANT not in made.columns:
        read = _without_constant(read)
    names = (("columns", made.columns, read.columns), ("rows", made.rows, read.rows))
    for kind, ours, theirs in names:
        if len(ours) != len(theirs):
            return f"names of the {kind}: {len(theirs):,} in place of {len(ours):,}"
        other = next((pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]), None)
        if other:
            return f"names of the {kind}: {other[1]} in place of {other[0]}"
    parts: list[tuple[str, Sequence[str], Any, Any]] = [
        ("lower bounds", made.columns, made.lower, read.lower),
        ("upper bounds", made.columns, made.upper, read.upper),
        ("whole variables", made.columns, made.integer, read.integer),
        ("linear costs", made.columns, made.cost, read.cost),
        ("squares", made.columns, made.square, read.square),
        ("constant", ["the objective"], [made.constant], [read.constant]),
        ("lower sides of rows", made.rows, made.least, read.least),
        ("upper sides of rows", made.rows, made.most, read.most),
    ]
    for name, of, *both in parts:
        a, b = (np.asarray(part, float) for part in both)
        with np.errstate(invalid="ignore"):
            far = np.abs(a - b) > rounding * np.abs(a)
        wrong = np.flatnonzero((a != b) & (far | ~np.isfinite(a) | ~np.isfinite(b)))
        if wrong.size:
            k = wrong[0]
            return f"{name}: {b[k]:.17g} in place of {a[k]:.17g}, of {of[k]}"
    away = abs(made.matrix - read.matrix) - rounding * abs(made.matrix)
    wrong = np.flatnonzero((away > 0).sum(axis=1))
    return f"coefficients of the row {made.rows[wrong[0]]}" if wrong.size else ""


ROUNDING = 2.0**-50
"""How far a reader's doubles may be from the nearest ones, as a share of these."""


def second_opinion(path: Path, own: FileProgram) -> str:
    """In what HiGHS reads another program than `own` in a file; empty if in nothing.

    Names of columns and rows are compared in any order, those of rows that have none in the file not at all.
    What HiGHS is known to read otherwise (`FileProgram.beyond`) is not compared.

    Raises
    ------
    ValueError
        If HiGHS does not read the file, or warns that it does not read all of it.
    """
    kind, text = read_text(path)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / f"{path.name.partition('.')[0]}{'.lp' if kind == '.lp' else '.mps'}"
        plain.write_text(text, encoding="utf-8", newline="\n")
        theirs = read_by_highs(plain)
    made = own.stated()
    if own.beyond:
        theirs = replace(theirs, cost=made.cost, square=made.square, constant=made.constant)
    return difference(made, _in_order_of(made, theirs), ROUNDING)


def _in_order_of(made: Stated, read: Stated) -> Stated:
    """What was read, with its columns and rows in the order of another program, as far as names tell."""
    if sorted(read.columns) == sorted(made.columns):
        place = {name: j for j, name in enumerate(read.columns)}
        at = [place[name] for name in made.columns]
        read = replace(
            read, columns=made.columns, lower=read.lower[at], upper=read.upper[at],
            integer=read.integer[at], cost=read.cost[at], square=read.square[at], matrix=read.matrix[:, at],
        )  # fmt: skip
    if sorted(read.rows) == sorted(made.rows):
        place = {name: i for i, name in enumerate(read.rows)}
        at = [place[name] for name in made.rows]
        return replace(
            read, rows=made.rows, matrix=read.matrix[at], least=read.least[at], most=read.most[at]
        )  # fmt: skip
    named = all(a == b or b.startswith("HiGHS_R") for a, b in zip(made.rows, read.rows, strict=False))
    return replace(read, rows=made.rows) if named and len(read.rows) == len(made.rows) else read


def _without_constant(read: Stated) -> Stated:
    if not read.columns or read.columns[-1] != CONSTANT or read.lower[-1] != 1 or read.upper[-1] != 1:
        return read
    return replace(
        read, columns=read.columns[:-1], lower=read.lower[:-1], upper=read.upper[:-1],
        integer=read.integer[:-1], cost=read.cost[:-1], square=read.square[:-1], matrix=read.matrix[:, :-1],
        constant=read.constant + float(read.cost[-1]),
    )  # fmt: skip
