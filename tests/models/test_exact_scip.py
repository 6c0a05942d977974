"""Exact SCIP's optimum is ours, and hierdp's reader finds its VIPR log right.

EXACT_SCIP names an executable of SCIP 10 that is built with EXACTSOLVE; PySCIPOpt's wheels are not.
"""

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from models.programs.reformulate import Piecewise, without_absolutes, without_tables
from models.witnesses.read_vipr import check_vipr
from solvers import fast

SCIP = os.environ.get("EXACT_SCIP")
MOST = 2_000
"""Problems with more variables or rows take exact SCIP minutes."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SCIP, reason="EXACT_SCIP does not name an exact SCIP")]


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


def solved(program, folder):
    """Exact SCIP's optimum, None if it finds none in a minute; and what its log proves."""
    log = folder / "log.vipr"
    log.unlink(missing_ok=True)
    commands = f"set exact enable TRUE set limits time 60 set certificate filename {log}"
    program.write(folder / "a.lp")
    done = subprocess.run(
        [SCIP, "-c", f"{commands} read {folder / 'a.lp'} opt quit"],
        capture_output=True, text=True, check=False, timeout=1_200,
    )  # fmt: skip
    if "optimal solution found" not in done.stdout:
        return None, done.stdout + done.stderr
    optimum = Fraction(re.search(r"Exact Primal Bound : (\S+)", done.stdout)[1])
    try:
        return optimum, check_vipr(log)
    except ValueError as wrong:
        return optimum, str(wrong)


def cases(which):
    """Problems with whole answers and data, small enough, in lines; and their optima."""
    from hierdp.bench.problems import problems

    for problem in problems(which):
        with suppress(fast.NoFastPath):
            x, witness = fast.answer(problem.model)
            cost = problem.model.certificate(x, witness).objective
            size = getattr(problem.model, "program_size", 0)
            # A file of decimals does not hold weights such as 1/3.
            if (
                not isinstance(cost, int | Fraction)
                or cost.denominator & (cost.denominator - 1)
                or size > MOST
            ):
                continue
            program = problem.model.program()
            program = in_lines(program, x) if program.exactly and program.size <= MOST else None
            if program is not None and program.matrix.shape[0] <= 10 * MOST:
                yield problem.name, program, cost


@pytest.mark.parametrize("which", ["small", "medium"])
def test_exact_scip_agrees_on_the_sets(which, tmp_path):
    """SCIP 10.0.4 leaves the last step out of its log if presolving alone solves the problem."""
    proved, underived, other = 0, 0, {}
    for name, program, cost in cases(which):
        optimum, proof = solved(program, tmp_path)
        if optimum is None and "time limit reached" in proof:
            continue
        if optimum != cost:
            other[name] = (cost, optimum, proof)
        elif proof == "the bound is not derived":
            underived += 1
        elif proof == (cost, cost):
            proved += 1
        else:
            other[name] = (cost, optimum, proof)
    assert not other, (proved, underived)
    assert proved > 10 * max(1, underived)
