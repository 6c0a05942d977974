"""Deliberately broken searches: no certificate may call their answers optimal."""

import numpy as np
import pytest

from models import (
    Chebyshev,
    Clustering,
    CostTable,
    Merging,
    Segmentation,
    SparsestChebyshev,
    Tree,
    TreeChebyshev,
    TreeMatching,
)
from solvers import fast, solve


def refused(model, best):
    """Check that the broken fast path gives a worse answer, and its certificate a correct bound."""
    found = solve(model)
    assert found.objective > best
    assert found.status == "feasible"
    assert not found.certificate.optimal
    assert found.bound <= best
    return True


def one_run(monkeypatch):
    """Make the least costs claim that a single run is best, at its true cost."""
    from solvers.fast import exact_paths

    honest = exact_paths.least_costs

    def claims_one_run(given, noise, price=0, most=0):
        potentials, begins = honest(given, noise, price, most)
        n = potentials.shape[-1] - 1
        potentials, begins = np.array(potentials, dtype=object), np.array(begins)
        begins[..., n] = 0
        potentials[..., n] = exact_paths.cost_of(given, noise, np.array([0])) + price
        return potentials, begins

    monkeypatch.setattr(exact_paths, "least_costs", claims_one_run)


@pytest.mark.parametrize(
    "model", [Clustering([1, 1, 3, 3, 4, 6, 7], noise_scale=2), Segmentation([1, 1, 9, 9, 4], None, 1)]
)
def test_potentials_that_claim_too_much(monkeypatch, model):
    best = solve(model).objective
    one_run(monkeypatch)
    assert refused(model, best)


def test_potentials_in_floats_that_claim_too_much(monkeypatch):
    from solvers.fast import monge

    model = Clustering(np.sort(np.random.default_rng(1).integers(0, 100, 210)), 5.0)
    assert not model.in_fractions
    best = float(solve(model).objective)
    honest = monge.least_costs

    def claims_one_run(noise, price, sums):
        d, begins = honest(noise, price, sums)
        begins[-1], d[-1] = 0, float(model.objective([1] + [0] * 209))
        return d, begins

    monkeypatch.setattr(monge, "least_costs", claims_one_run)
    assert refused(model, best)


def test_layers_in_floats_that_claim_too_much(monkeypatch):
    from solvers.fast import segment_paths

    model = Segmentation(np.random.default_rng(1).integers(0, 100, 110), 2)
    assert not model.in_fractions
    best = float(solve(model).objective)
    monkeypatch.setattr(segment_paths, "layered_starts", lambda *_: np.array([0, 1]))
    honest = segment_paths.layers

    def claims_more(most, sums, whole=False):
        d = honest(most, sums, whole)
        d[-1, -1] = float(model.objective([1, 1] + [0] * 108))
        return d

    monkeypatch.setattr(segment_paths, "layers", claims_more)
    assert refused(model, best)


def test_averages_rounded_to_the_wrong_number(monkeypatch):
    from solvers.fast import merging

    model = Merging([[5, 9], [7, 1]], [[1, 1], [1, 1]], integer=True)
    best = solve(model).objective
    honest = merging.nearest
    monkeypatch.setattr(merging, "nearest", lambda sums, mass: honest(sums, mass) + 3)
    assert refused(model, best)


def test_a_distance_that_is_not_the_least(monkeypatch):
    from solvers.fast import tree_chebyshev

    model = TreeChebyshev(Tree([[0, 0], [0, 0, 1]]), [0, 6, 4, 9, 1, 2], total=10)
    best = solve(model).objective
    worse = np.array([10, 10, 0, 10, 0, 0])
    far = model.objective(worse)
    honest = tree_chebyshev.clash(model, best - 1)
    monkeypatch.setattr(tree_chebyshev, "least_distance", lambda _: far)
    monkeypatch.setattr(tree_chebyshev, "clash", lambda *_: honest)
    monkeypatch.setattr(tree_chebyshev, "_share_out", lambda *_: worse)
    assert refused(model, best)


def test_a_distance_without_a_proof_is_refused(monkeypatch):
    """A larger distance has an answer, so no proof that the next smaller one has none."""
    from solvers.fast import tree_chebyshev

    model = TreeChebyshev(Tree([[0, 0], [0, 0, 1]]), [0, 6, 4, 9, 1, 2], total=10)
    best = solve(model).objective
    monkeypatch.setattr(tree_chebyshev, "least_distance", lambda _: best + 5)
    assert tree_chebyshev.clash(model, best + 4) is None
    assert tree_chebyshev.clash(model, best - 1) is not None
    monkeypatch.setattr(tree_chebyshev, "_share_out", lambda *_: np.array([10, 10, 0, 10, 0, 0]))
    assert refused(model, best)


WORSE = [
    (Chebyshev([5, 3, -2], total=4), [0, 4, 0], {"least_distance": [5]}),
    (SparsestChebyshev([5, 3, 1, -2], total=5), [3, 1, 1, 0], {"threshold": 1}),
    (CostTable([[9, 4, 1, 0], [0, 1, 4]], total=4), [2, 2], {"d3 total": [10**9]}),
    (
        TreeMatching(Tree([[0, 0], [0, 1]]), [([0, 2], [1, 1]), *[([s], [1]) for s in (0, 1, 2, 0)]]),
        [[1, 2, 2], [1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]],
        {"consistency": np.full((3, 3), 10**9), "monotone": np.full((2, 2), 10**9)},
    ),
]


@pytest.mark.parametrize(("model", "worse", "claim"), WORSE)
def test_false_witness_of_a_fast_path(monkeypatch, model, worse, claim):
    best = solve(model).objective
    for witness in (None, claim):
        monkeypatch.setattr(fast, "answer", lambda _, witness=witness: (np.array(worse), witness))
        assert refused(model, best)
