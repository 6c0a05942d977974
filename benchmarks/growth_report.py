"""The curves of cost as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import ratio_in_words, seconds_in_words
from hierdp.reports import plots
from hierdp.reproduce.study import table_lines

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = 4


def best_exact(rows: DataFrame) -> DataFrame:
    """For each model and size, the fastest exact backend that reaches the proved optimum."""
    exact = rows[(rows["program"] != "fast") & (rows["verdict"] == "solved")]
    return exact.sort_values("seconds").drop_duplicates(["model", "size"]).set_index(["model", "size"])


def tried(rows: DataFrame) -> DataFrame:
    """The points of exact backends that accept the model."""
    refused = (rows["verdict"] == "unsupported") & (rows["size"] == rows["size"].min())
    return rows[(rows["program"] != "fast") & ~refused]


def given_up(rows: DataFrame) -> DataFrame:
    """For each model and size that no exact backend solved, the first one to fail."""
    exact = tried(rows)
    solved = exact.groupby(["model", "size"])["verdict"].transform(lambda all_: (all_ == "solved").any())
    return exact[~solved.astype(bool)].drop_duplicates(["model", "size"]).set_index(["model", "size"])


def ours(rows: DataFrame) -> DataFrame:
    """The fast path's points that were completed."""
    return rows[(rows["program"] == "fast") & (rows["failed"] == "")]


def table(rows: DataFrame) -> DataFrame:
    """One row for each model and size."""
    import pandas as pd

    best, lost, made = best_exact(rows), given_up(rows), []
    order = {name: k for k, name in enumerate(dict.fromkeys(rows["model"]))}
    for row in sorted(ours(rows).to_dict("records"), key=lambda row: (order[row["model"]], row["size"])):
        seconds, elements = row["seconds"], row["elements"]
        key = row["model"], row["size"]
        peer = best.loc[key] if key in best.index else None
        none = f"none: {_became(lost.loc[key])}" if key in lost.index else ""
        made.append(
            {
                "model": row["model"],
                "elements": f"{int(elements):,}",
                "fast path": seconds_in_words(seconds),
                "ns each": ratio_in_words(1e9 * seconds / elements),
                "× reading": ratio_in_words(seconds / row["reading_seconds"]),
                "certificate": seconds_in_words(row["certificate_seconds"]),
                "× fast path": ratio_in_words(row["certificate_seconds"] / seconds),
                "MB more": f"{row['mb']:,.0f}",
                "proved": "yes" if row["verdict"] == "proved" else "no",
                "best exact": none if peer is None else peer["program"],
                "its time": "" if peer is None else seconds_in_words(peer["seconds"]),
                "× ours, proved": ""
                if peer is None
                else ratio_in_words(peer["seconds"] / (seconds + row["certificate_seconds"])),
            }
        )
    return pd.DataFrame(made)


def markdown(rows: DataFrame, stops: dict[str, str]) -> str:
    """The table, and where each curve ends and why."""
    ends = [
        f"- {why}: {'; '.join(model for model, other in stops.items() if other == why)}"
        for why in dict.fromkeys(stops.values())
    ]
    lines = [_end(here) for _, here in tried(rows).groupby("model", sort=False)]
    parts = ["\n".join(table_lines(table(rows)))]
    if ends:
        parts.append("Where a fast path's curve ends before 10⁸, and why:\n\n" + "\n".join(ends))
    if lines:
        parts.append("Where the exact backends end:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _end(rows: DataFrame) -> str:
    """The last size of each exact backend of a model, and its outcome."""
    said = []
    for program, here in rows.groupby("program", sort=False):
        last = here.sort_values("size").iloc[-1]
        said.append(f"{program} at {last['size']:,} ({_became(last)})")
    return f"- {rows['model'].iloc[0]}: {', '.join(said)}"


def _became(row: Any) -> str:
    """The outcome of an exact backend's last attempt."""
    words = {"solved": f"solved in {seconds_in_words(row['seconds'])}", "stopped": "out of time"}
    return str(row["failed"] or words.get(row["verdict"], row["verdict"]))


def draw(rows: DataFrame, path: Path, limit: float) -> None:
    """Seconds per element against elements, one panel per model; exact backends had `limit` seconds."""
    import matplotlib

    models = list(dict.fromkeys(rows["model"]))
    with matplotlib.rc_context(plots.STYLE):
        drawn, panels, _ = plots.grid(len(models), COLUMNS, 2.3, 2.2)
        best, lost = best_exact(rows).reset_index(), given_up(rows).reset_index()
        for k, axes in enumerate(panels):
            here = ours(rows)
            here = here[here["model"] == models[k]].sort_values("size")
            _panel(axes, here, best[best["model"] == models[k]].sort_values("size"))
            ends = lost.loc[lost["model"] == models[k], "size"].to_numpy(float)[:1]
            axes.plot(ends, limit / ends, "x", color=_look(3)["color"], label=f"not solved in {limit:g} s")
            below = "elements" * (k >= len(models) - COLUMNS)
            plots.label(axes, models[k], below, "time an element" * (k % COLUMNS == 0))
        handles, names = panels[0].get_legend_handles_labels()
        drawn.legend(handles, names, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
        drawn.savefig(path, dpi=110)


def _panel(axes: Any, here: DataFrame, best: DataFrame) -> None:
    size = here["elements"].to_numpy(float)
    for k, (column, name) in enumerate(
        (("seconds", "fast path"), ("certificate_seconds", "its certificate"))
    ):
        axes.plot(size, here[column].to_numpy(float) / size, label=name, **_look(k))
    many = best["elements"].to_numpy(float)
    axes.plot(many, best["seconds"].to_numpy(float) / many, label="best exact backend", **_look(3))
    reading = here["reading_seconds"].to_numpy(float) / size
    axes.plot(size, reading, ":", color="black", linewidth=1.2, label="reading the input once")
    axes.set(xscale="log", yscale="log", xlim=(50, 2e8), ylim=(1e-10, 1e0))
    axes.set_xticks([1e2, 1e4, 1e6, 1e8])
    axes.set_yticks([1e-9, 1e-6, 1e-3, 1e0], ["1 ns", "1 µs", "1 ms", "1 s"])
    axes.minorticks_off()


def _look(k: int) -> dict[str, Any]:
    return {**plots.style(k), "markersize": 3.5, "linewidth": 1.4}
