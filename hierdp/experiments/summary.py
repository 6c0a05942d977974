"""The runs of a comparison, summed up: means with their spread, by level, method and ε."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.execution import folder
from hierdp.reports import plots
from hierdp.reports.page import Section, page
from hierdp.versions import versions

if TYPE_CHECKING:
    from pandas import DataFrame

CASE = ("method", "epsilon", "run", "level", "cells")
"""Columns of a run that are not metrics."""

SHOWN = ("max_error", "false_positives", "false_negatives", "spearman", "top_100", "emd_per_region", "kld")
"""The metrics in the table of a level, after L1 and its interval and the root mean square error."""

CONFIDENCE = 0.95
SPREAD = "± is half of Student's 95% interval of its mean over the runs."

MOST_LEVELS = 12
"""Levels that a report has; of more, the last ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods side by side on public data.

    - title: the methods, and the question that they answer.
    - settings: everything that is needed to repeat it.
    - runs: one row for each run and level, with all metrics of `hierdp.metrics.cells.cell_errors`.
    """

    title: str
    settings: Mapping[str, Any]
    runs: DataFrame

    def __repr__(self) -> str:
        """A summary in one line."""
        return f"Comparison({self.title}; {self.settings['runs']} runs)"

    @cached_property
    def errors(self) -> DataFrame:
        """See `summed_up`."""
        return summed_up(self.runs)

    @property
    def summary(self) -> DataFrame:
        """A row for each level, ε and method, with the means of some metrics beside each other."""
        return _wide(self.errors)

    @property
    def seconds(self) -> DataFrame:
        """The median time of each method and ε."""
        each = self.runs.drop_duplicates(["method", "epsilon", "run"])
        found = each.groupby(["epsilon", "method"], sort=False)["seconds"].median()
        return found.reset_index()

    @property
    def levels(self) -> list[str]:
        """The levels that a report has, coarse ones first."""
        return list(dict.fromkeys(self.runs["level"]))[-MOST_LEVELS:]

    def shown(self, level: str) -> DataFrame:
        """The means of a level for readers: a row for each ε and method, with half the interval of L1."""
        from hierdp.reports.page import number

        found = self.summary[self.summary["level"] == level].rename(columns={"epsilon": "ε", "l1": "L1"})
        if "l1_high" in found:
            found["l1_high"] -= found["L1"]
        found = found.drop(columns=["level", "runs", "l1_low"], errors="ignore")
        found = found.rename(columns={"l1_high": "±", "rmse": "RMSE"}).dropna(axis="columns", how="all")
        for name in found.columns.drop("method"):
            found[name] = ["" if value != value else number(float(value), 3) for value in found[name]]
        return found

    def page(self) -> str:
        """The report as HTML."""
        runs, levels = self.settings["runs"], self.levels
        spread = SPREAD if runs > 1 else "There is one run, so no interval."
        words = (
            f"Means over {runs} runs with simulated noise. L1 is the sum of absolute errors over all cells."
        )
        texts = [f"{words} {spread}"]
        if len(levels) < self.runs["level"].nunique():
            texts.append(f"The last {MOST_LEVELS} levels; errors.csv has all.")
        sections = [Section("Errors by level", texts)]
        for level in levels:
            drawn = plots.svg(_figure(self.errors, [level]))
            sections.append(Section(level, pictures=[drawn], frames=[self.shown(level)]))
        words = "Seconds of noise and post-processing, without reading the table: the median over runs."
        settings = "; ".join(f"{name}: {value}" for name, value in self.settings.items())
        sections += [Section("Time", [words], frames=[self.seconds]), Section("Settings", [settings])]
        return page(self.title, sections)

    def write(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write ``report.html``, ``errors`` and ``runs`` (CSV, Parquet), ``errors.png``, ``settings.json``.

        Raises `InputError` if the folder exists, or its parent does not.
        """
        with folder.appearing(Path(path), overwrite) as aside:
            for name in ("runs", "errors"):
                frame = getattr(self, name)
                frame.to_parquet(aside / f"{name}.parquet", index=False)
                frame.to_csv(aside / f"{name}.csv", index=False)
            _figure(self.errors, self.levels).savefig(aside / "errors.png", dpi=130)
            settings = json.dumps(dict(self.settings), indent=2, ensure_ascii=False)
            (aside / "settings.json").write_text(settings + "\n", encoding="utf-8")
            (aside / "report.html").write_text(self.page(), encoding="utf-8")
        return Path(path)


