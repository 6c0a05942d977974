"""Tables and figures from the runs, beside the published figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from hierdp.experiments.papers.boninsegna2025 import authors
from hierdp.experiments.papers.boninsegna2025.experiments import EXACT
from hierdp.experiments.papers.boninsegna2025.settings import BASELINES, CHEBYSHEV, Settings
from hierdp.experiments.run import summed_up
from hierdp.experiments.study import Part
from hierdp.reports import plots
from hierdp.tables import Flows

if TYPE_CHECKING:
    from pandas import DataFrame

ORDER = ("InfTDA", "TDA_L2", "TDA", "TDA_inf", "VanillaGauss", "SH", EXACT, "InfTDA_large")
"""The colour and marker of each method, the same in every figure."""

NAMES = {"TDA_L2": "TDA$_{L2}$", "TDA_inf": "TDA$_\\infty$", "TDA": "TDA (two-phase)"}

METRICS = {
    "max_error": "largest error (trips)",
    "false_discovery_rate": "false discovery rate",
    "false_negative_rate": "false negatives (share)",
}


def about(sets: Mapping[str, Flows]) -> Part:
    """Statistics of the data, beside Table 1."""
    import pandas as pd

    rows = []
    for name, data in sets.items():
        users, pairs = authors.USERS.get(name, (None, None))
        rows.append(
            {
                "data": name, "areas": ", ".join(f"{n:,}" for n in data.axes[0].tree.level_sizes),
                "trips": data.total, "published_trips": f"{users:,}" if users else "",
                "pairs_with_trips": data.counts.size, "published_pairs": f"{pairs:,}" if pairs else "",
                "share_of_pairs": data.counts.size / data.axes[0].names[-1].size ** 2,
                "largest_flow": int(data.counts.max()),
            }
        )  # fmt: skip
    texts = ["The paper's six synthetic sets, drawn again from its seed; “drawn” ones have Pareto(1) flows."]
    return Part("data", "Table 1: the data", texts, {"data": pd.DataFrame(rows)})


def figures(runs: DataFrame, settings: Settings, real: Iterable[str]) -> list[Part]:
    """Figures 3 to 5: metrics by level of the tree."""
    means = f"By level of the tree, means of {settings.runs} runs with bars from the least to the largest. "
    bound = f"The dotted line bounds InfTDA's error with probability {1 - settings.beta:g}. "
    drawn = [name for name in dict.fromkeys(runs.data) if name not in REAL]
    sparse = [name for name in dict.fromkeys(runs.data) if "sparse" in name]
    made = [
        _figure("figure3", "Figure 3: real data", runs, [name], [*METRICS], settings,
                f"{means}{bound}In the tables, each column is a level.")
        for name in real
    ]  # fmt: skip
    return [
        *made,
        _figure("figure4", "Figure 4: largest error on synthetic data", runs, drawn, ["max_error"], settings,
                f"{means}Each column of the tables is a level; the data sets are in the order of the "
                "figure."),
        _figure("figure5", "Figure 5: false discoveries on sparse data", runs, sparse, [*METRICS][1:],
                settings, "The share of released cells that are truly empty, and the share of truly positive "
                "cells that the release misses (not in the paper). Methods trade one for the other."),
    ]  # fmt: skip


REAL = ("commuting", "Italy")
CASE = ["data", "method", "epsilon"]


def _figure(
    name: str, title: str, runs: DataFrame, sets: Sequence[str], metrics: Sequence[str], settings: Settings,
    text: str,
) -> Part:  # fmt: skip
    panels, frames = list(product(sets, metrics)), {}
    for one, metric in panels:
        of = ["" if one in REAL else f"_{_file(one)}", f"_{metric}" if len(metrics) > 1 else ""]
        frames[name + "".join(of)] = by_level(runs[runs.data == one], metric)
    return Part(name, title, [text], frames, _grid(runs, panels, settings))


def figure_6(runs: DataFrame, exact: DataFrame, settings: Settings) -> Part:
    """Time."""
    import pandas as pd

    first = pd.concat([runs[runs.level == 0], exact])
    table = first.groupby(CASE, sort=False).seconds.agg(["median", "min", "max", "size"])
    table = table.rename(columns={"median": "median_seconds", "size": "runs"}).reset_index()
    known = authors.published().rename(columns={"seconds": "published_seconds"})
    table = table.merge(known[[*CASE, "published_seconds"]], "left", CASE)
    names = list(dict.fromkeys(first.data))
    drawn, panels, _ = plots.grid(len(names), 4, 3.1, 2.7)
    for axes, name in zip(panels, names, strict=True):
        for method, mine in first[first.data == name].groupby("method", sort=False):
            _line(axes, str(method), mine.groupby("epsilon").seconds, "median")
        plots.label(axes, name, "ε", log="xy", ticks=first.epsilon)
        axes.tick_params(labelsize=7)
    panels[0].set_ylabel("seconds")
    plots.below(drawn, panels, 6)
    texts = [
        "From the data in memory to the table of all levels, proofs included, with simulated noise unless "
        "noted. Published: the authors' Python on 8 cores at 3.9 GHz, with exact noise."
    ]
    if absent := _absent(runs, settings):
        texts.append(
            f"Left out as too large (VanillaGauss beyond {settings.most_pairs:,} possible pairs, TDA_∞ "
            f"beyond {settings.most_positive:,} with trips), or stopped after {settings.time_limit:g} s for "
            f"one program: {'; '.join(absent)}."
        )
    frames = {"figure6": table} | ({"exact_noise": exact} if len(exact) else {})
    return Part("figure6", "Figure 6: time", texts, frames, drawn)


def finest(runs: DataFrame, same: DataFrame) -> Part:
    """The finest level, beside the authors' result files."""
    here = runs[runs.level == runs.groupby("data")["level"].transform("max")].groupby(CASE, sort=False)
    metrics = list(METRICS)
    table = here.size().rename("runs").reset_index()
    again = same.groupby(CASE)[metrics].mean().add_prefix("same_noise_").reset_index()
    known = (
        authors.published()
        .drop(columns="seconds")
        .rename(columns=lambda name: name if name in CASE else f"published_{name}")
    )
    for more in (here[metrics].mean().reset_index(), again, known):
        table = table.merge(more, "left", CASE)
    order = [f"{kind}{metric}" for metric in metrics for kind in ("", "same_noise_", "published_")]
    table = table[[*CASE, "runs", *order]]
    texts = [
        "Means at the finest level. Same noise: with the budgets that the authors' programs spent (half of "
        "ρ; √2·ε for SH). Agreement: ratios of ours to theirs, and largest differences of shares."
    ]
    frames = {"finest": table, "agreement": agreement(table)}
    return Part("finest", "Beside the authors' results", texts, frames)


