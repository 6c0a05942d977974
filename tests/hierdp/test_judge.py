"""The one judge of answers: what is refuted, what is proved, and what is neither; and what a model proves."""

import sys
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from hierdp.verification.judge import (
    LAST_DIGITS,
    NEARLY,
    SAYS_NOTHING,
    SEVERITY,
    WITHOUT_CLAIM,
    KnownBounds,
    exceeds,
    judge,
    known_bounds,
    refuted,
    resolution,
)
from models import Chebyshev, CostTable, HierarchyQIP, Isotonic, Segmentation, Tree
from solvers import Solution, solve
from solvers.solution import Status

LARGE = 10**12
WHOLE = KnownBounds(LARGE, LARGE)
REAL = KnownBounds(250.0, 250.0)
OPEN = KnownBounds(61, 62)
"""A proved bound, and a feasible answer that costs more."""

FLOATS = KnownBounds(None, 250.0)
"""An answer in floats, which may cost less than the optimum, since it may violate constraints."""

INFEASIBLE, UNBOUNDED, NOTHING = KnownBounds(infeasible=True), KnownBounds(unbounded=True), KnownBounds()
NEAR, FAR = 250 * 0.9e-6, 250 * 1.1e-6
TENTH = 3 * Fraction(0.1)
"""A cost of data in floats: its denominator is 2**55."""

TINY = Fraction(1, 2**60)
THIRD = Fraction(50 * 10**9, 3 * 10**9 + 1)
"""A large denominator, but not of floats."""

HALVES = Fraction(2**60 + 1, 2)


def said(status, objective=None, bound=None, seconds=0.0):
    return Solution("somebody", "1", status, None, objective, bound, solve_seconds=seconds)


def exactly(cost):
    return KnownBounds(cost, cost)


