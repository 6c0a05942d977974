"""Reproductions: runs repeat by seed, tables agree with the runs, and the folder is complete."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hierdp.data.taxi import made_up_taxis, taxi
from hierdp.errors import InputError
from hierdp.experiments.papers import fioretto2019
from hierdp.experiments.papers.fioretto2019 import TABLE_1
from hierdp.experiments.study import readable
from tests.hierdp.papers import PAPERS, folder_of, frames, made

pytestmark = pytest.mark.slow

TINY = PAPERS["fioretto2019"].settings


@pytest.fixture(scope="module")
def taxis():
    return folder_of("fioretto2019")


def test_the_tables_say_what_is_known_to_hold():
    tables = frames(made("fioretto2019"))
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


def test_taxi_files_that_do_not_add_up_are_refused(taxis, tmp_path):
    for level in (1, 2, 3):
        np.save(tmp_path / f"taxi_level{level}.npy", np.load(taxis / "taxi" / f"taxi_level{level}.npy"))
    np.save(tmp_path / "taxi_level1.npy", np.load(tmp_path / "taxi_level1.npy") + 1)
    with pytest.raises(InputError, match="do not fit: a level is not the sum"):
        taxi(tmp_path)
    (tmp_path / "taxi_level2.npy").unlink()
    with pytest.raises(InputError, match=r"taxi_level2\.npy"):
        taxi(tmp_path)
