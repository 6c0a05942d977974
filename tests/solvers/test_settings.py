"""What each solver is told, by its record; a list of the records loads no solver."""

import subprocess
import sys

import pytest

from models import FixedSum, Isotonic
from solvers import solve
from solvers.backends.gurobi import GUROBI
from solvers.backends.known import COPT, CPLEX, DAQP
from solvers.backends.record import KEPT, Solver, kept
from solvers.backends.table import EXACT, LIBRARIES, OTHERS, find, reachable
from solvers.solution import Effort

SOLVERS = {row.name: row.solver for row in (*EXACT, *OTHERS)}
for library, module in LIBRARIES.items():
    SOLVERS |= {f"{library}:{name}": solver for name, solver in module.SOLVERS.items()}
PLAIN = Effort()
PACKAGES = "highspy ortools cvxpy pyomo qpsolvers gurobipy pyscipopt cupdlpx clarabel osqp scs piqp"


def test_importing_solvers_and_its_catalogue_loads_no_solver():
    code = f"""
import sys
from solvers.backends import table
assert len(table.reachable()) > 40
print(*set("{PACKAGES}".split()) & {{name.partition(".")[0] for name in sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_names_are_told_once_and_find_their_rows():
    rows = reachable()
    assert len({row.name for row in rows}) == len(rows)
    assert len({(row.module, row.argument.lower()) for row in rows}) == len(rows)
    assert all(find(row.name) == row for row in rows if row.installed and not row.lacks)
    assert {row.module.rpartition(".")[0] for row in rows} == {"solvers", "solvers.backends"}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_record_tells_each_limit_by_one_of_its_own_options(name):
    """Each part of an effort changes what it names, and nothing else."""
    solver, plain = SOLVERS[name], SOLVERS[name].options(Effort())

    def changed(effort=PLAIN, seconds=None):
        told = solver.options(effort, seconds=seconds)
        if solver.together:
            ((outer, told),) = told.items()
            assert outer == solver.together
        before = plain[solver.together] if solver.together else plain
        assert before.keys() <= told.keys()
        return {key: value for key, value in told.items() if key not in before or before[key] != value}

    assert not changed()
    assert changed(seconds=2.5) == ({solver.seconds: 2.5} if solver.seconds else {})
    assert changed(seconds=0) == ({solver.seconds: 0.01} if solver.seconds else {})
    assert changed(Effort(threads=3)) == ({solver.threads: 3} if solver.threads else {})
    assert changed(Effort(presolve=False)) == solver.no_presolve
    within = {key: min(max(1e-5, least), most) for key, (least, most) in solver.tolerances.items()}
    assert changed(Effort(tolerance=1e-5)) == within
    assert all(least < most for least, most in solver.tolerances.values())
    assert not solver.absolute or solver.settings[solver.absolute] == 1e-9


def test_tolerances_stay_in_their_range():
    for wished, told in ((1e-9, 1e-6), (1e-3, 1e-3), (5.0, 1.0)):
        assert DAQP.options(Effort(tolerance=wished))["primal_tol"] == told


def test_no_absolute_tolerance_is_below_what_doubles_keep():
    large, small = (FixedSum([size, 0], total=size, p=1).program() for size in (2**40, 9))
    assert kept(small) == 9 * KEPT
    assert kept(large) == 1e-6
    for solver in (GUROBI, COPT, CPLEX):
        assert solver.options(Effort(), large)[solver.absolute] == 1e-6
        assert solver.options(Effort(), small)[solver.absolute] == 1e-9
    assert Solver().options(Effort(threads=2, tolerance=1e-3, presolve=False), large, 1.0) == {}


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in reachable() if row.tolerant], ids=lambda row: row.name)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_every_solver_takes_all_that_it_is_told(row, tolerance):
    """All options exist: a solver that does not know an option fails with a message."""
    if not row.installed or row.lacks:
        pytest.skip("not installed")
    model = Isotonic([5.0, 3.0, 4.0], p=2 if row.quadratic else 1, integer=row.integers_only)
    found = solve(model, row, 30, threads=1, tolerance=tolerance, presolve=not row.presolves)
    assert found.status in ("optimal", "feasible", "numerical", "relaxed", "time_limit"), found
    assert "Error" not in found.message
    if found.status == "optimal":
        assert float(found.objective) == pytest.approx(2, abs=max(1e-6, 100 * tolerance))
