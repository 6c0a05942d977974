"""Checks of the paper's tables: its sampled cells, and its algorithms as printed."""

from __future__ import annotations

from functools import cache

import numpy as np

from hierdp.analysis import algorithms
from hierdp.analysis.budgets import equal, geometric, noise_variance
from hierdp.analysis.regular import of_ranges
from hierdp.analysis.workload import height
from hierdp.experiments.papers.qardaji2013.published import AROUND_1024, SAMPLED, TABLE_1, TABLE_2, TABLE_3
from hierdp.experiments.papers.qardaji2013.settings import Settings
from hierdp.experiments.papers.qardaji2013.tables import MISSING, exact
from hierdp.experiments.study import Part


def parts(settings: Settings) -> list[Part]:
    """Both."""
    return [sampled(settings.sampled_bins), slips()]


def sampled(most: int) -> Part:
    """The sampled cells against the exact means, in standard errors of a sample."""
    import pandas as pd

    cells = [(1, k, TABLE_1[k][2], TABLE_1[k][7], "H_b^c") for k in (10, 11)]
    cells += [(1, 10, 2, TABLE_1[10][6], "H_2^c"), (1, 11, 2, TABLE_1[11][6], "H_2^c")]
    cells += [(2, 10, 11, TABLE_2[10][2], "H_b^c"), (2, 11, 13, TABLE_2[11][2], "H_b^c")]
    cells += [(2, 10, 32, AROUND_1024[32][1], "H_b^c")]
    for name, b in (("H_12^c", 12), ("H_16^c", 16), ("H_2^c", 2), ("Quad = H_2,g^c", 2)):
        cells += [(3, k, b, TABLE_3[name][k - 4], name) for k in (10, 11)]
    rows = []
    for table, k, b, printed, name in cells:
        n = 2**k
        if n > most:
            continue
        mean, error = _sample(n, b, name.startswith("Quad"))
        rows.append(
            {
                "table": table, "method": name, "N": f"2^{k}", "b": b, "printed": printed,
                "exact": round(mean, 2), "standard_error_of_a_sample": round(error, 3),
                "printed_is_off_by": round(((printed or MISSING) - mean) / error, 1),
            }
        )  # fmt: skip
    texts = [f"Cells from {SAMPLED:,} random ranges, corrected; the last column is in standard errors."]
    return Part("sampled", "The sampled cells, corrected", texts, {"sampled": pd.DataFrame(rows)})


@cache
def _sample(n: int, b: int, quadtree: bool) -> tuple[float, float]:
    """The mean variance of all ranges, and the standard error of the mean over a sample of them."""
    shares = geometric(1.0, height(n, b), b) if quadtree else equal(1.0, height(n, b))
    first, last = np.triu_indices(n)
    each = of_ranges(n, b, 1 / noise_variance(shares), first, last + 1)
    return float(np.mean(each)), float(np.std(each)) / SAMPLED**0.5


def slips() -> Part:
    """Algorithms 1 and 2 as printed and as corrected, and the exact values."""
    import pandas as pd

    rows = []
    for n, b in ((64, 8), (256, 16), (1024, 32), (2**11, 13), (2**12, 16), (2**20, 16)):
        h = height(n, b)
        shares = equal(1.0, h)
        rows.append(
            {
                "N": n, "b": b, "h": h,
                "V_down_of_the_top_as_printed": algorithms.estimates_as_printed(b, shares).below[-1],
                "corrected": algorithms.estimates(b, shares).below[-1],
                "Algorithm_2_as_printed": algorithms.mean_variance_as_printed(n, b, shares),
                "Algorithm_2_corrected": round(algorithms.mean_variance(n, b, shares), 2),
                "exact": round(exact(n, b), 2),
            }
        )  # fmt: skip
    texts = ["`hierdp.analysis.algorithms` lists the errors of the pseudocode."]
    title = "Algorithms 1 and 2, as printed and as corrected"
    return Part("algorithms", title, texts, {"algorithms": pd.DataFrame(rows)})
