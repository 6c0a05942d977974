"""Recommendations: made-up tables have their shape, the method has the least error, the command exists."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import recommended, tables
from benchmarks.which_wins.rows import row
from hierdp.cli.app import main
from hierdp.errors import InputError
from hierdp.experiments.choosing import (
    DEPTH,
    QUESTIONS,
    ROUGHNESS,
    UNDECIDED,
    command_of,
    errors,
    methods,
    recommend,
    scaled,
    shape_of_bins,
    shape_of_flows,
    shape_of_groups,
)
from hierdp.experiments.choosing.made_up import made_up_bins, made_up_flows, made_up_groups
from hierdp.experiments.run import noise_for
from hierdp.mechanisms.clustering import METHODS
from hierdp.mechanisms.description import MethodInfo
from hierdp.mechanisms.expected import regions_of
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.registry import MECHANISMS
from hierdp.mechanisms.top_down import true_table
from hierdp.mechanisms.top_down.expected import flows_of
from hierdp.metrics.group_sizes import top_down_errors
from hierdp.privacy.budget import GAUSSIAN
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.noise import SimulatedNoise
from hierdp.tables import Flows
from hierdp.tables.binning import Histogram
from tests.marks import quick

AXES = {"origin": {"state": 3, "county": 9}, "destination": {"state": 3, "county": 9}}


@pytest.mark.parametrize(
    ("groups", "entities", "largest"), [(300, 900, 20), (50, 50, 9), (40, 800, 20), (5, 5, 1)]
)
@pytest.mark.parametrize("seed", range(5))
def test_made_up_groups_have_their_shape(groups, entities, largest, seed):
    places = regions_of(["state=2", "county=6"])
    made = made_up_groups(places, groups, entities, largest, seed)
    assert made.runs.groups[0] == groups
    assert made.runs.sizes.min() >= 1
    assert made.runs.sizes.max() <= largest
    # The mean of independent draws: six standard deviations, of at most half the range.
    assert abs(made.runs.people[0] - entities) <= 6 * groups**0.5 * largest / 2 * (entities > groups)
    children = places.tree.nodes_of(1)
    assert made.runs.groups[children].sum() == groups
    with pytest.raises(InputError, match="cannot have"):
        made_up_groups(places, groups, groups * largest + 1, largest)


def test_made_up_flows_and_bins_have_their_shape():
    for seed in range(5):
        made = made_up_flows(flows_of(AXES), 5000, 40, seed)
        assert (made.total, made.counts.size) == (5000, 40)
        assert made.counts.min() >= 1
        assert len({tuple(cell) for cell in made.cells.tolist()}) == 40
        for shape in ((200,), (20, 30)):
            counts = made_up_bins(shape, 3000, 77, seed)
            assert (counts.shape, counts.sum(), (counts > 0).sum()) == (shape, 3000, 77)
    for wrong in (0, 82):
        with pytest.raises(InputError, match="not empty: it must be from 1 to 81"):
            made_up_flows(flows_of(AXES), 5000, wrong)
    with pytest.raises(InputError, match="for at most 50,000,000"):
        made_up_flows(flows_of({"a": {"x": 10_000}, "b": {"x": 10_000}}), 10, 5)


SHAPES = {
    "groups": {"levels": ["state=2", "county=4"], "groups": 60, "total": 200, "max_size": 12},
    "flows": {"axes": AXES, "total": 900, "filled": 30},
    "bins": {"bins": 32, "total": 500, "filled": 20},
}


WAYS = {"groups": methods.ways_of_groups(), "flows": methods.ways_of_flows(), "bins": methods.ways_of_bins()}


def registered(kind, registry):
    """The methods in a registry that release a kind of table."""
    return {
        (mechanism.name, method.name) for mechanism in registry.values() for method in mechanism.methods
        if not {mechanism.name, method.name} & set(methods.NOT_FOR[kind])
    }  # fmt: skip


@pytest.mark.parametrize("kind", SHAPES)
def test_every_method_of_the_registry_is_ranked_or_does_not_release_the_table(kind):
    """Flows of one axis have no attributes for tabulation; those of several no one hierarchy for H_tree."""
    ways = WAYS[kind] | (methods.ways_of_flows(1) if kind == "flows" else {})
    assert {(way.mechanism, way.method) for way in ways.values()} == registered(kind, MECHANISMS)
    known = {name for one in MECHANISMS.values() for name in (one.name, *(m.name for m in one.methods))}
    assert set(methods.NOT_FOR[kind]) <= known
    assert {*methods.SAME, *methods.SAME.values(), *methods.MOST} <= known | {"at once"}


def test_a_new_method_is_ranked_without_another_line(monkeypatch):
    for name in ("clustering", "top-down", "group-size", "count-of-counts", "tabulation", "range-query"):
        old = MECHANISMS[name]
        monkeypatch.setitem(MECHANISMS, name, replace(old, methods=(*old.methods, MethodInfo("New", "", ""))))
    assert methods.ways_of_bins()["New"].command == "range-query --method New"
    ways = methods.ways_of_flows()
    assert {"New", "New, ε/2"} <= set(ways)
    assert methods.ways_of_groups()["top-down New"].command == "count-of-counts --method New"
    assert methods.ways_of_groups()["New"].command == "group-size --method New"


def test_mixes_of_deep_trees_change_once():
    def mixes(levels):
        return [tuple(name.split(" x ")) for name in methods.ways_of_groups(levels) if " x " in name]

    assert mixes(2) == [("Hc", "Hg"), ("Hg", "Hc")]
    assert len(set(mixes(3))) == 6
    assert ("Hc", "Hg", "Hc") in mixes(3)
    assert len(set(mixes(5))) == len(mixes(5)) == 8
    assert all(sum(a != b for a, b in pairwise(mix)) == 1 for mix in mixes(5))


def test_errors_of_mechanisms_that_measure_all_flows_are_those_of_their_rows():
    """Without noise, there are none; with noise, level by level, those of `top_down_errors`."""
    table = made_up_flows(flows_of({"a": {"s": 2, "c": 5}, "b": {"t": 6}}), 400, 12)
    true: Any = np.zeros((5, 6), np.int64)
    true[tuple(table.cells.T)] = table.counts
    ways = methods.ways_of_flows().items()
    names = [name for name, way in ways if way.mechanism != "top-down" and name != "Joint"]
    far = list(methods.errors_of_flows(table, 1e6, 1e-8, 1, lambda *_: SimulatedNoise(0), [
        "TopDown", "BlueDown", "Laplace, ε/2", "H_b, ε/2", "Wavelet, ε/2", "matrix, ε/2",
    ]))  # fmt: skip
    # Rounding of the matrix mechanism's strategy is made good by least squares, in floats.
    assert max(one.error for one in far if one.metric != "share of invented flows") < 1e-3
    noisy = methods.errors_of_flows(table, 1.0, 1e-8, 1, lambda *_: SimulatedNoise(3), names)
    found = pd.DataFrame([one._asdict() for one in noisy])
    shape = found.groupby("method").size()
    assert (set(shape.index), set(shape)) == (set(names), {4 * 3})
    counts = np.rint(METHODS["Laplace"].publish(true, 0.5, SimulatedNoise(3)).counts).reshape(5, 6)
    cells = np.argwhere(counts > 0).astype(np.int64)
    made = Flows(table.axes, table.axis_names, cells, counts[counts > 0].astype(np.int64))
    errors = top_down_errors(true_table(table), true_table(made))
    mine = found[(found.method == "Laplace, ε/2") & (found.metric == "share of invented flows")]
    assert mine.name.tolist() == errors.name[1:].tolist()
    last = mine[mine.level == 3].error.item()
    assert last == errors.false_discovery_rate[3] == ((counts > 0) & (true == 0)).sum() / (counts > 0).sum()
    states = np.add.reduceat(counts - true, [0, 3], axis=0)  # 5 counties in 2 states: 3 and 2
    by_state = found[(found.method == "Laplace, ε/2") & (found.metric == "L1") & (found.level == 2)]
    assert by_state.name.item() == "a s × b t"
    assert by_state.error.item() == np.abs(states).sum()


def test_ranges_of_trees_that_are_not_consistent_are_not_sums_of_bins():
    counts = np.repeat([5, 0, 9, 2], 16)
    by = {
        one.method: one.error
        for one in methods.errors_of_bins(
            counts, 0.1, 1, lambda *_: SimulatedNoise(1), ["H_2", "Flat", "Laplace"]
        )
        if one.metric == methods.RANGES
    }
    made = range_query(Histogram.of(counts), 0.1, SimulatedNoise(1), "H_2")
    ends = np.argwhere(np.less.outer(np.arange(65), np.arange(65)))
    true = np.concatenate([[0], np.cumsum(counts)])
    away = made.range(*ends.T)[0] - (true[ends[:, 1]] - true[ends[:, 0]])
    # 20,000 random ranges of 2,080: six standard deviations of their mean.
    assert abs(by["H_2"] - (away**2).mean()) < 6 * (away**2).std() / 19_000**0.5
    assert by["Flat"] == pytest.approx(by["Laplace"], rel=0.1)  # the same noise, all ranges or some


@pytest.mark.parametrize("kind", quick(("bins", "groups", "flows")))
def test_the_recommended_method_has_the_least_error(kind, monkeypatch):
    monkeypatch.setattr("hierdp.experiments.choosing.STEPS", (0.3,))
    monkeypatch.setattr("hierdp.experiments.choosing.ROUGH", (0.0, 1.0))
    monkeypatch.setitem(methods.MOST, "TDA_inf", 0)  # it takes seconds to start solvers
    question = list(QUESTIONS[kind])[1]
    found = recommend(kind, question, epsilon=1, runs=2, **SHAPES[kind])
    table = found.ranking
    assert table.method[0] == found.method
    assert table.error.tolist() == sorted(table.error)
    assert found.command == command_of(found.method, 1, None)
    assert table.alike[0]
    assert (table.low <= table.error).all()
    assert (set(table.method), found.left_out) == (
        set(WAYS[kind]) - {"TDA_inf"},
        ("TDA_inf",) * (kind == "flows"),
    )
    changed = {
        "groups": {"number of groups", DEPTH},
        "flows": {"cells that are not empty", DEPTH},
        "bins": {"bins that are not empty", ROUGHNESS},
    }
    assert set(found.flips.changed) == {"ε", *changed[kind]}
    assert (found.flips.keeps == (found.flips.method == found.method)).all()
    left_out = ["Not ranked, as too slow at this size: TDA_inf."] * (kind == "flows")
    undecided = not found.flips.keeps[found.flips.changed == ROUGHNESS].all()
    assert found.notes[3:] == [UNDECIDED] * undecided + left_out


@pytest.mark.slow
def test_with_a_delta_groups_are_ranked_under_zcdp_too(monkeypatch):
    """At equal (ε, δ); the errors are those of Gaussian noise of the ρ that it is converted to."""
    monkeypatch.setattr("hierdp.experiments.choosing.STEPS", ())
    shape = shape_of_groups(["state=2"], 60, 200, 12, None, None)
    every = list(errors(shape, 1.0, 1e-6, 1))
    pure, more = list(errors(shape, 1.0, None, 1)), [one for one in every if methods.ZCDP in one.method]
    assert [one for one in every if one not in more] == pure
    assert {one.method.removesuffix(methods.ZCDP) for one in more} == {one.method for one in pure}
    assert {one.method for one in pure} == set(methods.ways_of_groups(2))

    def noise(query, _):
        return noise_for(0, "groups", query, 0)

    again = methods.errors_of_groups(shape.table(0), 12, rho_of(1.0, 1e-6), 1, noise, law=GAUSSIAN)
    assert [one.error for one in again] == [one.error for one in more]
    found = recommend("groups", "counts by size", epsilon=1, delta=1e-6, runs=1, **SHAPES["groups"])
    assert len(found.ranking) == 2 * len(methods.ways_of_groups(3))
    assert command_of("M_c^dp, zCDP", 1, 1e-6) == "group-size --epsilon 1 --delta 1e-06"
    assert command_of("Laplace, ε/2", 1, None) == "clustering --method Laplace --epsilon 0.5"
    assert command_of("SH", 0.1, None) == "top-down --method SH --epsilon 0.1 --delta 1e-08"
    assert command_of("Hc x Hg", 2, None) == 'count-of-counts --method "Hc x Hg" --epsilon 2'
    with pytest.raises(InputError, match="delta"):
        recommend("groups", "counts by size", epsilon=1, delta=2, **SHAPES["groups"])


@pytest.mark.slow
def test_other_depths_have_the_same_finest_regions():
    shape = shape_of_groups(["state=4", "county=64"], 200, 900, 12)
    made = {depth: make().table(0).hierarchy for depth, make in shape.others[DEPTH]}
    assert {depth: places.tree.level_sizes.tolist() for depth, places in made.items()} == {
        2: [1, 64], 4: [1, 4, 16, 64],
    }  # fmt: skip
    flows = shape_of_flows(AXES, 900, 30)
    made = {depth: make().table(0) for depth, make in flows.others[DEPTH]}
    assert {depth: table.axes[1].tree.level_sizes.tolist() for depth, table in made.items()} == {
        2: [1, 9], 4: [1, 2, 4, 9],
    }  # fmt: skip
    assert {(table.total, table.counts.size) for table in made.values()} == {(900, 30)}
    # A level's name does not exist at other depths.
    shape = {"levels": ["state=2", "county=9"], "groups": 20, "total": 40, "max_size": 4}
    found = recommend("groups", "entities to move: county", epsilon=1, runs=1, **shape)
    assert DEPTH not in set(found.flips.changed)


@pytest.mark.slow
def test_predicted_errors_are_those_of_releases():
    counts = np.repeat([3, 0, 8, 1], 5)
    table = pd.DataFrame({"count": counts})
    found = recommend("bins", "bins", epsilon=0.5, bins=20, like=table, runs=3)
    for name in ("Laplace", "AHP"):
        errors = []
        for run in range(3):
            made = METHODS[name].publish(counts, 0.5, noise_for(0, "bins", "", run))
            errors.append(((made.counts - counts) ** 2).mean())
        shown = found.ranking.set_index("method").loc[name]
        assert shown.error == pytest.approx(np.mean(errors), rel=1e-12)
        # Student's 97.5 % quantile of two degrees of freedom
        assert shown.high - shown.error == pytest.approx(4.302653 * np.std(errors, ddof=1) / 3**0.5, rel=1e-6)
    assert set(found.flips.changed) == {"ε"}


def test_public_bins_are_brought_to_a_total():
    counts = np.array([40, 0, 1000, 7])
    assert scaled(counts, 2 * 1047).tolist() == [80, 0, 2000, 14]
    thinned = scaled(counts, 500)
    assert (thinned <= counts).all()
    assert abs(thinned.sum() - 500) < 6 * 1047**0.5 / 2  # six standard deviations, of at most half a person
    shape = shape_of_bins(4, 2 * 1047, like=pd.DataFrame({"count": counts}))
    assert shape.table(3).tolist() == [80, 0, 2000, 14]


def test_each_run_has_another_made_up_table():
    shape = shape_of_flows(AXES, 900, 30)
    tables = {shape.table(run).counts.tobytes() for run in range(5)}
    assert len(tables) == 5
    found = list(errors(shape_of_bins(16, 300), 1.0, 1e-8, 3))
    assert [one.run for one in found if one.method == "Laplace"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_public_table_of_each_kind(tmp_path, monkeypatch):
    monkeypatch.setattr("hierdp.experiments.choosing.STEPS", (3.0,))
    groups = pd.DataFrame({"state": list("AABB"), "county": list("abcc"), "size": [1, 3, 2, 2]})
    found = recommend("groups", "counts by size: state", levels=["state", "county"], like=groups, max_size=4,
                      epsilon=1, runs=1)  # fmt: skip
    assert len(found.ranking) == len(methods.ways_of_groups(3))
    trips = pd.DataFrame({"o": list("aab"), "d": list("xyx"), "count": [5, 1, 3]})
    trips.to_csv(tmp_path / "trips.csv", index=False)
    words = ["--axis", "origin=o", "--axis", "destination=d", "--like", str(tmp_path / "trips.csv")]
    done = CliRunner().invoke(
        main, ["plan", "flows", *words, "--for", "cells", "--epsilon", "1", "--runs", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "hierdp release " in done.output
    for name in methods.ways_of_flows():
        assert f"\n{name} " in done.output


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["groups", "--levels", "state:2", "--groups", "20", "--total", "50", "--max-size", "5",
          "--for", "entities to move: state"], "hierdp release "),
        (["flows", "--axis", "origin=s:3", "--axis", "destination=s:3", "--total", "90", "--for",
          "destination totals"], "hierdp release "),
        (["bins", "--bins", "4,4", "--total", "90", "--for", "ranges"], "hierdp release "),
        (["bins", "--bins", "4", "--for", "ranges"], "give 'total', or a public table"),
        (["bins", "--bins", "4", "--total", "9", "--for", "sums"], "there are"),
        (["bins", "--bins", "4x", "--total", "9", "--for", "bins"], "give a whole number, such as 4096"),
        (["groups", "--levels", "state", "--max-size", "5", "--for", "counts by size"], "need --like"),
        (["groups", "--levels", "state:2", "--groups", "9", "--total", "9", "--max-size", "5", "--for",
          "counts by size: town"], "no level 'town': choose one of 'root', 'state'"),
    ],
)  # fmt: skip
def test_the_command_line(words, shown):
    done = CliRunner().invoke(main, ["plan", *words, "--epsilon", "1", "--runs", "1"])
    assert (done.exit_code == 0) == shown.startswith("hierdp release"), done.output
    assert shown in " ".join(done.output.replace("│", " ").split()), done.output


ROWS = {
    "other": "another table of the same kind",
    "shape": "the shape alone",
}


def test_the_page_has_the_committed_rates():
    found = recommended.hits(pd.read_parquet(tables.RESULTS / "recommended.parquet"))
    good = found.times <= recommended.CLOSE
    rates, settings = (
        good.groupby([found.by, found.kind]).mean(),
        good.groupby(found.by).agg(["mean", "size"]),
    )
    assert settings["size"].to_dict() == {"other": 171, "shape": 384}
    page = Path(__file__).parents[2] / "docs/which-wins-where.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    for by, named in ROWS.items():
        each = [rates[by, kind] for kind in ("group sizes", "origin/destination", "histograms")]
        cells = [f"{100 * rate:.0f} %" for rate in [*each, settings["mean"][by]]]
        assert f"| {named} | {settings['size'][by]} | {' | '.join(cells)} |" in text


def test_hits_by_hand(monkeypatch):
    """The recommended method has the least predicted error; its measured error is over the least by 1.2."""
    about = {"kind": "histograms", "data": "a", "epsilon": 1.0, "metric": "KLD"}
    rows = [
        row(method=m, run=0, error=e, **about) for m, e in (("AHP", 1.2), ("NF", 1.0), ("Bayes bound", 0.1))
    ]
    monkeypatch.setattr(recommended, "read", lambda: pd.DataFrame(rows))
    predicted = pd.DataFrame(
        {"by": "other", "figure": "", "data": "a", "at": np.nan, "epsilon": 1.0, "level": 0, "metric": "KLD",
         "method": ["NF", "AHP"], "predicted": [5.0, 4.0]}
    )  # fmt: skip
    found = recommended.hits(predicted)
    assert found[["method", "kind"]].values.tolist() == [["AHP", "histograms"]]
    assert found.times.tolist() == pytest.approx([1.2])
