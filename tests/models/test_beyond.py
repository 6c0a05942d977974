"""Models that are not in the papers: fewest positive counts, and the Chebyshev problem of a whole tree."""

import numpy as np
import pytest

from models import SparsestChebyshev, Tree, TreeChebyshev
from solvers import solve

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("levels", "noisy", "total", "expected"),
    [
        ([[0, 0, 0], [0]], [1, 0, 3, 2, -3], 6, [6, 0, 4, 2, 0]),  # the first child is already full
        ([[0, 0], [1]], [-2, -4, 4, -2], 7, [7, 2, 5, 5]),  # the second has less room than the first
    ],
)
def test_children_with_different_capacities(levels, noisy, total, expected):
    answer = solve(TreeChebyshev(Tree(levels), noisy, total))
    assert (answer.status, answer.x.tolist()) == ("optimal", expected)


def test_ties_of_the_sparsest_are_broken_in_order():
    assert solve(SparsestChebyshev([3, 5], 9)).x.tolist() == [4, 5]  # the earlier changes, not the larger
    assert solve(SparsestChebyshev([3, 5], 7)).x.tolist() == [2, 5]
    many = solve(SparsestChebyshev([1, 3] * 100, 498))
    assert many.x.tolist() == [2, 4] * 49 + [0, 4] * 51  # the earlier counts are kept


def test_broken_constraints_are_named():
    model = TreeChebyshev(Tree([[0, 0]]), [0, 1, 2], 3)
    assert model.violations([3, 4, 0]) == ["consistency: node 0: children sum to 4, not 3"]
    assert "total: x[0] = 2, not 3" in model.violations([2, 2, 0])
    assert SparsestChebyshev([5, 0], 5).violations([4, 1])[-1].startswith("nearest: x[1] = 1 is more than 0")


@pytest.mark.parametrize(
    ("lower", "upper"),
    [([1, 2], [0]), ([1, 1], [0]), ([0, 1], [0]), ([2], []), ([2], [-1]), ([3], [0]), ([2], [1, 3])],
)
def test_consistent_sets_prove_nothing(lower, upper):
    """All three counts of a chain are 10; no set of nodes contradicts that, not even with repeated nodes."""
    model = TreeChebyshev(Tree([[0], [0]]), [0, 10, 10], 10)
    witness = {"node": 0, "lower": np.array(lower), "upper": np.array(upper, np.int64)}
    assert model.certificate([10, 10, 10], witness).bound == 0


def test_a_contradiction_below_the_root_counts_both_nodes():
    model = TreeChebyshev(Tree([[0], [0]]), [0, 4, 10], 7)
    proof = model.certificate([7, 7, 7], {"node": 1, "lower": np.array([2]), "upper": np.array([1])})
    assert (proof.bound, proof.optimal) == (3, True)


def test_counts_equal_to_the_distance_may_become_zero():
    for model, x in ((SparsestChebyshev([2, 2], 0), [0, 0]), (SparsestChebyshev([2, 3, 9], 8), [0, 1, 7])):
        assert model.certificate(x).optimal
        for threshold in range(-9, 10):  # any threshold is allowed, even one without an upper bound
            assert model.certificate(x, {"threshold": threshold}).bound <= model.objective(x)


def test_the_least_distance_of_a_huge_total():
    assert SparsestChebyshev([0], 2**62 - 5).distance == 2**62 - 5
