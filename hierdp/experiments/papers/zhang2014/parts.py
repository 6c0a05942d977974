"""Tables and figures from the runs, beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.experiments.papers.zhang2014.data import WHAT
from hierdp.experiments.papers.zhang2014.experiments import Sets
from hierdp.experiments.papers.zhang2014.settings import (
    CHARACTERISTICS,
    COUNTERPARTS,
    FIGURE_NUMBERS,
    PUBLISHED_METHODS,
    TABLES,
    Settings,
)
from hierdp.experiments.run import summed_up
from hierdp.experiments.study import Part
from hierdp.reports import plots

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
        "KLD in nats; a released bin below 1/n counts as 1/n, for n bins. The paper's AHP is the greedy one."
    ]
    return Part("kld", "Tables 2–4: KLD", texts, {"kld": pd.DataFrame(rows)})


def published(name: str, epsilon: float) -> dict[str, float]:
    """The printed KLD by method, on the paper's data set that this one stands for."""
    printed = TABLES.get(epsilon, {}).get(COUNTERPARTS.get(name, ""), ())
    return dict(zip(PUBLISHED_METHODS, printed, strict=False))


def orderings(runs: DataFrame, settings: Settings) -> Part:
    """The five methods of the paper from best to worst, beside the published order."""
    import pandas as pd

    def ordered(mine: DataFrame) -> dict[str, Any]:
        mean = mine.groupby("method").kld.mean()
        five = [m for m in PUBLISHED_METHODS if m in mean.index]
        known = published(mine.data.iloc[0], float(mine.epsilon.iloc[0]))
        row: dict[str, Any] = {
            "order": _order(mean[five]), "best_of_all": mean.idxmin(),
            "best_rival_over_AHP-greedy": mean[five[1:]].min() / mean[five[0]] if len(five) > 1 else np.nan,
            "published_order": _order(pd.Series(known)) if known else "",
            "pairs_as_published": "",
        }  # fmt: skip
        if known:
            pairs = list(combinations(five, 2))
            same = sum((mean[a] < mean[b]) == (known[a] < known[b]) for a, b in pairs)
            row["pairs_as_published"] = f"{same} of {len(pairs)}"
        floors = {floor: mine.groupby("method")[f"kld_{floor:g}"].mean()[five] for floor in settings.floors}
        return row | {f"order_floor_{floor:g}": _order(means) for floor, means in floors.items()}

    texts = ["From the least mean KLD to the largest (= within 0.1 %). Floors: of released bins, in people."]
    return Part("orderings", "Orderings", texts, {"orderings": summed_up(runs, ["epsilon", "data"], ordered)})


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
            plots.line(axes, mine, method, k, aside=1.06 ** (k - 3))  # coinciding lines remain visible
        plots.label(axes, f"ε = {epsilon:g}", "size of the range (bins)", log="y")
        axes.set_xscale("log", base=2)
    panels[0].set_ylabel("mean squared error (people²)")
    plots.beside(panels[-1])
    number = FIGURE_NUMBERS.get(name)
    title = f"Figure {number}: range queries on {name}" if number else f"Range queries on {name}"
    texts = [
        f"Means of {settings.runs} runs, bars from the least to the largest; greedy AHP lies on AHP's line."
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
    mean = ranges.groupby(["data", "epsilon", "size", "method"], sort=False).mse.mean().unstack("method")

    def counted(here: DataFrame) -> dict[str, Any]:
        rivals = here[[m for m in PUBLISHED_METHODS[1:] if m in here and here[m].notna().all()]].min(axis=1)
        mine = here["AHP-greedy"]
        over = (rivals / mine).agg(["min", "median", "max"]).to_numpy()
        return {
            "sizes": len(here),
            "AHP-greedy_under_all_rivals": int((mine < rivals).sum()),
            "AHP-greedy_under_Laplace": int((mine < here.Laplace).sum()),
            **{
                f"rival_over_AHP-greedy_{name}": x
                for name, x in zip(("least", "median", "most"), over, strict=True)
            },
            "grows_with_size": int((np.diff(mine.to_numpy()) > 0).sum()),
        }

    texts = [
        "Of the drawn sizes: where the greedy AHP has less error, and in how many steps its error grows."
    ]
    frames = {"claims": summed_up(mean, ["data", "epsilon"], counted)}
    return Part("claims", "The paper's claims about its figures", texts, frames)


def seconds(runs: DataFrame) -> Part:
    """The time of every method."""
    found = runs.groupby(["data", "method"], sort=False).agg(
        median_seconds=("seconds", "median"),
        longest_seconds=("seconds", "max"),
        clusters=("clusters", "median"),
    )
    texts = ["From true counts to released bins, with simulated noise, proofs included, over all ε."]
    return Part("seconds", "Time", texts, {"seconds": found.reset_index()})


def tuning(found: DataFrame, settings: Settings) -> list[Part]:
    """The gain by parameters tuned on the data, which is not private; no part if all have many bins."""
    if found.empty:
        return []

    def tried(mine: DataFrame) -> dict[str, Any]:
        usual, values = mine[mine.value.isna()].mse.iloc[0], mine[mine.value.notna()]
        row = {"default_mse": usual}
        for end, place in (("best", values.mse.argmin()), ("worst", values.mse.argmax())):
            one = values.iloc[int(place)]
            row |= {f"{end}_value": one.value, f"{end}_over_default": one.mse / usual}
        return row

    texts = [
        f"Squared error by bin over that of the default, means of {settings.tuned_runs} runs. Choosing a "
        "value here would not be private. Defaults: η = 0.35, ε₁ = 0.7 ε for AHP, ⌈√n⌉ bins per cluster for "
        "GS."
    ]
    frames = {"tuning": summed_up(found, ["data", "epsilon", "method", "parameter"], tried)}
    return [Part("tuning", "Parameters tuned on the data", texts, frames)]


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