def agreement(table: DataFrame) -> DataFrame:
    """Ratios of largest errors, and differences of shares, to the published means."""

    def compared(here: DataFrame) -> dict[str, Any]:
        row: dict[str, Any] = {"means": len(here)}
        for budget, noise in (("whole", ""), ("their", "same_noise_")):
            ratio = here[f"{noise}max_error"] / here.published_max_error
            for statistic in ("median", "min", "max") if ratio.notna().any() else ():
                row[f"{budget}_budget_{statistic}"] = round(ratio.agg(statistic), 2)
        for metric in list(METRICS)[1:]:
            away = (here[f"same_noise_{metric}"] - here[f"published_{metric}"]).abs().max()
            row[f"their_budget_{metric}"] = away
        return row

    return summed_up(table[table.published_max_error.notna()], ["method"], compared)


def italy(same: DataFrame) -> Part:
    """The authors' results on Italy, beside ours on the commuters with the same budgets."""
    metrics = list(METRICS)
    ours = same[same.data == "commuting"].groupby(["method", "epsilon"])[metrics].mean()
    theirs = authors.published().query("data == 'Italy'").set_index(["method", "epsilon"])[metrics]
    both = theirs.add_prefix("Italy_published_").join(ours.add_prefix("commuters_"))
    order = [f"{kind}{metric}" for metric in metrics for kind in ("Italy_published_", "commuters_")]
    texts = ["Finest level, with the budgets that the authors' programs spent."]
    frames = {"italy": both[order].reset_index()}
    return Part("italy", "Italy, published, beside the commuters", texts, frames)


def utility(runs: DataFrame, settings: Settings) -> Part:
    """Every run against the utility theorem."""
    here = runs[runs.method.isin(CHEBYSHEV) & (runs.level > 0)]

    def compared(mine: DataFrame) -> dict[str, Any]:
        row = {"runs": mine.groupby("method").run.nunique().sum(), "levels_of_runs": len(mine)}
        finest = mine[mine.level == mine.level.max()]
        for bound in ("theorem", "bound_possible", "bound_measured"):
            row[f"{bound}_fails"] = int((mine.max_error > mine[bound]).sum())
            row[f"{bound}_largest_ratio"] = (mine.max_error / mine[bound]).max()
            row[f"{bound}_finest"] = round(finest[bound].mean())
        return row | {"largest_error_finest": finest.max_error.max()}

    texts = [
        f"Each level of each run of {' and '.join(CHEBYSHEV)} against three bounds, each of which may fail "
        f"with probability β = {settings.beta:g}: Theorem 4 with the largest number of children as b, and "
        "unions over the possible and over the measured nodes of each level. The second table: the baselines "
        "against Proposition 1; the most finest cells below a node stand for b^(T−ℓ)."
    ]
    frames = {"utility": summed_up(here, ["data", "epsilon"], compared)}
    if "proposition" in runs:
        frames["proposition"] = summed_up(runs[runs.method.isin(BASELINES)], CASE, _proposition)
    return Part("utility", "The utility theorem", texts, frames)


