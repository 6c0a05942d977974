"""Exact backends against the fast paths; statuses, limits, crashes and invalid requests."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib import metadata

import numba
import numpy as np
import pytest
from numba.core.event import TimingListener, install_listener

from models import Chebyshev, FixedSum, HierarchyQIP, Isotonic, Program, Tree
from models.arithmetic import kernels
from models.programs.terms import Block, Term, rows_of
from solvers import backends, fast, solve, worker
from solvers.backends import record, table
from solvers.backends.table import find
from tests.marks import quick

MODELS = [Chebyshev, HierarchyQIP, Isotonic]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("seed", quick(range(12), first=3))
def test_medium_instances_have_one_optimum_everywhere(kind, seed):
    model = kind.random(np.random.default_rng(100 + seed), 40)
    fast = solve(model)
    assert fast.status == "optimal"
    whole = getattr(model, "integer", True)
    names = ["highs", "cp-sat"] if whole else ["highs", "clarabel"]
    if seed in (0, 11):
        names.append("pyomo:highs")
    for name in names:
        other = solve(model, name, time_limit=300, threads=1)
        assert other.status == "optimal", (model, other)
        assert model.violations(other.x) == []
        if whole:
            assert type(other.objective) is int
            assert other.objective == fast.objective, (model, other)
            assert other.x.dtype == np.int64
            assert model.certificate(other.x).optimal
        else:
            assert float(other.objective) == pytest.approx(float(fast.objective), rel=1e-5, abs=1e-4)
        assert other.bound <= float(fast.objective) * (1 + 1e-6) + 1e-4
        assert other.backend == name
        assert other.version
        assert other.build_seconds >= 0
        assert other.solve_seconds > 0


UGLY = {
    "ties": Isotonic([2, 1, 2, 1, 2, 1], p=1, integer=True),
    "zeros": HierarchyQIP(Tree([[0, 0], [0, 1, 1]]), np.zeros((6, 2), np.int64), 3),
    "nothing to give": HierarchyQIP(Tree([[0, 0]]), [[5], [2], [3]], 0),
    "all negative": Chebyshev([-5, -7, -1], 4),
    "one entry": Isotonic([7], upper=3, integer=True),
    "one node": HierarchyQIP(Tree([]), [[3, -4, 1]], 2),
    "chain of one child": HierarchyQIP(Tree([[0], [0], [0]]), [[3], [9], [0], [4]], 5),
    "huge": Chebyshev([10**12, -(10**12), 5], 10**12 + 3),
    "huge and ordered": Isotonic([10**12, 3, 10**9], p=1, integer=True),
    "heavy": Isotonic([5, 1, 4, 2], weights=[10**6, 1, 10**6, 10**6], integer=True),
    "empty segments": Chebyshev([4, 1], [0, 3, 0], [0, 0, 2, 2]),
}


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("backend", ["highs", "cp-sat"])
def test_ugly_instances_never_disagree(name, backend):
    model = UGLY[name]
    fast, other = solve(model), solve(model, backend, time_limit=300, threads=1)
    assert fast.status == "optimal"
    assert other.status == "optimal", other
    assert other.objective == fast.objective
    assert type(other.objective) is int


@pytest.mark.parametrize("backend", ["highs", "clarabel"])
def test_float_data(backend):
    rng = np.random.default_rng(0)
    for model in (
        Isotonic(rng.normal(0, 5, 12)),
        Isotonic(rng.normal(0, 5, 12), p=1, lower=-1.5, last=4.25),
        HierarchyQIP(Tree([[0, 0, 0]]), rng.normal(2, 3, (4, 3)), 9, integer=False),
    ):
        fast, other = solve(model), solve(model, backend)
        assert fast.status == other.status == "optimal"
        assert other.objective == pytest.approx(fast.objective, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", quick(range(6)))
def test_windows_infeasible_and_not(seed):
    rng = np.random.default_rng(seed)
    model = HierarchyQIP(
        Tree([[0, 0], [0, 0, 1]]), rng.integers(0, 6, (6, 2)), 8, window=int(rng.integers(1, 4))
    )
    statuses = {solve(model, name, threads=1).status for name in ("fast", "highs", "cp-sat")}
    assert statuses in ({"optimal"}, {"infeasible"})
    if statuses == {"optimal"}:
        assert len({solve(model, name, threads=1).objective for name in ("fast", "highs", "cp-sat")}) == 1


@pytest.mark.parametrize("name", ["fast", "highs", "cp-sat", "pyomo:highs"])
def test_infeasibility_is_reported(name):
    model = HierarchyQIP(Tree([[0, 0]]), [[9], [1], [1]], 9, window=1)
    solution = solve(model, name)
    assert solution.status == "infeasible"
    assert solution.x is None
    assert solution.objective is None
    assert solution.gap is None


def test_a_relaxation_is_a_bound_and_no_answer():
    for model in (HierarchyQIP(Tree([[0, 0, 0]]), [[1], [0], [0], [0]], 1), Isotonic([1, 0], integer=True)):
        solution = solve(model, "clarabel")
        assert solution.status == "relaxed"
        assert solution.x is None
        assert solution.objective is None
        assert solution.bound <= solve(model).objective + 1e-6
        assert "a bound, not an answer" in solution.message


def test_unsupported_problems_are_reported_with_a_reason():
    program = Isotonic([1, 2]).program()
    for solution, words in [
        (solve(Isotonic([1.5, 0.5]), "cp-sat"), "whole numbers only"),
        (solve(program), "the fast paths take models, not programs"),
        (solve(Isotonic([1.5, 0.5], p=1, lower=0, upper=3, integer=True), "cp-sat"), ""),
        (solve(HierarchyQIP(Tree([]), [[1.5]], 2, integer=False, window=1)), "windows have a fast path"),
    ]:
        assert solution.status == "unsupported", solution
        assert words in solution.message
        assert solution.message
        assert solution.x is None


def test_bare_programs_are_solved_and_unbounded_ones_named():
    rows = [rows_of("sum", (1, 2), ([0, 0], [0, 1], [1, 1]), 1.5, np.inf)]
    program = Program("p", [Block("v", (2,))], rows, [Term("linear", np.arange(2), [1, 3])])
    for name in ("highs", "clarabel", "pyomo:highs"):
        solution = solve(program, name)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(1.5)
    free = Program("u", [Block("v", (1,), -np.inf)], [], [Term("linear", np.arange(1))])
    for name in ("highs", "clarabel"):
        assert solve(free, name).status == "unbounded"


def test_a_tiny_limit_gives_no_false_claim():
    rng = np.random.default_rng(2)
    big = Chebyshev(rng.integers(-50, 1000, 15_000), 5_000_000)
    best = solve(big).objective
    for name in ("highs", "cp-sat"):
        solution = solve(big, name, time_limit=0.01, threads=1)
        assert solution.status in ("time_limit", "feasible"), solution
        assert solution.bound is None or solution.bound <= best + 1e-6
        if solution.status == "time_limit":
            assert solution.x is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["highs", "glop", "pdlp"])
def test_an_unfinished_linear_program_has_no_bound(name):
    found = solve(Isotonic(np.random.default_rng(3).integers(0, 10**6, 30_000), p=1), name, time_limit=0.01)
    assert (found.status, found.x, found.bound) == ("time_limit", None, None)


TWICE = """
import numpy as np
from models.programs.program import Program
from models.programs.terms import Block, Term
from solvers.solution import Effort
from solvers.backends.highs import Session
program = Program("p", [Block("v", (2,))], [], [Term("linear", np.arange(2))])
session, plain = Session(program, Effort()), Session(program, Effort(presolve=False))
session._highs.getRunTime = lambda: 100.0  # what earlier runs took
session.run(2.5)
print(session._highs.getOptionValue("time_limit")[1])
print(*(one._highs.getOptionValue("presolve")[1] for one in (session, plain)))
"""


def test_highs_counts_the_time_of_all_its_runs_and_can_do_without_presolve():
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=True)
    assert done.stdout == "102.5\nchoose off\n"


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_limits_must_be_positive(limit):
    with pytest.raises(ValueError, match="time_limit must be positive"):
        solve(Isotonic([1]), "highs", time_limit=limit)


def test_threads_must_be_positive():
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        solve(Isotonic([1]), threads=0)


def test_unknown_backends_cause_a_message_with_the_known_names():
    with pytest.raises(
        ValueError, match=r"there is no backend 'high'. Did you mean highs\? There are: fast, highs"
    ):
        solve(Isotonic([1]), "high")
    for name in ("", "pyomo:", "nothing like it"):
        with pytest.raises(ValueError, match="there is no backend"):
            solve(Isotonic([1]), name)
    with pytest.raises(
        ValueError, match=r"pyomo:nosuch is not installed. To get it: pip install pyomo, and .* nosuch"
    ):
        solve(Isotonic([1]), "pyomo:nosuch")


def test_a_row_that_the_table_does_not_have_is_a_backend_too():
    mine = replace(find("cp-sat"), name="mine")
    assert find(mine) is mine
    found = solve(Isotonic([3, 1, 4], integer=True), mine)
    assert (found.backend, found.status, found.objective) == ("mine", "optimal", 2)
    with pytest.raises(
        ValueError, match=r"the backend mine is not installed\. To get it: pip install nosuch"
    ):
        solve(Isotonic([1]), replace(mine, package="nosuch"))


def test_two_rows_of_one_name_have_two_workers():
    first, second = (worker._worker(replace(find(name), name="of one name")) for name in ("highs", "cp-sat"))
    assert first is not second
    assert first is worker._worker(replace(find("highs"), name="of one name"))


@pytest.mark.slow
def test_two_rows_of_one_name_do_not_share_a_process():
    """OR-tools cannot be loaded where cvxpy has loaded HiGHS."""
    for other in ("cvxpy:highs", "cp-sat", "highs"):
        found = solve(Isotonic([3, 1, 4], integer=True), replace(find(other), name="of one name"))
        assert (found.backend, found.status, found.objective) == ("of one name", "optimal", 2)


def test_a_missing_library_causes_a_message_on_its_installation(monkeypatch):
    def version(package):
        if package == "highspy":
            raise metadata.PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(record.metadata, "version", version)
    record._version.cache_clear()
    try:
        with pytest.raises(
            ValueError, match=r"the backend highs is not installed\. To get it: pip install highspy"
        ):
            solve(Isotonic([1]), "highs")
        known = {b.name: b for b in backends()}
        assert not known["highs"].installed
        assert known["cp-sat"].installed
    finally:
        record._version.cache_clear()


def test_the_table_of_backends():
    known = {b.name: b for b in backends()}
    assert {"fast", "highs", "cp-sat", "clarabel", "pyomo:highs"} <= set(known)
    for backend in known.values():
        assert backend.library
        assert backend.licence
        assert backend.install.startswith("pip install ")
        assert backend.installed == bool(backend.version)


@pytest.mark.slow
def test_a_killed_process_has_crashed_and_the_next_solve_works():
    assert solve(Isotonic([2, 1], integer=True), "highs").status == "optimal"
    ours = worker._worker(find("highs"))
    process = ours._process

    def kill() -> None:
        while not ours._turn.locked():  # until it has work
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)

    process.send_signal(signal.SIGSTOP)  # it hangs on that work, and is killed there
    killer = threading.Thread(target=kill)
    killer.start()
    solution = solve(Isotonic([2, 1], integer=True), "highs")
    killer.join()
    assert solution.status == "crashed"
    assert "died (SIGKILL)" in solution.message
    assert solution.x is None
    assert solve(Isotonic([2, 1], integer=True), "highs").objective == 1


HANGING = """
import os, time
from solvers.backends import session
from solvers.solution import Answer
class Session(session.Session):
    def __init__(self, program, threads): pass
    def run(self, seconds):
        if os.path.exists(os.path.join(os.path.dirname(__file__), "crash")): raise RuntimeError("out of luck")
        if os.path.exists(os.path.join(os.path.dirname(__file__), "lie")):
            return Answer("optimal", __import__("numpy").array([3.0, 1.0]), 0.0)
        if os.path.exists(os.path.join(os.path.dirname(__file__), "half")):
            return Answer("optimal", __import__("numpy").array([1.5, 1.5]), 0.0)
        time.sleep(3600)
