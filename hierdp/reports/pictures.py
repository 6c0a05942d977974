"""Pictures of numbers, as data that a page's template draws. The same numbers give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hierdp.reports.page import number
from models.arithmetic.arrays import Floats, Ints

Ends = tuple[Floats, Floats] | None
"""The lower and the upper ends of intervals, if there are some; NaN where a number has none."""

WIDTH, HEIGHT = 600, 240
"""Units of a chart of points; a page stretches it to the screen."""

MOST_CELLS = 128
"""Largest number of cells per side of a chart; more bins are averaged."""

SKEWED = 20
"""Shades are logarithmic if the largest number exceeds the median positive one by this factor."""


@dataclass(frozen=True)
class Heat:
    """Numbers by named rows and columns: a table whose cells are shaded by their numbers."""

    kind: ClassVar[str] = "heat"
    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Floats
    ends: Ends = None

    @property
    def lines(self) -> list[tuple[str, list[tuple[int, str, str]]]]:
        """Each row's name and cells: the shade in percent, the number, the interval."""
        shades, _ = shaded(self.values)
        ends = [np.full(self.values.shape, np.nan)] * 2 if self.ends is None else self.ends
        rows = zip(shades.tolist(), self.values.tolist(), *(end.tolist() for end in ends), strict=True)
        return [
            (
                name,
                [
                    (shade, number(value, 3), interval(*pair))
                    for shade, value, *pair in zip(*row, strict=True)
                ],
            )
            for name, row in zip(self.rows, rows, strict=True)
        ]

    @property
    def note(self) -> str:
        """What the shades mean."""
        return shaded(self.values)[1]


@dataclass(frozen=True)
class Axis:
    """An axis of a chart, linear or logarithmic."""

    label: str
    low: float
    high: float
    log: bool = False

    def at(self, values: Any) -> Floats:
        """Places from 0, the low end, to 1; a logarithmic axis has lower values at its low end."""
        ends = np.array([self.low, self.high]), np.asarray(values, dtype=float)
        (low, high), places = (np.log10(np.maximum(end, self.low)) for end in ends) if self.log else ends
        shares: Floats = (places - low) / (high - low)
        return shares

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places and texts of a few round numbers."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            values = [10.0**power for power in range(first, last + 1, 1 + (last - first) // 6)]
        else:
            step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
            step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 4)
            values = [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        texts = [number(value, 6) if abs(value) < 1e8 else f"{value:.3g}" for value in values]
        return list(zip([round(float(self.at(value)), 4) for value in values], texts, strict=True))


@dataclass(frozen=True)
class Chart:
    """Marks between two axes.

    - marks: the kind, the opacity and the path (SVG) of each.
    - box: the corner, the width and the height of the drawing.
    """

    kind: ClassVar[str] = "chart"
    title: str
    across: Axis
    up: Axis
    marks: Sequence[tuple[str, float, str]]
    box: tuple[float, float, int, int] = (0, 0, WIDTH, HEIGHT)
    note: str = ""


def points(
    title: str, across: Axis, label: str, at: Any, values: Floats, ends: Ends = None, log: bool = False
) -> Chart:
    """Dots, with a line from end to end of their intervals.

    Those in one column of the picture are one mark, from the smallest to the largest.

    - at: the places of the values along the axis, in order.
    """
    every = np.concatenate([values, *(ends or ())])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    if log:
        up = Axis(label, 0.5, 10.0 ** max(1, math.ceil(math.log10(high))), log)
    else:
        up = Axis(label, min(0.0, low), max(0.0, high) if low or high else 1.0)
    columns = np.rint(WIDTH * across.at(at)).astype(int)
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    marks = [("grid", 1.0, "".join(f"M0 {HEIGHT * (1 - place):.1f}h{WIDTH}" for place, _ in up.ticks))]
    for kind, opacity, pair in (("line", 0.4, ends), ("dot", 1.0, (values, values))):
        if pair is not None:
            lower, upper = np.fmin.reduceat(pair[0], starts), np.fmax.reduceat(pair[1], starts)
            places = zip(
                columns[starts], HEIGHT * (1 - up.at(lower)), HEIGHT * (1 - up.at(upper)), strict=True
            )
            path = "".join(f"M{x} {low:.1f}V{high:.1f}" for x, low, high in places if low == low)
            marks.append((kind, opacity, path))
    return Chart(title, across, up, marks)


def grid(title: str, across: Axis, up: Axis, values: Floats) -> Chart:
    """A cell for each bin of two axes, shaded by its number; shape (bins across, bins up)."""
    bins = values.size
    for axis in (0, 1):
        parts = np.array_split(values, min(MOST_CELLS, values.shape[axis]), axis)
        values = np.stack([part.mean(axis) for part in parts], axis)
    shades, note = shaded(values)
    width, height = values.shape
    if values.size < bins:
        note += f" A cell shows the mean of about {bins / values.size:.3g} bins."
    marks = [
        ("cell", shade / 100, "".join(f"M{i} {height - 1 - j}h1" for i, j in np.argwhere(shades == shade)))
        for shade in np.unique(shades[shades > 0]).tolist()
    ]
    return Chart(title, across, up, marks, (0, -0.5, width, height), note)


def shaded(values: Floats) -> tuple[Ints, str]:
    """The shades of numbers in percent, in steps of 5, and what they mean."""
    low, high, positive = float(values.min()), float(values.max()), values[values > 0]
    note = "Shaded from {} (palest) to {} (strongest){}."
    if positive.size and high > SKEWED * float(np.median(positive)):
        part = np.log1p(np.maximum(values, 0)) / math.log1p(high)
        note = note.format("0 or less", number(high, 3), ", by the logarithm")
    else:
        part = (values - low) / ((high - low) or 1.0)
        note = note.format(number(low, 3), number(high, 3), "")
    return 5 * np.rint(20 * part).astype(np.int64), note


def interval(lower: float, upper: float) -> str:
    """An interval in words; empty if there is none."""
    return "" if lower != lower else f"{number(lower, 3)} to {number(upper, 3)}"
