"""Budgets, Algorithms 1 and 2, the matrix mechanism and the table of methods."""

from itertools import permutations

import numpy as np
import pytest

from hierdp.analysis import budgets, matrix_mechanism, methods, report
from hierdp.analysis.consistent import ConsistentVariance
from hierdp.analysis.explicit_workload import ExplicitWorkload
from hierdp.analysis.grids import consistent, plain
from hierdp.analysis.queries import Regular
from hierdp.analysis.workload import PREFIX, RANGE, WHOLE, height, range_tree
from hierdp.errors import InputError
from hierdp.experiments.papers import qardaji2013
from hierdp.experiments.papers.qardaji2013 import algorithms
from models import BudgetSplit
from solvers import solve
from tests.hierdp.test_analysis_variance import covariance, of_levels
from tests.marks import quick


@pytest.mark.parametrize(
    ("n", "d", "b", "expected"), [(11, 3, 8, 187.3), (12, 3, 5, 224.2), (16, 2, 4, 81.2)]
)
def test_the_budgets_of_cormode_et_al(n, d, b, expected):
    # Computed by another program, by dense least squares, and printed with one digit after the point.
    assert methods.consistent_quadtree(Regular.ranges(n, d), b) == pytest.approx(expected, abs=0.05)


def test_even_and_geometric_shares():
    assert budgets.equal(3.0, 4).tolist() == [0.75] * 4
    for d in (1, 2):
        shares = budgets.geometric(2.0, 5, 3, d)
        assert shares.sum() == pytest.approx(2.0)
        np.testing.assert_allclose(shares[:-1] / shares[1:], 3 ** (d / 3))
    for wrong in (0, -1, float("nan"), float("inf")):
        for split in (
            lambda e: budgets.equal(e, 2),
            lambda e: budgets.geometric(e, 2, 2),
            lambda e: budgets.closed_form(Regular.ranges(8), 2, e),
            lambda e: budgets.iterated(Regular.ranges(8), 2, e),
        ):
            with pytest.raises(InputError, match="epsilon"):
                split(wrong)
    assert budgets.noise_variance([1.0, 0.0, 2.0]).tolist() == [2.0, np.inf, 0.5]


def test_the_closed_form_solves_the_convex_program():
    rng = np.random.default_rng(0)
    for n, b, d in ((64, 4, 1), (1000, 7, 1), (50, 3, 2), (12, 2, 3)):
        queries = Regular.ranges(n, d)
        split = budgets.closed_form(queries, b, 0.7)
        assert split.shares.sum() == pytest.approx(0.7)
        assert split.certificate.optimal
        used = queries.nodes_used(b)
        assert split.variance == pytest.approx(float(np.sum(used * budgets.noise_variance(split.shares))))
        if d == 2:
            for backend in ("clarabel", "scs"):
                other = solve(BudgetSplit(2 * used, 0.7), backend)
                assert float(other.objective) == pytest.approx(split.variance, rel=1e-3)
        for _ in range(200):
            shares = split.shares * np.exp(rng.normal(0, 0.2, split.shares.size))
            shares *= 0.7 / shares.sum()
            assert np.sum(used * budgets.noise_variance(shares)) >= split.variance * (1 - 1e-12)


def test_a_level_that_no_query_uses_gets_nothing():
    split = budgets.closed_form(ExplicitWorkload(16, [0, 3], [1, 4]), 4, 1.0)  # single bins
    assert split.shares.tolist() == [1.0, 0.0]
    assert split.variance == 2.0


