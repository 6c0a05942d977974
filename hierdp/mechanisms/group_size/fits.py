"""Monotone fits of the regions' noisy cumulative sizes (Fioretto & Van Hentenryck 2019, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import differences
from hierdp.record.step import Problem, Solving, solve_each
from models import Isotonic
from models.arithmetic.arrays import Ints

CELLS_A_TASK = 200_000
"""Cells of the regions that one task of `execution` makes monotone: some 50 ms of work."""

BATCHED_FROM = 1_000
"""From this number of regions on, the regions of a task form one model, with one line in the manifest. With
separate models, most of the time would go to handling tiny models."""

AT_ONCE = "monotone sizes"
"""How the name of a step of many regions begins."""


def fit_regions(
    counts: Ints, places: Hierarchy, groups: int, solve: Solving, batched: bool | None = None
) -> None:
    """Replace each region's noisy cumulative sizes by counts by size: monotone ones, from 0 to all groups.

    The model itself does the rounding of line 3 of the algorithm, which is optimal there.

    - counts, int64 or int32 array, shape (nodes, sizes)
    - groups: the public number of groups.
    - batched: whether the fits of many regions are one step. Default: True from `BATCHED_FROM` regions on.
    """
    regions, sizes = counts.shape
    several = regions >= BATCHED_FROM if batched is None else batched
    cuts = execution.chunks(regions, CELLS_A_TASK // sizes)
    tasks = ((region_names(places, cut), counts[cut], groups) for cut in cuts)
    at = 0
    for step in solve_each(monotone_at_once if several else monotone, tasks, solve, AT_ONCE):
        fitted = np.asarray(step.solution.x).reshape(-1, sizes)
        counts[at : at + len(fitted)] = differences(fitted)  # a region is used before it is replaced
        at += len(fitted)


def region_names(places: Hierarchy, nodes: slice) -> list[str]:
    """The names of some regions' fits, in level order."""
    names, start = [], 0
    for level, regions in zip(places.levels, places.names, strict=True):
        here = regions[max(0, nodes.start - start) : max(0, nodes.stop - start)]
        names += [f"{level} {region}" for region in here]
        start += regions.size
    return names


def monotone(names: Sequence[str], noisy: Ints, groups: int) -> list[Problem]:
    """Monotone fits of some regions, one model each."""
    fits = [Isotonic(row, p=2, lower=0, upper=groups, integer=True) for row in noisy]
    return [(name, fit, ()) for name, fit in zip(names, fits, strict=True)]


def monotone_at_once(names: Sequence[str], noisy: Ints, groups: int) -> list[Problem]:
    """Monotone fits of some regions, as one model."""
    offsets = np.arange(len(noisy) + 1) * noisy.shape[1]
    fit = Isotonic(noisy.ravel(), p=2, lower=0, upper=groups, integer=True, offsets=offsets)
    return [(f"{AT_ONCE} from {names[0]} on", fit, names)]
