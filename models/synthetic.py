"""Synthetic data for instances of models: counts that break algorithms, and counts like those of releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Ints
from models.tree import Tree


def random_noisy(rng: np.random.Generator, shape: tuple[int, ...]) -> Ints:
    """Noisy counts of one of the kinds that break algorithms: ties, zeros, negatives, large, skewed."""
    kinds: list[Array] = [
        rng.integers(-1, 3, size=shape),
        np.zeros(shape),
        -rng.integers(1, 20, size=shape),
        rng.integers(-10, 1_000, size=shape),
        np.floor(rng.pareto(1, size=shape).clip(0, 1e5)) - 2,
        rng.integers(-5, 15, size=shape),
    ]
    return kinds[rng.integers(0, len(kinds))].astype(np.int64)


def noise(rng: np.random.Generator, shape: Any, scale: float = 10.0) -> Ints:
    """Laplace noise, rounded."""
    drawn: Array = rng.standard_exponential(shape)
    drawn -= rng.standard_exponential(shape)
    drawn *= scale
    return np.asarray(np.rint(drawn, out=drawn).astype(np.int64))


def heavy_tailed(rng: np.random.Generator, shape: Any) -> Ints:
    """Counts of regions: Pareto, from 0 up to 10,000."""
    drawn: Array = rng.random(shape)
    drawn *= 1 - 1e-4
    drawn += 1e-4
    return np.asarray(np.floor(np.reciprocal(drawn, out=drawn), out=drawn).astype(np.int64) - 1)


def noisy_counts(rng: np.random.Generator, n: int) -> Ints:
    """Heavy-tailed counts plus noise."""
    y = heavy_tailed(rng, n)
    y += noise(rng, n)
    return y


def most_of(noisy: Ints, *offsets: Any) -> Any:
    """Nine tenths of the sum of the positive counts; with offsets, one total per segment."""
    positive = np.maximum(noisy, 0)
    if offsets:
        return np.add.reduceat(positive, np.asarray(offsets[0])[:-1]) * 9 // 10
    return int(positive.sum()) * 9 // 10


def segments_of(n: int, each: int) -> Ints:
    """Offsets of segments of `each` entries; the last may have fewer."""
    return np.append(np.arange(0, n, each), n)


def binary_tree(n: int) -> Tree:
    """A tree of about n nodes; inner ones have two children each."""
    levels = max(1, (n + 1).bit_length() - 1)
    return Tree([np.repeat(np.arange(2**level), 2) for level in range(levels - 1)])


def binary_counts(rng: np.random.Generator, n: int) -> tuple[Tree, Ints, int]:
    """A binary tree of about n nodes, their noisy counts, and the true total."""
    tree = binary_tree(n)
    true = np.asarray(tree.sum_up(heavy_tailed(rng, tree.leaves.size)))
    total = int(true[0])
    true += noise(rng, tree.size)
    return tree, true, total


def nation_counts(rng: np.random.Generator, n: int, most: int) -> tuple[Tree, Ints]:
    """A nation, its states and their counties, with counts by size: about n cells, at most `most` sizes."""
    sizes = min(most, max(5, int(n**0.5) // 2))
    leaves = max(4, n // sizes)
    states = min(50, max(1, leaves // 4))
    tree = Tree([np.zeros(states, np.int64), np.sort(np.arange(leaves) % states)])
    return tree, np.asarray(tree.sum_up(heavy_tailed(rng, (leaves, sizes))))
