"""Synthetic trips from origin to destination, as Boninsegna & Silvestri 2025 (§5) make them. Not real data.

Areas form a tree; a trip goes from one of the finest areas to one of them. So the data are `Flows` over two
axes, both the same hierarchy, and the paper's destination tree is what `top_down` walks when it refines the
destination first: with 8 binary levels it is 16 levels deep and has 256² leaves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.tables import Flows
from models.arithmetic.arrays import Ints
from models.tree import Tree

SHARES = {"complete": 1.0, "dense": 0.5, "sparse": 0.01}
"""Of the possible pairs of areas, how many have trips."""

SETS = tuple(f"{areas} {filled}" for areas in ("binary", "random") for filled in SHARES)
"""The six data sets of the paper."""

PUBLISHED_SEED = 42


def binary_areas(levels: int = 8) -> Hierarchy:
    """Each area in two halves, so many times; 2^levels finest areas."""
    return _areas(levels, lambda: 2)


def random_areas(seed: int = 0, levels: int = 4, fewest: int = 2, most: int = 10) -> Hierarchy:
    """Each area in a number of parts drawn evenly from `fewest` to `most`."""
    if not 1 <= fewest <= most:
        raise InputError(f"an area cannot have {fewest} to {most} parts")
    rng = np.random.default_rng(seed)
    return _areas(levels, lambda: int(rng.integers(fewest, most + 1)))


def trips(areas: Hierarchy, share: float, seed: int = 0) -> Flows:
    """Trips between some of the pairs of areas, drawn at random; each flow is Pareto(1), rounded.

    Parameters
    ----------
    areas : Hierarchy
        Of origins and of destinations.
    share : float
        Of the possible pairs of finest areas, how many have trips (rounded down): see `SHARES`.
    seed : int

    Raises
    ------
    InputError
        If the share is not between 0 and 1.

    Examples
    --------
    >>> data = trips(binary_areas(4), share=0.5)
    >>> len(data.counts), data.axis_names, int(data.counts.min())
    (128, ('origin', 'destination'), 1)
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of pairs with trips is {share}: it lies between 0 and 1")
    pairs = areas.names[-1].size ** 2
    rng = np.random.default_rng(seed)
    many = int(pairs * share)
    places = np.sort(rng.choice(pairs, many, replace=False, shuffle=False))
    return _flows(areas, places, np.rint(1 + rng.pareto(1.0, many)).astype(np.int64))


def published(name: str) -> Flows:
    """One of the six data sets that the paper's figures show (`SETS`), trip by trip; see its Table 1.

    The paper says that flows are Pareto(1). Those of its Table 1, to the last trip, are x − 1 for Pareto(3)
    x, stretched so that the largest flow is 1,000, over a tree whose areas share their parents' seeds (the
    authors' repository aidaLabDEI/TDA_hierarchical, ``preprocess_data``).

    Raises
    ------
    InputError
        If there is no such data set.
    """
    if name not in SETS:
        raise InputError(f"the paper has no data set {name!r}; it has {listed(SETS)}")
    partition, filled = name.split()
    areas = binary_areas() if partition == "binary" else _published_areas(PUBLISHED_SEED)
    pairs = areas.names[-1].size ** 2
    many = int(pairs * (1 - {"complete": 0, "dense": 0.5, "sparse": 0.99}[filled]))
    places = np.array(random.Random(PUBLISHED_SEED).sample(range(pairs), many), dtype=np.int64)
    # The generator of the time: NumPy keeps its numbers as they are.
    raw = np.random.RandomState(PUBLISHED_SEED).pareto(3, many)
    counts = np.floor(1 + raw / raw.max() * 999).astype(np.int64)
    order = np.argsort(places)
    return _flows(areas, places[order], counts[order])


def _flows(areas: Hierarchy, pairs: Ints, counts: Ints) -> Flows:
    n = areas.names[-1].size
    cells = np.stack([pairs // n, pairs % n], axis=1)
    return Flows((areas, areas), ("origin", "destination"), cells, counts)


def _areas(levels: int, parts: Callable[[], int]) -> Hierarchy:
    if levels < 1:
        raise InputError(f"{levels} levels of areas: give at least one")
    parents, above = [], 1
    for _ in range(levels):
        parents.append(np.repeat(np.arange(above), [parts() for _ in range(above)]))
        above = parents[-1].size
    return _named(parents)


def _published_areas(seed: int) -> Hierarchy:
    """The authors' tree: the number of an area's parts is drawn from a seed of its own.

    The i-th part of an area has the area's seed plus i, the whole has `seed`: so the first parts of an area
    have as many parts as it has.
    """
    parents, seeds = [], [seed]
    for _ in range(4):
        parts = [random.Random(one).randint(2, 10) for one in seeds]
        parents.append(np.repeat(np.arange(len(seeds)), parts))
        seeds = [one + i for one, n in zip(seeds, parts, strict=True) for i in range(n)]
    return _named(parents)


def _named(parents: Sequence[Ints]) -> Hierarchy:
    names = [["all"]]
    for parent in parents:
        width = len(str(parent.size - 1))
        names.append([f"{i:0{width}}" for i in range(parent.size)])
    levels = ("root", *(f"level {i + 1}" for i in range(len(parents))))
    return Hierarchy(levels, tuple(np.array(level, dtype=object) for level in names), Tree(parents))
