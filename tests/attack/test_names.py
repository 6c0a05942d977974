"""Terminal escapes and markup in all texts from outside, through all commands, also on a terminal."""

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from attacked import assert_no_traceback, counted, hierdp
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.execution import seal
from hierdp.record import files

pytestmark = pytest.mark.attack

EVIL = "\x1b[2J\x1b]0;pwned\x07[bold]x[/bold][/a\u202e\x9b31m\ry"
"""Clears the screen, names the window, is Rich markup (open and broken), reverses the text direction."""

SEEN = "\\x1b[2J"


def assert_plain(output):
    for bad in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x9b", "\r"):
        assert bad not in output, ascii(output)
    assert_no_traceback(output)
    counted("outputs searched for commands to a terminal")


def run(*arguments, seen=True):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert_plain(done.output)
    if seen:
        assert SEEN in done.output
    return done


@pytest.fixture
def table():
    frame = pd.DataFrame({EVIL: [f"{EVIL}{i % 2}" for i in range(6)], "home": range(6), "n": range(6)})
    frame.to_parquet("in.parquet")
    return "in.parquet"


FROM_DATA = ["--regions-from-data", "--groups-from-data"]
RELEASES = {
    "group-size": ["--levels", EVIL, "--group", "home", "--max-size", "3", *FROM_DATA],
    "count-of-counts": ["--levels", EVIL, "--group", "home", "--max-size", "3", *FROM_DATA],
    "top-down": ["--axis", f"{EVIL}={EVIL}", "--count", "n", "--delta", "1e-8", "--regions-from-data"],
    "range-query": ["--names", EVIL, "--regions-from-data"],
    "clustering": ["--names", EVIL, "--regions-from-data"],
}


@pytest.mark.parametrize("mechanism", RELEASES)
def test_in_every_place(table, mechanism):
    out = f"out{EVIL}".replace("/", "")
    chosen = [*RELEASES[mechanism], "--epsilon", "1", "--simulate", "1", "--out", out]
    done = run("release", mechanism, table, *chosen, "--title", "T" + "[b]", "--note", "N[/]")
    assert done.exit_code == 0, done.output
    assert run("check", out).exit_code == 0
    # Refusals quote their input.
    assert run("release", mechanism, table, *chosen).exit_code == 2
    assert run("release", mechanism, EVIL.replace("/", "") + ".csv", *chosen[:-1], "o").exit_code == 2
    assert run("query", out, "--range", EVIL).exit_code == 2
    if mechanism == "range-query":
        assert run("query", out, "--range", f"{EVIL}0:{EVIL}1", seen=False).exit_code in (0, 2)
    manifest = json.loads(Path(out, files.MANIFEST).read_text())
    manifest[EVIL] = EVIL
    manifest["mechanism"] = EVIL
    Path(out, files.MANIFEST).write_text(json.dumps(manifest))
    Path(out, EVIL.replace("/", "")).write_text("")
    seal.seal(Path(out))
    assert run("check", out).exit_code == 1
    assert run("query", out, "--range", "1:2").exit_code == 2
    shutil.rmtree(out)
    assert sorted(os.listdir()) == ["in.csv", "in.parquet"]


@pytest.mark.parametrize("command", [
    ["analyze", EVIL], ["bench", EVIL], ["audit", EVIL], ["reproduce", EVIL], ["verify", "--backend", EVIL],
    [EVIL], ["check", EVIL], ["query", EVIL, "--range", "1:2"], ["release", EVIL], ["demo", "--out", EVIL],
    ["check", "in.csv", "--fingerprint", EVIL], ["check", "in.csv", "--limit", EVIL], ["solvers", EVIL],
], ids=lambda command: command[0][:8])  # fmt: skip
def test_in_arguments(command):
    assert run(*command, seen=False).exit_code != 0


def test_on_a_terminal(table):
    """On a terminal, Rich adds colours of its own and nothing else."""
    out = f"out{EVIL}".replace("/", "")
    chosen = ["--names", EVIL, "--regions-from-data", "--epsilon", "1", "--simulate", "1", "--out", out]
    for command in (
        ["release", "range-query", table, *chosen],
        ["check", out],
        ["query", out, "--range", EVIL],
    ):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(hierdp(*command), stdout=theirs, stderr=theirs, stdin=theirs)
        os.close(theirs)
        output = bytearray()
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux reports this when the terminal is closed
                break
            if not part:
                break
            output += part
        os.close(ours)
        process.wait()
        assert_plain(output.decode().replace("\r\n", "\n").replace("\r\x1b[2K", ""))
