"""Reconciled forecasts: `hierdp.forecasting` beside hierarchicalforecast, on trees of the shape of retail.

After ``pip install hierarchicalforecast`` in an environment of its own beside hierdp's. Made-up forecasts of
28 days of stores, departments and items are reconciled; four fifths of the items are mostly 0. ``over
hierdp`` is the ratio of Σ w (x − y)² to that of hierdp, with the base forecasts y as they are. CPU times are
of one call without reading tables; methods that take longer than ``--limit`` are stopped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from benchmarks.child import apart
from benchmarks.measuring import on_cpu
from hierdp.forecasting import Reconciler

DAYS = 28
METHODS = ("hierdp", "MinTraceSparse", "MinTrace")


def run(
    sizes: Annotated[tuple[int, ...], "nodes of the trees"] = (1_000, 10_000, 100_000),
    only: Annotated[tuple[str, ...], f"of: {', '.join(METHODS)}"] = METHODS,
    limit: Annotated[int, "seconds for a method"] = 300,
) -> Iterator[dict[str, Any]]:
    for size in sizes:
        least = None
        for method in only:
            found = apart(measured, method, size, seconds=limit)
            cost = found.pop("objective", None)
            least = cost if method == "hierdp" else least
            yield {"series": size, "method": method, **found, "over hierdp": least and cost and cost / least}


def measured(method: str, size: int) -> dict[str, Any]:
    """What a method's forecasts of a tree cost, and what they took."""
    warnings.simplefilter("ignore")
    reconciled(method, *tree(100))  # compiles and imports
    matrix, base = tree(size)
    seconds, (made, proved) = on_cpu(lambda: reconciled(method, matrix, base))
    weights = 1 / np.asarray(matrix.sum(axis=1))
    return {"cpu": seconds, "objective": float((weights * (made - base) ** 2).sum()), "proved": proved}


def reconciled(method: str, matrix: Any, base: Any) -> tuple[Any, str]:
    """Non-negative forecasts that add up, weighted by structure, and how many are proved."""
    if method == "hierdp":
        reconciler = Reconciler("wls_struct")
        made = reconciler.fit_predict(matrix, base)["mean"]
        proofs = reconciler.certificates
        return np.asarray(made), f"{sum(proof.optimal for proof in proofs)} of {len(proofs)}"
    kind = getattr(import_module("hierarchicalforecast.methods"), method)
    theirs = kind("wls_struct", nonnegative=True)
    summing = matrix if theirs.is_sparse_method else matrix.toarray()
    return np.asarray(theirs.fit_predict(S=summing, y_hat=base)["mean"]), ""


def tree(size: int) -> tuple[Any, Any]:
    """The summing matrix of stores, departments and items; forecasts are noisy, and often below 0."""
    rng = np.random.default_rng(size)
    stores = round((size / 10) ** (1 / 2))
    items = size - 1 - stores - 3 * stores
    store = np.sort(rng.integers(0, stores, items))
    department = 3 * store + rng.integers(0, 3, items)
    each = np.arange(items)
    groups = (np.unique(group, return_inverse=True)[1] for group in (0 * each, store, department, each))
    matrix = sp.vstack([sp.csr_matrix((np.ones(items), (group, each))) for group in groups], "csr")
    mean = rng.lognormal(0, 1, (items, 1)) * np.where(rng.random((items, 1)) < 0.8, 0.1, 3.0)
    true = matrix @ rng.poisson(mean, (items, DAYS))
    return matrix, true + rng.normal(size=true.shape) * np.sqrt(1 + true.mean(axis=1, keepdims=True))
