"""The specialised algorithms, one file a family; each is proved by its model's certificate."""

from __future__ import annotations

import importlib
from typing import Any

from models import Model

PATHS = {
    "Chebyshev": "solvers.fast.chebyshev:solve_chebyshev",
    "CostTable": "solvers.fast.cost_table:solve_cost_table",
    "CumulativeQIP": "solvers.fast.cumulative:solve_cumulative",
    "HierarchyQIP": "solvers.fast.hierarchy:solve_hierarchy",
    "Isotonic": "solvers.fast.isotonic:solve_isotonic",
    "SparsestChebyshev": "solvers.fast.sparsest_chebyshev:solve_sparsest_chebyshev",
    "TreeChebyshev": "solvers.fast.tree_chebyshev:solve_tree_chebyshev",
}
"""Each model's algorithm. Loaded on use: a file compiles, or takes from Numba's cache, its own kernels."""


class NoFastPath(Exception):
    """Says which model, or which of its options, has no specialised algorithm."""


def answer(model: Model) -> Any:
    """The model's optimal answer, or None if it has none.

    Raises
    ------
    NoFastPath
        If there is no specialised algorithm for this model.
    """
    name = type(model).__name__
    if name not in PATHS:
        raise NoFastPath(f"{name} has no fast path")
    module, function = PATHS[name].split(":")
    return getattr(importlib.import_module(module), function)(model)
