"""The decision table: for a table like yours, this method. Every cell follows from the measured means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.which_wins.flows import FLOWS
from benchmarks.which_wins.histograms import BOUND, HISTOGRAMS, MAP
from benchmarks.which_wins.rows import SETTING
from benchmarks.which_wins.sizes import SIZES
from hierdp.experiments.choosing.methods import BINS, COMMANDS, EMD, KLD, L1, RANGES

if TYPE_CHECKING:
    from pandas import DataFrame, Series

EPSILONS = (0.01, 0.1, 1.0)

NEARLY_EMPTY = ("NetTrace, rebuilt", "NETTRACE", "ADULTFRANK")
"""Histograms with more than 90 % empty bins; the others of one dimension have at most 52 %."""


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
    Need(FLOWS, "few missed cells", FLOWS, "missed flows", LEAVES),
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
    """The best methods of a group of settings.

    Attributes
    ----------
    methods : tuple of str
        The one with the least geometric mean of its errors over the least errors, and those within `ALIKE`
        of it; in the order of `COMMANDS`, where defaults come first.
    over : float
        The same mean of the next method, divided by the least.
    next : str
        That method; empty if there is none.
    best, settings : int
        In how many settings of the group the first method has the least error, or one whose interval
        overlaps it.
    """

    methods: tuple[str, ...]
    over: float
    next: str
    best: int
    settings: int


ALIKE = 1.05
"""Methods within this factor of the least mean are named together."""

TINY = 1e-9
"""Means below this count as this: some methods invent no cells."""


def choice(found: DataFrame) -> Choice | None:
    """The best methods among means of one need and ε, if any; a method must be in all settings."""
    here = found[found.method != BOUND]
    if here.empty:
        return None
    grouped = here.groupby(list(SETTING), dropna=False)["mean"]
    at_least = here.loc[grouped.transform("idxmin")]
    tied = (here["mean"] - here["half"]).to_numpy() <= (at_least["mean"] + at_least["half"]).to_numpy()
    ratio = np.log(np.maximum(here["mean"], TINY) / np.maximum(at_least["mean"].to_numpy(), TINY))
    by = ratio.groupby(here.method)
    scores: Series = by.mean()[by.size() == grouped.ngroups].sort_values(kind="stable")
    alike = scores.index[scores <= scores.iloc[0] + np.log(ALIKE)]
    methods = tuple(sorted(alike, key=[*COMMANDS].index))
    rest = scores.drop(alike)
    over = float(np.exp(rest.iloc[0] - scores.iloc[0])) if len(rest) else np.nan
    best = int((tied & (here.method == methods[0]).to_numpy()).sum())
    return Choice(methods, over, str(rest.index[0]) if len(rest) else "", best, grouped.ngroups)


def decision(found: DataFrame) -> DataFrame:
    """The table: a row for each need, a column for each ε, and the commands."""
    import pandas as pd

    table = []
    for need in NEEDS:
        cells, methods = {}, []
        here = need.of(found)
        for epsilon in EPSILONS:
            best = choice(here[here.epsilon == epsilon])
            cells[f"ε = {epsilon:g}"] = "" if best is None else _said(best)
            methods += [] if best is None else [best.methods[0]]
        named = ", ".join(f"`{COMMANDS[name]}`" for name in dict.fromkeys(methods))
        table.append({"table": need.table, "you need": need.need, **cells, "hierdp release": named})
    return pd.DataFrame(table)


def _said(best: Choice) -> str:
    """``AHP ×1.8 (4/5)``."""
    more = f" ×{_times(best.over)}" if best.next else ""
    named = [*best.methods[:2], *(["…"] if len(best.methods) > 2 else [])]
    return f"{', '.join(named)}{more} ({best.best}/{best.settings})"


def _times(factor: float) -> str:
    if factor > 1000:
        return ">1,000"
    return f"{factor:.2f}" if factor < 1.095 else f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"
