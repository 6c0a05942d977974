"""ConstrainedInference against exact least squares, the paper's figure, OpenDP and other solvers."""

from fractions import Fraction

import numpy as np
import pytest

from models import ConstrainedInference, Tree
from solvers import fast, solve
from tests.brute import tiny_trees
from tests.marks import quick

INF = float("inf")


def exactly(values) -> np.ndarray:
    return np.array([Fraction(v) for v in np.asarray(values).tolist()] + [None], dtype=object)[:-1]


def least_squares(tree: Tree, noisy, variance) -> Fraction:
    """The minimum of Σ (x − n)²/V over all leaf counts, by Gaussian elimination of the normal equations."""
    m = tree.leaves.size
    holds = [[int(v) for v in tree.sum_up(np.eye(m, dtype=np.int64))[r]] for r in range(tree.size)]
    weight = [Fraction(0) if v == INF else 1 / Fraction(v) for v in variance]
    rows = [
        [sum(w * h[i] * h[j] for w, h in zip(weight, holds, strict=True)) for j in range(m)]
        + [sum(w * h[i] * n for w, h, n in zip(weight, holds, noisy, strict=True))]
        for i in range(m)
    ]
    pivots = []
    for column in range(m):
        at = next((r for r in range(len(pivots), m) if rows[r][column] != 0), None)
        if at is None:
            continue
        here = len(pivots)
        rows[here], rows[at] = rows[at], rows[here]
        rows[here] = [v / rows[here][column] for v in rows[here]]
        for r in range(m):
            if r != here:
                factor = rows[r][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[here], strict=True)]
        pivots.append(column)
    leaves = [Fraction(0)] * m
    for r, column in enumerate(pivots):
        leaves[column] = rows[r][m]
    x = [sum(h * z for h, z in zip(row, leaves, strict=True)) for row in holds]
    return sum((w * (a - n) ** 2 for w, a, n in zip(weight, x, noisy, strict=True)), Fraction(0))


def moved(tree: Tree, x: np.ndarray, leaf: int, by) -> np.ndarray:
    """The same answer with one leaf and all its ancestors changed."""
    x = x.copy()
    node = int(tree.leaves[leaf])
    while node >= 0:
        x[node] += by
        node = int(tree.parent[node])
    return x


def test_every_tiny_tree_is_solved_and_judged_exactly():
    rng = np.random.default_rng(0)
    for tree in tiny_trees(6):
        for _ in range(2):
            noisy = rng.integers(-3, 8, tree.size)
            variance = exactly(rng.integers(1, 5, tree.size)) / rng.integers(1, 3)
            variance[rng.random(tree.size) < rng.choice([0, 0.3, 0.8])] = INF
            model = ConstrainedInference(tree, exactly(noisy), variance)
            best = least_squares(tree, noisy.tolist(), variance)
            x = fast.answer(model)[0]
            assert model.violations(x) == []
            assert model.objective(x) == best, (tree, noisy, variance)
            proof = model.certificate(x)
            assert proof.optimal
            assert proof.gap == 0
            assert proof.bound == best
            for leaf in range(tree.leaves.size):
                other = moved(tree, x, leaf, Fraction(int(rng.integers(1, 9)), 7))
                proof = model.certificate(other)
                assert proof.bound == best
                assert proof.gap == model.objective(other) - best
                assert proof.optimal == (model.objective(other) == best)
            floats = ConstrainedInference(tree, noisy, variance.astype(float))
            near = fast.answer(floats)[0]
            assert near.dtype == np.float64
            np.testing.assert_allclose(near, x.astype(float), rtol=1e-9, atol=1e-9)
            assert floats.certificate(near).optimal
            assert floats.certificate(near).bound == pytest.approx(float(best), abs=1e-9)


def test_unmeasured_counts_share_the_rest_evenly():
    tree = Tree([[0, 0, 0], [2, 2]])
    model = ConstrainedInference(tree, [10, 99, 4, 99, 1, 99], [1, INF, 1, INF, 1, INF])
    # Node 2 keeps its 4. Nodes 1 and 3 are not measured; their measured leaves add up to 0 and to 1 (leaf 4).
    assert fast.answer(model)[0].tolist() == [10, 2.5, 4, 3.5, 1, 2.5]
    nothing = ConstrainedInference(tree, [5] * 6, INF)
    assert fast.answer(nothing)[0].tolist() == [0] * 6
    assert nothing.certificate([5, 1, 4, 0, 3, -3]).optimal


