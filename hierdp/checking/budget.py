"""The budget of a release, added up again from its manifest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hierdp.checking.result import FAILS, HOLDS, OPEN, SIMULATED, UNCLAIMED, CheckResult
from hierdp.errors import InputError, listed
from hierdp.privacy.budget import (
    ONE_ROW,
    Ledger,
    Spend,
    bound_of,
    check_epsilon,
    of_one_row,
    spends_of,
    steps,
)
from hierdp.privacy.decaying_threshold import loss_of, step_of
from hierdp.privacy.noise import OPENDP, TABLES
from hierdp.privacy.whom import Whom

NAMED = {"account", "without_account"}

CLOSE = 1e-9
"""Relative tolerance for the rounding of a sum or a loss."""


def check_budget(manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Check each loss by the law of its noise, their composition, and their sum against the budget."""
    stated = manifest["budget"]
    if stated is None:
        yield _no_budget(manifest)
        return
    spends = spends_of(stated)
    wrong = [found for found in map(_against_its_law, spends) if found]
    unknown = [spend.noise for spend in spends if _loss(spend) is None]
    if wrong:
        yield CheckResult("budget: each loss", FAILS, wrong[0])
    elif unknown:
        yield CheckResult("budget: each loss", OPEN, f"this version does not know the law of {unknown[0]!r}")
    else:
        yield CheckResult(
            "budget: each loss", HOLDS, f"{len(spends)} measurements, by the laws of their noise"
        )
    try:
        check_epsilon(stated["epsilon"])
        ledger = Ledger.from_dict(stated)
    except InputError as over:
        yield CheckResult("budget: sum", FAILS, str(over))
        return
    kind = "ρ" if ledger.zcdp else "ε"
    budget = ledger.rho if ledger.zcdp else ledger.epsilon
    claim = f"ε = {ledger.epsilon:g}" + (f", δ = {ledger.delta:g}" if ledger.delta else "")
    how = f"{kind} = {ledger.spent:.9g} spent of {budget:.9g} ({claim}), by {stated['composition']}"
    how += f"; ρ from ε and δ by {ledger.conversion}" if ledger.zcdp else ""
    how += f"; threshold: {ledger.threshold}" if ledger.has_threshold else ""
    yield CheckResult("budget: sum", HOLDS, how)
    yield _privacy(ledger)


def budget_of_one_row(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest, with the ε and ρ of one row in place of a person's if its spends are for one row."""
    budget = manifest["budget"] or {}
    if not isinstance(bound := bound_of(budget), Mapping) or bound.get("spends_are_for") != ONE_ROW:
        return manifest
    rows = bound["rows"]
    own = {"epsilon": of_one_row(budget["epsilon"], rows)}
    if "rho" in budget:
        own["rho"] = of_one_row(budget["rho"], steps(rows, zcdp=True))
    return {**manifest, "budget": {**budget, **own}}


def _no_budget(manifest: Mapping[str, Any]) -> CheckResult:
    """A release of which nothing was measured must not claim any privacy."""
    if NAMED & manifest.keys():
        return CheckResult("privacy", FAILS, "the manifest has no budget, but speaks of one")
    why = "no noise was added, and no privacy is claimed: that rests on whoever made the given counts"
    return CheckResult("privacy", UNCLAIMED, why)


def _privacy(ledger: Ledger) -> CheckResult:
    if len({spend.private for spend in ledger.spends}) > 1:
        why = "some noise is marked exact and some not, but a release has one source of noise"
        return CheckResult("privacy", FAILS, why)
    if not ledger.private:
        return CheckResult("privacy", OPEN, f"{SIMULATED}: this release is not private, and says so")
    samplers = {str(spend.sampler): str(spend.sampler).rpartition(" ")[0] for spend in ledger.spends}
    if unknown := [sampler for sampler, name in samplers.items() if name not in (OPENDP, TABLES)]:
        why = f"this version does not know what drew the noise: {listed(unknown)}"
        return CheckResult("privacy", OPEN, why)
    by = " and ".join(sorted(set(samplers.values())))
    whom = ledger.neighbours + ("" if ledger.whom == Whom() else f"; for {ledger.whom}")
    return CheckResult("privacy", HOLDS, f"all noise exact, as stated, by {by}; protected: {whom}")


def _loss(spend: Spend) -> float | None:
    """The loss of a noise, by its law; None for an unknown noise."""
    ratio = spend.sensitivity / spend.scale
    if spend.noise.startswith("double-geometric"):
        return spend.times * ratio
    if spend.noise == "discrete Gaussian":
        return spend.times * ratio**2 / 2
    if spend.noise == "permute-and-flip":
        return spend.times * 2 * ratio
    step = step_of(spend.noise)
    return None if step is None else loss_of(spend.scale / spend.sensitivity, step)


def _against_its_law(spend: Spend) -> str:
    if not (spend.sensitivity > 0 and spend.scale > 0 and spend.times > 0):
        return f"{spend.query!r} has a sensitivity, scale or number that is not above 0"
    law = _loss(spend)
    loss = spend.rho if spend.noise == "discrete Gaussian" else spend.epsilon
    if law is None:
        return ""
    if loss is None or not math.isclose(loss, law, rel_tol=CLOSE):
        return f"{spend.query!r} says it costs {loss}; noise of scale {spend.scale:g} costs {law:.9g}"
    return ""
