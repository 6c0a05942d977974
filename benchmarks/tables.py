"""The tables quoted elsewhere, made from the committed results only: print one, or fill pages with them.

The names: headline, five (its first columns, for five models), growth, peers, machine, outsider-small,
outsider-medium, readers, edition, edition-table, edition-forms-small, edition-forms-medium, edition-wrong,
edition-means-small, edition-means-medium, formulations, findings, settings (of solvers: from
`solvers.settings`). ``--into`` fills every place of a file marked ``<!-- benchmarks: NAME -->`` …
``<!-- /benchmarks -->``. A test compares the pages with these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks import findings, formulations, growth, growth_report, peers, settings
from benchmarks.measuring import ratio_in_words, seconds_in_words
from hierdp.bench import metrics, runs
from hierdp.bench.manifest import EDITION
from hierdp.bench.report import distinguished, rounded
from hierdp.errors import InputError
from hierdp.execution import store
from hierdp.execution.progress import plural
from hierdp.reproduce.study import table_lines

if TYPE_CHECKING:
    from pandas import DataFrame

RESULTS = Path(__file__).parent / "results"
UNPUBLISHED = ("gurobi", "copt", "mosek", "xpress")
"""Solvers whose licences forbid publishing results, or whose terms are not known: docs/benchmark.md."""
PICTURES = {"growth": "Time an element by number of elements, a panel a model"}
FORMS = ("LP", "QP", "MILP", "MIQP", "conic", "tables")
"""The forms of programs, as `hierdp.bench` names them."""
FIVE = ("Isotonic, L2", "Chebyshev", "HierarchyQIP", "CostTable", "ConstrainedInference")
"""Models of the README's table: a chain, an LP, an integer QP on a tree, tables of costs, least squares."""
MARKED = re.compile(r"(<!-- benchmarks: ([a-z-]+) -->\n).*?(<!-- /benchmarks -->)", re.DOTALL)


def edition_rows(results: Path) -> DataFrame:
    """The rows of the edition; none if it has not been run."""
    return runs.read(runs.COMMITTED if results == RESULTS else results / runs.COMMITTED.name)


def headline(curves: DataFrame, bench: DataFrame) -> DataFrame:
    """What is proved and how fast: a row for each model.

    First the most elements that an exact backend solved to the proved optimum in time; “×” is its time over
    that of the fast path and its certificate. Then the most elements that the fast path was run on, whether
    all its answers are proved, and how many of the exact backends' claims of optimality in the benchmark
    agree with the proof.
    """
    import pandas as pd

    best, ours = growth_report.best_exact(curves), growth_report.ours(curves)
    exact = metrics.settled(bench[bench["backend"] != "fast"])
    kind = exact["model"].str.removesuffix(" (relaxed)")
    made = []
    for model in dict.fromkeys(curves["model"]):
        mine = ours[ours["model"] == model].set_index("size").sort_index()
        if mine.empty:
            continue
        row: dict[str, Any] = {"model": model}
        row |= dict.fromkeys(("elements", "fast path", "certificate", "best exact backend", "×"), "")
        met = [size for of, size in best.index if of == model and size in mine.index]
        if met:
            there, peer = mine.loc[max(met)], best.loc[(model, max(met))]
            ratio = peer["seconds"] / (there["seconds"] + there["certificate_seconds"])
            row |= _side(there) | {
                "best exact backend": f"{peer['program']}, {seconds_in_words(peer['seconds'])}",
                "×": ratio_in_words(ratio),
            }
        all_proved = (mine["verdict"] == "proved").all()
        row["up to"] = _side(mine.iloc[-1])["elements"] + ("" if all_proved else ", not all proved")
        of = exact[kind == model.split(",")[0]]["verdict"]
        agree, refuted = int((of == "solved").sum()), int((of == "wrong").sum())
        row["agree"] = f"{agree} of {agree + refuted}"
        made.append(row)
    return pd.DataFrame(made)


def _side(row: Any) -> dict[str, str]:
    return {
        "elements": f"{int(row['elements']):,}",
        "fast path": seconds_in_words(row["seconds"]),
        "certificate": seconds_in_words(row["certificate_seconds"]),
    }


