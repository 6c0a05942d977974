"""The exact methods on the census, with and without the public total (H2).

The published errors at level 1 are several times those of the noisy counts themselves. With (H2) ours are
far below them. Without it, each size is repaired alone: thousands of leaves cannot be negative, their sum
pulls the root up at every size, and nothing pulls it down. The cumulative counts are used in two ways: with
the monotone fit of Algorithm 1, and as plain differences.

The census has 7,592 leaves as the paper counts them, and 3,143, its number of counties.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hierdp.counts.size_runs import differences
from hierdp.data.census import LEAVES, census
from hierdp.execution.resume import Row
from hierdp.experiments.papers.fioretto2019.experiments import errors_of
from hierdp.experiments.papers.fioretto2019.published import LEVELS, SIZES, TABLE_1
from hierdp.experiments.papers.fioretto2019.settings import SCALABLE, Settings
from hierdp.experiments.run import all_rows, crossed, noise_for
from hierdp.experiments.study import Part
from hierdp.mechanisms.group_size import measure
from hierdp.mechanisms.group_size.post_processing import METHODS, fit_regions
from hierdp.record.step import Step
from models import HierarchyQIP, NonNegativeInference, Tree
from models.arithmetic.arrays import Ints
from solvers import solve

if TYPE_CHECKING:
    from pandas import DataFrame

WAYS = {"M_H^dp": ("counts",), "M_c^dp": ("monotone fit", "plain differences")}
"""What is repaired, by method."""


def rows(settings: Settings, homes: Path | None, seed: int) -> DataFrame:
    """Errors by level with and without (H2)."""
    cases = crossed(leaves=settings.total_leaves, method=WAYS, epsilon=settings.epsilons)
    return all_rows(_rows, cases, "without the public total", (settings, homes, seed))


def _rows(
    settings: Settings, homes: Path | None, seed: int, leaves: int, method: str, epsilon: float
) -> list[Row]:
    data = census(seed, settings.groups, leaves, settings.sizes, homes)
    chosen, tree = METHODS[method], data.hierarchy.tree
    noisy, _ = measure(data, epsilon, noise_for(seed, "total", leaves, method, epsilon), chosen)
    made = []
    for way in WAYS[method]:
        counts = noisy
        if way == "plain differences":
            counts = differences(noisy)
        elif way == "monotone fit":
            counts = noisy.copy()
            fit_regions(counts, data.hierarchy, data.groups, Step.solve)
        answers = {"unrepaired": counts, "with (H2)": optimum(HierarchyQIP(tree, counts, data.groups)),
                   "without (H2)": without_total(tree, counts)}  # fmt: skip
        for name, answer in answers.items():
            made.append({"repaired": way, "answer": name, **errors_of(data, answer)})
    return made


def optimum(model: HierarchyQIP | NonNegativeInference) -> Ints:
    """The proved optimum of a model."""
    found = solve(model)
    if found.status != "optimal":
        raise RuntimeError(f"consistency: {found.status}; {found.message}")
    return np.asarray(found.x)


def without_total(tree: Tree, noisy: Ints) -> Ints:
    """The nearest consistent counts ≥ 0 of any total: each size is a problem of its own."""
    equal = np.ones(tree.size, np.int64)
    sizes = [optimum(NonNegativeInference(tree, size, equal, integer=True)) for size in noisy.T]
    return np.stack(sizes, axis=1)


def raw_noise(name: str, epsilon: float, method: str) -> float:
    """Expected L1 error of the root's noisy counts, without repair.

    The noise is double-geometric with scale λ = 2L/ε for counts, and L/ε for cumulative counts, whose
    differences have the noise of two of them.
    """
    scale = (1 if method.startswith("M_c") else 2) * LEVELS / epsilon
    reach = int(60 * scale)
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    law /= law.sum()
    if method.startswith("M_c"):
        law = np.convolve(law, law)
    away = np.abs(np.arange(law.size) - law.size // 2)
    return SIZES[name] * float(law @ away)


def without_total_part(found: DataFrame) -> Part:
    """Errors by level, beside the published ones."""
    import pandas as pd

    levels, printed = [f"level_{level}" for level in range(1, LEVELS + 1)], list[Row]()
    for method in WAYS:
        for (name, epsilon), table in TABLE_1.items():
            if name == "census":
                row = {"leaves": LEAVES, "method": method, "repaired": "", "epsilon": epsilon}
                known = zip(levels, table[SCALABLE.index(method)], strict=False)
                printed.append({**row, "answer": "published", **dict(known)})
                printed.append({**row, "answer": "noise alone", "level_1": raw_noise(name, epsilon, method)})
    texts = [
        "L1 errors at level 1 on the census, one run; other levels are in the file without_total_levels. "
        "Noise alone: the expected error of noisy counts before any repair, the same on any data."
    ]
    by = ["method", "leaves", "repaired", "answer"]
    every = pd.concat([pd.DataFrame(printed), found])[
        ["leaves", "method", "repaired", "epsilon", "answer", *levels]
    ]
    root = every.assign(epsilon=[f"level_1_at_{e:g}" for e in every.epsilon]).pivot_table(
        index=by, columns="epsilon", values="level_1", sort=False
    )
    frames = {"without_total": root.rename_axis(columns=None).reset_index(), "without_total_levels": every}
    return Part("without-total", "Without the public total", texts, frames)
