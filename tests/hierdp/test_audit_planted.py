"""`hierdp audit` finds each planted privacy bug, and does not accuse the program without it.

The bugs are those of `test_measurement_mutants.py`. Each bound has the confidence that it has in an audit of
all cases at its defaults, and no test makes more runs than that audit.
"""

from dataclasses import replace
from functools import partial

import pytest
from faulty_noise import Spared, measured_differently
from test_measurement_mutants import MUTANTS, mutant, true_answers

from hierdp.audit import CASES, SAMPLERS, audit
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.tabulation import audit as tabulation_cases
from hierdp.mechanisms.top_down import audit as top_down_cases
from hierdp.privacy import noise
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.case import LARGE
from tests.marks import quick

EVERY = (*CASES, *SAMPLERS)
CONFIDENCE = 1 - 0.001 / len(EVERY)
"""Of a single case, at the default confidence of 0.999 for all cases together."""

SEVERAL = "a person joins A; three queries of two attributes"

PLANTED = {
    "true answers to some queries of the last level": ("tabulation", "GLS", SEVERAL, 125),
    "the wavelet's total with half its noise": ("range-query", "Wavelet", "of two", 800),
    "a last block of one count without noise": ("noise", "opendp", "last block", 1000),
    "the same in noise from tables": ("noise", "tables", "last block", 1000),
    "a key reused in odd blocks": ("noise", "tables", "second block", 1000),
    "--unbounded with the true total enforced": ("tabulation", "TopDown", SEVERAL, 250),
    "--unbounded with the true total, of flows": ("top-down", "InfTDA", "is added", 200),
    "the true total of flows is recorded": ("top-down", "InfTDA", "is added", 200),
    "true counts over the threshold": ("top-down", "SH", "is added", 400),
    "true counts of flows where they are 0": ("top-down", "InfTDA", "first one to B", 1000),
    "a level of group sizes without noise": ("group-size", "M_c^dp", "only group", 300),
    "a region's last number without noise": ("count-of-counts", "Hc", "only group", 300),
}
"""A case that shows each bug, with a number of runs that suffices."""

REACHED = {
    "true answers to some queries of the last level": true_answers("group by region"),
    "a level of group sizes without noise": mutant(
        MeasureTruth._draw,
        "drawn.answers.ravel()",
        "(true if query.level[1] == 1 else drawn.answers).ravel()",
    ),
}
"""Bugs whose queries or levels have other names in the cases of an audit."""


def named(mechanism, method, change):
    if method == "tables":
        pytest.importorskip("flint")
    return next(c for c in EVERY if (c.mechanism, c.method) == (mechanism, method) and change in c.change)


def finding(case, runs, source=SimulatedNoise):
    (line,) = audit([case], runs, CONFIDENCE, source)
    return line


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug, monkeypatch):
    *which, runs = PLANTED[bug]
    case = named(*which)
    if case.method == "opendp":  # smaller blocks, which are faster
        monkeypatch.setattr(noise, "BLOCK", 40)
        case = replace(case, tables=tuple((40, *rest) for _, *rest in case.tables))
    line = finding(case, runs)
    assert not line.over
    assert not line.shows_nothing
    where, function, broken, _ = MUTANTS[bug]
    monkeypatch.setattr(where, function, REACHED.get(bug, broken))
    for cases in (tabulation_cases, top_down_cases):
        if hasattr(cases, function):
            monkeypatch.setattr(cases, function, broken)
    assert finding(case, runs).over


def test_every_planted_bug_is_audited():
    """All but one that ends every release with an error."""
    assert set(MUTANTS) - set(PLANTED) == {"a box without noise"}


EACH = {case.name: case for case in reversed(CASES)}
"""The first case of each method."""


@pytest.mark.parametrize("name", quick(EACH, slow=lambda name: name != "clustering Laplace"))
def test_true_answers_to_the_last_query_of_every_method_are_found(name):
    """Noise is drawn and charged, but not added, to the last query that the neighbour changes."""
    case = EACH[name]
    runs = 700 if case.release(0, SimulatedNoise(0)).ledger.epsilon == LARGE else 300
    assert finding(case, runs * case.fewer, partial(Spared, query=measured_differently(case)[-1])).over


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("PHP", "where to cut each cluster, round 1"),
        ("PHP", "how many cuts to keep"),
        ("SF", "1 boundaries of runs, one after the other"),
    ],
)
def test_private_choices_of_the_best_are_found(method, query):
    """On tables that have different best choices: on others, a choice without noise reveals nothing."""
    case = named("clustering", method, "the clusters change")
    assert finding(case, 600, partial(Spared, query=query)).over


@pytest.mark.parametrize("recorded", [False, True])
def test_true_answers_are_found_whether_or_not_they_are_recorded(recorded, monkeypatch):
    """A release can use true answers while its measurements are noisy, or the other way round."""
    measure = MeasureTruth.__call__

    def broken(self, query):
        made = measure(self, query)
        true = replace(made, answers=query.of(self._truth))
        if recorded:
            self._made._held[-1] = true, 0
            return made
        return true

    monkeypatch.setattr(MeasureTruth, "__call__", broken)
    assert finding(EACH["clustering Laplace"], 300).over


def test_the_cases_of_samplers_draw_blocks_of_the_real_size():
    sizes = {case.method: case.tables[0][0] for case in SAMPLERS}
    assert sizes["opendp"] == noise.BLOCK
    if "tables" in sizes:
        from hierdp.privacy.tabulated import AT_ONCE

        assert sizes["tables"] == AT_ONCE
