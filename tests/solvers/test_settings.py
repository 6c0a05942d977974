"""The settings that limit a solver's effort: tolerances and presolve, as far as it takes them."""

import pytest

from models import Isotonic
from solvers import solve
from solvers.backends.table import find, reachable
from solvers.effort import tolerances


def test_tolerances_of_daqp_stay_in_its_range():
    assert tolerances("DAQP", 1e-9) == {"primal_tol": 1e-6}
    assert tolerances("DAQP", 1e-3) == {"primal_tol": 1e-3}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cvxpy:cplex", "cvxpy:copt", "cvxpy:qoco", "qpsolvers:copt"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_tolerances_and_presolve_are_taken(name, tolerance):
    row = next(one for one in reachable() if one.name == name)
    if not row.installed:
        pytest.skip("not installed")
    found = solve(Isotonic([3.0, 1.0, 4.0]), name, tolerance=tolerance, presolve=not row.presolves)
    assert found.status == "optimal", found
    assert found.objective == pytest.approx(2, abs=max(1e-6, 10 * tolerance))
    assert find(name).tolerant
