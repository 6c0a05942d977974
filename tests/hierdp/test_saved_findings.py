"""Findings are shown and saved at once; a second run continues, and never mixes up findings."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import audit as package
from hierdp.audit import CASES, Finding, audit, exactly, saved_findings
from hierdp.audit.events import Claim, Condition, Event
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.privacy.noise import SimulatedNoise

pytestmark = pytest.mark.slow

RUNS = 12


@pytest.fixture(autouse=True)
def one_source(monkeypatch):
    """Keep the fingerprint of hierdp's source fixed, in case somebody edits it during a test."""
    monkeypatch.setattr(saved_findings, "fingerprint", lambda: "as it is")


def case_of(mechanism, method, change=""):
    return next(c for c in CASES if (c.mechanism, c.method) == (mechanism, method) and change in c.change)


SOME = [case_of("clustering", "NF"), case_of("top-down", "VanillaGauss"), case_of("range-query", "Flat")]
"""Two cases that claim ε, and one that claims ρ."""


def counted(cases, made):
    """The same cases, which record when they are run."""

    def of(case):
        def run(table, noise):
            made.append(case.name)
            return case.run(table, noise)

        return replace(case, run=run)

    return [of(case) for case in cases]


def facts(found):
    """The findings, with each case replaced by its name."""
    return [replace(line, case=line.case.name) for line in found]


def test_saved_findings_equal_the_originals(tmp_path):
    """They are equal to the last digit, and nothing is run again."""
    out, made = tmp_path / "a.parquet", []
    expected = facts(audit(SOME, 100, seed=3))
    cases = counted(SOME, made)
    assert facts(audit(cases, 100, seed=3, results=out)) == expected
    made.clear()
    again = list(audit(cases, 100, seed=3, results=str(out)))
    assert facts(again) == expected
    assert [line.case for line in again] == cases
    assert [type(line.rho) for line in again] == [type(None), float, type(None)]
    assert not made
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("swapped", [True, False])
def test_an_event_is_kept_in_full(tmp_path, swapped):
    """All conditions and weights are saved (only a few are printed), and the table where it is likelier."""
    far = Condition((('count[Zürich "1"]', -3), ("noisy[2]", 100), ("a", 1), ("b", 1)), 0.1 + 0.2, True)
    event = Event((far, *(Condition((("c", 1),), float(i), False) for i in range(4))), swapped)
    found = Finding(SOME[0], Claim(2.0, 0.01, 1 / 3), "any", math.pi, math.e, event, RUNS, math.inf)
    chosen = [(SOME[0], saved_findings.settings(SOME[0], RUNS, 1e-5, SimulatedNoise, 0))]
    out = tmp_path / "a.parquet"
    assert list(saved_findings.findings(out, chosen, lambda _: found)) == [found]
    assert list(saved_findings.findings(out, chosen, lambda _: pytest.fail("made again"))) == [found]
    assert list(pd.read_parquet(out)["over"]) == [True]


def test_the_file_of_findings_is_readable(tmp_path):
    out = tmp_path / "a.parquet"
    (line,) = audit(SOME[:1], RUNS, results=out)
    (row,) = pd.read_parquet(out).to_dict("records")
    assert list(row) == saved_findings.COLUMNS
    said = row["mechanism"], row["method"], row["change"], row["event"], row["runs"], row["noise"]
    case = SOME[0]
    assert said == (
        *case.name.split(),
        case.change,
        str(line.event),
        RUNS,
        "hierdp.privacy.noise.SimulatedNoise",
    )
    assert (row["claimed_epsilon"], row["epsilon"], row["over"]) == (2.0, line.epsilon, False)


