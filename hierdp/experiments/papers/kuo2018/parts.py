"""Tables and figures from the runs, beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.size_runs import SizeRuns
from hierdp.experiments.papers.kuo2018.experiments import ORIGINAL
from hierdp.experiments.papers.kuo2018.settings import BOTTOM_UP, NAIVE, README, REGIONS
from hierdp.experiments.run import by_level, summed_up
from hierdp.experiments.study import Part
from hierdp.metrics.runs import omniscient
from hierdp.reports import plots

if TYPE_CHECKING:
    from pandas import DataFrame

Line = tuple[str, str]
"""A method and a merge."""


def about(sets: Mapping[str, SizeRuns]) -> Part:
    """Statistics of the data."""
    import pandas as pd

    rows = [
        {
            "data": name, "hierarchy": ", ".join(f"{n:,}" for n in data.hierarchy.tree.level_sizes),
            "groups": data.groups, "entities": int(data.runs.people[0]),
            "sizes": int(data.runs.distinct[0]), "largest": int(data.runs.of(0)[0].max()),
        }
        for name, data in sets.items()
    ]  # fmt: skip
    texts = [
        "Housing: the paper's recipe, with the national shares of sizes for every state. Hawaiian: the "
        "nation's blocks, placed in states and counties at random. Taxi: exactly the paper's data."
    ]
    return Part("data", "The data", texts, {"data": pd.DataFrame(rows)})


PUBLISHED = {
    "taxi": "Taxi", "housing, nation": "part. synth.", "Hawaiian": "Hawaiian",
    "Synthetic": "part. synth.", "White": "White",
}  # fmt: skip
"""The names of our data sets in the published table."""


def taxi_table(runs: DataFrame, readme: Mapping[str, int] | None) -> Part:
    """The bottom-up table: published, and ours with one seed for all regions and with independent noise."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (name, method), mine in runs.groupby(["data", "method"], sort=False):
        if published := BOTTOM_UP.get(PUBLISHED.get(str(name), "")):
            levels = {f"level_{k}": value for k, value in enumerate(published[method == "Hc"])}
            rows.append({"data": name, "method": method, "noise": "published", "runs": 1, **levels})
        for (noise, fit), here in mine.groupby(["noise", "fit"], sort=False):
            row = {"data": name, "method": method, "noise": noise, "fit": fit, "runs": here.run.nunique()}
            rows.append(row | by_level(here.emd, here.level))
    texts = [
        "Earth mover's distance per region, total ε = 1; means, and the standard deviation of one run (std). "
        "Fit: which optimum of Hc's least absolute deviations. Coherence: published bottom-up errors over "
        "the most that they can be. README: the root alone, with the authors' draws (seed 20): five optimal "
        "fits."
    ]
    frames = {"bottom_up": pd.DataFrame(rows), "coherence": coherence()}
    if readme:
        frames["readme"] = pd.DataFrame([{**readme, "published": README}])
    return Part("table", "Bottom-up and top-down (§6.2.2)", texts, frames)


def coherence() -> DataFrame:
    """Evidence in the published bottom-up rows alone."""
    import pandas as pd

    rows = []
    for name, ((root, middle, leaf), _) in BOTTOM_UP.items():
        _, inner, leaves = REGIONS[name]
        most = leaves * leaf
        row = {"data": name, "level_0": root, "at_most": most, "share": root / most}
        rows.append(row | {"level_1": middle, "at_most_1": most / inner, "share_1": middle * inner / most})
    return pd.DataFrame(rows)


NAIVE_NAMES = {**{name: name for name in NAIVE}, "taxi": "Taxi", "housing, nation": "Synthetic"}
"""The names of our data sets in the published row of the naive method."""


def naive(runs: DataFrame) -> Part:
    """The naive row, beside the other methods of one region."""
    found = runs.groupby(["data", "method"], sort=False).emd
    table = found.agg(runs="size", emd="mean", std="std").reset_index()
    printed = table.data.map(NAIVE_NAMES).map(NAIVE)
    table["published"] = printed.where(table.method == "naive")
    texts = ["The root alone at ε = 1: earth mover's distance, means, standard deviation of one run."]
    return Part("naive", "The naive method (§6.2.1)", texts, {"one_region": table})


