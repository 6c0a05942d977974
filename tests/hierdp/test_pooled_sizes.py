"""Noisy sizes of very many groups are pooled while drawn: far fewer numbers give the same answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from doubles import added, hierarchy

from hierdp import release
from hierdp.checking import FAILS, check
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.count_of_counts import estimates, pooled
from hierdp.mechanisms.count_of_counts.mechanism import measured
from hierdp.mechanisms.count_of_counts.plan import plan_of
from hierdp.privacy.budget import Allowed
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.spool import Steps
from hierdp.record.step import NotProved
from models import Isotonic
from solvers import fast


@pytest.mark.parametrize("bounds", [(None, None), (0, 2)])
def test_the_shorter_problem_has_the_same_answer(bounds):
    """All sequences of up to 4 entries from 4 numbers; no other ordered answer is nearer."""
    options = {"lower": bounds[0], "upper": bounds[1], "integer": True}
    places = range(-1, 5) if bounds[0] is None else range(3)
    shorter = 0
    for n in range(1, 5):
        ordered = np.array(list(itertools.combinations_with_replacement(places, n)))
        for noisy in itertools.product((-1, 0, 2, 4), repeat=n):
            y = np.array(noisy)
            numbers, weights = pooled.pooled(y)
            best, _ = fast.answer(Isotonic(numbers, weights=weights, **options))
            x = np.repeat(best, weights)
            assert ((x - y) ** 2).sum() == ((ordered - y) ** 2).sum(axis=1).min()
            assert x.tolist() == fast.answer(Isotonic(y, **options))[0].tolist()
            shorter += numbers.size < n
    assert shorter > 100


def test_a_long_plateau_becomes_few_numbers():
    rng = np.random.default_rng(3)
    y = np.repeat([1, 2, 50], [600, 299, 1]) + rng.integers(-30, 31, 900)
    numbers, weights = pooled.pooled(y)
    assert numbers.size < 100
    assert weights.sum() == y.size
    best, _ = fast.answer(Isotonic(numbers, weights=weights, integer=True))
    assert np.array_equal(np.repeat(best, weights), fast.answer(Isotonic(y, integer=True))[0])


@pytest.mark.parametrize(
    ("noisy", "lengths", "means", "over", "right"),
    [
        ([3, 1, 2], [3], [2], [0], True),
        ([1, 3, 2], [3], [2], [0], False),  # begins below its mean
        ([2, 2, 1, 3, 2], [5], [2], [0], False),  # falls below it in the middle
        ([2, 2, 1], [3], [1], [2], True),
        ([1, 2, 2], [3], [1], [2], False),  # below by a fraction
        ([3, 1, 2], [3], [1], [2], False),  # another mean
        ([3, 1, 2], [2], [2], [0], False),  # an entry is left out
    ],
)
def test_blocks_that_do_not_fall_are_refused(noisy, lengths, means, over, right):
    assert pooled.fall(*(np.array(part) for part in (noisy, lengths, means, over))) is right


def test_a_wrong_block_releases_nothing(monkeypatch):
    monkeypatch.setattr(pooled, "pools", lambda _: np.zeros(1, np.int64))
    with pytest.raises(NotProved, match="pooled that do not fall"):
        pooled.pooled(np.array([1, 2]))


def test_sums_beyond_62_bits_stay_as_they_are():
    y = np.array([2**61, 5, -(2**61)])
    numbers, weights = pooled.pooled(y)
    assert (numbers.tolist(), weights.tolist()) == (y.tolist(), [1, 1, 1])


@pytest.mark.parametrize("method", ["Hg", "Hg1"])
def test_a_region_is_estimated_alike_in_blocks_and_at_once(monkeypatch, method):
    groups, places = 133, hierarchy([[0]])
    data = SizeRuns(places, Runs.from_rows([([1, 2, 40], [70, 60, 3])] * 2))
    plan = plan_of(f"bottom-up {method}", places.levels, max_size=50, smallest=1)
    noisy = np.random.default_rng(5).integers(-9, 10, groups)

    def found(block):
        monkeypatch.setattr(estimates, "BLOCK", block)
        noise = added(0, 0)
        taken = iter(noisy)
        noise.make = lambda counts: counts + np.array([next(taken) for _ in counts])
        steps = Steps()
        made = measured(places, data.runs.groups, Allowed(1.0), MeasureTruth(data.runs, noise), steps, plan)
        (step,) = steps.kept
        assert step.solution.certificate.optimal
        return *map(list, made.runs.of(1)), step.model

    *whole, dense = found(1000)
    *parts, short = found(40)
    assert parts == whole
    assert dense.weights is None
    assert (short.weights is None) is (method == "Hg1")
    assert np.size(short.noisy) == groups if method == "Hg1" else np.size(short.noisy) < groups


@pytest.mark.slow
def test_check_accepts_pooled_sizes(tmp_path, monkeypatch):
    homes = np.repeat(np.arange(34), 2)
    rows = pd.DataFrame({"state": np.where(homes < 30, "A", "B"), "home": homes})
    monkeypatch.setattr(estimates, "BLOCK", 12)
    options = {"levels": ["state"], "group": ["home"], "max_size": 9, "method": "Hg"}
    options |= {"regions_from_data": True, "groups_from_data": True}
    made = release(rows, "count-of-counts", epsilon=1, noise=SimulatedNoise(1), **options)
    weights = {step.name: step.model.weights for step in made.steps if step.name.startswith("Hg")}
    assert weights["Hg: state A"].sum() == 30
    assert weights["Hg: state B"] is None
    folder = made.write(tmp_path / "out")
    assert not [line for line in check(folder) if line.verdict == FAILS]
