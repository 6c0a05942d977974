"""Releases for persons: options, ledgers, accounts and checks. See `test_what_one_person_changes.py`."""

import numpy as np
import pandas as pd
import pytest
from test_clustering import Choosing

from hierdp import SimulatedNoise, release
from hierdp.checking import check
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.privacy.account import open_account
from hierdp.privacy.budget import Ledger, PersonRows, of_one_row
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.threshold import Changes
from tests.hierdp.changing import change_manifest
from tests.marks import quick

PLACES = Hierarchy.flat("place", ["A", "B"])
HOMES = pd.DataFrame({"place": ["A", "A", "B"], "home": ["1", "2", "3"]})
CELLS = [("A", "1", 0), ("A", "2", 1), ("B", "3", 3)]
"""The cells that a row may be in: place, home and age."""

OTHERS = [[CELLS[0], CELLS[2]], [CELLS[1]] * 3]

SIZES = {"group": ["home"], "groups": HOMES, "regions": PLACES, "region": "place"}
BINS = {"axes": [Numbers("age", 0, 4)]}
TABLES = {"attributes": {"home": ["1", "2", "3"]}, "regions": PLACES, "region": "place", "delta": 1e-6,
          "bounded": False}  # fmt: skip
PLACE = {"axes": {"at": (PLACES, "place"), "to": (PLACES, "to")}, "delta": 1e-6, "bounded": False}

CASES = [
    ("group-size", {**SIZES, "max_size": 4}),
    ("group-size", {**SIZES, "max_size": 4, "method": "M_H^dp"}),
    ("count-of-counts", {**SIZES, "max_size": 9}),
    ("count-of-counts", {**SIZES, "max_size": 9, "method": "Hg"}),
    ("count-of-counts", {**SIZES, "size_budget": 0.1, "group_budget": 0.2, "method": "naive"}),
    ("range-query", {**BINS, "branching": 2}),
    ("range-query", {**BINS, "method": "Wavelet"}),
    ("clustering", BINS),
    ("clustering", {**BINS, "method": "GS"}),
    ("clustering", {**BINS, "method": "NF"}),
    ("top-down", PLACE),
    ("top-down", {**PLACE, "distinct": True}),
    ("tabulation", TABLES),
    ("top-down", {**PLACE, "method": "VanillaGauss"}),
    ("top-down", {**PLACE, "method": "VanillaGauss", "distinct": True}),
]


def names(case):
    return " ".join([case[0], *(f"{k}={v}" for k, v in case[1].items() if isinstance(v, str | bool))])


BY_NAME = {names(case): case for case in CASES}


def table(*people):
    rows = [(f"p{i}", *line) for i, lines in enumerate(people) for line in lines]
    frame = pd.DataFrame(rows, columns=["id", "place", "home", "age"])
    return frame.assign(to=frame.place)


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    """The guarantee holds for each key, so neighbours are compared under the same key."""
    monkeypatch.setattr("hierdp.tables.persons.secrets.token_hex", lambda _: "a key")


@pytest.mark.parametrize("case", quick(list(BY_NAME), every=4))
def test_a_release_for_persons_holds_in_every_check(case, tmp_path):
    mechanism, options = BY_NAME[case]
    made = release(table(*OTHERS), mechanism, epsilon=1.0, person="id", rows_per_person=3, **options)
    assert made.ledger.spent <= (made.ledger.rho if made.ledger.zcdp else 1.0)
    assert made.manifest()["budget"]["person"]["rows"] == 3
    found = check(made.write(tmp_path / "out"))
    assert [line for line in found if line.verdict == "FAILS"] == []
    (privacy,) = [line for line in found if line.check == "privacy"]
    assert "a person, by column 'id', with up to 3 rows" in privacy.why


@pytest.mark.parametrize("options", [{}, {"method": "SH"}], ids=str)
def test_the_noise_for_a_person_grows_with_the_rows(options):
    scales = []
    for rows in (1, 4):
        made = release(table(*OTHERS), "top-down", epsilon=1.0, noise=SimulatedNoise(0), person="id",
                       rows_per_person=rows, **PLACE, **options)  # fmt: skip
        scales.append(made.ledger.spends[0].scale)
    assert scales[1] == pytest.approx(4 * scales[0])


def test_private_choices_cost_what_a_person_may():
    """For boundaries by permute-and-flip, the loss of each choice is multiplied by a person's rows."""
    rows = table(*OTHERS, [CELLS[0]] * 3)
    noise = Choosing([0, 1], make=lambda true: np.full(true.shape, 2))
    made = release(rows, "clustering", epsilon=1.0, noise=noise, person="id", rows_per_person=3,
                   method="SF", clusters=2, **BINS)  # fmt: skip
    assert sum(spend.epsilon for spend in made.ledger.spends) <= of_one_row(1.0, 3)


