"""How fast paths and certificates compare with reading and sorting their input, medians over runs.

Run as ``make bench`` or ``python -m benchmarks.fast_paths [--runs 5] [--only inference] [--most 10000000]``.
Each variant of each model is measured on the largest of its typical instances that the fast path solves in a
second (10⁷ elements at most). A row gives the seconds of the fast path and of the certificate of its answer,
both in units of summing all input once and of sorting it, measured in the same run, in turns; and whether the
certificate takes no longer than the fast path. ``python -m benchmarks.peers`` compares with other programs.

Every turn starts from a model without cached results. A model's checks of its data, and a tree's properties
of its shape, are not timed.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

from benchmarks.instances import Family, elements, families, inputs, read
from hierdp.bench.problems import fresh
from solvers import fast

Job = Callable[[], Any]

MOST = 10_000_000
ENOUGH = 1.0
"""Seconds of a fast path beyond which ten times as many elements are not tried."""


def interleaved(runs: int, *jobs: Job) -> list[float]:
    """Median seconds of each job; the jobs take turns, after one warm-up."""
    times: list[list[float]] = [[] for _ in jobs]
    for turn in range(runs + 1):
        for seconds, job in zip(times, jobs, strict=True):
            started = time.perf_counter()
            job()
            if turn:
                seconds.append(time.perf_counter() - started)
    return [statistics.median(seconds) for seconds in times]


def largest(family: Family, most: int) -> Any:
    """The family's largest instance, in powers of ten, that the fast path solves within `ENOUGH` seconds."""
    for small in (20, 2_000):  # kernels
        fast.answer(family.make(np.random.default_rng(0), small))
    size, model = 100, None
    while model is None or size <= most:
        larger = family.make(np.random.default_rng(size), size)
        started = time.perf_counter()
        fast.answer(larger)
        seconds = time.perf_counter() - started
        if model is None or seconds <= ENOUGH:
            model = larger
        if 10 * seconds > ENOUGH:
            break
        size *= 10
    return model


def measure(family: Family, runs: int, most: int) -> str:
    """One row of the table."""
    model = largest(family, most)
    x, witness = fast.answer(model)
    solve, prove, reading, sorting = interleaved(
        runs,
        lambda: fast.answer(fresh(model)),
        lambda: fresh(model).certificate(x, witness),
        lambda: read(model),
        lambda: [np.sort(part, axis=None) for part in inputs(model)],
    )
    within = "yes" if prove <= solve else f"no, {prove / solve:.2f} ×"
    ratios = " ".join(f"{took / unit:9.2f}" for unit in (reading, sorting) for took in (solve, prove))
    return (
        f"{family.name:<30} {elements(model):>11,} {1e3 * solve:11.3f} {1e3 * prove:11.3f} {ratios} {within}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="models with this in their name")
    parser.add_argument("--most", type=int, default=MOST, help="elements")
    given = parser.parse_args()
    packages = ("numpy", "numba")
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in packages)
    print(f"Python {platform.python_version()}, {versions}; medians of {given.runs} runs; milliseconds\n")
    print(f"{'':<30} {'':>11} {'':>11} {'':>11} {'in units of reading':>19} {'of sorting':>19} certificate")
    both = f"{'fast path':>9} {'proof':>9}"
    print(f"{'':<30} {'elements':>11} {'fast path':>11} {'certificate':>11} {both} {both} ≤ fast path")
    for family in families():
        if given.only.lower() in family.name.lower():
            print(measure(family, given.runs, given.most), flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