def test_an_interrupted_audit_continues(tmp_path):
    out, made = tmp_path / "a.parquet", []

    def stop(*_):
        raise KeyboardInterrupt

    first = counted(SOME, made)
    with pytest.raises(KeyboardInterrupt):
        list(audit([*first[:2], replace(first[2], run=stop)], RUNS, results=out))
    assert len(pd.read_parquet(out)) == 2
    made.clear()
    found = list(audit(first, RUNS, results=out))
    assert facts(found) == facts(audit(SOME, RUNS))
    assert set(made) == {SOME[2].name}


def test_each_finding_is_saved_before_the_next_starts(tmp_path):
    out = tmp_path / "a.parquet"
    found = audit(SOME, RUNS, results=out)
    next(found)
    lines = (tmp_path / ".a.parquet.journal").read_text().splitlines()
    assert [json.loads(line)["method"] for line in lines if line] == ["NF"]
    found.close()
    assert pd.read_parquet(out)["method"].tolist() == ["NF"]


OTHERS = {
    "runs": {"runs": RUNS + 1},
    "confidence": {"confidence": 0.99},
    "seed": {"seed": 1},
    "noise": {"source": exactly},
    "how many share the confidence": {"cases": SOME[:2]},
    "the change": {"cases": [replace(SOME[0], change="another")]},
    "the method": {"cases": [replace(SOME[0], method="other")]},
    "the mechanism": {"cases": [replace(SOME[0], mechanism="other")]},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_settings_add_rows(tmp_path, other):
    """Rows that existed before are found again."""
    out = tmp_path / "a.parquet"
    usual = {"cases": SOME[:1], "runs": RUNS}
    before = facts(audit(**usual, results=out))
    settings = usual | other
    made = []
    settings["cases"] = counted(settings["cases"], made)
    assert facts(audit(**settings, results=out)) == facts(audit(**(usual | other)))
    assert set(made) == {case.name for case in settings["cases"]}
    assert len(pd.read_parquet(out)) == 1 + len(settings["cases"])
    made.clear()
    assert facts(audit(counted(SOME[:1], made), RUNS, results=out)) == before
    assert not made


def test_another_source_of_hierdp_adds_rows(tmp_path, monkeypatch):
    out, made = tmp_path / "a.parquet", []
    list(audit(SOME[:1], RUNS, results=out))
    monkeypatch.setattr(saved_findings, "fingerprint", lambda: "mended")
    list(audit(counted(SOME[:1], made), RUNS, results=out))
    assert made
    assert pd.read_parquet(out)["code"].nunique() == 2


def test_a_slow_case_is_known_by_the_runs_it_makes(tmp_path):
    out, slow = tmp_path / "a.parquet", replace(SOME[0], fewer=2)
    list(audit([slow], 24, results=out))
    assert pd.read_parquet(out)["runs"].tolist() == [12]
    list(audit([SOME[0]], 12, results=out))
    assert len(pd.read_parquet(out)) == 1


@pytest.mark.parametrize("what", ["no Parquet", "another table"])
def test_other_files_are_not_changed(tmp_path, what):
    out = tmp_path / "mine.parquet"
    if what == "no Parquet":
        out.write_text("my notes")
    else:
        pd.DataFrame({"problem": ["a"], "backend": ["b"]}).to_parquet(out)
    before = out.read_bytes()
    with pytest.raises(InputError, match=r"mine\.parquet"):
        list(audit(SOME[:1], RUNS, results=out))
    done = CliRunner().invoke(main, ["audit", "Laplace", "--runs", "10", "--out", str(out)])
    assert done.exit_code == 2
    assert "mine.parquet" in done.output
    assert "Stopped" not in done.output
    assert out.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_findings_that_cannot_be_saved_are_refused_before_they_run(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        audit(SOME, RUNS, results=tmp_path / "none" / "a.parquet")
    with pytest.raises(InputError, match="cannot be saved, because it has no name"):
        audit(SOME, RUNS, source=lambda seed: SimulatedNoise(seed), results=tmp_path / "a.parquet")


# --- the command -----------------------------------------------------------------------------------------

KILLED = """
import os, sys
from dataclasses import replace
from hierdp import audit as package
from hierdp.audit import saved_findings
from hierdp.cli import main
saved_findings.fingerprint = lambda: "as it is"
def die(*_):
    os.kill(os.getpid(), int(sys.argv[1]))
cases = [case for case in package.CASES if case.method in ("Laplace", "Flat", "NF")]
package.cases, package.SAMPLERS = lambda: (*cases[:2], replace(cases[2], run=die), *cases[3:]), ()
main(["audit", "--runs", "12", *sys.argv[2:]])
"""

KILLED_CASES = sum(case.method in ("Laplace", "Flat", "NF") for case in CASES)


def killed(number, *options):
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(int(number)), *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_kill_loses_the_case_it_was_at(tmp_path):
    """This holds for output to a pipe, too, and half a line in the journal does no harm."""
    out = tmp_path / "a.parquet"
    died = killed(signal.SIGKILL, "--out", str(out))
    assert died.returncode == -signal.SIGKILL
    lines = died.stdout.splitlines()
    assert len(lines) == 3, died.stderr
    assert lines[0].split("\t")[0] == "mechanism"
    assert all(line.split("\t")[-1] == "shows nothing" for line in lines[1:])
    with (tmp_path / ".a.parquet.journal").open("a") as journal:
        journal.write('{"mechanism": "cut o')
    args = ["audit", "Laplace", "Flat", "NF", "--runs", "12", "--out", str(out)]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[:3] == lines
    assert done.output.count("shows nothing") == KILLED_CASES == len(pd.read_parquet(out))
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_an_interrupt_leaves_what_was_found_on_the_screen(tmp_path):
    died = killed(signal.SIGINT)
    stopped = f"Stopped after 2 of {KILLED_CASES} cases"
    assert died.returncode == 130
    assert died.stdout.count("shows nothing") == 2
    assert f"{stopped}; use --out to be able to continue." in died.stderr
    assert "Traceback" not in died.stderr
    out = tmp_path / "a.parquet"
    died = killed(signal.SIGTERM, "--out", str(out))
    assert died.returncode == 143
    assert f"{stopped}; the same command continues from there." in died.stderr
    assert len(pd.read_parquet(out)) == 2


def test_a_saved_fault_counts_for_the_exit_status(tmp_path, monkeypatch):
    """The exit status is for all findings, not only for those of this run."""
    case, out = SOME[0], tmp_path / "a.parquet"

    def tells(table, noise):
        made = case.run(table, noise)
        made.table["count"] = table.counts
        return made

    monkeypatch.setattr(package, "SAMPLERS", ())
    monkeypatch.setattr(package, "cases", lambda: (replace(case, run=tells),))
    args = ["audit", "--runs", "200", "--out", str(out)]
    assert CliRunner().invoke(main, args).exit_code == 1
    monkeypatch.setattr(package, "cases", lambda: (case,))
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 1
    assert "MORE THAN CLAIMED" in done.output


def test_on_a_terminal_the_lines_are_a_table(monkeypatch):
    """There is one header, and the columns stay aligned from one printed line to the next."""
    from rich.console import Console

    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal gets no table
    monkeypatch.setattr(
        "hierdp.execution.progress.PATIENCE_SECONDS", 1e9
    )  # on a busy machine, progress bars come between
    command = import_module("hierdp.cli.audit")  # in the package, the module's name refers to the command
    screen = partial(Console, force_terminal=True, width=130, color_system=None)
    monkeypatch.setattr(command, "console", screen)
    done = CliRunner().invoke(main, ["audit", "Laplace", "Flat", "--runs", "12"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    (head,) = [line for line in lines if "mechanism" in line]
    verdicts = [line for line in lines if "shows nothing" in line]
    assert len(verdicts) == sum(case.method in ("Laplace", "Flat") for case in CASES)
    assert {line.index("shows nothing") for line in verdicts} == {head.index("verdict")}
