"""Warnings about weak promises appear in manifest and report, and `hierdp check` verifies them."""

import json

import pandas as pd
import pytest

from hierdp import Hierarchy, SimulatedNoise, release
from hierdp.checking import FAILS, check
from hierdp.execution import seal
from tests.hierdp.changing import change_manifest

TRIPS = pd.DataFrame({"o": ["a", "b", "a", "a", "b"] * 5, "d": ["a", "a", "b", "b", "a"] * 5})
PLACES = Hierarchy.from_columns({"place": ["a", "b"]}, ["place"])
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "axes": {"o": (PLACES, "o"), "d": (PLACES, "d")}}


def made(**options):
    return release(TRIPS, "top-down", **{**OPTIONS, "noise": SimulatedNoise(1), **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, None),
        ({"epsilon": 20}, None),
        ({"epsilon": 20.1}, "ε = 20.1 is so large"),
        ({"delta": 0.039}, None),
        ({"delta": 0.04}, r"δ = 0.04 is too large for 25 counted rows (the public total)"),
        ({"delta": 0.5, "bounded": False, "epsilon": 9}, "counted rows (the released total)"),
        ({"trips": 5}, None),
        ({"trips": 4}, "the total of 25 is not a multiple of 4 trips a person"),
        ({"trips": 4, "bounded": False}, None),
    ],
)
def test_what_is_warned_of(options, words):
    found = made(**options).cautions
    assert bool(found) == (words is not None)
    assert words is None or words in found[0]


TABLES = {"delta": 1e-6, "attributes": ["d=a,b"], "regions": PLACES, "region": "o"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, None),
        ({"epsilon": 20.1}, "ε = 20.1 is so large"),
        ({"delta": 0.039}, None),
        ({"delta": 0.04}, "δ = 0.04 is too large for 25 counted rows (the public total)"),
        ({"delta": 0.5, "epsilon": 9.0, "bounded": False}, "counted rows (the released total)"),
    ],
)
def test_what_a_tabulation_is_warned_of(options, words):
    given = {"epsilon": 1.0, **TABLES, "noise": SimulatedNoise(1), **options}
    found = release(TRIPS, "tabulation", **given).cautions
    assert [text for text in found if words is None or words not in text] == []
    assert bool(found) == (words is not None)


def test_every_warning_is_in_manifest_and_report(tmp_path):
    folder = made(epsilon=30, delta=0.5, trips=3).write(tmp_path / "out")
    stated = json.loads((folder / "manifest.json").read_text())["cautions"]
    assert len(stated) == 3
    report = (folder / "report.html").read_text()
    for text in stated:
        assert f'<p class="warning">Warning: {text}.</p>' in report
    found = {line.check: line for line in check(folder)}
    assert FAILS not in {line.verdict for line in found.values()}
    assert found["warnings"].why == "; ".join(stated)


CHANGES = {
    "a warning is taken out": lambda stated: stated["cautions"].pop(),
    "all are": lambda stated: stated.update(cautions=[]),
    "one is made up": lambda stated: stated["cautions"].append("do not use this"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_warning_fails(tmp_path, name):
    folder = made(epsilon=30).write(tmp_path / "out", report=False)
    change_manifest(folder, CHANGES[name])
    seal.seal(folder)
    assert {line.check: line.verdict for line in check(folder)}["warnings"] == FAILS


def test_a_simulated_run_says_so_beside_its_tables(tmp_path):
    simulated, exact = made().write(tmp_path / "out"), made(noise=None).write(tmp_path / "exact")
    assert "NOT private" in (simulated / "NOT-PRIVATE.txt").read_text()
    assert not (exact / "NOT-PRIVATE.txt").exists()
    for folder in (simulated, exact):
        assert "warnings" not in {line.check for line in check(folder)}
    (simulated / "NOT-PRIVATE.txt").rename(exact / "NOT-PRIVATE.txt")
    for folder in (simulated, exact):
        seal.seal(folder)
        assert {line.check: line.verdict for line in check(folder)}["warnings"] == FAILS


def test_release_without_warnings_from_older_versions_passes(tmp_path):
    folder = made(epsilon=30).write(tmp_path / "out", report=False)
    change_manifest(folder, lambda stated: stated.pop("cautions"))
    (folder / "NOT-PRIVATE.txt").unlink()
    seal.seal(folder)
    assert FAILS not in {line.verdict for line in check(folder)}
