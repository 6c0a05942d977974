"""Certificates alone are sound: they call no worse answer optimal, whatever the search or the witness."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import models
import solvers.fast.non_negative_inference as inference
from models import NonNegativeInference
from models.testing import bad_witnesses
from solvers import fast, prove, solve
from tests.marks import quick

NAMES = (
    *("BlockInference", "BudgetSplit", "ConstrainedInference", "ControlledRounding", "FixedSum"),
    *("HierarchyQIP", "Isotonic", "NonNegativeInference", "SimplexQP", "StrategySDP"),
)
CLOSE = 1e-9
"""Rounding may raise a bound in floats by this fraction of the objective."""


def another_answer(model, rng):
    """A feasible answer, usually not optimal."""
    name = type(model).__name__
    if name == "BudgetSplit":
        shares = rng.random(np.shape(model.weights)) + 0.1
        return model.data[1] * shares / shares.sum()
    if name == "StrategySDP":
        return np.eye(model.bins)
    if name == "ControlledRounding":
        floor, ceil = model.neighbours
        x = floor.copy()
        x[rng.permutation(np.flatnonzero(ceil > floor))[: model.ups]] += 1
        return x
    return fast.answer(replace(model, noisy=rng.permuted(model.noisy)))[0]


@pytest.mark.parametrize("seeds", quick([range(6), range(6, 30)]), ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_no_witness_proves_a_worse_answer_or_lifts_a_bound(name, seeds):
    """Of larger instances than those of the contract, whose answers are all known."""
    worse = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model, foreign = (getattr(models, name).random(rng, size) for size in (int(rng.integers(4, 40)), 9))
        x, witness = fast.answer(model)
        proof = model.certificate(x, witness)
        assert proof.optimal
        best, other = proof.objective, another_answer(model, rng)
        others = [None, witness, model.certificate(other).witness]
        others.append(foreign.certificate(*fast.answer(foreign)).witness)
        hostile = list(bad_witnesses(proof.witness, rng))
        others += [hostile[k] for k in rng.permutation(len(hostile))[:30]]
        for at in (x, other):
            cost = model.objective(at)
            whole = isinstance(cost, int | Fraction) and isinstance(best, int | Fraction)
            slack = 0 if whole else CLOSE * max(1.0, abs(float(best)))
            is_worse = cost > best + (0 if whole else 1e-6 * max(1.0, abs(float(best))))
            worse += is_worse
            found = prove(model, at)
            assert found.optimal != is_worse or (not whole and not is_worse)
            assert not whole or found.gap == cost - best
            for each in others:
                try:
                    found = model.certificate(at, each)
                except ValueError:
                    continue
                assert float(found.objective) == pytest.approx(float(cost))
                assert not (found.optimal and is_worse), (model, each)
                assert found.bound <= best + slack, (model, each, found)
    assert worse > 2


def test_whole_inference_whose_exchanges_do_nothing_is_not_proved(monkeypatch):
    """With its search broken, the fast path once called a cost of 2,144 optimal, in place of 2,141."""
    broken = 0
    for seed in range(60):
        model = NonNegativeInference.random(np.random.default_rng(seed), 14)
        if not model.integer:
            continue
        best = solve(model)
        assert best.status == "optimal"
        with monkeypatch.context() as patch:
            patch.setattr(inference, "exchange", lambda *_, **__: None)
            found = solve(model)
        assert (found.status == "optimal") == (found.objective == best.objective)
        assert found.bound <= best.objective
        broken += found.objective > best.objective
    assert broken
