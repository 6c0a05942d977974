"""What holds of every reproduction: its tables and figures, its folder, and that seeds repeat it."""

import json
from dataclasses import replace
from importlib import import_module

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.errors import InputError
from tests.hierdp.papers import PAPERS, folder_of, frames, made

pytestmark = pytest.mark.slow

each = pytest.mark.parametrize("paper", PAPERS)


@each
def test_it_has_every_table_and_figure(paper):
    assert sorted(frames(made(paper))) == sorted(PAPERS[paper].tables.split())
    drawn = [part.name for part in made(paper).parts if part.figure is not None]
    assert sorted(drawn) == sorted(PAPERS[paper].figures.split())


def untimed(paper, tables):
    """All but times, and what depends on them."""
    kept = {name: frame for name, frame in tables.items() if name not in PAPERS[paper].timed.split()}
    return {name: frame[[c for c in frame if "seconds" not in c]] for name, frame in kept.items()}


@each
def test_the_command_repeats_it_and_another_seed_does_not(paper, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module(f"hierdp.experiments.papers.{paper}"), "QUICK", PAPERS[paper].settings)
    out = tmp_path / "again"
    command = ["reproduce", paper, "--quick", "--data", str(folder_of(paper)), "--out", str(out)]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    study, tables = made(paper), frames(made(paper))
    names = {f"{name}.parquet" for name in tables} | {f"{name}.png" for name in PAPERS[paper].figures.split()}
    others = {"report.html", "report.md", "settings.json", "SHA256SUMS"}
    assert {path.name for path in out.iterdir()} == names | others
    for name, frame in untimed(paper, tables).items():
        again = pd.read_parquet(out / f"{name}.parquet")[list(frame)]
        frame = frame.reset_index(drop=True).rename_axis(columns=None)
        pd.testing.assert_frame_equal(frame, again, check_exact=True, check_column_type=False, obj=name)
    text = (out / "report.md").read_text()
    assert "**Quick settings. " in text
    for part in study.parts:
        assert f"## {part.title}\n" in text
        assert part.figure is None or f"![{part.title}]({part.name}.png)" in text
    assert json.loads((out / "settings.json").read_text())["seed"] == 0
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output
    other = untimed(paper, frames(made(paper, 1)))
    assert any(not frame.equals(other[name]) for name, frame in untimed(paper, tables).items())


def test_the_folder_is_not_replaced(tmp_path):
    made("kuo2018").write(tmp_path / "out")
    with pytest.raises(InputError, match="exists; choose another folder"):
        made("kuo2018").write(tmp_path / "out")


def test_options_of_the_command_and_data_that_are_absent(tmp_path, monkeypatch):
    paper = import_module("hierdp.experiments.papers.fioretto2019")
    monkeypatch.setattr(paper, "QUICK", replace(PAPERS["fioretto2019"].settings, runs=2))
    out, absent = str(tmp_path / "out"), str(tmp_path / "nowhere")
    command = ["reproduce", "fioretto2019", "--quick", "--data", absent, "--runs", "1", "--out", out]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "does not exist; parts that need" in done.output
    assert (pd.read_parquet(tmp_path / "out" / "table1_census.parquet").runs == 1).all()
    assert not (tmp_path / "out" / "table1_taxi.parquet").exists()
    for given, why in (
        (["smith1999"], "unknown paper 'smith1999'; there are "),
        (["zhang2014", "--time-limit", "3"], "zhang2014 has no option --time-limit"),
    ):
        refused = CliRunner().invoke(main, ["reproduce", *given, "--out", str(tmp_path / "b")])
        assert refused.exit_code == 2
        assert why in refused.output
