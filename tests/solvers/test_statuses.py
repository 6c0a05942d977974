"""Each outcome has its status, on every backend, including those that hang, die or stop early."""

import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

from models import BudgetSplit, Chebyshev, CostTable, HierarchyQIP, Isotonic, Program, Tree
from models.programs.terms import Block, Term, rows_of
from solvers import Solution, backends, fast, solve, worker
from solvers.backends import record
from solvers.backends import table as capability
from solvers.formulation import Formulation, formulate
from solvers.solution import Answer
from solvers.testing import market_split
from tests.marks import quick

NAMES = [backend.name for backend in backends() if backend.name != "fast" and backend.installed]


def pair(lower, upper, cost, signs=(1, 1), integer=False, most=np.inf):
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], signs), lower, upper)
    return Program(
        "p", [Block("v", (2,), 0, most, integer)], [rows], [Term("linear", np.arange(2), np.array(cost))]
    )


@pytest.fixture
def double(monkeypatch):
    backend = capability.Backend(
        "double", "x", "numpy", "x", "tests.solvers.doubles", quadratic=True, integer=True
    )
    monkeypatch.setattr(capability, "EXACT", (*capability.EXACT, backend))
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.3)

    def ask(order, integer=False, memory=None):
        """Set short limits only if they are meant to be reached, so that a busy machine causes no failure."""
        program = Program(order, [Block(order, (2,), 0, 1, integer)], [], [Term("linear", np.arange(2))])
        monkeypatch.setattr(worker, "STATING_SECONDS", 3 if order == "never_stated" else 300)
        limit = 0.2 if order in ("hang", "dawdle") else 300
        return solve(program, "double", time_limit=limit, memory=memory)

    return ask


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count all memory")
def test_a_limit_of_memory_holds_for_one_solve(double):
    """Two gigabytes that are not written to: allowed, then not, then allowed again, in one process."""
    assert double("hoard").status == "feasible"
    assert double("hoard", memory=10**9).status == "out_of_memory"
    assert double("hoard").status == "feasible"
    died = double("die", memory=10**9)
    assert died.message.endswith("its memory was limited to 1 GB")
    assert died.cpu_seconds is None
    assert double("stumble").cpu_seconds >= 0


@pytest.mark.parametrize(
    ("order", "status", "words"),
    quick(
        [
            ("die", "crashed", "died (SIGSEGV)"),
            ("leave", "crashed", "died (exit status 3)"),
            ("hang", "time_limit", "beyond its limit of 0.2 s"),
            ("never_stated", "time_limit", "not stated within 3 s"),
            ("eat", "out_of_memory", "no more"),
            ("stumble", "error", "RuntimeError: out of luck"),
            ("refuse", "size_limit", "two variables are too many"),
            ("stop_short", "feasible", "it stopped short"),
        ],
        every=3,
    ),
)
def test_unusual_statuses_are_mapped(double, order, status, words):
    found = double(order)
    assert (found.status, words in found.message) == (status, True), found
    assert (found.x is None) == (status != "feasible")
    assert double("stop_short").status == "feasible"  # the next solve works in any case


@pytest.mark.parametrize(
    ("bound", "status"), [(0.0, "feasible"), (2.0, "optimal"), (1.6, "optimal"), (None, "optimal")]
)
def test_claim_contradicted_by_its_own_bound(monkeypatch, bound, status):
    double = Answer("optimal", np.array([2.0, 2.0, 4.0]), bound)
    monkeypatch.setattr(worker, "run", lambda *_: (double, 0.0, 0.0))
    found = solve(Isotonic([3, 1, 4], integer=True), "cp-sat")
    assert (found.status, found.objective) == (status, 2)
    assert status == "optimal" or "its own bound is lower" in found.message


def test_a_backend_that_is_slightly_late_is_awaited(double, monkeypatch):
    monkeypatch.setattr(worker, "GRACE_SECONDS", 300)
    assert double("dawdle").status == "feasible"


KEEP_TIME = ["highs", "cp-sat", "scip", "gurobi", "ortools:scip", "cvxpy:highs", "pyomo:highs"]


