"""Each guard of a certificate, on an instance on which the certificate without it would claim too much."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from models import (
    BlockInference,
    CostTable,
    FixedSum,
    HierarchyQIP,
    Isotonic,
    NonNegativeInference,
    SimplexQP,
    SparsestChebyshev,
    Tree,
    TreeAbsolute,
    TreeChebyshev,
    Workload,
    WorkloadLeastSquares,
    lagrangian_bound,
)
from models.arithmetic.door import whole_array
from models.arithmetic.run_costs import sums_of
from models.segments import adds_up
from models.testing import whole_answers
from models.witnesses import block_squares, ordered_runs, sorted_runs
from tests.models.wraps import checking

FORK = Tree([[0, 0]])
TOTAL = Workload.marginals((1,), [()])


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (BlockInference(FORK, TOTAL, [[1], [-5], [3]], [[1], [2]]), [[2], [0], [2]]),
    ],
)
def test_prices_of_leaves_are_ignored(model, x):
    shape = np.shape(x)
    prices = np.zeros(shape, np.int64)
    prices[0] = 1
    bound = model.certificate(x, {"prices": prices}).bound
    for one, two in product((-3, 0, 2, 9), repeat=2):
        prices[1], prices[2] = one, two
        assert model.certificate(x, {"prices": prices}).bound == bound


@pytest.mark.parametrize("off", [-5e-7, 5e-7])
def test_inexact_sums_do_not_lift_a_bound(off):
    """A price is paid for the difference; the bound holds for counts that add up."""
    model = NonNegativeInference(FORK, [1.0, 2.0, 3.0], [1, 1, 1])
    for price in (-10.0, 10.0):
        proof = model.certificate([5.0, 2.0, 3.0 + off], {"consistency": [price]})
        bound = lagrangian_bound(model.program(), model.row_prices(proof.witness))
        assert proof.bound <= float(bound) + 1e-9 * abs(
            float(bound)
        )  # 50 roundings of 2^-53; it is 5e-6 else


@pytest.mark.parametrize("price", [1e160, -1e160, 1e290, -1e290])
def test_a_gap_that_is_not_finite_proves_nothing(price):
    for x in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5]):
        try:
            proof = SimplexQP([0.75, 0.5], total=1).certificate(x, {"total": [price]})
        except ValueError:
            continue
        assert not proof.optimal
        assert proof.bound is None or proof.bound < 0


def test_whole_answers_to_fractions_may_be_above_or_below():
    model = Isotonic(np.array([Fraction(0), Fraction(3, 4), Fraction(2)]), p=1, integer=True)
    free = {"increasing": [0, 0]}
    assert model.certificate([0, 1, 2], free).optimal
    worse = model.certificate([0, 0, 2], free)
    assert (worse.optimal, worse.bound) == (False, Fraction(1, 4))


def test_negative_prices_count_as_zero_in_floats():
    proof = Isotonic([0.0, 5.0]).certificate([2.5, 2.5], {"increasing": [-5.0]})
    assert not proof.optimal
    assert proof.bound <= 0


@pytest.mark.parametrize("power", [20, 29, 40, 57, 60])
def test_isotonic_prices_beyond_64_bits(power):
    """2·w·(x − y) is 2^(2·power + 2) here."""
    y = 2**power
    model = Isotonic([y, -y], weights=[y, y], integer=True)
    with checking():
        assert model.certificate([0, 0]).optimal
        assert not model.certificate([1, 1]).optimal
        assert not model.certificate([-1, -1]).optimal


@pytest.mark.parametrize("price", [2**60, 2**62, 2**63 - 1, -(2**62), -(2**63), 10**30, Fraction(1, 3)])
def test_prices_of_tables_beyond_64_bits(price):
    with checking():
        model = CostTable([[0, 1, 3, 6, 10]] * 2, 4)
        proof = model.certificate([0, 4], {"d3 total": np.array([price], object)})
    lines = [min(cost - price * k for k, cost in enumerate([0, 1, 3, 6, 10])) for _ in range(2)]
    assert proof.bound == math.ceil(sum(lines) + 4 * price)
    assert not proof.optimal


def test_rounding_is_added_to_the_excess_of_potentials():
    """One run, of cost 10^16; the potentials differ by 1 more, and in floats by as much."""
    values, far = sums_of(np.array([7])), np.array([1.0, 1e16 + 2])
    assert (far[0] - far[1]) + 1e16 == 0
    assert sorted_runs.most_over(far, 1e16, 0.0, values, 1e16, 1.0, 0.0) >= 1
    assert ordered_runs.most_over(far, 1e16, values, np.array([0]), 1e16, 0.0) >= 1


def test_given_prices_are_never_taken_for_fitting():
    model = HierarchyQIP(FORK, [[3, 0], [2, 1], [0, 0]], 3)
    wrong = {"H2 total": [0], "H3 consistency": np.zeros((1, 2), np.int64)}
    best = min(whole_answers(model), key=model.objective)
    for x in whole_answers(model):
        proof = model.certificate(x, wrong)
        assert proof.bound <= model.objective(best)
        assert not proof.optimal or model.objective(x) == model.objective(best)


def test_counts_at_the_top_of_their_windows_are_proved_by_prices_beyond():
    """Any large price proves that each count is as large as its window lets it be."""
    model = HierarchyQIP(Tree([]), [[5, 9]], total=16, window=1)
    for price in (4, 100):
        assert model.certificate([[6, 10]], {"H2 total": [price]}).optimal
    assert HierarchyQIP(Tree([]), [[5]], 3, window=2).certificate([[3]], {"H2 total": [-100]}).optimal


def test_a_count_at_the_top_of_its_window_offers_no_unit():
    """A unit more of the first child would be cheaper than the last one of the second."""
    model = HierarchyQIP(FORK, [[16], [5], [9]], total=16, window=1, weights=[1, 1, 10])
    proof = model.certificate([[16], [6], [10]])
    assert (proof.optimal, proof.objective) == (True, 11)


@pytest.mark.parametrize("count", [2**62, 2**60, 2**58])
def test_counts_whose_sum_wraps_to_the_total_do_not_add_up_to_it(count):
    for total in (0, 5):
        x = np.array([count] * (2**64 // count) + [total])
        assert not adds_up(x, np.array([total]), np.array([0, x.size]))
        model = FixedSum(np.zeros(x.size, np.int64), total)
        assert model.violations(x)
        assert not model.certificate(x).optimal


def test_prices_of_rows_without_a_limit_count_as_zero():
    """At least 5, without an upper limit: the least square is 25."""
    model = WorkloadLeastSquares(TOTAL, [[0]], [[1]], None, None, TOTAL, [[5]], [[np.inf]])
    assert model.certificate([[5]], {"rules": [[10]]}).optimal
    for charge in (-1000, -100, -20, -10, -1, 1, 10, 20):
        for kind in (int, float):
            witness = {"rules": [[kind(charge)]]}
            assert model.certificate([[kind(10)]], witness).bound <= 25
    below = WorkloadLeastSquares(TOTAL, [[9]], [[1]], None, None, TOTAL, [[-np.inf]], [[5]])
    assert below.certificate([[5]], {"rules": [[-8]]}).optimal
    for charge in (1, 10, 100, 1000, -8):
        assert below.certificate([[4]], {"rules": [[charge]]}).bound <= 16


def test_prices_of_effects_that_are_not_measured_are_refused():
    workload = Workload.marginals((2,), [()])  # totals only
    noisy, weights = np.array([[1], [2], [3]]), np.array([[1], [1]])
    information = np.array([[Fraction(2), Fraction(0)], [Fraction(2), Fraction(0)]], object)
    data = noisy, weights
    even = np.array([[1, 1], [0, 0], [0, 0]])
    assert block_squares.dual_bound(FORK, workload, data, information, even) <= 14
    with pytest.raises(ValueError, match="does not measure"):
        block_squares.dual_bound(FORK, workload, data, information, np.array([[1, -1], [0, 0], [0, 0]]))


def test_no_threshold_lifts_the_bound_of_the_sparsest_answer():
    tried = 0
    for noisy in list(product((-2, 0, 1, 3), repeat=4))[::11]:
        for total in (0, 1, 3, 5):
            model = SparsestChebyshev(noisy, total)
            answers = list(whole_answers(model))
            if not answers:
                continue
            best = min(map(model.objective, answers))
            worst = max(answers, key=model.objective)
            for threshold in range(-7, 8):
                tried += 1
                proof = model.certificate(worst, {"threshold": threshold})
                assert proof.bound <= best
                assert not proof.optimal or model.objective(worst) == best
    assert tried > 500


def test_a_price_below_a_weight_proves_nothing():
    """A unit more would always pay: the minimum is −∞. Without the guard, [0, 0] is proved."""
    model = TreeAbsolute(Tree([[0]]), [-5, 100], [1, 3])
    proof = model.certificate([0, 0], {"consistency": [10]})
    assert (proof.optimal, proof.objective) == (False, 305)
    assert proof.bound <= 105 == model.objective([100, 100])


SETS = [list(s) for n in range(4) for s in combinations_with_replacement(range(4), n)]


@pytest.mark.parametrize(("weights", "parts"), [(None, 1), ([1, 1, 2, 3], 1), (None, 2), ([1, 1, 2, 3], 3)])
@pytest.mark.parametrize("shape", [[[0, 0, 0]], [[0], [0, 0]]])
def test_no_sets_of_nodes_lift_the_bound(shape, weights, parts):
    """All pairs of sets with up to three nodes, repetitions included, below every node."""
    tree = Tree(shape)
    model = TreeChebyshev(tree, [Fraction(count, parts) for count in (0, 4, 1, 3)], 2, weights)
    answers = list(whole_answers(model))
    best, worst = min(map(model.objective, answers)), max(answers, key=model.objective)
    best *= parts
    most = 0
    for node, lower, upper in product(range(2), SETS, SETS):
        for distance in (0, best - 1, best) if model.rounds else (0,):
            bound = model._clash(node, np.array(lower, np.int64), np.array(upper, np.int64), distance)
            assert bound <= best, (node, lower, upper, distance)
            most = max(most, bound)
    assert most == best  # some of these prove the optimum
    assert not model.certificate(worst, {"node": 0, "lower": [1], "upper": [0], "distance": 0}).optimal


def test_whole_numbers_of_witnesses_stay_below_2_to_the_61():
    """Differences of four of these fit 64 bits."""
    for kind in (None, object, float, np.uint64):
        with pytest.raises(ValueError, match="2\\^61"):
            whole_array({"prices": np.array([2**61], kind)}, "prices", (1,))
    assert whole_array({"prices": [2**61 - 1, 1 - 2**61]}, "prices", (2,)).tolist() == [2**61 - 1, 1 - 2**61]
    with pytest.raises(ValueError, match="2\\^61"):
        whole_array({"prices": [-(2**61)]}, "prices", (1,))
