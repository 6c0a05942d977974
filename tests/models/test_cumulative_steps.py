"""Dykstra's steps against a plain program in NumPy, and what the prices they end in prove by themselves."""

from dataclasses import replace

import numpy as np
import pytest

from models import CumulativeQIP, Tree
from models.certificate import FLOAT_TOLERANCE
from models.cumulative_steps import Steps
from models.projections import Consistent, monotone
from solvers import fast, solve


def consistent_by_least_squares(tree, counts):
    inner = tree.internal
    rows = np.zeros((inner.size, tree.size))
    for k, r in enumerate(inner):
        rows[k, r] = 1
        rows[k, np.flatnonzero(tree.parent == r)] = -1
    return counts - rows.T @ np.linalg.solve(rows @ rows.T, rows @ counts) if inner.size else counts.copy()


def nearest_row(row):
    """Non-decreasing by the min-max formula, then non-negative."""
    n = row.size
    best = [
        max(min(row[i : j + 1].mean() for j in range(k, n)) for i in range(k + 1)) for k in range(n)
    ]  # fmt: skip
    return np.maximum(best, 0)


def nearest_rows(counts, last):
    out = np.array([nearest_row(row) for row in counts])
    out[0, :-1] = np.minimum(nearest_row(counts[0, :-1]), last) if counts.shape[1] > 1 else []
    out[0, -1] = last
    return out


def trees(rng):
    yield Tree([])
    yield Tree([[0]])
    for depth in (1, 2, 3, 3):
        yield Tree.random(rng, depth, branching=3, ragged=True)


def test_steps_are_those_of_the_plain_program():
    rng = np.random.default_rng(1)
    for tree in trees(rng):
        for columns in (1, 2, 6):
            noisy = rng.normal(3, 4, (tree.size, columns))
            last = float(rng.integers(0, 12))
            steps = Steps(Consistent(tree), noisy, last)
            prices = before = np.zeros_like(noisy)
            momentum = 1.0
            for taken in (1, 2, 7, 20):
                steps.go(taken)
                for _ in range(taken):
                    faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
                    guess = prices + (momentum - 1) / faster * (prices - before)
                    moved = consistent_by_least_squares(tree, noisy - guess) + guess
                    nearest = nearest_rows(moved, last)
                    before, prices = prices, moved - nearest
                    momentum = 1.0 if np.sum((guess - prices) * (prices - before)) > 0 else faster
                np.testing.assert_allclose(steps.prices, prices, atol=1e-9)
                np.testing.assert_allclose(steps.nearest, nearest, atol=1e-9)


def test_nearest_rows_are_monotone_to_the_last_digit():
    rng = np.random.default_rng(2)
    for t in range(300):
        shape = rng.integers(1, 12, 2)
        rows = [rng.normal(0, 5, shape), rng.integers(-2, 3, shape) / 3, rng.normal(10**12, 1e-3, shape)][
            t % 3
        ]
        last = float(rng.integers(0, 9))
        found = monotone(rows, last)
        np.testing.assert_allclose(found, nearest_rows(rows, last), rtol=1e-13, atol=1e-13)
        assert np.all(np.diff(found[1:], axis=1) >= 0)
        assert np.all(np.diff(found[0]) >= 0)
        assert np.all(found >= 0)
        assert found[0].max() == last


def bound_of(model, prices):
    """min ‖x − c̃‖² + 2⟨p, x⟩ over consistent x, less the most that 2⟨p, z⟩ is over monotone z."""
    x = consistent_by_least_squares(model.tree, model.counts - prices)
    tails = np.cumsum(prices[:, ::-1], axis=1)  # ⟨p, z⟩ is a sum of these, times the rises of z
    assert np.all(tails[1:] <= 1e-9 * max(1, np.abs(prices).max()) * prices.shape[1])
    within = np.cumsum(prices[0, -2::-1]).max(initial=0)
    most = model.total * (prices[0, -1] + within)
    return np.sum((x - model.counts) ** 2) + 2 * np.sum(prices * x) - 2 * most


def relaxed(rng):
    while True:
        yield replace(CumulativeQIP.random(rng, int(rng.integers(1, 60))), integer=False)


def test_prices_alone_prove_the_bound_of_any_answer():
    rng = np.random.default_rng(3)
    for _, model in zip(range(40), relaxed(rng), strict=False):
        x = fast.answer(model)[0]
        best = solve(model, "clarabel").objective
        for answer in (x, replace(model, noisy=rng.permutation(np.asarray(model.noisy))).dykstra()[3]):
            proof = replace(model).certificate(answer)
            slack = FLOAT_TOLERANCE * max(1, proof.objective)
            assert proof.bound <= bound_of(model, proof.witness["prices"]) + slack / 100
            assert proof.bound <= best + slack / 100 + 1e-6 * abs(best)
            assert proof.optimal == (model.objective(answer) <= best + slack)
            # As tight as ever: within half of the tolerance of the optimum, of good answers and of bad ones.
            assert best - proof.bound <= 0.6 * slack + 1e-6 * abs(best)


def test_an_optimal_answer_is_proved_in_fewer_rounds_than_it_was_found(monkeypatch):
    taken = []
    go = Steps.go
    monkeypatch.setattr(Steps, "go", lambda self, steps: taken.append(steps) or go(self, steps))
    rng = np.random.default_rng(4)
    tree = Tree([np.zeros(8, int), rng.integers(0, 8, 60)])
    leaves = np.cumsum(rng.geometric(0.5, size=(tree.leaves.size, 40)) - 1, axis=1)
    true = tree.sum_up(leaves)
    model = CumulativeQIP(tree, true + rng.integers(-40, 41, true.shape), int(true[0, -1]), integer=False)
    x = fast.answer(model)[0]
    found = sum(taken)
    taken.clear()
    assert model.certificate(x).optimal
    assert not taken  # the answer's own prices are at hand
    assert replace(model).certificate(x).optimal
    assert sum(taken) < found
    taken.clear()
    assert not replace(model).certificate(true.astype(float)).optimal
    assert sum(taken) == found  # no prices prove it: they are those of the optimum


@pytest.mark.parametrize("rounds", [1, 10, 25])
def test_no_more_rounds_are_made_than_asked_for(rounds, monkeypatch):
    taken = []
    monkeypatch.setattr("models.cumulative_qip._proved", lambda *_: False)
    go = Steps.go
    monkeypatch.setattr(Steps, "go", lambda self, steps: taken.append(steps) or go(self, steps))
    CumulativeQIP(Tree([[0, 0]]), [[5, 3], [1, 2], [4, 0]], 4, integer=False).dykstra(rounds)
    assert sum(taken) == rounds
