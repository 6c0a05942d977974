"""`hierdp bench reduce`: wrong answers become small programs, with a point or a ray that refutes them."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from hierdp.bench import findings, reduce, runs
from hierdp.bench.findings import Reduced, case_of, reduce_results, script
from hierdp.bench.no_optimum import unbounded
from hierdp.bench.problems import Problem
from hierdp.bench.reduce import Case, reduced
from hierdp.cli import main
from models import Chebyshev, ConstrainedInference, HierarchyQIP, Isotonic, StrategySDP, Tree
from models.programs.texts import Stated
from solvers import Solution, solve

TREE = HierarchyQIP(Tree([[0, 0]]), [[9, 3], [1, 5], [1, 1]], 9)
CHEBYSHEV = Chebyshev([5, 3, -2, 7], total=4)


def case(model=TREE):
    return case_of(Problem("one", model, "random"))


def linear(rows, point, **more):
    """A program without costs, with rows that are equations at a point."""
    matrix, at = sp.csr_matrix(np.array(rows, float)), np.array(point, float)
    n, sides = len(point), matrix @ at
    given = {"lower": np.zeros(n), "upper": np.full(n, 10.0), "integer": np.zeros(n, bool),
             "cost": np.zeros(n), "square": np.zeros(n), "least": sides, "most": sides} | more  # fmt: skip
    return Case(
        Stated("p", [f"x{j}" for j in range(n)], constant=0.0, rows=[f"r{i}" for i in range(len(rows))],
               matrix=matrix, **given),
        [Fraction(value) for value in point],
    )  # fmt: skip


@pytest.mark.parametrize("model", [TREE, CHEBYSHEV, Isotonic([0.5, 0.25, 4.0])])
def test_a_case_is_the_program_and_its_point_costs_the_optimum(model):
    one, best = case(model), solve(model)
    assert one.valid
    assert float(one.cost) == pytest.approx(float(best.objective))
    again = solve(one.program(), "highs")
    assert float(again.objective) == pytest.approx(float(one.cost), abs=1e-6)
    assert one.known.high == one.cost


def test_what_is_needed_to_be_wrong_is_left():
    """A solver that calls every program infeasible with a coefficient beyond 2 in a row of two variables."""

    def why(one):
        rows = one.made.matrix.toarray()
        return (
            "there is an answer"
            if any(np.abs(row).max() > 2 and np.sum(row != 0) > 1 for row in rows)
            else ""
        )

    start = linear([[1, 1, 1, 0], [0, 3.25, 1, 0], [0, 0, 1, 1]], [1, 2, 3, 4], cost=np.array([9.5, 1, 2, 3]))
    small = reduced(start, why)
    assert small.valid
    assert why(small)
    assert (len(small.made.columns), len(small.made.rows)) == (2, 1)
    assert small.made.matrix.toarray().tolist() == [[3, 1]]
    assert (small.point, small.made.least.tolist(), small.made.most.tolist()) == ([0, 0], [0], [0])
    assert small.made.cost.tolist() == [0, 0]
    assert np.isinf(small.made.lower).all()
    assert np.isinf(small.made.upper).all()


def test_the_point_stays_feasible_whatever_is_taken_away():
    one = case()
    for gone in ({0}, {0, 3}, {1, 2, 5}):
        other = reduce._without_columns(one, gone)
        assert other.valid
        assert len(other.made.columns) == len(one.made.columns) - len(gone)
        best = solve(other.program(), "highs")
        assert float(best.objective) == pytest.approx(float(other.cost), abs=1e-6)  # the rest is optimal
    rows = reduce._without_rows(one, {0, 1})
    assert rows.valid
    assert len(rows.made.rows) == len(one.made.rows) - 2
    shifted = reduce._shifted(one)
    assert shifted.valid
    assert set(shifted.point) == {0}
    costs = [
        [made.square[0] * x**2 + made.cost[0] * x for x in (at, at + 1, at + 3)]
        for made, at in ((one.made, float(one.point[0])), (shifted.made, 0.0))
    ]
    assert np.diff(costs[0]).tolist() == np.diff(costs[1]).tolist()
    doubled = reduce._changed(one, "matrix", slice(None), lambda value: 2 * value)
    assert doubled.valid
    assert doubled.made.least.tolist() == (2 * one.made.least).tolist()


def test_a_case_that_is_not_exactly_feasible_or_not_wrong_is_refused():
    one = case()
    with pytest.raises(ValueError, match="the answer is not wrong"):
        reduced(one, lambda _: "")
    off = replace(one, point=[value + Fraction(1, 10**9) for value in one.point])
    with pytest.raises(ValueError, match="not exactly feasible"):
        reduced(off, lambda _: "wrong")
    with pytest.raises(ValueError, match="it is not a program"):
        case(StrategySDP.random(np.random.default_rng(0), 4))


def test_variables_that_differ_by_a_constant_become_one():
    one = linear([[1, -1, 0], [1, 1, 1]], [5, 3, 1], cost=np.array([1.0, 2, 3]), square=np.array([2.0, 1, 0]),
                 upper=np.array([10.0, 5, 10]), least=np.array([2.0, 9]),
                 most=np.array([2.0, 9]))  # fmt: skip
    small = reduce._merged(one, 0)
    assert small.valid
    assert (small.made.columns, small.made.rows, small.point) == (["x0", "x2"], ["r1"], [5, 1])
    assert small.made.matrix.toarray().tolist() == [[2, 1]]
    assert (small.made.lower.tolist(), small.made.upper.tolist()) == ([2, 0], [7, 10])
    for at in (4.0, 6.0):  # 2 x0² + x0 + (x0 − 2)² + 2 (x0 − 2), but for a constant
        cost = small.made.square[0] * at**2 + small.made.cost[0] * at
        assert cost == 2 * at**2 + at + (at - 2) ** 2 + 2 * (at - 2)
    assert reduce._merged(one, 1) is None
    assert reduce._merged(replace(one, made=replace(one.made, least=np.array([1.0, 9]))), 0) is None


def test_another_reason_is_another_finding():
    """With fewer variables the answer would be wrong for another reason."""
    small = reduced(case(), lambda one: "first" if len(one.made.columns) == 6 else "second")
    assert len(small.made.columns) == 6


def test_no_solve_is_made_after_its_time():
    calls = []
    small = reduced(case(), lambda _: str(calls.append(1)), seconds=0)
    assert len(calls) == 1
    assert len(small.made.columns) == 6


def test_an_unbounded_program_keeps_its_ray():
    tree = ConstrainedInference(Tree([[0, 0]]), [3, 1, 4], [1, 1, 1])
    none = unbounded(tree, None)
    one = case_of(Problem("none", none.program, "real", none=none))
    assert one.known.unbounded
    small = reduced(one, lambda _: "there is no optimum")
    assert (len(small.made.columns), small.ray) == (1, [-1])
    assert small.valid
    assert not replace(small, ray=[Fraction(0)]).valid


def results(tmp_path, **more):
    """A results file with a wrong row and a solved one."""
    row = dict.fromkeys(runs.COLUMNS, 0) | {
        "problem": "tree", "set": "small", "backend": "cvxpy:clarabel", "tolerance": "default",
        "verdict": "wrong", "time_limit": 60.0, "status": "infeasible",
    }  # fmt: skip
    pd.DataFrame([row | more, row | {"verdict": "solved"}]).to_parquet(tmp_path / "r.parquet")
    return tmp_path / "r.parquet"


@pytest.fixture
def lying(monkeypatch):
    """Clarabel calls programs infeasible that have two variables or more."""

    def lie(program, backend, *_, **__):
        many = len(program.lower) > 1 if hasattr(program, "lower") else program.size > 1
        return Solution(backend.name, "1.0", "infeasible" if many else "optimal")

    monkeypatch.setattr(findings, "solve", lie)
    monkeypatch.setattr(findings, "probe", lambda _: None)
    monkeypatch.setattr(findings, "with_no_optimum", lambda *_: [Problem("tree", TREE, "random")])


@pytest.mark.usefixtures("lying")
def test_a_wrong_row_becomes_a_script_and_two_files(tmp_path):
    (found,) = reduce_results(results(tmp_path), tmp_path / "out", None, None, 60)
    assert (found.backend, found.problem) == ("cvxpy:clarabel", "small-tree")
    assert found.message == "infeasible, with 2 variables, 0 rows: there is an answer"
    assert [path.suffix for path in found.files] == [".py", ".mps", ".lp", ".md"]
    lines = found.files[0].read_text().splitlines()
    assert len(lines) <= 18
    assert lines[0] == '"""clarabel 1.0: infeasible; but there is an answer."""'
    done = subprocess.run([sys.executable, found.files[0]], capture_output=True, text=True, check=True)
    # It does not lie. (An older CVXPY prints first which solvers it does not know.)
    assert any(line.startswith("clarabel: optimal") for line in done.stdout.splitlines())
    assert "feasible: [3.0, 0.0] which costs 0.0" in done.stdout
    report = found.files[3].read_text()
    assert report.startswith("# cvxpy:clarabel: infeasible, but there is an answer\n")
    assert "[3.0, 0.0] is feasible, exactly, and costs 0.0." in report
    assert "\n".join(lines[2:]) in report


@pytest.mark.usefixtures("lying")
def test_problems_are_those_of_the_rows_set(tmp_path):
    (found,) = reduce_results(results(tmp_path, set="medium"), tmp_path / "out", None, None, 60)
    assert (found.problem, len(found.files)) == ("medium-tree", 4)


@pytest.mark.usefixtures("lying")
def test_by_the_command_line(tmp_path):
    line = ["bench", "reduce", str(results(tmp_path)), "--out", str(tmp_path / "out"), "--data", "none"]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output
    assert "cvxpy:clarabel on small-tree: infeasible, with 2 variables" in done.output
    assert str(tmp_path / "out" / "cvxpy-clarabel-small-tree.py") in done.output
    done = CliRunner().invoke(main, [*line[:2], str(results(tmp_path, problem="gone")), *line[3:]])
    assert done.exit_code == 1
    assert "the problem is not in the test sets here" in done.output
    done = CliRunner().invoke(main, [*line, "--backends", "highs"])
    assert (done.exit_code, "clarabel" in done.output) == (0, False)


def shown(model, backend):
    """The script of a program, and what its solver prints."""
    one = case(model)
    found = Solution(backend, "1.0", "optimal", objective=1.0, bound=1.0)
    return script(Reduced(one, found, "a feasible answer costs less", {}))


@pytest.mark.parametrize("model", [Isotonic([3.0, 1.0, 4.0]), CHEBYSHEV, replace(TREE, integer=False)])
@pytest.mark.parametrize("backend", ["cvxpy:clarabel", "qpsolvers:clarabel", "qpsolvers:piqp"])
def test_a_script_states_the_program(tmp_path, model, backend):
    if backend.startswith("qpsolvers"):
        pytest.importorskip("qpsolvers")
        pytest.importorskip(backend.partition(":")[2])
    values = "x.value" if backend.startswith("cvxpy") else "found.x"
    (tmp_path / "a.py").write_text(f"{shown(model, backend)}print({values}.tolist())\n")
    done = subprocess.run([sys.executable, tmp_path / "a.py"], capture_output=True, text=True, check=True)
    values = np.array(json.loads(done.stdout.splitlines()[-1]))
    one = case(model)
    assert float(one.program().value(values)) == pytest.approx(
        float(solve(one.program(), "clarabel").bound), abs=1e-4
    )


def test_a_solver_of_another_library_has_no_script():
    assert shown(TREE, "highs") == ""
