"""Verdicts from cost, gap and rounding; bounds on rounding errors; and numbers that must not be rounded."""

import math
from fractions import Fraction

import numpy as np
import pytest

from models import (
    BlockInference,
    BudgetSplit,
    Clustering,
    ConstrainedInference,
    CumulativeQIP,
    FixedSum,
    HierarchyQIP,
    Isotonic,
    Merging,
    NonNegativeInference,
    Program,
    Segmentation,
    SimplexQP,
    StrategySDP,
    Tree,
    Workload,
    WorkloadLeastSquares,
    lagrangian_bound,
    lagrangian_certificate,
)
from models.arithmetic import distance, exact, rounding
from models.arithmetic.rounding import Rounding
from models.certificate import CONTRADICTION, FLOAT_TOLERANCE, judge, judge_exactly
from models.check import floats
from models.programs.terms import Block, Term, rows_of
from solvers import fast


@pytest.mark.parametrize("gap", [-1, Fraction(-1, 10**400), -1e-3, -math.inf])
def test_a_gap_below_0_is_a_contradiction_and_proves_nothing(gap):
    exactly = not isinstance(gap, float)
    proof = judge(5, gap, exactly, {}, "why")
    assert (proof.optimal, proof.bound, proof.reason) == (False, None, CONTRADICTION)
    assert proof.contradiction
    assert proof.gap == gap
    assert not judge(5, 0, True, {}, "").contradiction


def test_an_answer_whose_sums_are_off_by_a_tolerance_costs_what_the_feasible_one_beside_it_costs():
    """A solver's answer in floats: 4e5 less than any feasible one, and its total off by a relative 4e-7."""
    model = SimplexQP([0.0, 0.0], 10**6, integer=False)
    proof = model.certificate([5e5 - 0.2, 5e5 - 0.2])
    assert proof.optimal
    assert not proof.contradiction
    assert proof.objective == pytest.approx(5e11, rel=1e-15)  # the factor is rounded twice
    assert model.objective([5e5 - 0.2, 5e5 - 0.2]) < 5e11 - 3e5


FORK = Tree([[0, 0]])
CELL = Workload.marginals((1,), [(0,)])
MANY_STEPS = np.linspace(1, 0, 1_500_001)
MANY_NODES = np.repeat([1e6, 1e3, 1e3 + 0.9], [1, 1000, 1000])


@pytest.mark.parametrize(
    ("model", "x"),
    [
        # Sums off by a relative 1e-6, beside noise of a few hundred.
        (NonNegativeInference(Tree([[0]]), [3e8, 3e8 + 200], [1, 1]), [3e8, 3e8 + 200]),
        (ConstrainedInference(Tree([[0]]), [3e8, 3e8 + 200], 1), [3e8, 3e8 + 200]),
        (BlockInference(Tree([[0]]), CELL, [[3e8], [3e8 + 200]], [[1], [1]]), [[3e8], [3e8 + 200]]),
        (HierarchyQIP(Tree([[0]]), [[3e8], [3e8 + 200]], 3 * 10**8, integer=False), [[3e8], [3e8 + 200]]),
        (CumulativeQIP(Tree([[0]]), [[3e8], [3e8 + 200]], 3 * 10**8, integer=False), [[3e8], [3e8 + 200]]),
        (Isotonic([3e8 + 200, 3e8]), [3e8 + 200, 3e8]),
        # Data so small that an absolute tolerance covers all of them.
        (ConstrainedInference(FORK, [9e-9, 2e-9, 1e-9], 1), [9e-9, 2e-9, 1e-9]),
        (NonNegativeInference(FORK, [9e-9, 2e-9, 1e-9], [1, 1, 1]), [9e-9, 2e-9, 1e-9]),
        (BlockInference(FORK, CELL, [[9e-9], [2e-9], [1e-9]], [[1], [1]]), [[9e-9], [2e-9], [1e-9]]),
        (WorkloadLeastSquares(CELL, [[2e-9]], [[1]], [9e-9]), [[2e-9]]),
        (Isotonic([2e-9, 1e-9]), [2e-9, 1e-9]),
        # Many constraints that are each broken by less than a millionth.
        (Isotonic(MANY_STEPS), MANY_STEPS),
        (Isotonic(MANY_STEPS, p=1), MANY_STEPS),
        (SimplexQP(np.zeros(1_500_000), 1, integer=False), np.zeros(1_500_000)),
        (
            ConstrainedInference(Tree([[0] * 1000, range(1000)]), MANY_NODES, 1),
            MANY_NODES,
        ),
    ],
)  # fmt: skip
def test_an_answer_that_is_feasible_only_by_a_tolerance_is_not_proved_where_that_pays(model, x):
    """Each is the noisy data, which cost nothing; true answers cost something."""
    assert model.objective(x) == 0
    best, witness = fast.answer(model)
    proved = model.certificate(best, witness)
    assert proved.optimal
    assert proved.bound > 0
    for proof in (model.certificate(x), model.certificate(x, witness)):
        assert not proof.contradiction
        assert not proof.optimal or proof.objective == pytest.approx(proved.objective, rel=1e-7)


