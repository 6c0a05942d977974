"""What certificates are known to get wrong: tests expect these to fail, and fail when they pass."""

import pytest

KNOWN = {
    "false proof": {
        "non-negative counts that wrap around a tree",
        "a weighted square beyond 64 bits",
        "children whose sum wraps",
        "running sums that wrap",
        "a limit that floats cannot hold",
        "a noisy count that floats cannot hold",
        "Fractions with large weights",
        "a total that wraps",
        "shares whose sum wraps",
        "unsigned answers beyond int64",
        "floats as objects",
        "prices at the edge of int64",
        "costs in floats that cancel",
        "a whole answer to large floats",
    },
    "forged": {"a count at the edge of int64"},
    "contract": {
        "BlockInference",
        "BudgetSplit",
        "Chebyshev",
        "ConstrainedInference",
        "ControlledRounding",
        "CostTable",
        "CostTable, not convex",
        "CumulativeQIP",
        "CumulativeQIP, relaxed",
        "FixedSum",
        "GroupMatching",
        "HierarchyQIP",
        "Isotonic",
        "Isotonic, side by side",
        "JointTables",
        "Merging",
        "NonNegativeInference",
        "SimplexQP",
        "SparsestChebyshev",
        "StrategySDP",
        "TreeAbsolute",
        "TreeChebyshev",
        "TreeMatching",
        "WorkloadLeastSquares",
        "WorkloadLeastSquares, in fractions",
        "WorkloadRounding",
    },
    "hostile": {
        "CostTable, not convex",
    },
    "crash": {
        "None in an answer to FixedSum",
        "inf in an answer to FixedSum",
        "-inf in an answer to FixedSum",
        "None in an answer to Chebyshev",
        "inf in an answer to Chebyshev",
        "-inf in an answer to Chebyshev",
        "None in an answer to CostTable",
        "inf in an answer to CostTable",
        "1 in an answer to CostTable",
        "1/2 in an answer to CostTable",
        "prices of 1e+290 in BlockInference",
        "prices of -1e+290 in BlockInference",
        "prices of 1e+290 in WorkloadLeastSquares",
        "None in an answer to Isotonic",
        "None in an answer to SimplexQP",
        "inf in an answer to Isotonic",
        "-inf in an answer to Isotonic",
    },
    "crash, proved": {
        "object answers in CostTable",
    },
    "false bound": {"a noisy count beyond floats"},
    "wraps": {
        "BudgetSplit",
        "Chebyshev",
        "ConstrainedInference",
        "CostTable",
        "CumulativeQIP",
        "GroupMatching",
        "HierarchyQIP",
        "Isotonic",
        "JointTables",
        "Merging",
        "NonNegativeInference",
        "Segmentation",
        "SimplexQP",
        "SparsestChebyshev",
        "StrategySDP",
        "TreeChebyshev",
        "WorkloadLeastSquares",
        "WorkloadRounding",
    },
    "wraps, many": {
        "BlockInference",
        "BudgetSplit",
        "Chebyshev",
        "Clustering",
        "ConstrainedInference",
        "CostTable",
        "CumulativeQIP",
        "FixedSum",
        "GroupMatching",
        "HierarchyQIP",
        "Isotonic",
        "JointTables",
        "Merging",
        "NonNegativeInference",
        "Segmentation",
        "SimplexQP",
        "SparsestChebyshev",
        "StrategySDP",
        "TreeAbsolute",
        "TreeChebyshev",
        "WorkloadLeastSquares",
        "WorkloadRounding",
    },
}


bad_answers = pytest.mark.xfail(
    bool(KNOWN.get("contract", set()) - {"Merging"}), reason="not converted yet", strict=True
)
"""Tests that check `FixedSum` with bad answers."""


def expected(test, cases):
    """The cases of a test as parameters; those in `KNOWN` are marked as failures, strictly."""
    known = KNOWN.get(test, set())
    unknown = known - set(cases)
    assert not unknown, f"no such cases of {test!r}: {sorted(unknown)}"
    return [
        pytest.param(case, id=case, marks=pytest.mark.xfail(strict=True, reason="not converted yet"))
        if case in known
        else pytest.param(case, id=case)
        for case in cases
    ]
