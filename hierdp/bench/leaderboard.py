"""The leaderboard: one page that works from disk, computed in the browser from a results file."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.bench import metrics
from hierdp.bench.report import distinguished
from hierdp.bench.runs import read
from hierdp.errors import InputError
from hierdp.execution import folder as folders

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = {
    "backend": "backend", "version": "version", "problem": "problem", "set": "set", "model": "model",
    "form": "form", "variables": "variables", "tolerance": "tolerance", "threads": "threads",
    "time_limit": "limit", "memory": "memory", "repeats": "repeats", "status": "status",
    "verdict": "verdict", "relative_gap": "gap", "optimum": "optimum", "message": "message",
}  # fmt: skip
"""Columns of the results that the page has, and their names there."""


def write_leaderboard(results: Path, path: Path) -> Path:
    """Write the page of a results file of `hierdp bench run`.

    Raises
    ------
    InputError
        If it is not a results file, or contains no runs.
    """
    rows = read(results)
    if rows.empty:
        raise InputError(f"{results} contains no runs; `hierdp bench run --out {results}` makes some")
    text = page(metrics.settled(distinguished(rows)))
    with folders.file_appearing(path) as aside:
        aside.write_text(text, encoding="utf-8")
    return path


def page(rows: DataFrame) -> str:
    """The page of these runs."""
    import jinja2

    source = resources.files("hierdp.bench").joinpath("leaderboard.html").read_text(encoding="utf-8")
    shown = (
        rows[list(COLUMNS)]
        .rename(columns=COLUMNS)
        .assign(seconds=metrics.seconds(rows), cpu=metrics.seconds(rows, cpu=True))
    )
    listed = [{name: _plain(value) for name, value in row.items()} for row in shown.to_dict("records")]
    data = json.dumps(
        {"rows": listed, "shift": metrics.SHIFT, "unsolved": metrics.UNSOLVED, "refused": metrics.REFUSED},
        ensure_ascii=False,
    )
    machines = ", ".join(map(str, rows["machine"].unique()))
    return str(
        jinja2.Environment(autoescape=True)
        .from_string(source)
        .render(data=_inside_script(data), shift=metrics.SHIFT, note=f"Machine: {machines}.")
    )


def _inside_script(data: str) -> Any:
    """JSON inside a script element: the browser reads it up to the first ``</``, and decodes no entities."""
    import markupsafe

    safe = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return markupsafe.Markup(safe)


def _plain(value: Any) -> Any:
    """A value of a table as JSON has it: no NaN, and Python's own numbers."""
    if value is None or value != value:
        return None
    return value.item() if hasattr(value, "item") else value
