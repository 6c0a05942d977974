"""Tiny instances of each model, what their certificates promise, and answers where bounds are infinite."""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, islice, product

import numpy as np

import models
from models import Tree
from models.testing import whole_answers
from tests.brute import compositions, tiny_trees

SHAPES = (
    [],
    [[0]],
    [[0, 0]],
    [[0, 0, 0]],
    [[0, 0], [0, 0]],
    [[0, 0], [0, 1]],
    [[0, 0], [1, 0, 1]],
    [[0], [0, 0]],
)
TREES = [Tree(shape) for shape in SHAPES]


def vectors(values, most, least=1):
    return [list(v) for n in range(least, most + 1) for v in product(values, repeat=n)]


def weights(n, most=3):
    return [
        None,
        *([a] * k + [b] * (n - k) for k in range(n) for a, b in product(range(1, most + 1), repeat=2)),
    ]


def simplex_qp():
    for noisy in vectors((-2, 0, 1, 3), 3):
        for total, integer in product(range(5), (True, False)):
            for weight in weights(len(noisy)):
                yield models.SimplexQP(noisy, total, weight, integer)
    for noisy in vectors((-0.5, 0.25, 2.5), 3):
        yield models.SimplexQP(noisy, 3, [1.5, 0.5, 1][: len(noisy)])


def fixed_sum():
    for noisy in vectors((-2, 0, 1, 3), 3):
        for total, p in product(range(5), (1, 2)):
            yield models.FixedSum(noisy, total, p)
    for noisy in vectors((-1, 2), 4, 4):
        for totals, p in product(product(range(3), repeat=2), (1, 2)):
            yield models.FixedSum(noisy, totals, p, [0, 2, 4])
            yield models.FixedSum(noisy, [0, *totals, 0], p, [0, 0, 2, 4, 4])
        for integer in (True, False):
            yield models.FixedSum(noisy, [2, 1], 2, [0, 2, 4], [3, 1, 2, 2], integer)


def chebyshev():
    for noisy in vectors((-2, 0, 1, 3), 3):
        for total in range(5):
            yield models.Chebyshev(noisy, total)
    for noisy in vectors((-1, 2), 4, 4):
        for totals in product(range(3), repeat=2):
            yield models.Chebyshev(noisy, totals, [0, 2, 4])
            yield models.Chebyshev(noisy, [totals[0], 0, totals[1]], [0, 2, 2, 4])


def sparsest_chebyshev():
    for noisy in vectors((-2, 0, 1, 3), 4):
        for total in range(6):
            yield models.SparsestChebyshev(noisy, total)


