"""Estimate the groups by size of one region: the methods of Kuo et al. 2018, §4.

Noise is added to a region's true counts in the representation that the method measures. The results are runs,
with a proof that they are nearest to the measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hierdp.counts.size_runs import cumulative_of, runs_of_cumulative, runs_of_sorted, unattributed
from hierdp.mechanisms.count_of_counts.pooled import pooled
from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Noise, NoisyCounts
from hierdp.record.step import Solving, Step
from models import FixedSum, Isotonic, Model
from models.arithmetic.arrays import Ints

BLOCK = 1 << 22
"""Groups whose sizes get noise at once, with Hg, so that runs are expanded in parts only. In a region with
more groups, each block's noisy sizes are pooled before the next block is drawn."""


@dataclass(frozen=True)
class Method:
    """A way to estimate the groups by size of one region.

    Attributes
    ----------
    name : str
    form : "H", "Hc" or "Hg"
        The measurement: groups of each size, groups of at most each size, or the sorted sizes of all groups.
    p : 1 or 2
        The norm of the post-processing.
    """

    name: str
    form: Literal["H", "Hc", "Hg"]
    p: Literal[1, 2]

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of one level's query.

        Adding or removing an entity changes the size of one group by one. This changes one entry of Hg by
        one, one entry of Hc (that of the smaller size) by one, and two entries of H. Size 0 counts as a size:
        a group that loses its last entity remains.
        """
        return 2 if self.form == "H" else 1

    def query(self, level: str) -> str:
        """The measurement of a level, as named in the budget."""
        what = {"H": "sizes", "Hc": "cumulative sizes", "Hg": "sizes of groups in order"}[self.form]
        return f"{what} by {level}"

    @property
    def precision(self) -> int:
        """1/variance of a group's size in a run of one group, in units of ε²/8.

        In a run of n groups it is n times as large: n·ε²/2 for Hg (§5.1.1) and n·ε²/4 for Hc (§5.1.2). The
        paper has no value for H; by the argument of §5.1.2 it is n·ε²/8, since counts have variance 8/ε².
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
"""The methods. H, Hc and Hg have the norms that the paper found best; ``Hg1`` and ``Hc2`` have the other
norm."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that groups may have, as public knowledge.

    Attributes
    ----------
    largest : int
        K: larger groups are counted in this size (top-coded).
    smallest : int
        1 if it is public that no group is empty, else 0.
    """

    largest: int
    smallest: int = 0


@dataclass(frozen=True, eq=False)
class NoisyRegion:
    """The measurement of a region, which contains no true counts.

    Attributes
    ----------
    noisy : int64 array
        In the form of the method; empty if the region has no groups. Pooled if there are `weights`.
    groups : int
        Its number of groups, which is public or was measured.
    method : Method
    domain : Sizes
    where : (str, str)
        Names of the level and the region.
    spend : Spend or None
        The measurement.
    weights : int64 array, optional
        How many groups each number stands for, with Hg and very many groups; see `pooled`.
    """

    noisy: Ints
    groups: int
    method: Method
    domain: Sizes
    where: tuple[str, str] = ("root", "all")
    spend: Spend | None = None
    weights: Ints | None = None

    @property
    def name(self) -> str:
        """The name of the region's step."""
        return f"{self.method.name}: {self.where[0]} {self.where[1]}"

    @property
    def cells(self) -> int:
        """Number of measured values."""
        return numbers_of(self.groups, self.method, self.domain)

    @property
    def model(self) -> Model:
        """The problem of the nearest groups by size, if the region has groups."""
        method, domain = self.method, self.domain
        if method.form == "Hg":
            ends = {"lower": domain.smallest, "upper": domain.largest}
            return Isotonic(self.noisy, method.p, self.weights, **ends, integer=True)
        if method.form == "Hc":
            # All groups have size at most K, so that cell is public and bounds the others.
            return Isotonic(self.noisy, p=method.p, lower=0, upper=self.groups, integer=True)
        return FixedSum(self.noisy, self.groups, p=2)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated groups by size of one region, after noise and post-processing; no true counts.

    Attributes
    ----------
    sizes, counts : int64 arrays, shape (runs,)
        Sizes increase; counts are positive and add up to the number of groups.
    spend : Spend or None
        The measurement; None if the region has no groups.
    step : Step or None
        The post-processing step with its proof.
    """

    sizes: Ints
    counts: Ints
    spend: Spend | None = None
    step: Step | None = None


@dataclass(frozen=True, eq=False)
class Region:
    """The data of a region before its groups are estimated. It contains true counts.

    Attributes
    ----------
    true : pair of int arrays
        Its true runs, sizes and counts, in `domain`, with `groups` groups.
    groups : int
        Number of groups, public or measured.
    method : Method
    domain : Sizes
    epsilon : float
        The budget of its level; the regions of a level share no entity.
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
        """Number of draws of noise."""
        return numbers_of(self.groups, self.method, self.domain)


