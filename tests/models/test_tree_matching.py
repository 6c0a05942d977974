"""TreeMatching: all matchings of tiny trees, exact backends, GroupMatching, difficult and large instances."""

import itertools

import numpy as np
import pytest

from models import GroupMatching, Tree, TreeMatching, lagrangian_bound
from solvers import fast, prove, solve
from solvers.fast import tree_matching
from solvers.fast.tree_matching import SizeChains, _room, block, improve, top_down
from tests.marks import quick, shares


def of_groups(tree, sizes):
    """A model from lists of sizes, one per node."""
    return TreeMatching(tree, [np.unique(np.array(s, dtype=int), return_counts=True) for s in sizes])


def group_by_group(tree, sizes):
    """The minimum of Σ |s − t| over all ways to give each group one size of each region that contains it."""
    homes = [leaf for leaf in tree.leaves.tolist() for _ in sizes[leaf]]
    paths = []
    for leaf in homes:
        path, r = [], leaf
        while r >= 0:
            path.append(r)
            r = int(tree.parent[r])
        paths.append(path)
    inside = [[g for g, path in enumerate(paths) if r in path] for r in range(tree.size)]
    best = None
    for deal in itertools.product(*(set(itertools.permutations(s)) for s in sizes)):
        held = [[] for _ in homes]
        for members, dealt in zip(inside, deal, strict=True):
            for g, size in zip(members, dealt, strict=True):
                held[g].append(size)
        cost = sum(sum(abs(s - sorted(own)[len(own) // 2]) for s in own) for own in held)
        best = cost if best is None else min(best, cost)
    return best


def answers(model):
    """Every feasible answer of a tiny model."""
    points, leaves = model.points.size, model.tree.leaves
    groups = model.estimates[leaves, -1].tolist()
    ways = [list(itertools.combinations_with_replacement(range(points), n)) for n in groups]
    for chosen in itertools.product(*ways):
        at = np.stack([np.bincount(c, minlength=points).cumsum() for c in chosen])
        yield model.tree.sum_up(at)


TINY = [
    Tree([]),
    Tree([[0]]),
    Tree([[0, 0]]),
    Tree([[0], [0, 0]]),
    Tree([[0, 0], [1, 0]]),
    Tree([[0, 0], [0]]),
]


@pytest.mark.parametrize("rounds", quick([2, 9]))
def test_all_matchings_of_tiny_trees(rounds):
    """The docstring's two forms are equivalent, and the certificate gives every answer's exact gap."""
    rng = np.random.default_rng(1)
    checked = 0
    for tree in TINY:
        for _ in range(rounds):
            groups = tree.sum_up(rng.integers(0, 3 if tree.leaves.size > 1 else 4, tree.leaves.size))
            sizes = [rng.integers(0, 5, n).tolist() for n in groups]
            model = of_groups(tree, sizes)
            costs = [(x, model.objective(x)) for x in answers(model)]
            best = min(cost for _, cost in costs)
            assert group_by_group(tree, sizes) == best
            found = solve(model)
            assert (found.status, found.objective) == ("optimal", best)
            witness = fast.answer(model)[1]
            for x, cost in costs:
                proof = model.certificate(x, witness)
                assert (proof.gap, proof.optimal) == (cost - best, cost == best)
                assert lagrangian_bound(model.program(), model.row_prices(proof.witness)) == proof.bound
                assert model.certificate(x).bound <= best
                checked += 1
    assert checked > 75 * rounds


def test_four_levels_by_backends_and_group_by_group():
    rng = np.random.default_rng(2)
    tree = Tree([[0, 0], [0, 0, 1], [0, 1, 2]])
    for _ in range(5):
        sizes = [rng.integers(0, 6, n).tolist() for n in tree.sum_up(np.array([1, 1, 1]))]
        model = of_groups(tree, sizes)
        found = solve(model, "highs")
        assert found.objective == group_by_group(tree, sizes)
        proof = prove(model, found.x)
        assert proof.bound <= found.objective
        assert lagrangian_bound(model.program(), model.row_prices(proof.witness)) == proof.bound
    with pytest.raises(fast.NoFastPath, match="three levels"):
        fast.answer(model)[0]


def test_the_bound_of_deep_trees_takes_the_best_blocks():
    tree = Tree([[0, 0], [0, 1], [0, 1]])
    near, far = [0, 3], [[0], [3]]
    # The conflict lies between the last two levels, around the third level, or below the root.
    for sizes, bound in (
        ([near, *far, *far, [3], [0]], 6),
        ([near, *far, [3], [0], *far], 6),
        ([near, [1], [1], [1], [1], [1], [1]], 3),
    ):
        model = of_groups(tree, sizes)
        found = solve(model, "highs")
        assert (prove(model, found.x).bound, found.objective) == (bound, bound)


@shares(4)
def test_the_bound_of_deep_trees_is_no_less_than_that_of_three_levels(share):
    tree, above = Tree([[0, 0], [0, 0, 1], [0, 1, 2]]), Tree([[0, 0], [0, 0, 1]])
    beyond_pairs = 0
    for seed in range(20)[share]:
        rng = np.random.default_rng(seed)
        sizes = [rng.integers(0, 9, n) for n in tree.sum_up(rng.integers(1, 4, 3))]
        model = of_groups(tree, sizes)
        bound = prove(model, tree.sum_up(model.estimates[tree.leaves])).bound
        three = solve(of_groups(above, sizes[:6])).objective
        pairs = solve(of_groups(Tree([[0, 0]]), sizes[:3])).objective
        assert bound >= three
        beyond_pairs += three > pairs
    assert beyond_pairs > 1


def test_two_levels_are_group_matching():
    rng = np.random.default_rng(4)
    for _ in range(60):
        matching = GroupMatching.random(rng, 60)
        tables = [matching.parent, *matching.child_sizes]
        model = TreeMatching(Tree([np.zeros(len(tables) - 1, int)]), tables)
        assert solve(model).objective == solve(matching).objective


def test_the_smallest_counterexample_to_family_by_family():
    """Two groups with sizes up to 2: nothing smaller fails, and the docstring's example is among them."""
    tree = Tree([[0, 0], [0, 1]])

    def gap(root, first, second, below):
        model = of_groups(tree, [root, [first], [second], [below[0]], [below[1]]])
        assert top_down(model)[0].tolist() == np.searchsorted([t], model.points, side="right").tolist()
        return costs[0] - solve(model).objective

    found = []
    for far in (1, 2):
        for root in itertools.combinations_with_replacement(range(far + 1), 2):
            for first, second, *below in itertools.product(range(far + 1), repeat=4):
                if first >= second:
                    continue  # for equal sizes, either may be matched first
                t, u = sorted([root[0], first, below[0]])[1], sorted([root[1], second, below[1]])[1]
                costs = [
                    sum(abs(s - t) for s in (root[0], first, below[0]))
                    + sum(abs(s - u) for s in (root[1], second, below[1]))
                ]
                if gap(root, first, second, below) > 0:
                    found.append((far, root, first, second, tuple(below)))
    assert found[0][0] == 2
    assert (2, (0, 2), 0, 1, (2, 0)) in found


def test_family_by_family_costs_at_most_twice_the_optimum():
    rng = np.random.default_rng(5)
    worst = 1.0
    for n in (1, 5, 39):
        # The middle level's sizes hardly differ, and assign the root's sizes in the wrong order.
        sizes = [[0, 2 * n], [n - 1], [n], [2 * n], [0]]
        model = of_groups(Tree([[0, 0], [0, 1]]), sizes)
        worst = max(worst, cost_of_top_down(model) / solve(model).objective)
    assert 1.9 < worst <= 2
    for _ in range(40):
        model = TreeMatching.random(rng, 60)
        if model.tree.depth == 2:
            assert solve(model).objective <= cost_of_top_down(model) <= 2 * solve(model).objective


def cost_of_top_down(model):
    _, data = block(model, 0, 3)
    x = top_down(model)
    away = np.abs(x - data.own) + np.where(data.has_below[:, None], np.abs(x - data.below), 0)
    root = np.abs(x.sum(axis=0) - data.root)
    return int(((away.sum(axis=0) + root)[:-1] * model.steps).sum())


def test_three_families_of_sums_are_not_totally_unimodular():
    """Rows of the program for root, region c and its leaf 2, at sizes y > r1 > x > r2; leaf 3 elsewhere."""
    tree = Tree([[0, 0], [0, 0, 1]])  # c holds leaves 1 and 2; the other region leaf 3
    up_to = {"r1": (0, 2), "x": (1, 1), "y": (4, 3), "r2": (0, 0)}  # node, and the last size counted
    groups = [(3, 1), (4, 2), (4, 0), (5, 0)]  # leaf, size
    inside = np.zeros((tree.size, tree.size), bool)
    for r in range(tree.size):
        at = r
        while at >= 0:
            inside[at, r] = True
            at = tree.parent[at]
    matrix = [
        [int(inside[node, leaf] and size <= last) for leaf, size in groups] for node, last in up_to.values()
    ]
    assert round(abs(np.linalg.det(np.array(matrix)))) == 2


def test_extreme_prices_give_valid_bounds():
    model = of_groups(Tree([[0, 0]]), [[0, 4], [1], [2]])
    assert solve(model).objective == 3
    x = solve(model).x

    def bound(slopes):
        return model.certificate(x, model.prices_of_rows(slopes)).bound

    assert bound(np.full((3, 3), 10**9)) <= 3
    assert bound(np.zeros((3, 3), int)) == 0
    rng = np.random.default_rng(6)
    assert max(bound(rng.choice([-(10**9), 10**9], (3, 3))) for _ in range(200)) <= 3
    bounds = [bound(rng.integers(-3, 4, (3, 3))) for _ in range(200)]
    assert max(bounds) <= 3
    assert min(bounds) < 0


def test_improving_starts_anywhere():
    rng = np.random.default_rng(7)
    for _ in range(60):
        chains, sizes = int(rng.integers(1, 4)), int(rng.integers(1, 9))
        groups = rng.integers(0, 30, chains)

        def cumulative(groups=groups, sizes=sizes):
            return np.stack([rng.multinomial(n, np.full(sizes, 1 / sizes)) for n in groups]).cumsum(axis=1)

        data = SizeChains(
            cumulative().sum(axis=0), cumulative(), cumulative(), rng.random(chains) < 0.7,
            rng.integers(1, 9, sizes - 1),
        )  # fmt: skip
        costs = set()
        for x in (cumulative(), data.own.copy(), cumulative()):
            root, child = improve(data, x)
            assert (np.diff(x, axis=1, prepend=0) >= 0).all()
            assert (x[:, -1] == groups).all()
            assert (child <= root).all()
            assert (child == root)[np.diff(x, axis=1, prepend=0) > 0].all()
            away = np.abs(x - data.own) + np.where(data.has_below[:, None], np.abs(x - data.below), 0)
            costs.add(int(((away.sum(0) + np.abs(x.sum(0) - data.root))[:-1] * data.steps).sum()))
        assert len(costs) == 1


def test_no_step_goes_past_a_kink_of_the_cost():
    """Beyond a kink the cost rises again, so cycles would be cancelled back and forth."""
    for own, below, sign, room in (
        (2, 5, 1, 2),
        (5, 2, 1, 2),
        (-3, 4, 1, 4),
        (-3, -1, -1, 1),
        (-1, -3, -1, 1),
    ):
        assert _room(0, sign, own, below, True) == room
    assert _room(0, 1, 7, 2, False) == 7
    assert _room(0, 1, 0, 0, True) >= 2**62  # no kink ahead


def test_far_sizes_and_many_groups():
    tree = Tree([[0, 0], [0, 1]])
    far, many = 2**54, 2**58
    tables = [
        ([0, 2 * far], [many, many]),
        ([0], [many]),
        ([far], [many]),
        ([2 * far], [many]),
        ([0], [many]),
    ]
    found = solve(TreeMatching(tree, tables))
    assert (found.status, found.objective) == ("optimal", 3 * far * many)
    with pytest.raises(ValueError, match="costs along the tree pass 62 bits"):
        TreeMatching(tree, [([0, 2**59], [1, 1]), *([([0], [1])] * 4)])


@shares(5)
def test_labels_restart_before_overflow(share):
    """Data at the limit and many cancellations: the labels must not overflow."""
    tree = Tree([[0, 0, 0], [0, 1, 2]])
    scale = (2**62 - 1) // (8 * (tree.size + 1) * 40)
    for seed in range(10)[share]:
        rng = np.random.default_rng(seed)
        groups = tree.sum_up(rng.integers(1, 40, 3))
        sizes = [rng.integers(0, 41, n) for n in groups]
        small, large = of_groups(tree, sizes), of_groups(tree, [s * scale for s in sizes])
        assert solve(large).status == "optimal"
        assert solve(large).objective == scale * solve(small).objective


def test_any_labels_are_a_valid_start(monkeypatch):
    """Under a limit that labels often exceed, they are reset again and again, and still prove the answer."""
    monkeypatch.setattr(tree_matching, "FAR", 6)
    monkeypatch.setattr(tree_matching, "_improve", tree_matching._improve.py_func)  # it reads FAR
    sweep, starts = tree_matching._sweep, []

    def counted(*given):
        top, label = given[7:9]
        starts.append(not top.any() and not label.any())
        return sweep(*given)

    monkeypatch.setattr(tree_matching, "_sweep", counted)
    tree = Tree([[0] * 6, range(6)])
    for seed in range(12):
        rng = np.random.default_rng(seed)
        groups = tree.sum_up(rng.integers(1, 5, 6))
        model = of_groups(tree, [rng.integers(0, 13, n) for n in groups])
        assert model.certificate(*fast.answer(model)).optimal
    assert sum(starts) > 2 * 12  # each model starts once


@pytest.mark.parametrize(("wide", "groups"), quick([(3, 40), (12, 400)]))
def test_large_by_certificate(wide, groups):
    rng = np.random.default_rng(9)
    tree = Tree([np.zeros(wide, int), rng.integers(0, wide, 5 * wide)])
    leaves = np.floor(rng.pareto(1, (tree.leaves.size, groups)).clip(0, 500)).astype(int)
    tables = []
    for r in range(tree.size):
        mine = (
            tree.leaves == r
            if r in tree.leaves
            else np.array([tree.parent[n] == r or r == 0 for n in tree.leaves])
        )
        sizes = np.maximum(leaves[mine].ravel() + rng.integers(-3, 4, leaves[mine].size), 0)
        tables.append(np.unique(sizes, return_counts=True))
    found = solve(TreeMatching(tree, tables))
    assert found.status == "optimal"
    assert found.objective > 0


def test_nothing_to_match():
    model = TreeMatching(Tree([[0, 0], [1]]), [([], []), ([3], [0]), ([], []), ([], [])])
    assert model.points.tolist() == [0]
    assert solve(model).x.tolist() == [[0]] * 4
    assert solve(model).status == "optimal"


@pytest.mark.parametrize("side", [1, -1])
def test_prices_beyond_a_step_count_as_the_step(side):
    """The slope -3 for a step of 2 would prove 6, the cost of one group of each size, instead of 4."""
    all_small, all_large = ([0], [2]), ([2], [2])
    one, other = (all_small, all_large) if side == 1 else (all_large, all_small)
    model = TreeMatching(Tree([[0], [0]]), [one, other, other])
    prices = model.prices_of_rows(side * np.array([[-3], [2], [2]]))
    proof = model.certificate([[1, 2]] * 3, prices)
    assert (proof.objective, proof.bound, proof.optimal) == (6, 4, False)
