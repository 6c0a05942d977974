"""Read MPS, free or fixed, with QUADOBJ or QMATRIX: what the file says, or a refusal that names the line.

What readers of this format do not agree on is decided here, or refused:

- A whole column of a marker without any bound is 0 or 1, as for CPLEX, Gurobi, SCIP and HiGHS (for Xpress and
  lp_solve it has no upper bound). `FileProgram.binary` lists such columns. Any bound ends this default.
- A negative upper bound without a lower one is refused: for Gurobi and SCIP the lower one becomes -inf, for
  HiGHS and MOSEK it stays 0. So are duplicate entries, which CPLEX refuses, SCIP adds, and HiGHS drops.
- The first N row is the objective, unless OBJNAME names another one; the others are left out. Its entry in
  RHS, negated, is the constant.
- RANGES: |R| above a G row's side, below an L row's; an E row's side and R are the two ends.
- Bounds and sides of 1e20 or more are infinite. Squares are halved: the objective has ½ xᵀQx.

Semi-continuous and semi-integer variables, SOS, indicators, quadratic rows, lazy rows and all else that is
not listed here are refused by name.

References
----------
IBM CPLEX, "MPS file format: industry standard"; Maros and Mészáros 1999, "A repository of convex quadratic
programming problems" (QPS).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from models.arithmetic.exact import Number
from models.programs.file_program import FileProgram, half, limit, limit_of, number, refuse
from models.programs.terms import INFINITY

SENSES = {
    "MIN": False, "MINIMIZE": False, "MINIMISE": False, "MINIMUM": False,
    "MAX": True, "MAXIMIZE": True, "MAXIMISE": True, "MAXIMUM": True,
}  # fmt: skip

SECTIONS = ("NAME", "OBJSENSE", "SENSE", "OBJNAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "QUADOBJ",
            "QMATRIX", "ENDATA")  # fmt: skip

UNSUPPORTED = {
    "SOS": "special ordered sets", "SOS1": "special ordered sets", "SOS2": "special ordered sets",
    "SETS": "special ordered sets", "INDICATORS": "indicator constraints", "QCMATRIX": "quadratic rows",
    "QSECTION": "quadratic rows", "CSECTION": "cones", "LAZYCONS": "lazy constraints",
    "USERCUTS": "user cuts", "GENCONS": "general constraints", "PWLOBJ": "piecewise linear costs",
}  # fmt: skip

KINDS = {"E": (True, True), "L": (False, True), "G": (True, False)}
"""Which sides a row has: the lower one, the upper one."""

OPEN: dict[str, tuple[Number | None, Number | None]] = {
    "FR": (-INFINITY, INFINITY), "MI": (-INFINITY, None), "PL": (None, INFINITY), "BV": (0, 1),
}  # fmt: skip
"""Bounds without a number: the lower one, the upper one."""

FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
"""The columns of a card in fixed form."""


def read_mps(text: str) -> FileProgram:
    """The program of an MPS file.

    Names with blanks are read in fixed form, if all lines have it: fields in the columns 2-3, 5-12, 15-22,
    25-36, 40-47 and 50-61.

    Raises
    ------
    ValueError
        If it is not one; the message names the line.
    """
    lines = [
        (at, line.rstrip())
        for at, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.startswith("*")
    ]
    try:
        return _Reader(lines, free=True).read()
    except ValueError as wrong:
        if not all(map(_is_fixed, (line for _, line in lines))):
            raise
        try:
            return _Reader(lines, free=False).read()
        except ValueError:
            raise wrong from None


def _is_fixed(line: str) -> bool:
    """Whether a line is a header, or a card with fields in the fixed columns only."""
    if not line.startswith(" "):
        return not line.startswith("\t")
    between = "".join(line[b:a] for (_, b), (a, _) in zip(((0, 0), *FIELDS), FIELDS, strict=False))
    return not (between + line[FIELDS[-1][1] :]).strip()


class _Card(NamedTuple):
    line: int
    words: list[str]


class _Reader:
    def __init__(self, lines: Sequence[tuple[int, str]], free: bool) -> None:
        self._lines, self._free = lines, free
        self._out = FileProgram()
        self._objective = ""
        self._asked = ""  # by OBJNAME
        self._kinds: dict[str, str] = {}
        self._free_rows: dict[str, set[str]] = {}  # the N rows, and the columns that have entries in them
        self._row: dict[str, int] = {}
        self._column: dict[str, int] = {}
        self._marker = 0  # the line of an open INTORG
        self._sets: dict[str, str] = {}
        self._sides: dict[str, Number] = {}
        self._ranges: dict[str, tuple[int, Number]] = {}
        self._ends: dict[tuple[int, str], int] = {}  # the line of each lower or upper bound
        self._sense_line = 0
        self._squares: dict[tuple[str, str], Number] = {}

    def read(self) -> FileProgram:
        section, waiting = "", 0  # `waiting` is the line of a header whose word follows on the next line
        for at, line in self._lines:
            if section == "ENDATA":
                refuse(at, "text after ENDATA")
            head = line[0] not in " \t"
            words = line.split()
            if waiting and (not head or (section == "OBJSENSE" and words[0].upper() in SENSES)):
                self._header_word(section, at, words)
                waiting = 0
            elif head:
                if waiting:
                    refuse(waiting, f"{section} without a word")
                section = self._header(at, words)
                alone = len(words) == 1 and words[0].upper() in ("OBJSENSE", "SENSE", "OBJNAME")
                waiting = at if alone else 0
            else:
                card = self._card(section, at, line)
                read = {
                    "ROWS": self._rows, "COLUMNS": self._columns, "RHS": self._rhs, "RANGES": self._range,
                    "BOUNDS": self._bound, "QUADOBJ": self._quadratic, "QMATRIX": self._quadratic,
                }.get(section)  # fmt: skip
                if read is None:
                    refuse(at, f"a line of data after {section or 'nothing'}")
                read(card)
        last = self._lines[-1][0] if self._lines else 1
        if section != "ENDATA":
            refuse(last, "the file ends without ENDATA: is it complete?")
        if self._marker:
            refuse(self._marker, "the marker INTORG has no INTEND")
        return self._finished(last)

    # --- lines

    def _header(self, at: int, words: list[str]) -> str:
        section = words[0].upper()
        if section in SENSES and len(words) == 1:
            self._header_word("OBJSENSE", at, words)
            self._out.beyond = f"{section} as a section"
            return "OBJSENSE"
        if section in UNSUPPORTED:
            refuse(at, f"the section {section}: {UNSUPPORTED[section]} are not supported")
        if section not in SECTIONS:
            refuse(at, f"the unknown section {words[0]!r} (lines of data begin with a blank)")
        if section == "SENSE":
            self._out.beyond, section = "the section SENSE", "OBJSENSE"
        if section == "NAME":
            self._out.name = words[1] if len(words) > 1 else ""
        elif section in ("OBJSENSE", "OBJNAME"):
            if len(words) > 1:
                self._header_word(section, at, words[1:])
                if section == "OBJSENSE" and words[1].upper() not in ("MIN", "MAX"):
                    self._out.beyond = f"{section} {words[1]} on one line"
        elif len(words) > 1:
            refuse(at, f"{words[1]!r} after the name of the section {section}")
        if section == "COLUMNS":
            self._choose_objective(at)
        elif section in ("OBJNAME", "ROWS"):
            if self._column:
                refuse(at, f"the section {section} after COLUMNS")
        elif section not in ("NAME", "OBJSENSE") and not self._column:
            refuse(at, f"the section {section} before any column")
        return section

    def _header_word(self, section: str, at: int, words: list[str]) -> None:
        """The word that follows OBJSENSE or OBJNAME."""
        if len(words) != 1:
            refuse(at, f"{section} takes one word, not {' '.join(words)!r}")
        if section == "OBJNAME":
            self._asked = words[0]
            self._out.beyond = "OBJNAME"
        elif words[0].upper() not in SENSES:
            refuse(at, f"the sense {words[0]!r}; it is MIN or MAX")
        elif self._sense_line:
            refuse(at, f"a second sense; the first is in line {self._sense_line}")
        else:
            self._sense_line, self._out.maximize = at, SENSES[words[0].upper()]

    def _card(self, section: str, at: int, line: str) -> _Card:
        if self._free:
            return _Card(at, line.split())
        fields = [line[a:b].strip() for a, b in FIELDS]
        kept = fields[:2] if section == "ROWS" else fields
        first = 0 if section in ("ROWS", "BOUNDS") else 1
        if first and fields[0]:
            refuse(at, f"{fields[0]!r} in the columns 2 and 3")
        words = kept[first:]
        while words and not words[-1]:
            words.pop()
        if section in ("RHS", "RANGES") and words and not words[0]:
            words = words[1:]
        return _Card(at, words)

    # --- sections

    def _rows(self, card: _Card) -> None:
        at, words = card
        if len(words) != 2:
            refuse(at, f"a row has a type and a name, not {len(words)} words")
        kind, name = words[0].upper(), words[1]
        if kind not in (*KINDS, "N"):
            refuse(at, f"the type {words[0]!r} of a row; it is N, E, L or G")
        if name in self._kinds:
            refuse(at, f"a second row {name!r}")
        self._kinds[name] = kind
        if kind == "N":
            self._free_rows[name] = set()
        else:
            self._row[name] = self._out.add_row(name, 0, 0)

    def _choose_objective(self, at: int) -> None:
        if self._asked and self._asked not in self._free_rows:
            refuse(at, f"OBJNAME {self._asked!r} is not the name of an N row")
        self._objective = self._asked or next(iter(self._free_rows), "")

    def _columns(self, card: _Card) -> None:
        at, words = card
        if "'MARKER'" in words[1:2]:
            self._mark(at, words[2:] if self._free else [word for word in words[2:] if word])
            return
        if len(words) not in (3, 5):
            refuse(at, f"a column's name and one or two entries have 3 or 5 words, not {len(words)}")
        name = words[0]
        j = self._column.get(name)
        if j is None:
            j = self._column[name] = self._out.add_column(name, bool(self._marker))
        elif j != len(self._column) - 1:
            refuse(at, f"the column {name!r} goes on after other columns")
        elif self._out.integer[j] != bool(self._marker):
            refuse(at, f"a marker between the entries of the column {name!r}")
        for row, word in zip(words[1::2], words[2::2], strict=True):
            value = number(word, at)
            self._kind(row, at)
            if row in self._free_rows:
                if name in self._free_rows[row]:
                    refuse(at, f"a second entry of the column {name!r} in the row {row!r}")
                self._free_rows[row].add(name)
                if row == self._objective:
                    self._out.cost[j] = value
            elif (self._row[row], j) in self._out.entries:
                refuse(at, f"a second entry of the column {name!r} in the row {row!r}")
            else:
                self._out.entries[self._row[row], j] = value

    def _mark(self, at: int, words: list[str]) -> None:
        if words == ["'INTORG'"] and not self._marker:
            self._marker = at
        elif words == ["'INTEND'"] and self._marker:
            self._marker = 0
        else:
            refuse(at, f"the marker {' '.join(words)}; known are 'INTORG' and 'INTEND', one after the other")

    def _kind(self, row: str, at: int) -> str:
        if row not in self._kinds:
            refuse(at, f"no row has the name {row!r}")
        return self._kinds[row]

    def _pairs(self, section: str, card: _Card) -> Iterator[tuple[str, str]]:
        """The pairs of a line of RHS or RANGES, whose first word may be the name of the set."""
        at, words = card
        if len(words) % 2:
            self._one_set(section, words[0], at)
            words = words[1:]
        if not 2 <= len(words) <= 4:
            refuse(at, f"one or two rows with their numbers, not {len(words)} words")
        yield from zip(words[::2], words[1::2], strict=True)

    def _one_set(self, section: str, name: str, at: int) -> None:
        if self._sets.setdefault(section, name) != name:
            refuse(at, f"a second set {name!r} in {section}; the first is {self._sets[section]!r}")

    def _rhs(self, card: _Card) -> None:
        for row, word in self._pairs("RHS", card):
            kind = self._kind(row, card.line)
            if row in self._sides:
                refuse(card.line, f"a second right-hand side of the row {row!r}")
            value = number(word, card.line) if kind in "NE" else limit(word, card.line)
            if value == (INFINITY if kind == "G" else -INFINITY):
                refuse(card.line, f"the row {row!r} is never kept with the right-hand side {word}")
            self._sides[row] = value

    def _range(self, card: _Card) -> None:
        for row, word in self._pairs("RANGES", card):
            if self._kind(row, card.line) == "N":
                refuse(card.line, f"a range of the row {row!r}, which is of the type N")
            if row in self._ranges:
                refuse(card.line, f"a second range of the row {row!r}")
            self._ranges[row] = card.line, limit(word, card.line)

    def _bound(self, card: _Card) -> None:
        at, words = card
        kind = words[0].upper()
        if kind in ("SC", "SI"):
            what = "semi-continuous" if kind == "SC" else "semi-integer"
            refuse(at, f"the bound {kind}: {what} variables are not supported")
        if kind not in ("LO", "UP", "FX", "FR", "MI", "PL", "BV", "LI", "UI"):
            refuse(at, f"the type {words[0]!r} of a bound")
        name, word = self._bounded(at, kind, words[1:])
        j, out = self._column[name], self._out
        if kind in ("BV", "LI", "UI"):
            out.integer[j] = True
        low: Number | None
        high: Number | None
        if kind in OPEN:
            low, high = OPEN[kind]
        else:
            value = limit(word, at)
            low = value if kind in ("LO", "LI", "FX") else None
            high = value if kind in ("UP", "UI", "FX") else None
        if low == INFINITY or high == -INFINITY:
            refuse(at, f"the bound {word} excludes every value of {name!r}")
        for side, end, held in (("lower", low, out.lower), ("upper", high, out.upper)):
            if end is not None:
                if (j, side) in self._ends:
                    refuse(
                        at, f"a second {side} bound of {name!r}; the first is in line {self._ends[j, side]}"
                    )
                self._ends[j, side] = at
                held[j] = end

    def _bounded(self, at: int, kind: str, words: list[str]) -> tuple[str, str]:
        """The column of a bound, and its number (empty if there is none).

        In free form the name of the set may be missing, as may the number if the type needs none.
        """
        needs = kind not in OPEN
        layouts: dict[int, list[tuple[int, ...]]]
        layouts = {1: [(0,)], 2: [(0, 1), (1,)], 3: [(1, 2)]} if self._free else {2: [(1,)], 3: [(1, 2)]}
        read = [
            (words[place[0]], words[place[1]] if len(place) > 1 else "", words[0] if place[0] else "")
            for place in layouts.get(len(words), [])
            if len(place) > 1 or not needs
        ]
        if not read:
            refuse(at, f"a bound has a type, a set, a column and {'' if needs else 'perhaps '}a number")
        fit = [one for one in read if one[0] in self._column and (not one[1] or limit_of(one[1]) is not None)]
        if len(fit) > 1:
            refuse(at, f"this bound may be of {fit[0][0]!r} or of {fit[1][0]!r}")
        if not fit:
            name, word, _ = read[-1]
            if name not in self._column:
                refuse(at, f"no column has the name {name!r}")
            refuse(at, f"{word!r} in place of a number")
        name, word, group = fit[0]
        self._one_set("BOUNDS", group, at)
        return name, word

    def _quadratic(self, card: _Card) -> None:
        at, words = card
        if len(words) != 3:
            refuse(at, f"an entry has two columns and a number, not {len(words)} words")
        a, b, word = words
        for name in (a, b):
            if name not in self._column:
                refuse(at, f"no column has the name {name!r}")
        value = number(word, at)
        if (a, b) in self._squares:
            refuse(at, f"a second entry of {a!r} and {b!r}")
        self._squares[a, b] = value
        if a != b and value:
            refuse(at, f"the product of {a!r} and {b!r}: only squares of variables are supported")
        if a == b:
            self._out.square[self._column[a]] = half(value)

    # --- the end

    def _finished(self, last: int) -> FileProgram:
        out = self._out
        if not out.columns:
            refuse(last, "the file has no columns")
        out.constant = -self._sides.get(self._objective, 0)
        if any(self._sides.get(row) for row in self._free_rows if row != self._objective):
            out.beyond = "the right-hand side of an N row that is not the objective"
        for row, i in self._row.items():
            side = self._sides.get(row, 0)
            has_low, has_high = KINDS[self._kinds[row]]
            out.least[i], out.most[i] = side if has_low else -INFINITY, side if has_high else INFINITY
            if row in self._ranges:
                self._widen(row, i, side)
        for j, name in enumerate(out.columns):
            bounded = [(j, side) in self._ends for side in ("lower", "upper")]
            if out.integer[j] and not any(bounded):
                out.upper[j] = 1
                out.binary.append(name)
            if bounded == [False, True] and out.upper[j] < 0:
                why = "readers do not agree whether its lower bound is 0 or -inf; state it (LO, or MI)"
                refuse(self._ends[j, "upper"], f"{name!r} has a negative upper bound and no lower one: {why}")
        out.entries = {place: value for place, value in out.entries.items() if value}
        return out

    def _widen(self, row: str, i: int, side: Number) -> None:
        """Apply a range to a row with this side."""
        at, reach = self._ranges[row]
        kind, out = self._kinds[row], self._out
        width = max(reach, -reach)
        if side in (INFINITY, -INFINITY):
            refuse(at, f"a range of the row {row!r}, whose right-hand side is infinite")
        if kind == "G" or (kind == "E" and reach >= 0):
            out.most[i] = side + width
        if kind == "L" or (kind == "E" and reach < 0):
            out.least[i] = side - width