@pytest.mark.parametrize("kind", [HierarchyQIP, CumulativeQIP])
def test_the_only_feasible_answer_is_proved_by_one_that_is_nearly_feasible(kind):
    model = kind(Tree([[0]]), [[3e8], [3e8 + 200]], 3 * 10**8, integer=False)
    proof = model.certificate([[3e8], [3e8 + 200]])
    assert (proof.optimal, proof.objective) == (True, 200.0**2)


def test_a_budget_that_is_exceeded_by_a_tolerance_buys_nothing():
    proof = BudgetSplit([1, 1], 1).certificate([0.5 + 4e-7, 0.5 + 4e-7])
    assert proof.optimal
    assert proof.objective == pytest.approx(8, rel=1e-15)  # 8 · (1 − 1.6e-6) as it stands


def test_a_sum_of_zeros_has_no_factor_that_gives_it_its_total():
    two = FixedSum([1e7, 0.0, 0.0], [10**7, 1], 2, [0, 1, 3], integer=False)
    assert two.violations([1e7, 0.0, 0.0]) == ["total: the sum of segment 1 is 0.0, not 1.0"]
    for kind in (HierarchyQIP, CumulativeQIP):
        assert len(kind(Tree([]), [[0.0]], 1, integer=False).violations([[0.0]])) == 1
    cells = Workload.marginals((2,), [(0,)])
    model = WorkloadLeastSquares(cells, [[1e7, 0.0]], [[1]], [10**7, 1])
    assert model.violations([[1e7, 0.0]]) == ["parent: the sum, cell 1, is 0.0, not 1.0"]


def test_a_window_left_by_a_tolerance_is_no_contradiction():
    """The root's count is 10 beyond its window, which saves 1300."""
    noisy = [[3e8, -40.0], [15e7 + 60, -40.0], [15e7 + 60, -40.0]]
    model = HierarchyQIP(FORK, noisy, 3 * 10**8 + 60, window=50, integer=False)
    witness = {"H2 total": [190.0], "H3 consistency": [[70.0, -90.0]]}
    best = model.certificate([[3e8 + 50, 10.0], [15e7 + 25, 5.0], [15e7 + 25, 5.0]], witness)
    assert (best.optimal, best.objective) == (True, 11500)
    proof = model.certificate([[3e8 + 60, 0.0], [15e7 + 30, 0.0], [15e7 + 30, 0.0]], witness)
    assert not proof.contradiction
    assert proof.reason == "not feasible: x[0, 0] = 300000060.0, beyond its bound 300000050.0"


def test_rows_of_a_program_that_are_each_broken_by_little_are_broken_together():
    y = np.linspace(1.00075, 1, 1500)  # each fall is less than a millionth
    proof = lagrangian_certificate(Isotonic(y).program(), y, np.zeros(y.size - 1))
    assert not proof.optimal
    assert proof.reason.startswith("not feasible: rows: all together are broken by 0.000")


