"""HiGHS through highspy: LP, MIP and continuous convex QP, warm-started when rows are added.

Its first-order methods for linear programs are rows of their own: ``highs:pdlp`` is cuPDLP-C on the
processor, ``highs:hipdlp`` HiGHS's own.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import scipy.sparse

from models.arithmetic.arrays import Array
from models.programs.program import Program
from models.programs.terms import Rows
from models.programs.write import quiet_highs, to_highs
from solvers.backends import session
from solvers.backends.record import ANY, Backend, Solver
from solvers.residuals import is_whole
from solvers.solution import Answer, Effort, Status

HIGHS = Solver(
    "highspy",
    {
        # Its feasibility tolerances stay at 1e-7 and 1e-6: with 1e-9 it called a wrong answer optimal.
        # By default HiGHS adds 10⁻⁷·x² to a quadratic program, which large counts turn into a wrong optimum.
        "qp_regularization_value": 1e-12,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-6,
    },
    {
        "primal_feasibility_tolerance": (1e-10, 1.0),
        "dual_feasibility_tolerance": (1e-10, 1.0),
        "mip_feasibility_tolerance": (1e-10, 1.0),
        "mip_rel_gap": ANY,
        "mip_abs_gap": ANY,
    },
    {"presolve": "off"},
    seconds="time_limit",
    threads="threads",
    whole=True,
)

_FIRST_ORDER = replace(
    HIGHS,
    settings={**HIGHS.settings, "kkt_tolerance": 1e-9},
    tolerances={**HIGHS.tolerances, "kkt_tolerance": ANY},
    no_presolve={},
)

BACKEND = Backend(
    "highs", "HiGHS (highspy)", "highspy", "MIT", __name__, integer=True, quadratic=True, solver=HIGHS
)
PDLP, HIPDLP = (
    replace(
        BACKEND, name=f"highs:{method}", library=f"{name} (highspy)", argument=method, integer=False,
        quadratic=False, solver=_FIRST_ORDER,
    )
    for method, name in (("pdlp", "cuPDLP-C"), ("hipdlp", "HiPDLP"))
)  # fmt: skip

_STATUS: dict[str, Status] = {
    "kOptimal": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
    "kUnboundedOrInfeasible": "unbounded",
    "kTimeLimit": "time_limit",
    "kIterationLimit": "numerical",
    "kSolveError": "numerical",
    "kUnknown": "numerical",
    "kMemoryLimit": "out_of_memory",
    "kModelEmpty": "optimal",
}

ROUNDING = 1e-6
"""How far above a whole number a real optimum may be to count as that number, absolutely and relatively."""

MANY = 4
"""From this number of independent problems on, each with one variable that costs, two linear programs take
less time than an integer one. HiGHS rounds up the bound of a single problem itself."""

_scheduled: list[int | None] = []
"""The number of threads of this process's last run of HiGHS."""


def schedule(threads: int | None) -> None:
    """Before a run of HiGHS: end its scheduler's threads if the last run had another number of them.

    A process has one scheduler, and HiGHS refuses to run with another number of threads than it has.

    - threads: the threads of the next run; None: as many as HiGHS chooses.
    """
    import highspy

    if _scheduled and _scheduled[-1] != threads:
        highspy.Highs.resetGlobalScheduler(True)
    _scheduled[:] = [threads]


class Session(session.Session):
    """A live HiGHS model."""

    def __init__(self, program: Program, effort: Effort, method: str = "") -> None:
        import highspy

        self._program, self._whole = program, bool(program.integer.any())
        self._alone = _alone(program)
        self._highs, self._threads = quiet_highs(), effort.threads
        options = (_FIRST_ORDER if method else HIGHS).options(effort)
        for option, value in (options | ({"solver": method} if method else {})).items():
            taken = self._highs.setOptionValue(option, value)
            if option == "solver" and taken == highspy.HighsStatus.kError:
                raise ValueError(f"this version of HiGHS has no method {method}")
        if self._highs.passModel(to_highs(program)) == highspy.HighsStatus.kError:
            raise ValueError("HiGHS does not take this program")

    def add_rows(self, rows: Rows) -> None:
        """Append rows, which may link the problems; a further LP run starts from the last basis."""
        self._alone, matrix = self._alone[:0], rows.matrix
        self._highs.addRows(
            matrix.shape[0],
            np.asarray(rows.lower, float),
            np.asarray(rows.upper, float),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def run(self, seconds: float | None) -> Answer:
        """Solve within the remaining time.

        Many independent problems are solved over the reals, then at bounds that are rounded up: the vertices
        there are often whole. If this one is not, it is an integer program with these bounds.
        """
        if not self._alone.size:
            return self._run(seconds)
        until = None if seconds is None else time.perf_counter() + seconds
        self._relax(True)
        answer = self._run(seconds)
        if answer.status == "optimal" and answer.variables is not None:
            found, (lower, upper) = answer.variables[self._alone], self._program.bounds
            least = np.ceil(found - ROUNDING * np.maximum(1.0, np.abs(found)))
            least = np.clip(least, lower[self._alone], upper[self._alone])
            self._highs.changeColsBounds(least.size, self._alone, least, upper[self._alone])
            answer = self._run(None if until is None else until - time.perf_counter())
        self._relax(False)
        if answer.variables is not None and is_whole(answer.variables, self._program):
            return replace(answer, prices=None)
        return self._run(None if until is None else until - time.perf_counter())

    def _relax(self, relaxed: bool) -> None:
        self._whole = not relaxed
        self._highs.setOptionValue("solve_relaxation", relaxed)

    def _run(self, seconds: float | None) -> Answer:
        import highspy

        # HiGHS counts the time of all runs of a model, not only of this one.
        limit = highspy.kHighsInf if seconds is None else self._highs.getRunTime() + max(seconds, 0.0)
        self._highs.setOptionValue("time_limit", limit)
        schedule(self._threads)
        ran = self._highs.run()
        outcome = self._highs.getModelStatus()
        info = self._highs.getInfo()
        status = _STATUS.get(outcome.name, "error")
        known = status in ("optimal", "infeasible", "unbounded", "time_limit")
        message = "" if known else f"HiGHS ended with {self._highs.modelStatusToString(outcome)}"
        if ran == highspy.HighsStatus.kError and status == "optimal":
            status, message = "error", "HiGHS reported an error"
        has_answer = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if status == "time_limit" and has_answer and self._whole:
            status = "feasible"
        variables = None
        if status in ("optimal", "feasible"):
            variables = np.array(self._highs.getSolution().col_value)
        bound = info.mip_dual_bound if self._whole else info.objective_function_value
        known = status in ("optimal", "feasible", "time_limit") and (self._whole or status == "optimal")
        prices = None
        if status == "optimal" and not self._whole and self._highs.getSolution().dual_valid:
            prices = np.array(self._highs.getSolution().row_dual)
        return Answer(status, variables, bound if known and np.isfinite(bound) else None, message, prices)


def _alone(program: Program) -> Array:
    """The variables with costs of many independent problems, one in each; none for other programs."""
    from scipy.sparse.csgraph import connected_components  # it loads SciPy's linear algebra

    bend, cost, _ = program.expanded()
    priced = np.flatnonzero(cost).astype(np.int32)
    if priced.size < MANY or bend.any() or (cost < 0).any() or not program.integer[priced].all():
        return priced[:0]
    links = scipy.sparse.bmat([[None, program.matrix], [program.matrix.T, None]])
    problem = connected_components(links, directed=False)[1][-program.size :]
    return priced if np.unique(problem[priced]).size == priced.size else priced[:0]
