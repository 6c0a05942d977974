"""hierdp release clustering and count-of-counts, as a newcomer would use them."""

import json
from pathlib import Path

import pandas as pd
import pytest
from test_cli import AGES, GROUPS, place, run

from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.clustering import METHODS

__all__ = ["place"]

HIDDEN = GROUPS.replace("--groups-from-data", "")
SMALL = f"{GROUPS} --max-size 600"


def results():
    manifest = json.loads(Path("out/manifest.json").read_text())
    return pd.read_parquet("out/released.parquet"), manifest


def test_a_release_of_clusters():
    done = run(f"{AGES} --epsilon 1e4")
    assert done.exit_code == 0, done.output
    table, manifest = results()
    assert table["count"].tolist() == [40, 42, 0, 0, 0, 0, 2, 0]
    assert manifest["mechanism"] == "AHP"
    assert manifest["budget"]["private"]
    assert [spend["epsilon"] for spend in manifest["budget"]["spends"]] == pytest.approx([7_000, 3_000])
    assert manifest["settings"]["axes"][0]["name"] == "age"
    assert "1 of 1 post-processing problems proved optimal" in done.output


def test_two_dimensions_and_a_table_of_names():
    done = run(
        "release clustering ages.csv --numbers age=0:80:2 --names town --regions towns.csv "
        "--region-levels town --epsilon 1e4 --out out --method AHP-greedy --share 0.5 --eta 0"
    )
    assert done.exit_code == 0, done.output
    table, manifest = results()
    assert table["town"].tolist() == ["a", "b", "never"] * 2
    assert table["count"].tolist() == [2, 1, 0, 0, 1, 0]
    assert manifest["settings"]["eta"] == 0
    assert manifest["taken_as_public"]["regions"] == "from a table of regions"
    run("release clustering ages.csv --names town --regions-from-data --epsilon 1 --out out --overwrite")
    assert results()[1]["taken_as_public"]["regions"] == "as seen in the data, which makes them public"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_by_name(method):
    done = run(f"{AGES} --method {method} --simulate 1")
    assert done.exit_code == 0, done.output
    _, manifest = results()
    assert manifest["mechanism"] == method
    assert "NOT private" in manifest["warning"]
    assert method in {listed.name for listed in MECHANISMS["clustering"].methods}


def test_a_release_of_groups():
    done = run(f"{SMALL} --epsilon 1e5")
    assert done.exit_code == 0, done.output
    table, manifest = results()
    expected = [("all", 1, 2), ("all", 2, 1), ("all", 500, 1), ("A", 1, 2), ("A", 2, 1), ("B", 500, 1)]
    expected += [("a", 1, 1), ("a", 2, 1), ("a2", 1, 1), ("b", 500, 1)]
    assert list(table[["region", "size", "groups"]].itertuples(index=False, name=None)) == expected
    assert manifest["mechanism"] == "Hc × Hc × Hc"
    assert manifest["budget"]["private"]
    assert manifest["settings"]["max_size"] == 600
    assert "problems proved optimal" in done.output


def test_a_release_with_every_option():
    done = run(
        f"{HIDDEN} --simulate 1 --method 'Hg x Hc2 x naive' --merge plain --size-budget 0.1 "
        "--group-budget 0.1 --no-empty-groups --share 1 --share 2 --share 1"
    )
    assert done.exit_code == 0, done.output
    table, manifest = results()
    assert manifest["settings"]["methods"] == ["Hg", "Hc2", "naive"]
    assert manifest["settings"]["merge"] == "plain"
    assert [round(spend["epsilon"], 4) for spend in manifest["budget"]["spends"][-3:]] == [0.2, 0.4, 0.2]
    assert manifest["warning"].startswith("SIMULATED")
    assert table["size"].min() >= 1
    assert manifest["budget"]["spent"] == pytest.approx(1)


