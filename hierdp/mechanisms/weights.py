"""Weights in the ratio of 1/variance; whole ones for models over whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError
from models import Tree
from models.arithmetic.arrays import Floats, Ints
from models.check.reader import NEVER

FINENESS = 1_000
"""The smallest whole weight, if costs leave room for it: then weights have three digits or more."""


def whole_weights(tree: Tree, variance: Floats, largest: float) -> Ints:
    """Whole weights of the nodes; 0 for infinite variance.

    - variance, float64 array, shape (nodes,)
    - largest: an upper bound on counts and changes, which the costs along the tree must fit into 60 bits
      with.

    Raises `InputError` if there is no room for weights that differ as much as these variances.

    >>> whole_weights(Tree([[0, 0]]), np.array([np.inf, 4.0, 1.0]), largest=100).tolist()
    [0, 1, 4]
    """
    known = np.isfinite(variance)
    weights = np.where(known, variance[known].max(initial=1.0) / variance, 0.0)
    path = sum(float(weights[tree.nodes_of(level)].max()) for level in range(tree.depth + 1))
    room = NEVER / (16.0 * path * max(1.0, largest))
    if room < 1:
        raise InputError(
            "the counts are too large, or the standard errors differ too much, for exact whole numbers: use "
            "the method least-squares or non-negative, or count in larger units"
        )
    return in_whole_numbers(weights, room)


def in_whole_numbers(weights: Floats, room: float) -> Ints:
    """Whole numbers in proportion to weights, which are 0 or at least 1.

    - room: the largest factor. If it is below 1, the smallest weights become 1, more than in proportion.

    >>> in_whole_numbers(np.array([2.5, 0.0, 1.0]), 10.0), in_whole_numbers(np.array([8.0, 1.0]), 0.25)
    (array([5, 0, 2]), array([2, 1]))
    """
    scale = min(FINENESS, np.floor(room) if room >= 1 else room)
    whole = np.where(weights > 0, np.maximum(np.rint(weights * scale), 1), 0).astype(np.int64)
    return np.asarray(whole // max(1, np.gcd.reduce(whole)))


def real_weights(variance: Floats) -> NDArray[np.float64]:
    """Weights in the ratio of 1/variance, the smallest 1; 0 for infinite variance."""
    known = np.isfinite(variance)
    return np.where(known, variance[known].max(initial=0.0) / variance, 0.0)
