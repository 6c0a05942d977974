"""Errors of counts by size, stored as runs (Kuo et al. 2018, §3.1 and §6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.size_runs import Runs
from hierdp.privacy.budget import split
from models.arithmetic.kernels import kernel

if TYPE_CHECKING:
    from pandas import DataFrame

    from models import Tree


def earth_movers_runs(true: Runs, released: Runs) -> NDArray[Any]:
    """Number of entities to add or remove to turn each row of one table into that of the other.

    It is Σ_k |true groups larger than k − released groups larger than k|. If both rows have equally many
    groups, this is Lemma 1. Otherwise the missing groups count as empty.

    Returns
    -------
    int array, shape (rows,)
        Exact; Python integers if 64 bits might overflow.

    Examples
    --------
    >>> one = Runs.from_dense([[0, 100, 0, 0, 0, 0]])
    >>> earth_movers_runs(one, Runs.from_dense([[0, 0, 0, 0, 0, 100]]))
    array([400])
    """
    both = [true, released]
    largest = max((int(part.sizes.max()) for part in both if part.sizes.size), default=0)
    most = max(int(part.groups.max(initial=0)) for part in both)
    distances, dtype = _distances, np.int64
    if largest * most >= 2**62:
        distances, dtype = _distances.py_func, object  # type: ignore[assignment]
    out = np.zeros(true.rows, dtype)
    sides = [(part.offsets, part.sizes.astype(dtype), part.counts.astype(dtype)) for part in both]
    distances(*sides[0], *sides[1], out)
    return out


@kernel()
def _distances(at: Any, sizes: Any, counts: Any, at2: Any, sizes2: Any, counts2: Any, out: Any) -> None:
    """Scan sizes downwards; a gap contributes its length times the difference in numbers of larger groups."""
    for row in range(out.size):
        i, j = at[row + 1] - 1, at2[row + 1] - 1
        more, last = 0, 0
        while i >= at[row] or j >= at2[row]:
            size = sizes[i] if i >= at[row] else sizes2[j]
            if j >= at2[row] and sizes2[j] > size:
                size = sizes2[j]
            out[row] += abs(more) * (last - size)
            if i >= at[row] and sizes[i] == size:
                more += counts[i]
                i -= 1
            if j >= at2[row] and sizes2[j] == size:
                more -= counts2[j]
                j -= 1
            last = size
        out[row] += abs(more) * last


def size_run_errors(tree: Tree, levels: Sequence[str], true: Runs, released: Runs) -> DataFrame:
    """Earth mover's distance per level: the sum over its nodes, and the mean per node."""
    import pandas as pd

    distance = earth_movers_runs(true, released)
    rows = []
    for number, name in enumerate(levels):
        here = distance[tree.nodes_of(number)]
        emd = int(here.sum())
        rows.append(
            {
                "level": number,
                "name": name,
                "regions": here.size,
                "emd": emd,
                "emd_per_region": emd / here.size,
            }
        )
    return pd.DataFrame(rows)


def omniscient(tree: Tree, levels: Sequence[str], true: Runs, epsilon: float) -> DataFrame:
    """The expected error per node of an omniscient method that knows which sizes occur (§6.2), per level.

    Laplace noise of scale 1/ε on each non-zero count, with ε the level's share, has standard deviation √2/ε.
    This is a baseline for experiments, not a private mechanism: it reveals which counts are zero.
    """
    import pandas as pd

    rows = []
    for number, (name, share) in enumerate(zip(levels, split(epsilon, len(levels)), strict=True)):
        distinct = float(np.mean(true.distinct[tree.nodes_of(number)]))
        rows.append({"level": number, "name": name, "emd_per_region": distinct * math.sqrt(2) / share})
    return pd.DataFrame(rows)
