"""One region's groups by size, estimated: the methods of Kuo et al. 2018, §4.

The true counts of a region meet noise here, in the representation that the method measures; what comes out
are runs, and a proof that they are the nearest possible to what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hierdp import execution
from hierdp.counts.size_runs import cumulative_of, runs_of_cumulative, runs_of_sorted, unattributed
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Noise, NoisyCounts
from hierdp.record.step import Step
from models import FixedSum, Isotonic, Model
from models.arithmetic.arrays import Ints

BLOCK = 1 << 22
"""Groups whose sizes meet noise at once, with Hg: what is written out of the runs is never all of them."""

CELLS = 2_000_000
"""Noisy numbers that are held before they are repaired, 16 MB; more only where one region needs more."""


@dataclass(frozen=True)
class Method:
    """A way to estimate the groups by size of one region.

    Attributes
    ----------
    name : str
    form : "H", "Hc" or "Hg"
        What is measured: groups of each size, of at most each size, or the sizes of all groups in order.
    p : 1 or 2
        The norm of the repair.
    """

    name: str
    form: Literal["H", "Hc", "Hg"]
    p: Literal[1, 2]

    @property
    def sensitivity(self) -> int:
        """L1, of one level's query: an entity more or less changes the size of one group by one.

        That is one entry of Hg, by one; one of Hc (of the smaller of the two sizes), by one; and two of H.
        Size 0 is a size: a group that loses its last entity is still there.
        """
        return 2 if self.form == "H" else 1

    @property
    def precision(self) -> int:
        """1/variance of one group's size in a run of one group, in units of ε²/8.

        In a run of n groups it is n times that: n·ε²/2 for Hg (§5.1.1) and n·ε²/4 for Hc (§5.1.2). By the
        argument of §5.1.2, n·ε²/8 for H, whose counts have variance 8/ε²; the paper has none for it.
        """
        return {"H": 1, "Hc": 2, "Hg": 4}[self.form]


METHODS = {
    method.name: method
    for method in (
        Method("naive", "H", 2),
        Method("Hg", "Hg", 2),
        Method("Hg1", "Hg", 1),
        Method("Hc", "Hc", 1),
        Method("Hc2", "Hc", 2),
    )
}
"""With the norms that the paper found best; ``Hg1`` and ``Hc2`` have the other one."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that groups may have, as public knowledge.

    Attributes
    ----------
    largest : int
        K: larger groups count as of this size.
    smallest : int
        1 where it is known that no group is empty; else 0.
    """

    largest: int
    smallest: int = 0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Groups by size of one region, after noise and repair. It holds no true counts.

    Attributes
    ----------
    sizes, counts : int64 arrays, shape (runs,)
        Sizes rise; counts are positive and add up to the number of groups.
    spend : Spend or None
        The measurement; None where there was nothing to measure, the region having no groups.
    step : Step or None
        The repair and its proof.
    """

    sizes: Ints
    counts: Ints
    spend: Spend | None = None
    step: Step | None = None


@dataclass(frozen=True, eq=False)
class Region:
    """What there is to know of a region before its groups are estimated. It holds true counts.

    Attributes
    ----------
    true : pair of int arrays
        Its true runs, sizes and counts, in `domain`; so many groups as `groups` says.
    groups : int
        Public, or made so at a price.
    method : Method
    domain : Sizes
    epsilon : float
        Of its level: the regions of a level share no entity.
    where : (str, str)
        Names of the level and the region.
    """

    true: tuple[Ints, Ints]
    groups: int
    method: Method
    domain: Sizes
    epsilon: float
    where: tuple[str, str] = ("root", "all")

    @property
    def cells(self) -> int:
        """How many numbers are drawn."""
        return numbers_of(self.groups, self.method, self.domain)


def numbers_of(groups: int, method: Method, domain: Sizes) -> int:
    """How many numbers are drawn for a region with so many groups."""
    of_sizes = domain.largest + (method.form == "H") - domain.smallest
    return groups if method.form == "Hg" or not groups else of_sizes


