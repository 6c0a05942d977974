"""Audit of persons with several rows: each mechanism has a case, and broken variants are caught."""

from importlib import import_module

import pytest
from faulty_noise import Half

from hierdp.audit import CASES, audit
from hierdp.mechanisms import MECHANISMS, size_audit
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.case import TWO_ROWS
from tests.marks import quick

PERSONS = [case for case in CASES if "two count" in case.change]
AUDITS = [import_module(f"hierdp.mechanisms.{name.replace('-', '_')}.audit") for name in MECHANISMS]
READERS = [size_audit, *(module for module in AUDITS if hasattr(module, "_visits"))]


def case_of(mechanism, method, change=""):
    return next(c for c in PERSONS if (c.mechanism, c.method) == (mechanism, method) and change in c.change)


def caught(case, runs, source=SimulatedNoise):
    (line,) = audit([case], runs, 0.999, source)
    return line.over


def test_every_mechanism_has_a_case_of_persons():
    assert {case.mechanism for case in PERSONS} == set(MECHANISMS)


@pytest.mark.parametrize("case", quick(PERSONS, first=2), ids=lambda case: f"{case.name} {case.change}")
def test_the_promise_is_to_a_person(case):
    made = case.release(1, SimulatedNoise(0))
    assert (made.ledger.person.column, made.ledger.person.rows) == (TWO_ROWS.column, 2)


@pytest.fixture
def everything_counts(monkeypatch):
    """Make the readers count all rows of a person."""
    for room in ("binning", "cells", "sizes", "tabulated"):
        monkeypatch.setattr(f"hierdp.tables.{room}.bounded", lambda rows, *_, **__: rows.drop("person"))
    forget()
    yield
    forget()


def forget():
    for module in READERS:
        module._visits.cache_clear()


NOT_BOUNDED = [
    ("range-query", "Flat"),
    ("clustering", "Laplace"),
    ("group-size", "M_c^dp"),
    ("count-of-counts", "Hc"),
    ("top-down", "VanillaGauss"),
    ("top-down", "InfTDA"),
    ("top-down", "SH"),
    ("tabulation", "GLS"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("everything_counts")
@pytest.mark.parametrize(("mechanism", "method"), NOT_BOUNDED[1::2])
def test_rows_that_are_not_bounded_are_caught(mechanism, method):
    """Six rows of a person count, but the noise is for two."""
    assert caught(case_of(mechanism, method), 400)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "method"), NOT_BOUNDED[::4])
def test_bounded_rows_pass_the_audit(mechanism, method):
    assert not caught(case_of(mechanism, method), 400)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "method"), [("range-query", "Flat"), ("clustering", "Laplace")])
def test_half_the_noise_of_a_person_is_caught(mechanism, method):
    """Half the noise is enough for only one of the two rows."""
    assert caught(case_of(mechanism, method), 400, Half)


@pytest.mark.slow
def test_noise_for_one_of_two_rows_is_caught(monkeypatch):
    monkeypatch.setattr(PrivacyUnit, "squared_sensitivity", lambda *_: 1)
    assert caught(case_of("top-down", "VanillaGauss"), 1000)
