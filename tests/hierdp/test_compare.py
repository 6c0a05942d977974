"""Methods are compared by their own releases with simulated noise; data with an account are refused."""

import json
import math
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import InputError, Numbers, SimulatedNoise, compare, evaluate, execution, release
from hierdp.cli import main
from hierdp.cli.engine import report_interruption
from hierdp.execution import cluster
from hierdp.experiments import compare as module
from hierdp.experiments.compare import mechanism_of
from hierdp.experiments.run import seed_for
from hierdp.experiments.summary import comparison_of, summed_up
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


def test_a_run_is_the_release_itself_with_noise_from_its_own_seed():
    found = compare(TRIPS, methods=["SH", "InfTDA"], runs=2, seed=5, **TOP_DOWN)  # others change no run
    noise = SimulatedNoise(seed_for(5, "InfTDA", 1.0, 1))
    made = release(TRIPS, "top-down", epsilon=1, noise=noise, **TOP_DOWN)
    rows = found.runs.query("method == 'InfTDA' and epsilon == 1 and run == 1").reset_index(drop=True)
    alone = evaluate(made, TRIPS, count="n").errors
    pd.testing.assert_frame_equal(rows[alone.columns], alone)
    assert len(found.runs) == 2 * 2 * len(alone)
    assert (found.runs.seconds > 0).all()


def test_the_spread_is_the_interval_of_the_mean():
    runs = pd.DataFrame({"method": "A", "epsilon": 1.0, "run": range(4), "level": "all", "l1": [2, 4, 4, 6]})
    (row,) = summed_up(runs).to_dict("records")
    half = 3.182446305284263 * math.sqrt(8 / 3) / 2  # Student's t, 3 degrees of freedom, 97.5%
    assert (row["mean"], row["runs"]) == (4, 4)
    assert (row["low"], row["high"]) == pytest.approx((4 - half, 4 + half))
    assert row["standard_deviation"] == pytest.approx(math.sqrt(8 / 3))
    found = comparison_of(runs.assign(rmse=1234.5).to_dict("records"), "", {"methods": "A", "runs": 4})
    shown = {"ε": "1", "method": "A", "L1": "4", "±": f"{half:.3g}", "RMSE": "1,234"}
    assert found.shown("all").to_dict("records") == [shown]


def test_with_the_same_noise_only_post_processing_differs():
    sizes = {**SIZES, "max_size": 4}
    options = {"methods": ["M_c^dp", "M_c^r", "M_c"], "runs": 2, "seed": 5, **sizes}
    rows = without_time(compare(PEOPLE, same_noise=True, **options))
    assert rows["method"].value_counts().tolist() == [4, 4, 4]
    for run in range(2):
        for method in options["methods"]:  # the noise of the first
            noise = SimulatedNoise(seed_for(5, "M_c^dp", 1.0, run))
            made = release(PEOPLE, "group-size", epsilon=1, noise=noise, method=method, **sizes)
            alone = evaluate(made, PEOPLE, group="home").errors
            mine = rows.query("method == @method and run == @run").reset_index(drop=True)
            pd.testing.assert_frame_equal(mine[alone.columns], alone)
    for methods, why in ((["M_c^dp", "M_H"], "M_H cannot start from"), (["M_c^dp", "Hc"], "no method 'Hc'")):
        with pytest.raises(InputError, match=why):
            compare(PEOPLE, methods=methods, runs=1, same_noise=True, **sizes)


@pytest.mark.slow
def test_an_interrupted_comparison_continues(tmp_path, monkeypatch):
    plain, done = module.one_run, []

    def stopping(*given):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(given[-3:])
        return plain(*given)

    for what in ("__module__", "__qualname__"):
        setattr(stopping, what, getattr(plain, what))
    monkeypatch.setattr(module, "one_run", stopping)
    options = {"methods": ["InfTDA"], "runs": 4, "resume": tmp_path / "runs", **TOP_DOWN}
    for _ in range(2):  # two runs, then no more
        with pytest.raises(KeyboardInterrupt):
            compare(TRIPS, **options)
    assert done == [(("InfTDA",), 1.0, 0), (("InfTDA",), 1.0, 1)]
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
    found = compare(data, **options, public="published in 2019")
    assert (found.settings["runs"], found.settings["public"]) == (1, "published in 2019")
    path.rename(tmp_path / "elsewhere.json")
    assert list(accounts_beside(data)) == [tmp_path / "elsewhere.json"]
    (tmp_path / "elsewhere.json").unlink()
    open_account(tmp_path / "named", "the trips of 2013", 1)  # a name that is not that of a file
    assert list(accounts_beside(data)) == [tmp_path / "named"]


def test_what_cannot_be_compared_is_refused():
    for given, words in (
        ({"methods": ["InfTDA", "AHP"]}, "different questions"),
        ({"methods": ["InfTda"]}, "no method 'InfTda'"),
        ({"methods": ["SH"], "bins": 3}, "takes no bins"),
        ({"methods": ["SH"], "method": "SH"}, "as a list"),
        ({"methods": ["SH", "SH"]}, "each once"),
        ({"methods": "SH"}, "must be a list"),
        ({"methods": ["SH"], "epsilons": [1, -1]}, "-1"),
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
    assert len(pd.read_csv("comparison/runs.csv")) == len(first) == 2 * 2 * 2 * 3
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
    assert sizes.groupby("method")["level"].agg(tuple).nunique() == 1
    assert sizes.cells.nunique() == 2
    bins = compare(PEOPLE, methods=["H_b^c", "Wavelet", "AHP"], runs=1, axes=[Numbers("age", 0, 20)]).runs
    assert bins.groupby("method")["level"].agg(tuple).nunique() == 1
    table = {"attributes": ["sex"], "attributes_from_data": True, "levels": ["state"], "delta": 1e-6}
    methods = ["TopDown", "BlueDown", "GLS", "Joint"]
    found = compare(PEOPLE, methods=methods, runs=1, regions_from_data=True, **table)
    assert set(found.runs.method) == set(methods)


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
    def run(*_):
        raise AssertionError("a run was made")

    monkeypatch.setattr(module, "one_run", run)
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
