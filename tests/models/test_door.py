"""Every number enters by value, into models, programs, answers, witnesses and adapters, or is refused."""

from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

import models
from models import Program, lagrangian_certificate
from models.adapters import (
    emd,
    isotonic_estimator,
    linear_program,
    linear_sum_assignment,
    linprog,
    milp,
    reconciliation,
    ruptures,
)
from models.arithmetic import door
from models.programs.operators import Incidence, Rises, Spread, Steps, Sums
from models.programs.terms import Block, Rows, Term

LARGE = (2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1)
FLOATS = (0.1, -0.0, 5e-324, 2.0**53 + 2, 1e308)
NUMBERS = (
    *LARGE,
    *FLOATS,
    Fraction(1, 3),
    Decimal("0.1"),
    np.int8(-128),
    np.uint64(2**64 - 1),
    np.float32(0.1),
    np.float16(1.5),
    np.longdouble(2) ** 60 + 1,
    np.longdouble(1) / 3,
    True,
    np.True_,
)
NO_NUMBERS = ("1", b"1", None, 1j, np.datetime64("2026-01-01"), np.timedelta64(1), Decimal("nan"), [1, 2], {})


def by_value(number):
    """A number as a Fraction; an infinite one as it is."""
    if abs(number) == float("inf"):
        return float(number)
    if isinstance(number, np.longdouble):
        return Fraction(*number.as_integer_ratio())
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def values_of(array):
    """An array's numbers by value."""
    return [by_value(value) for value in np.asarray(array).ravel().tolist()]


@given(st.lists(st.sampled_from(NUMBERS), max_size=5))
def test_lists_of_mixed_numbers_keep_every_value(numbers):
    array = door.numbers("numbers", numbers)
    assert values_of(array) == [by_value(number) for number in numbers]
    assert array.dtype in (np.int64, np.float64, object)
    if array.dtype == object:
        assert {type(value) for value in array.tolist()} <= {int, Fraction}
    objects = np.empty(len(numbers), object)
    objects[:] = numbers
    exactly = door.numbers("numbers", objects)
    assert exactly.dtype == object
    assert values_of(exactly) == values_of(array)


@pytest.mark.parametrize(
    "dtype", ["bool", *"bhilqBHILQ", "float16", "float32", "float64", "longdouble", ">i8", ">f4"]
)
def test_arrays_of_every_type_keep_every_value(dtype):
    kind = np.dtype(dtype)
    ends = (0, 1) if kind.kind == "b" else _ends(kind)
    array = np.array(ends, kind)
    entered = door.numbers("numbers", array)
    assert values_of(entered) == [by_value(value) for value in array]
    assert not entered.flags.writeable
    assert not np.shares_memory(entered, array)


def _ends(kind):
    limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    return limits.min, limits.max, 1


def test_what_is_given_may_change_afterwards():
    array = np.array([1, 2])
    view = array[::-1]
    entered = door.numbers("numbers", view)
    array[:] = 9
    assert entered.tolist() == [2, 1]
    with pytest.raises(ValueError, match="read-only"):
        entered[0] = 5


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match="noisy"):
        door.numbers("noisy", [1, wrong])


def test_infinities_nan_masks_and_ragged_lists_are_refused_by_name():
    for wrong in (np.nan, np.inf, -np.inf, np.float32("nan"), np.longdouble("inf")):
        for array in ([0.5, wrong], np.array([0.5, wrong]), np.array([0.5, wrong], object)):
            with pytest.raises(ValueError, match=r"noisy\[1\] is .*: it must be finite"):
                door.numbers("noisy", array)
    masked = np.ma.masked_array([1, 2], [False, True])
    for wrong in (masked, [[1], [1, 2]], scipy.sparse.identity(2), np.array(["a"]), np.array([1j])):
        with pytest.raises(ValueError, match="noisy"):
            door.numbers("noisy", wrong)
    assert door.numbers("noisy", np.ma.masked_array([1, 2])).tolist() == [1, 2]