def test_a_row_of_whole_variables_gets_no_tolerance():
    """Beside a real variable, too: 10⁹ is not 10⁹ + 1, and the feasible answer costs 1."""
    row = rows_of("whole", (1, 2), ([0], [0], np.array([1])), 10**9 + 1, 10**9 + 1)
    blocks = [Block("x", (1,), 0, 2 * 10**9, True), Block("y", (1,), 0, 1)]
    cost = Term("quadratic", np.array([0]), np.array([1]), np.array([10**9]))
    program = Program("whole", blocks, [row], [cost])
    proof = lagrangian_certificate(program, [1e9, 0.5], [0.0])
    assert (proof.optimal, proof.bound) == (False, None)
    assert proof.reason == "not feasible: whole, row 0: 1000000000, not at least 1000000001"
    assert lagrangian_certificate(program, [1e9 + 1, 0.5], [2.0]).objective == 1


def test_small_data_of_a_program_have_a_small_tolerance():
    tiny = ConstrainedInference(FORK, [9e-9, 2e-9, 1e-9], 1).program()
    assert not lagrangian_certificate(tiny, [9e-9, 2e-9, 1e-9], [0]).optimal  # its sums are wrong
    proof = lagrangian_certificate(tiny, [3e-9, 2e-9, 1e-9], [0])
    assert not proof.optimal  # it costs 3.6e-17, three times the optimum
    assert proof.objective == pytest.approx(3.6e-17)


def test_whole_numbers_get_no_tolerance_however_small_the_gap():
    for gap in (Fraction(1, 10**400), Fraction(1, 2**60), 1):
        proof = judge(10**30, gap, True, {}, "why")
        assert (proof.optimal, proof.bound) == (False, 10**30 - gap)
    assert judge(10**400, 0, True, {}, "").optimal


def test_errors_lower_the_bound_and_count_against_the_answer():
    tolerance = FLOAT_TOLERANCE * 8.0
    assert judge(8.0, 0.9 * tolerance, False, {}, "").optimal
    proof = judge(8.0, 0.5 * tolerance, False, {}, "", Rounding(0.6 * tolerance))
    assert not proof.optimal
    assert proof.bound <= 8.0 - 1.1 * tolerance
    assert proof.gap == 8.0 - proof.bound


@pytest.mark.parametrize("gap", [math.nan, math.inf])
def test_a_gap_that_is_no_number_proves_nothing(gap):
    proof = judge(8.0, gap, False, {}, "why")
    assert (proof.optimal, proof.bound) == (False, -math.inf)


@pytest.mark.parametrize("objective", [math.inf, 10**400])
def test_a_cost_beyond_floats_is_never_proved_in_floats(objective):
    assert not judge(objective, 0.0, False, {}, "why").optimal


def test_small_data_have_a_small_tolerance():
    """Costs of 1e-14 and 0: an absolute tolerance of 1e-7 would not tell them apart."""
    cell = Workload.marginals((1,), [(0,)])
    for model, wrong in (
        (Isotonic([0.0, 1e-7]), [1e-7, 1e-7]),
        (SimplexQP([1e-7, 0.0], total=0, integer=False), [0.0, 0.0]),
        (Merging([[1e-7]], [[1]]), [0.0]),
        (NonNegativeInference(Tree([]), [1e-7]), [0.0]),
        (BlockInference(Tree([]), cell, [[1e-7]], [[1]]), [[0.0]]),
        (WorkloadLeastSquares(cell, [[1e-7]], [[1]]), [[0.0]]),
    ):
        best, witness = fast.answer(model)
        assert model.certificate(best, witness).optimal, model
        if model.objective(wrong) > model.objective(best):
            assert not model.certificate(wrong).optimal, model
    assert not BudgetSplit([1e-12, 1e-12], 1).certificate([0.4, 0.6]).optimal


def test_exact_verdicts_shown_in_floats_round_outwards():
    proof = judge_exactly(Fraction(10, 3), Fraction(1, 3), False, {}, "why")
    assert proof.bound < Fraction(1, 3)
    assert proof.gap > 3 or Fraction(proof.gap) >= 3
    assert judge_exactly(1, -math.inf, True, {}, "why").bound == -math.inf
    assert "costs 0.5 less" in judge_exactly(Fraction(1, 2), 1, False, {}, "why").reason


