"""Intervals from measurements: widths by enumeration, weights by dense algebra, and their coverage."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import Hierarchy, InputError, Numbers, SimulatedNoise, release, repair
from hierdp import open as open_release
from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.cli import main
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.count_of_counts import MECHANISM as COUNTS
from hierdp.mechanisms.intervals import half_width, interval, tree_estimate
from hierdp.mechanisms.range_query.reading import answers_in
from hierdp.mechanisms.registry import released_by
from hierdp.mechanisms.repair.table import given_of
from hierdp.mechanisms.tabulation.tree_estimate import FIXED
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC
from hierdp.privacy.noise import double_geometric_variance
from hierdp.questions.intervals import accuracy_of, boxes_of, with_intervals
from hierdp.questions.tables import Questions
from hierdp.record import written
from hierdp.record.written import ReleaseFolder
from hierdp.tables import Flows
from models import ConstrainedInference, Tree
from solvers import fast
from tests.marks import quick

TRIPS = pd.DataFrame(
    [(f"{a}{i}", a, f"{b}{j}", b, 400 + 100 * i) for a in "AB" for i in (0, 1) for b in "AB" for j in (0, 1)],
    columns=["from", "from_state", "to", "to_state", "n"],
)  # fmt: skip
AXES = {"origin": ["from_state", "from"], "destination": ["to_state", "to"]}
TRIP_OPTIONS = {"axes": AXES, "count": "n", "delta": 1e-6, "regions_from_data": True}
TABLE_OPTIONS = {
    "attributes": ["to_state"],
    "attributes_from_data": True,
    "levels": ["from_state", "from"],
    "count": "n",
    "delta": 1e-6,
    "regions_from_data": True,
}


def trips(method="InfTDA", **more):
    noise = SimulatedNoise(1)
    return release(TRIPS, "top-down", epsilon=1, noise=noise, method=method, **{**TRIP_OPTIONS, **more})


def as_written(made):
    return ReleaseFolder(made.manifest(), made.counts, dict(made.regions), made.measurements)


def ends(made, texts, confidence=0.9):
    """The intervals of questions to a release; shape (2, questions)."""
    there = made if isinstance(made, ReleaseFolder) else as_written(made)
    questions = Questions(there.table, there.manifest["settings"], there.regions)
    found = accuracy_of(there, [questions.selection(text) for text in texts], confidence)
    return np.array([found["lower"], found["upper"]])


def law(noise, scale):
    """The probabilities of −k … k; what is beyond is below 1e-12."""
    k = np.arange(-int(60 * max(scale, 1)), int(60 * max(scale, 1)) + 1)
    mass = np.exp(-np.abs(k) / scale if noise == GEOMETRIC else -(k**2) / (2 * scale**2))
    return mass / mass.sum()


@pytest.mark.parametrize("noise", [GEOMETRIC, GAUSSIAN])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_sums_of_noise_exceed_the_half_width_as_rarely_as_it_says(noise, confidence):
    for scale in (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.6, 2.4, 3.7, 10.0, 25.0):
        variance = scale**2 if noise == GAUSSIAN else double_geometric_variance(scale)
        one = mass = law(noise, scale)
        for number in range(1, 5):
            away = np.abs(np.arange(mass.size) - mass.size // 2)
            half = half_width(number * variance, 1 - confidence, [noise])
            assert mass[away <= half].sum() >= confidence - 1e-12  # the sum's rounding
            mass = np.convolve(mass, one)
    assert half_width(0.0, 0.1) == 0


def test_an_interval_has_whole_ends_within_what_is_public():
    assert interval(3.4, 5.2, 5.2) == (0, 8)
    assert interval(9.0, 2.0, 2.0) == (7, 11)
    assert interval(9.0, 2.0, 2.0, 8, 10) == (8, 10)
    assert interval(-9.0, 4.0, 4.0) == (0, 0)  # the true count is at least 0, so the noise was this large
    assert interval(30.0, 4.0, 4.0, 0, 20) == (20, 20)
    assert interval(0.1 + 0.2, 0.3, 0.3)[0] == 0  # an end is not cut off by rounding


@pytest.mark.parametrize("seed", range(8))
def test_the_weights_of_a_tree_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = Tree.random(rng, int(rng.integers(0, 4)), 3, ragged=bool(seed % 2))
    variance = rng.choice([0.5, 1.0, 4.0], tree.size)
    level = int(rng.integers(0, tree.depth + 1))
    if level < tree.depth:
        variance[tree.internal[rng.random(tree.internal.size) < 0.3]] = np.inf
    nodes = np.arange(tree.size)[tree.nodes_of(level)]
    chosen = np.zeros(tree.size, bool)
    chosen[nodes[np.isfinite(variance[nodes]) & (rng.random(nodes.size) < 0.7)]] = True
    leaves = np.eye(tree.leaves.size, dtype=np.int64)
    rows = np.array([tree.sum_up(leaf) for leaf in leaves]).T.astype(float)  # nodes by leaves
    information = rows.T @ (rows / variance[:, None])
    wanted = chosen.astype(float) @ rows
    best = np.linalg.solve(information, wanted)
    weights, estimate = tree_estimate(tree, variance, chosen)
    np.testing.assert_allclose(weights, rows @ best / variance, atol=1e-9)  # sums of some ten numbers near 1
    assert estimate.variance == pytest.approx(wanted @ best, abs=1e-9)
    assert estimate.slack < 1e-9
    assert np.abs(weights @ rows - wanted).max() < 1e-9


def tabulated(method="GLS", noise=None, **more):
    noise = noise or SimulatedNoise(3)
    options = {**TABLE_OPTIONS, "queries": ["total", "to_state"], "method": method, **more}
    return release(TRIPS, "tabulation", epsilon=1, noise=noise, **options)


@pytest.mark.parametrize("queries", [["total", "to_state"], ["to_state"]])
@pytest.mark.parametrize(
    "text", ["", "from_state=A", "from=A0|B1; to_state=A", "from=A1", "from_state=B; to_state=B"]
)
def test_the_weights_of_tables_are_those_of_least_squares(text, queries):
    made = as_written(tabulated(queries=queries))
    source = MECHANISMS["tabulation"].intervals_of(made)
    tree, workload = source.tree, source.model.workload
    questions = Questions(made.table, made.manifest["settings"], made.regions)
    selection = questions.selection(text)
    ((_, regions),) = selection.regions.items()
    nodes = np.zeros(tree.size, bool)
    nodes[tree.nodes_of(selection.level)] = regions
    cells = source._cells(selection).astype(float)
    weights, value, variance = source._weighted(nodes, cells, selection.level)
    noisy, each = source.model.data
    every = np.kron(np.eye(tree.leaves.size), np.eye(workload.cells))
    rows = np.array(
        [
            workload.answers(np.asarray(tree.sum_up(one.reshape(tree.leaves.size, -1)), float)).ravel()
            for one in every
        ]
    ).T
    weight = workload.by_answer(each)[tree.level].ravel()
    wanted = np.array(
        [(np.asarray(tree.sum_up(one.reshape(tree.leaves.size, -1)))[nodes] @ cells).sum() for one in every]
    )
    best = np.linalg.solve(rows.T @ (rows * weight[:, None]), wanted)
    np.testing.assert_allclose(weights.ravel(), weight * (rows @ best), atol=1e-8)  # public sums weigh 2^16
    assert variance == pytest.approx(wanted @ best, rel=1e-6, abs=1e-4)
    assert value == pytest.approx(float((weights * noisy).sum()))


def test_least_squares_own_answers_have_the_same_errors():
    made = tabulated()
    questions = Questions(made.table, made.manifest()["settings"], made.regions)
    text = "from=A0; to_state=B"
    low, high = ends(made, [text])[:, 0]
    answer = questions.ask(text)
    away = 1.6448536 * answer.standard_error + 0.5
    assert (low, high) == (math.ceil(answer.estimate - away), math.floor(answer.estimate + away))


def of_tables_from_noise(made, texts):
    """By least squares over all regions: what a unit of noise on each answer adds to each answer."""
    model = MECHANISMS["tabulation"].intervals_of(made).model
    noisy, each = model.data
    weight = model.workload.by_answer(np.asarray(each, float))[model.tree.level]
    weight[weight >= 1 / FIXED] = 0  # public: no noise
    units = []
    for at in np.argwhere(weight > 0):
        unit = np.zeros(noisy.shape)
        unit[tuple(at)] = 1
        units.append(np.ravel(fast.answer(replace(model, noisy=unit))[0]))
    every = tabulated("GLS").table  # which has all cells
    settings = made.manifest["settings"]
    added = [Questions(every.assign(count=unit), settings, made.regions) for unit in units]
    return [[table.ask(text).estimate for text in texts] for table in added], 1 / weight[weight > 0]


def of_repairs_from_noise(made, texts):
    given = given_of(made.table, made.regions["region"])
    tree, there = given.hierarchy.tree, np.flatnonzero(given.measured)
    units = [
        fast.answer(ConstrainedInference(tree, np.eye(tree.size)[at], given.variance))[0] for at in there
    ]
    settings = made.manifest["settings"]
    added = [Questions(made.table.assign(count=unit), settings, made.regions) for unit in units]
    return [[table.ask(text).estimate for text in texts] for table in added], given.variance[there]


def of_ranges_from_noise(made, texts):
    answers = answers_in(made.table, made.manifest["settings"])
    source = answers.source
    there = np.flatnonzero(np.isfinite(source.variance))
    tree, ends = source.boxes.tree, np.array([list(map(int, text.split(":"))) for text in texts])
    units = [
        fast.answer(ConstrainedInference(tree, np.eye(tree.size)[at], source.variance))[0] for at in there
    ]
    added = [replace(answers, source=replace(source, counts=unit)) for unit in units]
    return [one.range(*ends.T).estimate for one in added], source.variance[there]


def repaired():
    rows = [("A", None, 100, 12.0), ("A", "A1", 40, 3.0), ("A", "A2", 70, 4.0), ("B", "B1", 5, 2.0)]
    counts = pd.DataFrame([*rows, (None, None, 120, 2.0)], columns=["county", "town", "n", "error"])
    return repair(
        counts, levels=["county", "town"], count="n", standard_error="error", method="least-squares"
    )


def ranges():
    ages = pd.DataFrame({"age": np.repeat(np.arange(30), 7)})
    axes = [Numbers("age", 0, 30, 30)]
    return release(ages, "range-query", epsilon=1, axes=axes, noise=SimulatedNoise(1))


SUMS = ["", "from_state=A", "from=A0|B1; to_state=A", "from=A1|A0; to_state=B", "from=A0"]


@pytest.mark.parametrize(
    ("made", "from_noise", "texts", "column"),
    [
        (partial(tabulated, "GLS"), of_tables_from_noise, SUMS, "standard_error"),
        (partial(tabulated, "GLS", bounded=False), of_tables_from_noise, SUMS, "standard_error"),
        (partial(tabulated, "BlueDown", bounded=False), of_tables_from_noise, SUMS, "unbiased_error"),
        (repaired, of_repairs_from_noise, ["", "town=A1|B1", "county=A", "town=A2"], "standard_error"),
        (ranges, of_ranges_from_noise, ["0:30", "3:17", "29:30", "4:4"], "standard_error"),
    ],
)
def test_sums_have_the_standard_errors_of_2000_runs(made, from_noise, texts, column, tmp_path):
    path = made().write(tmp_path / "out")
    more = {"unbiased": True} if column == "unbiased_error" else {}
    stated = open_release(path).query(texts, **more)[column].to_numpy()
    added, variance = map(np.asarray, from_noise(written.read(path), texts))
    runs = np.random.default_rng(7).normal(size=(2_000, variance.size)) * np.sqrt(variance)
    seen = (runs @ added).std(axis=0)
    np.testing.assert_allclose(seen, stated, rtol=0.08, atol=0.02)  # 5 deviations of 1/√4000; public sums
    # The stated ones are exact, but that those of answers that public sums fix are taken as 0.
    np.testing.assert_allclose(np.sqrt(variance @ added**2), stated, rtol=1e-4, atol=0.02)


def test_public_sums_have_no_error_whatever_the_method():
    for method in ("GLS", "TopDown", "BlueDown"):
        made = as_written(tabulated(method, invariants=["from_state:total"]))
        questions = Questions(made.table, made.manifest["settings"], made.regions)
        texts = ["", "from_state=A", "from=A0|A1", "from=A0|B0", "from_state=A; to_state=B"]
        errors = accuracy_of(made, list(map(questions.selection, texts)))["standard_error"]
        assert errors[:3] == [0, 0, 0]
        assert all((error > 1) if method == "GLS" else math.isnan(error) for error in errors[3:])
    counts = pd.DataFrame({"county": [None, "a", "b"], "n": [9, 3, 4], "error": [1, 1, 2]})
    made = repair(counts, levels=["county"], count="n", standard_error="error", fixed=["root"])
    there = as_written(made)
    questions = Questions(there.table, there.manifest["settings"], there.regions)
    found = accuracy_of(there, list(map(questions.selection, ["", "county=a|b", "county=a"])), 0.9)
    assert found["standard_error"][:2] == [0, 0]
    assert math.isnan(found["standard_error"][2])
    assert found["lower"][:2] == found["upper"][:2] == [9, 9]
    there = as_written(trips())
    questions = Questions(there.table, there.manifest["settings"], there.regions)
    texts = ["", "origin=A0|A1|B0|B1", "origin=A0"]
    errors = accuracy_of(there, list(map(questions.selection, texts)))["standard_error"]
    assert errors[:2] == [0, 0]
    assert math.isnan(errors[2])


def test_public_counts_have_no_error():
    made = tabulated("TopDown", invariants=["from_state:total"])
    there = TRIPS[TRIPS["from_state"] == "A"]["n"].sum()
    assert ends(made, ["from_state=A"])[:, 0].tolist() == [there, there]
    assert ends(made, [""])[:, 0].tolist() == [TRIPS["n"].sum()] * 2
    assert ends(trips(), [""])[:, 0].tolist() == [TRIPS["n"].sum()] * 2


def chain(people, epsilon, seed):
    """Flows along a chain: a place alone in its county alone in its state, and one with many people."""
    places = Hierarchy.from_columns(
        {"state": ["A", "B"], "county": ["A1", "B1"], "place": ["A11", "B11"]}, ["state", "county", "place"]
    )
    data = Flows((places,), ("origin",), np.array([[0], [1]]), np.array([people, 10_000]))
    return top_down(data, epsilon, 1e-6, SimulatedNoise(seed))


@pytest.mark.parametrize("people", [20, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 13, 27, 60))])
def test_a_count_that_is_released_as_0_above_is_covered_too(people):
    """Counts about as large as the noise may be lost on each level; the worst ones lie at its quantiles."""
    runs, lost, covered, missed = 200, 0, 0, 0
    for seed in range(runs):
        made = chain(people, 1.0, seed)
        low, high = ends(made, ["place=A11"])[:, 0]
        covered += low <= people <= high
        if not (made.table["origin"] == "A11").any():
            lost += 1
            missed += high < people
    assert lost > 0 or people > 20
    assert missed <= lost / 4  # its noise is low, as it was lost, but seldom beyond the part of a miss for it
    assert covered >= 0.9 * runs - 3 * math.sqrt(0.09 * runs)  # a chance of 1 in 700, for these seeds not met


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_flows_are_covered_at_every_size_and_level(confidence):
    rng = np.random.default_rng(5)
    names = [f"{a}{i}" for a in "ABC" for i in range(4)]
    places = Hierarchy.from_columns({"state": [n[0] for n in names], "county": names}, ["state", "county"])
    cells = np.stack(np.unravel_index(np.arange(144), (12, 12)), axis=1)
    counts = rng.choice([0, 0, 1, 4, 12, 30, 500], 144)
    data = Flows((places, places), ("origin", "destination"), cells[counts > 0], counts[counts > 0])
    texts = [f"origin={names[i]}; destination={names[j]}" for i, j in cells.tolist()]
    sums = ["origin.state=A", "destination.state=B", "origin.county=A1", "destination.county=C2"]
    sums += ["origin.county=A0|B0|C0; destination.county=A1|A2", "origin.state=C; destination.state=C"]
    square = counts.reshape(12, 12)
    truth = [*counts, square[:4].sum(), square[:, 4:8].sum(), square[1].sum(), square[:, 10].sum()]
    truth += [square[[0, 4, 8]][:, [1, 2]].sum(), square[8:, 8:].sum()]
    runs = 150
    covered = np.zeros(len(truth))
    for seed in range(runs):
        low, high = ends(top_down(data, 1.0, 1e-6, SimulatedNoise(seed)), [*texts, *sums], confidence)
        covered += (low <= truth) & (truth <= high)
    share = covered / runs
    spread = math.sqrt(confidence * (1 - confidence) / runs)
    for size in np.unique(counts):
        of_size = share[:144][counts == size]
        # Cells of one size share parents; at worst their errors are one error.
        assert of_size.mean() >= confidence - 3 * spread, size
    assert share[144:].min() >= confidence - 3.5 * spread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("top-down", {**TRIP_OPTIONS, "method": "TDA", "shares": [1, 2, 3, 4], "first": "origin"}),
        ("top-down", {**TRIP_OPTIONS, "bounded": False, "trips": 2}),
        ("tabulation", {**TABLE_OPTIONS, "method": "BlueDown"}),
    ],
)
def test_counts_are_released_again_by_the_same_mechanism(mechanism, options):
    made = release(TRIPS, mechanism, epsilon=1e6, noise=SimulatedNoise(1), **options)
    function = released_by(made.mechanism).bootstrap
    again = function(made.table, made.manifest(), made.regions, SimulatedNoise(2))
    pd.testing.assert_frame_equal(again, made.table)  # next to no noise: the released counts come back
    options["method"] = made.mechanism
    less = release(TRIPS, mechanism, epsilon=1, noise=SimulatedNoise(1), **options)
    first = function(less.table, less.manifest(), less.regions, SimulatedNoise(2))
    assert not first.equals(less.table)
    pd.testing.assert_frame_equal(
        first, function(less.table, less.manifest(), less.regions, SimulatedNoise(2))
    )


def test_every_cell_and_the_threshold():
    made = trips("VanillaGauss")
    texts = ["origin=A0; destination=B1", "origin=A; destination=B", "origin=A; destination.to=B1"]
    low, high = ends(made, texts)
    deviation = made.ledger.spends[0].scale
    for cells, width in zip((1, 4, 2), high - low, strict=True):
        assert abs(width - 2 * 1.645 * deviation * math.sqrt(cells)) < 3  # whole ends, and half a step each
    hidden = trips("SH", bounded=False)
    low, high = ends(hidden, ["origin=A0; destination=B1", "origin=A"])
    assert low[0] <= 400 <= high[0]
    assert np.isnan(low[1])
    none = replace(hidden, measurements=None)
    with pytest.raises(InputError, match=r"has no measurements.parquet"):
        ends(none, ["origin=A0; destination=B1"])


def sizes(method):
    groups = pd.DataFrame(
        {"group": range(60), "county": ["A1", "A2", "B1"] * 20, "state": ["A", "A", "B"] * 20}
    )
    rows = groups.loc[np.repeat(np.arange(60), np.arange(60) % 7 + 1)]
    options = {"levels": ["state", "county"], "group": "group", "max_size": 9, "method": method}
    options |= {"regions_from_data": True, "groups_from_data": True}
    return release(rows, "group-size", epsilon=3, noise=SimulatedNoise(2), **options)


@pytest.mark.parametrize("mechanism", ["tabulation", "group-size"])
def test_a_guarantee_for_persons_with_several_rows_has_intervals(mechanism):
    rows = TRIPS.drop(columns="n").loc[np.repeat(TRIPS.index, 9)].reset_index(drop=True)
    rows = rows.assign(who=rows.index // 2, home=rows.index % 30)
    options = {"person": "who", "rows_per_person": 2, "regions_from_data": True, "epsilon": 4}
    if mechanism == "tabulation":
        more = {name: TABLE_OPTIONS[name] for name in ("attributes", "attributes_from_data", "delta")}
        more |= {"queries": ["to_state"], "bounded": False}
    else:
        rows = rows.assign(home=rows["from"] + rows["home"].astype(str))
        more = {"group": "home", "groups_from_data": True, "max_size": 9}
    noise = SimulatedNoise(1)
    made = release(rows, mechanism, levels=["from_state", "from"], noise=noise, **options, **more)
    low, high = ends(made, ["from_state=A" + ("; size=1:4" if mechanism == "group-size" else "")])
    assert 0 <= low[0] < high[0]


@pytest.mark.parametrize(("method", "factor"), [("M_H^dp", 3), ("M_c^dp", 2)])
def test_groups_by_size_add_up_independent_answers(method, factor):
    """Sizes 1 to 3: three noisy counts, or the difference of two cumulative ones, of each level."""
    made = sizes(method)
    (places,) = made.regions.values()
    (low, every, wide), (high, same, most) = ends(made, ["county=A1; size=1:4", "", "county=A1; size=0:3"])
    assert (every, same) == (60, 60)
    one = double_geometric_variance(made.ledger.spends[0].scale)
    chosen = np.zeros(places.tree.size, bool)
    chosen[places.tree.nodes_of(2).start] = True
    _, estimate = tree_estimate(places.tree, np.full(places.tree.size, one), chosen)
    half = half_width(factor * estimate.variance, 0.1, [GEOMETRIC])
    assert high - low <= 2 * half
    assert high - low >= 2 * half - 2 or low == 0
    assert most >= wide


HOMES = pd.DataFrame({"group": range(90), "town": ["A1", "A2", "B1"] * 30, "state": ["A", "A", "B"] * 30})
HOMES = HOMES.loc[np.repeat(np.arange(90), np.arange(90) % 14 + 1 + 20 * (np.arange(90) % 9 == 0))]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "Hg"},
        pytest.param({"method": "Hg x Hc x naive"}, marks=pytest.mark.slow),
        pytest.param({"method": "bottom-up Hg", "smallest": 1}, marks=pytest.mark.slow),
        pytest.param({"method": "Hc", "group_budget": 0.5}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_groups_of_large_sizes_are_covered(options):
    """Of sizes 1 to 14, and of some about 20 larger; in all towns, and in sums of them."""
    texts = ["size=1:5", "town=A1; size=7", "town=A2|B1; size=2|5|9:13", "state=A; size=15:", "town=B1"]
    texts += ["town=B1; size=3:8", "state=B; size=0:4", "town=A1; size=40"]
    if "group_budget" not in options:
        options = {**options, "groups_from_data": True}
    common = {"levels": ["state", "town"], "group": ["town", "group"], "max_size": 60}
    make = partial(release, HOMES, "count-of-counts", **common, regions_from_data=True, **options)
    secret = "group_budget" in options
    exact = make(epsilon=1e7, noise=SimulatedNoise(0), **({"group_budget": 1e6} if secret else {}))
    questions = Questions(exact.table, exact.manifest()["settings"], exact.regions)
    truth = np.array([questions.ask(text).estimate for text in texts])
    assert truth[0] == (HOMES.groupby("group").size() < 5).sum()
    runs, covered, rows = 40, np.zeros(len(texts)), 0
    for seed in range(runs):
        made = make(epsilon=3, noise=SimulatedNoise(seed))
        low, high = ends(made, texts)
        covered += (low <= truth) & (truth <= high)
        if seed < 10:
            table = with_intervals(made, 0.9).table
            both = table.merge(
                exact.table, on=["level", "region", "size"], how="left", suffixes=("", "_true")
            )
            true = both["groups_true"].fillna(0)
            rows += ((both["lower"] <= true) & (true <= both["upper"])).all() / 10
    assert covered.min() >= 0.9 * runs - 4 * math.sqrt(0.09 * runs)
    assert covered.mean() >= 0.9 * runs
    assert rows >= 0.4  # the rows of each of six regions hold at once: 0.9⁶
    if not secret:
        assert ends(exact, texts)[:, 4].tolist() == [30, 30]
    assert (high - low)[:4].max() < 90


@pytest.mark.parametrize("seed", range(20))
def test_bounds_from_sizes_in_order_are_those_of_every_test(seed):
    """A number of groups of at most a size is kept if no block of sizes before or after it says otherwise."""
    rng = np.random.default_rng(seed)
    true = np.sort(rng.integers(0, 12, 30))
    rows = pd.DataFrame({"g": np.repeat(np.arange(30), true), "a": "x"})
    everything = pd.DataFrame({"g": np.arange(30), "a": "x"})
    options = {"levels": ["a"], "group": "g", "max_size": 12, "groups": everything}
    made = release(rows, "count-of-counts", epsilon=2, method="Hg", noise=SimulatedNoise(seed), **options)
    source = COUNTS.intervals_of(as_written(made))
    noisy, variance = source._of_node(0)[2:4]
    most = {m: half_width(m * variance, 0.2 / 3, [GEOMETRIC]) for m in (1, 4, 16)}
    for size in range(12):
        low, high = source._ranked(0, np.array([0]), np.array([size]), 0.2)
        below, above = (
            [
                k
                for k in range(31)
                if all(sign * (sum(part) - m * end) <= most[m] for m in most if len(part := block(k, m)) == m)
            ]
            for sign, end, block in (
                (1, size, lambda k, m: noisy[max(0, k - m) : k]),
                (-1, size + 1, lambda k, m: noisy[k : k + m]),
            )
        )
        assert (low, high) == (min(above), max(below))


def test_ranges_are_covered_before_counts_were_made_non_negative(tmp_path):
    data = pd.DataFrame({"age": np.repeat(np.arange(64), np.arange(64) % 5)})
    made = partial(release, data, "range-query", epsilon=1, axes=[Numbers("age", 0, 64, 64)])
    repaired = made(noise=SimulatedNoise(4), repair="whole").write(tmp_path / "whole")
    linear = made(noise=SimulatedNoise(4)).write(tmp_path / "linear")
    texts = ["0:64", "10:20", "33:34"]
    found, exact = (open_release(path).query(texts, confidence=0.9) for path in (repaired, linear))
    assert found[["lower", "upper"]].equals(exact[["lower", "upper"]])  # the same noise, before its repair
    away = half_width(exact["standard_error"][1] ** 2, 0.1, [GEOMETRIC])
    assert exact["upper"][1] == math.floor(exact["estimate"][1] + away)


@pytest.mark.parametrize("method", quick(["GS", "PHP", "NF", "AHP", "SF", "PrivTree", "DAWA"]))
def test_bins_and_boxes_of_clusters_are_covered(method, tmp_path):
    """Of NF, AHP and GS by the bins' own noise; of the others by sums of clusters, whose parts are within."""
    true = np.repeat([0, 3, 40, 41], 16)
    data = pd.DataFrame({"age": np.repeat(np.arange(64), true)})
    runs, boxes = 40, np.array([[0, 64], [3, 40], [33, 34], [10, 20]])
    rows, asked = 0.0, 0.0
    for seed in range(runs):
        noise = SimulatedNoise(seed)
        axes = [Numbers("age", 0, 64, 64)]
        made = release(data, "clustering", epsilon=1, axes=axes, method=method, noise=noise, confidence=0.9)
        rows += ((made.table["lower"] <= true) & (true <= made.table["upper"])).mean() / runs
        found = boxes_of(as_written(made), boxes[:, :1], boxes[:, 1:], 0.9)
        sums = np.array([true[low:high].sum() for low, high in boxes])
        asked += ((np.array(found["lower"]) <= sums) & (sums <= np.array(found["upper"]))).mean() / runs
    assert rows >= 0.9 - 3 * math.sqrt(0.09 / runs)  # of SF and others, a cluster's bins share an error
    assert asked >= 0.9 - 3 * math.sqrt(0.09 / runs)
    path = made.write(tmp_path / "out")
    low, high = open_release(path).query("3:40", confidence=0.9)[["lower", "upper"]].iloc[0]
    assert [low, high] == [found["lower"][1], found["upper"][1]]


