"""The effort of a backend: its threads, accuracy, presolve and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Effort:
    """The effort of a backend.

    Attributes
    ----------
    threads : int, optional
        Default: the backend's own choice.
    tolerance : float, optional
        How far rows may be violated and the optimum missed, absolutely and relatively, if the backend has
        such options. Default: no gap for integer programs, the backend's highest accuracy for others.
    presolve : bool
        Whether the backend may simplify the program first. Default: yes, as all of them do.
    memory : int, optional
        Bytes that the backend's process may allocate (Linux). Default: no limit.
    """

    threads: int | None = None
    tolerance: float | None = None
    presolve: bool = True
    memory: int | None = None


_ANY = (0.0, 1.0)

OPTIONS: dict[str, dict[str, tuple[float, float]]] = {
    "HIGHS": {
        "primal_feasibility_tolerance": (1e-10, 1.0),
        "dual_feasibility_tolerance": (1e-10, 1.0),
        "mip_feasibility_tolerance": (1e-10, 1.0),
        "mip_rel_gap": _ANY,
        "mip_abs_gap": _ANY,
    },
    "GUROBI": {
        "FeasibilityTol": (1e-9, 1e-2),
        "OptimalityTol": (1e-9, 1e-2),
        "BarConvTol": _ANY,
        "MIPGap": _ANY,
        "MIPGapAbs": _ANY,
    },
    "SCIP": {
        "numerics/feastol": (1e-9, 1e-3),
        "numerics/dualfeastol": (1e-7, 1e-3),
        "limits/gap": _ANY,
        "limits/absgap": _ANY,
    },
    "CLARABEL": {"tol_feas": _ANY, "tol_gap_abs": _ANY, "tol_gap_rel": _ANY},
    "OSQP": {"eps_abs": _ANY, "eps_rel": _ANY},
    "SCS": {"eps_abs": _ANY, "eps_rel": _ANY},
    "DAQP": {"primal_tol": (1e-6, 1.0)},
    "ECOS": {"feastol": _ANY, "abstol": _ANY, "reltol": _ANY},
    "PIQP": {"eps_abs": _ANY, "eps_rel": _ANY},
    "PROXQP": {"eps_abs": _ANY, "eps_rel": _ANY, "eps_duality_gap_abs": _ANY, "eps_duality_gap_rel": _ANY},
    "QPALM": {"eps_abs": _ANY, "eps_rel": _ANY},
    "CUPDLPX": {"OptimalityTol": _ANY, "FeasibilityTol": _ANY},
    "QOCO": {"abstol": _ANY, "reltol": _ANY},
    "COPT": {"FeasTol": (1e-9, 1e-4), "DualTol": (1e-9, 1e-4), "RelGap": _ANY, "AbsGap": _ANY},
    "CPLEX": {
        "cplex_params.simplex.tolerances.feasibility": (1e-9, 1e-1),
        "cplex_params.simplex.tolerances.optimality": (1e-9, 1e-1),
        "cplex_params.barrier.convergetol": (1e-12, 1.0),
        "cplex_params.mip.tolerances.mipgap": _ANY,
        "cplex_params.mip.tolerances.absmipgap": _ANY,
    },
}
"""The names of each solver's tolerances, and the range of values that each of them accepts. Through cvxpy, a
name with a point is that of a parameter inside an option."""


WITHOUT_PRESOLVE: dict[str, dict[str, Any]] = {
    "HIGHS": {"presolve": "off"},
    "GUROBI": {"Presolve": 0},
    "SCIP": {"presolving/maxrounds": 0},
    "CP-SAT": {"cp_model_presolve": False},
    "GLOP": {"use_preprocessing": False},
    "CLARABEL": {"presolve_enable": False},
    "COPT": {"Presolve": 0},
    "CPLEX": {"cplex_params.preprocessing.presolve": 0},
}
"""The option of each solver that turns its presolve off."""


def tolerances(solver: str, tolerance: float) -> dict[str, float]:
    """A solver's own options for a tolerance.

    Examples
    --------
    >>> tolerances("OSQP", 1e-3)
    {'eps_abs': 0.001, 'eps_rel': 0.001}
    """
    taken = OPTIONS[solver].items()
    return {option: min(max(tolerance, least), most) for option, (least, most) in taken}


def without_presolve(solver: str, effort: Effort) -> dict[str, Any]:
    """A solver's own options for an effort without presolve; none for an effort with it.

    Examples
    --------
    >>> without_presolve("HIGHS", Effort(presolve=False))
    {'presolve': 'off'}
    """
    return {} if effort.presolve else WITHOUT_PRESOLVE[solver]
