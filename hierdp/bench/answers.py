"""Read solution files by value: HiGHS, SCIP, Gurobi, CPLEX, CBC, GLPK, MOSEK, MIPLIB, JSON and ``.npy``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from hierdp.errors import InputError
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.programs.file_program import decimal, refuse
from models.programs.read import MOST_BYTES
from models.programs.texts import CONSTANT
from solvers.solution import Status

SUFFIXES = (".json", ".sol", ".npy")

_SAID: dict[str, Status] = {
    "optimal": "optimal",
    "optimal solution found": "optimal",
    "integer optimal solution": "optimal",
    "integer optimal, tolerance": "optimal",
    "integer optimal": "optimal",
    "integer_optimal": "optimal",
    "feasible": "feasible",
    "infeasible": "infeasible",
    "integer infeasible": "infeasible",
    "infeasible (final)": "infeasible",
    "integer empty": "infeasible",
    "primal_infeasible_cer": "infeasible",
    "unbounded": "unbounded",
    "time limit reached": "feasible",
    "stopped on time": "feasible",
    "time_limit": "time_limit",
}
"""What files say about an answer, in lower case; anything else is no claim."""

_NONE = re.compile(r"infeasible|unbounded|undefined|empty|_cer\b|no solution|time_limit", re.IGNORECASE)
"""After these words, values are no answer."""


@dataclass(frozen=True)
class ReadAnswer:
    """The contents of a solution file.

    Attributes
    ----------
    values : dict, list or array
        By the variable's name in the written program, or in the order of the program; int or Fraction, as
        written (an array has its own type).
    status : str, optional
        None if the file does not say, or says something else.
    bound : float, optional
    claim : str
        The file's own words about the answer; empty if there are none.
    answered : bool
        Whether the file has an answer. It may have no values, if all of them are 0.
    complete : bool
        Whether such a file lists every variable, also those that are 0.
    comments : dict
        Lines that are comments, unless a variable has such a name: it begins with ``#`` or ``=``.
    choice : str
        Which answer of several this is.
    """

    values: Mapping[str, Number] | list[Number] | Array
    status: Status | None = None
    bound: float | None = None
    claim: str = ""
    answered: bool = True
    complete: bool = False
    comments: Mapping[str, Number] = field(default_factory=dict)
    choice: str = ""

    def columns(self, names: Sequence[str]) -> list[Number] | None:
        """The values of a file's columns; None if only the answer of the model is given, as a list.

        Names that are not listed are 0, as solvers leave them out. A list is in the order of the columns.

        Raises
        ------
        InputError
            If a name is not that of a column, or one is missing in a file that lists all of them.
        """
        if not isinstance(self.values, Mapping):
            values = [*self.values.tolist()] if isinstance(self.values, np.ndarray) else [*self.values]
            own = len(values) == len(names) + 1  # an .lp has one more
            return values[: len(names)] if own or len(values) == len(names) else None
        known = set(names)
        for name in self.values:
            if name not in known and name not in BESIDE:
                raise InputError(f"no variable of the file has the name {name!r}; its first is {names[0]!r}")
        missing = self.missing(names)
        if missing and self.complete:
            raise InputError(f"no value of {_some(missing)}, though such a file lists every variable")
        listed = {**self.comments, **self.values}
        return [listed.get(name, 0) for name in names]

    def missing(self, names: Sequence[str]) -> list[str]:
        """The columns that have no value by their name."""
        if not isinstance(self.values, Mapping):
            return []
        return [name for name in names if name not in self.values and name not in self.comments]


def _some(names: Sequence[str]) -> str:
    """The first names, and the number of others.

    Examples
    --------
    >>> _some(["x", "y", "z", "w", "v"])
    "'x', 'y', 'z' and 2 more"
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more


BESIDE = (CONSTANT, "quadobjvar", "qmatrixvar")
"""Variables that are in an .lp but not in the .mps, or that SCIP adds for an objective with squares."""


