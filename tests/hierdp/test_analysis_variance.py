"""Expected variances against dense algebra, for random trees, budgets and workloads; the paper's numbers."""

from itertools import product

import numpy as np
import pytest

from hierdp.analysis import grids, wavelet
from hierdp.analysis.consistent import ConsistentVariance
from hierdp.analysis.explicit_workload import ExplicitWorkload
from hierdp.analysis.methods import branchings
from hierdp.analysis.queries import Regular
from hierdp.analysis.regular import of_ranges
from hierdp.analysis.workload import PREFIX, RANGE, WHOLE, height, level_sizes, range_tree
from hierdp.errors import InputError
from models import Tree
from tests.marks import quick

AXES = (RANGE, PREFIX, WHOLE)
EQUAL = {n: [2 * n * n] * n for n in range(1, 21)}  # variances of equal budgets, by height


def covariance(tree: Tree, variance) -> np.ndarray:
    """The covariance of the leaves' generalised least-squares estimates."""
    holds = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size)]).T
    weight = np.where(np.isinf(variance), 0, 1 / np.asarray(variance))
    return np.linalg.inv((holds.T * weight) @ holds)


def of_levels(tree: Tree, variance) -> np.ndarray:
    """A variance for each node from one per level, leaves first; the root is not measured."""
    return np.append(np.inf, np.repeat(np.asarray(variance)[::-1], tree.level_sizes[1:]))


def every_range(n: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(n)
    return first, last + 1


def intervals(axis, n: int) -> list[tuple[int, int]]:
    return {
        "range": [(i, j) for i in range(n) for j in range(i + 1, n + 1)],
        "prefix": [(0, j + 1) for j in range(n)],
        "whole": [(0, n)],
    }[axis.kind]


def test_any_ordered_tree_of_any_variances():
    rng = np.random.default_rng(0)
    for _ in range(150):
        depth = int(rng.integers(0, 4))
        drawn = Tree.random(rng, depth, 3)
        tree = Tree([np.sort(np.asarray(level)) for level in drawn.levels])
        variance = np.exp(rng.normal(0, 2, tree.size))
        inner = tree.size - tree.leaves.size
        variance[:inner][rng.random(inner) < 0.3] = np.inf
        c = covariance(tree, variance)
        noise = ConsistentVariance(tree, variance)
        start, stop = every_range(tree.leaves.size)
        exact = np.array([c[i:j, i:j].sum() for i, j in zip(start, stop, strict=True)])
        np.testing.assert_allclose(noise.of_ranges(start, stop), exact, rtol=1e-9)
        q = rng.normal(size=tree.leaves.size)
        assert noise.of_query(q) == pytest.approx(q @ c @ q, rel=1e-9)
        below = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size)]).T
        np.testing.assert_allclose(noise.of_nodes(), np.sum((below @ c) * below, axis=1), rtol=1e-9)


def test_a_tree_out_of_order_takes_any_query_but_no_ranges():
    rng = np.random.default_rng(1)
    for _ in range(30):
        tree = Tree.random(rng, 3, 3, ragged=True)
        variance = np.exp(rng.normal(0, 1, tree.size))
        q = rng.normal(size=tree.leaves.size)
        assert ConsistentVariance(tree, variance).of_query(q) == pytest.approx(
            q @ covariance(tree, variance) @ q
        )
    crossed = ConsistentVariance(Tree([[0, 0], [1, 0]]), 1.0)
    above = ConsistentVariance(Tree([[0, 0], [0]]), 1.0)  # a leaf above the last level
    for noise in (crossed, above):
        with pytest.raises(ValueError, match="consecutive"):
            noise.of_ranges(0, 1)


def test_invalid_ranges_and_variances_are_refused():
    noise = ConsistentVariance(range_tree(4, 2), 1.0)
    for start, stop in ((0, 0), (-1, 2), (3, 5), (2, 1)):
        with pytest.raises(ValueError, match="empty or not within"):
            noise.of_ranges(start, stop)
    with pytest.raises(ValueError, match="must be integers"):
        noise.of_ranges(0.0, 2.0)
    with pytest.raises(ValueError, match=r"expected \(4,\)"):
        noise.of_query([1, 2, 3])
    with pytest.raises(ValueError, match="leaves must be measured"):
        ConsistentVariance(range_tree(2, 2), [1, 1, np.inf])
    with pytest.raises(ValueError, match="positive"):
        ConsistentVariance(range_tree(2, 2), 0.0)
    assert noise.of_ranges([[0, 1]], [[1, 4]]).shape == (1, 2)


