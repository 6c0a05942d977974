"""Tables and figures from the runs, beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.reports import plots
from hierdp.reproduce.study import Part
from hierdp.reproduce.zhang2014.data import WHAT
from hierdp.reproduce.zhang2014.experiments import Sets
from hierdp.reproduce.zhang2014.settings import (
    CHARACTERISTICS,
    COUNTERPARTS,
    FIGURE_NUMBERS,
    PUBLISHED_METHODS,
    TABLES,
    Settings,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series

DRAWN = ("AHP", "NF", "AHP-by-place", "SF", "PHP", "GS", "Laplace")
"""The methods in the figures, with their colours and markers; AHP-greedy would coincide with AHP."""

WIN = 0.999
"""Means of runs that differ by less than this ratio count as equal."""


def about(sets: Sets) -> Part:
    """Statistics of the data, beside the paper's Table 1."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for name, counts in sets.items():
        values = (counts.size, int((counts == 0).sum()), counts.mean(), counts.var(), int(counts.max()))
        people, ordered = int(counts.sum()), bool((np.diff(counts) <= 0).all())
        rows.append(_row(name, people, ordered, values))
        known = COUNTERPARTS.get(name, "")
        if known and f"published: {known}" not in {row["data"] for row in rows}:
            printed = CHARACTERISTICS[known]
            people, ordered = round(printed[0] * printed[2]), known == "NetTrace"
            rows.append(_row(f"published: {known}", people, ordered, printed))
    texts = [
        "The paper's own files are not available here; see docs/zhang2014.md for how two are rebuilt.",
        "; ".join(f"{name}: {WHAT[name]}" for name in sets if name in WHAT) + ".",
    ]
    return Part("data", "Table 1: the data", texts, {"data": pd.DataFrame(rows)})


def _row(name: str, people: int, ordered: bool, values: Sequence[float]) -> dict[str, Any]:
    columns = ("bins", "empty_bins", "mean", "variance", "largest")
    return {
        "data": name,
        "people": people,
        "sorted": "yes" if ordered else "no",
        **dict(zip(columns, values, strict=True)),
    }


def tables(runs: DataFrame, settings: Settings) -> Part:
    """Tables 2–4: KLD of all methods on all data."""
    import pandas as pd

    rows = []
    for (name, epsilon), mine in runs.groupby(["data", "epsilon"], sort=False):
        values = mine.groupby("method").kld
        known = pd.Series(published(str(name), float(str(epsilon))), dtype=float)
        whats = {"published": known, "mean": values.mean(), "±": values.std(), "runs": values.size()}
        for what, cells in whats.items():
            if len(cells):
                row = cells.reindex(settings.methods).astype(float).to_dict()
                rows.append({"data": name, "epsilon": epsilon, "what": what, **row})
    texts = [
        "KLD in nats, means of runs and their standard deviation (±); a released bin below 1/n counts as "
        "1/n, for n bins. The paper's AHP is the greedy one."
    ]
    return Part("kld", "Tables 2–4: KLD", texts, {"kld": pd.DataFrame(rows)})


def published(name: str, epsilon: float) -> dict[str, float]:
    """The printed KLD by method, on the paper's data set that this one stands for."""
    printed = TABLES.get(epsilon, {}).get(COUNTERPARTS.get(name, ""), ())
    return dict(zip(PUBLISHED_METHODS, printed, strict=False))


def orderings(runs: DataFrame, settings: Settings) -> Part:
    """The five methods of the paper from best to worst, beside the published order."""
    import pandas as pd

    rows = []
    for (epsilon, name), mine in runs.groupby(["epsilon", "data"], sort=False):
        mean = mine.groupby("method").kld.mean()
        five = [m for m in PUBLISHED_METHODS if m in mean.index]
        known = published(str(name), float(str(epsilon)))
        row: dict[str, Any] = {
            "epsilon": epsilon, "data": name, "order": _order(mean[five]), "best_of_all": mean.idxmin(),
            "best_rival_over_AHP-greedy": mean[five[1:]].min() / mean[five[0]] if len(five) > 1 else np.nan,
            "published_order": _order(pd.Series(known)) if known else "",
            "pairs_as_published": "",
        }  # fmt: skip
        if known:
            pairs = list(combinations(five, 2))
            same = sum((mean[a] < mean[b]) == (known[a] < known[b]) for a, b in pairs)
            row["pairs_as_published"] = f"{same} of {len(pairs)}"
        row |= {f"order_floor_{floor:g}": _by_floor(mine, floor, five) for floor in settings.floors}
        rows.append(row)
    texts = [
        "From the least KLD to the largest, by the means over runs (= between means within 0.1 %). The last "
        "columns use other floors for released bins at or below 0, in people."
    ]
    return Part("orderings", "Orderings", texts, {"orderings": pd.DataFrame(rows)})


def figures(ranges: DataFrame, settings: Settings) -> list[Part]:
    """Figures 2–5: squared error by size of range, one figure per data set and one panel per ε."""
    return [_figure(ranges[ranges.data == name], str(name), settings) for name in dict.fromkeys(ranges.data)]


