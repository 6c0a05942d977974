"""A whole country's commuting, released by us and by the authors' own package, side by side in one run.

Run as ``python -m benchmarks.top_down [--runs 3] [--data FILE]``, after ``pip install "hierdp[bench]"`` for
the authors' ``inf-tda``. The data are the US county-to-county flows of 2009–2013 (135,705 flows out of
3,221² pairs); both release the paper's destination tree with exact noise of OpenDP at ε = 1, δ = 1e-8.

Each release runs in a fresh process, ours and theirs by turns, so that its peak memory is its own. Both
take their noise from OpenDP, draw by draw; ours takes it on all cores, and a third release is ours with noise
from tables (docs/noise.md). Ours is timed from the Parquet file
to the finished release, imports and certificates included; theirs from a sorted series that already holds
all possible pairs, zeros included, as their documentation asks (how long that takes to make is shown and
not counted).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import time
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.child import python
from models.programs.layout import processors

EPSILON, DELTA = 1.0, 1e-8
DATA = Path("../shared/data/us-commuting-2009-2013.parquet")
COLUMNS = ("dest_state", "origin_state", "dest_county", "origin_county")
AXES = {"origin": ["origin_state", "origin_county"], "destination": ["dest_state", "dest_county"]}


class Timed:
    """A source of noise with a clock."""

    def __init__(self, noise: Any) -> None:
        self._noise = noise
        self.seconds, self.cpu, self.draws = 0.0, 0.0, 0

    def gaussian(self, counts: Any, *asked: Any) -> Any:
        started, used = time.perf_counter(), time.process_time()
        noisy = self._noise.gaussian(counts, *asked)
        self.seconds += time.perf_counter() - started
        self.cpu += time.process_time() - used
        self.draws += counts.size
        return noisy


def ours(path: Path, sampler: str = "ExactNoise") -> dict[str, Any]:
    """From the file to a release."""
    started, used = time.perf_counter(), time.process_time()
    from hierdp import tables
    from hierdp.mechanisms.top_down import top_down
    from hierdp.privacy.noise import ExactNoise
    from hierdp.privacy.tabulated import TabulatedNoise

    imported = time.perf_counter()
    data = tables.flows(path, axes=AXES, count="workers")
    read, noise = (
        time.perf_counter(),
        Timed({"ExactNoise": ExactNoise, "TabulatedNoise": TabulatedNoise}[sampler]()),
    )
    release = top_down(data, EPSILON, DELTA, noise)
    done = time.perf_counter()
    proved = all(step.solution.certificate for step in release.steps)
    assert proved
    return {
        "whole": done - started,
        "cpu": time.process_time() - used,
        "import": imported - started,
        "read": read - imported,
        "noise": noise.seconds,
        "noise_cpu": noise.cpu,
        "rest": done - read - noise.seconds,
        "draws": noise.draws,
        "flows": int((release.table.level == release.table.level.max()).sum()),
    }


def theirs(path: Path) -> dict[str, Any]:
    """The package ``inf-tda`` on all possible pairs."""
    import numpy as np
    import pandas as pd
    from InfTDA import mechanism as program

    make = program.make_gaussian_noise

    def of_lists(**asked: Any) -> Any:
        """Their noise, which in OpenDP 0.16 takes lists, but not the arrays that they pass."""
        measure = make(**asked)
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


RELEASES = {"ours": ours, "tables": partial(ours, sampler="TabulatedNoise"), "theirs": theirs}


def apart(which: str, path: Path) -> dict[str, Any]:
    """The figures of one release, in a separate process."""
    command = python("-m", "benchmarks.top_down", "--only", which, "--data", str(path))
    told = subprocess.run(**command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", choices=list(RELEASES), help="one release, its figures as JSON")
    given = parser.parse_args()
    if given.only:
        found = RELEASES[given.only](given.data)
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("numpy", "pandas", "opendp", "inf-tda"))
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    print(
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, load {load}\n", flush=True
    )
    runs: list[dict[str, dict[str, Any]]] = []
    for _ in range(given.runs):
        runs.append({which: apart(which, given.data) for which in RELEASES})
        for which, found in runs[-1].items():
            told = {key: round(value, 2) if value < 1e3 else round(value) for key, value in found.items()}
            print(f"{which:<9}", "  ".join(f"{key} {value:,}" for key, value in told.items()), flush=True)
    print(f"\n{'times as fast as inf-tda':<26} {'by the clock':>14} {'by CPU time':>14}   (medians)")
    for which in ("ours", "tables"):
        times = [
            statistics.median(run["theirs"][unit] / run[which][unit] for run in runs)
            for unit in ("whole", "cpu")
        ]
        print(f"{which:<26} {times[0]:>14.1f} {times[1]:>14.1f}")
    floor = statistics.median(
        run["theirs"]["whole"] * processors() / run["ours"]["noise_cpu"] for run in runs
    )
    print(f"{'OpenDP’s draws alone':<26} {floor:>14.1f}   on {processors()} cores: the most there is to win")


if __name__ == "__main__":
    main()