@pytest.mark.parametrize("seed", range(40))
def test_bounds_in_floats_are_below_the_exact_optimum(seed):
    """Large and small numbers side by side, true and shaken prices: compared with the bound in Fractions."""
    rng = np.random.default_rng(seed)
    y = rng.normal(0, 1, 6) * 10.0 ** rng.integers(-3, 16, 6)
    plain, exactly = Isotonic(y), Isotonic(exact.fractions(y))
    x, _ = fast.answer(plain)
    optimum = exactly.objective(fast.answer(exactly)[0])
    prices = plain.certificate(x).witness["increasing"]
    for shaken in (
        prices,
        prices * (1 + rng.normal(0, 1e-12, 5)),
        prices + rng.normal(0, 1, 5),
        1e20 * prices,
    ):
        proof = plain.certificate(x, {"increasing": shaken})
        assert proof.bound == -math.inf or Fraction(proof.bound) <= optimum
    total = int(rng.integers(0, 100))
    simplex = SimplexQP(y, total, integer=False)
    exact_simplex = SimplexQP(y, total, rng.integers(1, 4, 6), integer=False)
    for model in (simplex, exact_simplex):
        x = fast.answer(model)[0]
        price = float(model.certificate(x).witness["total"][0])
        for shaken in (price, price + 1, 1e12):
            proof = model.certificate(x, {"total": [shaken]})
            # The same price, in fractions.
            bound = lagrangian_bound(model.program(), [shaken])
            assert proof.bound == -math.inf or Fraction(proof.bound) <= bound


def test_a_pinned_entry_off_by_a_tolerance_lifts_no_bound():
    model = Isotonic([-1, -1, -1], weights=[2, 2, 2], lower=0, upper=3, last=3)
    proof = model.certificate([1e-9, 1e-9, 3.000000001])
    assert proof.optimal
    assert proof.bound <= 36
    assert Isotonic([-1], last=3).certificate([3.000000001]).bound <= 16
    whole = Isotonic([-0.5, 2.0**55 + 8], integer=True, last=2**55)
    best, witness = fast.answer(whole)
    proof = whole.certificate(best, witness)
    assert (proof.optimal, proof.objective) == (True, 64.25)


def test_sums_are_compared_with_parents_in_floats_by_value():
    workload = Workload.marginals((1,), [(0,)])
    model = WorkloadLeastSquares(workload, [[0.0]], [1], parent=[2.0**58])
    assert model.violations([[2**58]]) == []
    assert model.violations([[2**58 + 1]]) != []
    assert not model.certificate(np.array([[Fraction(2**58 + 1)]], object)).optimal


def test_whole_counts_as_floats_with_prices_beyond_64_bits():
    model = CumulativeQIP(Tree([[0]]), [[2.0**32], [3.0]], 4)
    assert (
        model.certificate([[4], [4]], {"prices": [[-(2.0**61)]], "rises": [[1]]}).bound
        <= (2**32 - 4) ** 2 + 1
    )


def test_floats_and_large_integers_are_compared_by_value():
    a, b = exact.comparable(np.array([2**53 + 1]), np.array([2.0**53]))
    assert (a > b).all()
    assert exact.where(np.array([True, False]), np.array([2**53 + 1] * 2), np.array([0.5] * 2)).tolist() == [
        2**53 + 1,
        0.5,
    ]


def test_answers_larger_than_the_estimates_do_not_wrap():
    model = Merging([[3], [5]], [[2**40], [2**40]])
    x = np.array([2**62])
    proof = model.certificate(x)
    cost = 2**40 * ((2**62 - 3) ** 2 + (2**62 - 5) ** 2)
    assert (proof.objective, proof.bound, proof.optimal) == (cost, 2**41, False)


def test_a_bound_is_rounded_up_for_whole_data_only():
    half = np.array([[Fraction(1, 2)]])
    model = CumulativeQIP(Tree([]), half, 1)
    proof = model.certificate([[1]])
    assert proof.objective == Fraction(1, 4)
    assert 0.2 < proof.bound <= Fraction(1, 4)  # not rounded up to 1
    assert not proof.contradiction