@pytest.mark.parametrize(("n", "b", "d"), [(256, 2, 1), (256, 16, 1), (1000, 10, 1), (64, 8, 2), (20, 3, 2)])
def test_the_iteration_never_increases_the_variance_and_ends_at_a_kkt_point(n, b, d):
    queries = Regular.ranges(n, d)
    h = height(n, b)
    last = queries.consistent(b, budgets.noise_variance(budgets.equal(1.0, h)))
    split = budgets.iterated(queries, b, 1.0)
    assert split.shares.sum() == pytest.approx(1.0)
    assert split.variance <= last
    assert split.variance == pytest.approx(queries.consistent(b, budgets.noise_variance(split.shares)))
    assert split.certificate.optimal
    # Stationary: moving a little budget between measured levels changes nothing to first order.
    kept_levels = np.flatnonzero(split.shares > 0)
    for i, j in permutations(kept_levels, 2):
        moved = split.shares.copy()
        step = 1e-5 * min(moved[i], moved[j])
        moved[i], moved[j] = moved[i] - step, moved[j] + step
        change = queries.consistent(b, budgets.noise_variance(moved)) / split.variance - 1
        assert change > -1e-8
    # From any start, a round never increases the variance.
    shares = np.random.default_rng(n).dirichlet(np.ones(h))
    for _ in range(5):
        weights = 2 * queries.level_shares(b, budgets.noise_variance(shares))
        before = queries.consistent(b, budgets.noise_variance(shares))
        assert float(np.sum(weights / shares**2)) == pytest.approx(before)  # Eq. 5
        shares = np.cbrt(weights) / np.cbrt(weights).sum()
        assert queries.consistent(b, budgets.noise_variance(shares)) <= before * (1 + 1e-12)


def test_the_iteration_drops_levels_and_what_is_left_is_another_hierarchy():
    split = budgets.iterated(Regular.ranges(1024), 2, 1.0)
    assert (split.shares > 0).tolist() == [True, False, False, False, True, False, False, True, False, False]
    assert split.variance == pytest.approx(154.51, abs=0.005)
    tree = range_tree(1024, 2)
    noise = ConsistentVariance(tree, of_levels(tree, budgets.noise_variance(split.shares)))
    start, stop = np.triu_indices(1024)
    assert noise.of_ranges(start, stop + 1).mean() == pytest.approx(split.variance)
    kept = budgets.iterated(Regular.ranges(1024), 2, 1.0, start=split.shares > 0)
    assert kept.variance == pytest.approx(split.variance, rel=1e-9)
    # With ε ten times as large, the variance is a hundredth.
    assert budgets.iterated(Regular.ranges(1024), 2, 10.0).variance == pytest.approx(
        split.variance / 100, rel=1e-9
    )


@pytest.mark.parametrize(("b", "h"), [(2, 4), (3, 3), (4, 2), (5, 1)])
def test_algorithm_1_is_exact_on_complete_trees(b, h):
    shares = np.linspace(1, 2, h)
    found = algorithms.estimates(b, shares)
    tree = range_tree(b**h, b)
    own = of_levels(tree, 2 / shares**2)
    holds = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size)]).T
    for i in range(h):
        node = int(tree.nodes_of(h - i).start)
        inside = ((holds @ holds[node]) == holds.sum(axis=1)) & (tree.level >= tree.level[node])
        for part, exact in (
            (inside, found.below[i]),
            (~inside | (np.arange(tree.size) == node), found.above[i]),
        ):
            weight = np.where(part & (tree.level > 0), 1 / own, 0)
            # The variance of the best linear estimate of the node's count from these measurements.
            c = np.linalg.pinv((holds.T * weight) @ holds, rcond=1e-12)
            assert holds[node] @ c @ holds[node] == pytest.approx(exact), (b, h, i)


def test_algorithm_1_as_printed_has_the_wrong_noise():
    printed, right = (f(2, [0.5, 0.5]) for f in (algorithms.estimates_as_printed, algorithms.estimates))
    assert printed.own.tolist() == [4.0, 4.0]  # 2/ε
    assert right.own.tolist() == [8.0, 8.0]  # 2/ε²


