"""True counts by bin, and sums over ranges, beside those of a histogram (range-query, clustering)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.axes import Axis, Names, Numbers
from hierdp.counts.boxes import END, FIRST
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import Regions
from hierdp.errors import InputError, listed
from hierdp.mechanisms.range_query.answers import RangeAnswers
from hierdp.mechanisms.range_query.reading import answers_in
from hierdp.mechanisms.truth import Settings, TruthReader, region_column
from hierdp.metrics.histogram import kld
from hierdp.metrics.level import Level
from hierdp.metrics.ranges import box_sums, prefix_sums, range_places
from hierdp.tables.binning import Histogram, histogram
from models.arithmetic.arrays import Ints

MOST_RANGES = 20_000
"""If there are more ranges of a size, this many are compared, at places drawn uniformly from a fixed seed."""

SHARES = (1 / 16, 1 / 4, 1 / 2)
"""Lengths of the ranges that are compared, as shares of each axis."""


def options(source: Any, table: Any, settings: Settings, _: Regions, columns: Settings) -> dict[str, Any]:
    """See `TruthReader.options`; the bins are the release's."""
    axes: list[Any] = []
    for axis in answers_in(table, settings).axes:
        if isinstance(axis, Names):
            column = region_column(source, axis.name, (columns.get("axes") or {}).get(axis.name))
            axes.append((axis.name, (Hierarchy.flat(axis.name, axis.names), column)))
        else:
            axes.append(axis)
    return {**{name: value for name, value in columns.items() if name != "axes"}, "axes": axes}


def levels(data: Histogram, table: Any, settings: Settings, _: Regions) -> list[Level]:
    """The bins; the regions of a hierarchy over the bins, if it was measured; and ranges of some lengths."""
    answers = answers_in(table, settings)
    true = _aligned(data, answers.axes)
    prefixes, shape = prefix_sums(true), true.shape
    bins = _level("bins", prefixes, answers, *_all(shape, (1,) * len(shape)))
    found = [replace(bins, more={"kld": kld(bins.true, bins.released)} if true.any() else {})]
    for name, low, high, regions in _by_region(table, answers.axes):
        rows = table[table["level_name"] == name]["count"].to_numpy()

        def names(at: Ints, regions: Any = regions) -> Sequence[str]:
            return [str(regions[i]) for i in at]

        found.append(Level(name, box_sums(prefixes, low, high), rows, len(rows), names))
    for share in SHARES:
        box = tuple(max(1, round(share * bins)) for bins in shape)
        if math.prod(box) > 1:
            words = " × ".join(f"{bins:,}" for bins in box)
            level = _level(f"ranges of {words} bins", prefixes, answers, *_all(shape, box))
            found.append(replace(level, sums=True))
    return found


def _level(name: str, prefixes: NDArray[Any], answers: RangeAnswers, low: Ints, high: Ints) -> Level:
    def names(at: Ints) -> Sequence[str]:
        return [_label(answers.axes, low[i], high[i]) for i in at]

    return Level(name, box_sums(prefixes, low, high), answers.box(low, high).estimate, len(low), names)


def _label(axes: Sequence[Axis], low: Ints, high: Ints) -> str:
    """A box in words: ``age 10:15``; names have no ends if they are one."""
    parts = []
    for axis, first, end in zip(axes, low, high, strict=True):
        begin, stop = (str(side) for side in axis.ends(first, end))
        alone = end == first + 1 and (isinstance(axis, Names) or (isinstance(axis, Numbers) and axis.whole))
        single = alone and (isinstance(axis, Names) or float(stop) == float(begin) + 1)
        parts.append(f"{axis.name} {begin}" if single else f"{axis.name} {begin}:{stop}")
    return ", ".join(parts)


def _all(shape: tuple[int, ...], box: tuple[int, ...]) -> tuple[Ints, Ints]:
    """All boxes of a shape, or `MOST_RANGES` of them; single bins are all taken."""
    places = [n - s + 1 for n, s in zip(shape, box, strict=True)]
    if math.prod(places) > MOST_RANGES and math.prod(box) > 1:
        ((low, high),) = range_places(shape, [box], MOST_RANGES)
        return low, high
    low = np.stack(np.unravel_index(np.arange(math.prod(places)), places), axis=1).astype(np.int64)
    return low, low + np.array(box)


def _by_region(table: Any, axes: Sequence[Axis]) -> Iterator[tuple[str, Ints, Ints, Any]]:
    """The levels of regions between the root and the bins, as boxes with names."""
    if "level_name" not in table:
        return
    for level in range(1, int(table["level"].max())):
        rows = table[table["level"] == level]
        low, high = (
            np.stack([rows[f"{axis.name}_{end}"].to_numpy(np.int64) for axis in axes], axis=1)
            for end in (FIRST, END)
        )
        yield str(rows["level_name"].iloc[0]), low, high, rows["region"].to_numpy(object)


def _aligned(data: Histogram, axes: Sequence[Axis]) -> Ints:
    """The true counts, with named bins in the release's order.

    Raises `InputError` if the release has other bins.
    """
    counts = data.counts
    for place, (own, released) in enumerate(zip(data.axes, axes, strict=True)):
        if isinstance(own, Names):
            at = {str(name): i for i, name in enumerate(own.names)}
            lost = [str(name) for name in released.labels if str(name) not in at]
            if lost or own.bins != released.bins:
                raise InputError(
                    f"{own.name}: the true table has other bins; there is no {listed(lost or at)}"
                )
            counts = counts.take([at[str(name)] for name in released.labels], axis=place)
    return counts


TRUTH = TruthReader(
    "counts by bin, and sums over ranges",
    ("axes", "count", "unknown", "clip"),
    histogram,
    ("axes", "count", "unknown", "clip"),
    options,
    levels,
)
