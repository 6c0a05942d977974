"""What is wrong with a model's data, or with an answer, is named; tolerances are granted."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import models as m
from models.group_matching import PAIR
from tests.models.test_strategy_sdp import ranges
from tests.models.test_tree_matching import of_groups

FORK, CHAIN = m.Tree([[0, 0]]), m.Tree([[0, 0], [1, 1]])
TWO, TOTAL = m.Workload.marginals((2,), [(), (0,)]), m.Workload.marginals((2,), [()])
NESTED, TOTAL_OF_FOUR = m.Workload.marginals((2, 2), [(), (0,), (0, 1)]), m.Workload.marginals((2, 2), [()])
RECODED = m.Workload.marginals((3,), [{0: [0, 0, 1]}])


def changed(kind, **data):
    """Makes a model of these data with some of them changed."""
    return lambda **changes: kind(**{**data, **changes})


MALFORMED = {
    m.BudgetSplit: [
        ([], 1, "weights is empty"),
        ([1, 0], 1, r"weights\[1\] is 0: weights must be positive"),
        ([1, np.inf], 1, r"weights\[1\] is inf"),
        ([1], 0, "epsilon is 0: it must be positive"),
        ([1], np.inf, "epsilon is inf"),
        ([1], np.nan, "epsilon is nan"),
        ([1], "1", "epsilon must be a number"),
        ([1], True, "epsilon must be a number"),
    ],
    m.Chebyshev: [
        ({"noisy": [1.5], "total": 1}, "noisy must be integers, got float64"),
        ({"noisy": [[1]], "total": 1}, "noisy must have 1 axis"),
        ({"noisy": [1], "total": -1}, "total is -1"),
        ({"noisy": [1], "total": 1.5}, "total must be an integer, got 1.5"),
        ({"noisy": [1], "total": True}, "total must be an integer, got True"),
        ({"noisy": [1], "total": [1]}, r"total must be an integer, got \[1\]"),
        ({"noisy": [1], "total": 10**30}, "total is 1000000000000000000000000000000: beyond 62 bits"),
        ({"noisy": [], "total": 2}, "noisy is empty but its total is 2, not 0"),
        ({"noisy": [1], "total": [1, 2], "offsets": [0, 1, 1]}, "segment 1 is empty but its total is 2"),
        ({"noisy": [1, 2], "total": [1, -2], "offsets": [0, 1, 2]}, "total of segment 1 is -2"),
        ({"noisy": [1], "total": [1.5], "offsets": [0, 1]}, "total and offsets must be integers"),
        ({"noisy": [1], "total": [1], "offsets": [0.0, 1.0]}, "total and offsets must be integers"),
        ({"noisy": [1], "total": [1], "offsets": [0, 2]}, "offsets must rise from 0 to 1 in 2 steps"),
        ({"noisy": [1], "total": [1], "offsets": [1, 1]}, "offsets must rise from 0"),
        ({"noisy": [1], "total": [1], "offsets": [0]}, "offsets must rise from 0"),
        ({"noisy": [1], "total": [1, 1, 0], "offsets": [0, 1, 0, 1]}, "offsets must rise from 0"),
        ({"noisy": [2**61, 2**61], "total": 1}, "add up beyond 62 bits"),
        ({"noisy": [-(2**63)], "total": 0}, "add up beyond 62 bits"),
    ],
    m.Clustering: [
        ([], 1, "values is empty"),
        ([1, 3, 2], 1, r"values must be ascending: values\[1\] = 3 > 2"),
        ([1, np.nan], 1, r"values\[1\] is nan"),
        ([1, 2], -1, "noise_scale is -1"),
        ([1, 2], np.nan, "noise_scale is nan"),
        ([1, 2], np.inf, "noise_scale is inf"),
        ([1, 2], "1", "noise_scale must be a number"),
        ([1, 2], True, "noise_scale must be a number"),
        ([-1e150, 1e150], 1, "their squares pass 1e300"),
    ],
    partial(m.Clustering, [1, 2, 3], 1): [
        (0, "clusters is 0: 3 values make 1 to 3 runs"),
        (4, "clusters is 4: 3 values make 1 to 3 runs"),
        (2.0, "clusters must be a whole number, got 2.0"),
        (True, "clusters must be a whole number, got True"),
    ],
    partial(m.ConstrainedInference, FORK): [
        ([1, 2], 1, r"noisy has shape \(2,\); it needs an entry for each of the 3 nodes"),
        ([1, 2, np.nan], 1, r"noisy\[2\] is nan"),
        ([1, 2, 3], 0, r"variance\[0\] is 0: variances must be positive"),
        ([1, 2, 3], [1, -2.5, 1], r"variance\[1\] is -2.5"),
        ([1, 2, 3], [1, 1, np.nan], r"variance\[2\] is nan"),
        ([1, 2, 3], [1, 1], r"variance has shape \(2,\); it needs one entry, or one for each of 3"),
        ([1, 2, 3], ["a", "b", "c"], "variance must be numbers"),
    ],
    m.ControlledRounding: [
        ([0.5, 1.25], 0, r"total is 0: the values round to sums of 1 … 3 only"),
        ([0.5, 1.25], 4, r"total is 4: the values round to sums of 1 … 3 only"),
        ([], 1, r"total is 1: the values round to sums of 0 … 0 only"),
        ([0.5], 0.5, "total must be an integer, got 0.5"),
        ([0.5], True, "total must be an integer, got True"),
        ([0.5, float("inf")], 1, r"values\[1\] is inf"),
        ([1e19], 1, r"values\[0\] is 1e\+19: beyond 62 bits"),
        ([Fraction(2**63, 3) * 3], 1, r"values\[0\] is .*: beyond 62 bits"),
        ([[0.5]], 1, "values must have 1 axis"),
    ],
    m.CostTable: [
        ([], 0, "tables is empty"),
        ([[1], []], 0, r"tables\[1\] is empty"),
        ([[1, 2]], 2, r"total is 2: values in the domains add up to 0 … 1 only"),
        ([[1, 2]], 1.5, "total must be an integer"),
        ([[1, 2]], 1, [0, 0], "start must hold a whole number for each of the 1 tables"),
        ([[1, np.nan]], 1, r"tables\[0\]\[1\] is nan"),
    ],
    m.CumulativeQIP: [
        (m.Tree([[0]]), [[1]], 1, "it needs a row for each of the 2 nodes"),
        (m.Tree([]), [[1]], -1, "total is -1"),
        (m.Tree([]), [[np.inf]], 1, r"noisy\[0, 0\] is inf"),
    ],
    m.FixedSum: [
        ({"noisy": [1], "total": 1, "p": 3}, "p must be 1 or 2, got 3"),
        ({"noisy": [1.5], "total": 1}, "noisy must be integers, got float64"),
        ({"noisy": [1], "total": -1}, "total is -1"),
        ({"noisy": [], "total": 2}, "noisy is empty but its total is 2, not 0"),
        ({"noisy": [1], "total": [1, 2], "offsets": [0, 1, 1]}, "segment 1 is empty but its total is 2"),
        ({"noisy": [1], "total": [1], "offsets": [0, 2]}, "offsets must rise from 0 to 1 in 2 steps"),
        ({"noisy": [2**61, 2**61], "total": 1}, "add up beyond 62 bits"),
    ],
    m.GroupMatching: [
        (([1], [2]), ([1], [3]), "the parent has 2 groups, its children together 3"),
        (([1], [2]), [([1], [1]), ([1], [2])], "the parent has 2 groups, its children together 3"),
        (([1], [-2]), ([1], [1]), r"parent_sizes counts\[0\] is -2: a run has at least 0 groups"),
        (([1], [1]), [([1], [1]), ([1, 2], [1, -1])], r"child_sizes\[1\] counts\[1\] is -1"),
        (([1.5], [1]), ([1], [1]), "parent_sizes sizes must be integers, got float64"),
        (([1], [0.5]), ([1], [1]), "parent_sizes counts must be integers, got float64"),
        (([1, 2], [1]), ([1], [1]), "parent_sizes has 2 sizes but 1 counts"),
        (([1], [1]), ([1, 2], [1]), "child_sizes has 2 sizes but 1 counts"),
        (([1], [1]), [([1, 2], [1])], r"child_sizes\[0\] must be a pair|child_sizes\[0\] has 2 sizes but 1"),
        (np.array([[1, 2, 3]]), ([1], [1]), r"parent_sizes must be a pair \(sizes, counts\) or an array"),
        (([1], [1]), [1, 2, 3], r"child_sizes\[0\] must be a pair"),
        (([1], [2]), ([1, 2], [1, 1], [1, 0]), "a child for each run, in ascending order"),
        (([1], [2]), ([1, 2], [1, 1], [1]), "a child for each run"),
        (([2**60], [1]), ([1], [1]), r"parent_sizes sizes\[0\] is 1152921504606846976: beyond 60 bits"),
        (([1, 1], [2**61, 2**61]), ([1, 1], [2**61, 2**61]), "beyond 62 bits"),
    ],
    changed(m.HierarchyQIP, tree=FORK): [
        ({"noisy": [[1]], "total": 1}, r"noisy has shape \(1, 1\); it needs a row for each of the 3 nodes"),
        ({"noisy": np.zeros((3, 0)), "total": 1}, r"noisy has shape \(3, 0\)"),
        ({"noisy": [1, 2, 3], "total": 1}, r"noisy must have 2 axis\(es\)"),
        ({"noisy": [[1.0], [np.nan], [1.0]], "total": 1}, r"noisy\[1, 0\] is nan"),
        ({"noisy": [[1], [1], [1]], "total": -1}, "total is -1"),
        ({"noisy": [[1], [1], [1]], "total": 1.0}, "total must be an integer, got 1.0"),
        ({"noisy": [[1], [1], [1]], "total": 1, "window": -1}, "window must be a whole number >= 0, got -1"),
        (
            {"noisy": [[1], [1], [1]], "total": 1, "window": 0.5},
            "window must be a whole number >= 0, got 0.5",
        ),
        ({"noisy": [[1], [2**60], [1]], "total": 1}, "pass 60 bits"),
        ({"noisy": [[1], [-(2**63)], [1]], "total": 1}, "pass 60 bits"),
        ({"noisy": [[1], [1], [1]], "total": 2**59}, "pass 60 bits"),
    ],
    m.Isotonic: [
        ({"noisy": []}, "noisy is empty"),
        ({"noisy": [[1]]}, r"noisy must have 1 axis\(es\), got shape \(1, 1\)"),
        ({"noisy": [1.0, np.nan]}, r"noisy\[1\] is nan"),
        ({"noisy": [np.inf]}, r"noisy\[0\] is inf"),
        ({"noisy": ["a"]}, "noisy must be numbers"),
        (
            {"noisy": np.array([1, None], dtype=object)},
            r"noisy\[1\] is None, of type NoneType: it must be a number",
        ),
        ({"noisy": [1], "p": 3}, "p must be 1 or 2, got 3"),
        ({"noisy": [1, 2], "weights": [1]}, r"weights have shape \(1,\), noisy \(2,\)"),
        ({"noisy": [1, 2], "weights": [1, 0]}, r"weights\[1\] is 0"),
        ({"noisy": [1, 2], "weights": [-1.5, 1]}, r"weights\[0\] is -1.5"),
        ({"noisy": [1], "lower": 2, "upper": 1}, "lower is 2, above upper, 1"),
        ({"noisy": [1], "lower": 2, "last": 1}, "last is 1, outside lower"),
        ({"noisy": [1], "upper": 2, "last": 3}, "last is 3, outside lower"),
        ({"noisy": [1], "lower": 0.5, "integer": True}, "lower is 0.5, but the answer is to be whole"),
        ({"noisy": [1], "last": Fraction(1, 2), "integer": True}, "last is 1/2, but"),
        ({"noisy": [1], "upper": np.inf}, "upper must be finite"),
        ({"noisy": [1], "last": np.nan}, "last must be finite"),
        ({"noisy": [1], "lower": "a"}, "lower must be a number, got 'a'"),
        ({"noisy": [1], "lower": True}, "lower must be a number, got True"),
        ({"noisy": [1], "upper": 10**19}, "upper is 10000000000000000000: beyond 62 bits"),
    ],
    changed(m.Isotonic, noisy=[3, 1, 2], lower=0, upper=4, integer=True, offsets=[0, 2, 3]): [
        ({"offsets": [0, 2]}, "rise"),
        ({"offsets": [0, 2, 2, 3]}, "rise"),
        ({"upper": None}, "upper is missing"),
        ({"upper": [1, 2, 3]}, "upper must"),
        ({"lower": [0, 9]}, "problem 1"),
        ({"last": 3}, "side by side"),
        ({"weights": [1, 1, 1]}, "side by side"),
        ({"integer": False}, "side by side"),
    ],
    changed(m.JointTables, tree=FORK, workload=TWO, noisy=np.zeros((3, 3)), weights=np.ones((2, 2))): [
        ({"noisy": [[1, 2, 3]]}, "it needs 3 nodes by 3 answers"),
        ({"weights": [[1, 1]]}, "they need 2 levels by 2 queries"),
        ({"weights": [[1, 1], [-1, 1]]}, r"weights\[1, 0\] is -1: weights are at least 0"),
        ({"zeros": [True]}, "zeros must be True or False for each of 2 cells"),
        ({"lower": 1}, "there are no rules"),
        ({"sums": TOTAL, "upper": 0.5}, "upper must be whole numbers"),
        (
            {"sums": TOTAL, "lower": [[0], [3], [0]], "upper": 2},
            "sums, node 1, query 0, answer 0: the lower bound 3 is above the upper bound 2",
        ),
    ],
    m.Merging: [
        ([[1, 2]], [[1]], r"estimates have shape \(1, 2\), weights \(1, 1\)"),
        (np.empty((2, 0)), np.empty((2, 0)), "one estimate at least"),
        ([[1, 2]], [[1, 0]], r"weights\[0, 1\] is 0"),
        ([[1], [2]], [[1], [-1]], r"weights\[1, 0\] is -1"),
        ([[1.0], [np.nan]], [[1], [1]], r"estimates\[1, 0\] is nan"),
        ([1, 2], [1, 2], "2 axis"),
    ],
    partial(m.NonNegativeInference, FORK): [
        ([1, 2], None, False, r"noisy has shape \(2,\); it needs an entry for each of the 3 nodes"),
        ([1, 2, 3], [1, 2], False, r"weights have shape \(2,\); there are 3 nodes"),
        ([1, 2, 3], [1, 0, 1], False, r"weights\[1\] is 0: they are positive, or 0 for an inner node"),
        ([1, 2, 3], [-1, 1, 1], False, r"weights\[0\] is -1"),
        ([1, 2, np.nan], None, False, r"noisy\[2\] is nan"),
        ([1.5, 2, 3], None, True, "over whole numbers, noisy counts and weights must be whole"),
        ([1, 2, 3], [0, 0.5, 1], True, "over whole numbers, noisy counts and weights must be whole"),
        (np.array([1, 2, Fraction(1, 2)], object), None, False, "not objects"),
    ],
    changed(m.Reconciliation, base=[1, 2, 3], aggregate=[0, 0], part=[1, 2]): [
        ({"weights": [1, 0, 1]}, r"weights\[1\] is 0: leave a series without weight out"),
        ({"weights": [1]}, "weights have shape"),
        ({"part": [1, 7]}, r"part\[1\] is 7: series are 0 … 2"),
        ({"part": [1, 1]}, "series 1 is part of series 0 twice"),
        ({"aggregate": [0, 1], "part": [1, 0]}, "is part of itself"),
        ({"lower": [0, 5, 0], "upper": [9, 4, 9]}, "series 1: the lower bound 5 is above the upper bound 4"),
        ({"lower": ["a", 0, 0]}, "lower must be numbers"),
        ({"p": 3}, "p must be 1, 2 or infinity"),
        ({"factors": [[1.0], [2.0]]}, "a row for each of the 3 series"),
        ({"factors": [1.0, 2.0, 3.0]}, r"factors have shape \(3,\); expected a row for each"),
        ({"factors": [[1.0], [2.0], [np.nan]]}, "factors must be finite"),
        ({"factors": np.ones((3, 1)), "integer": True}, "need p = 2"),
        ({"p": np.inf, "weights": [2**60 + 1, 1, 1]}, "numbers that floats hold"),
    ],
    m.Segmentation: [
        ([], None, 0, "values is empty"),
        ([1, np.nan], None, 0, r"values\[1\] is nan"),
        ([1, 2], 3, 0, "clusters is 3: 2 values make 1 to 2 runs"),
        ([1, 2], None, -1, "price is -1"),
        ([1, 2], None, np.inf, "price is inf"),
        ([1, 2], None, "1", "price must be a number"),
        ([1, 2], None, True, "price must be a number"),
        ([-1e150, 1e150], None, 1, "their squares pass 1e300"),
    ],
    m.SimplexQP: [
        ({"noisy": [[1]], "total": 1}, "noisy must have 1 axis"),
        ({"noisy": [float("nan")], "total": 1}, r"noisy\[0\] is nan"),
        ({"noisy": [Fraction(1, 2)], "total": 1}, "noisy must be int64 or float64"),
        ({"noisy": [1], "total": -1}, "total is -1"),
        ({"noisy": [1], "total": 1.5}, "total must be an integer"),
        ({"noisy": [], "total": 1}, "noisy is empty but its total is 1, not 0"),
        ({"noisy": [1, 2], "total": 1, "weights": [1]}, r"weights have shape \(1,\), noisy \(2,\)"),
        ({"noisy": [1, 2], "total": 1, "weights": [1, 0]}, r"weights\[1\] is 0: weights must be positive"),
        ({"noisy": [2**58], "total": 1}, "pass 62 bits"),
        ({"noisy": [-(2**63)], "total": 1}, "pass 62 bits"),
        ({"noisy": [1e300], "total": 1}, "pass 62 bits"),
        ({"noisy": [2**40], "total": 1, "weights": [2**30]}, "pass 62 bits"),
    ],
    m.StrategySDP: [
        ([1, 2], r"workload must have 2 axis"),
        (np.zeros((0, 2)), r"workload has shape \(0, 2\)"),
        ([[1, 0, 2]], "no query of the workload asks for bin 1"),
        ([[1, 1]], "the workload has rank 1 for 2 bins"),
        ([[np.nan]], r"workload\[0, 0\] is nan"),
    ],
    partial(m.TreeMatching, FORK): [
        ([([1], [1])], "1 tables of sizes for 3 nodes"),
        ([([1], [2]), ([1], [1]), ([1], [2])], "node 0 has 2 groups, its children together 3"),
        ([([1], [1]), ([1], [-1]), ([1], [2])], r"sizes\[1\] counts\[0\] is -1"),
        ([([1], [2**62]), ([1], [2**62]), ([], [])], "beyond 62 bits"),
    ],
    changed(
        m.WorkloadLeastSquares, workload=TWO, noisy=[[5, 1, 2], [3, 3, 1]], weights=[1, 1], parent=[4, 3]
    ): [
        ({"noisy": [[1, 2]]}, "it needs 3 answers for each child"),
        ({"weights": [1, 0]}, "child 0: no query of every cell has a positive weight"),
        ({"weights": [[1, 1], [-1, 1]]}, "the weight of query 0 of child 1 is -1"),
        ({"weights": [1, 1, 1]}, "it needs 2 entries, or 2 for each of the 2 children"),
        ({"parent": [1, -1]}, r"parent\[1\] is -1"),
        ({"parent": [1]}, "there are 2 cells"),
        ({"zeros": [0, 1]}, "zeros must be True or False"),
        ({"zeros": [False, True]}, "cell 1 is a structural zero of every child, and the parent has 3"),
        ({"lower": 1}, "there are no rules"),
        ({"rules": TOTAL, "lower": 3, "upper": 2}, "query 0, answer 0: its lower bound is above its upper"),
        ({"rules": TOTAL, "upper": -1}, "its upper bound is under 0"),
        ({"rules": TOTAL, "lower": 4}, r"the children's bounds add up to 8 … inf, and the parent has 7"),
        ({"rules": TOTAL, "lower": "a"}, "lower must be numbers"),
        ({"rules": m.Workload.marginals((3,), [()])}, r"rules are over the shape \(3,\), not \(2,\)"),
        (
            {"rules": TOTAL, "lower": [[0], [1]], "zeros": [[False, False], [True, True]]},
            "child 1, query 0, answer 0: all its cells are 0",
        ),
    ],
    changed(m.WorkloadRounding, workload=NESTED, values=[[0.5, 0, 0, 2]]): [
        ({"values": [[0.5, 0.5]]}, "4 cells for each child"),
        ({"values": np.zeros((0, 4))}, "at least one child"),
        ({"values": [[0.5, 2.0**63, 0, 0]]}, r"values\[0, 1\] is beyond 62 bits"),
        ({"weights": [1, 1]}, "there are 3 queries"),
        ({"weights": [1, -1, 1]}, "the weight of query 1 is -1"),
        ({"parent": [1, 1, 1]}, "parent must be 4 whole numbers"),
        ({"parent": [0.5, 0, 0, 0]}, "parent must be 4 whole numbers"),
        ({"parent": [3, 0, 0, 2]}, r"cell 0: the children round to sums of 0 … 1 only, and the parent has 3"),
        ({"rules": TOTAL_OF_FOUR, "lower": [4]}, r"rules, child 0, query 0, answer 0: .* 2 … 3 only"),
        ({"rules": TOTAL_OF_FOUR, "lower": [2.5]}, "lower must be whole numbers"),
        ({"rules": TOTAL_OF_FOUR, "upper": [1]}, "query 0, answer 0"),
        ({"lower": [1]}, "there are no rules"),
    ],
    changed(m.HierarchyQIP, tree=FORK, noisy=[[1], [1], [1]], total=1): [
        ({"weights": [1]}, r"weights have shape \(1,\); there are 2 levels"),
        ({"weights": [1, 0]}, "whole numbers >= 1"),
        ({"weights": [1, 0.5]}, "scale them"),
        ({"noisy": [[2**40], [1], [1]], "weights": [2**30, 1]}, "60 bits"),
    ],
    changed(m.BlockInference, tree=FORK, workload=TWO, noisy=np.zeros((3, 3)), weights=np.ones((2, 2))): [
        ({"noisy": np.zeros((2, 3))}, "it needs 3 nodes by 3 answers"),
        ({"weights": np.ones((1, 2))}, "they need 2 levels by 2 queries"),
        ({"weights": -np.ones((2, 2))}, r"weights\[0, 0\] is -1.0"),
        ({"weights": [[1, 1], [1, 0]]}, "level 1 has leaves"),
        ({"workload": RECODED, "noisy": np.zeros((3, 2)), "weights": np.ones((2, 1))}, "takes marginals"),
    ],
    partial(m.TreeChebyshev, FORK): [
        ([1, 2], 3, "a number for each of the 3 nodes"),
        ([0, 1, 2], 3, [0, 1, 0], "a whole number >= 1 for each of the 3 nodes"),
    ],
    m.SparsestChebyshev: [([1], -1, "total is -1")],
}
"""By what makes a model: its arguments, by name in a dict or one after the other, and the message."""


@pytest.mark.parametrize("row", [(make, *row) for make, rows in MALFORMED.items() for row in rows])
def test_malformed_data_are_named(row):
    make, *given, message = row
    with pytest.raises(ValueError, match=message):
        make(**given[0]) if isinstance(given[0], dict) else make(*given)


ANSWERS = [
    (
        m.Chebyshev([1, 2, 3, 4], [3, 7], [0, 2, 4]),
        [
            ([1, 1, 3, 4], "total: segment 0 adds up to 2, not 3"),
            ([1, 2, 8, 0], "total: segment 1 adds up to 8, not 7"),
            ([-1, 4, 3, 4], "x >= 0: x[0] = -1"),
            ([1.5, 1.5, 3, 4], "integer: x[0] = 1.5"),
            ([1, 2, 3, 4], None),
            ([1.0, 2.0, 3.0, 4.0], None),
        ],
    ),
    (
        m.ControlledRounding([0.5, 1.0, -1.5], 1),
        [
            ([0, 1, -1], "total: the sum is 0, not 1"),
            ([1, 2, -2], "x[1] = 2, not 1"),
            ([2, 1, -2], "x[0] = 2, not at most 1"),
            ([1, 1, -3], "x[2] = -3, not at least -2"),
            ([0.5, 1, -1], "integer: x[0] = 1/2 is not a whole number"),
            ([1.0, 1.0, -1.0], None),
        ],
    ),
    (
        m.FixedSum([1, 2, 3, 4], [3, 7], 2, [0, 2, 4]),
        [
            ([1, 1, 3, 4], "total: the sum of segment 0 is 2, not 3"),
            ([-1, 4, 3, 4], "x[0] = -1, not at least 0"),
            ([1.5, 1.5, 3, 4], "integer: x[0] = 3/2 is not a whole number"),
            ([1, 2, 2**63 - 1, 2**63 - 1], f"total: the sum of segment 1 is {2**64 - 2}, not 7"),
            ([1.0, 2.0, 3.0, 4.0], None),
        ],
    ),
    (
        m.GroupMatching(([1, 2], [2, 1]), [([1], [1]), ([3], [2])]),
        [
            ([[1, 0], [0, 1]], "parent groups: run 0 has 2, matched are 1"),
            ([[1, 0], [0, 1]], "child groups: run 1 has 2, matched are 1"),
            ([[2, 0], [-1, 2]], "x >= 0: x[1, 0] = -1"),
            ([[0.5, 1.5], [0.5, 0.5]], "integer: x[0, 0] = 0.5"),
            (np.array([(0, 0, 3), (0, 1, -1), (0, 0, -1)], PAIR), "x >= 0: x[0, 1] = -1"),
            (np.array([(0, 0, 1), (0, 1, 2)], PAIR), "parent groups: run 1 has 1, matched are 0"),
            (np.array([(0, 0, 2**62)] * 4, PAIR), f"child groups: run 0 has 1, matched are {2**64}"),
            (np.array([[1.0, 1.0], [0.0, 1.0]]), None),
            (np.array([(0, 0, 1), (0, 1, 1), (1, 1, 1)], PAIR), None),
        ],
    ),
    (
        m.HierarchyQIP(m.Tree([[0, 0]]), [[3, 1], [2, 0], [2, -1]], total=5, window=2),
        [
            (
                [[4, 1], [2, 1], [1, 0]],
                "H3 consistency: node 0, column 0, less the sum of its children, is 1, not 0",
            ),
            ([[3, 1], [1, 1], [2, 0]], "H2 total: the sum of the root's counts is 4, not 5"),
            ([[4, 1], [2, 2], [2, -1]], "x[2, 1] = -1, not at least 0"),
            ([[2, 3], [0, 2], [2, 1]], None),
            ([[5, 0], [1, 0], [4, 0]], None),
            ([[0, 5], [0, 3], [0, 2]], "x[0, 0] = 0, not at least 1"),
            ([[4, 1], [2.5, 1], [1.5, 0]], "integer: x[1, 0] = 5/2 is not a whole number"),
        ],
    ),
    (
        m.Isotonic([1, 2, 3], lower=0, upper=5, last=4, integer=True),
        [
            ([2, 1, 4], "increasing: the step to entry 1 is -1, not at least 0"),
            ([-1, 1, 4], "x[0] = -1, not at least 0"),
            ([1, 6, 6], "x[1] = 6, not at most 5"),
            ([1, 2, 3], "x[2] = 3, not 4"),
            ([1, 2.5, 4], "integer: x[1] = 5/2 is not a whole number"),
            (np.array([1, Fraction(5, 2), 4], dtype=object), "integer: x[1] = 5/2 is not a whole number"),
            ([1, 2, 4], None),
            ([1.0, 2.0, 4.0], None),
        ],
    ),
    (
        m.SimplexQP([1, 2, 3], 4),
        [
            ([1, 1, 1], "total: the sum is 3, not 4"),
            ([-1, 2, 3], "x[0] = -1, not at least 0"),
            ([0.5, 0.5, 3], "integer: x[0] = 1/2 is not a whole number"),
            ([2**63 - 1, 2**63 - 1, 6], f"total: the sum is {2**64 + 4}, not 4"),
        ],
    ),
    (
        m.Chebyshev([1, 1, 1], 1),  # in 64 bits, the answer adds up to 1
        [([2**63 - 1, 2**63 - 1, 3], [f"total: segment 0 adds up to {2**64 + 1}, not 1"])],
    ),
    (
        m.Clustering([1, 2, 3], 1),
        [
            ([0, 1, 0], ["first: x[0] = 0, but the first bin begins a run"]),
            ([1, 2, -1], ["mark: x[1] = 2, neither 0 nor 1", "mark: x[2] = -1, neither 0 nor 1"]),
            ([1.0, 0.5, 0.0], ["mark: x[1] = 0.5, neither 0 nor 1"]),
        ],
    ),
    (
        m.ConstrainedInference(CHAIN, [0] * 5, 1),
        [
            ([3, 1, 2, 1, 2], ["consistency: node 2, less the sum of its children, is -1, not 0"]),
            ([3.0, 1.0, 2.0, 1.0, 1.0 + 1e-8], None),
            ([3.0, 1.0, 2.0, 1.0, 1.001], ...),
        ],
    ),
    (
        m.CumulativeQIP(FORK, np.zeros((3, 2)), total=3),
        [
            (
                [[2, 4], [2, 1], [-1, 3]],
                (
                    "x[0, 1] = 4, not",
                    "C3 monotone: the step of row 1",
                    "C4 consistency: node 0, column 0",
                    "x[2, 0] = -1, not at least 0",
                ),
            )
        ],
    ),
    (
        m.HierarchyQIP(FORK, [[3.0], [2.0], [2.0]], total=5, integer=False),
        [
            ([[5.0], [2.5], [2.5]], None),
            *(([[a], [b], [c]], ...) for a, b, c in ((5.0, 2.5, 2.4), (4.9, 2.5, 2.4), (5.0, 5.1, -0.1))),
        ],
    ),
    (m.Isotonic([1.0, 0.5]), [([1.0, 1.0 - 1e-9], None), ([1.0, 0.9], ...), ([1.0, 0.99], ...)]),
    (
        m.NonNegativeInference(CHAIN, [0] * 5, integer=True),
        [
            ([3, 1, 2, 1, 2], ["consistency: node 2, less the sum of its children, is -1, not 0"]),
            ([1, -1, 2, 1, 1], ["x[1] = -1, not at least 0"]),
            (
                [2.5, 0.5, 2, 1, 1],
                ["integer: x[0] = 5/2 is not a whole number", "integer: x[1] = 1/2 is not a whole number"],
            ),
        ],
    ),
    (
        m.NonNegativeInference(CHAIN, [0] * 5),
        [
            ([3.0, 1.0, 2.0, 1.0, 1.0 + 1e-8], None),
            ([3.0, 1.0, 2.0, 1.0, 1.001], ...),
            ([-1e-3, -1e-3, 0.0, 0.0, 0.0], ...),
        ],
    ),
    (m.SimplexQP([1, 2, 3], 4, integer=False), [([0.5, 0.5, 3], None), ([0.5, 0.6, 3], ...)]),
    (
        m.StrategySDP(ranges(2)),
        [
            ([[1, 0], [0, 1.5]], ["sensitivity: X[1, 1] = 1.5 > 1"]),
            ([[1, 0.5], [0, 1]], ["symmetry: X[0, 1] = 0.5, X[1, 0] = 0.0"]),
            ([[1, 2], [2, 1]], ["positive definite: X has the eigenvalue -1.0"]),
        ],
    ),
    (
        of_groups(FORK, [[0, 4], [0], [4]]),
        [
            ([[1, 2], [1, 1], [0, 1]], None),
            (
                [[1, 2], [2, 1], [-1, 1]],
                ("x[2, 0] = -1, not at least 0", "x[1, 0] = 2, not at most 1", "monotone: "),
            ),
            (
                [[1, 3], [1, 2], [0, 1]],
                ["x[0, 1] = 3, not 2", "x[1, 1] = 2, not 1"],
            ),
            (
                [[2, 2], [1, 1], [0, 1]],
                ["consistency: node 0, column 0, less the sum of its children, is 1, not 0"],
            ),
            ([[1, 2], [0.5, 1], [0.5, 1]], "integer: x[1, 0] = 1/2 is not a whole number"),
        ],
    ),
]
"""Models, and of each some answers with what is broken: all of it in a list, one constraint as a text, parts
of names in a tuple, something (``...``), or nothing (None)."""


@pytest.mark.parametrize("row", [(model, *row) for model, rows in ANSWERS for row in rows])
def test_what_an_answer_breaks_is_named(row):
    model, x, broken = row
    found, proof = model.violations(x), model.certificate(x)
    if broken is None:
        assert (found, proof.bound is None) == ([], False)
        return
    assert found
    if isinstance(broken, list):
        assert found == broken
    elif isinstance(broken, str):
        assert broken in found
    elif broken is not ...:
        assert all(name in " ".join(found) for name in broken)
    assert (proof.optimal, proof.bound, proof.gap) == (False, None, None)
    assert proof.reason.startswith(f"not feasible: {found[0]}")


MATCHING = m.GroupMatching(([1, 2], [2, 1]), [([1], [1]), ([3], [2])])


@pytest.mark.parametrize(
    ("call", "x", "message"),
    [
        (m.Isotonic([1, 2, 3]).objective, [1, 2], r"the answer has shape \(2,\), the model \(3,\)"),
        (m.Isotonic([1, 2, 3]).objective, [1, 2, np.nan], "must be finite"),
        (m.SimplexQP([1, 2, 3], 4).objective, [1, 2], "shape"),
        (m.HierarchyQIP(FORK, [[3], [2], [2]], 5).objective, [1, 2, 3], r"shape \(3,\), the model \(3, 1\)"),
        (m.ConstrainedInference(CHAIN, [0] * 5, 1).certificate, [1, 2], r"shape \(2,\), the model \(5,\)"),
        (MATCHING.violations, np.array([(0, 2, 1)], PAIR), r"x\[0\] names child run 2; there are 2, from 0"),
        (MATCHING.violations, np.array([(0, 0, 1), (-1, 0, 1)], PAIR), r"x\[1\] names parent run -1"),
        (MATCHING.violations, np.array([[(0, 0, 1)]], PAIR), "a sparse answer must have 1 axis"),
        (MATCHING.violations, [1, 2, 3], r"the answer has shape \(3,\), the model \(2, 2\)"),
    ],
)
def test_an_answer_of_another_shape_is_refused(call, x, message):
    with pytest.raises(ValueError, match=message):
        call(x)
