"""`hierdp plan`: the noise of real releases, the errors that they state, and the ε for a wanted error."""

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import Hierarchy, InputError, SimulatedNoise, evaluate, plan, release
from hierdp.cli import main
from hierdp.cli.release import command_of
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.planning import epsilon_for
from hierdp.mechanisms.top_down import bootstrap as released_again
from hierdp.mechanisms.top_down.expected import flows_of, made_up
from hierdp.mechanisms.top_down.zeros import zeros_of
from hierdp.privacy.noise import deviation_of
from tests.marks import quick

PLACES = Hierarchy.from_columns(
    {"state": ["A", "A", "A", "B"], "county": ["A1", "A2", "A3", "B1"]}, ["state", "county"]
)
PEOPLE = pd.DataFrame(
    {
        "state": list("AAABBA"),
        "county": ["A1", "A2", "A3", "B1", "B1", "A1"],
        "home": list("abcdda"),
        "age": ["old", "young", "old", "old", "young", "young"],
        "bin": [0, 1, 2, 3, 3, 0],
    }
)
TREE = {"levels": ["state", "county"], "regions_from_data": True}
BINS = {"axes": [("bin", "bin")], "regions_from_data": True}
AXES = {"axes": {"place": ["state", "county"], "age": ["age"]}, "regions_from_data": True, "delta": 1e-6}
SHAPES = {"place": {"state": 2, "county": 4}, "age": {"age": 2}}
CASES = {
    "top-down": (
        {"shares": [1, 2, 3], **AXES},
        {"axes": SHAPES, "shares": [1, 2, 3], "delta": 1e-6},
    ),
    "group-size": (
        {"max_size": 3, "group": ["home"], "groups_from_data": True, **TREE},
        {"max_size": 3, "regions": PLACES},
    ),
    "group-size M_H": (
        {"max_size": 3, "group": ["home"], "groups_from_data": True, "method": "M_H^dp", **TREE},
        {"max_size": 3, "regions": PLACES, "method": "M_H^dp"},
    ),
    "count-of-counts": (
        {"max_size": 5, "group": ["home"], "groups_from_data": True, "method": "Hc x Hg x naive", **TREE},
        {"max_size": 5, "regions": PLACES, "method": "Hc x Hg x naive"},
    ),
    "count-of-counts bottom-up": (
        {"max_size": 5, "group": ["home"], "groups_from_data": True, "method": "bottom-up", **TREE},
        {"max_size": 5, "regions": PLACES, "method": "bottom-up"},
    ),
    "top-down unbounded": (
        {"bounded": False, "trips": 2, "distinct": True, **AXES},
        {"axes": SHAPES, "bounded": False, "trips": 2, "distinct": True, "delta": 1e-6},
    ),
    "tabulation": (
        {"attributes": ["age"], "attributes_from_data": True, "delta": 1e-6, "levels": ["state", "county"],
         "regions_from_data": True},
        {"attributes": ["age=2"], "delta": 1e-6, "regions": PLACES},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", quick(CASES, first=1))
def test_the_noise_is_that_of_a_release(case):
    mechanism = case.split()[0]
    released, planned = CASES[case]
    made = release(PEOPLE, mechanism, epsilon=2, noise=SimulatedNoise(1), **released)
    table = plan(mechanism, epsilon=2, **planned).table.dropna(subset="noise_deviation")
    assert table["query"].tolist() == [
        spend.query.split(" by ")[0] if mechanism == "tabulation" else spend.query
        for spend in made.ledger.spends
    ]
    assert table["noise_deviation"].tolist() == pytest.approx(
        [deviation_of(one) for one in made.ledger.spends]
    )


@pytest.mark.parametrize("method", quick(["SF", "AHP", "PHP", "GS", "Laplace", "NF"], first=1))
def test_the_noise_of_clusters_is_that_of_their_sums(method):
    histogram = pd.DataFrame({"bin": np.repeat(np.arange(30), 3)})
    made = release(histogram, "clustering", epsilon=2, noise=SimulatedNoise(1), method=method, **BINS)
    table = plan("clustering", epsilon=2, bins=30, method=method).table
    assert (table["noise_deviation"] * table["cluster"]).tolist() == pytest.approx(
        [deviation_of(made.ledger.spends[-1])] * len(table)
    )
    assert table["standard_error"].notna().any() == (method == "Laplace")


def test_the_errors_of_gls_are_those_of_a_release():
    options = {"epsilon": 2, "delta": 1e-6, "method": "GLS"}
    named = {"attributes": ["age"], "attributes_from_data": True, "levels": ["state", "county"]}
    made = release(PEOPLE, "tabulation", noise=SimulatedNoise(1), regions_from_data=True, **named, **options)
    table = plan("tabulation", regions=PLACES, attributes=["age=2"], **options).table
    stated = (made.table["standard_error"] ** 2).groupby(made.table["level"]).mean() ** 0.5
    by_age = table[table["query"] == "age"].set_index("level")["standard_error"]
    assert by_age.tolist() == pytest.approx(stated.tolist())
    assert table.loc[0, ["query", "standard_error"]].tolist() == ["total", 0]  # it is public


def test_the_errors_of_noise_on_all_cells_are_those_of_a_release():
    made = release(PEOPLE, "top-down", epsilon=2, noise=SimulatedNoise(1), method="VanillaGauss", **AXES)
    table = plan("top-down", epsilon=2, delta=1e-6, axes=SHAPES, method="VanillaGauss").table
    cells = np.array([8, 4, 2, 1])
    assert (table["standard_error"] ** 2).tolist() == pytest.approx(
        cells * table["noise_deviation"].iloc[0] ** 2
    )
    last = made.table[made.table["level"] == 3]
    assert last["standard_error"].iloc[0] == pytest.approx(table["standard_error"].iloc[-1])


def test_the_bound_is_that_of_the_theorem():
    axes = {"origin": {"state": 52}, "destination": {"state": 52}}
    found = plan("top-down", epsilon=1, delta=1e-8, axes=axes)
    assert found.table["bound"].tolist() == [84, 194]  # 2⌊10.78·√(2 ln(2·52/.05))⌋, …
    for other in ({"bounded": False}, {"method": "TDA"}):
        assert plan("top-down", epsilon=1, delta=1e-8, axes=axes, **other).table["bound"].isna().all()


TRIPS = pd.DataFrame({"from": list("AABBC"), "to": list("BCACA"), "n": [500, 20, 300, 40, 700]})
TOWNS = Hierarchy.from_columns({"town": list("ABC")}, ["town"])
ENDS = {"origin": (TOWNS, "from"), "destination": (TOWNS, "to")}


def test_axes_have_the_form_of_a_release():
    by_number = {"origin": {"town": 3}, "destination": {"town": 3}}
    alone = {name: axis for name, (axis, _) in ENDS.items()}
    found = [plan("top-down", epsilon=1, delta=1e-6, axes=axes).table for axes in (by_number, alone, ENDS)]
    for table in found[1:]:
        pd.testing.assert_frame_equal(table, found[0])


def test_structural_zeros_are_not_measured():
    options = {"epsilon": 1, "delta": 1e-6, "axes": {**ENDS, "hour": {"part": 2, "hour": 4}}}
    zero = {"zeros": "origin=destination"}
    every, fewer = (plan("top-down", **options, **more).table for more in ({}, zero))
    assert every["measured"].tolist() == [2, 6, 18, 36]
    assert fewer["measured"].tolist() == [2, 6, 18 - 3 * 2, 36 - 3 * 4]
    options["axes"] = ENDS
    made = release(TRIPS, "top-down", noise=SimulatedNoise(1), count="n", **options, **zero)
    assert (
        plan("top-down", **options, **zero).table["bound"].tolist()
        == released_again.bounds(made.table, made.manifest(), made.regions, 0.05)[1:]
    )
    with pytest.raises(InputError, match="SH takes no zeros"):
        plan("top-down", epsilon=1, delta=1e-6, axes=ENDS, zeros="origin=destination", method="SH")


def test_simulated_errors_are_those_of_releases():
    options = {"epsilon": 1, "delta": 1e-6, "axes": ENDS, "count": "n"}
    found = plan("top-down", like=TRIPS, runs=3, zeros="origin=destination", **options).table
    errors = [
        evaluate(
            release(TRIPS, "top-down", noise=SimulatedNoise(run), zeros="origin=destination", **options),
            TRIPS, count="n", axes={"origin": "from", "destination": "to"},
        ).errors
        for run in range(3)
    ]  # fmt: skip
    mean = np.mean([one["mean_error"].to_numpy(float)[1:] for one in errors], axis=0)
    largest = np.mean([one["max_error"].to_numpy(float)[1:] for one in errors], axis=0)
    assert found["simulated_mean_error"].tolist() == pytest.approx(mean.tolist())  # sums in another order
    assert found["simulated_largest_error"].tolist() == largest.tolist()
    assert (found["simulated_largest_error"] < found["bound"]).all()


def test_a_made_up_table_has_the_total_and_no_structural_zeros():
    shape = flows_of(ENDS)
    zeros = zeros_of("origin=destination", shape)
    for total in (1, 1_000, 10**12):
        made = made_up(shape, total, zeros)
        assert made.total == total
        assert not zeros.among([1, 1], made.cells).any()
    table = plan("top-down", epsilon=1, delta=1e-6, axes=ENDS, total=1_000, runs=1)
    assert (table.table["simulated_mean_error"] > 0).all()
    assert "made-up table (1,000 trips" in table.notes[-1]
    searched = plan("top-down", standard_error=5, delta=1e-6, axes=ENDS, total=1_000, runs=1)
    assert "simulated_mean_error" in searched.table
    with pytest.raises(InputError, match="not both"):
        plan("top-down", epsilon=1, delta=1e-6, axes=ENDS, total=1, like=TRIPS)


def test_the_command_takes_the_axes_of_a_release(tmp_path):
    TRIPS.to_csv(tmp_path / "trips.csv", index=False)
    pd.DataFrame({"town": list("ABC")}).to_csv(tmp_path / "towns.csv", index=False)

    def run(*words):
        every = ["plan", "top-down", "--epsilon", "1", "--delta", "1e-6", *map(str, words)]
        return CliRunner().invoke(main, every).output

    listed = run("--axis", "a=from", "--axis", "b=to", "--regions", tmp_path / "towns.csv",
                 "--region-levels", "town", "--zero", "a=b", "--like", tmp_path / "trips.csv",
                 "--count", "n", "--runs", 1)  # fmt: skip
    assert "simulated largest error" in " ".join(listed.split())
    assert "columns need --regions or --like" in " ".join(run("--axis", "a=from").split())
    assert "give each axis once" in run("--axis", "a=x:2", "--axis", "a=y:2")


WANTED = {
    "group-size": ({"max_size": 3, "levels": ["state=2"]}, "state", 4.0),
    "top-down": ({"delta": 1e-6, "axes": {"place": {"state": 2}}}, "1", 3.0),
    "tabulation": (
        {"delta": 1e-6, "levels": ["state=2"], "attributes": ["age=3"], "method": "GLS"},
        "state:age",
        2.5,
    ),
    "range-query": ({"bins": 16}, "F", 7.0),
    "clustering": ({"bins": 16, "method": "Laplace"}, None, 0.02),
}


def test_an_error_that_vanishes_at_one_has_an_epsilon_too():
    assert epsilon_for(0.5, lambda epsilon: max(0.0, 1 - epsilon)) == 0.5


@pytest.mark.parametrize("mechanism", quick(WANTED, first=2))
def test_the_least_epsilon_for_a_wanted_error(mechanism):
    options, at, wanted = WANTED[mechanism]
    found = plan(mechanism, standard_error=wanted, at=at, **options)
    assert found.error(at) <= wanted * (1 + 1e-9)
    assert plan(mechanism, epsilon=found.epsilon * (1 - 2e-3), **options).error(at) > wanted


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        ("nothing", {}, "no mechanism 'nothing'"),
        ("clustering", {"bins": 4}, "give epsilon, or the standard_error"),
        ("clustering", {"bins": 4, "epsilon": 1, "at": "x"}, "give that, or leave at out"),
        ("clustering", {"bins": 4, "standard_error": -1}, "must be a positive number"),
        ("clustering", {"bins": 4, "standard_error": 1e9, "method": "Laplace"}, "no ε from"),
        ("group-size", {"epsilon": 1, "max_size": 3}, "give the number of regions of each level"),
        ("group-size", {"epsilon": 1, "max_size": 3, "levels": ["state"]}, "write NAME=NUMBER"),
        ("group-size", {"epsilon": 1, "max_size": 3, "levels": ["a=5", "b=3"]}, "fewer than the level above"),
        ("group-size", {"standard_error": 1, "max_size": 3, "levels": ["a=5"], "at": "b"}, "one of 'root'"),
        ("top-down", {"epsilon": 1, "delta": 1e-6, "axes": ["place"]}, "give the axes by name"),
        ("tabulation", {"epsilon": 1, "delta": 1e-6, "levels": ["a=5"]}, "no attributes"),
    ],
)  # fmt: skip
def test_bad_input_is_named(mechanism, options, message):
    with pytest.raises(InputError, match=message):
        plan(mechanism, **options)


