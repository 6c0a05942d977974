"""Methods are compared by their own releases with simulated noise; data with an account are refused."""

import json
import math
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import InputError, Numbers, SimulatedNoise, compare, evaluate, execution, release
from hierdp.checking.same_noise import measured, post_processed
from hierdp.cli import main
from hierdp.cli.engine import report_interruption
from hierdp.execution import cluster
from hierdp.experiments import run as module
from hierdp.experiments.compare import mechanism_of
from hierdp.experiments.run import labelled, run
from hierdp.experiments.summary import comparison_of, summed_up
from hierdp.mechanisms.clustering import Clustering
from hierdp.mechanisms.tabulation import Tabulation
from hierdp.mechanisms.top_down import TopDown
from hierdp.privacy.account import accounts_beside, open_account
from hierdp.record.step import NotSolved
from tests.hierdp import tasks

rng = np.random.default_rng(4)
PEOPLE = pd.DataFrame({"age": rng.integers(0, 20, 300), "home": rng.integers(0, 90, 300)})
PEOPLE["state"] = np.array(["A", "B"])[PEOPLE.home % 2]
PEOPLE["sex"] = rng.choice(["f", "m"], 300)
TRIPS = PEOPLE.groupby(["state", "sex"], as_index=False).size().rename(columns={"size": "n"})
TOP_DOWN = {
    "axes": {"state": ["state"], "sex": ["sex"]},
    "count": "n",
    "delta": 1e-6,
    "regions_from_data": True,
}
FLAGS = [
    "--axis",
    "state=state",
    "--axis",
    "sex=sex",
    "--count",
    "n",
    "--delta",
    "1e-6",
    "--regions-from-data",
]
SIZES = {
    "group": "home",
    "levels": ["state"],
    "max_size": 9,
    "regions_from_data": True,
    "groups_from_data": True,
}


def without_time(found):
    return found.runs.drop(columns="seconds")


def wide(rows, like):
    """The metrics of one run beside each other, as in an evaluation."""
    table = rows.pivot(index="level", columns="metric", values="value").loc[like.level].reset_index()
    return table[like.columns].rename_axis(columns=None)


def test_a_run_is_the_release_itself_with_noise_from_its_seed():
    found = compare(TRIPS, methods=["SH", "InfTDA"], runs=2, seed=5, **TOP_DOWN)  # others change no run
    made = release(TRIPS, "top-down", epsilon=1, noise=SimulatedNoise(11), **TOP_DOWN)
    rows = found.runs.query("mechanism == 'InfTDA' and epsilon == 1 and seed == 11")
    alone = evaluate(made, TRIPS, count="n").errors
    pd.testing.assert_frame_equal(wide(rows, alone), alone, check_dtype=False)
    assert len(found.runs) == 2 * 2 * alone.size - 2 * 2 * len(alone)
    assert (found.runs.seconds > 0).all()
    assert found.runs.seed.unique().tolist() == [10, 11]


def test_the_spread_is_the_interval_of_the_mean():
    case = {"mechanism": "A", "epsilon": 1.0, "level": "all", "noise": "", "seed": range(4)}
    runs = pd.DataFrame({**case, "metric": "l1", "value": [2, 4, 4, 6]})
    (row,) = summed_up(runs).to_dict("records")
    half = 3.182446305284263 * math.sqrt(8 / 3) / 2  # Student's t, 3 degrees of freedom, 97.5%
    assert (row["mean"], row["runs"]) == (4, 4)
    assert (row["low"], row["high"]) == pytest.approx((4 - half, 4 + half))
    assert row["standard_deviation"] == pytest.approx(math.sqrt(8 / 3))
    own = runs.assign(metric="mine", value=7.5)
    more = runs.assign(metric="rmse", value=1234.5)
    found = comparison_of(pd.concat([runs, more, own]), "", {"methods": "A", "runs": 4})
    shown = {"ε": "1", "mechanism": "A", "L1": "4", "±": f"{half:.3g}", "RMSE": "1,234", "mine": "7.5"}
    assert found.shown("all").to_dict("records") == [shown]


