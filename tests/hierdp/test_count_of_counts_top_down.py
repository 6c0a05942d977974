"""Top-down consistency on runs against Kuo et al.'s Algorithms 1 and 2, written group by group."""

from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from doubles import hierarchy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hierdp.counts.size_runs import Runs
from hierdp.mechanisms.count_of_counts import top_down as module
from hierdp.mechanisms.count_of_counts.private import consistent_groups
from hierdp.mechanisms.count_of_counts.top_down import Weighed, top_down
from hierdp.record.spool import Steps
from models import HierarchyQIP, Tree
from solvers import solve
from tests.marks import quick

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)

TREES = ([[0]], [[0, 0]], [[0, 0, 0]], [[0, 0], [0, 1, 1]], [[0, 0], [1, 0, 0]], [[0], [0, 0], [1, 0, 1]])


def match(parent, children):
    """Alg. 2 on single groups: `parent` is a sorted list of (size, weight), `children` a list of such lists.

    Ties, which the paper leaves open: equal fractions go up for earlier children; groups of one size are
    taken in order.
    """
    top, found = list(parent), [[] for _ in children]
    rest = [list(child) for child in children]
    while top:
        smallest = min(child[0][0] for child in rest if child)
        at = [sum(size == smallest for size, _ in child) for child in rest]
        tops = sum(size == top[0][0] for size, _ in top)
        give = at
        if tops < sum(at):
            exact = [Fraction(tops * n, sum(at)) for n in at]
            give = [int(share) for share in exact]
            order = sorted(range(len(at)), key=lambda c: give[c] - exact[c])
            for c in order[: tops - sum(give)]:
                give[c] += 1
        for c, groups in enumerate(give):
            for _ in range(groups):
                found[c].append((top.pop(0), rest[c].pop(0)))
    return found


def merged(pair, weighted):
    (size, weight), (other, weight_other) = pair
    a, b = (weight, weight_other) if weighted else (1, 1)
    return round(
        Fraction(size * a + other * b) / (a + b)
    ), weight + weight_other  # Python rounds half to even


def plain(tree, nodes, weighted):
    """Alg. 1 from line 8, on lists of (size, weight)."""
    start, child = tree.children
    done = {0: nodes[0]}
    for r in range(tree.size):
        family = child[start[r] : start[r + 1]]
        if family.size:
            for c, pairs in zip(family, match(done[r], [nodes[c] for c in family]), strict=True):
                done[c] = sorted(merged(pair, weighted) for pair in pairs)
    sizes = {r: [size for size, _ in done[r]] for r in range(tree.size)}
    for r in range(tree.size - 1, -1, -1):
        family = child[start[r] : start[r + 1]]
        if family.size:
            sizes[r] = sorted(size for c in family for size in sizes[c])
    return [sizes[r] for r in range(tree.size)]


@st.composite
def estimates(draw):
    """Runs for each node, with numbers of groups that add up, and a weight for each run."""
    tree = Tree(draw(st.sampled_from(TREES)))
    groups = tree.sum_up(np.array([draw(st.integers(0, 9)) for _ in tree.leaves]))
    far = draw(st.sampled_from([2, 5, 40]))
    rows, weights = [], []
    for n in groups.tolist():
        sizes, counts = np.unique(
            draw(st.lists(st.integers(0, far), min_size=n, max_size=n)), return_counts=True
        )
        rows.append((sizes.astype(int), counts))
        weights += [draw(st.integers(1, 4)) for _ in sizes]
    return tree, Runs.from_rows(rows), np.array(weights, dtype=np.int64)


@quiet
@given(estimates(), st.booleans(), st.booleans())
def test_runs_do_what_the_paper_does_group_by_group(case, weighted, together):
    tree, runs, weights = case
    nodes, at = [], 0
    for r in range(tree.size):
        sizes, counts = runs.of(r)
        mine = weights[at : at + sizes.size].tolist()
        at += sizes.size
        nodes.append([(s, w) for s, n, w in zip(sizes.tolist(), counts, mine, strict=True) for _ in range(n)])
    steps = Steps()
    with patch.multiple(module, RUNS_A_STEP=4, MATCHED_FROM=1 if together else 99):
        made = top_down(tree, runs, weights, weighted, solving=steps)
    assert [np.repeat(*made.of(r)).tolist() for r in range(tree.size)] == plain(tree, nodes, weighted)
    assert (made.groups == runs.groups).all()
    assert all(step.proved.proved_optimal for step in steps.kept)


def test_weights_add_up_on_the_way_down():
    """A grandchild's estimate meets two equal ones, so with equal weights it counts a third."""
    tree = Tree([[0], [0]])
    runs = Runs.from_rows([([90], [1]), ([90], [1]), ([0], [1])])
    ones = np.ones(3, np.int64)
    assert top_down(tree, runs, ones).of(2)[0].tolist() == [60]
    assert top_down(tree, runs, ones, weighted=False).of(2)[0].tolist() == [45]
    assert top_down(tree, runs, np.array([1, 1, 4])).of(2)[0].tolist() == [30]
    assert top_down(tree, runs, np.array([0.5, 0.5, 2.0])).of(0)[0].tolist() == [30]