def test_figure_1_of_the_paper():
    # Nodes 1 and 2 are below a root that is not measured, 3 … 6 below these; 7 … 14 are the leaves.
    tree = Tree([[0, 0], [0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]])
    weights = {7: (13, 21), 3: (5, 21), 1: (1, 7), 4: (-2, 21), 9: (-1, 21), 10: (-1, 21), 8: (-8, 21)}
    range_query = {1: (3, 7), 3: (8, 21), 4: (1, 21), 7: (4, 21), 8: (4, 21), 9: (11, 21), 10: (-10, 21)}
    total = Fraction(0)
    for node in range(tree.size):
        unit = exactly(np.arange(tree.size) == node)
        x = fast.answer(ConstrainedInference(tree, unit, np.where(np.arange(tree.size) == 0, INF, 2.0)))[0]
        assert x[7] == Fraction(*weights.get(node, (0, 1)))
        assert x[7] + x[8] + x[9] == Fraction(*range_query.get(node, (0, 1)))
        total += (x[7] + x[8] + x[9]) ** 2
    assert total == Fraction(399, 441)


@pytest.mark.parametrize(("b", "height"), quick([(2, 5), (2, 2), (3, 3), (16, 2)], every=2))
def test_the_same_as_opendp_on_complete_trees(b, height):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    tree = Tree([np.repeat(np.arange(b**k), b) for k in range(height)])
    noisy = np.random.default_rng(b).integers(-50, 500, tree.size)
    leaves = dp.t.make_consistent_b_ary_tree(b)(noisy.tolist())
    x = fast.answer(ConstrainedInference(tree, noisy, 3))[0]
    np.testing.assert_allclose(x[tree.leaves], leaves, rtol=1e-9, atol=1e-9)


def test_sums_broken_within_tolerance_gain_nothing():
    rng = np.random.default_rng(11)
    tree = Tree([np.repeat(np.arange(4**k), 4) for k in range(4)])
    counts = tree.sum_up(rng.integers(0, 10**9, tree.leaves.size))
    noisy = (counts + rng.integers(-9, 10, tree.size)).astype(float)
    model = ConstrainedInference(tree, noisy, 20.0)
    solution = solve(model)
    assert solution.status == "optimal"
    assert model.violations(noisy) == []
    proof = model.certificate(noisy)
    assert not proof
    # The noisy counts cost nothing; the sums of their leaves do.
    assert proof.objective > 1.5 * solution.objective
    dearer = solution.x - 0.05 * (noisy - solution.x)
    assert model.violations(dearer) == []
    proof = model.certificate(dearer)
    assert not proof
    # Lowered by the rounding of sums of 10^11, times slopes that are off by up to 1.
    assert proof.bound == pytest.approx(solution.bound, rel=3e-6)


def regular(branching) -> Tree:
    sizes = np.cumprod([1, *branching])
    return Tree([np.repeat(np.arange(n), b) for n, b in zip(sizes, branching, strict=False)])


