"""What repairs do on average to counts of each true size, and to sums of many of them.

The data sets and releases are those of the benchmark of intervals. A row is a data set, a class of true
counts of the finest level, and a number k: the mean and the root mean squared error of sums of k counts of
the class, drawn at random for each release; and, where all counts are measured, those of the unbiased
estimates of ``hierdp query --unbiased``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks import intervals
from benchmarks.measuring import DATA

SUMS = (1, 10, 100, 1_000)

DRAWN = 20
"""Sums of each release."""


def run(
    *,
    only: Annotated[tuple[str, ...], "of: commuters, precincts, taxis"] = ("commuters", "precincts"),
    data: Annotated[Path, "a folder with the data"] = DATA,
    runs: Annotated[int, "releases"] = 50,
) -> Iterator[dict[str, Any]]:
    for chosen in only:
        for case in intervals.SETS[chosen](data):
            yield from _rows(case, runs)


def _rows(case: intervals.Case, runs: int) -> Iterator[dict[str, Any]]:
    truth = case.counts(None)
    level = max(truth, key=lambda name: truth[name].size)
    true = np.asarray(truth[level], float)
    classes = intervals.class_of(true)
    released = np.array([np.asarray(case.counts(case.release(k).counts)[level]) - true for k in range(runs)])
    unbiased = None
    if case.linear is not None:
        linear = case.linear(intervals.source_of(case.release(0)))
        unbiased = np.array([intervals.errors_of(linear, linear.draw(k))[level] for k in range(runs)])
    rng = np.random.default_rng(1)
    for one in np.unique(classes).tolist():
        there = np.flatnonzero(classes == one)
        for number in (k for k in SUMS if k <= there.size):
            at = np.array([rng.choice(there, number, replace=False) for _ in range(DRAWN)])
            row = {"data": case.name, "level": level, "least": intervals.CLASSES[one], "summed": number}
            for name, errors in (("released", released), ("unbiased", unbiased)):
                off = None if errors is None else errors[:, at].sum(axis=2)
                row[f"{name}_mean"] = None if off is None else round(float(off.mean()), 3)
                row[f"{name}_rms"] = None if off is None else round(float(np.sqrt((off**2).mean())), 2)
            yield row | {"runs": runs}
