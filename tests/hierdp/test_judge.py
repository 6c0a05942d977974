"""The judge of answers: what is refuted and what is not; both vocabularies cover every status."""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from hierdp.bench import verdicts as bench
from hierdp.verification import verify
from hierdp.verification.judge import SAYS_NOTHING, KnownBounds, exceeds, refuted
from hierdp.verification.table import Verdict
from solvers import Solution
from solvers.solution import Status

LARGE = 10**12
WHOLE = KnownBounds(LARGE, LARGE)
REAL = KnownBounds(250.0, 250.0)
OPEN = KnownBounds(61, 62)
"""A proved bound, and a feasible answer that costs more."""

NONE = KnownBounds(None, None, infeasible=True)
NEAR, FAR = 250 * 0.9e-6, 250 * 1.1e-6


def said(status, objective=None, bound=None, x=None):
    return Solution("somebody", "1", status, x, objective, bound)


@pytest.mark.parametrize(
    ("found", "truth", "why"),
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
        (
            said("feasible", 8417),
            KnownBounds(8417.1, 8417.1),
            "less than a proved bound",
        ),  # whole, so it violates nothing
        (said("optimal", 63), OPEN, "a feasible answer costs less"),
        (said("optimal", 60), OPEN, "less than a proved bound"),
        (said("relaxed", None, 62.5), OPEN, "its bound"),
        (said("infeasible"), OPEN, "there is an answer"),
        (said("infeasible"), KnownBounds(None, 62), "there is an answer"),
        (said("unbounded"), KnownBounds(61, None), "bounded"),
        (said("unbounded"), KnownBounds(None, 62), "bounded"),
        (said("unbounded"), NONE, "no answer"),
        (said("optimal", 1), NONE, "no answer"),
        (said("feasible", None, None, np.zeros(2)), NONE, "no answer"),
        (said("optimal", float("nan")), REAL, "a feasible answer costs less"),
    ],
    ids=repr,
)
def test_what_cannot_be_true_is_refuted(found, truth, why):
    assert why in refuted(found, truth)
    assert verify._verdict(found, truth) == "DISAGREES"
    if not truth.infeasible and truth.proved:
        told = bench.KnownOptimum(truth.high, True, 1, 1, "MIQP")
        assert bench.verdict(found, told, None).verdict == "wrong"


@pytest.mark.parametrize(
    ("found", "truth"),
    [
        (said("optimal", LARGE, LARGE), WHOLE),
        (said("optimal", LARGE, LARGE + 0.5), WHOLE),  # the bound is a float
        (said("optimal", 250 + NEAR, 250 + NEAR), REAL),
        (said("optimal", 250 - NEAR), REAL),
        (said("feasible", 250 - 0.2), REAL),  # slightly infeasible
        (said("feasible", 10**9, 0), OPEN),
        (said("optimal", 61), OPEN),
        (said("optimal", 62), OPEN),
        (said("relaxed", None, 61.5), OPEN),
        (said("infeasible"), NONE),
        (said("infeasible"), KnownBounds(61, None)),
        (said("unbounded"), KnownBounds(None, None)),
        (said("time_limit"), NONE),
        *((said(status, 0, 10**9), OPEN) for status in SAYS_NOTHING),
    ],
    ids=repr,
)
def test_what_may_be_true_is_not(found, truth):
    assert refuted(found, truth) == ""
    assert verify._verdict(found, truth) != "DISAGREES"


def test_requested_accuracy_is_allowed():
    assert refuted(said("optimal", LARGE + 1), WHOLE, exactly=1e-3) == ""
    assert refuted(said("optimal", LARGE - 1), WHOLE, exactly=1e-3)  # nothing is below the optimum
    assert refuted(said("optimal", 250.2), REAL, accuracy=1e-3) == ""
    assert refuted(said("optimal", 250.2), REAL)


def test_what_is_proved():
    assert WHOLE.proved
    assert REAL.proved
    assert NONE.proved
    assert not OPEN.proved
    assert not KnownBounds(61, None).proved
    assert not KnownBounds(LARGE - 1, LARGE).proved


def test_every_status_has_a_verdict():
    assert set(verify.VERDICTS) == set(bench.VERDICTS) == set(get_args(Status))
    assert set(verify.VERDICTS.values()) | {"DISAGREES"} == set(get_args(Verdict))
    assert set(bench.VERDICTS.values()) | {"wrong"} == set(get_args(bench.Verdict))


def test_without_a_proof_a_better_answer_refutes_and_nothing_else():
    told = bench.KnownOptimum(62, False, 1, 1, "MIQP")
    assert bench.verdict(said("optimal", 63), told, None).verdict == "wrong"
    assert bench.verdict(said("optimal", 61), told, None).verdict == "solved"
    assert bench.verdict(said("infeasible"), told, None).verdict == "wrong"


TENTH = 3 * Fraction(0.1)
"""A cost of data in floats: its denominator is 2**55."""

TINY = Fraction(1, 2**60)


def test_a_claim_in_floats_may_miss_the_last_digits_of_data_in_floats_and_of_no_others():
    """One unit in the last place of a float is not held against a solver in floats; a millionth unit of
    whole numbers or other fractions is.
    """
    truth = KnownBounds(TENTH, TENTH)
    assert refuted(said("optimal", TENTH + TINY), truth) == ""
    assert refuted(said("optimal", TENTH + TINY, bound=0.3), truth) == ""
    assert refuted(said("optimal", TENTH + Fraction(1, 2**45)), truth) == "a feasible answer costs less"
    third = Fraction(50 * 10**9, 3 * 10**9 + 1)  # a large denominator, but not of floats
    assert refuted(said("optimal", third + Fraction(1, 3**40)), KnownBounds(third, third))
    assert refuted(said("optimal", 10**15 + Fraction(1, 3)), KnownBounds(10**15, 10**15))


def test_exact_claims_and_proofs_are_compared_exactly():
    truth = KnownBounds(TENTH, TENTH)
    assert refuted(said("optimal", TENTH + TINY, bound=TENTH), truth) == "a feasible answer costs less"
    assert "less than a proved bound" in refuted(said("optimal", TENTH - TINY), truth)
    assert "its bound" in refuted(said("optimal", TENTH, bound=TENTH + TINY), truth)
    assert not KnownBounds(TENTH, TENTH + TINY).proved
    assert exceeds(TENTH + TINY, TENTH)