def comparison_of(
    rows: Sequence[Mapping[str, Any]], question: str, settings: Mapping[str, Any]
) -> Comparison:
    """The comparison with these rows, one for each run and level; all methods answer one question."""
    import pandas as pd

    shown = {**settings, "versions": ", ".join(f"{name} {version}" for name, version in versions())}
    return Comparison(f"{settings['methods']}: {question}", shown, pd.DataFrame(rows))


def summed_up(runs: DataFrame) -> DataFrame:
    """One row for each level, method, ε and metric: its mean, standard deviation and 95% interval.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"method": "A", "epsilon": 1.0, "run": [0, 1], "level": "all", "l1": [4, 6]})
    >>> summed_up(runs).round(1).to_dict("records")[0]["mean"]
    5.0
    """
    import pandas as pd

    metrics = [name for name in runs.columns if name not in CASE]
    found = []
    for (level, epsilon, method), here in runs.groupby(["level", "epsilon", "method"], sort=False):
        for metric in metrics:
            values = here[metric].dropna().to_numpy(float)
            if values.size:
                low, high, deviation = _interval(values)
                found.append(
                    {
                        "level": level, "epsilon": epsilon, "method": method, "metric": metric,
                        "runs": values.size, "mean": float(values.mean()), "standard_deviation": deviation,
                        "low": low, "high": high,
                    }
                )  # fmt: skip
    order = {level: number for number, level in enumerate(dict.fromkeys(runs["level"]))}
    frame = pd.DataFrame(found)
    return frame.sort_values("level", key=lambda column: column.map(order), kind="stable").reset_index(
        drop=True
    )


def _interval(values: Any) -> tuple[float, float, float]:
    """Student's interval of the mean, and the standard deviation; NaN for a single value."""
    from scipy import stats

    if values.size < 2:
        return math.nan, math.nan, math.nan
    deviation = float(values.std(ddof=1))
    half = stats.t.ppf((1 + CONFIDENCE) / 2, values.size - 1) * deviation / math.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half), deviation


def _wide(errors: DataFrame) -> DataFrame:
    """A row for each level, ε and method, with the metrics beside each other."""
    import pandas as pd

    rows = []
    for (level, epsilon, method), here in errors.groupby(["level", "epsilon", "method"], sort=False):
        by_metric = here.set_index("metric")
        l1 = by_metric.loc["l1"].to_dict()
        more = {name: by_metric["mean"].get(name, math.nan) for name in ("rmse", *SHOWN)}
        rows.append(
            {
                "level": level, "epsilon": epsilon, "method": method, "runs": int(l1["runs"]),
                "l1": l1["mean"], "l1_low": l1["low"], "l1_high": l1["high"], **more,
            }
        )  # fmt: skip
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def _figure(errors: DataFrame, levels: Sequence[str]) -> Any:
    """L1 with its interval: a panel for each level; against ε, or a bar for each method if there is one ε."""
    l1 = errors[errors["metric"] == "l1"]
    drawn, panels, _ = plots.grid(len(levels), 3, 4, 2.8)
    methods = list(dict.fromkeys(l1["method"]))
    for axes, level in zip(panels, levels, strict=True):
        here = l1[l1["level"] == level]
        for k, method in enumerate(methods):
            own = here[here["method"] == method].sort_values("epsilon")
            half = np.nan_to_num((own["high"] - own["low"]).to_numpy() / 2)
            x = own["epsilon"] if l1["epsilon"].nunique() > 1 else np.full(len(own), k)
            axes.errorbar(x, own["mean"], half, label=method, capsize=3, **plots.style(k))
        if (here["mean"] > 0).all() and here["mean"].max() > 10 * here["mean"].min():
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        if l1["epsilon"].nunique() > 1:
            axes.set_xscale("log")
            axes.set_xlabel("ε")
        else:
            axes.set_xticks(range(len(methods)), methods, fontsize=7, rotation=20)
            axes.set_xlim(-0.5, len(methods) - 0.5)
        short = level if len(level) <= 42 else level[:41] + "…"
        if len(levels) > 1:  # a single panel is below its heading
            axes.set_title(short, loc="left", fontsize=8, fontweight="bold")
        axes.set_ylabel("L1", fontsize=8)
    if l1["epsilon"].nunique() > 1:
        plots.below(drawn, panels[:1], 5)
    return drawn
