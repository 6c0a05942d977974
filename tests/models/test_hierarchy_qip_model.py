"""HierarchyQIP: difficult, windowed, relaxed and large instances."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import HierarchyQIP, Tree
from solvers import fast, prove, solve
from tests.brute import compositions
from tests.marks import shares


def exact_cost(model: HierarchyQIP, x) -> int:
    return sum((a - b) ** 2 for a, b in zip(x.ravel().tolist(), model.counts.ravel().tolist(), strict=True))


@given(st.integers(0, 10**6), st.integers(0, 6))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_random_windows_are_proved_or_empty(seed, window):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, int(rng.integers(0, 3)), 3, ragged=bool(rng.random() < 0.4))
    sizes = int(rng.integers(1, 4))
    leaves = rng.integers(0, 9, (tree.leaves.size, sizes))
    noisy = tree.sum_up(leaves) + rng.integers(-3, 4, (tree.size, sizes))
    model = HierarchyQIP(tree, noisy, int(max(0, noisy[0].sum())), window=window)
    solution = solve(model)
    assert solution.status in ("optimal", "infeasible")
    if window >= 6:
        assert solution.status == "optimal" or model.total > leaves.sum()


def test_a_float_tie_of_whole_counts():
    """Float counts and whole answers, against every answer: unit costs must not be truncated to integers."""
    tree = Tree([[0, 0, 0]])
    answers = [tree.sum_up(np.array(held).reshape(3, 1)) for held in compositions(3, 3)]
    for cells in product([0.4, 0.6, 1.9], repeat=4):
        noisy = np.array(cells).reshape(4, 1)
        model = HierarchyQIP(tree, noisy, 3)
        least = min(((x - noisy) ** 2).sum() for x in answers)
        solution = solve(model)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(least)
        for x in answers:
            assert model.certificate(x).optimal == (((x - noisy) ** 2).sum() < least + 1e-9)


def test_numbers_beyond_64_bits_have_a_bound_but_no_fast_path():
    noisy = np.array([[2**70], [2**70 + 8], [-3]], dtype=object)
    model = HierarchyQIP(Tree([[0, 0]]), noisy, 6)
    assert solve(model).status == "unsupported"
    assert "beyond 64 bits" in solve(model).message
    costs = [model.objective([[6], [a], [6 - a]]) for a in range(7)]
    proofs = [prove(model, [[6], [a], [6 - a]]) for a in range(7)]
    assert [proof.optimal for proof in proofs] == [cost == min(costs) for cost in costs]
    assert all(proof.bound <= min(costs) for proof in proofs)
    assert type(proofs[0].gap) is int
    ugly = HierarchyQIP(Tree([]), np.array([[Fraction(1, 10**15), Fraction(7, 10**12 + 39)]]), 3)
    assert "beyond 64 bits" in solve(ugly).message
    assert ugly.certificate([[1, 2]]).optimal
    assert not ugly.certificate([[0, 3]]).optimal


@pytest.mark.slow
@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_gaps_of_floats_are_tight(seed):
    """For distant real answers, and whole answers to float counts, the gap is the excess cost."""
    rng = np.random.default_rng(seed)
    shape = HierarchyQIP.random(rng, 30)
    scale = float(rng.choice([1, 1e3, 1e6]))
    noisy = shape.counts * scale + rng.normal(0, 0.3, shape.counts.shape)
    total = int(rng.integers(1, 50) * scale)
    leaves = rng.multinomial(total, rng.dirichlet(np.full(shape.tree.leaves.size * noisy.shape[1], 0.1)))
    for integer in (True, False):
        far = shape.tree.sum_up(leaves.reshape(-1, noisy.shape[1]))
        model = HierarchyQIP(shape.tree, noisy, total, integer=integer)
        best = model.objective(fast.answer(model)[0])
        proof = prove(model, far if integer else far.astype(float))
        near = 1e-7 * max(1.0, abs(best))
        assert proof.bound == pytest.approx(best, abs=near)
        assert proof.gap == pytest.approx(proof.objective - best, abs=2 * near)
        windowed = HierarchyQIP(shape.tree, noisy, total, integer=integer, window=int(20 * scale))
        if not windowed.violations(far):
            proof = prove(windowed, far if integer else far.astype(float))
            assert best - near <= proof.bound <= proof.objective
            assert prove(windowed, far).bound == pytest.approx(proof.bound, abs=near)


def test_whole_answers_of_large_float_counts_are_not_taken_for_zeros():
    """A count of 1 is not close to 0, however large the other counts are."""
    model = HierarchyQIP(Tree([[0, 0]]), [[1e9], [1e9], [-40.25]], 10**9)
    assert not model.certificate([[10**9], [10**9 - 1], [1]]).optimal
    assert model.certificate([[10**9], [10**9], [0]]).optimal
    gap = prove(model, [[10**9], [10**9 - 1], [1]]).gap
    assert gap == pytest.approx(1 + 41.25**2 - 40.25**2, rel=1e-6)
    beside = HierarchyQIP(Tree([[0, 0]]), [[1e9 - 10], [1e9 - 1], [0.6]], 10**9)
    assert beside.certificate([[10**9], [10**9 - 1], [1]]).optimal


def test_bounds_use_the_exact_total():
    """An answer in floats may miss the total by its tolerance, but cost and bound are for the exact total."""
    model = HierarchyQIP(Tree([[0, 0]]), [[1e6, 1e6], [5e5, 5e5], [5e5, 5e5]], 2 * 10**6, integer=False)
    proof = prove(model, [[1e6 + 0.9] * 2, [5e5 + 0.45] * 2, [5e5 + 0.45] * 2])
    assert proof.bound == pytest.approx(0, abs=1e-6)
    assert proof.objective == pytest.approx(0, abs=1e-12)  # scaled to the total, it is the noisy counts
    assert proof.optimal


def test_totals_dwarfed_by_the_counts_are_met():
    """Prices of 10^10 do not have the precision for the sixth digit of a total of 1."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        model = HierarchyQIP(Tree([[0]]), rng.normal(0, 1e10, (2, 30)), 1, integer=False)
        solution = solve(model)
        assert solution.status == "optimal"
        assert solution.x[0].sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("noisy", "total", "culprit"),
    [
        ([[9], [1], [1]], 9, "H3 consistency: node 0, size 0: 8 … 9 is out of its children's reach"),
        ([[1], [5], [1]], 9, "H3 consistency: node 0, size 0: 0 … 2 is out of its children's reach"),
        ([[1], [-2], [1]], 1, "H4 domain: no whole number >= 0 for x[1, 0] is within the window"),
        ([[3, 3], [1, 1], [2, 2]], 9, "H2 total: the windows let the root's counts sum to 4 … 8, not 9"),
        ([[3, 3], [1, 1], [2, 2]], 3, "H2 total: the windows let the root's counts sum to 4 … 6, not 3"),
        ([[3, 3], [1, 1], [2, 2]], 4, ""),
        ([[3, 3], [1, 1], [2, 2]], 8, ""),
    ],
)
def test_windows_without_an_answer_name_their_culprit(noisy, total, culprit):
    model = HierarchyQIP(Tree([[0, 0]]), noisy, total, window=1)
    assert model.why_infeasible() == culprit
    assert solve(model).status == ("infeasible" if culprit else "optimal")
    assert HierarchyQIP(Tree([[0, 0]]), noisy, total).why_infeasible() == ""


