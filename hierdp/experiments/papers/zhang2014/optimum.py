"""The gain by optimal clustering: AHP's clustering rules on the same noisy counts."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.execution.resume import Row
from hierdp.experiments.papers.zhang2014.experiments import Sets
from hierdp.experiments.papers.zhang2014.settings import Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, timed
from hierdp.experiments.study import Part
from hierdp.mechanisms.clustering.ahp import ETA, SHARE, laplace_scale, sorted_counts
from hierdp.mechanisms.clustering.ahp_rules import RULES, optimal
from hierdp.privacy.budget import split
from hierdp.privacy.noise import geometric
from hierdp.record.step import Step
from hierdp.reports import plots
from models import Clustering
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


KNOWN = "AHP, counts known"
"""The optimal clusters of the true counts: not private, and a bound for clusterings of noisy counts."""


RIVALS = tuple(rule for rule in RULES if rule != "AHP")
"""The rules that the optimum is compared with."""


def rules(sets: Sets, settings: Settings, seed: int) -> DataFrame:
    """For each rule: cost on the noisy counts, expected error on the true counts, clusters, and seconds.

    `expected_mse` is E(H̃ − H)² per bin given the clusters: their AE on the true counts plus the variance of
    the noise. So the comparison of rules does not depend on the second draw of noise.
    """
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    return all_rows(_rules, cases, "clustering rules", (sets, seed))


@cache
def _warm_up() -> None:
    """Compile the kernels before anything is timed."""
    for find in RULES.values():
        find(np.arange(300), 1.0, Step.solve)


def _rules(sets: Sets, seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    _warm_up()
    counts, rows = sets[name], list[Row]()
    for_order, for_sums = split(epsilon, 2, (SHARE, 1 - SHARE))
    noise = noise_for(seed, "rules", name, epsilon, run)
    noisy = noise.draw(geometric("counts, to sort and cluster the bins", 1, for_order), counts)
    values, order = sorted_counts(noisy.answers, for_order, ETA)
    scale = laplace_scale(for_sums)
    model = Clustering(values, scale)
    for rule, find in RULES.items():
        seconds, marks = timed(find, values, scale, Step.solve)
        error = expected_mse(counts[order], np.cumsum(marks) - 1, for_sums)
        row = {"rule": rule, "cost": float(model.objective(marks)), "clusters": int(marks.sum())}
        rows.append(row | {"seconds": seconds, "expected_mse": error})
    true = np.sort(counts)
    marks = optimal(true, scale, Step.solve)
    error = expected_mse(true, np.cumsum(marks) - 1, for_sums)
    return [*rows, {"rule": KNOWN, "clusters": int(marks.sum()), "expected_mse": error}]


def expected_mse(counts: Ints, clusters: Ints, epsilon_2: float) -> float:
    """Mean squared error by bin of these clusters' means, over the double-geometric noise of their sums."""
    sizes = np.bincount(clusters)
    means = np.bincount(clusters, weights=counts) / sizes
    variance = 2 * math.exp(-epsilon_2) / math.expm1(-epsilon_2) ** 2
    return float((((counts - means[clusters]) ** 2).sum() + (variance / sizes).sum()) / counts.size)


def optimum(found: DataFrame, settings: Settings) -> Part:
    """Cost, error and time of each rule relative to the optimum, run by run."""
    run, setting = ["data", "epsilon", "run"], ["data", "epsilon", "rule"]
    best = found.loc[found.rule == "AHP", [*run, "cost", "expected_mse"]]
    every = found.merge(best, "left", run, suffixes=("", "_AHP"))
    every["over"] = every.expected_mse / every.expected_mse_AHP
    every["cost_over"] = every.cost / every.cost_AHP
    table = every.groupby(setting, sort=False).agg(
        clusters=("clusters", "median"), cost_over_optimal=("cost_over", "mean"),
        expected_mse=("expected_mse", "mean"), error_over_optimal=("over", "mean"),
        closer_than_optimal=("over", lambda over: f"{int((over < 1).sum())} of {len(over)}"),
        seconds=("seconds", "median"),
    ).reset_index()  # fmt: skip
    table.insert(7, "±", every.groupby(setting, sort=False).over.std().to_numpy())
    table.loc[~table.rule.isin(RIVALS), "closer_than_optimal"] = ""
    texts = [
        "The same noisy, thresholded, sorted counts clustered by each rule. Cost: the objective of Theorem "
        "4.2, over its minimum. Error: the expected squared error by bin on the true counts, given the "
        f"clusters; ratios are means of {settings.runs} runs, ± their standard deviation; closer: the runs "
        f"in which the rule has a lower error than the optimum. “{KNOWN}” is not private. Seconds: medians, "
        "proofs included."
    ]
    return Part("optimum", "The gain by optimal clustering", texts, {"optimum": table}, _figure(every))


def _figure(every: DataFrame) -> Any:
    """Error relative to that of the optimum: one panel per ε, one row per data set."""
    names = list(dict.fromkeys(every.data))
    epsilons = list(dict.fromkeys(every.epsilon))
    drawn, panels = plots.figure(2.9 * len(epsilons) + 1.2, 0.45 * len(names) + 1.4, panels=len(epsilons))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        axes.axvline(1, color="#888888", lw=1)
        for k, rule in enumerate(RIVALS):
            mine = every[(every.epsilon == epsilon) & (every.rule == rule)].groupby("data", sort=False).over
            centre = mine.mean()
            places = np.arange(len(names)) + 0.18 * (k - 1)
            reach = [centre - mine.min(), mine.max() - centre]
            style = plots.style(k + 1)
            axes.errorbar(centre, places, xerr=reach, capsize=2, linestyle="none", label=rule, **style)
        plots.label(axes, f"ε = {epsilon:g}", "error over that of the optimum", log="x")
        axes.set_yticks(range(len(names)), names if axes is panels[0] else [""] * len(names))
        axes.invert_yaxis()
    plots.beside(panels[-1])
    return drawn
