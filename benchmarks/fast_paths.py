"""How fast paths and certificates compare with reading or sorting their input, medians over runs.

Run as ``make bench`` or ``python -m benchmarks.fast_paths [--runs 5]``. The yardsticks are measured in the
same run, on the same arrays: summing the array (reading it once), sorting it, scikit-learn's isotonic fit.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

from models import (
    Chebyshev,
    Clustering,
    ConstrainedInference,
    GroupMatching,
    HierarchyQIP,
    Isotonic,
    SimplexQP,
    Tree,
)
from solvers import fast


def interleaved(runs: int, *jobs: Callable[[], Any]) -> list[float]:
    """Median seconds of each job; the jobs take turns, after one warm-up."""
    times: list[list[float]] = [[] for _ in jobs]
    for turn in range(runs + 1):
        for seconds, job in zip(times, jobs, strict=True):
            started = time.perf_counter()
            job()
            if turn:
                seconds.append(time.perf_counter() - started)
    return [statistics.median(seconds) for seconds in times]


def report(name: str, size: str, yardstick: str, seconds: list[float]) -> None:
    """One line: the fast path and its certificate in units of the yardstick."""
    solve, prove, unit = seconds
    ratios = f"{solve / unit:6.2f}  {prove / unit:6.2f} × {yardstick}"
    print(f"{name:<34} {size:>24} {solve:9.3f} s {prove:9.3f} s  {ratios}")


def census(rng: np.random.Generator, leaves: int, sizes: int) -> HierarchyQIP:
    """A nation, 52 states and so many leaves, with counts that fall off with size, and noise."""
    state = np.sort(np.concatenate([np.arange(52), rng.integers(0, 52, leaves - 52)]))
    tree = Tree([np.zeros(52, int), state])
    counts = np.floor(rng.pareto(0.8, (leaves, sizes)) * 1e4 * np.exp(-np.arange(sizes) / 8)).astype(np.int64)
    true = tree.sum_up(counts)
    noise = rng.geometric(0.1, true.shape) - rng.geometric(0.1, true.shape)
    return HierarchyQIP(tree, true + noise, int(true[0].sum()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("numpy", "numba", "scikit-learn"))
    print(f"Python {platform.python_version()}, {versions}; medians of {runs} runs\n")
    print(f"{'':<34} {'size':>24} {'fast path':>11} {'certificate':>11}   in units of the yardstick")
    rng = np.random.default_rng(0)

    n = 10_000_000
    noisy = np.sort(rng.integers(0, 10**6, n)) + rng.integers(-1000, 1000, n)
    for model in (Isotonic(noisy), Isotonic(noisy, integer=True), Isotonic(noisy, p=1)):
        x = fast.answer(model)
        name = f"isotonic L{model.p}, {'integer' if model.integer else 'real'}"
        jobs = (lambda m=model: fast.answer(m), lambda m=model, x=x: m.certificate(x), noisy.sum)
        report(name, f"{n:,}", "reading it", interleaved(runs, *jobs))
    from sklearn.isotonic import isotonic_regression

    model, real = Isotonic(noisy), noisy.astype(float)
    times = interleaved(runs, lambda: fast.answer(model), lambda: None, lambda: isotonic_regression(real))
    ratio = f"{times[0] / times[2]:6.2f}         × scikit-learn's isotonic regression"
    print(f"{'':<34} {'':>24} {times[0]:9.3f} s {'':>11}  {ratio}")

    noisy = rng.integers(-20, 10_000, n)
    for segments in (100_000, 1):
        offsets = np.linspace(0, n, segments + 1).astype(np.int64)
        near = np.add.reduceat(np.maximum(noisy, 0), offsets[:-1])
        many = Chebyshev(noisy, near + rng.integers(-100, 100, segments), offsets)
        x = fast.answer(many)
        jobs = (lambda m=many: fast.answer(m), lambda m=many, x=x: m.certificate(x), lambda: np.sort(noisy))
        report("Chebyshev", f"{n:,} in {segments:,}", "sorting it", interleaved(runs, *jobs))

    simplex = SimplexQP(noisy, int(np.maximum(noisy, 0).sum()) // 2)
    x = fast.answer(simplex)
    jobs = (lambda: fast.answer(simplex), lambda: simplex.certificate(x), noisy.sum)
    report("simplex QP, integer", f"{n:,}", "reading it", interleaved(runs, *jobs))

    tree = Tree([np.repeat(np.arange(2**level), 2) for level in range(20)])
    counts = rng.integers(0, 100, tree.size)
    inference = ConstrainedInference(tree, counts, 2.0)
    y = fast.answer(inference)
    jobs = (lambda: fast.answer(inference), lambda: inference.certificate(y), counts.sum)
    report("constrained inference", "2^20 leaves", "reading it", interleaved(runs, *jobs))

    for size in (65_536, 1_048_576):
        bins = np.sort(np.floor(rng.pareto(1, size).clip(0, 1e4)) + np.rint(rng.laplace(0, 10, size)))
        clusters = Clustering(bins, 10.0)
        z = fast.answer(clusters)
        jobs = (
            lambda c=clusters: fast.answer(c),
            lambda c=clusters, z=z: c.certificate(z),
            lambda b=bins: np.sort(b),
        )
        report("optimal clustering", f"{size:,}", "sorting it", interleaved(runs, *jobs))

    sizes = rng.permutation(4_000_000)[:1_000_000]
    groups = rng.integers(1, 20, 1_000_000)
    shift = np.maximum(sizes + rng.integers(-50, 51, sizes.size), 0)
    matching = GroupMatching((sizes, groups), (shift, groups))
    pairs = fast.answer(matching)
    jobs = (
        lambda: fast.answer(matching),
        lambda: matching.certificate(pairs),
        lambda: (np.sort(sizes), np.sort(shift)),
    )
    report("group matching", "2 × 1,000,000 runs", "sorting them", interleaved(runs, *jobs))

    for leaves in (759, 7_592):
        qip = census(rng, leaves, 1_000)
        x = fast.answer(qip)
        jobs = (lambda q=qip: fast.answer(q), lambda q=qip, x=x: q.certificate(x), qip.counts.sum)
        report("hierarchy QIP, 3 levels", f"{leaves:,} × 1,000", "reading it", interleaved(runs, *jobs))


if __name__ == "__main__":
    main()
