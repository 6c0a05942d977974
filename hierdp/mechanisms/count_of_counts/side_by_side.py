"""Estimates of regions, many of them as one step.

In a release of many regions, the regions of a level that follow each other share a step, and so a line of the
manifest. With a step for each region, most of the time and memory would go to handling tiny problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hierdp import execution
from hierdp.counts.size_runs import Runs
from hierdp.mechanisms.count_of_counts.estimates import (
    NoisyRegion,
    Region,
    Sizes,
    measure,
    numbers_of,
    repaired,
    sizes_of,
)
from hierdp.mechanisms.count_of_counts.plan import Plan
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Noise
from hierdp.record.step import Solving, Step
from models import Isotonic, Tree
from models.arithmetic.arrays import Ints

CELLS = 2_000_000
"""Noisy numbers to hold before post-processing, 16 MB; more only if a single step needs more."""

CELLS_A_STEP = 200_000
"""Noisy numbers of the regions that share a step. A region with more has its own."""

SIDE_BY_SIDE = 1_000
"""From this number of measured regions on, regions share steps."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimated groups by size of the regions of a step; no true counts.

    Attributes
    ----------
    runs : Runs
        One row for each region.
    spend : Spend or None
        The measurement, which is the same for all of them.
    step : Step
        Their nearest groups by size, with its proof.
    """

    runs: Runs
    spend: Spend | None
    step: Step


def measured_regions(tree: Tree, groups: Ints, plan: Plan) -> Ints:
    """The regions to measure, in level order: those with groups; bottom-up, of the last level only."""
    return np.flatnonzero(groups * (tree.level == tree.depth) if plan.bottom_up else groups)


def steps_of(regions: Ints, level: Ints, groups: Ints, plan: Plan, domain: Sizes) -> list[list[int]]:
    """The regions of each step.

    Parameters
    ----------
    regions : int array
        The regions to measure, in level order.
    level, groups : int arrays, shape (all regions,)
    plan : Plan
    domain : Sizes

    Returns
    -------
    list of list of int
    """
    several = regions.size >= SIDE_BY_SIDE
    steps, cells, before = list[list[int]](), 0, -1
    named = zip(regions.tolist(), level[regions].tolist(), groups[regions].tolist(), strict=True)
    for region, here, there in named:
        method = plan.method_of(here)
        own = numbers_of(there, method, domain)
        cells += own
        if several and here == before and method.form != "H" and cells <= CELLS_A_STEP:
            steps[-1].append(region)
        else:
            steps.append([region])
            cells, before = own, here
    return steps


def estimates(steps: Iterable[Sequence[Region]], noise: Noise) -> Iterator[Estimates]:
    """Measure and post-process the regions of one step after another.

    Noise is drawn in this process; batches of steps may be post-processed elsewhere (see
    `hierdp.execution`). At most `CELLS` draws are held, or those of one step.
    """
    waiting: list[tuple[list[NoisyRegion]]] = []
    held = 0
    for regions in steps:
        cells = sum(region.cells for region in regions)
        if held + cells > CELLS:
            yield from execution.each(estimated, waiting, "repair of regions")
            waiting, held = [], 0
        waiting.append(([measure(region, noise) for region in regions],))
        held += cells
        if held > CELLS:  # a large step, which is not sent to another process
            yield estimated(*waiting.pop())
            held = 0
    yield from execution.each(estimated, waiting, "repair of regions")


def estimated(measured: Sequence[NoisyRegion], solving: Solving = Step.solve) -> Estimates:
    """Post-process the measurements of the regions of a step."""
    first = measured[0]
    if len(measured) == 1:
        made = repaired(first, solving)
        assert made.step is not None, "a region without groups is not measured"
        return Estimates(Runs.from_rows([(made.sizes, made.counts)]), made.spend, made.step)
    step = solving(
        step_name(measured), _side_by_side(measured), [" ".join(region.where) for region in measured]
    )
    found = np.split(np.asarray(step.solution.x), _ends(measured)[:-1])
    rows = [sizes_of(region, own) for region, own in zip(measured, found, strict=True)]
    return Estimates(Runs.from_rows(rows), first.spend, step)


def step_name(measured: Sequence[NoisyRegion]) -> str:
    """The name of the step of these regions."""
    more = f" and {len(measured) - 1:,} more" if len(measured) > 1 else ""
    return measured[0].name + more


def _ends(measured: Sequence[NoisyRegion]) -> Ints:
    return np.cumsum([region.noisy.size for region in measured])


def _side_by_side(measured: Sequence[NoisyRegion]) -> Isotonic:
    """The regions' models as one; they are of one method, and not of `Method.form` H."""
    method, domain = measured[0].method, measured[0].domain
    noisy = np.concatenate([region.noisy for region in measured])
    offsets = np.concatenate([[0], _ends(measured)])
    if method.form == "Hg":
        lower, upper = np.full((2, len(measured)), [[domain.smallest], [domain.largest]])
    else:
        lower, upper = np.zeros(len(measured), np.int64), np.array([region.groups for region in measured])
    return Isotonic(noisy, method.p, lower=lower, upper=upper, integer=True, offsets=offsets)
