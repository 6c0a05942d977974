"""The histograms: DPBench's, two rebuilt at the paper's size; or, if these are missing, synthetic ones.

The rebuilt ones have the paper's numbers of bins, the sums of DPBench's bins, and approximately the published
number of empty bins and variance (see the table of the data). The size of errors can be compared, but they
are not the paper's files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hierdp.data.dpbench import dpbench, names, read_counts
from hierdp.experiments.run import seed_for
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
"""Data sets of the paper's size, and the set of DPBench from which each is rebuilt."""


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
            if name in REBUILT:
                counts = search_log(counts, seed) if name.startswith("Search") else net_trace(counts)
            found[name] = counts
    return found or drawn(seed, bins)


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


SEARCH_LOG = 8
"""Bins of Search Log (32,768) in each of SEARCHLOGS (4,096)."""

NET_TRACE, LARGEST = 16, 1_423
"""Bins of NetTrace (65,536) in each of NETTRACE, and its largest count as printed."""


def search_log(counts: Ints, seed: int) -> Ints:
    """Each bin's people, distributed uniformly at random over eight bins."""
    rng = np.random.default_rng(seed_for(seed, "Search Log"))
    return np.asarray(rng.multinomial(counts, np.full(SEARCH_LOG, 1 / SEARCH_LOG)).ravel(), dtype=np.int64)


def net_trace(counts: Ints, largest: int = LARGEST) -> Ints:
    """Sorted counts: a hyperbola from the largest in the first bin, geometric falls in the others.

    Within a bin, the curve runs between the geometric means with the previous and the next bin, and is scaled
    to the bin's sum.
    """
    there = counts[counts > 0]
    means = there / NET_TRACE
    edges = np.sqrt(means[:-1] * means[1:])
    place = np.arange(NET_TRACE)
    falls = [_hyperbola(largest, float(there[0]), place)] if there.size else []
    for start, end in zip(edges, np.append(edges[1:], means[-1:]), strict=False):
        falls.append(start * (end / start) ** ((place + 0.5) / NET_TRACE))
    finer = np.zeros(counts.size * NET_TRACE, dtype=np.int64)
    for k, (fall, total) in enumerate(zip(falls, there.tolist(), strict=True)):
        ends = np.rint(np.cumsum(fall) * (total / fall.sum())).astype(np.int64)
        finer[k * NET_TRACE : (k + 1) * NET_TRACE] = np.diff(ends, prepend=0)
    return np.sort(finer)[::-1].copy()


def _hyperbola(largest: int, total: float, place: Ints) -> NDArray[np.float64]:
    """``largest/(1 + j/a)`` with the given total; nearly flat if `largest` is below the mean."""
    low, high = 1e-6, 1e9
    for _ in range(100):
        a = np.sqrt(low * high)
        low, high = (low, a) if (largest / (1 + place / a)).sum() > total else (a, high)
    return np.asarray(largest / (1 + place / low))
