"""Write a copy of a release as CSV, for Excel, or as SDMX-CSV."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.counts.size_table import ENDS
from hierdp.errors import InputError, listed, options_listed
from hierdp.execution import folder as folders
from hierdp.publication.copy import SUPPRESSED, Copy
from hierdp.record import files

if TYPE_CHECKING:
    from pandas import DataFrame

SIMULATED = "NOT_PRIVATE"
"""The column of the warning in a copy of a simulated release."""

MOST_ROWS = 1_048_575
"""The most rows of a sheet below its first one."""

EXACT_UP_TO = 10**15
"""Excel keeps 15 digits; larger whole numbers are written as text."""

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that a sheet cannot hold."""


def write_copy(
    copy: Copy,
    to: str,
    path: str | Path,
    overwrite: bool = False,
    agency: str = "HIERDP",
    dataflow: str | None = None,
    time_period: str | None = None,
) -> Path:
    """Write a copy to a file.

    Parameters
    ----------
    copy : Copy
    to : str
        One of `FORMATS`.
    path : path
        The file to create, outside any release.
    overwrite : bool
        Replace a file that exists.
    agency, dataflow : str
        With sdmx-csv: who publishes, and the id of the table. Default: made from the title.
    time_period : str, optional
        With sdmx-csv: the period that the counts are about. Default: the day of the release.

    Raises
    ------
    InputError
        If there is no such format, the file exists, lies in a release, or cannot hold the table.
    """
    path = Path(path)
    if to not in FORMATS:
        raise InputError(f"no format {to!r}; there are {', '.join(FORMATS)}")
    if to != "sdmx-csv" and (dataflow is not None or time_period is not None):
        raise InputError(f"{options_listed(['dataflow', 'time_period'])} are for sdmx-csv")
    ending = ENDINGS[to]
    if path.suffix.lower() != ending:
        raise InputError(f"{path.name}: the name of a file in the format {to} ends in {ending}")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists; choose another file, or give `overwrite=True`")
    if not path.absolute().parent.is_dir():
        raise InputError(f"the folder {path.absolute().parent} of {path.name} does not exist; create it")
    if any((above / files.MANIFEST).is_file() for above in path.resolve().parents):
        raise InputError(f"{path} is in a release, whose files are sealed: choose a file outside")
    about = {"agency": agency, "dataflow": dataflow, "time_period": time_period}
    with folders.file_appearing(path) as aside:
        FORMATS[to](copy, aside, about)
    return path


def _csv(copy: Copy, path: Path, _: dict[str, str | None]) -> None:
    with path.open("wb") as file:
        file.writelines(files.csv_parts(_words(copy), bool(copy.manifest.get("csv_safe"))))


def _words(copy: Copy) -> DataFrame:
    """The table, with words for blanks, and on every row that simulated noise protects nobody."""
    table = copy.table
    if SUPPRESSED in table:
        table = table.assign(**{SUPPRESSED: table[SUPPRESSED].map({True: SUPPRESSED, False: ""})})
    return (
        table if copy.manifest["warning"] is None else table.assign(**{SIMULATED: copy.manifest["warning"]})
    )


def _excel(copy: Copy, path: Path, _: dict[str, str | None]) -> None:
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Font
    except ImportError:
        raise InputError("Excel files need openpyxl: pip install 'hierdp[excel]'") from None
    table = _words(copy)
    if len(table) > MOST_ROWS:
        raise InputError(
            f"the table has {len(table):,} rows, and a sheet holds {MOST_ROWS:,}: choose csv, or fewer levels"
        )
    book = Workbook(write_only=True)
    counts, about = book.create_sheet("Counts"), book.create_sheet("About")
    counts.freeze_panes = "A2"

    def cell(sheet: Any, value: Any, bold: bool = False) -> Any:
        made = WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            made.data_type = "s"  # never a formula
        if bold:
            made.font = Font(bold=True)
        return made

    counts.append([cell(counts, _text(name), True) for name in table.columns])
    for row in table.itertuples(index=False, name=None):
        counts.append([cell(counts, _value(one)) for one in row])
    about.column_dimensions["A"].width, about.column_dimensions["B"].width = 30, 110
    for name, words in copy.about.items():
        about.append([cell(about, _text(name), True), cell(about, _text(words))])
    book.save(path)


