"""Certificates alone are sound: they call no worse answer optimal, whatever the search or the witness."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import models
import solvers.fast.non_negative_inference as inference
from models import NonNegativeInference
from solvers import fast, prove, solve

NAMES = (
    "BlockInference",
    "BudgetSplit",
    "ConstrainedInference",
    "ControlledRounding",
    "FixedSum",
    "HierarchyQIP",
    "Isotonic",
    "NonNegativeInference",
    "SimplexQP",
    "StrategySDP",
)
CLOSE = 1e-9
"""Rounding may raise a bound in floats by this fraction of the objective."""


def random(name, seed, size):
    return getattr(models, name).random(np.random.default_rng(seed), size)


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


def hostile(witness, rng):
    """Change a witness in many ways, as an attacker might."""
    yield {}
    yield 7
    for name, value in witness.items():
        array = np.asarray(value)
        unit = np.zeros(array.shape, np.int64)
        if array.size:
            unit.flat[int(rng.integers(array.size))] = 1
        for other in (
            array + unit,
            array - unit,
            array * 0,
            -array,
            array * 1000,
            array + 10**6,
            np.full(array.shape, 2**62),
            np.full(array.shape, -(2**60)),
            np.full(array.shape, 1e300),
            np.full(array.shape, np.nan),
            np.full(array.shape, -np.inf),
            np.full(array.shape, Fraction(1, 3)),
            np.full(array.shape, 10**40, object),
            rng.integers(-50, 50, array.shape),
            np.array(["a"]),
            np.zeros((2, 3, 1)),
            [[1], [1, 2]],
            None,
            "prices",
            b"",
            {},
            1 + 1j,
        ):
            yield {**witness, name: other}


@pytest.mark.parametrize("name", NAMES)
def test_no_witness_proves_a_worse_answer_or_lifts_a_bound(name):
    worse = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        model = random(name, seed, int(rng.integers(4, 20)))
        x, witness = fast.answer(model)
        proof = model.certificate(x, witness)
        assert proof.optimal
        best, other = proof.objective, another_answer(model, rng)
        foreign = random(name, seed + 100, 9)
        foreign = foreign.certificate(fast.answer(foreign)[0]).witness
        far = model.certificate(other)
        given = [None, proof.witness, foreign, far.witness, *hostile(proof.witness, rng)]
        for at in (x, other):
            cost = model.objective(at)
            whole = isinstance(cost, int | Fraction) and isinstance(best, int | Fraction)
            slack = 0 if whole else CLOSE * max(1.0, abs(float(best)))
            is_worse = cost > best + (0 if whole else 1e-6 * max(1.0, abs(float(best))))
            worse += is_worse
            for each in given:
                try:
                    found = model.certificate(at, each)
                except ValueError:
                    continue
                assert float(found.objective) == pytest.approx(float(cost))
                assert not (found.optimal and is_worse), (model, each)
                assert found.bound <= best + slack, (model, each, found)
    assert worse > 2


@pytest.mark.parametrize("name", NAMES)
def test_the_witness_of_a_proof_proves_again(name):
    for seed in range(12):
        model = random(name, seed, 12)
        proof = model.certificate(*fast.answer(model))
        again = model.certificate(fast.answer(model)[0], proof.witness)
        assert again.optimal
        assert float(again.bound) == pytest.approx(float(proof.bound), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_fast_path_that_gives_worse_answers_proves_none(name, monkeypatch):
    worse = 0
    for seed in range(16):
        model, rng = random(name, seed, 12), np.random.default_rng(seed)
        best = solve(model)
        other = another_answer(model, rng)
        if not float(model.objective(other)) > float(best.objective) * (1 + 1e-6) + 1e-6:
            continue
        worse += 1
        for witness in (None, best.certificate.witness, model.certificate(other).witness):
            with monkeypatch.context() as patch:
                patch.setattr(fast, "answer", lambda _, x=other, w=witness: (x, w))
                found = solve(model)
                assert found.status == "feasible"
                assert not found.certificate
                assert not prove(model, other)
    assert worse > 3


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
