"""Two neighbouring tables: same words on the console, same files.

Each method runs twice from the command line, on a table and on a neighbour, with every progress line and
announcement switched on, and with the steps of a loop counted.

- With the *same answers*, as if the noise made up for the difference of the tables, everything is a function
  of these answers: every byte on standard output, on standard error and in every file must be the same.
  Nothing is normalised but the time: the clock is stopped.
- With the *same random bits*, released numbers differ. The rule of normalisation: every number, with its
  separators, sign and decimals, becomes ``#``, and a fingerprint ``FINGERPRINT``; runs of blanks become one.
  The words, the exit status and the names of the files must be the same.
"""

import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from hierdp.cli import main
from hierdp.execution import progress
from hierdp.mechanisms import MECHANISMS
from hierdp.privacy import noise as noises
from tests.marks import quick

REGIONS = pd.DataFrame({"state": ["A", "A", "B"], "county": ["a", "b", "c"]})
HOMES = pd.DataFrame({"county": ["a", "a", "b", "c", "c"], "home": [1, 2, 3, 4, 5]})
ROWS = pd.DataFrame(
    {
        "county": list("aaabbcccc"),
        "home": [1, 1, 2, 3, 3, 4, 4, 5, 5],
        "n": [7, 40, 9, 30, 8, 50, 60, 7, 9],
        "age": [3, 0, 1, 2, 0, 2, 0, 3, 1],
        "to": list("ccccbbaaa"),
        "kind": list("101000011"),
    }
)
MORE = pd.DataFrame([("b", 3, 1, 1, "a", "1")], columns=["county", "home", "n", "age", "to", "kind"])

AT = ["--regions", "regions.csv", "--region-levels", "state,county", "--levels", "county"]
GROUPS = [*AT, "--group", "home", "--groups", "homes.csv"]
AXES = ["--axis", "from=county", "--axis", "to=to", "--regions-from-data", "--delta", "1e-6"]
BY = {
    "group-size": [*GROUPS, "--max-size", "3"],
    "count-of-counts": [*GROUPS, "--max-size", "9"],
    "top-down": [*AXES, "--count", "n"],
    "tabulation": [*AT, "--attribute", "kind=0,1", "--count", "n", "--delta", "1e-6"],
    "range-query": ["--numbers", "age=0:4"],
    "clustering": ["--numbers", "age=0:4"],
}
TREE = {name: ["--names", "county", "--regions-from-data"] for name in ("H_tree", "H_tree^c")}
FURTHER = [
    ("count-of-counts", "Hc", ["--group-budget", "0.3"]),
    ("count-of-counts", "Hg", ["--group-budget", "0.3", "--size-budget", "0.1"]),
    ("top-down", "InfTDA", ["--unbounded"]),
    ("top-down", "SH", ["--unbounded"]),
    ("tabulation", "TopDown", ["--unbounded"]),
    ("range-query", "H_b^c", ["--person", "home", "--rows-per-person", "1"]),
]


def all_cases():
    for name, mechanism in MECHANISMS.items():
        for method in mechanism.methods if name in BY else ():
            yield name, method.name, []
    yield from FURTHER


CASES = list(all_cases())
IDS = {f"{name} {method} {' '.join(more)}".strip(): (name, method, more) for name, method, more in CASES}


def options_of(name, method, more):
    own = TREE.get(method, BY[name])
    if method == "Quadtree":
        own = [*own, "--numbers", "n=0:64:16"]
    if "--size-budget" in more:
        own = [part for part in own if part not in ("--max-size", "9")]
    if "--group-budget" in more:
        own = [part for part in own if part not in ("--groups", "homes.csv")]
    return [*own, "--epsilon", "2", "--method", method, *more]


def neighbours(name, more):
    """A table, and one that differs in one row that counts one."""
    if name in ("top-down", "tabulation") and "--unbounded" not in more:  # a unit is replaced
        one, other = MORE, MORE.assign(county="c", to="c", kind="0")
        return pd.concat([ROWS, one]), pd.concat([ROWS, other])
    return ROWS, pd.concat([ROWS, MORE.assign(home=1, county="a")])


class Library:
    """In place of OpenDP: measurements that add the same noise to each table, or give the same answers."""

    def __init__(self, same_answers):
        self.rng, self.same = np.random.default_rng(11), same_answers
        self.m = self

    def __getattr__(self, _):
        return lambda *_, **__: None

    def _measured(self, values, loss):
        drawn = self.rng.integers(-3, 4, len(values))
        answers = 20 + 3 * drawn if self.same else drawn + np.asarray(values, dtype=np.int64)
        return answers.tolist(), loss

    def _measure(self, draw, loss):
        class Measure:
            map = staticmethod(loss)

            def __call__(self, values):
                return draw(values)

        return Measure()

    def make_laplace(self, *_, scale):
        return self._measure(lambda values: self._measured(values, 0)[0], lambda reach: reach / scale)

    def make_gaussian(self, *_, scale):
        return self._measure(
            lambda values: self._measured(values, 0)[0], lambda reach: (reach / scale) ** 2 / 2
        )

    def make_noisy_max(self, *_, scale):
        def choose(scores):
            drawn = self.rng.integers(0, 9, len(scores))
            return int(np.argmax(drawn if self.same else drawn + np.asarray(scores)))

        return self._measure(choose, lambda reach: 2 * reach / scale)

    def make_laplace_threshold(self, *_, scale, threshold):
        """Cells that count 5 or more have the answer 2 · threshold; the others, as usual, are dropped."""

        def draw(cells):
            return {at: 2 * threshold + (0 if self.same else n) for at, n in cells.items() if n >= 5}

        return self._measure(draw, lambda reach: (reach[1] / scale, 0.0))


