"""Synthetic trips from origin to destination, built as by Boninsegna & Silvestri 2025 (§5).

Areas form a tree; a trip connects two of the finest areas. So the data are `Flows` over two axes with the
same hierarchy. The mechanism `top_down` traverses the paper's destination tree if it refines the destination
first: with 8 binary levels the tree has 16 levels and 256² leaves.
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
"""The share of the possible pairs of areas that have trips."""

SETS = tuple(f"{areas} {filled}" for areas in ("binary", "random") for filled in SHARES)
"""Names of the paper's six data sets."""

PUBLISHED_SEED = 42


def binary_areas(levels: int = 8) -> Hierarchy:
    """A hierarchy in which each area has two halves, with 2^levels finest areas."""
    return _areas(levels, lambda: 2)


def random_areas(seed: int = 0, levels: int = 4, fewest: int = 2, most: int = 10) -> Hierarchy:
    """A hierarchy in which each area has a number of parts drawn uniformly from `fewest` to `most`."""
    if not 1 <= fewest <= most:
        raise InputError(f"fewest and most must satisfy 1 ≤ fewest ≤ most, got {fewest} and {most}")
    rng = np.random.default_rng(seed)
    return _areas(levels, lambda: int(rng.integers(fewest, most + 1)))


def trips(areas: Hierarchy, share: float, seed: int = 0) -> Flows:
    """Trips between some of the pairs of areas, drawn at random; each flow is Pareto(1), rounded.

    - areas: the hierarchy of both origins and destinations.
    - share: the share of the possible pairs of finest areas that have trips (rounded down); see `SHARES`.

    Raises `InputError` if the share is not between 0 and 1.

    Examples
    --------
    >>> data = trips(binary_areas(4), share=0.5)
    >>> len(data.counts), data.axis_names, int(data.counts.min())
    (128, ('origin', 'destination'), 1)
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of pairs with trips must lie between 0 and 1, got {share}")
    pairs = areas.names[-1].size ** 2
    rng = np.random.default_rng(seed)
    many = int(pairs * share)
    places = np.sort(rng.choice(pairs, many, replace=False, shuffle=False))
    return _flows(areas, places, np.rint(1 + rng.pareto(1.0, many)).astype(np.int64))


def published(name: str) -> Flows:
    """One of the six data sets shown in the paper's figures (`SETS`), exactly; see the paper's Table 1.

    The paper says that flows are Pareto(1). The flows that reproduce its Table 1 exactly are x − 1 for
    Pareto(3) x, scaled so that the largest flow is 1,000, over a tree whose areas share their parents' seeds
    (see the authors' repository aidaLabDEI/TDA_hierarchical, ``preprocess_data``).

    Raises `InputError` if the name is unknown.
    """
    if name not in SETS:
        raise InputError(f"unknown data set {name!r}; choose from {listed(SETS)}")
    partition, filled = name.split()
    areas = binary_areas() if partition == "binary" else _published_areas(PUBLISHED_SEED)
    pairs = areas.names[-1].size ** 2
    many = int(pairs * (1 - {"complete": 0, "dense": 0.5, "sparse": 0.99}[filled]))
    places = np.array(random.Random(PUBLISHED_SEED).sample(range(pairs), many), dtype=np.int64)
    # The legacy generator that the authors used; NumPy guarantees its numbers.
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
        raise InputError(f"levels must be at least 1, got {levels}")
    parents, above = [], 1
    for _ in range(levels):
        parents.append(np.repeat(np.arange(above), [parts() for _ in range(above)]))
        above = parents[-1].size
    return _named(parents)


def _published_areas(seed: int) -> Hierarchy:
    """The authors' tree, in which the number of parts of each area is drawn with the area's own seed.

    The root has the seed `seed`; the i-th part of an area has the area's seed plus i. So the first part of an
    area has as many parts as the area itself.
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
