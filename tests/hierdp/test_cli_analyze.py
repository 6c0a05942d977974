"""hierdp analyze, as a newcomer would use it."""

import shlex
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.analysis import report
from hierdp.analysis.explicit_workload import ExplicitWorkload
from hierdp.analysis.methods import Row
from hierdp.cli import main

pytestmark = pytest.mark.slow


def run(*arguments: str, given: str | None = None):
    return CliRunner().invoke(main, ["analyze", *arguments], input=given, catch_exceptions=False)


def test_ranges_and_advice():
    done = run("2^10", "--epsilon", "1")
    assert done.exit_code == 0, done.output
    for said in (
        "1,024 bins, ε = 1, all ranges",
        "156.6",
        "H_b^c with b = 11: 4.37 times less variance",
        "flat is best up to n = 42 bins per dimension",
        "optimized budget (ε of each level, from the top)",
    ):
        assert said in done.output
    order = [line.split()[0] for line in done.output.splitlines()[2:12]]
    assert (order[0], order[-2]) == ("H_b,o^c", "F")


@pytest.mark.parametrize("given", [(), ("--range", "3:15", "--range", ":18", "--range", "5:20")])
def test_the_recommended_options_have_the_predicted_variance(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(30)))
    assert run("32", "--epsilon", "0.01", *given, "--out", "listed").exit_code == 0
    listed = pd.read_csv("listed/methods.csv").set_index("method")
    queried = [*(text for text in given if ":" in text)] or [f"{a}:{b}" for b in range(33) for a in range(b)]
    Path("queried").write_text("\n".join(queried))
    for method, row in listed.dropna(subset="release_range_query").iterrows():
        command = "release range-query people.csv --numbers age=0:32 --epsilon 0.01 --simulate 1 --out made"
        arguments = shlex.split(f"{command} --overwrite {row.release_range_query}")
        done = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        answers = CliRunner().invoke(main, ["query", "made", "--file", "queried", "--csv"]).output
        errors = pd.read_csv(StringIO(answers)).standard_error
        assert np.mean(errors**2) == pytest.approx(row.variance, rel=2e-3), method
    unnamed = set(listed.index[listed.release_range_query.isna()])
    assert {"SF"} <= unnamed <= {"SF", "H_b,o"}  # their best shares may be 0


def test_shares_of_zero_are_not_recommended():
    queries = ExplicitWorkload(8, [0], [8])
    row = Row("H_b,o^c", 1.0, 2, 3, "optimized", np.array([0.0, 0.5, 0.5]))
    assert report.options(queries, row) == ""


def test_the_advice_is_a_command():
    said = run("120", "--epsilon", "1").output
    assert 'hierdp release range-query TABLE --method "H_b^c" --branching 11 --budget equal …' in said
    assert 'hierdp release range-query TABLE --method "H_b^c" --branching 14 --budget optimized …' in said


def test_where_flat_is_best_it_says_so():
    done = run("20", "--epsilon", "1")
    assert "With equal budgets, the flat method is best" in done.output
    assert "With optimized budgets, the flat method is best" in done.output
    assert "optimized budget (ε" not in done.output
    assert "only the flat method" in run("1", "--epsilon", "1").output


def test_several_dimensions_and_marginals():
    done = run("20", "--dimensions", "3", "--epsilon", "0.5", "--workload", "2-way")
    assert done.exit_code == 0, done.output
    assert "20 bins in each of 3 dimensions, ε = 0.5, all 2-way marginal prefixes" in done.output
    prefixes = run("100", "--epsilon", "1", "--workload", "prefixes")
    assert "all prefixes" in prefixes.output


def test_given_ranges_from_options_and_files():
    ends = ["--range", "18:65", "--range", ":18", "--range", "65:"]
    done = run("120", "--epsilon", "1", *ends)
    assert "the mean of 3 given ranges" in done.output
    assert "flat is best up to" not in done.output
    again = run("120", "--epsilon", "1", "--file", "-", given="18:65\n:18\n\n65:\n")
    assert again.output.splitlines()[2:6] == done.output.splitlines()[2:6]
    box = run("64", "--dimensions", "2", "--epsilon", "1", "--range", "3:9,:5")
    assert "the mean of 1 given boxes" in box.output


def test_the_folder(tmp_path):
    out = tmp_path / "out"
    done = run("100", "--epsilon", "1", "--branching", "2,5,10", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {
        "SHA256SUMS",
        "report.html",
        "methods.csv",
        "branching.csv",
        "branching.png",
    }
    table = pd.read_csv(out / "methods.csv")
    assert table.variance[table.method == "F"].item() == pytest.approx(68)
    assert table.variance.dropna().is_monotonic_increasing
    assert set(pd.read_csv(out / "branching.csv").b) == {2, 5, 10}
    refused = run("100", "--epsilon", "1", "--out", str(out))
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output
    again = run("1", "--epsilon", "1", "--out", str(out), "--overwrite")
    assert again.exit_code == 0, again.output
    assert {path.name for path in out.iterdir()} == {
        "SHA256SUMS",
        "report.html",
        "methods.csv",
        "branching.csv",
    }
    assert "only the flat method" in (out / "report.html").read_text()


def test_the_matrix_mechanism():
    done = run("5", "--epsilon", "1", "--matrix-mechanism")
    assert "MM, lower bound (SDP)" in done.output
    assert "one dimension" in run("5", "--dimensions", "2", "--epsilon", "1", "--matrix-mechanism").output


def test_an_empty_file_of_ranges():
    done = run("10", "--epsilon", "1", "--file", "-", given="\n")
    assert done.exit_code == 2
    assert "contains no range" in done.output


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("analyze", "120 --epsilon 1 --range :18"),
        ("plan range-query", "120 --epsilon 1 --range :18"),
        ("analyze", "4096 --epsilon 1 --range 10:200 --range 500:3000"),
        ("analyze", "16 --dimensions 2 --epsilon 1 --range 4:8,8:"),
    ],
)
def test_a_level_that_no_query_needs_gets_no_budget(command, words):
    done = CliRunner().invoke(main, [*command.split(), *words.split()], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "A level with 0 should not be measured: these queries do not need it." in done.output