def numbers_of(groups: int, method: Method, domain: Sizes) -> int:
    """Number of draws for a region with the given number of groups."""
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
    """Measure and post-process the groups by size of one region; for the arguments see `Region`."""
    return repaired(measure(Region(true, groups, method, domain, epsilon, where), noise))


def repaired(measured: NoisyRegion, solving: Solving = Step.solve) -> Estimate:
    """Post-process the measurement of a region."""
    if measured.groups == 0:
        return Estimate(np.empty(0, np.int64), np.empty(0, np.int64))
    step = solving(measured.name, measured.model)
    sizes, counts = sizes_of(measured, np.asarray(step.solution.x))
    return Estimate(sizes, counts, measured.spend, step)


def sizes_of(measured: NoisyRegion, found: Ints) -> tuple[Ints, Ints]:
    """The runs of a region's answer, as sizes and counts."""
    form, low = measured.method.form, measured.domain.smallest
    if form == "Hg":
        return runs_of_sorted(found, measured.weights)
    if form == "Hc":
        return runs_of_cumulative(np.append(found, measured.groups), low)
    return np.flatnonzero(found) + low, found[found > 0]


def measure(region: Region, noise: Noise) -> NoisyRegion:
    """Measure a region: the only access to its true counts."""
    known = region.groups, region.method, region.domain, region.where
    if region.groups == 0:
        return NoisyRegion(np.empty(0, np.int64), *known)
    if region.method.form == "Hg":
        return _in_order(region, noise)
    drawn = _measured(region, noise)
    return NoisyRegion(drawn.counts, *known, drawn.spend)


def _measured(region: Region, noise: Noise) -> NoisyCounts:
    """The region's groups by size, cumulative or not, with noise."""
    true, low = region.true, region.domain.smallest
    if region.method.form == "Hc":
        cells = cumulative_of(*true, region.domain.largest)[low:]
    else:
        cells = np.zeros(region.cells, dtype=np.int64)
        cells[true[0] - low] = true[1]
    return noise.geometric(cells, *_query(region))


def _query(region: Region) -> tuple[str, int, float]:
    """What is measured: its name, sensitivity and ε."""
    return region.method.query(region.where[0]), region.method.sensitivity, region.epsilon


def _in_order(region: Region, noise: Noise) -> NoisyRegion:
    """The sizes of the region's groups in order, with noise: a draw a group, a block of groups at a time."""
    pools = region.groups > BLOCK and region.method.p == 2
    spends, numbers, weights = set(), list[Ints](), list[Ints]()
    for start in range(0, region.groups, BLOCK):
        sizes = unattributed(*region.true, start, start + BLOCK)
        part = noise.geometric(sizes, *_query(region))
        spends.add(part.spend)
        number, weight = pooled(part.counts) if pools else (part.counts, None)
        numbers.append(number)
        if weight is not None:
            weights.append(weight)
    (spend,) = spends  # one query, in parts
    known = region.groups, region.method, region.domain, region.where
    return NoisyRegion(np.concatenate(numbers), *known, spend, np.concatenate(weights) if pools else None)