@pytest.mark.parametrize("name", quick(KEEP_TIME, first=2))
def test_backends_keep_their_limits_and_hand_on_what_they_have(name):
    if name not in NAMES:
        pytest.skip("not installed")
    for seconds in (1, 10, 100):  # on a busy machine, the first answer may be late
        found = solve(market_split(), name, time_limit=seconds, threads=1)
        if found.status == "feasible":
            break
    assert (found.status, found.objective > 0) == ("feasible", True), found
    assert found.bound == pytest.approx(0, abs=1e-6)


def test_gaps_are_none_where_there_is_nothing_to_compare():
    for objective, bound, gap in ((5, None, None), (None, 3, None), (None, None, None), (5, 3, 2)):
        assert Solution("b", "1", "feasible", None, objective, bound).gap == gap


CVXPY_ENDS = """
import time
from types import SimpleNamespace
import cvxpy
import numpy as np
from models.programs.program import Program
from models.programs.terms import Block, Term
from solvers.backends import cvxpy_any
from solvers.solution import Effort

def ended(solver, how, seconds, value=1.0, whole=False):
    program = Program("p", [Block("v", (1,), 0, 5, whole)], [], [Term("linear", np.arange(1))])
    session = cvxpy_any.Session(program, Effort(), solver)
    def run(**_):
        time.sleep(0.05)
        session._x.save_value(np.array([value]))
        if isinstance(how, Exception):
            raise how
    stats = SimpleNamespace(extra_stats=None)
    stand_in = SimpleNamespace(solve=run, status=how, value=1.0, solver_stats=stats)
    cvxpy.Problem = lambda cost, held: stand_in
    print(session.run(seconds).status)

ended("CLARABEL", "optimal", None)
ended("CLARABEL", "optimal_inaccurate", None)
ended("CLARABEL", "user_limit", None)  # of iterations, then
ended("CLARABEL", "user_limit", 60.0)
ended("CLARABEL", "user_limit", 0.05)
ended("CLARABEL", "optimal_inaccurate", 60.0)
ended("CLARABEL", "optimal_inaccurate", 0.05)  # stopped by its clock before it was accurate
ended("CLARABEL", cvxpy.SolverError("CLARABEL cannot solve it"), None)
ended("CLARABEL", cvxpy.SolverError("no pivot"), None)
ended("CBC", cvxpy.SolverError("no pivot"), None)
ended("CBC", "user_limit", 0.05, 1.0, True)
ended("CBC", "user_limit", 0.05, 9.0, True)  # beyond its bound: there was no answer yet
"""


@pytest.mark.slow
def test_how_solvers_behind_cvxpy_end():
    done = subprocess.run([sys.executable, "-c", CVXPY_ENDS], capture_output=True, text=True, check=True)
    limits = ["numerical", "numerical", "time_limit", "feasible", "time_limit"]
    assert done.stdout.split() == ["optimal", "feasible", *limits, "unsupported", "numerical", "error",
                                   "feasible", "time_limit"]  # fmt: skip


class Scripted:
    """A backend whose sessions give these answers, one per run."""

    name, integers_only = "double", False

    def __init__(self, *answers):
        self.answers = list(answers)

    def open(self, program, threads):  # noqa: ARG002
        return self

    def add_rows(self, rows):
        pass

    def run(self, seconds):  # noqa: ARG002
        return self.answers.pop(0)


def test_feasibility_solve_gives_no_bound():
    rays = Scripted(Answer("unbounded"), Answer("time_limit", None, 0.0))
    found = Formulation(pair(0, 0, [-1, 0])).open(rays, None)(1.0)
    assert (found.status, found.bound, rays.answers) == ("time_limit", None, [])


def test_lines_that_are_still_missing_leave_a_bound_and_no_answer():
    squares = Term("quadratic", np.arange(1), np.array([1e-3]), np.array([50]))
    program = Program("p", [Block("v", (1,), 0, 100, True)], [], [squares])
    lacking = Answer("optimal", np.array([55.0, 0.0249]), 0.0249)  # it costs 0.025
    for last, status, bound in (
        (Answer("feasible", np.array([55.0, 0.0249]), None), "time_limit", 0.0249),
        (Answer("time_limit"), "time_limit", 0.0249),
        (Answer("time_limit", None, 0.02495), "time_limit", 0.02495),
        (Answer("numerical", None, None, "why"), "numerical", 0.0249),
    ):
        lines = Scripted(Answer("optimal", np.array([70.0, 0.0]), 0.0), lacking, last)
        found = Formulation(program, piecewise=True).open(lines, None)(9.0)
        assert (found.status, found.variables, found.bound) == (status, None, bound)
        assert (found.message, lines.answers) == (last.message, [])