@pytest.mark.parametrize("window", [None, 0, 2])
@pytest.mark.parametrize("kind", ["right", "consistent", "off by one", "wild"])
def test_fast_and_slow_feasibility_checks_agree(window, kind):
    """Correct counts, other consistent counts, and counts off by one or by up to 2^63."""
    rng = np.random.default_rng(6)
    for _ in range(120):
        tree = Tree.random(rng, int(rng.integers(0, 4)), 3, ragged=bool(rng.random() < 0.4))
        leaves = rng.integers(0, 4, (tree.leaves.size, int(rng.integers(1, 4))))
        x = tree.sum_up(leaves)
        noisy = x + (0 if window is None else rng.integers(-window, window + 1, x.shape))
        model = HierarchyQIP(tree, noisy, int(x[0].sum()), window=window)
        if kind == "consistent":
            moved = rng.integers(-2, 3, leaves.shape)
            moved.flat[rng.integers(moved.size)] -= moved.sum()
            x = tree.sum_up(leaves + moved)
        elif kind != "right":
            steps = [-1, 1] if kind == "off by one" else [2**62, -(2**62), -(2**63)]
            x[rng.integers(len(x)), rng.integers(x.shape[1])] += rng.choice(steps)
        slow = model.violations(x.astype(object))
        assert model.violations(x) == slow
        assert slow == [] or kind != "right"


