"""The result of a reproduction: parts with tables and figures, written as a folder and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.execution import folder
from hierdp.reports import page as report
from hierdp.reports import plots

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Part:
    """A table or a figure of the paper, repeated.

    - name: name of its files.
    - texts: a description, and a comparison with the paper.
    - frames: tables by file name; every row is measured or, if a column says so, published.
    """

    name: str
    title: str
    texts: Sequence[str]
    frames: Mapping[str, DataFrame]
    figure: Any = None


@dataclass(frozen=True, eq=False)
class Study:
    """A reproduction.

    - settings: everything needed to repeat it, and the versions used.
    - note: a note at the top of the report.
    """

    title: str
    parts: Sequence[Part]
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def write(self, path: Path, overwrite: bool = False) -> None:
        """Write ``report.html``, ``report.md``, ``settings.json``, and each table and figure."""
        with folder.appearing(path, overwrite) as aside:
            self.fill(aside)

    def fill(self, aside: Path) -> None:
        """Write the files of `write` into a folder that exists."""
        for part in self.parts:
            for name, frame in part.frames.items():
                frame.to_parquet(aside / f"{name}.parquet", index=False)
            if part.figure is not None:
                part.figure.savefig(aside / f"{part.name}.png", dpi=130)
        settings = json.dumps(dict(self.settings), indent=2, ensure_ascii=False)
        (aside / "settings.json").write_text(settings + "\n", encoding="utf-8")
        (aside / "report.md").write_text(self.markdown(), encoding="utf-8")
        (aside / "report.html").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The report as HTML."""
        sections = [
            report.Section(
                part.title,
                part.texts,
                "" if part.figure is None else plots.svg(part.figure),
                [readable(frame) for frame in part.frames.values()],
            )
            for part in self.parts
        ]
        settings = report.Section("Settings", [self._settings])
        return report.page(self.title, [*sections, settings], [self.note] if self.note else [])

    def markdown(self) -> str:
        """The report as Markdown; figures are separate files."""
        lines = [f"# {self.title}", "", *([f"**{self.note}**", ""] if self.note else [])]
        for part in self.parts:
            lines += [f"## {part.title}", "", *(f"{text}\n" for text in part.texts)]
            if part.figure is not None:
                lines += [f"![{part.title}]({part.name}.png)", ""]
            for frame in part.frames.values():
                lines += [*table_lines(readable(frame)), ""]
        return "\n".join([*lines, "## Settings", "", self._settings, ""])

    @property
    def _settings(self) -> str:
        return "; ".join(f"{name}: {value}" for name, value in self.settings.items())


def printed_rows(module: str, table: str, keys: int = 1) -> dict[Any, tuple[Any, ...]]:
    """What a paper printed: the rows of a CSV file beside its module by their first columns; empty: None."""
    import pandas as pd

    frame = pd.read_csv(Path(module).with_name(f"{table}.csv")).astype(object)
    rows = frame.where(frame.notna(), None).itertuples(index=False, name=None)
    return {row[0] if keys == 1 else row[:keys]: row[keys:] for row in rows}


def readable(frame: DataFrame, digits: int = 6) -> DataFrame:
    """A table of text for people.

    Numbers that are rounded to three decimals, as those compared with printed ones, keep them. Others have so
    many significant digits, and at least all digits before the point.
    """
    import pandas as pd

    return pd.DataFrame({name: [_text(value, digits) for value in frame[name]] for name in frame})


def _text(value: Any, digits: int) -> str:
    value = getattr(value, "item", lambda: value)()  # of NumPy's integers
    if not isinstance(value, float):
        return "" if str(value) == "<NA>" else report.shown(value)
    if value == round(value, 3):
        return f"{value + 0.0:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,.0f}" if abs(value) >= 10**digits else report.shown(float(f"{value:.{digits}g}"))


def table_lines(frame: DataFrame) -> list[str]:
    """A table in Markdown with readable numbers."""
    heads = [str(column).replace("_", " ") for column in frame.columns]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for row in frame.itertuples(index=False):
        lines.append("| " + " | ".join(report.shown(value) for value in row) + " |")
    return lines