def naive_answers(found: DataFrame) -> Part:
    """The naive row: what each explanation of the printed numbers would give."""
    import pandas as pd

    table = (
        found.groupby(["data", "answer"], sort=False).emd.agg(["min", "mean", "max", "count"]).reset_index()
    )
    names = [name for name in dict.fromkeys(table.data) if NAIVE_NAMES.get(name) in NAIVE]
    printed = [{"data": name, "answer": "published", "mean": NAIVE[NAIVE_NAMES[name]]} for name in names]
    table = pd.concat([pd.DataFrame(printed), table], ignore_index=True)
    texts = [
        "The root alone at ε = 1. Reduced at the largest or smallest sizes: ends of the optima for p = 1."
    ]
    return Part("naive_answers", "The naive row: which answer?", texts, {"naive_answers": table})


def matching(runs: DataFrame) -> Part:
    """Line 12 of Algorithm 1: matching by updated and by original estimates."""
    means = runs.groupby(["data", "method", "epsilon", "level", "merging"], sort=False).emd.mean()
    table = means.unstack("merging").reset_index().rename_axis(columns=None)
    table = table.rename(columns={"weighted": "by_updated_estimates", ORIGINAL: "by_original_estimates"})
    table["ratio"] = table.by_original_estimates / table.by_updated_estimates
    texts = [
        "Line 12 of Algorithm 1 prints the estimates from before a node's own update; a release updates."
    ]
    return Part("matching", "Matching by updated or by original estimates", texts, {"matching": table})


def figure_1(rows: DataFrame) -> Part:
    """Figure 1: the errors by size of group."""
    means = rows.groupby(["group", "true_size", "method"]).error.mean().unstack("method")
    table = means.add_prefix("error_").rename_axis(columns=None).reset_index()
    drawn, panels = plots.figure(8.5, 4.2, panels=1, rows=2)
    width = np.diff(table.group, append=rows.attrs["groups"])
    for axes, method in zip(panels, ("Hg", "Hc"), strict=True):
        axes.bar(table.group, table[f"error_{method}"], width, align="edge", color=plots.COLOURS[0])
        plots.label(axes, NAMES[method], y="error (trips)")
        axes.set_xlim(0, rows.attrs["groups"])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[1].set_xlabel("groups in order of size (the cumulative sum of their counts)")
    marks = _marks(table, rows.attrs["groups"])
    above = panels[0].secondary_xaxis("top")
    above.set_xticks([at for at, _ in marks], [f"{size:,}" for _, size in marks], fontsize=7)
    above.set_xlabel("true size (trips)", fontsize=8)
    texts = ["Taxi, the root at ε = 1: errors added up over each hundredth of the groups in order of size."]
    return Part("figure1", "Figure 1: where the errors are", texts, {"figure1": table}, drawn)


def figure(
    number: int, runs: DataFrame, lines: Sequence[Line], sets: Mapping[str, SizeRuns], texts: Sequence[str]
) -> Part:
    """A panel per data set and level, a line per method, and an omniscient method as a reference."""
    import pandas as pd

    here = pd.concat([runs[(runs.method == m) & (runs.merging == g)] for m, g in lines])
    here = here[here.data.isin(list(sets))]
    by = ["data", "level", "name", "method", "merging", "epsilon"]
    groups = here.groupby(by, sort=False).emd
    table = groups.agg(["mean", "std", "count"]).reset_index()
    table["error_of_mean"] = table["std"] / np.sqrt(table["count"])
    known = []
    for name, data in sets.items():
        places = data.hierarchy
        for epsilon in sorted(set(table.epsilon)):
            every = omniscient(places.tree, places.levels, data.runs, epsilon * len(places.levels))
            known += [{"data": name, "epsilon": epsilon, **row} for row in every.to_dict("records")]
    yardstick = pd.DataFrame(known)
    drawn = _grid(table, yardstick, lines, sets)
    title = {4: "weighted and plain merging", 5: "two levels", 6: "three levels"}[number]
    said = [
        *texts,
        "Means, with bars of one standard deviation of the mean. Dotted: the expected error of an omniscient "
        "method, which knows the sizes that occur in each region.",
    ]
    frames = {f"figure{number}": table, f"omniscient{number}": yardstick}
    return Part(f"figure{number}", f"Figure {number}: {title}", said, frames, drawn)