@pytest.mark.parametrize(
    "made",
    [
        partial(tabulated, "GLS"),
        partial(tabulated, "BlueDown"),
        partial(tabulated, "TopDown", invariants=["from_state:total"]),
        partial(trips, "VanillaGauss"),
        partial(trips, "InfTDA"),
        partial(trips, "SH", bounded=False),
        partial(sizes, "M_c^dp"),
        partial(sizes, "M_H^r"),
    ],
)
def test_a_row_has_the_interval_of_its_question(made, tmp_path):
    """But for rounding, where an end is next to a whole number: the sums of weights have another order."""
    path = made().write(tmp_path / "out")
    table = open_release(path).intervals(0.8)
    regions = {"origin", "destination"} & set(table.columns) or {"region"}
    last = table[table["level"] == table["level"].max()]
    rows = last.iloc[:: max(1, len(last) // 12)]
    names = [name for name in table.columns if name in {*regions, "to_state", "size"}]
    texts = ["; ".join(f"{name}={row[name]}" for name in names) for _, row in rows.iterrows()]
    low, high = ends(written.read(path), texts, 0.8)
    assert np.abs(rows["lower"] - low).max() <= (1 if "to_state" in names else 0)
    assert np.abs(rows["upper"] - high).max() <= (1 if "to_state" in names else 0)
    done = CliRunner().invoke(main, ["query", str(path), "--confidence", "0.8", "--csv"])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == len(table) + 1


@pytest.mark.parametrize("method", ["estimate", "linear-programs"])
@pytest.mark.parametrize("made", [partial(tabulated, "BlueDown"), partial(sizes, "M_c^dp"), repaired])
def test_a_question_takes_one_solve(made, method, monkeypatch):
    """Its standard error, its unbiased estimate and its interval are of the same least squares."""
    there, calls, answer = as_written(made()), [], fast.answer
    monkeypatch.setattr(fast, "answer", lambda model: calls.append(model) or answer(model))
    questions = Questions(there.table, there.manifest["settings"], there.regions)
    (places,) = there.regions.values()
    chosen = [questions.selection(f"{places.levels[1]}={name}") for name in places.names[1][:2]]
    found = accuracy_of(there, chosen, 0.9, method=method, unbiased=True)
    assert len(calls) == len(chosen) == len(found["lower"]) == 2


@pytest.mark.parametrize("method", ["Hc", "Hg", "naive"])
def test_rows_of_count_of_counts_are_as_questions_that_hold_for_all_sizes(method):
    """The intervals of a region's rows cover all of its sizes at once."""
    rng = np.random.default_rng(2)
    homes = pd.DataFrame({"state": rng.choice(["A", "B"], 300), "home": rng.integers(0, 90, 300)})
    options = {"levels": ["state"], "regions_from_data": True, "groups_from_data": True, "max_size": 9}
    made = release(homes, "count-of-counts", epsilon=2, group=["state", "home"], method=method,
                   noise=SimulatedNoise(1), **options)  # fmt: skip
    there = as_written(made)
    rows = with_intervals(made, 0.9).table
    texts = [f"region={row['region']}; size={row['size']}" for _, row in rows.iterrows()]
    low, high = ends(there, texts, 1 - 0.1 / 10)
    assert len(rows) > 10
    assert rows["lower"].tolist() == low.tolist()
    assert rows["upper"].tolist() == high.tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"method": "Hc"},
        {"method": "Hc", "smallest": 1},
        {"method": "Hg x Hc x naive"},
        {"method": "bottom-up"},
        {"method": "Hc", "group_budget": 0.5},
        {"method": "naive", "group_budget": 0.1, "delta": 1e-6},
    ],
    ids=str,
)
def test_rows_of_a_level_at_once_are_those_of_each_region(options, monkeypatch):
    """One town has no groups."""
    towns = {"state": ["A", "A", "B", "B"], "town": ["A1", "A2", "B1", "B2"]}
    regions = Hierarchy.from_columns(towns, ["state", "town"])
    public = {
        "epsilon": 1,
        "regions": regions,
        "region": "town",
        "group": ["town", "group"],
        "max_size": 60,
    }
    if "group_budget" not in options:
        public["groups_from_data"] = True
    noise = SimulatedNoise(1)
    made = release(HOMES, "count-of-counts", noise=noise, **public, **options)
    source = COUNTS.intervals_of(as_written(made))
    levels = [level for level in range(3) if not source._by_region(level)]
    assert levels == (
        [1, 2] if " x " in options["method"] else [2] if "bottom" in options["method"] else [0, 1, 2]
    )
    at_once = source.rows(0.1, False, None)
    monkeypatch.setattr(type(source), "_by_region", lambda *_: True)
    apart = source.rows(0.1, False, None)
    assert at_once.value.size > 50
    assert at_once.value.tolist() == apart.value.tolist()
    assert at_once.down.tolist() == apart.down.tolist()


