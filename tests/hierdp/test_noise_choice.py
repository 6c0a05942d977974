"""Private choices: their costs, their law, and independent draws."""

import itertools
import math

import numpy as np
import pytest

from hierdp.errors import InputError
from hierdp.privacy.noise import ExactNoise, SimulatedNoise, choice

pytestmark = pytest.mark.slow

SOURCES = {"exact": ExactNoise, "simulated": lambda: SimulatedNoise(5)}


def law(scores, scale):
    """Permute-and-flip: the first, in random order, whose coin of chance exp((score − best)/scale) is heads.

    McKenna & Sheldon 2020, Algorithm 1; the scale is 2Δ/ε.
    """
    heads = [math.exp((score - max(scores)) / scale) for score in scores]
    p = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for i in order:
            p[i] += reached * heads[i] / len(orders)
            reached *= 1 - heads[i]
    return p


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scores", [[0, 1, 3], [-4, -4], [7], [0, -2, 2, 2]])
def test_law_of_choices(source, scores):
    draws = 20_000
    chosen = SOURCES[source]().draw(choice("q", 2, 1.5), [np.array(scores)] * draws).answers
    found = np.bincount(chosen, minlength=len(scores)) / draws
    expected = law(scores, 2 * 2 / 1.5)
    assert found.sum() == pytest.approx(1)
    assert (np.abs(found - expected) < 6 * np.sqrt(expected * (1 - expected) / draws) + 1e-12).all()


def test_the_law_is_private():
    """If scores move by up to Δ, each in any direction, probabilities change by a factor of at most e^ε."""
    for scores in itertools.product(range(3), repeat=3):
        for moved in itertools.product(*([score - 1, score, score + 1] for score in scores)):
            ratio = np.log(law(scores, 2 / 0.7) / law(moved, 2 / 0.7))
            assert np.abs(ratio).max() <= 0.7 * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 7.3])
@pytest.mark.parametrize("sensitivity", [1, 2, 1001])
def test_choices_cost_opendps_loss_within_the_request(sensitivity, epsilon):
    import opendp.prelude as dp

    for scores in ([np.array([5, 2])] * 3, []):
        drawn = ExactNoise().draw(choice("q", sensitivity, epsilon), scores)
        chosen, spend = drawn.answers, drawn.spend
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        measure = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=spend.scale)
        assert spend.epsilon == measure.map(sensitivity)
        assert epsilon * (1 - 1e-9) <= spend.epsilon <= epsilon
        assert spend.scale == pytest.approx(2 * sensitivity / epsilon)
        assert (spend.query, spend.noise, spend.sensitivity) == ("q", "permute-and-flip", sensitivity)
        assert (spend.rho, spend.delta, spend.private) == (None, None, True)
        assert (chosen.shape, chosen.dtype) == ((len(scores),), np.int64)
        simulated = SimulatedNoise(1).draw(choice("q", sensitivity, epsilon), scores).spend
        assert (simulated.epsilon, simulated.private) == (epsilon, False)
        assert simulated.scale == pytest.approx(spend.scale)


@pytest.mark.parametrize("source", SOURCES)
def test_clear_choices_and_huge_scores(source):
    scores = [
        np.array([0, 10**6, 5]),
        np.array([2**60, -(2**60)]),
        np.array([3]),
        *[np.array([2**60, 2**60 + 90])] * 9,  # equal as floats
    ]
    chosen = SOURCES[source]().draw(choice("q", 1, 100.0), scores).answers
    assert chosen.tolist() == [1, 0, 0, *[1] * 9]


def test_simulated_choices_repeat_by_seed():
    scores = [np.zeros(50, np.int64)] * 20
    first, again, other = (
        SimulatedNoise(seed).draw(choice("q", 1, 1.0), scores).answers for seed in (7, 7, 8)
    )
    assert first.tolist() == again.tolist() != other.tolist()
    assert len(set(first.tolist())) > 5


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(1)], ids=["exact", "simulated"])
def test_choices_of_nothing_but_noise_are_refused(noise):
    with pytest.raises(InputError, match="epsilon is so small that the noise's scale is"):
        noise.draw(choice("q", 1, 1e-13), [np.array([1, 2])])
