"""§5: Propositions 5 and 6 against exact counts of nodes, and when the flat method is best.

In one dimension the paper says “up until N = 45”. That is right for a flat method with the variance 2N/3, by
the mean number of bins N/3 of §5.3. The mean over all ranges is (N + 2)/3; with it the answer is 42.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hierdp.analysis.budgets import equal, noise_variance
from hierdp.analysis.grids import plain
from hierdp.analysis.methods import (
    branchings,
    consistent_equal,
    consistent_geometric,
    consistent_quadtree,
    flat_is_best,
    plain_equal,
)
from hierdp.analysis.queries import Queries, Regular
from hierdp.analysis.workload import RANGE, height
from hierdp.experiments.papers.qardaji2013.published import BREAK_EVEN
from hierdp.experiments.papers.qardaji2013.settings import Settings
from hierdp.experiments.papers.qardaji2013.tables import exact
from hierdp.experiments.study import Part

if TYPE_CHECKING:
    from pandas import DataFrame

HIERARCHIES = {
    "H_b, equal": plain_equal,
    "H_b^c, equal": consistent_equal,
    "H_b^c, quadtree": consistent_quadtree,
    "H_b^c, geometric": consistent_geometric,
}


def parts(settings: Settings) -> list[Part]:
    """Both."""
    return [propositions(), break_even(settings.break_even_bins)]


def proposition(bins: int, branching: int, dimensions: int) -> float:
    """Eqs. 6 and 7 with the constants of their proofs, ε = 1.

    As printed, Eq. 7 lacks the factor h² of a node's variance, although §5.3 uses it.
    """
    b, d, h = branching, dimensions, height(bins, branching)
    nodes = d * b ** (d - 1) / sum(b**i for i in range(d - 1)) / 3 ** (d - 1) * (bins ** (d - 1) - 1)
    return float(2 * h**2 * nodes)


def propositions() -> Part:
    """The errors of the propositions."""
    import pandas as pd

    rows = []
    for d, cases in {2: ((8, 2), (64, 2), (64, 8), (256, 16), (1024, 2), (4096, 8)),
                     3: ((8, 2), (64, 8), (121, 11), (256, 4)), 4: ((16, 4), (216, 6))}.items():  # fmt: skip
        for n, b in cases:
            h = height(n, b)
            exact = plain(n, b, noise_variance(equal(1.0, h)), [RANGE] * d)
            stated = proposition(n, b, d)
            rows.append({"d": d, "n": n, "b": b, "h": h, "exact": exact, "proposition": stated,
                         "proposition/exact": round(stated / exact, 3)})  # fmt: skip
    texts = [
        "Mean variance of all boxes without inference, ε = 1, equal budgets. The propositions count the "
        "nodes on a query's faces as if it had no corners; Eq. 7 with the factor h² of its proof."
    ]
    return Part("propositions", "Propositions 5 and 6", texts, {"propositions": pd.DataFrame(rows)})


def break_even(most: int) -> Part:
    """The table of §5.3, computed, up to a number of bins per dimension."""
    import pandas as pd

    rows = []
    for d, (printed, cells) in BREAK_EVEN.items():

        def at(n: int, d: int = d) -> Queries:
            return Regular.ranges(n, d)

        for name, hierarchy in HIERARCHIES.items():
            until = flat_is_best(most, at, hierarchy)
            row = {"d": d, "hierarchy": name, "flat_is_best_to_n": until}
            if until < most:
                queries = at(until + 1)
                variance, b = min((hierarchy(queries, b), b) for b in branchings(queries) if b <= until)
                row |= {
                    "then_b": b, "h": height(until + 1, b), "variance": round(variance, 2),
                    "flat": round(2 * queries.cells(), 2), "N": (until + 1) ** d,
                }  # fmt: skip
            stated = name == "H_b^c, equal"
            row |= {"n_printed": printed if stated else None, "N_printed": float(cells) if stated else None}
            rows.append(row)
    texts = [
        f"The largest n, to {most}, such that for 1 … n bins per dimension the flat method is best over all "
        "boxes, and the method that beats it at the next n. The second table has two variances of the flat "
        "method: exact, and the paper's estimate 2N/3."
    ]
    frame = pd.DataFrame(rows).astype(dict.fromkeys(("then_b", "h", "N", "n_printed"), "Int64"))
    return Part("break-even", "When flat is best", texts, {"break_even": frame, "until_45": until_45()})


def until_45() -> DataFrame:
    """The best consistent hierarchy in one dimension against two variances of the flat method."""
    import pandas as pd

    rows = []
    for n in AROUND_45:
        variance, b = min((exact(n, b), b) for b in range(2, n))
        flat, rough = 2 * RANGE.length(n), 2 * n / 3
        rows.append({"N": n, "best_b": b, "H_b^c": variance, "flat": flat, "flat_by_N/3": rough,
                     "flat_is_best": variance > flat, "flat_is_best_by_N/3": variance > rough})  # fmt: skip
    return pd.DataFrame(rows)


AROUND_45 = range(36, 52)
"""The N of the table around the paper's 45."""
