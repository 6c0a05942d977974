"""hierdp check --export writes every step's proof; the checker of docs/theorem agrees with hierdp's on it."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from steps import save, solved_in
from test_check import FLOWS, SIZES, change_manifest, released

from hierdp import SimulatedNoise
from hierdp.checking.export import EXPORTED, export
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.mechanisms.group_size import post_processing
from hierdp.record import files, proofs
from models.witnesses.read_vipr import check_vipr

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "docs" / "theorem"
CHECKER = ROOT / "build" / "theorem" / "checker"

pytestmark = pytest.mark.slow


def test_every_step_is_written_or_left_out_with_a_reason(tmp_path):
    folder = released("group-size", tmp_path / "out", SimulatedNoise(3), max_size=3, **SIZES)
    found = CliRunner().invoke(main, ["check", str(folder), "--export", str(tmp_path / "text")])
    assert found.exit_code == 0, found.output
    text = (tmp_path / "text" / EXPORTED).read_text()
    names = [line.partition(" ")[2] for line in text.splitlines() if line.startswith("problem ")]
    steps = [" ".join(step.name.split()) for step in proofs.read(folder / files.PROOFS)]
    assert names == steps
    assert f"{len(names)} problems written to" in found.output
    with pytest.raises(InputError, match="exists; choose another folder"):
        export(folder, tmp_path / "text")


def test_every_step_is_a_vipr_certificate(tmp_path):
    folder = released("group-size", tmp_path / "out", SimulatedNoise(3), max_size=3, **SIZES)
    to = tmp_path / "certificates"
    found = CliRunner().invoke(main, ["check", str(folder), "--export", str(to), "--format", "vipr"])
    assert found.exit_code == 0, found.output
    steps = proofs.read(folder / files.PROOFS)
    proved = [check_vipr(path) for path in sorted(to.glob("*.vipr"))]
    assert len(proved) == len(list(steps))
    assert all(one.lower == one.upper for one in proved)
    with pytest.raises(InputError, match="exists; choose another folder"):
        export(folder, to, form="vipr")
    (folder / files.PROOFS).write_bytes(b"no zip file")
    with pytest.raises(InputError, match="cannot be exported"):
        export(folder, tmp_path / "none", form="vipr")
    assert not list((tmp_path / "none").iterdir())


def test_a_release_without_proofs_cannot_be_exported(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="was written without proofs"):
        export(tmp_path / "empty", tmp_path / "text")
    assert not (tmp_path / "text").exists()


def test_a_broken_file_of_proofs_leaves_no_export(tmp_path):
    folder = released("group-size", tmp_path / "out", SimulatedNoise(3), max_size=3, **SIZES)
    (folder / files.PROOFS).write_bytes(b"no zip file")
    with pytest.raises(InputError, match="cannot be exported"):
        export(folder, tmp_path / "text")
    assert not (tmp_path / "text" / EXPORTED).exists()


def test_the_steps_before_a_wrong_one_are_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(post_processing, "CELLS_A_TASK", 1)  # a step for each region
    folder = released("group-size", tmp_path / "out", SimulatedNoise(3), max_size=3, **SIZES)
    steps = solved_in(folder)
    save([*steps[:2], replace(steps[2], name="that"), *steps[3:]], folder)
    assert export(folder, tmp_path / "text") == (2, 0)


def test_a_release_by_an_unknown_mechanism_cannot_be_exported(tmp_path):
    folder = released("group-size", tmp_path / "out", SimulatedNoise(3), max_size=3, **SIZES)
    change_manifest(folder, lambda manifest: manifest.update(mechanism="theirs"))
    with pytest.raises(InputError, match="does not know the mechanism 'theirs'"):
        export(folder, tmp_path / "text")


@pytest.fixture(scope="module")
def checker():
    """The extracted checker; built first, if Coq is here and its sources are newer."""
    sources = [*SOURCES.glob("*.v"), SOURCES / "main.ml"]
    if not CHECKER.exists() or max(map(os.path.getmtime, sources)) > CHECKER.stat().st_mtime:
        there = shutil.which("coqc") and shutil.which("ocamlfind")
        if not there or subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True).returncode:
            pytest.skip("the checker is not built, and there is no coqc or no zarith for OCaml")
        subprocess.run([SOURCES / "build.sh"], check=True, capture_output=True)
    return CHECKER


def test_both_checkers_agree_on_a_release_and_on_random_programs(tmp_path, checker):
    folder = released("top-down", tmp_path / "out", SimulatedNoise(3), delta=1e-6, **FLOWS)
    agree = [sys.executable, SOURCES / "agree.py", checker]
    options = ["--sets", "", "--random", "200", folder]
    done = subprocess.run([*agree, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 0 differ") == 2


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("variable whole 0 4 square 1 5\nrow 4 4 1 1\nvalue 4\nprice -1\nend", "proved\t1\t1\tn"),
        ("variable whole 0 4 square 1 5\nrow 3 3 1 1\nvalue 3\nprice 1\nend", "not proved\t4\t0\tn"),
        ("variable whole 0 4 square 1 5\nrow 3 3 1 1\nvalue 4\nprice 1\nend", "not feasible\trow 1\t\tn"),
        ("variable whole 0 4 square 1 5\nvalue 1/2\nend", "not feasible\tvariable 1\t\tn"),
        ("variable whole 0 4\nrow 0 0 2 1\nvalue 0\nprice 0\nend", "malformed\t\t\tn"),
        ("variable whole 0 4\nvalue 0x1\nend", "not a whole number: 0x1"),
        ("variable whole 0 4\nvalue 1/0\nend", "not a positive number: 0"),
        ("variable whole -inf -inf\nvalue 1\nend", "not a whole number: -inf"),
        ("variable whole 0 4 cubic 1\nvalue 1\nend", "not a piece of an objective: cubic"),
        ("value 1\nvariable whole 0 4\nend", "not a line of a problem"),
        ("variable whole 0 4\nvalue 1", "the file ends within a problem"),
        (
            "variable whole 0 4 table 0 99999999999999999999 1\nvalue 0\nend",
            "a table cannot be as long as 9999",
        ),
        (
            "variable whole 0 4 table 0 4000000000000000000 1\nvalue 0\nend",
            "fewer costs than its length, 4000",
        ),
        ("variable whole 0 4 table 0 -1 1\nvalue 0\nend", "not a length: -1"),
    ],
)
def test_what_the_checker_says_and_what_it_refuses(tmp_path, checker, lines, verdict):
    file = tmp_path / "proofs.txt"
    file.write_text(f"hierdp proofs 1\nproblem n\n{lines}\n")
    done = subprocess.run([checker, file], capture_output=True, text=True)
    assert verdict in done.stdout + done.stderr
    refused = "\t" not in verdict
    assert done.returncode == (2 if refused else 0 if verdict.startswith("proved") else 1)


@pytest.mark.parametrize("lines", ["", "skipped n: it is too large\n", "skipped n: a\nskipped m: b\n"])
def test_a_file_without_problems_is_not_proved(tmp_path, checker, lines):
    file = tmp_path / "proofs.txt"
    file.write_text(f"hierdp proofs 1\n{lines}")
    done = subprocess.run([checker, file], capture_output=True, text=True)
    skipped = lines.count("skipped")
    assert done.stdout.splitlines()[-1] == f"nothing proved: the file has no problem; {skipped} skipped"
    assert (done.returncode, done.stderr) == (1, "")


def test_problems_beside_skipped_lines_can_be_proved(tmp_path, checker):
    file = tmp_path / "proofs.txt"
    file.write_text("hierdp proofs 1\nskipped n: a\nproblem m\nvariable whole 0 4\nvalue 1\nend\n")
    done = subprocess.run([checker, file], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "1 of 1 problems proved; 1 skipped"
    assert done.returncode == 0


def test_a_table_of_a_million_costs_is_read(tmp_path, checker):
    file, costs = tmp_path / "proofs.txt", " 7" * 1_000_000
    file.write_text(f"hierdp proofs 1\nproblem n\nvariable whole 0 4 table 0 1000000{costs}\nvalue 0\nend\n")
    done = subprocess.run([checker, file], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "proved\t7\t7\tn")


def test_a_problem_beyond_the_stack_is_refused_with_a_message(tmp_path, checker):
    file = tmp_path / "proofs.txt"
    pieces = " linear 1" * 1_000_000
    file.write_text(f"hierdp proofs 1\nproblem n\nvariable whole 0 4{pieces}\nvalue 0\nend\n")
    limited = ["sh", "-c", 'ulimit -s 256; exec "$0" "$1"', checker, file]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert done.returncode == 2
    assert "too large for the memory" in done.stderr
