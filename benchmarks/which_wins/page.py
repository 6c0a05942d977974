"""The tables of the pages, from the measured rows, between ``<!-- which-wins: NAME -->`` marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.which_wins.decision import decision
from benchmarks.which_wins.flows import FLOWS
from benchmarks.which_wins.histograms import BOUND, HISTOGRAMS, MAP
from benchmarks.which_wins.rows import means
from benchmarks.which_wins.sizes import HEADS, SIZES
from benchmarks.which_wins.zcdp import ZCDP
from hierdp.experiments.choosing.methods import BINS, EMD, KLD, L1, RANGES
from hierdp.mechanisms.registry import MECHANISMS

if TYPE_CHECKING:
    from pandas import DataFrame

MARKED = re.compile(r"(<!-- which-wins: ([\w-]+) -->).*?(<!-- /which-wins -->)", re.DOTALL)

FLOW_METHODS = tuple(one.name for one in MECHANISMS["top-down"].methods if one.name != "TDA_inf")

PLACE_COLUMNS = ("AHP", "AHP-by-place", "PHP", "Laplace", "H_b^c", "DAWA", "DAWA for bins", "PrivTree", BOUND)


def filled(text: str, rows: DataFrame) -> str:
    """A page with its marked places filled."""
    found = means(rows)

    def place(at: re.Match[str]) -> str:
        return f"{at[1]}\n\n{TABLES[at[2]](rows, found)}\n\n{at[3]}"

    return MARKED.sub(place, text)


def table(name: str, rows: DataFrame) -> str:
    """One of the tables."""
    return TABLES[name](rows, means(rows))


def shown(value: float) -> str:
    """Three digits, or a whole number with commas."""
    if np.isnan(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def lines(heads: list[str], table: list[list[str]]) -> str:
    """A table in Markdown."""
    made = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(made + ["| " + " | ".join(row) + " |" for row in table])


def _decision(_: DataFrame, found: DataFrame) -> str:
    table = decision(found)
    return lines(list(table.columns), [[str(cell) for cell in row] for row in table.itertuples(index=False)])


def _runs(rows: DataFrame, found: DataFrame) -> str:
    minutes = rows.groupby("kind", sort=False).seconds.sum() / 60
    each = "; ".join(f"{kind} {spent:.0f}" for kind, spent in minutes.items())
    settings = found.groupby("kind", sort=False).best.sum()
    runs = rows.groupby("kind", sort=False).run.max() + 1
    many = "; ".join(f"{kind} {count:,} × {runs[kind]}" for kind, count in settings.items())
    return (
        f"Settings (data, ε, level, error) × runs: {many}. Minutes, on a machine that was busy with other "
        f"work: {minutes.sum():.0f} ({each})."
    )


def _sizes(figure: str, at: str, metric: str, _: DataFrame, found: DataFrame) -> str:
    """Means of all methods; bold: the least, and those whose intervals overlap it."""
    here = found[(found.kind == SIZES) & (found.figure == figure) & (found.metric == metric)]
    if figure == "epsilon":
        here = here[here["at"].isin((0.1, 1.0))]
    if figure == "depth":
        here = here[(here.level == 0) | (here.level == here.depth - 1)]
    table = []
    for (data, point, _level, name), group in here.groupby(["data", "at", "level", "name"], sort=False):
        cells = group.set_index("method")
        best = cells[cells.best].iloc[0]
        row = [str(data), f"{point:g}", str(name)]
        for way in HEADS:
            value = shown(cells["mean"].get(way, np.nan))
            row.append(f"**{value}**" if way in cells.index and cells.tied[way] else value)
        table.append([*row, f"{100 * best.half / best['mean']:.0f} %"])
    return lines(["data", at, "level", *HEADS.values(), "±"], table)


def _winners(kind: str, metric: str, _: DataFrame, found: DataFrame) -> str:
    """The best method of each setting, with its interval; and the next one."""
    here = found[(found.kind == kind) & (found.metric == metric) & (found.method != BOUND)]
    here = here[here["mean"].notna()]
    epsilons = sorted(set(here.epsilon))
    flows = kind == FLOWS
    table = []
    keys = ["data", "level", "name"] if flows else ["data"]
    for key, group in here.groupby(keys, sort=False):
        row = [str(key[0]), _level(str(key[2]))] if flows else [str(key[0])]
        for epsilon in epsilons:
            cells = group[group.epsilon == epsilon].sort_values("mean", kind="stable")
            row.append(_two(cells) if len(cells) else "")
        table.append(row)
    return lines(["data", *(["level"] if flows else []), *(f"ε = {each:g}" for each in epsilons)], table)


def _finest(metric: str, _: DataFrame, found: DataFrame) -> str:
    """All methods, at the finest level of origin/destination tables."""
    here = found[(found.kind == FLOWS) & (found.metric == metric) & (found.level == found.depth - 1)]
    table = []
    for (data, epsilon), group in here.groupby(["data", "epsilon"], sort=False):
        cells = group.set_index("method")
        values = [shown(cells["mean"][name]) for name in FLOW_METHODS]
        values = [f"**{v}**" if cells.tied[name] else v for v, name in zip(values, FLOW_METHODS, strict=True)]
        table.append([str(data), f"{epsilon:g}", *values])
    return lines(["data", "ε", *FLOW_METHODS], table)


def _level(name: str) -> str:
    """``origin root × destination dest_state`` without what repeats."""
    return name.replace("origin origin", "origin").replace("destination destination", "destination")


def _two(cells: DataFrame) -> str:
    """The best method, its error and interval, and how much more the next one has."""
    one, other = cells.iloc[0], cells.iloc[1]
    tied = int((cells["mean"] - cells.half <= one["mean"] + one.half).sum()) - 1
    more = f"{other.method} ×{other['mean'] / one['mean']:.2f}" if one["mean"] > 0 else other.method
    ties = f"; {tied} tied" if tied else ""
    return f"**{one.method}** {shown(one['mean'])} ± {shown(one.half)} ({more}{ties})"


def _by_place(metric: str, _: DataFrame, found: DataFrame) -> str:
    """All methods beside DAWA and PrivTree."""
    here = found[(found.kind == HISTOGRAMS) & (found.metric == metric) & (found.data != MAP)]
    columns = [name for name in PLACE_COLUMNS if name in set(here.method)]
    table = []
    for (data, epsilon), group in here.groupby(["data", "epsilon"], sort=False):
        cells = group.set_index("method")
        fair = cells.loc[[name for name in columns if name != BOUND]]
        least = fair["mean"].min()
        row = [str(data), f"{epsilon:g}"]
        for name in columns:
            mean, half = cells["mean"][name], cells.half[name]
            value = shown(mean) if name == BOUND else f"{shown(mean)} ± {shown(half)}"
            row.append(f"**{value}**" if name != BOUND and mean == least else value)
        table.append(row)
    return lines(["data", "ε", *columns], table)


def _wins(_: DataFrame, found: DataFrame) -> str:
    """How often each method of groups by size has the least error."""
    here = found[(found.kind == SIZES) & (found.metric == EMD) & found.best]
    counts = here.method.value_counts()
    text = ", ".join(f"{HEADS.get(name, name)} in {count}" for name, count in counts.head(5).items())
    rest = counts[5:].sum()
    return f"Of {len(here)} settings and levels, the least error is that of {text}, others in {rest}."


def _zcdp(_: DataFrame, found: DataFrame) -> str:
    """Errors with Gaussian noise over those with geometric noise: geometric means over the data sets."""
    about = ["figure", "data", "at", "epsilon", "level", "depth", "metric", "method"]
    pure = found[found.kind == SIZES]
    both = found[found.kind == ZCDP].merge(pure[[*about, "mean"]], on=about, suffixes=("", "_pure"))
    both["ratio"] = np.log(both["mean"] / both.mean_pure)
    both["place"] = np.select([both.level == 0, both.level == both.depth - 1], ["root", "leaves"], "between")
    ratios = np.exp(both.groupby(["metric", "place", "method"], sort=False).ratio.mean()).unstack()
    table = [
        [m, place, *map(shown, row)] for (m, place), row in zip(ratios.index, ratios.to_numpy(), strict=True)
    ]
    return lines(["error", "level", *(HEADS[name] for name in ratios)], table)


TABLES: dict[str, Callable[[DataFrame, DataFrame], str]] = {
    "decision": _decision,
    "runs": _runs,
    "wins": _wins,
    "epsilon": partial(_sizes, "epsilon", "ε", EMD),
    "depth": partial(_sizes, "depth", "levels", EMD),
    "density": partial(_sizes, "density", "groups a size", EMD),
    "bound": partial(_sizes, "bound", "K", EMD),
    "counts-by-size": partial(_sizes, "epsilon", "ε", L1),
    "zcdp": _zcdp,
    "flows-l1": partial(_winners, FLOWS, "L1"),
    "flows-largest": partial(_winners, FLOWS, "largest error"),
    "flows-invented": partial(_finest, "share of invented flows"),
    "flows-missed": partial(_finest, "missed flows"),
    "kld": partial(_winners, HISTOGRAMS, KLD),
    "bins": partial(_winners, HISTOGRAMS, BINS),
    "ranges": partial(_winners, HISTOGRAMS, RANGES),
    "places-kld": partial(_by_place, KLD),
    "places-bins": partial(_by_place, BINS),
    "places-ranges": partial(_by_place, RANGES),
}
"""The tables, by name."""
