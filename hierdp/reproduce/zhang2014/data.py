"""The histograms: DPBench's or, if these are missing, synthetic ones of the same two kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hierdp.data.dpbench import dpbench, names, read_counts
from hierdp.reproduce.runs import seed_for
from hierdp.reproduce.zhang2014.finer import net_trace, search_log
from models.arithmetic.arrays import Ints

WHAT = {
    "Search Log, rebuilt": "SEARCHLOGS with each bin's people spread evenly at random over eight",
    "NetTrace, rebuilt": "NETTRACE with each bin spread over sixteen along a falling curve",
    "SEARCHLOGS": "searches for “Obama” by time, 2004–2010: the paper's Search Log in fewer bins",
    "NETTRACE": "outside hosts by host of a university, sorted: the paper's NetTrace in fewer bins",
    "HEPTH": "citations in high energy physics",
    "INCOME": "persons by income",
    "ADULTFRANK": "persons of the census sample “Adult”, nearly all of them in one bin",
    "GOWALLA-2D": "check-ins by place, 256 × 256, flattened row by row",
    "drawn, sorted": "Pareto counts in every twentieth bin, sorted: not real",
    "drawn, by time": "a daily curve, a few bursts and empty nights: not real",
}


REBUILT = {"Search Log, rebuilt": "SEARCHLOGS", "NetTrace, rebuilt": "NETTRACE"}
"""Data sets of the paper's size, and the set of DPBench from which each is rebuilt; see `finer`."""


def histograms(folder: Path | None, wanted: tuple[str, ...], seed: int, bins: int = 4096) -> dict[str, Ints]:
    """Flattened true counts by name: the requested sets that the folder has, or two synthetic ones.

    A file of counts instead of a folder is one set, with the file's name: Location.csv.
    """
    if folder and folder.is_file():
        return {folder.stem: read_counts(folder).ravel()}
    here = folder / "dpbench" if folder else None
    found: dict[str, Ints] = {}
    for name in wanted:
        source = REBUILT.get(name, name)
        if here and source in names(here):
            counts = dpbench(here, source).ravel()
            found[name] = _finer(name, counts, seed) if name in REBUILT else counts
    return found or drawn(seed, bins)


def _finer(name: str, counts: Ints, seed: int) -> Ints:
    return search_log(counts, seed) if name.startswith("Search") else net_trace(counts)


def drawn(seed: int, bins: int) -> dict[str, Ints]:
    """Two synthetic histograms from a seed."""
    rng = np.random.default_rng(seed_for(seed, "histograms", bins))
    tail = np.zeros(bins)
    tail[: max(1, bins // 20)] = rng.pareto(1.2, max(1, bins // 20)) + 1
    time = np.arange(bins)
    curve = np.clip(60 * np.sin(time * 2 * np.pi / 96), 0, None)
    for start in rng.integers(0, bins, 5):
        curve += 900 * np.exp(-np.clip(time - start, 0, None) / 20) * (time >= start)
    return {
        "drawn, sorted": np.sort(tail.astype(np.int64))[::-1],
        "drawn, by time": rng.poisson(curve).astype(np.int64),
    }
