"""Proposition 1 of Boninsegna & Silvestri 2025: its formulas, and how often the bounds fail."""

import math

import numpy as np
import pytest

from hierdp.analysis.utility import gauss_error_bound, stability_error_bound
from hierdp.data.trips import random_areas
from hierdp.errors import InputError
from hierdp.experiments.papers.boninsegna2025 import cells_below
from hierdp.privacy.noise import SimulatedNoise, gaussian, over
from hierdp.privacy.threshold import Changes, papers_threshold
from hierdp.tables import Flows

DEPTH, BETA = 4, 0.3


def test_gauss_is_the_printed_bound():
    """With σ² = Δ₂²/2ρ = 1/ρ, b = 3 and T = 4: √(2·b^(T−ℓ)·ln(2b^ℓ/β)/ρ)."""
    rho = 0.02
    for level in range(DEPTH + 1):
        printed = math.sqrt(2 * 3 ** (DEPTH - level) * math.log(2 * 3**level / BETA) / rho)
        found = gauss_error_bound(math.sqrt(1 / rho), 3 ** (DEPTH - level), 3**level, BETA)
        assert found == math.floor(printed)


def test_the_gauss_bound_fails_no_more_often_than_beta():
    runs, scale = 2_000, 5.0
    zero = np.zeros((runs, 2**DEPTH), dtype=np.int64)
    noisy = SimulatedNoise(5).draw(gaussian("counts", math.sqrt(2), 1 / scale**2), zero).answers
    for level in range(DEPTH + 1):
        sums = np.abs(noisy.reshape(runs, 2**level, -1).sum(axis=2)).max(axis=1)
        bound = gauss_error_bound(scale, 2 ** (DEPTH - level), 2**level, BETA)
        failed = (sums > bound).mean()
        assert failed <= BETA
        assert (sums > 0.5 * bound).mean() > BETA  # it is not far from what happens


@pytest.mark.parametrize(("scale", "positive"), [(2.0, 1), (2.0, 300), (0.3, 7), (20.0, 4)])
def test_the_largest_noise_of_a_stability_histogram(scale, positive):
    """k is the least number that noise exceeds with probability at most β/n, by summing the law."""
    a, k = math.exp(-1 / scale), 0
    law = [(1 - a) / (1 + a) * a**j for j in range(1, 2_000)]
    while positive * 2 * sum(law[k:]) > BETA:
        k += 1
    assert stability_error_bound(scale, 12, 5, positive, BETA) == 5 * (k + 12 - 1)


def test_the_stability_bound_fails_no_more_often_than_beta():
    runs, epsilon, delta, n = 150, 1.0, 1e-3, 2**DEPTH
    changes, scale = Changes(2, 2, 1, 1), 2 / epsilon
    least = papers_threshold(changes, scale, delta)
    assert least == math.ceil(1 + 2 * math.log(2 / delta) / epsilon)  # the printed threshold
    rng, noise, worst = np.random.default_rng(2), SimulatedNoise(3), np.zeros((runs, DEPTH + 1))
    for run in range(runs):
        true = rng.integers(least - 3, least + 4, n)
        noisy = noise.draw(over("counts", changes, epsilon, least), true)
        released = np.zeros(n)
        released[noisy.positions] = noisy.answers
        for level in range(DEPTH + 1):
            off = np.abs((released - true).reshape(2**level, -1).sum(axis=1)).max()
            worst[run, level] = off
    for level in range(DEPTH + 1):
        bound = stability_error_bound(scale, least, 2 ** (DEPTH - level), n, BETA)
        assert (worst[:, level] > bound).mean() <= BETA
    finest = stability_error_bound(scale, least, 1, n, BETA)
    assert worst[:, -1].max() > 0.6 * finest


def test_cells_below_are_the_largest_number_of_finest_cells():
    one, other = random_areas(1, 2, 2, 5), random_areas(2, 2, 1, 4)
    cells = np.zeros((1, 2), np.int64)
    data = Flows((one, other), ("from", "to"), cells, np.ones(1, np.int64))
    leaves = [[area.names[-1].size, int(np.bincount(area.tree.levels[-1]).max()), 1] for area in (one, other)]
    expected = [leaves[0][i] * leaves[1][j] for i, j in ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2))]
    assert cells_below(data, ["to", "from", "to", "from"]) == expected


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: gauss_error_bound(1.0, 0, 4, 0.1), "below must be at least 1, got 0"),
        (lambda: gauss_error_bound(-1.0, 1, 4, 0.1), "scale must be a positive"),
        (lambda: gauss_error_bound(1.0, 1, 4, 1.0), "beta must lie"),
        (lambda: stability_error_bound(1.0, 0, 1, 4, 0.1), "least must be at least 1, got 0"),
        (lambda: stability_error_bound(1.0, 3, 1, 4, 0.0), "beta must lie"),
    ],
)
def test_numbers_out_of_range_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        wrong()
