"""The specialised algorithms, one file a family; each is proved by its model's certificate."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from models import Chebyshev, HierarchyQIP, Isotonic, Model


class NoFastPath(Exception):
    """Says which model, or which of its options, has no specialised algorithm."""


def answer(model: Model) -> NDArray[Any] | None:
    """The model's optimal answer, or None if it has none.

    Raises
    ------
    NoFastPath
        If there is no specialised algorithm for this model.
    """
    # Imported on use: each file compiles, or loads from Numba's cache, its own kernels.
    if isinstance(model, Isotonic):
        from solvers.fast.isotonic import solve_isotonic

        return solve_isotonic(model)
    if isinstance(model, Chebyshev):
        from solvers.fast.chebyshev import solve_chebyshev

        return solve_chebyshev(model)
    if isinstance(model, HierarchyQIP):
        if model.window is not None and not model.integer:
            raise NoFastPath("HierarchyQIP: windows have a fast path over whole numbers only")
        if model.counts.dtype == object:
            raise NoFastPath("HierarchyQIP: fractions have no fast path; give the counts as int64 or float64")
        from solvers.fast.hierarchy import solve_hierarchy

        return solve_hierarchy(model)
    raise NoFastPath(f"{type(model).__name__} has no fast path")
