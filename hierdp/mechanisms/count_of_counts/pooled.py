"""Long sequences of noisy sizes, replaced by a few weighted numbers with the same nearest ordered sizes.

Cut the noisy sizes y into blocks. In each block, let the mean of the first j entries be at least the mean of
the whole block, for every j. Then some nearest non-decreasing whole x is constant on each block:

    The entries of a block with x > t are its last ones. Raising an entry from t to t + 1 costs 2t + 1 − 2y.
    The mean of the last entries is at most the block's, and that of the entries before them at least the
    block's. So raising all entries of the block, or none, costs no more than raising the last ones alone.

A constant x on a block of m entries with the sum s costs m·x² − 2s·x plus a constant. Two entries cost the
same: ⌊s/m⌋ + 1 with the weight s mod m, followed by ⌊s/m⌋ with the remaining weight. The second is smaller
than the first, so every nearest answer is constant on the two. Therefore each best answer of the shorter
problem is a best answer of the longer one, also within bounds on x.

Noise around a constant leaves about as many blocks as the logarithm of the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.record.step import NotProved
from models.arithmetic import exact
from models.arithmetic.arrays import Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.pools import pools


def pooled(noisy: Ints) -> tuple[Ints, Ints]:
    """Fewer numbers, and how many entries each stands for.

    - noisy, int64 array, shape (n,): where sums would not fit 62 bits, it is returned as it is, with weights
      of 1.

    Returns numbers, weights (int64 arrays): the weights are positive and add up to n.

    Raises `NotProved` if a block is not of the kind above: a bug.

    >>> pooled(np.array([3, 1, 1, 7, 8]))
    (array([2, 1, 7, 8]), array([2, 1, 1, 1]))
    """
    if 4 * noisy.size * max(1, exact.reach(noisy)) >= 2**62:
        return noisy, np.ones_like(noisy)
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
