"""Names beside codes, blanks for small counts, and copies for Excel and SDMX."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import Hierarchy, InputError, Numbers, SimulatedNoise, evaluate, release
from hierdp.checking import FAILS, check
from hierdp.cli import main
from hierdp.publication.copy import copy_of
from hierdp.publication.formats import write_copy
from hierdp.questions.tables import Questions
from hierdp.tables import read_labels
from hierdp.tables.labels import labels_for
from tests.hierdp.changing import change_manifest

TOWNS = Hierarchy.from_columns({"state": ["1", "1", "2"], "town": ["11", "12", "21"]}, ["state", "town"])
LABELS = {"11": "Aix", "12": "Brest", "21": "=cmd|x", "2": "South"}
TRIPS = pd.DataFrame({"o": ["11", "11", "12", "21"], "d": ["12", "21", "11", "11"], "n": [700, 30, 4, 900]})
AXES = {"from": (TOWNS, "o"), "to": (TOWNS, "d")}


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture(scope="module")
def made():
    return release(TRIPS, "top-down", axes=AXES, count="n", epsilon=9, delta=1e-3, noise=SimulatedNoise(4))


@pytest.fixture
def folder(made, tmp_path):
    return made.write(tmp_path / "out", labels=LABELS, title="Trips of towns")


def test_labels_are_read_from_two_columns_or_code_and_name(tmp_path):
    pd.DataFrame({"name": ["Aix", None], "more": [1, 2], "code": ["011", "012"]}).to_csv(
        tmp_path / "l.csv", index=False
    )
    assert read_labels(tmp_path / "l.csv") == {"011": "Aix"}
    pd.DataFrame({"fips": [11, 12], "town": ["Aix", "Brest"]}).to_parquet(tmp_path / "l.parquet")
    assert read_labels(tmp_path / "l.parquet") == {"11": "Aix", "12": "Brest"}
    with pytest.raises(InputError, match="two names for '1'"):
        read_labels(pd.DataFrame({"code": ["1", "1"], "name": ["A", "B"]}))
    with pytest.raises(InputError, match="has the columns 'code' and 'name', or two columns"):
        read_labels(pd.DataFrame({"code": ["1"], "label": ["A"], "more": [1]}))
    with pytest.raises(InputError, match="no code of the table of labels is a region"):
        labels_for(pd.DataFrame({"code": ["01"], "name": ["A"]}), {}, ["1"])


def test_a_report_has_the_names_and_passes_its_check(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["labels"] == LABELS
    assert "11 Aix → 12 Brest" in (folder / "report.html").read_text()
    assert set(pd.read_parquet(folder / "released.parquet")["from"]) <= {"all", "1", "2", *LABELS}
    lines = check(folder)
    assert not [line for line in lines if line.verdict == FAILS]
    assert {line.check: line.verdict for line in lines}["report"] == "holds"


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (["11"], "'labels' is not a list of entries by name"),
        ({"11": 5}, "'labels', '11' is 5, but '5' follows from the rest of the release"),
        ("Aix", "'labels' is not a list of entries by name"),
    ],
)
def test_labels_that_are_no_names_fail_the_check(folder, labels, why):
    change_manifest(folder, lambda manifest: manifest.update(labels=labels))
    said = [line.why for line in check(folder) if line.check == "manifest" and line.verdict == FAILS]
    assert said == [why]


def test_questions_take_names_and_suggest_them(made, folder):
    questions = Questions(made.table, made.settings, made.regions, LABELS)
    assert questions.ask("from=Aix; to=Brest") == questions.ask("from=11; to=12")
    assert questions.ask("from=South") == questions.ask("from=2")
    with pytest.raises(InputError, match="unknown name 'Brst'; did you mean 'Brest'"):
        questions.ask("from=Brst")
    with pytest.raises(InputError, match="unknown name 'Paris'; there are '1', '11'"):
        Questions(made.table, made.settings, made.regions).ask("from=Paris")
    with pytest.raises(InputError, match="'11', '12' are all called 'Town'"):
        Questions(made.table, made.settings, made.regions, {"11": "Town", "12": "Town"}).ask("from=Town")
    (row,) = csv.DictReader(run("query", folder, "--where", "from=Aix", "--csv").output.splitlines())
    assert row["named"] == "from=11 Aix"
    assert int(row["estimate"]) == questions.ask("from=11").estimate


def test_the_worst_cells_have_names(folder, made):
    named = evaluate(folder, TRIPS, count="n", axes={"from": "o", "to": "d"}).worst["cell"]
    codes = evaluate(made, TRIPS, count="n", axes={"from": "o", "to": "d"}).worst["cell"]
    assert len(codes) == len(named)
    labels = pd.DataFrame({"code": LABELS.keys(), "name": LABELS.values()})
    own = evaluate(made, TRIPS, labels=labels, count="n", axes={"from": "o", "to": "d"}).worst["cell"]
    assert own.tolist() == named.tolist()
    for one, other in zip(codes, named, strict=True):
        assert " → ".join(part.split(" ")[0] for part in other.split(" → ")) == one


def test_ranges_of_names_take_labels(tmp_path):
    rows = pd.DataFrame({"town": ["11", "12", "12"]})
    made = release(rows, "range-query", axes=[("town", (TOWNS, "town"))], epsilon=9, noise=SimulatedNoise(1))
    out = made.write(tmp_path / "out", labels=LABELS, report=False)
    by_name, by_code = (run("query", out, "--range", text, "--csv").output for text in ("Aix:Brest", "11:12"))
    assert by_name.splitlines()[1].partition(",")[2] == by_code.splitlines()[1].partition(",")[2]


def test_labels_of_other_codes_do_not_end_a_release_whose_budget_is_spent(tmp_path):
    TRIPS.to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"code": ["x"], "name": ["X"]}).to_csv(tmp_path / "l.csv", index=False)
    done = run("release", "top-down", tmp_path / "t.csv", "--axis", "from=o", "--axis", "to=d", "--count",
               "n", "--regions-from-data", "--epsilon", 1, "--delta", 1e-3, "--simulate", 1, "--out",
               tmp_path / "out", "--labels", tmp_path / "l.csv")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "no code of the table of labels is a region" in " ".join(done.output.split())
    assert "labels" not in json.loads((tmp_path / "out" / "manifest.json").read_text())


def test_a_copy_has_names_and_blanks_and_the_release_stays_whole(folder, made):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    copy = copy_of(folder, suppress_below=100)
    small = (made.table["count"] != 0) & (made.table["count"] < 100)
    assert 0 < small.sum() < len(small)
    assert copy.table["suppressed"].sum() == small.sum()
    assert copy.table["count"].isna().tolist() == small.tolist()
    assert copy.table["count"].dropna().tolist() == made.table["count"][~small].tolist()
    assert copy.table.loc[copy.table["from"] == "11", "from_name"].unique().tolist() == ["Aix"]
    assert f"{small.sum()} counts other than 0 and under 100 are blank" in copy.about["Suppression"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    whole = copy_of(folder, finest=True)
    assert whole.table["count"].tolist() == made.finest()["count"].tolist()
    assert "Suppression" not in whole.about


def test_blanks_hide_what_would_give_the_count(tmp_path):
    rows = pd.DataFrame({"age": np.arange(30) % 6})
    out = release(rows, "range-query", axes=[Numbers("age", 0, 6)], epsilon=1, noise=SimulatedNoise(1)).write(
        tmp_path / "out", report=False
    )
    copy = copy_of(out, suppress_below=5)
    blank = copy.table["suppressed"]
    assert blank.any()
    assert copy.table.loc[blank, ["count", "standard_error"]].isna().all(axis=None)


def test_a_copy_for_excel_has_texts_not_formulas(folder, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path = write_copy(copy_of(folder, suppress_below=100), "excel", tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(path)
    head, *rows = book["Counts"].values
    assert head[:4] == ("level", "from_level", "from", "from_name")
    assert len(rows) == len(copy_of(folder).table)
    names = [cell for row in book["Counts"] for cell in row if cell.value == "=cmd|x"]
    assert names
    assert all(cell.data_type == "s" for cell in names)
    about = dict(book["About"].values)
    assert about["Title"] == "Trips of towns"
    assert about["Privacy budget"] == "ε = 9, δ = 0.001"
    assert "Suppressed" in about["Suppression"]


def test_sdmx_csv_has_ids_names_and_metadata(folder, tmp_path):
    path = write_copy(copy_of(folder, suppress_below=100), "sdmx-csv", tmp_path / "t.csv", agency="Office",
                      time_period="2024")  # fmt: skip
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    head = ["STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "FROM_LEVEL", "FROM", "from_name"]
    assert list(rows[0])[:7] == head
    assert {row["STRUCTURE_ID"] for row in rows} == {"OFFICE:TRIPS_OF_TOWNS(1.0)"}
    about = {(row["TIME_PERIOD"], row["DP_EPSILON"], row["DP_DELTA"]) for row in rows}
    assert about == {("2024", "9.0", "0.001")}
    assert {(row["OBS_VALUE"] == "", row["OBS_STATUS"]) for row in rows} == {(True, "Q"), (False, "A")}
    assert "NOT private" in rows[0]["COMMENT_DSET"]
    keys = [tuple(row[name] for name in ("FROM_LEVEL", "FROM", "TO_LEVEL", "TO")) for row in rows]
    assert len(set(keys)) == len(rows)  # the dimensions identify an observation


@pytest.mark.parametrize(
    ("to", "name", "more", "message"),
    [
        ("excel", "t.xls", {}, "ends in .xlsx"),
        ("csv", "there.csv", {}, "exists"),
        ("csv", "out/t.csv", {}, "is in a release, whose files are sealed"),
        ("csv", "none/t.csv", {}, "does not exist"),
        ("csv", "t.csv", {"time_period": "2024"}, "are for sdmx-csv"),
        ("html", "t.html", {}, "no format 'html'"),
    ],
)
def test_where_a_copy_cannot_be(folder, tmp_path, to, name, more, message):
    (tmp_path / "there.csv").touch()
    with pytest.raises(InputError, match=message):
        write_copy(copy_of(folder), to, tmp_path / name, **more)


def test_the_command_exports_and_says_what_is_blank(folder, tmp_path):
    out = tmp_path / "t.csv"
    done = run("export", folder, "--to", "csv", "--out", out, "--suppress-below", 100)
    assert done.exit_code == 0, done.output
    assert "are blank in this copy" in " ".join(done.output.split())
    assert "NOT private" in done.output
    table = pd.read_csv(out, keep_default_na=False)
    assert (table["suppressed"] == "suppressed").equals(table["count"] == "")
    assert set(table["NOT_PRIVATE"]) == {"SIMULATED NOISE: this release is NOT private"}
    assert "--overwrite" in run("export", folder, "--to", "csv", "--out", out).output
