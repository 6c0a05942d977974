"""Reports as HTML pages: a single file without scripts or external resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from hierdp.privacy.budget import Ledger
from hierdp.privacy.conversion import PAPERS
from hierdp.privacy.whom import Whom
from hierdp.reports.solved import count_proved

if TYPE_CHECKING:
    from pandas import DataFrame


MOST_ROWS = 10
"""Number of solved steps that a report shows; the manifest has all of them."""


@dataclass(frozen=True)
class Bars:
    """A table whose rows have a bar: readable on a phone, on paper and by a screen reader.

    - frame: labels in the first column. All its columns are shown.
    - drawn: the column of numbers that the bars show; where one is missing, there is no bar.
    - ends: the ends of intervals, which are lines over the bars; NaN where a row has none.
    """

    kind: ClassVar[str] = "bars"
    title: str
    frame: DataFrame
    drawn: str
    ends: tuple[Any, Any] | None = None

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Each column's name, and whether it has numbers."""
        columns: list[tuple[str, bool]] = _cells(self.frame)["columns"]
        return columns

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each row's cells; the left end and the width of its bar and its interval, in percent.

        Bars start at 0, those of negative numbers to its left.
        """
        values = [0.0 if value != value else float(value) for value in self.frame[self.drawn]]
        ends = [values, values] if self.ends is None else [list(map(float, end)) for end in self.ends]
        known = [end for end in (*ends[0], *ends[1]) if end == end]
        low, high = min([0.0, *values, *known]), max([0.0, *values, *known])

        def span(first: float, last: float) -> tuple[str, str]:
            size = (high - low) or 1.0
            return f"{100 * (first - low) / size:.1f}", f"{100 * (last - first) / size:.1f}"

        return [
            {
                "cells": cells,
                "bar": span(min(0.0, value), max(0.0, value)),
                "interval": span(lower, upper) if lower < upper else None,
            }
            for cells, value, lower, upper in zip(_cells(self.frame)["rows"], values, *ends, strict=True)
        ]


class Picture(Protocol):
    """What a macro of the template draws: `Bars`, and those of `hierdp.reports.pictures`."""

    kind: ClassVar[str]
    """The macro's name."""


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, pictures and tables.

    - title: Empty: no heading.
    - texts: Paragraphs.
    - figure: a large figure (SVG), which scrolls on small screens.
    - frames: Tables. On small screens, a row becomes a block of named values.
    - pictures: above the others; those that are text are small figures (SVG).
    """

    title: str
    texts: Sequence[str] = ()
    figure: str = ""
    frames: Sequence[DataFrame] = ()
    pictures: Sequence[Picture | str] = ()

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The frames as cells of text; numbers are right-aligned."""
        return [_cells(frame) for frame in self.frames]


def page(
    title: str, sections: Sequence[Section], warnings: Sequence[str] = (), note: str = "", banner: str = ""
) -> str:
    """A complete page. Line breaks of the note are kept; a banner is in view, and on each printed page."""
    filled = _template().render(title=title, sections=sections, warnings=warnings, note=note, banner=banner)
    return str(filled)


@cache
def _template() -> Any:
    """Compiled once in a process, which takes longer than to fill it."""
    import jinja2

    source = resources.files("hierdp.reports").joinpath("report.html").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True, trim_blocks=True).from_string(source)


def budget_section(manifest: Mapping[str, Any]) -> Section:
    """The ledger."""
    ledger = Ledger.from_dict(manifest["budget"])
    text = f"{manifest['mechanism']}: {budget_in_words(ledger)}"
    return Section("Budget: the ledger", [text], frames=[budget_frame(ledger)])


def budget_in_words(ledger: Ledger) -> str:
    """The budget, and the neighbouring relation that it protects."""
    kind = f"ε = {ledger.epsilon:g}" + (f", δ = {ledger.delta:g}" if ledger.delta else "")
    how = "" if ledger.conversion == PAPERS else f", by {ledger.conversion}"
    kind += f" (ρ = {ledger.rho:.4g} zCDP{how})" if ledger.zcdp else ""
    whom = "" if ledger.whom == Whom() else f" for {ledger.whom}"
    return f"{kind}{whom}. Neighbouring tables: {ledger.neighbours}."


def budget_frame(ledger: Ledger) -> DataFrame:
    """One row per measurement, and their sum."""
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
    """All post-processing problems, and whether their answers are proved optimal."""
    import pandas as pd

    rows = manifest["solved"]
    if not rows:
        return Section(
            "Solved and proved",
            ["No problem had to be solved: the release consists of noisy counts and their sums."],
        )
    proved, problems = count_proved(rows)
    text = f"{proved} of {problems} post-processing problems are proved optimal by their certificates."
    if len(rows) > MOST_ROWS + 1:
        text += f" The first {MOST_ROWS} and the last are shown; manifest.json has all."
        rows = [*rows[:MOST_ROWS], rows[-1]]
    frame = pd.DataFrame(rows)
    if "problems" in frame:
        frame["problems"] = frame["problems"].fillna(1).astype(int)
    for column in ("objective", "bound"):  # fractions may have dozens of digits, which the manifest has
        frame[column] = [_short(text) for text in frame[column]]
    frame["proved_optimal"] = ["yes" if proved else "no" for proved in frame["proved_optimal"]]
    return Section("Solved and proved", [text], frames=[frame])


def _short(text: str) -> str:
    try:
        return number(float(Fraction(text)), 9)
    except (ValueError, OverflowError, ZeroDivisionError):  # infinite, or none
        return text


def number(value: float, digits: int) -> str:
    """A number with `digits` digits; whole numbers have thousands separators."""
    if value.is_integer() or (100 <= abs(value) < float("inf") and digits < 4):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def shown(value: Any) -> str:
    """A cell of a table as text; a missing number is empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cells(frame: DataFrame) -> dict[str, Any]:
    records = frame.to_dict("records")
    numeric = {
        column: all(_numeric(record[column]) for record in records) and bool(records)
        for column in frame.columns
    }
    return {
        "columns": [(_head(str(column)), numeric[column]) for column in frame.columns],
        "rows": [
            [(shown(record[column]), numeric[column]) for column in frame.columns] for record in records
        ],
    }


def _head(column: str) -> str:
    """A column's name in words; names of methods, such as H_b^c, are unchanged."""
    return column.replace("_", " ") if column.islower() else column


def _numeric(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    return isinstance(value, str) and (
        not value or value.replace(",", "").replace(".", "").lstrip("-").isdigit()
    )
