"""Theorem 4.1 (sorting a sample) and Theorem 5.3 (gaps that are worth a cut) on the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hierdp.errors import InputError
from hierdp.execution.resume import Row
from hierdp.experiments.papers.zhang2014.experiments import Sets
from hierdp.experiments.papers.zhang2014.optimum import expected_mse
from hierdp.experiments.papers.zhang2014.settings import Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, seed_for
from hierdp.experiments.study import Part
from hierdp.mechanisms.clustering.ahp import ETA, laplace_scale, sorted_counts
from hierdp.mechanisms.clustering.ahp_rules import greedy, optimal
from hierdp.privacy.budget import check_epsilon, split
from hierdp.privacy.noise import geometric
from hierdp.record.step import Step
from models.arithmetic.arrays import Ints

SAMPLES = (0.5, 0.1)
"""The shares β of people in a sample."""


def before_sampling(epsilon: float, beta: float) -> float:
    """The ε of a method on a sample that loses `epsilon` in all.

    By Theorem 4.1, a method of ε on a sample that has each row by chance β loses ln(1 + β(e^ε − 1)).
    """
    return math.log1p(math.expm1(epsilon) / beta)


def part(sets: Sets, settings: Settings, seed: int) -> Part:
    """Both theorems, from one run of each data set and ε."""
    cases, given = crossed(data=sets, epsilon=settings.epsilons), (sets, settings, seed)
    frames = {
        "sampling": all_rows(_sampled, cases, "sorting a sample", given),
        "gaps": all_rows(_gaps, cases, "gaps worth a cut", given),
    }
    texts = [
        "Theorem 4.1: on a sample with a share β of the people, sorting may spend more than ε₁ and lose ε₁ "
        "in all. Signal: a difference of two counts over the noise, relative to no sample. Error: the "
        "expected squared error of the optimal clusters, relative to sorting everybody. (The paper's "
        "inequality of §4.1 gives the sample less than ε₁, as if it cost privacy; its conclusion holds.)",
        "Theorem 5.3: clusters with a gap that is certainly worth a cut. Large: clusters of more than "
        "(ε/ε₂)² bins (§5), and their bins.",
    ]
    return Part("theorems", "Theorems 4.1 and 5.3 on the data", texts, frames)


def _sampled(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float) -> list[Row]:
    counts, rows = sets[name], []
    for_order, for_sums = split(epsilon, 2, (settings.share, 1 - settings.share))
    whole = _error(counts, counts, 1.0, for_order, for_sums, seed, name, epsilon)
    rng = np.random.default_rng(seed_for(seed, "sample", name, epsilon))
    for beta in SAMPLES:
        spent = before_sampling(for_order, beta)
        drawn = rng.binomial(counts, beta)
        error = _error(counts, drawn, beta, spent, for_sums, seed, name, epsilon)
        rows.append(
            {
                "epsilon_1": for_order, "beta": beta,
                "epsilon_on_the_sample": spent, "signal": beta * spent / for_order,
                "error_over_no_sample": error / whole,
            }
        )  # fmt: skip
    return rows


def _error(counts: Ints, drawn: Ints, beta: float, for_order: float, for_sums: float, *about: Any) -> float:
    """The expected error of optimal clusters if they are found from the noisy counts of a sample."""
    noisy = noise_for(about[0], "theorems", *about[1:]).draw(geometric("counts", 1, for_order), drawn).answers
    values, order = sorted_counts(noisy, for_order, ETA)
    marks = optimal(np.rint(values / beta).astype(np.int64), laplace_scale(for_sums), Step.solve)
    return expected_mse(counts[order], np.cumsum(marks) - 1, for_sums)


def _gaps(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float) -> list[Row]:
    counts = sets[name]
    for_order, for_sums = split(epsilon, 2, (settings.share, 1 - settings.share))
    noise = noise_for(seed, "theorems", name, epsilon)
    values, _ = sorted_counts(noise.draw(geometric("counts", 1, for_order), counts).answers, for_order, ETA)
    scale, width = laplace_scale(for_sums), min(settings.width, counts.size)
    fixed = (np.arange(counts.size) % width == 0).astype(np.int64)
    row: Row = {
        "width_of_GS": width,
        "least_gap": math.sqrt(2 * (width * width - width + 1)) * scale / (width - 1),
    }  # fmt: skip
    for rule, marks in (
        ("GS", fixed),
        ("AHP-greedy", greedy(values, scale, Step.solve)),
        ("AHP", optimal(values, scale, Step.solve)),
    ):
        clusters = np.split(values, np.flatnonzero(marks)[1:])
        worth = sum(gaps_to_split(cluster, 1 / scale).size > 0 for cluster in clusters)
        row |= {f"clusters_{rule}": len(clusters), f"worth_a_cut_{rule}": worth}
        large = [cluster.size for cluster in clusters if cluster.size > (epsilon / for_sums) ** 2]
        row |= {f"large_{rule}": len(large), f"bins_in_large_{rule}": sum(large)}
    return [row]


def gaps_to_split(values: ArrayLike, epsilon: float) -> Ints:
    """Theorem 5.3: the places where dividing a cluster certainly does not increase its expected error.

    If values j and j + 1 of an ascending cluster of w values differ by at least √(2(w² − w + 1))/(ε₂(w − 1)),
    then err(C) ≥ err(C₁) + err(C₂) for its first j values and the rest, with err = Σ (value − mean)² +
    2/(|C|·ε₂²). The condition is sufficient, not necessary.

    Parameters
    ----------
    values : array, shape (w,)
        The cluster, in ascending order.
    epsilon : float
        ε₂, for Laplace noise of scale 1/ε₂ on the cluster's sum.

    Returns
    -------
    int64 array
        The numbers j of values before each such gap.

    Raises
    ------
    InputError
        If the values do not ascend, or ε is not a positive number.

    Examples
    --------
    >>> gaps_to_split([1, 2, 9, 10], epsilon=0.5).tolist()
    [2]
    """
    cluster = np.asarray(values, dtype=np.float64)
    epsilon = check_epsilon(epsilon)
    gaps = np.diff(cluster)
    if cluster.ndim != 1 or not (gaps >= 0).all():
        raise InputError("the values of a cluster must be in ascending order")
    w = cluster.size
    if w < 2:
        return np.zeros(0, dtype=np.int64)
    least = math.sqrt(2 * (w * w - w + 1)) / (epsilon * (w - 1))
    return np.flatnonzero(gaps >= least).astype(np.int64) + 1
