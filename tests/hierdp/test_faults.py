"""Faults lead to one clear message and no half-written release, and a second run works."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import tasks
from click.testing import CliRunner
from test_execution import sizes, trips

from hierdp import SimulatedNoise, execution
from hierdp.cli import main
from hierdp.cli.app import in_words
from hierdp.execution import folder, journal, resume
from hierdp.mechanisms.group_size import group_size
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import top_down
from hierdp.record.step import NotSolved
from hierdp.tables import sources
from solvers import worker
from solvers.backends import table
from tests.solvers.badly import misbehaving

pytestmark = pytest.mark.slow

TABLE = "town,home\n" + "".join(f"town{i % 9},{i}\n" * (i % 4 + 1) for i in range(60))
SEEN = "--regions-from-data --groups-from-data"
RELEASE = f"release group-size in.csv --levels town --group home --max-size 5 --epsilon 1 --out out {SEEN}"
WAYS = ("lie", "lie well", "break", "die", "eat", "hang")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(TABLE)
    return tmp_path


def run(command):
    done = CliRunner().invoke(main, command.split(), prog_name="hierdp")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def names(where="."):
    return sorted(entry.name for entry in Path(where).iterdir())


# --- solvers that behave badly ---------------------------------------------------------------------------


@pytest.fixture
def bad(monkeypatch):
    rows = tuple(misbehaving(way) for way in WAYS)
    monkeypatch.setattr(table, "EXACT", (*table.EXACT, *rows))
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.3)


SAID = {
    "lie": "pretend to lie calls its answer optimal, but there are better ones",
    "lie well": "pretend to lie well calls its answer optimal, but there are better ones",
    "break": "pretend to break: error; the answer breaks a constraint",
    "die": "pretend to die: crashed; the solver's process died (SIGSEGV)",
    "eat": "pretend to eat: out_of_memory; MemoryError: no more",
    "hang": "pretend to hang: time_limit; stopped: it ran 0.3 s beyond its limit of ",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("bad")
def test_a_release_refuses_a_solver_that_behaves_badly(way):
    command = [*RELEASE.split(), "--method", "M_H", "--backend", f"pretend to {way}"]
    done = CliRunner().invoke(main, [*command, *(["--time-limit", "0.2"] if way == "hang" else [])])
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: nothing was released: consistency of all regions: {SAID[way]}")
    assert done.output.count("\n") == 1
    assert names() == ["in.csv"]
    assert run(f"{RELEASE} --method M_H").exit_code == 0


@pytest.mark.parametrize(
    "job",
    [
        lambda solver: group_size(sizes(), 1.0, SimulatedNoise(1), "M_H", backend=solver.backend),
        lambda solver: group_size(sizes(), 1.0, SimulatedNoise(1), "M_H^r", backend=solver.backend),
        lambda solver: group_size(sizes(), 1.0, SimulatedNoise(1), "M_c", backend=solver.backend),
        lambda solver: group_size(
            sizes(), 9.0, SimulatedNoise(1), "M_dp^OP", backend=solver.backend, window=2
        ),
        lambda solver: top_down(trips(), 1.0, 1e-8, SimulatedNoise(1), "TDA_inf", solver=solver),
    ],
    ids=["M_H", "M_H^r", "M_c", "M_dp^OP", "TDA_inf"],
)
@pytest.mark.parametrize("way", ["lie well", "lie"])
@pytest.mark.usefixtures("bad")
def test_no_method_accepts_a_false_optimum(job, way):
    with pytest.raises(NotSolved):
        job(SolverOptions(f"pretend to {way}"))


@pytest.mark.usefixtures("bad")
def test_verify_detects_a_false_optimum():
    done = run_list(["verify", "Chebyshev", "Isotonic", "--backends", "pretend to lie well", "--size", "9"])
    assert done.exit_code == 1
    assert "wrong" in done.output
    assert "To repeat it: hierdp verify --instance" in done.output


def run_list(command):
    return CliRunner().invoke(main, command, prog_name="hierdp")


def test_a_solver_ends_with_the_process_that_started_it():
    script = (
        "import sys; from solvers import worker, process; from solvers.backends import table\n"
        "from tests.solvers.badly import misbehaving\n"
        "backend = misbehaving('hang'); table.EXACT = (*table.EXACT, backend)\n"
        "from models import Isotonic; from solvers import solve\n"
        "print(worker._worker(backend)._process.pid, flush=True)\n"
        "solve(Isotonic([2, 1], integer=True), backend.name)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    solver = int(process.stdout.readline())
    time.sleep(1)  # it has usually started by now
    process.kill()
    process.communicate()
    until = time.monotonic() + 300
    while Path(f"/proc/{solver}").exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert not Path(f"/proc/{solver}").exists()


# --- disks -----------------------------------------------------------------------------------------------


def test_a_single_file_is_written_atomically():
    kept = Path("v.parquet")
    kept.write_text("from before")

    def half():
        with folder.file_appearing(kept) as aside:
            aside.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert kept.read_text() == "from before"
    with folder.file_appearing(kept) as aside:
        aside.write_text("new")
        assert kept.read_text() == "from before"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("new", 0o644)
    assert names() == ["in.csv", "v.parquet"]


# --- memory ----------------------------------------------------------------------------------------------

STARVED = """
import resource
from click.testing import CliRunner
from hierdp.cli import main
def run(out, size):
    line = f"release group-size in.csv --levels town --group home --max-size {size} --epsilon 1 --simulate 1"
    line += " --regions-from-data --groups-from-data"
    return CliRunner().invoke(main, [*line.split(), "--out", out])
