"""What a release takes as public, and its other warnings: stated in the manifest, and checked."""

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

PEOPLE = pd.DataFrame({"town": ["a", "a", "a", "b", "b", "lone"], "home": ["1", "1", "2", "3", "3", "4"]})
"""The last row is a resident who lives alone, in a town without other residents."""
WITHOUT = PEOPLE[:-1]
TOWNS = Hierarchy.from_columns({"town": ["a", "b", "lone", "empty"]}, ["town"])
HOMES = pd.DataFrame({"home": ["1", "2", "3", "4", "5"], "town": ["a", "a", "b", "lone", "empty"]})

BY_SIZE = {"group": ["home"], "max_size": 3, "levels": ["town"]}
UNBOUNDED = {"delta": 1e-9, "bounded": False}
UNLISTED = {
    "group-size": BY_SIZE,
    "count-of-counts": BY_SIZE,
    "top-down": {**UNBOUNDED, "axes": {"at": ["town"]}},
    "range-query": {"axes": [("at", ["town"])], "method": "Flat"},
    "clustering": {"axes": [("at", ["town"])], "method": "Laplace"},
    "tabulation": {**UNBOUNDED, "attributes": ["home"], "levels": ["town"]},
}
"""Options without a list of regions, groups or categories. A release with them alone is refused."""
CATEGORIES = {"home": list("12345")}
LISTED = {
    "group-size": {**BY_SIZE, "groups": HOMES},
    "count-of-counts": {**BY_SIZE, "groups": HOMES},
    "top-down": {**UNBOUNDED, "axes": {"at": (TOWNS, "town")}},
    "range-query": {"axes": [("at", (TOWNS, "town"))], "method": "Flat"},
    "clustering": {"axes": [("at", (TOWNS, "town"))], "method": "Laplace"},
    "tabulation": {**UNBOUNDED, "attributes": CATEGORIES, "regions": TOWNS, "region": "town"},
}
FROM_ROWS = {
    name: {"regions_from_data": True, **dict.fromkeys(flags, True)}
    for name, *flags in [
        ("group-size", "groups_from_data"),
        ("count-of-counts", "groups_from_data"),
        ("top-down",),
        ("range-query",),
        ("clustering",),
        ("tabulation", "attributes_from_data"),
    ]
}
SEEN = {name: {**UNLISTED[name], **FROM_ROWS[name]} for name in UNLISTED}


def simulated(mechanism, options, rows=PEOPLE, **changes):
    return release(rows, mechanism, **{"epsilon": 0.001, "noise": SimulatedNoise(1), **options, **changes})


def published_exactly(released):
    """The regions or bins of a release, and its number of groups."""
    regions = [list(names.names[-1]) for names in released.regions.values()]
    bins = [list(released.table[name]) for name in released.table if name.startswith("at")]
    settings = released.settings
    return regions or bins, settings.get("groups"), settings.get("range_query")


def verdicts_after(folder, change):
    """The lines of `check` by their names, after a change of the manifest by somebody who seals it anew."""
    change_manifest(folder, change)
    seal.seal(folder)
    return {line.check: line.verdict for line in check(folder)}


def test_every_mechanism_has_a_row_in_the_tables():
    assert set(UNLISTED) == set(LISTED) == set(FROM_ROWS) == set(MECHANISMS)


@pytest.mark.parametrize("mechanism", quick(MECHANISMS, every=2))
def test_lists_from_the_data_show_a_lone_resident_and_cause_a_warning(mechanism, tmp_path):
    seen, without = (simulated(mechanism, SEEN[mechanism], rows) for rows in (PEOPLE, WITHOUT))
    assert "lone" in str(published_exactly(seen))
    assert "lone" not in str(published_exactly(without))
    folder = seen.write(tmp_path / "seen")
    due = [FROM_DATA[name] for name in FROM_ROWS[mechanism]]
    assert json.loads((folder / "manifest.json").read_text())["cautions"][: len(due)] == due
    assert "the data" in str(seen.manifest()["taken_as_public"])
    report = (folder / "report.html").read_text()
    for text in due:
        assert report.index(f'<p class="warning">Warning: {text}.</p>') < report.index("<h2")
    verdicts = {line.check: line.verdict for line in check(folder)}
    assert verdicts["warnings"] == HOLDS
    assert FAILS not in verdicts.values()


