"""Figures 2 and 4: variance against the branching factor, computed exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hierdp.analysis import report
from hierdp.analysis.budgets import equal, iterated, noise_variance
from hierdp.analysis.queries import Regular
from hierdp.analysis.workload import height
from hierdp.experiments.study import Part
from hierdp.reports import plots

if TYPE_CHECKING:
    from pandas import DataFrame

FIGURE_2 = (2**8, 2**10, 2**16)
"""Numbers of bins; those of the paper's figure are missing in our copy."""

FIGURE_4 = {"a": (2, 2**5), "b": (2, 2**6), "c": (2, 2**7), "d": (3, 2**4)}
"""Numbers of dimensions, and bins per dimension."""


def parts() -> list[Part]:
    """Figures 2 and 4, and the optimized budgets of Figure 2."""
    return [figure_2(), budgets(), figure_4()]


def figure_2() -> Part:
    """Budgets against branching factors."""
    import pandas as pd

    frames, best = [], []
    drawn, panels = plots.figure(13, 3.9, panels=len(FIGURE_2))
    for axes, n in zip(panels, FIGURE_2, strict=True):
        queries = Regular.ranges(n)
        curves = report.by_branching(queries, 1.0, _branchings(n, 256))
        frames.append(curves.assign(N=n))
        best += _best(curves, N=n)
        report.draw(axes, curves, {"Haar wavelet": queries.wavelet(1.0)})
        axes.set_title(f"N = {n:,}", loc="left", fontsize=10, fontweight="bold")
    plots.beside(panels[-1])
    texts = [
        "Mean variance of all ranges, ε = 1. Geometric: each level has ∛b times its parents' budget. "
        "Optimized: the closed form, or, with inference, the paper's iteration."
    ]
    frames_2 = {"figure2": pd.concat(frames), "figure2_best": pd.DataFrame(best)}
    return Part("figure2", "Figure 2: budgets", texts, frames_2, drawn)


def budgets() -> Part:
    """The result of the iteration, with a proof that it is a KKT point."""
    import pandas as pd

    rows = []
    for n in FIGURE_2:
        queries = Regular.ranges(n)
        for b in (2, 3, 4, 8, 16, 32):
            h = height(n, b)
            split = iterated(queries, b, 1.0)
            rows.append(
                {
                    "N": n, "b": b, "h": h,
                    "equal": round(queries.consistent(b, noise_variance(equal(1.0, h))), 2),
                    "optimized": round(split.variance, 2), "rounds": split.rounds,
                    "levels_asked": int((split.shares > 0).sum()), "KKT": bool(split.certificate),
                    "families_asked": _families(n, b, split.shares.tolist()),
                    "shares_from_the_leaves": ", ".join(f"{x:.3f}" for x in split.shares if x > 0),
                }
            )  # fmt: skip
    texts = [
        "The iteration of §3.5 from equal shares. Families: without the levels that it drops, from the "
        "leaves up. KKT: models.BudgetSplit certifies the shares for their own weights."
    ]
    return Part("budgets", "Optimized budgets", texts, {"budgets": pd.DataFrame(rows)})


def _families(n: int, b: int, shares: Sequence[float]) -> str:
    """Family sizes after levels without budget are removed; the root's family, perhaps short, is last."""
    measured = [i for i, share in enumerate(shares) if share > 0]
    steps = [b ** (high - low) for low, high in pairwise(measured)]
    return " × ".join(str(step) for step in [*steps, -(-n // b ** measured[-1])])


def figure_4() -> Part:
    """Figure 4: two and three dimensions."""
    import pandas as pd

    frames, best = [], []
    drawn, panels = plots.figure(13, 7.2, panels=2, rows=2)
    for axes, (name, (d, n)) in zip(panels, FIGURE_4.items(), strict=True):
        queries = Regular.ranges(n, d)
        curves = report.by_branching(queries, 1.0, _branchings(n, n))
        curves = curves[curves.method != "H_b,o"]
        flat = 2 * queries.cells()
        frames.append(curves.assign(d=d, n=n))
        found = _best(curves, panel=name, d=d, n=n)
        best += [{**row, "over_flat": round(row["variance"] / flat, 3)} for row in found]
        report.draw(axes, curves, {"flat": flat, "Haar wavelet": queries.wavelet(1.0)})
        title = f"({name}) d = {d}, N = $2^{{{d * round(math.log2(n))}}}$, n = {n}"
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    panels[0].legend(frameon=False, fontsize=7, loc="upper right", bbox_to_anchor=(0.99, 0.9), ncols=2)
    texts = ["Mean variance of all boxes, ε = 1, exact. b is per dimension; b = n is the flat method."]
    tables = {"figure4": pd.concat(frames), "figure4_best": pd.DataFrame(best)}
    return Part("figure4", "Figure 4: two and three dimensions", texts, tables, drawn)


def _branchings(n: int, most: int) -> list[int]:
    """All branching factors up to 32, then in steps of 10 %."""
    steps = {round(32 * 1.1**k) for k in range(60)} | {n}
    return [b for b in range(2, min(n, most) + 1) if b <= 32 or b in steps]


def _best(curves: DataFrame, **where: Any) -> list[dict[str, Any]]:
    """The best branching factor of each method."""
    rows = []
    for name, here in curves.groupby("method", sort=False):
        least = int(here.variance.to_numpy().argmin())
        b, h, variance = (here[column].to_numpy()[least] for column in ("b", "levels", "variance"))
        rows.append(
            {**where, "method": name, "b": int(b), "h": int(h), "variance": round(float(variance), 2)}
        )
    return rows