PAPER = {
    (16, 2): 34.46, (32, 2): 61.34, (64, 2): 99.92, (128, 2): 152.18, (256, 2): 220.06, (512, 2): 305.54,
    (1024, 2): 410.58, (2048, 2): 537.18, (64, 8): 37.07, (128, 12): 54.17, (256, 16): 79.23,
    (512, 23): 114.01, (1024, 32): 164.29, (1024, 11): 156.64, (2048, 13): 202.51,
}  # fmt: skip


@pytest.mark.parametrize(("n", "b"), PAPER)
def test_the_papers_consistent_hierarchies_two_ways(n, b):
    levels = EQUAL[height(n, b)]
    tree = range_tree(n, b)
    assert grids.consistent(n, b, levels) == pytest.approx(PAPER[n, b], abs=0.005)
    mean = ConsistentVariance(tree, of_levels(tree, levels)).of_ranges(*every_range(n)).mean()
    assert mean == pytest.approx(grids.consistent(n, b, levels), rel=1e-11)


@pytest.mark.parametrize(
    ("n", "b", "printed"),
    [(16, 2, 79.53), (64, 8, 67.23), (256, 16, 150.98), (512, 23, 221.57), (16, 12, 42.47), (32, 16, 82.94),
     (2**13, 21, 795.53), (2**20, 16, 3183.34), (2**20, 2, 14400.02)],
)  # fmt: skip
def test_the_papers_hierarchies_without_inference(n, b, printed):
    assert grids.plain(n, b, EQUAL[height(n, b)]) == pytest.approx(printed, abs=0.005)


@pytest.mark.parametrize("n", quick([2**10 - 77, 2**20 - 77]))
def test_as_many_as_a_million_bins_both_ways(n):
    levels = np.exp(np.random.default_rng(5).normal(0, 1, height(n, 8)))
    tree = range_tree(n, 8)
    noise = ConsistentVariance(tree, of_levels(tree, levels))
    prefixes = noise.of_ranges(0, np.arange(1, n + 1)).mean()
    assert prefixes == pytest.approx(grids.consistent(n, 8, levels, [PREFIX]), rel=1e-9)
    drawn = np.sort(np.random.default_rng(6).integers(0, n, (2, 1000)), axis=0)
    start, stop = drawn[0], drawn[1] + 1
    np.testing.assert_allclose(
        noise.of_ranges(start, stop), of_ranges(n, 8, 1 / levels, start, stop), rtol=1e-9
    )


def random_case(rng):
    d = int(rng.integers(1, 4))
    n, b = int(rng.integers(1, (40, 13, 6)[d - 1])), int(rng.integers(2, 6))
    levels = np.exp(rng.normal(0, 2, height(n, b)))
    if levels.size > 1 and rng.random() < 0.3:
        levels[-1] = np.inf
    return d, n, b, levels, [AXES[k] for k in rng.integers(0, 3, d)]


@pytest.mark.slow
def test_grids_of_any_shape_budget_and_workload():
    rng = np.random.default_rng(2)
    for _ in range(150):
        d, n, b, levels, axes = random_case(rng)
        tree = range_tree(n, b, d)
        gram = np.ones((1, 1))
        for axis in axes:
            gram = np.kron(gram, axis.gram(n))
        queries = np.prod([axis.queries(n) for axis in axes])
        exact = np.sum(covariance(tree, of_levels(tree, levels)) * gram) / queries
        assert grids.consistent(n, b, levels, axes) == pytest.approx(exact, rel=1e-9)
        ragged = grids._ragged(level_sizes(n, b), b, 1 / levels, axes)  # also for complete trees
        assert ragged / queries == pytest.approx(exact, rel=1e-9)
        shares = grids.level_shares(n, b, levels, axes)
        used = np.isfinite(levels)
        assert shares[used] @ levels[used] == pytest.approx(exact, rel=1e-9)
        for i in np.flatnonzero(used):
            moved = np.where(np.arange(levels.size) == i, levels * (1 + 1e-6), levels)
            slope = (grids.consistent(n, b, moved, axes) - exact) / (levels[i] * 1e-6)
            assert slope == pytest.approx(shares[i], rel=1e-3, abs=1e-5 * exact / levels[i])