def read_answer(path: Path) -> ReadAnswer:
    """Read a solution file; any ending but ``.json`` and ``.npy`` is that of a solver's text.

    JSON is an object with ``x`` (a list of numbers, nested or not, or an object by names), and optionally
    ``status`` (optimal, feasible, infeasible, unbounded, time_limit) and ``bound``; or Gurobi's, with
    ``Vars``. An array is the answer, and makes no claim.

    Raises
    ------
    InputError
        If the file cannot be read as one; the message names the line.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes")
        if path.suffix == ".npy":
            return ReadAnswer(_numbers(path))
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(f"{path} cannot be read: {failure}") from None
    try:
        return _json(text) if path.suffix.lower() == ".json" else _sol(text)
    except (ValueError, TypeError, RecursionError, ElementTree.ParseError) as wrong:
        raise InputError(f"{path} is no solution file: {wrong}") from None


def _numbers(path: Path) -> Array:
    try:
        found: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as wrong:
        raise InputError(f"{path} is no array of NumPy's: {wrong}") from None
    if found.dtype.kind not in "iuf":
        raise InputError(f"{path} is an array of {found.dtype}, not of numbers")
    if not np.isfinite(found).all():
        raise InputError(f"{path} has values that are not finite")
    return found.ravel()


# ---------------------------------------------------------------- JSON


def _json(text: str) -> ReadAnswer:
    found = json.loads(
        text, parse_float=_value, parse_int=_value, parse_constant=_value, object_pairs_hook=_once
    )
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object with an entry 'x'")
    x, bound, claim = found.get("x"), found.get("bound"), str(found.get("status", ""))
    if "Vars" in found:  # of Gurobi
        x = _once([(one["VarName"], one.get("X", 0)) for one in found["Vars"]])
    if isinstance(x, dict):
        values: Any = {name: _plain(value) for name, value in x.items()}
    else:
        values = [] if x is None else [*_flat(x)]
    answered = x is not None and not _NONE.search(claim)
    return ReadAnswer(
        values, _SAID.get(claim.lower()), None if bound is None else float(_plain(bound)), claim, answered
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, which must have different names."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} has two values")
    return made


def _flat(part: Any) -> Iterator[Number]:
    for one in part if isinstance(part, list) else [part]:
        yield from _flat(one) if isinstance(one, list) else [_plain(one)]


def _plain(value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise ValueError(f"{value!r} in place of a number")
    return value


def _value(word: str, line: int = 0) -> Number:
    """A decimal, or a fraction as exact solvers write it."""
    value = decimal(word)
    above, slash, below = word.partition("/")
    if value is None and slash and above.lstrip("+-").isdecimal() and below.isdecimal() and int(below):
        value = Fraction(int(above), int(below))
    if value is None:
        why = f"{word!r} in place of a finite number"
        if line:
            refuse(line, why)
        raise ValueError(why)
    return value


# ---------------------------------------------------------------- texts of solvers

Parts = Iterator[tuple[str, str, int]]
"""``(name, value, line)`` of each value."""


def _sol(text: str) -> ReadAnswer:
    if text.lstrip().startswith("<"):
        return _xml(text)
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("Model status"):
        return _highs(lines)
    if first.strip() == "Columns":
        return _highs_table(lines)
    if re.match(r"c Problem:|s (bas|mip|ipt) ", first):
        return _glpk_by_number(lines)
    if first.startswith("Problem:"):
        return _glpk_table(lines)
    if re.match(r"NAME\s+:", first):
        return _mosek(lines)
    if re.search(r" - objective value ", first):
        return _cbc(lines)
    return _plain_lines(lines)


def _said(claim: str, values: Mapping[str, Number] | list[Number], answered: bool = True) -> ReadAnswer:
    claim = claim.strip()
    answered = answered and not _NONE.search(claim)
    return ReadAnswer(values, _SAID.get(claim.lower()), None, claim, answered)


def _collected(parts: Parts) -> dict[str, Number]:
    values: dict[str, Number] = {}
    for name, word, at in parts:
        if name in values:
            refuse(at, f"a second value of {name!r}")
        values[name] = _value(word, at)
    return values


def _between(lines: list[str], start: str, end: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, after one that matches `start` and before one that matches `end`."""
    inside = False
    for at, line in enumerate(lines, 1):
        if inside and re.match(end, line):
            return
        if inside and line.strip():
            yield at, line
        inside = inside or re.match(start, line) is not None


def _found(lines: list[str], pattern: str) -> str:
    """The first group of the first match."""
    matches = (re.match(pattern, line, re.IGNORECASE) for line in lines)
    return next((match[1] for match in matches if match), "")