@pytest.mark.parametrize(
    ("n", "b", "printed"),
    [(16, 16, 12.00), (32, 32, 22.67), (64, 8, 36.79), (256, 16, 78.86), (1024, 32, 163.88)],
)
def test_algorithm_2_corrected_gives_the_printed_values_for_complete_trees(n, b, printed):
    shares = budgets.equal(1.0, height(n, b))
    assert algorithms.mean_variance(n, b, shares) == pytest.approx(printed, abs=0.005)
    assert algorithms.mean_variance_as_printed(n, b, shares) > 100 * printed


def test_algorithm_2_by_its_definition():
    """For each level: the nodes that queries use, times the mean variance of the best mix of k siblings."""
    b, h = 4, 3
    n, shares = b**h, np.array([0.5, 0.3, 0.2])
    found = algorithms.estimates(b, shares)
    factor = np.ones(h)
    for i in range(h - 1):
        low, high = found.below[i], found.above[i + 1]
        mixed = [k * low * (high + (b - k) * low) / (high + b * low) for k in range(1, b)]
        factor[i] = np.mean(mixed) / np.mean([k * found.own[i] for k in range(1, b)])
    factor[-1] = found.below[-1] / found.own[-1]
    expected = plain(n, b, factor * found.own)
    assert algorithms.mean_variance(n, b, shares) == pytest.approx(expected)


def test_the_papers_weights_are_least_squares_only_without_short_families():
    assert qardaji2013.paper_variance(64, 8) == pytest.approx(consistent(64, 8, [8, 8]))
    c = covariance(range_tree(27, 3), of_levels(range_tree(27, 3), [1.0] * 3))
    np.testing.assert_allclose(qardaji2013.covariance(27, 3), c, atol=1e-12)
    for n, b, printed in (
        (16, 12, 20.82),
        (32, 12, 29.60),
        (64, 12, 39.31),
        (512, 23, 114.02),
        (512, 12, 134.51),
    ):
        assert qardaji2013.paper_variance(n, b) == pytest.approx(printed, abs=0.005)
        assert consistent(n, b, [2 * height(n, b) ** 2] * height(n, b)) < qardaji2013.paper_variance(n, b)


@pytest.mark.slow
def test_the_matrix_mechanism_on_few_bins():
    for n, axis in ((1, RANGE), (2, RANGE), (8, RANGE), (16, RANGE), (12, PREFIX)):
        gram, count = axis.gram(n), axis.queries(n)
        least, proof = matrix_mechanism.lower_bound(gram, count)
        assert proof.optimal
        single = matrix_mechanism.mean_variance(np.eye(n), gram, count)
        assert single == pytest.approx(2 * axis.length(n))
        assert matrix_mechanism.mean_variance(3 * np.eye(n), gram, count) == pytest.approx(single)
        for strategy in (
            matrix_mechanism.eigen(gram),
            matrix_mechanism.eigen(gram, 2),
            matrix_mechanism.low_rank(gram, 50),
            matrix_mechanism.p_identity(gram, 50),
        ):
            assert matrix_mechanism.mean_variance(strategy, gram, count) >= least * (1 - 1e-9)
        few = matrix_mechanism.p_identity(gram, 50)
        assert matrix_mechanism.mean_variance(few, gram, count) <= single * (1 + 1e-9)
        assert matrix_mechanism.mean_variance(few, gram, count, 0.5) == pytest.approx(
            4 * matrix_mechanism.mean_variance(few, gram, count)
        )
    with pytest.raises(InputError, match="512"):
        matrix_mechanism.eigen(np.eye(513))
    with pytest.raises(InputError, match="exactly the same queries"):
        matrix_mechanism.eigen(WHOLE.gram(3))


def test_a_hierarchys_variance_is_the_matrix_mechanisms():
    tree = range_tree(20, 3)
    holds = np.array([tree.sum_up(row) for row in np.eye(20)]).T[1:]
    found = matrix_mechanism.mean_variance(holds, RANGE.gram(20), RANGE.queries(20))
    assert found == pytest.approx(consistent(20, 3, [2 * 3**2] * 3))


