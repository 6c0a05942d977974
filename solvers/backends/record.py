"""The records of the catalogue: a solver with its own names of options, and a backend that reaches it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from models.programs.program import Program
from models.programs.terms import Formulation
from solvers.backends.session import Session
from solvers.solution import Effort

ANY = (0.0, 1.0)
"""The range of a tolerance that may be any share."""

KEPT = 2.0**-48
"""Of the largest number of a program: no row is asked to be kept more closely than this, 16 units in the last
place of a double, because sums of such numbers cannot be. It is below 1e-9 up to numbers of 281,474."""


def kept(program: Formulation) -> float:
    """The least violation of a row that doubles can tell from rounding errors; at most 1e-6."""
    centers = (np.asarray(term.center, float) for term in program.objective)
    numbers = [*program.bounds, *program.row_bounds, *centers]
    largest = max(float(np.abs(part[np.isfinite(part)]).max(initial=0.0)) for part in numbers)
    return min(KEPT * largest, 1e-6)


@dataclass(frozen=True)
class Solver:
    """A solver and its options, by its own names.

    By default many solvers stop at 1e-3 to 1e-6. For comparable answers each gets 1e-9 where its
    documentation allows that and it keeps it; gaps of integer programs are closed.

    Attributes
    ----------
    package : str
        The package that brings it, if known. A library finds the solver if and only if that is installed.
    settings : mapping
        What it always gets.
    tolerances : mapping
        The names of its tolerances, and the range of values that each of them accepts.
    no_presolve : mapping
        What turns its presolve off; empty if that cannot be.
    seconds, threads : str
        The options that limit them; empty if it has none, or its backend limits them itself.
    absolute : str
        The option that limits the absolute violation of a row, whatever the size of its numbers. Other
        solvers add a relative tolerance of the same size, or scale the rows.
    together : str
        The one option that all of these are handed on as, if they are.
    linear, whole, strict : bool
        For one behind a library: whether it takes no squares; takes whole numbers; takes only programs with a
        square of every variable.
    """

    package: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    no_presolve: Mapping[str, Any] = field(default_factory=dict)
    seconds: str = ""
    threads: str = ""
    absolute: str = ""
    together: str = ""
    linear: bool = False
    whole: bool = False
    strict: bool = False

    def options(
        self, effort: Effort, program: Formulation | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """Its options for an effort and a limit of time.

        No absolute tolerance is below what doubles can keep on the program.

        Examples
        --------
        >>> tolerances = {"rows": (1e-9, 1e-2), "gap": ANY}
        >>> solver = Solver(settings={"rows": 1e-9}, tolerances=tolerances, seconds="most")
        >>> solver.options(Effort(), seconds=5)
        {'rows': 1e-09, 'most': 5}
        >>> solver.options(Effort(tolerance=0.1))
        {'rows': 0.01, 'gap': 0.1}
        """
        options = dict(self.settings)
        if program is not None and self.absolute:
            options[self.absolute] = max(options[self.absolute], kept(program))
        if effort.tolerance is not None:
            for name, (least, most) in self.tolerances.items():
                options[name] = min(max(effort.tolerance, least), most)
        if not effort.presolve:
            options |= self.no_presolve
        if effort.threads is not None and self.threads:
            options[self.threads] = effort.threads
        if seconds is not None and self.seconds:
            options[self.seconds] = max(seconds, 0.01)
        return {self.together: options} if self.together else options


@dataclass(frozen=True)
class Backend:
    """A backend: what it accepts without reformulation, and how it is installed.

    Attributes
    ----------
    name, library, package, licence : str
    module : str
        Holds the backend's `Session`; it must not load the solver when it is imported, only when a session is
        made, which happens in the backend's own process.
    integer, quadratic, integer_quadratic, absolute, table : bool
        What it takes natively. Other programs are rewritten exactly, relaxed or refused: see `formulate`.
    conic : bool
        Whether it takes the two models that are not a `Program`: with powers, and with a semidefinite matrix.
    integers_only : bool
        Whether it takes no continuous variables.
    network_only : bool
        Whether it takes only programs whose rows are a network, with whole data and convex costs.
    squares_only : bool
        Whether it takes only programs with a square of every variable.
    tolerant : bool
        Whether its accuracy can be set.
    extra : str
        The extra of hierdp that installs it, if hierdp alone does not.
    argument : str
        The solver, for a library that reaches several.
    separate : bool
        Whether that solver may be missing although the library is installed.
    needs : str
        The package of that solver, if known: then its presence is checked without loading the library.
    gpu : bool
        Whether it runs on NVIDIA GPUs only.
    build : str
        How to get it, if no package has it.
    solver : Solver
        The names of its options.
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
    table: bool = False
    conic: bool = False
    integers_only: bool = False
    network_only: bool = False
    squares_only: bool = False
    tolerant: bool = True
    extra: str = ""
    argument: str = ""
    separate: bool = False
    needs: str = ""
    gpu: bool = False
    build: str = ""
    solver: Solver = field(default=Solver(), hash=False)

    @property
    def version(self) -> str:
        """Version of the library; empty if it is not installed."""
        return _version(self.package)

    @property
    def behind(self) -> str:
        """Version of the solver's own package, where the library is another one; empty if not known."""
        return _version(self.needs) if self.needs else ""

    @property
    def installed(self) -> bool:
        """Whether the library (and, through cvxpy or Pyomo, the solver behind it) is installed."""
        if not self.version or not self.separate:
            return bool(self.version)
        return bool(_version(self.needs)) if self.needs else _behind(self)[0]

    @property
    def failure(self) -> str:
        """What its module failed with when it looked for the solver; empty if it did not fail or look."""
        return _behind(self)[1] if self.version and self._looks else ""

    @property
    def _looks(self) -> bool:
        return self.separate and not self.needs

    @property
    def install(self) -> str:
        """How to install it."""
        if self.build:
            return self.build
        if self.needs:
            return f"pip install {self.package} {self.needs}"
        if self.separate:
            return f"pip install {self.package}, and the solver {self.argument} where {self.package} finds it"
        return f"pip install hierdp[{self.extra}]" if self.extra else f"pip install {self.package}"

    @property
    def lacks(self) -> str:
        """What this machine lacks to run it; empty if nothing is known to be missing."""
        return "it needs an NVIDIA GPU, and this machine has none" if self.gpu and not has_gpu() else ""

    @property
    def presolves(self) -> bool:
        """Whether it has a presolve that can be turned off."""
        return bool(self.solver.no_presolve)

    @property
    def takes(self) -> dict[str, str]:
        """How each kind of program is passed on: ``yes`` is unchanged; `LEGEND` explains the other words."""
        only = (("whole", self.integers_only), ("network", self.network_only), ("-", self.squares_only))
        lines = not (self.integer_quadratic if self.integer else self.quadratic)
        return {
            "LP": next((word for word, holds in only if holds), "yes"),
            "MIP": ("network" if self.network_only else "yes") if self.integer else "relaxed",
            "QP": "yes" if self.quadratic else "-",
            "integer QP": "lines" if lines else ("yes" if self.integer else "relaxed"),
            "|x|": "yes" if self.absolute else "rows",
            "tables": "yes" if self.table else "binaries",
            "SDP": "yes" if self.conic else "-",
        }

    def open(self, program: Program, effort: Effort) -> Session:
        """Build the program in the backend's form."""
        behind = (self.argument,) if self.argument else ()
        session: Session = importlib.import_module(self.module).Session(program, effort, *behind)
        return session

    def finds_solver(self) -> bool:
        """Import the module, in the backend's process only; whether it finds the solver that it looks for."""
        module = importlib.import_module(self.module)
        return not self._looks or bool(module.available(self.argument))


def has_gpu() -> bool:
    """Whether the system has an NVIDIA GPU: its driver makes this file."""
    return Path("/dev/nvidiactl").exists()


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _behind(backend: Backend) -> tuple[bool, str]:
    from solvers import worker

    return worker.available(backend)