@pytest.mark.parametrize(
    ("mechanism", "option", "least"),
    [(name, option, keyword.option.least) for name in MECHANISMS
     for option, keyword in MECHANISMS[name].planning_keywords.items() if keyword.option.least is not None],
)  # fmt: skip
def test_numbers_below_their_least_are_refused_by_name(mechanism, option, least):
    required = {
        "group-size": {"max_size": 3},
        "top-down": {"delta": 1e-6, "axes": {"to": {"town": 3}}},
        "tabulation": {"delta": 1e-6},
        "count-of-counts": {},
    }
    options, wrong = required.get(mechanism, {"bins": 5}), int(least) - 1
    with pytest.raises(InputError, match=f"^{option} is {wrong}: it must be at least {least:g}$"):
        plan(mechanism, epsilon=1, **{**options, option: wrong})


def test_the_command_prints_a_table_and_writes_a_csv(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, ["plan", *map(str, words)])

    out = tmp_path / "plan.csv"
    words = ["group-size", "--levels", "state:2", "--max-size", 3, "--epsilon", 1, "--out", out]
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "not known" in done.output
    assert pd.read_csv(out)["measured"].tolist() == [4, 8]
    assert "exists" in run(*words).output
    assert {*MECHANISMS, "groups", "flows", "bins"} == set(main.commands["plan"].commands)