def test_with_the_same_noise_only_post_processing_differs():
    sizes = {**SIZES, "max_size": 4}
    options = {"methods": ["M_c^dp", "M_c^r", "M_H", "M_c", "M_H^dp"], "runs": 2, "seed": 5, **sizes}
    found = compare(PEOPLE, **options)
    for seed in (10, 11):
        first = release(PEOPLE, "group-size", epsilon=1, noise=SimulatedNoise(seed), method="M_c^dp", **sizes)
        for method in ("M_c", "M_c^r"):  # the same post-processing of the noise of the first
            alone = evaluate(post_processed(measured(first), method), PEOPLE, group="home").errors
            mine = found.runs.query("mechanism == @method and seed == @seed")
            pd.testing.assert_frame_equal(wide(mine, alone), alone, check_dtype=False)
    assert found.same_noise == ["M_c^dp, M_c^r, M_c", "M_H, M_H^dp"]
    assert "From the same noisy answers in each run: M_H, M_H^dp." in found.page()


@pytest.mark.slow
def test_an_interrupted_comparison_continues(tmp_path, monkeypatch):
    plain, done = module.one_run, []

    def stopping(*given):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append((given[-3][0], *given[-2:]))
        return plain(*given)

    for what in ("__module__", "__qualname__"):
        setattr(stopping, what, getattr(plain, what))
    monkeypatch.setattr(module, "one_run", stopping)
    options = {"methods": ["InfTDA"], "runs": 4, "resume": tmp_path / "runs", **TOP_DOWN}
    for _ in range(2):  # two runs, then no more
        with pytest.raises(KeyboardInterrupt):
            compare(TRIPS, **options)
    assert done == [("InfTDA", "a table in memory", seed) for seed in (0, 1)]
    with pytest.raises(KeyboardInterrupt):  # other data have no finished runs
        compare(TRIPS.assign(n=TRIPS.n + 1), **options)
    monkeypatch.setattr(module, "one_run", plain)
    found = compare(TRIPS, **options)
    pd.testing.assert_frame_equal(
        without_time(found), without_time(compare(TRIPS, methods=["InfTDA"], runs=4, **TOP_DOWN))
    )
    assert not (tmp_path / "runs").exists()


def test_data_with_an_account_are_refused_unless_they_are_said_to_be_public(tmp_path):
    data = tmp_path / "trips.csv"
    TRIPS.to_csv(data, index=False)
    options = {"methods": ["InfTDA"], "runs": 1, **TOP_DOWN}
    open_account(tmp_path / "other.account", "trips2.csv", 1)
    (tmp_path / "trips2.csv").touch()
    assert not list(accounts_beside(data))  # that of another file
    path = tmp_path / "ledger"
    open_account(path, "trips.csv", 1)
    for given in ({}, {"account": tmp_path / "other.account"}):
        with pytest.raises(InputError, match=r"have an account.*\(public=REASON\)"):
            compare(data, **options, **given)
    with pytest.raises(InputError, match="have an account"):
        compare(TRIPS, **options, account=path)  # a table in memory
    with pytest.raises(InputError, match="have an account"):
        run([TopDown(epsilon=1, **TOP_DOWN)], {"trips": path.with_name("trips.csv")}, [0])
    found = compare(data, **options, public="published in 2019")
    assert (found.settings["runs"], found.settings["public"]) == (1, "published in 2019")
    path.rename(tmp_path / "elsewhere.json")
    assert list(accounts_beside(data)) == [tmp_path / "elsewhere.json"]
    (tmp_path / "elsewhere.json").unlink()
    open_account(tmp_path / "named", "the trips of 2013", 1)  # a name that is not that of a file
    assert list(accounts_beside(data)) == [tmp_path / "named"]


def test_what_cannot_be_compared_is_refused():
    for given, words in (
        ({"methods": ["InfTDA", TopDown(epsilon=1, **TOP_DOWN)]}, "InfTDA is there twice"),
        ({"methods": ["InfTDA", 3]}, "no mechanism"),
        ({"methods": ["InfTda"]}, "no method 'InfTda'"),
        ({"methods": ["SH"], "bins": 3}, "takes no bins"),
        ({"methods": ["SH"], "method": "SH"}, "as a list"),
        ({"methods": ["SH", "SH"]}, "each once"),
        ({"methods": "SH"}, "must be a list"),
        ({"methods": ["SH"], "epsilon": [1, -1]}, "-1"),
        ({"methods": ["SH"], "epsilon": [2, 2]}, "each once"),
        ({"methods": ["SH"], "epsilon": []}, "at least one"),
        ({"methods": ["SH"], "runs": 0}, "runs"),
    ):
        with pytest.raises(InputError, match=words):
            compare(TRIPS, **{**TOP_DOWN, **given})
    assert mechanism_of("Hg x Hc x Hc").name == "count-of-counts"