def test_entries_of_a_sparse_matrix_at_one_place_are_added_without_wrapping():
    for dtype in (np.int8, np.uint8, np.int64, np.float64):
        twice = scipy.sparse.coo_matrix((np.array([100, 100], dtype), ([0, 0], [0, 0])), shape=(1, 2))
        assert door.sparse("A", twice).toarray().tolist() == [[200, 0]]
    large = scipy.sparse.coo_matrix((np.array([2**62, 2**62 - 1]), ([0, 0], [0, 0])), shape=(1, 1))
    assert door.sparse("A", large).data.tolist() == [2**63 - 1]
    assert door.sparse("A", [[2**63, 0.5]]).data.tolist() == [2.0**63, 0.5]
    for wrong in ([[2**63 + 1, 0.5]], [[Fraction(1, 3)]]):
        with pytest.raises(ValueError, match="A has an entry that neither"):
            door.sparse("A", wrong)
    outside = scipy.sparse.csr_matrix(([1], [0], [0, 1]), shape=(1, 1))
    outside.indices[0] = -1
    with pytest.raises(ValueError, match=r"negative|outside its shape"):
        door.sparse("A", outside)


# ---------------------------------------------------------------- every field of every model

HOSTILE = {
    "an integer that floats round, beside a fraction": lambda old: [2**53 + 1, *old[1:-1], 0.5],
    "unsigned": lambda old: np.array([2**63] * len(old), np.uint64),
    "beyond 64 bits": lambda old: [2**64 + 1, *old[1:]],
    "longdouble": lambda old: np.array([np.longdouble(2) ** 60 + 1, *old[1:]], np.longdouble),
    "narrow": lambda old: np.array([100 + k % 28 for k in range(len(old))], np.int8),
    "half": lambda old: np.array([1.5] * len(old), np.float16),
    "fractions": lambda old: [Fraction(10, 3), *old[1:]],
    "least float": lambda old: [5e-324, *old[1:]],
    "largest float": lambda old: [1e308, *old[1:]],
}
TYPES = [type_ for type_ in (getattr(models, name) for name in models.__all__)
         if hasattr(type_, "typical")]  # fmt: skip


def numeric_fields(model):
    for field in fields(model):
        value = getattr(model, field.name)
        if field.init and isinstance(value, np.ndarray) and value.dtype.kind in "if" and value.size > 1:
            yield field.name, value


@pytest.mark.parametrize("model_type", TYPES, ids=lambda model_type: model_type.__name__)
def test_every_field_of_every_model_keeps_its_values_or_refuses_them(model_type):
    rng, kept = np.random.default_rng(3), 0
    for _ in range(12):
        model = model_type.random(rng, 4)
        for name, value in numeric_fields(model):
            old = value.ravel().tolist()
            for change in HOSTILE.values():
                numbers = change(old)
                array = np.empty(len(numbers), object)
                array[:] = list(numbers)
                shaped = np.reshape(numbers, value.shape) if isinstance(numbers, np.ndarray) else None
                given = array.reshape(value.shape).tolist() if shaped is None else shaped
                try:
                    changed = replace(model, **{name: given})
                except (ValueError, TypeError, OverflowError, NotImplementedError):
                    continue
                first = (model_type.__name__, name) == ("TreeChebyshev", "weights")  # the root's is not used
                assert values_of(getattr(changed, name))[first:] == [by_value(v) for v in array][first:], name
                kept += 1
    assert kept or not any(numeric_fields(model_type.random(rng, 4)))


@pytest.mark.parametrize("model_type", TYPES, ids=lambda model_type: model_type.__name__)
def test_no_field_of_a_model_shares_memory_with_what_was_given(model_type):
    rng = np.random.default_rng(5)
    for _ in range(4):
        model = model_type.random(rng, 5)
        for name, value in numeric_fields(model):
            mine = np.array(value)
            copy = replace(model, **{name: mine})
            mine[...] = 7
            assert np.array_equal(getattr(copy, name), value), name


# ---------------------------------------------------------------- programs and their certificate


def test_a_program_keeps_its_numbers_when_the_given_arrays_change():
    cost, low, matrix = np.array([1, 2]), np.array([0, 0]), scipy.sparse.csr_matrix([[1.0, 1.0]])
    program = Program(
        "two",
        [Block("x", (2,), low, 1, True)],
        [Rows("one", matrix, np.array([1]), 1)],
        [Term("linear", np.arange(2), cost)],
    )
    assert lagrangian_certificate(program, [1, 0], [1]).optimal
    cost[:], low[:], matrix.data[:] = [2, 1], 1, 5
    assert lagrangian_certificate(program, [1, 0], [1]).optimal
    assert program.value(np.array([1, 0])) == 1


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("edge", LARGE)
def test_bounds_of_every_size_are_kept(side, edge):
    block = Block("x", (1,), **{"lower": -(2**70), "upper": 2**70} | {side: edge}, integer=True)
    program = Program("one", [block], [], [Term("linear", [0], 0)])
    assert lagrangian_certificate(program, [edge], []).optimal
    for beyond in (edge - 1,) if side == "lower" else (edge + 1,):
        assert "bounds" in lagrangian_certificate(program, [beyond], []).reason


