"""Large releases with noise from tables, from the table to the files.

Run as ``python -m benchmarks.noise --releases [sizes cumulative nation]``.
Each release runs as a separate command, measured in CPU seconds (user and system), elapsed seconds and peak
memory. Its table is made before, which is not timed. `benchmarks.top_down` measures the commuters.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.release_growth import Spent, run
from hierdp.data.census import census

HOUSEHOLDS = 1_000_000
"""The number of households in the table of group sizes."""

LIMITS = {"sizes": 20, "cumulative": 60, "nation": 300}
"""Seconds that the releases should stay under."""

RELEASES = {
    "sizes": "M_c^dp of 7,592 leaves × 1,001 sizes, 1 million households",
    "cumulative": "Hc of 221 regions at the default bound of 100,000",
    "nation": "Hg of 1 + 52 regions, 241 million groups at each level",
}


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


def released(name: str) -> Spent:
    """The cost of a release."""
    if name == "nation":
        return run("--nation", module="benchmarks.noisy_releases")
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", str(Path(folder) / "released")
        told = ["--group", "household", "--epsilon", "1", "--noise", "tables", "--out", out]
        told += ["--regions-from-data", "--groups-from-data"]
        if name == "sizes":
            households().to_parquet(source)
            told += ["--levels", "state,part", "--max-size", "1000"]
            return run("release", "group-size", str(source), *told)
        counties().to_parquet(source)
        return run("release", "count-of-counts", str(source), "--levels", "state,county", *told)


def nation() -> None:
    """Groups by size of the nation and its states, from their true runs to the release; 482 million draws."""
    from hierdp.data.housing import housing
    from hierdp.mechanisms.count_of_counts import count_of_counts
    from hierdp.privacy.tabulated import TabulatedNoise

    made = count_of_counts(housing(counties=False), 0.2, TabulatedNoise(), "Hg", smallest=1)
    assert all(line.proved_optimal for line in made.proved)


def print_table(names: Iterable[str] = RELEASES) -> None:
    """Measure and print."""
    print("| release | CPU, s | clock, s | should be under | peak, GB |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    for name in names:
        took = released(name)
        print(
            f"| {RELEASES[name]} | {took.seconds:.1f} | {took.clock:.1f} | {LIMITS[name]} | "
            f"{took.mb / 1024:.1f} |",
            flush=True,
        )


if __name__ == "__main__" and "--nation" in sys.argv:
    nation()