def _value(one: Any) -> Any:
    """A value for a sheet: a number that Excel keeps, a text, or nothing."""
    import pandas as pd

    if pd.isna(one):
        return None
    held = one.item() if hasattr(one, "item") else one
    if isinstance(held, int) and not isinstance(held, bool) and abs(held) >= EXACT_UP_TO:
        return str(held)
    return held if isinstance(held, int | float) else _text(held)


def _text(one: Any) -> str:
    return _ILLEGAL.sub(lambda found: ascii(found[0])[1:-1], str(one))[:32_767]


_SDMX = (
    *("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"),
    *("STANDARD_ERROR", "LOWER", "UPPER", "DP_METHOD", "DP_EPSILON", "DP_DELTA", "DP_UNIT", "COMMENT_DSET"),
)
"""The columns of SDMX-CSV that are not those of the release."""


def _sdmx_csv(copy: Copy, path: Path, given: dict[str, str | None]) -> None:
    """SDMX-CSV 2.0 with ``labels=name``: ids, and names in columns of their own."""
    made, manifest = copy.table, copy.manifest
    budget = manifest["budget"] or {}
    ends = ENDS if "intervals" in manifest else []
    skipped = ("level", copy.value, "noisy", "standard_error", *ends, SUPPRESSED)
    dimensions = [name for name in made.columns if name not in skipped and name not in copy.name_of]
    title = str(manifest["title"] or copy.about["Title"])
    flow = f"{_id(given['agency'] or '')}:{_id(given['dataflow'] or title)}(1.0)"
    ids = [*map(_id, dimensions), *copy.name_of]
    if len({*ids, *_SDMX}) < len(ids) + len(_SDMX):
        raise InputError(
            f"two columns have one id in SDMX ({listed(sorted(ids), 9)}): rename one in the data"
        )
    columns: dict[str, Any] = {"STRUCTURE": "dataflow", "STRUCTURE_ID": flow, "STRUCTURE_NAME": title}
    columns["ACTION"] = "I"
    codes = {code: name for name, code in copy.name_of.items()}
    for name in dimensions:
        columns[_id(name)] = made[name]
        if name in codes:
            columns[codes[name]] = made[codes[name]]
    columns["TIME_PERIOD"] = given["time_period"] or str(manifest["created"])[:10]
    columns["OBS_VALUE"] = made[copy.value]
    blank = made[SUPPRESSED] if SUPPRESSED in made else made[copy.value].isna()
    columns["OBS_STATUS"] = blank.map({True: "Q", False: "A"})  # CL_OBS_STATUS: suppressed, normal
    if "standard_error" in made:
        columns["STANDARD_ERROR"] = made["standard_error"]
    for name in ends:
        columns[name.upper()] = made[name]
    columns |= {"DP_METHOD": manifest["mechanism"], "DP_EPSILON": budget.get("epsilon", "")}
    columns |= {"DP_DELTA": budget.get("delta", ""), "DP_UNIT": copy.about.get("Neighbouring tables", "")}
    notes = [copy.about[name] for name in ("Warning", "Note", "Suppression") if name in copy.about]
    columns["COMMENT_DSET"] = " ".join(note if note.endswith(".") else f"{note}." for note in notes)
    import pandas as pd

    frame = pd.DataFrame(columns, index=made.index)
    with path.open("wb") as file:
        file.writelines(files.csv_parts(frame, bool(manifest.get("csv_safe"))))


def _id(text: str) -> str:
    """An id of SDMX: capital letters, digits and underscores, beginning with a letter.

    Examples
    --------
    >>> _id("origin county"), _id("2013 trips")
    ('ORIGIN_COUNTY', 'X_2013_TRIPS')
    """
    found = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")
    return found if found[:1].isalpha() else f"X_{found}"


ENDINGS = {"csv": ".csv", "excel": ".xlsx", "sdmx-csv": ".csv"}
"""How the names of files end."""

FORMATS: dict[str, Callable[[Copy, Path, dict[str, str | None]], None]] = {
    "csv": _csv,
    "excel": _excel,
    "sdmx-csv": _sdmx_csv,
}
