"""Another method from the measurements of a release: the same as its own release with the same noise."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import hierdp
from hierdp import Hierarchy, InputError, Numbers, SimulatedNoise, release
from hierdp.checking import FAILS, check
from hierdp.checking.same_noise import repaired
from hierdp.cli.app import main
from hierdp.execution import seal
from hierdp.privacy.account import open_account
from tests.hierdp.changing import change_manifest
from tests.marks import quick

HOMES = pd.DataFrame(
    {
        "state": ["A"] * 6 + ["B"] * 4,
        "county": ["a"] * 3 + ["b"] * 3 + ["c"] * 4,
        "home": [1, 1, 2, 3, 4, 4, 5, 6, 6, 6],
        "person": list("uvwxyzuvwx"),
    }
)
AGES = pd.DataFrame({"age": np.random.default_rng(0).integers(0, 60, 400)})
SIZES = {
    "groups": HOMES.drop_duplicates("home"),
    "levels": ["state", "county"],
    "group": ["home"],
    "max_size": 3,
}
RUNS = {**{name: SIZES[name] for name in ("groups", "levels", "group")}, "max_size": 9}
SECRET = {
    "levels": ["state", "county"],
    "group": ["home"],
    "regions_from_data": True,
    "group_budget": 0.3,
    "size_budget": 0.3,
}
BINS = {"axes": [Numbers("age", 0, 60, 12)]}

PEOPLE = pd.DataFrame(
    {
        "state": ["A"] * 30 + ["B"] * 20,
        "sex": np.random.default_rng(1).choice(["f", "m"], 50),
        "old": np.random.default_rng(2).choice(["no", "yes"], 50),
    }
)
TABLES = {
    "attributes": {"sex": ["f", "m"], "old": ["no", "yes"]},
    "levels": ["state"],
    "delta": 1e-6,
    "regions_from_data": True,
}

CASES = [
    ("group-size", HOMES, SIZES, "M_c^dp", "M_c", {}),
    ("group-size", HOMES, SIZES, "M_c", "M_c^dp", {}),
    ("group-size", HOMES, SIZES, "M_c^dp", "M_c^r", {}),
    ("group-size", HOMES, SIZES, "M_H^dp", "M_H", {"window": 40}),
    ("group-size", HOMES, SIZES, "M_H", "M_H^dp", {}),
    ("group-size", HOMES, {**SIZES, "person": "person", "rows_per_person": 2}, "M_c^dp", "M_c^r", {}),
    ("count-of-counts", HOMES, RUNS, "Hc", "Hc2", {}),
    ("count-of-counts", HOMES, RUNS, "Hg1 x Hc x Hg", "Hg × Hc2 × Hg1", {"merge": "plain"}),
    ("count-of-counts", HOMES, RUNS, "Hg", "Hg", {"merge": "at once"}),
    ("count-of-counts", HOMES, RUNS, "bottom-up", "bottom-up Hc2", {}),
    ("count-of-counts", HOMES, SECRET, "Hc", "Hc2", {"merge": "plain"}),
    ("count-of-counts", HOMES, SECRET, "Hg", "Hg1", {}),
    ("range-query", AGES, BINS, "H_b^c", "H_b", {}),
    ("range-query", AGES, BINS, "H_b", "H_b^c", {}),
    ("range-query", AGES, BINS, "H_b^c", "H_b^c", {"repair": "whole"}),
    ("range-query", AGES, BINS, "H_2", "H_2^c", {"repair": "non-negative"}),
    ("clustering", AGES, BINS, "Laplace", "NF", {}),
    ("clustering", AGES, BINS, "NF", "Laplace", {}),
    ("clustering", AGES, BINS, "AHP", "AHP-empirical", {}),  # both find the same clusters
    ("tabulation", PEOPLE, TABLES, "TopDown", "BlueDown", {}),
    ("tabulation", PEOPLE, TABLES, "GLS", "TopDown", {}),
    ("tabulation", PEOPLE, {**TABLES, "invariants": ["state:total"]}, "BlueDown", "GLS", {}),
    ("tabulation", PEOPLE, {**TABLES, "invariants": ["state:total"]}, "GLS", "BlueDown", {}),
    ("tabulation", PEOPLE, {**TABLES, "bounded": False}, "TopDown", "Joint", {"backend": "highs"}),
]  # fmt: skip


@pytest.mark.parametrize(("mechanism", "table", "options", "method", "other", "more"), CASES)
def test_the_result_is_that_of_a_release_with_the_same_noise(
    tmp_path, mechanism, table, options, method, other, more
):
    noise = SimulatedNoise(3)
    made = hierdp.release(table, mechanism, epsilon=1, noise=noise, method=method, **options)
    first = made.write(tmp_path / "first")
    again = hierdp.open(first).repair(other, **more)
    whole = hierdp.release(
        table, mechanism, epsilon=1, noise=SimulatedNoise(3), method=other, **options, **more
    )
    pd.testing.assert_frame_equal(again.table, whole.table)
    assert (again.mechanism, again.settings, again.ledger) == (whole.mechanism, whole.settings, whole.ledger)
    assert again.taken_as_public == whole.taken_as_public
    second = again.write(tmp_path / "second")
    found = {line.check: line for line in check(second)}
    assert [line for line in found.values() if line.verdict == FAILS] == []
    assert seal.digest(first / seal.SUMS) in found["same noise"].why
    assert (second / "measurements.parquet").read_bytes() == (first / "measurements.parquet").read_bytes()
    assert "no further budget" in (second / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("mechanism", "options", "method", "other", "more", "message"),
    [
        ("range-query", BINS, "H_b^c", "Wavelet", {}, "measures 'Haar coefficients'"),
        ("range-query", BINS, "H_b^c", "matrix", {}, "matrix measures the queries of a strategy"),
        ("range-query", BINS, "Wavelet", "H_b", {}, "H_b measures levels of boxes"),
        ("range-query", BINS, "H_b^c", "H_b", {"repair": "whole"}, "H_b takes no repair"),
        ("range-query", BINS, "H_b^c", "H_b", {"width": 2}, "width is not an option of range-query"),
        ("range-query", BINS, "H_b^c", "NF", {}, "no method 'NF'"),
        ("count-of-counts", RUNS, "Hc", "Hg", {}, "measures 'sizes of groups in order by root'"),
        ("count-of-counts", RUNS, "Hc", "bottom-up", {}, "bottom-up Hc cannot start from"),
        ("count-of-counts", RUNS, "bottom-up", "bottom-up", {"merge": "plain"}, "takes no merge"),
        ("count-of-counts", RUNS, "Hc", "Hc3", {}, "no method 'Hc3'"),
        ("tabulation", {**TABLES, "bounds": ["state:total:1.."]}, "TopDown", "GLS", {}, "no bounds"),
        ("clustering", BINS, "Laplace", "AHP", {}, "measures 'counts, to sort"),
        ("clustering", {**BINS, "epsilon": 0.1}, "AHP", "AHP-empirical", {}, "has 4 answers, but 3 are"),
    ],
)  # fmt: skip
def test_a_method_that_measures_something_else_is_refused(
    tmp_path, mechanism, options, method, other, more, message
):
    table = {"tabulation": PEOPLE, "count-of-counts": HOMES}.get(mechanism, AGES)
    arguments = {"epsilon": 1, "noise": SimulatedNoise(0), "method": method, **options}
    made = hierdp.release(table, mechanism, **arguments)
    opened = hierdp.open(made.write(tmp_path / "first"))
    with pytest.raises(InputError, match=message):
        opened.repair(other, **more)


def test_boxes_of_the_same_number_are_not_the_same_boxes(tmp_path):
    """Of four bins, both 2 and 3 children a box give two boxes above the bins."""
    four = {"axes": [Numbers("age", 0, 60, 4)]}
    made = hierdp.release(
        AGES, "range-query", epsilon=1, noise=SimulatedNoise(0), method="H_b", branching=3, **four
    )
    opened = hierdp.open(made.write(tmp_path / "first"))
    with pytest.raises(InputError, match="'counts by level 1' are not the same sums"):
        opened.repair("H_2")


def test_measurements_of_sizes_are_not_those_of_cumulative_ones(tmp_path):
    made = hierdp.release(HOMES, "group-size", epsilon=1, noise=SimulatedNoise(0), method="M_c^dp", **SIZES)
    opened = hierdp.open(made.write(tmp_path / "first"))
    with pytest.raises(InputError, match="M_H cannot start from the measurements"):
        opened.repair("M_H")


def test_a_repair_of_a_repair_names_the_first_release(tmp_path):
    made = hierdp.release(AGES, "range-query", epsilon=1, noise=SimulatedNoise(0), method="H_b", **BINS)
    first = made.write(tmp_path / "first")
    second = hierdp.open(first).repair("H_b^c").write(tmp_path / "second")
    third = hierdp.open(second).repair("H_b^c", repair="whole").write(tmp_path / "third")
    source = json.loads((third / "manifest.json").read_text())["same_noise_as"]
    assert (source["mechanism"], source["sums"]) == ("H_b", (first / seal.SUMS).read_text())
    assert [line for line in check(third) if line.verdict == FAILS] == []


def test_the_account_of_the_first_release_has_both(tmp_path):
    table = tmp_path / "ages.csv"
    AGES.to_csv(table, index=False)
    account = open_account(tmp_path / "ages.account", data="ages.csv", epsilon=2)
    made = hierdp.release(table, "range-query", epsilon=1, account=account, method="H_b", **BINS)
    second = hierdp.open(made.write(tmp_path / "first")).repair("H_b^c").write(tmp_path / "second")
    (line,) = [one for one in check(second, account=account.path) if one.check == "account"]
    assert (line.verdict, "entry 1" in line.why) == ("holds", True)
    assert [charge.loss.epsilon for charge in account.statement().charges] == [1]


@pytest.mark.parametrize("change", ["sums", "measurements"])
def test_other_measurements_than_those_named_fail(tmp_path, change):
    make = {"epsilon": 1, "method": "H_b", **BINS}
    first, foreign = (
        hierdp.release(AGES, "range-query", noise=SimulatedNoise(seed), **make).write(tmp_path / f"{seed}")
        for seed in (1, 2)
    )
    second = hierdp.open(first).repair("H_b^c").write(tmp_path / "second")
    if change == "sums":
        sums = (foreign / seal.SUMS).read_text()
        change_manifest(second, lambda manifest: manifest["same_noise_as"].update(sums=sums))
    else:
        (second / "measurements.parquet").write_bytes((foreign / "measurements.parquet").read_bytes())
    seal.seal(second)
    failed = {line.check for line in check(second) if line.verdict == FAILS}
    assert "same noise" in failed


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_command(tmp_path):
    made = hierdp.release(AGES, "range-query", epsilon=1, noise=SimulatedNoise(0), method="H_b", **BINS)
    first = made.write(tmp_path / "first")
    done = run("repair", first, "--method", "H_b^c", "--repair", "whole", "--out", tmp_path / "second")
    assert done.exit_code == 0, done.output
    assert "no further budget" in " ".join(done.output.split())
    assert "no further budget" in " ".join(run("check", tmp_path / "second").output.split())
    assert "cost no more than" in " ".join(run("explain", tmp_path / "second").output.split())
    for words, message in (
        ((first, "--method", "H_b", "--levels", "state"), "--levels does not apply"),
        ((first,), "name the method (--method)"),
        ((tmp_path / "ages.csv", "--repair", "whole"), "--repair does not apply"),
        ((tmp_path / "ages.csv", "--count", "age"), "name its columns with --levels"),
    ):
        refused = run("repair", *words, "--out", tmp_path / "third")
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.split())
        assert not (tmp_path / "third").exists()


LEVEL_BY_LEVEL = ["InfTDA", "InfTDA_large", "TDA_inf", "TDA_L2", "TDA"]


@pytest.mark.parametrize("made_by", quick(LEVEL_BY_LEVEL))
def test_flows_repaired_by_another_method_are_those_of_its_release_with_the_same_noise(made_by, tmp_path):
    """Every node has a positive count, so all methods measure the same."""
    rng = np.random.default_rng(0)
    state = rng.choice(list("AB"), 900)
    trips = pd.DataFrame({"state": state, "town": np.char.add(state, rng.integers(0, 3, 900).astype(str))})
    towns = trips.drop_duplicates().sort_values("town")
    places = Hierarchy.from_columns({name: towns[name].tolist() for name in towns}, ["state", "town"])
    options = {"epsilon": 1, "delta": 1e-6, "axes": {"place": (places, "town")}}

    def made(method):
        return release(trips, "top-down", method=method, noise=SimulatedNoise(4), **options)

    folder = made(made_by).write(tmp_path / "out")
    for method in LEVEL_BY_LEVEL:
        other, its_own = repaired(folder, method), made(method)
        assert other.table.equals(its_own.table)
        assert other.settings == its_own.settings
    with pytest.raises(InputError, match="VanillaGauss cannot start from the measurements"):
        repaired(folder, "VanillaGauss")


@pytest.mark.parametrize("made_by", ["InfTDA_large", "TDA_L2", "TDA"])
def test_a_release_whose_method_chooses_among_optimal_answers_or_rounds_does_not_contradict_itself(
    made_by, tmp_path
):
    """What its method measured below the first level depends on the answers that this method chose."""
    towns = {"state": list("AAABBBCCC"), "town": ["A0", "A1", "A2", "B0", "B1", "B2", "C0", "C1", "C2"]}
    places = Hierarchy.from_columns(towns, ["state", "town"])
    trips = pd.DataFrame(towns).iloc[np.random.default_rng(1).integers(0, 9, 900)]
    options = {"epsilon": 1, "delta": 1e-6, "axes": {"place": (places, "town")}}
    for seed in range(4, 10):
        made = release(trips, "top-down", method=made_by, noise=SimulatedNoise(seed), **options)
        again = repaired(made.write(tmp_path / f"{seed}"), made_by)
        assert again.table.equals(made.table)