def _figure(ranges: DataFrame, name: str, settings: Settings) -> Part:
    found = ranges.groupby(["epsilon", "size", "method"], sort=False).mse
    mean, count = found.mean(), len(settings.epsilons)
    drawn, panels = plots.figure(3.0 * count + 1.4, 3.3, panels=count)
    for axes, epsilon in zip(panels, settings.epsilons, strict=True):
        for k, method in enumerate(DRAWN):
            mine = ranges[(ranges.epsilon == epsilon) & (ranges.method == method)].groupby("size").mse
            plots.line(
                axes, mine, method, k, aside=1.06 ** (k - 3)
            )  # so that coinciding lines remain visible
        plots.label(axes, f"ε = {epsilon:g}", "size of the range (bins)", log="y")
        axes.set_xscale("log", base=2)
    panels[0].set_ylabel("mean squared error (people²)")
    plots.beside(panels[-1])
    number = FIGURE_NUMBERS.get(name)
    title = f"Figure {number}: range queries on {name}" if number else f"Range queries on {name}"
    texts = [
        f"Over all ranges of each size; means of {settings.runs} runs, bars from the least to the largest. "
        "The greedy AHP would coincide with AHP's line."
    ]
    key = f"ranges_{name.lower().replace(', ', '_').replace(' ', '_').replace('-', '_')}"
    order = [method for method in settings.methods if (ranges.method == method).any()]
    frames = {
        key: mean.unstack("method")[order].reset_index(),
        f"{key}_spread": found.std().unstack("method")[order].reset_index(),
    }
    return Part(key, title, texts, frames, drawn)


def claims(ranges: DataFrame) -> Part:
    """The claims of §6 about the figures, counted."""
    import pandas as pd

    mean = ranges.groupby(["data", "epsilon", "size", "method"], sort=False).mse.mean().unstack("method")
    rows = []
    for (name, epsilon), here in mean.groupby(["data", "epsilon"], sort=False):
        rivals = here[[m for m in PUBLISHED_METHODS[1:] if m in here and here[m].notna().all()]]
        mine = here["AHP-greedy"]
        growth = mine.to_numpy()
        rows.append(
            {
                "data": name, "epsilon": epsilon, "sizes": len(here),
                "AHP-greedy_under_all_rivals": int((mine < rivals.min(axis=1)).sum()),
                "AHP-greedy_under_Laplace": int((mine < here.Laplace).sum()),
                "rival_over_AHP-greedy_least": (rivals.min(axis=1) / mine).min(),
                "rival_over_AHP-greedy_median": (rivals.min(axis=1) / mine).median(),
                "rival_over_AHP-greedy_most": (rivals.min(axis=1) / mine).max(),
                "grows_with_size": int((np.diff(growth) > 0).sum()),
            }
        )  # fmt: skip
    texts = [
        "Of the drawn sizes: on how many the greedy AHP has less error than all its rivals, and than plain "
        "Laplace noise; the best rival's error over its own; and in how many steps its error grows."
    ]
    return Part("claims", "The paper's claims about its figures", texts, {"claims": pd.DataFrame(rows)})


def seconds(runs: DataFrame) -> Part:
    """The time of every method."""
    found = runs.groupby(["data", "method"], sort=False).agg(
        median_seconds=("seconds", "median"),
        longest_seconds=("seconds", "max"),
        clusters=("clusters", "median"),
    )
    texts = ["Seconds from true counts to released bins, with simulated noise, proofs included, over all ε."]
    return Part("seconds", "Time", texts, {"seconds": found.reset_index()})


def tuning(found: DataFrame, settings: Settings) -> list[Part]:
    """The gain by parameters tuned on the data, which is not private; no part if all have many bins."""
    import pandas as pd

    if found.empty:
        return []
    rows = []
    for (name, epsilon, method, option), mine in found.groupby(
        ["data", "epsilon", "method", "parameter"], sort=False
    ):
        usual = mine[mine.value.isna()].mse.iloc[0]
        tried = mine[mine.value.notna()]
        best, worst = (tried.iloc[int(place)] for place in (tried.mse.argmin(), tried.mse.argmax()))
        rows.append(
            {
                "data": name, "epsilon": epsilon, "method": method, "parameter": option, "default_mse": usual,
                "best_value": best.value, "best_over_default": best.mse / usual,
                "worst_value": worst.value, "worst_over_default": worst.mse / usual,
            }
        )  # fmt: skip
    texts = [
        "Squared error by bin for several values of one parameter, over that of the default, means of "
        f"{settings.tuned_runs} runs. Choosing the best value here would use the true counts, which is not "
        "private. The defaults are hierdp's: η = 0.35, ε₁ = 0.7 ε for AHP, ⌈√n⌉ bins per cluster for GS."
    ]
    title = "Parameters tuned on the data"
    return [Part("tuning", title, texts, {"tuning": pd.DataFrame(rows)})]


def _by_floor(runs: DataFrame, floor: float, five: list[str]) -> str:
    return _order(runs.groupby("method")[f"kld_{floor:g}"].mean()[five])


def _order(means: Series[float]) -> str:
    """``a < b = c``."""
    ranked = means.sort_values(kind="stable")
    text = ""
    before = None
    for name, value in ranked.items():
        sign = "" if before is None else " = " if before >= value * WIN else " < "
        text += f"{sign}{name}"
        before = value
    return text