def test_the_stability_histogram_counts_all_of_a_persons_rows():
    seen = []

    class Stable(SimulatedNoise):
        def draw(self, query, true):
            seen.append(query.threshold.changes)
            return super().draw(query, true)

    for distinct in (False, True):
        release(table(*OTHERS), "top-down", epsilon=1.0, noise=Stable(0), person="id", rows_per_person=3,
                method="SH", distinct=distinct, **PLACE)  # fmt: skip
    assert seen == [Changes(3, 3, 3, 3), Changes(3, 3, 1, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"person": "id"}, "person needs rows_per_person"),
        ({"rows_per_person": 2}, "rows_per_person needs person"),
        ({"person": "id", "rows_per_person": 0}, "whole number, 1 or more|at least 1"),
        ({"person": "who", "rows_per_person": 2}, "no column 'who'"),
    ],
)
@pytest.mark.parametrize("mechanism", ["group-size", "range-query", "tabulation", "top-down"])
def test_a_wrong_choice_of_persons_is_named(mechanism, options, message):
    given = {"group-size": {**SIZES, "max_size": 4}, "range-query": BINS, "top-down": PLACE,
             "tabulation": TABLES}[mechanism]  # fmt: skip
    with pytest.raises(InputError, match=message):
        release(table(*OTHERS), mechanism, epsilon=1.0, **given, **options)


def test_top_down_for_persons_needs_a_noisy_total():
    given = {**PLACE, "person": "id", "rows_per_person": 2}
    with pytest.raises(InputError, match="give bounded=False"):
        release(table(*OTHERS), "top-down", epsilon=1.0, **{**given, "bounded": True})
    with pytest.raises(InputError, match="trips cannot be given with person"):
        release(table(*OTHERS), "top-down", epsilon=1.0, trips=3, **given)


def test_an_account_is_charged_for_a_person(tmp_path):
    account = open_account(tmp_path / "account", "rows", 2.0, unit="person", column="id")
    release(
        table(*OTHERS), "range-query", epsilon=0.5, person="id", rows_per_person=3, account=account, **BINS
    )
    with pytest.raises(InputError, match="person"):
        release(table(*OTHERS), "range-query", epsilon=0.5, account=account, **BINS)


def test_the_command_line_takes_persons(tmp_path, capsys):
    table(*OTHERS).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as done:
        main(["release", "range-query", str(tmp_path / "rows.csv"), "--numbers", "age=0:4", "--person", "id",
          "--rows-per-person", "2", "--epsilon", "1", "--out", str(out)])  # fmt: skip
    assert done.value.code == 0
    assert "for a person, by column 'id', with up to 2 rows" in " ".join(capsys.readouterr().out.split())
    assert "up to 2 rows" in (out / "report.html").read_text(encoding="utf-8")


LIES = [
    (
        "range-query",
        {"spends_are_for": "one person"},
        "manifest",
        "'spends_are_for' is 'one person', but 'one row' follows",
    ),
    ("range-query", {"rows": 2}, "manifest", "'spent' is"),
    ("range-query", {"rows": 4}, "budget: sum", "more than the budget"),
    (
        "top-down",
        {"spends_are_for": "one row", "rows": 1},
        "manifest",
        "'rows' is 1, but 3 follows",
    ),
    ("top-down", {"rows": 9}, "manifest", "'rows' is 9, but 3 follows"),
]


@pytest.mark.parametrize(("mechanism", "lie", "where", "why"), LIES, ids=str)
def test_a_check_finds_a_false_claim_on_persons(tmp_path, mechanism, lie, where, why):
    options = {"range-query": BINS, "top-down": PLACE}[mechanism]
    made = release(table(*OTHERS), mechanism, epsilon=1.0, person="id", rows_per_person=3, **options)
    change_manifest(made.write(tmp_path / "out"), lambda manifest: manifest["budget"]["person"].update(lie))
    lines = [line for line in check(tmp_path / "out") if line.check == where and line.verdict == "FAILS"]
    assert any(why in line.why for line in lines), lines


def test_a_loss_of_a_row_cannot_pass_for_that_of_a_person():
    spend = {"query": "q", "noise": "double-geometric", "sensitivity": 1, "scale": 1.0, "epsilon": 0.5,
             "rho": None, "private": True}  # fmt: skip
    entries = {"epsilon": 1.0, "delta": 0.0, "neighbouring_relation": "", "spends": [spend]}
    Ledger.from_dict({**entries, "person": {"column": "id", "rows": 2, "spends_are_for": "one row"}})
    with pytest.raises(InputError, match="more than the budget"):
        Ledger.from_dict({**entries, "person": {"column": "id", "rows": 3, "spends_are_for": "one row"}})
    with pytest.raises(InputError, match="those of a person"):
        Ledger.from_dict({**entries, "delta": 1e-6, "spends": [{**spend, "delta": 1e-7}],
                          "person": {"column": "i", "rows": 2, "spends_are_for": "one row"}})  # fmt: skip
    concentrated = {
        **entries,
        "delta": 1e-6,
        "spends": [{**spend, "epsilon": None, "rho": rho_of(1.0, 1e-6) / 4}],
    }
    Ledger.from_dict({**concentrated, "person": {"column": "i", "rows": 2, "spends_are_for": "one row"}})
    with pytest.raises(InputError, match="more than the budget"):  # of three rows, nine times the ρ
        Ledger.from_dict({**concentrated, "person": {"column": "i", "rows": 3, "spends_are_for": "one row"}})
    for rows, what in ((0, "one row"), (True, "one row"), (2, "one trip")):
        with pytest.raises(InputError, match="a guarantee for persons cannot rest on"):
            PersonRows("id", rows, what)
