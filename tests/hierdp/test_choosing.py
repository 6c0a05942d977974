"""Recommendations: made-up tables have their shape, the method has the least error, the command exists."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import recommended
from benchmarks.which_wins.rows import row
from hierdp.choosing import (
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
from hierdp.choosing.made_up import made_up_bins, made_up_flows, made_up_groups
from hierdp.cli.app import main
from hierdp.errors import InputError
from hierdp.mechanisms.clustering import METHODS
from hierdp.mechanisms.expected import regions_of
from hierdp.mechanisms.top_down.expected import flows_of
from hierdp.privacy.budget import GAUSSIAN
from hierdp.privacy.conversion import rho_of
from hierdp.reproduce.runs import noise_for

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


@pytest.mark.parametrize("kind", SHAPES)
def test_the_recommended_method_has_the_least_error(kind):
    question = list(QUESTIONS[kind])[1]
    found = recommend(kind, question, epsilon=1, runs=2, **SHAPES[kind])
    table = found.ranking
    assert table.method[0] == found.method
    assert table.error.tolist() == sorted(table.error)
    assert found.command == methods.COMMANDS[found.method]
    assert table.alike[0]
    assert (table.low <= table.error).all()
    assert {"groups": 8, "flows": 6, "bins": 13}[kind] == len(table)
    changed = {
        "groups": {"number of groups", DEPTH},
        "flows": {"cells that are not empty", DEPTH},
        "bins": {"bins that are not empty", ROUGHNESS},
    }
    assert set(found.flips.changed) == {"ε", *changed[kind]}
    assert (found.flips.keeps == (found.flips.method == found.method)).all()
    undecided = not found.flips.keeps[found.flips.changed == ROUGHNESS].all()
    assert found.notes[3:] == [UNDECIDED] * undecided


def test_with_a_delta_groups_are_ranked_under_zcdp_too(monkeypatch):
    """At equal (ε, δ); the errors are those of Gaussian noise of the ρ that it is converted to."""
    monkeypatch.setattr("hierdp.choosing.STEPS", ())
    shape = shape_of_groups(["state=2"], 60, 200, 12, None, None)
    every = list(errors(shape, 1.0, 1e-6, 1))
    pure, more = list(errors(shape, 1.0, None, 1)), [one for one in every if methods.ZCDP in one.method]
    assert [one for one in every if one not in more] == pure
    assert {one.method.removesuffix(methods.ZCDP) for one in more} == {one.method for one in pure}

    def noise(query, _):
        return noise_for(0, "groups", query, 0)

    again = methods.errors_of_groups(shape.table(0), 12, rho_of(1.0, 1e-6), 1, noise, law=GAUSSIAN)
    assert [one.error for one in again] == [one.error for one in more]
    found = recommend("groups", "counts by size", epsilon=1, delta=1e-6, runs=2, **SHAPES["groups"])
    assert len(found.ranking) == 16
    assert command_of("M_c^dp, zCDP", 1e-6) == "group-size --delta 1e-06"
    with pytest.raises(InputError, match="delta"):
        recommend("groups", "counts by size", epsilon=1, delta=2, **SHAPES["groups"])


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


def test_a_public_table_of_each_kind(tmp_path):
    groups = pd.DataFrame({"state": list("AABB"), "county": list("abcc"), "size": [1, 3, 2, 2]})
    found = recommend("groups", "counts by size: state", levels=["state", "county"], like=groups, max_size=4,
                      epsilon=1, runs=1)  # fmt: skip
    assert len(found.ranking) == 8
    trips = pd.DataFrame({"o": list("aab"), "d": list("xyx"), "count": [5, 1, 3]})
    trips.to_csv(tmp_path / "trips.csv", index=False)
    words = ["--axis", "origin=o", "--axis", "destination=d", "--like", str(tmp_path / "trips.csv")]
    done = CliRunner().invoke(
        main, ["plan", "flows", *words, "--for", "cells", "--epsilon", "1", "--runs", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "hierdp release top-down" in done.output


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["groups", "--levels", "state:2", "--groups", "20", "--total", "50", "--max-size", "5",
          "--for", "entities to move: state"], "hierdp release "),
        (["flows", "--axis", "origin=s:3", "--axis", "destination=s:3", "--total", "90", "--for",
          "destination totals"], "hierdp release top-down"),
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
    "half": "half of the persons, trips or groups",
    "other": "another table of the same kind",
    "shape": "the shape alone",
}


def test_the_page_has_the_committed_rates():
    made = pd.read_parquet(recommended.RESULTS)
    found = recommended.hits(made[made.by.isin(list(ROWS))])
    good = found.times <= recommended.CLOSE
    rates, settings = (
        good.groupby([found.by, found.kind]).mean(),
        good.groupby(found.by).agg(["mean", "size"]),
    )
    assert settings["size"].to_dict() == {"half": 384, "other": 171, "shape": 384}
    page = Path(__file__).parents[2] / "docs/which-wins-where.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    for by, named in ROWS.items():
        each = [rates[by, kind] for kind in ("group sizes", "origin/destination", "histograms")]
        cells = [f"{100 * rate:.0f} %" for rate in [*each, settings["mean"][by]]]
        assert f"| {named} | {settings['size'][by]} | {' | '.join(cells)} |" in text
    assert f"at most {100 * recommended.ceiling(made):.0f} %" in text
    looked = recommended.hits(made[made.by.str.startswith("pilot ") | (made.by == "own")])
    each = 100 * (looked.times <= recommended.CLOSE).groupby(looked.by).mean()
    own = each.pop("own")
    assert len(each) == len(recommended.PILOTS)
    assert f"best in {each.min():.0f} % to {each.max():.0f} % of the settings" in text
    assert f"which is not private, in {own:.0f} %" in text


def test_the_ceiling_by_hand(monkeypatch):
    """One of two methods is the best of the bins as they are and shuffled, the other of the sorted bins."""
    about = {"kind": "histograms", "data": "a", "epsilon": 1.0, "metric": "KLD"}
    true = {"own": (1.0, 2.0), "shuffled": (1.0, 1.2), "sorted": (3.0, 1.0)}
    rows = [row(method=m, run=0, error=e, **about) for m, e in zip(("AHP", "NF"), true["own"], strict=True)]
    monkeypatch.setattr(recommended, "read", lambda: pd.DataFrame(rows))
    predicted = pd.DataFrame([
        {"by": by, "figure": "", "data": "a", "at": np.nan, "epsilon": 1.0, "level": 0, "metric": "KLD",
         "method": method, "predicted": error}
        for by in ("sorted", "shuffled") for method, error in zip(("AHP", "NF"), true[by], strict=True)
    ])  # fmt: skip
    assert recommended.ceiling(predicted) == pytest.approx(2 / 3)
    assert recommended.hits(predicted).times.tolist() == pytest.approx([2.0, 1.0])


def test_hits_by_hand(monkeypatch):
    """The recommended method has the least predicted error; its measured error is over the least by 1.2."""
    about = {"kind": "histograms", "data": "a", "epsilon": 1.0, "metric": "KLD"}
    rows = [
        row(method=m, run=0, error=e, **about) for m, e in (("AHP", 1.2), ("NF", 1.0), ("Bayes bound", 0.1))
    ]
    monkeypatch.setattr(recommended, "read", lambda: pd.DataFrame(rows))
    predicted = pd.DataFrame(
        {"by": "half", "figure": "", "data": "a", "at": np.nan, "epsilon": 1.0, "level": 0, "metric": "KLD",
         "method": ["NF", "AHP"], "predicted": [5.0, 4.0]}
    )  # fmt: skip
    found = recommended.hits(predicted)
    assert found[["method", "kind"]].values.tolist() == [["AHP", "histograms"]]
    assert found.times.tolist() == pytest.approx([1.2])
