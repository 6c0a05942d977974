"""Two rules of thumb against exact optimization: level by level, and rounding. Seeded; nothing is timed.

A row is a mean over 200 draws. The papers' reproductions compare the other rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import Chebyshev, CumulativeQIP, HierarchyQIP, Isotonic, SimplexQP, Tree, TreeChebyshev
from solvers import solve

RUNS = 200


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


def run() -> Iterator[dict[str, Any]]:
    """Both comparisons."""
    yield from joint_top_down(np.random.default_rng(2))
    yield from solve_then_round(np.random.default_rng(3))
