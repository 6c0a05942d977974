"""Figure 3: errors of range queries by their size, on the DPBench histograms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hierdp.execution import progress
from hierdp.mechanisms import clustering
from hierdp.mechanisms.range_query import range_query
from hierdp.metrics.ranges import box_sums, prefix_sums, range_places, range_sizes
from hierdp.privacy.noise import Noise
from hierdp.reproduce.qardaji2013 import curve_parts, post_processing
from hierdp.reproduce.runs import noise_for, seed_for
from hierdp.reproduce.study import Part
from hierdp.tables.binning import Histogram
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame


EPSILON = 1.0
"""The paper's."""


class Settings(Protocol):
    """The study's settings that are needed here."""

    @property
    def runs(self) -> int:
        """Runs of each method and data set; the paper: 5."""

    @property
    def curve_queries(self) -> int:
        """Queries of each size at random places; the paper: 100."""

    @property
    def curve_sizes(self) -> int:
        """Number of evenly spaced sizes; the paper: 10 to 20."""


@dataclass(frozen=True)
class Line:
    """A line of the figure: a method with its options."""

    label: str
    method: str
    options: Mapping[str, Any]


ONE_AXIS = (
    Line("Flat", "Flat", {}),
    Line("H₂ᶜ", "H_2^c", {}),
    Line("H₁₆ᶜ", "H_b^c", {"branching": 16}),
    Line("H₁₆ᶜ, best budget", "H_b^c", {"branching": 16, "budget": "optimized"}),
    Line("Wavelet", "Wavelet", {}),
    Line("StructureFirst", "SF", {}),
)
"""The paper's lines: F, W_H, SF, and H_b^c with the b, here 16, and the budgets that its analysis finds
best."""

TWO_AXES = (
    Line("Flat", "Flat", {}),
    Line("Quadtree", "Quadtree", {}),
    Line("H₁₆ᶜ, equal budgets", "H_b^c", {"branching": 16, "budget": "equal"}),
    Line("H₆ᶜ, geometric budgets", "H_b^c", {"branching": 6, "budget": "geometric"}),
    Line("Wavelet", "Wavelet", {}),
)
"""H_b^c for 256 × 256 bins, with the best b for each division of the budget."""


def parts(settings: Settings, sets: Mapping[str, Ints], seed: int) -> list[Part]:
    """Figure 3 and its extensions, on these histograms."""
    line = {name: counts for name, counts in sets.items() if counts.ndim == 1}
    plane = {name: counts for name, counts in sets.items() if counts.ndim == 2}
    made: list[Part] = []
    if line:
        runs = measured(line, ONE_AXIS, settings, seed)
        made += [curve_parts.curves(runs, "figure3"), curve_parts.profiles(runs)]
    if plane:
        made.append(curve_parts.curves(measured(plane, TWO_AXES, settings, seed), "figure3-boxes"))
    if line:
        made.append(post_processing.part(line, settings, seed))
    return made


def measured(sets: Mapping[str, Ints], lines: tuple[Line, ...], settings: Settings, seed: int) -> DataFrame:
    """One row for each data set, method, run, size and query: the absolute error, and its expected value."""
    import pandas as pd

    cases = [(name, run, line) for name in sets for run in range(settings.runs) for line in lines]
    frames = []
    for name, run, line in progress.steps(cases, "errors of range queries", len(cases)):
        counts = sets[name]
        sizes = range_sizes(counts.shape[0], settings.curve_sizes)
        places = list(range_places(counts.shape, sizes, settings.curve_queries, seed_for(seed, name, run)))
        low, high = (np.concatenate([ends[side] for ends in places]) for side in (0, 1))
        noise = noise_for(seed, "curves", name, run, line.label)
        estimate, error = _answers(counts, line, noise, low, high)
        frames.append(
            pd.DataFrame(
                {
                    "data": name,
                    "method": line.label,
                    "run": run,
                    "size": np.repeat(sizes, settings.curve_queries),
                    "error": np.abs(estimate - box_sums(prefix_sums(counts), low, high)),
                    "standard_error": error,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _answers(counts: Ints, line: Line, noise: Noise, low: Ints, high: Ints) -> Iterator[Any]:
    """Estimates and standard errors; StructureFirst's depend on the data, and are unknown."""
    if line.method == "SF":
        published = clustering.METHODS["SF"].publish(counts, EPSILON, noise).counts
        yield box_sums(prefix_sums(published), low, high)
        yield np.full(len(low), np.nan)
    else:
        yield from range_query(Histogram.of(counts), EPSILON, noise, line.method, **line.options).box(
            low, high
        )
