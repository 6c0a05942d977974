"""Groups by size, split near the square root of the entities: small sizes by Hc, large ones by Hg.

The problem is that of anonymized histograms (Suresh 2019, arXiv 1910.03553). **This is not his algorithm**,
whose text was not available: its steps, constants and shares of ε are not reproduced, and these rows show
nothing about it. Known of it, from Ghazi et al. 2022 (Anonymized Histograms in Intermediate Privacy Models),
is that it uses the counts of groups of at least r entities, and that its L1 error is O(√(n ln(1/ε)/ε)) for
n entities, the least possible order for ε < 1 (Manurangsi 2022).

Here counts of groups of at least r entities are measured for every r up to T, the square root of the entities
per leaf, and the sizes of larger groups in order. One entity more moves a group from size s to s + 1, which
changes either one of the counts of groups of at least r ≤ T entities, or one of the sizes above T by 1 in
their sorted list; so both parts have the whole ε, but for ε/20 for the number of entities, from which T, one
for all leaves, is computed. Numbers of groups are public, as in Kuo et al. 2018. How many sizes are listed in
a leaf is its noisy number of groups of at least T. Isotonic fits are those of Hc and Hg. Leaves add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.which_wins.rows import Row, row
from benchmarks.which_wins.sizes import Case, by_density, by_epsilon, data_sets
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.experiments.choosing.methods import errors_of_levels
from hierdp.experiments.run import noise_for
from hierdp.mechanisms import count_of_counts
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.privacy.noise import SimulatedNoise, geometric
from models.arithmetic.arrays import Ints

ANONYMIZED = "group sizes, anonymized histograms"
METHOD = "Hc up to T, Hg above"
SHARE = 1 / 20


def cases(data: Path, seed: int) -> list[Case]:
    """All data sets at two ε, and sizes ever farther apart."""
    return [*by_epsilon(data_sets(data, seed), (0.1, 1.0)), *by_density(seed)]


def errors(case: Case, runs: int, seed: int) -> Iterator[Row]:
    """One row per run, level and error."""
    for run in range(runs):
        noise = noise_for(seed, case.figure, case.data, case.at, METHOD, run)
        made = released(case.counts, case.max_size, case.epsilon, noise)
        for each in errors_of_levels(case.counts, case.max_size, METHOD, run, made):
            about = {"figure": case.figure, "data": case.data, "at": case.at, "epsilon": case.epsilon}
            yield row(kind=ANONYMIZED, **about, **each._asdict())


def released(data: SizeRuns, max_size: int, epsilon: float, noise: SimulatedNoise) -> Runs:
    """Noisy groups by size of all regions."""
    places, tree = data.hierarchy, data.hierarchy.tree
    true = data.runs.capped(max_size)
    finest = tree.nodes_of(len(places.levels) - 1)
    leaves = range(finest.start, finest.stop)
    entities = int(noise.draw(geometric("entities", 1, epsilon * SHARE), true.people[:1]).answers[0])
    most = min(max(1, math.isqrt(max(0, entities) // len(leaves))), max_size - 1)

    def by(method: str, counts: SizeRuns, largest: int) -> Runs:
        plan = plan_of(method, places.levels, max_size=largest)
        measured = count_of_counts.measure(counts, epsilon * (1 - SHARE), noise, plan)
        return count_of_counts.post_process(measured, places, plan)

    low = by("bottom-up", data, most)
    above = [largest_over(*true.of(leaf), groups_of(*low.of(leaf), most), most) for leaf in leaves]
    large = SizeRuns(places, Runs.from_rows(above).summed_up(tree))
    high = by("bottom-up Hg", large, max_size - most)
    rows = []
    for leaf in leaves:
        sizes, counts = low.of(leaf)
        more, often = high.of(leaf)
        small = sizes < most
        rows.append((np.r_[sizes[small], more + most], np.r_[counts[small], often]))
    return Runs.from_rows(rows).summed_up(tree)


def groups_of(sizes: Ints, counts: Ints, size: int) -> int:
    """The number of groups of a size."""
    return int(counts[sizes == size].sum())


def largest_over(sizes: Ints, counts: Ints, groups: int, most: int) -> tuple[Ints, Ints]:
    """So many of the largest sizes, less `most`, at least 0: each with its number of groups."""
    before = np.cumsum(counts[::-1])
    taken = np.diff(np.minimum(before, groups), prepend=0)[::-1]
    return np.maximum(sizes - most, 0), taken