def controlled_rounding():
    half = Fraction(1, 2)
    kinds = (
        (lambda v: np.array([*v, None])[:-1], Fraction(1, 3)),
        (lambda v: np.array(v, float), Fraction(1, 4)),
    )
    for kind, part in kinds:  # floats are fractions: no two of them are a third
        for values in vectors((Fraction(-3, 2), Fraction(0), part, half, 1 + part), 4):
            floors = sum(v // 1 for v in values)
            for total in range(floors, floors + sum(v % 1 != 0 for v in values) + 1):
                yield models.ControlledRounding(kind(values), total)


def cost_table(convex=True):
    steps = {False: product((-2, 0, 1), repeat=2), True: combinations_with_replacement((-2, 0, 1, 3), 2)}
    tables = [[5], [5, 7], *([4, 4 + a, 4 + a + b] for a, b in steps[convex])]
    for one, two in product(tables, repeat=2):
        three = [[0, 1, 3]] if convex else [[0, 2, 1]]
        for total in range(-1, len(one) + len(two)):
            yield models.CostTable([one, two, *three], total, [-1, 0, 0])


def isotonic():
    for k, (noisy, p, integer) in enumerate(product(vectors((-1, 0, 2), 3), (1, 2), (True, False))):
        for lower, upper, last in ((-2, 3, None), (0, 1, None), (0, 3, 3), (-2, 2, 1)):
            halves = np.array([Fraction(v, 2) for v in noisy])
            floats = halves.astype(float) if last is None or integer else np.array(noisy, float)
            kinds = (np.array(noisy), halves, floats)
            for data, weight in zip(kinds * 2, weights(len(noisy))[k % 2 :][:6], strict=False):
                yield models.Isotonic(data, p, weight, lower, upper, last, integer)


def isotonic_side_by_side():
    for noisy, p in product(vectors((-1, 0, 2), 3), (1, 2)):
        for cut, lower, upper in product(range(1, len(noisy)), (-2, (0, -1)), (2, (1, 2))):
            yield models.Isotonic(noisy, p, None, lower, upper, None, True, [0, cut, len(noisy)])


def answers_side_by_side(model):
    """Every non-decreasing answer within the bounds, for each problem separately."""
    parts = [list(isotonic_answers(model.part(k)[0])) for k in range(model.problems)]
    for chosen in product(*parts):
        yield np.concatenate(chosen)


def isotonic_answers(model):
    """Non-decreasing answers on a grid: halves for up to two real entries, whole numbers otherwise."""
    step = Fraction(1) if model.integer or len(model.noisy) > 2 else Fraction(1, 2)
    grid = [model.lower + k * step for k in range(int((model.upper - model.lower) / step) + 1)]
    for x in combinations_with_replacement(grid, len(model.noisy)):
        found = np.array([int(v) for v in x]) if model.integer else np.array([*x, None])[:-1]
        if not model.violations(found):
            yield found


def trees_with_counts(sizes):
    for tree, total in product(TREES, range(3)):
        rng = np.random.default_rng(tree.size)
        for _ in range(12):
            yield tree, rng.integers(-1, 4, size=(tree.size, sizes)), total


def hierarchy_qip():
    for sizes in (1, 2):
        for k, (tree, noisy, total) in enumerate(trees_with_counts(sizes)):
            number = tree.size if k % 2 else tree.depth + 1
            levels = None if k % 3 else [1 + (k + i) % 3 for i in range(number)]
            if k % 5 == 1:
                noisy = noisy * np.array([Fraction(1 + i % 4, 3) for i in range(sizes)])
            model = models.HierarchyQIP(tree, noisy, total, k % 4 != 0, (None, None, 2)[k % 3], levels)
            if not model.why_infeasible():
                yield model


def cumulative_qip(integer=True):
    for sizes in (1, 2):
        for tree, noisy, total in trees_with_counts(sizes):
            yield models.CumulativeQIP(tree, noisy, total, integer)


def tree_chebyshev():
    for tree in TREES:
        for noisy in vectors((0, 1, 4), tree.size, tree.size)[:80]:
            for total in range(4):
                yield models.TreeChebyshev(tree, noisy, total)
    forks = [tree for tree in TREES if tree.leaves.size > 1]
    for k, (noisy, tree) in enumerate(product(vectors((-1, 0, 4), 7, 7)[::53][:40], forks)):
        weights = [1 + (k + 2 * i) % 4 for i in range(tree.size)]
        yield models.TreeChebyshev(tree, noisy[: tree.size], 1 + k % 3, weights)
        parts = [Fraction(count, 2 + (k + i) % 3) for i, count in enumerate(noisy[: tree.size])]
        yield models.TreeChebyshev(tree, parts, 1 + k % 3, weights if k % 2 else None)


def tree_absolute():
    for k, tree in enumerate(TREES):
        for at, noisy in enumerate(vectors((-1, 0, 1, 3), tree.size, tree.size)[:60]):
            weights = None if at % 3 else [(k + at + 2 * i) % 4 for i in range(tree.size)]
            for total in (0, 2, 3):
                yield models.TreeAbsolute(tree, noisy, weights, total)


def constrained_inference():
    for tree in tiny_trees(6):
        for k, seed in enumerate(range(5)):
            rng = np.random.default_rng(seed)
            variance = [
                1,
                rng.integers(1, 4, size=tree.size),
                rng.choice([0.5, 1.0, np.inf], size=tree.size),
            ][k % 3]
            if np.ndim(variance):
                variance[tree.leaves] = 2
            yield models.ConstrainedInference(tree, rng.integers(-3, 6, size=tree.size), variance)


def block_inference():
    workloads = [
        models.Workload.marginals((2,), [(), (0,)]),
        models.Workload.marginals((1,), [(0,)]),
        models.Workload.marginals((2, 2), [(0,), (0, 1), (1,)]),
    ]
    for (k, tree), workload in product(enumerate(tiny_trees(4)), workloads):
        for seed in range(3):
            rng = np.random.default_rng([k, seed])
            noisy = rng.integers(-2, 5, size=(tree.size, workload.size))
            weights = rng.integers(1, 4, size=(tree.depth + 1, len(workload.queries)))
            if seed == 1 and tree.depth and not np.any(tree.level[tree.leaves] == 0):
                weights[0] = 0
            yield models.BlockInference(tree, workload, noisy, weights / 2 if seed == 2 else weights)


def workload_least_squares():
    two, four = (
        models.Workload.marginals(shape, [(), every]) for shape, every in (((2,), (0,)), ((2, 2), (0, 1)))
    )
    totals = models.Workload.marginals((2,), [()])
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 3, (2, 2))
        noisy = two.answers(true) + rng.integers(-3, 4, (2, 3))
        parent = None if seed % 4 == 3 else true.sum(axis=0)
        weights = [1, 1] if seed % 2 else rng.integers(1, 4, (2, 2))
        rules = [None, totals][seed // 4 % 2]
        held = true.sum(axis=1, keepdims=True)
        below, above = (None, None) if rules is None else (held - seed % 3, held + seed // 3 % 2)
        zeros = None if seed % 5 else true == 0
        yield models.WorkloadLeastSquares(two, noisy, weights, parent, zeros, rules, below, above)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 2, (2, 4))
        noisy = four.answers(true) + rng.integers(-2, 3, (2, 5))
        yield models.WorkloadLeastSquares(four, noisy / 2 if seed % 2 else noisy, [0, 2], true.sum(axis=0))


def joint_tables():
    one, two = (models.Workload.marginals((cells,), [(), (0,)]) for cells in (1, 2))
    totals = models.Workload.marginals((2,), [()])
    for seed, workload in product(range(7), (one, two)):
        rng = np.random.default_rng(seed)
        tree = [Tree([]), Tree([[0, 0]]), Tree([[0], [0, 0]])][seed % 3]
        true = tree.sum_up(rng.integers(0, 3, (tree.leaves.size, workload.cells)))
        noisy = workload.answers(true) + rng.integers(-3, 4, (tree.size, workload.size))
        weights = rng.integers(0, 4, (tree.depth + 1, 2)) / (2 if seed % 4 == 3 else 1)
        if workload is one:
            yield models.JointTables(tree, workload, noisy, weights)
            continue
        held = totals.answers(true).astype(float)
        held[1:] = np.inf
        below = np.where(np.isinf(held), -np.inf, held - seed % 2)
        zeros = None if seed % 5 else true[0] == 0
        yield models.JointTables(tree, workload, noisy, weights, zeros, totals, below, held)


def joint_answers(model):
    """Every answer whose leaves' cells hold at most 8, the largest total, or 10, the largest noisy answer.

    Of `joint_tables`, these contain an optimum.
    """
    tree, cells = model.tree, model.workload.cells
    most, totals = 8 if cells > 1 else 10, model.sums
    lower, upper = (None, None) if totals is None else model.sides
    for held in product(range(most + 1), repeat=tree.leaves.size * cells):
        x = tree.sum_up(np.array(held, np.int64).reshape(-1, cells))
        if totals is not None and not ((lower <= (s := totals.answers(x))) & (s <= upper)).all():
            continue  # soon said: most break a total
        if not model.violations(x):
            yield x


def workload_rounding(seeds=range(60)):
    two, four = (
        models.Workload.marginals(shape, kept)
        for shape, kept in (((2,), [(), (0,)]), ((2, 2), [(0,), (0, 1)]))
    )
    totals = models.Workload.marginals((2,), [()])
    parts = np.array([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), None])[:-1]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        workload = four if seed % 3 == 0 else two
        values = parts[rng.integers(0, 4, (2, workload.cells))] + 2 * (seed % 2)
        up = (values % 1 != 0) & (rng.random(values.shape) < 0.5)
        true = values // 1 + up
        parent = None if seed % 4 == 3 else true.sum(axis=0).astype(np.int64)
        weights = [None, [2, 1], [0, 1], [1, 0]][seed % 4]
        if workload is four or seed % 2:
            yield models.WorkloadRounding(workload, values, weights, parent)
        else:
            held = true.sum(axis=1, keepdims=True).astype(np.int64)
            yield models.WorkloadRounding(two, values, weights, parent, totals, held - seed % 5 % 2, held)


