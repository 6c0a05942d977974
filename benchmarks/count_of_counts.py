"""Count-of-counts at the paper's scale, and the cost of its steps as more sizes occur.

Run as ``python -m benchmarks.count_of_counts [--runs 3] [--homes FILE] [--case NAME ...]``.

First the steps on random runs (size, groups), warm, each timed between two readings of its input (a sum over
its arrays), median of seven: cost per run should not grow with the number of groups, and hardly with the
number of runs. Then whole releases of the partially synthetic housing (240,908,081 groups) with seeded noise,
each in a separate process, so that its peak memory can be measured. Finally the rate of exact noise, and the
time of the same releases with it.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import python
from hierdp.counts.size_runs import Runs, cumulative_of, runs_of_cumulative
from hierdp.data.housing import GROUPS, WEST_COAST, housing
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.metrics.runs import size_run_errors
from hierdp.privacy.noise import ExactNoise, SimulatedNoise
from models import GroupMatching, Merging
from solvers import fast

HOMES = Path("../shared/data/us-commuting-2009-2013.parquet")
EPSILON = 0.1
"""ε of each level, as in the middle of the paper's figures."""


@dataclass(frozen=True)
class Case:
    """A release of the housing: its regions, and one method per level."""

    regions: str
    method: str

    @property
    def name(self) -> str:
        return f"{self.regions}: {self.method}"


CASES = [
    Case("West Coast, 3 levels", "Hc x Hc x Hc"),
    Case("West Coast, 3 levels", "Hg x Hg x Hg"),
    Case("nation, 2 levels", "Hc x Hc"),
    Case("nation, 2 levels", "Hc x Hg"),
    Case("nation, 2 levels", "Hg x Hg"),
    Case("nation, 3 levels", "Hc x Hc x Hc"),
]


class Timed:
    """A source of noise with a clock."""

    def __init__(self, noise: Any) -> None:
        self._noise = noise
        self.seconds, self.draws = 0.0, 0

    def geometric(self, counts: Any, *asked: Any) -> Any:
        started = time.perf_counter()
        noisy = self._noise.geometric(counts, *asked)
        self.seconds += time.perf_counter() - started
        self.draws += counts.size
        return noisy


def whole(case: Case, homes: Path | None, groups: int) -> dict[str, Any]:
    """One release, from the true runs to the consistent ones."""
    three, west = "3" in case.regions, case.regions.startswith("West")
    data = housing(0, groups, homes, counties=three, states=WEST_COAST if west else None)
    places = data.hierarchy
    plan = plan_of(case.method, places.levels, smallest=1)
    noise = Timed(SimulatedNoise(1))
    started = time.perf_counter()
    measured = measure(data, EPSILON * len(places.levels), noise, plan)
    estimated = time.perf_counter()
    made = post_process(measured, places, plan)
    done = time.perf_counter()
    assert (made.groups == data.runs.groups).all()
    errors = size_run_errors(places.tree, places.levels, data.runs, made)
    return {
        "regions": places.size,
        "groups": data.groups,
        "draws": noise.draws,
        "seconds": done - started,
        "noise": noise.seconds,
        "repair": estimated - started - noise.seconds,
        "consistency": done - estimated,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
        "runs": int(made.sizes.size),
        "emd": [round(value, 1) for value in errors["emd_per_region"]],
    }


