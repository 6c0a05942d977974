"""Compute a manifest again, and compare it with the one that was written.

Some entries are given: the settings, the publisher's words, the lines about steps, each measurement's noise.
Whether these are right is for other checks (`rerun`, `proofs`, `budget`, `account`). All the rest follows
from them, from the table and from the mechanism, by the function that a release is written with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, UNCLAIMED, CheckResult
from hierdp.counts.layout import Regions
from hierdp.counts.size_table import Table
from hierdp.errors import InputError, listed
from hierdp.measurements.origin import SameNoise
from hierdp.mechanisms.checking import Checking
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, Ledger
from hierdp.record import files
from hierdp.record.properties import broken
from hierdp.record.release import ENTRIES, OPTIONAL, derived
from hierdp.record.step import Proved
from hierdp.versions import LIBRARIES

CLOSE = 1e-9
"""Relative tolerance for sums and deviations in floats, which another machine may round differently."""

WORDS = {
    "whole": "whole numbers",
    "non_negative": "non-negative",
    "consistent": "consistent",
    "total": "total",
}
"""The lines about the properties of the counts, by the names of their claims."""

GIVEN = {
    "versions": ("python", *LIBRARIES),
    "account": ("data", "entry", "digest"),
    "intervals": ("confidence", "simultaneous", "covers"),
    "same_noise_as": tuple(field.name for field in fields(SameNoise)),
}
"""The parts whose contents are given, with the names of their entries."""


OF_A_STEP = tuple(field.name for field in fields(Proved))


def check_manifest(
    table: Table, manifest: Mapping[str, Any], regions: Regions, checking: Checking | None
) -> Iterator[CheckResult]:
    """Compare the manifest with what follows from the rest; then one line for each property of the counts.

    - checking: None if the mechanism is unknown; then what follows from it is taken as the manifest says.
    """
    reasons = broken(table, manifest["settings"], regions)
    holds = {name: None if reason is None else not reason for name, reason in reasons.items()}
    try:
        wrong = list(differences(manifest, recomputed(table, manifest, holds, checking), close=CLOSE))
    except InputError as contradiction:
        wrong = [str(contradiction)]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield CheckResult("manifest", FAILS, wrong[0] + more)
    for name, reason in reasons.items():
        why = "it does not apply to this table" if reason is None else f"and not so: {reason}"
        if holds[name]:
            yield CheckResult(WORDS[name], HOLDS, f"all {len(table):,} rows")
        else:
            claimed = manifest["holds"].get(name)
            yield CheckResult(WORDS[name], FAILS if claimed else UNCLAIMED, why)


def check_warnings(folder: Path, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Repeat the warnings, which `check_manifest` computes again; a simulated release has one as a file."""
    if (manifest["warning"] is not None) != (folder / files.NOT_PRIVATE).is_file():
        simulated = f"a simulated release has a file {files.NOT_PRIVATE}, and no other has"
        yield CheckResult("warnings", FAILS, simulated)
    elif manifest["cautions"]:
        yield CheckResult("warnings", HOLDS, "; ".join(manifest["cautions"]))


def recomputed(
    table: Table, manifest: Mapping[str, Any], holds: Mapping[str, bool | None], checking: Checking | None
) -> dict[str, Any]:
    """The manifest that a release has with this table, these measurements and steps.

    - holds: the properties of the counts.

    Raises `InputError` if its measurements cost more than the budget, or it has none for them.
    """
    stated: dict[str, Any] = {name: manifest.get(name) for name in ENTRIES}
    stated |= {name: manifest[name] for name in OPTIONAL if name in manifest}
    for name, entries in GIVEN.items():
        if name in stated:
            stated[name] = _entries(stated[name], entries)
    stated["solved"] = [_line(line) for line in manifest["solved"]]
    if "labels" in stated:
        labels = stated["labels"] if isinstance(stated["labels"], Mapping) else {}
        stated["labels"] = {code: str(name) for code, name in labels.items()}
    proved = all(line["proved_optimal"] for line in stated["solved"])
    return stated | derived(table, _ledger(manifest, checking), manifest["settings"], holds, proved)


def _entries(part: Any, names: Sequence[str]) -> dict[str, Any]:
    """Those of a part that it must have; None for one that it lacks."""
    return {name: part.get(name) for name in names}


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line about a step; it has the number of problems only if there are several."""
    return _entries(line, [name for name in OF_A_STEP if name != "problems" or name in line])


def _ledger(manifest: Mapping[str, Any], checking: Checking | None) -> Ledger | None:
    """The budget, with the protected change of the mechanism; None if it measures nothing."""
    budget = manifest["budget"]
    if checking is None:
        return None if budget is None else Ledger.from_dict(budget)
    if not checking.measures:
        return None
    if budget is None:
        raise InputError("this mechanism measures, but the manifest has no budget")
    ledger, neighbours, rows_of = Ledger.from_dict(budget), checking.neighbours, checking.rows_of_a_person
    assert neighbours is not None
    person = ledger.person
    if person is not None and rows_of is None:
        person = replace(person, spends_are_for=ONE_ROW)
    elif person is not None and rows_of is not None:
        rows = rows_of(manifest)
        person = None if rows is None else replace(person, rows=rows, spends_are_for=ONE_PERSON)
    relation = neighbours(manifest) if callable(neighbours) else neighbours
    return replace(ledger, neighbours=relation, person=person)


def differences(stated: Any, due: Any, where: str = "the manifest", close: float = 0.0) -> Iterator[str]:
    """Where entries differ from what is due, in words.

    - close: relative tolerance for floats.
    """
    if isinstance(due, Mapping):
        if not isinstance(stated, Mapping):
            yield f"{where} is not a list of entries by name"
            return
        if strange := sorted(set(stated) - set(due)):
            yield f"{where} has {listed(strange)}, which no such release has"
        if missing := sorted(set(due) - set(stated)):
            yield f"{where} lacks {listed(missing)}"
        inner = "" if where == "the manifest" else f"{where}, "
        for name in due:
            if name in stated:
                yield from differences(stated[name], due[name], f"{inner}{name!r}", close)
    elif isinstance(due, list) and isinstance(stated, list) and len(due) == len(stated):
        for at, (item, follows) in enumerate(zip(stated, due, strict=True), 1):
            name = item.get("query", item.get("step", at)) if isinstance(item, Mapping) else at
            yield from differences(item, follows, f"{where} of {name!r}", close)
    elif not _same(stated, due, close):
        yield f"{where} is {stated!r}, but {due!r} follows from the rest of the release"


def _same(stated: Any, due: Any, close: float) -> bool:
    if isinstance(due, float) and isinstance(stated, int | float) and not isinstance(stated, bool):
        return math.isclose(stated, due, rel_tol=close)
    return isinstance(stated, bool) == isinstance(due, bool) and bool(stated == due)
