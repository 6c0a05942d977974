"""The contract of a backend as a test, which can be run on any backend."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from models import Chebyshev, CostTable, HierarchyQIP, Isotonic, Program, Tree
from models.programs.terms import INFINITY, Block, Kind, Rows, Term, rows_of
from solvers import worker
from solvers.backends import session
from solvers.backends.table import Backend, find
from solvers.solution import Answer, Effort, Solution, Status
from solvers.solve import solve

NEAR = 1e-6
"""Relative difference up to which two costs in floats count as equal."""

NO_CLAIM = ("unsupported", "size_limit", "time_limit", "numerical", "error", "out_of_memory", "crashed")
"""Statuses that claim nothing about a program."""

MODELS: dict[str, tuple[Any, float]] = {
    "L2": (Isotonic([7, 3, 9, -2, 5, 5, 0, 12]), 622 / 7),
    "L2, whole": (Isotonic([7, 3, 9, -2, 5, 5, 0, 12], integer=True), 89),
    "L1": (Isotonic([3, 1, 4], p=1), 2),
    "L1, whole": (Isotonic([7, 3, 9, -2, 5, 5, 0, 12], p=1, last=9, integer=True), 23),
    "largest error": (Chebyshev([13, -4, 7, 0, 22, 5], total=31), 4),
    "tree": (
        HierarchyQIP(Tree([[0, 0], [0, 0, 1]]), [[9, 4], [5, 1], [6, 2], [3, -2], [1, 2], [8, 0]], 12),
        17,
    ),
    "tree of reals": (
        HierarchyQIP(Tree([[0, 0]]), [[9.5, 4.0], [5.0, 1.0], [6.0, 2.25]], 12, integer=False),
        3.234375,
    ),
    "tables": (CostTable([[5, 1, 0, 4], [9, 2, 1, 1, 6], [0, 3, 9]], total=6), 4),
    "bumpy tables": (CostTable([[5, 1, 3, 0, 4], [9, 2, 7, 1], [0, 3, 2, 8]], total=6), 1),
    "tables from elsewhere": (CostTable([[5, 1, 0, 4], [9, 2, 1, 1, 6]], total=6, start=[3, -2]), 1),
}
"""Models and their optima."""


def check_backend(
    backend: str | Backend,
    *,
    recognizes: Collection[str] = ("infeasible", "unbounded"),
    time_limit: float = 60.0,
    patience: float = 0.5,
) -> int:
    """Check that a backend's answers, statuses, bounds and prices are what they claim to be.

    1. On a model of every kind, with and without integrality: the status is one that the backend's row in
       the table allows; an answer called optimal is feasible and has the least cost; no bound lies above it;
       if the backend reports prices, they have the sign of derivatives; every other status has a message.
    2. A program without an answer is called infeasible, one without an optimum unbounded, and one that has a
       ray but no answer is not called unbounded.
    3. Rows that are added after a solve hold in the next one.
    4. Of answers that cost nearly the same, the least is called optimal: a relative gap of 1e-4, the default
       of many solvers, hides the difference.
    5. A hard program ends at its time limit, with a feasible answer or none, and a bound below it.
    6. If the backend's process crashes or hangs, the caller gets a status, and the next solve works. If the
       backend lies about the optimum, the model's certificate refutes it.

    Parameters
    ----------
    backend : str or Backend
        Its name, or its row if it is not in the table.
    recognizes : collection of str
        The statuses out of ``infeasible`` and ``unbounded`` that the solver can detect. Without them it may
        return any status that claims nothing.
    time_limit : float
        Seconds for each solve, but for those that are to be stopped.
    patience : float
        Seconds after a limit until the backend's process is stopped, in part 6.

    Returns
    -------
    int
        How many solves were checked.

    Raises
    ------
    AssertionError
        At the first broken promise; the message names the program and the result. Also if no program was
        solved, as then nothing could have failed.
    ValueError
        If there is no such backend, or it is not installed.

    Examples
    --------
    >>> check_backend("highs") > 15
    True
    """
    row = find(backend)
    checks = (_answers, _claims, _growing, _near_ties, _limits, _failures)
    done = [check(row, time_limit, recognizes, patience) for check in checks]
    return sum(done)


def allowed(backend: Backend, program: Program) -> set[str]:
    """The statuses that a backend's row allows for a program that has an optimum."""
    whole, network = bool(program.integer.any()), backend.network_only
    squares = program.has("quadratic", integer=False) and not backend.quadratic
    if squares or (backend.integers_only and not program.integer.all()):
        return {"unsupported"}
    refusable = {"unsupported"} if network or backend.squares_only else set()
    return {"optimal", *refusable, *(() if backend.integer or not whole else ("relaxed",))}