def test_all_levels_at_once():
    done = run(f"{SMALL} --epsilon 1e5 --merge 'at once'")
    assert done.exit_code == 0, done.output
    table, manifest = results()
    assert manifest["settings"]["merge"] == "at once"
    assert manifest["solved"][-1]["model"] == "TreeMatching"
    assert table[table.level == 2]["size"].tolist() == [1, 2, 1, 500]


def test_empty_regions_are_released():
    tabled = f"{HIDDEN} --max-size 600".replace(
        "--levels state,county", "--levels county --regions regions.csv --region-levels state,county"
    )
    done = run(f"{tabled} --group-budget 0.5".replace("--regions-from-data", ""))
    assert done.exit_code == 0, done.output
    assert results()[1]["taken_as_public"]["regions"] == "from a table of regions"


def test_help_contains_examples():
    text = run("release clustering --help").output
    for words in (
        "without looking at the",
        "--numbers age=0:120 --epsilon 1",
        "Default: 0.35",
        "Neighbouring tables differ",
    ):
        assert words in " ".join(text.split()), words


def test_forbidden_empty_group():
    done = run(SMALL.replace("homes.csv", "'empty home.csv'") + " --no-empty-groups")
    assert done.exit_code == 2
    assert "region 'b' has an empty group" in done.output


def test_help_and_list():
    text = " ".join(run("release count-of-counts --help").output.split())
    for said in (
        "earth mover's distance",
        "--size-budget",
        "bottom-up",
        "Groups and regions are public",
        "rather too large: that costs time, as Hc draws noise for every size in every region",
    ):
        assert said in text
    assert "Kuo et al. 2018" in run("mechanisms").output


# --- a file of options ------------------------------------------------------------------------------------

SAME = [
    f"{AGES} --method PHP --share 0.3",
    f"{SMALL} --no-empty-groups --method Hg --share 1 --share 1 --share 2",
]


@pytest.mark.parametrize("line", SAME)
def test_a_plan_of_options_gives_the_release_of_the_command_line(line):
    assert run(f"{line} --simulate 2").exit_code == 0
    table, manifest = results()
    words = line.split()
    entries = dict[str, list[str] | bool]()
    for at, word in enumerate(words[3:], 3):
        if word.startswith("--") and word != "--out":
            value = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else True
            entries[word[2:]] = value if value is True else [*entries.get(word[2:], []), value]
    lines = [f"{name} = {json.dumps(value)}" for name, value in entries.items()]
    Path("plan.toml").write_text("\n".join(lines))
    done = run(f"{' '.join(words[:3])} --plan plan.toml --out out --overwrite --simulate 2")
    assert done.exit_code == 0, done.output
    again, same = results()
    pd.testing.assert_frame_equal(again, table)
    assert {**manifest, "created": 0, "solved": 0} == {**same, "created": 0, "solved": 0}


def test_the_command_line_comes_before_the_plan_and_decimals_are_as_typed():
    Path("plan.toml").write_text('method = "PHP"\nepsilon = 0.30000000000000001\nshare = 0.5\n')
    words = "release clustering ages.csv --numbers age=0:80:8 --count n --plan plan.toml --out out"
    assert "0.30000000000000001 has more digits than are kept: write 0.3" in run(words).output
    assert run(f"{words} --epsilon 0.25 --simulate 1").exit_code == 0
    _, manifest = results()
    assert (manifest["mechanism"], manifest["budget"]["epsilon"]) == ("PHP", 0.25)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("metod = 'AHP'", "the plan 'plan.toml': no option 'metod'; did you mean 'method'?"),
        ("simulate = true", "'simulate' must be a text, a number, or a list of these, not True"),
        ("overwrite = 'yes'", "'overwrite' must be true or false, not 'yes'"),
        ("share = {AHP = 0.5}", "'share' must be a text, a number, or a list of these"),
        ("share = 'half'", "share"),
        ("share = ", "is not a TOML file"),
    ],
)
def test_a_wrong_plan_is_refused_by_name(entry, message):
    Path("plan.toml").write_text(entry)
    done = run(f"{AGES} --plan plan.toml")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not Path("out").exists()
