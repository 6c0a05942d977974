"""Proofs in floats of least squares: no further from the exact ones than they say, whatever the prices."""

from fractions import Fraction

import numpy as np
import pytest

from models import BlockInference, Workload, WorkloadLeastSquares
from models.witnesses import block_squares, children_squares
from solvers import fast
from tests.marks import quick

CHANGES = (0.0, 1e-7, 1e-2)
"""Sizes of random changes of prices, and of answers, relative to their largest number."""


def _changed(rng, values, size):
    values = np.asarray(values, float)
    return values + size * max(1.0, np.abs(values).max(initial=0)) * rng.normal(size=values.shape)


def _of_children(rng, size):
    model = WorkloadLeastSquares.random(rng, size)
    try:
        x, witness = fast.answer(model)
    except fast.NoFastPath:
        return None
    x = model._near(np.maximum(_changed(rng, x, rng.choice(CHANGES)) * ~model.fixed, 0))
    if not np.isfinite(x).all():  # scaled from next to nothing to the parent's cells
        return None
    given = {name: _changed(rng, part, rng.choice(CHANGES)) for name, part in witness.items()}
    point, price, charge = model._witness(given, x, False)
    found = children_squares.in_floats(model, model.most, x, price, charge)
    bound = children_squares.dual_bound(model, model.most, point, price, charge)
    return found, children_squares.squares(model, x), bound


def _of_tree(rng, size):
    model = BlockInference.random(rng, size)
    x = model._near(_changed(rng, fast.answer(model)[0], rng.choice(CHANGES)))
    price = _changed(rng, model._price(None, x, False), rng.choice(CHANGES))
    price = model._price({"prices": price}, x, False)
    data = model.tree, model.workload, model.data, model.information
    bound = block_squares.dual_bound(*data, price)
    return block_squares.in_floats(*data, x, price), model._cost(x), bound


@pytest.mark.parametrize("of", [_of_children, _of_tree])
@pytest.mark.parametrize("seed", quick(range(40), first=4))
def test_cost_and_gap_are_within_their_errors(of, seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        case = of(rng, int(rng.choice([10, 40, 160])))
        if case is None or case[0] is None:
            continue
        (cost, gap, error), true, bound = case
        assert abs(Fraction(cost) - true) <= Fraction(error)
        assert abs(true - bound) <= Fraction(gap)


def test_large_counts_lose_no_digits_of_the_gap():
    """A bound that is the difference of squares of 10⁹ would be wrong by 10⁴ of a cost of 10."""
    workload = Workload.marginals((2,), [(), (0,)])
    noisy = np.array([[2e9 + 3, 1e9 + 1, 1e9], [10.0, 4.0, 5.0]])
    model = WorkloadLeastSquares(workload, noisy, [1, 1], [10**9 + 6, 10**9 + 6])
    x, witness = fast.answer(model)
    point, price, charge = model._witness(witness, x, False)
    cost, gap, _ = children_squares.in_floats(model, model.most, x, price, charge)
    true = children_squares.squares(model, x)
    assert true - children_squares.dual_bound(model, model.most, point, price, charge) <= gap <= 1e-7 * cost


@pytest.mark.parametrize("power", [0, 9])
def test_answers_at_the_optimum_in_floats_miss_it_by_rounding_alone(power):
    """Cost and slopes are differences of large numbers: all their digits may be wrong."""
    workload = Workload.marginals((3,), [(), (0,)])
    rng = np.random.default_rng(power)
    for _ in range(100):
        x = 10.0**power + rng.random((1, 3))
        model = WorkloadLeastSquares(workload, workload.answers(x), [0.7, 0.1])
        none = np.zeros(3), np.zeros((1, 0))
        cost, gap, error = children_squares.in_floats(model, model.most, x, *none)
        true = children_squares.squares(model, x)
        assert abs(Fraction(cost) - true) <= Fraction(error)
        assert true - children_squares.dual_bound(model, model.most, x, *none) <= Fraction(gap)


def test_numbers_that_floats_do_not_hold_are_left_to_exact_arithmetic():
    workload = Workload.marginals((1,), [(0,)])
    for noisy in (2**53 + 1, Fraction(1, 3), 1e70):
        model = WorkloadLeastSquares(workload, np.array([[noisy], [1]]), [1])
        x, prices, charge = np.array([[0.5], [1.0]]), np.zeros(1), np.zeros((2, 0))
        assert children_squares.in_floats(model, model.most, x, prices, charge) is None
