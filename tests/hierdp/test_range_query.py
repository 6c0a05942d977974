"""Range queries: sensitivity over all neighbours, measurements and their budgets, releases."""

import math

import numpy as np
import pandas as pd
import pytest
from doubles import Undrawn

from hierdp import SimulatedNoise, release
from hierdp.counts.axes import Names, Numbers
from hierdp.counts.boxes import tree_of_boxes
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.range_query import METHODS, RangeRelease, range_query
from hierdp.mechanisms.range_query import tree as trees
from hierdp.mechanisms.range_query.plan import best_branching, plan_of
from hierdp.mechanisms.range_query.post_processing import REPAIRS
from hierdp.mechanisms.range_query.tree import grid_tree, hierarchy_tree
from hierdp.mechanisms.range_query.wavelet import coefficients, counts_of, sensitivity
from hierdp.privacy.noise import Drawn, Spend, double_geometric_variance
from hierdp.record.step import NotSolved
from hierdp.tables.binning import Histogram
from tests.marks import quick

PLACES = Hierarchy.from_columns(
    {"state": ["B", "A", "B", "A", "C", "B"], "town": ["u", "v", "w", "x", "y", "z"]}, ["state", "town"]
)


class NoNoise:
    """Returns the true answers, and records the queries."""

    def __init__(self):
        self.queried = []

    def draw(self, query, true):
        sensitivity, epsilon = query.sensitivity, query.loss
        self.queried.append((np.asarray(true).ravel().astype(np.int64), sensitivity, epsilon))
        spend = Spend(query.name, "none", sensitivity, sensitivity / epsilon, epsilon, None, False)
        return Drawn(np.array(true), spend)


def data_for(method, counts):
    if method.startswith("H_tree"):
        return Histogram(np.asarray(counts), (Names.of("town", PLACES),))
    return Histogram.of(counts)


def shapes_for(method):
    return [(6,)] if method.startswith("H_tree") else [(1,), (2,), (7,), (8,), (3, 4), (5, 5), (2, 3, 2)]


@pytest.mark.parametrize("method", METHODS)
def test_sensitivity_of_every_method_by_all_neighbours(method):
    """With one more tuple in any bin, measurements move by at most their sensitivity, and attain it."""
    rng = np.random.default_rng(0)
    for shape in shapes_for(method):
        counts = rng.integers(0, 4, shape)
        before = NoNoise()
        range_query(data_for(method, counts), 1.0, before, method)
        moved = np.zeros(len(before.queried))
        loss = []
        for at in np.ndindex(*shape):
            more = counts.copy()
            more[at] += 1
            after = NoNoise()
            range_query(data_for(method, more), 1.0, after, method)
            apart = [np.abs(a[0] - b[0]).sum() for a, b in zip(before.queried, after.queried, strict=True)]
            moved = np.maximum(moved, apart)
            loss.append(sum(d * e / s for d, (_, s, e) in zip(apart, before.queried, strict=True)))
        assert (moved == [s for _, s, _ in before.queried]).all(), (method, shape)
        assert max(loss) == pytest.approx(1.0)  # exactly the whole budget


@pytest.mark.parametrize("method", quick(METHODS, every=3))
def test_without_noise_every_answer_is_true(method):
    rng = np.random.default_rng(1)
    for shape in shapes_for(method):
        counts = rng.integers(0, 100, shape)
        for repair in REPAIRS if "repair" in METHODS[method].takes else [None]:
            made = range_query(data_for(method, counts), 1.0, NoNoise(), method, repair=repair)
            places = rng.integers(0, np.array(shape) + 1, (2, 20, len(shape)))
            low, high = places.min(axis=0), places.max(axis=0)
            true = [
                counts[tuple(slice(a, b) for a, b in zip(*ends, strict=True))].sum()
                for ends in zip(low, high, strict=True)
            ]
            np.testing.assert_allclose(made.box(low, high).estimate, true, atol=1e-6)
            assert isinstance(made, RangeRelease)