@pytest.mark.parametrize(
    "branching", quick([[2, 2], [], [1], [3, 1, 2], [4], [2, 2, 2], [1, 2, 1], [2, 5]], every=3), ids=str
)
def test_regular_trees_with_a_variance_a_level(branching):
    rng = np.random.default_rng(len(branching))
    tree = regular(branching)
    assert tree.branching.tolist() == branching
    for case in range(30):
        levels = rng.choice([0.5, 1, 3, 1e4], len(branching) + 1)
        levels[rng.random(levels.size) < [0, 0, 0.4][case % 3]] = INF
        if case % 3 == 1:
            levels[0] = INF
        noisy = rng.integers(-3, 20, tree.size) if case % 2 else rng.normal(0, 9, tree.size)
        variance = levels[tree.level] if case else 2
        model = ConstrainedInference(tree, noisy, variance)
        assert model.level_variance is not None
        x, exact = fast.answer(model)[0], fast.answer(ConstrainedInference(tree, exactly(noisy), variance))[0]
        np.testing.assert_allclose(x, exact.astype(float), rtol=1e-9, atol=1e-9)
        best = ConstrainedInference(tree, exactly(noisy), variance).certificate(exact)
        proof = model.certificate(x)
        assert proof.optimal
        assert (proof.bound, proof.objective) == pytest.approx((float(best.objective),) * 2, abs=1e-9)
        assert proof.objective == pytest.approx(model.objective(x), rel=1e-12)
        prices = best.witness["consistency"].astype(float)
        np.testing.assert_allclose(proof.witness["consistency"], prices, rtol=1e-9, atol=1e-9)
        other = moved(tree, x, int(rng.integers(tree.leaves.size)), 3.0)
        worse = model.certificate(other)
        miss = model.objective(other) - float(best.objective)
        assert worse.gap == pytest.approx(miss, rel=1e-6, abs=1e-6)
        assert worse.optimal == (miss < 1e-6)


@pytest.mark.parametrize("branching", quick([[1500, 2, 3], [2] * 13, [3] * 8, [1, 1025, 3, 2]]))
def test_families_in_many_blocks(branching):
    rng = np.random.default_rng(0)
    tree = regular(branching)
    levels = rng.choice([0.5, 1.0, 4.0], len(branching) + 1)
    noisy = rng.integers(0, 1000, tree.size)
    model = ConstrainedInference(tree, noisy, levels[tree.level])
    x = fast.answer(model)[0]
    shuffled = Tree([rng.permutation(level) for level in tree.levels])
    assert shuffled.branching is None
    # The general passes give the same: the leaves' variance changes by 1e-12 of itself.
    variance = levels[tree.level]
    variance[-1] *= 1 + 1e-12
    general = ConstrainedInference(tree, noisy, variance)
    assert general.level_variance is None
    np.testing.assert_allclose(x, fast.answer(general)[0], rtol=1e-8, atol=1e-8)
    ours, theirs = model.certificate(x), general.certificate(x)
    assert ours.optimal
    assert theirs.optimal
    assert ours.bound == pytest.approx(theirs.bound, rel=1e-9)
    (first,), (second,) = ours.witness.values(), theirs.witness.values()
    np.testing.assert_allclose(first, second, rtol=1e-7, atol=1e-7)
    # A violated sum, or a suboptimal answer, is not proved.
    for parent in (0, 1, int(tree.level_start[-2]) - 1):
        for by in (0.1, 10.0):
            broken = x.copy()
            broken[tree.children[1][tree.children[0][parent]]] += by
            assert not model.certificate(broken).optimal
            named = f"consistency: node {parent}, less"
            assert by < 1 or named in " ".join(model.violations(broken))
    for leaf in (0, tree.leaves.size - 1):
        assert not model.certificate(moved(tree, x, leaf, 300.0)).optimal
        sibling = leaf + (1 if leaf == 0 else -1)  # no other node changes
        swapped = moved(tree, moved(tree, x, leaf, 300.0), sibling, -300.0)
        assert not model.certificate(swapped).optimal
        slightly = moved(tree, moved(tree, x, leaf, 0.5), sibling, -0.5)
        # Each addition to a family's sum may be off by a rounding. The gap includes these errors at the
        # family's price.
        inner, size = tree.internal, np.diff(tree.children[0])[tree.internal]
        rounding = (size * np.spacing(np.abs(slightly[inner]))) @ np.abs(first)
        assert rounding < 1e-4
        wrong = 100 * rounding + 1e-9 * ours.objective
        assert model.certificate(slightly).gap == pytest.approx(2 * 0.5**2 / levels[-1], abs=wrong)


