"""Each way to end has its status, on every backend; hanging, dying and short-breathed ones included."""

import time
from importlib import metadata

import numpy as np
import pytest

import hierdp.verification as verification
import solvers.capability as capability
from models import Chebyshev, CostTable, HierarchyQIP, Isotonic, Program, Tree
from models.program import Block, Term, rows_of
from solvers import Solution, backends, solve, worker

NAMES = [backend.name for backend in backends() if backend.name != "fast" and backend.installed]


def pair(lower, upper, cost, signs=(1, 1), integer=False, most=np.inf):
    rows = rows_of("r", (1, 2), ([0, 0], [0, 1], signs), lower, upper)
    return Program(
        "p", [Block("v", (2,), 0, most, integer)], [rows], [Term("linear", np.arange(2), np.array(cost))]
    )


@pytest.mark.parametrize("name", NAMES)
def test_infeasible(name):
    assert solve(pair(30, 40, [1, 3], integer=True, most=5), name).status == "infeasible"


@pytest.mark.parametrize("name", NAMES)
def test_unbounded(name):
    found = solve(pair(0, 0, [-1, 0], signs=(1, -1)), name)
    if name in ("cp-sat", "min-cost-flow"):
        assert found.status == "unsupported"
        assert found.message
    else:
        assert (found.status, found.x, found.bound) == ("unbounded", None, None)


@pytest.mark.parametrize("name", NAMES)
def test_neither_answer_nor_bound_is_infeasible(name):
    """A ray alone does not make a program unbounded: this one has a ray, and no answer."""
    rows = rows_of("r", (2, 3), ([0, 0, 1], [0, 1, 2], [1, -1, 1]), [0, -np.inf], [0, -1])
    cost = [Term("linear", np.arange(3), np.array([-1, 0, 0]))]
    found = solve(Program("p", [Block("v", (3,))], [rows], cost), name)
    assert found.status == ("unsupported" if name in ("cp-sat", "min-cost-flow") else "infeasible")


@pytest.fixture
def told(monkeypatch):
    backend = capability.Backend(
        "told", "x", "numpy", "x", "tests.solvers.doubles", quadratic=True, integer=True
    )
    monkeypatch.setattr(capability, "EXACT", (*capability.EXACT, backend))
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(worker, "STATING_SECONDS", 3)

    def ask(order, integer=False):
        program = Program(order, [Block(order, (2,), 0, 1, integer)], [], [Term("linear", np.arange(2))])
        return solve(program, "told", time_limit=0.2)

    return ask


@pytest.mark.parametrize(
    ("order", "status", "words"),
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
)
def test_ends_that_nobody_wants(told, order, status, words):
    started = time.perf_counter()
    found = told(order)
    assert (found.status, words in found.message) == (status, True), found
    assert (found.x is None) == (status != "feasible")
    assert time.perf_counter() - started < 20
    assert told("stop_short").status == "feasible"  # whatever happened, the next solve works


@pytest.mark.parametrize(
    ("bound", "status"), [(0.0, "feasible"), (2.0, "optimal"), (1.6, "optimal"), (None, "optimal")]
)
def test_a_claim_that_its_own_bound_does_not_bear_out(monkeypatch, bound, status):
    from solvers.solution import Answer

    told = Answer("optimal", np.array([2.0, 2.0, 4.0]), bound)
    monkeypatch.setattr(worker, "run", lambda *_: (told, 0.0, 0.0))
    found = solve(Isotonic([3, 1, 4], integer=True), "cp-sat")
    assert (found.status, found.objective) == (status, 2)
    assert status == "optimal" or "its own bound is lower" in found.message


def test_halves_for_whole_numbers_are_numerical_trouble(told):
    found = told("stop_short", integer=True)
    assert (found.status, found.x) == ("numerical", None)


def test_first_order_methods_own_up_to_stopping_short():
    """Counts of sizes far apart are more than they can do: never a wrong optimum."""
    model = Isotonic([10**9, 3, 10**6, -7, 10**9, 0, 5], p=1)
    best = float(solve(model).objective)
    for name in ("osqp", "scs", "pdlp"):
        found = solve(model, name, time_limit=5)
        assert found.status in ("optimal", "numerical", "feasible", "time_limit"), found
        if found.status == "optimal":
            assert found.objective == pytest.approx(best, rel=1e-6)
        elif found.status in ("numerical", "feasible"):
            assert found.message


def test_a_limit_of_iterations_is_no_time_limit():
    found = solve(CostTable.random(np.random.default_rng(0), 20), "osqp", time_limit=60)
    assert found.status in ("numerical", "optimal", "relaxed"), found


def test_gurobi_names_its_size_limit():
    if "gurobi" not in NAMES:
        pytest.skip("not installed: pip install hierdp[gurobi]")
    found = solve(Chebyshev(np.arange(3000), 9), "gurobi")
    if found.status == "optimal":
        pytest.skip("there is a full licence here")
    assert found.status == "size_limit"
    assert "license" in found.message
    small = HierarchyQIP(Tree([[0, 0]]), [[9, 3], [1, 5], [1, 1]], 9)
    assert solve(small, "gurobi").objective == solve(small).objective


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ("crashed", "failed"),
        ("numerical", "failed"),
        ("out_of_memory", "failed"),
        ("error", "failed"),
        ("size_limit", "unsupported"),
        ("unsupported", "unsupported"),
        ("time_limit", "stopped"),
    ],
)
def test_verdicts(monkeypatch, status, verdict):
    def told(model, name="fast", **_):
        return solve(model) if name == "fast" else Solution(name, "1", status)

    monkeypatch.setattr(verification, "solve", told)
    found = verification.verify(Isotonic([2, 1], integer=True), backends=["highs"])
    assert [row.verdict for row in found.rows] == ["agrees", verdict]


@pytest.mark.parametrize(("name", "extra"), [("scip", "scip"), ("gurobi", "gurobi"), ("glpk_mi", "glpk")])
def test_optional_libraries_are_asked_for_by_their_extra(monkeypatch, name, extra):
    def version(package):
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(capability.metadata, "version", version)
    capability._version.cache_clear()
    try:
        with pytest.raises(
            ValueError, match=rf"{name} is not installed. To get it: pip install hierdp\[{extra}\]"
        ):
            solve(Isotonic([1]), name)
    finally:
        capability._version.cache_clear()


def test_any_solver_that_cvxpy_and_pyomo_find():
    model = Isotonic([3, 1, 4, 1, 5], p=1, integer=True)
    for name in ("cvxpy:SCIPY", "cvxpy:scipy", "pyomo:appsi_highs"):
        assert solve(model, name).objective == solve(model).objective
    with pytest.raises(
        ValueError, match=r"cvxpy:nosuch is not installed. To get it: .* where cvxpy finds it"
    ):
        solve(model, "cvxpy:nosuch")


def test_each_backend_says_what_becomes_of_each_kind():
    words = {word for backend in backends() for word in backend.takes.values()}
    assert all(word in capability.LEGEND for word in words - {"-"})
    assert len({tuple(backend.takes) for backend in backends()}) == 1
