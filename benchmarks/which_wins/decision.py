"""The decision table: for a table like yours, this method. Every cell follows from the measured means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.which_wins.flows import FLOWS
from benchmarks.which_wins.histograms import BINS, HISTOGRAMS, KLD, MAP, NOT_PRIVATE, RANGES, RIVALS
from benchmarks.which_wins.rows import SETTING
from benchmarks.which_wins.sizes import EMD, L1, SIZES

if TYPE_CHECKING:
    from pandas import DataFrame, Series

EPSILONS = (0.01, 0.1, 1.0)

NEARLY_EMPTY = ("NetTrace, rebuilt", "NETTRACE", "ADULTFRANK")
"""Histograms with more than 90 % empty bins; the others of one dimension have at most 52 %."""

COMMANDS = {
    "bottom-up Hc": "count-of-counts --method bottom-up",
    "bottom-up Hg": 'count-of-counts --method "bottom-up Hg"',
    "top-down Hc": "count-of-counts",
    "top-down Hc, plain": "count-of-counts --merge plain",
    "top-down Hg": "count-of-counts --method Hg",
    "Hc, all levels at once": 'count-of-counts --merge "at once"',
    "M_c^dp": "group-size",
    "M_H^dp": "group-size --method M_H^dp",
    **{name: f"top-down --method {name}" for name in ("InfTDA_large", "TDA_L2", "TDA", "VanillaGauss", "SH")},
    "InfTDA": "top-down",
    **{name: f"clustering --method {name}" for name in ("AHP-by-place", "NF", "PHP", "GS", "Laplace")},
    "AHP": "clustering",
    "H_b^c": "range-query",
    "H_b^c, non-negative": "range-query --repair non-negative",
    "H_2^c": "range-query --method H_2^c",
    "Wavelet": "range-query --method Wavelet",
    "Quadtree": "range-query --method Quadtree",
}
"""`hierdp release …` of every method of hierdp."""


@dataclass(frozen=True)
class Need:
    """A row of the table: a kind of table, and what is needed of it."""

    table: str
    need: str
    kind: str
    metric: str
    where: str

    def of(self, found: DataFrame) -> DataFrame:
        """Its means: one setting for each data set and ε, or each point of a figure."""
        here = found[(found.kind == self.kind) & (found.metric == self.metric)]
        return here[here.eval(self.where)]


SPARSE = "(figure == 'density' and at < 1)"
DENSE = f"not {SPARSE} and figure != 'bound'"
ONE = f"data != '{MAP}'"
EMPTY = f"data in {NEARLY_EMPTY}"
SOME = f"data not in {(*NEARLY_EMPTY, MAP)}"
ROOT, LEAVES = "level == 0", "level == depth - 1"
BY_SIZE, MOVED, COUNTS = "groups by size", "entities to move", "counts by size"

NEEDS = (
    Need(BY_SIZE, f"{MOVED}: root", SIZES, EMD, f"{ROOT} and {DENSE}"),
    Need(BY_SIZE, f"{MOVED}: leaves", SIZES, EMD, f"{LEAVES} and {DENSE}"),
    Need(BY_SIZE, f"{COUNTS}: root", SIZES, L1, f"{ROOT} and {DENSE}"),
    Need(BY_SIZE, f"{COUNTS}: leaves", SIZES, L1, f"{LEAVES} and {DENSE}"),
    Need("ten sizes a group", f"{MOVED}: all levels", SIZES, EMD, SPARSE),
    Need("ten sizes a group", f"{COUNTS}: all levels", SIZES, L1, SPARSE),
    Need(FLOWS, "totals of destinations", FLOWS, "L1", "level == 1"),
    Need(FLOWS, "cells, L1", FLOWS, "L1", LEAVES),
    Need(FLOWS, "cells, largest error", FLOWS, "largest error", LEAVES),
    Need(FLOWS, "few invented cells", FLOWS, "share of invented flows", LEAVES),
    Need("histogram, > 90 % empty", "shape (KLD)", HISTOGRAMS, KLD, EMPTY),
    Need("histogram, > 90 % empty", "bins", HISTOGRAMS, BINS, EMPTY),
    Need("histogram, > 90 % empty", "ranges", HISTOGRAMS, RANGES, EMPTY),
    Need("histogram, others", "shape (KLD)", HISTOGRAMS, KLD, SOME),
    Need("histogram, others", "bins", HISTOGRAMS, BINS, SOME),
    Need("histogram, others", "ranges", HISTOGRAMS, RANGES, SOME),
    Need("map", "shape (KLD)", HISTOGRAMS, KLD, f"data == '{MAP}'"),
    Need("map", "bins", HISTOGRAMS, BINS, f"data == '{MAP}'"),
    Need("map", "boxes", HISTOGRAMS, RANGES, f"data == '{MAP}'"),
)


@dataclass(frozen=True)
class Choice:
    """The best method of a group of settings.

    Attributes
    ----------
    method : str
        The one with the least geometric mean of its errors over the least errors.
    over : float
        The same mean of the best other method, divided by this one's.
    other : str
        That other method.
    best, settings : int
        In how many settings of the group it has the least error, or one whose interval overlaps it.
    """

    method: str
    over: float
    other: str
    best: int
    settings: int


def choice(found: DataFrame, without: tuple[str, ...] = NOT_PRIVATE) -> Choice | None:
    """The best method among means of one need and ε, if any; it must be in all settings."""
    here = found[~found.method.isin(without)]
    if here.empty:
        return None
    keys = list(SETTING)
    least = here.groupby(keys, dropna=False)["mean"].transform("min")
    at_least = here.loc[here.groupby(keys, dropna=False)["mean"].transform("idxmin")]
    top = (at_least["mean"] + at_least["half"]).to_numpy()
    tied = (here["mean"] - here["half"]).to_numpy() <= top
    settings = here.groupby(keys, dropna=False).ngroups
    ratio = np.log(np.maximum(here["mean"], TINY) / np.maximum(least, TINY))
    by = ratio.groupby(here.method)
    scores: Series = by.mean()[by.size() == settings].sort_values(kind="stable")
    method, other = scores.index[0], scores.index[min(1, len(scores) - 1)]
    times = int((tied & (here.method == method).to_numpy()).sum())
    over = float(np.exp(scores[other] - scores[method]))
    return Choice(method, over, other, times, settings)


TINY = 1e-9
"""Means below this count as this: some methods invent no cells."""


def decision(found: DataFrame) -> DataFrame:
    """The table: a row for each need, a column for each ε, and the commands."""
    import pandas as pd

    table = []
    for need in NEEDS:
        cells, methods = {}, []
        here = need.of(found)
        for epsilon in EPSILONS:
            group = here[here.epsilon == epsilon]
            best = choice(group)
            ours = choice(group, (*NOT_PRIVATE, *RIVALS))
            cells[f"ε = {epsilon:g}"] = "" if best is None or ours is None else _said(best, ours)
            methods += [] if ours is None else [ours.method]
        named = ", ".join(f"`{COMMANDS[name]}`" for name in dict.fromkeys(methods))
        table.append({"table": need.table, "you need": need.need, **cells, "hierdp release": named})
    return pd.DataFrame(table)


def _said(best: Choice, ours: Choice) -> str:
    """``AHP ×1.8 (4/5)``: the next method has 1.8 times its error; it is best or tied in 4 of 5 settings."""
    told = f"{best.method} ×{_times(best.over)} ({best.best}/{best.settings})"
    return told if best.method == ours.method else f"*{told}*; {ours.method}"


def _times(factor: float) -> str:
    if factor > 1000:
        return " over 1,000"
    return f"{factor:.2f}" if factor < 1.095 else f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"
