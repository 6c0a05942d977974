"""The gain by optimal clustering: AHP's clustering rules on the same noisy counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hierdp.execution import progress
from hierdp.mechanisms.clustering.ahp import ETA, SHARE, laplace_scale, sorted_counts
from hierdp.mechanisms.clustering.ahp_rules import RULES, optimal
from hierdp.privacy.budget import split
from hierdp.record.step import Step
from hierdp.reproduce.runs import noise_for, timed
from hierdp.reproduce.zhang2014.experiments import Sets
from hierdp.reproduce.zhang2014.settings import Settings
from models import Clustering
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


KNOWN = "AHP, counts known"
"""The optimal clusters of the true counts: not private, and a bound for clusterings of noisy counts."""


def rules(sets: Sets, settings: Settings, seed: int) -> DataFrame:
    """For each rule: cost on the noisy counts, expected error on the true counts, clusters, and seconds.

    `expected_mse` is E(H̃ − H)² per bin given the clusters: their AE on the true counts plus the variance of
    the noise. So the comparison of rules does not depend on the second draw of noise.
    """
    import pandas as pd

    for find in RULES.values():  # compile the kernels
        find(np.arange(300), 1.0, Step.solve)
    cases = [
        (name, epsilon, run)
        for name in sets
        for epsilon in settings.epsilons
        for run in range(settings.rule_runs)
    ]
    rows = []
    for name, epsilon, run in progress.steps(cases, "clustering rules", len(cases)):
        counts = sets[name]
        key = {"data": name, "epsilon": epsilon, "run": run}
        for_order, for_sums = split(epsilon, 2, (SHARE, 1 - SHARE))
        noise = noise_for(seed, "rules", name, epsilon, run)
        noisy = noise.geometric(counts, "counts, to sort and cluster the bins", 1, for_order)
        values, order = sorted_counts(noisy.counts, for_order, ETA)
        scale = laplace_scale(for_sums)
        model = Clustering(values, scale)
        for rule, find in RULES.items():
            seconds, marks = timed(find, values, scale, Step.solve)
            error = expected_mse(counts[order], np.cumsum(marks) - 1, for_sums)
            cost = float(model.objective(marks))
            found = {"cost": cost, "clusters": int(marks.sum()), "seconds": seconds, "expected_mse": error}
            rows.append({**key, "rule": rule, **found})
        true = np.sort(counts)
        marks = optimal(true, scale, Step.solve)
        error = expected_mse(true, np.cumsum(marks) - 1, for_sums)
        rows.append({**key, "rule": KNOWN, "clusters": int(marks.sum()), "expected_mse": error})
    return pd.DataFrame(rows)


def expected_mse(counts: Ints, clusters: Ints, epsilon_2: float) -> float:
    """Mean squared error by bin of these clusters' means, over the double-geometric noise of their sums."""
    sizes = np.bincount(clusters)
    means = np.bincount(clusters, weights=counts) / sizes
    variance = 2 * math.exp(-epsilon_2) / math.expm1(-epsilon_2) ** 2
    return float((((counts - means[clusters]) ** 2).sum() + (variance / sizes).sum()) / counts.size)
