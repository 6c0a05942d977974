"""hierdp release range-query, and hierdp query on its releases."""

import json
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.mechanisms.range_query.reading import read_answers
from tests.marks import quick


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("people") / "people.csv"
    n = 600
    rows = pd.DataFrame({"age": rng.integers(0, 100, n), "state": rng.choice(["NY", "CA"], n)})
    rows["town"] = rows.state + rng.integers(0, 3, n).astype(str)
    rows["day"] = np.datetime_as_string(np.datetime64("2013-01-01") + rng.integers(0, 28, n))
    rows.to_csv(path, index=False)
    return path


def test_release_and_query(people, tmp_path):
    out = tmp_path / "ages"
    made = run(
        "release", "range-query", people, "--numbers", "age=0:100:20", "--epsilon", 20, "--out", out,
        "--simulate", 1,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert "1 of 1 post-processing problems proved optimal" in made.output
    answered = run("query", out, "--range", "20:65", "--range", ":20", "--range", "65:", "--csv")
    assert answered.exit_code == 0, answered.output
    rows = [line.split(",") for line in answered.output.splitlines()]
    assert rows[0] == ["query", "estimate", "standard_error", "lower", "upper"]
    answers = read_answers(out).range([4, 0, 13], [13, 4, 20])
    assert [float(row[1]) for row in rows[1:]] == answers.estimate.tolist()
    assert [float(row[2]) for row in rows[1:]] == answers.standard_error.tolist()
    ages = pd.read_csv(people).age
    assert float(rows[1][1]) == pytest.approx(ages.between(20, 64).sum(), abs=5)
    shown = run("query", out, "--range", ":")
    assert "standard error" in shown.output
    assert "this is NOT private" in shown.output
    lines = tmp_path / "questions"
    lines.write_text("20:65\n\n:20\n")
    assert (
        run("query", out, "--file", lines, "--csv").output
        == "\n".join(answered.output.splitlines()[:3]) + "\n"
    )


@pytest.mark.parametrize("repair", ["non-negative", "whole"])
def test_a_standard_error_that_is_not_known_is_not_stated(people, tmp_path, repair):
    out = tmp_path / "ages"
    release = ("release", "range-query", people, "--numbers", "age=0:100:20", "--epsilon", 1, "--simulate", 1)
    made = run(*release, "--out", out, "--repair", repair)
    assert made.exit_code == 0, made.output
    (row,) = pd.read_csv(StringIO(run("query", out, "--range", "20:65", "--csv").output)).to_dict("records")
    assert row.keys() == {"query", "estimate", "standard_error", "lower", "upper", "before_repair"}
    assert row["lower"] <= row["upper"]
    assert np.isnan(row["standard_error"])
    assert run(*release, "--out", tmp_path / "unrepaired").exit_code == 0
    before = read_answers(tmp_path / "unrepaired").range([4], [13]).standard_error
    assert row["before_repair"] == before[0]
    assert "not known" in run("query", out, "--range", "20:65").output
    assert "standard_error" not in pd.read_parquet(out / "released.parquet")
    assert json.loads((out / "manifest.json").read_text())["standard_errors"].startswith("not known")
    assert run("check", out).exit_code == 0
    assert "with one standard error" not in (out / "report.html").read_text()


def test_boxes_and_names(people, tmp_path):
    out = tmp_path / "boxes"
    made = run(
        "release", "range-query", people, "--numbers", "age=0:100:10", "--dates",
        "day=2013-01-01:2013-01-29:4", "--epsilon", 20, "--out", out, "--method", "Quadtree",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    answered = run(
        "query", out, "--range", "day=2013-01-08:2013-01-22,age=:50", "--range", "age=50:", "--csv"
    )
    answers = read_answers(out).box([[0, 1], [5, 0]], [[5, 3], [10, 4]])
    assert pd.read_csv(StringIO(answered.output))["estimate"].tolist() == answers.estimate.tolist()
    out = tmp_path / "towns"
    made = run(
        "release", "range-query", people, "--names", "state,town", "--regions-from-data",
        "--epsilon", 20, "--out", out,
        "--method", "H_tree^c", "--share", 1, "--share", 2,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    assert run("query", out, "--range", "CA0:CA2", "--csv").output.splitlines()[1].startswith("CA0:CA2,")
    spends = json.loads((out / "manifest.json").read_text())["budget"]["spends"]
    assert [spend["epsilon"] for spend in spends] == pytest.approx([20 / 3, 40 / 3])


def test_names_from_a_table_of_regions(people, tmp_path):
    regions = tmp_path / "regions.csv"
    regions.write_text(
        "state,town\n" + "".join(f"{s},{s}{i}\n" for s in ("CA", "NY", "TX") for i in range(3))
    )
    out = tmp_path / "towns"
    made = run(
        "release", "range-query", people, "--names", "town", "--regions", regions, "--region-levels",
        "state,town", "--epsilon", 50, "--out", out, "--method", "H_tree",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    table = pd.read_parquet(out / "released.parquet")
    assert table.region.tolist()[:4] == ["all", "CA", "NY", "TX"]
    assert abs(table["count"][3]) < 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no query: give --range LOW:HIGH, --where COLUMN=NAME or --file"),
        (["--range", "20"], "'20': write LOW:HIGH, once for each axis"),
        (["--range", "age=0:10,age=0:20"], "once for each axis"),
        (["--range", "height=0:10"], "unknown axis 'height'; the axes are 'age'"),
        (["--range", "21:25"], "21 is inside a bin, from 20 to 25"),
        (["--range", "25:20"], "20 comes before 25"),
    ],
)
def test_invalid_queries_are_explained(people, tmp_path, words, message):
    out = tmp_path / "ages"
    run("release", "range-query", people, "--numbers", "age=0:100:20", "--epsilon", 1, "--out", out)
    answered = run("query", out, *words)
    assert answered.exit_code == 2
    assert message in answered.output.replace("\n", " ")
    assert "there is no folder" in run("query", tmp_path / "nowhere", "--range", ":").output


def test_a_box_must_name_its_axes(people, tmp_path):
    out = tmp_path / "two"
    run(
        "release",
        "range-query",
        people,
        "--numbers",
        "age=0:100:5",
        "--names",
        "state",
        "--regions-from-data",
        "--epsilon",
        1,
        "--out",
        out,
    )
    answered = run("query", out, "--range", "0:20")
    assert "name the axis ('age', 'state'), as in age=0:20" in answered.output.replace("\n", " ")


def test_with_regions_names_are_one_column(people, tmp_path):
    answered = (
        "release",
        "range-query",
        people,
        "--epsilon",
        1,
        "--out",
        tmp_path / "out",
        "--regions",
        people,
    )
    levels = ("--region-levels", "state,town")
    made = run(*answered, *levels, "--names", "state,town")
    assert "with --regions, give one column, that of the finest region" in made.output.replace("\n", " ")
    made = run(*answered, *levels, "--numbers", "age=0:100")
    assert "--regions needs --names" in made.output


@pytest.mark.parametrize(
    ("numbers", "warned"),
    quick(
        [
            ("age=0:120:7", "makes bins of width 17.1429, .* if age is a whole number, use 6 or 8 bins"),
            ("age=0:120:8", None),
            ("age=0:120:500", "makes bins of width 0.24, .* use 120 bins"),
            ("age=0:120", None),
            ("age=0:120.5:7", None),
        ],
        first=2,
    ),
)
def test_bins_that_begin_between_whole_numbers_cause_a_warning(people, tmp_path, numbers, warned):
    out = tmp_path / "out"
    common = ("--numbers", numbers, "--epsilon", 1, "--simulate", 1, "--out", out)
    for mechanism in ("range-query", "clustering"):
        made = run("release", mechanism, people, *common, "--overwrite")
        assert made.exit_code == 0, made.output
        said = " ".join(made.output.split())
        assert ("Warning" in said) == (warned is not None)
        assert warned is None or re.search(warned, said)


@pytest.mark.parametrize("mechanism", ["range-query", "clustering", "top-down"])
def test_help_without_groups_does_not_mention_groups(mechanism):
    said = run("release", mechanism, "--help").output
    assert "group" not in said.lower()
    assert "missing group" in " ".join(run("release", "group-size", "--help").output.split())
