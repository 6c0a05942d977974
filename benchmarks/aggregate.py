"""How much memory and time it takes to count the entities of a large table by group, region and size.

    python -m benchmarks.aggregate [--entities 100_000_000] [--gigabytes 8]

Makes a Parquet file of that many rows in a temporary folder (some 16 bytes a row, removed afterwards): four
households to ten rows, in no order, in 3,250 counties of 78 states, with jobs in 50 counties. Each case runs
in a separate process, whose DuckDB is limited as on a machine with that much memory (it uses at most four
fifths); the table shows the peak of the whole process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.child import python
from hierdp.tables import Prefixes, flows, group_sizes
from hierdp.tables.databases import embedded
from hierdp.tables.runs import group_runs

GIGABYTE = 10**9
CODES = {"state": 2, "fips": 5}
LEVELS = Prefixes("county", CODES)


def make(path: Path, entities: int) -> None:
    """The table: one entity per row, with its household as a number and as text, and its two counties."""
    homes = entities * 2 // 5
    rows = f"SELECT range AS i, (hash(range) % {homes})::BIGINT AS home FROM range({entities})"
    code = "printf('%05d', {} * 24 % 78000 + 1)"
    county, job = (code.format(place) for place in ("home", "(home + hash(i + 1) % 50)"))
    duckdb.sql("SET preserve_insertion_order = false")
    duckdb.sql(
        f"COPY (SELECT home, printf('H%012d', home) AS serial, {county} AS county, {job} AS job "
        f"FROM ({rows})) TO '{path}' (ROW_GROUP_SIZE 1_000_000)"
    )


def sizes(table: Any, group: str) -> int:
    """Households by size, for `release group-size`."""
    found = group_sizes(table, levels=LEVELS, group=[group], max_size=20)
    return int(found.counts[0] @ np.arange(21))


def runs(table: Any, group: str) -> int:
    """The same for `release count-of-counts`, up to any size."""
    top = group_runs(table, levels=LEVELS, group=[group]).runs.of(0)
    return int(top[0] @ top[1])


def pairs(table: Any, _: str) -> int:
    """Entities by home and job, for `release top-down`."""
    return flows(table, axes={"home": LEVELS, "work": Prefixes("job", CODES)}).total


CASES: dict[str, tuple[Callable[[Any, str], int], str]] = {
    "group-size, households by number": (sizes, "home"),
    "group-size, households by text": (sizes, "serial"),
    "count-of-counts, households by number": (runs, "home"),
    "count-of-counts, households by text": (runs, "serial"),
    "top-down, home and job": (pairs, ""),
}


def one(case: str, path: Path, entities: int, gigabytes: float) -> None:
    """A case, in this process."""
    connection = embedded()
    connection.con.execute(f"SET memory_limit = '{gigabytes * 0.8}GB'")
    started = time.perf_counter()
    job, group = CASES[case]
    found = job(connection.read_parquet(path), group)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE
    if found != entities:
        raise SystemExit(f"{case}: {found} entities, not {entities}")
    print(f"{case:40s} {seconds / 60:5.1f} minutes, at most {peak:.2f} GB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000_000)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "FILE"), help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one:
        one(told.one[0], Path(told.one[1]), told.entities, told.gigabytes)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        started = time.perf_counter()
        make(path, told.entities)
        minutes, written = (time.perf_counter() - started) / 60, path.stat().st_size / GIGABYTE
        print(f"{told.entities:,} rows, {written:.1f} GB of Parquet, made in {minutes:.1f} minutes")
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; as with {told.gigabytes:g} GB",
            flush=True,
        )
        for case in CASES:
            given = ["--entities", str(told.entities), "--gigabytes", str(told.gigabytes)]
            command = python("-m", "benchmarks.aggregate", *given, "--one", case, str(path))
            subprocess.run(**command, check=False)


if __name__ == "__main__":
    main()
