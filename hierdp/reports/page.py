"""Reports that open in a browser: one file, no scripts, nothing fetched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import TYPE_CHECKING, Any

from hierdp.privacy.budget import Ledger

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.verification.judge import Verification

MOST_ROWS = 40
"""Rows of a table of solved steps that a report prints; the manifest has them all."""


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, a figure (SVG) and tables."""

    title: str
    texts: Sequence[str] = ()
    figure: str = ""
    frames: Sequence[DataFrame] = ()

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The frames as cells of text, numbers to the right."""
        return [_cells(frame) for frame in self.frames]


def page(title: str, sections: Sequence[Section], warnings: Sequence[str] = (), note: str = "") -> str:
    """A whole page; the note is shown as it is written, line by line."""
    import jinja2

    source = resources.files("hierdp.reports").joinpath("report.html").read_text(encoding="utf-8")
    template = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(source)
    return template.render(title=title, sections=sections, warnings=warnings, note=note)


def budget_section(manifest: Mapping[str, Any]) -> Section:
    """The ledger."""
    ledger = Ledger.from_dict(manifest["budget"])
    told = f"{manifest['mechanism']}: {budget_in_words(ledger)}"
    return Section("Budget", [told], frames=[budget_frame(ledger)])


def budget_in_words(ledger: Ledger) -> str:
    """What may be spent, and what it protects."""
    kind = f"ε = {ledger.epsilon:g}" + (f", δ = {ledger.delta:g}" if ledger.delta else "")
    kind += f" (ρ = {ledger.rho:.4g} zCDP)" if ledger.zcdp else ""
    return f"{kind}. Neighbouring tables: {ledger.neighbours}."


def budget_frame(ledger: Ledger) -> DataFrame:
    """A row a measurement, and what they add up to."""
    import pandas as pd

    loss = "ρ" if ledger.zcdp else "ε"
    rows: list[dict[str, Any]] = [
        {
            "measurement": spend.query,
            "noise": spend.noise,
            "sensitivity": f"{spend.sensitivity:.4g}",
            "scale": f"{spend.scale:.6g}",
            loss: f"{spend.epsilon if spend.rho is None else spend.rho:.6g}",
            **({} if spend.delta is None else {"δ": f"{spend.delta:.3g}"}),
        }
        for spend in ledger.spends
    ]
    rows.append({"measurement": "sum", loss: f"{ledger.spent:.6g}"})
    return pd.DataFrame(rows).fillna("")


def steps_section(manifest: Mapping[str, Any]) -> Section:
    """Every post-processing problem, and that its answer is proved optimal."""
    import pandas as pd

    rows = manifest["solved"]
    if not rows:
        return Section("Solved and proved", ["Nothing was to be solved: noise, and sums of it."])
    proved = sum(row["proved_optimal"] for row in rows)
    text = f"{proved} of {len(rows)} post-processing problems are proved optimal by their certificates."
    more = (
        f" The first {MOST_ROWS} and the last are shown; manifest.json has all."
        if len(rows) > MOST_ROWS + 1
        else ""
    )
    shown = rows if len(rows) <= MOST_ROWS + 1 else [*rows[:MOST_ROWS], rows[-1]]
    frame = pd.DataFrame(shown)
    for column in ("objective", "bound"):  # fractions may have dozens of digits, which the manifest has
        frame[column] = [_short(text) for text in frame[column]]
    frame["proved_optimal"] = ["yes" if proved else "no" for proved in frame["proved_optimal"]]
    return Section("Solved and proved", [text + more], frames=[frame])


def _short(number: str) -> str:
    try:
        return _number(float(Fraction(number)), 9)
    except (ValueError, OverflowError, ZeroDivisionError):  # infinite, or none
        return number


def verification_section(found: Verification) -> Section:
    """The cross-verification's verdict, with the times drawn."""
    from hierdp.reports import plots

    drawn, (axes,) = plots.figure(9, 4.2)
    plots.time_by_backend(axes, found.frame())
    verdict = "No backend disagrees." if not found.disagreements else f"{len(found.disagreements)} DISAGREE."
    return Section("Verified by exact backends", [verdict, found.note], plots.svg(drawn))


def solves_section(found: Verification) -> Section:
    """Every solve of the cross-verification."""
    return Section("Every solve", frames=[verification_frame(found)])


def verification_frame(found: Verification) -> DataFrame:
    """The columns people read, in words and round numbers."""
    from hierdp.verification.judge import TOLERANCE

    frame = found.frame().drop(columns="message")
    frame["proved"] = ["yes" if proved else "no" for proved in frame["proved"]]
    # A backend's bound is a float: within its tolerance, a gap (of either sign) is none.
    scale = frame["objective"].abs().clip(lower=1)
    frame["gap"] = frame["gap"].mask(frame["gap"].abs() <= TOLERANCE * scale, 0.0)
    for column, digits in (("objective", 9), ("bound", 9), ("gap", 3), ("ratio", 3)):
        frame[column] = [
            "" if value != value else _number(value, digits) for value in frame[column].astype(float)
        ]
    for column in ("build_seconds", "solve_seconds"):
        frame[column] = [f"{value:.3g}" if value else "" for value in frame[column]]
    front = ["step", "model", "variables", "backend", "status", "verdict", "proved"]
    frame = frame[[*front, *(column for column in frame.columns if column not in front)]]
    return frame.rename(columns={"build_seconds": "build s", "solve_seconds": "solve s", "ratio": "× fast"})


def _number(value: float, digits: int) -> str:
    if value.is_integer() or (100 <= abs(value) < float("inf") and digits < 4):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def shown(value: Any) -> str:
    """A cell of a table as text; a number that is missing is empty."""
    if isinstance(value, float):
        return "" if value != value else f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cells(frame: DataFrame) -> dict[str, Any]:
    records = frame.to_dict("records")
    number = {
        column: all(_numeric(record[column]) for record in records) and bool(records)
        for column in frame.columns
    }
    return {
        "columns": [(_head(str(column)), number[column]) for column in frame.columns],
        "rows": [[(shown(record[column]), number[column]) for column in frame.columns] for record in records],
    }


def _head(column: str) -> str:
    """Words for a column's name; that of a method, such as H_b^c, stays."""
    return column.replace("_", " ") if column.islower() else column


def _numeric(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    return isinstance(value, str) and (
        not value or value.replace(",", "").replace(".", "").lstrip("-").isdigit()
    )
