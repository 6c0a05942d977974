"""The tables quoted elsewhere, made from the committed results only: print one, or fill pages with them.

The names: headline, five (its first columns, for five models), peers, machine, edition (its conditions),
findings. ``--into`` fills every place of a file marked ``<!-- benchmarks: NAME -->`` …
``<!-- /benchmarks -->``. A test compares the pages with these tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks import findings, growth, peers
from hierdp.bench import metrics, runs
from hierdp.bench.manifest import EDITION
from hierdp.errors import InputError
from hierdp.execution import store
from hierdp.execution.progress import plural
from hierdp.experiments.study import table_lines

if TYPE_CHECKING:
    from pandas import DataFrame

RESULTS = Path(__file__).parent / "results"
GROWN = {"peers": peers.COLUMNS, "growth": growth.COLUMNS}
"""Files of results, and their columns."""
UNPUBLISHED = ("gurobi", "copt", "mosek", "xpress")
"""Solvers whose licences forbid publishing results, or whose terms are not known: docs/benchmark.md."""
FIVE = ("Isotonic, L2", "Chebyshev", "HierarchyQIP", "CostTable", "ConstrainedInference")
"""Models of the README's table: a chain, an LP, an integer QP on a tree, tables of costs, least squares."""
MARKED = re.compile(r"(<!-- benchmarks: ([a-z-]+) -->\n).*?(<!-- /benchmarks -->)", re.DOTALL)


def rows_of(name: str) -> DataFrame:
    """The rows of a file of results."""
    return store.read(RESULTS / f"{name}.parquet", GROWN[name])


def headline(curves: DataFrame, bench: DataFrame) -> DataFrame:
    """The summary of growth, and how many claims of optimality in the edition agree with the proof."""
    exact = metrics.settled(bench[bench["backend"] != "fast"])
    kind = exact["model"].str.removesuffix(" (relaxed)")
    table = growth.summary(curves)
    agree = []
    for model in table["model"]:
        of = exact[kind == model.split(",")[0]]["verdict"]
        solved, refuted = int((of == "solved").sum()), int((of == "wrong").sum())
        agree.append(f"{solved} of {solved + refuted}")
    return table.assign(agree=agree)


def machine() -> str:
    """The machines and versions with which each file's rows were measured."""
    lines = []
    for name in GROWN:
        rows = rows_of(name)
        said = "; ".join(f"{one}" for one in rows["machine"].unique())
        python, versions = "/".join(rows["python"].unique()), "; ".join(rows["versions"].unique())
        load = f"load {rows['load'].median():.1f} (median)"
        lines.append(f"- `{name}.parquet`: {len(rows):,} rows; {said}, {load}; Python {python}; {versions}")
    return "\n".join(lines)


def conditions(rows: DataFrame) -> str:
    """The limits, load, machine and versions of an edition's runs, a line for each set."""
    if rows.empty:
        return f"Edition {EDITION} has not been run yet: `make edition`."
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


def table(name: str) -> str:
    """One of the tables, as Markdown.

    Raises `InputError` if there is no table of that name.
    """
    if name in ("headline", "five"):
        rows = headline(rows_of("growth"), runs.read(runs.COMMITTED))
        if name == "five":
            rows = rows[rows["model"].isin(FIVE)].loc[:, :"×"]
        return "\n".join(table_lines(rows))
    if name == "machine":
        return machine()
    if name == "edition":
        return conditions(runs.read(runs.COMMITTED))
    if name not in ("findings", "peers"):
        raise InputError(f"there is no table {name!r}")
    return "\n".join(table_lines(findings.table() if name == "findings" else peers.summary(rows_of(name))))


def filled(text: str) -> str:
    """A text with its marked places filled."""
    return MARKED.sub(lambda at: f"{at[1]}\n{table(at[2])}\n\n{at[3]}", text)


def run(
    *,
    name: Annotated[str, "the table to print"] = "headline",
    into: Annotated[tuple[Path, ...], "files to fill"] = (),
) -> Iterator[dict[str, Any]]:
    for file in into:
        text = file.read_text(encoding="utf-8")
        if not MARKED.search(text):
            raise InputError(
                f"{file} has no place marked <!-- benchmarks: headline --> … <!-- /benchmarks -->"
            )
        file.write_text(filled(text), encoding="utf-8")
    if not into:
        print(table(name))
    yield from ()
