"""Proofs as plain text: an independent reader finds a feasible answer, at the model's cost."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from models import (
    Chebyshev,
    Clustering,
    CostTable,
    FixedSum,
    GroupMatching,
    Isotonic,
    Merging,
    Program,
    SparsestChebyshev,
)
from models.instances import load_instance, save
from models.programs.terms import Block, Rows, Term
from models.witnesses.plain_text import model_lines, problem_lines, write_proofs
from models.witnesses.row_proofs import completed, exact_proofs

INFINITE = {"-inf": float("-inf"), "inf": float("inf")}


def read(text):
    return INFINITE[text] if text in INFINITE else Fraction(text)


def cost(words, v):
    """The sum of a variable's pieces at v."""
    if not words:
        return 0
    kind, *words = words
    if kind == "linear":
        return read(words[0]) * v + cost(words[1:], v)
    if kind == "table":
        first, count = int(words[0]), int(words[1])
        assert v.denominator == 1
        assert 0 <= v - first < count
        return read(words[2 + int(v) - first]) + cost(words[2 + count :], v)
    away = abs(v - read(words[1]))
    return read(words[0]) * (away if kind == "absolute" else away**2) + cost(words[2:], v)


def checked(lines):
    """The cost of one problem's answer, after checking that it is feasible; and the number of its prices."""
    parts = {word: [] for word in ("problem", "variable", "row", "value", "price", "end")}
    for line in lines:
        word, *rest = line.split(" ")
        assert list(parts).index(word) >= max([0, *(k for k, part in enumerate(parts.values()) if part)])
        parts[word].append(rest)
    values = [Fraction(number) for (number,) in parts["value"]]
    total = 0
    for (kind, low, high, *pieces), v in zip(parts["variable"], values, strict=True):
        assert kind == "real" or v.denominator == 1
        assert read(low) <= v <= read(high)
        total += cost(pieces, v)
    for low, high, *terms in parts["row"]:
        held = sum(values[int(k) - 1] * Fraction(a) for k, a in zip(terms[::2], terms[1::2], strict=True))
        assert read(low) <= held <= read(high)
    assert len(parts["price"]) == len(parts["row"])
    return total


MODELS = [
    (FixedSum([5, 3, -2], total=4, p=2), [3, 1, 0]),
    (Isotonic([3, 1, 2], 1, lower=0, upper=5), [2, 2, 2]),
    (CostTable([[9, 4, 1, 0], [0, 1, 4]], total=4), [3, 1]),
    (Chebyshev([5, 3, -2, 9], [4, 7], offsets=[0, 3, 4]), [3, 1, 0, 7]),
    (GroupMatching(([1, 5], [2, 1]), [([2, 4], [1, 2])]), [[1, 1], [0, 1]]),
    (Clustering([1, 1, 3, 3, 4, 6, 7], noise_scale=2), [1, 0, 1, 0, 0, 1, 0]),
]


@pytest.mark.parametrize(("model", "x"), MODELS, ids=lambda value: type(value).__name__)
def test_a_reader_of_its_own_finds_the_cost_of_a_feasible_answer(model, x):
    lines = list(model_lines("a name\nof two lines", model, np.array(x), None))
    starts = [k for k, line in enumerate(lines) if line.startswith("problem ")]
    parts = [lines[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)]
    assert len(parts) == (2 if isinstance(model, Chebyshev) else 1)
    assert all("\n" not in line for line in lines)
    assert sum(checked(part) for part in parts) == model.objective(np.array(x))


def test_what_is_left_out_has_a_reason():
    cases = [
        (Merging([[0.5], [0.25]], [[1], [1]], integer=False), [0.375], None, "floats"),
        (FixedSum([5, 3], total=4, p=2), [4, 0], None, "does not prove it"),
        (SparsestChebyshev([1, 2], 3), [1, 2], None, "has no row prices"),
        (
            Clustering([1, 1, 7], noise_scale=2, clusters=2),
            [1, 0, 1],
            {"potentials": [0, 0, 4, 12], "price": 0},
            "does not read as row prices",
        ),
    ]
    for model, x, witness, reason in cases:
        (line,) = model_lines("n", model, np.array(x), witness)
        assert line.startswith("skipped n: ")
        assert reason in line


def test_numbers_are_written_exactly_and_only_finite_ones():
    program = Program(
        "mixed",
        [Block("v", (2,), [-np.inf, 0.1], [np.inf, 2**60])],
        [Rows("r", scipy.sparse.csr_matrix([[0.5, 0.0]]), np.array([-np.inf]), np.array([Fraction(1, 3)]))],
        [
            Term("quadratic", np.array([0, 0]), [1, Fraction(2, 7)], [0.25, 0]),
            Term("linear", np.array([1]), 3),
        ],
    )
    lines = list(problem_lines("mixed", program, [Fraction(1, 3), 1], [-2]))
    tenth = Fraction(0.1)
    assert lines[1:4] == [
        "variable real -inf inf square 1 1/4 square 2/7 0",
        f"variable real {tenth} {2**60} linear 3",
        "row -inf 1/3 1 1/2",
    ]
    with pytest.raises(ValueError, match="a price is not finite"):
        list(problem_lines("mixed", program, [0, 1], [np.inf]))


def test_an_auxiliary_variable_is_the_least_that_its_rows_allow():
    model = Chebyshev([5, 3, -2], total=4)
    assert completed(model.program(), [0, 1, 3]).tolist() == [0, 1, 3, 5]
    (_, (program, variables, prices)), *_ = exact_proofs("n", model, np.array([3, 1, 0]))
    assert (variables.tolist(), prices.shape) == ([3, 1, 0, 2], (program.matrix.shape[0],))


def test_stored_instances_are_written_with_their_answers(tmp_path):
    model, x = MODELS[0]
    one = load_instance(save(model, tmp_path / "one.npz", np.array(x)))
    wrong = load_instance(save(model, tmp_path / "wrong.npz", np.array([4, 0, 0])))
    steps = [(name, each.model, each.answer, each.witness) for name, each in (("one", one), ("wrong", wrong))]
    assert write_proofs(tmp_path / "proofs.txt", steps) == (1, 1)
    first, *lines, last = (tmp_path / "proofs.txt").read_text().splitlines()
    assert first == "hierdp proofs 1"
    assert lines == list(model_lines("one", model, np.array(x)))
    assert last == "skipped wrong: its own certificate does not prove it"


def test_a_partition_into_as_many_runs_as_values_is_left_out():
    model = Clustering([1, 2, 5], 1, clusters=3)
    (line,) = model_lines("n", model, np.ones(3, np.int64))
    assert line == "skipped n: its witness does not read as row prices"