def machine(results: Path) -> str:
    """The machines and versions with which each file's rows were measured."""
    frames = {
        "peers": store.read(results / "peers.parquet", peers.COLUMNS),
        "growth": store.read(results / "growth.parquet", growth.COLUMNS),
    }
    lines = []
    for name, rows in frames.items():
        said = "; ".join(f"{one}" for one in rows["machine"].unique())
        python, versions = "/".join(rows["python"].unique()), "; ".join(rows["versions"].unique())
        load = f"load {rows['load'].median():.1f} (median)"
        lines.append(f"- `{name}.parquet`: {len(rows):,} rows; {said}, {load}; Python {python}; {versions}")
    return "\n".join(lines)


def outsider(results: Path, which: str) -> DataFrame:
    """What other programs say of the files of a set: a row for each solver and kind of file."""
    import pandas as pd

    found = pd.read_csv(results / f"outsider-{which}.csv").pivot(
        index=["solver", "file"], columns="says", values="files"
    )
    shown = [says for says in ("agrees", "makes no claim", "disagrees") if says in found]
    return found[shown].fillna(0).astype(int).reset_index().rename_axis(columns=None)


def readers(results: Path) -> DataFrame:
    """In how many files a reader finds the stored objective, and what it finds in the others."""
    import pandas as pd

    found = pd.read_csv(results / "readers.csv")
    found["of"] = "." + found["file"]
    stored = found["reads"] == "the stored objective"
    found["reads"] = found["reads"].where(stored, found["reads"] + ", " + found["objective"])
    found = found.groupby(["reader", "version", "of", "reads"], as_index=False)["files"].sum()
    found["said"] = found["files"].astype(str) + found["reads"].map(
        lambda reads: "" if reads == "the stored objective" else f": {reads}"
    )
    found = found.sort_values("reads", key=lambda reads: reads != "the stored objective", kind="stable")
    cells = found.groupby(["reader", "version", "of"])["said"].agg("; ".join).unstack(fill_value="-")
    return cells[[".mps", ".mps.gz", ".lp", ".nl", ".cbf"]].reset_index().rename_axis(columns=None)


def table(name: str, results: Path = RESULTS) -> str:
    """One of the tables, as Markdown.

    Raises `InputError` if there is no table of that name.
    """
    curves = store.read(results / "growth.parquet", growth.COLUMNS)
    if name in ("headline", "five"):
        rows = headline(curves, edition_rows(results))
        if name == "five":
            rows = rows[rows["model"].isin(FIVE)].loc[:, :"×"]
        return "\n".join(table_lines(rows))
    if name == "growth":
        return growth.summary(curves)
    if name == "machine":
        return machine(results)
    made: dict[str, Callable[[], DataFrame]] = {
        "outsider-small": lambda: outsider(results, "small"),
        "outsider-medium": lambda: outsider(results, "medium"),
        "readers": lambda: readers(results),
        "formulations": lambda: formulations.summary(
            store.read(results / "formulations.parquet", formulations.KEY)
        ),
        "peers": lambda: peers.summary(store.read(results / "peers.parquet", peers.COLUMNS)),
        "findings": findings.table,
        "settings": settings.table,
    }
    if name in made:
        return "\n".join(table_lines(made[name]()))
    file, _, which = name.partition("-")
    if file == "edition":
        rows = edition_rows(results)
        if rows.empty:
            return f"Edition {EDITION} has not been run yet: `make edition`."
        if not which:
            return conditions(rows)
        kinds: dict[str, Callable[[DataFrame], DataFrame]] = {
            "table": edition,
            "forms-small": partial(by_form, which="small"),
            "forms-medium": partial(by_form, which="medium"),
            "wrong": wrong,
            "means-small": partial(compared, which="small", by=metrics.scaled_means),
            "means-medium": partial(compared, which="medium", by=metrics.scaled_means),
        }
        if which in kinds:
            return "\n".join(table_lines(kinds[which](rows)))
    raise InputError(f"there is no table {name!r}")


def compared(
    rows: DataFrame, which: str, by: Callable[[DataFrame], DataFrame] = metrics.by_backend
) -> DataFrame:
    """The backends on the problems of a set that all of them ran.

    Raises `ValueError` if there are none.
    """
    here = metrics.settled(distinguished(rows[rows["set"] == which]))
    ran = here.groupby("problem")["backend"].nunique()
    here = here[here["problem"].isin(ran.index[ran == here["backend"].nunique()])]
    if here.empty:
        raise ValueError(f"there are no rows of the set {which!r} that all backends ran")
    return rounded(by(here))