HUGE = Isotonic([2**29, 0], integer=True)
WHOLE, REAL = Isotonic([3, 1, 4], integer=True), Isotonic([3.0, 1.0, 4.0])  # both cost 2 at [2, 2, 4]


@pytest.mark.parametrize(
    ("model", "backend", "double", "x", "bound", "status"),
    [
        (WHOLE, "highs", "optimal", [2, 2, 4], 1.0, "feasible"),  # the bound allows an objective of 1
        (HUGE, "highs", "optimal", [2**28] * 2, 2.0**57 - 48, "optimal"),  # three floats away
        (REAL, "highs", "optimal", [2, 2, 4], 2 - 1e-4, "feasible"),
        (REAL, "highs", "optimal", [2, 2, 4], 2 - 1e-7, "optimal"),
        (REAL, "highs", "optimal", [3, 1, 4], 2.0, "numerical"),  # decreasing: numerical error over the reals
        (WHOLE, "highs", "optimal", [3, 1, 4], 2.0, "error"),  # decreasing: not explained by rounding
        (WHOLE, "highs", "optimal", [2, 2.001, 4], 2.0, "numerical"),
        (WHOLE, "clarabel", "optimal", [1.5, 1.5, 4], 1.5, "relaxed"),
        (WHOLE, "clarabel", "feasible", [1.5, 1.5, 4], None, "numerical"),
        (WHOLE, "clarabel", "optimal", [2, 2, 4], 1.0, "relaxed"),
        (WHOLE, "clarabel", "optimal", [2, 2, 4], None, "relaxed"),
        (WHOLE, "clarabel", "optimal", [2, 2, 4], 2.0, "optimal"),
    ],
)
def test_status_of_an_answer(monkeypatch, model, backend, double, x, bound, status):
    answer = Answer(double, np.array(x, float), bound)
    monkeypatch.setattr(worker, "run", lambda *_: (answer, 0.0, 0.0))
    found = solve(model, backend)
    assert found.status == status
    assert (found.x is None) == (found.objective is None)
    assert status != "relaxed" or found.x is None
    assert status == "optimal" or found.message or double == "feasible"


def test_a_fast_answer_that_breaks_a_constraint_is_an_error(monkeypatch):
    monkeypatch.setattr(fast, "answer", lambda _: (np.array([3, 1, 4]), None))
    found = solve(WHOLE)
    assert (found.status, found.bound) == ("error", None)
    assert "increasing" in found.message


def test_infeasible_conic_answer_is_rejected(monkeypatch):
    double = Answer("optimal", np.array([0.9, 0.9]), 0.0)
    monkeypatch.setattr(worker, "run", lambda *_: (double, 0.0, 0.0))
    found = solve(BudgetSplit([1, 8], 1.0), "clarabel")
    assert (found.status, "breaks a constraint" in found.message) == ("error", True)


def test_halves_for_whole_numbers_are_numerical_trouble(double):
    found = double("stop_short", integer=True)
    assert (found.status, found.x) == ("numerical", None)


@pytest.mark.parametrize("name", quick(["pdlp", "osqp", "scs"]))
def test_first_order_methods_report_early_stops(name):
    """Counts of very different sizes are too hard for them, but they must not report a wrong optimum."""
    model = Isotonic([10**9, 3, 10**6, -7, 10**9, 0, 5], p=1)
    best = float(solve(model).objective)
    found = solve(model, name, time_limit=5)
    assert found.status in ("optimal", "numerical", "feasible", "time_limit"), found
    if found.status == "optimal":
        assert found.objective == pytest.approx(best, rel=1e-6)
    elif found.status in ("numerical", "feasible"):
        assert found.message


