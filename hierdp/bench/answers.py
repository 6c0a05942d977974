"""Read solution files: of HiGHS, SCIP, Gurobi and CPLEX (``.sol``), JSON, and NumPy's arrays (``.npy``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.errors import InputError
from models.arithmetic.arrays import Array
from models.programs.texts import CONSTANT
from solvers.solution import Status

SUFFIXES = (".json", ".sol", ".npy")

MOST_BYTES = 2 * 10**9
"""Larger files are not read."""

_SAID: dict[str, Status] = {
    "optimal": "optimal",
    "optimal solution found": "optimal",
    "integer optimal solution": "optimal",
    "feasible": "feasible",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "time limit reached": "feasible",
    "time_limit": "time_limit",
}
"""What files say about an answer, in lower case; anything else is no claim."""


@dataclass(frozen=True)
class ReadAnswer:
    """The contents of a solution file.

    Attributes
    ----------
    values : dict, list or array
        By the variable's name in the written program, or in the order of the program. Empty: no answer.
    status : str, optional
        None if the file does not say, or says something else.
    bound : float, optional
    """

    values: dict[str, float] | list[float] | Array
    status: Status | None = None
    bound: float | None = None

    def columns(self, names: Sequence[str]) -> list[float] | None:
        """The values of a file's columns; None if only the answer of the model is given, as a list.

        Names that are not listed are 0, as solvers leave them out. A list is in the order of the columns.

        Raises
        ------
        InputError
            If a name is not that of a column.
        """
        if not isinstance(self.values, dict):
            values = [float(one) for one in self.values]
            own = len(values) == len(names) + 1  # an .lp has one more
            return values[: len(names)] if own or len(values) == len(names) else None
        known = set(names)
        for name in self.values:
            if name not in known and name not in BESIDE:
                raise InputError(f"no variable of the file has the name {name!r}; its first is {names[0]!r}")
        return [self.values.get(name, 0.0) for name in names]


BESIDE = (CONSTANT, "quadobjvar", "qmatrixvar")
"""Variables that are in an .lp but not in the .mps, or that SCIP adds for an objective with squares."""


def read_answer(path: Path) -> ReadAnswer:
    """Read a solution file.

    JSON is an object with ``x`` (a list of numbers, nested or not, or an object by names), and optionally
    ``status`` (optimal, feasible, infeasible, unbounded, time_limit) and ``bound``. An array is the answer,
    and makes no claim.

    Raises
    ------
    InputError
        If the file cannot be read as one.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes")
        if path.suffix == ".npy":
            return ReadAnswer(_finite(_numbers(path)))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(f"{path} cannot be read: {failure}") from None
    try:
        return _json(text) if path.suffix == ".json" else _sol(text)
    except InputError as wrong:
        raise InputError(f"{path}: {wrong}") from None
    except (ValueError, TypeError) as wrong:
        raise InputError(f"{path} is no solution file: {wrong}") from None


def _numbers(path: Path) -> Array:
    try:
        found: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as wrong:
        raise InputError(f"{path} is no array of NumPy's: {wrong}") from None
    if found.dtype.kind not in "iuf":
        raise InputError(f"{path} is an array of {found.dtype}, not of numbers")
    return found.ravel()


def _json(text: str) -> ReadAnswer:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise InputError("it is no JSON object with an entry 'x'")
    x, bound = found.get("x"), found.get("bound")
    status = _SAID.get(str(found.get("status", "")).lower())
    values: dict[str, float] | list[float]
    if isinstance(x, dict):
        values = {str(name): float(value) for name, value in x.items()}
    elif x is None:
        values = []
    else:
        values = [float(value) for value in np.asarray(x, float).ravel().tolist()]
    return ReadAnswer(_finite(values), status, None if bound is None else float(bound))


def _sol(text: str) -> ReadAnswer:
    if text.lstrip().startswith("<?xml"):
        named = re.findall(r'<variable name="([^"]+)"[^>]*? value="([^"]+)"', text)
        said = re.search(r'solutionStatusString="([^"]+)"', text)
        return ReadAnswer(_finite({name: float(value) for name, value in named}), _status(said))
    said = re.search(r"(?im)^solution status:\s*(.+?)\s*$", text)  # SCIP
    if text.startswith("Model status"):  # HiGHS
        said = re.search(r"(?m)^Model status\s*:?\s*\n?\s*(.+?)\s*$", text)
    return ReadAnswer(_finite(dict(_columns(text))), _status(said))


def _columns(text: str) -> Iterator[tuple[str, float]]:
    """The lines with a name and a number. HiGHS lists rows, prices and a basis after the columns."""
    inside = not text.startswith("Model status")
    for line in text.splitlines():
        if re.match(r"# Columns\b", line):
            inside = True
        elif re.match(r"# (Rows|Dual|Basis)\b", line):
            if not text.startswith("# "):
                return
        elif inside and line.strip() and not line.startswith(("#", "=")):
            words = line.split()
            if len(words) >= 2 and not line.lower().startswith(
                ("solution status", "objective value", "no solution")
            ):
                yield words[0], float(words[1])


def _status(said: re.Match[str] | None) -> Status | None:
    return None if said is None else _SAID.get(said[1].lower())


def _finite(values: Any) -> Any:
    many = list(values.values()) if isinstance(values, dict) else values
    if not np.isfinite(np.asarray(many, float)).all():
        raise InputError("it has values that are not finite")
    return values