def test_sums_that_wrap_in_64_bits_are_not_taken_for_totals():
    total = 2**55
    children = 2**9 + 1  # their counts add up to 2**64 + total
    model = HierarchyQIP(Tree([[0] * children]), np.zeros((children + 1, 1), np.int64), total)
    found = model.violations(np.full((children + 1, 1), total))
    assert found == [f"H3 consistency: node 0, column 0, less the sum of its children, is {-(2**64)}, not 0"]


def test_objectives_beyond_64_bits_are_exact():
    tree = Tree([[0, 0, 0]])
    noisy = np.array([[2**49 - 2**41], [-(2**48)], [2**47 + 1], [3]])
    model = HierarchyQIP(tree, noisy, 2**40)
    solution = solve(model)
    assert solution.status == "optimal"
    assert solution.objective == exact_cost(model, solution.x) > 2**95
    # If floats give only a start, exchanges find the optimum.
    huge = HierarchyQIP(tree, noisy * 2**6, 2**40)
    assert solve(huge).status == "optimal"
    assert huge.certificate([[2**40], [0], [2**40], [0]]).objective > 2**107


@shares(6)
def test_ties_go_to_the_earlier_size_and_child_in_wide_trees_too(share):
    """No unit can move to an earlier sibling or an earlier size at no cost."""
    for seed in range(600)[share]:
        rng = np.random.default_rng(seed)
        first = int(rng.integers(1, 8))
        levels = [np.zeros(first, int), rng.integers(0, first, rng.integers(1, 14))][: rng.integers(1, 3)]
        tree = Tree(levels)
        noisy = rng.integers(rng.choice([-12, -1]), rng.choice([2, 3, 9]), (tree.size, rng.integers(1, 6)))
        model = HierarchyQIP(tree, noisy, int(rng.integers(1, 40)))
        x = fast.answer(model)[0]
        # The costliest unit held and the cheapest next unit of each subtree, from the leaves up.
        last, following = np.zeros(x.shape, object), np.zeros(x.shape, object)
        start, child = tree.children
        for r in range(tree.size - 1, -1, -1):
            family = child[start[r] : start[r + 1]]
            for s in range(x.shape[1]):
                own = 2 * (x[r, s] - noisy[r, s])
                gives, takes = own - 1, own + 1
                if family.size:
                    gives, takes = gives + max(last[family, s]), takes + min(following[family, s])
                last[r, s] = gives if x[r, s] > 0 else -(10**9)
                following[r, s] = takes
        groups = [list(zip(last[0], following[0], strict=True))]
        for r in tree.internal:
            for s in range(x.shape[1]):
                groups.append([(last[c, s], following[c, s]) for c in child[start[r] : start[r + 1]]])
        for group in groups:
            for t, (_, takes) in enumerate(group):
                for g, (gives, _) in enumerate(group):
                    assert gives < takes or (gives == takes and g <= t), (model, x)