def _name_and_value(at: int, line: str) -> tuple[str, str, int]:
    words = line.strip().rsplit(None, 1)
    if len(words) != 2:
        refuse(at, f"{line.strip()!r} in place of a name and a value")
    return words[0], words[1], at


def _highs(lines: list[str]) -> ReadAnswer:
    """HiGHS's raw style, also the sparse one, whose lines end with the index of the column."""
    claim = _found([" ".join(lines[:2])], r"Model status\s*:?\s*(.*)")
    head = _found(lines, r"# Columns (.*)")
    rows = _between(lines, r"# Columns\b", r"#")
    sparse = head.startswith("-") or head.endswith("sparse")  # HiGHS 1.13 writes no such word
    if sparse:
        rows = ((at, line.strip().rpartition(" ")[0]) for at, line in rows)
    values = _collected(_name_and_value(at, line) for at, line in rows)
    count = re.fullmatch(r"\d+", head)
    if count and int(count[0]) != len(values):
        raise ValueError(f"it has {len(values)} columns, and says {head}")
    return replace(_said(claim, values, bool(head)), complete=not sparse)


def _highs_table(lines: list[str]) -> ReadAnswer:
    """HiGHS's style for people: numbers end where their titles do."""
    head = lines[lines.index(next(line for line in lines if line.strip() == "Columns")) + 1]
    try:
        start, end, name = head.index("Upper") + 5, head.index("Primal") + 6, head.index("Name")
    except ValueError:
        raise ValueError("its table has no titles Upper, Primal and Name") from None
    rows = [*_between(lines, r"Columns", r"Rows")][1:]
    values = _collected((line[name:].strip(), line[start:end].strip(), at) for at, line in rows
                        if line[start:end].strip())  # fmt: skip
    claim = _found(lines, r"Model status: (.*)")
    return replace(_said(claim, values, bool(values) or not rows), complete=True)


def _glpk_by_number(lines: list[str]) -> ReadAnswer:
    """GLPK's ``--write``, also by HiGHS: columns by their number."""
    words = [(at, line.split()) for at, line in enumerate(lines, 1) if line[:2] in ("s ", "j ")]
    if not words or words[0][1][0] != "s" or len(words[0][1]) < 5:
        raise ValueError("it has no line 's' with the sizes and the status")
    form, _, count, *state = words[0][1][1:]
    # A basic solution has a status of the primal and of the dual one; others have one.
    claim = {"f": "feasible", "o": "optimal", "n": "infeasible", "u": "undefined", "i": "infeasible"}.get(
        state[0], state[0]
    )
    if form == "bas" and state[:2] == ["f", "f"]:
        claim = "optimal"
    place = 3 if form == "bas" else 2
    values: list[Number] = []
    for at, parts in words[1:]:
        if len(parts) <= place or parts[1] != str(len(values) + 1):
            refuse(at, f"not the line of column {len(values) + 1}")
        values.append(_value(parts[place], at))
    if values and len(values) != int(count):
        raise ValueError(f"it has {len(values)} columns, and says {count}")
    return _said(claim, values, bool(values))


_GLPK_COLUMN = r"(\S.*?)\s+(?:\*|B|NL|NU|NF|NS)?\s*([-+.\deE]+|nan|[-+]?inf)(?:\s|$)"


def _glpk_table(lines: list[str]) -> ReadAnswer:
    """GLPK's ``--output``, also by HiGHS: a long name has a line of its own."""

    def parts() -> Parts:
        waiting = ""
        for at, line in _between(lines, r"\s*No\.\s+Column name", r"[A-Za-z]"):
            if line.startswith("---"):
                continue
            numbered = re.match(r"\s*\d+ (.*)$", line)
            rest = f"{waiting} {line}" if waiting else numbered[1] if numbered else ""
            found = re.match(_GLPK_COLUMN, rest.strip())
            if found:
                yield found[1].strip(), found[2], at
                waiting = ""
            elif numbered and not waiting:
                waiting = rest.strip()
            else:
                refuse(at, f"{line.strip()!r} in place of a column")

    claim = _found(lines, r"Status:\s*(.*)")
    values = _collected(parts())
    return replace(_said(claim, values, bool(values)), complete=True)


