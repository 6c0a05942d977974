"""Regions and groups come from a public list, or the release states and warns that they do not."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner
from doubles import Undrawn

from hierdp import Hierarchy, Numbers, SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms import MECHANISMS
from hierdp.privacy.account import Account, open_account
from hierdp.record.cautions import FROM_DATA
from tests.hierdp.changing import change_manifest
from tests.marks import quick

ALL = pd.DataFrame({"town": ["a", "a", "a", "b", "b", "lone"], "home": ["1", "1", "2", "3", "3", "4"]})
"""The last row is a resident who lives alone, in a town without other residents."""
LESS = ALL[:-1]
PLACES = Hierarchy.from_columns({"town": ["a", "b", "lone", "empty"]}, ["town"])
HOMES = pd.DataFrame({"home": ["1", "2", "3", "4", "5"], "town": ["a", "a", "b", "lone", "empty"]})

SIZES = {"group": ["home"], "max_size": 3}
SEEN_SIZES = {**SIZES, "levels": ["town"], "regions_from_data": True}
LISTED_SIZES = {**SIZES, "levels": ["town"], "groups": HOMES}
SEEN = {
    "group-size": {**SEEN_SIZES, "groups_from_data": True},
    "count-of-counts": {**SEEN_SIZES, "groups_from_data": True},
    "top-down": {"axes": {"at": ["town"]}, "delta": 1e-9, "bounded": False, "regions_from_data": True},
    "range-query": {"axes": [("town", ["town"])], "method": "Flat", "regions_from_data": True},
    "clustering": {"axes": [("town", ["town"])], "method": "Laplace", "regions_from_data": True},
}
SEEN["tabulation"] = {
    **{"attributes": ["home"], "attributes_from_data": True, "levels": ["town"], "regions_from_data": True},
    **{"delta": 1e-9, "bounded": False},
}
LISTED = {
    "group-size": LISTED_SIZES,
    "count-of-counts": LISTED_SIZES,
    "top-down": {"axes": {"at": (PLACES, "town")}, "delta": 1e-9, "bounded": False},
    "range-query": {"axes": [("town", (PLACES, "town"))], "method": "Flat"},
    "clustering": {"axes": [("town", (PLACES, "town"))], "method": "Laplace"},
}
LISTED["tabulation"] = {
    **{"attributes": {"home": list("12345")}, "regions": PLACES, "region": "town"},
    **{"delta": 1e-9, "bounded": False},
}


def made(rows, mechanism, options, epsilon=0.001):
    return release(rows, mechanism, epsilon=epsilon, noise=SimulatedNoise(1), **options)


def exact(found):
    """The exact parts of a release: its regions or bins, and its number of groups."""
    regions = [list(one.names[-1]) for one in found.regions.values()]
    bins = [list(found.table[name]) for name in found.table if name.startswith("town")]
    return regions, bins, found.settings.get("groups"), found.settings.get("range_query")


def test_every_mechanism_is_among_them():
    assert set(SEEN) == set(LISTED) == set(NEITHER) == set(MECHANISMS)


@pytest.mark.parametrize("mechanism", quick(SEEN, every=2))
def test_a_lone_resident_shows_only_if_regions_and_groups_are_from_the_data(mechanism):
    seen = [exact(made(rows, mechanism, SEEN[mechanism])) for rows in (ALL, LESS)]
    assert seen[0] != seen[1]
    assert "lone" in str(seen[0])
    assert "lone" not in str(seen[1])
    listed = [exact(made(rows, mechanism, LISTED[mechanism])) for rows in (ALL, LESS)]
    assert listed[0] == listed[1]


def test_the_number_of_groups_shows_the_lone_resident():
    """Without the resident, three of four homes remain; a list or a noisy number hides that."""
    groups = [made(rows, "group-size", SEEN["group-size"]).settings["groups"] for rows in (ALL, LESS)]
    assert groups == [4, 3]
    listed = [made(rows, "group-size", LISTED["group-size"]).settings["groups"] for rows in (ALL, LESS)]
    assert listed == [5, 5]
    hidden = {**SIZES, "group_budget": 0.0005}
    regions = [
        exact(made(rows, "count-of-counts", {**hidden, "levels": ["town"], "regions_from_data": True}))[0]
        for rows in (ALL, LESS)
    ]
    assert regions == [[["a", "b", "lone"]], [["a", "b"]]]  # noise on the groups does not hide the region
    public = {**hidden, "regions": PLACES, "region": "town"}
    assert exact(made(ALL, "count-of-counts", public))[0] == exact(made(LESS, "count-of-counts", public))[0]


@pytest.mark.parametrize("mechanism", quick(SEEN, every=2))
def test_data_dependent_lists_cause_a_warning(mechanism, tmp_path):
    folder = made(ALL, mechanism, SEEN[mechanism]).write(tmp_path / "seen")
    stated = json.loads((folder / "manifest.json").read_text())
    due = [words for name, words in FROM_DATA.items() if name in SEEN[mechanism]]
    assert stated["cautions"][: len(due)] == due
    report = (folder / "report.html").read_text()
    for text in due:
        assert report.index(f'<p class="warning">Warning: {text}.</p>') < report.index("<h2")
    found = {line.check: line for line in check(folder)}
    assert FAILS not in {line.verdict for line in found.values()}
    assert found["warnings"].verdict == HOLDS


@pytest.mark.parametrize("mechanism", SEEN)
def test_lists_are_not_warned_of(mechanism):
    manifest = made(ALL, mechanism, LISTED[mechanism]).manifest()
    assert not {*FROM_DATA.values()} & {*manifest["cautions"]}
    assert not {*FROM_DATA} & {*manifest["settings"]}
    assert "the data" not in str(manifest["taken_as_public"])


CHANGES = {
    "no warning": ("warnings", lambda stated: stated.update(cautions=[])),
    "not said": ("warnings", lambda stated: stated["settings"].pop("regions_from_data")),
    "denied": ("warnings", lambda stated: stated["settings"].update(regions_from_data=False)),
    "denied without a warning": (
        "table from steps",
        lambda stated: stated["settings"].update(regions_from_data=False) or stated["cautions"].pop(0),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_missing_warning_fails(name, tmp_path):
    folder = made(ALL, "group-size", SEEN["group-size"]).write(tmp_path / "seen", report=False)
    failing, change = CHANGES[name]
    change_manifest(folder, change)
    seal.seal(folder)
    assert {line.check: line.verdict for line in check(folder)}[failing] == FAILS


NEITHER = {
    "group-size": {**SIZES, "levels": ["town"]},
    "count-of-counts": {**SIZES, "levels": ["town"]},
    "top-down": {"axes": {"at": ["town"], "there": (PLACES, "town")}, "delta": 1e-9},
    "range-query": {"axes": [Numbers("age", 0, 9), ("at", ["town"])]},
    "clustering": {"axes": [("at", ["town"])]},
    "tabulation": {"attributes": ["home"], "levels": ["town"], "delta": 1e-9},
}


@pytest.mark.parametrize("mechanism", NEITHER)
def test_neither_list_nor_statement_is_refused(mechanism):
    with pytest.raises(InputError) as refused:
        release("no such file.csv", mechanism, epsilon=1, noise=Undrawn(), **NEITHER[mechanism])
    said = str(refused.value)
    assert "regions_from_data=True" in said
    assert ("groups_from_data=True" in said) == (mechanism in LISTED and "group" in str(NEITHER[mechanism]))
    assert ("group_budget" in said) == (mechanism == "count-of-counts")
    assert "'there'" not in said
    assert ("of 'at'" in said) == ("axes" in NEITHER[mechanism])


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (
            "group-size",
            {**LISTED_SIZES, "regions_from_data": True},
            "the groups, with their regions, are listed",
        ),
        ("group-size", {**LISTED_SIZES, "groups_from_data": True}, "groups_from_data does not apply"),
        (
            "group-size",
            {
                **SIZES,
                "regions": PLACES,
                "region": "town",
                "regions_from_data": True,
                "groups_from_data": True,
            },
            "the regions are listed",
        ),
        (
            "count-of-counts",
            {**SEEN["count-of-counts"], "group_budget": 0.1},
            "group_budget protects the number",
        ),
        ("top-down", {**LISTED["top-down"], "regions_from_data": True}, "the regions are listed"),
        ("range-query", {"axes": [Numbers("age", 0, 9)], "regions_from_data": True}, "no axis has regions"),
    ],
)
def test_a_statement_that_does_not_apply_is_refused(mechanism, options, message):
    with pytest.raises(InputError) as refused:
        release("no such file.csv", mechanism, epsilon=1, noise=Undrawn(), **options)
    assert message in str(refused.value)


def test_bins_of_numbers_need_no_list():
    manifest = release(pd.DataFrame({"age": [3]}), "range-query", epsilon=1, noise=SimulatedNoise(1),
                       axes=[Numbers("age", 0, 9)]).manifest()  # fmt: skip
    assert manifest["taken_as_public"] == {}
    assert manifest["cautions"] == []


def test_a_refused_release_costs_nothing(tmp_path):
    path = tmp_path / "homes.account"
    open_account(path, data="homes", epsilon=1)
    with pytest.raises(InputError, match="no public list of regions"):
        release(ALL, "group-size", epsilon=1, account=Account(path, "homes"), **NEITHER["group-size"])
    assert Account(path).statement().left_epsilon == 1


def test_the_command_line_refuses_or_warns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ALL.to_csv("in.csv", index=False)
    arguments = ["release", "group-size", "in.csv", "--levels", "town", "--group", "home", "--max-size", "3"]
    arguments += ["--epsilon", "1", "--simulate", "1", "--out", "out"]
    refused = CliRunner().invoke(main, arguments)
    said = " ".join(refused.output.split())
    assert refused.exit_code == 2
    assert "--regions-from-data" in said
    assert "--groups-from-data" in said
    assert not (tmp_path / "out").exists()
    done = CliRunner().invoke(main, [*arguments, "--regions-from-data", "--groups-from-data"])
    assert done.exit_code == 0, done.output
    for name in ("regions_from_data", "groups_from_data"):
        assert f"Warning: {FROM_DATA[name]}." in " ".join(done.output.split())
