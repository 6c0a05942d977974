"""One table of what each backend is and can do; everything about backends is decided from it."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from models.program import Program, Rows
from solvers.solution import Answer


class Session:
    """A program stated in a backend's own form, ready to run, and to run again with more rows."""

    def __init__(self, program: Program, threads: int | None) -> None:
        raise NotImplementedError

    def add_rows(self, rows: Rows) -> None:
        """Append constraints; the next run takes up where the last one stopped, if the backend can."""
        raise NotImplementedError

    def run(self, seconds: float | None) -> Answer:
        """Solve within a time limit."""
        raise NotImplementedError


@dataclass(frozen=True)
class Backend:
    """A row of the table: what a backend takes as it is.

    Attributes
    ----------
    name, library, package, licence : str
    module : str
        Holds the backend's `Session`; imported in the backend's own process only.
    integer, quadratic, integer_quadratic, absolute : bool
        What it takes natively. What it does not is rewritten exactly, or relaxed, or refused: see `plan`.
    integers_only : bool
        Whether it takes no continuous variables.
    argument : str
        The solver behind Pyomo.
    """

    name: str
    library: str
    package: str
    licence: str
    module: str
    integer: bool = False
    quadratic: bool = False
    integer_quadratic: bool = False
    absolute: bool = False
    integers_only: bool = False
    argument: str = ""

    @property
    def version(self) -> str:
        """Version of the library, empty where it is not installed."""
        return _version(self.package)

    @property
    def installed(self) -> bool:
        """Whether the library (and, through Pyomo, the solver behind it) is here."""
        return bool(self.version) and (not self.argument or _behind_pyomo(self))

    @property
    def install(self) -> str:
        """How to get it."""
        behind = f", and the solver {self.argument} where Pyomo finds it" if self.argument else ""
        return f"pip install {self.package}{behind}"

    def open(self, program: Program, threads: int | None) -> Session:
        """State the program in the backend's form."""
        behind = (self.argument,) if self.argument else ()
        session: Session = importlib.import_module(self.module).Session(program, threads, *behind)
        return session

    def finds_solver(self) -> bool:
        """Whether the solver behind Pyomo answers (imports Pyomo: for the backend's own process)."""
        return bool(importlib.import_module(self.module).available(self.argument))


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _behind_pyomo(backend: Backend) -> bool:
    from solvers import worker

    return worker.available(backend)


FAST = Backend(
    "fast",
    "hierdp",
    "hierdp",
    "Apache-2.0",
    "solvers.fast",
    integer=True,
    quadratic=True,
    integer_quadratic=True,
    absolute=True,
)

EXACT = (
    Backend("highs", "HiGHS (highspy)", "highspy", "MIT", "solvers.highs", integer=True, quadratic=True),
    Backend(
        "cp-sat",
        "CP-SAT (OR-tools)",
        "ortools",
        "Apache-2.0",
        "solvers.cp_sat",
        integer=True,
        absolute=True,
        integers_only=True,
    ),
    Backend(
        "clarabel",
        "Clarabel (cvxpy)",
        "clarabel",
        "Apache-2.0",
        "solvers.clarabel",
        quadratic=True,
        absolute=True,
    ),
)


def _through_pyomo(solver: str) -> Backend:
    licence = "BSD-3-Clause, and the solver's own"
    return Backend(
        f"pyomo:{solver}",
        f"{solver} (Pyomo)",
        "pyomo",
        licence,
        "solvers.pyomo_any",
        integer=True,
        quadratic=True,
        argument=solver,
    )


def backends() -> list[Backend]:
    """The fast path and every exact backend, installed or not."""
    return [FAST, *EXACT, _through_pyomo("highs")]


def find(name: str) -> Backend:
    """The backend of this name.

    Raises
    ------
    ValueError
        If there is none of that name, or it is not installed; the message says which there are, or how
        to install it.
    """
    known = {backend.name: backend for backend in backends()}
    if name.startswith("pyomo:") and len(name) > len("pyomo:"):
        known[name] = _through_pyomo(name.removeprefix("pyomo:"))
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        there_are = f"There are: {', '.join(known)} (and pyomo:<solver>)."
        raise ValueError(f"there is no backend {name!r}.{hint} {there_are}")
    if not known[name].installed:
        raise ValueError(f"the backend {name} is not installed. To get it: {known[name].install}")
    return known[name]