@pytest.mark.slow
def test_the_command_has_the_options_of_its_methods_and_says_how_to_repeat_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRIPS.to_csv("trips.csv", index=False)
    given = ["compare", "trips.csv", "--methods", "InfTDA,SH", "--runs", "2", "--epsilon", "1,4", *FLAGS]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output
    stated = json.loads((tmp_path / "comparison/settings.json").read_text())
    assert shlex.split(stated["command"]) == ["hierdp", *given]
    first = pd.read_parquet("comparison/runs.parquet")
    assert len(pd.read_csv("comparison/runs.csv")) == len(first)
    assert first.groupby(["mechanism", "epsilon", "seed", "level"]).ngroups == 2 * 2 * 2 * 3
    assert "<svg" in (tmp_path / "comparison/report.html").read_text()
    again = CliRunner().invoke(main, [*shlex.split(stated["command"])[1:], "--overwrite"])
    assert again.exit_code == 0, again.output
    second = pd.read_parquet("comparison/runs.parquet")
    pd.testing.assert_frame_equal(first.drop(columns="seconds"), second.drop(columns="seconds"))
    helped = CliRunner().invoke(main, ["compare", "--methods", "H_b^c", "--help"]).output
    assert "--numbers" in helped
    assert "--zero" not in helped  # of top-down
    monkeypatch.setattr("hierdp.cli.compare.print_frame", lambda *_: 1 / 0)  # as if the reader were gone
    CliRunner().invoke(main, [*given, "--out", "kept"])
    assert (tmp_path / "kept/report.html").exists()
    wrong = CliRunner().invoke(main, ["compare", "trips.csv", "--methods", "SH", "--numbers", "n=0:9"])
    assert wrong.exit_code == 2


@pytest.mark.slow
def test_methods_of_two_mechanisms_are_compared_by_their_common_question():
    sizes = compare(PEOPLE, methods=["M_c^dp", "Hc", "bottom-up"], runs=1, **SIZES).runs
    assert sizes.groupby("mechanism")["level"].agg(tuple).nunique() == 1
    assert sizes[sizes.metric == "cells"].value.nunique() == 2
    bins = compare(PEOPLE, methods=["H_b^c", "Wavelet", "AHP"], runs=1, axes=[Numbers("age", 0, 20)]).runs
    assert bins.groupby("mechanism")["level"].agg(tuple).nunique() == 1
    table = {"attributes": ["sex"], "attributes_from_data": True, "levels": ["state"], "delta": 1e-6}
    methods = ["TopDown", "BlueDown", "GLS", "Joint"]
    found = compare(PEOPLE, methods=methods, runs=1, regions_from_data=True, **table)
    assert set(found.runs.mechanism) == set(methods)


