"""Solvers that need a GPU are skipped with a reason; what cuPDLPx is handed is tested with a stand-in."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from models import Isotonic, Program
from models.programs.terms import Block, Term, rows_of
from solvers.backends import cupdlpx_only, record
from solvers.backends import table as capability
from solvers.backends.table import find, reachable
from solvers.formulation import formulate
from solvers.probe import probe
from solvers.solution import Effort

NAMES = ["cupdlpx", "cvxpy:cuopt"]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_gpu_they_are_skipped_with_a_reason(monkeypatch, name):
    monkeypatch.setattr(record, "has_gpu", lambda: False)
    row = next(one for one in reachable() if one.name == name)
    found = probe(row)
    assert (found.state, "needs an NVIDIA GPU" in found.message) == ("no GPU", True)
    with pytest.raises(ValueError, match=f"{name} cannot run here: it needs an NVIDIA GPU"):
        find(name)


@pytest.mark.parametrize("name", NAMES)
def test_with_a_gpu_they_are_missing_if_not_installed(monkeypatch, name):
    monkeypatch.setattr(record, "has_gpu", lambda: True)
    monkeypatch.setattr(record, "_version", lambda _: "")
    assert probe(next(one for one in reachable() if one.name == name)).state == "not installed"


given = []


class Model:
    """cuPDLPx's interface, as its README describes it, with SciPy's HiGHS behind it."""

    def __init__(self, cost, matrix, lower, upper, least, most):
        self.of = cost, LinearConstraint(matrix, lower, upper), Bounds(least, most)

    def setParams(self, **options):
        given.append(options)

    def optimize(self):
        cost, rows, bounds = self.of
        done = milp(cost, constraints=rows, bounds=bounds)
        self.Status = {0: "OPTIMAL", 2: "PRIMAL_INFEASIBLE", 3: "DUAL_INFEASIBLE"}.get(done.status, "other")
        if done.status == 0:
            self.X, self.DualObj, self.Pi = done.x, done.fun, np.zeros(rows.A.shape[0])


@pytest.fixture(autouse=True)
def _cupdlpx(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupdlpx", SimpleNamespace(Model=Model))


def test_what_cupdlpx_answers():
    row = next(one for one in capability.OTHERS if one.name == "cupdlpx")
    answer = formulate(Isotonic([3, 1, 4], p=1).program(), row).open(row, Effort(tolerance=1e-3))(5.0)
    assert (answer.status, answer.bound) == ("optimal", pytest.approx(2))
    row = formulate(Isotonic([3.0, 1.0, 4.0]).program(), row)
    assert row == "cupdlpx takes no squares of continuous variables"


def test_what_cupdlpx_is_given():
    costs = [Term("linear", np.arange(2), np.array([1.0, 3.0]))]
    opened = cupdlpx_only.Session(Program("p", [Block("v", (2,), 0, 9)], [], costs), Effort())
    opened.add_rows(rows_of("sum", (1, 2), ([0, 0], [0, 1], [1, 1]), 4, np.inf))
    found = opened.run(None)
    assert (found.variables.tolist(), found.bound) == ([4, 0], 4)
    opened.add_rows(rows_of("sum", (1, 2), ([0, 0], [0, 1], [1, 1]), -np.inf, 3))
    found = opened.run(2.0)
    assert (found.status, found.message) == ("infeasible", "cuPDLPx ended with PRIMAL_INFEASIBLE")
    close = {"OutputFlag": False, "OptimalityTol": 1e-9, "FeasibilityTol": 1e-9}
    assert given[-2:] == [close, {**close, "TimeLimit": 2.0}]
    unbounded = cupdlpx_only.Session(
        Program("p", [Block("v", (1,))], [], [Term("linear", np.arange(1), [-1.0])]), Effort()
    )
    unbounded.add_rows(rows_of("any", (1, 1), ([0], [0], [1]), 0, np.inf))
    assert unbounded.run(2.0).status == "unbounded"
