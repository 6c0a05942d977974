"""Reproductions: runs repeat by seed, tables agree with the runs, and the folder is complete."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.data.taxi import made_up_taxis, taxi
from hierdp.errors import InputError
from hierdp.experiments.papers import fioretto2019
from hierdp.experiments.papers.fioretto2019 import TABLE_1
from hierdp.experiments.study import readable

pytestmark = pytest.mark.slow

TINY = fioretto2019.Settings(
    runs=2,
    epsilons=(0.5, 1.0),
    leaves=52,
    sizes=12,
    groups=20_000,
    city_sizes=12,
    taxi_sizes=10,
    small_sizes=(2,),
    small_runs=2,
    time_limit=1.0,
    joint_sizes=(2,),
    joint_runs=1,
    window_runs=1,
    total_leaves=(52,),
    float_leaves=52,
    float_sizes=10,
    float_runs=1,
)


@pytest.fixture(scope="module")
def taxis(tmp_path_factory):
    """A folder with a small set of taxi data."""
    folder = tmp_path_factory.mktemp("data") / "taxi"
    folder.mkdir()
    hoods = np.random.default_rng(0).integers(0, 30, (28, 9))
    np.save(folder / "taxi_level3.npy", hoods)
    np.save(folder / "taxi_level2.npy", np.stack([hoods[:18].sum(0), hoods[18:].sum(0)]))
    np.save(folder / "taxi_level1.npy", hoods.sum(0))
    return folder.parent


@pytest.fixture(scope="module")
def made(taxis):
    return fioretto2019.study(TINY, taxis)


def frames(study):
    return {name: frame for part in study.parts for name, frame in part.frames.items()}


def test_it_has_every_table_and_figure(made):
    assert set(frames(made)) == {
        "data", "census_totals", "table1_census", "table1_taxis_made_up", "table1_taxi", "taxi_bound",
        "float_solvers", "float_solvers_runs", "without_total", "without_total_levels", "figure8",
        "figure8_runs", "figure9", "figure10", "joint", "joint_runs", "window", "cells",
    }  # fmt: skip
    drawn = [part.name for part in made.parts if part.figure is not None]
    assert drawn == ["float-solvers", "figure8", "figure9", "figure10"]


def test_the_same_seed_repeats_the_errors(made, taxis):
    again = frames(fioretto2019.study(TINY, taxis))
    other = frames(fioretto2019.study(TINY, taxis, seed=1))
    for name in ("table1_census", "table1_taxi", "figure10", "joint_runs", "window"):
        pd.testing.assert_frame_equal(frames(made)[name], again[name])
    assert (frames(made)["figure10"].mean_L1 != other["figure10"].mean_L1).any()


def test_the_tables_say_what_is_known_to_hold(made):
    tables = frames(made)
    for name in ("census", "taxi"):
        table = tables[f"table1_{name}"]
        exact = table[table.method.str.endswith("dp")]
        assert (exact.violations == 0).all()
        assert (table.runs == 2).all()
        assert table[table.epsilon == 0.5].published_1.tolist() == [
            TABLE_1[name, 0.5, method][0] for method in fioretto2019.SCALABLE
        ]
    seven = tables["figure8"]
    assert set(seven.method) == {"M_H", "M_H^r", "M_H^dp", "M_dp^OP", "M_c", "M_c^r", "M_c^dp"}
    fast = seven.method.str.endswith("^dp")  # these use no solver, and so no time limit
    assert seven[fast].status.eq("optimal").all()
    assert seven.status.isin(["optimal", "time_limit"]).all()
    assert (seven[seven.status == "optimal"].runs == TINY.small_runs).all()
    assert (seven[seven.status == "time_limit"].runs == 1).all()
    joint = tables["joint_runs"]
    assert (joint["objective M_c"] <= joint["objective M_c^dp"]).all()
    window = tables["window"]
    assert (window.mean_objective_excess.fillna(0) >= 0).all()
    assert tables["cells"].cells_that_differ.eq(0).all()
    assert (tables["cells"].tables > 0).all()
    totals = tables["census_totals"]
    assert totals.generated.sum() == TINY.groups


def test_runs_are_rows_of_one_measurement_each(taxis):
    sets = {"taxi": taxi(taxis / "taxi")}
    rows = fioretto2019.accuracy(sets, replace(TINY, epsilons=(1.0,)), seed=0)
    assert len(rows) == 2 * 4 * 3  # runs × methods × levels
    assert not rows.duplicated(["data", "epsilon", "run", "method", "level"]).any()
    assert rows.groupby(["method", "run"]).l1.sum().nunique() > 4  # no two runs share their noise


def test_taxis_of_the_papers_shape():
    city = made_up_taxis()
    assert city.hierarchy.tree.level_sizes.tolist() == [1, 6, 263]
    assert (city.groups, city.counts.shape[1] - 1) == (13_282, 13_282)
    people = int((city.counts[0] * np.arange(13_283)).sum())
    assert people == pytest.approx(24_489_743, rel=0.03)
    assert (city.counts == made_up_taxis().counts).all()
    assert (city.counts != made_up_taxis(1).counts).any()
    assert (city.counts[:, 0] == 0).all()


def test_a_method_that_was_stopped_is_not_tried_on_larger_instances(taxis):
    settings = replace(TINY, small_sizes=(3, 4), time_limit=0.02)
    rows = fioretto2019.scalability(taxi(taxis / "taxi"), settings, seed=0)
    late = rows[rows.status != "optimal"]
    assert "M_dp^OP" in set(late.method)
    assert late.method.is_unique
    assert not rows[(rows.sizes == 4)].method.isin(late[late.sizes == 3].method).any()


def test_tables_show_all_digits_that_are_compared():
    cells = [21697.51, 537.1, 1407.0, 0.0, float("nan"), 12345.6789, 0.00123456, 34.5678]
    frame = pd.DataFrame({"x": cells, "n": pd.array([1234, None] * 4, dtype="Int64")})
    shown = ["21,697.51", "537.1", "1,407", "0", "", "12,346", "0.00123", "34.6"]
    assert readable(frame, 3).x.tolist() == shown
    assert readable(frame).x.tolist()[5:] == ["12,345.7", "0.00123456", "34.5678"]
    assert readable(frame).n.tolist() == ["1,234", ""] * 4


def test_the_folder(made, tmp_path):
    made.write(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"report.html", "report.md", "settings.json", "figure8.png", "table1_census.parquet"} <= names
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| epsilon | method | runs |" in text
    assert "![Figure 10: error](figure10.png)" in text
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out" / "table1_taxi.parquet"), frames(made)["table1_taxi"]
    )
    with pytest.raises(InputError, match="exists; choose another folder"):
        made.write(tmp_path / "out")


def test_command_line(taxis, tmp_path, monkeypatch):
    monkeypatch.setattr(fioretto2019, "QUICK", TINY)
    out = tmp_path / "again"
    command = ["reproduce", "fioretto2019", "--quick", "--data", str(taxis), "--out", str(out), "--runs", "1"]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "Table 1, taxi" in done.output
    assert (pd.read_parquet(out / "table1_taxi.parquet").runs == 1).all()
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output


def test_without_data_and_for_an_unknown_paper(tmp_path, monkeypatch):
    monkeypatch.setattr(fioretto2019, "QUICK", replace(TINY, runs=1))
    absent = str(tmp_path / "nowhere")
    command = ["reproduce", "fioretto2019", "--quick", "--data", absent, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "does not exist; parts that need" in done.output
    assert not (tmp_path / "out" / "table1_taxi.parquet").exists()
    unknown = CliRunner().invoke(main, ["reproduce", "smith1999"])
    assert unknown.exit_code == 2
    assert "unknown paper 'smith1999'; there are " in unknown.output


def test_taxi_files_that_do_not_add_up_are_refused(taxis, tmp_path):
    for level in (1, 2, 3):
        np.save(tmp_path / f"taxi_level{level}.npy", np.load(taxis / "taxi" / f"taxi_level{level}.npy"))
    np.save(tmp_path / "taxi_level1.npy", np.load(tmp_path / "taxi_level1.npy") + 1)
    with pytest.raises(InputError, match="do not fit: a level is not the sum"):
        taxi(tmp_path)
    (tmp_path / "taxi_level2.npy").unlink()
    with pytest.raises(InputError, match=r"taxi_level2\.npy"):
        taxi(tmp_path)
