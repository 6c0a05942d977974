"""The contract of backends: every installed one keeps it, and those that break a promise are caught."""

import numpy as np
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from models import Isotonic, Program
from models.programs.terms import Block, Term
from solvers import probe as probing
from solvers import solve, worker
from solvers.backends import licences, qpsolvers_any, record
from solvers.backends import table as capability
from solvers.backends.table import find, reachable
from solvers.formulation import formulate
from solvers.probe import probe
from solvers.testing import NEAR_TIES_COST, check_backend, near_ties
from tests.marks import quick
from tests.solvers import broken

QUICK = ["cp-sat"]
NAMES = [*QUICK, *(b.name for b in reachable() if b.name not in (*QUICK, "fast", "highs"))]

DETECTS: dict[str, tuple[str, ...]] = {
    "qpsolvers:highs": (),
    "qpsolvers:proxqp": ("infeasible",),
    "cvxpy:qoco": (),
    "exact-scip": ("infeasible",),  # "error in LP solver" if free variables make it unbounded
}
"""The statuses that these solvers detect, or that their library hands on."""

FAULTS = {
    "cvxpy:copt": "COPT 8.0.7 calls answers to a QP of three variables optimal that are not",
    "cvxpy:qoco": "QOCO 0.3.2 calls an answer to an unbounded program optimal",
    "qpsolvers:copt": "COPT 8.0.7 calls answers to a QP of three variables optimal that are not",
    "cvxpy:ecos": "ECOS 2.0.14 ends short of the accuracy of 1e-10 that it gets, and says so",
    "cvxpy:proxqp": "ProxQP 0.8.0 calls a feasible linear program infeasible",
    "qpsolvers:proxqp": "ProxQP 0.8.0 calls a feasible linear program infeasible",
}
"""Broken promises of solvers that are known: docs/solver-findings.md, solvers/backends/known.py."""


@pytest.mark.parametrize("name", quick(NAMES, first=len(QUICK)))
def test_every_backend_that_works_keeps_the_contract(name):
    """HiGHS is checked by the docstring of `check_backend`."""
    found = probe(next(one for one in reachable() if one.name == name))
    if found.state != "works":
        pytest.skip(f"{found.state}: {found.message}")
    try:
        checked = check_backend(name, recognizes=DETECTS.get(name, ("infeasible", "unbounded")))
    except AssertionError as broken_promise:
        if name in FAULTS:
            pytest.xfail(f"{FAULTS[name]}: {broken_promise}")
        raise
    assert checked > 15


def test_the_optimum_of_near_ties_by_dynamic_programming():
    """Least cost of covering at least (a, b), for all a and b, with one more unit at a time: in integers."""
    program = near_ties()
    weights, needed = program.matrix.toarray().astype(int), program.row_bounds[0].astype(int)
    (block,), (term,) = program.blocks, program.objective
    least = np.full(needed + 1, 10**12)
    least[0, 0] = 0
    for both, cost in zip(weights.T.tolist(), term.weight.tolist(), strict=True):
        rest = [
            np.maximum(np.arange(most + 1) - weight, 0) for most, weight in zip(needed, both, strict=True)
        ]
        for _ in range(block.upper):
            least = np.minimum(least, least[np.ix_(*rest)] + cost)
    assert least[-1, -1] == NEAR_TIES_COST


@pytest.mark.parametrize(
    ("how", "words"),
    quick(
        [
            ("prices", "its prices do not prove its answer"),
            ("bound", "lies above the optimum"),
            ("objective", "the optimum is 88.8571"),
            ("infeasible", "on 'two numbers below 5 that add up to 30'.*expected infeasible"),
            ("silent", "expected infeasible"),
            ("rows", "after the row v₀ . v₁ ≤ 4 was added: the sum is 8"),
            ("limit", "within 0.3 s of a program that takes hours.*expected feasible"),
            ("gap", "on whole numbers that nearly tie.*the optimum is 8,000,087. Is its relative gap"),
            ("no licence", "solved no program to optimality"),
        ]
    ),
)
def test_a_broken_promise_is_caught(how, words):
    with pytest.raises(AssertionError, match=words):
        check_backend(broken.row(how))


@pytest.mark.slow
def test_a_status_without_a_claim_needs_a_message():
    with pytest.raises(AssertionError, match="a status without a claim needs a message"):
        check_backend(broken.row("silent"), recognizes=())


SAID = {
    "Model too large for size-limited license; visit https://gurobi.com/unrestricted": "size_limit",
    "CPLEX Error  1016: Community Edition. Problem size limits exceeded.": "size_limit",
    "?120 Error: Problem has too many rows and columns. The maximum is 5000": "size_limit",
    "4, (LICENSE) Fail to solve problem": "size_limit",
    "rescode.err_missing_license_file(1008): License cannot be located.": "unsupported",
    "a singular matrix": "error",
}


@pytest.mark.parametrize("words", SAID)
def test_licences_are_distinguished_from_failures(words):
    refusal = licences.named("solver", RuntimeError(words))
    assert refusal.status == SAID[words]
    assert words in str(refusal)
    assert ("there is no licence" in str(refusal)) == (refusal.status == "unsupported")


