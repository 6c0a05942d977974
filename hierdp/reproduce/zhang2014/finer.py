"""Two of the paper's histograms at its size, rebuilt from DPBench's coarser ones and the paper's Table 1.

They have the paper's numbers of bins, the sums of DPBench's bins, and approximately the published number of
empty bins and variance (see the table of the data). The size of errors can be compared, but they are not the
paper's files.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hierdp.reproduce.runs import seed_for
from models.arithmetic.arrays import Ints

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
