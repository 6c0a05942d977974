"""The least errors without places: by definition, and against all ε-DP channels by linear programs."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from hierdp import plan
from hierdp.analysis.bayes_bound import least_errors
from hierdp.errors import InputError
from hierdp.mechanisms.clustering import METHODS
from hierdp.metrics.histogram import kld
from hierdp.privacy.noise import SimulatedNoise


def divergence(h, x):
    """For all pairs: h ln(h/x) − h + x."""
    h = np.asarray(h, dtype=float)[:, None]
    return np.where(h > 0, h * np.log(np.maximum(h, 1) / np.maximum(x, 1e-300)), 0) - h + x


def by_definition(counts, epsilon):
    """Squared error, divergence, and posterior means of noisy counts, from the whole channel."""
    h, often = np.unique(counts, return_counts=True)
    a, p = math.exp(-epsilon), often / len(counts)
    y = np.arange(h[0], h[-1] + 1)
    channel = (1 - a) / (1 + a) * a ** np.abs(y - h[:, None]).astype(float)
    channel[:, 0], channel[:, -1] = a ** (h - h[0]) / (1 + a), a ** (h[-1] - h) / (1 + a)
    if y.size == 1:
        channel[:] = 1
    assert channel.sum(axis=1) == pytest.approx(np.ones(h.size))
    joint = p[:, None] * channel
    mean = h @ joint / joint.sum(axis=0)
    return (joint * (h[:, None] - mean) ** 2).sum(), (joint * divergence(h, mean)).sum(), mean


def test_they_are_those_of_the_posterior_mean():
    rng = np.random.default_rng(0)
    for _ in range(40):
        drawn = rng.integers(0, 4, 6), rng.integers(0, 60, 9), rng.integers(0, 3, 9) ** 5, [7] * 3
        counts = np.append(drawn[rng.integers(4)], 1)
        epsilon = float(rng.choice([0.01, 0.1, 0.7, 3]))
        found, (mse, loss, _) = least_errors(counts, epsilon), by_definition(counts, epsilon)
        assert found.mse == pytest.approx(mse, rel=1e-9, abs=1e-12)
        assert found.divergence == pytest.approx(loss / counts.mean(), rel=1e-7, abs=1e-12)
        slack = counts.var() / (counts.size * counts.mean() ** 2)
        assert found.kld == pytest.approx(max(0, found.divergence - slack), abs=1e-12)


@pytest.mark.parametrize(("counts", "epsilon"), [([0, 0, 0, 1, 3], 0.8), ([0, 2, 2, 3, 3, 3], 0.2)])
def test_no_channel_is_better(counts, epsilon):
    """The best ε-DP channel to many answers, the posterior means among them, by linear programming."""
    *least, means = by_definition(counts, epsilon)
    known = np.arange(max(counts) + 1)
    p = np.bincount(counts) / len(counts)
    answers = np.unique(np.concatenate([means, np.linspace(0.01, known[-1], 25)]))
    one = sp.eye(answers.size)
    pairs = [*itertools.pairwise(known), *itertools.pairwise(known[::-1])]
    unlike = np.zeros((len(pairs), known.size))
    for row, (i, j) in enumerate(pairs):
        unlike[row, i], unlike[row, j] = 1, -math.exp(epsilon)
    each = sp.kron(sp.eye(known.size), np.ones((1, answers.size)))
    for loss, expected in zip(
        ((known[:, None] - answers) ** 2, divergence(known, answers)), least, strict=True
    ):
        most = np.zeros(len(pairs) * answers.size)
        best = linprog((p[:, None] * loss).ravel(), sp.kron(unlike, one), most, each, np.ones(known.size))
        assert best.fun == pytest.approx(expected, abs=1e-8)


def test_counts_far_apart():
    """Between them, probabilities are too small for floats; a single large count is nearly known."""
    found = least_errors([0] * 400 + [10**12, 3], 1.0)
    assert found.mse == pytest.approx(least_errors([0] * 400 + [10**6, 3], 1.0).mse, rel=1e-6)
    assert 0 < found.mse < 1
    assert least_errors([5, 5], 1.0).mse == 0


def test_methods_without_places_are_not_better():
    counts = np.repeat([0, 0, 0, 4, 40], 40)
    least = least_errors(counts, 0.3)
    rng, errors = np.random.default_rng(1), []
    for run in range(5):
        drawn = rng.choice(counts, counts.size)
        made = METHODS["AHP"].publish(drawn, 0.3, SimulatedNoise(run)).counts
        errors.append([np.mean((made - drawn) ** 2), kld(drawn, made)])
    mse, loss = np.mean(errors, axis=0)
    assert 0 < least.mse < mse
    assert 0 < least.kld < loss


@pytest.mark.parametrize("counts", [[], [-1, 2], [0.5], [[1]], ["a"]])
def test_counts_must_be_whole(counts):
    with pytest.raises(InputError, match="whole numbers of at least 0"):
        least_errors(counts, 1.0)


def test_all_empty():
    with pytest.raises(InputError, match="all 0"):
        least_errors([0, 0], 1.0)


def test_a_plan_states_it():
    public = pd.DataFrame({"count": [0] * 900 + [100] * 100})
    found = plan("clustering", epsilon=0.05, bins=500, public_counts=public)
    assert "1,000 public counts, no ε-DP method has a root mean squared error below 13.86" in found.notes[-1]
    assert "a KLD below 0.3704" in found.notes[-1]
    with pytest.raises(InputError, match=r"row 2 of the table of public counts.*negative"):
        plan("clustering", epsilon=1, bins=5, public_counts=pd.DataFrame({"count": [0, -1]}))
