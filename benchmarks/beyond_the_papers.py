"""Compare the papers' rules of thumb with exact optimization. Seeded; nothing here is timed.

Each comparison states what it draws. A row is a mean over 200 draws if it does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

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


def fewest_positives(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """IntOpt's number of positive entries, and the fewest of any Chebyshev-optimal answer.

    200 cells, a share of them 5 … 500, noise of scale 5.
    """
    for share in (0.01, 0.1, 0.3, 0.6):
        rows = []
        for _ in range(RUNS):
            true = np.where(rng.random(200) < share, rng.integers(5, 500, 200), 0)
            noisy = true + np.rint(rng.normal(0, 5, 200)).astype(int)
            total = int(true.sum())
            answers = [solve(kind(noisy, total)).x for kind in (Chebyshev, SparsestChebyshev)]
            rows.append([np.count_nonzero(x) for x in answers] + [np.abs(x - noisy).sum() for x in answers])
        positives, (intopt, fewest, *l1) = np.array(rows)[:, :2], np.mean(rows, axis=0)
        yield {"positive cells, share": share, "IntOpt": intopt, "fewest": fewest,
               "IntOpt is fewest": float(np.mean(positives[:, 0] == positives[:, 1])),
               "L1, IntOpt": l1[0], "L1, fewest": l1[1]}  # fmt: skip


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


def joint_top_down(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Solving a whole tree at once, and level by level: 1 + 8 + 64 + 512 nodes, noise of scale 10."""
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
    names = ["objective", *(f"largest error, level {k}" for k in (1, 2, 3)), "L1 error at the leaves"]
    for name, values in rows.items():
        yield {"solved": name, **dict(zip(names, np.mean(values, axis=0).tolist(), strict=True))}


def solve_then_round(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Integer answers, and the relaxation's, rounded: random instances of about 60 cells each."""
    for kind in (Isotonic, SimplexQP, HierarchyQIP, CumulativeQIP):
        broke, misses = 0, []
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
                misses.append(float(miss))
        yield {"relaxed, then rounded": kind.__name__, "breaks a constraint": broke / RUNS,
               "feasible, not optimal": len(misses) / RUNS,
               "mean miss of those": float(np.mean(misses)) if misses else None}  # fmt: skip


def clusterings(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Costs of Zhang et al.'s greedy and √n clustering rules over the optimum, in one draw.

    Sorted noisy bins: Pareto counts, Laplace noise, ε₁ = ε₂ = ε.
    """
    for n in (4_096, 65_536):
        true = np.floor(rng.pareto(1, n).clip(0, 1e4))
        for epsilon in (0.01, 0.1, 1.0):
            values = np.sort(true + np.rint(rng.laplace(0, 1 / epsilon, n)))
            model = Clustering(values, 1 / epsilon)
            best = solve(model)
            rule = greedy(values.astype(np.int64), 1 / epsilon, Step.solve)
            runs = np.zeros(n, np.int64)
            runs[np.linspace(0, n, int(np.sqrt(n)), endpoint=False).astype(int)] = 1
            over = [float(model.objective(x) / best.objective) for x in (rule, runs)]
            yield {"bins": n, "ε": epsilon, "clusters": int(best.x.sum()), "greedy": over[0],
                   "its clusters": int(rule.sum()), "√n equal runs": over[1],
                   "proved": best.status == "optimal"}  # fmt: skip


def matchings(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Kuo et al.'s matching, family by family, and matching all three levels at once: 1 + 3 + 9 regions."""
    tree = Tree([np.zeros(3, int), np.repeat(np.arange(3), 3)])
    cases = ((2, 6, 2), (20, 6, 2), (20, 60, 2), (20, 60, 20), (200, 60, 2), (200, 600, 20))
    for groups, sizes, noise in cases:
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
        yield {"groups a leaf": groups, "sizes": sizes, "noise": noise,
               "a gap in": float(np.mean(excess > 0)), "mean excess": float(excess.mean()),
               "largest": float(excess.max())}  # fmt: skip


def deep_matchings(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Matchings of four levels, where no theorem says that the relaxation is as good as whole numbers."""
    whole = 0
    deep = Tree([[0, 0], [0, 0, 1], [0, 1, 2]])
    for _ in range(RUNS):
        groups = deep.sum_up(rng.integers(1, 4, deep.leaves.size))
        tables = [np.unique(rng.integers(0, 8, int(n)), return_counts=True) for n in groups]
        program = TreeMatching(deep, tables).program()
        relaxed, integer = solve(program.relaxed(), "highs"), solve(program, "highs")
        whole += abs(float(relaxed.objective) - float(integer.objective)) < 1e-6
    yield {"levels": 4, "relaxation as good as whole, share": whole / RUNS}


def _inside(tree: Tree) -> list[NDArray[np.bool_]]:
    """For each node, which leaves are under it."""
    inside = np.zeros((tree.size, tree.leaves.size), np.int64)
    for k in range(tree.leaves.size):
        inside[:, k] = tree.sum_up((np.arange(tree.leaves.size) == k).astype(np.int64))
    return [row > 0 for row in inside]


def run() -> Iterator[dict[str, Any]]:
    """All comparisons."""
    yield from fewest_positives(np.random.default_rng(1))
    yield from joint_top_down(np.random.default_rng(2))
    yield from solve_then_round(np.random.default_rng(3))
    yield from clusterings(np.random.default_rng(4))
    rng = np.random.default_rng(5)
    yield from matchings(rng)
    yield from deep_matchings(rng)
