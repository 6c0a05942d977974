"""Very many noisy sizes in order, as few numbers with weights that have the same nearest ordered sizes.

Cut the noisy sizes y into blocks such that the first j of a block, for every j, have a mean no less than
the whole block's. Then some nearest non-decreasing whole x is constant on each block. (The entries of a
block with x > t are a suffix of it. To be over t rather than at t costs an entry 2t + 1 − 2y. The suffix
has a mean no more than the block's, and what is before it one no less: so it is as good that all of the
block is over t, or none of it.) If x is constant on a block of m entries with the sum s, it costs m·x² −
2s·x and a constant. So it does with two entries in place of the block: ⌊s/m⌋ + 1 with the weight s mod m,
then ⌊s/m⌋ with the rest. These two fall, so that every nearest answer is constant on them. Therefore the
best answers of the shorter problem are best answers of the longer one, within bounds on x, too.

Noise around a constant leaves about as many blocks as the logarithm of its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.record.step import NotProved
from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel


def pooled(noisy: Ints) -> tuple[Ints, Ints]:
    """Fewer numbers, and how many entries each stands for.

    Parameters
    ----------
    noisy : int64 array, shape (n,)
        Where sums would not fit 62 bits, it is returned as it is, with weights of 1.

    Returns
    -------
    numbers, weights : int64 arrays
        The weights are positive and add up to n.

    Raises
    ------
    NotProved
        If a block is not of the kind above: a bug.

    Examples
    --------
    >>> pooled(np.array([3, 1, 1, 7, 8]))
    (array([2, 1, 7, 8]), array([2, 1, 1, 1]))
    """
    if 4 * noisy.size * max(1, exact.reach(noisy)) >= 2**62:
        return noisy, np.ones_like(noisy)
    from solvers.fast.isotonic import pools

    starts = pools(noisy)
    lengths = np.diff(starts, append=noisy.size)
    means, over = np.divmod(np.add.reduceat(noisy, starts), lengths)
    if not fall(noisy, lengths, means, over):
        raise NotProved("noisy sizes were pooled that do not fall. Please report this.")
    numbers, weights = np.stack([means + 1, means], axis=1), np.stack([over, lengths - over], axis=1)
    held = weights > 0
    return numbers[held], weights[held]


@kernel()
def fall(noisy: Any, lengths: Any, means: Any, over: Any) -> bool:
    """Whether the first j of each block have a mean no less than the block's, ``means + over / lengths``.

    In whole numbers: the sum of the first j is at least j·means + ⌈j·over / lengths⌉.
    """
    at = 0
    for block in range(lengths.size):
        m, part = lengths[block], over[block]
        extra, needed, rest = 0, 0, 0  # needed = ⌈j·part / m⌉, rest = m·needed − j·part
        for i in range(at, at + m):
            extra += noisy[i] - means[block]
            rest -= part
            if rest < 0:
                rest += m
                needed += 1
            if extra < needed:
                return False
        if extra != part:  # another sum
            return False
        at += m
    return bool(at == noisy.size)