def children_answers(model):
    """Whole counts and halves of few cells, as floats."""
    return (x.astype(float) for x in children_fractions(model))


def children_fractions(model):
    """The same as fractions; prices in floats prove them up to rounding only."""
    step = Fraction(1, 2) if np.prod(model.shape) <= 4 else Fraction(1)
    most = 3 if np.prod(model.shape) <= 4 else 1
    kinds = [k * step for k in range(int(most / step) + 1)]
    parent = None if model.parent is None or model.offsets is not None else model.parents[0]
    for held in product(kinds, repeat=int(np.prod(model.shape))):
        x = np.array([*held, None], object)[:-1].reshape(model.shape)
        if (parent is None or (x.sum(axis=0) == parent).all()) and not model.violations(x):
            yield x


def histogram_answers(model):
    """Consistent answers, added up from a few values of the leaves' cells."""
    tree, cells = model.tree, model.workload.cells
    number = tree.leaves.size * cells
    kinds = {1: range(-3, 6), 2: range(-3, 6), 3: (-1, 0, 1, 2), 4: (0, 1, 2)}.get(number, (0, 1))
    for held in islice(product(kinds, repeat=number), 0, 200, 9):
        x = tree.sum_up(np.array(held, np.int64).reshape(-1, cells))
        if not model.violations(x):
            yield x