@pytest.fixture
def scheduler(monkeypatch):
    """The address of a Dask scheduler with two worker processes."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "fingerprint", tasks.same)  # a source file may be saved meanwhile
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 300)  # the machine may be busy
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made:
        yield made.scheduler_address


@pytest.mark.slow
@pytest.mark.parametrize("where", ["processes", "Dask"])
def test_runs_are_the_same_elsewhere(where, request):
    here = compare(PEOPLE, methods=["M_c^dp", "Hc"], runs=2, **SIZES)
    place = {"scheduler": request.getfixturevalue("scheduler")} if where == "Dask" else {"workers": 2}
    with execution.using(**place):
        there = compare(PEOPLE, methods=["M_c^dp", "Hc"], runs=2, **SIZES)
    pd.testing.assert_frame_equal(without_time(here), without_time(there))


TABULATED = {
    "levels": ["state", "home"],
    "attributes": ["age", "sex"],
    "attributes_from_data": True,
    "regions_from_data": True,
    "delta": 1e-6,
}


def test_what_a_method_cannot_do_is_known_before_any_run(monkeypatch, tmp_path):
    def ran(*_):
        raise AssertionError("a run was made")

    monkeypatch.setattr(module, "one_run", ran)
    kept = tmp_path / "kept"
    with pytest.raises(InputError, match=r"^Joint cannot run: .* up to 1,000 whole .* Nothing was run$"):
        compare(PEOPLE, methods=["TopDown", "Joint"], resume=kept, **TABULATED)
    with pytest.raises(InputError, match=r"^matrix cannot run: .*at most 256 bins"):
        compare(PEOPLE, methods=["Flat", "matrix"], axes=[Numbers("age", 0, 600)])
    assert not kept.exists()


def test_only_an_interrupted_command_is_said_to_continue(tmp_path, capsys):
    for end, more in (
        (KeyboardInterrupt(), "the same command continues from there"),
        (InputError("no such column"), "a corrected command may use them"),
        (NotSolved("time_limit", "10 s"), "a corrected command may use them"),
    ):
        with pytest.raises(type(end)), report_interruption(tmp_path):
            raise end
        assert capsys.readouterr().err == f"Finished runs are saved in {tmp_path}; {more}.\n"


def test_mechanisms_of_two_questions_are_compared_on_the_cells_that_both_have():
    mechanisms = [
        TopDown(epsilon=1, **TOP_DOWN),
        Tabulation(epsilon=1, method="BlueDown", levels=["state"], attributes=["sex"], count="n", delta=1e-6,
                   regions_from_data=True, attributes_from_data=True),
    ]  # fmt: skip
    found = compare(TRIPS, methods=mechanisms, runs=2, epsilon=[1, 50])
    assert found.levels == ["sex sex", "state state × sex sex"]
    rows = found.runs[found.runs.metric == "cells"]
    cells = rows.groupby(["level", "mechanism", "epsilon"]).value.agg(list)
    assert cells.to_list() == [[2, 2]] * 4 + [[4, 4]] * 4
    for (one, epsilon), mine in found.runs.groupby(["mechanism", "epsilon"]):
        made = release(
            TRIPS, replace(mechanisms[one == "BlueDown"], epsilon=epsilon), noise=SimulatedNoise(1)
        )
        columns = {"count": "n"} | ({"region": "state"} if one == "BlueDown" else {})
        alone = evaluate(made, TRIPS, **columns).errors.set_index("level")
        levels = ["root: every cell", "state: every cell"] if one == "BlueDown" else found.levels
        assert mine.query("seed == 1 and metric == 'l1'").value.tolist() == alone.loc[levels].l1.tolist()
    with pytest.raises(InputError, match="no level of the same cells"):
        compare(PEOPLE, methods=["InfTDA", "Hc"], runs=2, axes=TOP_DOWN["axes"], delta=1e-6, **SIZES)


METRIC = '''
def lost_share(released, true, public):
    """The share of the truly positive cells that the release does not have."""
    return ((released <= 0) & (true > 0)).sum() / max(1, (true > 0).sum())
'''


@pytest.fixture
def own_metric(tmp_path, monkeypatch):
    """The file of a metric, with a name that no other test loads."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"metric_{tmp_path.name}.py".replace("-", "_").lower()
    file.write_text(METRIC)
    return file.name


def test_a_metric_of_ones_own(own_metric):
    TRIPS.to_csv("trips.csv", index=False)
    given = ["compare", "trips.csv", "--methods", "SH", "--runs", "1", *FLAGS, "--out"]
    done = CliRunner().invoke(
        main, [*given, "own", "--metric", f"{own_metric}:lost_share", "--metric", "by_size"]
    )
    assert done.exit_code == 0, done.output
    runs = pd.read_parquet("own/runs.parquet").pivot(index="level", columns="metric", values="value")
    last = runs.loc["state state × sex sex"]
    assert last.lost_share == last.false_negatives / 4
    assert {"mean_error of 10 to 99", "bias of 10 to 99"} <= set(runs)
    assert "lost_share" in Path("own/report.html").read_text()
    for typed, why in (
        ("by_sizes", "no metric 'by_sizes'"),
        ("nowhere.py:lost", "there is no file"),
        (f"{own_metric}:other", "has no attribute"),
        (f"{own_metric}:__doc__", "is no function"),
    ):
        wrong = CliRunner().invoke(main, [*given, "wrong", "--metric", typed])
        assert wrong.exit_code
        assert why in wrong.output
        assert not Path("wrong").exists()