def test_names_and_order_of_the_problems():
    places = hierarchy([[0, 0], [0, 0, 1]])
    runs = Runs.from_rows([([1, 2], [2, 2]), ([1], [3]), ([2], [1]), ([1], [3]), ([], []), ([3], [1])])
    steps = Steps()
    names = [str(name) for level in places.names for name in level]
    top_down(places.tree, runs, runs.counts, True, names, steps)
    assert [step.name for step in steps.kept] == [
        "matching: groups of all with those below",
        "merging: sizes at level 1",
        "matching: groups of 1-000 with those below",
        "matching: groups of 1-001 with those below",
        "merging: sizes at level 2",
    ]


def test_parents_that_are_matched_together():
    places = hierarchy([[0, 0, 0], [0, 0, 1, 2]])
    runs = [([1, 2], [3, 3]), ([1], [4]), ([2], [1]), ([5], [1])]
    runs = Runs.from_rows([*runs, ([1], [3]), ([7], [1]), ([3], [1]), ([6], [1])])
    apart, steps, made = Steps(), Steps(), list[Runs]()
    names = [str(name) for level in places.names for name in level]
    for matched_from, solving in ((99, apart), (1, steps)):
        with patch.multiple(module, RUNS_A_STEP=3, MATCHED_FROM=matched_from):
            made.append(top_down(places.tree, runs, runs.counts, True, names, solving))
    assert all(map(np.array_equal, *([one.sizes, one.counts, one.offsets] for one in made)))
    assert [step.name for step in steps.kept] == [
        "matching families: groups of all and 0 more with those below",
        "merging: sizes at level 1",
        "matching families: groups of 1-000 and 1 more with those below",
        "matching families: groups of 1-002 and 0 more with those below",
        "merging: sizes at level 2",
    ]


@pytest.mark.parametrize("together", [False, True])
def test_no_groups_at_all(together):
    tree = Tree([[0, 0], [0, 1]])
    empty = Runs.from_rows([([], [])] * 5)
    with patch.object(module, "MATCHED_FROM", 0 if together else 99):
        made = top_down(tree, empty, np.empty(0, np.int64))
    assert (made.rows, made.sizes.size) == (5, 0)


def test_equal_entries_are_merged():
    node, sizes = np.array([1, 0, 1, 1, 0]), np.array([4, 4, 4, 4, 3])
    made = Weighed.added(node, sizes, np.array([1, 2, 3, 4, 5]), np.array([7, 7, 8, 7, 1]), 3)
    assert made.offsets.tolist() == [0, 2, 4, 4]
    assert made.sizes.tolist() == [3, 4, 4, 4]
    assert made.counts.tolist() == [5, 2, 5, 3]
    assert made.weights.tolist() == [1, 7, 7, 8]


# --- numbers of groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize("parents", [[[0]], [[0, 0]], [[0, 0], [0, 1, 1]]])
def test_numbers_of_groups_are_the_nearest(parents):
    tree = Tree(parents)
    instances = list(product((-2, 0, 3), repeat=tree.size))
    for noisy in instances[:: max(1, len(instances) // 50)]:
        steps = Steps()
        found = consistent_groups(tree, np.array(noisy), steps)
        best = min(
            np.sum((tree.sum_up(np.array(leaves)) - noisy) ** 2)
            for leaves in product(range(5), repeat=tree.leaves.size)
        )
        assert (found == tree.sum_up(found[tree.leaves])).all()
        assert found.min() >= 0
        assert np.sum((found - noisy) ** 2) == best
        totals = sorted(int(step.model.total) for step in steps.kept)
        assert set(totals) == {t for t in (found[0] - 1, found[0], found[0] + 1) if t >= 0}


@pytest.mark.parametrize(("states", "counties"), quick([(5, 60), (50, 2_000)]))
def test_numbers_of_groups_of_a_nation(states, counties):
    rng = np.random.default_rng(0)
    above = np.append(np.arange(states), rng.integers(0, states, counties - states))
    tree = Tree([np.zeros(states, int), above])
    true = tree.sum_up(rng.integers(0, 10**6, tree.leaves.size))
    noisy = true + rng.integers(-30, 31, tree.size)
    found = consistent_groups(tree, noisy, Steps())
    assert (found == tree.sum_up(found[tree.leaves])).all()
    costs = [solve(HierarchyQIP(tree, noisy[:, None], int(found[0]) + d)).objective for d in (-1, 0, 1)]
    assert costs[1] == np.sum((found - noisy) ** 2) == min(costs)
