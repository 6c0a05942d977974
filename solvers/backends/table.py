"""The table of backends and of what each can do. All decisions about backends are made from it."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from models.programs.program import Program
from solvers.backends.session import Session
from solvers.effort import OPTIONS, WITHOUT_PRESOLVE, Effort

LEGEND = """yes: as it is. Exactly rewritten: squares as lines, |x| as rows, tables of costs as binaries.
relaxed: over the reals, hence a bound, unless the answer is whole. whole: of whole numbers only.
network: whose rows are a network, with whole data and convex costs. QP: convex and separable."""


@dataclass(frozen=True)
class Backend:
    """A row of the table: what a backend accepts without reformulation.

    Attributes
    ----------
    name, library, package, licence : str
    module : str
        Holds the backend's `Session`; imported in the backend's own process only.
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
        return (self.argument or self.name).upper() in WITHOUT_PRESOLVE

    @property
    def takes(self) -> dict[str, str]:
        """How each kind of program is passed on: ``yes`` is unchanged; `LEGEND` explains the other words."""
        lines = not (self.integer_quadratic if self.integer else self.quadratic)
        return {
            "LP": next(
                (
                    word
                    for word, only in (
                        ("whole", self.integers_only),
                        ("network", self.network_only),
                        ("-", self.squares_only),
                    )
                    if only
                ),
                "yes",
            ),
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


def _takes(
    forms: str, name: str, library: str, package: str, licence: str, module: str, **more: Any
) -> Backend:
    """A row of the table; `forms` lists the names of what the backend takes natively."""
    taken: Any = dict.fromkeys(forms.split(), True)
    return Backend(name, library, package, licence, module, **taken, **more)


_CVXPY, _MATH_OPT = "solvers.backends.cvxpy_any", "solvers.backends.math_opt"
_GOOGLE = "ortools", "Apache-2.0"

FAST = _takes(
    "integer quadratic integer_quadratic absolute table conic",
    "fast", "hierdp", "hierdp", "Apache-2.0", "solvers.fast", tolerant=False,
)  # fmt: skip

EXACT = (
    _takes("integer quadratic", "highs", "HiGHS (highspy)", "highspy", "MIT", "solvers.backends.highs"),
    _takes("integer absolute table integers_only", "cp-sat", "CP-SAT (OR-tools)", *_GOOGLE,
           "solvers.backends.cp_sat"),
    _takes("integer quadratic", "scip", "SCIP (PySCIPOpt)", "pyscipopt", "Apache-2.0, MIT",
           "solvers.backends.scip", extra="scip"),
    _takes("integer quadratic", "gurobi", "Gurobi (gurobipy)", "gurobipy", "proprietary",
           "solvers.backends.gurobi", extra="gurobi"),
    _takes("integer integer_quadratic absolute table network_only", "min-cost-flow",
           "min-cost flow (OR-tools)", *_GOOGLE, "solvers.backends.min_cost_flow", tolerant=False),
    _takes("", "glop", "Glop (OR-tools)", *_GOOGLE, _MATH_OPT, argument="glop"),
    _takes("quadratic", "pdlp", "PDLP (OR-tools)", *_GOOGLE, _MATH_OPT, argument="pdlp"),
    _takes("integer quadratic", "ortools:scip", "SCIP (OR-tools)", *_GOOGLE, _MATH_OPT, argument="scip"),
    _takes("quadratic absolute conic", "clarabel", "Clarabel (cvxpy)", "clarabel", "Apache-2.0", _CVXPY,
           argument="CLARABEL"),
    _takes("quadratic absolute", "osqp", "OSQP (cvxpy)", "osqp", "Apache-2.0", _CVXPY, argument="OSQP"),
    _takes("quadratic absolute conic", "scs", "SCS (cvxpy)", "scs", "MIT", _CVXPY, argument="SCS"),
    _takes("integer absolute", "glpk_mi", "GLPK (cvxpy)", "cvxopt", "GPL-3.0", _CVXPY,
           tolerant=False, extra="glpk", argument="GLPK_MI"),
)  # fmt: skip

OTHERS = (
    _takes("", "highs:pdlp", "cuPDLP-C (highspy)", "highspy", "MIT", "solvers.backends.highs",
           argument="pdlp"),
    _takes("", "highs:hipdlp", "HiPDLP (highspy)", "highspy", "MIT", "solvers.backends.highs",
           argument="hipdlp"),
    _takes("", "cupdlpx", "cuPDLPx", "cupdlpx", "Apache-2.0", "solvers.backends.cupdlpx_only", gpu=True),
    _takes("integer", "exact-scip", "SCIP, exact (PySCIPOpt)", "pyscipopt", "Apache-2.0, MIT",
           "solvers.backends.exact_scip", tolerant=False, separate=True,
           build="build SCIP 10 with EXACTSOLVE=on, and PySCIPOpt from its source with it; PySCIPOpt's "
           "wheels solve in floats only"),
)  # fmt: skip
"""Backends that are not in `backends()`: HiGHS's first-order methods, one for GPUs, and exact SCIP, which no
wheel has."""

_WHOLE_IN_CVXPY = {
    "HIGHS", "GLPK_MI", "CBC", "SCIP", "SCIPY", "GUROBI", "CPLEX", "XPRESS", "MOSEK", "COPT", "CUOPT",
}  # fmt: skip
_LINEAR = {"glpk", "glpk_mi", "cbc", "scipy", "glop", "clp", "appsi_cbc", "cuopt"}
"""Solvers that take no squares, through any library."""

_SQUARES = {"ecos", "quadprog"}
"""Solvers for strictly convex programs, through qpsolvers."""

_NEEDS = {
    "cvxpy": {
        "highs": "highspy", "ecos": "ecos", "piqp": "piqp", "proxqp": "proxsuite", "qpalm": "qpalm",
        "qoco": "qoco", "daqp": "daqp", "cplex": "cplex", "copt": "coptpy", "gurobi": "gurobipy",
        "mosek": "mosek", "xpress": "xpress", "cuopt": "cuopt-cu12",
    },
    "pyomo": {
        "highs": "highspy", "gurobi_direct": "gurobipy", "cplex_direct": "cplex",
        "xpress_direct": "xpress", "mosek_direct": "mosek",
    },
    "qpsolvers": {
        "clarabel": "clarabel", "copt": "coptpy", "daqp": "daqp", "ecos": "ecos", "gurobi": "gurobipy",
        "highs": "highspy", "osqp": "osqp", "piqp": "piqp", "proxqp": "proxsuite", "qpalm": "qpalm",
        "quadprog": "quadprog", "scs": "scs",
    },
}  # fmt: skip
"""For each library the solvers that it is known to work with, and the packages of these solvers. The library
finds them if and only if the package is installed."""


def _through_cvxpy(solver: str) -> Backend:
    return Backend(
        f"cvxpy:{solver}",
        f"{solver} (cvxpy)",
        "cvxpy",
        "Apache-2.0, and the solver's own",
        _CVXPY,
        integer=solver.upper() in _WHOLE_IN_CVXPY,
        quadratic=solver.lower() not in _LINEAR,
        absolute=True,
        tolerant=solver.upper() in OPTIONS,
        argument=solver,
        separate=True,
        needs=_NEEDS["cvxpy"].get(solver.lower(), ""),
        gpu=solver.lower() == "cuopt",
    )


def _through_pyomo(solver: str) -> Backend:
    return Backend(
        f"pyomo:{solver}",
        f"{solver} (Pyomo)",
        "pyomo",
        "BSD-3-Clause, and the solver's own",
        "solvers.backends.pyomo_any",
        integer=True,
        quadratic=solver.lower() not in _LINEAR,
        tolerant=solver.lower() == "highs",
        argument=solver,
        separate=True,
        needs=_NEEDS["pyomo"].get(solver.lower(), ""),
    )


def _through_qpsolvers(solver: str) -> Backend:
    return Backend(
        f"qpsolvers:{solver}",
        f"{solver} (qpsolvers)",
        "qpsolvers",
        "LGPL-3.0, and the solver's own",
        "solvers.backends.qpsolvers_any",
        quadratic=True,
        squares_only=solver.lower() in _SQUARES,
        tolerant=solver.upper() in OPTIONS,
        argument=solver,
        separate=True,
        needs=_NEEDS["qpsolvers"].get(solver.lower(), ""),
    )


_THROUGH = {"cvxpy": _through_cvxpy, "pyomo": _through_pyomo, "qpsolvers": _through_qpsolvers}


def backends() -> list[Backend]:
    """The fast path and every exact backend, installed or not."""
    return [FAST, *EXACT, _through_cvxpy("highs"), _through_pyomo("highs")]


def reachable() -> list[Backend]:
    """The backends of `backends()`, and every solver that cvxpy, Pyomo and qpsolvers are known to work with.

    Any other solver that these libraries find has a name, too, such as ``pyomo:cbc``; see `find`.
    """
    known = {backend.name: backend for backend in (*backends(), *OTHERS)}
    for library, solvers in _NEEDS.items():
        for solver in solvers:
            known.setdefault(f"{library}:{solver}", _THROUGH[library](solver))
    return list(known.values())


def named(name: str) -> str | Backend:
    """A backend's name unchanged, or the `Backend` that ``module:ROW`` names in a module of the reader's.

    The module may be in the current directory, which is searched last.

    Raises `ValueError` if the module cannot be imported, or has no `Backend` of that name.
    """
    module, _, row = name.partition(":")
    if not row or module in _THROUGH or name in {one.name for one in (*EXACT, *OTHERS)}:
        return name
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), row)
    except (ImportError, AttributeError) as failure:
        raise ValueError(f"there is no backend {name!r}: {failure}") from None
    if not isinstance(found, Backend):
        raise ValueError(f"{name} is a {type(found).__name__}; expected a solvers.backends.table.Backend")
    return found


def find(name: str | Backend) -> Backend:
    """The backend of this name. A `Backend` that is not in the table is returned unchanged.

    Raises `ValueError` if there is no backend of that name, or it is not installed. The message lists the
    names, or says how to install it.
    """
    known = {backend.name: backend for backend in (*backends(), *OTHERS)}
    if isinstance(name, Backend):
        known, name = {name.name: name}, name.name
    library, _, solver = name.partition(":")
    if name not in known and library in _THROUGH and solver:
        known[name] = _THROUGH[library](solver)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        there_are = f"There are: {', '.join(known)} (and cvxpy:<solver>, pyomo:<solver>, qpsolvers:<solver>)."
        raise ValueError(f"there is no backend {name!r}.{hint} {there_are}")
    if known[name].lacks:
        raise ValueError(f"the backend {name} cannot run here: {known[name].lacks}")
    if not known[name].installed:
        why = f" ({known[name].failure})" if known[name].failure else ""
        raise ValueError(f"the backend {name} is not installed{why}. To get it: {known[name].install}")
    return known[name]
