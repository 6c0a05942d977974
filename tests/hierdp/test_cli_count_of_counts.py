"""hierdp release count-of-counts, as a newcomer would use it."""

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main

PEOPLE = "state,county,home,n\nA,a,1,2\nA,a,2,1\nA,a2,4,1\nB,b,3,500\n"
FILES = {
    "people.csv": PEOPLE,
    "empty home.csv": PEOPLE + "B,b,9,0\n",
    "regions.csv": "state,county\nA,a\nA,a2\nB,b\nB,never\n",
}
SIZES = (
    "release count-of-counts people.csv --levels state,county --group home --entities n --epsilon 1 "
    "--out out --regions-from-data --groups-from-data"
)
HIDDEN = SIZES.replace("--groups-from-data", "")
SMALL = f"{SIZES} --max-size 600"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)


def run(command):
    done = CliRunner().invoke(main, shlex.split(command), prog_name="hierdp")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def results():
    manifest = json.loads(Path("out/manifest.json").read_text())
    return pd.read_parquet("out/released.parquet"), manifest


def test_a_release():
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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--method 'Hc x Hc'", "2 methods for 3 levels ('root', 'state', 'county')"),
        ("--method Hx", "no method 'Hx'"),
        ("--size-budget 0.1 --max-size 9", "leave out one of them"),
        ("--size-budget 2", "--size-budget is 2.0: it must be a part of --epsilon (1.0)"),
        ("--share 1", "1 shares for 3 levels"),
        ("--max-size 0", "--max-size must be a whole number from 1"),
        ("--merge best", "Invalid value for '--merge'"),
        ("--merge 'at once' --size-budget 0.1", "needs a public largest size, without --size-budget"),
        ("--merge 'at once' --max-size 9000000", "6 regions and sizes up to 9,000,000"),
        ("--group-budget 0", "Invalid value for '--group-budget'"),
    ],
)
def test_invalid_options_are_reported(options, says):
    done = run(f"{SIZES} {options}")
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert not Path("out").exists()


def test_forbidden_empty_group():
    done = run(SMALL.replace("people.csv", "'empty home.csv'") + " --no-empty-groups")
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