"""


def test_hanging_failing_and_wrong_backends(tmp_path, monkeypatch):
    (tmp_path / "hanging_solver.py").write_text(HANGING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.5)
    backend = table.Backend("hang", "x", "numpy", "x", "hanging_solver", integer=True, integer_quadratic=True)
    monkeypatch.setattr(table, "EXACT", (*table.EXACT, backend))
    model = Isotonic([3, 1], integer=True)
    solution = solve(model, "hang", time_limit=0.2)
    assert solution.status == "time_limit"
    assert "beyond its limit of 0.2 s" in solution.message
    for behaviour, status, words in [
        ("crash", "error", "RuntimeError: out of luck"),
        ("lie", "error", "breaks a constraint: increasing: the step to entry 1 is -2, not at least 0"),
        ("half", "numerical", "the answer is not whole"),
    ]:
        flag = tmp_path / behaviour
        flag.touch()
        solution = solve(model, "hang", time_limit=300)
        assert solution.status == status
        assert words in solution.message
        flag.unlink()


def test_solutions_print_in_a_line():
    text = repr(solve(Isotonic([3, 1, 4], integer=True)))
    assert text.startswith("Solution(fast: optimal, objective 2, bound 2, ")
    refused = repr(solve(Isotonic([1.5]), "cp-sat"))
    assert refused.startswith("Solution(cp-sat: unsupported, ")


def test_tolerances_must_be_positive_and_are_not_for_all():
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        solve(Isotonic([1]), "highs", tolerance=0)
    with pytest.raises(ValueError, match="min-cost-flow takes no tolerance"):
        solve(Isotonic([1]), "min-cost-flow", tolerance=1e-3)
    with pytest.raises(ValueError, match="memory must be at least 1 byte, got 0"):
        solve(Isotonic([1]), "highs", memory=0)
    with pytest.raises(ValueError, match="osqp has no presolve that can be turned off"):
        solve(Isotonic([1]), "osqp", presolve=False)


@pytest.mark.parametrize("name", quick(["clarabel", "pdlp", "scs"]))
def test_a_loose_tolerance_is_looser(name):
    """First-order and interior-point answers show the tolerance, and so that it reaches the solver."""
    model = Isotonic(np.random.default_rng(0).integers(0, 100, 30), integer=False)
    truth = solve(model).objective
    away = [abs(float(solve(model, name, tolerance=t).objective) - float(truth)) for t in (1e-3, 1e-9)]
    assert away[0] > 1e-3 > 1e-4 > away[1]


@pytest.mark.slow
def test_compiling_is_not_counted(monkeypatch):
    """Numba compiles a kernel at its first use on a machine; these seconds are not part of the solve."""
    compiling = []

    def answer(model):
        with install_listener("numba:compile", TimingListener()) as listener:
            assert numba.njit(lambda x: sorted([x, 2, 3])[0])(1) == 1
        compiling.append(listener.duration)
        return before(model)

    before = fast.answer
    monkeypatch.setattr(kernels, "SMALL", -1)
    solve(FixedSum([3, 1], 5))  # compiles the kernels that are not yet cached
    monkeypatch.setattr(fast, "answer", answer)
    started = time.perf_counter()
    found = solve(FixedSum([3, 1], 5))
    whole = time.perf_counter() - started
    assert found.status == "optimal"
    assert found.solve_seconds <= whole - compiling[0] + 1e-3


def test_a_bound_in_floats_allows_for_squares_that_cancel():
    """HiGHS sums expanded squares of large counts, so its bound may exceed a small optimum."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        counts = np.sort(rng.integers(0, 400_000, 100))
        counts[::7] += rng.integers(-3, 4, counts[::7].size)
        model = Isotonic(counts, integer=False)
        optimum, found = solve(model).objective, solve(model, "highs", time_limit=300)
        assert found.status == "optimal"
        assert optimum - 0.1 <= found.bound <= optimum + 1e-9
