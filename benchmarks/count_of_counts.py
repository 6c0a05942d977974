"""Count-of-counts at the paper's scale, and the cost of its steps as more sizes occur.

First the steps on random runs (size, groups), warm, each timed between two readings of its input (a sum over
its arrays), median of seven: cost per run should not grow with the number of groups, and hardly with the
number of runs. Then whole releases of the partially synthetic housing (240,908,081 groups) with seeded noise,
each in a separate process, and the minutes that their draws would take with exact noise, at its rate here.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.child import needed
from benchmarks.measuring import DATA, TimedNoise, timed
from hierdp.counts.size_runs import Runs, cumulative_of, runs_of_cumulative
from hierdp.data.housing import GROUPS, WEST_COAST, housing
from hierdp.mechanisms.count_of_counts import measure, post_process
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.metrics.runs import size_run_errors
from hierdp.privacy.noise import ExactNoise, SimulatedNoise
from models import GroupMatching, Merging
from solvers import fast

HOMES = "us-commuting-2009-2013.parquet"
EPSILON = 0.1
"""ε of each level, as in the middle of the paper's figures."""

CASES = [
    ("West Coast, 3 levels", "Hc x Hc x Hc"),
    ("West Coast, 3 levels", "Hg x Hg x Hg"),
    ("nation, 2 levels", "Hc x Hc"),
    ("nation, 2 levels", "Hc x Hg"),
    ("nation, 2 levels", "Hg x Hg"),
    ("nation, 3 levels", "Hc x Hc x Hc"),
]
"""Releases of the housing: its regions, and one method per level."""


def whole(regions: str, method: str, homes: str, groups: int) -> dict[str, Any]:
    """One release, from the true runs to the consistent ones."""
    three, west = "3" in regions, regions.startswith("West")
    path = Path(homes) if homes else None
    data = housing(0, groups, path, counties=three, states=WEST_COAST if west else None)
    places = data.hierarchy
    plan = plan_of(method, places.levels, smallest=1)
    noise = TimedNoise(SimulatedNoise(1))
    estimating, measured = timed(lambda: measure(data, EPSILON * len(places.levels), noise, plan), 1)
    consistency, made = timed(lambda: post_process(measured, places, plan), 1)
    assert (made.groups == data.runs.groups).all()
    errors = size_run_errors(places.tree, places.levels, data.runs, made)
    return {
        "regions": places.size,
        "groups": data.groups,
        "draws": noise.draws,
        "runs": int(made.sizes.size),
        "seconds": estimating + consistency,
        "noise": noise.seconds,
        "repair": estimating - noise.seconds,
        "consistency": consistency,
        "emd_a_region": ", ".join(f"{value:.1f}" for value in errors["emd_per_region"]),
    }


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


def measured_steps(most: int) -> Iterator[dict[str, Any]]:
    """Each step, by the numbers of runs and groups."""
    for runs in [n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= most]:
        for groups in (10, 10_000):
            for name, size, step, read in steps(runs, groups):
                step(), read()
                pairs = [(timed(step, 1)[0], timed(read, 1)[0]) for _ in range(7)]
                ratio = statistics.median(a / b for a, b in pairs)
                each = statistics.median(a for a, _ in pairs) / size * 1e9
                yield {
                    "step": name,
                    "runs": size,
                    "groups": runs * groups,
                    "ns a run": each,
                    "× reading": ratio,
                }


def exact_rate(epsilon: float, draws: int = 100_000) -> float:
    """Exact draws per second, on all cores."""
    noise, counts = ExactNoise(), np.zeros(draws, np.int64)
    noise.geometric(counts[:2_000], "warm-up", 1, epsilon)
    return draws / timed(lambda: noise.geometric(counts, "rate", 1, epsilon), 5)[0]


def run(
    *,
    runs: Annotated[int, "of each release"] = 1,
    data: Annotated[Path, f"a folder; its {HOMES} tells where homes are, if it is there"] = DATA,
    groups: int = GROUPS,
    case: Annotated[str, "only releases with this in their name"] = "",
    most: Annotated[int, "runs of the steps"] = 1_000_000,
) -> Iterator[dict[str, Any]]:
    yield from measured_steps(most)
    rate = exact_rate(EPSILON)
    homes = data / HOMES if (data / HOMES).exists() else ""
    for regions, method in CASES:
        if case in f"{regions}: {method}":
            for _ in range(runs):
                row = needed(whole, regions, method, homes, groups)
                exact = row["draws"] / rate / 60
                yield {"regions of": regions, "method": method, **row, "exact noise, minutes": exact}
