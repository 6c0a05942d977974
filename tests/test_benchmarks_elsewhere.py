"""Our problems in other people's harnesses: qpbenchmark's and benchopt's, where they are installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hierdp.bench.problems import problems

FOLDER = Path(__file__).parents[1] / "benchmarks"
PROBLEM = "small-ConstrainedInference-seed-0-size-10-0"

pytestmark = pytest.mark.slow


def run(folder, *command):
    for package in ("qpbenchmark", "benchopt"):
        if package in command[:2] and importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package}: pip install {package}")
    path = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, text=True, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_qpbenchmark_has_the_benchmarks_problems():
    frame = pd.read_parquet(FOLDER / "qpbenchmark" / "problems.parquet").set_index("name")
    assert len(frame) == 40
    (model,) = (one.model for one in problems("small") if f"small-{one.name}" == PROBLEM)
    row, variables = frame.loc[PROBLEM], np.arange(1.0, frame.loc[PROBLEM, "q"].size + 1)
    square = row["P"].reshape(variables.size, -1)
    found = variables @ square @ variables / 2 + row["q"] @ variables + row["constant"]
    assert found == pytest.approx(float(model.program().value(variables)), rel=1e-12)  # a sum of 11 squares
    assert Fraction(row["optimum"]) == Fraction(1369, 77)


def test_the_released_qpbenchmark_runs_them_and_the_exact_gap_is_beside_its_metrics(tmp_path):
    pytest.importorskip("qpbenchmark")
    folder = shutil.copytree(FOLDER / "qpbenchmark", tmp_path / "alone")
    given = "--problem", PROBLEM, "--solver", "clarabel"
    run(tmp_path, folder / "exactly.py", "--results-path", "r.csv", *given)
    rows = pd.read_csv(tmp_path / "r.csv")
    assert set(rows["settings"]) == {"default", "low_accuracy", "mid_accuracy", "high_accuracy"}
    assert rows["found"].all()
    assert (rows["exact_gap"].abs() < 1e-3).all()
    report = (tmp_path / "r.md").read_text()
    for title in ("## Results by settings", "### Success rate", "### Exact gap"):
        assert title in report
    assert "exact_gap" in rows
    alone = "-m", "qpbenchmark.benchmark", "--results-path", "q.csv", folder / "hierarchical_counts.py"
    run(tmp_path, *alone, "run", "--author", "nobody", *given)
    assert len(pd.read_csv(tmp_path / "q.csv")) == 4


@pytest.mark.parametrize(
    ("name", "data", "solvers"),
    [
        (
            "isotonic",
            "simulated[n=30]",
            {"hierdp", "SciPy", "scikit-learn", "R", "HiGHS", "OSQP", "Clarabel"},
        ),
        ("hierarchy", "simulated[depth=1]", {"hierdp", "HiGHS", "OSQP", "Clarabel"}),
    ],
)
def test_benchopt_runs_them(tmp_path, name, data, solvers):
    pytest.importorskip("benchopt")
    folder = shutil.copytree(FOLDER / "benchopt" / name, tmp_path / name)  # links become files
    run(tmp_path, "-m", "benchopt", "run", folder, "-d", data, "-n", 1, "-r", 1, "--no-plot", "--no-html")
    (made,) = (folder / "outputs").glob("*.parquet")
    rows = pd.read_parquet(made)
    rows["solver"] = rows["solver_name"].str.partition("[")[0]
    assert solvers - set(rows["solver"]) <= {
        "scikit-learn",
        "R",
        "OSQP",
        "Clarabel",
    }  # those that are optional
    ours = rows[rows["solver"] == "hierdp"]
    assert (ours["objective_gap"].abs() < 1e-12).all()  # the optimum itself, in doubles
    others = rows[~rows["solver_name"].str.contains("eps=0.001")]
    assert (others[["objective_gap", "objective_violation"]].abs() < 1e-5).all(axis=None)
