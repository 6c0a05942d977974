"""StructureFirst (Xu et al. 2012): the part of its error that is known without data.

The method partitions the bins into buckets (the exponential mechanism on squared errors, with ε₁), adds
Laplace noise of scale 1/ε₂ to the buckets' counts, and spreads each count evenly over the bucket's bins. Its
error has two parts. The bias from spreading, and the partition itself, depend on the data, so they cannot be
computed in advance (Qardaji, Yang & Li 2013 leave the method out of Table 3, too). The variance from noise
can, for a given partition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.workload import RANGE, Axis
from hierdp.errors import InputError


def noise_given_structure(bins: int, first: ArrayLike, epsilon: float, axis: Axis = RANGE) -> float:
    """Mean variance from noise alone, for one partition of the bins.

    - first, shape (buckets,): first bin of each bucket, strictly increasing from 0.
    - epsilon: ε₂, the budget for the counts.

    With one bin per bucket it is the flat method.

    >>> noise_given_structure(16, range(16), 1.0)
    12.0
    """
    first = np.asarray(first)
    if first.size == 0 or first[0] != 0 or np.any(np.diff(first) <= 0) or first[-1] >= bins:
        raise InputError(f"the first bins of buckets must increase strictly from 0 and stay below {bins}")
    width = np.diff(np.append(first, bins)).astype(float)
    middle = first + (width + 1) / 2
    forms = axis.root(bins, middle, (width * width - 1) / (3 * width)) * np.ones_like(width)
    return 2 / epsilon**2 * float(np.sum(forms)) / axis.queries(bins)