@pytest.mark.parametrize("mechanism", quick(MECHANISMS, every=2))
def test_public_lists_hide_a_lone_resident_and_cause_no_warning(mechanism):
    listed, without = (simulated(mechanism, LISTED[mechanism], rows) for rows in (PEOPLE, WITHOUT))
    assert published_exactly(listed) == published_exactly(without)
    manifest = listed.manifest()
    assert not {*FROM_DATA.values()} & {*manifest["cautions"]}
    assert not {*FROM_DATA} & {*manifest["settings"]}
    assert "the data" not in str(manifest["taken_as_public"])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_with_neither_lists_nor_the_statement_is_refused_and_costs_nothing(mechanism, tmp_path):
    options = UNLISTED[mechanism]
    if mechanism == "top-down":
        options = {**options, "axes": {"at": ["town"], "there": (TOWNS, "town")}}
    with pytest.raises(InputError, match="there is no public list of") as refused:
        simulated(mechanism, options, "no such file.csv", noise=Undrawn())
    message = str(refused.value)
    for flag in FROM_DATA:
        assert (f"{flag}=True" in message) == (flag in FROM_ROWS[mechanism])
    assert ("group_budget" in message) == (mechanism == "count-of-counts")
    assert ("regions of 'at':" in message) == ("axes" in options)
    account = open_account(tmp_path / "people.account", data="people", epsilon=1, delta=1e-6)
    with pytest.raises(InputError, match="there is no public list of"):
        simulated(mechanism, options, noise=None, account=Account(account.path, "people"))
    assert account.statement().charges == ()


def test_the_number_of_groups_shows_the_lone_resident():
    """Without the resident, three of four homes remain. A list or a noisy number hides that."""
    for options, numbers in ((SEEN, [4, 3]), (LISTED, [5, 5])):
        pair = [simulated("group-size", options["group-size"], rows) for rows in (PEOPLE, WITHOUT)]
        assert [released.settings["groups"] for released in pair] == numbers
    noisy = {"group": ["home"], "max_size": 3, "group_budget": 0.0005}
    of_data = {"levels": ["town"], "regions_from_data": True}
    for options, hidden in ((of_data, False), ({"regions": TOWNS, "region": "town"}, True)):
        pair = [simulated("count-of-counts", {**noisy, **options}, rows) for rows in (PEOPLE, WITHOUT)]
        regions = [published_exactly(released)[0] for released in pair]
        assert (regions[0] == regions[1]) == hidden


REGIONS, GROUPS = {"regions_from_data": True}, {"groups_from_data": True}
LISTED_REGIONS = {"group": ["home"], "max_size": 3, "regions": TOWNS, "region": "town"}


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        ("group-size", {**LISTED["group-size"], **REGIONS}, "the groups, with their regions, are listed"),
        ("group-size", {**LISTED["group-size"], **GROUPS}, "groups_from_data does not apply"),
        ("group-size", {**LISTED_REGIONS, **REGIONS, **GROUPS}, "the regions are listed"),
        ("count-of-counts", {**SEEN["count-of-counts"], "group_budget": 0.1}, "group_budget protects the"),
        ("top-down", {**LISTED["top-down"], **REGIONS}, "the regions are listed"),
        ("range-query", {"axes": [Numbers("age", 0, 9)], **REGIONS}, "no axis has regions"),
    ],
)
def test_a_statement_that_does_not_apply_is_refused(mechanism, options, message):
    with pytest.raises(InputError, match=message):
        simulated(mechanism, options, "no such file.csv", noise=Undrawn())


def test_bins_of_numbers_need_no_list():
    released = simulated("range-query", {"axes": [Numbers("age", 0, 9)]}, pd.DataFrame({"age": [3]}))
    assert released.manifest()["taken_as_public"] == {}
    assert released.cautions == []


def test_the_command_line_refuses_or_warns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("in.csv", index=False)
    command = "release group-size in.csv --levels town --group home --max-size 3 --epsilon 1 --simulate 1"
    command = [*command.split(), "--out", "out"]
    flags = ["--regions-from-data", "--groups-from-data"]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert all(flag in refused.output for flag in flags)
    assert not (tmp_path / "out").exists()
    warned = CliRunner().invoke(main, [*command, *flags])
    assert warned.exit_code == 0, warned.output
    for name in FROM_ROWS["group-size"]:
        assert f"Warning: {FROM_DATA[name]}." in " ".join(warned.output.split())


