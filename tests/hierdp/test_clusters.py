"""Theorems 4.1 and 5.3 of Zhang et al. 2014, in fractions and against all events of small mechanisms."""

import itertools
import math
from fractions import Fraction

import pytest

from hierdp.analysis.clusters import amplified, gaps_to_split
from hierdp.errors import InputError


def err(values, epsilon):
    mean = Fraction(sum(values), len(values))
    return sum((v - mean) ** 2 for v in values) + Fraction(2) / (len(values) * epsilon**2)


def test_a_gap_of_theorem_5_3_is_worth_a_cut():
    found = missed = 0
    for epsilon in (Fraction(1, 2), Fraction(2)):
        for values in itertools.combinations_with_replacement(range(8), 4):
            gaps = set(gaps_to_split(values, float(epsilon)).tolist())
            for j in (1, 2, 3):
                gain = err(values, epsilon) - err(values[:j], epsilon) - err(values[j:], epsilon)
                found += j in gaps
                missed += j not in gaps and gain >= 0
                assert j not in gaps or gain >= 0
    assert found > 100
    assert missed > 0  # it is not necessary


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_gap_is_the_least_at_the_ends_of_pairs(epsilon):
    """With w = 2 the condition is also necessary: (b − a)²/2 ≥ 3/ε²."""
    least = math.sqrt(6) / epsilon
    assert gaps_to_split([0, least * (1 + 1e-12)], epsilon).tolist() == [1]
    assert gaps_to_split([0, least * (1 - 1e-12)], epsilon).tolist() == []
    assert gaps_to_split([3], epsilon).size == 0


@pytest.mark.parametrize(("epsilon", "beta"), [(0.3, 0.2), (1.0, 0.5), (2.5, 0.9), (1.0, 1.0)])
def test_a_sample_loses_what_theorem_4_1_says(epsilon, beta):
    """Randomized response on one row's presence: the loss of the sampled mechanism is reached exactly."""
    yes, no = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    with_row, without = beta * yes + (1 - beta) * no, no
    assert amplified(epsilon, beta) == pytest.approx(math.log(with_row / without), rel=1e-12)
    assert amplified(900.0, 0.5) == pytest.approx(900 + math.log(0.5))


def test_wrong_numbers_are_refused():
    with pytest.raises(InputError, match="beta must be above 0"):
        amplified(1.0, 0.0)
    with pytest.raises(InputError, match="ascending"):
        gaps_to_split([2, 1], 1.0)