def _proposition(mine: DataFrame) -> dict[str, Any]:
    """Errors of a baseline over their bounds."""
    ratio = mine.max_error / mine.proposition
    row = {"levels_of_runs": len(mine), "fails": int((ratio > 1).sum()), "largest_ratio": ratio.max()}
    for end, there in {"root": mine.level == 0, "finest": mine.level == mine.level.max()}.items():
        row |= {f"{end}_bound": mine.proposition[there].max(), f"{end}_ratio": ratio[there].max()}
    return row


def fewest(found: DataFrame) -> Part:
    """IntOpt against the fewest positive counts."""
    groups = found.drop(columns="run").groupby(["data", "epsilon", "level"], sort=False)
    table = groups.mean().reset_index()
    table.insert(3, "runs", groups.size().to_numpy())
    kinds = ("positive", "false_positive", "false_negative")
    counts = [f"{kind}_{method}" for kind in kinds for method in ("IntOpt", "fewest")]
    texts = [
        "From the same noisy counts and parents at every level: totals over levels, ε and runs, and means by "
        "level, without those where IntOpt has no false positive. L1: the distance from the truth."
    ]
    frames = {
        "fewest": found.groupby("data", sort=False)[counts].sum().reset_index(),
        "fewest_by_level": table[table["false_positive_IntOpt"] > 0],
    }
    return Part("fewest", "Fewest false positives: IntOpt against the optimum", texts, frames)


def by_level(runs: DataFrame, metric: str) -> DataFrame:
    """Means over runs: one row per method and ε, one column per level."""
    table = runs[runs.level > 0].pivot_table(
        index=["method", "epsilon"], columns="level", values=metric, aggfunc="mean", sort=False
    )
    return table.rename(columns=str).rename_axis(columns=None).reset_index()


def _grid(runs: DataFrame, panels: Sequence[tuple[str, str]], settings: Settings) -> Any:
    """One row per data set and metric, one column per ε."""
    columns = len(settings.epsilons)
    drawn, cells = plots.figure(3.6 * columns + 1.3, 2.5 * len(panels), panels=columns, rows=len(panels))
    for k, axes in enumerate(cells):
        (name, metric), epsilon = panels[k // columns], settings.epsilons[k % columns]
        here = runs[(runs.data == name) & (runs.epsilon == epsilon) & (runs.level > 0)]
        for method, mine in here.groupby("method", sort=False):
            _line(axes, str(method), mine.groupby("level")[metric])
        if metric == "max_error":
            bound = here[here.method == "InfTDA"].groupby("level").bound_measured.mean()
            axes.plot(bound.index, bound, ":", color=plots.COLOURS[0], linewidth=1.2)
        else:
            axes.set_ylim(-0.03, 1.03)
        below, left = "level" * (k >= len(cells) - columns), METRICS[metric] * (k % columns == 0)
        log = "y" * (metric == "max_error")
        plots.label(axes, f"{name}, ε = {epsilon:g}", below, left, log, here.level)
        axes.tick_params(labelsize=7)
    plots.below(drawn, cells, 6)
    return drawn


def _line(axes: Any, method: str, groups: Any, centre: str = "mean") -> None:
    place = ORDER.index(method)
    style = {"markersize": 3.5, "zorder": 3 + len(ORDER) - place}  # the first on top
    plots.line(axes, groups, NAMES.get(method, method), place, centre, **style)


def _absent(runs: DataFrame, settings: Settings) -> list[str]:
    """Methods with the data sets for which they have no run at some ε."""
    there = set(zip(runs.data, runs.method, runs.epsilon, strict=True))
    found = []
    for method in settings.methods:
        names = dict.fromkeys(runs.data)
        without = [n for n in names if any((n, method, e) not in there for e in settings.epsilons)]
        if without:
            found.append(f"{method} on {', '.join(without)}")
    return found


def _file(name: str) -> str:
    return name.replace(" ", "_").replace(",", "")
