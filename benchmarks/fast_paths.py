"""How fast paths and certificates compare with reading or sorting their input, medians over runs.

Run as ``make bench`` or ``python -m benchmarks.fast_paths [--runs 5] [--only inference]``. A row gives the
seconds of the fast path and of the certificate of its answer; both in units of a yardstick, measured in the
same run, on the same data, in turns: summing the array (reading it once), sorting it, …; and whether the
certificate takes no longer than the fast path. Lines below a row compare the fast path with other programs.

Every turn starts from a model that remembers nothing of the turns before. A model's own checks of its data,
and what a tree knows of its shape, are not timed.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from hierdp.bench.problems import fresh
from hierdp.mechanisms.clustering.ahp_rules import greedy
from models import (
    BudgetSplit,
    Chebyshev,
    Clustering,
    ConstrainedInference,
    ControlledRounding,
    CostTable,
    CumulativeQIP,
    FixedSum,
    GroupMatching,
    HierarchyQIP,
    Isotonic,
    Segmentation,
    SimplexQP,
    SparsestChebyshev,
    StrategySDP,
    Tree,
    TreeChebyshev,
)
from solvers import fast

Job = Callable[[], Any]


@dataclass
class Case:
    """One row: a model, its yardstick (what is done, and a job that does it), and other programs' jobs."""

    name: str
    size: str
    model: Any
    unit: str
    yardstick: Job
    rivals: dict[str, Job] = field(default_factory=dict)


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


def measure(case: Case, runs: int) -> None:
    """Print one row, and a line for each rival."""
    x, witness = fast.answer(case.model)
    jobs = (
        lambda: fast.answer(fresh(case.model)),
        lambda: fresh(case.model).certificate(x, witness),
        case.yardstick,
    )
    solve, prove, unit, *others = interleaved(runs, *jobs, *case.rivals.values())
    ratios = f"{solve / unit:8.2f} {prove / unit:8.2f} × {case.unit:<24}"
    within = "yes" if prove <= solve else f"no, {prove / solve:.2f} ×"
    seconds = f"{1e3 * solve:11.3f} ms {1e3 * prove:11.3f} ms"
    print(f"{case.name:<28} {case.size:>26} {seconds} {ratios} {within}", flush=True)
    for name, seconds_of_rival in zip(case.rivals, others, strict=True):
        rival = f"{1e3 * seconds_of_rival:11.3f} ms"
        print(
            f"{'':<28} {'':>26} {rival:>14} {name}: the fast path takes {solve / seconds_of_rival:.4f} of it"
        )


def cases(rng: np.random.Generator) -> Iterator[Case]:
    """All rows, made one after the other: the large ones need not be held together."""
    yield from sequences(rng, 10_000_000)
    yield from fixed_totals(rng, 10_000_000)
    yield from trees(rng)
    yield from others(rng)


def sequences(rng: np.random.Generator, n: int) -> Iterator[Case]:
    """Isotonic regression, clustering and matching: models of sorted things."""
    from sklearn.isotonic import isotonic_regression

    noisy = np.sort(rng.integers(0, 10**6, n)) + rng.integers(-1000, 1000, n)
    real = noisy.astype(float)
    scikit = {"scikit-learn": lambda: isotonic_regression(real)}
    yield Case("isotonic L2, real", f"{n:,}", Isotonic(noisy), "reading it", noisy.sum, scikit)
    yield Case("isotonic L2, integer", f"{n:,}", Isotonic(noisy, integer=True), "reading it", noisy.sum)
    yield Case("isotonic L1", f"{n:,}", Isotonic(noisy, p=1), "reading it", noisy.sum)
    for size in (65_536, 1_048_576):
        bins = np.sort(np.floor(rng.pareto(1, size).clip(0, 1e4)) + np.rint(rng.laplace(0, 10, size)))
        rule = {"the greedy rule of AHP": lambda b=bins: greedy(b, 10.0)} if size < 10**6 else {}
        sort = lambda b=bins: np.sort(b)  # noqa: E731
        yield Case("clustering", f"{size:,}", Clustering(bins, 10.0), "sorting it", sort, rule)
    some = Clustering(np.sort(bins[:65_536]), 10.0, 256)
    yield Case("clustering into 256", "65,536", some, "sorting it", lambda: np.sort(some.values))
    steps = np.repeat(rng.integers(0, 1_000, 4_096), 16) + np.rint(rng.laplace(0, 10, 65_536)).astype(
        np.int64
    )
    yield Case("segmentation", "65,536", Segmentation(steps, price=400), "reading it", steps.sum)
    few = Segmentation(steps[:4_096], 64)
    yield Case("segmentation into 64", "4,096", few, "reading it", steps[:4_096].sum)
    sizes = rng.permutation(4_000_000)[:1_000_000]
    groups = rng.integers(1, 20, sizes.size)
    shift = np.maximum(sizes + rng.integers(-50, 51, sizes.size), 0)
    matching = GroupMatching((sizes, groups), (shift, groups))
    both = lambda: (np.sort(sizes), np.sort(shift))  # noqa: E731
    yield Case("group matching", "2 × 1,000,000 runs", matching, "sorting them", both)


