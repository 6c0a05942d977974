"""A program as a file states it: its names, its decimals as fractions, its sense and its constant."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from models.arithmetic.door import LARGEST, Entries
from models.arithmetic.exact import Number
from models.programs.linear import linear_program
from models.programs.program import Program
from models.programs.terms import INFINITY
from models.programs.texts import Stated

if TYPE_CHECKING:
    import scipy.sparse as sp

INFINITE = 10**20
"""A bound or side of this size or more is no bound, in all formats."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST = 1000
_INFINITE_WORD = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)


def refuse(line: int, why: str) -> NoReturn:
    """Raise the `ValueError` of a line of a file."""
    raise ValueError(f"line {line}: {why}")


@lru_cache(maxsize=1 << 16)
def decimal(word: str) -> int | Fraction | None:
    """The number that a word states, an int or a Fraction; None if it is not a decimal, or beyond 1e±300.

    Examples
    --------
    >>> decimal("0.1"), decimal("-2.50e1"), decimal("1_0"), decimal("nan"), decimal("2O")
    (Fraction(1, 10), -25, None, None, None)
    """
    if len(word) > _LONGEST or not _NUMBER.fullmatch(word):
        return None
    value = Fraction(word)
    if value and not 1 <= abs(value) * LARGEST <= LARGEST**2:
        return None
    return value.numerator if value.denominator == 1 else value


def number(word: str, line: int) -> Number:
    """As `decimal`; it raises a `ValueError` that names the line."""
    value = decimal(word)
    if value is None:
        beyond = ", which must be 0 or from 1e-300 to 1e300 in size" if _NUMBER.fullmatch(word) else ""
        refuse(line, f"{word[:60]!r} in place of a number{beyond}")
    return value


def limit_of(word: str) -> Number | None:
    """A bound or side: infinite from 1e20 on, or for ``inf`` and ``infinity``; None if it is none."""
    named = _INFINITE_WORD.fullmatch(word)
    if named:
        return -INFINITY if named[1] == "-" else INFINITY
    value = decimal(word)
    if value is None or -INFINITE < value < INFINITE:
        return value
    return INFINITY if value > 0 else -INFINITY


def limit(word: str, line: int) -> Number:
    """As `limit_of`; it raises a `ValueError` that names the line."""
    value = limit_of(word)
    return number(word, line) if value is None else value


def half(value: Number) -> Number:
    """Half of a number, for formats that have ½ xᵀQx."""
    halved = Fraction(value) / 2
    return halved.numerator if halved.denominator == 1 else halved


@dataclass(eq=False)
class FileProgram:
    """Minimize or maximize ``Σ square·v² + cost·v + constant`` with rows and bounds, as a file has them.

    Numbers are int or Fraction; missing bounds and sides are infinite floats.

    Attributes
    ----------
    name : str
    maximize : bool
    constant : int or Fraction
    columns, rows : list of str
        The names as the file has them.
    cost, square, lower, upper, integer : list
        A number, or a flag, of each column.
    least, most : list
        The sides of each row.
    entries : dict
        ``{(row, column): coefficient}``, by position.
    binary : list of str
        Whole columns without bounds, which count as 0 or 1.
    beyond : str
        What of its objective HiGHS 1.16 is known to misread; empty if there is nothing.
    """

    name: str = ""
    maximize: bool = False
    constant: Number = 0
    columns: list[str] = field(default_factory=list)
    cost: list[Number] = field(default_factory=list)
    square: list[Number] = field(default_factory=list)
    lower: list[Number] = field(default_factory=list)
    upper: list[Number] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    least: list[Number] = field(default_factory=list)
    most: list[Number] = field(default_factory=list)
    entries: dict[tuple[int, int], Number] = field(default_factory=dict)
    binary: list[str] = field(default_factory=list)
    beyond: str = ""

    def add_column(self, name: str, integer: bool = False) -> int:
        """Add a column with the bounds 0 and infinity; its position."""
        self.columns.append(name)
        for values, value in ((self.cost, 0), (self.square, 0), (self.lower, 0), (self.upper, INFINITY)):
            values.append(value)
        self.integer.append(integer)
        return len(self.columns) - 1

    def add_row(self, name: str, least: Number, most: Number) -> int:
        """Add a row; its position."""
        self.rows.append(name)
        self.least.append(least)
        self.most.append(most)
        return len(self.rows) - 1

    @property
    def sign(self) -> int:
        """-1 for a maximum: programs are minimized."""
        return -1 if self.maximize else 1

    def objective(self, minimized: Number) -> Number:
        """The file's objective, in its sense and with its constant, from that of `program`."""
        if isinstance(minimized, float) and abs(minimized) == INFINITY:
            return self.sign * minimized
        return self.sign * minimized + self.constant

    def program(self) -> Program:
        """The program, to be minimized, without the constant; with the names of the file."""
        row, column = np.array([*self.entries], np.int64).reshape(-1, 2).T
        matrix = Entries(row, column, [*self.entries.values()], (len(self.rows), len(self.columns)))
        cost, square = ([self.sign * value for value in part] for part in (self.cost, self.square))
        return linear_program(
            self.name or "program", cost, matrix, self.least, self.most, (self.lower, self.upper),
            np.array(self.integer, bool), square, self.columns, self.rows,
        )  # fmt: skip

    def stated(self) -> Stated:
        """The same in doubles, each the nearest to the file's number; what is maximized is negated."""
        import scipy.sparse as sp

        row, column = np.array([*self.entries], np.int64).reshape(-1, 2).T
        values = np.array([*map(float, self.entries.values())], float)
        matrix: sp.csr_matrix = sp.csr_matrix((values, (row, column)), (len(self.rows), len(self.columns)))
        matrix.eliminate_zeros()
        lower, upper, least, most, cost, square = (
            np.array([*map(float, part)], float)
            for part in (self.lower, self.upper, self.least, self.most, self.cost, self.square)
        )
        return Stated(
            self.name, self.columns, lower, upper, np.array(self.integer, bool), self.sign * cost + 0.0,
            self.sign * square + 0.0, self.sign * float(self.constant) + 0.0, self.rows, matrix, least, most,
        )  # fmt: skip
