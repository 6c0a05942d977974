"""Counts made consistent along a tree by least squares: hierarchicalforecast and OpenDP beside hierdp.

After ``pip install hierarchicalforecast opendp`` in an environment of its own beside hierdp's. Nixtla's
hierarchicalforecast reconciles forecasts: its OLS, WLS (structural) and MinT with a diagonal covariance
(``wls_var``) are `ConstrainedInference` with equal variances, with the numbers of leaves, and with any.
OpenDP's consistent tree takes counts of equal variance in a complete tree. All programs get the same noisy
counts in memory. A time is the CPU time of the process (user and system), the median of turns; the programs
take turns. hierdp's includes the proof. ``away`` is the largest difference from hierdp's answer, over the
largest count.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import on_cpu
from models import ConstrainedInference, Tree
from models.arithmetic.arrays import Floats
from models.synthetic import heavy_tailed, noise
from solvers import solve

SIZES = (7, 9, 11)
"""Levels of the binary trees below the root."""

TURNS = 3


def problem(levels: int) -> tuple[Tree, Any]:
    """A binary tree with noisy counts."""
    rng = np.random.default_rng(levels)
    tree = Tree([np.repeat(np.arange(2**k), 2) for k in range(levels)])
    true = np.asarray(tree.sum_up(heavy_tailed(rng, (2**levels,))))
    return tree, true + noise(rng, true.shape)


def sums(tree: Tree) -> Floats:
    """The matrix that sums leaves, shape (nodes, leaves)."""
    return np.asarray(tree.sum_up(np.eye(tree.leaves.size)))


def by_hierdp(tree: Tree, noisy: Any, variance: Floats) -> Callable[[], Floats]:
    """The fast path, with its proof."""

    def job() -> Floats:
        found = solve(ConstrainedInference(tree, noisy.astype(float), variance))
        assert found.status == "optimal"
        return np.asarray(found.x, float)

    return job


def by_nixtla(tree: Tree, noisy: Any, method: str, variance: Floats) -> Callable[[], Floats]:
    """hierarchicalforecast's reconciliation; its variances come from residuals, here two of each count."""
    reconcile = importlib.import_module("hierarchicalforecast.methods").MinTrace
    matrix = sums(tree)
    nothing: dict[str, Any] = {}
    if method == "wls_var":
        residuals = np.sqrt(variance)[:, None] * np.array([[2**0.5, 0.0]])
        nothing = {"y_insample": residuals, "y_hat_insample": np.zeros_like(residuals)}
    forecasts = noisy.astype(float)[:, None]
    made = reconcile(method)

    def job() -> Floats:
        return np.asarray(made.fit_predict(S=matrix, y_hat=forecasts, **nothing)["mean"]).ravel()

    return job


def by_opendp(tree: Tree, noisy: Any) -> Callable[[], Floats]:
    """OpenDP's consistent tree: the leaves."""
    opendp = importlib.import_module("opendp.transformations")
    importlib.import_module("opendp.mod").enable_features("contrib")
    consistent, counts = opendp.make_consistent_b_ary_tree(2), noisy.tolist()

    def job() -> Floats:
        return np.asarray(tree.sum_up(np.asarray(consistent(counts), float)))

    return job


def contests(levels: int) -> Mapping[str, tuple[Callable[[], Floats], Callable[[], Floats]]]:
    """For each problem, the peer and hierdp."""
    tree, noisy = problem(levels)
    rng = np.random.default_rng(1)
    leaves = np.asarray(tree.sum_up(np.ones(tree.leaves.size)))
    any_, equal = rng.choice([1.0, 4.0, 25.0], tree.size), np.ones(tree.size)
    return {
        "hierarchicalforecast, OLS": (by_nixtla(tree, noisy, "ols", equal), by_hierdp(tree, noisy, equal)),
        "hierarchicalforecast, WLS (structural)": (
            by_nixtla(tree, noisy, "wls_struct", leaves),
            by_hierdp(tree, noisy, leaves),
        ),
        "hierarchicalforecast, MinT (diagonal)": (
            by_nixtla(tree, noisy, "wls_var", any_),
            by_hierdp(tree, noisy, any_),
        ),
        "OpenDP, consistent tree": (by_opendp(tree, noisy), by_hierdp(tree, noisy, equal)),
    }


def run() -> Iterator[dict[str, Any]]:
    for job in (each for pair in contests(3).values() for each in pair):
        job()  # imports and kernels
    for levels in SIZES:
        for name, (peer, ours) in contests(levels).items():
            turns = [(on_cpu(peer), on_cpu(ours)) for _ in range(TURNS)]
            theirs, own = (median(turn[k][0] for turn in turns) for k in (0, 1))
            (_, there), (_, here) = turns[0]
            away = float(np.abs(there - here).max() / np.abs(here).max())
            yield {"peer": name, "counts": here.size, "peer, CPU": theirs, "hierdp with proof, CPU": own,
                   "ratio": theirs / own, "away": away}  # fmt: skip
