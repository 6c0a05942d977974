"""Answers of released histograms: errors against dense algebra and simulation; writing and reading."""

import json
from itertools import product

import numpy as np
import pytest

from hierdp import SimulatedNoise
from hierdp.analysis.consistent import ConsistentVariance
from hierdp.counts.axes import Names
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.range_query import METHODS, range_query
from hierdp.mechanisms.range_query.answers import Answers
from hierdp.mechanisms.range_query.boxes import box_covers, box_variances, run_covers
from hierdp.mechanisms.range_query.reading import read_answers
from hierdp.mechanisms.range_query.tree import grid_tree, hierarchy_tree
from hierdp.mechanisms.range_query.wavelet import Wavelet, coefficients
from hierdp.privacy.noise import double_geometric_variance
from hierdp.tables.binning import Histogram
from tests.marks import quick

SHAPES = [
    ((8,), 2),
    ((13,), 3),
    ((7,), 2),
    ((9,), 16),
    ((1,), 2),
    ((17,), 4),
    ((5, 4), 2),
    ((6, 7), 3),
    ((3, 4, 2), 2),
]


def all_boxes(shape):
    """Every box, with its bins as a row of 0 and 1."""
    spans = [[(i, j) for i in range(n) for j in range(i + 1, n + 1)] for n in shape]
    boxes = list(product(*spans))
    inside = np.zeros((len(boxes), *shape), dtype=int)
    for row, box in enumerate(boxes):
        inside[(row, *(slice(i, j) for i, j in box))] = 1
    low, high = (np.array([[span[side] for span in box] for box in boxes]) for side in (0, 1))
    return low, high, inside.reshape(len(boxes), -1)


def trees():
    for shape, b in SHAPES:
        yield grid_tree(shape, b)
    for columns in (
        {"a": "xxyyyz", "b": "pqrrst"},
        {"a": "zxxyzx", "b": "pqrstq"},
    ):  # the second is out of order
        spelt = {name: list(text) for name, text in columns.items()} | {"c": list("123456")}
        yield hierarchy_tree(Hierarchy.from_columns(spelt, ["a", "b", "c"]))


def test_variances_of_consistent_boxes_are_those_of_dense_least_squares():
    rng = np.random.default_rng(0)
    for boxes in trees():
        tree = boxes.tree
        holds = np.asarray(tree.sum_up(np.eye(boxes.bins)))
        low, high, inside = all_boxes(boxes.shape)
        for case in range(3):
            variance = rng.uniform(0.5, 4, tree.size) if case else np.full(tree.size, 2.0)
            if case < 2:
                variance[0] = np.inf
            else:  # some inner nodes are not measured
                inner = tree.size - boxes.bins
                variance[:inner][rng.random(inner) < 0.3] = np.inf
            covariance = np.linalg.inv((holds.T / variance) @ holds)
            dense = np.einsum("qi,ij,qj->q", inside, covariance, inside)
            noise = ConsistentVariance(tree, variance)
            np.testing.assert_allclose(box_variances(boxes, noise, low, high), dense, rtol=1e-9)
            if len(boxes.shape) == 1:
                np.testing.assert_allclose(noise.of_ranges(low[:, 0], high[:, 0]), dense, rtol=1e-9)
            nodes = np.einsum("qi,ij,qj->q", holds, covariance, holds)
            np.testing.assert_allclose(noise.of_nodes(), nodes, rtol=1e-9)


def test_covers_are_the_fewest_nodes():
    rng = np.random.default_rng(1)
    for boxes in trees():
        tree = boxes.tree
        values = rng.integers(0, 1000, tree.size)
        holds = np.asarray(tree.sum_up(np.eye(boxes.bins, dtype=int)))
        low, high, inside = all_boxes(boxes.shape)
        found = box_covers(boxes, values, low, high)
        for query, sums in zip(inside, found, strict=True):
            full = (holds <= query).all(axis=1)
            full[0] = False
            top = [v for v in range(1, tree.size) if full[v] and not full[tree.parent[v]]]
            assert sums == values[top].sum()
        if len(boxes.shape) == 1:
            assert (run_covers(boxes, values, low[:, 0], high[:, 0]) == found).all()


