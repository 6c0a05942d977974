"""Cells that the paper computed from other counts of nodes or queries than the exact ones.

- V* by Algorithm 2 where b^h > N: Eq. 2 below the top level, and only the whole nodes of the top level.
- The wavelet: six of eight cells are those of a list of queries in which every prefix range occurs twice and
  no single bin occurs, for the terms of the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis import algorithms, wavelet
from hierdp.analysis.budgets import equal
from hierdp.analysis.workload import RANGE, height
from hierdp.experiments.papers.qardaji2013.published import AROUND_1024, TABLE_2, TABLE_3
from hierdp.experiments.study import Part


def parts() -> list[Part]:
    """Algorithm 2's ragged rows, and the wavelet's row."""
    return [ragged(), wavelets()]


def estimate(bins: int, branching: int) -> float:
    """V* with the paper's count of nodes, ε = 1, equal budgets."""
    return algorithms.mean_variance_as_counted(bins, branching, equal(1.0, height(bins, branching)))


def ragged() -> Part:
    """Every printed V*, beside both counts of nodes."""
    import pandas as pd

    cells = [(k, b, star) for k, (b, star, _, _) in TABLE_2.items() if k != 10]
    cells += [(10, b, star) for b, (star, _) in AROUND_1024.items()]
    rows = []
    for k, b, printed in sorted(cells):
        n, h = 2**k, height(2**k, b)
        exact = algorithms.mean_variance(n, b, equal(1.0, h))
        rows.append(
            {
                "N": f"2^{k}", "b": b, "h": h, "b^h = N": b**h == n, "V*_printed": printed,
                "as_counted_by_the_paper": round(estimate(n, b), 2), "nodes_counted_exactly": round(exact, 2),
            }
        )  # fmt: skip
    texts = ["Algorithm 2's V*, Table 2, by two counts of nodes. (54.32 is 54.3237; the paper prints 54.33.)"]
    return Part("ragged", "Algorithm 2 where b^h exceeds N", texts, {"ragged": pd.DataFrame(rows)})


def wavelet_as_counted(k: int) -> float:
    """The mean variance by the law that six printed cells follow: exact + 2(1 + k)²(3k − 10)/(18(N + 1))."""
    n = 2**k
    return float(wavelet.mean_variance(n, 1.0, [RANGE]) + 2 * (1 + k) ** 2 * (3 * k - 10) / (18 * (n + 1)))


def wavelet_listed(k: int) -> float:
    """The mean over all ranges, with the nodes' terms of prefix ranges twice and of single bins not at all.

    The law is this number up to O(1/N²). By enumeration: for a few hundred bins.
    """
    n = 2**k
    one = np.arange(n)
    more = _terms(k, np.zeros(n), one + 1) - _terms(k, one, one + 1)
    return wavelet.mean_variance(n, 1.0, [RANGE]) + more / RANGE.queries(n)


def _terms(k: int, start: ArrayLike, stop: ArrayLike) -> float:
    """The sum of the variances of some ranges, without the share of the mean of all bins."""
    start, stop = np.asarray(start, float)[:, None], np.asarray(stop, float)[:, None]
    mean = 2 * (1 + k) ** 2 * ((stop - start) / 2**k) ** 2
    return float(wavelet.of_ranges(2**k, 1.0, start, stop).sum() - mean.sum())


def wavelets() -> Part:
    """Every printed cell of the wavelet, beside the exact mean and the law."""
    import pandas as pd

    rows = [
        {
            "N": f"2^{k}", "printed": printed,
            "exact": round(wavelet.mean_variance(2**k, 1.0, [RANGE]), 2),
            "law": round(wavelet_as_counted(k), 2),
            "prefixes_twice": round(wavelet_listed(k), 2),
        }
        for k, printed in zip(range(4, 12), _printed(), strict=True)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["printed_is"] = [_which(row) for row in rows]
    texts = ["Table 3, wavelet. Law: the exact mean + 2(1 + k)²(3k − 10)/(18(N + 1)), N = 2^k."]
    return Part("wavelet", "Table 3: the wavelet's row", texts, {"wavelet": frame})


def _printed() -> Sequence[float]:
    return [cell for cell in TABLE_3["W_H"] if cell is not None]


def _which(row: Mapping[str, Any]) -> str:
    return next((name for name in ("exact", "law") if abs(row[name] - row["printed"]) < 0.0051), "neither")
