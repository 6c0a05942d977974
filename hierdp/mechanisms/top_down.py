"""Counts from the top of a hierarchy down: Boninsegna & Silvestri 2025.

A table of counts over one hierarchy an axis (origin and destination, say) is a tree: its root holds the
total, and each level below refines one axis by one of its levels, the axes taking turns. Only children of
regions whose released count is positive are looked at, so cost follows the release, not the possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.budget import Ledger, check_delta, check_epsilon, rho_of, split
from hierdp.errors import InputError
from hierdp.hierarchy import Hierarchy
from hierdp.mechanisms import TRIP
from hierdp.noise import ExactNoise, Noise
from hierdp.record import Release, Step
from hierdp.tables import Flows
from models import Chebyshev

Ints = NDArray[np.int64]

SENSITIVITY = math.sqrt(2)
"""L2, of the counts of one level: replacing a trip takes one from one cell and gives one to another."""


@dataclass(frozen=True, eq=False)
class Level:
    """One level of the tree as released: where its nodes lie on each axis, and their counts.

    Parameters
    ----------
    depths : tuple of int
        The level reached on each axis.
    places : int64 array, shape (n, axes)
        Positions within those levels.
    counts : int64 array, shape (n,)
    """

    depths: tuple[int, ...]
    places: Ints
    counts: Ints


def inf_tda(
    data: Flows, epsilon: float, delta: float, noise: Noise | None = None, first: str | None = None
) -> Release:
    """InfTDA: level by level, discrete Gaussian noise and the nearest consistent counts (IntOpt).

    Parameters
    ----------
    data : Flows
        True counts.
    epsilon, delta : float
        Converted to ρ-zCDP, which is spent evenly over the levels below the root. The total is public
        (bounded neighbours).
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.
    first : str, optional
        The axis refined first: "destination" gives the paper's destination tree. Default: the last axis.

    Returns
    -------
    Release
        A row a node with a positive count, of every level.

    Raises
    ------
    InputError
        If ε or δ is out of range, there is no such axis, or two columns of the release would have one name.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    _refuse_clashes(data.axis_names)
    order = refinements(data, first)
    rho = rho_of(epsilon, delta)
    noise = noise or ExactNoise()
    levels = [Level((0,) * len(data.axes), np.zeros((1, len(data.axes)), np.int64), np.array([data.total]))]
    steps, spends = [], []
    for axis, share in zip(order, split(rho, len(order)), strict=True):
        above = levels[-1]
        depths, places, offsets = _expand(data.axes, above, axis)
        name = _level_name(data, depths)
        measured = noise.gaussian(_true_counts(data, depths, places), f"counts by {name}", SENSITIVITY, share)
        spends.append(measured.spend)
        step = Step.solve(name, Chebyshev(measured.counts, above.counts, offsets))
        steps.append(step)
        counts = np.asarray(step.solution.x)
        levels.append(Level(depths, places[counts > 0], counts[counts > 0]))
    ledger = Ledger(epsilon, delta, TRIP, tuple(spends))
    settings = {
        "axes": {name: list(axis.levels) for name, axis in zip(data.axis_names, data.axes, strict=True)},
        "order": [data.axis_names[axis] for axis in order],
        "total": data.total,
    }
    return Release("InfTDA", _table(data, levels), ledger, tuple(steps), settings)


def _refuse_clashes(axis_names: Sequence[str]) -> None:
    """Each axis has two columns in a release, beside its own two."""
    columns = ["level", "count", *(f"{name}_level" for name in axis_names)]
    for name in axis_names:
        if name in columns:
            raise InputError(
                f"an axis cannot be called {name!r}: a column of the release has that name; choose another"
            )


def refinements(data: Flows, first: str | None) -> list[int]:
    """Which axis each level refines: in turns, starting with `first`; an axis at its end is passed over."""
    if first is not None and first not in data.axis_names:
        raise InputError(f"there is no axis {first!r}; the axes are {', '.join(data.axis_names)}")
    start = len(data.axes) - 1 if first is None else data.axis_names.index(first)
    turns = [(start + i) % len(data.axes) for i in range(len(data.axes))]
    deepest = max(axis.tree.depth for axis in data.axes)
    return [a for depth in range(deepest) for a in turns if depth < data.axes[a].tree.depth]