TRIPS = pd.DataFrame({"o": ["a", "b", "a", "a", "b"] * 5, "d": ["a", "a", "b", "b", "a"] * 5})
PLACES = Hierarchy.from_columns({"place": ["a", "b"]}, ["place"])
OF_TRIPS = {
    "top-down": {"epsilon": 1.0, "delta": 1e-6, "axes": {"o": (PLACES, "o"), "d": (PLACES, "d")}},
    "tabulation": {
        "epsilon": 1.0, "delta": 1e-6, "attributes": ["d=a,b"], "regions": PLACES, "region": "o",
    },
}  # fmt: skip
OF_BUDGETS = [
    ({}, None),
    ({"epsilon": 20}, None),
    ({"epsilon": 20.1}, "ε = 20.1 is so large"),
    ({"delta": 0.039}, None),
    ({"delta": 0.04}, "δ = 0.04 is too large for 25 counted rows (the public total)"),
    ({"delta": 0.5, "bounded": False, "epsilon": 9.0}, "counted rows (the released total)"),
]
OF_TOTALS = [
    ({"trips": 5}, None),
    ({"trips": 4}, "the total of 25 is not a multiple of 4 trips a person"),
    ({"trips": 4, "bounded": False}, None),
]
WARNED = [("tabulation", *case) for case in OF_BUDGETS]
WARNED += [("top-down", *case) for case in [*OF_BUDGETS, *OF_TOTALS]]


@pytest.mark.parametrize(("mechanism", "options", "words"), WARNED)
def test_warnings_about_weak_guarantees(mechanism, options, words):
    cautions = simulated(mechanism, {**OF_TRIPS[mechanism], **options}, TRIPS).cautions
    assert len(cautions) == (words is not None)
    assert all(words in text for text in cautions)


def test_the_total_in_a_warning_is_the_released_one():
    released = simulated("top-down", {**OF_TRIPS["top-down"], "delta": 0.5, "bounded": False}, TRIPS)
    total = released.table["count"][released.table["level"] == 0].sum()
    assert f"too large for {total:,} counted rows" in released.cautions[0]


@pytest.fixture
def warned(tmp_path):
    of_data = {"axes": {"o": ["o"], "d": (PLACES, "d")}, "regions_from_data": True}
    return simulated("top-down", {**of_data, "epsilon": 30, "delta": 0.5, "trips": 3}, TRIPS).write(
        tmp_path / "out"
    )


def test_every_warning_is_in_the_manifest_and_the_report(warned):
    cautions = json.loads((warned / "manifest.json").read_text())["cautions"]
    assert len(cautions) == 4
    assert cautions[0] == FROM_DATA["regions_from_data"]
    report = (warned / "report.html").read_text()
    assert all(f'<p class="warning">Warning: {text}.</p>' in report for text in cautions)
    lines = {line.check: line for line in check(warned)}
    assert FAILS not in {line.verdict for line in lines.values()}
    assert lines["warnings"].why == "; ".join(cautions)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["cautions"].pop(),
        lambda manifest: manifest.update(cautions=[]),
        lambda manifest: manifest["cautions"].append("do not use this"),
    ],
)
def test_changed_warnings_fail(warned, change):
    assert verdicts_after(warned, change)["manifest"] == FAILS


def deny(manifest):
    manifest["settings"].update(regions_from_data=False)


@pytest.mark.parametrize(
    ("failing", "change"),
    [
        ("manifest", lambda manifest: manifest.pop("cautions")),
        ("manifest", lambda manifest: manifest.update(cautions=[])),
        ("manifest", lambda manifest: manifest["settings"].pop("regions_from_data")),
        ("manifest", deny),
        ("table from steps", lambda manifest: deny(manifest) or manifest["cautions"].pop(0)),
    ],
)
def test_a_release_that_hides_that_its_lists_are_from_the_data_fails(failing, change, tmp_path):
    folder = simulated("group-size", SEEN["group-size"]).write(tmp_path / "seen", report=False)
    assert verdicts_after(folder, change)[failing] == FAILS


def test_a_simulated_release_says_so_beside_its_tables(tmp_path):
    folders = [
        simulated("top-down", OF_TRIPS["top-down"], TRIPS, noise=noise).write(tmp_path / name)
        for name, noise in (("simulated", SimulatedNoise(1)), ("exact", None))
    ]
    marks = [folder / "NOT-PRIVATE.txt" for folder in folders]
    assert "NOT private" in marks[0].read_text()
    assert not marks[1].exists()
    for folder in folders:
        assert "warnings" not in {line.check for line in check(folder)}
    marks[0].rename(marks[1])
    assert [verdicts_after(folder, lambda _: None)["warnings"] for folder in folders] == [FAILS, FAILS]
