"""How models read answers: their dtype, and the tolerance for floats."""

from fractions import Fraction

import numpy as np
import pytest

from models import Chebyshev, SimplexQP
from models.arithmetic import door
from models.arithmetic.answers import tolerance_for


def test_whole_floats_become_integers_where_those_hold_them():
    for kind in (np.float16, np.float32, np.float64, np.longdouble):
        assert door.answer(np.array([1, -2], kind), (2,), True).dtype == np.int64
        assert door.answer(np.array([1, -2], kind), (2,), False).dtype == np.float64
        assert door.answer(np.array([1.5, -2], kind), (2,), True).tolist() == [1.5, -2]
    for far in (2.0**63, -(2.0**64), 1e300):
        assert door.answer([far, 1], (2,), True).tolist() == [far, 1]
    assert door.answer([2.0**62, 1], (2,), True).tolist() == [2**62, 1]
    assert door.answer(np.zeros((0, 3)), (0, 3), True).dtype == np.int64


def test_answers_are_not_copied_without_need():
    for x, integer in [(np.arange(3), True), (np.arange(3) / 2, False), (np.arange(3) / 2, True)]:
        assert door.answer(x, x.shape, integer).base is x


def test_entries_that_are_not_finite_are_refused_and_large_ones_are_not():
    for wrong in ([1, np.nan], [np.inf, 1], [np.inf, -np.inf]):
        for integer in (True, False):
            with pytest.raises(ValueError, match="must be finite"):
                door.answer(wrong, (2,), integer)
    assert door.answer([1.7e308, 1.7e308], (2,), False).tolist() == [1.7e308, 1.7e308]
    with pytest.raises(ValueError, match=r"shape \(1,\), the model \(2,\)"):
        door.answer([1], (2,), True)


def test_answers_are_taken_by_value_whatever_their_type():
    far = 2**63 + 1
    for x in ([far, -1], np.array([far, -1], object), np.array([far, 2**63], np.uint64), [2.0**63, -1]):
        taken = door.answer(x, (2,), True)
        assert taken.dtype == object
        assert taken.tolist() == [int(value) for value in np.array(x, object)]
    assert door.answer(np.array([Fraction(4), np.int8(3)], object), (2,), True).dtype == np.int64
    assert door.answer(np.array([0.5, 1], object), (2,), False).tolist() == [Fraction(1, 2), 1]


@pytest.mark.parametrize(
    "wrong",
    [[1j, 0], [None, 1], ["1", 1], [[1], [1, 2]], np.array([np.nan, 1], object)],
)
def test_what_is_no_number_is_refused_by_an_integer_model(wrong):
    with pytest.raises(ValueError, match="answer"):
        door.answer(wrong, (2,), True)


def test_tolerance_is_relative_to_the_answer_or_to_small_data():
    assert tolerance_for(np.array([1, 2])) == 0
    assert tolerance_for(np.zeros(0)) == tolerance_for(np.zeros(2), np.zeros(1)) == 0
    assert tolerance_for(np.array([-30.0, 2.0])) == pytest.approx(3e-5)
    assert tolerance_for(np.array([-30.0, 2.0]), np.array([-7e9])) == pytest.approx(3e-5)
    assert tolerance_for(np.array([0.5]), np.array([-7, 40])) == pytest.approx(1e-6)
    assert tolerance_for(np.array([1e-9]), np.array([2e-9]), np.array([-3e-9])) == pytest.approx(3e-15)


def test_floats_beyond_64_bits_are_too_large_and_nothing_else():
    for model in (Chebyshev([5, 3], 4), SimplexQP([5, 3], 4)):
        assert model.violations([1e19, 0])[0].endswith(" 10000000000000000000, not 4")
        assert not model.certificate([1e19, 0])
        assert model.objective([1e19, 0]) > 1e18
    for kind in (np.float16, np.float32, np.longdouble):
        real = SimplexQP([5.0, 3.0], 4, integer=False)
        assert real.certificate(np.array([3, 1], kind)).optimal