def test_mixed_numbers_of_a_program_and_its_answer_are_not_rounded():
    mixed = Program(
        "mixed",
        [Block("n", (1,), 0, 2**53, True), Block("r", (1,), 0.5)],
        [],
        [Term("linear", np.arange(2), [-1, 1])],
    )
    assert lagrangian_certificate(mixed, [2**53, 0.5], []).optimal
    assert not lagrangian_certificate(mixed, [2**53 + 1, 0.5], []).optimal
    center = Term("absolute", np.arange(2), 1, [2**63, -1])
    far = Program("far", [Block("n", (2,), -5, 2**64, True)], [], [center])
    assert lagrangian_certificate(far, [2**63, -1], []).optimal
    assert not lagrangian_certificate(far, [2**63 + 1, -1], []).optimal


def real(name, low, high=np.inf):
    return Block(name, (1,), low, high)


@pytest.mark.parametrize(
    ("blocks", "row", "side", "cost", "answer"),
    [
        # The large coefficient is that of a whole variable, of a fixed one; the large value is in no row.
        ([Block("open", (1,), 0, 1, True), real("ship", 500)], [1e7, -1], 0, [10, 0], [0.0, 500.0]),
        ([real("x", 0, 5), real("c", 0, 0)], [1, 1e7], 1, [1, 0], [0.0, 0.0]),
        ([real("z", 1.1e9, 1.1e9), real("y", 0), real("w", -np.inf, 0)], [0, 1, 1],
         1000, [0, 1, 0], [1.1e9, 0, 1e3]),
        ([real("z", 0), real("y", 0)], [0, 1], 1, [0, 1], [1e9, 1.0 - 1e-3]),
    ],
)  # fmt: skip
def test_only_what_can_move_repairs_a_row(blocks, row, side, cost, answer):
    rows = [Rows("row", [row], side, np.inf)]
    program = Program("p", blocks, rows, [Term("linear", np.arange(len(cost)), cost)])
    for price in (0, 1):
        assert "not feasible" in lagrangian_certificate(program, np.array(answer, float), [price]).reason


def test_what_rounding_breaks_is_repaired():
    program = Program(
        "p", [real("x", 0), real("y", 0)], [Rows("sum", [[1, 3]], 1, 1)], [Term("linear", [0, 1], [1, 3])]
    )
    for x in ([0.1 + 0.2, 0.7 / 3], [1 - 1e-9, 0.0], [-1e-9, 1 / 3]):
        assert lagrangian_certificate(program, x, [1]).optimal
    assert not lagrangian_certificate(program, [1 - 1e-5, 0.0], [1]).optimal


# ---------------------------------------------------------------- adapters


def test_indices_that_no_solver_returns_are_refused():
    cost = [[1, 5, 9], [9, 2, 7]]
    assert linear_sum_assignment([0, 1], [0, 1], cost).model.supply.sum() == 0
    for rows, columns in (([0, 1], [-1, 1]), ([0, -1], [0, 1]), ([0, 1], [0, 3]), ([0.5, 1], [0, 1])):
        with pytest.raises(ValueError, match=r"row_ind|col_ind"):
            linear_sum_assignment(rows, columns, cost)
    for breaks in ([-3, 6], [0, 6], [3, 3, 6], [4, 2, 6], [3, 5], []):
        with pytest.raises(ValueError, match="break"):
            ruptures(breaks, [1, 1, 2, 9, 9, 8], n_bkps=max(len(breaks) - 1, 0), min_size=1, jump=1)


def test_infinity_forbids_a_pair():
    from solvers import prove

    claim = linear_sum_assignment([0, 1], [0, 1], [[1, np.inf], [2, 3]])
    assert prove(claim.model, claim.x).optimal
    with pytest.raises(ValueError, match="row 0 and column 1 are paired, which cost_matrix forbids"):
        linear_sum_assignment([0, 1], [1, 0], [[1, np.inf], [2, 3]])
    most = linear_sum_assignment([0, 1], [0, 1], [[1, -np.inf], [2, 3]], maximize=True)
    assert prove(most.model, most.x).objective == -4
    for wrong in (-np.inf, np.nan):
        with pytest.raises(ValueError, match="cost_matrix"):
            linear_sum_assignment([0, 1], [0, 1], [[1, wrong], [2, 3]])