@pytest.mark.parametrize("method", ["InfTDA", "SH"])
def test_a_small_count_with_a_row_has_the_wider_interval_of_its_row(method):
    names = [f"{a}{i}" for a in "ABC" for i in range(4)]
    places = Hierarchy.from_columns({"state": [n[0] for n in names], "county": names}, ["state", "county"])
    cells = np.stack(np.unravel_index(np.arange(144), (12, 12)), axis=1)
    counts = np.random.default_rng(5).choice([0, 0, 0, 8, 20, 60], 144)
    data = Flows((places, places), ("origin", "destination"), cells[counts > 0], counts[counts > 0])
    made = top_down(data, 1.0, 1e-6, SimulatedNoise(1), method)
    table = with_intervals(made, 0.9).table
    rows = table[table["level"] == 4]
    pairs = zip(rows["origin"], rows["destination"], strict=True)
    low, high = ends(made, [f"origin={a}; destination={b}" for a, b in pairs])
    assert len(rows) > 5
    assert rows["lower"].tolist() == low.tolist()
    assert rows["upper"].tolist() == high.tolist()


def test_measurements_of_another_table_are_refused():
    made = trips()
    other = replace(made, counts=made.table.drop(index=2))
    with pytest.raises(InputError, match="has 2 answers, but 4 are recorded; see `hierdp check`"):
        ends(other, ["origin=A0; destination=B1"])
    with pytest.raises(InputError, match="between 0 and 1"):
        ends(made, ["origin=A"], confidence=90)
    counts = pd.DataFrame({"county": ["a", "b"], "n": [3, 4]})
    repaired = repair(counts, levels=["county"], count="n", method="whole")
    with pytest.raises(InputError, match="its counts were given without standard errors"):
        ends(repaired, ["county=a"])


