"""The effort of a backend: its threads and accuracy."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    threads: int | None = None
    tolerance: float | None = None


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
    "DAQP": {"primal_tol": _ANY, "dual_tol": _ANY},
    "ECOS": {"feastol": _ANY, "abstol": _ANY, "reltol": _ANY},
    "PIQP": {"eps_abs": _ANY, "eps_rel": _ANY},
    "PROXQP": {"eps_abs": _ANY, "eps_rel": _ANY, "eps_duality_gap_abs": _ANY, "eps_duality_gap_rel": _ANY},
    "QPALM": {"eps_abs": _ANY, "eps_rel": _ANY},
}
"""The names of each solver's tolerances, and the range of values that each of them accepts."""


def tolerances(solver: str, tolerance: float) -> dict[str, float]:
    """A solver's own options for a tolerance.

    Examples
    --------
    >>> tolerances("OSQP", 1e-3)
    {'eps_abs': 0.001, 'eps_rel': 0.001}
    """
    taken = OPTIONS[solver].items()
    return {option: min(max(tolerance, least), most) for option, (least, most) in taken}