class Stopped(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 1, 1, tzinfo=tz or UTC)


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs a case on a table: the exit status, what is printed, and the files by name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hierdp.tables.persons.secrets.token_hex", lambda _: "a key")
    monkeypatch.setattr("hierdp.record.release.datetime", Stopped)
    monkeypatch.setattr("hierdp.record.step.round", lambda *_: 0.0, raising=False)  # seconds of a solver
    monkeypatch.setattr("hierdp.privacy.noise.processors", lambda: 1)  # draws in one order
    monkeypatch.setattr(noises, "BLOCK", 1)
    monkeypatch.setattr(noises, "MANY", 2)
    monkeypatch.setattr(noises, "SAMPLE", 1)
    REGIONS.to_csv("regions.csv", index=False)
    HOMES.to_csv("homes.csv", index=False)

    def found(name, method, more, table, same_answers):
        for threshold in ("PATIENCE_SECONDS", "LONG_SECONDS", "LONGEST_SECONDS", "ENOUGH"):
            monkeypatch.setattr(progress, threshold, -1.0 if threshold != "ENOUGH" else 9.0)
        monkeypatch.setattr(progress, "duration", lambda _: "a while")
        library = Library(same_answers)
        monkeypatch.setattr(noises, "_OpenDP", lambda: library)
        noises._measurement.cache_clear()
        table.sample(frac=1, random_state=0).to_csv("rows.csv", index=False)
        args = ["release", name, "rows.csv", *options_of(name, method, more), "--out", "out"]
        with pytest.raises(SystemExit) as done:
            main(args)
        shown = capfd.readouterr()
        files = {file.name: file.read_bytes() for file in sorted(tmp_path.glob("out/**/*")) if file.is_file()}
        shutil.rmtree("out", ignore_errors=True)
        noises._measurement.cache_clear()
        return done.value.code, (shown.out, shown.err), files

    return found


def words(texts):
    """The rule of normalisation; see the module."""
    text = "\n".join(texts)
    text = re.sub(r"Fingerprint: \w+", "Fingerprint: FINGERPRINT", text)
    text = re.sub(r"[-−]?\d[\d,.]*(e[-+]?\d+)?", "#", text)
    return re.sub(r"[ \t]+", " ", text)  # columns are as wide as their numbers


SLOW = ("M_", "TDA", "matrix", "naive", "tabulation", "Hc2", "Hg1", "AHP-", "bottom", "InfTDA_large", "H_2")


@pytest.mark.parametrize(
    "case", quick(IDS, slow=lambda case: any(part in case for part in SLOW) and case != "group-size M_c^r")
)
def test_same_answers_give_the_same_bytes(run, case):
    name, _, more = IDS[case]
    (code, shown, files), other = (run(*IDS[case], table, True) for table in neighbours(name, more))
    assert code == 0, shown
    assert shown == other[1]
    assert files.keys() == other[2].keys()
    assert [file for file in files if files[file] != other[2][file]] == []
    assert {"manifest.json", "released.csv", "SHA256SUMS", "report.html"} <= files.keys()


@pytest.mark.parametrize("case", quick(IDS, every=9))
def test_same_random_bits_give_the_same_words(run, case):
    name, _, more = IDS[case]
    (code, shown, files), other = (run(*IDS[case], table, False) for table in neighbours(name, more))
    assert code == other[0] == 0, shown
    one, two = words(shown), words(other[1])
    if case == "clustering DAWA":  # as many levels as the released number of clusters needs
        one, two = (set(text.splitlines()) for text in (one, two))
    assert one == two
    assert files.keys() == other[2].keys()


def test_progress_is_shown_in_these_tests(run):
    """Otherwise the tests above would compare nothing: draws and their number are announced, where public."""
    _, (out, err), _ = run("range-query", "Flat", [], ROWS, True)
    assert "draws of exact noise will take about a while" in out + err
    assert "exact noise: counts by" in out + err


def test_the_number_of_occupied_cells_is_not_shown(run):
    """One more cell that counts 1, below the threshold: SH drew and announced one number more."""
    sparse = MORE.assign(county="a", to="b", n=1)
    (_, shown, files), other = (
        run("top-down", "SH", ["--unbounded"], table, True) for table in (ROWS, pd.concat([ROWS, sparse]))
    )
    assert "exact noise" not in "".join(shown)
    assert (shown, files) == other[1:]


def test_a_leak_of_one_count_is_found(run, monkeypatch):
    """The comparison finds a number of rows on the console, and another in a file."""
    from hierdp.mechanisms.range_query import mechanism

    kept = mechanism.histogram

    def leaking(*given):
        data = kept(*given)
        progress.tell(f"{int(data.counts.sum())} rows")
        return data

    monkeypatch.setattr(mechanism, "histogram", leaking)
    one, other = (run("range-query", "Flat", [], table, True) for table in neighbours("range-query", []))
    assert one[1] != other[1]
    assert one[2] == other[2]
