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
