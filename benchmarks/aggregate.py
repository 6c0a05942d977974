"""How much memory and time it takes to count the entities of a large table by group, region and size.

Makes a Parquet file of that many rows in a temporary folder (some 16 bytes a row, removed afterwards): four
households to ten rows, in no order, in 3,250 counties of 78 states, with jobs in 50 counties. Each case runs
in a separate process, whose DuckDB is limited as on a machine with that much memory (it uses at most four
fifths); `process_mb` is the peak of the whole process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import duckdb
import numpy as np

from benchmarks.child import apart
from benchmarks.measuring import timed
from hierdp.tables import Prefixes, flows, group_sizes
from hierdp.tables.databases import embedded
from hierdp.tables.sizes import group_runs

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


def one(case: str, path: str, entities: int, gigabytes: float) -> dict[str, Any]:
    """A case, in this process."""
    connection = embedded()
    connection.con.execute(f"SET memory_limit = '{gigabytes * 0.8}GB'")
    job, group = CASES[case]
    seconds, found = timed(lambda: job(connection.read_parquet(path), group), 1)
    if found != entities:
        raise SystemExit(f"{case}: {found} entities, not {entities}")
    return {"minutes": seconds / 60}


def run(
    *, entities: Annotated[int, "rows"] = 100_000_000, gigabytes: Annotated[float, "of memory"] = 8.0
) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        make(path, entities)
        for case in CASES:
            found = apart(one, case, path, entities, gigabytes)
            yield {"case": case, "entities": entities, "file_mb": path.stat().st_size / 1e6, **found}