def edition(rows: DataFrame) -> DataFrame:
    """A row for each backend: its version, and for each set what it solves of what it takes, and its mean."""
    import pandas as pd

    parts = []
    for which in rows["set"].unique():
        found = compared(rows, which).set_index(["backend", "version"])
        taken = found["takes"].str.split().str[0].astype(int)
        solved = (found["solved"] * taken).round().astype(int).astype(str) + " of " + taken.astype(str)
        part = pd.DataFrame({"solved": solved, "wrong": found["wrong"],
                             "mean seconds": found["mean_seconds_all"]})  # fmt: skip
        parts.append(part.astype(str).add_prefix(f"{which}: "))
    return pd.concat(parts, axis="columns").fillna("").reset_index()


def by_form(rows: DataFrame, which: str) -> DataFrame:
    """For each backend and form of problem in a set, how many it solves of those it takes, and its mean.

    The mean is a shifted geometric one over the problems that it takes, in seconds.
    """
    taken = metrics.settled(distinguished(rows[rows["set"] == which]))
    taken = taken[~taken["verdict"].isin(metrics.UNCOUNTED) & (taken["form"] != "not stated")]
    taken["time"] = metrics.seconds(taken)
    groups = taken.groupby(["backend", "form"])
    solved = groups["verdict"].agg(lambda verdicts: (verdicts == "solved").sum())
    means = groups["time"].agg(lambda times: metrics.shifted_geometric_mean(times.to_numpy()))
    cells = solved.astype(str) + " of " + groups.size().astype(str) + ", " + means.map(seconds_in_words)
    found = cells.unstack("form").reindex(columns=[form for form in FORMS if form in cells.unstack("form")])
    order = solved.groupby("backend").sum().sort_values(ascending=False, kind="stable").index
    return found.loc[order].fillna("").reset_index().rename_axis(columns=None)


def wrong(rows: DataFrame) -> DataFrame:
    """Each wrong answer, status and bound of an edition."""
    found = metrics.settled(distinguished(rows))
    found = found[found["verdict"] == "wrong"].sort_values(["backend", "set", "problem"], kind="stable")
    found["version"] = found["solver_version"]
    says = found["status"].where(found["bound_error"].fillna(0) == 0, "bound")
    off = found[["relative_gap", "bound_error"]].max(axis="columns")
    return found[["backend", "version", "set", "problem"]].assign(
        says=says, **{"relative error": off.map(lambda value: "" if value != value else f"{value:.1e}")}
    )


def conditions(rows: DataFrame) -> str:
    """The limits, load, machine and versions of an edition's runs, a line for each set."""
    lines = []
    for which, own in rows.groupby("set", sort=False):
        limits = "/".join(f"{limit:g} s" for limit in sorted(own["time_limit"].unique()))
        turns = "/".join(plural(int(n), "time") for n in sorted(own["repeats"].unique()))
        lines.append(
            f"- *{which}*: {plural(own['problem'].nunique(), 'problem')}, "
            f"{own['backend'].nunique()} backends, each run {turns}, at most {limits} and "
            f"{own['memory'].max():g} GB, {plural(int(own['threads'].max()), 'thread')}; "
            f"{', '.join(own['machine'].unique())}; load {own['load'].median():.1f} (median), "
            f"{own['load'].max():.1f} (largest); Python {', '.join(own['python'].unique())}; "
            f"{own['date'].min()} to {own['date'].max()}"
        )
    return "\n".join(lines)


def filled(text: str, results: Path = RESULTS) -> str:
    """A text with its marked places filled."""

    def place(at: re.Match[str]) -> str:
        picture = PICTURES.get(at[2], "")
        shown = f"![{picture}]({at[2]}.png)\n\n" if picture else ""
        return f"{at[1]}\n{shown}{table(at[2], results)}\n\n{at[3]}"

    return MARKED.sub(place, text)


def run(
    *,
    name: Annotated[str, "the table to print"] = "headline",
    into: Annotated[tuple[Path, ...], "files to fill"] = (),
    results: Path = RESULTS,
) -> Iterator[dict[str, Any]]:
    for file in into:
        text = file.read_text(encoding="utf-8")
        if not MARKED.search(text):
            raise InputError(
                f"{file} has no place marked <!-- benchmarks: headline --> … <!-- /benchmarks -->"
            )
        file.write_text(filled(text, results), encoding="utf-8")
    if not into:
        print(table(name, results))
    yield from ()
