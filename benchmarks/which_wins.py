"""Which method wins where? The count-of-counts methods of two papers, by one metric. Seeded, not timed.

Run as ``python -m benchmarks.which_wins --data ../shared/data --out docs``. All noise is independent. Budgets
are those of the whole release; groups may be empty; the metric is the earth mover's distance of Kuo et al.
2018 per region. M_c^dp and M_H^dp are Fioretto & Van Hentenryck 2019's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp import tables
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.data.census import census
from hierdp.data.taxi import taxi
from hierdp.demo import read
from hierdp.mechanisms import count_of_counts, group_size
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.mechanisms.group_size.repairs import METHODS
from hierdp.metrics.runs import earth_movers_runs
from hierdp.reports import plots
from hierdp.reproduce.runs import noise_for
from hierdp.reproduce.study import table_lines
from hierdp.tables import GroupSizes

if TYPE_CHECKING:
    from pandas import DataFrame

WAYS: dict[str, tuple[str, ...]] = {
    "bottom-up Hc": ("bottom-up", "weighted"),
    "bottom-up Hg": ("bottom-up Hg", "weighted"),
    "top-down Hc": ("Hc", "weighted"),
    "top-down Hc, plain": ("Hc", "plain"),
    "top-down Hg": ("Hg", "weighted"),
    "Hc, all levels at once": ("Hc", "at once"),
    "M_c^dp": (),
    "M_H^dp": (),
}
"""Method and merge of `count_of_counts`; none for the methods of `group_size`. "At once" is `TreeMatching` of
the levels' estimates, which is in neither paper, for up to three levels and up to 5,000 true sizes."""


@dataclass(frozen=True, eq=False)
class Case:
    """One point of a figure: data, bound on the sizes, budget."""

    figure: str
    data: str
    at: float
    counts: SizeRuns
    max_size: int
    epsilon: float = 1.0


def by_epsilon(sets: dict[str, tuple[SizeRuns, int]], epsilons: tuple[float, ...]) -> Iterator[Case]:
    """Every data set at every budget; K is the largest size that it is released to."""
    for name, (data, largest) in sets.items():
        for epsilon in epsilons:
            yield Case("epsilon", name, epsilon, data, largest, epsilon)


def by_bound(taxis: SizeRuns) -> Iterator[Case]:
    """The taxi data at increasingly loose bounds K."""
    for largest in (5_000, 20_000, 100_000):
        yield Case("bound", "taxi", largest, taxis, largest)


def by_depth(seed: int) -> Iterator[Case]:
    """The same 64 leaves under trees of 2 to 7 levels: 64 children, 8 × 8, 4 × 4 × 4, …, 2 × … × 2."""
    leaves = [_skewed(np.random.default_rng([seed, 1, leaf]), 2_000, 500) for leaf in range(64)]
    for parts in ((64,), (8, 8), (4, 4, 4), (4, 2, 2, 4), (2, 2, 4, 2, 2), (2,) * 6):
        yield Case("depth", "64 leaves", len(parts) + 1, _tree(leaves, parts), 500)


def by_density(seed: int) -> Iterator[Case]:
    """8 × 8 regions of 1,000 groups, whose sizes are spread evenly over ever more possible ones."""
    for largest in (10, 100, 1_000, 10_000):
        leaves = []
        for leaf in range(64):
            sizes = np.random.default_rng([seed, 2, largest, leaf]).integers(1, largest + 1, 1_000)
            leaves.append(np.unique(sizes, return_counts=True))
        yield Case("density", "64 leaves", 1_000 / largest, _tree(leaves, (8, 8)), largest)


