"""Check what a manifest claims beside the counts, the budget and the proofs.

It has exactly the entries of a release, so that no unchecked one looks checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.checking.result import FAILS, HOLDS, OPEN, CheckResult
from hierdp.counts.layout import Layout, Regions
from hierdp.counts.size_table import Table
from hierdp.errors import InputError, listed
from hierdp.execution import seal
from hierdp.measurements.origin import SameNoise
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.description import MechanismInfo
from hierdp.mechanisms.public import PROTECTED_GROUPS, SEEN_CATEGORIES, SEEN_GROUPS, SEEN_REGIONS
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, Ledger, Spend, bound_of
from hierdp.record.files import MEASUREMENTS, REPORT
from hierdp.record.release import ENTRIES, OPTIONAL, check_words, standard_errors
from hierdp.record.step import Proved
from hierdp.versions import LIBRARIES, version_of

if TYPE_CHECKING:
    from pandas import DataFrame


HOLDS_OF = ("whole", "non_negative", "consistent", "total")


def check_entries(manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Report entries that a manifest lacks, and entries that no release has."""
    labels = manifest.get("labels", {})
    if not isinstance(labels, Mapping) or not all(isinstance(name, str) for name in labels.values()):
        yield CheckResult("manifest", FAILS, "'labels' is not a list of names by code")
        return
    for where, saved, ours in _parts(manifest):
        if not isinstance(saved, Mapping):
            yield CheckResult("manifest", FAILS, f"{where} is not a list of entries by name")
            return
        if strange := sorted(set(saved) - {*ours, *(OPTIONAL if saved is manifest else ())}):
            yield CheckResult("manifest", FAILS, f"{where} has {listed(strange)}, which no release has")
            return
        if missing := sorted(set(ours) - set(saved)):
            yield CheckResult("manifest", FAILS, f"{where} lacks {listed(missing)}")
            return


def _parts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each part: its name, its contents, and the entries that it must have."""
    yield "the manifest", manifest, ENTRIES
    yield "'versions'", manifest["versions"], ("python", *LIBRARIES)
    yield "'holds'", manifest["holds"], HOLDS_OF
    if "account" in manifest:
        yield "'account'", manifest["account"], ("data", "entry", "digest")
    if "intervals" in manifest:
        yield "'intervals'", manifest["intervals"], ("confidence", "simultaneous", "covers")
    if "same_noise_as" in manifest:
        yield "'same_noise_as'", manifest["same_noise_as"], [field.name for field in fields(SameNoise)]
    known = [field.name for field in fields(Proved)]
    one = [name for name in known if name != "problems"]
    for line in manifest["solved"]:
        yield f"the step {line.get('step')!r}", line, known if "problems" in line else one
    budget = manifest["budget"]
    if budget is None:  # nothing was measured
        return
    spend = [*(field.name for field in fields(Spend)), "standard_deviation"]
    for line in budget["spends"]:
        yield f"a measurement of the budget, {line.get('query')!r},", line, spend
    try:
        yield "the budget", budget, Ledger.from_dict(budget).as_dict()
    except InputError:  # `check_budget` reports it
        return


def check_expected(
    table: DataFrame, manifest: Mapping[str, Any], checking: Checking | None
) -> Iterator[CheckResult]:
    """Check the neighbouring relation, whom it protects, and the claim on standard errors.

    Whether the queries are the mechanism's is a line of `hierdp.checking.proofs`, if nothing is wrong here.
    """
    if checking is None:
        return
    budget = manifest["budget"]
    if not checking.measures or budget is None:
        yield _unmeasured(table, manifest, checking)
        return
    neighbours, wrong = checking.neighbours, ""
    if callable(neighbours):
        neighbours = neighbours(manifest)
    if manifest["standard_errors"] != standard_errors(table, budget):
        wrong = "the manifest's claim on standard errors is wrong"
    if budget["neighbouring_relation"] != neighbours:
        wrong = f"the neighbouring relation of this mechanism is: {neighbours}"
    wrong = _person(manifest, checking) or wrong
    if wrong:
        yield CheckResult("budget: queries", FAILS, wrong)


def _unmeasured(table: DataFrame, manifest: Mapping[str, Any], checking: Checking) -> CheckResult:
    """Whether a release without measurements has no budget, and any other has one."""
    wrong = ""
    if manifest["standard_errors"] != standard_errors(table, manifest["budget"]):
        wrong = "the manifest's claim on standard errors is wrong"
    if checking.measures:
        wrong = "this mechanism measures, but the manifest has no budget"
    elif manifest["budget"] is not None:
        wrong = "nothing was measured, but the manifest has a budget"
    return CheckResult("budget: queries", FAILS if wrong else HOLDS, wrong or "nothing was measured")


def _person(manifest: Mapping[str, Any], checking: Checking) -> str:
    person = bound_of(manifest["budget"])
    if person is None:
        return ""
    rows_of = checking.rows_of_a_person
    if person["spends_are_for"] != (ONE_ROW if rows_of is None else ONE_PERSON):
        return f"the sensitivities of this mechanism are not for {person['spends_are_for']}"
    if rows_of is not None and person["rows"] != rows_of(manifest):
        return f"the sensitivities are not those of a person with up to {person['rows']} rows"
    return ""


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
    table: DataFrame, manifest: Mapping[str, Any], regions: Regions, mechanism: MechanismInfo | None
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