def non_negative_inference():
    for tree in tiny_trees(6):
        for seed in range(6):
            rng = np.random.default_rng(seed)
            weight = None if seed % 3 == 0 else rng.integers(1, 4, size=tree.size)
            noisy = rng.integers(-3, 5, size=tree.size)
            yield models.NonNegativeInference(tree, noisy, weight, seed % 2 == 0)


LINKS = {
    "tree": [([], [], 1), ([0, 0], [1, 2], 3), ([0, 1, 1], [1, 2, 3], 4), ([0, 0, 1, 1], [1, 2, 3, 4], 5)],
    "crossed": [
        ([0, 0, 1, 1], [3, 4, 3, 5], 6),
        ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [5, 6, 7, 8, 5, 7, 6, 8, 0, 1], 9),
    ],
    "three": [([0, 0, 1, 1, 2, 2], [3, 4, 4, 5, 3, 5], 6)],
}
"""The aggregate and the part of each link, and the number of series."""


def reconciliation(integer, kinds=("tree", "crossed", "three"), times=15):
    for seed, (*links, series) in enumerate([shape for kind in kinds for shape in LINKS[kind]] * times):
        rng, links = np.random.default_rng(seed), np.array(links, np.int64)
        plain = models.Reconciliation(np.zeros(series), *links)
        true = plain.summed(rng.integers(0, 3, series))
        base = true + rng.integers(-2, 3, series)
        lower, upper = np.where(plain.bottom, seed % 2 * -1, -9), true + rng.integers(0, 2, series)
        if seed % 3 == 0:
            lower[0] = upper[0] = true[0]
        weights = rng.integers(1, 4, series) if seed % 2 else None
        p = {3: np.inf, 4: 1}.get(seed % 5, 2)
        yield models.Reconciliation(base, *links, weights, lower, upper, integer, p)


def leaf_answers(model):
    """Consistent answers from whole leaf counts: −3 to 5, or fewer values if there are many leaves."""
    tree = model.tree
    kinds = {1: range(-3, 6), 2: range(-3, 6), 3: (-1, 0, 1, 2), 4: (0, 1, 2)}.get(tree.leaves.size, (0, 1))
    for held in product(kinds, repeat=tree.leaves.size):
        x = tree.sum_up(np.array(held, np.int64))
        if not model.violations(x):
            yield x


def group_matching():
    for groups in (1, 2, 3):
        for above in combinations_with_replacement((1, 2, 4), groups):
            for below in combinations_with_replacement((0, 1, 3), groups):
                for cut in range(groups + 1):
                    yield models.GroupMatching(runs(above), [runs(below[:cut]), runs(below[cut:])])


def runs(sizes):
    found, counts = np.unique(np.array(sizes, np.int64), return_counts=True)
    return found, counts


def merging():
    for y in vectors((-1, 0, 2), 4, 4):
        for w, integer in product(((1, 1, 2, 3), (1, 2, 1, 2)), (True, False)):
            yield models.Merging(np.reshape(y, (2, 2)), np.reshape(w, (2, 2)), integer)


