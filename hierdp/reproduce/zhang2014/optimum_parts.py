"""Tables and a figure of the gain by optimal clustering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.reports import plots
from hierdp.reproduce.study import Part
from hierdp.reproduce.zhang2014.optimum import KNOWN
from hierdp.reproduce.zhang2014.settings import Settings

if TYPE_CHECKING:
    from pandas import DataFrame

RIVALS = tuple(rule for rule in RULES if rule != "AHP")
"""The rules that the optimum is compared with."""


def optimum(found: DataFrame, settings: Settings) -> Part:
    """Cost, error and time of each rule relative to the optimum, run by run."""
    import pandas as pd

    key = ["data", "epsilon", "run"]
    best = found[found.rule == "AHP"].set_index(key)
    rows = []
    ratios = []
    for (name, epsilon, rule), mine in found.groupby(["data", "epsilon", "rule"], sort=False):
        here = mine.set_index(key)
        over = here.expected_mse / best.expected_mse.loc[here.index]
        ratios.append({"data": name, "epsilon": epsilon, "rule": rule, "error": over.to_numpy()})
        closer = f"{int((over < 1).sum())} of {len(over)}" if rule in RIVALS else ""
        rows.append(
            {
                "data": name, "epsilon": epsilon, "rule": rule, "clusters": mine.clusters.median(),
                "cost_over_optimal": (here.cost / best.cost.loc[here.index]).mean(),
                "expected_mse": mine.expected_mse.mean(), "error_over_optimal": over.mean(),
                "±": over.std(), "closer_than_optimal": closer,
                "seconds": mine.seconds.median(),
            }
        )  # fmt: skip
    texts = [
        "The same noisy, thresholded, sorted counts clustered by each rule. Cost: the objective of Theorem "
        "4.2 on those counts, over its minimum. Error: the expected squared error by bin on the true counts, "
        f"given the clusters; ratios are means of {settings.rule_runs} runs, ± their standard deviation; "
        "closer: the number of runs in which the rule has a lower error than the optimum. Seconds are "
        "medians; those of AHP and AHP-empirical include their proofs.",
        f"“{KNOWN}”: the best clusters for the same ε₂ if the counts and their order were known, which is "
        f"not private. The gap to the other rules is due to noise in the order, which no clustering can "
        "remove. AHP-by-place is not in the paper: the optimum, with the bins below the threshold divided "
        "into ⌈√n⌉ runs in the order of the data.",
    ]
    return Part(
        "optimum", "The gain by optimal clustering", texts, {"optimum": pd.DataFrame(rows)}, _figure(ratios)
    )


def _figure(ratios: list[dict[str, object]]) -> object:
    """Error relative to that of the optimum: one panel per ε, one row per data set."""
    import numpy as np

    epsilons = list(dict.fromkeys(row["epsilon"] for row in ratios))
    names = list(dict.fromkeys(row["data"] for row in ratios))
    drawn, panels = plots.figure(2.9 * len(epsilons) + 1.2, 0.45 * len(names) + 1.4, panels=len(epsilons))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        axes.axvline(1, color="#888888", lw=1)
        for k, rule in enumerate(RIVALS):
            mine = [row for row in ratios if row["epsilon"] == epsilon and row["rule"] == rule]
            places = np.array([names.index(row["data"]) for row in mine]) + 0.18 * (k - 1)
            values = [np.asarray(row["error"]) for row in mine]
            centre = np.array([value.mean() for value in values])
            reach = [centre - [v.min() for v in values], [v.max() for v in values] - centre]
            style = plots.style(k + 1)
            axes.errorbar(centre, places, xerr=reach, capsize=2, linestyle="none", label=rule, **style)
        axes.set_xscale("log")
        plots.plain_log(axes.xaxis)
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.invert_yaxis()
        axes.set_title(f"ε = {epsilon:g}", loc="left", fontsize=10, fontweight="bold")
        axes.set_xlabel("error over that of the optimum")
    panels[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return drawn