@pytest.mark.parametrize("whole", [True, False])
def test_given_counts_with_errors_have_intervals_too(whole, tmp_path):
    """Two towns of county A, with standard errors 3 and 4 as 5 for both; the county itself has 12."""
    rows = [("A", None, 100, 12.0), ("A", "A1", 40, 3.0), ("A", "A2", 70, 4.0), ("B", "B1", 5, 2.0)]
    counts = pd.DataFrame(rows, columns=["county", "town", "n", "error"])
    counts["n"] = counts["n"] if whole else counts["n"] + 0.25
    options = {"count": "n", "standard_error": "error", "method": "non-negative"}
    made = repair(counts, levels=["county", "town"], **options)
    low, high = ends(made, ["county=A", "town=A2", "town=A1|B1", "town=B1"])
    deviation = [1 / math.sqrt(1 / 144 + 1 / 25)]  # both ways to count county A
    deviation += [math.sqrt(1 / (1 / 16 + 1 / (144 + 9))), math.sqrt(1 / (1 / 9 + 1 / (144 + 16)) + 4)]
    width = 2 * (1.6448536 * np.array(deviation) + 0.5)
    assert np.all(np.abs((high - low)[:3] - width) <= (2 if whole else 1e-5))  # whole ends lie inside
    assert low[3] == pytest.approx(2 if whole else 5.25 - 1.6448536 * 2 - 0.5)
    path = made.write(tmp_path / "out")
    table = open_release(path).intervals(0.9).set_index("region")
    assert table.loc["A2", ["lower", "upper"]].tolist() == pytest.approx([low[1], high[1]], abs=1e-5)


def test_the_command_prints_intervals_and_the_bound(tmp_path):
    made = trips()
    made.write(tmp_path / "out")

    def run(*words):
        done = CliRunner().invoke(main, ["query", str(tmp_path / "out"), *words, "--confidence", "0.9"])
        assert done.exit_code == 0, done.output
        return done.stdout

    words = ["--where", "origin=A1; destination=B0", "--where", "origin=A"]
    head, first, second = run(*words, "--csv").splitlines()
    assert head == "query,estimate,standard_error,lower,upper,bound"
    _, _, _, low, high, bound = first.split(",")
    assert 0 <= float(low) < float(high) < 1_000
    scales = [spend.scale for spend in made.ledger.spends]
    assert float(bound) == error_bound_by_nodes(scales, [2, 4, 8, 16], 0.05)
    assert second.endswith(",")  # the bound is on single counts
    shown = run(*words)
    assert "not known" in shown
    assert "with a probability of at least 90 %" in " ".join(shown.split())