def min_cost_flow():
    shapes = [
        ([0], [1]),
        ([0, 0], [1, 1]),
        ([0, 1, 0], [1, 2, 2]),
        ([0, 1, 0], [1, 0, 0]),
        ([0, 0, 1, 1], [2, 3, 2, 3]),
    ]
    for seed, (tail, head) in enumerate(shapes * 30):
        rng = np.random.default_rng(seed)
        capacity, nodes = rng.integers(0, 4, len(tail)), max(*tail, *head) + 1
        held = rng.integers(0, capacity + 1)
        supply = np.bincount(tail, held, nodes) - np.bincount(head, held, nodes)
        cost = rng.integers(-2 if seed % 3 else 0, 4, len(tail))
        parts = [Fraction(int(c), 3) for c in cost] if seed % 4 == 3 else cost
        yield models.MinCostFlow(tail, head, parts, supply.astype(np.int64), capacity)
        if cost.min() >= 0:
            yield models.MinCostFlow(tail, head, cost / 8, supply.astype(np.int64))
    for seed in range(40):  # a unit from the first node to the last, by arcs to later nodes
        rng = np.random.default_rng(seed)
        arcs = [(0, 1), (1, 2), (2, 3), *(np.sort(rng.permutation(4)[:2]) for _ in range(2))]
        tail, head = rng.permutation(np.array(arcs)).T
        yield models.MinCostFlow(tail, head, rng.integers(-2, 4, 5), [1, 0, 0, -1], np.full(5, 1 + seed % 2))


def merging_answers(model):
    step = Fraction(1) if model.integer else Fraction(1, 2)
    grid = [-1 + k * step for k in range(int(3 / step) + 1)]
    for x in product(grid, repeat=2):
        yield np.array([int(v) for v in x]) if model.integer else np.array([*x, None])[:-1]


def tree_matching():
    for tree in TREES:
        rng = np.random.default_rng(tree.size)
        for _ in range(10):
            groups = tree.sum_up(rng.integers(0, 3, size=tree.leaves.size))
            yield models.TreeMatching(tree, [runs(np.sort(rng.integers(0, 3, size=g))) for g in groups])


def clustering():
    for values in combinations_with_replacement((0, 1, 2, 5), 4):
        for scale, clusters in product((0, 1, 2, 0.5), (None, 1, 2, 3)):
            yield models.Clustering(values, scale, clusters)
            if clusters is None:
                yield models.Clustering(np.array(values, float), scale, clusters)


def change_points():
    for seed, n in enumerate([1, 2, 3, 4, 5, 6, 6] * 20):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 5, (n, 2) if seed % 5 == 4 else n)
        min_size, jump = int(rng.integers(1, min(n, 3) + 1)), int(rng.integers(1, 4))
        most = 1 + (n - min_size) // (-(-min_size // jump) * jump)
        clusters = int(rng.integers(1, most + 1)) if seed % 2 else None
        price = (0, Fraction(1, 2), 3)[seed % 3]
        yield models.ChangePoints(values, clusters, price, min_size, jump)
        if seed % 4 == 0:
            yield models.ChangePoints(values / 8, clusters, 0.25, min_size, jump)


def segmentation():
    for values in vectors((0, 1, 4), 4, 4):
        for price, clusters in product((0, 1, Fraction(1, 2)), (None, 1, 2, 3)):
            yield models.Segmentation(values, clusters, price)
    for values in vectors((0.0, 1.5, 4.0), 4, 4):
        yield models.Segmentation(values, None, 1.0)


def wasserstein_distance():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        u, v = (rng.integers(-3, 6, int(rng.integers(1, 4))) for _ in range(2))
        a = [None, rng.integers(1, 4, u.size), rng.integers(1, 4, u.size) / 4][seed % 3]
        b = None if seed % 4 else np.append(rng.integers(0, 3, v.size - 1), 2)
        yield models.WassersteinDistance(u / 8 if seed % 5 == 4 else u, v, a, b)


def larger_distances(model):
    """That of equal copies in order, and others."""
    sides = []
    for values, weights in ((model.u_values, model.u_weights), (model.v_values, model.v_weights)):
        whole = np.ones(values.size, int) if weights is None else np.asarray(4 * weights, int)
        sides.append((np.repeat(values, whole), int(whole.sum())))
    (u, m), (v, n) = sides
    copies = zip(np.sort(np.repeat(u, n)).tolist(), np.sort(np.repeat(v, m)).tolist(), strict=True)
    least = sum((abs(Fraction(p) - Fraction(q)) for p, q in copies), Fraction(0)) / (m * n)
    for more in (0, Fraction(1, 100), 1, 5):
        yield np.array([least + more, None])[:-1]