def apart(case: Case, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of one release, in a separate process."""
    more = ["--groups", str(given.groups)] + (["--homes", str(given.homes)] if given.homes else [])
    command = python("-m", "benchmarks.count_of_counts", "--only", case.name, *more)
    told = subprocess.run(**command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    return found


def pair(rng: np.random.Generator, runs: int, groups: int) -> tuple[Any, list[Any]]:
    """A parent's runs, and those of its ten children, which have as many groups in total."""
    children = []
    for _ in range(10):
        sizes = np.sort(rng.choice(40 * runs, runs // 10, replace=False))
        children.append((sizes, rng.integers(1, 2 * groups, sizes.size)))
    total = sum(int(counts.sum()) for _, counts in children)
    sizes = np.sort(rng.choice(40 * runs, runs, replace=False))
    counts = np.ones(runs, np.int64) + rng.multinomial(total - runs, np.full(runs, 1 / runs))
    return (sizes, counts), children


def steps(runs: int, groups: int) -> Iterator[tuple[str, int, Callable[[], Any], Callable[[], Any]]]:
    """Name, number of runs read, the step, and reading its input once."""
    rng = np.random.default_rng(runs)
    parent, children = pair(rng, runs, groups)
    model = GroupMatching(parent, children)
    read = [*parent, *(side for child in children for side in child)]

    def reading() -> Any:
        return sum(int(side.sum()) for side in read)

    yield "matching", 2 * runs, lambda: fast.answer(model), reading
    matched, proof = fast.answer(model)
    yield "its certificate", 2 * runs, lambda: model.certificate(matched, proof), reading
    sizes = np.stack([model.parent[0][matched["parent"]], model.children[0][matched["child"]]])
    weights = np.stack([model.parent[1][matched["parent"]], model.children[1][matched["child"]]])
    merging = Merging(sizes, weights, integer=True)

    def reading_pairs() -> Any:
        return sizes.sum(), weights.sum()

    yield "merging", matched.size, lambda: fast.answer(merging), reading_pairs
    answer, witness = fast.answer(merging)
    yield "its certificate ", matched.size, lambda: merging.certificate(answer, witness), reading_pairs
    child = model.children[2][matched["child"]]
    counts = matched["count"].astype(np.int64)
    yield "adding up", matched.size, lambda: Runs.added(child, answer, counts, 10), reading_pairs
    length = int(parent[0][-1]) + 1
    yield "to Hc (cells)", length, lambda: cumulative_of(*parent, length), lambda: np.ones(length, int).sum()
    dense = cumulative_of(*parent, length)
    yield "from Hc (cells)", length, lambda: runs_of_cumulative(dense), lambda: dense.sum()


def timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def print_steps(most: int) -> None:
    print(f"{'step':<18}{'runs':>10}{'groups':>16}{'ns a run':>10}{'× reading':>11}")
    for runs in [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= most]:
        for groups in (10, 10_000):
            for name, size, step, read in steps(runs, groups):
                step(), read()
                pairs = [(timed(step), timed(read)) for _ in range(7)]
                ratio = statistics.median(a / b for a, b in pairs)
                each = statistics.median(a for a, _ in pairs) / size * 1e9
                print(f"{name:<18}{size:>10,}{runs * groups:>16,}{each:>10.1f}{ratio:>11.1f}", flush=True)


def exact_rate(epsilon: float, draws: int = 100_000) -> float:
    """Exact draws per second, on all cores."""
    noise, counts = ExactNoise(), np.zeros(draws, np.int64)
    noise.geometric(counts[:2_000], "warm-up", 1, epsilon)
    return draws / timed(lambda: noise.geometric(counts, "rate", 1, epsilon))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each release; medians are printed")
    parser.add_argument("--homes", type=Path, default=HOMES if HOMES.exists() else None)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--case", nargs="*", help="parts of names of releases; default: all")
    parser.add_argument("--most", type=int, default=1_000_000, help="runs of the steps")
    parser.add_argument("--only", help="one release, its figures as JSON")
    given = parser.parse_args()
    if given.only:
        case = next(case for case in CASES if case.name == given.only)
        print(json.dumps(whole(case, given.homes, given.groups)))
        return
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("numpy", "numba", "opendp"))
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, load {load}\n")
    print_steps(given.most)
    rate = statistics.median(exact_rate(EPSILON) for _ in range(5))
    print(f"\nexact noise at ε = {EPSILON}: {rate:,.0f} draws a second\n", flush=True)
    for case in CASES:
        if given.case is not None and not any(part in case.name for part in given.case):
            continue
        runs = [apart(case, given) for _ in range(given.runs)]
        print(case.name)
        shown = {key: runs[0][key] for key in ("regions", "groups", "draws", "runs")}
        print("  " + "  ".join(f"{key} {value:,}" for key, value in shown.items()))
        middle = {
            key: statistics.median(run[key] for run in runs)
            for key in ("seconds", "noise", "repair", "consistency", "peak_gb")
        }
        print("  " + "  ".join(f"{key} {value:.2f}" for key, value in middle.items()))
        print(f"  emd a region, by level {runs[0]['emd']};", end=" ")
        print(f"with exact noise its draws would take {runs[0]['draws'] / rate / 60:,.1f} min", flush=True)


if __name__ == "__main__":
    main()
