"""A histogram as the sum of its effects: for each set of attributes, its deviation along exactly these.

Along one attribute, a histogram is its mean plus the deviation from it. Along all d attributes, it is a sum
of 2^d parts, orthogonal to each other: the overall mean, the main effect of each attribute, their
interactions. A marginal scales each part: by the product of the sizes of the attributes that it sums out, or
by 0 if the part deviates along one of these. So any weighted sum of squared marginals is diagonal here.

Effects are numbered by their bits: effect ``t`` deviates along attribute ``a`` if bit ``a`` of t is set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags


def exists(shape: tuple[int, ...]) -> Flags:
    """Which effects can be non-zero: attributes of one category have no deviation."""
    effects = np.arange(1 << len(shape))
    single = sum(1 << a for a, n in enumerate(shape) if n == 1)
    return np.asarray(effects & single == 0)


def eigenvalues(shape: tuple[int, ...], summed: Flags, weights: Array) -> Array:
    """The factor by which Σ_q w_q Q_qᵀQ_q scales each effect, for marginals Q_q.

    - summed, array of bool, shape (queries, attributes): the attributes that each marginal sums out.
    - weights, array, shape (..., queries)

    Returns: array, shape (..., 2^attributes), of the weights' dtype.
    """
    attribute = np.arange(len(shape))
    effects = np.arange(1 << len(shape))[:, None]
    deviates = effects >> attribute & 1 == 1
    each = np.where(summed, np.array(shape, np.int64), 1).prod(axis=1)
    scale = np.where(np.any(deviates[:, None] & summed, axis=2), 0, each)
    return np.asarray((np.asarray(weights)[..., None, :] * scale).sum(axis=-1))


def parts(x: Array, shape: tuple[int, ...]) -> Iterator[tuple[int, Array, int]]:
    """The effects of histograms, one after the other.

    - x, array, shape (nodes, cells), of floats or Fractions

    Yields: the part has shape (nodes, …) with one axis for each attribute, of length 1 where it is constant;
    `repeated` is the number of cells that each of its entries represents.
    """
    found = [(0, x.reshape(x.shape[0], *shape), 1)]
    for a, n in enumerate(shape):
        split: list[tuple[int, Array, int]] = []
        for effect, part, repeated in found:
            mean = part.sum(axis=a + 1, keepdims=True) / n
            split += [(effect, mean, repeated * n), (effect | 1 << a, part - mean, repeated)]
        found = split
    yield from found


def scaled(x: Array, shape: tuple[int, ...], factor: Any) -> Array:
    """Histograms with each effect multiplied by its factor; shape (nodes, cells).

    - x, array, shape (nodes, cells), of floats or Fractions
    - factor, array, shape (2^attributes,)
    """
    held = np.zeros((x.shape[0], *shape), x.dtype)
    for effect, part, _ in parts(x, shape):
        if factor[effect] != 0:
            held += part * factor[effect]
    return held.reshape(x.shape)


def squares(x: Array, shape: tuple[int, ...]) -> list[Any]:
    """Σ of the squares of each effect, over all nodes and cells, by effect."""
    found: list[Any] = [0] * (1 << len(shape))
    for effect, part, repeated in parts(x, shape):
        flat = part.ravel()
        found[effect] = (flat * flat).sum() * repeated if flat.size else 0
    return found


def whole_squares(x: Array, shape: tuple[int, ...]) -> Array:
    """`squares` of whole numbers, without rounding: Fractions, shape (2^attributes,)."""
    cells = math.prod(shape)
    found = [(0, exact.widened(x.reshape(x.shape[0], *shape), cells << len(shape)), 1)]
    for a, n in enumerate(shape, start=1):
        split = []
        for (
            effect,
            part,
            repeated,
        ) in found:  # each part is n times that of `parts`, for every attribute so far
            total = part.sum(axis=a, keepdims=True)
            split += [(effect, total, repeated * n), (effect | 1 << (a - 1), n * part - total, repeated)]
        found = split
    squared = np.empty(1 << len(shape), object)
    for effect, part, repeated in found:
        squared[effect] = Fraction(repeated * int(exact.dot(part, part)), cells * cells)
    return squared
