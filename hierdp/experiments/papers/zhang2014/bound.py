"""The least errors of methods that are blind to place, beside AHP's and the published ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from hierdp.analysis.bayes_bound import least_errors
from hierdp.experiments.papers.zhang2014.experiments import Sets, publisher
from hierdp.experiments.papers.zhang2014.parts import published
from hierdp.experiments.papers.zhang2014.settings import PAPER_SIZED, Settings
from hierdp.experiments.run import noise_for, seed_for
from hierdp.experiments.study import Part
from hierdp.metrics.histogram import kld
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


def bound(runs: DataFrame, sets: Sets, settings: Settings, seed: int) -> Part:
    """The bound on every set, beside the published KLDs of AHP."""
    import pandas as pd

    mean = runs.groupby(["data", "epsilon", "method"])[["kld", "mse"]].mean()
    rows = []
    for name, counts in sets.items():
        for epsilon in settings.epsilons:
            least = least_errors(counts, epsilon)
            ours = mean.xs((name, epsilon), level=("data", "epsilon"))
            row: dict[str, Any] = {
                "data": name, "epsilon": epsilon, "least_kld": least.kld, "AHP_kld": ours.kld["AHP"],
                "AHP_kld_on_draws": np.nan, "below_by_place": ", ".join(ours.index[ours.kld < least.kld]),
                "least_mse": least.mse, "AHP_mse": ours.mse["AHP"],
                "published_AHP_kld": np.nan, "published_is": "", "epsilon_needed": np.nan,
            }  # fmt: skip
            printed = published(name, epsilon).get("AHP-greedy")
            if printed and name in PAPER_SIZED:
                row |= {
                    "AHP_kld_on_draws": _on_draws(counts, epsilon, settings, seed),
                    "published_AHP_kld": printed,
                    "published_is": "above" if printed >= least.kld else "below",
                    "epsilon_needed": _needed(counts, printed),
                }
            rows.append(row)
    texts = [
        "No ε-DP method has a lower KLD or squared error by bin on average over histograms whose bins are "
        "drawn from these counts (`hierdp.analysis.bayes_bound`); for one fixed histogram this is a "
        "heuristic. The methods below it are listed; the last column is the least ε with the published KLD."
    ]
    return Part("bound", "The least errors without places", texts, {"bound": pd.DataFrame(rows)})


def _needed(counts: Ints, printed: float) -> float:
    """The least ε with which this KLD is possible; NaN if it is not within 10⁻⁴ … 100."""

    def off(log: float) -> float:
        return least_errors(counts, math.exp(log)).kld - printed

    low, high = math.log(1e-4), math.log(100)
    return math.exp(brentq(off, low, high, xtol=1e-5)) if off(low) > 0 > off(high) else math.nan


def _on_draws(counts: Ints, epsilon: float, settings: Settings, seed: int) -> float:
    """The KLD of AHP on histograms drawn from the counts: the mean, weighted by numbers of people."""
    rng = np.random.default_rng(seed_for(seed, "draws", epsilon))
    total = weighted = 0.0
    for run in range(settings.bound_runs):
        drawn = rng.choice(counts, counts.size)
        made = publisher("AHP", drawn.size, settings)(drawn, epsilon, noise_for(seed, "draws", epsilon, run))
        weighted += float(drawn.sum()) * kld(drawn, made.counts)
        total += float(drawn.sum())
    return weighted / total