def test_nodes_used_are_counted_as_queries_use_them():
    rng = np.random.default_rng(3)
    for _ in range(80):
        d, n, b, levels, axes = random_case(rng)
        if n**d > 36:
            continue
        tree = range_tree(n, b, d)
        holds = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size, dtype=int)]).T.astype(bool)
        used = np.zeros(levels.size, int)
        for box in product(*(intervals(axis, n) for axis in axes)):
            inside_box = np.zeros((n,) * d, bool)
            inside_box[tuple(slice(i, j) for i, j in box)] = True
            inside = ~np.any(holds & ~inside_box.ravel(), axis=1)
            for u in range(1, tree.size):
                if inside[u] and (tree.parent[u] == 0 or not inside[tree.parent[u]]):
                    used[levels.size - tree.level[u]] += 1
        assert grids.nodes_used(n, b, axes) == used.tolist()


def test_given_queries_are_the_regular_ones_where_they_are_the_same():
    rng = np.random.default_rng(4)
    for _ in range(40):
        d = int(rng.integers(1, 4))
        n, b = int(rng.integers(1, (20, 6, 3)[d - 1])), int(rng.integers(2, 5))
        boxes = np.array(list(product(intervals(RANGE, n), repeat=d)))
        given, every = ExplicitWorkload(n, boxes[:, :, 0], boxes[:, :, 1]), Regular.ranges(n, d)
        levels = np.exp(rng.normal(0, 2, height(n, b)))
        assert given.dimensions == every.dimensions == d
        assert given.cells() == pytest.approx(every.cells())
        np.testing.assert_allclose(given.nodes_used(b), every.nodes_used(b))
        assert given.consistent(b, levels) == pytest.approx(every.consistent(b, levels))
        assert given.wavelet(1.0) == pytest.approx(every.wavelet(1.0))
        np.testing.assert_allclose(
            given.level_shares(b, levels), every.level_shares(b, levels), rtol=1e-5, atol=1e-9
        )
        if d == 1:
            np.testing.assert_array_equal(given.gram()[0], every.gram()[0])
            assert given.gram()[1] == every.gram()[1]


def test_marginal_prefixes_are_those_of_every_choice_of_dimensions():
    n, b, levels = 5, 2, [3.0, 1.0, 2.0]
    for d, k in ((2, 1), (3, 2)):
        boxes = []
        for chosen in product((PREFIX, WHOLE), repeat=d):
            if chosen.count(PREFIX) == k:
                boxes += list(product(*(intervals(axis, n) for axis in chosen)))
        boxes = np.array(boxes)
        given, every = ExplicitWorkload(n, boxes[:, :, 0], boxes[:, :, 1]), Regular.marginals(n, d, k)
        assert given.consistent(b, levels) == pytest.approx(every.consistent(b, levels))
        assert given.wavelet(1.0) == pytest.approx(every.wavelet(1.0))
        assert given.cells() == pytest.approx(every.cells())
        np.testing.assert_allclose(given.nodes_used(b), every.nodes_used(b))
    with pytest.raises(InputError, match="3-way"):
        Regular.marginals(5, 2, 3)


