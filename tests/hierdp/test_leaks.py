"""Releases write and print no true count.

Noise is replaced by a large constant, so any true count found in the output was leaked.
"""

import logging
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner
from doubles import Double, everything_in, hierarchy
from rich.console import Console
from test_clustering import Choosing

from hierdp.cli import main
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.execution import progress
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.clustering import METHODS as CLUSTERING
from hierdp.mechanisms.clustering import clustering
from hierdp.mechanisms.count_of_counts import count_of_counts
from hierdp.mechanisms.group_size import group_size
from hierdp.mechanisms.group_size.post_processing import METHODS as GROUP_SIZE
from hierdp.mechanisms.range_query import METHODS as RANGE_QUERY
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.top_down import METHODS as TOP_DOWN
from hierdp.mechanisms.top_down import top_down
from hierdp.privacy.budget import CHOICE, GAUSSIAN, GEOMETRIC, Spend
from hierdp.privacy.noise import ExactNoise
from hierdp.tables import Flows, GroupSizes, databases
from hierdp.tables.binning import Histogram
from tests.marks import quick

SHIFT = 10_000_019
COUNTS = np.array([987_654, 123_457, 40_000_117, 7_654_321])


def shifted(true):
    # Squares, as least squares of measured counts may cancel what increases evenly.
    return true + SHIFT * (1 + np.arange(true.size).reshape(true.shape)) ** 2


class Shifting(Choosing):
    """Counts moved by a large constant, with the cost and the scale of real noise."""

    def __init__(self, choices=()):
        super().__init__(choices, make=shifted)

    def spend(self, query):
        if query.noise == CHOICE:
            return super().spend(query)
        if query.noise == GAUSSIAN:
            scale = query.sensitivity / (2 * query.loss) ** 0.5
            return Spend(query.name, GAUSSIAN, query.sensitivity, scale, None, query.loss, False)
        scale, delta = query.sensitivity / query.loss, None if query.threshold is None else 0.0
        return Spend(query.name, GEOMETRIC, query.sensitivity, scale, query.loss, None, False, delta)

    def draw(self, query, true):
        drawn = super().draw(query, true)
        return drawn if query.threshold is None else replace(drawn, positions=np.arange(true.size))


def numbers_in(text):
    """All whole numbers in a text, with or without separators."""
    joined = re.sub(r"(?<=\d)[,_\u202f\u2009](?=\d{3})", "", text)
    return {int(n) for said in (text, joined) for n in re.findall(r"(?<![\d.])\d{1,30}", said)}


@pytest.fixture
def leaks(tmp_path, caplog, capfd, monkeypatch):
    """The given numbers that appear in what a release writes, logs, prints or shows as progress."""
    caplog.set_level(logging.DEBUG)
    bars = StringIO()
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(progress, "_console", Console(file=bars, force_terminal=True, width=200))

    def found(make, secrets):
        path = make().write(tmp_path / "out")
        printed = numbers_in(
            everything_in(path) + caplog.text + "".join(capfd.readouterr()) + bars.getvalue()
        )
        return sorted(printed & set(map(int, secrets)))

    found.bars = bars
    return found


# --- in Python -------------------------------------------------------------------------------------------


def test_a_leak_is_found(leaks):
    plain = Double()  # without any noise
    printed = leaks(lambda: clustering(Histogram.of(COUNTS), 1.0, plain, "Laplace"), COUNTS)
    assert printed == sorted(COUNTS)


def test_a_leak_in_a_progress_bar_or_a_log_is_found(leaks):
    def make():
        list(progress.steps(range(3), f"at {COUNTS[0]:,}", 3))
        logging.getLogger("hierdp").debug("at %s", COUNTS[1])
        return clustering(Histogram.of(COUNTS), 1.0, Shifting(), "Laplace")

    assert leaks(make, COUNTS) == sorted(COUNTS[:2])


@pytest.mark.parametrize("method", CLUSTERING)
def test_clustering(leaks, method):
    secrets = [*COUNTS, *np.cumsum(COUNTS), *np.cumsum(COUNTS[::-1])]
    assert not leaks(lambda: clustering(Histogram.of(COUNTS), 1.0, Shifting([1, 2]), method), secrets)


