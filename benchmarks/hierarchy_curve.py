"""Growth of the hierarchy QIP's cost: time and memory per variable, to ten times the census, in odd shapes.

Run as ``python -m benchmarks.hierarchy_curve [--runs 3] [--most 76000000] [--plot curve.png]``. Linear growth
is a flat column of nanoseconds a variable. Times are medians; the last columns are the processors' time for
both (which others on the machine disturb less) and the peak of memory over the input alone.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from models import HierarchyQIP, Tree
from solvers import fast

STATES = 52
Row = tuple[str, str, int, float, float, float, float]


def nation(leaves: int) -> Tree:
    """Three levels: a nation, its states, their leaves."""
    rng = np.random.default_rng(leaves)
    states = min(STATES, leaves)
    state = np.sort(np.concatenate([np.arange(states), rng.integers(0, states, leaves - states)]))
    return Tree([np.zeros(states, int), state])


def binary(levels: int) -> Tree:
    """Every node has two children."""
    return Tree([np.repeat(np.arange(2**level), 2) for level in range(levels)])


def counts(tree: Tree, sizes: int, epsilon: float, seed: int = 0) -> HierarchyQIP:
    """Counts that fall off with size, plus the paper's geometric noise of scale 2L/ε, drawn row by row."""
    rng = np.random.default_rng(seed)
    true = np.zeros((tree.size, sizes), np.int64)
    fall = 1e4 * np.exp(-np.arange(sizes) / 8)
    for leaf in tree.leaves:
        true[leaf] = rng.pareto(0.8, sizes) * fall
    for node in range(tree.size - 1, 0, -1):
        true[tree.parent[node]] += true[node]
    total = int(true[0].sum())
    stop = -np.expm1(-epsilon / (2 * (tree.depth + 1)))
    for row in true:
        row += rng.geometric(stop, sizes) - rng.geometric(stop, sizes)
    return HierarchyQIP(tree, true, total)


def of_nation(leaves: int, sizes: int, epsilon: float) -> HierarchyQIP:
    """`counts` of a nation, with a newly made tree."""
    return counts(nation(leaves), sizes, epsilon)


def shapes(most: int) -> Iterator[tuple[str, str, Callable[[], HierarchyQIP]]]:
    """``(family, name, instance)`` of every measurement up to a number of variables."""
    for leaves, sizes in (
        (100, 100), (320, 320), (759, 100), (759, 1_000), (2_400, 1_000), (7_592, 1_000), (24_000, 1_000),
        (75_920, 1_000), (7_592, 3_200), (7_592, 10_000),
    ):  # fmt: skip
        family = "more leaves" if sizes <= 1_000 else "more sizes"
        if leaves * sizes <= most:
            yield family, f"{leaves:,} leaves × {sizes:,}", partial(of_nation, leaves, sizes, 0.1)
    flat = Tree([np.zeros(100_000, int)])
    inner = Tree([np.zeros(100_000, int), np.arange(100_000).repeat(2)])
    for name, tree, sizes in (
        ("binary, 6 levels × 10,000", binary(6), 10_000),
        ("binary, 14 levels × 50", binary(14), 50),
        ("chain of 40 × 20,000", Tree([[0]] * 40), 20_000),
        ("100,000 leaves in one × 10", flat, 10),
        ("100,000 inner children × 4", inner, 4),
        ("1,000,000 leaves × 1", nation(1_000_000), 1),
        ("2 leaves × 500,000", Tree([[0, 0]]), 500_000),
    ):
        yield "odd shapes", name, partial(counts, tree, sizes, 0.1)
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        yield "noise", f"759 × 1,000, ε = {epsilon:g}", partial(of_nation, 759, 1_000, epsilon)
    tree = nation(759)
    zeros = np.zeros((tree.size, 1_000), np.int64)
    yield "noise", "759 × 1,000, zeros, G = 0", lambda: HierarchyQIP(tree, zeros, 0)
    yield "noise", "759 × 1,000, zeros, G = 10^6", lambda: HierarchyQIP(tree, zeros, 10**6)


def measure(family: str, name: str, model: HierarchyQIP, runs: int) -> Row:
    """Median seconds of the fast path, its certificate and the processors; the peak in GB over the input."""
    solving, proving, working, peaks = [], [], [], []
    for _ in range(runs):
        before = memory(reset=True)
        started, worked = time.perf_counter(), time.process_time()
        x, witness = fast.answer(model)
        solved = time.perf_counter()
        proof = model.certificate(x, witness)
        solving.append(solved - started)
        proving.append(time.perf_counter() - solved)
        working.append(time.process_time() - worked)
        peaks.append(memory() - before)
        if not proof.optimal:
            raise AssertionError(f"{name}: {proof.reason}")
    times = [statistics.median(seconds) for seconds in (solving, proving, working)]
    return family, name, model.counts.size, times[0], times[1], times[2], max(peaks)


def memory(reset: bool = False) -> float:
    """Peak resident memory in GB (Linux); since the last reset, which sets it to what is resident now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 2**20 if found else 0.0


def plot(rows: list[Row], path: Path) -> None:
    """Seconds against variables, with straight lines to compare."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5))
    rows = sorted(rows, key=lambda row: row[2])
    for family, marker in (("more leaves", "o-"), ("more sizes", "s-"), ("odd shapes", "x"), ("noise", "+")):
        of = [row for row in rows if row[0] == family]
        axes.plot([r[2] for r in of], [r[5] for r in of], marker, label=f"processors, {family}")
    of = [row for row in rows if row[0].startswith("more")]
    axes.plot([r[2] for r in of], [r[3] for r in of], "v", mfc="none", label="fast path, by the clock")
    axes.plot([r[2] for r in of], [r[4] for r in of], ".", label="certificate, by the clock")
    ends = np.array([1e4, max(r[2] for r in rows)])
    for each in (20e-9, 200e-9):
        axes.plot(ends, each * ends, ":", color="grey")
        axes.annotate(f"{each * 1e9:.0f} ns a variable", (ends[1], each * ends[1]), ha="right", va="bottom")
    axes.set(
        xscale="log", yscale="log", xlabel="variables", ylabel="seconds", title="The hierarchy QIP, exact"
    )
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=int, default=76_000_000, help="variables; 76 million take 7 GB")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    measure("", "warm-up", counts(nation(100), 10, 1.0), 1)
    print(f"{os.cpu_count()} processors; medians of {arguments.runs} runs")
    heads = ("", "variables", "fast path", "certificate", "ns each", "CPU", "memory")
    print("{:<30} {:>12} {:>11} {:>12} {:>12} {:>7} {:>11}".format(*heads))
    rows = []
    for family, name, instance in shapes(arguments.most):
        row = measure(family, name, instance(), arguments.runs)
        _, _, size, *seconds, peak = row
        solve, prove, work = (second / size * 1e9 for second in seconds)
        line = f"{name:<30} {size:>12,} {seconds[0]:9.4f} s {seconds[1]:10.4f} s"
        print(f"{line} {solve:5.0f} + {prove:4.0f} {work:7.0f} {peak:8.2f} GB", flush=True)
        rows.append(row)
    if arguments.plot is not None:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
