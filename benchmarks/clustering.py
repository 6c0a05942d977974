"""Clusterings of sorted noisy bins: time and cost of the optimum and of the paper's rules, and its proof.

Run as ``python -m benchmarks.clustering [--runs 5] [--most 1048576]`` (minutes). Pareto counts with noise of
ε₁ = ε₂ = 0.1, sorted. First other programs for the same optimum: all pairs in O(n²), and, for few bins,
the interval LP by HiGHS. Then seconds of the optimum, of its certificate, of the greedy and the empirical
rule (that one once), in turns, medians over runs; and the rules' costs over the optimum. Then a given number
of clusters: by prices, as in `Clustering`, and by one layer per cluster (the same divide and conquer, k
times). Finally bins in the data's order (`Segmentation`), compared with the v-optimal program without
pruning.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fast_paths import interleaved
from hierdp.mechanisms.clustering.ahp_rules import empirical, greedy
from hierdp.record.step import Step
from models import Clustering, Segmentation
from models.arithmetic.kernels import kernel
from models.arithmetic.run_costs import VECTORS, run_column, squares
from models.witnesses.sorted_runs import minima
from solvers import fast, solve

SCALE = 10.0


@kernel(**VECTORS)
def all_pairs(noise: float, sums: Any) -> Any:
    """Least costs by trying all last runs: O(n²)."""
    n = sums[0].size - 1
    d = np.zeros(n + 1)
    for j in range(1, n + 1):
        d[j] = np.inf
        for i in range(j):
            d[j] = min(d[j], d[i] + squares(sums, i, j) + noise / (j - i))
    return d


@kernel(**VECTORS)
def layer_by_layer(clusters: int, noise: float, sums: Any) -> float:
    """The least cost of k clusters, one layer per cluster: O(k n log n)."""
    n = sums[0].size - 1
    d, costs = np.full(n + 1, np.inf), np.empty(n)
    d[0] = 0.0
    for r in range(1, clusters + 1):
        above = d
        d = np.full(n + 1, np.inf)
        minima(above, noise, 0.0, sums, r, n, r - 1, n - 1, costs, d)
    return float(d[n])


def sorted_noisy(rng: np.random.Generator, bins: int) -> NDArray[np.int64]:
    """Pareto counts with whole Laplace noise, sorted."""
    true = np.floor(rng.pareto(1, bins).clip(0, 1e4))
    return np.sort(true + np.rint(rng.laplace(0, SCALE, bins))).astype(np.int64)


def others(rng: np.random.Generator, runs: int) -> None:
    """Other programs for the optimum, and whether they agree."""
    print(f"{'bins':>10} {'optimum':>12} {'all pairs':>12} {'HiGHS':>12}   same cost")
    for bins in (100, 200, 4_096, 16_384):
        model = Clustering(sorted_noisy(rng, bins), SCALE)
        noise, sums = float(model.noise), model.sums()
        best = float(model.objective(fast.answer(model)[0]))
        pairs = float(all_pairs(noise, sums)[-1])
        ours, theirs = interleaved(
            runs, lambda m=model: fast.answer(m)[0], lambda a=noise, b=sums: all_pairs(a, b)
        )
        same, lp = abs(pairs / best - 1) < 1e-12, ""
        if bins <= 200:
            found = solve(model, "highs", time_limit=120)
            lp = f"{found.build_seconds + found.solve_seconds:10.3f} s"
            same &= found.status == "optimal" and abs(float(found.objective) / best - 1) < 1e-7
        print(f"{bins:10,} {ours:10.4f} s {theirs:10.4f} s {lp:>12}   {'yes' if same else 'NO'}", flush=True)


def rules(rng: np.random.Generator, runs: int, most: int) -> None:
    """The optimum, its certificate, and the two rules."""
    heads = ("optimum", "certificate", "greedy", "empirical", "greedy costs", "empirical", "clusters")
    print(f"\n{'bins':>10}" + "".join(f"{head:>14}" for head in heads) + "  proved")
    for bins in (4_096, 16_384, 65_536, 262_144, 1_048_576):
        if bins > most:
            break
        values = sorted_noisy(rng, bins)
        model = Clustering(values, SCALE)
        best = solve(model)
        jobs = (
            lambda m=model: fast.answer(m)[0],
            lambda m=model, best=best: m.certificate(best.x, best.certificate.witness),
            lambda v=values: greedy(v, SCALE, Step.solve),
        )
        seconds = interleaved(runs, *jobs)
        once = time.perf_counter()
        marks = empirical(values, SCALE, Step.solve)
        seconds.append(time.perf_counter() - once)
        ruled = greedy(values, SCALE, Step.solve), marks
        over = [float(model.objective(x) / best.objective) for x in ruled]
        told = "".join(f"{one:12.4f} s" for one in seconds) + "".join(f"{one:14.4f}" for one in over)
        proved = "yes" if best.status == "optimal" else "NO"
        print(f"{bins:10,}{told}{int(best.x.sum()):14,}  {proved}", flush=True)


def numbers(rng: np.random.Generator, runs: int, most: int) -> None:
    """A given number of clusters, by prices and layer by layer."""
    print(f"\n{'bins':>10} {'clusters':>9} {'by prices':>12} {'by layers':>12} {'ratio':>8}   same cost")
    for bins in (4_096, 65_536):
        for clusters in (2, 4, 8, 16, 64, int(bins**0.5) * 4):
            if bins > most or clusters * bins > 2e7:
                continue
            model = Clustering(sorted_noisy(rng, bins), SCALE, clusters)
            noise, sums = float(model.noise), model.sums()
            best = float(model.objective(fast.answer(model)[0]))
            same = abs(layer_by_layer(clusters, noise, sums) / best - 1) < 1e-12
            ours, theirs = interleaved(
                runs,
                lambda m=model: fast.answer(m)[0],
                lambda k=clusters, a=noise, b=sums: layer_by_layer(k, a, b),
            )
            told = f"{ours:10.4f} s {theirs:10.4f} s {ours / theirs:8.3f}   {'yes' if same else 'NO'}"
            print(f"{bins:10,} {clusters:9,} {told}", flush=True)


@kernel(**VECTORS)
def every_place(most: int, sums: Any) -> Any:
    """The v-optimal program of Jagadish et al. (1998), which tries all last runs: O(n²k)."""
    n = sums[0].size - 1
    d = np.full((most + 1, n + 1), np.inf)
    d[0, 0] = 0.0
    costs = np.empty(n)
    for j in range(1, n + 1):
        run_column(sums, 0, j, costs[:j])
        for r in range(1, min(most, j) + 1):
            above, least = d[r - 1], np.inf
            for i in range(r - 1, j):
                least = min(least, above[i] + costs[i])
            d[r, j] = least
    return d


def unsorted(rng: np.random.Generator, runs: int) -> None:
    """Runs of bins in the data's order: any number, by a price (NoiseFirst), or a given number."""
    bins = 4_096
    steps = np.repeat(rng.integers(0, 1_000, bins // 16), 16)
    data = {"Pareto": np.floor(rng.pareto(1, bins).clip(0, 1e4)), "steps": steps, "flat": np.zeros(bins)}
    heads = ("fast path", "certificate", "every place")
    print(
        f"\n{'4,096 bins':>10} {'runs':>14}"
        + "".join(f"{head:>14}" for head in heads)
        + "  proved, same cost"
    )
    for name, true in data.items():
        noisy = (true + np.rint(rng.laplace(0, SCALE, bins))).astype(np.int64)
        for clusters in (None, 64, 410):
            model = Segmentation(noisy, clusters, 0 if clusters else 4 * SCALE**2)
            best, sums = solve(model), model.sums()
            jobs = [
                lambda m=model: fast.answer(m)[0],
                lambda m=model, best=best: m.certificate(best.x, best.certificate.witness),
            ]
            if clusters == 64:
                jobs.append(lambda k=clusters, s=sums: every_place(k, s))
            seconds = interleaved(runs, *jobs)
            right = best.status == "optimal"
            if clusters == 64:
                right &= bool(
                    np.isclose(every_place(clusters, sums)[-1, -1], float(best.objective), rtol=1e-12)
                )
            told = "".join(f"{one:12.4f} s" for one in seconds) + " " * 14 * (3 - len(seconds))
            asked = f"{clusters}" if clusters else f"free: {int(best.x.sum()):,}"
            print(f"{name:>10} {asked:>14}{told}  {'yes' if right else 'NO'}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--most", type=int, default=1_048_576, help="bins")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    others(rng, given.runs)
    rules(rng, given.runs, given.most)
    numbers(rng, given.runs, given.most)
    unsorted(rng, given.runs)


if __name__ == "__main__":
    main()
