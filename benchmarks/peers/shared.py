"""Shared by several peers: hierdp's own programs, families of a tree, arcs of a path."""

from __future__ import annotations

from typing import Any

import numpy as np


def fast_path(model: Any) -> Any:
    """Our fast path, without the certificate, which has a separate row."""
    from solvers import fast

    return fast.answer(model)[0]


def certified(model: Any) -> Any:
    """Our fast path, with the certificate."""
    from solvers import solve

    return solve(model).x


def families(tree: Any) -> list[tuple[int, Any]]:
    """Each internal node with its children."""
    start, found = 1, []
    above = 0
    for parents in tree.levels:
        parents = np.asarray(parents)
        order = np.argsort(parents, kind="stable")
        names, first = np.unique(parents[order], return_index=True)
        for name, children in zip(names, np.split(order, first[1:]), strict=True):
            found.append((int(above + name), start + children))
        above, start = start, start + parents.size
    return found


def run_costs(model: Any) -> tuple[Any, Any, Any]:
    """All runs ``first … end − 1`` of a clustering or segmentation, and what each costs."""
    values = np.asarray(model.values, float)
    first, last = np.triu_indices(values.size)
    end = last + 1
    sums, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (values, values**2))
    length = end - first
    error = squares[end] - squares[first] - (sums[end] - sums[first]) ** 2 / length
    extra = (
        2 * float(model.noise_scale) ** 2 / length if hasattr(model, "noise_scale") else float(model.price)
    )
    return first, end, error + extra


def marks(starts: Any, n: int) -> Any:
    """An answer from the starts of runs."""
    x = np.zeros(n, np.int64)
    x[np.asarray(starts, dtype=int)] = 1
    return x


def tables_of(model: Any) -> tuple[Any, Any, Any]:
    """For each cell of a model's cost tables: its child, its value and its cost."""
    tables = [np.asarray(table) for table in model.tables]
    child = np.repeat(np.arange(len(tables)), [table.size for table in tables])
    start = np.asarray(model.start)
    value = np.concatenate([low + np.arange(table.size) for low, table in zip(start, tables, strict=True)])
    return child, value, np.concatenate(tables)
