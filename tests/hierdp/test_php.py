"""P-HPartition: scores by definition, sensitivities over all neighbours, and spends."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hierdp.errors import InputError
from hierdp.mechanisms.clustering.php import SENSITIVITY, cut_scores
from hierdp.privacy.budget import CHOICE, Ledger
from hierdp.privacy.noise import Drawn, ExactNoise, SimulatedNoise
from tests.hierdp.doubles import Double, clustered
from tests.marks import quick


class Scripted(Double):
    """Make the given choices (0 by default), record the scores, and add no noise."""

    def __init__(self, choices=()):
        super().__init__()
        self.choices, self.scores, self.measured = iter(choices), [], []

    def draw(self, query, true):
        if query.noise != CHOICE:
            return super().draw(query, true)
        self.scores.append([score.copy() for score in true])
        self.measured.append((query.name, query.sensitivity, query.loss))
        chosen = [next(self.choices, 0) % len(score) for score in true]
        return Drawn(np.array(chosen, dtype=np.int64), self.spend(query))


def deviation(counts):
    mean = Fraction(sum(counts), len(counts))
    return math.ceil(sum(abs(count - mean) for count in counts))


def scores_of(counts, penalty):
    (scores,) = cut_scores(counts, [(0, counts.size)], penalty)
    return scores


def by_definition(counts, penalty):
    whole = [-deviation(counts) - penalty]
    cuts = range(1, len(counts))
    return whole + [-deviation(counts[:i]) - deviation(counts[i:]) - 2 * penalty for i in cuts]


def histograms(bins, most):
    return [np.array(c, dtype=np.int64) for c in itertools.product(range(most + 1), repeat=bins)]


def neighbours(counts):
    for i in range(counts.size):
        yield counts + (np.arange(counts.size) == i)


@pytest.mark.parametrize("bins", quick([1, 2, 3, 4, 5], first=4))
def test_scores_of_all_small_histograms(bins):
    for counts in histograms(bins, 3):
        assert scores_of(counts, 2).tolist() == by_definition(counts.tolist(), 2)


@pytest.mark.parametrize("largest", [1, 9, 2**58])
def test_scores_of_longer_ones_with_ties_and_huge_counts(largest):
    rng = np.random.default_rng(largest % 97)
    for size in (6, 7, 16, 31):
        counts = rng.integers(0, largest, size, endpoint=True) // (size if largest > 9 else 1)
        counts[rng.random(size) < 0.3] = 0
        assert scores_of(counts, 5).tolist() == by_definition(counts.tolist(), 5)


def test_scores_of_clusters_side_by_side():
    counts = np.array([3, 3, 9, 0, 1, 7, 7, 2, 40])
    clusters = [(1, 4), (4, 5), (7, 9), (5, 7)]
    for (first, end), scores in zip(clusters, cut_scores(counts, clusters, 1), strict=True):
        assert scores.tolist() == by_definition(counts[first:end].tolist(), 1)
    assert cut_scores(counts, [], 1) == []


@pytest.mark.parametrize("most", quick([4, 6]))
def test_sensitivity_of_the_scores(most):
    moved = 0
    for bins in range(1, most + 1):
        for counts in histograms(bins, 3 if bins < 6 else 2):
            here = scores_of(counts, 1)
            moved = max(moved, *(np.abs(scores_of(near, 1) - here).max() for near in neighbours(counts)))
    assert moved == SENSITIVITY  # attained, so OpenDP's loss is not too large


def test_a_person_moves_one_cluster_of_a_round_and_one_sum():
    """Given the same answers to all earlier queries, as composition requires."""
    rng = np.random.default_rng(2)
    for counts in histograms(4, 2):
        choices = rng.integers(0, 6, 10).tolist()
        here = Scripted(choices)
        clustered("PHP", counts, 1.0, here)
        for near in neighbours(counts):
            there = Scripted(choices)
            clustered("PHP", near, 1.0, there)
            assert [len(scores) for scores in there.scores] == [len(scores) for scores in here.scores]
            for before, after in zip(here.scores, there.scores, strict=True):
                moves = [np.abs(b - a).max() for b, a in zip(before, after, strict=True)]
                assert sum(move > 0 for move in moves) <= 1
                assert max(moves, default=0) <= SENSITIVITY
            assert np.abs(there.true[-1] - here.true[-1]).sum() == 1
    assert {sensitivity for _, sensitivity, _ in here.measured} == {SENSITIVITY}


def test_the_cuts_that_are_kept():
    """By hand: round 1 cuts before bin 3, round 2 only the left part, before bin 1; both cuts are kept."""
    counts = np.array([9, 1, 1, 4, 4, 5, 4])
    stated = Scripted([3, 1, 0, 2])
    made = clustered("PHP", counts, 1.0, stated)
    assert made.clusters.tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert made.counts.tolist() == [9, 1, 1, 4.25, 4.25, 4.25, 4.25]
    assert stated.true[-1].tolist() == [9, 2, 17]
    # ε₂ = 1/2, so each cluster costs 2. Deviations: {9, 1, 1} ⌈32/3⌉, {4, 4, 5, 4} ⌈3/2⌉, {9} and {1, 1} 0.
    assert stated.scores[1][0].tolist()[1] == -4
    assert stated.scores[-1][0].tolist() == [-12 - 2, -11 - 2 - 2 * 2, -0 - 0 - 2 - 3 * 2]
    assert clustered("PHP", counts, 1.0, Scripted([3, 1, 0, 1])).clusters.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert clustered("PHP", counts, 1.0, Scripted([3, 1, 0, 0])).clusters.tolist() == [0] * 7


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(3)], ids=["exact", "simulated"])
@pytest.mark.parametrize(("bins", "rounds"), [(1, 1), (2, 1), (3, 1), (4, 2), (100, 6)])
def test_budget_is_spent_for_any_choices(noise, bins, rounds):
    made = clustered("PHP", np.arange(bins) % 7, 0.7, noise, share=0.3)
    ledger = Ledger(0.7, 0.0, "one person", made.spends)
    assert ledger.spent == pytest.approx(0.7)
    assert len(made.spends) == rounds + 2
    shares = [0.7 * 0.3 / 2 / rounds] * rounds + [0.7 * 0.3 / 2, 0.7 * 0.7]
    assert [spend.epsilon for spend in made.spends] == pytest.approx(shares)
    assert {spend.noise for spend in made.spends} == {"permute-and-flip", "double-geometric"}
    assert made.settings == {"share": 0.3, "rounds": rounds}
    assert made.counts.shape == made.clusters.shape == (bins,)
    assert (np.diff(made.clusters) >= 0).all()  # clusters consist of neighbouring bins


def test_with_a_large_budget_it_finds_the_steps():
    counts = np.repeat([7000, 0, 300, 90_000], [10, 30, 4, 20])
    made = clustered("PHP", counts, 1000.0, SimulatedNoise(0))
    assert np.flatnonzero(np.diff(made.clusters)).tolist() == [9, 39, 43]
    assert np.abs(made.counts - counts).max() < 1


def test_two_bins_are_cut_apart():
    assert clustered("PHP", np.array([0, 10**6]), 10.0, SimulatedNoise(0)).clusters.tolist() == [0, 1]


def test_constant_counts_are_hardly_cut():
    made = clustered("PHP", np.full(64, 50), 0.05, SimulatedNoise(1))
    assert made.clusters.max() < 8


@pytest.mark.parametrize("epsilon", [1e-13, 1e-300, 5e-324])
def test_too_little_to_spend(epsilon):
    with pytest.raises(InputError, match="epsilon is so small"):
        clustered("PHP", np.arange(9), epsilon, SimulatedNoise(1))


@pytest.mark.parametrize("share", [0, 1, float("nan")])
def test_invalid_shares_are_refused(share):
    stated = Scripted()
    with pytest.raises(InputError, match="share"):
        clustered("PHP", np.arange(9), 1.0, stated, share=share)
    assert not stated.scores
    assert not stated.true
