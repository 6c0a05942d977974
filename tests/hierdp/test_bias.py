"""Mean errors by size of the count, simulated on the release itself; what a report says of true counts."""

import json

import numpy as np
import pandas as pd
import pytest

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.mechanisms import MECHANISMS
from hierdp.questions import bias
from hierdp.questions.bias import SEED, TIMES, simulated_errors
from hierdp.reports.release import release_report

TRIPS = pd.DataFrame(
    {"at": np.repeat(list("abcdef"), 6), "to": list("abcdef") * 6, "n": [0, 1, 2, 5, 12, 0, 150, 3, 0] * 4}
)
AXES = {"axes": {"at": ["at"], "to": ["to"]}, "count": "n", "regions_from_data": True, "delta": 1e-6}
KINDS = {"levels": ["at"], "attributes": {"to": list("abcdef")}, "count": "n", "regions_from_data": True,
         "delta": 1e-6}  # fmt: skip
CASES = {"top-down": AXES, "tabulation": KINDS}


@pytest.fixture(autouse=True)
def as_many_as_a_release(monkeypatch):
    monkeypatch.setattr(bias, "TIMES", TIMES)  # `tests/conftest.py` has fewer


def made_by(name, **more):
    return release(TRIPS, name, epsilon=1.0, noise=SimulatedNoise(3), **CASES[name], **more)


def dense(table):
    last = table[table["level"] == table["level"].max()]
    first = "region" if "region" in table else "at"
    return last.set_index([first, "to"])["count"].reindex(
        pd.MultiIndex.from_product([list("abcdef")] * 2), fill_value=0
    )


@pytest.mark.parametrize("name", CASES)
def test_the_errors_are_those_of_second_releases_by_definition(name):
    made = made_by(name)
    found = made.simulated_errors
    again = MECHANISMS[name].bootstrap
    before = dense(made.table).to_numpy()
    stated = {"settings": made.settings, "budget": made.ledger.as_dict(), "mechanism": made.mechanism}
    after = np.array(
        [
            dense(again(made.table, stated, made.regions, SimulatedNoise(SEED + k))).to_numpy()
            for k in range(TIMES)
        ]
    )
    assert sum(one["counts"] for one in found["classes"]) == 36
    for one in found["classes"]:
        here = (before >= one["from"]) & (before <= (one["to"] if one["to"] is not None else np.inf))
        assert one["counts"] == here.sum()
        # Three digits are kept.
        assert one["mean_error"] == pytest.approx((after - before)[:, here].mean(), rel=6e-3)
        assert one["deviation"] == pytest.approx((after - before)[:, here].std(), rel=6e-3)
        if one["from"]:
            assert one["became_0"] == pytest.approx((after[:, here] == 0).mean(), rel=6e-3)


def test_the_report_shows_them_and_check_accepts_it(tmp_path):
    made = made_by("top-down")
    folder = made.write(tmp_path / "out")
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "too high on average" not in text
    assert f"released again {TIMES} times" in text
    assert "became 0" in text
    assert all(found.verdict != FAILS for found in check(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["simulated_errors"] == made.simulated_errors
    manifest["simulated_errors"]["classes"][0]["mean_error"] = 0.5
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert [found.verdict for found in check(folder) if found.check == "report"] == [FAILS]


def test_the_report_says_from_how_many_counts_on_the_average_error_of_a_sum_is_the_larger_one():
    made = made_by("tabulation")
    manifest = made.manifest()
    counts = {"from": 1, "to": 9, "counts": 40, "mean_error": -0.5, "deviation": 2.0, "became_0": 0.1}
    others = [  # chance prevails in sums of all there are; and no error at all
        {**counts, "from": 10, "to": None, "counts": 3, "mean_error": 0.5, "became_0": 0.0},
        {**counts, "from": 0, "to": 0, "mean_error": 0.0, "deviation": 0.0, "became_0": None},
    ]
    manifest["simulated_errors"] = {"times": 5, "seed": 1, "classes": [counts, *others]}
    text = release_report(made.table, manifest)
    assert "a sum of k counts released as 1 to 9 is off by about 0.5 · k on average" in text
    assert "about 2 · √k by chance: from 16 counts on" in text
    cells = '<td data-name="{}" class="number">{}</td>'
    names = "counts added up", "off on average by", "by chance by"
    assert "".join(map(cells.format, names, ("100", "50", "20"))) in text
    manifest["simulated_errors"] = {"times": 5, "seed": 1, "classes": others}
    assert "a sum of k counts" not in release_report(made.table, manifest)


def test_releases_without_second_releases_say_so():
    rows = pd.DataFrame({"at": list("aab"), "home": [1, 2, 3]})
    sizes = {"levels": ["at"], "group": ["home"], "max_size": 3, "regions_from_data": True}
    made = release(rows, "group-size", epsilon=1.0, groups_from_data=True, **sizes)
    assert made.simulated_errors is None
    text = release_report(made.table, made.manifest())
    assert "By how much was not simulated for this release" in text


def test_unrepaired_or_large_releases_are_not_simulated(monkeypatch):
    assert made_by("top-down", method="VanillaGauss").simulated_errors is None
    assert made_by("top-down", method="SH").simulated_errors is None
    made = made_by("top-down")
    monkeypatch.setattr(type(MECHANISMS["top-down"]), "most_simulated", len(made.table) - 1)
    assert simulated_errors(MECHANISMS["top-down"], made) is None


# What the report says of true counts


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("top-down", {}, "Without noise, because they count as public: the total. No other true count"),
        ("top-down", {"bounded": False}, "No true count is in any of the files."),
        ("tabulation", {"bounded": False}, "No true count is in any of the files."),
        (
            "tabulation",
            {"invariants": ["at:total"]},
            "count as public: the total and the invariant at:total. No other",
        ),
    ],
    ids=str,
)
def test_the_report_says_which_counts_are_exact(name, more, words):
    made = made_by(name, **more)
    assert words in release_report(made.table, made.manifest())


@pytest.mark.parametrize(("name", "of"), [("group-size", ""), ("count-of-counts", " of each region")])
def test_the_report_says_that_the_number_of_groups_is_exact(name, of):
    rows = pd.DataFrame({"at": list("aab"), "home": [1, 2, 3]})
    given = {"levels": ["at"], "group": ["home"], "max_size": 3, "regions_from_data": True}
    made = release(rows, name, epsilon=1.0, groups_from_data=True, **given)
    assert f"public: the number of groups{of}. No other" in release_report(made.table, made.manifest())
    if of:
        made = release(rows, name, epsilon=1.0, group_budget=0.5, **given)
        assert "No true count is in any of the files." in release_report(made.table, made.manifest())


def test_the_report_of_a_checked_release_is_the_same(tmp_path):
    folder = made_by("tabulation").write(tmp_path / "out")
    assert [found.verdict for found in check(folder) if found.check == "report"] == [HOLDS]
    assert bias.CLASSES[0] == 0


def test_an_attribute_may_be_called_kind():
    """The report took the list of attributes for an axis, and failed after the noise was drawn."""
    rows = TRIPS.rename(columns={"to": "kind"})
    given = {**KINDS, "attributes": {"kind": list("abcdef")}}
    made = release(rows, "tabulation", epsilon=1.0, noise=SimulatedNoise(3), **given)
    assert "kind: a, b, c, d, e, f" in release_report(made.table, made.manifest())
