"""Check that a budget lists its mechanism's measurements, with their sensitivities and losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hierdp.check.result import FAILS, HOLDS, CheckResult
from hierdp.mechanisms.checking import Checking
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, bound_of
from hierdp.privacy.expected import GAUSSIAN, ExpectedSpend
from hierdp.record.properties import Regions
from hierdp.record.release import standard_errors

if TYPE_CHECKING:
    from pandas import DataFrame

CLOSE = 1e-9
"""Relative tolerance for the rounding of a share of the budget."""


def check_expected(
    table: DataFrame, manifest: Mapping[str, Any], regions: Regions, checking: Checking | None
) -> Iterator[CheckResult]:
    """Check the lines of the budget, the neighbouring relation, and the claim on standard errors."""
    if checking is None:
        return
    budget = manifest["budget"]
    if not checking.measures or budget is None:
        yield _unmeasured(table, manifest, checking)
        return
    neighbours, wrong = checking.neighbours, ""
    if callable(neighbours):
        neighbours = neighbours(manifest["settings"])
    if checking.expected_spends is not None:
        neighbours, expected = checking.expected_spends(table, manifest, regions)
        wrong = _differs(expected, budget["spends"])
    if manifest["standard_errors"] != standard_errors(table, budget):
        wrong = "the manifest's claim on standard errors is wrong"
    if budget["neighbouring_relation"] != neighbours:
        wrong = f"the neighbouring relation of this mechanism is: {neighbours}"
    wrong = _person(manifest, checking) or wrong
    if checking.again is not None and not wrong:
        return  # the function itself is run, see `hierdp.check.proofs`
    yield CheckResult(
        "budget: queries",
        FAILS if wrong else HOLDS,
        wrong or "the mechanism's queries and sensitivities",
    )


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
    """What is wrong with the claim on persons, in words."""
    person = bound_of(manifest["budget"])
    if person is None:
        return ""
    rows_of = checking.rows_of_a_person
    if person["spends_are_for"] != (ONE_ROW if rows_of is None else ONE_PERSON):
        return f"the sensitivities of this mechanism are not for {person['spends_are_for']}"
    if rows_of is not None and person["rows"] != rows_of(manifest["settings"]):
        return f"the sensitivities are not those of a person with up to {person['rows']} rows"
    return ""


def _differs(expected: list[ExpectedSpend], spends: list[Mapping[str, Any]]) -> str:
    """The first difference, in words; empty if there is none."""
    if len(expected) != len(spends):
        return f"the mechanism makes {len(expected)} measurements, the manifest lists {len(spends)}"
    for line, spend in zip(expected, spends, strict=True):
        kind = spend["noise"], spend.get("times", 1), spend["sensitivity"]
        if spend["query"] != line.query or kind != (line.noise, line.times, line.sensitivity):
            return (
                f"the mechanism measures {line.query!r} with {line.noise} noise for a sensitivity of "
                f"{line.sensitivity:g}, but the manifest has {spend['query']!r}, {spend['noise']}, "
                f"{spend['sensitivity']:g}"
            )
        loss = spend["rho"] if line.noise == GAUSSIAN else spend["epsilon"]
        if line.loss is not None and not math.isclose(loss, line.loss, rel_tol=CLOSE):
            return f"{line.query!r} has {line.loss:.9g} of the budget, but the manifest says {loss:.9g}"
        if spend.get("delta") is not None:
            return f"{line.query!r} has no δ, but the manifest says {spend['delta']}"
    return ""
