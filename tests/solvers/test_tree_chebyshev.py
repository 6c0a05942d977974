"""The fast path of `TreeChebyshev`: Newton steps to the least distance."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from models import Tree, TreeChebyshev
from solvers import solve
from solvers.fast.tree_chebyshev import least_distance, solve_tree_chebyshev, spans


def intervals(model, distance):
    """The intervals of all subtrees' counts at a given distance, by definition."""
    start, child = model.tree.children
    ends = [None] * model.tree.size
    for r in reversed(range(model.tree.size)):
        y = model.counts[r]
        own = (max(0, y - distance), y + distance) if r else (model.total, model.total)
        below = [ends[c] for c in child[start[r] : start[r + 1]]]
        if below:
            own = max(own[0], sum(low for low, _ in below)), min(own[1], sum(high for _, high in below))
        ends[r] = own
    return ends


def test_steps_stay_at_or_under_the_least_distance_and_end_there():
    rng = np.random.default_rng(11)
    steps = 0
    for depth in [0, 1, 2, 3] * 4:
        tree = Tree.random(rng, depth, 3, ragged=True)
        model = TreeChebyshev(tree, rng.integers(-6, 13, tree.size), int(rng.integers(0, 30)))
        best = 0
        while any(low > high for low, high in intervals(model, best)):
            best += 1
        assert least_distance(model) == best
        for distance in range(best):
            *ends, needed = spans(model, distance)
            assert np.transpose(ends).tolist() == [list(one) for one in intervals(model, distance)]
            assert distance < needed <= best
            steps += 1
    assert steps > 50


@pytest.mark.parametrize(
    ("noisy", "total", "expected"),
    [
        ([0, 5, 1], 12, [12, 8, 4]),  # both change by the mean
        ([0, 5, 1], 13, [13, 9, 4]),  # the remaining unit goes to the earlier child
        ([0, 9, -3, 1], 5, [5, 5, 0, 0]),  # counts that are cut off at 0
    ],
)
def test_siblings_change_by_equal_amounts(noisy, total, expected):
    model = TreeChebyshev(Tree([[0] * (len(noisy) - 1)]), noisy, total)
    assert solve_tree_chebyshev(model)[0].tolist() == expected


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 3, 2]])
def test_fractional_counts_change_the_least(weights):
    """Compared with all answers, for floats and for fractions."""
    tree = Tree([[0, 0], [0, 0]])
    times = [1] * 5 if weights is None else weights
    for noisy in ([0, 2.5, 1.75, -0.5, 3.25], [0, Fraction(7, 3), 1, 2, Fraction(1, 6)]):
        model = TreeChebyshev(tree, noisy, 4, weights)
        answers = [(4, a + b, 4 - a - b, a, b) for a, b in product(range(5), repeat=2) if a + b <= 4]
        given = [Fraction(4), *map(Fraction, noisy[1:])]
        changes = [
            max(w * abs(count - y) for w, count, y in zip(times, x, given, strict=True)) for x in answers
        ]
        found = solve(model)
        assert (found.status, found.objective, found.bound) == ("optimal", min(changes), min(changes))
        assert not model.certificate([4, 4, 0, 0, 4]).optimal


def test_fractions_that_would_not_fit_are_refused():
    with pytest.raises(ValueError, match="exceed 62 bits"):
        TreeChebyshev(Tree([[0, 0]]), [0, 1000.1, 1e-6], 10)
    with pytest.raises(ValueError, match="beyond 62 bits"):
        TreeChebyshev(Tree([[0, 0]]), [0, 2**60, 3], 10)
    assert TreeChebyshev(Tree([[0, 0]]), [0.1, 2.5, 3], 10).unit == 2  # the root's is ignored


def test_weights_far_apart_keep_the_proof():
    """At the least distance, the leaves of weight 1 may hold more together than 64 bits."""
    noisy, weights = [0] * 25 + [2**20], [1] * 25 + [2**39]
    found = solve(TreeChebyshev(Tree([[0] * 25]), noisy, 10, weights))
    assert (found.status, found.objective) == ("optimal", 2**39 * (2**20 - 10))
