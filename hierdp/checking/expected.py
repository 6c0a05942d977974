"""Check what a budget claims, apart from its measurements: those are checked by running the mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.mechanisms.checking import Checking
from hierdp.privacy.budget import ONE_PERSON, ONE_ROW, bound_of
from hierdp.record.release import standard_errors

if TYPE_CHECKING:
    from pandas import DataFrame


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
        neighbours = neighbours(manifest["settings"])
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
    if rows_of is not None and person["rows"] != rows_of(manifest["settings"]):
        return f"the sensitivities are not those of a person with up to {person['rows']} rows"
    return ""