def test_measurements_and_their_losses():
    noise = NoNoise()
    made = range_query(Histogram.of(np.arange(10)), 2.0, noise, "H_b", branching=3)
    assert [a.size for a, _, _ in noise.queried] == [2, 4, 10]  # the root is not measured
    assert [e for _, _, e in noise.queried] == [pytest.approx(2 / 3)] * 3
    assert noise.queried[0][0].tolist() == [36, 9]
    assert made.settings["branching"] == 3
    assert made.ledger.spent == pytest.approx(2)
    assert made.manifest()["budget"]["neighbouring_relation"].startswith("one person joins or leaves")
    for method, sizes in [("Flat", [10]), ("H_2", [2, 3, 5, 10]), ("H_2^c", [2, 3, 5, 10])]:
        noise = NoNoise()
        range_query(Histogram.of(np.arange(10)), 2.0, noise, method)
        assert [a.size for a, _, _ in noise.queried] == sizes


def test_budgets():
    axes = Histogram.of(np.zeros(64, int)).axes

    def shares(budget, method="H_2^c", axes=axes, **options):
        return plan_of(axes, 1.0, METHODS[method], budget=budget, **options).epsilons

    assert shares("equal") == pytest.approx([1 / 6] * 6)
    assert np.diff(np.log(shares("geometric"))) == pytest.approx([np.log(2) / 3] * 5)
    assert shares([1, 2, 3, 4, 5, 5]) == pytest.approx(np.array([1, 2, 3, 4, 5, 5]) / 20)
    assert shares(None, "Quadtree") == shares("geometric")
    square = Histogram.of(np.zeros((16, 16), int)).axes
    assert np.diff(np.log(shares(None, "Quadtree", square))) == pytest.approx([np.log(2) / 3] * 3)
    assert np.diff(np.log(shares(None, "H_2^c", square))) == pytest.approx([np.log(4) / 3] * 3)
    assert shares(None, "H_2^c") == shares("equal")
    assert sum(shares("optimized", "H_2", square)) == pytest.approx(1)
    # Levels without budget in the best split are not measured, and not in the tree.
    best = plan_of(axes, 1.0, METHODS["H_2^c"], budget="optimized")
    assert len(best.epsilons) == best.boxes.tree.depth
    assert sum(best.epsilons) == pytest.approx(1)
    assert min(best.epsilons) > 0
    assert (best.boxes.tree.sum_up(np.ones(64, int))[0]) == 64


def test_levels_given_nothing_are_left_out():
    axes = Histogram.of(np.zeros(4096, int)).axes
    plan = plan_of(axes, 1.0, METHODS["H_2^c"], budget="optimized")
    assert plan.boxes.tree.depth == len(plan.epsilons) < 12
    made = range_query(Histogram.of(np.arange(4096)), 1.0, SimulatedNoise(0), "H_2^c", budget="optimized")
    equal = range_query(Histogram.of(np.arange(4096)), 1.0, SimulatedNoise(0), "H_2^c")
    assert made.settings["shares"] == list(plan.shares)
    assert plan.shares.count(0) == 12 - len(plan.epsilons)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 4097, (500, 2)), axis=1)
    assert (made.range(*ends.T).standard_error ** 2).mean() < (
        equal.range(*ends.T).standard_error ** 2
    ).mean()