def test_variances_of_the_wavelet_are_those_of_its_inverse():
    for shape in [(1,), (2,), (3,), (8,), (13,), (5, 3), (4, 3, 2)]:
        bins = int(np.prod(shape))
        units = np.eye(bins, dtype=int).reshape(-1, *shape)
        inverse = np.linalg.inv(np.stack([coefficients(unit).ravel() for unit in units], axis=1))
        low, high, inside = all_boxes(shape)
        source = Wavelet(np.zeros(shape), 3.0)
        dense = 3.0 * ((inside @ inverse) ** 2).sum(axis=1)
        np.testing.assert_allclose(source.variances(low, high), dense, rtol=1e-9)
        np.testing.assert_allclose(source.bin_variances().ravel(), 3.0 * (inverse**2).sum(axis=1))


@pytest.mark.parametrize("method", quick([m for m in METHODS if not m.startswith("H_tree")], every=5))
def test_standard_errors_are_those_of_simulated_releases(method):
    """Up to sampling error, many runs are unbiased and have the squared errors that the release states."""
    rng = np.random.default_rng(2)
    for shape in [(11,), (5, 4)]:
        counts = rng.integers(0, 60, shape)
        ends = np.sort(np.stack([rng.integers(0, n + 1, (12, 2)) for n in shape], axis=2), axis=1)
        low, high = ends[:, 0], ends[:, 1]
        true = [
            counts[tuple(slice(a, b) for a, b in zip(*box, strict=True))].sum()
            for box in zip(low, high, strict=True)
        ]
        runs = 60
        errors = []
        for seed in range(runs):
            made = range_query(Histogram.of(counts), 0.7, SimulatedNoise(seed), method)
            answers = made.box(low, high)
            errors.append(answers.estimate - true)
        squares, stated = np.square(errors), answers.standard_error**2
        empty = (low == high).any(axis=1)
        assert not squares[:, empty].any()
        assert not stated[empty].any()
        at = ~empty
        # Sums of double-geometric noise have fourth moments ≤ 6σ⁴, so squares have deviations ≤ √5 σ².
        spread = np.sqrt(5 / runs) * stated[at]
        assert (np.abs(squares.mean(axis=0)[at] - stated[at]) < 5 * spread).all()
        assert (np.abs(np.mean(errors, axis=0)[at]) < 5 * np.sqrt(stated[at] / runs)).all()


def test_the_variance_of_double_geometric_noise():
    for scale in (0.3, 1.0, 7.5, 40.0):
        k = np.arange(-3000, 3001)
        mass = np.exp(-np.abs(k) / scale)
        assert double_geometric_variance(scale) == pytest.approx((k**2 * mass).sum() / mass.sum())
    assert double_geometric_variance(1e-4) == 0
    assert double_geometric_variance(1e6) == pytest.approx(2e12)


def test_figure_1_of_the_paper_as_it_is_answered():
    made = range_query(Histogram.of(np.arange(8)), 1.0, SimulatedNoise(0), "H_2^c")
    variance = double_geometric_variance(3.0)
    assert made.range(0, 3).standard_error ** 2 == pytest.approx(399 / 441 * variance)
    plain = range_query(Histogram.of(np.arange(8)), 1.0, SimulatedNoise(0), "H_2")
    assert plain.range(0, 3).standard_error ** 2 == pytest.approx(2 * variance)


def releases():
    rng = np.random.default_rng(3)
    places = Hierarchy.from_columns({"a": list("yxyxz"), "b": list("12345")}, ["a", "b"])
    line, plane = (
        Histogram.of(rng.integers(0, 99, 23), "age"),
        Histogram.of(rng.integers(0, 99, (5, 6)), "x", "y"),
    )
    named = Histogram(rng.integers(0, 99, 5), (Names.of("b", places),))
    mixed = Histogram(
        rng.integers(0, 99, (4, 5)), (Histogram.of(np.zeros(4, int), "age").axes[0], named.axes[0])
    )
    for method in METHODS:
        for data in [named] if method.startswith("H_tree") else [line, plane, named, mixed]:
            yield range_query(data, 1.0, SimulatedNoise(4), method)
    yield range_query(line, 1.0, SimulatedNoise(4), "H_b^c", repair="whole")
    yield range_query(line, 1.0, SimulatedNoise(4), "H_2^c", budget="geometric", repair="non-negative")


