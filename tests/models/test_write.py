"""Answers to written programs cost the same in every reader, including the objective's constant."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from models import ConstrainedInference, CumulativeQIP, HierarchyQIP, Isotonic, SimplexQP
from solvers import solve

KINDS = (SimplexQP, Isotonic, HierarchyQIP, CumulativeQIP, ConstrainedInference)

COSTS = {
    "highspy": """
import highspy
def cost(path, x):
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(path) == highspy.HighsStatus.kOk
    for name, value in x.items():
        i = highs.getColByName(name)[1]
        highs.changeColIntegrality(i, highspy.HighsVarType.kContinuous)  # it takes no squares of whole ones
        highs.changeColBounds(i, value, value)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return highs.getInfo().objective_function_value
""",
    "pyscipopt": """
import pyscipopt
def cost(path, x):
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    of = {variable.name: variable for variable in model.getVars()}
    for name, value in x.items():
        model.chgVarLb(of[name], value)
        model.chgVarUb(of[name], value)
    model.optimize()
    return model.getObjVal()
""",
    "gurobipy": """
import gurobipy
def cost(path, x):
    model = gurobipy.read(path, gurobipy.Env(params={"OutputFlag": 0}))
    for name, value in x.items():
        model.getVarByName(name).LB = model.getVarByName(name).UB = value
    model.optimize()
    return model.ObjVal
""",
}

ASK = """
import json, sys
{}
x = json.loads(sys.argv[2])
print(json.dumps([cost(path, x) for path in json.loads(sys.argv[1])]))
"""


def drawn(kind):
    """An instance with squares, and an answer that is feasible."""
    model = (
        Isotonic([7, 3, 5, 1], integer=True) if kind is Isotonic else kind.random(np.random.default_rng(2), 9)
    )
    return model, solve(model).x


@pytest.mark.parametrize("reader", COSTS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_answer_costs_the_same_in_every_reader(kind, reader, tmp_path):
    if find_spec(reader) is None:
        pytest.skip(f"{reader} is not installed")
    model, x = drawn(kind)
    program = model.program()
    assert program.has("quadratic")
    assert program.variable_names()[0].startswith("x_")
    paths = [str(program.write(tmp_path / f"model{suffix}")) for suffix in (".mps", ".lp")]
    fixed = dict(zip(program.variable_names(), x.ravel().tolist(), strict=False))
    done = subprocess.run(  # in a separate process: these libraries cannot all share a process
        [sys.executable, "-c", ASK.format(COSTS[reader]), json.dumps(paths), json.dumps(fixed)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    best = float(model.objective(x))
    assert json.loads(done.stdout.splitlines()[-1]) == pytest.approx([best, best], rel=1e-6, abs=1e-6)


def test_writing_prints_nothing(tmp_path):
    """HiGHS prints its version when it is first used in a process, unless it is silenced in time."""
    code = f"from models import SimplexQP; SimplexQP([3, -1], 4).program().write({str(tmp_path / 'a.lp')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_only_an_lp_names_the_constant_and_only_where_there_is_one(tmp_path):
    def text(model, name):
        return model.program().write(tmp_path / name).read_text()

    assert "constant = 1" in text(SimplexQP([3, -1], 4), "a.lp")
    assert "constant" not in text(SimplexQP([3, -1], 4), "a.mps")
    assert "constant" not in text(SimplexQP([0, 0], 4), "b.lp")
