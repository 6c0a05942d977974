"""Factorization mechanisms for all ranges of bins beside trees (H_b^c), without data.

Each is a strategy A: noisy answers of its rows, and least squares for the ranges. Under ε-DP the noise of
variance 2Δ₁²/ε² has the largest L1 norm of a column of A as Δ₁; under zCDP, at the ρ = ε²/2 that ε-DP
implies, it has the variance Δ₂²/2ρ = Δ₂²/ε² with the L2 norm. The square root factorization is the lower
triangular Toeplitz matrix whose square gives prefix sums (Fichtenberger, Henzinger & Upadhyay 2023); ranges
are differences of these. The optimum is that of all strategies under zCDP (`StrategySDP`, proved).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.which_wins.rows import Row, row
from hierdp.analysis.workload import RANGE, level_sizes
from hierdp.experiments.choosing.methods import RANGES
from models import StrategySDP
from models.arithmetic.arrays import Floats
from solvers import solve

FACTORIZATIONS = "ranges, factorizations"
OPTIMUM = "optimum"
PURE, CONCENTRATED = "ε-DP", "zCDP"


@dataclass(frozen=True)
class Case:
    """A number of bins."""

    at: int
    data: str = "all ranges"
    epsilon: float = 1.0


def cases() -> list[Case]:
    """Bins up to what a semidefinite program takes in a minute."""
    return [Case(64), Case(128), Case(256)]


def square_root(bins: int) -> Floats:
    """C with C² = the prefix sums; C[i, j] = binom(2k, k)/4^k for k = i − j.

    >>> bool(np.allclose(square_root(5) @ square_root(5), np.tril(np.ones((5, 5)))))
    True
    """
    k = np.arange(1, bins)
    entries = np.r_[1.0, np.cumprod((2 * k - 1) / (2 * k))]
    away = np.subtract.outer(np.arange(bins), np.arange(bins))
    return np.where(away >= 0, entries[np.abs(away)], 0.0)


def tree(bins: int, branching: int) -> Floats:
    """The nodes of a tree as sums of bins, but for the root: the total is a sum of its children."""
    rows, width = [np.eye(bins)], 1
    for size in level_sizes(bins, branching)[1:-1]:
        width *= branching
        rows.append((np.arange(bins) // width == np.arange(size)[:, None]).astype(float))
    return np.vstack(rows)


def variance(strategy: Floats, gram: Floats, queries: int, norm: int) -> float:
    """The mean variance of a range at ε = 1."""
    largest = float(np.linalg.norm(strategy, norm, axis=0).max())
    each = float(np.trace(np.linalg.solve(strategy.T @ strategy, gram))) / queries
    return (2 if norm == 1 else 1) * largest**2 * each


def errors(case: Case, runs: int, _: int) -> Iterator[Row]:
    """One row per method and kind of privacy, the same for all runs."""
    gram, queries = RANGE.gram(case.at), RANGE.queries(case.at)
    trees = [tree(case.at, b) for b in range(2, min(case.at, 33))]
    for norm, name in ((1, PURE), (2, CONCENTRATED)):
        found = {
            "H_b^c": min(variance(one, gram, queries, norm) for one in trees),
            "square root": variance(square_root(case.at), gram, queries, norm),
            "each bin": variance(np.eye(case.at), gram, queries, norm),
        }
        if norm == 2:
            root = np.linalg.cholesky(gram).T
            best = solve(StrategySDP(root)).certificate
            assert best is not None
            found[OPTIMUM] = float(best.bound or math.nan) / queries
        about = {"data": case.data, "at": case.at, "epsilon": case.epsilon, "metric": f"{RANGES}, {name}"}
        for method, run in product(found, range(runs)):
            yield row(kind=FACTORIZATIONS, **about, method=method, run=run, error=found[method])
