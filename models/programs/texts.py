"""Programs as the text of solvers' files: MPS (free form, with QUADOBJ) and LP.

The same program is the same text on every machine: numbers have the fewest digits from which a double is read
back unchanged, and nothing depends on a solver or its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from models.arithmetic.arrays import Flags, Floats
from models.programs.reformulate import without_absolutes, without_tables
from models.programs.terms import Formulation

if TYPE_CHECKING:
    import scipy.sparse as sp

CONSTANT = "constant"
"""In an LP, the constant of the objective is the cost of a last variable of this name, fixed at 1: readers
treat a bare number beside squares differently (Gurobi drops it after them, SCIP refuses it before them)."""

_LEGAL = re.compile(r"(?![eE][0-9eE]|[eE]$)[A-Za-z_#@][\w.#@]*", re.ASCII)
"""Names that all readers of MPS and LP take; after e or E, an LP would go on with a number."""

_WORDS = 6
"""Terms in a line of an LP; some readers have a limit of 255 characters."""


@dataclass(frozen=True, eq=False)
class Stated:
    """A program as a file has it: minimize Σ square·v² + cost·v + constant with rows and bounds.

    - lower, upper, cost, square, arrays, shape (columns,)
    - integer, array of bool, shape (columns,)
    - matrix, sparse matrix, shape (rows, columns): in canonical CSR form, without zeros.
    - least, most, arrays, shape (rows,): one is infinite, or they are equal.
    """

    name: str
    columns: list[str]
    lower: Floats
    upper: Floats
    integer: Flags
    cost: Floats
    square: Floats
    constant: float
    rows: list[str]
    matrix: sp.csr_matrix
    least: Floats
    most: Floats


def stated(program: Formulation) -> Stated:
    """A program with its tables and absolute values rewritten, and one side in each row, or two equal ones.

    A row with two different sides becomes two, because readers do not agree on how an LP states it (HiGHS and
    Gurobi refuse ``-1 <= x <= 1`` with a name). Rows without a side are left out.
    Coefficients of the objective are added up exactly, and then rounded to doubles.

    Raises `ValueError` if a name is not legal in every format, or two are the same.
    """
    import scipy.sparse as sp

    plain = without_absolutes(without_tables(program))
    square, cost, constant = _objective(plain)
    least, most = plain.row_bounds
    both = np.isfinite(least) & np.isfinite(most) & (least != most)
    kept = [
        i
        for i in range(least.size)
        for _ in range(int(np.isfinite([least[i], most[i]]).any()) + int(both[i]))
    ]
    second = [k > 0 and kept[k - 1] == i for k, i in enumerate(kept)]
    names = plain.row_names()
    matrix = sp.csr_matrix(plain.matrix, copy=True)[kept]
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    name = "".join(c if c.isalnum() else "_" for c in plain.name)
    columns = plain.variable_names()
    rows = [f"{names[i]}_most" if again else names[i] for i, again in zip(kept, second, strict=True)]
    for listed in (columns, rows):
        wrong = next((one for one in listed if not _LEGAL.fullmatch(one)), None)
        if wrong is not None or len(set(listed)) < len(listed):
            which = (
                "two names are the same" if wrong is None else f"not every reader takes the name {wrong!r}"
            )
            raise ValueError(f"{plain.name} cannot be written: {which}")
    return Stated(
        name, columns, *plain.bounds, plain.integer, cost, square, constant, rows, matrix,
        np.where(second, -np.inf, least[kept]),
        np.where(both[kept] & ~np.array(second, bool), np.inf, most[kept]),
    )  # fmt: skip


def _objective(program: Formulation) -> tuple[Floats, Floats, float]:
    """Squares, slopes and the constant, each the double nearest to the exact sum."""
    sizes = [np.abs(np.asarray(part, float)) for term in program.objective for part in term.data]
    whole = all(bool((size == np.rint(size)).all()) for size in sizes)
    if (
        whole
        and sum(float((w * (c + 2) ** 2).sum()) for w, c in zip(sizes[::2], sizes[1::2], strict=True)) < 2**53
    ):
        return program.expanded()  # exact
    square, slope = ([Fraction(0)] * program.size for _ in range(2))
    constant = Fraction(0)
    for term in program.objective:
        for i, w, c in zip(term.index.tolist(), *(part.tolist() for part in term.data), strict=True):
            weight, center = Fraction(w), Fraction(c)
            if term.kind == "linear":
                slope[i] += weight
            else:
                square[i] += weight
                slope[i] -= 2 * weight * center
                constant += weight * center**2
    return np.array([*map(float, square)]), np.array([*map(float, slope)]), float(constant)


def number(value: float) -> str:
    """The shortest text from which the same double is read.

    Examples
    --------
    >>> number(3.0), number(0.1), number(1e22), number(2.0**53)
    ('3', '0.1', '1e+22', '9007199254740992')
    """
    return repr(float(value) + 0.0).removesuffix(".0")


def mps_lines(made: Stated) -> Iterator[str]:
    """The lines of a free-form MPS; squares, doubled, are in QUADOBJ, and bounds are explicit."""
    yield f"NAME {made.name}"
    yield from ("ROWS", " N obj")
    kinds = [
        "E" if a == b else ("L" if np.isinf(a) else "G") for a, b in zip(made.least, made.most, strict=True)
    ]
    yield from (f" {kind} {name}" for kind, name in zip(kinds, made.rows, strict=True))
    yield "COLUMNS"
    import scipy.sparse as sp

    by_column = sp.csc_matrix(made.matrix)
    marks = 0
    for j, name in enumerate(made.columns):
        if made.integer[j] and (j == 0 or not made.integer[j - 1]):
            yield f" MARKER{marks} 'MARKER' 'INTORG'"
        inside = slice(by_column.indptr[j], by_column.indptr[j + 1])
        if made.cost[j] or inside.start == inside.stop:  # a column without entries is listed, too
            yield f" {name} obj {number(made.cost[j])}"
        for i, value in zip(by_column.indices[inside], by_column.data[inside], strict=True):
            yield f" {name} {made.rows[i]} {number(value)}"
        if made.integer[j] and (j + 1 == len(made.columns) or not made.integer[j + 1]):
            yield f" MARKER{marks + 1} 'MARKER' 'INTEND'"
            marks += 2
    yield "RHS"
    if made.constant:
        yield f" RHS obj {number(-made.constant)}"  # readers subtract it
    sides = [b if kind == "L" else a for kind, a, b in zip(kinds, made.least, made.most, strict=True)]
    yield from (f" RHS {name} {number(side)}" for name, side in zip(made.rows, sides, strict=True) if side)
    yield "BOUNDS"
    for name, low, high, whole in zip(made.columns, made.lower, made.upper, made.integer, strict=True):
        yield from (f" {kind} BOUND {name}{value}" for kind, value in _bounds(low, high, bool(whole)))
    if made.square.any():
        yield "QUADOBJ"
        yield from (f" {made.columns[j]} {made.columns[j]} {number(2 * made.square[j])}"
                    for j in np.flatnonzero(made.square))  # fmt: skip
    yield "ENDATA"


def _bounds(low: float, high: float, whole: bool) -> Iterator[tuple[str, str]]:
    if low == high:
        yield "FX", f" {number(low)}"
    elif np.isinf(low) and np.isinf(high):
        yield "FR", ""
    else:
        if np.isinf(low):
            yield "MI", ""
        elif low or high <= 0:
            yield "LO", f" {number(low)}"
        if np.isfinite(high):
            yield "UP", f" {number(high)}"
        elif whole:  # some readers take 1 where a whole variable has no upper bound
            yield "PL", ""


def lp_lines(made: Stated) -> Iterator[str]:
    """The lines of an LP. Its objective lists every variable, so that all readers have them in one order."""
    constant = [(CONSTANT, made.constant)] if made.constant else []
    yield f"\\ {made.name}"
    yield "minimize"
    yield from _sum(" obj:", [*zip(made.columns, made.cost, strict=True), *constant])
    if made.square.any():
        doubled = [(f"{made.columns[j]}^2", 2 * made.square[j]) for j in np.flatnonzero(made.square)]
        yield from _sum(" + [", doubled)
        yield " ] / 2"
    yield "subject to"
    for i, name in enumerate(made.rows):
        inside = slice(made.matrix.indptr[i], made.matrix.indptr[i + 1])
        held = zip(
            (made.columns[j] for j in made.matrix.indices[inside]), made.matrix.data[inside], strict=True
        )
        *lines, last = _sum("", [*held] or [(made.columns[0], 0.0)])
        least, most = made.least[i], made.most[i]
        sense, side = ("=", most) if least == most else (("<=", most) if np.isinf(least) else (">=", least))
        yield from (f" {name}:", *lines, f"{last} {sense} {number(side)}")
    yield "bounds"
    for name, low, high in zip(made.columns, made.lower, made.upper, strict=True):
        yield f" {_box(name, low, high)}"
    yield from (f" {name} = 1" for name, _ in constant)
    if made.integer.any():
        yield "general"
        yield from (f" {made.columns[j]}" for j in np.flatnonzero(made.integer))
    yield "end"


def _sum(start: str, terms: list[tuple[str, Any]]) -> Iterator[str]:
    words = [f"{'-' if value < 0 else '+'} {number(abs(value))} {name}" for name, value in terms]
    words[0] = words[0].removeprefix("+ ")
    for at in range(0, len(words), _WORDS):
        yield f"{start if at == 0 else ''} {' '.join(words[at : at + _WORDS])}"


def _box(name: str, low: float, high: float) -> str:
    if low == high:
        return f"{name} = {number(low)}"
    if np.isinf(low) and np.isinf(high):
        return f"{name} free"
    below = "-inf" if np.isinf(low) else number(low)
    return f"{name} >= {below}" if np.isinf(high) else f"{below} <= {name} <= {number(high)}"
