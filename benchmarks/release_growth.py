"""Growth of the cost of a whole release and of its check with the numbers of regions and of levels.

Run as ``python -m benchmarks.release_growth [--most 100000] [--levels 1 --levels 60]``. Each row is a table
of regions with one person each, released by M_c^dp (``hierdp release group-size``) and checked (``hierdp
check``), as separate commands. Seconds are CPU time, user and system, which other programs disturb less than
elapsed time; memory is the peak of each process. Linear growth is a constant column of microseconds per
region. The kernels are compiled beforehand, on a table of ten regions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.child import python

EPSILON = 10
MAX_SIZE = 4
SMALLEST = 1_000
LEVELS = (1, 60)


@dataclass(frozen=True)
class Spent:
    """The cost of a command: CPU seconds, peak memory in MB, and elapsed seconds."""

    seconds: float
    mb: float
    clock: float


def table(regions: int, levels: int) -> pd.DataFrame:
    """One person in one home in each of the lowest regions; all levels have equally many regions."""
    width = regions // levels
    names = np.array([f"r{i}" for i in range(width)])
    people = pd.DataFrame({f"l{level}": names for level in range(levels)})
    return people.assign(home=np.arange(width))


def run(*arguments: str, module: str = "hierdp") -> Spent:
    """Run the command line, or another module, in a separate process.

    Raises
    ------
    RuntimeError
        If it fails; the message has the end of its output.
    """
    with tempfile.TemporaryFile() as said:
        command, started = python("-m", module, *arguments), time.perf_counter()
        process = subprocess.Popen(**command, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{module} {' '.join(arguments)}:\n{said.read().decode()[-2000:]}")
    clock = time.perf_counter() - started
    return Spent(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, clock)


def measure(regions: int, levels: int) -> tuple[Spent, Spent]:
    """Release a table with the given number of regions, and check the release."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", Path(folder) / "released"
        table(regions, levels).to_parquet(source)
        columns = ",".join(f"l{level}" for level in range(levels))
        options = [
            "--levels",
            columns,
            "--group",
            "home",
            "--max-size",
            str(MAX_SIZE),
            "--regions-from-data",
            "--groups-from-data",
        ]
        kept = ["--epsilon", str(EPSILON), "--out", str(out)]
        released = run("release", "group-size", str(source), *options, *kept)
        return released, run("check", str(out), "--limit", "16")


def rows(most: int, levels: Sequence[int]) -> Iterator[str]:
    """The table's lines, from small to large."""
    measure(10, 1)
    for depth in levels:
        regions = SMALLEST
        while regions <= most:
            released, checked = measure(regions, depth)
            each = " ".join(f"{1e6 * one.seconds / regions:9,.0f}" for one in (released, checked))
            seconds = f"{released.seconds:10.1f} {checked.seconds:10.1f}"
            yield f"{regions:>11,} {depth:>6} {seconds} {each} {max(released.mb, checked.mb):9,.0f}"
            regions *= 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000, help="regions")
    parser.add_argument("--levels", type=int, action="append", help=f"default: {LEVELS[0]} and {LEVELS[1]}")
    given = parser.parse_args()
    print(f"{'':>18} {'seconds':>21} {'µs a region':>19}")
    print(
        f"{'regions':>11} {'levels':>6} {'release':>10} {'check':>10} {'release':>9} {'check':>9} {'MB':>9}"
    )
    for row in rows(given.most, given.levels or LEVELS):
        print(row, flush=True)


if __name__ == "__main__":
    main()
