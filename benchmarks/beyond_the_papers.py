"""What exact optimization says of the papers' rules of thumb. Seeded; nothing here is timed.

Run as ``python -m benchmarks.beyond_the_papers``. Each block states what it draws and how many times.
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
from numpy.typing import NDArray

from models import (
    Chebyshev,
    Clustering,
    CumulativeQIP,
    HierarchyQIP,
    Isotonic,
    SimplexQP,
    SparsestChebyshev,
    Tree,
    TreeChebyshev,
)
from solvers import solve

RUNS = 200


def fewest_positives(rng: np.random.Generator) -> None:
    """IntOpt's positives against the fewest that any Chebyshev-optimal answer has."""
    print(f"Fewest positives: 200 cells, a share of them 5 … 500, noise of scale 5; {RUNS} draws")
    heads = ("IntOpt", "fewest", "IntOpt is fewest", "L1, IntOpt", "L1, fewest")
    print(f"{'share':>8}" + "".join(f"{head:>18}" for head in heads))
    for share in (0.01, 0.1, 0.3, 0.6):
        rows = []
        for _ in range(RUNS):
            true = np.where(rng.random(200) < share, rng.integers(5, 500, 200), 0)
            noisy = true + np.rint(rng.normal(0, 5, 200)).astype(int)
            total = int(true.sum())
            rule, best = solve(Chebyshev(noisy, total)).x, solve(SparsestChebyshev(noisy, total)).x
            rows.append(
                [
                    np.count_nonzero(rule),
                    np.count_nonzero(best),
                    *(np.abs(x - noisy).sum() for x in (rule, best)),
                ]
            )
        a = np.array(rows)
        same = np.mean(a[:, 0] == a[:, 1])
        means = a.mean(axis=0)
        print(f"{share:8}{means[0]:18.1f}{means[1]:18.1f}{same:18.0%}{means[2]:18.1f}{means[3]:18.1f}")


def level_by_level(tree: Tree, noisy: NDArray[np.int64], total: int, squares: bool) -> NDArray[np.int64]:
    """Each family given its parent's count, from the root down: Chebyshev, or least squares."""
    x = np.zeros(tree.size, np.int64)
    x[0] = total
    start, child = tree.children
    for r in tree.internal:
        family = child[start[r] : start[r + 1]]
        if squares:
            flat = Tree([np.zeros(family.size, int)])
            model = HierarchyQIP(flat, np.append(0, noisy[family])[:, None], int(x[r]))
            x[family] = solve(model).x[1:, 0]
        else:
            x[family] = solve(Chebyshev(noisy[family], int(x[r]))).x
    return x


def joint_top_down(rng: np.random.Generator) -> None:
    """A whole tree at once against level by level."""
    print(f"\nJoint against level by level: 1 + 8 + 64 + 512 nodes, noise of scale 10; {RUNS} draws, means")
    print(f"{'':>24} {'objective':>12} {'largest error, by level':>34} {'L1 error at the leaves':>24}")
    tree = Tree([np.zeros(8, int), np.repeat(np.arange(8), 8), np.repeat(np.arange(64), 8)])
    rows: dict[str, list[list[float]]] = {}
    for _ in range(RUNS):
        true = tree.sum_up(np.floor(rng.pareto(1, tree.leaves.size) * 5).astype(np.int64))
        noisy = true + np.rint(rng.normal(0, 10, tree.size)).astype(int)
        noisy[0] = total = int(true[0])
        chebyshev = TreeChebyshev(tree, noisy, total)
        least = HierarchyQIP(tree, noisy[:, None], total)
        answers = {
            "Chebyshev, by level": (level_by_level(tree, noisy, total, False), chebyshev),
            "Chebyshev, joint": (solve(chebyshev).x, chebyshev),
            "L2, by level": (level_by_level(tree, noisy, total, True), least),
            "L2, joint": (solve(least).x[:, 0], least),
        }
        for name, (x, model) in answers.items():
            error = np.abs(x - true)
            by_level = [float(error[tree.nodes_of(k)].max()) for k in (1, 2, 3)]
            cost = float(model.objective(x if model is chebyshev else x[:, None]))
            rows.setdefault(name, []).append([cost, *by_level, float(error[tree.leaves].sum())])
    for name, values in rows.items():
        cost, *by_level, l1 = np.mean(values, axis=0)
        print(f"{name:>24} {cost:12.1f} {'  '.join(f'{v:9.1f}' for v in by_level):>34} {l1:24.1f}")


