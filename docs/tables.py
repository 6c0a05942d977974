"""The tables of the papers' pages, from the rows in docs/tables/PAPER/.

    python docs/tables.py                    # fill the pages; does nothing if they are filled
    python docs/tables.py PAPER FOLDER       # first take rows from `hierdp reproduce PAPER --out FOLDER`

A page marks a table so, and has it up to the next ``<!-- /table -->``:

    <!-- table: NAME | where QUERY | columns A, B as other head | pivot ROWS, HEADS+HEADS, VALUES -->

Each step is optional; QUERY is one of pandas. A page may link its rows instead, ``(tables/PAPER/NAME.csv)``.
``runs.csv`` says which version made each table, when, and how.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pandas as pd

from hierdp.experiments.papers import PAPERS
from hierdp.experiments.study import readable

DOCS = Path(__file__).parent
MARKED = re.compile(r"^( *)<!-- table: (.+?) -->.*?<!-- /table -->", re.DOTALL | re.MULTILINE)
LINKED = re.compile(r"\]\(tables/\w+/(\w+)\.csv\)")


def names(text: str) -> set[str]:
    """The tables that a page shows or links."""
    shown = {mark.split(" | ")[0].strip() for _, mark in MARKED.findall(text)}
    return shown | {*LINKED.findall(text)} - {"runs"}


def filled(text: str, rows: Path) -> str:
    """A page with its tables."""

    def place(at: re.Match[str]) -> str:
        lines = [f"<!-- table: {at[2]} -->", "", *table(at[2], rows), "", "<!-- /table -->"]
        return "\n".join(f"{at[1]}{line}".rstrip() for line in lines)

    return MARKED.sub(place, text)


def table(mark: str, rows: Path) -> list[str]:
    """The lines of a table in Markdown, as the mark describes it."""
    name, *steps = (part.strip() for part in mark.split(" | "))
    frame = pd.read_csv(rows / f"{name}.csv", keep_default_na=False, na_values=[""])
    for step in steps:
        kind, _, what = step.partition(" ")
        if kind == "where":
            frame = frame.query(what)
        elif kind == "columns":
            names = dict(_named(column) for column in what.split(", "))
            frame = frame[list(names)].rename(columns=names)
        elif kind == "pivot":
            index, heads_of, value = what.split(", ")
            heads = frame[heads_of.split("+")].astype(str).agg(" ".join, axis=1)
            frame = frame.pivot_table(index=index, columns=heads, values=value, sort=False)
            frame = frame.rename_axis(columns=None).reset_index()
        else:
            raise ValueError(f"{mark}: {kind!r} is not where, columns or pivot")
    text = readable(frame, 3)
    rows = [list(text), ["---"] * len(text.columns), *text.itertuples(index=False)]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _named(column: str) -> tuple[str, str]:
    name, _, head = column.partition(" as ")
    return name, head or name.replace("_", " ")


def take(paper: str, made: Path) -> None:
    """Copy the tables that the page shows or links and this run has, and write down where they come from."""
    rows, settings = DOCS / "tables" / paper, json.loads((made / "settings.json").read_text())
    runs = rows / "runs.csv"
    known = pd.read_csv(runs).set_index("table").run.to_dict() if runs.exists() else {}
    for name in names((DOCS / f"{paper}.md").read_text(encoding="utf-8")):
        if (made / f"{name}.parquet").exists():
            pd.read_parquet(made / f"{name}.parquet").to_csv(rows / f"{name}.csv", index=False)
            known[name] = "; ".join(f"{key}: {value}" for key, value in settings.items())
    pd.DataFrame(sorted(known.items()), columns=["table", "run"]).to_csv(runs, index=False)


def main(given: list[str]) -> None:
    """Take the tables of a run if there is one; fill all pages."""
    if given:
        take(given[0], Path(given[1]))
    for paper in PAPERS:
        page, rows = DOCS / f"{paper}.md", DOCS / "tables" / paper
        page.write_text(filled(page.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
