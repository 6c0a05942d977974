"""Answers that are not optimal, or not feasible, and that numbers which wrap or round once proved optimal."""

from fractions import Fraction

import numpy as np
import pytest

from models import (
    BudgetSplit,
    Clustering,
    CostTable,
    CumulativeQIP,
    Isotonic,
    JointTables,
    Merging,
    MinCostFlow,
    NonNegativeInference,
    SimplexQP,
    Tree,
    TreeAbsolute,
    Workload,
    WorkloadLeastSquares,
    lagrangian_bound,
)
from solvers import prove

ROOT = Tree([])
TOTAL = Workload.marginals((1,), [()])
LARGE = 2**58
EVEN = 2.0**54 + 4

WRONG = {
    "a table of whole numbers beside one of floats": lambda: CostTable(
        [[0, 2**53 + 1], [0.0, 2.0**53]], 1
    ).certificate([1, 0]),
    "data that floats do not hold, beside an answer in floats": lambda: Isotonic(
        [2**53 + 1, 2**54]
    ).certificate([2.0**53, 2.0**54]),
    "non-negative counts that wrap around a tree": lambda: NonNegativeInference(
        Tree([[0, 0]]), [0, -5, 3], integer=True
    ).certificate([2**63 - 1, 2**63 - 4, 3]),
    "a weighted square beyond 64 bits": lambda: NonNegativeInference(ROOT, [5], [8], True).certificate(
        [2**61 + 5]
    ),
    "children whose sum wraps": lambda: CumulativeQIP(Tree([[0] * 4]), [[0]] + [[2**62]] * 4, 0).certificate(
        [[0]] + [[2**62]] * 4
    ),
    "running sums that wrap": lambda: CumulativeQIP(ROOT, [[-(2**63) + 1, 5]], 2).certificate([[2, 2]]),
    "a limit that floats cannot hold": lambda: JointTables(
        ROOT, TOTAL, [[2**53 + 1]], [[1]], None, TOTAL, 0, [[2**53 + 1]]
    ).certificate([[2**53]]),
    "a noisy count that floats cannot hold": lambda: WorkloadLeastSquares(
        TOTAL, [[0]], [[1]], None, None, TOTAL, [[2**53 + 3]], [[np.inf]]
    ).certificate([[2**53 + 4]], {"rules": [[2 * (2**53 + 4)]]}),
    "Fractions with large weights": lambda: Merging(
        np.array([[Fraction(3)], [Fraction(5)]]), [[2**62], [2**62]]
    ).certificate([-4]),
    "a total that wraps": lambda: CostTable([[0, 1]] * 4, 1, [2**62] * 4).certificate(
        [2**62 + 1] + [2**62] * 3
    ),
    "shares whose sum wraps": lambda: BudgetSplit([1] * 4, 1).certificate([2**62] * 3 + [2**62 + 1]),
    "unsigned answers beyond int64": lambda: Isotonic([-3, -1], integer=True).certificate(
        np.array([2**64 - 3, 2**64 - 1], np.uint64)
    ),
    "floats as objects": lambda: Merging([[LARGE + 64], [LARGE + 80]], [[1], [1]]).certificate(
        np.array([LARGE + 64.0], object)
    ),
    "prices at the edge of int64": lambda: Isotonic([0, 0]).certificate(
        [0.499, 1.499], {"increasing": [2**63 - 1]}
    ),
    "costs in floats that cancel": lambda: CostTable(
        [[2.0**53 + 2, 2.0**53 + 4], [-(2.0**53), -(2.0**53)]], 1
    ).certificate([1, 0], {"d3 total": [1]}),
    "tiny values in clusters": lambda: prove(Clustering([0, 1e-9, 3e-9, 4e-9], 0, 2), [1, 1, 0, 0]),
    "tiny costs of a flow": lambda: prove(
        MinCostFlow([0, 0], [1, 1], [2e-10, 1e-10], [1, -1], [1, 1]), [1, 0]
    ),
    "a whole answer to large floats": lambda: SimplexQP([EVEN, EVEN], total=int(2 * EVEN)).certificate(
        [int(EVEN) + 1, int(EVEN) - 1]
    ),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_wrong_answer_is_refused_or_not_proved(case):
    try:
        proof = WRONG[case]()
    except ValueError:
        return
    assert not proof.optimal
    assert proof.gap is None or proof.gap > 0
    assert proof.reason


def test_no_bound_is_above_the_optimum_for_a_noisy_count_beyond_floats():
    count = 2**53 + 1
    assert lagrangian_bound(TreeAbsolute(ROOT, [count], None, count).program(), []) <= 0


def test_an_answer_in_floats_stands_for_one_within_bounds_that_floats_do_not_hold():
    proof = Isotonic([2**53], lower=2**53 + 1).certificate([2.0**53])
    assert (proof.objective, proof.bound) == (1, 1)
