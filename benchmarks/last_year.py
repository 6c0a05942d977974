"""How good a method is that a public histogram of the same kind chooses: last year's, or another place's.

Methods are ranked by simulated releases of the public table, at the other table's total, as by `hierdp plan
bins --like`; their errors on the other table are simulated by other noise. A row has the method chosen, and
its error over the least: predicted by 5 runs, the default, and by all.

- Trips of Australians by region and purpose, in thousands: every third year by the year before.
- Maps of DPBench, as 64 × 64 bins: ends of taxi trips by their starts, in Beijing and San Francisco.
- Histograms of DPBench: bids for one kind of goods by those for another; loans of some borrowers by others'.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA, data_file
from hierdp.choosing import CLOSE, scaled
from hierdp.choosing.methods import errors_of_bins
from hierdp.privacy.noise import SimulatedNoise
from hierdp.reproduce.runs import noise_for
from models.arithmetic.arrays import Ints

RESULTS = Path(__file__).parent / "results" / "last-year.parquet"

YEARS = range(1999, 2018, 3)
EPSILONS = (0.01, 0.1, 1.0)

PAIRS = {
    "taxis, Beijing": ("BeijingTaxiS_256_256.npy", "BeijingTaxiE_256_256.npy"),
    "taxis, San Francisco": ("cabspottingS_256_256.npy", "cabspottingE_256_256.npy"),
    "bids": ("bids_j.npy", "bids_m.npy"),
    "loans": tuple(f"RejectStats_0_4096_no_outliers_filter_7_{k}.npy" for k in (1, 2)),
}
"""The public table, and the other."""


def tourism(folder: Path) -> Iterator[tuple[str, Ints, Ints]]:
    """Thousands of trips by region and purpose, of a year before and of a year."""
    import pandas as pd

    table = pd.read_parquet(data_file(folder, "australian-tourism.parquet"))
    trips = table.groupby(["state", "region", "purpose", table.quarter.str[:4].astype(int)]).trips.sum()
    by_year = trips.unstack(fill_value=0)
    for year in YEARS:
        before, after = (np.rint(by_year[y].to_numpy()).astype(np.int64) for y in (year - 1, year))
        yield f"tourism, {year}", before, after


def pairs(folder: Path) -> Iterator[tuple[str, Ints, Ints]]:
    """`PAIRS`."""
    for name, files in PAIRS.items():
        before, after = (np.load(folder / file).astype(np.int64) for file in files)
        if before.ndim == 2:
            before, after = (one.reshape(64, 4, 64, 4).sum(axis=(1, 3)) for one in (before, after))
        yield name, before, after


def errors(counts: Ints, epsilon: float, runs: int, *seed: str) -> Any:
    """The errors of all methods: a row for each metric, run and method."""
    import pandas as pd

    def noise(_: str, run: int) -> SimulatedNoise:
        return noise_for(0, *seed, epsilon, run)

    return pd.DataFrame([each._asdict() for each in errors_of_bins(counts, epsilon, runs, noise)])


def chosen(name: str, before: Ints, after: Ints, epsilon: float, runs: int) -> Iterator[dict[str, Any]]:
    """A row for each metric and number of runs."""
    public = errors(scaled(before, int(after.sum())), epsilon, runs, name, "public")
    true = errors(after, epsilon, runs, name, "other").groupby(["metric", "method"]).error.mean()
    for many in (5, runs):
        mean = public[public.run < many].groupby(["metric", "method"]).error.mean()
        for metric, each in mean.groupby(level=0):
            method = each.idxmin()[1]
            times = float(true[metric, method] / true[metric].min())
            yield {"pair": name, "epsilon": epsilon, "metric": metric, "runs": many, "method": method,
                   "times": times}  # fmt: skip


def run(
    *,
    data: Annotated[Path, "a folder with australian-tourism.parquet"] = DATA,
    elsewhere: Annotated[Path | None, "a folder with the files of `PAIRS`"] = None,
    runs: int = 20,
) -> Iterator[dict[str, Any]]:
    for name, before, after in [*tourism(data), *(pairs(elsewhere) if elsewhere else ())]:
        for epsilon in EPSILONS:
            yield from chosen(name, before, after, epsilon, runs)


def summary(rows: Any) -> Any:
    """How many settings have a method within `CLOSE` of the best, by years or other tables, and runs."""
    years = rows.pair.str.startswith("tourism").map({True: "years", False: "other tables"}).rename("pairs")
    return (rows.times <= CLOSE).groupby([years, rows.runs]).agg(["size", "sum"]).reset_index()
