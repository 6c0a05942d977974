"""A whole country's commuting, released by us and by the authors' own package, side by side in one run.

After ``pip install "hierdp[bench]"`` for the authors' ``inf-tda``. The data are the US county-to-county flows
of 2009–2013 (135,705 flows out of 3,221² pairs); both release the paper's destination tree with exact noise
of OpenDP at ε = 1, δ = 1e-8.

Each release runs in a fresh process, ours and theirs by turns, so that its peak memory is its own. Both
take their noise from OpenDP, draw by draw; ours takes it on all cores, and a third release is ours with noise
from tables (docs/noise.md). Ours is timed from the Parquet file
to the finished release, imports and certificates included; theirs from a sorted series that already holds
all possible pairs, zeros included, as their documentation asks (how long that takes to make is shown and
not counted).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.child import needed
from benchmarks.measuring import DATA, TimedNoise, data_file
from models.programs.layout import processors

if TYPE_CHECKING:
    from pandas import DataFrame

FILE = "us-commuting-2009-2013.parquet"
EPSILON, DELTA = 1.0, 1e-8
COLUMNS = ("dest_state", "origin_state", "dest_county", "origin_county")
AXES = {"origin": ["origin_state", "origin_county"], "destination": ["dest_state", "dest_county"]}


def ours(path: str, sampler: str = "ExactNoise") -> dict[str, Any]:
    """From the file to a release."""
    started, used = time.perf_counter(), time.process_time()
    from hierdp import tables
    from hierdp.mechanisms.top_down import top_down
    from hierdp.privacy.noise import ExactNoise
    from hierdp.privacy.tabulated import TabulatedNoise

    imported = time.perf_counter()
    data = tables.flows(path, axes=AXES, count="workers")
    read = time.perf_counter()
    noise = TimedNoise({"ExactNoise": ExactNoise, "TabulatedNoise": TabulatedNoise}[sampler]())
    release = top_down(data, EPSILON, DELTA, noise)
    done = time.perf_counter()
    proved = all(step.solution.certificate for step in release.steps)
    assert proved
    return {
        "whole": done - started, "cpu": time.process_time() - used, "import": imported - started,
        "read": read - imported, "noise": noise.seconds, "noise_cpu": noise.cpu,
        "rest": done - read - noise.seconds, "draws": noise.draws,
        "flows": int((release.table.level == release.table.level.max()).sum()),
    }  # fmt: skip


def theirs(path: str) -> dict[str, Any]:
    """The package ``inf-tda`` on all possible pairs."""
    import numpy as np
    import pandas as pd
    from InfTDA import mechanism as program

    make = program.make_gaussian_noise

    def of_lists(**options: Any) -> Any:
        """Their noise, which in OpenDP 0.16 takes lists, but not the arrays that they pass."""
        measure = make(**options)
        return lambda counts: measure(counts.tolist())

    program.make_gaussian_noise = of_lists
    begun = time.perf_counter()
    table = pd.read_parquet(path)
    names, codes = {}, {}
    for end in ("origin", "dest"):
        county, names[f"{end}_county"] = pd.factorize(table[f"{end}_county"], sort=True)
        state, names[f"{end}_state"] = pd.factorize(table[f"{end}_state"], sort=True)
        codes[end] = county
        codes[f"{end}_state"] = np.zeros(names[f"{end}_county"].size, np.int64)
        codes[f"{end}_state"][county] = state
    n, m = (names[f"{end}_county"].size for end in ("dest", "origin"))
    counts = np.zeros((n, m), np.int64)
    np.add.at(counts, (codes["dest"], codes["origin"]), table.workers)
    d, o = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    every = [codes["dest_state"][d], codes["origin_state"][o], d, o]
    index = pd.MultiIndex(levels=[names[c] for c in COLUMNS], codes=every, names=COLUMNS)
    series = pd.Series(counts.ravel(), index=index).sort_index()
    started, used = time.perf_counter(), time.process_time()
    released = program.inf_tda(series, (EPSILON, DELTA), 1)
    return {
        "whole": time.perf_counter() - started,
        "cpu": time.process_time() - used,
        "prepared": started - begun,
        "flows": int((released > 0).sum()),
    }


def run(*, runs: int = 3, data: Annotated[Path, f"a folder with {FILE}"] = DATA) -> Iterator[dict[str, Any]]:
    path = data_file(data, FILE)
    for number in range(runs):
        yield {"run": number, "release": "OpenDP's noise", **needed(ours, path, "ExactNoise")}
        yield {"run": number, "release": "noise from tables", **needed(ours, path, "TabulatedNoise")}
        yield {"run": number, "release": "inf-tda", **needed(theirs, path)}


def summary(rows: DataFrame) -> DataFrame:
    """Times as fast as inf-tda, medians; OpenDP's draws alone, on all cores, are the most there is to win."""
    import pandas as pd

    of = {name: part.set_index("run") for name, part in rows.groupby("release", sort=False)}
    authors, exact = of.pop("inf-tda"), of["OpenDP's noise"]
    found = [
        {"release": name} | {unit: (authors[unit] / one[unit]).median() for unit in ("whole", "cpu")}
        for name, one in of.items()
    ]
    most = (authors["whole"] * processors() / exact["noise_cpu"]).median()
    return pd.DataFrame([*found, {"release": "OpenDP's draws alone", "whole": most}])
