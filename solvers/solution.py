"""The effort of a solve, and its result: a status, and what is known of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness

Status = Literal[
    "optimal",
    "feasible",
    "relaxed",
    "infeasible",
    "unbounded",
    "time_limit",
    "unsupported",
    "size_limit",
    "numerical",
    "out_of_memory",
    "crashed",
    "error",
]
"""
- ``optimal``: the backend claims it, within its tolerance (`fast`: its certificate proves it);
- ``feasible``: stopped with an answer that is not known to be optimal;
- ``relaxed``: a continuous backend solved an integer model without integrality: a bound, not an answer;
- ``infeasible``, ``unbounded``: reported by the backend;
- ``time_limit``: stopped without an answer;
- ``unsupported``: the backend does not take the model; the message gives the reason;
- ``size_limit``: the backend's licence does not cover this number of variables or constraints;
- ``numerical``: the backend lost its accuracy, or its answer in floats is not feasible or not whole;
- ``out_of_memory``: reported by the backend;
- ``crashed``: the backend's process died, or was killed; the message gives the cause;
- ``error``: the backend failed otherwise, or its whole answer breaks a constraint; the message says how.
"""


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


class NoAnswer(Exception):
    """Raised by a backend's session that cannot continue: a status, and the reason."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: the exception may come from another process."""
        return type(self), (self.status, str(self))


@dataclass(frozen=True, eq=False)
class Solution:
    """An answer with what is known about it.

    Attributes
    ----------
    x : array or None
        In the model's own shape; int64 for an integer model.
    objective : int, Fraction, float or None
        The model's objective at x, exact for integer data (not what the backend reports).
    bound : number or None
        A lower bound on the optimum: proved in exact arithmetic (`fast`), or the backend's own claim.
    status, message : str
    build_seconds, solve_seconds : float
        Time to state the program in the backend's form, and to solve it.
    backend, version : str
    primal_residual : float or None
        The largest violation of a bound, a row or integrality by the backend's own answer, before rounding.
    dual_residual : float or None
        How far the backend's prices are from proving its answer (`solvers.residuals`), if it reports prices.
    certificate : Certificate or None
        The proof, if the backend is `fast`; for others call ``prove(model, solution.x)``.
    witness : mapping or None
        The certificate's second argument; None if the certificate reads its numbers off the answer.
    cpu_seconds : float or None
        CPU time of building and solving, of all threads; None if the backend's process ended.
    """

    backend: str
    version: str
    status: Status
    x: Array | None = None
    objective: Number | None = None
    bound: Number | None = None
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    message: str = ""
    primal_residual: float | None = None
    dual_residual: float | None = None
    certificate: Certificate | None = None
    witness: Witness | None = None
    cpu_seconds: float | None = None

    @property
    def gap(self) -> Number | None:
        """``objective - bound``: a bound on how far the answer is from the optimum."""
        return None if self.objective is None or self.bound is None else self.objective - self.bound

    def __repr__(self) -> str:
        shown = f"Solution({self.backend}: {self.status}"
        if self.objective is not None:
            shown += f", objective {self.objective}, bound {self.bound}"
        shown += f", {self.build_seconds + self.solve_seconds:.3g} s"
        return shown + (f", {self.message})" if self.message else ")")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a session returns: all variables of the program that it was opened on, or none.

    `prices`, one for each row: the derivative of the optimum by the row's side. `cpu_seconds`: as in
    `Solution`.
    """

    status: Status
    variables: Array | None = None
    bound: Number | None = None
    message: str = ""
    prices: Array | None = None
    primal_residual: float | None = None
    dual_residual: float | None = None
    cpu_seconds: float | None = None
