"""Compare the papers' rules of thumb with exact optimization. Seeded; nothing here is timed.

Run as ``python -m benchmarks.beyond_the_papers``. Each block states what it draws and how many times.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hierdp.mechanisms.clustering.ahp_rules import greedy
from hierdp.record.step import Step
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
    TreeMatching,
)
from solvers import solve
from solvers.fast.tree_matching import shared_out, top_down

RUNS = 200


def fewest_positives(rng: np.random.Generator) -> None:
    """Compare IntOpt's number of positive entries with the fewest of any Chebyshev-optimal answer."""
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
    """Solve each family for its parent's count, from the root down: Chebyshev, or least squares."""
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
    """Compare solving a whole tree at once with level by level."""
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
    """Compare integer answers with the relaxation's, rounded."""
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


def clusterings(rng: np.random.Generator) -> None:
    """Compare Zhang et al.'s greedy and √n clustering rules with the optimum."""
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
            rule = greedy(values.astype(np.int64), 1 / epsilon, Step.solve)
            runs = np.zeros(n, np.int64)
            runs[np.linspace(0, n, int(np.sqrt(n)), endpoint=False).astype(int)] = 1
            over = [model.objective(x) / best.objective for x in (rule, runs)]
            told = f"{n:10,}{epsilon:15}{best.x.sum():15,}{over[0]:15.3f}{rule.sum():15,}{over[1]:15,.1f}"
            print(f"{told}{best.status == 'optimal'!s:>15}")


def matchings(rng: np.random.Generator) -> None:
    """Compare Kuo et al.'s matching, family by family, with matching all three levels at once."""
    print(f"\nMatching by family against all levels at once: 1 + 3 + 9 regions; {RUNS} draws each")
    heads = ("groups a leaf", "sizes", "noise", "a gap in", "mean excess", "largest")
    print("".join(f"{head:>15}" for head in heads))
    tree = Tree([np.zeros(3, int), np.repeat(np.arange(3), 3)])
    for groups, sizes, noise in (
        (2, 6, 2),
        (20, 6, 2),
        (20, 60, 2),
        (20, 60, 20),
        (200, 60, 2),
        (200, 600, 20),
    ):
        over = []
        for _ in range(RUNS):
            leaves = rng.integers(0, sizes, (tree.leaves.size, groups))
            true = [leaves[mine].ravel() for mine in _inside(tree)]
            noisy = [np.maximum(s + np.rint(rng.laplace(0, noise, s.size)).astype(int), 0) for s in true]
            model = TreeMatching(tree, [np.unique(s, return_counts=True) for s in noisy])
            best = solve(model)
            by_family = model.objective(shared_out(model, top_down(model)))
            over.append(float(by_family / best.objective) - 1 if best.objective else 0.0)
        excess = np.array(over)
        told = f"{groups:15,}{sizes:15,}{noise:15}{np.mean(excess > 0):15.0%}"
        print(f"{told}{excess.mean():15.1%}{excess.max():15.1%}")

    whole = 0
    deep = Tree([[0, 0], [0, 0, 1], [0, 1, 2]])
    for _ in range(RUNS):
        groups = deep.sum_up(rng.integers(1, 4, deep.leaves.size))
        tables = [np.unique(rng.integers(0, 8, int(n)), return_counts=True) for n in groups]
        program = TreeMatching(deep, tables).program()
        relaxed, integer = solve(program.relaxed(), "highs"), solve(program, "highs")
        whole += abs(float(relaxed.objective) - float(integer.objective)) < 1e-6
    print(f"Four levels, where no theorem says so: the relaxation is as good as whole in {whole} of {RUNS}")


def _inside(tree: Tree) -> list[NDArray[np.bool_]]:
    """For each node, which leaves are under it."""
    inside = np.zeros((tree.size, tree.leaves.size), np.int64)
    for k in range(tree.leaves.size):
        inside[:, k] = tree.sum_up((np.arange(tree.leaves.size) == k).astype(np.int64))
    return [row > 0 for row in inside]


def main() -> None:
    """Run all comparisons."""
    argparse.ArgumentParser(description=__doc__).parse_args()  # there are no options
    fewest_positives(np.random.default_rng(1))
    joint_top_down(np.random.default_rng(2))
    solve_then_round(np.random.default_rng(3))
    clusterings(np.random.default_rng(4))
    matchings(np.random.default_rng(5))


if __name__ == "__main__":
    main()
