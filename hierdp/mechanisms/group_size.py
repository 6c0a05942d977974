"""Group sizes over a hierarchy: Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp import progress
from hierdp.budget import Ledger, check_epsilon, split
from hierdp.hierarchy import Hierarchy
from hierdp.histogram import cumulative, differences
from hierdp.mechanisms import MECHANISMS
from hierdp.noise import ExactNoise, Noise, NoisyCounts
from hierdp.record import Release, Step
from hierdp.tables import GroupSizes
from models import HierarchyQIP, Isotonic

SENSITIVITY = 1
"""Of the cumulative sizes of one level: an entity more or less in a group of size k changes only c_k or
c_{k−1} of that group's region, by one (Lemma 6). It takes size 0 among the sizes, and public groups: else
losing its last entity would take a group out of every c_k."""


def m_c_dp(data: GroupSizes, epsilon: float, noise: Noise | None = None) -> Release:
    """M_c^dp: noisy cumulative sizes, made monotone region by region, then consistent over the tree.

    The paper's Algorithm 1, with the rounding of its line 3 done in the isotonic model itself (rounding
    is optimal over the integers) and the untruncated QIP in place of cost tables.

    Parameters
    ----------
    data : GroupSizes
        True counts by region and size.
    epsilon : float
        Pure-DP budget, spent evenly over the levels, the root's included.
    noise : Noise, optional
        Exact noise by default; `SimulatedNoise` for experiments makes the release not private.

    Returns
    -------
    Release
        A row a region and size.

    Raises
    ------
    InputError
        If ε is not a positive finite number.
    """
    epsilon = check_epsilon(epsilon)
    measured = measure(data, epsilon, noise or ExactNoise())
    steps = post_process(measured, data.hierarchy, data.groups)
    ledger = Ledger(epsilon, 0.0, MECHANISMS[0].neighbours, tuple(level.spend for level in measured))
    settings = {
        "max_size": data.counts.shape[1] - 1,
        "last_size_means": "this size or more",
        "groups": data.groups,
        "levels": list(data.hierarchy.levels),
    }
    return Release("M_c^dp", _table(data.hierarchy, steps[-1].solution.x), ledger, tuple(steps), settings)


def measure(data: GroupSizes, epsilon: float, noise: Noise) -> list[NoisyCounts]:
    """Noisy cumulative sizes, a level at a time: all that ever leaves the true counts."""
    tree, levels = data.hierarchy.tree, data.hierarchy.levels
    true = cumulative(data.counts)
    return [
        noise.geometric(true[tree.nodes_of(level)], f"cumulative sizes by {name}", SENSITIVITY, share)
        for level, (name, share) in enumerate(zip(levels, split(epsilon, len(levels)), strict=True))
    ]


def post_process(measured: list[NoisyCounts], hierarchy: Hierarchy, groups: int) -> list[Step]:
    """Algorithm 1: a monotone fit for each region, then the hierarchy QIP, which is the last step."""
    noisy = np.concatenate([level.counts for level in measured])
    names = hierarchy.frame()[["level_name", "region"]].itertuples(index=False)
    steps = []
    for row, (level, region) in progress.steps(zip(noisy, names, strict=True), "monotone sizes", len(noisy)):
        model = Isotonic(row, p=2, lower=0, upper=groups, integer=True)
        steps.append(Step.solve(f"{level} {region}", model))
    sizes = differences(np.stack([step.solution.x for step in steps if step.solution.x is not None]))
    steps.append(Step.solve("consistency of all regions", HierarchyQIP(hierarchy.tree, sizes, groups)))
    return steps


def _table(hierarchy: Hierarchy, counts: Any) -> Any:
    frame = hierarchy.frame()
    sizes = counts.shape[1]
    table = frame.loc[frame.index.repeat(sizes)].reset_index(drop=True)
    table["size"] = np.tile(np.arange(sizes), len(frame))
    table["groups"] = counts.ravel()
    return table
