"""All regions and all constraints as one integer program: exact, and the yardstick where it is small."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.tabulation.problem import Constraints, Measured
from models import JointTables
from models.arithmetic.arrays import Array, Floats

LARGEST = 1_000
"""The most cells of all regions together. Some programs of this size already take minutes."""

WHOLE_UP_TO = 2**20
"""The largest whole number that replaces a weight."""


def refuse_large(regions: int, cells: int) -> None:
    """Refuse more cells than an integer program can have. This is known before noise is drawn.

    Raises `InputError` if there are more than `LARGEST` cells of all regions together.
    """
    number = regions * cells
    if number > LARGEST:
        raise InputError(
            f"Joint is one integer program, for up to {LARGEST:,} whole variables; this one has {number:,} "
            f"({regions:,} regions of {cells:,} cells). Choose TopDown or BlueDown"
        )


def joint_model(measured: Measured, constraints: Constraints) -> JointTables:
    """One integer program over the tables of all regions.

    Raises `InputError` if constraints contradict each other, or there are more than `LARGEST` cells.
    """
    tree, workload = measured.tree, measured.workload
    refuse_large(tree.size, workload.cells)
    tight = constraints.tightened(measured.regions)
    none = tight.sums is None
    return JointTables(
        tree,
        workload,
        np.concatenate([np.asarray(noisy) for noisy in measured.noisy]),
        in_whole_numbers(measured.weights),
        tight.zeros,
        tight.sums,
        None if none else np.concatenate([np.asarray(side, float) for side in tight.lower]),
        None if none else np.concatenate([np.asarray(side, float) for side in tight.upper]),
    )


def in_whole_numbers(weights: Floats) -> Array:
    """Weights in the same proportions, as small whole numbers if there are such; otherwise unchanged.

    Shares of a budget are simple fractions, so weights usually have whole proportions. With whole weights,
    the costs and prices of the integer program are whole, too: it is solved sooner, and often proved without
    a gap.

    >>> in_whole_numbers(np.array([[0.1, 0.25], [0.0, 0.05]]))
    array([[2, 5],
           [0, 1]])
    >>> in_whole_numbers(np.array([1.0, 2**0.5]))
    array([1.        , 1.41421356])
    """
    positive = weights[weights > 0]
    if not positive.size:
        return weights
    least = float(positive.min())
    shares = [Fraction(weight / least).limit_denominator(4096) for weight in weights.ravel().tolist()]
    unit = math.lcm(*(share.denominator for share in shares))
    close = np.isclose([float(share) for share in shares], weights.ravel() / least, rtol=1e-12, atol=0)
    if not close.all() or unit * max(shares) > WHOLE_UP_TO:
        return weights
    return np.array([int(share * unit) for share in shares], np.int64).reshape(weights.shape)