def test_default_branching_is_the_papers():
    assert [best_branching((2**k,), False) for k in range(4, 13)] == [16, 32, 64, 128, 16, 23, 32, 46, 16]
    assert [best_branching((2**k,), True) for k in range(4, 12)] == [16, 32, 8, 12, 16, 23, 11, 13]
    assert best_branching((64, 64), True) == best_branching((64, 3), True) == 7  # with geometric budgets
    assert best_branching((1,), True) == best_branching((2,), True) == 2


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("H_3", {}, "no method 'H_3'; did you mean .*'H_2'.*\\? There are 'Flat', "),
        ("H_2", {"branching": 4}, "H_2 takes no branching; it takes budget"),
        ("Flat", {"budget": "equal"}, "Flat takes no budget"),
        ("H_b", {"repair": "whole"}, "H_b takes no repair; it takes branching, budget"),
        ("H_b^c", {"branching": 1}, "branching is 1"),
        ("H_b^c", {"repair": "rounded"}, "there is no 'rounded'; there are 'least squares', "),
        ("H_b^c", {"budget": "even"}, "no budget 'even'; there are 'equal', 'geometric', 'quadtree'"),
        ("H_b^c", {"branching": 4, "budget": [1, 2]}, "2 shares for 3 levels"),
        ("H_tree^c", {}, "H_tree\\^c measures the regions of a hierarchy: give one axis of names"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_noise(method, options, message):
    with pytest.raises(InputError, match=message):
        range_query(Histogram.of(np.arange(50)), 1.0, Undrawn(), method, **options)


def test_optimized_budgets_need_a_cube_and_a_branching_factor():
    oblong = Histogram.of(np.zeros((8, 4), int))
    with pytest.raises(InputError, match="equally many bins along each axis"):
        range_query(oblong, 1.0, method="H_2^c", budget="optimized")
    with pytest.raises(InputError, match="needs a tree with one branching factor"):
        range_query(data_for("H_tree", np.ones(6, int)), 1.0, method="H_tree", budget="geometric")
    for bad in (0, -1, float("nan"), "x"):
        with pytest.raises(InputError, match="epsilon"):
            range_query(oblong, bad)


def test_trees_and_boxes_round_trip():
    for shape, b in [((1,), 2), ((5,), 2), ((4, 3), 2), ((7, 5), 3), ((3, 2, 2), 2), ((6, 1), 4)]:
        made = grid_tree(shape, b)
        assert made.bins == np.prod(shape)
        assert (np.prod(made.high - made.low, axis=1)[made.tree.leaves] == 1).all()
        back = tree_of_boxes(shape, made.tree.level, made.low, made.high)
        assert all(np.array_equal(x, y) for x, y in zip(back.tree.levels, made.tree.levels, strict=True))
        # Children partition their parent.
        held = made.tree.sum_up(np.ones(made.bins, int))
        assert (np.prod(made.high - made.low, axis=1) == held).all()
        parent = made.tree.parent[1:]
        assert (made.low[1:] >= made.low[parent]).all()
        assert (made.high[1:] <= made.high[parent]).all()
    with pytest.raises(InputError, match="not a grid"):
        tree_of_boxes((2,), np.array([0, 1, 1]), np.array([[0], [0], [0]]), np.array([[2], [1], [2]]))
    with pytest.raises(InputError, match="the last level's boxes are not the bins"):
        tree_of_boxes((3,), np.array([0, 1, 1]), np.array([[0], [0], [1]]), np.array([[3], [1], [3]]))
    with pytest.raises(InputError, match="make a tree of"):
        grid_tree((2**14, 2**14), 2)


def test_the_largest_tree_is_still_made(monkeypatch):
    monkeypatch.setattr(trees, "MOST_NODES", 1 + 2 + 3 + 5)
    assert grid_tree((5,), 2).tree.size == trees.MOST_NODES
    with pytest.raises(InputError, match="a tree of 12 nodes"):
        grid_tree((6,), 2)


def test_ragged_hierarchy_is_measured_by_region():
    runs = hierarchy_tree(PLACES)
    assert runs.low[1:4, 0].tolist() == [0, 2, 5]
    noise = NoNoise()
    # In the order of the tree: v, x (A); u, w, z (B); y (C).
    made = range_query(data_for("H_tree^c", [1, 2, 3, 4, 5, 6]), 1.0, noise, "H_tree^c")
    assert [a.tolist() for a, _, _ in noise.queried] == [[3, 12, 6], [1, 2, 3, 4, 5, 6]]
    assert made.table.region.tolist() == ["all", "A", "B", "C", "v", "x", "u", "w", "z", "y"]
    assert made.table.level_name.tolist() == ["root", *["state"] * 3, *["town"] * 6]
    assert made.table["count"].round(6).tolist() == [21, 3, 12, 6, 1, 2, 3, 4, 5, 6]
    assert made.table.town_from.tolist()[1:4] == ["v", "u", "y"]
    assert made.table.town_to.tolist()[1:4] == ["x", "z", "y"]
    assert made.settings["hierarchies"] == {"town": ["root", "state", "town"]}


def test_only_measured_regions_are_named():
    """Boxes that only happen to be as many as the regions of each level once had the regions' names."""
    places = Hierarchy.from_columns({"state": list("AAAB"), "town": list("uvwx")}, ["state", "town"])
    data = Histogram(np.arange(4), (Names.of("town", places),))
    boxes = range_query(data, 1.0, SimulatedNoise(0), "H_2").table
    assert boxes["level"].tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert boxes["town_to"].tolist()[1:3] == ["v", "x"]  # no region
    assert "region" not in boxes
    for method, hierarchy in (("H_tree", places), ("Flat", Hierarchy.flat("town", list("uvwx")))):
        data = Histogram(np.arange(4), (Names.of("town", hierarchy),))
        assert "region" in range_query(data, 1.0, SimulatedNoise(0), method).table


def test_a_share_of_0_leaves_a_level_of_a_grid_out():
    data = Histogram.of(np.arange(8))
    made = range_query(data, 1.0, SimulatedNoise(0), "H_2^c", budget=[0, 3, 1])
    assert [(one.spend.epsilon, one.answers.size) for one in made.measurements] == [(0.75, 4), (0.25, 8)]
    assert made.settings["shares"] == [0, 3, 1]
    with pytest.raises(InputError, match="the last share is that of the bins, which are always measured"):
        range_query(data, 1.0, SimulatedNoise(0), "H_2^c", budget=[1, 3, 0])
    with pytest.raises(InputError, match="share 0 is 0"):
        range_query(data_for("H_tree", np.ones(6, int)), 1.0, method="H_tree", budget=[0, 1])


def test_the_released_table():
    made = range_query(Histogram.of(np.full(9, 50), "age"), 1.0, SimulatedNoise(3), "H_b^c", branching=3)
    table = made.table
    assert table.columns.tolist() == [
        "level", "age_first", "age_end", "age_from", "age_to", "noise_variance", "count", "standard_error",
    ]  # fmt: skip
    assert table.level.tolist() == [0, *[1] * 3, *[2] * 9]
    assert table.noise_variance.isna().tolist() == [True] + [False] * 12
    counts = table["count"].to_numpy()
    assert counts[0] == pytest.approx(counts[1:4].sum()) == pytest.approx(counts[4:].sum())
    assert len(made.steps) == 1
    data = Histogram.of(np.full(9, 50), "age")
    unrepaired = range_query(data, 1.0, SimulatedNoise(3), "H_b", branching=3)
    noisy, plain = np.concatenate([level.answers for level in made.measurements]), unrepaired.table
    assert plain["count"].tolist() == [noisy[:3].sum(), *noisy]
    assert plain.standard_error[0] == pytest.approx(np.sqrt(3 * plain.noise_variance[1]))


def test_repairs_keep_their_promises():
    rng = np.random.default_rng(5)
    counts = (rng.pareto(1, 200) * (rng.random(200) < 0.2)).astype(int)
    found, models = {}, {}
    for budget in ("equal", "geometric"):
        for repair in REPAIRS:
            made = range_query(
                Histogram.of(counts),
                0.3,
                SimulatedNoise(1),
                "H_b^c",
                branching=6,
                budget=budget,
                repair=repair,
            )
            found[repair] = made.table["count"].to_numpy()
            assert made.manifest()["all_proved_optimal"]
            assert made.settings["repair"] == repair
            models[repair] = made.steps[-1].model
        least = found["least squares"]
        assert least.min() < -1
        for repair in REPAIRS[1:]:
            assert found[repair].min() >= 0
            assert repair.startswith("whole") == (found[repair].dtype == np.int64)
            total = round(least[0])
            if repair.endswith("free total"):
                assert found[repair][0] > total  # a bias that a known total removes
            else:
                assert found[repair][0] == pytest.approx(total)
        variance = np.array([double_geometric_variance(spend.scale) for spend in made.ledger.spends])
        whole = np.rint(1000 * variance.max() / variance).astype(int)
        whole //= np.gcd.reduce(whole)
        assert list(dict.fromkeys(np.asarray(models["whole, free total"].weights).tolist())) == [
            0, *dict.fromkeys(whole)
        ]  # fmt: skip
        for repair in ("whole", "non-negative"):
            assert np.asarray(models[repair].weights).tolist()[1:] == whole.tolist()


def test_coefficients_are_whole_and_invertible():
    rng = np.random.default_rng(6)
    for shape in [(1,), (2,), (3,), (8,), (13,), (4, 3), (5, 1, 2)]:
        counts = rng.integers(0, 2**40, shape)
        found = coefficients(counts)
        assert found.dtype == np.int64
        assert found.shape == shape
        assert found.flat[0] == counts.sum()
        assert (counts_of(found) == counts).all()
        units = np.eye(counts.size, dtype=np.int64).reshape(-1, *shape)
        assert max(np.abs(coefficients(unit)).sum() for unit in units) == sensitivity(shape)


def test_through_release():
    people = pd.DataFrame(
        {"age": [3, 17, 18, 64, 70], "state": ["B", "A", "A", "C", "B"], "n": [2, 1, 1, 1, 1]}
    )
    made = release(
        people, "range-query", epsilon=50, axes=[Numbers("age", 0, 80, 8)], count="n", method="H_b^c"
    )
    assert made.ledger.private
    assert made.ledger.spent <= 50
    assert made.range(0, 8).estimate == pytest.approx(6, abs=2)
    assert made.mechanism == "H_b^c"
    named = release(people, "range-query", epsilon=50, axes=[("state", ["state"])], method="Flat",
        noise=SimulatedNoise(0), regions_from_data=True)  # fmt: skip
    assert named.taken_as_public["regions"] == "as seen in the data, which makes them public"
    assert named.range(0, 3).estimate == pytest.approx(5, abs=1)
    assert named.manifest()["warning"].startswith("SIMULATED NOISE")
    with pytest.raises(InputError, match="two axes have the same name"):
        release(people, "range-query", epsilon=1, axes=[Numbers("age", 0, 80), Numbers("age", 0, 90)])


@pytest.mark.parametrize("method", METHODS)
def test_budget_so_large_that_noise_is_zero(method):
    """Variances below the range of floats once caused a traceback."""
    for shape in shapes_for(method):
        counts = np.arange(math.prod(shape)).reshape(shape)
        made = range_query(data_for(method, counts), 1e6, SimulatedNoise(1), method)
        every = made.box(np.zeros((1, len(shape)), int), np.array([shape]))
        # The matrix method's answers are multiples of 2^-20: there, the noise is small, but not zero.
        assert every.estimate == pytest.approx([counts.sum()], abs=1e-4 if method == "matrix" else None)


@pytest.mark.parametrize("repair", ["least squares", "non-negative", "whole", "whole, free total"])
def test_counts_beyond_floats_are_refused_where_floats_answer(repair):
    """No answer in floats could be proved, and this was once reported as a bug ("please report this")."""
    data = Histogram.of(np.full(4, 2**44), "x")
    if repair == "whole, free total":
        made = range_query(data, 1.0, SimulatedNoise(1), repair=repair)
        assert made.steps[0].proved.proved_optimal
        return
    with pytest.raises(NotSolved, match=r"too large for proofs in floats: count in larger units, or use"):
        range_query(data, 1.0, SimulatedNoise(1), repair=repair)
