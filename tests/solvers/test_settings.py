"""The settings of solvers: the table lists what the backends use, and the solvers' own values are theirs."""

from importlib.metadata import version
from pathlib import Path

import pytest

from models import Isotonic
from solvers import settings, solve
from solvers.backends.table import find, reachable
from solvers.effort import OPTIONS, WITHOUT_PRESOLVE, tolerances

ROOT = Path(__file__).parents[2]


def test_every_setting_is_documented():
    named = {*settings.CVXPY, *map(str.upper, settings.QPSOLVERS), *OPTIONS, *WITHOUT_PRESOLVE}
    named |= {name.partition("_")[0].upper() for name in settings.PYOMO}
    assert named <= {*settings.DOCUMENTED}
    for solver, about in settings.DOCUMENTED.items():
        assert about.source.startswith("https://")
        ours = {
            name.replace("_", ".") for defaults in settings.interfaces(solver).values() for name in defaults
        }
        if "not run" not in about.remark:
            assert ours == {name.replace("_", ".") for name in about.own}, solver


def test_every_reachable_solver_is_listed():
    solvers = {(one.argument or one.name).removesuffix("_direct").upper() for one in reachable()}
    assert solvers - {"FAST", "EXACT-SCIP"} <= {*settings.DOCUMENTED}  # neither has settings


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


def _highs():
    import highspy

    solver = highspy.Highs()
    return lambda name: solver.getOptionValue(name)[1]


def _gurobi():
    import gurobipy

    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    return lambda name: model.getParamInfo(name)[5]


def _scip():
    import pyscipopt

    return pyscipopt.Model().getParam


def _osqp():
    import osqp

    own = osqp.OSQP()
    defaults = own.ext.OSQPSettings()
    own.ext.osqp_set_default_settings(defaults)
    return lambda name: getattr(defaults, name)


def _copt():
    import coptpy

    model = coptpy.Envr().createModel()
    return lambda name: model.getParamInfo(name)[2]


def _cplex():
    import cplex

    solver = cplex.Cplex()

    def value(name):
        at = solver.parameters
        for part in name.split("."):
            at = getattr(at, part)
        return at.default()

    return value


def _piqp():
    import piqp

    return lambda name: getattr(piqp.SparseSolver().settings, name)


def _qpalm():
    import qpalm

    return lambda name: getattr(qpalm.Settings(), name)


def _proxqp():
    from proxsuite import proxqp

    return lambda name: getattr(proxqp.dense.QP(1, 0, 1).settings, name)


PACKAGES = {"HIGHS": _highs, "GUROBI": _gurobi, "SCIP": _scip, "OSQP": _osqp, "COPT": _copt, "CPLEX": _cplex,
            "PIQP": _piqp, "QPALM": _qpalm, "PROXQP": _proxqp}  # fmt: skip


REVIEWED = {
    "HIGHS": ("highspy", "1.15.1"),
    "GUROBI": ("gurobipy", "13.0.3"),
    "SCIP": ("PySCIPOpt", "6.3.0"),
    "OSQP": ("osqp", "1.1.3"),
    "COPT": ("coptpy", "8.0.7"),
    "CPLEX": ("cplex", "22.2.0.1"),
    "PIQP": ("piqp", "0.7.0"),
    "QPALM": ("qpalm", "1.3.0"),
    "PROXQP": ("proxsuite", "0.8.0"),
}
"""The packages and versions whose own values are listed; other versions may have others."""


@pytest.mark.slow
@pytest.mark.parametrize("solver", PACKAGES)
def test_the_installed_package_has_the_values_called_its_own(solver):
    try:
        value = PACKAGES[solver]()
    except ImportError:
        pytest.skip("not installed")
    package, reviewed = REVIEWED[solver]
    if (installed := version(package)) != reviewed:
        pytest.skip(f"{package} {installed}; reviewed was {reviewed}")
    for name, own in settings.DOCUMENTED[solver].own.items():
        assert float(value(name)) == pytest.approx(float(own)), name