def test_iteration_limit_is_not_a_time_limit():
    found = solve(CostTable.random(np.random.default_rng(0), 20), "osqp", time_limit=60)
    assert found.status in ("numerical", "optimal", "relaxed"), found


def test_gurobi_names_its_size_limit():
    if "gurobi" not in NAMES:
        pytest.skip("not installed: pip install hierdp[gurobi]")
    small = HierarchyQIP(Tree([[0, 0]]), [[9, 3], [1, 5], [1, 1]], 9)
    for name in ("gurobi", "cvxpy:gurobi", "pyomo:gurobi"):
        for model in (Chebyshev(np.arange(3000), 9), Isotonic(np.arange(900)[::-1])):
            found = solve(model, name)
            if found.status == "optimal":
                pytest.skip("there is a full licence here")
            assert (name, found.status) == (name, "size_limit")
            assert "size-limited license" in found.message
        assert solve(small, name).objective == solve(small).objective


@pytest.mark.parametrize(("name", "extra"), [("scip", "scip"), ("gurobi", "gurobi"), ("glpk_mi", "glpk")])
def test_missing_libraries_are_named_by_their_extra(monkeypatch, name, extra):
    def version(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(record.metadata, "version", version)
    record._version.cache_clear()
    try:
        with pytest.raises(
            ValueError, match=rf"{name} is not installed. To get it: pip install hierdp\[{extra}\]"
        ):
            solve(Isotonic([1]), name)
    finally:
        record._version.cache_clear()


@pytest.mark.parametrize("name", quick(["cvxpy:scipy", "cvxpy:SCIPY", "pyomo:appsi_highs"]))
def test_any_solver_that_cvxpy_and_pyomo_find(name):
    model = Isotonic([3, 1, 4, 1, 5], p=1, integer=True)
    assert solve(model, name).objective == solve(model).objective


@pytest.mark.slow
def test_a_solver_that_cvxpy_does_not_find_is_named():
    model = Isotonic([3, 1, 4, 1, 5], p=1, integer=True)
    with pytest.raises(
        ValueError, match=r"cvxpy:nosuch is not installed. To get it: .* where cvxpy finds it"
    ):
        solve(model, "cvxpy:nosuch")


@pytest.mark.parametrize(
    ("name", "integer", "quadratic"),
    [
        ("cvxpy:clarabel", False, True),
        ("cvxpy:GUROBI", True, True),
        ("cvxpy:scipy", True, False),
        ("pyomo:cbc", True, False),
        ("pyomo:scip", True, True),
    ],
)
def test_what_the_solvers_behind_cvxpy_and_pyomo_take(monkeypatch, name, integer, quadratic):
    monkeypatch.setattr(capability.Backend, "installed", property(lambda _: True))
    backend = capability.find(name)
    assert (backend.integer, backend.quadratic) == (integer, quadratic)


def test_a_solver_that_pyomo_fails_to_look_for_is_not_here(monkeypatch):
    from pyomo.common.errors import ApplicationError

    from solvers.backends import pyomo_any

    def fails(_):
        raise ApplicationError("no executable")

    monkeypatch.setattr("pyomo.environ.SolverFactory", fails)
    assert pyomo_any.available("nothing like it") is False


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_squares_are_handled_as_the_table_states(integer, quadratic, both):
    """The table of capabilities agrees with what `formulate` does with whole and real squares."""
    backend = capability.Backend(
        "double", "x", "x", "x", "x", integer=integer, quadratic=quadratic, integer_quadratic=both
    )
    whole = formulate(Isotonic([3, 1], integer=True).program(), backend)
    real = formulate(Isotonic([3.0, 1.0]).program(), backend)
    word = backend.takes["integer QP"]
    assert word == ("lines" if whole.piecewise else "relaxed" if whole.relaxed else "yes")
    assert backend.takes["QP"] == ("-" if isinstance(real, str) else "yes")
    assert backend.takes["MIP"] == ("relaxed" if whole.relaxed else "yes")
    assert (word == "lines") == (not both if integer else not quadratic)


def test_each_backend_says_what_becomes_of_each_kind():
    words = {word for backend in backends() for word in backend.takes.values()}
    assert all(word in capability.LEGEND for word in words - {"-"})
    assert len({tuple(backend.takes) for backend in backends()}) == 1
