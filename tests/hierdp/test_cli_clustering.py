"""hierdp release clustering, as a newcomer would use it."""

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.clustering import METHODS

FILES = {
    "people.csv": "age,town,n\n3,a,40\n17,b,41\n18,a,1\n64,b,2\n",
    "towns.csv": "town\na\nb\nnever\n",
}
AGES = "release clustering people.csv --numbers age=0:80:8 --count n --epsilon 1 --out out"


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
        "release clustering people.csv --numbers age=0:80:2 --names town --regions towns.csv "
        "--region-levels town --epsilon 1e4 --out out --method AHP-greedy --share 0.5 --eta 0"
    )
    assert done.exit_code == 0, done.output
    table, manifest = results()
    assert table["town"].tolist() == ["a", "b", "never"] * 2
    assert table["count"].tolist() == [2, 1, 0, 0, 1, 0]
    assert manifest["settings"]["eta"] == 0
    assert manifest["taken_as_public"]["regions"] == "from a table of regions"
    run("release clustering people.csv --names town --regions-from-data --epsilon 1 --out out --overwrite")
    assert results()[1]["taken_as_public"]["regions"] == "as seen in the data, which makes them public"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_by_name(method):
    done = run(f"{AGES} --method {method} --simulate 1")
    assert done.exit_code == 0, done.output
    _, manifest = results()
    assert manifest["mechanism"] == method
    assert "NOT private" in manifest["warning"]
    assert method in {listed.name for listed in MECHANISMS["clustering"].methods}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--method sf", "no method 'sf'; did you mean 'SF'? There are 'AHP'"),
        ("--method NF --share 0.3", "NF takes no --share; it takes no options"),
        ("--share 1.5", "share is 1.5: it must lie between 0 and 1"),
        ("--method SF --clusters 9", "clusters is 9: 8 bins form 1 to 8 runs"),
        ("--method GS --width 0", "width is 0"),
        ("--epsilon 0", "epsilon is 0.0"),
    ],
)
def test_mistakes_are_reported_and_nothing_is_written(more, message):
    done = run(f"{AGES} {more}")
    assert done.exit_code == 2
    assert message in done.output
    assert not Path("out").exists()


def test_help_contains_examples():
    text = run("release clustering --help").output
    for words in (
        "without looking at the",
        "--numbers age=0:120 --epsilon 1",
        "Default: 0.35",
        "Neighbouring tables differ",
    ):
        assert words in " ".join(text.split()), words