def fixed_totals(rng: np.random.Generator, n: int) -> Iterator[Case]:
    """Counts that must add up to a total, or those of each segment to its own."""
    noisy = rng.integers(-20, 10_000, n)
    sort = lambda: np.sort(noisy)  # noqa: E731
    for segments in (100_000, 1):
        offsets = np.linspace(0, n, segments + 1).astype(np.int64)
        near = np.add.reduceat(np.maximum(noisy, 0), offsets[:-1])
        totals = near + rng.integers(-100, 100, segments)
        size = f"{n:,} in {segments:,}"
        yield Case("Chebyshev", size, Chebyshev(noisy, totals, offsets), "sorting it", sort)
        for p in (1, 2) if segments > 1 else ():
            yield Case(f"fixed sum, L{p}", size, FixedSum(noisy, totals, p, offsets), "reading it", noisy.sum)
    half = int(np.maximum(noisy, 0).sum()) // 2
    for integer in (True, False):
        name = f"simplex QP, {'integer' if integer else 'real'}"
        yield Case(name, f"{n:,}", SimplexQP(noisy, half, integer=integer), "reading it", noisy.sum)
    values = noisy + rng.random(n)
    rounding = ControlledRounding(values, round(values.sum()))
    yield Case("controlled rounding", f"{n:,}", rounding, "reading it", values.sum)
    few = noisy[: n // 10]
    sparsest = SparsestChebyshev(few, int(few.sum()) // 2)
    yield Case("sparsest Chebyshev", f"{few.size:,}", sparsest, "sorting it", lambda: np.sort(few))


def trees(rng: np.random.Generator) -> Iterator[Case]:
    """Counts of a hierarchy."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    consistent = dp.t.make_consistent_b_ary_tree(2, TIA="i64")
    binary = Tree([np.repeat(np.arange(2**level), 2) for level in range(20)])
    counts = rng.integers(0, 100, binary.size)
    rival = {"OpenDP's consistent tree (it gives leaves, as a list)": lambda: consistent(counts)}
    inference = ConstrainedInference(binary, counts, 2.0)
    yield Case("constrained inference", "2^20 leaves", inference, "reading it", counts.sum, rival)
    uneven = ConstrainedInference(binary, counts, rng.uniform(1, 4, counts.size))
    yield Case("inference, uneven variances", "2^20 leaves", uneven, "reading it", counts.sum)
    chebyshev = TreeChebyshev(binary, counts, 50 * 2**20)
    yield Case("Chebyshev on a tree", "2^20 leaves", chebyshev, "reading it", counts.sum)
    for leaves in (759, 7_592):
        qip = census(rng, leaves, 1_000)
        yield Case("hierarchy QIP, 3 levels", f"{leaves:,} × 1,000", qip, "reading it", qip.counts.sum)
    small = census(rng, 100, 50)
    noisy = np.cumsum(small.counts, axis=1)
    relaxed = CumulativeQIP(small.tree, noisy, small.total, integer=False)
    yield Case("cumulative QIP, relaxed", f"{len(noisy):,} nodes × 50", relaxed, "reading it", noisy.sum)


def census(rng: np.random.Generator, leaves: int, sizes: int) -> HierarchyQIP:
    """A nation, 52 states and so many leaves, with counts that fall off with size, and noise."""
    state = np.sort(np.concatenate([np.arange(52), rng.integers(0, 52, leaves - 52)]))
    tree = Tree([np.zeros(52, int), state])
    counts = np.floor(rng.pareto(0.8, (leaves, sizes)) * 1e4 * np.exp(-np.arange(sizes) / 8)).astype(np.int64)
    true = tree.sum_up(counts)
    noise = rng.geometric(0.1, true.shape) - rng.geometric(0.1, true.shape)
    return HierarchyQIP(tree, true + noise, int(true[0].sum()))


def others(rng: np.random.Generator) -> Iterator[Case]:
    """Cost tables, and how to spend a budget."""
    tables = [np.cumsum(np.sort(rng.integers(-1000, 1000, 1000))) for _ in range(1000)]
    merged = np.concatenate(tables)
    division = CostTable(tables, 300_000)
    yield Case("cost table", "1,000 × 1,000", division, "sorting them", lambda: np.sort(merged))
    weights = rng.uniform(1, 1e6, 30)
    yield Case("budget split", "30 levels", BudgetSplit(weights, 1.0), "reading it", weights.sum)
    ranges = np.tril(np.ones((64, 64)))
    eigen = lambda: np.linalg.eigh(ranges @ ranges.T)  # noqa: E731
    yield Case("strategy SDP", "64 prefix ranges", StrategySDP(ranges), "its eigenvalues", eigen)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="rows with this in their name")
    given = parser.parse_args()
    packages = ("numpy", "numba", "scikit-learn", "opendp")
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in packages)
    print(f"Python {platform.python_version()}, {versions}; medians of {given.runs} runs\n")
    heads = f"{'fast path':>14} {'certificate':>14} {'in units of the yardstick':>43} certificate"
    print(f"{'':<28} {'':>26} {heads} ≤ fast path")
    for case in cases(np.random.default_rng(0)):
        if given.only.lower() in case.name.lower():
            measure(case, given.runs)
        del case
        gc.collect()


if __name__ == "__main__":
    main()
