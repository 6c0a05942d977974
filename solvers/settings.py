"""The settings that each solver gets.

Backends take their options from here. By default many solvers stop at 1e-3 to 1e-6. For comparable answers
each gets 1e-9 where its documentation allows that and it keeps it; gaps of integer programs are closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.programs.terms import Formulation

KEPT = 2.0**-48
"""Of the largest number of a program: no row is asked to be kept more closely than this, 16 units in the last
place of a double, because sums of such numbers cannot be. It is below 1e-9 up to numbers of 281,474."""

ABSOLUTE = {
    "FeasibilityTol", "FeasTol", "simplex.tolerances.feasibility", "simplex_tolerances_feasibility",
}  # fmt: skip
"""Options that limit the absolute violation of a row, whatever the size of its numbers. Other solvers add a
relative tolerance of the same size, or scale the rows."""

INFEASIBLE = 1e-11
"""The tolerance of a proof that there is no answer, or no optimum, for every solver that has such an option:
a hundredth of the accuracy. At looser ones, slow progress on large counts is taken for a proof."""

HIGHS: dict[str, Any] = {
    # Its feasibility tolerances stay at 1e-7 and 1e-6: with 1e-9 it called a wrong answer optimal.
    # By default HiGHS adds 10⁻⁷·x² to a quadratic program, which large counts turn into a wrong optimum.
    "qp_regularization_value": 1e-12,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1e-6,
}

GUROBI: dict[str, Any] = {
    "MIPGap": 0.0,
    "FeasibilityTol": 1e-9,
    "IntFeasTol": 1e-9,
    "OptimalityTol": 1e-9,
    "BarConvTol": 1e-12,
}

SCIP: dict[str, Any] = {"limits/gap": 0.0}

PDLP: dict[str, Any] = {
    "eps_optimal_absolute": 1e-9,
    "eps_optimal_relative": 1e-9,
    "eps_primal_infeasible": INFEASIBLE,
    "eps_dual_infeasible": INFEASIBLE,
}

HIPDLP: dict[str, Any] = {"kkt_tolerance": 1e-9}

CUPDLPX: dict[str, Any] = {"OptimalityTol": 1e-9, "FeasibilityTol": 1e-9}

_CLOSE: dict[str, Any] = {"eps_abs": 1e-9, "eps_rel": 1e-9}

_CLARABEL: dict[str, Any] = {"tol_infeas_abs": INFEASIBLE, "tol_infeas_rel": INFEASIBLE}

_OSQP: dict[str, Any] = {
    **_CLOSE, "eps_prim_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "max_iter": 200_000, "polishing": True,
}  # fmt: skip

_SCS: dict[str, Any] = {**_CLOSE, "eps_infeas": INFEASIBLE, "max_iters": 200_000}

_PIQP: dict[str, Any] = {
    **_CLOSE, "eps_duality_gap_abs": 1e-9, "eps_duality_gap_rel": 1e-9,
    "eps_primal_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "max_iter": 1_000,
}  # fmt: skip

_PROXQP: dict[str, Any] = {
    **_CLOSE, "eps_primal_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE,
    # Unless asked to, it does not look at the duality gap.
    "check_duality_gap": True, "eps_duality_gap_abs": 1e-9, "eps_duality_gap_rel": 1e-9,
}  # fmt: skip

_QPALM: dict[str, Any] = {
    **_CLOSE, "eps_prim_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "max_iter": 200_000,
}  # fmt: skip

# It gets squares as cones: with its own 1e-8 it misses optima by up to 5e-4 there, and calls feasible
# programs infeasible.
_ECOS: dict[str, Any] = {"feastol": 1e-10, "abstol": 1e-10, "reltol": 1e-10, "max_iters": 1_000}

CVXPY: dict[str, dict[str, Any]] = {
    "CLARABEL": _CLARABEL,
    "OSQP": _OSQP,
    "SCS": _SCS,
    "PDLP": PDLP,
    "HIGHS": HIGHS,
    "GUROBI": {name: GUROBI[name] for name in ("MIPGap", "FeasibilityTol", "OptimalityTol", "BarConvTol")},
    "COPT": {"RelGap": 0.0, "AbsGap": 0.0, "FeasTol": 1e-9, "DualTol": 1e-9},
    "XPRESS": {"miprelstop": 0.0, "mipabsstop": 0.0, "feastol": 1e-9, "optimalitytol": 1e-9},
    # The barrier's tolerance stays at 1e-8: with 1e-12 CPLEX failed on a problem that it solves with 1e-8.
    "CPLEX": {
        "cplex_params": {
            "mip.tolerances.mipgap": 0.0,
            "mip.tolerances.absmipgap": 0.0,
            "simplex.tolerances.feasibility": 1e-9,
            "simplex.tolerances.optimality": 1e-9,
        }
    },
    "MOSEK": {"mosek_params": {"MSK_DPAR_MIO_TOL_REL_GAP": 0.0, "MSK_DPAR_MIO_TOL_ABS_GAP": 0.0}},
    "QOCO": {"abstol": 1e-9, "reltol": 1e-9},
    "PIQP": _PIQP,
    "PROXQP": _PROXQP,
    "QPALM": _QPALM,
    "ECOS": _ECOS,
    "DAQP": {"iter_limit": 100_000},  # its own accuracies; through cvxpy it has no time limit
}
"""By cvxpy's name of the solver."""