def _answers(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    solved = []
    for name, (model, best) in MODELS.items():
        found = solve(model, row, time_limit, threads=1)
        what = f"{row.name} on {name!r}: {found}"
        if found.status == "size_limit" or (found.status == "unsupported" and "licence" in found.message):
            continue
        statuses = allowed(row, model.program())
        assert found.status in statuses, f"{what}; expected {' or '.join(sorted(statuses))}"
        if found.status == "optimal":
            solved.append(name)
            assert not model.violations(found.x), f"{what}: the answer breaks {model.violations(found.x)[0]}"
            assert _equal(found.objective, best), f"{what}: the optimum is {best:g}"
            assert found.dual_residual is None or found.dual_residual <= 1e-3, (
                f"{what}: its prices do not prove its answer (dual residual {found.dual_residual:g})"
            )
        else:
            assert found.message, f"{what}: a status other than optimal needs a message"
        assert found.bound is None or found.bound <= best + NEAR * max(1.0, best), (
            f"{what}: its bound {found.bound} lies above the optimum {best:g}"
        )
    assert solved, f"{row.name} solved no program to optimality: {found}"
    return len(MODELS)


def _claims(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    for name, (program, truth) in _without_optimum(row.squares_only).items():
        found = solve(program, row, time_limit, threads=1)
        what = f"{row.name} on {name!r}: {found}"
        assert found.x is None, f"{what}: there is no optimal answer"
        right = {truth} if truth in recognizes else {truth, *NO_CLAIM}
        if row.integers_only or row.network_only or row.squares_only:
            right.add("unsupported")
        assert found.status in right, f"{what}; expected {' or '.join(sorted(right))}"
        assert found.message or found.status == truth, f"{what}: a status without a claim needs a message"
    return 4


def _without_optimum(squares: bool) -> dict[str, tuple[Program, Status]]:
    """Programs without an optimum, and what they are."""

    def pair(lower: float, upper: float, cost: Term, signs: tuple[int, int], most: float) -> Program:
        rows = rows_of("r", (1, 2), ([0, 0], [0, 1], signs), lower, upper)
        return Program("pair", [Block("v", (2,), 0, most, most < INFINITY)], [rows], [cost])

    both = np.arange(2)
    kinds = Term("linear", both, np.array([1, 3])), Term("quadratic", both, 1, np.array([1, 3]))
    first = Term("linear", both, np.array([-1, 0]))
    ray = rows_of("r", (2, 3), ([0, 0, 1], [0, 1, 2], [1, -1, 1]), [0, -INFINITY], [0, -1])
    down = Term("linear", np.arange(3), np.array([-1, 0, 0]))
    return {
        "two numbers below 5 that add up to 30": (pair(30, 40, kinds[squares], (1, 1), 5), "infeasible"),
        "squares of two that add up to 30": (pair(30, 40, kinds[1], (1, 1), 5), "infeasible"),
        "minimize −v with v = w": (pair(0, 0, first, (1, -1), INFINITY), "unbounded"),
        "a ray, but no answer": (Program("ray", [Block("v", (3,))], [ray], [down]), "infeasible"),
    }


def _growing(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    """Two variables as near as possible to 5 and 3, first alone, then with a sum of at most 4."""
    if row.network_only:
        return 0  # takes no rows beyond the network
    kind: Kind = "quadratic" if row.quadratic else "linear"
    target = Term(kind, np.arange(2), 1 if row.quadratic else -1, np.array([5, 3]))
    program = Program("two", [Block("v", (2,), 0, 9, row.integers_only)], [], [target])
    more = rows_of("sum", (1, 2), ([0, 0], [0, 1], [1, 1]), -INFINITY, 4)
    answer, _, _ = worker.run(row, _Grown(program, more), Effort(threads=1), time_limit)
    assert answer.status == "optimal", f"{row.name} after a row was added: {answer.status} ({answer.message})"
    total = float(np.sum(answer.variables))  # type: ignore[arg-type]
    assert abs(total - 4) <= 1e-5, f"{row.name} after the row v₀ + v₁ ≤ 4 was added: the sum is {total:g}"
    return 1


@dataclass(frozen=True, eq=False)
class _Grown:
    """A `solvers.formulation.Formulation`: solve, add rows, and solve again."""

    program: Program
    more: Rows

    def open(self, backend: Backend, effort: Effort) -> Callable[[float | None], Answer]:
        opened = backend.open(self.program, effort)

        def run(seconds: float | None) -> Answer:
            first = opened.run(seconds)
            if first.status != "optimal":
                return first
            opened.add_rows(self.more)
            return opened.run(seconds)

        return run


NEAR_TIES_COST = 8_000_087
"""The optimum of `near_ties`, confirmed by dynamic programming over all pairs of covers in the tests."""


def near_ties() -> Program:
    """Whole numbers that cover two rows, eight in all, at a million each and up to 59 more."""
    rng = np.random.default_rng(1)
    weights, cost = rng.integers(1, 100, (2, 25)), rng.integers(1, 60, 25) + 1_000_000
    row, variable = np.nonzero(weights)
    rows = rows_of(
        "cover", weights.shape, (row, variable, weights[row, variable]), weights.sum(axis=1) // 2, INFINITY
    )
    block = Block("x", (25,), 0, 3, integer=True)
    return Program("near ties", [block], [rows], [Term("linear", np.arange(25), cost)])


def _near_ties(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    if not row.integer or row.network_only:
        return 0
    found = solve(near_ties(), row, time_limit, threads=1)
    what = f"{row.name} on whole numbers that nearly tie: {found}"
    if found.status not in NO_CLAIM:
        assert found.status == "optimal" and found.objective == NEAR_TIES_COST, (  # noqa: PT018
            f"{what}: the optimum is {NEAR_TIES_COST:,}. Is its relative gap (mip_rel_gap, MIPGap, …) 0?"
        )
    return 1


def _limits(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    program = market_split()
    if row.network_only or row.squares_only:
        return 0
    found = solve(program, row, time_limit=0.3, threads=1)
    what = f"{row.name} within 0.3 s of a program that takes hours: {found}"
    right = {"feasible", "time_limit", "relaxed", "numerical", "size_limit"}
    assert found.status in right, f"{what}; expected {' or '.join(sorted(right))}"
    if found.x is not None:
        off = program.matrix @ found.x - program.row_bounds[0]
        assert np.abs(off).max() <= NEAR * 1e3, f"{what}: its answer breaks a row by {np.abs(off).max():g}"
    assert found.bound is None or found.bound <= 0.5, f"{what}: the relaxation's optimum is 0"
    return 1


def market_split() -> Program:
    """Split each row's weight as evenly as possible: answers come at once, a proof takes hours."""
    weight = np.random.default_rng(0).integers(1, 100, (4, 40))
    matrix = np.hstack([weight, np.eye(4), -np.eye(4)])
    half = weight.sum(axis=1) // 2
    at, of = np.nonzero(matrix)
    rows = rows_of("half", matrix.shape, (at, of, matrix[at, of]), half, half)
    most = np.concatenate([np.ones(40), np.full(8, 4000)])
    return Program("split", [Block("v", (48,), 0, most, True)], [rows], [Term("linear", np.arange(40, 48))])


def _failures(row: Backend, time_limit: float, recognizes: Collection[str], patience: float) -> int:  # noqa: ARG001
    """A process that raises, lies and dies; another one that hangs; then the backend itself again."""
    whole = row.integers_only or row.network_only or not row.quadratic
    model, best = MODELS["L1, whole" if whole else "L2"]
    bad = replace(row, module=__name__, separate=False, argument=f"{row.module} {row.argument}".strip())
    program = model.program()

    def made_to(how: str, seconds: float) -> Solution:
        return solve(replace(program, name=how), bad, seconds)

    with _patient(patience):
        for how, status in (("raise", "error"), ("die", "crashed"), ("hang", "time_limit")):
            found = made_to(how, 0.2 if how == "hang" else time_limit)
            what = f"{row.name}, made to {how}: {found}"
            assert found.status == status, f"{what}; expected {status}"
            assert found.message, f"{what}: there is no message"
            assert found.x is None, f"{what}: there cannot be an answer"
            if how == "raise":
                found = made_to("lie", time_limit)
                proved = found.status == "optimal" and model.certificate(found.x).optimal
                assert not proved or _equal(found.objective, best), f"{row.name}, made to lie: it is proved"
    after = solve(model, row, time_limit, threads=1)
    assert after.status not in ("crashed", "error"), f"{row.name}, after another process failed: {after}"
    return 5


@contextmanager
def _patient(seconds: float) -> Iterator[None]:
    before = worker.GRACE_SECONDS
    worker.GRACE_SECONDS = seconds
    try:
        yield
    finally:
        worker.GRACE_SECONDS = before


def _equal(found: Any, best: float) -> bool:
    return found is not None and abs(float(found) - best) <= NEAR * max(1.0, abs(best))


class Session(session.Session):
    """A backend's session that misbehaves as the program's name says: it raises, lies, dies or hangs."""

    def __init__(self, program: Program, effort: Effort, argument: str) -> None:
        module, _, behind = argument.partition(" ")
        self._how = program.name.split()[0]
        stated = replace(program, objective=program.objective[:0]) if self._how == "lie" else program
        opened = import_module(module).Session
        self._real = opened(stated, effort, *((behind,) if behind else ()))

    def add_rows(self, rows: Rows) -> None:
        """Pass the rows on."""
        self._real.add_rows(rows)

    def run(self, seconds: float | None) -> Answer:
        """Misbehave; a lie is any feasible answer, called optimal."""
        if self._how == "raise":
            raise RuntimeError("made to raise")
        if self._how == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self._how == "hang":
            time.sleep(3600)
        answer: Answer = self._real.run(seconds)
        return replace(answer, bound=None, prices=None)
