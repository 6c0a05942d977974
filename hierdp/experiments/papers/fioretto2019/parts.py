"""Tables and figures from the runs, beside the published figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.data.census import PUBLISHED
from hierdp.experiments.papers.fioretto2019.published import SIZES, TABLE_1, TAXI_GROUPS, TAXI_REGIONS
from hierdp.experiments.papers.fioretto2019.settings import SCALABLE
from hierdp.experiments.run import by_level, summed_up
from hierdp.experiments.study import Part
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.reports import plots
from hierdp.tables import GroupSizes

if TYPE_CHECKING:
    from pandas import DataFrame


def about(sets: dict[str, GroupSizes], homes: bool) -> Part:
    """Statistics of the data, and a comparison of the census with the published totals."""
    import pandas as pd

    rows = [
        {
            "data": name, "hierarchy": ", ".join(f"{n:,}" for n in data.hierarchy.tree.level_sizes),
            "sizes": data.counts.shape[1] - 1, "groups": data.groups,
            "individuals": int(data.counts[0] @ np.arange(data.counts.shape[1])), "cells": data.counts.size,
        }
        for name, data in sets.items()
    ]  # fmt: skip
    root = sets["census"].counts[0]
    scaled = np.array(PUBLISHED) * root.sum() / sum(PUBLISHED)
    totals = pd.DataFrame(
        {
            "size": ["1", "2", "3", "4", "5", "6", "7 or more"],
            "published_thousands": PUBLISHED,
            "scaled": np.rint(scaled).astype(int),
            "generated": [*root[1:7].tolist(), int(root[7:].sum())],
        }
    )
    shares = "workers' homes in the commuting file" if homes else "a lognormal law, because there is no file"
    texts = [
        "Census: the published national totals of 2010, a tail beyond size 7, and 50 outliers in 10 … "
        f"{root.size - 1:,}; the regions' shares are those of {shares}."
    ]
    return Part("data", "The data", texts, {"data": pd.DataFrame(rows), "census_totals": totals})


def table_1(runs: DataFrame, name: str) -> Part:
    """Error by level and violations, of one data set."""
    key = name.replace(", ", "_").replace(" ", "_")

    def beside(mine: DataFrame) -> dict[str, Any]:
        epsilon, method = float(mine.epsilon.iloc[0]), mine.method.iloc[0]
        tables = TABLE_1.get(("taxi" if name.startswith("taxi") else name, epsilon))
        published = tables[SCALABLE.index(method)] if tables else (np.nan,) * 4
        row = {"runs": mine.run.nunique(), **by_level(mine.l1, mine.level, "L1_level_{}", "±_{}")}
        row["violations"] = mine.violations.mean()
        return (
            row
            | {f"published_{level}": published[level - 1] for level in (1, 2, 3)}
            | {"published_CV": published[3]}
        )

    texts = [
        "Mean L1 error of all regions of a level, its standard deviation over runs (±), and mean number of "
        "(region, size) pairs whose children do not add up; beside the printed values."
    ]
    table = summed_up(runs[runs.data == name], ["epsilon", "method"], beside)
    return Part(f"table1-{key}", f"Table 1, {name}: L1 error by level", texts, {f"table1_{key}": table})


def figure_9(runs: DataFrame) -> Part:
    """Runtime against ε."""
    first = runs[runs.level == 1]
    table = first.groupby(["data", "method", "epsilon"]).seconds.agg(["median", "min", "max"]).reset_index()
    drawn = _by_epsilon(first, "seconds", "post-processing (seconds, proof included)", "median")
    texts = ["Medians over runs; bars from the least to the most. The paper: Gurobi 8, one 2.1 GHz core."]
    frames = {"figure9": table.rename(columns={"median": "median_seconds"})}
    return Part("figure9", "Figure 9: runtime", texts, frames, drawn)


def figure_10(runs: DataFrame) -> Part:
    """Error against ε."""
    total = runs.groupby(["data", "method", "epsilon", "run"])["l1"].sum().reset_index()
    table = total.groupby(["data", "method", "epsilon"]).l1.agg(["mean", "std", "count"]).reset_index()
    drawn = _by_epsilon(total, "l1", "L1 error, all levels (groups)")
    texts = ["L1 error of all levels together, means over runs; bars from the least to the largest run."]
    frames = {"figure10": table.rename(columns={"mean": "mean_L1", "count": "runs"})}
    return Part("figure10", "Figure 10: error", texts, frames, drawn)


def figure_8(found: DataFrame, time_limit: float) -> Part:
    """Runtime of all seven methods against N."""
    table = (
        found.groupby(["sizes", "method"], sort=False)
        .agg(
            variables=("variables", "first"),
            runs=("run", "count"),
            status=("status", lambda every: ", ".join(dict.fromkeys(every))),
            proved=("proved", "all"),
            median_seconds=("seconds", "median"),
            most_seconds=("seconds", "max"),
        )
        .reset_index()
    )
    drawn, (axes,) = plots.figure(7, 4)
    for name, here in table.groupby("method", sort=False):
        style = _style(str(name))
        axes.plot(here.sizes, here.median_seconds, **style)
        late = here[~here.proved]
        axes.plot(late.sizes, late.median_seconds, "o", fillstyle="none", markersize=13, color=style["color"])
    axes.axhline(time_limit, color="#888888", linestyle=":", linewidth=1)
    plots.label(axes, "", "number of sizes N", "seconds (ringed: stopped)", "y")
    plots.beside(axes)
    texts = [
        f"All seven methods on the small data with sizes to N, ε = 1; {time_limit:g} s for each integer "
        "program and for the tables of M_dp^OP; medians over runs. M_H and M_c by HiGHS, M_dp^OP by CP-SAT "
        "in the paper's window. A method that reaches the limit is run once, and not on larger N."
    ]
    frames = {"figure8": table, "figure8_runs": found}
    return Part("figure8", "Figure 8: runtime against N", texts, frames, drawn)


def joint(found: DataFrame) -> Part:
    """M_c^dp and M_c^r against the optimum of M_c."""

    def compared(here: DataFrame) -> dict[str, Any]:
        done = here.dropna()
        row = {"variables": int(here.variables.iloc[0]), "instances": len(here), "solved": len(done)}
        if done.empty:
            return row
        return row | {
            "M_c^dp_objective_excess": (done["objective M_c^dp"] / done["objective M_c"] - 1).mean(),
            "M_c^dp_optimal": int((done["objective M_c^dp"] == done["objective M_c"]).sum()),
            **{f"L1_{name}": done[f"l1 {name}"].mean() for name in ("M_c", "M_c^dp", "M_c^r")},
            "M_c^dp_closer": int((done["l1 M_c^dp"] < done["l1 M_c"]).sum()),
            "violations_M_c^r": done["violations M_c^r"].mean(),
        }

    texts = [
        "Excess: how much larger M_c^dp's objective (C1) is. Closer: the number of instances on which M_c^dp "
        "is nevertheless closer to the truth."
    ]
    frames = {"joint": summed_up(found, ["sizes", "epsilon"], compared), "joint_runs": found}
    return Part("joint", "M_c^dp against the joint optimum M_c", texts, frames)


def window(found: DataFrame) -> Part:
    """The effect of truncated domains."""
    table = (
        found.groupby(["epsilon", "window"], sort=False)
        .agg(
            half_width=("half_width", "first"),
            instances=("run", "count"),
            infeasible=("infeasible", "sum"),
            changed=("changed", "sum"),
            mean_objective_excess=("objective_excess", "mean"),
            mean_L1_excess=("l1_excess", "mean"),
        )
        .reset_index()
    )
    texts = [
        "Domains {ñ − δ … ñ + δ} ∩ ℤ₊ against all of ℤ₊, λ the noise's scale. Infeasible: without consistent "
        "counts of the right total. Excess: over the untruncated optimum, if feasible."
    ]
    return Part("window", "Truncated domains", texts, {"window": table})


def cells(found: DataFrame) -> Part:
    """The cost tables from constraint programs against those from slopes."""
    texts = [
        "Each cell of each cost table, computed by CP-SAT (M_dp^OP) and by merging slopes (M_H^dp, Eq. 4)."
    ]
    return Part("cells", "Cost tables, cell by cell", texts, {"cells": found})


def _style(method: str) -> dict[str, Any]:
    """The colour, marker and name of each method, the same in every figure."""
    letter, _, rest = method.partition("_")
    below, _, above = rest.partition("^")
    label = f"${letter}_{{{below}}}" + (f"^{{{above}}}$" if above else "$")
    return {**plots.style(list(METHODS).index(method)), "label": label}


def _by_epsilon(rows: DataFrame, value: str, unit: str, centre: str = "mean") -> Any:
    """One panel per data set, one line per method."""
    names: Sequence[str] = list(dict.fromkeys(rows.data))
    drawn, panels = plots.figure(4.2 * len(names) + 1.2, 3.6, panels=len(names))
    for axes, name in zip(panels, names, strict=True):
        for k, method in enumerate(SCALABLE):
            mine = rows[(rows.data == name) & (rows.method == method)].groupby("epsilon")[value]
            # Aside, so that coinciding lines remain visible.
            plots.line(axes, mine, "", k, centre, 1.04 ** (k - 1.5), **_style(method))
        plots.label(axes, name, "privacy budget ε", log="xy", ticks=rows.epsilon)
    panels[0].set_ylabel(unit)
    plots.beside(panels[-1])
    return drawn


def bounds(method: str) -> tuple[int, ...]:
    """The largest L1 error of each level on the taxis, whose number of groups is G; errors are whole.

    Two tables of counts ≥ 0 that both add up to G differ by at most 2G in L1: ‖x − y‖₁ ≤ ‖x‖₁ + ‖y‖₁. At
    every level the true counts add up to G, if every group is in one region of the level, as the paper's
    condition 4 (faithfulness) has it. So do the answers of the exact methods, by conditions 2 to 4.

    A rounded relaxation may miss G. A count moves by at most ½, so M_H^r adds up to at most G + RN/2 at a
    level of R regions and N sizes. Rounded cumulative counts remain monotone; their last entries, one a
    region, add up to at most G + R/2, so M_c^r does. At the root they are G itself. This holds if the program
    was solved: its answer before rounding satisfies (H2) to (H4), or (C2) to (C5).
    """
    extra = {"M_H^r": SIZES["taxi"] / 2, "M_c^r": 1 / 2}.get(method, 0.0)
    rounded = [0.0 if method == "M_c^r" and regions == 1 else extra * regions for regions in TAXI_REGIONS]
    return tuple(2 * TAXI_GROUPS + math.floor(more) for more in rounded)


def taxi_bound() -> Part:
    """Each published error of the taxis, its bound, and whether it is within."""
    import pandas as pd

    rows = [
        {
            "epsilon": epsilon, "method": method, "level": level, "published": printed, "bound": limit,
            "verdict": "above the bound" if printed > limit else "within",
        }
        for (name, epsilon), table in TABLE_1.items()
        if name == "taxi"
        for method, errors in zip(SCALABLE, table, strict=True)
        for level, (printed, limit) in enumerate(zip(errors, bounds(method), strict=False), start=1)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    above = int((frame.verdict != "within").sum())
    least = math.ceil(float(frame.published[frame.method.str.endswith("dp")].max()) / 2)
    texts = [
        f"{above} of {len(frame)} published errors are above their bound, of the exact methods 2G = "
        f"{2 * TAXI_GROUPS:,} (with 3,973 leaves; with the 263 zones of the paper's text the bounds are "
        f"lower). If a group were a taxi in a zone, none would be above 2G from {least:,} groups on."
    ]
    return Part("taxi-bound", "The taxis' errors against their own G", texts, {"taxi_bound": frame})
