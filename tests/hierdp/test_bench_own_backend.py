"""`hierdp bench run --backends module:ROW`: a backend of the reader's own, from the current directory."""

import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from hierdp.bench import runs
from hierdp.bench.problems import Problem
from hierdp.cli import main
from models import Chebyshev
from solvers import solve
from solvers.backends.table import named

ROWS = """
from dataclasses import replace

from solvers.backends.table import find

MINE = replace(find("highs"), name="mine")
DIES = replace(find("highs"), name="dies", module="dying_session")
NOTHING = 3
"""

DYING = """
import os

from solvers.backends import session


class Session(session.Session):
    def __init__(self, program, effort):
        os._exit(3)
"""


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """A current directory with the modules, which is not on the import path, as for an installed command."""
    (tmp_path / "rows_of_mine.py").write_text(ROWS)
    (tmp_path / "dying_session.py").write_text(DYING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    sys.modules.pop("rows_of_mine", None)


def test_a_backend_of_ones_own_is_run_and_judged(aside):
    problem = Problem("whole", Chebyshev([5, 3, -2, 7], total=4), "random")
    settings, names = runs.Settings(time_limit=60), ["fast", "rows_of_mine:MINE"]
    rows = runs.run([problem], "small", settings, aside / "r.parquet", names)
    assert rows["backend"].tolist() == ["fast", "mine"]
    assert rows["verdict"].tolist() == ["solved", "solved"]
    assert runs.missing([problem], settings, aside / "r.parquet", names) == 0


def test_its_answers_prove_an_optimum_that_the_fast_path_does_not(aside, monkeypatch):
    """The chosen backends are tried as rows, not by names that no table has."""
    model = Chebyshev([5, 3, -2, 7], total=4)
    late = replace(solve(model), status="feasible")
    monkeypatch.setattr(
        "hierdp.bench.known_optimum.solve", lambda m, b="fast", *a: late if b == "fast" else solve(m, b, *a)
    )
    problem, settings = Problem("whole", model, "random"), runs.Settings(time_limit=60)
    rows = runs.run([problem], "small", settings, aside / "r.parquet", ["rows_of_mine:MINE"])
    assert rows[["proved", "verdict"]].values.tolist() == [[True, "solved"]]


@pytest.mark.usefixtures("aside")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("rows_of_mine:NO", "module 'rows_of_mine' has no attribute 'NO'"),
        ("no_such_module:MINE", "No module named 'no_such_module'"),
        ("rows_of_mine:NOTHING", "rows_of_mine:NOTHING is a int; expected a solvers.Backend"),
    ],
)
def test_what_is_no_backend_is_named_before_anything_is_run(name, why):
    done = CliRunner().invoke(main, ["bench", "run", "--backends", name])
    assert (done.exit_code, why in " ".join(done.output.split())) == (2, True), done.output


def test_a_module_in_the_current_directory_takes_no_others_place(aside):
    (aside / "hierdp.py").write_text("raise RuntimeError('imported')")
    named("rows_of_mine:MINE")
    assert sys.path[-1] == str(aside)


@pytest.mark.slow
@pytest.mark.usefixtures("aside")
def test_the_command_runs_it_and_ends_with_1_if_it_crashes():
    given = ["bench", "run", "--models", "Chebyshev", "--data", "none", "--out", "r.parquet", "--backends"]
    done = CliRunner().invoke(main, [*given, "rows_of_mine:MINE"])
    assert done.exit_code == 0, done.output
    assert "mine" in done.output
    done = CliRunner().invoke(main, [*given, "rows_of_mine:DIES"])
    assert done.exit_code == 1, done.output
    assert "dies crashed in" in done.output
