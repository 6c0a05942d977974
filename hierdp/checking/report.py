"""The report of a release, made again from its table and manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, OPEN, CheckResult
from hierdp.counts.size_table import Table
from hierdp.record.files import REPORT
from hierdp.record.release import REPORT_LAYOUT, check_words
from hierdp.versions import version_of


def check_report(folder: Path, table: Table, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """That `report.html`, which people read first, says what the table and the manifest do, and no more."""
    words = {name: manifest[name] for name in ("title", "note")}
    check_words(**words, **manifest["taken_as_public"])
    layout = manifest.get("report", 1)
    if type(layout) is not int:
        yield CheckResult(
            "report", FAILS, f"the manifest's 'report' is {layout!r}, not the number of a layout"
        )
        return
    if not (folder / REPORT).is_file():
        return
    from hierdp.reports.release import release_report

    same = (folder / REPORT).read_bytes() == release_report(table, manifest).encode()
    ours = layout == REPORT_LAYOUT
    if same and ours:
        yield CheckResult("report", HOLDS, "it is what the table and the manifest give")
    elif not same and (not ours or manifest["versions"]["hierdp"] != version_of("hierdp")):
        yield CheckResult("report", OPEN, "another version of hierdp drew it, perhaps in other words")
    else:
        yield CheckResult("report", FAILS, f"{REPORT} is not what the table and the manifest give")
