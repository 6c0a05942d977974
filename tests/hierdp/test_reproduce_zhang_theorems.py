"""Theorems 4.1 and 5.3 on data, and other definitions of the divergence."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hierdp.errors import InputError
from hierdp.experiments.papers import zhang2014
from hierdp.experiments.papers.zhang2014 import Settings, drawn, gaps_to_split
from hierdp.mechanisms.clustering.ahp import laplace_scale
from hierdp.metrics.histogram import kld


@pytest.mark.parametrize("epsilon", [0.007, 0.7, 3.0])
@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
def test_what_a_sample_may_spend_is_lost_in_all(epsilon, beta):
    spent = zhang2014.before_sampling(epsilon, beta)
    assert math.log1p(beta * math.expm1(spent)) == pytest.approx(epsilon, rel=1e-12)
    assert beta * spent <= epsilon * (1 + 1e-12)  # sampling never gains


def test_definitions_of_the_divergence():
    true, released = np.array([4, 0, 2, 2]), np.array([2.0, -1.0, 4.0, 2.0])
    found = zhang2014.definitions(true, released)
    assert found["ours"] == kld(true, released)
    assert found["floor of 1"] == kld(true, released, 1.0)
    assert found["in bits"] == pytest.approx(found["ours"] / math.log(2))
    # Without the second bin: (½, ¼, ¼) from (¼, ½, ¼).
    assert found["positive bins alone"] == pytest.approx(0.25 * math.log(2))
    # (5, 1, 3, 3)/12 from (3, 1, 5, 3)/12
    assert found["1 added to every bin"] == pytest.approx((5 * math.log(5 / 3) + 3 * math.log(3 / 5)) / 12)
    # (2, 1, 4, 2)/9 from (4, 1, 2, 2)/9
    assert found["the same, floor of 1"] == pytest.approx((2 * math.log(1 / 2) + 4 * math.log(2)) / 9)
    # (0, 2, 2, 4) from (¼, 2, 2, 4): the floor takes 1/33 of the sum
    assert found["sorted after release"] == pytest.approx(math.log(33 / 32))
    # |−1| is a count like any other: (4, 0, 2, 2)/8 from (2, 1, 4, 2)/9
    absolute = (
        0.5 * math.log(0.5 / (2 / 9)) + 0.25 * math.log(0.25 / (4 / 9)) + 0.25 * math.log(0.25 / (2 / 9))
    )
    assert found["absolute values"] == pytest.approx(absolute)


def test_the_other_way_round():
    found = zhang2014.definitions(np.array([3, 1]), np.array([1.0, 1.0]))
    assert found["ours"] == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert found["the other way round"] == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2))
    assert found["the same, floor of 1"] == found["the other way round"]


@pytest.mark.slow
def test_the_tables_of_both_theorems():
    sets = drawn(3, 400)
    part = zhang2014.theorem_part(sets, Settings(), 0)
    sampling, gaps = part.frames["sampling"], part.frames["gaps"]
    assert len(sampling) == len(sets) * len(Settings().epsilons) * len(zhang2014.SAMPLES)
    assert (sampling.signal < 1).all()
    assert (sampling.error_over_no_sample > 0).all()
    assert (gaps.worth_a_cut_AHP == 0).all()  # an optimum cannot be improved by a cut
    assert gaps.worth_a_cut_GS.sum() > 0
    assert (gaps.clusters_GS == math.ceil(400 / 100)).all()
    # §5 has 2.84 for w = 100 and Laplace noise of scale 2; whole noise is a little smaller.
    assert gaps[gaps.epsilon == 1].least_gap.tolist() == pytest.approx(
        [2.84 * laplace_scale(0.5) / 2] * 2, rel=2e-3
    )
    assert (gaps.bins_in_large_AHP <= 400).all()
    assert (gaps.large_GS == gaps.clusters_GS).all()


@pytest.mark.slow
def test_cells_by_every_definition():
    sets = {"Search Log, rebuilt": drawn(3, 400)["drawn, by time"], "other": np.arange(20)}
    (part,) = zhang2014.definition_parts(sets, Settings(), 0)
    frame = part.frames["definitions"]
    near = part.frames["definitions_near"].set_index("definition").cells
    ratio = frame["ours"] / frame.published
    assert near["ours"] == ((ratio < 1.5) & (ratio > 1 / 1.5)).sum()
    assert len(frame) == 3 * 5
    assert set(frame.data) == {"Search Log, rebuilt"}
    assert frame[frame.columns[4:]].notna().all(axis=None)
    assert zhang2014.definition_parts({"other": np.arange(20)}, Settings(), 0) == []


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


def test_descending_values_are_refused():
    with pytest.raises(InputError, match="ascending"):
        gaps_to_split([2, 1], 1.0)
