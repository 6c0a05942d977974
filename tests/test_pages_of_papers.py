"""The pages of the papers show or link the rows that are kept, and say where each table comes from."""

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

from hierdp.experiments.papers import PAPERS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("tables_of_pages", DOCS / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_shows_its_rows(script, paper):
    text, rows = (DOCS / f"{paper}.md").read_text(), DOCS / "tables" / paper
    assert script.filled(text, rows) == text
    shown = script.names(text)
    assert shown == {path.stem for path in rows.glob("*.csv")} - {"runs"}
    runs = pd.read_csv(rows / "runs.csv").set_index("table").run
    assert set(runs.index) == shown
    assert runs.str.contains(r"hierdp .*\d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d.*hierdp 0").all()


def test_steps_of_a_mark(script, tmp_path):
    pd.DataFrame(
        {"data": ["a", "a", "b", "b"], "method": ["x", "y"] * 2, "error": [1.5, 1234.5678, None, 0.25]}
    ).to_csv(tmp_path / "errors.csv", index=False)
    assert script.table("errors | where data == 'a' | columns method, error as its error", tmp_path) == [
        "| method | its error |", "| --- | --- |", "| x | 1.5 |", "| y | 1,235 |",
    ]  # fmt: skip
    assert script.table("errors | pivot data, method, error", tmp_path)[2:] == [
        "| a | 1.5 | 1,235 |", "| b |  | 0.25 |",
    ]  # fmt: skip
    assert (
        script.table("errors | pivot data, data+method, error", tmp_path)[0] == "| data | a x | a y | b y |"
    )
    with pytest.raises(ValueError, match="'by' is not where, columns or pivot"):
        script.table("errors | by data", tmp_path)
    page = "text\n\n  <!-- table: errors | where error < 1 -->\n  old\n  <!-- /table -->\n\nmore\n"
    once = script.filled(page, tmp_path)
    assert "\n  | b | y | 0.25 |\n" in once
    assert "old" not in once
    assert script.filled(once, tmp_path) == once


def test_rows_are_taken_from_a_run(script, tmp_path, monkeypatch):
    (tmp_path / "zhang2014.md").write_text(
        "<!-- table: kld -->\n<!-- /table -->\n"
        "[Gaps](tables/zhang2014/gaps.csv), [the run](tables/zhang2014/runs.csv)"
    )
    rows, made = tmp_path / "tables/zhang2014", tmp_path / "made"
    for folder in (rows, made):
        folder.mkdir(parents=True)
    pd.DataFrame({"table": ["gaps"], "run": ["before"]}).to_csv(rows / "runs.csv", index=False)
    pd.DataFrame({"kld": [0.5]}).to_parquet(made / "kld.parquet")
    pd.DataFrame({"kld": [0.5]}).to_parquet(made / "other.parquet")
    (made / "settings.json").write_text('{"runs": "3", "date": "2026-11-25"}')
    monkeypatch.setattr(script, "DOCS", tmp_path)
    script.take("zhang2014", made)
    assert pd.read_csv(rows / "kld.csv").kld.tolist() == [0.5]
    assert not (rows / "other.csv").exists()
    runs = pd.read_csv(rows / "runs.csv").set_index("table").run
    assert runs.to_dict() == {"gaps": "before", "kld": "runs: 3; date: 2026-11-25"}


def test_marks_are_closed():
    for paper in PAPERS:
        text = (DOCS / f"{paper}.md").read_text()
        assert len(re.findall("<!-- table: ", text)) == len(re.findall("<!-- /table -->", text))
