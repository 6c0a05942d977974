"""Read solution files: of HiGHS, SCIP, Gurobi and CPLEX (``.sol``), JSON, and NumPy's arrays (``.npy``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.errors import InputError
from models.arithmetic.arrays import Array
from models.programs.program import Program
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
class Told:
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

    def variables(self, program: Program, shape: tuple[int, ...]) -> Any:
        """All variables of the program; those that are not listed are 0. None if the file has no answer.

        Raises
        ------
        InputError
            If the number of values, or a name, does not fit the program.
        """
        if not len(self.values):
            return None
        found = np.zeros(program.size)
        if not isinstance(self.values, dict):
            own = int(np.prod(shape))
            if len(self.values) not in (own, program.size):
                raise InputError(
                    f"it has {len(self.values):,} values; the answer has {own:,}, and the program "
                    f"{program.size:,}"
                )
            found[: len(self.values)] = self.values
            return found
        places = {name: i for i, name in enumerate(program.variable_names())}
        known = [(places[name], value) for name, value in self.values.items() if name in places]
        if not known:
            other = next(iter(self.values))
            raise InputError(f"no name in it is a variable of the program, whose first is "
                             f"{next(iter(places))!r}; its first is {other!r}")  # fmt: skip
        at, values = zip(*known, strict=True)
        found[list(at)] = values
        return found

    def complete(self, program: Program) -> bool:
        """Whether the auxiliary variables are listed, too."""
        own = program.blocks[0].size
        if not isinstance(self.values, dict):
            return len(self.values) == program.size
        return own == program.size or any(name in self.values for name in program.variable_names()[own:])


def read_answer(path: Path) -> Told:
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
            return Told(_finite(_numbers(path)))
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


def _json(text: str) -> Told:
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
    return Told(_finite(values), status, None if bound is None else float(bound))


def _sol(text: str) -> Told:
    if text.lstrip().startswith("<?xml"):
        named = re.findall(r'<variable name="([^"]+)"[^>]*? value="([^"]+)"', text)
        said = re.search(r'solutionStatusString="([^"]+)"', text)
        return Told(_finite({name: float(value) for name, value in named}), _status(said))
    said = re.search(r"(?im)^solution status:\s*(.+?)\s*$", text)  # SCIP
    if text.startswith("Model status"):  # HiGHS
        said = re.search(r"(?m)^Model status\s*:?\s*\n?\s*(.+?)\s*$", text)
    return Told(_finite(dict(_columns(text))), _status(said))


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
