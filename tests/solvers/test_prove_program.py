"""Dual values of any backend prove answers to bare programs, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import models
from models import Program, lagrangian_bound
from models.programs.terms import INFINITY, Block, Rows, Term, rows_of
from solvers import fast, prove, solve
from solvers.prove_program import prove_program

ONE_BLOCK = ["FixedSum", "SimplexQP", "ControlledRounding", "HierarchyQIP", "Isotonic", "CostTable"]


@pytest.mark.parametrize("name", ONE_BLOCK)
def test_the_optimum_of_a_model_is_proved_from_its_program_alone(name):
    for seed in range(3):
        model = getattr(models, name).random(np.random.default_rng(seed), 12)
        best, _ = fast.answer(model)
        program = model.program()
        proof = prove(program, np.ravel(best))
        if name == "CostTable" and not model.convex:
            continue
        assert proof.optimal, (seed, proof)
        assert lagrangian_bound(program, proof.witness["prices"]) == pytest.approx(proof.bound, abs=1e-9)


def test_auxiliary_variables_are_part_of_the_answer():
    program = models.Chebyshev([5, 3, -2], total=4).program()
    assert prove(program, [3, 1, 0, 2]).optimal
    assert prove(program, [3, 1, 0, 3]).gap == 1
    assert prove(program, [3, 1, 0, 1]).bound is None  # the distance is 2


def started(*names):
    """Mark backends as slow, because their processes take some seconds to start."""
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("backend", ["highs", *started("glop", "pdlp", "clarabel")])
def test_any_backend_with_duals_proves_the_answer(backend):
    program = models.FixedSum([4, -1, 6], total=5, p=1).program()
    x = solve(program, "highs").x
    assert prove_program(program, x, backend).optimal


@pytest.mark.parametrize("backend", ["highs", *started("clarabel")])
def test_squares_of_real_variables_are_proved_up_to_the_tolerance_of_floats(backend):
    program = models.SimplexQP(
        [0.3, 2.7, -1.25, 4.0], total=3, weights=[1, 2, 3, 1.5], integer=False
    ).program()
    answer = solve(program, "highs")
    proof = prove_program(program, answer.x, backend)
    assert proof.optimal
    assert abs(proof.bound - Fraction(answer.objective)) < 1e-6
    assert not prove_program(program, answer.x + np.array([0.01, -0.01, 0, 0]), backend).optimal


def free(cost, lower=0.0):
    """x + 2y ≥ 7 and 3x + y ≥ 6, with unbounded variables; the optimal prices are fifths."""
    rows = rows_of("needs", (2, 2), ([0, 0, 1, 1], [0, 1, 0, 1], [1, 2, 3, 1]), [7, 6], INFINITY)
    return Program("diet", [Block("v", (2,), lower, INFINITY)], [rows], [Term("linear", np.arange(2), cost)])


def test_prices_that_rounding_would_ruin_are_simple_fractions():
    program = free([1, 1])
    proof = prove(program, np.array([Fraction(1), Fraction(3)]))
    assert (proof.optimal, proof.bound) == (True, 4)
    assert prove(free([1, 1], lower=-INFINITY), np.array([Fraction(1), Fraction(3)])).optimal


@pytest.mark.slow
def test_backend_without_duals_gives_the_default_bound():
    program = models.FixedSum([4, -1, 6], total=5, p=1).program()
    alone = lagrangian_bound(program, [0])
    assert prove_program(program, [4, 0, 1], "cp-sat").bound == alone
    crossed = Rows("crossed", sp.csr_matrix([[1.0]]), np.array([2]), np.array([1]))
    nothing = Program("nothing", [Block("v", (1,), 0, 3)], [crossed], [Term("linear", np.array([0]))])
    assert prove(nothing, [2]).bound is None


def test_a_gap_that_no_price_closes_is_reported():
    """Coins of 2 and 3 must make 4: the relaxation pays for 4/3 of a coin."""
    rows = rows_of("sum", (1, 2), ([0, 0], [0, 1], [2, 3]), 4, INFINITY)
    program = Program("coins", [Block("v", (2,), 0, 5, True)], [rows], [Term("linear", np.arange(2), [3, 4])])
    proof = prove(program, [2, 0])
    assert not proof.optimal
    assert 0 < proof.gap < 1
