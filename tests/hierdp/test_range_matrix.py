"""Range queries by the matrix mechanism: exact sensitivity, least squares, standard errors, checks."""

import json

import numpy as np
import pytest

from hierdp import SimulatedNoise
from hierdp.analysis import matrix_mechanism
from hierdp.analysis.workload import RANGE
from hierdp.checking import FAILS, check
from hierdp.errors import InputError
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.range_query.matrix import (
    QUERIES,
    STRATEGIES,
    UNIT,
    Matrix,
    sensitivity,
    strategy_in,
    true_answers,
    whole_strategy,
)
from hierdp.privacy.noise import double_geometric_variance
from hierdp.tables.binning import Histogram

SHAPES = [(1,), (6,), (2, 3)]
EACH = [pytest.param(name, marks=[pytest.mark.slow] * (name == "eigen-select")) for name in STRATEGIES]
"""Eigen-select loads cvxpy, which takes seconds."""


@pytest.mark.parametrize("name", EACH)
def test_a_strategy_is_whole_and_its_sensitivity_is_that_of_all_neighbours(name):
    for shape in SHAPES:
        rows = whole_strategy(name, shape)
        assert rows.dtype == np.int64
        assert np.abs(rows).max() == UNIT
        rng = np.random.default_rng(0)
        counts = rng.integers(0, 2, shape)  # bins that are empty, and others
        moved = []
        for bin in range(counts.size):
            more = counts.copy()
            more.flat[bin] += 1
            moved.append(int(np.abs(true_answers(rows, more) - true_answers(rows, counts)).sum()))
        assert max(moved) == sensitivity(rows)
        assert type(sensitivity(rows)) is int
        assert sensitivity(rows * np.where(np.arange(len(rows)) % 2, -1, 1)[:, None]) == max(moved)
        made = range_query(Histogram.of(counts), 0.5, SimulatedNoise(0), "matrix", strategy=name)
        (spend,) = made.ledger.spends
        assert (spend.query, spend.sensitivity, spend.epsilon) == (QUERIES, max(moved), 0.5)


@pytest.mark.parametrize("name", EACH)
def test_answers_and_errors_are_those_of_least_squares(name):
    rows = whole_strategy(name, (2, 3))
    counts = np.array([[5, 0, 7], [1, 1, 40]])
    exact = Matrix.of(rows, true_answers(rows, counts), 1.0, (2, 3))
    np.testing.assert_allclose(exact.counts, counts, atol=1e-9)
    made = range_query(Histogram.of(counts), 1.0, SimulatedNoise(3), "matrix", strategy=name)
    (measured,) = made.measurements
    noisy, scale = measured.answers, measured.spend.scale
    inverse = np.linalg.inv(rows.T.astype(float) @ rows)
    np.testing.assert_allclose(made.table["count"], inverse @ rows.T @ noisy, atol=1e-7)
    corner = np.array([1.0, 1, 0, 1, 1, 0])
    expected = double_geometric_variance(scale) * corner @ inverse @ corner
    answer = made.box([0, 0], [2, 2])
    assert answer.standard_error**2 == pytest.approx(expected)
    assert answer.estimate == pytest.approx(corner @ made.table["count"])


def test_p_identity_is_better_than_single_bins_and_its_gradient_is_right(monkeypatch):
    gram = RANGE.gram(40)
    found = matrix_mechanism.p_identity(gram)
    np.testing.assert_allclose(found.sum(axis=0), 1)
    assert (found >= 0).all()
    block = found[:40]
    assert not (block - np.diag(np.diag(block))).any()  # single bins, and at most an eighth more queries
    assert len(found) <= 45
    assert matrix_mechanism.mean_variance(found, gram, RANGE.queries(40)) < 24  # single bins: 28
    seen = {}
    monkeypatch.setattr(matrix_mechanism.scipy.optimize, "minimize", lambda f, x, **_: seen.update(f=f, x=x))
    with pytest.raises(AttributeError):
        matrix_mechanism._more_queries(np.random.default_rng(1).random((2, 5)), RANGE.gram(5), 1)
    value, slope = seen["f"](seen["x"])
    for i in range(seen["x"].size):
        step = np.zeros_like(seen["x"])
        step[i] = 1e-6
        assert (seen["f"](seen["x"] + step)[0] - value) / 1e-6 == pytest.approx(slope[i], abs=1e-4)


@pytest.fixture
def folder(tmp_path):
    data = Histogram.of([20, 0, 7, 3], "age")
    range_query(data, 1.0, SimulatedNoise(1), "matrix").write(tmp_path / "out")
    return tmp_path / "out"


def failing(folder):
    return [line for line in check(folder) if line.verdict == FAILS]


@pytest.mark.parametrize("change", ["strategy", "fewer rows", "name", "variance"])
def test_a_check_finds_what_does_not_follow(folder, change):
    assert not failing(folder)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    settings = manifest["settings"]
    if change == "strategy":
        settings["range_query"]["strategy"][0][0] //= 2
    elif change == "fewer rows":
        settings["range_query"]["strategy"] = settings["range_query"]["strategy"][:3]
    elif change == "name":
        settings["strategy"] = "identity"
    else:
        settings["range_query"]["variance"] /= 2
    file.write_text(json.dumps(manifest))
    assert "table from steps" in {line.check for line in failing(folder)}


def test_bad_input():
    with pytest.raises(InputError, match="at most 256 bins, got 257"):
        whole_strategy("p-identity", (257,))
    with pytest.raises(InputError, match="no strategy 'best'; there are 'p-identity'"):
        range_query(Histogram.of([1, 2]), 1.0, SimulatedNoise(0), "matrix", strategy="best")
    with pytest.raises(InputError, match="takes no strategy"):
        range_query(Histogram.of([1, 2]), 1.0, SimulatedNoise(0), "Flat", strategy="p-identity")
    with pytest.raises(InputError, match="too large for the method matrix"):
        true_answers(np.array([[UNIT]]), np.array([2**42]))
    for wrong in ([], [[1, 2], [3]], [[1.5]], [[True]], [[2 * UNIT]]):
        with pytest.raises(InputError, match="not a matrix of whole numbers"):
            strategy_in(wrong)
