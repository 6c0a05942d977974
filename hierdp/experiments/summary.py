"""The runs of a comparison, summed up: means with their spread, by level, method and ε."""

from __future__ import annotations

import json
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

LEFT_OUT = ("cells", "mean_error", "relative", "bias", "negative", "kendall", "top_10")
"""The metrics that are not in the table of a level; all others are, after L1 and its interval."""

CASE = ["level", "epsilon", "mechanism"]

CONFIDENCE = 0.95
SPREAD = "± is half of Student's 95% interval of its mean over the runs."

MOST_LEVELS = 12
"""Levels that a report has; of more, the last ones."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods side by side on public data.

    - title: the methods, and the question that they answer.
    - settings: everything that is needed to repeat it.
    - runs: one row for each run, level and metric; see `hierdp.experiments.run.run`.
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
        """A row for each level, ε and mechanism, with the means of the metrics beside each other."""
        means = self.errors.pivot(index=CASE, columns="metric", values="mean")
        l1 = self.errors[self.errors["metric"] == "l1"].set_index(CASE)
        ends = {"runs": l1["runs"], "l1": l1["mean"], "l1_low": l1["low"], "l1_high": l1["high"]}
        more = [name for name in dict.fromkeys(self.errors["metric"]) if name not in ("l1", *LEFT_OUT)]
        found = l1[[]].assign(**ends).join(means[more])
        return found.dropna(axis="columns", how="all").reset_index()

    @property
    def seconds(self) -> DataFrame:
        """The median time of each mechanism and ε."""
        each = self.runs.drop_duplicates(["mechanism", "epsilon", "seed"])
        return each.groupby(CASE[1:], sort=False)["seconds"].median().reset_index()

    @property
    def same_noise(self) -> list[str]:
        """The mechanisms that start from the same noisy answers in every run, in words."""
        noise = self.runs.drop_duplicates([*CASE[1:], "seed"]).groupby("mechanism", sort=False)["noise"]
        alike: dict[Any, list[str]] = {}
        for mechanism, digests in noise:
            alike.setdefault(tuple(digests), []).append(str(mechanism))
        return [", ".join(names) for names in alike.values() if len(names) > 1]

    @property
    def levels(self) -> list[str]:
        """The levels that a report has, coarse ones first."""
        return list(dict.fromkeys(self.runs["level"]))[-MOST_LEVELS:]

    def shown(self, level: str) -> DataFrame:
        """The means of a level for readers: a row for each ε and mechanism, with half the interval of L1."""
        from hierdp.reports.page import number

        found = self.summary[self.summary["level"] == level].rename(columns={"epsilon": "ε", "l1": "L1"})
        if "l1_high" in found:
            found["l1_high"] -= found["L1"]
        found = found.drop(columns=["level", "runs", "l1_low"], errors="ignore")
        found = found.rename(columns={"l1_high": "±", "rmse": "RMSE"}).dropna(axis="columns", how="all")
        for name in found.columns.drop("mechanism"):
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
        texts += [f"From the same noisy answers in each run: {names}." for names in self.same_noise]
        if len(levels) < self.runs["level"].nunique():
            texts.append(f"The last {MOST_LEVELS} levels; errors.csv has all.")
        sections = [Section("Errors by level", texts)]
        for level in levels:
            drawn = plots.svg(_figure(self.runs, self.errors, [level]))
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
            _figure(self.runs, self.errors, self.levels).savefig(aside / "errors.png", dpi=130)
            settings = json.dumps(dict(self.settings), indent=2, ensure_ascii=False)
            (aside / "settings.json").write_text(settings + "\n", encoding="utf-8")
            (aside / "report.html").write_text(self.page(), encoding="utf-8")
        return Path(path)


def comparison_of(rows: DataFrame, question: str, settings: Mapping[str, Any]) -> Comparison:
    """The comparison with these rows; see `hierdp.experiments.run.run`."""
    shown = {**settings, "versions": ", ".join(f"{name} {version}" for name, version in versions())}
    return Comparison(f"{settings['methods']}: {question}", shown, rows)


def summed_up(runs: DataFrame) -> DataFrame:
    """One row for each level, mechanism, ε and metric: its mean, standard deviation and 95% interval.

    Examples
    --------
    >>> import pandas as pd
    >>> case = {"mechanism": "A", "epsilon": 1.0, "level": "all", "metric": "l1"}
    >>> found = summed_up(pd.DataFrame({**case, "seed": [0, 1], "value": [4, 6]}))
    >>> found[["runs", "mean"]].values.tolist()
    [[2.0, 5.0]]
    """
    from scipy import stats

    known = runs[(runs["metric"] != "cells") & runs["value"].notna()]
    frame = known.groupby([*CASE, "metric"], sort=False)["value"].agg(["size", "mean", "std"]).reset_index()
    frame = frame.rename(columns={"size": "runs", "std": "standard_deviation"})
    factor = stats.t.ppf((1 + CONFIDENCE) / 2, frame["runs"] - 1)  # NaN for a single run
    half = factor * frame["standard_deviation"] / np.sqrt(frame["runs"])
    frame = frame.assign(low=frame["mean"] - half, high=frame["mean"] + half)
    order = {level: number for number, level in enumerate(dict.fromkeys(runs["level"]))}
    return frame.sort_values("level", key=lambda one: one.map(order), kind="stable", ignore_index=True)


def _figure(runs: DataFrame, errors: DataFrame, levels: Sequence[str]) -> Any:
    """L1 of every run, its mean and interval: a panel for each level, with one scale for all mechanisms.

    Against ε if there are several; otherwise side by side.
    """
    l1, every = (frame[frame["metric"] == "l1"] for frame in (errors, runs))
    drawn, panels, _ = plots.grid(len(levels), 3, 4, 2.8)
    names, several = list(dict.fromkeys(l1["mechanism"])), l1["epsilon"].nunique() > 1
    for axes, level in zip(panels, levels, strict=True):
        short = level if len(level) <= 42 else level[:41] + "…"
        title = short if len(levels) > 1 else ""  # a single panel is below its heading
        plots.label(axes, title, "ε" * several, "L1", "x" * several, set(l1["epsilon"]) if several else ())
        here, dots = (frame[frame["level"] == level] for frame in (l1, every))
        for k, name in enumerate(names):
            own, mine = (side[side["mechanism"] == name].sort_values("epsilon") for side in (here, dots))
            middle = k - (len(names) - 1) / 2  # aside, so that coinciding marks remain visible
            x = own["epsilon"] * 1.05**middle if several else np.full(len(own), k)
            at = mine["epsilon"] * 1.05 ** (middle + 0.4) if several else np.full(len(mine), k + 0.15)
            kind = plots.style(k)
            axes.plot(at, mine["value"], ".", color=kind["color"], alpha=0.5, markersize=4)
            half = np.nan_to_num((own["high"] - own["low"]).to_numpy() / 2)
            axes.errorbar(x, own["mean"], half, label=name, capsize=3, **kind)
        low, high = dots["value"].min(), dots["value"].max()
        axes.set(**({"yscale": "log"} if 0 < low < high / 10 else {"ylim": (0, None)}))
        if not several:
            axes.set_xticks(range(len(names)), names, fontsize=7, rotation=20)
            axes.set_xlim(-0.5, len(names) - 0.5)
    if several:
        plots.below(drawn, panels[:1], 5)
    return drawn
