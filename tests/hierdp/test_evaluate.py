"""The errors of a release are those between it and the true table, and are marked as not to be published."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from hierdp import InputError, Numbers, SimulatedNoise, evaluate, release, repair
from hierdp.cli import main
from hierdp.experiments.notice import NOTICE
from hierdp.metrics import cells
from hierdp.metrics.cells import cell_errors, errors_by_size, rank_agreement

rng = np.random.default_rng(3)
PEOPLE = pd.DataFrame({"age": rng.integers(0, 40, 600), "home": rng.integers(0, 150, 600)})
PEOPLE["state"] = np.array(["A", "B"])[PEOPLE.home % 2]
PEOPLE["county"] = PEOPLE.state + (PEOPLE.home % 6 // 2).astype(str)
PEOPLE["sex"] = rng.choice(["f", "m"], 600)
TRIPS = PEOPLE.groupby(["state", "county", "sex"], as_index=False).size().rename(columns={"size": "n"})
AXES = {"place": ["state", "county"], "sex": ["sex"]}


def made(kind, source=PEOPLE, noise=1, **options):
    return release(source, kind, epsilon=1, noise=SimulatedNoise(noise), **options)


@pytest.fixture(scope="module")
def trips():
    return made("top-down", TRIPS, axes=AXES, count="n", delta=1e-6, regions_from_data=True)


def sizes(kind="group-size", **more):
    given = {"group": "home", "levels": ["state", "county"], "max_size": 9, **more}
    return made(kind, regions_from_data=True, groups_from_data=True, **given)


def test_errors_of_cells_are_those_of_two_tables_side_by_side(trips):
    found = evaluate(trips, TRIPS, count="n")
    both = TRIPS.set_index(["county", "sex"])["n"].to_frame("true")
    last = trips.table[trips.table["level"] == trips.table["level"].max()]
    both["released"] = last.set_index(["place", "sex"])["count"]
    error = both["released"].fillna(0) - both["true"]
    row = found.errors.iloc[-1]
    assert (row.cells, row.l1, row.max_error) == (12, error.abs().sum(), error.abs().max())
    assert row.rmse == pytest.approx(np.sqrt((error**2).mean()))
    worst = found.worst[found.worst.level == row.level].iloc[0]
    place, sex = worst.cell.split(" → ")
    assert worst.error == error[place, sex]
    assert abs(worst.error) == row.max_error


def test_a_release_has_no_errors_against_itself(trips):
    itself = trips.finest().rename(columns={"place_county": "county", "sex_sex": "sex"})
    columns = {"place": itself.columns[1], "sex": itself.columns[2]}
    found = evaluate(trips, itself, count="count", axes=columns)
    assert (found.errors[["l1", "false_positives", "false_negatives"]] == 0).all(axis=None)
    assert not len(found.worst)


@pytest.mark.parametrize("kind", ["group-size", pytest.param("count-of-counts", marks=pytest.mark.slow)])
def test_sizes_are_compared_by_region_with_the_earth_movers_distance(kind):
    result = sizes(kind)
    found = evaluate(result, PEOPLE, group=["home"])
    held = PEOPLE.groupby(["county", "home"]).size().clip(upper=9).rename("size").reset_index()
    true = held.groupby(["county", "size"]).size()
    last = result.table[result.table["level"] == 2].set_index(["region", "size"])["groups"]
    both = pd.concat([true, last], axis=1).fillna(0).to_numpy()
    row = found.errors.iloc[-1]
    assert row.l1 == np.abs(both[:, 0] - both[:, 1]).sum()
    each = [
        pd.concat([true, last], axis=1).fillna(0).sort_index().xs(name) for name in sorted(set(held.county))
    ]
    moved = [
        sum(abs(one[one.index > k].sum().iloc[0] - one[one.index > k].sum().iloc[1]) for k in range(9))
        for one in each
    ]
    assert row.emd_per_region == pytest.approx(np.mean(moved))


@pytest.mark.slow
def test_tables_of_attributes_are_compared_by_each_marginal():
    options = {"attributes": ["sex", "age"], "attributes_from_data": True, "levels": ["state", "county"]}
    result = made("tabulation", delta=1e-6, regions_from_data=True, **options)
    found = evaluate(result, PEOPLE).errors.set_index("level")
    rows = result.table[result.table["level"] == 2]
    released = rows.groupby(["region", "sex"])["count"].sum()
    true = PEOPLE.groupby(["county", "sex"]).size().rename_axis(["region", "sex"])
    assert found.loc["county: sex", "l1"] == released.sub(true, fill_value=0).abs().sum()
    assert found.loc["county: every cell", "cells"] == 6 * 2 * 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more"), [("range-query", {}), ("range-query", {"method": "Wavelet"}), ("clustering", {})]
)
def test_bins_and_ranges_of_them_are_compared(kind, more):
    result = made(kind, axes=[Numbers("age", 0, 40)], **more)
    found = evaluate(result, PEOPLE).errors.set_index("level")
    bins = result.table["count"].to_numpy()[-40:]
    error = bins - np.bincount(PEOPLE.age, minlength=40)
    assert found.loc["bins", "l1"] == pytest.approx(np.abs(error).sum())
    ranges = np.convolve(error, np.ones(10), "valid")
    assert found.loc["ranges of 10 bins", "max_error"] == pytest.approx(np.abs(ranges).max())


def test_regions_of_a_histogram_are_found_by_their_names():
    options = {"axes": [("county", ["state", "county"])], "regions_from_data": True}
    result = made("range-query", method="H_tree^c", **options)
    found = evaluate(result, PEOPLE.sample(frac=1, random_state=1))
    state = result.table[result.table.get("level_name") == "state"].set_index("region")["count"]
    error = state - PEOPLE.groupby("state").size()
    assert found.errors.set_index("level").loc["state", "l1"] == pytest.approx(error.abs().sum())


def test_a_repair_is_compared_with_the_counts_that_it_was_given():
    true = PEOPLE.groupby(["state", "county"], as_index=False).size()
    noisy = true.assign(size=true["size"] + [5, -7, 2, 0, 1, 9])
    result = repair(noisy, levels=["state", "county"], count="size")
    found = evaluate(result, true, count="size").errors.set_index("level")
    assert found.loc["county", "given_mean_error"] == 4
    assert found.loc["root", "l1"] == abs(result.table["count"].iloc[0] - 600)
    with pytest.raises(InputError, match="no row for county 'B2'"):
        evaluate(result, true[true.county != "B2"], count="size")
    inner = pd.concat([true, pd.DataFrame({"state": ["A"], "county": [None], "size": [17]})])
    with pytest.raises(InputError, match="state 'A' is not the sum") as wrong:
        evaluate(result, inner, count="size")
    assert "17" not in str(wrong.value)


def test_a_true_table_that_does_not_fit_is_refused_without_a_count(trips):
    strange = pd.concat([TRIPS, TRIPS.tail(1).assign(county="Z9", n=987)])
    for source, given, words in (
        (strange, {"count": "n"}, "Z9"),
        (TRIPS.drop(columns="county"), {"count": "n"}, "axes=place=COLUMN"),
        (TRIPS, {"count": "n", "group": "county"}, "takes no group"),
        (TRIPS, {"count": "n", "axes": {"origin": "county"}}, "no axis 'origin'"),
    ):
        with pytest.raises(InputError, match=words) as wrong:
            evaluate(trips, source, **given)
        assert "987" not in str(wrong.value)


def test_another_total_than_the_published_one_is_cautioned(trips):
    assert not evaluate(trips, TRIPS, count="n").cautions
    assert "another total" in evaluate(trips, TRIPS.assign(n=TRIPS.n + 1), count="n").cautions[0]


def test_every_file_and_the_console_say_that_it_is_not_to_be_published(tmp_path, trips):
    trips.write(tmp_path / "released", report=False, proofs=False)
    TRIPS.to_csv(tmp_path / "true.csv", index=False)
    given = ["evaluate", str(tmp_path / "released"), str(tmp_path / "true.csv"), "--count", "n"]
    inside = CliRunner().invoke(main, [*given, "--out", str(tmp_path / "released" / "errors")])
    assert inside.exit_code == 2
    assert "choose a folder outside" in " ".join(inside.output.split())
    done = CliRunner().invoke(main, [*given, "--out", str(tmp_path / "errors")])
    assert done.exit_code == 0, done.output
    assert done.output.count(NOTICE) >= 5
    files = sorted(path for path in (tmp_path / "errors").iterdir() if path.name != "SHA256SUMS")
    assert len(files) == 6
    for path in files:
        assert NOTICE in path.read_text(), path.name
    for path in (tmp_path / "errors").glob("*.csv"):
        assert (pd.read_csv(path).notice == NOTICE).all()
    assert json.loads((tmp_path / "errors" / "errors.json").read_text())["errors"][0]["l1"] == 0
    page = (tmp_path / "errors" / "report.html").read_text()
    assert f'<thead><tr><td><div class="banner">{NOTICE}' in page  # browsers print a head on every page


def test_metrics_count_cells_that_are_left_out():
    found = cell_errors([4, 0, 3], [1, 2, 0], cells=10)
    assert (found["mean_error"], found["bias"], found["negative"]) == (0.8, -4, 0)
    assert (found["false_positives"], found["false_negatives"], found["relative"]) == (1, 1, 8 / 7)
    rows = {row["true_count"]: row for row in errors_by_size([4, 0, 3, 10, 0.5], [1, 2, 0, 10, 0.5], 12)}
    assert {name: row["cells"] for name, row in rows.items()} == {
        "0": 8, "under 1": 1, "1 to 9": 2, "10 to 99": 1,
    }  # fmt: skip
    assert rows["0"]["mean_error"] == 0.25
    big = np.array([2**62, 2**62, 2**62])
    assert cell_errors(big, big - 2**61)["l1"] == 3 * 2**61


def test_ranks_and_the_largest_cells_that_are_kept():
    true = np.arange(1, 201)
    assert rank_agreement(true, true * 7) == {"spearman": 1, "kendall": 1, "top_10": 1, "top_100": 1}
    found = rank_agreement(true, np.where(true > 195, 0, true))
    assert found["top_10"] == 0.5
    assert found["top_100"] == 0.95
    assert np.isnan(rank_agreement([3, 3], [1, 2])["kendall"])


def test_cells_that_are_truly_zero_have_ranks_too():
    true, released = np.array([9, 7, 5, 3, 0, 0, 0]), np.array([8, 5, 6, 0, 4, 0, 0])
    found = rank_agreement(true, released)
    assert found["spearman"] == pytest.approx(spearmanr(true, released).statistic, abs=1e-12)  # the same sums
    assert abs(found["spearman"] - rank_agreement(true[:4], released[:4])["spearman"]) > 0.005
    sparse = rank_agreement(true[:5], released[:5], cells=7)  # the last two are 0 in both, and left out
    assert sparse == pytest.approx(found, abs=1e-12, nan_ok=True)
    assert cell_errors(true[:5], released[:5], 7)["spearman"] == pytest.approx(found["spearman"], abs=1e-12)


def test_of_many_zeros_those_released_as_zero_are_ranked_in_their_proportion(monkeypatch):
    monkeypatch.setattr(cells, "RANKED", 10)
    true, released = np.r_[5, 4, 3, 2, np.zeros(6, int)], np.r_[5, 4, 3, 2, 9, 9, 9, 1, 1, 1]
    found = rank_agreement(true, released, cells=4 + 12)  # 6 of 12 zeros fit: 3 of those released as more
    expected = spearmanr(np.r_[true[:4], np.zeros(6)], [5, 4, 3, 2, 9, 9, 1, 0, 0, 0]).statistic
    assert found["spearman"] == pytest.approx(expected, abs=1e-12)
    alone = rank_agreement(np.arange(20, 0, -1), np.r_[np.arange(20, 10, -1), np.zeros(10, int)])
    assert alone["spearman"] == pytest.approx(1, abs=1e-12)  # the ten largest only


def test_the_command_line_names_flags_not_options_of_python(tmp_path):
    made("range-query", PEOPLE, axes=[Numbers("age", 0, 40)]).write(tmp_path / "out", report=False)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    done = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "out"), str(tmp_path / "people.csv"), "--levels", "bin"]
    )
    said = " ".join(done.output.split())
    assert said == "Error: range-query takes no --levels here; it takes --axis, --count, --unknown, --clip"
    with pytest.raises(InputError, match="takes no region here; it takes axes, count, unknown, clip"):
        evaluate(tmp_path / "out", PEOPLE, region="bin")