def errors(case: Case, runs: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row per method, run and level."""
    places = case.counts.hierarchy
    true = case.counts.runs.capped(case.max_size)
    dense = GroupSizes(places, true.dense(case.max_size))
    for way, asked in WAYS.items():
        if "at once" in asked and (len(places.levels) > 3 or int(true.distinct[0]) > 5_000):
            continue
        for run in range(runs):
            query = asked[0] if asked else way  # methods with one query share their noise
            noise = noise_for(seed, case.figure, case.data, case.at, query, run)
            if asked:
                plan = plan_of(asked[0], places.levels, merge=asked[1], max_size=case.max_size)
                measured = count_of_counts.measure(case.counts, case.epsilon, noise, plan)
                made = count_of_counts.post_process(measured, places, plan)
            else:
                method = METHODS[way]
                noisy = group_size.measure(dense, case.epsilon, noise, method)
                repaired = group_size.post_process(group_size.noisy_of(noisy), places, dense.groups, method)
                made = Runs.from_dense(repaired.counts)
            distance = earth_movers_runs(true, made)
            for level, name in enumerate(places.levels):
                here = distance[places.tree.nodes_of(level)]
                yield {
                    "figure": case.figure, "data": case.data, "at": case.at, "method": way, "run": run,
                    "level": level, "name": name, "emd": float(here.sum()) / here.size,
                }  # fmt: skip


def winners(rows: DataFrame) -> DataFrame:
    """The best method of each point and level, and how far behind the others are."""
    import pandas as pd

    table = []
    for (figure, data, at, level, name), here in rows.groupby(
        ["figure", "data", "at", "level", "name"], sort=False
    ):
        means = here.groupby("method", sort=False).emd.mean()
        spread = here.groupby("method", sort=False).emd.std() / np.sqrt(here.run.nunique())
        best = means.idxmin()
        row = {"figure": figure, "data": data, "at": at, "level": f"{level} {name}", "best": best}
        row |= {way: means.get(way, np.nan) for way in WAYS}
        table.append({**row, "error_of_best": spread[best]})
    return pd.DataFrame(table)


def drawn(rows: DataFrame, figure: str, x: str) -> Any:
    """Panels by data set and level, one line per method; for trees of many depths, only root and leaves."""
    here = rows[rows.figure == figure]
    if figure == "depth":
        last = here.level == here["at"] - 1
        here = here.assign(level=last.astype(int), name=np.where(last, "leaves", "root"))[
            last | (here.level == 0)
        ]
    panels = [(d, int(k)) for d, one in here.groupby("data", sort=False) for k in sorted(set(one.level))]
    columns = min(3, len(panels))
    made, cells = plots.figure(
        3.5 * columns, 2.7 * -(-len(panels) // columns) + 0.5, columns, -(-len(panels) // columns)
    )
    for axes, (data, level) in zip(cells, panels, strict=False):
        _panel(axes, here[(here.data == data) & (here.level == level)], f"{data}: ", x)
    for axes in cells[len(panels) :]:
        axes.set_visible(False)
    for axes in cells[::columns]:
        axes.set_ylabel("distance a region (entities)", fontsize=8)
    handles, labels = cells[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return made


def _panel(axes: Any, here: DataFrame, prefix: str, x: str) -> None:
    for k, way in enumerate(WAYS):
        mine = here[here.method == way].groupby("at").emd
        if not len(mine):
            continue
        bars: Any = (mine.std() / np.sqrt(mine.count())).fillna(0)
        label = way if way[:2] != "M_" else f"${way[0]}_{way[2]}^{{{way[4:]}}}$"
        axes.errorbar(mine.mean().index, mine.mean(), yerr=bars, capsize=2, linewidth=1, label=label,
                      **_style(k))  # fmt: skip
    axes.set_yscale("log")
    plots.plain_log(axes.yaxis)
    places = sorted(set(here["at"]))
    if max(places) > 20 * min(places) or x.startswith("ε"):
        axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:,g}" for place in places])
    axes.minorticks_off()
    axes.tick_params(labelsize=7)
    axes.set_title(prefix + str(here["name"].iloc[0]), loc="left", fontsize=9, fontweight="bold")
    axes.set_xlabel(x, fontsize=8)


def _style(k: int) -> dict[str, Any]:
    """One line more than there are colours: the last is hollow."""
    more = {"fillstyle": "none", "linestyle": "--"} if k >= len(plots.COLOURS) else {}
    return {**plots.style(k % len(plots.COLOURS)), "markersize": 4, **more}


def _skewed(rng: np.random.Generator, groups: int, largest: int) -> tuple[Any, Any]:
    """Many small groups, a few large ones."""
    sizes = np.minimum(1 + np.floor(rng.pareto(1.2, groups) * 3), largest).astype(np.int64)
    return np.unique(sizes, return_counts=True)


def _tree(leaves: list[tuple[Any, Any]], parts: tuple[int, ...]) -> SizeRuns:
    """Regions divided into the given numbers of parts, level by level, with these leaves."""
    total = len(leaves)
    columns, count = {}, 1
    for level, part in enumerate(parts, start=1):
        count *= part
        columns[f"level {level}"] = [f"{leaf // (total // count):02}" for leaf in range(total)]
    places = Hierarchy.from_columns(columns, list(columns))
    return SizeRuns(places, Runs.from_rows(leaves).summed_up(places.tree))


def data_sets(data: Path, seed: int) -> dict[str, tuple[SizeRuns, int]]:
    """The data sets, each with the largest size that it is released to."""
    sets: dict[str, tuple[SizeRuns, int]] = {}
    if (data / "taxi").is_dir():
        sets["taxi"] = SizeRuns.of(taxi(data / "taxi")), 5_000
    flights, _ = read()
    sets["flights"] = SizeRuns.of(flights), flights.counts.shape[1] - 1
    homes = data / "us-households-7-pumas.parquet"
    if homes.exists():
        made = tables.group_sizes(
            homes, group=["household"], levels=["state", "puma"], entities="persons", max_size=20
        )
        sets["households"] = SizeRuns.of(made), 20
    sets["census"] = SizeRuns.of(census(seed, 1_176_304, 520, 1_000)), 1_000
    return sets


def main() -> None:
    """Run all comparisons, and write, print and draw them."""
    import pandas as pd

    asked = argparse.ArgumentParser()
    asked.add_argument("--data", type=Path, default=Path("../shared/data"))
    asked.add_argument("--out", type=Path, default=Path())
    asked.add_argument("--runs", type=int, default=5)
    asked.add_argument("--seed", type=int, default=0)
    given = asked.parse_args()
    sets = data_sets(given.data, given.seed)
    cases = [*by_epsilon(sets, (0.1, 0.3, 1.0, 3.0)), *by_depth(given.seed), *by_density(given.seed)]
    if "taxi" in sets:
        cases += by_bound(sets["taxi"][0])
    rows = pd.DataFrame([row for case in cases for row in errors(case, given.runs, given.seed)])
    rows.to_parquet(given.out / "which-wins.parquet", index=False)
    print("\n".join(table_lines(winners(rows))))

    for name, x in (
        ("epsilon", "ε in all"),
        ("bound", "bound K on sizes"),
        ("depth", "levels, the root's included"),
        ("density", "groups a possible size, in a leaf"),
    ):
        if (rows.figure == name).any():
            drawn(rows, name, x).savefig(given.out / f"which-wins-{name}.png", dpi=110)


if __name__ == "__main__":
    main()
