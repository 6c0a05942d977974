"""The settings that each solver gets, its own defaults, and where they are documented.

Backends take their options from here; `python -m benchmarks tables --name settings` lists them. By default
many solvers stop at 1e-3 to 1e-6. For comparable answers each gets 1e-9 where its documentation allows that
and it keeps it; gaps of integer programs are closed.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Documented:
    """What a solver's documentation says about the options above.

    - source: address of the documentation of its options.
    - own: the solver's own values of the options that hierdp sets.
    - remark: why a setting is as it is, if that needs words.
    """

    name: str
    source: str
    own: dict[str, Any]
    remark: str = ""


DOCUMENTED: dict[str, Documented] = {
    "HIGHS": Documented(
        "HiGHS", "https://ergo-code.github.io/HiGHS/dev/options/definitions/",
        {"qp_regularization_value": 1e-7, "mip_rel_gap": 1e-4, "mip_abs_gap": 1e-6},
        "its feasibility tolerances stay at 1e-7 and 1e-6: with 1e-9 it called a wrong answer optimal",
    ),
    "GUROBI": Documented(
        "Gurobi", "https://docs.gurobi.com/projects/optimizer/en/current/reference/parameters.html",
        {"MIPGap": 1e-4, "FeasibilityTol": 1e-6, "IntFeasTol": 1e-5, "OptimalityTol": 1e-6,
         "BarConvTol": 1e-8},
    ),
    "SCIP": Documented(
        "SCIP", "https://www.scipopt.org/doc/html/PARAMETERS.php", {"limits/gap": 0.0},
        "its feasibility tolerance stays at 1e-6",
    ),
    "PDLP": Documented(
        "PDLP", "https://github.com/google/or-tools/blob/stable/ortools/pdlp/solvers.proto",
        {"eps_optimal_absolute": 1e-6, "eps_optimal_relative": 1e-6, "eps_primal_infeasible": 1e-8,
         "eps_dual_infeasible": 1e-8},
    ),
    "HIPDLP": Documented(
        "HiPDLP, and cuPDLP-C in HiGHS", "https://ergo-code.github.io/HiGHS/dev/options/definitions/",
        {"kkt_tolerance": 1e-7},
    ),
    "CLARABEL": Documented(
        "Clarabel", "https://clarabel.org/stable/api_settings/",
        {"tol_infeas_abs": 1e-8, "tol_infeas_rel": 1e-8}, "its own accuracy is 1e-8",
    ),
    "OSQP": Documented(
        "OSQP", "https://osqp.org/docs/interfaces/solver_settings.html",
        {"eps_prim_inf": 1e-4, "eps_dual_inf": 1e-4,
         "eps_abs": 1e-3, "eps_rel": 1e-3, "max_iter": 4_000, "polishing": False},
    ),
    "SCS": Documented(
        "SCS", "https://www.cvxgrp.org/scs/api/settings.html",
        {"eps_infeas": 1e-7, "eps_abs": 1e-4, "eps_rel": 1e-4, "max_iters": 100_000},
    ),
    "COPT": Documented(
        "COPT", "https://guide.coap.online/copt/en-doc/parameter.html",
        {"RelGap": 1e-4, "AbsGap": 1e-6, "FeasTol": 1e-6, "DualTol": 1e-6},
        "presolve is on, although it is the cause of wrong answers: it is the solver's own default",
    ),
    "CPLEX": Documented(
        "CPLEX", "https://www.ibm.com/docs/en/icos/22.1.2?topic=cplex-list-parameters",
        {"mip.tolerances.mipgap": 1e-4, "mip.tolerances.absmipgap": 1e-6,
         "simplex.tolerances.feasibility": 1e-6, "simplex.tolerances.optimality": 1e-6},
        "the barrier's tolerance stays at 1e-8, relative to the objective, so that a large constant hides a "
        "difference; with 1e-12 CPLEX failed on one small problem that it solves with 1e-8",
    ),
    "QOCO": Documented(
        "QOCO", "https://qoco-org.github.io/qoco/qoco/api/settings.html", {"abstol": 1e-7, "reltol": 1e-7},
    ),
    "PIQP": Documented(
        "PIQP", "https://predict-epfl.github.io/piqp/interfaces/settings",
        {"eps_primal_inf": 1e-4, "eps_dual_inf": 1e-4, "eps_duality_gap_abs": 1e-8,
         "eps_duality_gap_rel": 1e-9, "eps_abs": 1e-8, "eps_rel": 1e-9, "max_iter": 250},
    ),
    "PROXQP": Documented(
        "ProxQP", "https://simple-robotics.github.io/proxsuite/structproxsuite_1_1proxqp_1_1Settings.html",
        {"eps_primal_inf": 1e-4, "eps_dual_inf": 1e-4,
         "eps_abs": 1e-5, "eps_rel": 0.0, "check_duality_gap": False, "eps_duality_gap_abs": 1e-4,
         "eps_duality_gap_rel": 0.0},
        "it has no time limit",
    ),
    "QPALM": Documented(
        "QPALM", "https://kul-optec.github.io/QPALM/Doxygen/structQPALMSettings.html",
        {"eps_prim_inf": 1e-5, "eps_dual_inf": 1e-5, "eps_abs": 1e-4, "eps_rel": 1e-4, "max_iter": 10_000},
    ),
    "ECOS": Documented(
        "ECOS", "https://github.com/embotech/ecos/blob/develop/include/ecos.h",
        {"feastol": 1e-8, "abstol": 1e-8, "reltol": 1e-8, "max_iters": 100},
        "squares become cones: with its own 1e-8, 3 of 34 answers and bounds through qpsolvers were wrong by "
        "2e-5 to 5e-4, and 5 of 50 programs through cvxpy, four of them called infeasible; with 1e-10 it "
        "ends short of its accuracy instead",
    ),
    "DAQP": Documented(
        "DAQP", "https://darnstrom.github.io/daqp/parameters/", {"iter_limit": 10_000},
        "its own accuracies, 1e-6 (rows) and 1e-12 (prices): of 101 small programs, it "
        "calls two infeasible that are feasible with 1e-6, three with 1e-7, four with 1e-8 or 1e-9",
    ),
    "MOSEK": Documented(
        "MOSEK", "https://docs.mosek.com/latest/pythonapi/parameters.html",
        {"MSK_DPAR_MIO_TOL_REL_GAP": 1e-4, "MSK_DPAR_MIO_TOL_ABS_GAP": 0.0}, "not run here",
    ),
    "XPRESS": Documented(
        "Xpress", "https://www.fico.com/fico-xpress-optimization/docs/latest/solver/optimizer/HTML/",
        {"miprelstop": 1e-4, "mipabsstop": 0.0, "feastol": 1e-6, "optimalitytol": 1e-6}, "not run here",
    ),
    "CUPDLPX": Documented(
        "cuPDLPx", "https://github.com/MIT-Lu-Lab/cuPDLPx/blob/main/python/README.md",
        {"OptimalityTol": 1e-4, "FeasibilityTol": 1e-4}, "not run here: it needs an NVIDIA GPU",
    ),
    "CUOPT": Documented(
        "cuOpt", "https://docs.nvidia.com/cuopt/user-guide/latest/lp-qp-milp-settings.html", {},
        "not run here: it needs an NVIDIA GPU",
    ),
    "CP-SAT": Documented(
        "CP-SAT", "https://github.com/google/or-tools/blob/stable/ortools/sat/sat_parameters.proto", {},
        "exact over the integers",
    ),
    "GLOP": Documented(
        "Glop", "https://github.com/google/or-tools/blob/stable/ortools/glop/parameters.proto", {},
    ),
    "GLPK_MI": Documented(
        "GLPK", "https://cvxopt.org/userguide/coneprog.html#optional-solvers", {}, "exact over the integers",
    ),
    "QUADPROG": Documented("quadprog", "https://pypi.org/project/quadprog/", {}, "it has no options"),
    "MIN-COST-FLOW": Documented(
        "min-cost flow", "https://developers.google.com/optimization/flow/mincostflow", {},
        "exact over the integers; it has no options",
    ),
}  # fmt: skip


def interfaces(solver: str) -> dict[str, dict[str, Any]]:
    """What a solver gets, by the library through which it is reached; options inside an option alone.

    Examples
    --------
    >>> interfaces("QOCO")
    {'cvxpy': {'abstol': 1e-09, 'reltol': 1e-09}}
    """
    own = {"HIGHS": HIGHS, "GUROBI": GUROBI, "SCIP": SCIP, "PDLP": PDLP, "HIPDLP": HIPDLP,
           "CUPDLPX": CUPDLPX}  # fmt: skip
    found = {
        "directly": own.get(solver, {}),
        "cvxpy": CVXPY.get(solver, {}),
        "qpsolvers": QPSOLVERS.get(solver.lower(), {}),
        "pyomo": next(
            (options for name, options in PYOMO.items() if name.partition("_")[0] == solver.lower()), {}
        ),
    }
    return {interface: _flat(options) for interface, options in found.items() if options}


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    inside = [value for value in options.values() if isinstance(value, dict)]
    return {name: value for part in inside or [options] for name, value in part.items()}