@pytest.mark.parametrize(
    ("found", "facts", "why"),
    [
        (said("optimal", LARGE + 1), WHOLE, "a feasible answer costs less"),
        (said("optimal", LARGE - 1), WHOLE, "less than a proved bound"),
        (said("feasible", LARGE - 1), WHOLE, "less than a proved bound"),
        (said("optimal", Fraction(3 * LARGE + 1, 3)), WHOLE, "a feasible answer costs less"),
        (said("optimal", LARGE, LARGE + 1), WHOLE, "its bound"),
        (said("optimal", 250 + FAR), REAL, "a feasible answer costs less"),
        (said("optimal", 250 - FAR), REAL, "less than a proved bound"),
        (said("optimal", 250.0, 250 + FAR), REAL, "its bound"),
        (said("feasible", 300.0, 250 + FAR), REAL, "its bound"),
        (said("relaxed", None, 250 + FAR), REAL, "its bound"),
        (said("time_limit", None, 250 + FAR), REAL, "its bound"),
        (said("feasible", 249.0), REAL, "less than a proved bound"),
        (said("optimal", 249.9), REAL, "less than a proved bound"),
        (said("feasible", 8417), exactly(8417.1), "less than a proved bound"),  # whole: it violates nothing
        (said("optimal", 63), OPEN, "a feasible answer costs less"),
        (said("optimal", 60), OPEN, "less than a proved bound"),
        (said("relaxed", None, 62.5), OPEN, "its bound"),
        (said("optimal", 250.3), FLOATS, "a feasible answer costs less"),
        (said("optimal", 250.0, 250.3), FLOATS, "its bound"),
        (said("infeasible"), OPEN, "there is an answer"),
        (said("infeasible"), KnownBounds(None, 62), "there is an answer"),
        (said("unbounded"), OPEN, "bounded"),
        (said("optimal", 1), INFEASIBLE, "no answer"),
        (said("optimal", 1.5), INFEASIBLE, "no answer"),
        (said("optimal"), INFEASIBLE, "no answer"),
        (said("feasible", 1), INFEASIBLE, "no answer"),
        (said("optimal", -1e16), UNBOUNDED, "no optimum"),
        (said("infeasible"), UNBOUNDED, "no optimum"),
        (said("optimal", float("nan")), REAL, "a feasible answer costs less"),
        # Exact claims and proofs are compared exactly; so are whole numbers, halves and other fractions.
        (said("optimal", TENTH + TINY, TENTH), exactly(TENTH), "a feasible answer costs less"),
        (said("optimal", TENTH - TINY), exactly(TENTH), "less than a proved bound"),
        (said("optimal", TENTH, TENTH + TINY), exactly(TENTH), "its bound"),
        (said("optimal", TENTH + Fraction(1, 2**45)), exactly(TENTH), "a feasible answer costs less"),
        (said("optimal", THIRD + Fraction(1, 3**40)), exactly(THIRD), "a feasible answer costs less"),
        (said("optimal", 10**15 + Fraction(1, 3)), exactly(10**15), "a feasible answer costs less"),
        (said("optimal", HALVES + Fraction(1, 2)), exactly(HALVES), "a feasible answer costs less"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_cannot_be_true_is_wrong(found, facts, why):
    assert why in refuted(found, facts)
    assert judge(found, facts) == judge(found, facts, time_limit=1.0) == "wrong"


@pytest.mark.parametrize(
    ("found", "facts", "verdict"),
    [
        (said("optimal", LARGE, LARGE), WHOLE, "solved"),
        (said("optimal", LARGE, LARGE + 0.5), WHOLE, "solved"),  # the bound is a float
        (said("optimal", 250 + NEAR, 250 + NEAR), REAL, "solved"),
        (said("optimal", 250 - NEAR), REAL, "solved"),
        (said("optimal", 61), OPEN, "solved"),  # it meets the bound
        (said("optimal", 62), OPEN, "unproved"),
        (said("optimal", 62), KnownBounds(None, 62), "unproved"),
        (said("optimal", 61), KnownBounds(None, 62), "unproved"),
        (said("optimal", 62), NOTHING, "unproved"),
        (said("optimal", 250.2, 250.2), FLOATS, "unproved"),
        (said("optimal"), REAL, "unproved"),
        (said("optimal", TENTH + TINY), exactly(TENTH), "solved"),  # a unit in the last place of a float
        (said("optimal", TENTH + TINY, 0.3), exactly(TENTH), "solved"),
        (said("optimal", 0.002), KnownBounds(-0.001, 0.002, optimal=True), "solved"),  # of huge data
        (said("feasible", 250 - 0.2), REAL, "inaccurate"),  # slightly infeasible
        (said("feasible", 61), OPEN, "inaccurate"),  # it does not claim the optimum
        (said("feasible", 10**9, 0), OPEN, "inaccurate"),
        (said("feasible", 8417.32442), exactly(8417.34399), "inaccurate"),  # SCS, violating rows by 2e-6
        (said("feasible", 1.5), INFEASIBLE, "inaccurate"),
        (said("feasible", 1), UNBOUNDED, "inaccurate"),
        (said("relaxed", None, 61.5), OPEN, "bound"),
        (said("relaxed", None, 3.0), INFEASIBLE, "bound"),
        (said("infeasible"), INFEASIBLE, "solved"),
        (said("infeasible"), KnownBounds(61, None), "unproved"),
        (said("infeasible"), NOTHING, "unproved"),
        (said("unbounded"), UNBOUNDED, "solved"),
        (said("unbounded"), INFEASIBLE, "inaccurate"),  # many solvers do not tell the two apart
        (said("unbounded"), KnownBounds(61, None), "unproved"),
        (said("unbounded"), KnownBounds(None, 62), "unproved"),
        (said("unbounded"), NOTHING, "unproved"),
        (said("time_limit"), INFEASIBLE, "stopped"),
        (said("time_limit", None, 0), OPEN, "stopped"),
        *((said(status, 0, 10**9), OPEN, WITHOUT_CLAIM[status]) for status in SAYS_NOTHING),
    ],
    ids=repr,
)  # fmt: skip
def test_what_may_be_true_is_not_wrong(found, facts, verdict):
    assert refuted(found, facts) == ""
    assert judge(found, facts) == verdict


def test_a_requested_tolerance_is_granted_in_both_directions_but_never_below_a_proof_of_whole_numbers():
    for found, facts in (
        (said("optimal", 10**8 + 1), exactly(10**8)),
        (said("optimal", 250.2, 250.2), REAL),
        (said("optimal", 249.8), REAL),
    ):
        assert judge(found, facts, tolerance=1e-3) == "solved"
        assert judge(found, facts) == judge(found, facts, tolerance=1e-9) == "wrong"
    assert judge(said("optimal", 250 + NEAR), REAL, tolerance=1e-9) == "solved"  # at least 1e-6
    assert judge(said("optimal", LARGE - 1), WHOLE, tolerance=1e-3) == "wrong"


def test_an_answer_at_the_end_of_its_time_is_stopped():
    found = said("feasible", 62, 0, seconds=NEARLY * 10)
    assert judge(found, OPEN) == judge(found, OPEN, time_limit=11.0) == "inaccurate"
    assert judge(found, OPEN, time_limit=10.0) == "stopped"
    assert judge(replace(found, bound=63.0), OPEN, time_limit=10.0) == "wrong"
    assert judge(replace(found, status="optimal", objective=61), OPEN, time_limit=10.0) == "solved"


def test_every_status_is_judged():
    statuses = get_args(Status)
    assert {*WITHOUT_CLAIM} == {*statuses} - {"optimal", "infeasible", "unbounded"}
    assert {judge(said(status), NOTHING) for status in statuses} == {*SEVERITY} - {"solved", "wrong"}
    assert (SEVERITY[0], SEVERITY[-1]) == ("solved", "wrong")
    assert {status: WITHOUT_CLAIM[status] for status in ("numerical", "size_limit", "crashed")} == {
        "numerical": "inaccurate", "size_limit": "licence", "crashed": "failed"}  # fmt: skip


def test_what_is_proved():
    assert WHOLE.proved
    assert REAL.proved
    assert INFEASIBLE.proved
    assert UNBOUNDED.proved
    assert KnownBounds(-0.001, 0.002, optimal=True).proved
    for facts in (OPEN, FLOATS, KnownBounds(61, None), KnownBounds(LARGE - 1, LARGE), NOTHING):
        assert not facts.proved
    assert not KnownBounds(TENTH, TENTH + TINY).proved
    assert exceeds(TENTH + TINY, TENTH)
    assert exceeds(float("nan"), 0)


def test_only_feasible_answers_add_to_what_is_known():
    assert NOTHING.including(said("feasible", 62)) == KnownBounds(None, 62)
    assert OPEN.including(said("optimal", 61)) == KnownBounds(61, 61)
    for found in (
        said("feasible", 63), said("optimal", 60), said("numerical", 61), said("error", 61),
        said("optimal"), said("optimal", float("nan")), said("relaxed", None, 61.5),
    ):  # fmt: skip
        assert OPEN.including(found) == OPEN, found
    assert NOTHING.including(said("optimal", float("nan"))) == NOTHING
    for facts in (INFEASIBLE, UNBOUNDED, KnownBounds(249.0, 250.0, optimal=True)):
        assert facts.including(said("optimal", 249.5)) == facts


def test_halves_and_quarters_are_compared_exactly():
    """Costs of data in floats have denominators beyond 2^20; those of halves have not."""
    for denominator in (2, 4, 2**20):
        assert resolution(Fraction(1, denominator), Fraction(1, 3)) == 0
        assert resolution(Fraction(1), Fraction(3, denominator)) == 0
    assert resolution(Fraction(1, 2**21), Fraction(1)) == LAST_DIGITS


MODEL = Chebyshev([5, 3, -2, 8], total=9)
EMPTY = HierarchyQIP(Tree([[0, 0]]), [[9], [1], [1]], total=9, window=1)


def answer(model, x, status="optimal", **more):
    return Solution("somebody", "1", status, np.array(x), model.objective(x), **more)


def test_the_fast_paths_certificate_proves_the_optimum_and_no_further_answer_is_needed():
    def answers():
        yield solve(MODEL)
        raise AssertionError("not needed")

    facts, best = known_bounds(MODEL, answers())
    assert (facts.optimal, facts.low, facts.high) == (True, best.objective, best.objective)
    assert MODEL.certificate(best.x, best.witness).optimal


@pytest.mark.parametrize(
    "model",
    [
        Chebyshev([10**8, 0], total=0),  # whole, although it has no option `integer`
        Isotonic([10**4, 0], integer=True),  # with squares
        Isotonic([10**8, 0], p=1, integer=True),
        CostTable([[0, 10**8], [0, 10**8 + 5]], 1),
    ],
)
def test_costs_of_whole_models_are_compared_exactly(model):
    facts, best = known_bounds(model, [solve(model)])
    assert judge(best, facts) == "solved"
    assert judge(replace(best, objective=best.objective + 1), facts) == "wrong"


def test_a_bound_that_is_proved_is_kept_although_the_optimum_is_not():
    """The claims of backends are no bounds; their answers are proved."""
    worse, x = [9, 0, 0, 0], solve(MODEL).x
    facts, best = known_bounds(MODEL, [answer(MODEL, worse, bound=MODEL.objective(worse))])
    assert facts.low == MODEL.objective(x)
    assert (facts.high, facts.proved) == (MODEL.objective(worse), False)
    assert best.x.tolist() == worse
    facts, best = known_bounds(MODEL, [answer(MODEL, worse), answer(MODEL, x), answer(MODEL, worse)])
    assert (facts.optimal, facts.high) == (True, MODEL.objective(x))
    assert MODEL.certificate(best.x, best.witness).optimal
    for status in ("numerical", "error", "relaxed"):
        assert known_bounds(MODEL, [answer(MODEL, x, status)]) == (NOTHING, None)


def test_the_witness_that_is_found_for_another_programs_answer_is_kept():
    model = Segmentation.random(np.random.default_rng(1), 8)
    x = solve(model).x
    assert not model.certificate(x).optimal
    facts, best = known_bounds(model, [answer(model, x)])
    assert facts.optimal
    assert model.certificate(best.x, best.witness).optimal


def test_certificate_of_huge_data_proves_up_to_rounding():
    rng = np.random.default_rng(2)
    model = Isotonic(np.sort(rng.normal(size=7) * 1e12) + rng.normal(size=7) * 1e-2)
    facts, _ = known_bounds(model, [solve(model)])
    assert facts.proved


def test_the_claim_of_a_backend_proves_no_optimum():
    """No fast path takes this table, and its prices leave a gap."""
    table = CostTable([[0, 50, 80], [0, 50, 80], [0, 50, 40]], 3)
    facts, best = known_bounds(table, [solve(table), answer(table, [0, 1, 2], bound=90)])
    assert (facts.high, facts.proved, best.objective) == (90, False, 90)
    assert facts.low < 90


def test_that_there_is_no_answer_is_known_from_the_model_alone(monkeypatch):
    claim = Solution("fast", "1", "infeasible")
    assert solve(EMPTY).status == "infeasible"
    assert known_bounds(EMPTY, [claim]) == (INFEASIBLE, None)
    assert known_bounds(MODEL, [claim]) == (NOTHING, None)
    monkeypatch.setattr(
        sys.modules[judge.__module__], "prove", lambda *_: pytest.fail("there is no answer to prove")
    )
    assert known_bounds(EMPTY, [answer(EMPTY, [[2], [1], [1]])])[0] == INFEASIBLE
