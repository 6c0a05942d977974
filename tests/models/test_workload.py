"""Workloads: array code against the Kronecker product of aggregations; their effects."""

from fractions import Fraction

import numpy as np
import pytest

from models import Workload
from models.arithmetic import effects
from models.workload import ROWS


def kronecker(workload):
    blocks = []
    for query in workload.queries:
        block = np.ones((1, 1))
        for recode in query:
            block = np.kron(block, np.eye(int(np.max(recode)) + 1)[:, np.asarray(recode)])
        blocks.append(block)
    return np.concatenate(blocks)


WORKLOADS = [
    Workload.marginals((2, 3, 4), [(), (0,), (1, 2), (0, 1, 2)]),
    Workload.marginals((4, 1, 3), [{0: [1, 0, 1, 2], 2: None}, {2: [1, 1, 0]}, (0,)]),
    Workload.marginals((5,), [(0,)]),
    Workload.marginals((), [()]),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_answers_and_spread_are_the_matrix_and_its_transpose(workload):
    rng, matrix = np.random.default_rng(0), kronecker(workload)
    assert np.array_equal(workload.matrix.toarray(), matrix)
    x, y = rng.integers(-9, 9, (3, workload.cells)), rng.integers(-9, 9, (3, workload.size))
    assert np.array_equal(workload.answers(x), x @ matrix.T)
    assert np.array_equal(workload.spread(y), y @ matrix)
    halves = np.array([Fraction(int(v), 2) for v in x[0]] + [None], object)[:-1]
    assert (2 * workload.answers(halves)).tolist() == (x[0] @ matrix.T).tolist()


@pytest.mark.parametrize("rows", [0, 1, ROWS, ROWS + 1, 3 * ROWS - 1])
def test_sums_of_many_histograms_are_exact(rows):
    """Whole numbers that floats do not hold, at every block of rows."""
    workload, rng = WORKLOADS[0], np.random.default_rng(rows)
    x, y = (rng.integers(-(2**55), 2**55, (rows, n)) for n in (workload.cells, workload.size))
    matrix = kronecker(workload).astype(np.int64)
    for found, expected in ((workload.answers(x), x @ matrix.T), (workload.spread(y), y @ matrix)):
        assert found.dtype == np.int64
        assert np.array_equal(found, expected)
    halves = rng.integers(-99, 99, (rows, workload.cells)) / 2
    assert np.array_equal(workload.answers(halves), halves @ matrix.T)
    assert np.array_equal(workload.answers(halves[:, None]), (halves @ matrix.T)[:, None])


def test_sums_beyond_64_bits_are_exact():
    workload = Workload.marginals((2, 2), [()])
    assert workload.answers(np.full(4, 2**62)).tolist() == [2**64]
    assert Workload.marginals((2,), [(), ()]).spread(np.full(2, 2**62)).tolist() == [2**63, 2**63]


def test_marginals_are_diagonal_in_effects():
    workload = WORKLOADS[0]
    rng = np.random.default_rng(0)
    weights, x = rng.uniform(0.5, 2, len(workload.queries)), rng.normal(size=(5, workload.cells))
    gram = kronecker(workload).T @ (workload.by_answer(weights)[:, None] * kronecker(workload))
    scale = effects.eigenvalues(workload.shape, workload.summed, weights)
    assert np.allclose(effects.scaled(x, workload.shape, scale), x @ gram)
    assert np.allclose(np.sum(effects.squares(x, workload.shape)), np.sum(x * x))
    assert np.allclose(effects.squares(x, workload.shape) @ scale, np.sum(x * (x @ gram)))


def test_malformed_queries_are_refused():
    for shape, queries, message in (
        ((2,), [[[0, 1], [0]]], "query 0 recodes 2 attributes; there are 1"),
        ((2,), [[[0, 2]]], "the coarse categories are 0, 1, … without a gap"),
        ((2,), [[[0]]], "a recode holds a whole number for each of the 2 categories"),
        ((0,), [], "at least one category"),
    ):
        with pytest.raises(ValueError, match=message):
            Workload(shape, queries)
    with pytest.raises(ValueError, match="query 1 keeps attribute 3; there are 2"):
        Workload.marginals((2, 2), [(), (3,)])
