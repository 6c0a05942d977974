"""An analysis as tables and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.analysis.budgets import closed_form, iterated
from hierdp.analysis.methods import (
    Row,
    branchings,
    consistent_variance,
    equal_split,
    flat_is_best,
    geometric_split,
    plain_variance,
)
from hierdp.analysis.queries import Queries, Regular
from hierdp.execution import folder
from hierdp.reports import plots
from hierdp.reports.page import Section, page

if TYPE_CHECKING:
    from pandas import DataFrame

CURVES = {
    "H_b": "equal, no inference",
    "H_b,o": "optimized, no inference",
    "H_b^c": "equal",
    "H_b,g^c": "geometric",
    "H_b,o^c": "optimized",
}
"""The methods with a branching factor, and how each splits its budget."""


def ordered(rows: Sequence[Row]) -> list[Row]:
    """The rows by increasing variance; rows without a variance come last."""
    return sorted(rows, key=lambda row: (np.isnan(row.variance), row.variance))


OPTIONS = {
    "F": "--method Flat",
    "H_2": "--method H_2 --budget equal",
    "H_2^c": '--method "H_2^c" --budget equal',
    "Quad = H_2,g^c": "--method Quadtree",
    "W_H": "--method Wavelet",
}
"""Options of `hierdp release range-query` for the methods whose branching factor is fixed."""


def options(queries: Queries, row: Row) -> str:
    """The options of `hierdp release range-query` that select a row's method; empty if none do."""
    if row.method not in CURVES:
        return OPTIONS.get(row.method, "")
    method = '"H_b^c"' if row.method.endswith("^c") else "H_b"
    budget = f"--budget {row.budget}"
    # --budget optimized is optimal for all ranges only. Other workloads need --share, which must not be 0.
    if row.budget == "optimized" and str(queries) != str(Regular.ranges(queries.bins, queries.dimensions)):
        assert row.shares is not None
        if not row.shares.all():
            return ""
        budget = " ".join(f"--share {share:.4g}" for share in row.shares[::-1])
    return f"--method {method} --branching {row.branching} {budget}"


def frame(rows: Sequence[Row], queries: Queries) -> DataFrame:
    """A table of the methods, sorted by `ordered`."""
    import pandas as pd

    flat = next(row.variance for row in rows if row.method == "F")
    rows = ordered(rows)
    return pd.DataFrame(
        {
            "method": [row.method for row in rows],
            "b": [str(row.branching or "") for row in rows],
            "levels": [str(row.levels or "") for row in rows],
            "budget": [row.budget for row in rows],
            "variance": [row.variance for row in rows],
            "standard_error": [float(np.sqrt(row.variance)) for row in rows],
            "times_flat": [row.variance / flat for row in rows],
            "release_range_query": [options(queries, row) for row in rows],
            "note": [row.note for row in rows],
        }
    )


def shares_text(row: Row) -> str:
    """The budget of each level as text, from the top, as for `hierdp release range-query --share`."""
    assert row.shares is not None
    return ", ".join(f"{share:.4g}" for share in row.shares[::-1])


def by_branching(queries: Queries, epsilon: float, tried: Sequence[int] | None = None) -> DataFrame:
    """Mean variance by branching factor, one row per factor and method (Figures 2 and 4).

    Default: the branching factors that `analyse` tries, all up to 32, then in steps of 10 %.
    """
    import pandas as pd

    if tried is None:
        steps = {round(32 * 1.1**k) for k in range(40)} | {queries.bins}
        tried = [b for b in branchings(queries) if b <= 32 or b in steps]
    rows = []
    for b in tried:
        equal, geometric = equal_split(queries, b, epsilon), geometric_split(queries, b, epsilon)
        found = {
            "H_b": plain_variance(queries, b, equal),
            "H_b,o": closed_form(queries, b, epsilon).variance,
            "H_b^c": consistent_variance(queries, b, equal),
            "H_b,g^c": consistent_variance(queries, b, geometric),
            "H_b,o^c": iterated(queries, b, epsilon).variance,
        }
        rows += [{"method": name, "b": b, "levels": equal.size, "variance": v} for name, v in found.items()]
    return pd.DataFrame(rows)


