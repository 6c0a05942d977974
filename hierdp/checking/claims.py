"""Check what a release says of its lists, its report, its measurements and its layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, OPEN, CheckResult
from hierdp.counts.layout import Layout, Regions
from hierdp.counts.size_table import Table
from hierdp.execution import seal
from hierdp.measurements.origin import SameNoise
from hierdp.mechanisms.description import MechanismInfo
from hierdp.mechanisms.public import PROTECTED_GROUPS, SEEN_CATEGORIES, SEEN_GROUPS, SEEN_REGIONS
from hierdp.record.files import MEASUREMENTS, REPORT
from hierdp.record.release import check_words
from hierdp.versions import version_of

FROM_DATA = {
    "regions_from_data": ("regions", SEEN_REGIONS),
    "groups_from_data": ("which_groups", SEEN_GROUPS),
    "attributes_from_data": ("categories", SEEN_CATEGORIES),
}
"""The settings that replace a public list by the data, with the entry of `taken_as_public` and its words."""


def check_public(manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Report a list that is called public in one place and from the data in another."""
    settings, public = manifest["settings"], manifest["taken_as_public"]
    for name, (what, seen) in FROM_DATA.items():
        if (settings.get(name) is True) != (public.get(what) == seen):
            why = f"the setting {name} and the words on {what} under 'taken_as_public' contradict each other"
            yield CheckResult("public", FAILS, why)
    if "group_budget" in settings and public.get("which_groups", PROTECTED_GROUPS) != PROTECTED_GROUPS:
        why = "the number of groups was measured, but 'taken_as_public' says that the groups are known"
        yield CheckResult("public", FAILS, why)


def check_report(folder: Path, table: Table, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Render `report.html`, which people read first, from the table and the manifest again, and compare."""
    words = {name: manifest[name] for name in ("title", "note")}
    check_words(**words, **manifest["taken_as_public"])
    if not (folder / REPORT).is_file():
        if REPORT not in manifest.get("left_out", ()):
            yield CheckResult(
                "report", FAILS, f"there is no {REPORT}, which the manifest does not say was left out"
            )
        return
    from hierdp.reports.release import release_report

    same = (folder / REPORT).read_bytes() == release_report(table, manifest).encode()
    writer, ours = manifest["versions"]["hierdp"], version_of("hierdp")
    if same:
        yield CheckResult("report", HOLDS, "it is what the table and the manifest give")
    elif writer != ours:
        yield CheckResult("report", OPEN, f"not checked: written by hierdp {writer}, this is {ours}")
    else:
        yield CheckResult("report", FAILS, f"{REPORT} is not what the table and the manifest give")


def check_same_noise(folder: Path, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """One line, if the release was made from the measurements of another one."""
    entry = manifest.get("same_noise_as")
    if entry is None:
        return
    other, file = SameNoise(**entry), folder / MEASUREMENTS
    if not file.is_file() or seal.digest(file) != other.measurements:
        why = f"{MEASUREMENTS} is not that of the release named under 'same_noise_as'"
        yield CheckResult("same noise", FAILS, why)
    elif "account" in manifest:
        why = "it is charged to an account, although its measurements are those of another release"
        yield CheckResult("same noise", FAILS, why)
    else:
        why = f"the measurements of the release by {other.mechanism} with fingerprint {other.fingerprint}"
        yield CheckResult("same noise", HOLDS, f"{why}: no further budget")


def check_shape(
    table: Any, manifest: Mapping[str, Any], regions: Regions, mechanism: MechanismInfo | None
) -> Iterator[CheckResult]:
    """Check the layout of a table over regions; one of bins must have no regions.

    A mechanism that is not hierdp's may release any other table.
    """
    settings, wrong = manifest["settings"], ""
    by_region = bool(Layout.of(table, settings).axes)
    if mechanism is None:
        if by_region or "range_query" in settings or {"cluster", "count"} <= set(table.columns):
            wrong = "this version knows no such mechanism"
    else:
        wrong = mechanism.checking.shape(table, manifest, regions)
    if wrong:
        yield CheckResult("shape", FAILS, f"{manifest['mechanism']}: {wrong}")
    elif by_region:
        yield CheckResult("shape", HOLDS, "columns, levels and regions as they should be")
