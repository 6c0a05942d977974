"""Whole releases by the command line, from the table to the files, and their checks, by number of regions.

Each of the lowest regions has one person in a home of its own. Noise is from tables, and there are no
intervals. Seconds are CPU time, which other programs disturb less than elapsed time; memory is the peak of
each process. Kernels are compiled on a table of ten regions before. Linear growth is a constant column of
microseconds a region.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.child import hierdp, needed

SMALLEST = 1_000
MECHANISMS = ("group-size", "count-of-counts")
OPTIONS = ("--group", "home", "--regions-from-data", "--groups-from-data", "--epsilon", "10",
           "--noise", "tables", "--confidence", "0")  # fmt: skip


def table(regions: int, levels: int) -> pd.DataFrame:
    """One person in one home in each of the lowest regions; all levels have equally many regions."""
    width = regions // levels
    names = np.array([f"r{i}" for i in range(width)])
    people = pd.DataFrame({f"l{level}": names for level in range(levels)})
    return people.assign(home=np.arange(width))


def released(mechanism: str, regions: int, levels: int, sizes: int) -> dict[str, Any]:
    """Release a table with the given number of regions, and check the release."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", str(Path(folder) / "released")
        table(regions, levels).to_parquet(source)
        columns = ",".join(f"l{level}" for level in range(levels))
        options = ["--levels", columns, "--max-size", str(sizes), *OPTIONS, "--out", out]
        commands = {"release": ("release", mechanism, str(source), *options), "check": ("check", out)}
        row: dict[str, Any] = {"mechanism": mechanism, "regions": regions, "levels": levels, "sizes": sizes}
        for name, command in commands.items():
            took = needed(hierdp, *command)
            each = 1e6 * took["process_cpu"] / regions
            row |= {f"{name}, CPU": took["process_cpu"], f"{name}, µs a region": each}
            row[f"{name}, MB"] = took["process_mb"]
    return row


def run(
    *,
    most: Annotated[int, "regions"] = 100_000,
    levels: Annotated[tuple[int, ...], "of the hierarchy"] = (1, 60),
    sizes: Annotated[int, "the largest size of a group"] = 50,
    mechanisms: Annotated[tuple[str, ...], f"of: {', '.join(MECHANISMS)}"] = MECHANISMS,
) -> Iterator[dict[str, Any]]:
    for mechanism, depth in product(mechanisms, levels):
        released(mechanism, 10, 1, sizes)
        regions = SMALLEST
        while regions <= most:
            yield released(mechanism, regions, depth, sizes)
            regions *= 10