def solve_then_round(rng: np.random.Generator) -> None:
    """Integer answers against the relaxation's, rounded."""
    print(f"\nSolve relaxed, then round: {RUNS} random instances of about 60 cells each")
    print(f"{'':>16} {'breaks a constraint':>20} {'feasible, not optimal':>22} {'mean miss of those':>20}")
    for kind in (Isotonic, SimplexQP, HierarchyQIP, CumulativeQIP):
        broke = missed = 0
        misses = []
        for _ in range(RUNS):
            model = kind.random(rng, 60)
            if isinstance(model, Isotonic):
                model = replace(model, p=2)
            model = replace(model, integer=True)
            relaxed = solve(replace(model, integer=False))
            exact = solve(model) if kind is not CumulativeQIP else solve(model, "highs", time_limit=20)
            if relaxed.x is None or exact.status != "optimal":
                continue
            rounded = np.rint(np.asarray(relaxed.x, float)).astype(np.int64)
            if model.violations(rounded):
                broke += 1
            elif (miss := model.objective(rounded) - exact.objective) > 0:
                missed += 1
                misses.append(float(miss))
        mean = f"{np.mean(misses):.1f}" if misses else "-"
        print(f"{kind.__name__:>16} {broke / RUNS:20.0%} {missed / RUNS:22.0%} {mean:>20}")


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def greedy(values: NDArray[np.float64], noise: float) -> NDArray[np.int64]:
    """Algorithm 3 of Zhang et al. 2014, as printed: 1 where a cluster starts; `noise` is 2/ε₂²."""
    n = values.size
    starts = np.zeros(n, np.int64)
    starts[0] = 1
    total, squares, count = values[0], values[0] ** 2, 1
    for j in range(1, n):
        h = values[j]
        more, more_squares = total + h, squares + h * h
        joined = more_squares - more * more / (count + 1) + noise / (count + 1)
        # err*: the least that bin j can cost in any cluster that starts with it.
        least, tail = np.inf, 0.0
        for length in range(1, n - j + 1):
            tail += values[j + length - 1]
            away = (h - tail / length) ** 2
            least = min(least, away + noise / length**2)
            if away > least:
                break
        apart = squares - total * total / count + noise / count + least
        if joined < apart:
            total, squares, count = more, more_squares, count + 1
        else:
            starts[j] = 1
            total, squares, count = h, h * h, 1
    return starts


def clusterings(rng: np.random.Generator) -> None:
    """The optimum of Zhang et al.'s clustering problem, as a yardstick for their greedy and √n rules."""
    print(
        "\nClustering: sorted noisy bins (Pareto counts, Laplace noise), ε₁ = ε₂ = ε; costs over the optimum"
    )
    heads = ("ε", "clusters", "greedy", "its clusters", "√n equal runs", "proved")
    print(f"{'n':>10}" + "".join(f"{head:>15}" for head in heads))
    for n in (4_096, 65_536):
        true = np.floor(rng.pareto(1, n).clip(0, 1e4))
        for epsilon in (0.01, 0.1, 1.0):
            values = np.sort(true + np.rint(rng.laplace(0, 1 / epsilon, n)))
            model = Clustering(values, 1 / epsilon)
            best = solve(model)
            rule = greedy(values, 2 / epsilon**2)
            runs = np.zeros(n, np.int64)
            runs[np.linspace(0, n, int(np.sqrt(n)), endpoint=False).astype(int)] = 1
            over = [model.objective(x) / best.objective for x in (rule, runs)]
            told = f"{n:10,}{epsilon:15}{best.x.sum():15,}{over[0]:15.3f}{rule.sum():15,}{over[1]:15,.1f}"
            print(f"{told}{best.status == 'optimal'!s:>15}")


def main() -> None:
    """All of them."""
    fewest_positives(np.random.default_rng(1))
    joint_top_down(np.random.default_rng(2))
    solve_then_round(np.random.default_rng(3))
    clusterings(np.random.default_rng(4))


if __name__ == "__main__":
    main()