def _mosek(lines: list[str]) -> ReadAnswer:
    """MOSEK's ``.sol``, ``.bas`` and ``.int``."""

    def parts() -> Parts:
        for at, line in _between(lines, r"VARIABLES\b", r"[A-Z]+( [A-Z]+)*\s*$"):
            if line.startswith("INDEX"):
                continue
            found = re.match(r"\s*\d+\s+(\S.*?)\s+(?:[A-Z]{2}|\*\*)\s+(\S+)(?:\s|$)", line)
            if not found:
                refuse(at, f"{line.strip()!r} in place of a variable")
            yield found[1], found[2], at

    body = [line for line in lines if not line.startswith("INDEX")]
    claim = _found(body, r"SOLUTION STATUS\s*:\s*(.*)")
    values = _collected(parts())
    return replace(_said(claim, values, bool(values)), complete=True)


def _cbc(lines: list[str]) -> ReadAnswer:
    """CBC's ``solution``: ``index name value reduced_cost``; zeros are left out."""
    claim = _found(lines, r"\s*(.*?) - objective value ")

    def parts() -> Parts:
        for at, line in [(at, line) for at, line in enumerate(lines, 1) if line.strip()][1:]:
            found = re.match(r"(?:\*\*)?\s*\d+\s+(\S.*?)\s+(\S+)\s+\S+\s*$", line)
            if not found:
                refuse(at, f"{line.strip()!r} in place of a column")
            yield found[1], found[2], at

    return _said(re.sub(r" \(.*\)$", "", claim), _collected(parts()))


def _plain_lines(lines: list[str]) -> ReadAnswer:
    """SCIP, Gurobi, MIPLIB: ``name value``, and lines about the answer; zeros may be left out."""
    values: dict[str, Number] = {}
    comments: dict[str, Number] = {}
    claim, stated, complete = "", False, False
    for at, line in enumerate(lines, 1):
        line = re.sub(r"\(obj:[^()]*\)\s*$", "", line).strip()
        if not line:
            continue
        said = re.match(
            r"(solution status|objective value):\s*(.*)$|no solution available$|=infeas=$", line, re.I
        )
        if said:
            stated = stated or (said[1] or "").lower() == "objective value"
            if (said[1] or "").lower() == "solution status":
                claim = said[2]
            elif not said[1]:
                claim = claim or ("infeasible" if line.startswith("=") else "")
                stated = False
                values.clear()
                return replace(_said(claim or line, {}, False), status=_SAID.get(claim.lower()))
            continue
        if line[0] in "#=":
            stated = stated or line.startswith("=obj=")
            complete = complete or line.startswith("# Solution for model")
            name, _, word = line.rpartition(" ")
            if name and decimal(word) is not None:
                comments[name.strip()] = _value(word)
            continue
        name, word, _ = _name_and_value(at, line)
        if name in values:
            refuse(at, f"a second value of {name!r}")
        values[name] = _value(word, at)
    answered = bool(values) or stated or complete or _SAID.get(claim.lower()) == "optimal"
    return replace(_said(claim, values, answered), complete=complete, comments=comments)


def _xml(text: str) -> ReadAnswer:
    """CPLEX's solution, or its pool of solutions: then the incumbent, or else the first one."""
    if "<!DOCTYPE" in text:
        raise ValueError("an XML with a document type is not read")
    root = ElementTree.fromstring(text)
    found = [root] if root.tag == "CPLEXSolution" else root.findall("CPLEXSolution")
    if not found:
        raise ValueError(f"no CPLEXSolution in the XML, whose first element is {root.tag!r}")
    heads = [one.find("header") for one in found]
    titles = ["" if head is None else head.get("solutionName", "") for head in heads]
    at = titles.index("incumbent") if "incumbent" in titles else 0
    chosen, head = found[at], heads[at]
    values = {}
    for one in chosen.iter("variable"):
        name, word = one.get("name"), one.get("value")
        if name is None or word is None or name in values:
            raise ValueError(f"the variable {name!r} has no name, no value or two values")
        values[name] = _value(word)
    claim = "" if head is None else head.get("solutionStatusString", "")
    choice = f"the answer {titles[at] or 'that is first'!r} of {len(found)}" if len(found) > 1 else ""
    return replace(_said(claim, values, bool(values)), complete=True, choice=choice)
