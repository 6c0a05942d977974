"""No hostile answer or witness lifts a bound above the optimum: `tests.models.hostile` as tests."""

import math
import os
from dataclasses import replace

import pytest

from models import FixedSum
from tests.models import hostile
from tests.models.families import CONTRACTS
from tests.models.hostile import FalseProofError, Trial, attack

TRIES = int(os.environ.get("HIERDP_CASES", "20000"))
"""Tries of each model in the slow test; with HIERDP_CASES=40000 they are a million over all models."""

COSTLY = {
    *("BlockInference", "ConstrainedInference", "JointTables", "Segmentation", "StrategySDP"),
    *("Reconciliation", "Reconciliation, in floats"),
    *("WorkloadLeastSquares", "WorkloadLeastSquares, in fractions"),
}
"""Their certificates often take a millisecond, in Fractions; they get half the tries of others."""


@pytest.mark.parametrize("name", list(CONTRACTS))
def test_hostile_tries(name):
    tally = attack(name, 150)
    assert tally["tries"] == 150


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONTRACTS))
def test_many_hostile_tries(name):
    tries = TRIES // 2 if name in COSTLY else TRIES
    tally = attack(name, tries, seed=1)
    assert tally["tries"] == tries
    assert tally["bounds"] > tries / 50
    assert tally["optimal"] > 0


BEST = 2**56
LIES = {
    "a bound above the optimum": lambda proof: replace(proof, bound=proof.bound + 1),
    "an answer that is not optimal": lambda proof: replace(proof, optimal=True, bound=proof.objective, gap=0),
    "a gap below 0": lambda proof: replace(proof, optimal=True, gap=-1),
    "no bound": lambda proof: replace(proof, optimal=True, bound=None, gap=None),
    "not a number": lambda proof: replace(proof, bound=math.nan, gap=math.nan),
    "no certificate": lambda _: True,
}


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found_out(lie, monkeypatch):
    """At 2^56, where floats would not tell costs apart."""
    model = FixedSum([BEST, -BEST + 1], BEST, 1)
    trial = Trial("FixedSum", model, [[BEST, 0], [BEST - 1, 1]], [None])
    assert trial.least == BEST - 1
    tally = hostile.Counter()
    for x, cost, feasible in trial.answers:
        trial.check(x, cost, feasible, None, tally)
    assert tally == {"tries": 2, "bounds": 2, "optimal": 1}
    honest = FixedSum.certificate
    monkeypatch.setattr(FixedSum, "certificate", lambda *given: LIES[lie](honest(*given)))

    def every():
        for x, cost, feasible in trial.answers:
            trial.check(x, cost, feasible, None, tally)

    with pytest.raises(FalseProofError):
        every()


def test_a_crash_is_found_out(monkeypatch):
    trial = Trial("FixedSum", FixedSum([1, 2], 2), [[1, 1]], [None])
    monkeypatch.setattr(FixedSum, "certificate", lambda *_: 1 // 0)
    with pytest.raises(FalseProofError, match="ZeroDivisionError"):
        trial.check([1, 1], 0, True, None, hostile.Counter())