assert run("warm", 5).exit_code == 0
now = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
for more in (2, 8, 32, 64):
    resource.setrlimit(resource.RLIMIT_AS, (now + more * 2**20, -1))
    done = run("out", 500_000)
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(done.exit_code, done.output.splitlines()[-1])
print(run("out", 6).exit_code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how large it is")
def test_memory_that_runs_out():
    done = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # With almost no memory left, anything may fail, including the interpreter.
    short = r"(1 Error: out of memory|70 Error: unforeseen .*); nothing is left half written.*"
    *starved, last = done.stdout.splitlines()
    assert len(starved) == 4
    assert all(re.fullmatch(short, line) for line in starved), starved
    assert starved[-1].startswith("1 ")
    assert last == "0"
    assert names() == ["in.csv", "out", "warm"]


UNDER_A_LIMIT = """
import os, resource
from hierdp.tables.databases import embedded
threads = lambda: len(os.listdir("/proc/self/task"))
embedded()
resource.setrlimit(resource.RLIMIT_AS, (2**46, -1))
before = threads()
under = embedded()
print(threads() - before, under.read_csv("in.csv").count().execute())
"""


def test_a_limit_on_memory_leaves_reading_without_threads():
    done = subprocess.run([sys.executable, "-c", UNDER_A_LIMIT], capture_output=True, text=True, check=False)
    rows = len(Path("in.csv").read_text().splitlines()) - 1
    assert (done.stdout, done.stderr) == (f"0 {rows}\n", "")


def test_a_library_that_reports_another_failure_for_lack_of_memory():
    with pytest.raises(OSError, match="not found") as caught:  # noqa: PT012
        try:
            raise OSError("x.so: failed to map segment from shared object")
        except OSError:
            raise OSError("x.so: not found")  # noqa: B904
    assert in_words(caught.value).message == "out of memory; nothing is left half written"
    assert in_words(OSError("x.so: not found")).message == "x.so: not found; nothing is left half written"


WHILE_LOADING = """
import ctypes, os, signal, sys
from importlib.abc import MetaPathFinder
from hierdp.__main__ import run
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc, cells = ctypes.CDLL(None), (ctypes.c_int * 2)()
def called(one, other):
    signal.raise_signal(signal.SIGINT)
    return 0
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "hierdp.cli":
            libc.qsort(cells, 2, 4, compare(called))
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["--version"]
run()
"""


def test_stopped_in_a_callback_while_modules_are_loaded():
    """Python drops an interrupt there, and prints a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", WHILE_LOADING], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Error: interrupted; nothing is left half written\n"


# --- killed and interrupted ------------------------------------------------------------------------------

TALKING = """
import sys
from hierdp.__main__ import run
try:
    print("go", flush=True)
    run()
except KeyboardInterrupt:
    sys.exit(9)  # between the two lines above
"""


def start(command, script=TALKING):
    return subprocess.Popen(
        [sys.executable, "-c", script, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


LOST = """
import ctypes, signal, sys, time
import click
from hierdp.cli import app
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc, cells = ctypes.CDLL(None), (ctypes.c_int * 2)()
def called(one, other):
    signal.raise_signal(int(sys.argv[1]))
    time.sleep(0)
    return 0
def sort():
    libc.qsort(cells, 2, 4, compare(called))
    print("not heard", flush=True)
    time.sleep(3600)
app.main.commands = {"sort": click.Command("sort", callback=sort)}
app.main(["sort"])
"""


IGNORING = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
"""Runs a command that inherits an ignored Ctrl-C, like a background job."""


@pytest.mark.parametrize(
    ("before", "how", "said"),
    [
        ([], signal.SIGINT, "interrupted"),
        ([], signal.SIGTERM, "terminated"),
        (IGNORING, signal.SIGTERM, "terminated"),
    ],
)
def test_stopped_in_a_callback_from_c(before, how, said):
    """Python prints "Exception ignored" there and continues; interrupts during compilation were once lost."""
    command = [*before, sys.executable, "-c", LOST, str(int(how))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (128 + how, "not heard\n")
    assert done.stderr == f"Error: {said}; nothing is left half written\n"


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), ImportError("numba"), OSError("no")])
def test_interrupt_that_a_library_turns_into_an_error(monkeypatch, error):
    """DuckDB does this in the main thread, and so do extensions while they are loaded."""

    def read(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)
        raise error

    monkeypatch.setattr("hierdp.tables.sources.quietly", read)
    done = run(RELEASE)
    assert (done.exit_code, done.output) == (130, "Error: interrupted; nothing is left half written\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


IGNORED = """
import atexit, os, signal
from solvers import process, worker

pids, run = [os.getpid()], worker.run

def interrupt():
    for pid in pids:
        os.kill(pid, signal.SIGINT)

def interrupted(backend, *rest):
    pids[1:] = [worker._worker(backend)._process.pid]
    interrupt()
    return run(backend, *rest)

worker.run = interrupted
atexit.register(interrupt)  # on the way out; the solvers are stopped after that
from hierdp.__main__ import run as command
command()
"""


def test_an_ignored_interrupt_stays_ignored():
    """The command ignores it until its end, and so do the solvers that it starts."""
    command = [*IGNORING, sys.executable, "-c", IGNORED, *RELEASE.split(), "--method", "M_H"]
    done = subprocess.run([*command, "--backend", "highs"], capture_output=True, text=True, check=False)
    assert (done.returncode, names()) == (0, ["in.csv", "out"]), done.stderr
    heard = subprocess.run([*command[len(IGNORING) :], "--overwrite"], capture_output=True, check=False)
    assert heard.returncode == -signal.SIGINT  # if not ignored, the last one ends the process


READING = """
from hierdp.tables import sources
from hierdp.__main__ import run
quietly = sources.quietly
def misbehaving(action, *rest):
    print("reads", flush=True)
    return quietly(action, *rest)
sources.quietly = misbehaving
run()
"""
LONG = "SELECT 'a' AS town, hash(range) % 7 AS home FROM range(1000000000000)"


@pytest.mark.parametrize(("how", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_stopped_while_the_table_is_read(how, said):
    """DuckDB itself may check for Ctrl-C only after minutes, or never."""
    options = (
        "--levels town --group home --max-size 5 --epsilon 1 --out out --regions-from-data --groups-from-data"
    )
    process = start(["release", "group-size", "--query", LONG, *options.split()], READING)
    assert process.stdout.readline() == "reads\n"
    time.sleep(1)  # DuckDB has usually started by now
    process.send_signal(how)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (128 + how, f"Error: {said}; nothing is left half written\n")
    assert names() == ["in.csv"]


def test_an_interrupt_before_the_query_has_begun(monkeypatch):
    """DuckDB does not notice it then, so it is sent repeatedly until the query has ended."""
    came = []

    def query():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        while len(came) < 3:  # the first two come too early
            time.sleep(0.01)

    connection = SimpleNamespace(name="duckdb", con=SimpleNamespace(interrupt=lambda: came.append(1)))
    monkeypatch.setattr(sources, "engine", lambda _: connection)
    with pytest.raises(KeyboardInterrupt):
        sources.run(SimpleNamespace(to_pyarrow=query))


@pytest.mark.parametrize("workers", [None, 2])
def test_interrupted_while_others_work(workers):
    """Work stops when the caller has been interrupted."""

    def stopped():
        for _ in execution.each(tasks.slow, [(0, 0), (1,)], "sleeping"):
            raise KeyboardInterrupt

    with execution.using(workers=workers):
        with pytest.raises(KeyboardInterrupt):
            stopped()
        assert list(execution.each(tasks.square, [(3,)], "squaring")) == [9]


# --- finished work is not repeated -----------------------------------------------------------------------


def stopped_after(kept, cases, *about):
    def stopped():
        with resume.keeping(kept, *about):
            resume.runs(tasks.noted_row, cases, "squaring")
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        stopped()


def test_interrupted_runs_continue(tmp_path):
    noted, kept = tmp_path / "noted", tmp_path / "kept"
    noted.mkdir()
    cases = [(str(noted), x) for x in range(4)]
    stopped_after(kept, cases[:3], "about")
    assert names(kept) == [resume.RUNS]
    with resume.keeping(kept, "about"):
        rows = resume.runs(tasks.noted_row, cases, "squaring")
        assert len(names(noted)) == 4  # three were done
    assert rows == [[{"x": x, "square": x * x}] for x in range(4)]
    assert not kept.exists()
    assert resume.runs(tasks.noted_row, cases[:1], "squaring") == rows[:1]
    assert len(names(noted)) == 5  # runs are saved only on request


@pytest.mark.parametrize("other", ["settings", "source", "machine", "torn", "other run", "not runs"])
def test_saved_runs_of_other_settings_are_not_used(tmp_path, monkeypatch, other):
    noted, kept = tmp_path / "noted", tmp_path / "kept"
    noted.mkdir()
    case = [(str(noted), 1)]
    stopped_after(kept, case, "about", 1)
    (file,) = kept.iterdir()
    if other == "source":
        monkeypatch.setattr(resume, "fingerprint", lambda: "another")
    if other == "machine":
        monkeypatch.setattr(resume.platform, "node", lambda: "another")
    if other == "torn":
        file.write_text(file.read_text()[:-9])
    if other == "other run":
        file.write_text(json.dumps({"run": "another", "rows": []}))
    if other == "not runs":
        file.write_text('[]\n{"run": []}\n5\n' + "[" * 100_000 + "\n\xff")
    with resume.keeping(kept, "about", 2 if other == "settings" else 1):
        assert resume.runs(tasks.noted_row, case, "squaring") == [[{"x": 1, "square": 1}]]
    assert len(names(noted)) == 2


def test_saved_runs_survive_a_full_disk(tmp_path):
    """Half a line fits; the next run is saved on a line of its own."""
    noted, kept = tmp_path / "noted", tmp_path / "kept"
    noted.mkdir()
    cases = [(str(noted), x) for x in range(3)]
    stopped_after(kept, cases[:1], "about")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((kept / resume.RUNS).stat().st_size + 40, hard))
    try:
        stopped_after(kept, cases[:2], "about")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    stopped_after(kept, cases[2:], "about")
    assert len(names(noted)) == 3
    with resume.keeping(kept, "about"):
        assert len(resume.runs(tasks.noted_row, cases, "squaring")) == 3
    assert len(names(noted)) == 4  # all but the second were saved


def test_saved_runs_leave_other_files_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("years of work")
    with (
        pytest.raises(ValueError, match="is not a folder of finished runs"),
        resume.keeping(tmp_path / "mine"),
    ):
        pass
    with pytest.raises(ValueError, match="create it first"), resume.keeping(tmp_path / "no" / "kept"):
        pass
    assert (tmp_path / "mine" / "thesis").read_text() == "years of work"


VERIFY = "verify Chebyshev Isotonic --backends highs --instances 2 --size 5 --resume kept"


def test_an_interrupted_verify_continues(monkeypatch):
    from hierdp.verification import verify as verification

    solved, good = [], verification.solve

    def counted(model, *rest, **more):
        solved.append(model)
        if len(solved) == 8:
            raise KeyboardInterrupt
        return good(model, *rest, **more)

    monkeypatch.setattr(verification, "solve", counted)
    stopped = run(VERIFY)
    assert stopped.exit_code == 130
    assert "Finished runs are saved in kept; the same command continues from there." in stopped.output
    before = len(journal.read(Path("kept", resume.RUNS)))
    assert before >= 2
    solved.extend([None] * 99)
    more = len(solved)
    done = run(f"{VERIFY} --out v.parquet")
    assert done.exit_code == 0, done.output
    assert "4 models, 4 proved optimal" in done.output
    monkeypatch.setattr(verification, "solve", good)
    assert (
        run("verify Chebyshev Isotonic --backends highs --instances 2 --size 5 --out w.parquet").exit_code
        == 0
    )
    untimed = ["build_seconds", "solve_seconds", "ratio"]
    first, second = (pd.read_parquet(name).drop(columns=untimed) for name in ("v.parquet", "w.parquet"))
    pd.testing.assert_frame_equal(first, second)
    assert len(solved) - more == 3 * (4 - before)  # fast twice and HiGHS once, for each problem not yet done
    assert not Path("kept").exists()


def test_no_release_is_saved_or_resumed():
    """Two releases with exact noise differ, also within `keeping`, which saves nothing of them."""
    from hierdp.api import release

    table = pd.read_csv("in.csv")
    seen = {"regions_from_data": True, "groups_from_data": True}
    with resume.keeping(Path("kept"), "about"):
        made = [
            release(table, "group-size", epsilon=0.01, levels=["town"], group=["home"], max_size=5, **seen)
            for _ in range(2)
        ]
        assert not Path("kept").exists()
    noisy = [[step.model.counts.tolist() for step in one.steps[-1:]] for one in made]
    assert noisy[0] != noisy[1]
