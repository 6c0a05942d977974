"""The command line's first tenths of a second, its words where there is no UTF-8, and decimal commas."""

import codecs
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hierdp import leaving
from hierdp.__main__ import WRITTEN, in_ascii
from hierdp.cli import main
from tests.marks import quick

ROOT = Path(__file__).parents[2]
NO_UTF8 = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": ""}


def hierdp(*arguments, folder=None, **variables):
    return subprocess.run(
        [sys.executable, "-P", "-m", "hierdp", *arguments], capture_output=True, cwd=folder, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    quick(["mechanisms", "solvers", "release --help", "plan --help", "verify Chebyshev --backends highs"]),
)
@pytest.mark.parametrize("variables", quick([NO_UTF8, {"PYTHONIOENCODING": "latin-1"}]))
def test_output_where_there_is_no_utf8(tmp_path, command, variables):
    done = hierdp(*command.split(), folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert b"Unicode" not in done.stderr
    assert done.stdout


@pytest.mark.slow
def test_a_release_where_there_is_no_utf8(tmp_path):
    """Its files are as usual; its words are in ASCII."""
    (tmp_path / "in.csv").write_text("town,home\nKöln,1\nKöln,1\nb,2\n", encoding="utf-8")
    options = "--levels town --group home --max-size 3 --epsilon 1 --regions-from-data --groups-from-data"
    done = hierdp(
        "release", "group-size", "in.csv", *options.split(), "--out", "o", folder=tmp_path, **NO_UTF8
    )
    assert done.returncode == 0, done.stderr
    assert b"epsilon" in done.stdout
    done.stdout.decode("ascii")
    assert "Köln" in (tmp_path / "o" / "released.csv").read_text(encoding="utf-8")
    for command in (["check", "o"], ["explain", "o"]):
        done = hierdp(*command, folder=tmp_path, **NO_UTF8)
        assert done.returncode == 0, done.stderr
        done.stdout.decode("ascii")


def test_letters_in_ascii():
    codecs.register_error("hierdp", in_ascii)
    assert "ε ≤ 1 … Köln €".encode("ascii", "hierdp") == rb"epsilon <= 1 ... K\xf6ln \u20ac"
    assert "ε = ü".encode("latin-1", "hierdp") == b"epsilon = \xfc"
    for text in WRITTEN.values():
        text.encode("ascii")


INTERRUPTED = """
import os, signal, sys
from importlib.abc import MetaPathFinder
sys.argv[0] = "/somewhere/bin/hierdp"
class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.modules.pop(sys.argv[1], None)
from hierdp.__main__ import run
"""


@pytest.mark.parametrize("module", ["importlib.util", "hierdp.__main__", "resource", "solvers"])
def test_ctrl_c_while_the_first_modules_are_loaded(tmp_path, module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.stderr == f"{leaving.INTERRUPTED}\n"
    assert done.returncode == 130


@pytest.mark.parametrize(
    ("argv", "original", "command"),
    [
        (["/usr/bin/hierdp", "check"], [], True),
        (["-m", "check"], ["python", "-m", "hierdp", "check"], True),
        (["-m", "check"], ["python", "-m", "pytest"], False),
        (["/usr/bin/pytest"], ["pytest"], False),
        ([""], ["python"], False),
        ([], ["python"], False),
    ],
)
def test_a_program_that_imports_hierdp_keeps_its_signals(monkeypatch, argv, original, command):
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", original)
    assert leaving.is_command() == command


def test_interrupts_are_given_back():
    before = signal.getsignal(signal.SIGINT)
    leaving.at_once()
    assert (signal.getsignal(signal.SIGINT) is leaving._leave) == (before is signal.default_int_handler)
    leaving.as_usual()
    assert signal.getsignal(signal.SIGINT) is before


RELEASE = "release group-size in.csv --levels town --group home --max-size 3 --out o --epsilon"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (f"{RELEASE} 0,5", "Write a decimal point: 0.5"),
        (f"{RELEASE} -1,25", "Write a decimal point: -1.25"),
        ("verify Chebyshev --time-limit 2,5", "Write a decimal point: 2.5"),
        ("verify Chebyshev --instances 2,5", "Write a decimal point: 2.5"),
        (f"{RELEASE} x,5", None),
        ("verify Chebyshev,5", None),
    ],
)
def test_a_decimal_comma(tmp_path, monkeypatch, command, hint):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("town,home\na,1\n")
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 2, done.output
    said = " ".join(done.output.split())
    assert (hint in said) if hint else ("decimal point" not in said)


@pytest.mark.parametrize("text", ["12,5", "7,777", "1.234,5", "-0,5"])
def test_a_comma_in_a_column_of_counts(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(f'a,b,n\nx,y,1\nx,z,"{text}"\n')
    axes = ["--axis", "o=a", "--axis", "d=b", "--count", "n", "--regions-from-data", "--delta", "1e-8"]
    done = CliRunner().invoke(main, ["release", "top-down", "in.csv", "--epsilon", "1", *axes, "--out", "o"])
    said = " ".join(done.output.split())
    assert "row 2, column 'n': the count is not a number because of its comma (the decimal sign" in said
