"""NonNegativeInference against all faces of the cone, other solvers and its own proofs."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from models import ConstrainedInference, HierarchyQIP, NonNegativeInference, Tree
from solvers import fast, prove, solve
from tests.brute import tiny_trees
from tests.marks import shares


def whole_answers(tree: Tree, most: int):
    for leaves in product(range(most + 1), repeat=tree.leaves.size):
        yield np.asarray(tree.sum_up(np.array(leaves)))


def instances(tree, rng, number):
    for case in range(number):
        weights = rng.integers(1, 5, tree.size)
        weights[tree.internal[rng.random(tree.internal.size) < 0.4]] = 0
        yield rng.integers(-3, 5, tree.size), np.ones(tree.size, np.int64) if case == 0 else weights


def on_faces(tree: Tree, noisy, weights) -> Fraction:
    """The real optimum: the minimum over all sets of leaves fixed at 0 with non-negative least squares."""
    best = None
    m = tree.leaves.size
    holds = np.asarray(tree.sum_up(np.eye(m, dtype=np.int64)))
    for size in range(m + 1):
        for kept in combinations(range(m), size):
            rows = holds[:, list(kept)]
            gram = [[Fraction(int((weights * a * b).sum())) for b in rows.T] for a in rows.T]
            z = eliminated(gram, [Fraction(int((weights * a * noisy).sum())) for a in rows.T])
            if all(v >= 0 for v in z):
                x = [sum((int(h) * v for h, v in zip(row, z, strict=True)), Fraction(0)) for row in rows]
                cost = sum(int(w) * (a - int(n)) ** 2 for w, a, n in zip(weights, x, noisy, strict=True))
                best = cost if best is None else min(best, cost)
    return best


def eliminated(gram, right):
    """The solution of a positive definite system, in Fractions."""
    rows = [[*row, value] for row, value in zip(gram, right, strict=True)]
    for i in range(len(rows)):
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


@shares(3)
def test_every_tiny_tree_over_the_reals(share):
    rng = np.random.default_rng(1)
    for tree in tiny_trees(5)[share]:
        for noisy, weights in instances(tree, rng, 3):
            best = float(on_faces(tree, noisy, weights))
            model = NonNegativeInference(tree, noisy, weights)
            x = fast.answer(model)[0]
            assert x.min() >= 0
            assert model.violations(x) == []
            assert model.objective(x) == pytest.approx(best, rel=1e-9, abs=1e-9), (tree, noisy, weights)
            assert model.certificate(x).optimal
            for other in whole_answers(tree, 2):
                proof = prove(model, other.astype(float))
                assert proof.bound <= best + 1e-9
                assert proof.optimal == (model.objective(other) <= best + 1e-9)


def test_it_is_least_squares_where_that_is_not_negative():
    rng = np.random.default_rng(3)
    for _ in range(20):
        tree = Tree.random(rng, 3, 4, ragged=True)
        variance = rng.choice([0.5, 1.0, 4.0], tree.size)
        variance[0] = np.inf
        noisy = np.asarray(tree.sum_up(rng.integers(200, 900, tree.leaves.size))) + rng.integers(
            -9, 9, tree.size
        )
        free = fast.answer(ConstrainedInference(tree, noisy, variance))[0]
        assert free.min() > 0
        kept = fast.answer(NonNegativeInference(tree, noisy, 1 / variance))[0]
        np.testing.assert_allclose(kept, free, rtol=1e-9)


@pytest.mark.parametrize("integer", [False, True])
def test_it_is_the_hierarchy_qip_of_its_own_total(integer):
    rng = np.random.default_rng(4)
    for _ in range(20):
        tree = Tree.random(rng, 3, 4)
        levels = rng.integers(1, 5, tree.depth + 1)
        noisy = rng.integers(-9, 30, tree.size)
        weights = levels[tree.level]
        weights[0] = 0
        best = solve(NonNegativeInference(tree, noisy, weights, integer)).objective

        def qip(total, tree=tree, levels=levels, noisy=noisy):
            known = np.concatenate([[total], noisy[1:]])[:, None]
            return solve(HierarchyQIP(tree, known, total, integer, weights=levels)).objective

        total = round(float(fast.answer(NonNegativeInference(tree, noisy, weights, integer))[0][0]))
        assert qip(total) >= best - 1e-6
        if integer:
            assert qip(total) == best
            assert all(qip(other) >= best for other in (total - 2, total - 1, total + 1) if other >= 0)


def test_a_lone_root_and_counts_all_negative():
    lone = NonNegativeInference(Tree([]), [-4])
    assert fast.answer(lone)[0].tolist() == [0]
    assert fast.answer(NonNegativeInference(Tree([]), [4], integer=True))[0].tolist() == [4]
    tree = Tree([[0, 0], [0, 0, 1]])
    for integer in (False, True):
        model = NonNegativeInference(tree, -np.arange(1, 7), integer=integer)
        solution = solve(model)
        assert solution.status == "optimal"
        assert not np.asarray(solution.x).any()
        assert solution.objective == 4 + 9 + 16 + 25 + 36


def test_counts_near_the_end_of_what_costs_allow():
    tree = Tree([[0, 0], [0, 0, 1, 1]])
    noisy = np.array([0, 2**50, 2**51, 2**50 + 7, -(2**40), 3, 2**51 + 1])
    model = NonNegativeInference(tree, noisy, integer=True)
    solution = solve(model)
    assert solution.status == "optimal"
    assert isinstance(solution.objective, int)
    with pytest.raises(ValueError, match="their unit costs along the tree pass 60 bits"):
        NonNegativeInference(tree, noisy * 256, integer=True)


@pytest.mark.parametrize("integer", [True, False])
def test_a_node_without_a_cost_has_no_negative_charge(integer):
    """A charge of -1 for its units would prove 9, the cost of a bad answer; the true bound is 0."""
    model = NonNegativeInference(Tree([[0]]), [0, 9], weights=[0, 1], integer=integer)
    assert model.certificate([9, 9]).optimal
    proof = model.certificate([6, 6], {"consistency": [1]})
    assert (proof.objective, proof.optimal) == (9, False)
    assert proof.bound == -np.inf  # nothing bounds what a root of any size would save


def test_counts_of_weight_0_cost_nothing_however_large():
    """Their squares may pass what floats hold, and 0 times that is not a number."""
    model = NonNegativeInference(Tree([[0]]), [1e200, 3.0], [0.0, 2.0])
    assert model.objective([4.0, 4.0]) == 2.0
    assert model.certificate([4.0, 4.0]).gap >= 0
    assert model.objective([1e200, 1e200]) == np.inf