def drawn(curves: DataFrame, lines: dict[str, float], title: str) -> Any:
    """A plot of variance by branching factor; methods without one are horizontal lines."""
    figure, (axes,) = plots.figure(7.2, 4.2)
    draw(axes, curves, lines)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    plots.beside(axes)
    return figure


def draw(axes: Any, curves: DataFrame, lines: dict[str, float]) -> None:
    """Draw the same plot into given axes."""
    for name, here in curves.groupby("method", sort=False):
        dense = max(1, len(here) // 12)
        axes.plot(here.b, here.variance, label=f"{mathematical(str(name))}: {CURVES[str(name)]}",
                  markevery=dense, linewidth=1.2, **plots.style(list(CURVES).index(str(name))))  # fmt: skip
    for (name, value), dash in zip(lines.items(), ("--", ":", "-.", (0, (1, 3))), strict=False):
        axes.axhline(value, color="#555555", linestyle=dash, linewidth=1.1, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    plots.plain_log(axes.yaxis)
    axes.set_xticks(ticks := [2**k for k in range(1, 11) if 2**k <= curves.b.max()], [str(t) for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("branching factor b along each dimension")
    axes.set_ylabel("mean variance of an answer")


def mathematical(name: str) -> str:
    """``H_b,o^c`` as a formula."""
    letter, _, rest = name.partition("_")
    below, _, above = rest.partition("^")
    return f"${letter}_{{{below}}}" + (f"^{{{above}}}$" if above else "$")


def advice(queries: Queries, rows: Sequence[Row]) -> list[str]:
    """Recommendations from the table, in words."""
    by_name = {row.method: row for row in rows}
    flat = by_name["F"].variance
    if "H_b^c" not in by_name:
        return ["There is one bin per dimension: only the flat method applies."]
    lines = []
    for name, how in (("H_b^c", "equal"), ("H_b,o^c", "optimized")):
        row = by_name[name]
        if row.variance < flat * (1 - 1e-9):
            times = f"{flat / row.variance:,.3g} times less variance than the flat method"
            lines.append(f"With {how} budgets, use H_b^c with b = {row.branching}: {times}.")
            if flags := options(queries, row):
                lines.append(f"  hierdp release range-query TABLE {flags} …")
        else:
            lines.append(f"With {how} budgets, the flat method is best: no hierarchy has less variance.")
    if row.variance < flat * (1 - 1e-9):
        lines.append(f"The optimized budget (ε of each level, from the top): {shares_text(row)}.")
        if row.shares is not None and not row.shares.all():
            lines.append("A level with 0 should not be measured: these queries do not need it.")
    if isinstance(queries, Regular):
        most = {1: 200, 2: 200, 3: 120}.get(queries.dimensions, 40)
        until = flat_is_best(most, lambda n: Regular(n, queries.axes))
        where = f"n = {until:,}" if until < most else f"at least n = {most:,}"
        lines.append(f"For such workloads with equal budgets, flat is best up to {where} bins per dimension.")
    return lines


def write(
    path: Path,
    title: str,
    queries: Queries,
    rows: Sequence[Row],
    curves: DataFrame,
    said: Sequence[str],
    overwrite: bool = False,
) -> None:
    """Write ``report.html``, ``methods.csv``, ``branching.csv`` and, if it has rows, ``branching.png``."""
    values = {row.method: row.variance for row in rows}
    drawing = None
    if len(curves):
        drawing = drawn(curves, {"flat": values["F"], "Haar wavelet": values["W_H"]}, title)
    section = Section(title, said, plots.svg(drawing) if drawing else "", [table := frame(rows, queries)])
    with folder.appearing(path, overwrite) as aside:
        table.to_csv(aside / "methods.csv", index=False)
        curves.to_csv(aside / "branching.csv", index=False)
        if drawing:
            drawing.savefig(aside / "branching.png", dpi=130)
        page_text = page("Expected variance of answers", [section])
        (aside / "report.html").write_text(page_text, encoding="utf-8")