def estimate(
    true: tuple[Ints, Ints],
    groups: int,
    method: Method,
    domain: Sizes,
    epsilon: float,
    noise: Noise,
    where: tuple[str, str] = ("root", "all"),
) -> Estimate:
    """Measure and repair the groups by size of one region; for the arguments see `Region`."""
    (got,) = estimates([Region(true, groups, method, domain, epsilon, where)], noise)
    return got


def estimates(regions: Iterable[Region], noise: Noise) -> Iterator[Estimate]:
    """Measure and repair one region after the other.

    Noise is drawn here, and the repairs of some regions at a time may be done elsewhere (see
    `hierdp.execution`); of what was drawn no more is held than `CELLS`, or than one region needs.
    """
    waiting: list[tuple[Any, ...]] = []
    held = 0
    for region in regions:
        if held + region.cells > CELLS:
            yield from execution.each(_repaired, waiting, "repair of regions")
            waiting, held = [], 0
        name = name_of(region.method, region.where)
        how = region.groups, region.method.form, region.domain.smallest, name
        waiting.append((*_problem(region, noise), *how))
        held += region.cells
        if held > CELLS:  # a region that is large by itself, too large to be sent about
            yield _repaired(*waiting.pop())
            held = 0
    yield from execution.each(_repaired, waiting, "repair of regions")


def _problem(region: Region, noise: Noise) -> tuple[Model | None, Spend | None]:
    """Measure, and the problem that this leaves; none without groups."""
    if region.groups == 0:
        return None, None
    measured = _measured(region, noise)
    return problem_of(measured.counts, region.groups, region.method, region.domain), measured.spend


def problem_of(noisy: Ints, groups: int, method: Method, domain: Sizes) -> Model:
    """The nearest groups by size to what was measured of a region that has groups."""
    if method.form == "Hg":
        return Isotonic(noisy, p=method.p, lower=domain.smallest, upper=domain.largest, integer=True)
    if method.form == "Hc":
        # Of size K or less are all groups: that cell is no secret, and bounds the others.
        return Isotonic(noisy, p=method.p, lower=0, upper=groups, integer=True)
    return FixedSum(noisy, groups, p=2)


def _repaired(
    model: Model | None, spend: Spend | None, groups: int, form: str, low: int, name: str
) -> Estimate:
    """The repair of what was measured: post-processing."""
    if model is None:
        return Estimate(np.empty(0, np.int64), np.empty(0, np.int64))
    step = Step.solve(name, model)
    return Estimate(*sizes_of(np.asarray(step.solution.x), groups, form, low), spend, step)


def sizes_of(found: Ints, groups: int, form: str, low: int) -> tuple[Ints, Ints]:
    """The runs, sizes and counts, that a region's answer stands for."""
    if form == "Hg":
        return runs_of_sorted(found)
    if form == "Hc":
        return runs_of_cumulative(np.append(found, groups), low)
    return np.flatnonzero(found) + low, found[found > 0]


def name_of(method: Method, where: tuple[str, str]) -> str:
    """What a region's repair is called."""
    return f"{method.name}: {where[0]} {where[1]}"


def _measured(region: Region, noise: Noise) -> NoisyCounts:
    """The region's groups in the form of its method, with noise."""
    true, groups, epsilon, level = region.true, region.groups, region.epsilon, region.where[0]
    low, sensitivity = region.domain.smallest, region.method.sensitivity
    if region.method.form == "Hc":
        cumulated = cumulative_of(*true, region.domain.largest)[low:]
        return noise.geometric(cumulated, f"cumulative sizes by {level}", sensitivity, epsilon)
    if region.method.form == "H":
        cells = np.zeros(region.cells, dtype=np.int64)
        cells[true[0] - low] = true[1]
        return noise.geometric(cells, f"sizes by {level}", sensitivity, epsilon)
    # A draw a group; of the true sizes, one block is written out at a time.
    noisy = np.empty(groups, dtype=np.int64)
    spends = set()
    for start in range(0, groups, BLOCK):
        sizes = unattributed(*true, start, start + BLOCK)
        part = noise.geometric(sizes, f"sizes of groups in order by {level}", sensitivity, epsilon)
        noisy[start : start + BLOCK] = part.counts
        spends.add(part.spend)
    (spend,) = spends  # one query, in parts
    return NoisyCounts(noisy, spend)
