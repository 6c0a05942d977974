"""Read LP files (CPLEX's format): what the file says, or a refusal that names the line.

    \\ comment
    minimize | maximize          obj: 2 x + 3 y + [ 2 x ^2 + 4 y ^2 ] / 2 + 10
    subject to                   row: x + 2 y >= 3      range: -1 <= x - y <= 4
    bounds                       0 <= x <= 8    y >= -inf    z free    w = 3
    general | binary             x y
    end

Key words may be in upper or lower case, and shortened as usual (``min``, ``st``, ``s.t.``, ``bin``, …). Terms
of one variable in a row are added. Variables are at least 0, unless a bound says otherwise; the last bound of
a kind counts, as the format has it. Rows without a name are ``c1``, ``c2``, … by their number.

What readers do not agree on is refused: a negative upper bound without a lower one; a binary with bounds
beyond 0 and 1; squares of the objective without ``/ 2``; numbers on the left of a row. So are bounds and
kinds of variables that are in no row and not in the objective. Semi-continuous variables, SOS, indicators,
products, quadratic rows, lazy rows and all else that is not listed here are refused by name.

References
----------
IBM CPLEX, "LP file format: algebraic representation"; Gurobi, "LP format".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from models.arithmetic.exact import Number
from models.programs.file_program import FileProgram, half, limit, limit_of, number, refuse
from models.programs.terms import INFINITY

_HEADS = {
    "minimize": r"minimi[sz]e|minimum|min", "maximize": r"maximi[sz]e|maximum|max",
    "subject to": r"subject\s+to|such\s+that|s\.t\.|st\.|st", "bounds": r"bounds?",
    "general": r"generals?|gen|integers?|int", "binary": r"binary|binaries|bin", "end": r"end",
    "semi-continuous": r"semi-continuous|semis?", "semi-integer": r"semi-integers?|semiint",
    "sos": r"sos[12]?", "lazy constraints": r"lazy\s+constraints", "user cuts": r"user\s+cuts",
    "general constraints": r"general\s+constraints|gencons", "pwlobj": r"pwlobj",
}  # fmt: skip
_HEAD = re.compile(rf"\s*(?:{'|'.join(f'({words})' for words in _HEADS.values())})(?!\S)(?!\s*:)", re.I)
_SUPPORTED = (*_HEADS,)[:7]

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<sense>[<>]=?|=[<>]?)|(?P<mark>->|[+\-:\[\]^*/])"
    r"|(?P<name>[\w!\"#$%&(),;?@`'{}~|](?:[\w!\"#$%&(),.;?@`'{}~|]|\[[\w,.;:'\"]*\])*)"
)

_NOT_NAMES = re.compile(r"nan|[+-]?inf(inity)?", re.I)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


_LAST = _Token("end", "the end of the section", 0)


class _Sum:
    """Coefficients by name, in order, those of squares, and the numbers without a variable."""

    def __init__(self) -> None:
        self.terms: dict[str, Number] = {}
        self.squares: dict[str, Number] = {}
        self.numbers: list[Number] = []


def read_lp(text: str) -> FileProgram:
    """The program of an LP file.

    Raises
    ------
    ValueError
        If it is not one; the message names the line.
    """
    return _Reader(text).read()


def _sections(text: str) -> Iterator[tuple[str, int, list[_Token]]]:
    """``(name, line, tokens)`` of each section; the first one has no name."""
    name, start = "", 1
    tokens: list[_Token] = []
    for at, line in enumerate(text.split("\n"), 1):
        line = line.partition("\\")[0]
        head = _HEAD.match(line)
        if head:
            yield name, start, tokens
            name, start, tokens = (*_HEADS,)[(head.lastindex or 1) - 1], at, []
            line = line[head.end() :]
        tokens += _tokens(line, at)
    yield name, start, tokens


def _tokens(line: str, at: int) -> Iterator[_Token]:
    place = 0
    while place < len(line):
        if line[place].isspace():
            place += 1
            continue
        found = _TOKEN.match(line, place)
        if found is None:
            refuse(at, f"the character {line[place]!r}")
        place = found.end()
        kind, word = str(found.lastgroup), found.group()
        if kind == "name" and word.count("(") != word.count(")"):
            refuse(at, f"the name {word!r}, with half a pair of brackets")
        yield _Token(kind, word, at)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._out = FileProgram()
        self._column: dict[str, int] = {}
        self._row_names: set[str] = set()
        self._ends: dict[tuple[int, str], int] = {}  # the line of each lower or upper bound
        self._binary: dict[int, int] = {}  # the line that says so
        self._tokens: list[_Token] = []  # the next one last

    def read(self) -> FileProgram:
        seen: list[str] = []
        for name, at, tokens in _sections(self._text):
            self._tokens = tokens[::-1]
            if not name and not tokens:
                continue
            first = name in ("minimize", "maximize")
            if first == bool(seen) or not name:
                refuse(
                    tokens[0].line if tokens else at, "the file must begin with minimize or maximize, once"
                )
            if name not in _SUPPORTED:
                refuse(at, f"the section {name} is not supported")
            if "end" in seen or (name == "subject to" and name in seen):
                refuse(at, f"the section {name!r} after {seen[-1]!r}")
            seen.append(name)
            self._out.maximize |= name == "maximize"
            {
                "minimize": self._objective, "maximize": self._objective, "subject to": self._rows,
                "bounds": self._bounds, "general": self._kinds, "binary": self._kinds, "end": self._end,
            }[name](name)  # fmt: skip
        if "end" not in seen:
            refuse(self._text.count("\n") + 1, "the file has no line 'end': is it complete?")
        return self._finished()

    # --- tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[-1] if self._tokens else _LAST

    def _take(self) -> _Token:
        return self._tokens.pop()

    def _unexpected(self, wanted: str, line: int = 0) -> NoReturn:
        token = self._next
        if token.text == "->":
            refuse(token.line, "'->': indicator constraints are not supported")
        if token.text == "[":
            refuse(token.line, "'[': quadratic rows are not supported")
        refuse(token.line or line, f"{token.text!r} in place of {wanted}")

    def _label(self) -> _Token | None:
        """A name with a colon."""
        if len(self._tokens) > 1 and self._tokens[-2].text == ":" and self._next.kind == "name":
            label = self._take()
            self._take()
            return label
        return None

    def _sign(self) -> int:
        """The product of the signs that follow; 0 if there are none."""
        sign = 0
        while self._next.text in ("+", "-"):
            sign = (sign or 1) * (-1 if self._take().text == "-" else 1)
        return sign

    def _sum(self) -> _Sum:
        """Terms with signs between them; it ends before any other token."""
        found, line = _Sum(), self._next.line
        while True:
            sign, token = self._sign(), self._next
            first = not (found.terms or found.squares or found.numbers)
            if token.text == "[" and (sign or first):
                self._bracket(found, sign or 1)
            elif token.kind in ("number", "name") and (sign or first):
                value, name = self._term(sign or 1)
                if name:
                    found.terms[name] = found.terms.get(name, 0) + value
                else:
                    found.numbers.append(value)
            elif sign:
                self._unexpected("a number or a variable after a sign", line)
            else:
                return found

    def _term(self, sign: int) -> tuple[Number, str]:
        """A coefficient and a name, which is empty for a number alone."""
        value: Number = sign
        token = self._next
        if token.kind == "number":
            value = sign * number(self._take().text, token.line)
            # A label of the next row is no variable.
            if self._next.kind != "name" or (self._tokens[-2:-1] and self._tokens[-2].text == ":"):
                return value, ""
        token = self._take()
        if _NOT_NAMES.fullmatch(token.text):
            refuse(token.line, f"{token.text!r} in place of a number or a variable")
        return value, token.text

    def _bracket(self, found: _Sum, sign: int) -> None:
        """``[ 2 x ^2 + 4 y ^2 ] / 2``."""
        start = self._take()
        squares: dict[str, Number] = {}
        while self._next.text != "]":
            inner, token = self._sign(), self._next
            if not (inner or not squares) or token.kind not in ("number", "name"):
                self._unexpected("a term or ']'", start.line)
            value, name = self._term(inner or 1)
            mark, other = self._next, self._tokens[-2] if len(self._tokens) > 1 else _LAST
            if not name or ((mark.text, other.text) != ("^", "2") and (mark.text, other.text) != ("*", name)):
                if mark.text == "*" and other.kind == "name":
                    what = f"the product of {name!r} and {other.text!r}"
                    refuse(mark.line, f"{what}: only squares of variables are supported")
                self._unexpected("'^2' after a variable", start.line)
            self._take(), self._take()
            squares[name] = squares.get(name, 0) + value
        self._take()
        if (self._next.text, self._tokens[-2].text if len(self._tokens) > 1 else "") != ("/", "2"):
            refuse(start.line, "the squares of an objective are followed by '/ 2': '[ … ] / 2'")
        self._take(), self._take()
        for name, value in squares.items():
            found.squares[name] = found.squares.get(name, 0) + sign * half(value)

    def _position(self, name: str) -> int:
        """The column of a name, which is added if it is new."""
        if name not in self._column:
            self._column[name] = self._out.add_column(name)
        return self._column[name]

    def _declared(self, token: _Token) -> int:
        if token.text not in self._column:
            refuse(token.line, f"{token.text!r} is in no row and not in the objective")
        return self._column[token.text]

    # --- sections

    def _objective(self, _: str) -> None:
        self._label()
        found = self._sum()
        if self._tokens:
            self._unexpected("a sign or 'subject to'")
        for name, value in found.terms.items():
            self._out.cost[self._position(name)] = value
        for name, value in found.squares.items():
            self._out.square[self._position(name)] = value
        self._out.constant = sum(found.numbers)

    def _rows(self, _: str) -> None:
        while self._tokens:
            label, start = self._label(), self._next
            name = label.text if label else f"c{len(self._out.rows) + 1}"
            if name in self._row_names:
                refuse(start.line, f"a second row {name!r}")
            self._row_names.add(name)
            self._row(name, label.line if label else start.line)

    def _row(self, name: str, line: int) -> None:
        left = self._sum()
        if left.squares:
            refuse(line, f"the row {name!r} has squares, which are not supported")
        sense = self._sense(line)
        if left.terms:
            if left.numbers:
                refuse(line, f"the row {name!r} has a number on its left side; move it to the right")
            ends, body = [(sense, self._side(line))], left
        elif len(left.numbers) == 1:  # a range
            body = self._sum()
            if not body.terms or body.numbers or body.squares:
                refuse(line, f"the row {name!r} has no variables, or a number among them")
            again = self._sense(line)
            if not sense or sense != again:
                refuse(line, f"the row {name!r} has two senses that make no range")
            ends = [(-sense, left.numbers[0]), (sense, self._side(line))]
        else:
            refuse(line, f"the row {name!r} has no variables")
        i = self._out.add_row(name, -INFINITY, INFINITY)
        for direction, side in ends:
            if direction >= 0:
                self._out.least[i] = side
            if direction <= 0:
                self._out.most[i] = side
        if self._out.least[i] == INFINITY or self._out.most[i] == -INFINITY:
            refuse(line, f"the row {name!r} is never kept")
        for column, value in body.terms.items():
            self._out.entries[i, self._position(column)] = value

    def _sense(self, line: int) -> int:
        """1 for at least, -1 for at most, 0 for equal."""
        if self._next.kind != "sense":
            self._unexpected("a sense (<=, >= or =)", line)
        text = self._take().text
        return 1 if ">" in text else -1 if "<" in text else 0

    def _side(self, line: int) -> Number:
        """A number, or infinity, that ends a row or a bound."""
        sign, token = self._sign() or 1, self._next
        if limit_of(token.text) is None:
            self._unexpected("a number", line)
        value = sign * limit(self._take().text, token.line)
        after = self._next
        labelled = len(self._tokens) > 1 and self._tokens[-2].text == ":"
        if after.line == token.line and after.kind != "sense" and not labelled:
            self._unexpected("the end of the line", line)
        return value

    def _bounds(self, _: str) -> None:
        while self._tokens:
            line = self._next.line
            low: Number | None = None
            high: Number | None = None
            if self._next.kind == "name" and limit_of(self._next.text) is None:
                j = self._declared(self._take())
                if self._next.text.lower() == "free" and self._next.line == line:
                    self._take()
                    low, high = -INFINITY, INFINITY
                else:
                    low, high = self._ended(self._sense(line), self._side(line))
            else:
                value, sense = self._bound_value(), self._sense(line)
                j = (
                    self._declared(self._take())
                    if self._next.kind == "name"
                    else self._unexpected("a variable", line)
                )
                low, high = self._ended(-sense, value)
                if self._next.kind == "sense":
                    if self._sense(line) != sense or not sense:
                        refuse(line, "two senses that make no range")
                    more = self._ended(sense, self._side(line))
                    low, high = (a if b is None else b for a, b in zip((low, high), more, strict=True))
            if self._next.line == line:
                self._unexpected("the end of the line", line)
            if low == INFINITY or high == -INFINITY:
                refuse(line, f"the bound excludes every value of {self._out.columns[j]!r}")
            for side, end, held in (("lower", low, self._out.lower), ("upper", high, self._out.upper)):
                if end is not None:
                    held[j], self._ends[j, side] = end, line

    def _bound_value(self) -> Number:
        """A number, or infinity, that begins a bound."""
        sign, token = self._sign() or 1, self._next
        if limit_of(token.text) is None:
            self._unexpected("a number or a variable", token.line)
        return sign * limit(self._take().text, token.line)

    @staticmethod
    def _ended(sense: int, value: Number) -> tuple[Number | None, Number | None]:
        """The lower and the upper bound of ``v sense value``."""
        return value if sense >= 0 else None, value if sense <= 0 else None

    def _kinds(self, section: str) -> None:
        while self._tokens:
            token = self._take()
            j = self._declared(token)
            self._out.integer[j] = True
            if section == "binary":
                self._binary[j] = token.line

    def _end(self, _: str) -> None:
        if self._tokens:
            refuse(self._next.line, f"{self._next.text!r} after 'end'")

    def _finished(self) -> FileProgram:
        out = self._out
        if not out.columns:
            refuse(self._text.count("\n") + 1, "the file has no variables")
        for j, name in enumerate(out.columns):
            at = self._ends.get((j, "upper"), 0)
            if j in self._binary:
                out.upper[j] = out.upper[j] if at else 1
                if not 0 <= out.lower[j] <= 1 or not 0 <= out.upper[j] <= 1:
                    refuse(self._binary[j], f"{name!r} is binary, and its bounds go beyond 0 and 1")
            elif at and out.upper[j] < 0 and (j, "lower") not in self._ends:
                why = "readers do not agree whether its lower bound is 0 or -inf; state it"
                refuse(at, f"{name!r} has a negative upper bound and no lower one: {why}")
        out.entries = {place: value for place, value in out.entries.items() if value}
        return out
