"""Problems cut from releases of real data: the flights from New York in 2013, to some airports each.

Each is a step of a release as the model of that step states it: the counts are those of the flights, and
simulated noise is added to them. A cut has the airports of one time zone, and is not larger than its set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import models
from hierdp.data import AIRPORTS, FLIGHTS
from models.arithmetic.arrays import Ints
from models.synthetic import noise

ZONES = ("New_York", "Chicago", "Los_Angeles", "Denver")
"""Time zones of airports, from which the cuts are taken; their names end so."""

SCALE = 10.0
"""Of the noise: two-sided, as for a sensitivity of 1 and ε = 0.1."""

WIDE = 24
"""Bins of the cuts whose programs have a variable for each run of bins."""


@dataclass(frozen=True)
class Cut:
    """The flights to some airports of a time zone.

    Attributes
    ----------
    zone : str
    counts : array
        Flights by airport, or by aircraft and airport.
    airport : array
        The airport of each count, from 0 on.
    """

    zone: str
    counts: Ints
    airport: Ints


def cuts(cells: int) -> Iterator[tuple[str, models.Model]]:
    """The problems of about so many counts, by name; none for 0 counts."""
    for number, zone in enumerate(ZONES if cells else ()):
        cut = _cut(zone, cells)
        yield from (
            (f"{zone}-{name}", model) for name, model in _steps(cut, np.random.default_rng([cells, number]))
        )


def _cut(zone: str, cells: int) -> Cut:
    import pandas as pd

    flights, airports = pd.read_parquet(FLIGHTS), pd.read_parquet(AIRPORTS)
    inside = airports[airports["zone"].str.endswith(zone)]["airport"]
    here = flights[flights["destination"].isin(inside)]
    finest = here["destination"].nunique() < cells  # then aircraft are distinguished
    keys = ["destination", "aircraft"] if finest else ["destination"]
    found = here.groupby(keys)["flights"].sum().sort_index()
    chosen = found.iloc[np.linspace(0, len(found) - 1, min(cells, len(found))).astype(int)]
    named = chosen.index.get_level_values("destination")
    return Cut(zone, chosen.to_numpy(np.int64), np.unique(named, return_inverse=True)[1].astype(np.int64))


def _steps(cut: Cut, rng: np.random.Generator) -> Iterator[tuple[str, models.Model]]:
    """A step of each model, of the same flights."""
    counts, total = cut.counts, int(cut.counts.sum())
    tree = models.Tree([np.zeros(int(cut.airport.max()) + 1, np.int64), cut.airport])
    true: Any = tree.sum_up(counts)
    noisy, whole = counts + noise(rng, counts.shape, SCALE), true + noise(rng, true.shape, SCALE)
    yield "Chebyshev", models.Chebyshev(noisy, total)
    yield "FixedSum-L1", models.FixedSum(noisy, total, p=1)
    yield "FixedSum", models.FixedSum(noisy, total)
    yield "SparsestChebyshev", models.SparsestChebyshev(noisy, total)
    shares = [Fraction(int(count) * 64, max(total, 1)) for count in counts]
    yield "ControlledRounding", models.ControlledRounding(np.array(shares, dtype=object), 64)
    yield (
        "Isotonic-L1",
        models.Isotonic(np.cumsum(counts) + noise(rng, counts.shape, SCALE), p=1, integer=True),
    )
    yield "Isotonic", models.Isotonic(np.sort(counts) + noise(rng, counts.shape, SCALE), integer=True)
    yield "HierarchyQIP", models.HierarchyQIP(tree, whole[:, None], total)
    yield "TreeChebyshev", models.TreeChebyshev(tree, whole, total)
    yield "TreeAbsolute", models.TreeAbsolute(tree, whole)
    variance = np.where(np.arange(true.size) < 1, 1, 4)
    yield "ConstrainedInference", models.ConstrainedInference(tree, whole, variance)
    yield "NonNegativeInference", models.NonNegativeInference(tree, whole, integer=True)
    sizes = np.bincount(np.minimum(counts, 5), minlength=6)
    groups = np.array([np.bincount(np.minimum(counts[cut.airport == a], 5), minlength=6)
                       for a in range(int(cut.airport.max()) + 1)])  # fmt: skip
    flat = models.Tree([np.zeros(len(groups), np.int64)])
    by_size = np.vstack([sizes, groups])
    drawn: Any = noise(rng, by_size.shape, 2.0)
    by_size = np.cumsum(by_size, axis=1) + drawn
    yield "CumulativeQIP", models.CumulativeQIP(flat, by_size, int(counts.size))
    yield "SimplexQP", models.SimplexQP(sizes + noise(rng, sizes.shape, 2.0), int(counts.size))
    few = noisy[:WIDE]
    yield "Clustering", models.Clustering(np.sort(few), Fraction(int(SCALE)))
    yield "Segmentation", models.Segmentation(few, min(4, few.size))
    two = np.sort(np.vstack([noisy, counts + noise(rng, counts.shape, SCALE)]), axis=1)
    yield "Merging", models.Merging(np.maximum(two, 0), np.broadcast_to([[1], [3]], two.shape), integer=True)
    table = [np.abs(np.arange(9) - max(0, int(one) % 9)) for one in few[:12]]
    yield "CostTable", models.CostTable(table, min(30, 4 * len(table)))
    held = [np.sort(np.maximum(noisy[cut.airport == a], 0))[:6] for a in range(2)]
    runs = [tuple(part.astype(np.int64) for part in np.unique(one, return_counts=True)) for one in held]
    above = np.sort(np.maximum(np.concatenate(held) + noise(rng, sum(map(len, held)), 2.0), 0))
    whole_runs = tuple(part.astype(np.int64) for part in np.unique(above, return_counts=True))
    yield "GroupMatching", models.GroupMatching(whole_runs, runs)