def test_eigen_weights_are_the_best_for_the_eigenvectors():
    gram = RANGE.gram(6)
    rng = np.random.default_rng(1)
    found = matrix_mechanism.eigen(gram)
    best = matrix_mechanism.mean_variance(found, gram, 21)
    for _ in range(100):
        other = found * np.exp(rng.normal(0, 0.1, (6, 1)))
        assert matrix_mechanism.mean_variance(other, gram, 21) >= best * (1 - 1e-6)


@pytest.mark.slow
def test_the_table_of_methods():
    rows = {row.method: row for row in methods.analyse(Regular.ranges(1024), 1.0)}
    assert rows["F"].variance == 684
    assert (rows["H_b"].branching, rows["H_b^c"].branching) == (32, 11)
    assert rows["H_b^c"].variance == pytest.approx(156.64, abs=0.005)
    assert rows["H_2^c"].variance == pytest.approx(410.58, abs=0.005)
    assert rows["H_2"].variance == pytest.approx(1602.73, abs=0.005)
    assert rows["Quad = H_2,g^c"].variance == pytest.approx(540.73, abs=0.005)
    assert rows["W_H"].variance == pytest.approx(410.29, abs=0.005)
    assert np.isnan(rows["SF"].variance)
    assert rows["SF"].note
    for better, worse in (("H_b,o^c", "H_b^c"), ("H_b,o^c", "H_b,g^c"), ("H_b,o", "H_b")):
        assert rows[better].variance <= rows[worse].variance
    for row in rows.values():
        if row.shares is not None:
            assert row.shares.sum() == pytest.approx(1.0)
            assert row.shares.size == row.levels
    half = {row.method: row.variance for row in methods.analyse(Regular.ranges(1024), 0.5)}
    for name, row in rows.items():
        assert half[name] == pytest.approx(4 * row.variance, nan_ok=True)


def test_one_bin_and_chosen_branching_factors():
    assert [row.method for row in methods.analyse(Regular.ranges(1), 1.0)] == ["F", "W_H", "SF"]
    rows = {row.method: row for row in methods.analyse(Regular.ranges(100), 1.0, [7, 9])}
    assert {rows[name].branching for name in ("H_b", "H_b^c", "H_b,o^c")} <= {7, 9}
    assert "H_2" not in rows
    with pytest.raises(InputError, match="branching"):
        methods.analyse(Regular.ranges(100), 1.0, [1])
    with pytest.raises(InputError, match="one dimension"):
        methods.matrix_rows(Regular.ranges(4, 2), 1.0)
    with pytest.raises(InputError, match="512 bins"):
        methods.matrix_rows(Regular.ranges(1000), 1.0)
    found = {row.method: row.variance for row in methods.matrix_rows(Regular.ranges(10), 2.0, 20)}
    assert found["MM, lower bound (SDP)"] == min(found.values())


def test_branching_factors_tried():
    assert methods.branchings(Regular.ranges(10)) == list(range(2, 11))
    assert methods.branchings(Regular.ranges(2**20))[-1] == 1024
    few = methods.branchings(ExplicitWorkload(2**20, [1], [5]))
    assert few[:15] == list(range(2, 17))
    assert len(few) < 60
    assert few[-1] <= 1024
    assert methods.branchings(Regular.ranges(300, 3)) == list(range(2, 301))


