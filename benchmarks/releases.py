"""Whole releases by the command line, from the table to the files, and their checks.

Growth: tables of regions with one person each, released by M_c^dp and checked. Linear growth is a constant
column of microseconds a region. With ``--large``, large releases with noise from tables instead. Seconds are
CPU time, which other programs disturb less than elapsed time; memory is the peak of each process. Tables are
made before, and kernels compiled on a table of ten regions. The benchmark `top_down` measures the commuters.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.child import hierdp, needed
from benchmarks.group_size_memory import CENSUS, write_homes
from hierdp.data.census import census

EPSILON = 10
MAX_SIZE = 4
SMALLEST = 1_000
HOUSEHOLDS = 1_000_000
"""The number of households in the table of group sizes."""

PUBLIC = ("--regions-from-data", "--groups-from-data")
LARGE = {
    "sizes": ("M_c^dp of 7,592 leaves × 1,001 sizes, 1 million households", 20),
    "cumulative": ("Hc of 221 regions at the default bound of 100,000", 60),
    "blocks": ("Hc of 833,000 regions × 51 sizes, without intervals", 30),
    "nation": ("Hg of 1 + 52 regions, 241 million groups at each level", 300),
}
"""By name: the release, and the seconds that it should stay under."""


def table(regions: int, levels: int) -> pd.DataFrame:
    """One person in one home in each of the lowest regions; all levels have equally many regions."""
    width = regions // levels
    names = np.array([f"r{i}" for i in range(width)])
    people = pd.DataFrame({f"l{level}": names for level in range(levels)})
    return people.assign(home=np.arange(width))


def grown(regions: int, levels: int) -> dict[str, Any]:
    """Release a table with the given number of regions, and check the release."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", str(Path(folder) / "released")
        table(regions, levels).to_parquet(source)
        columns = ",".join(f"l{level}" for level in range(levels))
        options = ["--levels", columns, "--group", "home", "--max-size", str(MAX_SIZE), *PUBLIC]
        options += ["--epsilon", str(EPSILON), "--out", out]
        released = needed(hierdp, "release", "group-size", str(source), *options)
        checked = needed(hierdp, "check", out, "--limit", "16")
    row: dict[str, Any] = {"regions": regions, "levels": levels}
    for name, one in (("release", released), ("check", checked)):
        row |= {
            f"{name}, CPU": one["process_cpu"],
            f"{name}, µs a region": 1e6 * one["process_cpu"] / regions,
        }
    return {**row, "MB": max(released["process_mb"], checked["process_mb"])}


def households() -> pd.DataFrame:
    """One row per person, in 7,592 parts of 52 states."""
    data = census(0, groups=HOUSEHOLDS)
    tree, names = data.hierarchy.tree, data.hierarchy.names
    part, size = np.nonzero(data.counts[tree.leaves])
    many = data.counts[tree.leaves][part, size]
    part, size = np.repeat(part, many), np.repeat(size, many)
    codes = np.repeat(part, size), np.asarray(tree.levels[1])[np.repeat(part, size)]
    return pd.DataFrame(
        {
            "state": pd.Categorical.from_codes(codes[1], pd.Index(names[1].astype(str))),
            "part": pd.Categorical.from_codes(codes[0], pd.Index(names[2].astype(str))),
            "household": np.repeat(np.arange(part.size), size),
        }
    )


def counties() -> pd.DataFrame:
    """One row per person, in 200 counties of 20 states; a few groups are large."""
    rng = np.random.default_rng(0)
    homes = 50_000
    large = (rng.random(homes) < 1e-4) * rng.integers(1, 20_000, homes)
    home = np.repeat(np.arange(homes), rng.geometric(0.3, homes) + large)
    county = rng.integers(0, 200, homes)[home]
    return pd.DataFrame({"state": county // 10, "county": county, "household": home}).astype(
        {"state": "str", "county": "str"}
    )


def of_large(name: str) -> dict[str, Any]:
    """The cost of a large release."""
    if name == "nation":
        return needed(nation)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", str(Path(folder) / "released")
        options = ["--group", "household", "--epsilon", "1", "--noise", "tables", *PUBLIC, "--out", out]
        if name == "sizes":
            households().to_parquet(source)
            options += ["--levels", "state,part", "--max-size", "1000"]
            return needed(hierdp, "release", "group-size", str(source), *options)
        if name == "blocks":
            write_homes(833_000, source)
            options[:2] = ["--group", "home", "--entities", "people", "--max-size", "50", "--confidence", "0"]
            levels = ",".join([*CENSUS, "block"])
            return needed(hierdp, "release", "count-of-counts", str(source), "--levels", levels, *options)
        counties().to_parquet(source)
        return needed(hierdp, "release", "count-of-counts", str(source), "--levels", "state,county", *options)


def nation() -> dict[str, Any]:
    """Groups by size of the nation and its states, from their true runs to the release; 482 million draws."""
    from hierdp.data.housing import housing
    from hierdp.mechanisms.count_of_counts import count_of_counts
    from hierdp.privacy.tabulated import TabulatedNoise

    made = count_of_counts(housing(counties=False), 0.2, TabulatedNoise(), "Hg", smallest=1)
    assert all(line.proved_optimal for line in made.proved)
    return {}


def run(
    *,
    most: Annotated[int, "regions"] = 100_000,
    levels: tuple[int, ...] = (1, 60),
    large: Annotated[tuple[str, ...], f"large releases instead: {','.join(LARGE)}"] = (),
) -> Iterator[dict[str, Any]]:
    for name in large:
        took, (what, limit) = of_large(name), LARGE[name]
        yield {"release": what, "CPU": took["process_cpu"], "seconds": took["process_seconds"],
               "should be under": limit, "MB": took["process_mb"]}  # fmt: skip
    if large:
        return
    grown(10, 1)
    for depth in levels:
        regions = SMALLEST
        while regions <= most:
            yield grown(regions, depth)
            regions *= 10
