"""Read MPS and LP files back: by a plain reader of this module, by HiGHS, and by Gurobi if it is installed.

Nothing here shares code with `models.programs.texts`, which writes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.programs.texts import CONSTANT, Stated
from models.programs.write import quiet_highs

Reader = Callable[[Path], Stated]


def read_plainly(path: Path) -> Stated:
    """Read a free-form MPS or an LP of the form that `models.programs.texts` describes.

    Raises
    ------
    ValueError
        If a line of it is not of that form.
    """
    lines = path.read_text(encoding="ascii").splitlines()
    try:
        return _mps(lines) if path.suffix == ".mps" else _lp(lines)
    except (IndexError, KeyError) as wrong:
        raise ValueError(f"{path.name} is not of the form that is written here: {wrong!r}") from None


class _Found:
    """The parts of a program, by name, in the order in which they are read."""

    def __init__(self) -> None:
        self.name, self.constant = "", 0.0
        self.cost: dict[str, float] = {}
        self.square: dict[str, float] = {}
        self.bounds: dict[str, list[float]] = {}
        self.whole: set[str] = set()
        self.sides: dict[str, list[float]] = {}
        self.entries: list[tuple[str, str, float]] = []

    def column(self, name: str) -> None:
        self.cost.setdefault(name, 0.0)
        self.bounds.setdefault(name, [0.0, np.inf])

    def made(self) -> Stated:
        columns, rows = list(self.cost), list(self.sides)
        at_column = {name: j for j, name in enumerate(columns)}
        at_row = {name: i for i, name in enumerate(rows)}
        kept = [entry for entry in self.entries if entry[2]]
        places = [at_row[row] for row, _, _ in kept], [at_column[column] for _, column, _ in kept]
        matrix = sp.csr_matrix(([value for *_, value in kept], places), shape=(len(rows), len(columns)))
        lower, upper = np.array([self.bounds[name] for name in columns], float).reshape(-1, 2).T
        least, most = np.array([self.sides[name] for name in rows], float).reshape(-1, 2).T
        integer = np.array([name in self.whole for name in columns], bool)
        cost = np.array([*self.cost.values()], float)
        square = np.array([self.square.get(name, 0.0) for name in columns], float)
        return Stated(self.name, columns, lower, upper, integer, cost, square, self.constant, rows, matrix,
                      least, most)  # fmt: skip


def _mps(lines: Sequence[str]) -> Stated:
    found, section, inside = _Found(), "", False
    kinds: dict[str, str] = {}
    for line in lines:
        words = line.split()
        if not line.startswith(" "):
            section = words[0]
            found.name = words[1] if section == "NAME" else found.name
        elif section == "ROWS":
            kinds[words[1]] = words[0]
            if words[0] != "N":
                found.sides[words[1]] = {"E": [0.0, 0.0], "L": [-np.inf, 0.0], "G": [0.0, np.inf]}[words[0]]
        elif section == "COLUMNS" and words[1] == "'MARKER'":
            inside = words[2] == "'INTORG'"
        elif section == "COLUMNS":
            found.column(words[0])
            found.whole |= {words[0]} if inside else set()
            if kinds[words[1]] == "N":
                found.cost[words[0]] += float(words[2])
            else:
                found.entries.append((words[1], words[0], float(words[2])))
        elif section == "RHS":
            kind, side = kinds[words[1]], float(words[2])
            if kind == "N":
                found.constant = -side
            for place in {"E": (0, 1), "L": (1,), "G": (0,), "N": ()}[kind]:
                found.sides[words[1]][place] = side
        elif section == "BOUNDS":
            kind, name = words[0], words[2]
            low, high = found.bounds[name]
            value = float(words[3]) if len(words) > 3 else 0.0
            found.bounds[name] = {
                "FX": [value, value], "LO": [value, high], "UP": [low, value], "FR": [-np.inf, np.inf],
                "MI": [-np.inf, high], "PL": [low, np.inf],
            }[kind]  # fmt: skip
        elif section == "QUADOBJ":
            if words[0] != words[1]:
                raise ValueError(f"a product of two variables: {line}")
            found.square[words[0]] = float(words[2]) / 2
        else:
            raise ValueError(f"a line in the section {section!r}: {line}")
    return found.made()


def _lp(lines: Sequence[str]) -> Stated:
    parts: dict[str, list[str]] = {
        name: [] for name in ("", "minimize", "subject to", "bounds", "general", "end")
    }
    found, section = _Found(), ""
    for line in lines:
        if line in parts:
            section = line
        elif not line.startswith("\\"):
            parts[section].append(line)
    text = " ".join(parts["minimize"])
    linear, _, rest = text.partition("[")
    for value, name in _terms(linear.replace("obj:", "").strip().removesuffix("+")):
        found.column(name)
        found.cost[name] += value
    for value, name in _terms(rest.partition("]")[0].replace("^2", "")):
        found.square[name] = value / 2
    for name, words in _rows(parts["subject to"]):
        (k,) = (k for k, word in enumerate(words) if word in ("<=", ">=", "="))
        side = float(words[k + 1])
        low, high = {"<=": (-np.inf, side), ">=": (side, np.inf), "=": (side, side)}[words[k]]
        found.sides[name] = [low, high]
        found.entries += [(name, column, value) for value, column in _terms(" ".join(words[:k]))]
    for line in parts["bounds"]:
        words = line.split()
        if words[1] == "free":
            found.bounds[words[0]] = [-np.inf, np.inf]
        elif len(words) == 5:
            found.bounds[words[2]] = [float(words[0]), float(words[4])]
        else:
            side = float(words[2])
            found.bounds[words[0]] = {">=": [side, np.inf], "=": [side, side]}[words[1]]
    found.whole = {line.strip() for line in parts["general"]}
    return found.made()


def _terms(text: str) -> Iterator[tuple[float, str]]:
    words = text.split()
    words = words if not words or words[0] in "+-" else ["+", *words]
    for sign, value, name in zip(words[::3], words[1::3], words[2::3], strict=True):
        yield (-float(value) if sign == "-" else float(value)), name


def _rows(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    name = ""
    words: list[str] = []
    for line in lines:
        for word in line.split():
            if word.endswith(":"):
                if name:
                    yield name, words
                name, words = word[:-1], []
            else:
                words.append(word)
    if name:
        yield name, words


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
    found: dict[str, Reader] = {"a plain reader": read_plainly, "HiGHS": read_by_highs}
    if find_spec("gurobipy"):
        found["Gurobi"] = read_by_gurobi
    return found


def difference(made: Stated, read: Stated) -> str:
    """The first part in which a program differs from what was read; empty if nothing does.

    Doubles are to be the same; a constant that a file states by a variable fixed at 1 is one.
    """
    read = _without_constant(read)
    parts: list[tuple[str, Any, Any]] = [
        ("names of the columns", made.columns, read.columns),
        ("names of the rows", made.rows, read.rows),
        ("lower bounds", made.lower, read.lower),
        ("upper bounds", made.upper, read.upper),
        ("whole variables", made.integer, read.integer),
        ("linear costs", made.cost, read.cost),
        ("squares", made.square, read.square),
        ("constant", [made.constant], [read.constant]),
        ("lower sides of rows", made.least, read.least),
        ("upper sides of rows", made.most, read.most),
    ]
    for name, ours, theirs in parts:
        if len(ours) != len(theirs):
            return f"{name}: {len(theirs):,} in place of {len(ours):,}"
        other = np.flatnonzero(np.asarray(ours) != np.asarray(theirs))
        if other.size:
            return f"{name}: {theirs[other[0]]} in place of {ours[other[0]]}"
    other = np.flatnonzero((made.matrix != read.matrix).sum(axis=1))
    return f"coefficients of the row {made.rows[other[0]]}" if other.size else ""


def _without_constant(read: Stated) -> Stated:
    if not read.columns or read.columns[-1] != CONSTANT or read.lower[-1] != 1 or read.upper[-1] != 1:
        return read
    return replace(
        read, columns=read.columns[:-1], lower=read.lower[:-1], upper=read.upper[:-1],
        integer=read.integer[:-1], cost=read.cost[:-1], square=read.square[:-1], matrix=read.matrix[:, :-1],
        constant=read.constant + float(read.cost[-1]),
    )  # fmt: skip