@pytest.mark.slow
def test_when_flat_is_best():
    assert methods.flat_is_best(60, Regular.ranges) == 42
    assert methods.flat_is_best(200, Regular.ranges, methods.plain_equal) == 187
    assert methods.flat_is_best(60, lambda n: Regular.ranges(n, 2)) == 48
    assert methods.flat_is_best(60, lambda n: Regular.ranges(n, 2), methods.consistent_geometric) == 15
    assert methods.flat_is_best(30, lambda n: Regular.ranges(n, 3), methods.consistent_geometric) == 10
    assert methods.flat_is_best(60, lambda n: Regular.ranges(n, 2), methods.consistent_quadtree) == 20
    assert methods.flat_is_best(30, lambda n: Regular.ranges(n, 3), methods.consistent_quadtree) == 14
    assert methods.flat_is_best(20, Regular.ranges) == 20

    # By brute force: all branching factors, by dense algebra.
    def least(n: int) -> float:
        costs = []
        for b in range(2, n):
            tree = range_tree(n, b)
            c = covariance(tree, of_levels(tree, [2 * tree.depth**2] * tree.depth))
            costs.append(np.sum(c * RANGE.gram(n)) / RANGE.queries(n))
        return min(costs)

    assert least(42) > 2 * RANGE.length(42)
    assert least(43) < 2 * RANGE.length(43)


def test_curves_by_branching_factor():
    curves = report.by_branching(Regular.ranges(64), 1.0, [2, 8, 64])
    assert len(curves) == 15
    assert set(curves.b) == {2, 8, 64}
    here = curves.set_index(["method", "b"]).variance
    assert here["H_b^c", 8] == pytest.approx(37.07, abs=0.005)
    assert here["H_b", 2] == pytest.approx(299.15, abs=0.005)
    assert here["H_b,o^c", 64] == pytest.approx(44)
    assert sorted(set(report.by_branching(Regular.ranges(100), 1.0).b))[-3:] == [83, 91, 100]
    assert report.mathematical("H_b,o^c") == "$H_{b,o}^{c}$"
    assert report.mathematical("H_2") == "$H_{2}$"


def least_squares(queries: ExplicitWorkload, branching: int, variance) -> tuple[float, np.ndarray]:
    """By dense algebra: the mean variance, and the coefficient of each level's variance in it.

    The best unbiased estimate of a sum is the sum of measured nodes with the least variance.
    """
    tree = range_tree(queries.bins, branching, queries.dimensions)
    own, level = of_levels(tree, variance), tree.depth - tree.level
    measured = np.isfinite(own)
    holds = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size)]).T[measured]
    deviation, coefficients = np.sqrt(own[measured]), np.zeros(np.size(variance))
    for inside in queries._insides():
        combined = np.linalg.lstsq((holds / deviation[:, None]).T, inside.ravel())[0] / deviation
        if np.abs(combined @ holds - inside.ravel()).max() > 1e-6:
            return np.inf, coefficients
        coefficients += np.bincount(level[measured], combined**2, np.size(variance))
    coefficients /= len(queries.ends[0])
    used = np.isfinite(variance)
    return float(coefficients[used] @ np.asarray(variance)[used]), coefficients


def without_inference(queries: ExplicitWorkload, branching: int, variance) -> float:
    """By its definition: each query is the sum of the largest nodes inside it."""
    tree = range_tree(queries.bins, branching, queries.dimensions)
    holds = np.array([tree.sum_up(row) for row in np.eye(tree.leaves.size)]).T
    total = 0.0
    for inside in queries._insides():
        whole = holds @ inside.ravel() == holds.sum(axis=1)
        whole[0] = False  # the root is not measured
        largest = whole & ~whole[tree.parent]
        total += np.asarray(variance)[(tree.depth - tree.level)[largest]].sum()
    return float(total / len(queries.ends[0]))