def test_a_program_with_rounded_numbers_bounds_nothing():
    third = np.array([Fraction(1, 3)], object)
    row = rows_of("row", (1, 1), ([0], [0], third), 1, 1)
    program = Program("rounded", [Block("x", (1,), 0, 2)], [row], [Term("linear", np.array([0]))])
    assert not program.exactly
    assert lagrangian_bound(program, [1]) == -math.inf
    for kept in (1, 2**53 + 1):
        row = rows_of("row", (1, 1), ([0], [0], np.array([kept])), 0, 0)
        assert not row.rounded
        assert row.matrix.data.tolist() == [kept]


SHAPES = {
    "tree of one variance": (
        lambda y, w: ConstrainedInference(FORK, y, 1 / w[0]),
        [9, 2, 1],
        [[7, 4, 3], [9, 5, 4], [8, 8, 0]],
    ),
    "tree of variances": (
        lambda y, w: ConstrainedInference(FORK, y, 1 / w),
        [9, 2, 1],
        [[7, 4, 3], [9, 5, 4], [8, 8, 0]],
    ),
    "chain": (lambda y, w: Isotonic(y, weights=w), [3, 1, 2], [[2, 2, 2], [1, 2, 2], [0, 1, 7]]),
    "chain of medians": (lambda y, w: Isotonic(y, 1, w), [3, 1, 2], [[2, 2, 2], [0, 1, 2], [0, 0, 9]]),
    "means": (
        lambda y, w: Merging([y, 0 * y], [w, w], integer=False),
        [4, -2, 6],
        [[2, -1, 3], [2, -1, 4], [0, 0, 9]],
    ),
}
"""Models from data and weights, the data, and feasible answers; the first is optimal for equal weights."""


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_no_bound_is_lifted_by_what_underflows(kind, seed):
    """Data and weights times powers of 2, down to the smallest floats: compared with Fractions."""
    make, y, answers = SHAPES[kind]
    rng, proved = np.random.default_rng(seed), 0
    for _ in range(60):
        a, b = int(rng.integers(-1000, 500)), int(rng.integers(-990, 1000))
        size, weights = 2.0**a, np.full(3, 2.0**b)
        model = make(np.array(y) * size, weights)
        exactly = make(exact.fractions(y) * Fraction(size), exact.fractions(weights))
        costs = [exactly.objective(exact.fractions(x) * Fraction(size)) for x in answers]
        assert min(costs) == costs[0]
        for x, cost in zip(answers, costs, strict=True):
            proof = model.certificate(np.array(x) * size)
            if proof.bound not in (None, -math.inf):
                assert Fraction(proof.bound) <= costs[0], (a, b)
            assert not proof.optimal or cost == costs[0], (a, b)
            proved += proof.optimal
    assert proved > 20  # where costs are neither tiny nor infinite


def test_costs_that_underflow_are_not_proved():
    halves = 0.5 * np.eye(2)
    assert not StrategySDP(1e-170 * np.eye(2)).certificate(halves).optimal
    assert not StrategySDP(1e-170 * np.eye(2)).certificate(np.eye(2)).optimal
    assert StrategySDP(1e-100 * np.eye(2)).certificate(np.eye(2)).optimal
    assert math.isinf(StrategySDP(1e160 * np.eye(2)).certificate(halves).objective)
    for size in (1e-100, 1e-200, 1e-300):
        assert not StrategySDP(np.eye(2)).certificate(size * halves).optimal
    for weight, epsilon in ((1e-300, 1e100), (1e-300, 2e-160), (1e300, 1e-10), (5e-324, 1.0)):
        for part in (0.25, 0.5):
            proof = BudgetSplit([weight] * 2, epsilon).certificate([part * epsilon, (1 - part) * epsilon])
            assert (proof.optimal, proof.bound) == (False, -math.inf)
    tiny, cuts = np.array([1e-170, 2e-170, 9e-170, 9.5e-170]), [1, 1, 0, 0]
    for values, optimal in ((tiny, False), (np.zeros(4), True)):
        assert Segmentation(values, clusters=2).certificate(cuts).optimal == optimal
        assert Clustering(values, 0.0, clusters=2).certificate(cuts).optimal == optimal


