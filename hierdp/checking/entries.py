"""Check that a manifest has exactly the entries of a release: unchecked ones must not look checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from hierdp.checking.result import FAILS, CheckResult
from hierdp.errors import InputError, listed
from hierdp.measurements.origin import SameNoise
from hierdp.privacy.budget import Ledger, Spend
from hierdp.record.release import ENTRIES, OPTIONAL
from hierdp.record.step import Proved
from hierdp.versions import LIBRARIES

LATER = "python-flint", "cryptography", "sampler", "protects"
"""Entries that the first releases of this version lack; a release has all of them or none."""

HOLDS_OF = ("whole", "non_negative", "consistent", "total")


def check_entries(manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Report entries that a manifest of this version lacks, and entries that no release has."""
    labels = manifest.get("labels", {})
    if not isinstance(labels, Mapping) or not all(isinstance(name, str) for name in labels.values()):
        yield CheckResult("manifest", FAILS, "'labels' is not a list of names by code")
        return
    later = any(name in part for part in _dated_parts(manifest) for name in LATER)
    for where, saved, ours in _parts(manifest):
        if not isinstance(saved, Mapping):
            yield CheckResult("manifest", FAILS, f"{where} is not a list of entries by name")
            return
        if strange := sorted(set(saved) - {*ours, *(OPTIONAL if saved is manifest else ())}):
            yield CheckResult("manifest", FAILS, f"{where} has {listed(strange)}, which no release has")
            return
        if missing := sorted(set(ours) - set(saved) - (set() if later else {*LATER})):
            yield CheckResult("manifest", FAILS, f"{where} lacks {listed(missing)}")
            return


def _dated_parts(manifest: Mapping[str, Any]) -> list[Any]:
    """Add the entries of `LATER` to the parts that have them."""
    budget = manifest["budget"]
    return [manifest["versions"], *([] if budget is None else [budget, *budget["spends"]])]


def _parts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each part: its name, its contents, and the entries that it must have."""
    yield "the manifest", manifest, ENTRIES
    yield "'versions'", manifest["versions"], ("python", *LIBRARIES)
    yield "'holds'", manifest["holds"], HOLDS_OF
    if "account" in manifest:
        yield "'account'", manifest["account"], ("data", "entry", "digest")
    if "intervals" in manifest:
        yield "'intervals'", manifest["intervals"], ("confidence", "simultaneous")
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
