"""Check that an account records a release, with its fingerprint and at least its cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.errors import InputError
from hierdp.measurements.origin import SameNoise
from hierdp.mechanisms.checking import Checking
from hierdp.privacy.account import NOT_FINISHED, Account, Charge, Statement
from hierdp.privacy.budget import Ledger
from hierdp.privacy.loss import Loss


def check_account(
    path: Path, manifest: Mapping[str, Any], fingerprint: str, checking: Checking | None
) -> CheckResult:
    """One line on the release's entry in an account."""
    try:
        statement = Account(path).statement()
    except InputError as unusable:
        return CheckResult("account", FAILS, str(unusable))
    entry, same = manifest.get("account"), manifest.get("same_noise_as")
    if same is not None:  # the measurements were charged for the release that they were made for
        entry, fingerprint = same["account"], SameNoise(**same).fingerprint
    if entry is None:
        reason = manifest.get("without_account")
        why = "" if reason is None else f" ({reason})"
        return CheckResult("account", FAILS, f"the release names no account: it was charged to none{why}")
    wrong = _unlike(statement, entry, fingerprint, _cost(manifest, checking))
    if wrong:
        return CheckResult("account", FAILS, f"{path}: {wrong}")
    charge = _charge(statement, entry)
    assert charge is not None
    why = f"{path} has it as entry {charge.entry}, of {charge.at}: {charge.loss.in_words} charged"
    return CheckResult("account", HOLDS, why)


def _unlike(statement: Statement, entry: Mapping[str, Any], fingerprint: str, cost: Loss) -> str:
    """In words, how the account and the release disagree; empty if they do not."""
    terms, charge = statement.terms, _charge(statement, entry)
    if entry["data"] != terms.data:
        return f"it is an account of {terms.data!r}, and the release is of {entry['data']!r}"
    if charge is None:
        return f"it has no entry {entry['entry']} with the digest that the release names"
    if fingerprint not in charge.fingerprints:
        if not charge.fingerprints:
            what = "was not finished" if charge.state == NOT_FINISHED else charge.state
            return f"the release of entry {charge.entry} {what}; this folder is not recorded as written"
        return f"entry {charge.entry} has another fingerprint, {charge.fingerprint}"
    if charge.loss.whom != cost.whom:
        return f"entry {charge.entry} is charged for {charge.loss.whom}; the release protects {cost.whom}"
    charged = cost.of_a_replacement() if terms.replaces else cost
    if not _covers(charge.loss, charged):
        return f"entry {charge.entry} is charged {charge.loss.in_words}; the release costs {charged.in_words}"
    return "" if statement.holds() else "its charges add up to more than it allows"


def _charge(statement: Statement, entry: Mapping[str, Any]) -> Charge | None:
    named = entry["entry"], entry["digest"]
    return next((each for each in statement.charges if (each.entry, each.digest) == named), None)


def _cost(manifest: Mapping[str, Any], checking: Checking | None) -> Loss:
    ledger = Ledger.from_dict(manifest["budget"])
    replaces = checking is not None and checking.replaces(manifest)
    if ledger.zcdp:
        return Loss.of(ledger.whom, rho=ledger.rho, replaces=replaces)
    return Loss.of(ledger.whom, ledger.epsilon, delta=ledger.delta, replaces=replaces)


def _covers(charged: Loss, cost: Loss) -> bool:
    if charged.rho is None or cost.rho is None:
        same = charged.rho is None and cost.rho is None
        return same and (charged.epsilon or 0) >= (cost.epsilon or 0) and charged.delta >= cost.delta
    return charged.rho >= cost.rho