@pytest.mark.slow
def test_analyze_finds_the_epsilon_for_a_wanted_error():
    def run(*words):
        return CliRunner().invoke(main, ["plan", *map(str, words)])

    done = run("range-query", 16, "--standard-error", 7, "--at", "F")
    assert "ε = 0.4949" in done.output  # flat answers have variance 2·6/ε², 6 the mean length


PLANNED = {
    "--axis": ["place=state:2,county:4", "age=band:2"],
    "--levels": ["state:2,county:4"],
    "--attribute": ["age=old,young"],
    "--numbers": ["bin=0:4"],
    "--groups": ["4"],
    "--zero": ["place=age"],
    "--share": ["0.5"],
    "--delta": ["1e-6"],
    "--first": ["age"],
    "--out": ["released"],
    "--branching": ["2"],
    "--confidence": ["0.9"],
    "--query": ["total", "detailed"],
    "--max-size": ["3"],
    "--group-budget": ["0.1"],
}
"""Values of flags that a plan uses, or whose type is narrow."""

NEVER_TOGETHER = {
    *("--regions", "--region-levels", "--region-parents", "--region-codes", "--prefixes", "--like"),
    *("--plan", "--size-budget", "--dates", "--names", "--clusters", "--largest", "--width"),
    "--workload",
    *("--level-share", "--query-share", "--invariant", "--bound", "--rows-per-person"),
}
"""Other ways of giving the same, and options of some methods; each has tests of its own."""