def test_regular_trees_are_recognized():
    assert Tree([]).branching.tolist() == []
    assert Tree([[0, 0, 0]]).branching.tolist() == [3]
    assert Tree([[0, 0], [0, 0, 1, 1]]).branching.tolist() == [2, 2]
    for levels in ([[0, 0], [0, 1, 0, 1]], [[0, 0], [1, 1, 0, 0]], [[0, 0], [0, 0, 0, 1]], [[0, 0], [0]]):
        assert Tree(levels).branching is None
    tree = Tree([[0, 0]])
    assert ConstrainedInference(tree, [1, 2, 3], 5).level_variance.tolist() == [5, 5]
    assert ConstrainedInference(tree, [1, 2, 3], [5, 6, 6]).level_variance.tolist() == [5, 6]
    assert ConstrainedInference(tree, [1, 2, 3], [5, 5, 6]).level_variance is None
    assert ConstrainedInference(tree, [1, 2, 3], INF).level_variance.tolist() == [INF, INF]


def test_floats_that_are_not_finite_are_refused():
    model = ConstrainedInference(regular([2, 2]), [7, 3, 4, 1, 2, 3, 1], 1)
    lone = [ConstrainedInference(Tree([]), [3], variance) for variance in (1, INF)]
    for wrong in (np.nan, np.inf):
        for one, node in [*((model, node) for node in range(7)), (lone[0], 0), (lone[1], 0)]:
            x = fast.answer(one)[0]
            x[node] = wrong
            with pytest.raises(ValueError, match="must be finite"):
                one.certificate(x)
    for tree in (regular([2]), Tree([[0, 0], [0]])):
        huge = ConstrainedInference(tree, [0] * tree.size, 1)
        proof = huge.certificate([2e200, 1e200, 1e200, 1e200][: tree.size])
        assert not proof


def test_sums_broken_either_way_are_found_in_every_kind_of_tree():
    for tree in (regular([2]), regular([2, 3]), Tree([[0, 0], [0]]), Tree([[0, 0, 0], [2, 2]])):
        model = ConstrainedInference(tree, np.arange(tree.size) * 7, 1)
        for by in (0.5, -0.5):
            for node in range(1, tree.size):
                x = fast.answer(model)[0]
                x[node] += by
                proof = model.certificate(x)
                assert proof.bound is None
                assert proof.reason.startswith(f"not feasible: consistency: node {tree.parent[node]}, less")


def test_variances_that_underflow_hide_no_broken_sum():
    model = ConstrainedInference(Tree([[0]] * 3), [5.0, 5.0, 1.0, 1.0], [1.0, 5e-324, 5e-324, 5e-324])
    reason = model.certificate([5.0, 5.0, 1.0, 1.0]).reason
    assert reason.startswith("not feasible: consistency: node 1, less the sum of its children, is 4.0")


def test_sums_within_tolerance_cost_what_those_of_the_leaves_cost():
    tree = Tree([[0, 0]])
    far = ConstrainedInference(tree, [1000, 0, 0], 1)
    x = fast.answer(far)[0]
    x[0] += 5e-4
    assert far.violations(x) == []
    proof = far.certificate(x)  # x costs 0.33 less; the sums of its leaves are the best answer
    assert proof.objective == pytest.approx(1e6 / 3, rel=1e-14)
    assert far.objective(x) < 1e6 / 3 - 0.3
    near = ConstrainedInference(tree, [-1000, 1000, 1000], 1)
    assert fast.answer(near)[0].tolist() == [0, 0, 0]
    assert near.certificate([1e-4, 0.0, 0.0]).reason.startswith("not feasible: consistency: node 0, ")


def test_counts_near_the_end_of_64_bits():
    rng = np.random.default_rng(1)
    tree = regular([2, 2, 2])
    noisy = rng.integers(2**60, 2**61, tree.size)
    model = ConstrainedInference(tree, noisy, 1)
    x = fast.answer(model)[0]
    exact = fast.answer(ConstrainedInference(tree, exactly(noisy), 1))[0]
    np.testing.assert_allclose(x, exact.astype(float), rtol=1e-12)
    assert model.certificate(x).optimal
    assert model.certificate(exact).optimal


def test_objectives_are_exact():
    tree = Tree([[0, 0]])
    model = ConstrainedInference(tree, [2**61, -(2**61), 0], [3, 0.5, INF])
    assert model.objective([0, 0, 0]) == Fraction(2**122, 3) + 2 * 2**122
    assert model.objective([0.0, 0.0, 0.0]) == pytest.approx(float(Fraction(2**122, 3) + 2**123))
    assert isinstance(model.objective([2**62, 2**62, 0]), Fraction)
    assert model.violations([2**62, 2**62, 2**62]) == [
        f"consistency: node 0, less the sum of its children, is {-(2**62)}, not 0"
    ]


