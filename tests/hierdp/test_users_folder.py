"""A folder with files named as our packages or Python's modules: children import none of them."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import hierdp.verification.verify as verification
from hierdp.bench import problems, runs
from hierdp.cli import main
from hierdp.record.step import NotSolved
from hierdp.verification.judge import FAILURES, broken
from models import Isotonic
from solvers import Solution, process, solve
from tests.marks import quick

ROOT = Path(__file__).parents[2]
NAMES = "models.py", "solvers/__init__.py", "hierdp/__init__.py", "random.py", "json.py", "numpy.py"
HERE = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A user's folder. Whoever imports one of its modules leaves a file behind, then fails."""
    mine = tmp_path / "mine"
    for name in NAMES:
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n1 / 0\n")
    (mine / "in.csv").write_text("town,home\na,1\na,1\nb,2\n")
    monkeypatch.chdir(mine)
    return mine


def hierdp(folder, *arguments, **variables):
    command = [sys.executable, "-P", "-m", "hierdp", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**HERE, **variables}, check=False
    )
    assert not (folder.parent / "imported").exists(), (folder.parent / "imported").read_text()
    assert "Traceback" not in done.stderr
    return done


def test_a_child_imports_nothing_from_the_current_directory(folder):
    """Not even if the parent may, as a notebook does: its own modules are loaded by then."""
    child, line = process.started("tests.hierdp.served:imports")
    line.send(["random", "json", "numpy", "models", "solvers", "hierdp"])
    files = line.recv()
    line.close()
    assert process.ended(child) == "exit status 0"
    assert not [file for file in files if file.startswith(str(folder))]
    assert not (folder.parent / "imported").exists()


def test_a_users_own_modules_come_last(folder, monkeypatch):
    """The current directory is on a notebook's import path: a child finds the user's modules there."""
    (folder / "my_model.py").write_text("VALUE = 7\n")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    child, line = process.started("tests.hierdp.served:imports")
    line.send(["random", "my_model", "hierdp"])
    random, mine, ours = line.recv()
    line.close()
    assert process.ended(child) == "exit status 0"
    assert mine == str(folder / "my_model.py")
    assert not random.startswith(str(folder))
    assert not ours.startswith(str(folder))


def test_the_import_path_of_children(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "GIVEN", [])
    monkeypatch.setattr(sys, "path", ["", "/a", str(tmp_path), "/b"])
    assert process.import_path() == (["/a", "/b"], [str(tmp_path)])
    monkeypatch.setattr(process, "GIVEN", [str(tmp_path), "/b"])  # the user says so
    assert process.import_path() == ([str(tmp_path), "/a", "/b"], [])
    monkeypatch.setattr(process, "GIVEN", [])
    monkeypatch.chdir(ROOT)  # a checkout: our packages are found nowhere else
    assert process.import_path() == ([str(ROOT), "/a", str(tmp_path), "/b"], [])


def test_a_current_directory_that_was_removed(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["", "/a"])
    assert process.import_path() == (["/a"], [])


@pytest.mark.slow
@pytest.mark.parametrize("more", quick([[], ["--workers", "2"]], first=1))
def test_verify_in_a_users_folder(folder, more):
    done = hierdp(folder, "verify", "Chebyshev", "--backends", "highs,cp-sat", "--instances", "2", *more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 solved" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--workers", "2"], ["--method", "M_H", "--backend", "highs"]])
def test_release_in_a_users_folder(folder, more):
    options = ["--levels", "town", "--group", "home", "--max-size", "3", "--epsilon", "1", "--out", "out",
        "--regions-from-data", "--groups-from-data"]  # fmt: skip
    done = hierdp(folder, "release", "group-size", "in.csv", *options, *more)
    assert done.returncode == 0, done.stderr
    assert hierdp(folder, "check", "out").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["PYTHONPATH", "script"])
