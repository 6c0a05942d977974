"""The report of a release, made again from its table and manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.check.result import FAILS, HOLDS, OPEN, CheckResult
from hierdp.record.files import REPORT
from hierdp.record.release import check_words
from hierdp.versions import version_of

if TYPE_CHECKING:
    from pandas import DataFrame


def check_report(folder: Path, table: DataFrame, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """That `report.html`, which people read first, says what the table and the manifest do, and no more."""
    words = {name: manifest[name] for name in ("title", "note")}
    check_words(**words, **manifest["taken_as_public"])
    if not (folder / REPORT).is_file():
        return
    from hierdp.reports.release import release_report

    if (folder / REPORT).read_bytes() == release_report(table, manifest).encode():
        yield CheckResult("report", HOLDS, "it is what the table and the manifest give")
    elif manifest["versions"]["hierdp"] != version_of("hierdp"):
        yield CheckResult("report", OPEN, "another version of hierdp drew it, perhaps in other words")
    else:
        yield CheckResult("report", FAILS, f"{REPORT} is not what the table and the manifest give")