def joint(rows: DataFrame) -> Part:
    """Matching all levels at once: its objective, and its errors."""
    best = rows[rows.method == "all levels at once"].set_index(["epsilon", "run", "level"]).cost

    def compared(mine: DataFrame) -> dict[str, Any]:
        cost = mine.set_index(["epsilon", "run", "level"]).cost
        found = {"runs": mine.run.nunique(), "distance_to_estimates": cost.mean()}
        levels = {f"level_{level}": emd.mean() for level, emd in mine.groupby("level").emd}
        return found | {"excess": (cost / best[cost.index] - 1).mean()} | levels

    table = summed_up(rows.rename(columns={"epsilon": "epsilon_a_level"}).assign(epsilon=rows.epsilon),
                      ["epsilon_a_level", "method"], compared)  # fmt: skip
    texts = [
        "Taxi, Hc at each level, from the same estimates. Distance: the sum over all regions of the earth "
        "mover's distances to the estimates, and its excess over the proved minimum (`models.TreeMatching`). "
        "Family by family: Algorithm 2 down the tree, with medians. Merged: Algorithm 1. Levels: distance "
        "per region from the truth."
    ]
    return Part("joint", "All levels at once", texts, {"joint": table})


NAMES = {"naive": "naive", "Hc": "$H_c$", "Hg": "$H_g$", "Hc2": "$H_c$ (p = 2)", "Hg1": "$H_g$ (p = 1)"}


def lines_of(methods: Sequence[str], merges: Sequence[str] = ("weighted",)) -> list[Line]:
    """Every method with every merge."""
    return [(method, merge) for method in methods for merge in merges]


def _marks(table: DataFrame, groups: int) -> list[tuple[int, int]]:
    """Positions at which a round size is first reached, not too close to each other."""
    marks = list[tuple[int, int]]()
    for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000):
        past = table.group[table.true_size >= size]
        if len(past) and (not marks or past.iloc[0] - marks[-1][0] > groups / 14):
            marks.append((int(past.iloc[0]), size))
    return marks


def _label(method: str, merge: str, several: bool) -> str:
    name = " × ".join(NAMES[one] for one in method.split(" x "))
    return f"{name}, {merge}" if several else name


def _grid(table: DataFrame, yardstick: DataFrame, lines: Sequence[Line], sets: Mapping[str, SizeRuns]) -> Any:
    columns = max(len(data.hierarchy.levels) for data in sets.values())
    drawn, panels = plots.figure(3.1 * columns + 0.6, 2.7 * len(sets) + 0.5, columns, len(sets))
    several = len({merge for _, merge in lines}) > 1
    order = list(dict.fromkeys(method for method, _ in lines))
    for place, axes in enumerate(panels):
        name, level = list(sets)[place // columns], place % columns
        here = table[(table.data == name) & (table.level == level)]
        for method, merge in lines:
            mine = here[(here.method == method) & (here.merging == merge)]
            kind = {**plots.style(order.index(method)), "markersize": 4, "linewidth": 1.1}
            if merge == "plain":
                kind |= {"linestyle": "--", "fillstyle": "none"}
            bars = mine.error_of_mean.fillna(0)
            label = _label(method, merge, several)
            axes.errorbar(mine.epsilon, mine["mean"], yerr=bars, capsize=2, label=label, **kind)
        known = yardstick[(yardstick.data == name) & (yardstick.level == level)]
        axes.plot(known.epsilon, known.emd_per_region, ":", color="#666666", label="omniscient")
        below = "privacy budget per level" * (place // columns == len(sets) - 1)
        left = "distance per region (entities)" * (level == 0)
        plots.label(axes, f"{name}: {here.name.iloc[0]}", below, left, "xy", here.epsilon)
        axes.tick_params(labelsize=7)
    plots.below(drawn, panels[:1], 2 * columns)
    return drawn