def deep(rng: np.random.Generator, leaves: int) -> Tree:
    """A ragged tree with at least this many leaves, on all levels below the first, families in any order."""
    levels, ending = [np.zeros(8, np.int64)], 0
    while levels[-1].size + ending < leaves:
        children = rng.choice([0, 1, 2, 3, 9], size=levels[-1].size, p=[0.1, 0.2, 0.3, 0.2, 0.2])
        children[0] = 2
        ending += int((children == 0).sum())
        levels.append(rng.permutation(np.repeat(np.arange(levels[-1].size), children)))
    return Tree(levels)


def normal_equations_hold(tree: Tree, noisy, variance, x) -> None:
    """Check that x is optimal: it is consistent, and Σ (x − n)/V over each leaf and its ancestors is 0."""
    pull = np.where(np.isfinite(variance), (x - noisy) / variance, 0.0)
    size = np.where(np.isfinite(variance), np.abs(x - noisy) / variance, 0.0)
    for level in range(1, tree.depth + 1):
        nodes = tree.nodes_of(level)
        pull[nodes] += pull[tree.parent[nodes]]
        size[nodes] += size[tree.parent[nodes]]
    leaves = tree.leaves
    assert (np.abs(pull[leaves]) <= 1e-9 * (1 + size[leaves])).all()
    sums = np.bincount(tree.parent[1:], weights=x[1:], minlength=tree.size)[tree.internal]
    np.testing.assert_allclose(sums, x[tree.internal], rtol=1e-9, atol=1e-6)


@pytest.mark.slow
def test_a_million_leaves_of_a_ragged_tree_by_the_normal_equations():
    rng = np.random.default_rng(0)
    tree = deep(rng, 2**20)
    assert tree.leaves.size >= 2**20
    assert np.unique(tree.level[tree.leaves]).size > 5
    variance = rng.choice([0.01, 1.0, 7.5, 300.0], tree.size) * rng.uniform(0.5, 2, tree.size)
    variance[tree.internal[rng.random(tree.internal.size) < 0.2]] = INF
    noisy = rng.integers(-50, 1000, tree.size)
    model = ConstrainedInference(tree, noisy, variance)
    assert model.level_variance is None
    solution = solve(model)
    assert solution.status == "optimal"
    normal_equations_hold(tree, noisy, variance, np.asarray(solution.x))


@pytest.mark.slow
@pytest.mark.parametrize("branching", [[2] * 21, [128, 128, 128], [3, 7, 1, 5, 2, 11, 13, 70]])
def test_millions_of_leaves_a_variance_a_level_by_the_normal_equations(branching):
    rng = np.random.default_rng(1)
    tree = regular(branching)
    assert tree.leaves.size >= 2**21
    levels = rng.uniform(0.1, 9, len(branching) + 1)
    levels[0] = INF
    noisy = rng.integers(-50, 1000, tree.size)
    model = ConstrainedInference(tree, noisy, levels[tree.level])
    solution = solve(model)
    assert solution.status == "optimal"
    normal_equations_hold(tree, noisy, levels[tree.level], np.asarray(solution.x))


def test_an_exact_answer_has_exact_sums_also_if_the_noisy_counts_are_floats():
    """Those of least squares in floats are off by rounding; leaves as Fractions give sums that are not."""
    tree = Tree([[0, 0, 0], [1]])
    model = ConstrainedInference(tree, np.array([-1.0, 0, 2, 1, -1]) * 2**26, [2**26] * 5)
    x = solve(model).x
    assert model.certificate(x).optimal
    summed = tree.sum_up(exactly(x)[tree.leaves])
    assert model.certificate(summed).optimal
    summed[2] += Fraction(1, 2**60)
    for off in (exactly(x), summed):
        proof = model.certificate(off)
        assert not proof.optimal
        assert proof.bound is None
        assert proof.reason.startswith("not feasible: consistency: node 0")
