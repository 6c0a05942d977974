"""Limits of memory, file sizes, open files and disks: one message each, and no partial files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attacked import MECHANISMS, assert_no_traceback, counted, hierdp, releasing

from hierdp.execution import seal

pytestmark = pytest.mark.attack

LIMITED = """
import resource, sys
which, value = getattr(resource, sys.argv[1]), int(sys.argv[2])
del sys.argv[1:3]
resource.setrlimit(which, (value, resource.getrlimit(which)[1]))
from hierdp.__main__ import run
run()
"""
"""The limit also applies to the imports, as under `ulimit`."""

MEGABYTE = 1 << 20


def limited(which, value, more=()):
    command = [sys.executable, "-c", LIMITED, which, str(value)]
    done = subprocess.run(
        [*command, *releasing("group-size", "out", 1, more=more)], capture_output=True, text=True, check=False
    )
    counted("runs under a limit")
    return done


def assert_whole_or_nothing(done, before=("in.csv",)):
    assert_no_traceback(done.stderr)
    if done.returncode == 0:
        assert seal.why_not_ours(Path("out")) == ""
    else:
        assert sorted(os.listdir()) == list(before)
        assert done.stderr.count("Error: ") == 1


@pytest.mark.parametrize("size", [0, 1, 1000, 3000, 20_000])
def test_files_of_a_size_at_most(size):
    done = limited("RLIMIT_FSIZE", size)
    assert_whole_or_nothing(done)
    if done.returncode:
        assert "the disk is full" in done.stderr


@pytest.mark.parametrize("number", [20, 40])
def test_few_open_files(number):
    assert_whole_or_nothing(limited("RLIMIT_NOFILE", number))


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of addresses means something else elsewhere")
@pytest.mark.parametrize("megabytes", [400, 1000, 2000])
def test_little_memory(megabytes):
    done = limited("RLIMIT_AS", megabytes * MEGABYTE)
    assert_whole_or_nothing(done)
    if megabytes <= 1000:  # loading OpenBLAS would hang
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            f"Error: the limit on this process's memory (ulimit -v {megabytes * 1024}) is too low: "
            "hierdp needs at least 2000000. Nothing was read or written"
        ]
    elif done.returncode:
        assert "out of memory" in done.stderr


EXACT = ["release", "range-query", "in.csv", *MECHANISMS["range-query"].split(), "--out", "out"]
"""Without --simulate, whose warning would be printed before the noise is drawn."""

needs_a_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full")


def to_a_full_device(*arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(hierdp(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert_no_traceback(done.stderr)
    assert done.returncode == os.EX_IOERR
    assert "the disk is full" not in done.stderr
    return " ".join(done.stderr.split())


@needs_a_full_device
def test_output_to_a_full_device():
    said = to_a_full_device(*EXACT)
    assert "the release in out is complete; only its summary could not be printed" in said
    assert seal.why_not_ours(Path("out")) == ""
    for command in (["check", "out"], ["query", "out", "--range", "0:2"], ["--version"], ["--help"],
                    ["query", "out", "--range", "0:2", "--csv"], ["mechanisms"]):  # fmt: skip
        assert "standard output cannot be written (No space left on device)" in to_a_full_device(*command)


def test_output_to_a_file_that_may_not_grow():
    """The release's files are within the limit; the file for its summary already has that size."""
    limit = 2_000_000
    Path("summary.txt").write_bytes(bytes(limit))
    with Path("summary.txt").open("a") as summary:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, "RLIMIT_FSIZE", str(limit), *EXACT], stdout=summary,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert_no_traceback(done.stderr)
    assert done.returncode == os.EX_IOERR
    said = "the release in out is complete; only its summary could not be printed (File too large)"
    assert said in " ".join(done.stderr.split())
    assert seal.why_not_ours(Path("out")) == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_is_read_only():
    Path("shut").mkdir(mode=0o555)
    done = subprocess.run(
        hierdp(*releasing("range-query", "shut/out", 1)), capture_output=True, text=True, check=False
    )
    assert_no_traceback(done.stderr)
    assert "is not writable" in done.stderr
    assert os.listdir("shut") == []