def test_numbers_beyond_floats_do_not_crash_a_certificate():
    small = Fraction(2, 10**400)
    assert not BudgetSplit([1, 1], small).certificate([small / 2] * 2).optimal
    for variance in (Fraction(1, 10**400), Fraction(10**400)):
        with pytest.raises(ValueError, match="floats must be able to hold it"):
            ConstrainedInference(FORK, [9.0, 2.0, 1.0], variance)
    large = Merging([[0.0, 1e200]], [[1, 1]], integer=True)
    assert not large.certificate([1, 10**200]).optimal
    noisy = np.array([Fraction(10) ** 200, 0, 0], object)
    assert not ConstrainedInference(FORK, noisy, Fraction(1, 10**200)).certificate([2, 1, 1]).optimal


def test_zeros_are_proved():
    zeros = np.zeros(3)
    for model, x in (
        (ConstrainedInference(FORK, zeros, 2.0), zeros),
        (ConstrainedInference(FORK, zeros, [1e-300, 1e300, 1.0]), zeros),
        (NonNegativeInference(FORK, zeros), zeros),
        (Isotonic(zeros), zeros),
        (Isotonic(zeros, p=1), zeros),
        (Merging([zeros, zeros], np.ones((2, 3)), integer=False), zeros),
        (SimplexQP(zeros, 0, integer=False), zeros),
    ):
        assert model.certificate(x).optimal, model


@pytest.mark.parametrize("blocks", [1, 64])
def test_the_bound_on_a_sum_is_above_its_error_and_no_larger_than_needed(blocks):
    """One, then numbers that each addition loses, as half a unit in the last place is rounded to even."""
    count, lost = blocks * rounding.BLOCK, 2.0**-53
    x = np.zeros(count)
    x[0], x[1 : rounding.BLOCK], x[rounding.BLOCK :: rounding.BLOCK] = 1, lost, lost
    found = distance._floats.py_func(x, np.zeros(count), None, 1)
    assert found == 1
    bound = Fraction(rounding.of_total(count, found))
    error = sum(map(Fraction, x.tolist())) - Fraction(found)
    assert 0.99 * bound < error <= bound


def test_an_error_beyond_floats_proves_nothing():
    """Numbers of 2·10¹⁶⁸: the error overflows, and with it what would be allowed."""
    y = [2e168, 2e168 * (1 - 1e-15)]
    assert math.isfinite(Isotonic(y).objective([2e168, 2e168]))
    assert not Isotonic(y).certificate([2e168, 2e168]).optimal


MANY = 1 << 16
"""Equal terms whose sum, if they are added up one after another, is wrong by more than `of_total` says."""


def _flat(x):
    return x, np.zeros(MANY), None


_ONE_OF_EACH = np.zeros(1), np.ones(1), np.full(1, -np.inf), np.full(1, np.inf)
"""The center, the weight and the bounds of all."""

SUMS = {
    "distances": lambda x: distance._floats.py_func(*_flat(x), 2),
    "squares": lambda x: floats._cost.py_func(x, np.zeros(1), np.ones(1), 2)[0],
    "lines": lambda x: floats._cost.py_func(x * x, np.zeros(1), np.ones(1), 0)[0],
    "excesses": lambda x: floats._squares.py_func(x, *_ONE_OF_EACH, np.zeros(1), 0.0, 0.0),
}


@pytest.mark.parametrize("kind", SUMS)
def test_kernels_add_up_in_blocks(kind):
    one, total = 0.1 * 0.1, 0.0
    for _ in range(MANY):
        total += one
    bound = rounding.of_total(MANY, one * MANY)
    assert abs(Fraction(total) - Fraction(one) * MANY) > bound
    found = Fraction(SUMS[kind](np.full(MANY, 0.1)))
    assert abs(found - Fraction(one) * MANY) <= bound