def test_workers_find_a_users_own_functions(tmp_path, way):
    folder = tmp_path
    (folder / "my_task.py").write_text("def twice(x):\n    return 2 * x\n")
    (folder / "run.py").write_text(
        "from hierdp.execution import each, using\nfrom my_task import twice\n"
        "with using(workers=2):\n    print(list(each(twice, [(3,), (4,)], 'doubling')))\n"
    )
    safe, path = ([], str(ROOT)) if way == "script" else (["-P"], f"{ROOT}{os.pathsep}{folder}")
    done = subprocess.run(
        [sys.executable, *safe, "run.py"], capture_output=True, text=True, cwd=folder,
        env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert done.stdout == "[6, 8]\n", done.stderr


@pytest.mark.parametrize(
    ("solves", "found"),
    [
        ([], []),
        ([("a", "optimal"), ("a", "numerical"), ("b", "time_limit")], []),
        ([("a", "optimal"), ("b", "unsupported"), ("b", "size_limit")], []),
        ([("a", "unsupported")], []),
        ([("a", "optimal"), ("b", "error"), ("b", "optimal")], []),
        ([("a", "optimal"), ("b", "crashed"), ("b", "optimal")], ["b crashed in 1 of 2 solves"]),
        ([("a", "optimal"), ("b", "error")], ["b ended with an error in every solve (1)"]),
        ([("a", "numerical"), ("b", "out_of_memory")], ["every solve by an exact backend failed (2)"]),
        ([("a", "time_limit"), ("b", "numerical")], []),
    ],
)
def test_what_shows_that_backends_do_not_work(solves, found):
    assert broken(solves) == found


def changing(monkeypatch, where, status):
    """Give backends the fast path's answers, and let every solve by HiGHS end with a status."""

    def changed(model, name="fast", *_, **__):
        found, name = solve(model), getattr(name, "name", name)
        if name != "highs":
            return dataclasses.replace(found, backend=name)
        return Solution(name, "1", status, message="not now")

    monkeypatch.setattr(where, "solve", changed)


@pytest.mark.parametrize("status", FAILURES)
def test_verify_ends_with_status_1_if_every_solve_fails(monkeypatch, status):
    changing(monkeypatch, verification, status)
    done = CliRunner().invoke(main, ["verify", "Chebyshev", "--backends", "highs", "--instances", "1"])
    assert done.exit_code == 1
    assert "crashed in 1 of 1" in done.output or "(1)." in done.output


def test_verify_with_a_crash_among_good_solves(monkeypatch):
    changing(monkeypatch, verification, "crashed")
    command = ["verify", "Chebyshev", "--backends", "highs,cp-sat", "--instances", "1"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    assert "highs crashed in 1 of 1 solves." in done.output


BENCHES = [("crashed", [], 1), ("crashed", ["--memory", "8"], 0), ("error", [], 1), ("time_limit", [], 0)]


@pytest.mark.parametrize(("status", "more", "code"), quick(BENCHES, first=1))
def test_a_benchmark_in_which_a_backend_does_not_work(tmp_path, monkeypatch, status, more, code):
    changing(monkeypatch, runs, status)
    monkeypatch.setattr(runs, "probe", lambda _: None)
    monkeypatch.setattr(
        problems, "problems", lambda *_: [problems.Problem("one", Isotonic([2, 1]), "random")]
    )
    out = tmp_path / "r.parquet"
    command = ["bench", "run", "--backends", "highs", "--time-limit", "1",
        "--data", str(tmp_path / "none"), "--out", str(out), *more]  # fmt: skip
    done = CliRunner().invoke(main, command)
    assert done.exit_code == code, done.output
    assert set(runs.read(out)["status"]) == {status}
    assert ("For another attempt, choose another --out" in done.output) == bool(code)


def test_a_solver_that_does_not_work_is_distinguished_from_a_slow_one():
    assert [NotSolved(status, "").broken for status in ("crashed", "error", "time_limit", "numerical")] == [
        True, True, False, False,
    ]  # fmt: skip
