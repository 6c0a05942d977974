"""The instances of benchmarks: every model's typical instances by size, as made by the models.

``family.make(rng, n)`` has about n elements: numbers that are read, for most models the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from hierdp.data.census import GROUPS, LEAVES, STATES, census
from hierdp.verification.matrix import kinds
from models import BlockInference, CumulativeQIP, HierarchyQIP, Tree, TreeMatching
from models.synthetic import heavy_tailed, noise
from solvers.fast import PATHS

Make = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Family:
    """Instances of one kind, and how one of about n elements is made."""

    name: str
    make: Make


def families() -> list[Family]:
    """Each variant of each model with a fast path, and one of census-like data, which is harder."""
    found = []
    for name, kind in kinds().items():
        if name not in PATHS:
            continue
        make = getattr(kind, "typical", kind.random)
        for variant, options in getattr(kind, "variants", {"": {}}).items():
            found.append(Family(f"{name}, {variant}" if variant else name, partial(make, **options)))
    found += [Family(f"HierarchyQIP, {name}", partial(shaped, tree)) for name, tree in SHAPES.items()]
    return [*found, Family("CumulativeQIP, census", census_cumulative)]


def census_cumulative(rng: np.random.Generator, n: int) -> CumulativeQIP:
    """Noisy cumulative households by size, like the census's, over the reals: about n cells.

    Nearly all households have few sizes, so most of a row is flat under its noise (for ε = 1), which is
    harder than `CumulativeQIP.typical`. There are at least 10 sizes and 52 leaves; ten million cells are
    slightly more than the whole census.
    """
    sizes = min(1_000, max(10, int(n**0.5) // 2))
    leaves = max(STATES, n // (sizes + 1) - STATES - 1)
    data = census(int(rng.integers(2**31)), GROUPS * leaves // LEAVES, leaves, sizes)
    true = np.cumsum(data.counts, axis=1)
    return CumulativeQIP(data.hierarchy.tree, true + noise(rng, true.shape, 3.0), data.groups, integer=False)


SHAPES: dict[str, Callable[[int], Tree]] = {
    "a binary tree": lambda cells: Tree([np.repeat(np.arange(2**k), 2) for k in range(_depth(cells))]),
    "a chain": lambda _: Tree([[0]] * 40),
    "one family": lambda cells: Tree([np.zeros(max(2, cells // 10), int)]),
}
"""Trees unlike those of nations, for about so many cells."""


def _depth(cells: int) -> int:
    return max(1, round(math.log2(cells / 10 + 1)) - 1)


def shaped(shape: Callable[[int], Tree], rng: Any, cells: int) -> HierarchyQIP:
    """A whole number of sizes in a tree of that shape, with noise of a scale that grows with its depth."""
    tree = shape(cells)
    true = np.asarray(tree.sum_up(heavy_tailed(rng, (tree.leaves.size, max(1, round(cells / tree.size))))))
    return HierarchyQIP(tree, true + noise(rng, true.shape, 20.0 * (tree.depth + 1)), int(true[0].sum()))


def inputs(model: Any) -> list[Any]:
    """The arrays of numbers in a model's data."""
    return [part for one in fields(model) for part in _arrays(getattr(model, one.name))]


def _arrays(given: Any) -> Iterator[Any]:
    if isinstance(given, np.ndarray):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _arrays(part)


def read(model: Any) -> float:
    """Read the input once, by summing all of it."""
    return float(sum(part.sum() for part in inputs(model)))


def elements(model: Any) -> int:
    """The number of entries of its first input, or of its answer if the input is given in another form."""
    if isinstance(model, BlockInference):
        return model.tree.size * model.workload.cells
    if isinstance(model, TreeMatching):
        return int(model.tree.size * model.points.size)
    given = (sum(part.size for part in _arrays(getattr(model, one.name))) for one in fields(model))
    return int(getattr(model, "answer_size", next(filter(None, given))))