def test_the_wavelet_against_its_matrix():
    for n in range(1, 36):
        k = wavelet.depth(n)
        rows, scale = [np.ones(2**k) / 2**k], [2.0**-k]
        for i in range(1, k + 1):
            for start in range(0, 2**k, 2**i):
                row = np.zeros(2**k)
                row[start : start + 2 ** (i - 1)] = 2.0**-i
                row[start + 2 ** (i - 1) : start + 2**i] = -(2.0**-i)
                rows.append(row)
                scale.append(2.0**-i)
        scale = (1 + k) * np.array(scale)
        assert np.max(np.sum(np.abs(rows) / scale[:, None], axis=0)) == pytest.approx(1)  # loss 1
        inverse = np.linalg.inv(np.array(rows))
        c = ((inverse * (2 * scale**2)) @ inverse.T)[:n, :n]
        for axis in AXES:
            exact = np.sum(c * axis.gram(n)) / axis.queries(n)
            assert wavelet.mean_variance(n, 1.0, [axis]) == pytest.approx(exact)
        start, stop = every_range(n)
        exact = [c[i:j, i:j].sum() for i, j in zip(start, stop, strict=True)]
        np.testing.assert_allclose(wavelet.of_ranges(n, 1.0, start[:, None], stop[:, None]), exact)
    for n, printed in ((16, 37.80), (1024, 410.29)):
        assert wavelet.mean_variance(n, 1.0, [RANGE]) == pytest.approx(printed, abs=0.005)
    assert wavelet.mean_variance(16, 0.5, [RANGE, PREFIX]) == pytest.approx(
        4 / 2 * wavelet.mean_variance(16, 1.0, [RANGE]) * wavelet.mean_variance(16, 1.0, [PREFIX])
    )


def test_shapes():
    assert level_sizes(23, 5) == [23, 5, 1]
    assert (height(1, 2), height(2, 2), height(1024, 32), height(1025, 32)) == (1, 1, 2, 3)
    assert range_tree(3, 2, 2).levels[1].tolist() == [0, 0, 1, 0, 0, 1, 2, 2, 3]
    cube = range_tree(3, 2, 3)
    assert cube.parent[cube.leaves].tolist()[:9] == [p + 1 for p in (0, 0, 1, 0, 0, 1, 2, 2, 3)]
    assert cube.parent[cube.leaves].tolist()[18:] == [p + 5 for p in (0, 0, 1, 0, 0, 1, 2, 2, 3)]
    for bins, branching in ((0, 2), (4, 1), (-3, 2)):
        with pytest.raises(InputError):
            level_sizes(bins, branching)


def test_large_grids():
    n, b, levels = 10**6 + 7, 9, np.exp(np.random.default_rng(7).normal(0, 1, 7))
    for axis in AXES:  # one dimension, by the code for several
        total = grids._ragged(level_sizes(n, b), b, 1 / levels, [axis]) / axis.queries(n)
        assert total == pytest.approx(grids.consistent(n, b, levels, [axis]), rel=1e-8)
    # A dimension queried as a whole: if only leaves are measured, its length multiplies the variance.
    only_leaves = [3.0, *[np.inf] * 6]
    twice = grids.consistent(n, b, only_leaves, [RANGE, WHOLE])
    assert twice == pytest.approx(n * grids.consistent(n, b, only_leaves), rel=1e-8)
    with pytest.raises(InputError, match="14 dimensions are too many"):
        grids.consistent(3000, 50, [1.0] * 3, [RANGE] * 14)
    assert grids.consistent(2**9, 2, [1.0] * 9, [RANGE] * 14) > 0
    assert grids.feasible(2**9, 2, 14)
    assert not grids.feasible(3000, 50, 14)
    assert grids.feasible(3000, 50, 1)
    assert 2 not in branchings(Regular.ranges(3000, 14))


def test_levels_must_be_given_a_variance_each():
    for levels in ([1.0], [1.0, 1.0, 1.0], [0.0, 1.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match=r"levels|positive"):
            grids.consistent(16, 4, levels)
    with pytest.raises(ValueError, match="one per level"):
        ExplicitWorkload(16, [0], [3]).consistent(4, [1.0])


def test_invalid_given_queries_are_refused():
    for start, stop, says in (
        ([], [], "at least one"), ([0, 1], [2], "same shape"), ([0.5], [2.0], "must be an integer"),
        ([3], [3], r"range 0 is \[3, 3\)"), ([0, -1], [1, 2], r"range 1 is \[-1, 2\)"), ([0], [9], "0 … 7"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            ExplicitWorkload(8, start, stop)
    boxes = ExplicitWorkload(4096, np.zeros((200, 2), int), np.full((200, 2), 5))
    with pytest.raises(InputError, match="too many"):
        boxes.consistent(64, [1.0, 1.0])