def test_exceptions_that_a_library_drops_are_noted_once():
    class Kind:
        def solve(self, words):
            raise ValueError(words)

    licences.noting(Kind)
    notes = licences.noting(Kind)  # a second session
    with pytest.raises(ValueError, match="too large"):
        Kind().solve("too large")
    assert notes == ["too large"]


def test_a_missing_qpsolvers_is_explained(monkeypatch):
    monkeypatch.setattr(record, "_version", lambda _: "")
    with pytest.raises(
        ValueError, match=r"qpsolvers:piqp is not installed. To get it: pip install qpsolvers piqp"
    ):
        solve(Isotonic([1.0]), "qpsolvers:piqp")


def test_strictly_convex_solvers_take_no_linear_terms_alone():
    row = qpsolvers_any.backend("quadprog")
    assert (row.takes["LP"], row.takes["QP"], row.takes["integer QP"]) == ("-", "yes", "relaxed")
    squares = Term("quadratic", np.arange(1)), Term("linear", np.arange(1, 2))
    flat = Program("flat", [Block("v", (2,), 0, 9)], [], squares)
    for program in (Isotonic([3, 1, 4], p=1).program(), flat):
        assert (
            formulate(program, row)
            == "qpsolvers:quadprog takes programs with a square of every variable only"
        )
    assert not isinstance(formulate(Isotonic([3, 1, 4]).program(), row), str)


@pytest.mark.slow
def test_probe_distinguishes_missing_unlicensed_and_broken(monkeypatch):
    found = {}
    for how in ("works", "no licence", "objective"):
        found[how] = probe(broken.row(how))
    monkeypatch.setattr(record, "_version", lambda _: "")
    found["none"] = probe(broken.row("works"))
    assert [one.state for one in found.values()] == ["works", "no licence", "fails", "not installed"]
    assert found["none"].message == "pip install highspy"
    assert found["no licence"].message == "there is no licence"


MODULE = """
import os, signal, sys, time
from solvers.backends.highs import Session as Highs
def fail():
    {does}
class Session(Highs):
    def __init__(self, program, effort): {building}; super().__init__(program, effort)
    def run(self, seconds): {solving}; return super().run(seconds)
def available(solver): {looking}; return True
{loading}
"""
DOES = {
    "raises": ("raise RuntimeError('out of luck')", "RuntimeError: out of luck"),
    "dies": ("os.kill(os.getpid(), signal.SIGSEGV)", "died (SIGSEGV)"),
    "exits": ("sys.exit(3)", "died (exit status 3)"),
    "interrupts": ("raise KeyboardInterrupt", "died (SIGINT)"),
    "hangs": ("time.sleep(3600)", ("beyond its limit of", "not stated within", "took all of the time")),
}
WHEN = {"loading": "not installed", "looking": "not installed", "building": "fails", "solving": "fails"}


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Write a module that does something unusual at some time; returns the backend's row."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def row(does, when):
        name = f"{does}_{when}"
        times = {time: "fail()" if time == when else "pass" for time in WHEN}
        (tmp_path / f"{name}.py").write_text(MODULE.format(does=DOES[does][0], **times))
        return capability.Backend(
            name, "x", "highspy", "x", name, integer=True, quadratic=True, separate=when == "looking"
        )

    return row


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("does", DOES)
@pytest.mark.slow
def test_probe_lists_backends_that_raise_die_or_hang(failing, monkeypatch, does, when):
    if does == "hangs":
        monkeypatch.setattr(worker, "GRACE_SECONDS", 0.1)
        monkeypatch.setattr(worker, "STARTING_SECONDS", 2)
        monkeypatch.setattr(probing, "SECONDS", 1)
        monkeypatch.setattr(worker, "FINDING_SECONDS", 1 if when in ("loading", "looking") else 300)
    row = failing(does, when)
    found = probe(row)
    state, causes = WHEN[when], DOES[does][1]
    assert found.state == state, found
    assert any(cause in found.message for cause in ([causes] if isinstance(causes, str) else causes)), found
    assert (row.install in found.message) == (state == "not installed")
    if when == "looking":
        with pytest.raises(
            ValueError, match=f"the backend {row.name} is not installed \\(.+\\)\\. To get it:"
        ):
            find(row)


def test_backends_that_raise_or_die_do_not_end_the_command(failing, monkeypatch):
    rows = [
        failing("raises", "looking"),
        failing("dies", "loading"),
        failing("dies", "solving"),
        find("highs"),
    ]
    monkeypatch.setattr(capability, "reachable", lambda: rows)
    done = CliRunner().invoke(main, ["solvers", "--probe"])
    assert done.exit_code == 0, done.output
    assert "2 not installed, 1 fails, 1 works" in done.output
    assert "luck" in done.output
    assert "SIGSEGV" in done.output


@pytest.mark.slow
def test_probe_on_the_command_line(monkeypatch):
    rows = [find("highs"), find("cp-sat"), broken.row("no licence")]
    monkeypatch.setattr(capability, "reachable", lambda: rows)
    done = CliRunner().invoke(main, ["solvers", "--probe"])
    assert done.exit_code == 0, done.output
    assert "2 works, 1 no licence" in done.output