def test_rows_of_a_run(tmp_path, monkeypatch):
    mechanisms = {
        "kept": TopDown(epsilon=1, **TOP_DOWN),
        "dropped": TopDown(epsilon=1, method="SH", **TOP_DOWN),
    }
    data, out = {"trips": TRIPS, "twice": TRIPS.assign(n=2 * TRIPS.n)}, tmp_path / "rows.parquet"
    told = []

    def largest(released, true, public):
        told.append(
            (public.level, public.cells, public.names([0]), set(public.regions), public.settings["order"])
        )
        released[:] = -1  # its own copy
        return {"largest": true.max(), "of": len(true)}

    plain, seen = module.one_run, []

    def stopping(*given):
        seen.append(given[-1])
        if len(seen) == 3:
            raise KeyboardInterrupt
        return plain(*given)

    for what in ("__module__", "__qualname__"):
        setattr(stopping, what, getattr(plain, what))
    monkeypatch.setattr(module, "one_run", stopping)
    metrics = {"mine": largest, **module.METRICS}
    with pytest.raises(KeyboardInterrupt):
        run(mechanisms, data, range(2), metrics, out=out)
    rows = run(mechanisms, data, range(2), metrics, out=out)
    assert len(seen) == 3 + 6  # the first two are kept
    pd.testing.assert_frame_equal(pd.read_parquet(out), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]
    case = ["mechanism", "data", "seed", "level", "metric"]
    assert not rows.duplicated(case).any()
    assert rows[case[:3]].drop_duplicates().shape[0] == 8
    by = rows.set_index(case).value
    finest = "state state × sex sex"
    assert by["kept", "twice", 1, finest, "largest"] == 2 * by["kept", "trips", 0, finest, "largest"]
    assert told[-1][:2] == (finest, 4)
    assert set(told[-1][3]) == {"state", "sex"}
    made = release(TRIPS, mechanisms["dropped"], noise=SimulatedNoise(1))
    alone = evaluate(made, TRIPS, count="n").errors
    mine = rows.query("mechanism == 'dropped' and data == 'trips' and seed == 1")
    pd.testing.assert_frame_equal(wide(mine, alone), alone, check_dtype=False)
    assert json.loads(rows.settings.iloc[-1])["method"] == "SH"
    assert rows.versions.str.match(r"hierdp .*; [0-9a-f]{12}$").all()
    with pytest.raises(InputError, match="gave 'many' for level"):
        run(mechanisms, data, [0], {"wrong": lambda *_: "many"})
    for given in (
        (mechanisms, {}, [0]),
        ({}, data, [0]),
        (mechanisms, data, []),
        (mechanisms, data, [0], {}),
    ):
        with pytest.raises(InputError, match="give at least one"):
            run(*given)


def test_mechanisms_are_named_by_what_differs():
    one = TopDown(epsilon=1, **TOP_DOWN)
    named = labelled([one, replace(one, epsilon=2), replace(one, shares=[2, 1]), replace(one, method="SH")])
    assert [label for label, _ in named] == [
        "InfTDA, shares None", "InfTDA, shares None", "InfTDA, shares [2, 1]", "SH",
    ]  # fmt: skip
    with pytest.raises(InputError, match="SH is there twice"):
        labelled([replace(one, method="SH"), replace(one, method="SH")])


def test_intervals_cover_the_true_counts():
    sizes = {"A": Clustering(epsilon=1, method="Laplace", axes=[Numbers("age", 0, 20)])}
    rows = run(sizes, {"people": PEOPLE}, range(3), {"none": lambda *_: 0.0}, confidence=0.9)
    covering = rows[(rows.metric == "covered") & (rows.level == "bins")]
    assert len(covering) == 3
    assert covering.value.mean() >= 0.9
