"""Solvers that libraries reach: one record each, with the options that cvxpy and qpsolvers hand on.

HiGHS, Gurobi and SCIP, which have backends of their own, are in their files.
"""

from __future__ import annotations

from solvers.backends.record import ANY, Solver

INFEASIBLE = 1e-11
"""The tolerance of a proof that there is no answer, or no optimum, for every solver that has such an option:
a hundredth of the accuracy. At looser ones, slow progress on large counts is taken for a proof."""

_CLOSE = {"eps_abs": 1e-9, "eps_rel": 1e-9}
_EPS = {"eps_abs": ANY, "eps_rel": ANY}
_GAP = {"eps_duality_gap_abs": 1e-9, "eps_duality_gap_rel": 1e-9}

CLARABEL = Solver(
    "clarabel",
    {"tol_infeas_abs": INFEASIBLE, "tol_infeas_rel": INFEASIBLE},
    {"tol_feas": ANY, "tol_gap_abs": ANY, "tol_gap_rel": ANY},
    {"presolve_enable": False},
    seconds="time_limit",
    threads="max_threads",
)

OSQP = Solver(
    "osqp",
    {
        **_CLOSE,
        "eps_prim_inf": INFEASIBLE,
        "eps_dual_inf": INFEASIBLE,
        "max_iter": 200_000,
        "polishing": True,
    },
    _EPS,
    seconds="time_limit",
)

SCS = Solver(
    "scs", {**_CLOSE, "eps_infeas": INFEASIBLE, "max_iters": 200_000}, _EPS, seconds="time_limit_secs"
)

PIQP = Solver(
    "piqp",
    {
        **_CLOSE, **_GAP, "eps_primal_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "max_iter": 1_000,
    },
    _EPS,
)  # fmt: skip

PROXQP = Solver(
    "proxsuite",
    {
        # Unless asked to, it does not look at the duality gap.
        **_CLOSE, **_GAP, "eps_primal_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "check_duality_gap": True,
    },
    {**_EPS, "eps_duality_gap_abs": ANY, "eps_duality_gap_rel": ANY},
)  # fmt: skip

QPALM = Solver(
    "qpalm",
    {**_CLOSE, "eps_prim_inf": INFEASIBLE, "eps_dual_inf": INFEASIBLE, "max_iter": 200_000},
    _EPS,
    seconds="time_limit",
)

# It gets squares as cones: with its own 1e-8 it misses optima by up to 5e-4 there, and calls feasible
# programs infeasible.
ECOS = Solver(
    "ecos",
    {"feastol": 1e-10, "abstol": 1e-10, "reltol": 1e-10, "max_iters": 1_000},
    {"feastol": ANY, "abstol": ANY, "reltol": ANY},
)

QOCO = Solver("qoco", {"abstol": 1e-9, "reltol": 1e-9}, {"abstol": ANY, "reltol": ANY})

# Its own accuracies, 1e-6 and 1e-12: with tighter ones it calls feasible programs infeasible.
DAQP = Solver("daqp", {"iter_limit": 100_000}, {"primal_tol": (1e-6, 1.0)}, seconds="time_limit")

PDLP = Solver(
    settings={
        "eps_optimal_absolute": 1e-9,
        "eps_optimal_relative": 1e-9,
        "eps_primal_infeasible": INFEASIBLE,
        "eps_dual_infeasible": INFEASIBLE,
    },
    tolerances={"eps_optimal_absolute": ANY, "eps_optimal_relative": ANY},
    threads="num_threads",
)

COPT = Solver(
    "coptpy",
    {"RelGap": 0.0, "AbsGap": 0.0, "FeasTol": 1e-9, "DualTol": 1e-9},
    {"FeasTol": (1e-9, 1e-4), "DualTol": (1e-9, 1e-4), "RelGap": ANY, "AbsGap": ANY},
    {"Presolve": 0},
    seconds="TimeLimit",
    threads="Threads",
    absolute="FeasTol",
    whole=True,
)

# The barrier's tolerance stays at 1e-8: with 1e-12 CPLEX failed on a problem that it solves with 1e-8.
CPLEX = Solver(
    "cplex",
    {
        "mip.tolerances.mipgap": 0.0,
        "mip.tolerances.absmipgap": 0.0,
        "simplex.tolerances.feasibility": 1e-9,
        "simplex.tolerances.optimality": 1e-9,
    },
    {
        "simplex.tolerances.feasibility": (1e-9, 1e-1),
        "simplex.tolerances.optimality": (1e-9, 1e-1),
        "barrier.convergetol": (1e-12, 1.0),
        "mip.tolerances.mipgap": ANY,
        "mip.tolerances.absmipgap": ANY,
    },
    {"preprocessing.presolve": 0},
    seconds="timelimit",
    threads="threads",
    absolute="simplex.tolerances.feasibility",
    whole=True,
)

MOSEK = Solver(
    "mosek",
    {"MSK_DPAR_MIO_TOL_REL_GAP": 0.0, "MSK_DPAR_MIO_TOL_ABS_GAP": 0.0},
    seconds="MSK_DPAR_OPTIMIZER_MAX_TIME",
    threads="MSK_IPAR_NUM_THREADS",
    whole=True,
)

XPRESS = Solver(
    "xpress",
    {"miprelstop": 0.0, "mipabsstop": 0.0, "feastol": 1e-9, "optimalitytol": 1e-9},
    seconds="timelimit",
    threads="threads",
    whole=True,
)
