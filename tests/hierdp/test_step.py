"""Which answers a release accepts from a chosen solver."""

from fractions import Fraction

import numpy as np
import pytest

from hierdp.record import step
from hierdp.record.step import NotProved, NotSolved, Step
from models import Chebyshev, Isotonic, Segmentation
from models.certificate import CONTRADICTION, judge
from solvers import Solution, solve


def require_proved(model, x):
    """A step whose solver calls the answer optimal."""
    claimed = Solution("stated", "1", "optimal", x, model.objective(x))
    return step.require_proved("counts", model, claimed)


@pytest.mark.parametrize("far", [4, 10**6])
def test_a_solver_that_is_off_by_one_unit_is_refused(far):
    """Objectives are compared exactly, however large; no tolerance for floats hides a unit."""
    model = Chebyshev([3 * far, 3 * far], total=4 * far)  # at best, both move by the same amount
    best = np.asarray(solve(model).x)
    assert bool(require_proved(model, best).solution.certificate)
    other = best + np.array([1, -1])
    assert model.objective(other) == model.objective(best) + 1
    with pytest.raises(NotSolved, match="stated calls its answer optimal, but there are better ones"):
        require_proved(model, other)


def test_squares_that_are_off_by_two_are_refused():
    model = Isotonic([10**6, 0], integer=True)
    other = np.array([500_001, 500_001])
    assert model.objective(other) == model.objective(solve(model).x) + 2
    with pytest.raises(NotSolved, match="better ones"):
        require_proved(model, other)


def test_the_witness_of_a_proof_is_kept_where_the_answer_alone_proves_nothing():
    model = Segmentation([0, 4, 9, 1, 1], price=1)
    made = require_proved(model, solve(model).x)
    assert not model.certificate(made.solution.x).optimal
    assert model.certificate(made.solution.x, made.solution.witness).optimal
    alone = Isotonic([3, 1], integer=True)
    assert require_proved(alone, solve(alone).x).solution.witness is None


def test_a_bound_above_the_cost_of_an_answer_is_an_error_that_names_the_step(monkeypatch):
    """Also of a solver's answer, which is accepted if it is not proved and costs no more than another; and in
    floats, where sums that are off by a tolerance gain nothing."""
    monkeypatch.setattr(Chebyshev, "certificate", lambda *_: judge(3, -1, True, {}, ""))
    model, x = Chebyshev([6, 6], total=6), np.array([3, 3])
    assert (solve(model).status, solve(model).message) == ("error", CONTRADICTION)
    with pytest.raises(NotProved, match=f"counts: error; {CONTRADICTION}"):
        Step.solve("counts", model)
    with pytest.raises(NotProved, match=f"counts: {CONTRADICTION}"):
        require_proved(model, x)
    monkeypatch.setattr(Chebyshev, "certificate", lambda *_: judge(3.0, -1.0, False, {}, ""))
    with pytest.raises(NotProved, match=f"counts: {CONTRADICTION}"):
        require_proved(model, x)


@pytest.mark.parametrize(
    ("better", "claimed", "under"),
    [
        (4, 5, True),
        (5, 5, False),
        (6, 5, False),
        (10**18 - 1, 10**18, True),
        (None, 5, False),
        (1.0, 1.0 + 1.01e-4, True),
        (1.0, 1.0 + 0.99e-4, False),
        (0.0, 1.01e-4, True),
        (0.0, 0.99e-4, False),
        (-1e6, -1e6 + 101, True),
        (-1e6, -1e6 + 99, False),
        (1e6, 1e6 + 101, True),
        (1e6, 1e6 + 99, False),
        (Fraction(1, 2), 1, True),
    ],
)
def test_one_objective_is_under_another(better, claimed, under):
    """Compared exactly if whole, otherwise beyond a ten-thousandth."""
    assert step._costs_less(better, claimed) is under
