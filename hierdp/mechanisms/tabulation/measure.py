"""The one place where noise meets the true histograms of a tabulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.tabulation.budget import Measurement, rho_of_each
from hierdp.mechanisms.tabulation.problem import Measured
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Noise
from models.arithmetic.arrays import Floats, Ints


def measure(
    queries: Queries,
    regions: Hierarchy,
    counts: Sequence[Ints],
    measured: Sequence[Measurement],
    rho: float,
    noise: Noise,
) -> tuple[Measured, tuple[Spend, ...]]:
    """Noisy answers of every region to the plan's queries: discrete Gaussian noise, one draw an answer.

    Parameters
    ----------
    queries : Queries
    regions : Hierarchy
    counts : sequence of int64 arrays
        The true histograms of each level from the root, shape (regions of the level, cells).
    measured : sequence of Measurement
        What is measured; see `hierdp.mechanisms.tabulation.budget.measurements`.
    rho : float
        The zCDP budget of all measurements.
    noise : Noise
    """
    workload = queries.workload
    noisy = [np.zeros((len(level), workload.size), np.int64) for level in counts]
    spends = []
    for one, share in zip(measured, rho_of_each(rho, measured), strict=True):
        true = queries.workload_of([queries.plan.queries[one.query]]).answers(counts[one.level])
        answers = noise.gaussian(true, one.name, one.sensitivity, share)
        noisy[one.level][:, workload.start[one.query] : workload.start[one.query + 1]] = answers.counts
        spends.append(answers.spend)
    return Measured(regions, workload, noisy, variances(queries, len(counts), measured, rho)), tuple(spends)


def variances(queries: Queries, levels: int, measured: Sequence[Measurement], rho: float) -> Floats:
    """σ² = Δ₂²/2ρ of each query's noise on each level, infinite if not measured; shape (levels, queries).

    The variance of a discrete Gaussian is at most σ², and nearly that if σ is above 1 (Canonne, Kamath &
    Steinke 2020).
    """
    found = np.full((levels, len(queries.plan.queries)), np.inf)
    for one, share in zip(measured, rho_of_each(rho, measured), strict=True):
        found[one.level, one.query] = one.sensitivity**2 / (2 * share)
    return found
