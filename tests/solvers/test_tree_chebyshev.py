"""The fast path of `TreeChebyshev`: Newton steps to the least distance."""

import numpy as np
import pytest

from models import Tree, TreeChebyshev
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