def test_the_table_agrees_with_queries_for_each_row():
    for made in releases():
        axes = [axis.name for axis in made.answers.axes]
        low, high = (made.table[[f"{name}_{end}" for name in axes]].to_numpy() for end in ("first", "end"))
        # Queries for an only child use its parent's count; without consistency, the two differ.
        own = ~made.table.duplicated([f"{name}_{end}" for name in axes for end in ("first", "end")])
        answered, table = made.box(low[own], high[own]), made.table[own]
        np.testing.assert_allclose(answered.estimate, table["count"], rtol=1e-9, atol=1e-9)
        if made.settings.get("repair", "least squares") == "least squares":
            np.testing.assert_allclose(answered.standard_error, table.standard_error, rtol=1e-9)
        else:  # not linear in the noise, so errors depend on the true counts
            assert "standard_error" not in table
            assert np.isnan(answered.standard_error).all()
            assert (made.box(low[own], low[own]).standard_error == 0).all()  # empty boxes are exact


def test_a_written_release_answers_the_same(tmp_path):
    for number, made in enumerate(releases()):
        made.write(tmp_path / str(number), report=False)
        back = read_answers(tmp_path / str(number))
        bins = np.array(back.bins)
        ends = np.sort(np.random.default_rng(5).integers(0, bins + 1, (2, 30, bins.size)), axis=0)
        ours, theirs = made.box(*ends), back.box(*ends)
        assert np.array_equal(ours.estimate, theirs.estimate)
        assert ours.estimate.dtype == theirs.estimate.dtype
        assert np.array_equal(ours.standard_error, theirs.standard_error, equal_nan=True)
        assert [axis.labels for axis in back.axes] == [axis.labels for axis in made.answers.axes]
        if len(bins) == 1:
            assert np.array_equal(back.range(*ends[..., 0]).estimate, theirs.estimate)


def test_other_folders_than_range_releases_are_refused(tmp_path):
    with pytest.raises(InputError, match="is not a release: it has no"):
        read_answers(tmp_path)
    (tmp_path / "released.parquet").write_bytes(b"")
    (tmp_path / "manifest.json").write_text(
        json.dumps({"format": 1, "mechanism": "M_c^dp", "settings": {}, "budget": {}, "solved": []})
    )
    with pytest.raises(InputError, match="a release of another kind"):
        read_answers(tmp_path)


def test_shapes_of_questions():
    made = range_query(Histogram.of(np.arange(6)), 1.0, SimulatedNoise(0), "H_b^c", branching=2)
    one = made.range(1, 4)
    assert isinstance(one, Answers)
    assert one.estimate.shape == one.standard_error.shape == ()
    assert made.range([[0, 1], [2, 3]], 5).estimate.shape == (2, 2)
    assert made.range([[0], [2]], [5, 6]).estimate.shape == (2, 2)
    assert made.box([1], [4]).estimate == one.estimate
    assert np.array_equal(made.prefix([0, 3, 6]).estimate, made.range(0, [0, 3, 6]).estimate)
    assert made.prefix(0) == (0, 0)
    plane = range_query(Histogram.of(np.ones((2, 3), int)), 1.0, SimulatedNoise(0))
    assert plane.box([[0, 0], [0, 1]], [2, 3]).estimate.shape == (2,)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (3, 2, "query 1, age: bins 3 … 2 are not within 0 … 6, or end before they begin"),
        ([0, -1], [1, 2], "query 2, age: bins -1 … 2"),
        (0, 7, "bins 0 … 7 are not within 0 … 6"),
        (0.0, 2.0, "bins have whole numbers"),
    ],
)
def test_invalid_queries_are_refused(low, high, message):
    made = range_query(Histogram.of(np.arange(6), "age"), 1.0, SimulatedNoise(0))
    with pytest.raises(InputError, match=message):
        made.range(low, high)


def test_dimensions_must_fit():
    plane = range_query(Histogram.of(np.ones((2, 3), int)), 1.0, SimulatedNoise(0))
    with pytest.raises(InputError, match=r"has 2 axes: use box\(low, high\), .* box\(\[0, 0\], \[1, 1\]\)"):
        plane.range(0, 1)
    assert plane.box([0, 0], [1, 1]).estimate == plane.table[plane.table.level > 0]["count"].iloc[0]
    with pytest.raises(InputError, match=r"a box needs 2 number\(s\), one per axis"):
        plane.box([0, 0, 0], [1, 1, 1])
    with pytest.raises(InputError, match=r"a box needs 2"):
        plane.box(0, 1)
