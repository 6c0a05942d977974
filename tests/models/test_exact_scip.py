"""Exact SCIP finds our optimum, and hierdp's reader its VIPR log right, where PySCIPOpt solves exactly."""

import math
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from models.programs.reformulate import Piecewise, without_absolutes, without_tables
from models.witnesses.read import terms
from models.witnesses.read_vipr import check_vipr
from solvers import fast
from solvers.backends.table import OTHERS
from solvers.solution import Effort

EXACT_SCIP = next(one for one in OTHERS if one.name == "exact-scip")
MOST = 2_000
"""Problems with more variables or rows take exact SCIP minutes."""

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _exact_scip():
    """Skip without it. Asked when a test runs: its process starts, and may fail."""
    if not EXACT_SCIP.installed:
        pytest.skip(f"no exact SCIP: {EXACT_SCIP.failure or EXACT_SCIP.install}")


def in_lines(program, x):
    """The program with linear costs; squares are lines within 8 of the answer, nowhere above them."""
    program = without_absolutes(without_tables(program))
    if not program.has("quadratic"):
        return program
    if program.has("quadratic", integer=False):
        return None
    lines = Piecewise(program)
    near = lines.lines_near(np.asarray(x, float).ravel()[lines.index], reach=8)
    return replace(lines.base, rows=[*lines.base.rows, near])


def solved(program, log):
    """Exact SCIP's optimum, or the status if it finds none in a minute; and what its log proves."""
    opened = EXACT_SCIP.open(program, Effort())
    opened.log = log
    answer = opened.run(60)
    if answer.status != "optimal":
        return answer.status, answer.message
    try:
        return answer.bound, check_vipr(log)
    except ValueError as wrong:
        return answer.bound, str(wrong)


def common(program):
    """The greatest common divisor of the costs, which may be fractions."""
    _, costs, _ = terms(program, "linear")
    return Fraction(math.gcd(*costs.number.tolist()), costs.unit)


def cases(which):
    """Problems with whole answers and data, small enough, in lines; and their optima."""
    from hierdp.bench.problems import problems

    for problem in problems(which):
        with suppress(fast.NoFastPath, ValueError):  # of programs with millions of variables
            x, witness = fast.answer(problem.model)
            cost = problem.model.certificate(x, witness).objective
            size = getattr(problem.model, "program_size", 0)
            if not isinstance(cost, int | Fraction) or size > MOST:
                continue
            program = problem.model.program()
            program = in_lines(program, x) if program.exactly and program.size <= MOST else None
            if program is not None and program.matrix.shape[0] <= 10 * MOST:
                yield problem.name, program, cost


@pytest.mark.parametrize("which", ["small", "medium"])
def test_exact_scip_agrees_on_the_sets(which, tmp_path):
    """SCIP 10.0.4 leaves the last step out of its log if presolving alone solves the problem.

    Where a disjunction is over an aggregated variable, the log may have a coefficient of +infinity. Costs in
    the log may be divided by their greatest common divisor.
    """
    proved, unfinished, other = 0, 0, {}
    for name, program, cost in cases(which):
        optimum, proof = solved(program, tmp_path / "log.vipr")
        if optimum in ("time_limit", "feasible"):
            continue
        if optimum != cost:
            other[name] = (cost, optimum, proof)
        elif proof in ("the bound is not derived", "Invalid literal for Fraction: '+infinity'"):
            unfinished += 1
        elif proof == (cost, cost) or proof == (cost / common(program),) * 2:
            proved += 1
        else:
            other[name] = (cost, optimum, proof)
    assert not other, (proved, unfinished)
    print(f"{which}: {proved} proved by the log too, {unfinished} logs prove nothing")
    assert proved > 10 * max(1, unfinished)
