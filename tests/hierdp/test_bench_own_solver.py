"""`hierdp bench run --solver`: programs that read MPS and write `.sol`, and lie, crash or hang."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from hierdp.bench import findings, own_solver, problems, runs
from hierdp.bench.own_solver import OwnSolver
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.verification.judge import KnownBounds, judge
from models import Chebyshev, FixedSum, Isotonic
from solvers import solve, worker

WHOLE = Chebyshev([5, 3], total=4)  # x = (3, 1), at a distance of 2
RIGHT = "solution status: optimal\\nx_0 3\\nx_1 1\\ndistance_0 2"

HIGHS = f"""#!{sys.executable}
import sys
import highspy

problem, solution, seconds = sys.argv[1:]
highs = highspy.Highs()
highs.silent()
for option, value in (("time_limit", float(seconds)), ("mip_rel_gap", 0.0)):
    highs.setOptionValue(option, value)
highs.readModel(problem)
highs.run()
highs.writeSolution(solution, 0)
"""


def program(folder, text, takes=own_solver.FORMS):
    path = folder / "mysolver"
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return OwnSolver.of(path, folder, takes)


@pytest.mark.parametrize(
    ("text", "status", "verdict", "why"),
    [
        (f"printf '{RIGHT}' > $2", "optimal", "solved", ""),
        ("printf 'solution status: optimal\nx_0 4\ndistance_0 3' > $2", "optimal", "wrong", ""),
        ("printf 'solution status: optimal\nx_0 3\nx_1 1\ndistance_0 1' > $2", "optimal", "solved", ""),
        ("echo 'solution status: optimal' > $2", "error", "failed", "breaks a constraint"),
        ("echo 'solution status: infeasible' > $2", "infeasible", "wrong", ""),
        ("echo 'solution status: unbounded' > $2", "unbounded", "wrong", ""),
        (f"printf '{RIGHT}' | tail -n 3 > $2", "feasible", "inaccurate", "makes no claim"),
        ("printf 'solution status: time limit reached\nno solution available' > $2", "time_limit",
         "stopped", ""),
        ("printf 'solution status: optimal\nx_0 nan' > $2", "error", "failed", "in place of a finite number"),
        ("printf 'solution status: optimal\nx_0 2.5\nx_1 1.5\ndistance_0 3' > $2", "numerical",
         "inaccurate", "not whole"),
        ("printf 'solution status: optimal\nx_0 3\ny 1' > $2", "error", "failed", "no variable of the file"),
        ("printf '\\377\\376 nonsense' > $2", "error", "failed", "cannot be read"),
        ("echo '{\"x\": 3}' > $2", "error", "failed", "is no solution file"),
        ("true > $2", "error", "failed", "no values"),
        ("mkdir $2", "error", "failed", "cannot be read"),
        ("true", "error", "failed", "cannot be read"),
        ("echo no memory >&2; exit 3", "error", "failed", "it ended with exit status 3: no memory"),
        ("kill -SEGV $$", "crashed", "failed", "it ended with SIGSEGV"),
        ("#!/no/such/interpreter", "error", "failed", "it cannot be run"),
    ],
)  # fmt: skip
def test_what_a_program_writes_is_judged(tmp_path, text, status, verdict, why):
    found = solve(WHOLE, program(tmp_path, text), 60, 1)
    assert (found.status, judge(found, KnownBounds(2, 2, True))) == (status, verdict), found.message
    assert why in found.message


def test_it_gets_the_problem_the_solution_its_seconds_and_its_threads(tmp_path):
    own = program(tmp_path, f"cp $1 kept.mps; echo $3 $OMP_NUM_THREADS > said; printf '{RIGHT}' > $2")
    solve(WHOLE, own, 60, 3)
    assert (tmp_path / "said").read_text().split() == ["60", "3"]
    assert (tmp_path / "kept.mps").read_text() == WHOLE.program().write(tmp_path / "w.mps").read_text()


def test_an_answer_of_the_problem_before_counts_for_nothing(tmp_path):
    solve(WHOLE, program(tmp_path, f"printf '{RIGHT}' > $2"), 60)
    assert solve(WHOLE, program(tmp_path, "true"), 60).status == "error"


def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.5)
    own = program(tmp_path, "sleep 1000 & echo $! $$ > pids; trap '' TERM; wait")
    found = solve(WHOLE, own, 1.0)
    assert (found.status, judge(found, KnownBounds(2, 2, True), time_limit=1.0)) == ("time_limit", "stopped")
    for pid in (tmp_path / "pids").read_text().split():  # Nobody's child may stay a zombie in a container.
        state = subprocess.run(["ps", "-o", "stat=", pid], capture_output=True, text=True, check=False).stdout
        assert state.strip()[:1] in ("", "Z")
    assert solve(WHOLE, program(tmp_path, f"printf '{RIGHT}' > $2"), 60).status == "optimal"


def test_it_gets_only_what_it_takes(tmp_path):
    assert solve(Isotonic([3.0, 1.0]), program(tmp_path, "true", ["LP", "MILP"]), 60).status == "unsupported"
    found = solve(WHOLE, program(tmp_path, "! grep -q MARKER $1", ["LP"]), 60)  # over the reals
    assert "exit status" not in found.message


@pytest.mark.slow
def test_squares_of_whole_numbers_become_lines_that_are_added_as_needed(tmp_path):
    own = program(tmp_path, HIGHS, ["LP", "MILP"])
    model = FixedSum([90, 40, -70, 30], total=60)
    assert solve(model, own, 300).objective == solve(model).objective
    rows = (tmp_path / "problem.mps").read_text().partition("COLUMNS")[0].splitlines()[3:]
    assert len(set(rows)) == len(rows) > 4 * 17  # a batch of 17 lines for each, and more


def test_what_cannot_be_run_is_named_before_anything_is_run(tmp_path):
    (tmp_path / "text").write_text("")
    for path in (tmp_path / "missing", tmp_path / "text", tmp_path):
        with pytest.raises(InputError, match=f"{path} is not a program that can be run; try chmod"):
            OwnSolver.of(path, tmp_path)
    own = program(tmp_path, "true")
    done = CliRunner().invoke(main, ["bench", "run", "--solver", own.argument, "--takes", "LP,SDP"])
    assert (done.exit_code, "unknown form SDP" in done.output) == (2, True)


@pytest.mark.slow
def test_a_night_ends_with_1_if_a_build_is_wrong_or_solves_less_than_the_last(tmp_path, monkeypatch):
    named = "Chebyshev-seed-0-size-10-0"  # as in the edition
    for module in (problems, findings):
        monkeypatch.setattr(module, "with_no_optimum", lambda *_: [problems.Problem(named, WHOLE, "random")])
    given, out = ["bench", "run", "--data", "none", "--out"], tmp_path / "nights.parquet"

    def night(text):
        own = program(tmp_path, text)
        return CliRunner().invoke(main, [*given, str(out), "--solver", own.argument])

    done = night(HIGHS)
    assert done.exit_code == 0, done.output
    assert "./mysolver" in done.output
    assert "scip" in done.output
    first = runs.read(out)
    assert set(first["verdict"]) == {"solved"}
    assert night(HIGHS).exit_code == 0
    assert len(runs.read(out)) == len(first)  # resumed
    done = night("echo 'solution status: infeasible' > $2")
    assert done.exit_code == 1, done.output
    assert f"is wrong on {named}" in " ".join(done.output.split())
    assert f"no longer solves {named}" in " ".join(done.output.split())
    assert len(runs.read(out)) == 2 * len(first)
    given = ["bench", "reduce", str(out), "--seconds", "5", "--out", str(tmp_path / "found"), "--solver"]
    done = CliRunner().invoke(main, [*given, str(tmp_path / "mysolver")])
    assert done.exit_code == 0, done.output
    assert "infeasible, with 1 variables, 0 rows: there is an answer" in done.output
    assert (tmp_path / "found" / f"mysolver-small-{named}.mps").is_file()
    report = (tmp_path / "found" / f"mysolver-small-{named}.md").read_text()
    assert "minimize" in report.partition("**To reproduce**")[2]
