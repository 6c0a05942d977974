"""Pool adjacent violators: cut numbers into blocks whose means rise."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Ints, read_only
from models.arithmetic.kernels import helper, kernel


def pools(y: Ints) -> Ints:
    """The starts of the blocks that pooling makes of int64 data; four times their sum must fit 62 bits."""
    starts, out = np.empty(y.size, np.int64), np.empty(y.size, np.int64)
    many = pool(read_only(y), None, starts, out, None, out, 2**62 // max(1, exact.reach(y)), True)
    return starts[:many]


@helper
def _below(s: Any, m: Any, t: Any, k: Any, fits: Any) -> Any:
    """Whether s/m < t/k: by cross-multiplication if that fits, else by quotients, then remainders."""
    if m * k <= fits:
        return s * k < t * m
    q, r = s // m, t // k
    return q < r or (q == r and (s - q * m) * k < (t - r * k) * m)


@kernel(linear=True)
def pool(y: Any, w: Any, start: Any, sums: Any, mass: Any, out: Any, fits: Any, integer: bool) -> int:
    """Pool adjacent violators; returns how many blocks there are.

    Block means are compared exactly: sums of whole data are whole.

    `start`, `sums` and `mass` hold the blocks' starts, sums and weights. Without weights (None), a block's
    weight is its length. `sums` may share the memory of `out`: block b starts at b or later, so the blocks
    can be written out from the last to the first. Products of a sum and a weight fit if the product of the
    two weights is at most `fits`.
    """
    last, i = -1, 0
    while i < y.size:
        begin, m = i, 1 if w is None else w[i]
        s = y[i] * m
        i += 1
        while True:
            while i < y.size and y[i] * m <= s:  # absorb entries that do not rise
                k = 1 if w is None else w[i]
                s += y[i] * k
                m += k
                i += 1
            if last < 0:
                break
            k = begin - start[last] if w is None else mass[last]
            if _below(sums[last], k, s, m, fits):
                break
            s += sums[last]
            m += k
            begin = start[last]
            last -= 1
        last += 1
        start[last], sums[last] = begin, s
        if w is not None:
            mass[last] = m
    stop = y.size
    for block in range(last, -1, -1):
        begin, s = start[block], sums[block]
        m = stop - begin if w is None else mass[block]
        if integer:  # a separate variable: Numba would make both floats, which have 53 bits
            whole = (2 * s + m) // (2 * m)
            if stop < y.size:
                whole = min(whole, out[stop])  # as below, where the data are floats
            out[begin] = whole
        else:
            mean = s / m
            if stop < y.size:
                mean = min(mean, out[stop])  # sums beyond 53 bits are rounded, which might swap two means
            out[begin] = mean
        for j in range(begin + 1, stop):
            out[j] = out[begin]
        stop = begin
    return last + 1
