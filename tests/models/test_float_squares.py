"""Proofs in floats of least squares: no further from the exact ones than they say, whatever the prices."""

from fractions import Fraction

import numpy as np
import pytest

from models import BlockInference
from models.witnesses import block_squares
from solvers import fast
from tests.marks import quick

CHANGES = (0.0, 1e-7, 1e-2)
"""Sizes of random changes of prices, and of answers, relative to their largest number."""


def _changed(rng, values, size):
    values = np.asarray(values, float)
    return values + size * max(1.0, np.abs(values).max(initial=0)) * rng.normal(size=values.shape)


def _of_tree(rng, size):
    model = BlockInference.random(rng, size)
    x = model._near(_changed(rng, fast.answer(model)[0], rng.choice(CHANGES)))
    price = _changed(rng, model._price(None, x, False), rng.choice(CHANGES))
    price = model._price({"prices": price}, x, False)
    data = model.tree, model.workload, model.data, model.information
    bound = block_squares.dual_bound(*data, price)
    return block_squares.in_floats(*data, x, price), model._cost(x), bound


@pytest.mark.parametrize("seed", quick(range(40), first=4))
def test_cost_and_gap_are_within_their_errors(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        case = _of_tree(rng, int(rng.choice([10, 40, 160])))
        if case[0] is None:
            continue
        (cost, gap, error), true, bound = case
        assert abs(Fraction(cost) - true) <= Fraction(error)
        assert abs(true - bound) <= Fraction(gap)
