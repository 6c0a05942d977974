"""The catalogue of backends: the list of the records in their files, and how a name finds one."""

from __future__ import annotations

import difflib
import importlib
import os
import sys

from solvers.backends import (
    cp_sat,
    cupdlpx_only,
    cvxpy_any,
    exact_scip,
    gurobi,
    highs,
    math_opt,
    min_cost_flow,
    pyomo_any,
    qpsolvers_any,
    scip,
)
from solvers.backends.record import Backend as Backend

LEGEND = """yes: as it is. Exactly rewritten: squares as lines, |x| as rows, tables of costs as binaries.
relaxed: over the reals, hence a bound, unless the answer is whole. whole: of whole numbers only.
network: whose rows are a network, with whole data and convex costs. QP: convex and separable."""

FAST = Backend(
    "fast", "hierdp", "hierdp", "Apache-2.0", "solvers.fast", integer=True, quadratic=True,
    integer_quadratic=True, absolute=True, table=True, conic=True, tolerant=False,
)  # fmt: skip

EXACT = (
    highs.BACKEND, cp_sat.BACKEND, scip.BACKEND, gurobi.BACKEND, min_cost_flow.BACKEND, *math_opt.BACKENDS,
    *cvxpy_any.BACKENDS,
)  # fmt: skip

OTHERS = highs.PDLP, highs.HIPDLP, cupdlpx_only.BACKEND, exact_scip.BACKEND
"""Backends that are not in `backends()`: HiGHS's first-order methods, one for GPUs, and exact SCIP, which no
wheel has."""

LIBRARIES = {"cvxpy": cvxpy_any, "pyomo": pyomo_any, "qpsolvers": qpsolvers_any}


def backends() -> list[Backend]:
    """The fast path and every exact backend, installed or not."""
    return [FAST, *EXACT, cvxpy_any.backend("highs"), pyomo_any.backend("highs")]


def reachable() -> list[Backend]:
    """The backends of `backends()`, and every solver that cvxpy, Pyomo and qpsolvers are known to work with.

    Any other solver that these libraries find has a name, too, such as ``pyomo:cbc``; see `find`.
    """
    known = [*backends(), *OTHERS]
    have = {(one.module, one.argument.lower()) for one in known}
    for library in LIBRARIES.values():
        rows = (library.backend(name) for name, solver in library.SOLVERS.items() if solver.package)
        known += [row for row in rows if (row.module, row.argument.lower()) not in have]
    return known


def named(name: str) -> str | Backend:
    """A backend's name unchanged, or the `Backend` that ``module:ROW`` names in a module of the reader's.

    The module may be in the current directory, which is searched last.

    Raises `ValueError` if the module cannot be imported, or has no `Backend` of that name.
    """
    module, _, row = name.partition(":")
    if not row or module in LIBRARIES or name in {one.name for one in (*EXACT, *OTHERS)}:
        return name
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), row)
    except (ImportError, AttributeError) as failure:
        raise ValueError(f"there is no backend {name!r}: {failure}") from None
    if not isinstance(found, Backend):
        raise ValueError(f"{name} is a {type(found).__name__}; expected a solvers.Backend")
    return found


def find(name: str | Backend) -> Backend:
    """The backend of this name. A `Backend` that is not in the catalogue is returned unchanged.

    Raises `ValueError` if there is no backend of that name, or it is not installed. The message lists the
    names, or says how to install it.
    """
    known = {backend.name: backend for backend in (*backends(), *OTHERS)}
    if isinstance(name, Backend):
        known, name = {name.name: name}, name.name
    library, _, solver = name.partition(":")
    if name not in known and library in LIBRARIES and solver:
        known[name] = LIBRARIES[library].backend(solver)
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
