"""Unusual tables on the command line give a release that passes its check, or one message and no files."""

import os
from pathlib import Path

import pytest
from attacked import assert_no_traceback, counted, releasing
from click.testing import CliRunner
from hostile_tables import TABLES

from hierdp.checking import FAILS, check
from hierdp.cli import main

pytestmark = pytest.mark.attack


def run(arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 1, 2), done.output
    assert_no_traceback(done.output)
    assert "\x1b" not in done.output
    return done


@pytest.mark.parametrize("what", TABLES)
def test_an_odd_table(what):
    mechanism, write = TABLES[what]
    Path("in.csv").unlink()
    path = write(Path("in.parquet"))
    counted("odd tables")
    before = sorted(os.listdir())
    done = run(releasing(mechanism, "out", 1, path))
    if done.exit_code:
        assert done.output.count("Error: ") == 1
        assert sorted(os.listdir()) == before
        counted("odd tables refused")
        return
    assert sorted(os.listdir()) == sorted([*before, "out"])
    assert [line for line in check("out") if line.verdict == FAILS] == []
    assert run(["check", "out"]).exit_code == 0


def test_sixty_levels():
    levels = [f"level{i}" for i in range(60)]
    Path("in.csv").write_text(",".join([*levels, "home"]) + "\n" + ",".join(["a"] * 60 + ["1"]) + "\n")
    done = run(
        ["release", "group-size", "in.csv", "--levels", ",".join(levels),
         "--regions-from-data", "--groups-from-data", "--group", "home",
         "--max-size", "3", "--epsilon", "1", "--simulate", "1", "--out", "out"]
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert run(["check", "out"]).exit_code == 0
    counted("odd tables")