QPSOLVERS: dict[str, dict[str, Any]] = {
    "clarabel": _CLARABEL,
    "copt": {"FeasTol": 1e-9, "DualTol": 1e-9},
    # DAQP's own accuracies, 1e-6 and 1e-12: with tighter ones it calls feasible programs infeasible.
    "daqp": {"iter_limit": 100_000},
    "ecos": _ECOS,
    "gurobi": {name: GUROBI[name] for name in ("FeasibilityTol", "OptimalityTol", "BarConvTol")},
    "highs": {"qp_regularization_value": HIGHS["qp_regularization_value"]},
    "osqp": _OSQP,
    "piqp": _PIQP,
    "proxqp": _PROXQP,
    "qpalm": _QPALM,
    "scs": _SCS,
}
"""By qpsolvers' name of the solver."""

PYOMO: dict[str, dict[str, Any]] = {
    "highs": HIGHS,
    "gurobi_direct": {
        name: GUROBI[name] for name in ("MIPGap", "FeasibilityTol", "OptimalityTol", "BarConvTol")
    },
    "cplex_direct": {name.replace(".", "_"): value for name, value in CVXPY["CPLEX"]["cplex_params"].items()},
    "xpress_direct": {"miprelstop": 0.0, "feastol": 1e-9, "bargaptarget": 1e-30},
}
"""By Pyomo's name of the solver."""

SECONDS: dict[str, dict[str, str]] = {
    "cvxpy": {
        "CLARABEL": "time_limit",
        "OSQP": "time_limit",
        "PDLP": "time_limit_sec",
        "SCS": "time_limit_secs",
        "HIGHS": "time_limit",
        "GUROBI": "TimeLimit",
        "COPT": "TimeLimit",
        "CBC": "maximumSeconds",
        "XPRESS": "timelimit",
        "QPALM": "time_limit",
        "CPLEX": "cplex_params.timelimit",
        "MOSEK": "mosek_params.MSK_DPAR_OPTIMIZER_MAX_TIME",
    },
    "qpsolvers": {
        "clarabel": "time_limit",
        "copt": "TimeLimit",
        "daqp": "time_limit",
        "gurobi": "TimeLimit",
        "highs": "time_limit",
        "osqp": "time_limit",
        "qpalm": "time_limit",
        "scs": "time_limit_secs",
    },
}
"""By library, the names of the solvers' time limits; solvers not listed are stopped from outside. A name with
a point is that of a parameter inside an option."""

THREADS: dict[str, dict[str, str]] = {
    "cvxpy": {
        "CLARABEL": "max_threads",
        "HIGHS": "threads",
        "GUROBI": "Threads",
        "COPT": "Threads",
        "XPRESS": "threads",
        "CPLEX": "cplex_params.threads",
        "MOSEK": "mosek_params.MSK_IPAR_NUM_THREADS",
    },
    "qpsolvers": {"clarabel": "max_threads", "copt": "Threads", "gurobi": "Threads", "highs": "threads"},
}
"""By library, the names of the solvers' limits of threads. The other solvers use one, or have no limit."""


def kept(program: Formulation) -> float:
    """The least violation of a row that doubles can tell from rounding errors; at most 1e-6."""
    numbers = [
        *program.bounds,
        *program.row_bounds,
        *(np.asarray(t.center, float) for t in program.objective),
    ]
    largest = max(float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) for one in numbers)
    return min(KEPT * largest, 1e-6)


def scaled(options: dict[str, Any], program: Formulation) -> dict[str, Any]:
    """The options, with no absolute tolerance below what doubles can keep on this program.

    Examples
    --------
    >>> from models import FixedSum
    >>> scaled(GUROBI, FixedSum([2**40, 0], total=2**40, p=1).program())["FeasibilityTol"]
    1e-06
    """
    least = kept(program)
    return {
        name: scaled(value, program)
        if isinstance(value, dict)
        else max(value, least)
        if name in ABSOLUTE
        else value
        for name, value in options.items()
    }
