"""Data, answers and witnesses that once ended in a TypeError or OverflowError: a reason, or a proof."""

import math
from fractions import Fraction

import numpy as np
import pytest

from models import (
    BlockInference,
    Chebyshev,
    CostTable,
    CumulativeQIP,
    FixedSum,
    Isotonic,
    Merging,
    SimplexQP,
    Tree,
    Workload,
    WorkloadLeastSquares,
)
from solvers import solve

TOTAL = Workload.marginals((1,), [()])
FORK = Tree([[0, 0]])
FRACTIONS = np.array([[Fraction(1, 3)], [Fraction(5, 2)]], object)
TABLES = CostTable([[0, 1, 3], [0, 2, 5]], 2)


def objects(*values):
    return np.array([*values, None], object)[:-1]


PROVED = {
    "object answers in CostTable": lambda: TABLES.certificate(objects(1, 1)),
    "whole Fractions and a large total in CumulativeQIP": lambda: CumulativeQIP(
        Tree([]), np.array([[Fraction(0), Fraction(2**40)]], object), 2**40
    ).certificate([[0, 2**40]]),
    "Fractions in Merging": lambda: solve(Merging(FRACTIONS, [[1], [1]])).certificate,
    "Fractions in Merging, whole": lambda: solve(Merging(FRACTIONS, [[1], [1]], integer=True)).certificate,
}


@pytest.mark.parametrize("case", list(PROVED))
def test_exact_numbers_of_any_kind_are_proved(case):
    assert PROVED[case]().optimal


INFERENCE = BlockInference(FORK, TOTAL, [[1], [2], [3]], [[1.5], [0.5]])
SQUARES = WorkloadLeastSquares(TOTAL, [[0]], [[1]], None, None, TOTAL, [[5]], [[9]])
HUGE = (1e290, -1e290, 10**400)
NOT_PROVED = {
    **{
        f"{value} in an answer to {type(model).__name__}": lambda model=model, value=value: model.certificate(
            objects(value, *([0] * (len(model.noisy) - 1)))
        )
        for model in (
            FixedSum([1, 2], 2),
            Chebyshev([1, 2], 2),
            Isotonic([1, 2], integer=True),
            SimplexQP([1, 2], 2, integer=False),
        )
        for value in (None, math.inf, -math.inf, math.nan)
    },
    **{
        f"{value} in an answer to CostTable": lambda value=value: TABLES.certificate(objects(value, 1))
        for value in (None, math.inf, "1", Fraction(1, 2))
    },
    **{
        f"prices of {value:.0e} in BlockInference"
        if isinstance(value, float)
        else "prices of 10^400 in BlockInference": lambda value=value: INFERENCE.certificate(
            [[3.0], [1.0], [2.0]], {"prices": [[value]] * 3}
        )
        for value in HUGE
    },
    **{
        f"prices of {value:.0e} in WorkloadLeastSquares"
        if isinstance(value, float)
        else "prices of 10^400 in WorkloadLeastSquares": lambda value=value: SQUARES.certificate(
            [[6.0]], {"rules": [[value]]}
        )
        for value in HUGE
    },
}


@pytest.mark.parametrize("case", list(NOT_PROVED))
def test_other_numbers_are_refused_or_prove_nothing(case):
    try:
        proof = NOT_PROVED[case]()
    except ValueError:
        return
    assert not proof.optimal
