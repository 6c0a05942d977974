"""Change points: every run that is allowed counts, and whole signals of any length are judged exactly."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from models import ChangePoints, Segmentation
from solvers import prove, solve
from tests.marks import quick


def partitions(model):
    """Every answer that breaks nothing, and its cost."""
    n = len(model.data[0])
    for count in range(n):
        for later in combinations(range(1, n), count):
            x = np.zeros(n, np.int64)
            x[[0, *later]] = 1
            if not model.violations(x):
                yield x, model.objective(x)


@pytest.mark.parametrize("seeds", quick([range(40), range(40, 400)]), ids=str)
def test_the_best_partition_of_few_values_and_the_gap_of_any_other(seeds):
    for seed in seeds:
        model = ChangePoints.random(np.random.default_rng(seed), 8)
        every = list(partitions(model))
        least = min(cost for _, cost in every)
        tolerance = 0 if isinstance(least, Fraction) else 1e-7 * max(1, least)
        assert abs(solve(model).objective - least) <= tolerance
        for x, cost in every[:: max(1, len(every) // 5)]:
            proof = prove(model, x)
            assert abs(proof.gap - (cost - least)) <= tolerance
            assert proof.optimal == (cost - least <= tolerance)


def test_without_a_least_size_it_is_the_segmentation():
    for seed in range(10):
        values = np.random.default_rng(seed).integers(0, 20, 60)
        assert (
            solve(ChangePoints(values, price=50)).objective == solve(Segmentation(values, price=50)).objective
        )


@pytest.mark.parametrize("kind", [ChangePoints, Segmentation])
@pytest.mark.parametrize("clusters", [None, 2])
@pytest.mark.parametrize("half", quick([44, 74]))
def test_a_whole_signal_has_no_tolerance_however_long(kind, clusters, half):
    """The value in the middle is nearer to the right by 1: that changes the cost by 10⁻⁸ of itself."""
    swing = np.resize([2 * 10**6, -2 * 10**6], half)
    values = np.concatenate([swing, [5 * 10**6 + 1], 10**7 + swing])
    model = kind(values, clusters, 0 if clusters else 5 * 10**13)
    best, worse = np.zeros((2, values.size), np.int64)
    best[[0, half]] = worse[[0, half + 1]] = 1
    assert 0 < model.objective(worse) - model.objective(best) < 1e-7 * model.objective(best)
    assert (prove(model, best).optimal, prove(model, best).gap) == (True, 0)
    assert not prove(model, worse).optimal
    assert solve(model).objective == model.objective(best)