def true_table(data: Flows, first: str | None = None) -> Any:
    """The true counts in the shape of a release's table: what it is measured against in experiments."""
    levels = [Level((0,) * len(data.axes), np.zeros((1, len(data.axes)), np.int64), np.array([data.total]))]
    for axis in refinements(data, first):
        depths = tuple(d + (i == axis) for i, d in enumerate(levels[-1].depths))
        keys, counts = _aggregate(data, depths)
        levels.append(Level(depths, _places(data, depths, keys), counts))
    return _table(data, levels)


def _expand(axes: Sequence[Hierarchy], above: Level, axis: int) -> tuple[tuple[int, ...], Ints, Ints]:
    """All children of the nodes of a level along an axis: ``(depths, places, offsets by parent)``."""
    tree, depth = axes[axis].tree, above.depths[axis]
    start, child = tree.children
    node = above.places[:, axis] + tree.level_start[depth]
    number = start[node + 1] - start[node]
    offsets = np.concatenate([[0], np.cumsum(number)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], number)
    places = np.repeat(above.places, number, axis=0)
    places[:, axis] = child[np.repeat(start[node], number) + within] - tree.level_start[depth + 1]
    return tuple(d + (i == axis) for i, d in enumerate(above.depths)), places, offsets


def _keys(data: Flows, depths: Sequence[int], places: Ints) -> Ints:
    """One integer a cell of a level; lexicographic order of the axes."""
    sizes = [int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True)]
    if math.prod(sizes) >= 2**62:
        raise InputError(f"{' × '.join(map(str, sizes))} possible cells at one level are beyond 62 bits")
    return np.asarray(np.ravel_multi_index(tuple(places.T), sizes), dtype=np.int64)


def _places(data: Flows, depths: Sequence[int], keys: Ints) -> Ints:
    sizes = [int(axis.tree.level_sizes[d]) for axis, d in zip(data.axes, depths, strict=True)]
    return np.stack(np.unravel_index(keys, sizes), axis=1).astype(np.int64)


def _aggregate(data: Flows, depths: Sequence[int]) -> tuple[Ints, Ints]:
    """The true counts of a level: sorted keys of its non-zero cells, and their counts."""
    places = np.empty_like(data.cells)
    for i, (axis, depth) in enumerate(zip(data.axes, depths, strict=True)):
        node = data.cells[:, i] + axis.tree.level_start[axis.tree.depth]
        for _ in range(axis.tree.depth - depth):
            node = axis.tree.parent[node]
        places[:, i] = node - axis.tree.level_start[depth]
    keys, inverse = np.unique(_keys(data, depths, places), return_inverse=True)
    counts = np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, inverse, data.counts)
    return keys, counts


def _true_counts(data: Flows, depths: Sequence[int], places: Ints) -> Ints:
    """The true counts of these nodes, zeros included."""
    keys, counts = _aggregate(data, depths)
    wanted = _keys(data, depths, places)
    if not keys.size:
        return np.zeros(wanted.size, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, counts[at], 0)


def _level_name(data: Flows, depths: Sequence[int]) -> str:
    named = [
        f"{name} {axis.levels[d]}"
        for name, axis, d in zip(data.axis_names, data.axes, depths, strict=True)
        if d
    ]
    return " × ".join(named)


def _table(data: Flows, levels: Sequence[Level]) -> Any:
    import pandas as pd

    parts = []
    for number, level in enumerate(levels):
        part: dict[str, Any] = {"level": np.full(level.counts.size, number)}
        for i, (name, axis) in enumerate(zip(data.axis_names, data.axes, strict=True)):
            part[f"{name}_level"] = axis.levels[level.depths[i]]
            part[name] = axis.names[level.depths[i]][level.places[:, i]]
        part["count"] = level.counts
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)
