"""Instances of every model by size, as releases give rise to them: for the peers and for the curves of cost.

``make(rng, n)`` has about n elements: numbers that are read, which for most models are the noisy counts. What
is made here can be large, so it is made in few passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from hierdp.data.census import GROUPS, LEAVES, STATES, census
from models import (
    BudgetSplit,
    Clustering,
    ConstrainedInference,
    ControlledRounding,
    CostTable,
    CumulativeQIP,
    GroupMatching,
    HierarchyQIP,
    Isotonic,
    Merging,
    NonNegativeInference,
    Segmentation,
    SparsestChebyshev,
    StrategySDP,
    Tree,
    TreeChebyshev,
    TreeMatching,
)

Make = Callable[[Any, int], Any]


def noise(rng: Any, shape: Any, scale: float = 10.0) -> Any:
    """Laplace noise, rounded."""
    drawn = rng.standard_exponential(shape)
    drawn -= rng.standard_exponential(shape)
    drawn *= scale
    return np.rint(drawn, out=drawn).astype(np.int64)


def heavy(rng: Any, shape: Any) -> Any:
    """Counts up to 10,000 with a heavy tail (Pareto's), as those of regions are."""
    drawn = rng.random(shape)
    drawn *= 1 - 1e-4
    drawn += 1e-4
    return np.floor(np.reciprocal(drawn, out=drawn), out=drawn).astype(np.int64) - 1


def counts(rng: Any, n: int) -> Any:
    y = heavy(rng, n)
    y += noise(rng, n)
    return y


def rising(rng: Any, n: int) -> Any:
    """Cumulative counts and noise."""
    y = np.cumsum(rng.integers(0, 3, n, dtype=np.int8), dtype=np.int64)
    y += noise(rng, n, 100.0)
    return y


def isotonic(**more: Any) -> Make:
    return lambda rng, n: Isotonic(rising(rng, n), **more)


def clustering(clusters: int | None = None, scale: float = 10.0) -> Make:
    return lambda rng, n: Clustering(np.sort(counts(rng, n)), scale, clusters)


def segmentation(clusters: int | None = None, price: float = 400.0) -> Make:
    """Steps of sixteen or so equal counts, with noise."""

    def make(rng: Any, n: int) -> Segmentation:
        steps = np.repeat(rng.integers(0, 1_000, n // 16 + 1), 16)[:n]
        steps += noise(rng, n)
        return Segmentation(steps, clusters, 0 if clusters else price)

    return make


def of_total(kind: Any, **more: Any) -> Make:
    """Noisy counts whose total is nine tenths of what is positive."""

    def make(rng: Any, n: int) -> Any:
        y = counts(rng, n)
        return kind(y, int(np.maximum(y, 0).sum()) * 9 // 10, **more)

    return make


def rounding(rng: Any, n: int) -> ControlledRounding:
    v = 1 / (rng.random(n) + 1e-4)
    return ControlledRounding(v, round(float(v.sum())))


def sparsest(rng: Any, n: int) -> SparsestChebyshev:
    y = counts(rng, n)
    return SparsestChebyshev(y, int(np.maximum(y, 0).sum()) // 2)


def merging(rng: Any, n: int) -> Merging:
    true = heavy(rng, n // 2)
    return Merging(
        [true + noise(rng, n // 2), true + noise(rng, n // 2)], rng.integers(1, 50, (2, n // 2)), True
    )


def matching(rng: Any, n: int) -> GroupMatching:
    """n runs in all, of a parent and ten children."""
    sizes = rng.permutation(2 * n)[: n // 2]
    groups = rng.integers(1, 20, sizes.size)
    moved = np.maximum(sizes + rng.integers(-50, 51, sizes.size), 0)
    return GroupMatching(
        (sizes, groups), list(zip(np.array_split(moved, 10), np.array_split(groups, 10), strict=True))
    )


def binary(n: int) -> Tree:
    """About n nodes, two below each."""
    levels = max(1, (n + 1).bit_length() - 1)
    return Tree([np.repeat(np.arange(2**level), 2) for level in range(levels - 1)])


def nation(leaves: int) -> Tree:
    """A nation, fifty states or fewer, and so many counties."""
    states = min(50, max(1, leaves // 4))
    return Tree([np.zeros(states, np.int64), np.sort(np.arange(leaves) % states)])


def _binary_counts(rng: Any, n: int) -> tuple[Tree, Any, int]:
    tree = binary(n)
    true = np.asarray(tree.sum_up(heavy(rng, tree.leaves.size)))
    total = int(true[0])
    true += noise(rng, tree.size)
    return tree, true, total


def inference(rng: Any, n: int) -> ConstrainedInference:
    tree, noisy, _ = _binary_counts(rng, n)
    return ConstrainedInference(tree, noisy, 200)


def non_negative(integer: bool) -> Make:
    def make(rng: Any, n: int) -> NonNegativeInference:
        tree, noisy, _ = _binary_counts(rng, n)
        return NonNegativeInference(tree, noisy, integer=integer)

    return make


def tree_chebyshev(rng: Any, n: int) -> TreeChebyshev:
    return TreeChebyshev(*_binary_counts(rng, n))


def _nation_counts(rng: Any, n: int, sizes: int) -> tuple[Tree, Any]:
    tree = nation(max(4, n // sizes))
    return tree, np.asarray(tree.sum_up(heavy(rng, (tree.leaves.size, sizes))))


def hierarchy(rng: Any, n: int) -> HierarchyQIP:
    """Counts by up to a thousand sizes in a nation, its states and their counties."""
    tree, true = _nation_counts(rng, n, min(1_000, max(5, int(n**0.5) // 2)))
    total = int(true[0].sum())
    true += noise(rng, true.shape)
    return HierarchyQIP(tree, true, total)


def cumulative(rng: Any, n: int) -> CumulativeQIP:
    """The same cumulated, over the reals."""
    tree, true = _nation_counts(rng, n, min(1_000, max(5, int(n**0.5) // 2)))
    true = np.cumsum(true, axis=1)
    return CumulativeQIP(tree, true + noise(rng, true.shape), int(true[0, -1]), integer=False)


def census_cumulative(rng: Any, n: int) -> CumulativeQIP:
    """Cumulative households like the census's, by size, with the noise of ε = 1, over the reals.

    Nearly all are of a few sizes, and most of a row is flat under its noise: harder than `cumulative`.
    There are 10 sizes and 52 leaves at least; ten million elements are somewhat more than the whole census.
    """
    sizes = min(1_000, max(10, int(n**0.5) // 2))
    leaves = max(STATES, n // (sizes + 1) - STATES - 1)
    data = census(int(rng.integers(2**31)), GROUPS * leaves // LEAVES, leaves, sizes)
    true = np.cumsum(data.counts, axis=1)
    return CumulativeQIP(data.hierarchy.tree, true + noise(rng, true.shape, 3.0), data.groups, integer=False)


def tree_matching(rng: Any, n: int) -> TreeMatching:
    """Regions with as many estimated sizes, up to a few hundred, on three levels."""
    sizes = min(300, max(5, int(n**0.5) // 2))
    tree, true = _nation_counts(rng, n, sizes)
    tables = []
    for row in true:
        held = np.flatnonzero(row)
        tables.append((np.maximum(0, held + rng.integers(-2, 3, held.size)).clip(0, sizes - 1), row[held]))
    return TreeMatching(tree, tables)


def cost_table(rng: Any, n: int) -> CostTable:
    """Convex tables of up to a thousand values."""
    values = min(1_000, max(5, int(n**0.5)))
    slopes = np.sort(rng.integers(-1_000, 1_000, (max(2, n // values), values)), axis=1)
    tables = np.cumsum(slopes, axis=1)
    return CostTable(list(tables), int(0.3 * tables.size))


def budget(rng: Any, n: int) -> BudgetSplit:
    return BudgetSplit(rng.uniform(1, 1e6, n), 1.0)


def strategy(rng: Any, n: int) -> StrategySDP:  # noqa: ARG001
    """All prefixes of √n bins."""
    bins = max(2, int(n**0.5))
    return StrategySDP(np.tril(np.ones((bins, bins))))


def inputs(model: Any) -> list[Any]:
    """The arrays of numbers that the model is given."""
    return [part for one in fields(model) for part in _arrays(getattr(model, one.name))]


def _arrays(given: Any) -> Iterator[Any]:
    if isinstance(given, np.ndarray):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _arrays(part)


def read(model: Any) -> float:
    """Read the input once: the sums of all that is given."""
    return float(sum(part.sum() for part in inputs(model)))


def elements(model: Any) -> int:
    """How many numbers it is about: of its input, without weights, offsets and trees, or its answer."""
    if isinstance(model, TreeMatching):
        return int(np.prod(model.shape))
    if isinstance(model, StrategySDP):
        return model.bins**2
    if isinstance(model, GroupMatching):
        return sum(model.shape)
    if isinstance(model, CostTable):
        return int(model.lengths.sum())
    names = ("noisy", "values", "estimates", "weights")
    return int(np.size(next(getattr(model, name) for name in names if hasattr(model, name))))