@pytest.mark.parametrize("method", RANGE_QUERY)
def test_range_query(leaks, method):
    data = Histogram.of(COUNTS)
    if method.startswith("H_tree"):
        from hierdp.counts.axes import Names

        data = Histogram(COUNTS, (Names.of("town", hierarchy([[0, 0], [0, 0, 1, 1]])),))
    secrets = [*COUNTS, COUNTS[:2].sum(), COUNTS[2:].sum(), COUNTS.sum(), abs(COUNTS[0] - COUNTS[1])]
    assert not leaks(lambda: range_query(data, 1.0, Shifting(), method), secrets)


@pytest.mark.parametrize("method", quick(["Hc", "Hc2", "naive", "bottom-up"], every=3))
@pytest.mark.parametrize("private", [False, True])
def test_count_of_counts(leaks, method, private):
    """Numbers of groups by size are secret; the number of all groups is secret only if it has a budget."""
    places = hierarchy([[0, 0]])
    runs = Runs.from_dense([COUNTS, COUNTS[::-1] + 11]).summed_up(places.tree)
    options = {"group_budget": 0.3} if private else {}
    true = runs.dense(4)
    secrets = np.cumsum(true, axis=1)[:, : 4 if private else 3].ravel()

    def make():
        return count_of_counts(SizeRuns(places, runs), 1.0, Shifting(), method, max_size=3, **options)

    assert not leaks(make, [n for n in (*true.ravel(), *secrets) if n])


@pytest.mark.parametrize("method", ["Hg", "Hg1"])
def test_count_of_counts_by_sizes_in_order(leaks, method):
    """Here the size of each group and the largest size are measured."""
    places = hierarchy([[0, 0]])
    sizes = [[7_654_321, 23_456_789], [34_567_891, 71_234_567]]
    rows = [(np.array(row), np.ones(2, np.int64)) for row in sizes]
    runs = Runs.from_rows([(np.empty(0, np.int64),) * 2, *rows]).between(1, 3).summed_up(places.tree)

    def make():
        return count_of_counts(SizeRuns(places, runs), 1.0, Shifting(), method, size_budget=0.1)

    assert not leaks(make, [size for row in sizes for size in row])


