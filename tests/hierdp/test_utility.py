"""The utility theorem: its formula, its deterministic inequality, and how often the bound fails."""

import math

import numpy as np
import pytest
from doubles import added, flows
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.analysis.utility import error_bound, error_bound_by_nodes
from hierdp.data.trips import binary_areas, random_areas
from hierdp.errors import InputError
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.metrics import group_sizes as metrics
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise, gaussian
from hierdp.tables import Flows

pytestmark = pytest.mark.slow

DELTA = 1e-6


@pytest.mark.parametrize(("level", "branching", "levels"), [(1, 1, 1), (1, 2, 16), (3, 10, 8), (8, 10, 8)])
def test_theorem_4(level, branching, levels):
    rho, beta, squared = 0.02, 0.1, 6
    variance = squared * levels / (2 * rho)
    spelled = 2 * level * math.sqrt(
        2 * variance * math.log(2 * level * branching**level * branching / beta)
    )  # fmt: skip
    assert error_bound(level, branching, levels, rho, beta, squared) == pytest.approx(spelled)
    assert error_bound(level, branching, levels, rho, beta) == pytest.approx(spelled / math.sqrt(3))


def test_bound_by_nodes_spelled_out():
    scales, nodes, beta = [3.0, 0.5, 20.0], [2, 7, 31], 0.2
    each = [math.sqrt(2 * s**2 * math.log(2 * 3 * n / beta)) for s, n in zip(scales, nodes, strict=True)]
    assert error_bound_by_nodes(scales, nodes, beta) == 2 * sum(math.floor(t) for t in each)
    assert isinstance(error_bound_by_nodes(scales, nodes, beta), int)
    assert error_bound_by_nodes([], [], beta) == 0
    # A level without nodes has no noise, but still has its share of β.
    assert error_bound_by_nodes([3.0, 9.0], [2, 0], beta) == 2 * math.floor(
        3 * math.sqrt(2 * math.log(2 * 2 * 2 / beta))
    )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 8), st.floats(1e-4, 1), st.floats(0.001, 0.9))
def test_the_union_over_nodes_is_tighter(level, branching, more, rho, beta):
    levels = level + more
    scale = math.sqrt(levels / rho)
    nodes = [branching**i for i in range(1, level + 1)]
    assert error_bound_by_nodes([scale] * level, nodes, beta) <= error_bound(
        level, branching, levels, rho, beta
    )


@given(flows(), st.integers(0, 10_000), st.integers(0, 12), st.data())
@settings(deadline=None, max_examples=15)
def test_no_error_is_larger_than_twice_the_noise_above_it(data, seed, spread, draw):
    """The deterministic part of Theorem 4, 2·Σ (largest noise); it also holds if regions are dropped."""
    first = draw.draw(st.sampled_from([None, *data.axis_names]))
    noise = added(seed, spread)
    made = top_down(data, 1.0, DELTA, noise, "InfTDA", first=first)
    largest = [int(np.abs(a - b).max(initial=0)) for a, b in zip(noise.true, noise.noisy, strict=True)]
    truth = true_table(data, first)
    found = metrics.top_down_errors(truth, made.table).set_index("level").max_error
    for level in range(1, len(largest) + 1):
        assert found.get(level, 0) <= 2 * sum(largest[:level])


class Heard(SimulatedNoise):
    """Keeps the true counts, so that errors can be computed."""

    def __init__(self, seed):
        super().__init__(seed)
        self.true = []

    def draw(self, query, true):
        self.true.append(true.copy())
        return super().draw(query, true)


@pytest.mark.parametrize(("axes", "levels"), [(binary_areas(2), 4), (random_areas(1, 1, 30, 30), 2)])
def test_it_fails_no_more_often_than_beta(axes, levels):
    """Over many runs, at every level; the errors are also within a reasonable factor of the bounds."""
    runs, epsilon, beta = 150, 1.0, 0.3
    n = axes.names[-1].size
    cells = np.stack(np.unravel_index(np.arange(n**2), (n, n)), axis=1)
    data = Flows((axes, axes), ("from", "to"), cells, np.full(n**2, 10**6))  # too large to be dropped
    rho = rho_of(epsilon, DELTA)
    scales, nodes, found = [math.sqrt(levels / rho)] * levels, [], []
    for seed in range(runs):
        noise = Heard(seed)
        made = top_down(data, epsilon, DELTA, noise, "InfTDA")
        assert [spend.scale for spend in made.ledger.spends] == pytest.approx(scales)
        nodes = [true.size for true in noise.true]
        answers = [step.solution.x for step in made.steps]
        found.append([int(np.abs(x - true).max()) for x, true in zip(answers, noise.true, strict=True)])
    widest = n if levels == 2 else 2
    bounds = np.array(
        [
            [error_bound_by_nodes(scales[:k], nodes[:k], beta) for k in range(1, levels + 1)],
            [error_bound(k, widest, levels, rho, beta) for k in range(1, levels + 1)],
        ]
    )
    failed = (np.array(found)[:, None, :] > bounds).sum(axis=0)
    assert (failed <= beta * runs + 3 * math.sqrt(runs * beta * (1 - beta))).all()
    ratio = np.array(found).max(axis=0) / bounds
    # The bound adds up the levels' worst cases, which do not coincide: errors stay near one level's noise.
    assert (ratio * np.arange(1, levels + 1) > 0.3).all()


def test_the_noise_is_bounded_as_often_as_the_theorem_needs():
    """As the proof needs, |noise| ≤ ⌊t⌋ for all nodes, except with probability β."""
    runs, n, beta, scale = 2_000, 20, 0.5, 3.0
    half = error_bound_by_nodes([scale], [n], beta) // 2
    zero = np.zeros((runs, n), dtype=np.int64)
    rho = 2 / (2 * scale**2)
    noisy = SimulatedNoise(5).draw(gaussian("counts", math.sqrt(2), rho), zero).answers
    failed = (np.abs(noisy).max(axis=1) > half).mean()
    assert 0.02 < failed <= beta
    # The bound is tight: for a normal law, it would hold if one lower, but not if two lower.
    assert (np.abs(noisy).max(axis=1) > half - 3).mean() > beta / 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: error_bound(0, 2, 4, 0.1, 0.05), "level must be in 1 … 4, got 0"),
        (lambda: error_bound(5, 2, 4, 0.1, 0.05), "level must be in 1 … 4, got 5"),
        (lambda: error_bound(1, 0, 4, 0.1, 0.05), "branching must be at least 1, got 0"),
        (lambda: error_bound(1, 2, 4, 0.0, 0.05), "rho must be .* got 0"),
        (lambda: error_bound(1, 2, 4, math.inf, 0.05), "rho must be .* got inf"),
        (lambda: error_bound(1, 2, 4, math.nan, 0.05), "rho must be .* got nan"),
        (lambda: error_bound(1, 2, 4, 0.1, 0.0), "beta must .* got 0"),
        (lambda: error_bound(1, 2, 4, 0.1, 1.0), "beta must .* got 1"),
        (lambda: error_bound_by_nodes([1.0], [1], math.nan), "beta must .* got nan"),
        (lambda: error_bound_by_nodes([1.0], [1, 2], 0.1), "1 scales for 2 levels"),
    ],
)
def test_invalid_arguments_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        wrong()