def budget_split():
    for weight in vectors((1, 2, 30), 3):
        for epsilon in (1, 3):
            yield models.BudgetSplit(weight, epsilon)


def budget_answers(model):
    """Shares in twelfths of the budget."""
    n = len(model.weights)
    for parts in compositions(12, n):
        if min(parts) > 0:
            yield np.array([*(Fraction(model.epsilon * p, 12) for p in parts), None])[:-1]


def strategy_sdp():
    yield models.StrategySDP([[1, 0], [0, 1], [1, 1]])
    yield models.StrategySDP([[1]])
    yield models.StrategySDP([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    yield models.StrategySDP([[2, 0], [0, 1]])


def strategy_answers(model):
    """Diagonally dominant matrices."""
    n = model.bins
    for diagonal, beside in product((0.5, 1.0), (-0.2, 0.0, 0.2)):
        yield np.full((n, n), beside) + (diagonal - beside) * np.eye(n)


@dataclass
class Contract:
    """Tiny instances of a model, and the promises of its certificates."""

    tiny: object
    promises: dict = field(default_factory=dict)


BOUND_ONLY = {"exact_gap": False, "complete": False}
CONTRACTS = {
    "BlockInference": Contract(block_inference, {"answers": histogram_answers, "exact_gap": False}),
    "BudgetSplit": Contract(budget_split, {"answers": budget_answers}),
    "ChangePoints": Contract(change_points),
    "Chebyshev": Contract(chebyshev),
    "Clustering": Contract(clustering),
    "ConstrainedInference": Contract(constrained_inference, {"answers": leaf_answers}),
    "ControlledRounding": Contract(controlled_rounding),
    "CostTable": Contract(cost_table),
    "CostTable, not convex": Contract(lambda: cost_table(convex=False), BOUND_ONLY),
    "CumulativeQIP": Contract(cumulative_qip),
    # Its fast path's prices are floats, so that the gaps of exact answers are off by their last digits.
    "CumulativeQIP, relaxed": Contract(lambda: cumulative_qip(integer=False), {"exact_gap": False}),
    "FixedSum": Contract(fixed_sum),
    "GroupMatching": Contract(group_matching),
    "HierarchyQIP": Contract(hierarchy_qip),
    "Isotonic": Contract(isotonic, {"answers": isotonic_answers}),
    "Isotonic, side by side": Contract(isotonic_side_by_side, {"answers": answers_side_by_side}),
    "JointTables": Contract(
        joint_tables,
        {"answers": lambda model: islice(joint_answers(model), 0, 60, 9), "exact_gap": False},
    ),
    "Merging": Contract(merging, {"answers": merging_answers}),
    "MinCostFlow": Contract(min_cost_flow),
    "NonNegativeInference": Contract(non_negative_inference, {"answers": leaf_answers}),
    "Reconciliation": Contract(lambda: reconciliation(True), BOUND_ONLY),
    "Reconciliation, in floats": Contract(
        lambda: reconciliation(False),
        {"answers": lambda model: (x.astype(float) for x in whole_answers(model)), "exact_gap": False},
    ),
    "Segmentation": Contract(segmentation),
    "SimplexQP": Contract(simplex_qp),
    "SparsestChebyshev": Contract(sparsest_chebyshev),
    "StrategySDP": Contract(strategy_sdp, {"answers": strategy_answers}),
    "TreeAbsolute": Contract(tree_absolute),
    "TreeChebyshev": Contract(tree_chebyshev),
    "TreeMatching": Contract(tree_matching),
    "WassersteinDistance": Contract(wasserstein_distance, {"answers": larger_distances}),
    "WorkloadLeastSquares": Contract(
        workload_least_squares,
        {"answers": lambda model: islice(children_answers(model), 0, 60, 5), "exact_gap": False},
    ),
    "WorkloadRounding": Contract(workload_rounding, BOUND_ONLY),
    "WorkloadLeastSquares, in fractions": Contract(
        workload_least_squares,
        {"answers": lambda model: islice(children_fractions(model), 0, 60, 8), **BOUND_ONLY},
    ),
}