def words_of(mechanism):
    """A command line of `hierdp release` with all options that go together."""
    for option in command_of(MECHANISMS[mechanism]).params:
        flag = max(option.opts, key=len)
        if not isinstance(option, click.Option) or flag in NEVER_TOGETHER or option.name == "epsilon":
            continue
        if flag == "--zero" and mechanism != "top-down":
            values = ["age=old"]
        elif flag == "--share" and mechanism in ("top-down", "count-of-counts", "group-size"):
            values = ["1"] * (4 if mechanism == "top-down" else 3)
        else:
            number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
            choices = getattr(option.type, "choices", None)
            values = PLANNED.get(flag) or ([choices[0]] if choices else ["2" if number else "some"])
        if option.name == "method" or (mechanism == "top-down" and flag == "--trips"):
            continue
        for value in values if option.multiple else values[:1]:
            yield from [flag] if option.is_flag else [flag, value]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_plan_takes_the_options_of_a_release_and_names_those_that_it_does_not_need(
    mechanism, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = [*words_of(mechanism), "--epsilon", "1"]
    done = CliRunner().invoke(main, ["plan", mechanism, "no-such-table.csv", *words])
    assert done.exit_code == 0, done.output
    assert "A plan reads no data: it does not need" in done.output
    assert "TABLE" in done.output
    assert "--account" in done.output
    assert "--out" in done.output
    assert not list(tmp_path.iterdir())


SIZES_OF = "group-size --levels s:2 --max-size 3"
TABLES_OF = "tabulation --delta 1e-6 --levels s:2"


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("clustering --numbers bin=0:40:8", "clustering --bins 8"),
        ("range-query t.csv --numbers bin=0:8", "range-query 8"),
        ("range-query --numbers x=0:8 --numbers y=0:8", "range-query 8 --dimensions 2"),
        (f"{SIZES_OF} --most-per-row 4", f"{SIZES_OF} --rows-per-person 4"),
        (
            "top-down --axis a=s:4 --delta 1e-6 --most-per-row 4",
            "top-down --axis a=s:4 --delta 1e-6 --trips 4",
        ),
        (f"{TABLES_OF} --attribute a=1,2,3", f"{TABLES_OF} --attribute a=3"),
    ],
)
def test_options_of_a_release_mean_the_same_in_a_plan(words, same):
    first, second = (
        CliRunner().invoke(main, ["plan", *one.split(), "--epsilon", "1"]) for one in (words, same)
    )
    assert first.exit_code == second.exit_code == 0, first.output
    first_lines, second_lines = (
        # Older versions of Click give both streams as one.
        [
            line
            for line in one.stdout.splitlines()
            if not line.startswith("A plan reads") and " s" not in line[-3:]
        ]
        for one in (first, second)
    )
    assert first_lines == second_lines


def test_the_groups_of_a_public_table_are_counted(tmp_path):
    PEOPLE[["home"]].drop_duplicates().to_csv(tmp_path / "homes.csv", index=False)
    words = ["plan", "count-of-counts", "--levels", "s:2", "--method", "Hg", "--epsilon", "1", "--groups"]
    counted, given = (
        CliRunner().invoke(main, [*words, one]).output for one in (str(tmp_path / "homes.csv"), "4")
    )
    assert counted == given
