"""Weights in the ratio of 1/variance; whole ones for models over whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError
from models import Tree
from models.arithmetic.arrays import Floats, Ints
from models.witnesses.node_prices import NEVER

FINENESS = 1_000
"""The smallest weight, if costs leave room for it: weights agree with 1/variance to three digits or more."""


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
    whole = np.rint(weights * min(FINENESS, np.floor(room))).astype(np.int64)
    return np.asarray(whole // max(1, np.gcd.reduce(whole[known])))


def real_weights(variance: Floats) -> NDArray[np.float64]:
    """Weights in the ratio of 1/variance, the smallest 1; 0 for infinite variance."""
    known = np.isfinite(variance)
    return np.where(known, variance[known].max(initial=0.0) / variance, 0.0)