@pytest.mark.parametrize("method", [m for m in GROUP_SIZE if m.startswith(("M_c", "M_H^"))])
def test_group_size(leaks, method):
    places = hierarchy([[0, 0]])
    leaves = np.array([COUNTS // 1000, COUNTS[::-1] // 900])
    data = GroupSizes(places, places.tree.sum_up(leaves))
    true = [*data.counts.ravel(), *np.cumsum(data.counts, axis=1)[:, :-1].ravel()]
    assert not leaks(lambda: group_size(data, 1.0, Shifting(), method), [n for n in true if n > 10_000])


@pytest.mark.parametrize("method", TOP_DOWN)
def test_top_down(leaks, method):
    """The total is public."""
    axes = (hierarchy([[0, 0]], "o"), hierarchy([[0, 0]], "d"))
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    secrets = [*COUNTS, *COUNTS.reshape(2, 2).sum(axis=0), *COUNTS.reshape(2, 2).sum(axis=1)]
    data = Flows(axes, ("from", "to"), cells, COUNTS)
    assert not leaks(lambda: top_down(data, 1.0, 1e-6, Shifting(), method), secrets)


# --- the command line ------------------------------------------------------------------------------------

ROWS = {
    "range-query": ("age,n\n" + "".join(f"{i},{n}\n" for i, n in enumerate(COUNTS)), list(COUNTS)),
    "count-of-counts": (
        "town,home,n\na,1,7654321\na,2,23456789\nb,3,34567891\n",
        [7_654_321, 23_456_789, 34_567_891],
    ),
}
ROWS["clustering"] = ROWS["range-query"]
ROWS["top-down"] = "o,d,n\n" + "".join(f"{i // 2},{i % 2},{n}\n" for i, n in enumerate(COUNTS)), list(COUNTS)
ROWS["tabulation"] = ROWS["count-of-counts"]
OPTIONS = {
    "range-query": ["--numbers", "age=0:4", "--count", "n"],
    "clustering": ["--numbers", "age=0:4", "--count", "n"],
    "top-down": ["--axis", "o=o", "--axis", "d=d", "--count", "n", "--delta", "1e-8", "--regions-from-data"],
    "count-of-counts": [
        *("--levels", "town", "--group", "home", "--entities", "n", "--method", "Hg"),
        *("--regions-from-data", "--groups-from-data"),
        *("--size-budget", "0.1"),
    ],
    "tabulation": [
        *("--levels", "town", "--attribute", "home=1,2,3", "--count", "n", "--delta", "1e-8", "--unbounded"),
        "--regions-from-data",
    ],
}


@pytest.fixture
def no_luck(monkeypatch):
    noise = Shifting()
    for module in drawing():
        monkeypatch.setattr(f"{module}.ExactNoise", lambda: noise)
    return noise


def drawing():
    """The modules that take exact noise by default."""
    yield "hierdp.mechanisms.mechanism"
    yield from (f"{one.module}.mechanism" for one in MECHANISMS.values() if one.kind is None)


@pytest.mark.parametrize("mechanism", OPTIONS)
def test_command_line_reveals_no_count(no_luck, tmp_path, caplog, capfd, mechanism):
    caplog.set_level(logging.DEBUG)
    rows, secrets = ROWS[mechanism]
    (tmp_path / "in.csv").write_text(rows)
    arguments = [*OPTIONS[mechanism], "--epsilon", "1", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["release", mechanism, str(tmp_path / "in.csv"), *arguments])
    assert done.exit_code == 0, done.output
    queried = np.concatenate([true.ravel() for true in no_luck.true])
    assert set(secrets) & set(queried.tolist())  # the secrets were measured, so they could leak
    printed = done.output + everything_in(tmp_path / "out") + caplog.text + "".join(capfd.readouterr())
    assert not numbers_in(printed) & set(map(int, secrets))


SECRET = 98_765_432_123

BAD = [f"-{SECRET}", f"{SECRET}.5", f"{SECRET}x", f"1{'0' * 9}{SECRET}"]


def refusal(mechanism, rows, tmp_path, *options):
    """What is said, logged and raised of a table or an option that must be refused."""
    (tmp_path / "in.csv").write_text("\n".join(rows) + "\n")
    arguments = [*OPTIONS[mechanism], "--epsilon", "1", "--out", str(tmp_path / "out"), *options]
    done = CliRunner().invoke(main, ["release", mechanism, str(tmp_path / "in.csv"), *arguments])
    assert done.exit_code == 2, done.output
    assert not (tmp_path / "out").exists()
    trace, error = [done.output], done.exception
    while error is not None:  # as a debugger or a log of exceptions would print it
        trace.append(repr(error))
        error = error.__cause__ or error.__context__
    return "".join(trace)


def without_separators(text):
    return re.sub(r"[,_]", "", text)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("mechanism", OPTIONS)
def test_errors_about_bad_rows_hold_no_counts(tmp_path, caplog, mechanism, value):
    caplog.set_level(logging.DEBUG)
    head, first, *_ = ROWS[mechanism][0].splitlines()
    fields = first.split(",")[:-1]
    good = SECRET // 10**6
    rows = [head, ",".join([*fields, str(good)]), ",".join([*fields, value])]
    said = refusal(mechanism, rows, tmp_path)
    assert "row 2, column 'n'" in said
    assert not [n for n in (SECRET, good) if str(n) in without_separators(said + caplog.text)]


@pytest.mark.parametrize(
    ("rows", "options", "culprit"),
    [
        (["a,x,{0}", ",x,{0}"], [], "row 2, column 'o'"),
        (["a,x,{1}", "a,x,{1}"], [], "column 'n'"),
        (["a,x,{0}"], ["--count", "m"], "no column 'm'"),
        (["a,x,{0}"], ["--first", "z"], "no axis 'z'"),
        (["a,x,{0}"], ["--unknown", "a"], "'a'"),
    ],
)
def test_errors_about_a_table_and_its_options_hold_no_counts(tmp_path, caplog, rows, options, culprit):
    caplog.set_level(logging.DEBUG)
    rows = ["o,d,n", *(row.format(SECRET, 2**62 + SECRET) for row in rows)]
    said = refusal("top-down", rows, tmp_path, *options)
    assert culprit in said
    said = without_separators(said + caplog.text)
    assert not [n for n in (SECRET, 2**62 + SECRET, 2 * (2**62 + SECRET)) if str(n) in said]


def test_numbers_beyond_the_bins_are_not_quoted(tmp_path):
    for mechanism in ("range-query", "clustering"):
        said = refusal(mechanism, ["age,n", f"1,{SECRET}", f"{SECRET},3"], tmp_path)
        assert "row 2" in said
        assert str(SECRET) not in without_separators(said)


# --- the disk --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_written_but_the_release(tmp_path):
    """System calls show that files are created only in the folder that becomes the release."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    mechanism, home = "clustering", tmp_path / "work"  # all mechanisms write with the same code
    home.mkdir()
    (tmp_path / "in.csv").write_text(ROWS[mechanism][0])
    arguments = [*OPTIONS[mechanism], "--epsilon", "1", "--out", str(home / "out")]
    calls = tmp_path / "calls"
    watched = ["strace", "-f", "-qq", "-o", str(calls), "-s", "1000"]
    watched += ["-e", "trace=open,openat,openat2,creat,memfd_create,rename,renameat,renameat2,link,linkat"]
    # Compiled code goes to caches: it contains no data, and was written earlier.
    program = [sys.executable, "-m", "hierdp", "release", mechanism, str(tmp_path / "in.csv"), *arguments]
    done = subprocess.run([*watched, *program], capture_output=True, text=True, check=False, timeout=600)
    if "ptrace" in done.stderr:
        pytest.skip("no process may be traced here")
    assert done.returncode == 0, done.stderr
    written = set()
    for line in calls.read_text(errors="replace").splitlines():
        failed = re.search(r"= -1 ", line)
        writes = re.search(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|memfd_create|link(at)?|rename(at2?)?)\(", line)
        if writes and not failed and "resumed" not in line:
            written.update(re.findall(r'"([^"]*)"', line))
    assert any(".out.unfinished-" in name for name in written)
    ours = re.compile(rf"{re.escape(str(home))}/(\.out\.unfinished-[\w-]+(/.*)?|out)")
    compiled = re.compile(
        r".*(__pycache__|\.nbi|\.nbc|\.pyc|matplotlib|fontlist|fontconfig).*|/dev/.*|/proc/.*"
    )
    assert not [name for name in written if not ours.fullmatch(name) and not compiled.fullmatch(name)]


def test_duckdb_spills_nothing(tmp_path, monkeypatch):
    """A sort that exceeds its memory fails, rather than writing rows to the disk."""
    import duckdb

    monkeypatch.chdir(tmp_path)

    def sorts(connection):
        connection.execute("SET memory_limit = '60MB'; SET threads = 1")
        rows = "SELECT hash(i) AS h, repeat('x', 40) AS t FROM range(600000) AS r(i)"
        connection.execute(
            f"SELECT sum(n) FROM (SELECT row_number() OVER (ORDER BY h, t) AS n FROM ({rows}))"
        )
        connection.fetchall()

    plain = duckdb.connect(config={"temp_directory": str(tmp_path / "spilt")})
    sorts(plain)  # it does spill where that is allowed
    assert (tmp_path / "spilt").is_dir()
    shutil.rmtree(tmp_path / "spilt")
    monkeypatch.setattr(databases, "_IN_MEMORY", ":memory:")  # limits are those of a whole database
    with pytest.raises(duckdb.OutOfMemoryException):
        sorts(databases.embedded().con)
    assert list(tmp_path.iterdir()) == []


def test_exact_noise_is_what_all_of_them_take():
    """So the fixture above replaces the noise that a release would draw."""
    import importlib

    for module in drawing():
        assert importlib.import_module(module).ExactNoise is ExactNoise
