"""The specialised algorithms ("fast paths"), one file per family. The model's certificate proves each answer.

A fast path returns an optimal answer and the witness that proves it, or ``None`` instead of the witness if
the certificate reads it off the answer.
"""

from __future__ import annotations

import importlib
from typing import Any

from models import Model
from models.certificate import Witness
from solvers.fast.no_path import NoFastPath as NoFastPath

PATHS = {
    "BlockInference": "solvers.fast.block_inference:solve_block_inference",
    "BudgetSplit": "solvers.fast.budget:solve_budget",
    "ChangePoints": "solvers.fast.change_points:solve_change_points",
    "Chebyshev": "solvers.fast.chebyshev:solve_chebyshev",
    "Clustering": "solvers.fast.clustering:solve_clustering",
    "ConstrainedInference": "solvers.fast.inference:solve_inference",
    "ControlledRounding": "solvers.fast.fixed_total:solve_controlled_rounding",
    "CostTable": "solvers.fast.cost_table:solve_cost_table",
    "CumulativeQIP": "solvers.fast.cumulative:solve_cumulative",
    "FixedSum": "solvers.fast.fixed_total:solve_fixed_sum",
    "GroupMatching": "solvers.fast.matching:solve_group_matching",
    "HierarchyQIP": "solvers.fast.hierarchy:solve_hierarchy",
    "Isotonic": "solvers.fast.isotonic:solve_isotonic",
    "Merging": "solvers.fast.merging:solve_merging",
    "MinCostFlow": "solvers.fast.flow:solve_min_cost_flow",
    "Segmentation": "solvers.fast.clustering:solve_segmentation",
    "NonNegativeInference": "solvers.fast.non_negative_inference:solve_non_negative_inference",
    "Reconciliation": "solvers.fast.reconciliation:solve_reconciliation",
    "SimplexQP": "solvers.fast.fixed_total:solve_fixed_sum",
    "SparsestChebyshev": "solvers.fast.chebyshev:solve_sparsest_chebyshev",
    "StrategySDP": "solvers.fast.strategy:solve_strategy",
    "TreeAbsolute": "solvers.fast.tree_absolute:solve_tree_absolute",
    "TreeChebyshev": "solvers.fast.tree_chebyshev:solve_tree_chebyshev",
    "TreeMatching": "solvers.fast.tree_matching:solve_tree_matching",
    "WassersteinDistance": "solvers.fast.wasserstein_distance:solve_wasserstein_distance",
    "WorkloadLeastSquares": "solvers.fast.workload_least_squares:solve_workload_least_squares",
    "WorkloadRounding": "solvers.fast.workload_rounding:solve_workload_rounding",
}
"""Each model's algorithm. Files are imported on use, as each compiles or loads its kernels."""


SEARCHES = {
    "FixedSum": "solvers.fast.fixed_total:search_fixed_sum_prices",
    "HierarchyQIP": "solvers.fast.hierarchy:search_prices",
    "Isotonic": "solvers.fast.isotonic:search",
    "MinCostFlow": "solvers.fast.flow:search_potentials",
    "SimplexQP": "solvers.fast.fixed_total:search_fixed_sum_prices",
    "TreeMatching": "solvers.fast.tree_matching:bounding_prices",
}
"""Searches for a witness of a given answer: for models whose fast path does not take all instances, or finds
an optimum in floats, whose witness may prove too little."""


def answer(model: Model) -> tuple[Any, Witness | None]:
    """The model's optimal answer and the witness that proves it; ``(None, None)`` if it has no answer.

    The witness is None where the certificate reads it off the answer.

    Raises `NoFastPath` if there is no specialised algorithm for this model.
    """
    name = type(model).__name__
    if name not in PATHS:
        raise NoFastPath(f"{name} has no fast path")
    found: tuple[Any, Witness | None] = _function(PATHS[name])(model)
    return found


def search(model: Model, x: Any) -> Witness | None:
    """A witness for a feasible answer; None if the fast path's own is as good, or the model has no search."""
    name = type(model).__name__
    return _function(SEARCHES[name])(model, x) if name in SEARCHES else None


def _function(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def exact(model: Model) -> bool:
    """Whether the fast path proves all its answers to this model, rather than stopping at a limit."""
    return bool(getattr(model, "always_proved", True))
