"""Estimate the groups by size of single regions: the methods of Kuo et al. 2018, §4.

A region's groups are measured in the representation of the method. Its estimate is nearest to the answers.
In a release of many regions, the regions of a level that follow each other share a step, and so a line of the
manifest. With a step for each region, most of the time and memory would go to handling tiny problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, resized, unattributed
from hierdp.measurements.query import Query
from hierdp.mechanisms.count_of_counts.pooled import pooled
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Allowed
from hierdp.record.step import Solving, Step, solve_all
from models import FixedSum, Isotonic
from models.arithmetic.arrays import Ints

BLOCK = 1 << 22
"""Groups whose sizes get noise at once, with Hg, so that runs are expanded in parts only. In a region with
more groups, each block's noisy sizes are pooled before the next block is drawn."""

CELLS = 2_000_000
"""Noisy numbers to hold before post-processing, 16 MB; more only if a single step needs more."""


@dataclass(frozen=True)
class CountOfCountsMethod:
    """A way to estimate the groups by size of one region.

    - form ("H", "Hc" or "Hg"): the measurement: groups of each size, groups of at most each size, or the
      sorted sizes of all groups.
    - p: the norm of the post-processing.
    """

    name: str
    form: Literal["H", "Hc", "Hg"]
    p: Literal[1, 2]

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of one level's query: how many answers an entity changes, each by one.

        Adding or removing an entity changes the size of one group by one. This changes one entry of Hg by
        one, one entry of Hc (that of the smaller size) by one, and two entries of H. Size 0 counts as a size:
        a group that loses its last entity remains. So the L2 sensitivity, of Gaussian noise, is its root: 1
        for Hg and Hc, √2 for H.
        """
        return 2 if self.form == "H" else 1

    def query(self, level: str) -> str:
        """The measurement of a level, as named in the budget."""
        what = {"H": "sizes", "Hc": "cumulative sizes", "Hg": "sizes of groups in order"}[self.form]
        return f"{what} by {level}"

    def precision(self, noise: str = GEOMETRIC) -> int:
        """1/variance of a group's size in a run of one group, in units of ε²/8; of Gaussian noise, of ρ.

        In a run of n groups it is n times as large: n·ε²/2 for Hg (§5.1.1) and n·ε²/4 for Hc (§5.1.2). The
        paper has no value for H; by the argument of §5.1.2 it is n·ε²/8, since counts have variance 8/ε².
        Gaussian noise has the variance 1/2ρ in Hg and Hc, and 1/ρ in H, instead of 2/ε² and 8/ε². By the same
        arguments this gives 2nρ for Hg, and nρ for Hc and H.
        """
        if noise == GAUSSIAN:
            return 2 if self.form == "Hg" else 1
        return {"H": 1, "Hc": 2, "Hg": 4}[self.form]


METHODS = {
    method.name: method
    for method in (
        CountOfCountsMethod("naive", "H", 2),
        CountOfCountsMethod("Hg", "Hg", 2),
        CountOfCountsMethod("Hg1", "Hg", 1),
        CountOfCountsMethod("Hc", "Hc", 1),
        CountOfCountsMethod("Hc2", "Hc", 2),
    )
}
"""The methods. H, Hc and Hg have the norms that the paper found best; ``Hg1`` and ``Hc2`` have the other
norm."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that groups may have, as public knowledge.

    - largest: K: larger groups are counted in this size (top-coded).
    - smallest: 1 if it is public that no group is empty, else 0.
    """

    largest: int
    smallest: int = 0


@dataclass(frozen=True, eq=False)
class Together:
    """Regions of a level whose groups by size are estimated in one step. It contains no true counts.

    - regions (int64 array): in increasing order, as in the hierarchy.
    - groups (int64 array): their numbers of groups, public or measured, above 0.
    - method: regions of `CountOfCountsMethod.form` H have steps of their own.
    - resize: whether the regions have other numbers of groups, which are secret: see `resized`.
    """

    regions: Ints
    groups: Ints
    method: CountOfCountsMethod
    domain: Sizes
    resize: bool = False

    @property
    def each(self) -> int:
        """The number of answers for each region, of H and Hc."""
        return numbers_of(1, self.method, self.domain)

    @property
    def cells(self) -> int:
        """The number of answers for all regions."""
        return int(self.groups.sum()) if self.method.form == "Hg" else self.each * self.regions.size

    @property
    def in_blocks(self) -> bool:
        """Whether a region has so many groups that they are measured in blocks."""
        return self.method.form == "Hg" and self.regions.size == 1 and self.cells > BLOCK

    @property
    def parts(self) -> int:
        """In how many parts it is measured."""
        return -(-self.cells // BLOCK) if self.in_blocks else 1

    @property
    def sizes(self) -> Iterator[int]:
        """The number of answers of each part."""
        at_once = BLOCK if self.in_blocks else self.cells
        return (min(at_once, self.cells - start) for start in range(0, self.cells, at_once))

    @property
    def offsets(self) -> Ints:
        """Where the answers for each region begin, and where the last ones end."""
        lengths = self.groups if self.method.form == "Hg" else np.full(self.regions.size, self.each)
        return np.concatenate([[0], np.cumsum(lengths)])

    def true(self, runs: Runs) -> Iterator[Ints]:
        """The true answers, in parts, from the true groups of all regions."""
        own = self._own(runs).capped(self.domain.largest)
        if self.in_blocks:
            for start in range(0, self.cells, BLOCK):
                yield unattributed(*own.of(0), start, start + BLOCK)
        elif self.method.form == "Hg":
            yield np.repeat(own.sizes, own.counts)
        else:
            cells = np.zeros((self.regions.size, self.each), dtype=np.int64)
            column = own.sizes - self.domain.smallest
            inside = column < self.each  # the last cell of Hc is public
            cells[own.row[inside], column[inside]] = own.counts[inside]
            yield (cells.cumsum(axis=1) if self.method.form == "Hc" else cells).ravel()

    def _own(self, runs: Runs) -> Runs:
        if self.resize:
            each = zip(self.regions.tolist(), self.groups.tolist(), strict=True)
            return Runs.from_rows(resized(*runs.of(r), n, self.domain.smallest) for r, n in each)
        first = int(self.regions[0])
        near = runs.between(first, int(self.regions[-1]) + 1)  # those among them without groups have no runs
        row = np.searchsorted(self.regions, first + near.row)
        return Runs.ordered(row, near.sizes, near.counts, self.regions.size)

    def estimates(self, found: Ints, weights: Ints | None) -> Runs:
        """The groups by size of each region, from the answer of the step.

        - found (int64 array): in the form of the method.
        - weights (int64 array): how many groups each entry stands for; see `pooled`.
        """
        if self.method.form == "Hg":
            return self._of_sorted(found, weights)
        low, many = self.domain.smallest, self.regions.size
        if self.method.form == "H":
            held = np.flatnonzero(found)
            return Runs.ordered(np.zeros(held.size, np.int64), held + low, found[held], many)
        cumulated = np.empty((many, self.each + 1), dtype=np.int64)
        cumulated[:, :-1], cumulated[:, -1] = found.reshape(many, -1), self.groups
        rises = np.empty(cumulated.shape, dtype=bool)
        rises[:, 0] = cumulated[:, 0] != 0
        np.not_equal(cumulated[:, 1:], cumulated[:, :-1], out=rises[:, 1:])
        at = np.flatnonzero(rises)
        row, column = np.divmod(at, self.each + 1)
        reached = cumulated.ravel()[at]
        before = np.concatenate([[0], reached[:-1]])
        before[np.diff(row, prepend=-1) > 0] = 0
        return Runs.ordered(row, column + low, reached - before, many)

    def _of_sorted(self, found: Ints, weights: Ints | None) -> Runs:
        offsets = self.offsets if weights is None else np.array([0, found.size])
        begins = np.ones(found.size, dtype=bool)
        begins[1:] = found[1:] != found[:-1]
        begins[offsets[:-1]] = True
        at = np.flatnonzero(begins)
        counts = np.diff(at, append=found.size) if weights is None else np.add.reduceat(weights, at)
        row = np.searchsorted(offsets, at, side="right") - 1
        return Runs.ordered(row, found[at], counts, self.regions.size)


def numbers_of(groups: int, method: CountOfCountsMethod, domain: Sizes) -> int:
    """Number of answers for a region with the given number of groups."""
    of_sizes = domain.largest + (method.form == "H") - domain.smallest
    return groups if method.form == "Hg" or not groups else of_sizes


Names = Callable[[Ints], Sequence[str]]
"""From the numbers of regions to their names."""

Noisy = tuple[Together, Sequence[str], Ints, Ints | None]
"""Regions, their names, their noisy numbers, and how many groups each of these stands for, if pooled."""


def size_query(level: str, share: Allowed, steps: Sequence[Together], places: Hierarchy) -> Query:
    """The query of a level: the groups by size of its regions with groups, in parts."""
    method, at = steps[0].method, int(places.tree.level[steps[0].regions[0]])
    cells = sum(step.cells for step in steps)
    nodes: Ints | None = None
    regions = np.concatenate([step.regions for step in steps])
    groups = np.concatenate([step.groups for step in steps])
    # Numbers of groups that were measured, too, changed what is measured of their sizes: it need not add up.
    adds_up = method.form != "Hg" and not steps[0].resize
    if adds_up:
        nodes = regions - int(places.tree.level_start[at])
    return Query(
        method.query(level),
        share.sensitivity(method.sensitivity),
        share.loss,
        cells,
        lambda runs: chain.from_iterable(step.true(runs) for step in steps),
        share.noise,
        level=(places.tree, at) if adds_up else None,
        nodes=nodes,
        in_parts=True,
        which=(regions, groups),
    )


def estimates(
    answers: Iterator[Ints], solve: Solving, steps: Iterable[Together], name: Names
) -> Iterator[Runs]:
    """Find the nearest groups by size to what was measured, one step after another.

    At most `CELLS` noisy numbers are held, or those of one step.

    - answers (iterator of int64 array): those of all parts of the steps.

    Returns: for each step, one row for each of its regions.
    """
    waiting: list[Noisy] = []
    held = 0
    for step in steps:
        if held + step.cells > CELLS:
            yield from _nearest_each(waiting, solve)
            waiting, held = [], 0
        parts = islice(answers, step.parts)
        waiting.append((step, name(step.regions), *_together(step, parts)))
        held += step.cells
        if held > CELLS:  # a large step, which is not sent to another process
            (large,), waiting, held = waiting, [], 0
            yield step.estimates(np.asarray(nearest(solve, *large).solution.x), large[-1])
    yield from _nearest_each(waiting, solve)


def _together(step: Together, parts: Iterator[Ints]) -> tuple[Ints, Ints | None]:
    """The noisy numbers of a step; of many groups, pooled one part at a time."""
    if not (step.in_blocks and step.method.p == 2):
        return np.concatenate([part.astype(np.int64, copy=False) for part in parts]), None
    numbers, weights = zip(*(pooled(part.astype(np.int64, copy=False)) for part in parts), strict=True)
    return np.concatenate(numbers), np.concatenate(weights)


def _nearest_each(waiting: Sequence[Noisy], solve: Solving) -> Iterator[Runs]:
    solved = solve_all(nearest, waiting, solve, "repair of regions")
    for (step, _, _, weights), nearest_sizes in zip(waiting, solved, strict=True):
        yield step.estimates(np.asarray(nearest_sizes.solution.x), weights)


def nearest(solve: Solving, of: Together, names: Sequence[str], noisy: Ints, weights: Ints | None) -> Step:
    """The nearest groups by size to the noisy numbers of some regions."""
    method, low, high = of.method, of.domain.smallest, of.domain.largest
    name = f"{method.name}: {names[0]}"
    if len(names) > 1:
        # All groups have size at most K, so that the last cell of Hc is public and bounds the others.
        hg = method.form == "Hg"
        least, most = np.full(len(names), low if hg else 0), np.full(len(names), high) if hg else of.groups
        both = Isotonic(noisy, method.p, lower=least, upper=most, integer=True, offsets=of.offsets)
        return solve(f"{name} and {len(names) - 1:,} more", both, names)
    groups = int(of.groups[0])
    if method.form == "H":
        return solve(name, FixedSum(noisy, groups, p=2))
    lower, upper = (low, high) if method.form == "Hg" else (0, groups)
    return solve(name, Isotonic(noisy, method.p, weights, lower=lower, upper=upper, integer=True))