def random_workload(rng: np.random.Generator) -> tuple[ExplicitWorkload, int]:
    """One to four queries; half of the workloads are of sums of whole nodes."""
    dimensions = int(rng.choice([1, 1, 1, 2]))
    bins = int(rng.integers(2, 60 if dimensions == 1 else 9))
    branching = int(rng.integers(2, bins + 1))
    width = branching ** int(rng.integers(0, height(bins, branching))) if rng.random() < 0.5 else 1
    ends = np.unique(np.append(np.arange(0, bins, width), bins))
    shape = int(rng.integers(1, 5)), dimensions
    low = rng.integers(0, ends.size - 1, shape)
    return ExplicitWorkload(bins, ends[low], ends[rng.integers(low, ends.size - 1) + 1]), branching


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", quick(range(100), every=5))
def test_random_workloads_by_dense_least_squares(seed):
    """A level that no query needs gets no budget, the bins' level included, and the others get all of it."""
    rng = np.random.default_rng(seed)
    queries, b = random_workload(rng)
    levels, d = height(queries.bins, b), queries.dimensions
    close = {"rel": 1e-8} if d == 1 else {"rel": 1e-5}  # of boxes, differences in place of derivatives
    some = rng.dirichlet(np.ones(levels)) * (rng.random(levels) < 0.7)
    best = budgets.iterated(queries, b, 1.0)
    plainly = budgets.closed_form(queries, b, 1.0)
    splits = [budgets.equal(1.0, levels), budgets.geometric(1.0, levels, b, d), some, best.shares]
    for shares in (*splits, budgets.quadtree(1.0, levels, b, d), plainly.shares):
        variance = budgets.noise_variance(shares)
        exact, coefficients = least_squares(queries, b, variance)
        assert methods.consistent_variance(queries, b, shares) == pytest.approx(exact, rel=1e-8)
        if np.isfinite(exact):
            found = queries.level_shares(b, variance)
            assert found == pytest.approx(coefficients, **close, abs=1e-6 if d > 1 else 1e-12)
    for shares in (splits[0], plainly.shares):
        assert methods.plain_variance(queries, b, shares) == pytest.approx(
            without_inference(queries, b, budgets.noise_variance(shares))
        )
    for split, exact in (
        (best, least_squares(queries, b, budgets.noise_variance(best.shares))[0]),
        (plainly, methods.plain_variance(queries, b, plainly.shares)),
    ):
        assert split.shares.sum() == pytest.approx(1)
        assert split.certificate.optimal
        assert split.variance == pytest.approx(exact, **close)
    assert best.variance <= methods.consistent_variance(queries, b, splits[0]) * (1 + close["rel"])


@pytest.mark.filterwarnings("error")
def test_the_bins_need_no_budget_if_every_query_is_a_sum_of_groups():
    for queries, b, shares in (
        (ExplicitWorkload(120, [0], [18]), 18, [0, 1]),
        (ExplicitWorkload(120, [90, 0], [120, 120]), 10, [0, 0.5, 0.5]),  # the last group may be short
        (ExplicitWorkload(16, [[0, 4]], [[4, 8]]), 2, [0, 0, 1, 0]),
    ):
        split = budgets.iterated(queries, b, 1.0)
        assert (split.shares > 0).tolist() == [share > 0 for share in shares], split
    rows = {row.method: row for row in methods.analyse(ExplicitWorkload(16, [0], [4]), 1.0, [2])}
    assert rows["H_b,o^c"].note == "best b; 3 of 4 levels should not be measured"
    assert rows["H_b,o"].note == "best b, no inference; 3 of 4 levels should not be measured"
    said = report.advice(ExplicitWorkload(16, [0], [4]), list(rows.values()))
    assert said[-1] == "A level with 0 should not be measured: these queries do not need it."
    every = methods.analyse(Regular.ranges(16), 1.0, [4])
    assert not any("should not be measured" in line for line in report.advice(Regular.ranges(16), every))


def test_a_query_that_needs_the_bins_has_no_finite_variance_without_them():
    queries = ExplicitWorkload(16, [0, 1], [4, 4])
    assert queries.consistent(4, [np.inf, 1.0]) == np.inf
    assert queries.consistent(4, [np.inf, np.inf]) == np.inf
    with pytest.raises(ValueError, match="infinite variance: it needs a level that is not measured"):
        budgets.iterated(queries, 4, 1.0, start=[0, 1])