def test_entries_of_weight_0_cost_nothing():
    class Fitted:
        y_min = y_max = None
        increasing_ = True

        def predict(self, X):
            return np.interp(X, [1, 3], [2.5, 2.5])

    claim = isotonic_estimator(Fitted(), [1, 2, 3], [3, 100, 2], [1, 0, 1])
    assert claim.certificate().optimal
    assert claim.certificate().objective == 0.5
    with pytest.raises(ValueError, match="sample_weight has -1"):
        isotonic_estimator(Fitted(), [1, 2, 3], [3, 100, 2], [1, -1, 1])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="G has shape"):
        emd([[1, 0, 1, 2]], [1, 3], [2, 2], [[0, 1], [1, 0]])
    S = [[1, 1], [1, 0], [0, 1]]
    with pytest.raises(ValueError, match="y_hat has shape"):
        reconciliation([11, 4, 7], S, [12, 3])
    with pytest.raises(ValueError, match="symmetric"):
        reconciliation([11, 4, 7], S, [12, 3, 6], [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])


class Result:
    """What SciPy returns."""

    def __init__(self, x, message="no"):
        self.x, self.message = x, message
        self.ineqlin = self.eqlin = type("Marginals", (), {"marginals": np.array([-1.0])})


def test_problems_of_scipy_in_all_their_forms():
    rows = ([[2, 1]], -np.inf, 4)
    forms = (rows, [rows], ([[2, 1]], -np.inf, [4]), (scipy.sparse.csr_matrix([[2, 1]]), [-np.inf], [4]))
    claims = [milp(Result([0.0, 4.0]), [-1, -1], integrality=1, constraints=form) for form in forms]
    assert {str(claim.model) for claim in claims} == {str(claims[0].model)}
    for bounds in (None, (0, None), [(0, None)] * 2, [(0, None)], [[0, np.inf]] * 2):
        claim = linprog(Result([0.0, 4.0]), [-1, -1], [[2, 1]], [4], bounds=bounds)
        assert claim.model.bounds[0].tolist() == [0, 0]
        assert claim.model.bounds[1].tolist() == [np.inf, np.inf]
    whole = linprog(Result([0.0, 4.0]), [-1, -1], [[2, 1]], [4], integrality=[1, 1])
    assert whole.model.integer.all()
    assert linprog(Result([3.0, 0.0]), [-1, -1], [[2, 1]], [4], bounds=(0, 3)).model.bounds[1].tolist() == [
        3,
        3,
    ]
    with pytest.raises(ValueError, match="the result has no answer: no"):
        linprog(Result(None), [-1, -1], [[2, 1]], [4])
    with pytest.raises(ValueError, match="semi-continuous"):
        milp(Result([0.0, 4.0]), [-1, -1], integrality=2, constraints=rows)
    with pytest.raises(ValueError, match="bounds must be"):
        linprog(Result([0.0, 4.0]), [-1, -1], [[2, 1]], [4], bounds=[(0, 1)] * 3)


def test_a_linear_program_is_taken_by_value():
    claim = linear_program(
        [2**53 + 1, 0.5], [-1, 1], [[0, 0]], -np.inf, np.inf, ([0, 0.5], [2**53, np.inf]), [True, False]
    )
    assert not claim.certificate().optimal
    twice = scipy.sparse.coo_matrix((np.array([100, 100], np.int8), ([0, 0], [0, 0])), shape=(1, 1))
    assert not linear_program([-1], [1], twice, 1, np.inf, (-1, 5), True).certificate().optimal


@pytest.mark.parametrize(
    "holder",
    [
        lambda at: Sums(at),
        lambda at: Spread(at),
        lambda at: Steps(9, at),
        lambda at: Rises(at, (9, 2)),
        lambda at: Incidence(at, at[::-1], 9),
        lambda at: Block("x", (3,), part=at),
        lambda at: Rows("rows", scipy.sparse.eye(3), 0, 0, part=at),
    ],
)
def test_positions_that_change_afterwards_change_no_operator(holder):
    given_places = np.array([0, 2, 4])
    held = holder(given_places)
    before = repr(held)
    given_places[:] = 1
    assert repr(held) == before
