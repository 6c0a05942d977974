"""Results are the same bytes on all workers; a lost worker costs only its task; true counts are not sent."""

import json
import os
import pickle
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tasks
from click.testing import CliRunner
from doubles import Double, hierarchy
from test_check import ALL, PEOPLE

from hierdp import SimulatedNoise, execution, release
from hierdp import versions as source
from hierdp.checking import FAILS, check
from hierdp.cli import main
from hierdp.counts import size_table
from hierdp.counts.size_runs import SizeRuns
from hierdp.errors import InputError
from hierdp.execution import cluster, processes
from hierdp.mechanisms.count_of_counts import count_of_counts, estimates
from hierdp.mechanisms.group_size import group_size
from hierdp.mechanisms.group_size import post_processing as group_size_fits
from hierdp.mechanisms.group_size import post_processing as group_size_repairs
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import post_processing as top_down_repairs
from hierdp.mechanisms.top_down import top_down
from hierdp.record.spool import Steps
from hierdp.record.step import NotSolved
from hierdp.tables import Flows, GroupSizes
from models import CumulativeQIP
from models.arithmetic import exact
from solvers import fast
from solvers import process as solver_process

pytestmark = pytest.mark.slow

ITEMS = [(x,) for x in range(20)]
SQUARES = [x * x for x in range(20)]


@pytest.fixture(scope="module")
def local():
    """A real scheduler with three worker processes."""
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "fingerprint", tasks.same)  # a source file may be saved meanwhile
        patch.setattr(cluster, "PATIENCE_SECONDS", 300)  # the machine may be busy
        with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as made:
            yield made


@pytest.fixture(scope="module")
def engines(request):
    """All places where work can be done, by name; started only once, because a start takes seconds."""
    made = {f"{number} processes": execution._made(number, None) for number in (1, 2, 3)}
    if find_spec("distributed"):
        made["cluster"] = execution._made(None, request.getfixturevalue("local").scheduler_address)
    yield {"here": None, **made}
    for one in made.values():
        one.close()


@contextmanager
def at(one):
    before = execution._engine.set(one)
    try:
        yield
    finally:
        execution._engine.reset(before)


def everywhere(places, job):
    found = []
    for place in places.values():
        with at(place):
            found.append(job())
    return found


# --- the map itself --------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_work(engines):
    def job():
        plain = list(execution.each(tasks.square, ITEMS, "squaring"))
        assert plain == SQUARES
        assert list(execution.each(tasks.square, [], "squaring")) == []
        return list(execution.each(pow, ITEMS, "powers", shared=(2,)))

    assert everywhere(engines, job) == [[2**x for (x,) in ITEMS]] * len(engines)


def test_work_is_shared_out():
    with execution.using(workers=3):
        found = list(execution.each(tasks.pid, ITEMS, "looking"))
        assert len(set(found)) == 3
        assert os.getpid() not in found
        again = list(execution.each(tasks.pid, ITEMS, "looking"))
        assert set(again) <= set(found)  # workers are kept
    for one in set(found):
        with pytest.raises(ProcessLookupError):
            os.kill(one, 0)
    assert set(execution.each(tasks.pid, ITEMS[:2], "looking")) == {os.getpid()}


def test_shared_things_are_sent_anew_when_they_change(engines):
    with at(engines["1 processes"]):
        for base in (2, 3, 2):
            shared = (base,)
            assert list(execution.each(pow, [(3,)], "powers", shared)) == [base**3]


def test_nested_work(engines):
    with at(engines["2 processes"]):
        outer = execution.each(tasks.square, ITEMS, "squaring")
        found = [(x, list(execution.each(tasks.square, ITEMS[:3], "inner"))) for x in outer]
    assert found == [(x, [0, 1, 4]) for x in SQUARES]


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("input", InputError, "column 'n' is bad"),
        ("solver", NotSolved, "it took too long"),
        ("memory", MemoryError, "no more"),
        ("stubborn", RuntimeError, "Stubborn: one"),
    ],
)
def test_exceptions_keep_their_type(engines, how, kind, message):
    for place in engines.keys() & ({"2 processes"} if how == "stubborn" else {"2 processes", "cluster"}):
        with at(engines[place]):
            with pytest.raises(kind, match=message) as caught:
                list(execution.each(tasks.fails, [(how,)], "failing"))
            assert how != "solver" or caught.value.status == "time_limit"
            assert list(execution.each(tasks.square, ITEMS, "squaring")) == SQUARES


def test_unpicklable_result(engines):
    with at(engines["1 processes"]):
        with pytest.raises((RuntimeError, pickle.PicklingError, AttributeError), match="pickle"):
            list(execution.each(tasks.fails, [("result",)], "failing"))
        assert list(execution.each(tasks.square, ITEMS, "squaring")) == SQUARES


def test_stopping_early_stops_the_work(engines):
    with at(engines["2 processes"]):
        results = execution.each(tasks.slow, [(0, 0), (1,), (2,), (3,)], "sleeping")
        assert next(results) == 0
        results.close()  # otherwise the next line would wait for an hour
        assert list(execution.each(tasks.square, ITEMS, "squaring")) == SQUARES


def test_chunks():
    assert execution.chunks(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert execution.chunks(6, 3) == [slice(0, 3), slice(3, 6)]
    assert execution.chunks(2, 0) == [slice(0, 1), slice(1, 2)]
    assert execution.chunks(0, 3) == []


# --- cores -----------------------------------------------------------------------------------------------

linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no such thing")


@linux
@pytest.mark.parametrize("ours", [{0, 1}, {3}, {2, 5, 7}, set(range(8))])
@pytest.mark.parametrize("number", [1, 2, 3, 8, 20])
def test_the_cores_are_shared_out(monkeypatch, ours, number):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: ours)
    shares = [set(processes.cores(share, number)) for share in range(number)]
    assert set.union(*shares) == ours
    assert all(shares)
    if number <= len(ours):
        assert sum(map(len, shares)) == len(ours)  # no core twice
    else:
        assert {len(share) for share in shares} == {1}
        alike = [shares.count({core}) for core in ours]
        assert max(alike) - min(alike) <= 1


@linux
def test_each_worker_keeps_to_its_cores_and_leaves_ours_alone():
    ours = os.sched_getaffinity(0)
    number = max(2, min(3, len(ours)))
    shares = sorted(sorted(processes.cores(share, number)) for share in range(number))

    def seen():
        found = {one: (own, all_) for one, own, all_ in execution.each(tasks.cores, ITEMS, "looking")}
        assert all(own == all_ for own, all_ in found.values())
        return found

    with execution.using(workers=number):
        for share in reversed(shares):
            found = seen()
            assert sorted(sorted(own) for own, _ in found.values()) == shares
            # A worker that replaces a dead one gets the same share of cores.
            os.kill(next(one for one, (own, _) in found.items() if own == set(share)), signal.SIGKILL)
        assert sorted(sorted(own) for own, _ in seen().values()) == shares
    assert os.sched_getaffinity(0) == ours


@linux
def test_core_affinity_may_be_forbidden_by_the_system():
    nowhere = [max(os.sched_getaffinity(0)) + 10_000]
    process, line = solver_process.started("hierdp.execution.processes:serve", nowhere)
    line.send(("task", tasks.square, (3,)))
    assert pickle.loads(line.recv_bytes()) == (True, 9)
    line.close()
    assert solver_process.ended(process) == "exit status 0"


# --- lost workers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("where", ["1 processes", "3 processes", "cluster"])
def test_a_killed_worker_costs_its_task_only(tmp_path, engines, where, shared):
    if where not in engines:
        pytest.skip("Dask is not installed")
    with at(engines[where]):
        if shared:
            cases = [(x, 7) for x in range(20)]
            found = list(execution.each(tasks.noted, cases, "squaring", (str(tmp_path),)))
        else:
            found = list(execution.each(tasks.noted, [(str(tmp_path), x, 7) for x in range(20)], "squaring"))
    assert found == SQUARES
    done = [name.split("-")[0] for name in os.listdir(tmp_path)]
    times = {x: done.count(str(x)) for x in range(20)}
    assert times[7] == 2
    if where != "cluster":  # Dask may repeat tasks whose results the lost worker had not delivered
        assert sum(times.values()) == 21


def test_a_killed_worker_leaves_the_others_at_work(tmp_path, engines):
    """The pools of `concurrent.futures` and `loky` end all processes, and start all tasks again."""
    with at(engines["3 processes"]):
        cases = [(x, 1) for x in range(3)]
        assert list(execution.each(tasks.noted_until, cases, "x", (str(tmp_path),))) == SQUARES[:3]
    assert [len(tasks.calls(tmp_path, x)) for x in range(3)] == [1, 2, 1]


@pytest.mark.usefixtures("local")
def test_the_only_worker_of_a_cluster_is_lost_with_what_the_tasks_share(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as alone,
        execution.using(scheduler=alone.scheduler_address),
    ):
        cases = [(x, 2) for x in range(5)]
        assert list(execution.each(tasks.noted, cases, "squaring", (str(tmp_path),))) == SQUARES[:5]


SCHEDULER = """
import distributed, sys, time
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as made:
        print(made.scheduler_address, flush=True)
        time.sleep(3600)
"""


@pytest.mark.attack
@pytest.mark.parametrize("after", [0, 2], ids=["while the first task runs", "after some results"])
def test_a_scheduler_that_is_killed(tmp_path, after):
    """Dask reports "ConnectionPool closing", or nothing for half a minute."""
    pytest.importorskip("distributed")
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "scheduler.py"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    items = [(x, 0.0) for x in range(after)] + [(9, 3600.0)]

    def work():
        if not after:
            threading.Timer(2, process.kill).start()
        for done, _ in enumerate(execution.each(tasks.slow, items, "sleeping")):
            if done == after - 1:
                process.kill()

    try:
        address = process.stdout.readline().strip()
        gone = pytest.raises(execution.LostWorker, match="the Dask scheduler was lost")
        with execution.using(scheduler=address), gone:
            work()
    finally:
        process.kill()
        process.wait()


@contextmanager
def dask(*words):
    """A process of Dask's command line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words, "--no-dashboard"], stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def dask_cluster(file):
    """The address and the processes of a scheduler and of two workers."""
    about = ("--scheduler-file", str(file))
    worker = ("worker", "--nthreads", "1", "--no-nanny", "--death-timeout", "60", *about)
    with dask("scheduler", "--host", "127.0.0.1", "--port", "0", *about) as head:
        while not file.exists() or not file.read_text().endswith("}"):
            assert head.poll() is None
            time.sleep(0.05)
        with dask(*worker) as one, dask(*worker) as other:
            yield json.loads(file.read_text())["address"], head, one, other


@pytest.mark.attack
def test_a_release_whose_scheduler_is_killed_leaves_nothing_and_can_be_made_again(tmp_path, monkeypatch):
    """A worker dies after the first result, which costs its task only, and the scheduler after the third."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(group_size_fits, "CELLS_A_TASK", 4)
    monkeypatch.setattr(cluster, "fingerprint", tasks.same)
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 300)
    rows = [(f"c{c}", 10 * c + g) for c in range(8) for g in range(c + 2) for _ in range(g % 3 + 1)]
    pd.DataFrame(rows, columns=["county", "home"]).to_parquet(tmp_path / "people.parquet")
    asked = [
        "release", "group-size", str(tmp_path / "people.parquet"), "--levels", "county", "--group", "home",
        "--max-size", "3", "--regions-from-data", "--groups-from-data", "--epsilon", "8",
        "--method", "M_c^dp", "--out", str(tmp_path / "out" / "made"), "--scheduler",
    ]  # fmt: skip
    (tmp_path / "out").mkdir()
    killed, plain = [], cluster.Cluster.results

    def dying(self, *work):
        for result in plain(self, *work):
            yield result
            killed.append(len(killed))
            for process in doomed.get(len(killed), ()):
                process.kill()
                process.wait()

    monkeypatch.setattr(cluster.Cluster, "results", dying)
    with dask_cluster(tmp_path / "first.json") as (address, head, one, _):
        doomed = {1: [one], 3: [head]}
        lost = CliRunner().invoke(main, [*asked, address])
    assert lost.exit_code != 0
    assert "the Dask scheduler was lost: restart it, then run the release again" in lost.output
    assert len(killed) >= 3
    assert list((tmp_path / "out").iterdir()) == []
    with dask_cluster(tmp_path / "second.json") as (address, *_):
        doomed = {}
        again = CliRunner().invoke(main, [*asked, address])
    assert again.exit_code == 0, again.output
    assert all(line.verdict != FAILS for line in check(tmp_path / "out" / "made"))


def test_task_that_always_kills_its_worker(engines):
    for place in engines.keys() & {"2 processes", "cluster"}:
        with at(engines[place]):
            with pytest.raises(execution.LostWorker, match=r"died \(SIGKILL\) 3 times|a task ended all"):
                list(execution.each(tasks.always_dies, ITEMS, "dying"))
            assert list(execution.each(tasks.square, ITEMS, "squaring")) == SQUARES


def test_a_scheduler_that_loses_all_workers(monkeypatch):
    """It would be waited for without an end: as one whose nanny could not start another worker."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as made,
        execution.using(scheduler=made.scheduler_address),
    ):
        monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.5)
        threading.Timer(1, made.scale, [0]).start()
        with pytest.raises(execution.LostWorker, match="all Dask workers were lost, and none came back"):
            list(execution.each(tasks.slow, [(1, 3600.0), (2, 3600.0)], "sleeping"))


# --- the same bytes --------------------------------------------------------------------------------------


def sizes():
    places = hierarchy([[0, 0, 0], [0, 0, 1, 1, 1, 2, 2]])
    rng = np.random.default_rng(1)
    return GroupSizes(places, places.tree.sum_up(rng.integers(0, 9, (7, 5))))


def tiny():
    places = hierarchy([[0, 0]])
    return GroupSizes(places, places.tree.sum_up(np.array([[3, 1], [2, 4]])))


def trips():
    axes = (hierarchy([[0, 0, 0], [0, 0, 1, 2, 2]], "o"), hierarchy([[0, 0], [0, 1, 1, 1]], "d"))
    cells = np.array([[a, b] for a in range(5) for b in range(4) if (a + b) % 3])
    return Flows(axes, ("from", "to"), cells, np.arange(1, len(cells) + 1) * 7)


def few(engines):
    """Fewer places for methods with solvers, since each worker starts its own, which takes seconds."""
    return {place: one for place, one in engines.items() if place in ("here", "2 processes", "cluster")}


RELEASES = {
    "M_c^dp": lambda: group_size(sizes(), 1.0, SimulatedNoise(3), "M_c^dp"),
    "M_dp^OP": lambda: group_size(tiny(), 8.0, SimulatedNoise(3), "M_dp^OP", window=3),
    "InfTDA": lambda: top_down(trips(), 1.0, 1e-8, SimulatedNoise(3)),
    "TDA": lambda: top_down(trips(), 1.0, 1e-8, SimulatedNoise(3), "TDA", solver=SolverOptions("highs")),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_the_same_bytes_wherever_it_is_made(name, engines, tmp_path, monkeypatch):
    monkeypatch.setattr(group_size_fits, "CELLS_A_TASK", 10)
    monkeypatch.setattr(group_size_repairs, "CELLS_OF_A_TABLE", 3)
    monkeypatch.setattr(top_down_repairs, "MOST_WHOLE", 6)
    monkeypatch.setattr(top_down_repairs, "MOST_REAL", 6)
    places = engines if name in ("M_c^dp", "InfTDA") else few(engines)

    def job():
        path = RELEASES[name]().write(tmp_path / f"out{len(list(tmp_path.iterdir()))}", report=False)
        return [(path / file).read_bytes() for file in ("released.parquet", "released.csv")]

    made = everywhere(places, job)
    assert all(one == made[0] for one in made)


@pytest.mark.parametrize(("mechanism", "options"), ALL, ids=lambda value: str(value)[:60])
def test_every_method_is_the_same_bytes_wherever_it_is_made(
    mechanism, options, engines, tmp_path, monkeypatch
):
    monkeypatch.setattr(group_size_fits, "CELLS_A_TASK", 10)
    monkeypatch.setattr(top_down_repairs, "MOST_WHOLE", 6)
    monkeypatch.setattr(top_down_repairs, "MOST_REAL", 6)

    def job():
        made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(7), **options)
        path = made.write(tmp_path / "out", overwrite=True, report=False)
        return {file.name: file.read_bytes() for file in path.iterdir() if file.name not in DATED}

    made = everywhere(few(engines), job)
    assert {"released.parquet", "released.csv"} <= set(made[0])
    assert all(one == made[0] for one in made)


@pytest.mark.parametrize("method", ["M_c^dp", "M_H^dp"])
def test_a_release_in_blocks_is_the_same_bytes_on_a_cluster(method, local, tmp_path, monkeypatch):
    """The tables in parts, and the proofs of the tasks of regions and of the blocks of sizes."""
    monkeypatch.setattr(group_size_fits, "CELLS_A_TASK", 15)
    monkeypatch.setattr(group_size_repairs, "CELLS_A_BLOCK", 20)
    monkeypatch.setattr(size_table, "PART", 25)

    def job():
        made = group_size(sizes(), 1.0, SimulatedNoise(3), method)
        path = made.write(tmp_path / "out", overwrite=True, report=False)
        found = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
        return [line.step for line in made.proved], {k: v for k, v in found.items() if k not in DATED}

    here = job()
    fits, blocks = ([name for name in here[0] if name.startswith(kind)] for kind in ("mono", "consistency"))
    assert len(blocks) > 2
    assert (len(fits) > 2) == (method == "M_c^dp")
    assert {"proofs.zip", "released.parquet"} <= set(here[1])
    sent = []
    monkeypatch.setattr(cluster.Cluster, "results", noting(cluster.Cluster.results, sent))
    with execution.using(scheduler=local.scheduler_address):
        assert job() == here
    assert sum(sent) > len(fits) + 2 * len(blocks)  # the search for the blocks' groups runs there, too


@pytest.mark.parametrize("method", ["Hc", "Hg"])
def test_steps_kept_in_a_file_are_the_same_bytes_wherever_they_are_solved(
    method, engines, tmp_path, monkeypatch
):
    """Count-of-counts with more variables than are held; the regions of a batch are solved elsewhere."""
    monkeypatch.setattr(Steps, "MOST", 40)
    monkeypatch.setattr(estimates, "CELLS", 50)

    def job():
        made = count_of_counts(SizeRuns.of(sizes()), 1.0, SimulatedNoise(3), method, max_size=9)
        assert not made.steps.in_memory
        path = made.write(tmp_path / "out", overwrite=True, report=False)
        return {file.name: file.read_bytes() for file in path.iterdir() if file.name not in DATED}

    made = everywhere(few(engines), job)
    assert {"released.parquet", "proofs.zip"} <= set(made[0])
    assert all(one == made[0] for one in made)


def noting(results, sent):
    """`results` of an engine, with the number of tasks noted."""

    def noted(self, function, items, shared):
        sent.append(len(items))
        return results(self, function, items, shared)

    return noted


def test_sums_of_floats_do_not_depend_on_the_number_of_threads():
    """A worker has only a share of the cores, and so fewer threads than this process."""
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 200_001))
    relaxed = CumulativeQIP.random(rng, 60_000)
    found = set()
    for threads in (1, 2, 3):
        with limits(threads):
            answer, witness = fast.answer(replace(relaxed, integer=False))
            found.add((exact.dot(a, b), answer.tobytes(), witness["prices"].tobytes()))
    assert len(found) == 1


DATED = {"manifest.json", "SHA256SUMS"}
"""These files contain the time of a release and its duration."""


def test_the_command_line_spreads_its_work(tmp_path, local, monkeypatch):
    monkeypatch.setattr(group_size_fits, "CELLS_A_TASK", 10)
    table = tmp_path / "in.csv"
    table.write_text("town,home\n" + "".join(f"town{i % 9},{i}\n" * (i % 4 + 1) for i in range(60)))
    command = f"release group-size {table} --levels town --group home --max-size 5 --epsilon 1 --simulate 4"
    command += " --regions-from-data --groups-from-data"
    made = []
    for more in ("", "--workers 2", f"--scheduler {local.scheduler_address}"):
        out = tmp_path / f"out{len(made)}"
        done = CliRunner().invoke(main, shlex.split(f"{command} {more} --out {out}"))
        assert done.exit_code == 0, done.output
        made.append((out / "released.csv").read_bytes())
    assert made == made[:1] * 3


# --- data sent to workers --------------------------------------------------------------------------------


class Listening:
    """An engine that records what is sent."""

    def __init__(self):
        self.sent = b""

    def results(self, function, items, shared):
        self.sent += pickle.dumps((function, items, shared), protocol=5)
        for place, item in enumerate(items):
            yield place, function(*shared, *item)

    def close(self):
        pass


SECRET, SHIFT = 1_234_577, 10_000_019


@pytest.fixture
def wire(monkeypatch):
    listening = Listening()
    monkeypatch.setattr(execution, "_made", lambda *_: listening)
    with execution.using(workers=1):
        yield listening


def contains(sent, number):
    return int(number).to_bytes(8, "little") in sent or str(int(number)).encode() in sent


@pytest.mark.parametrize("method", ["M_c^dp", "TDA_inf", "TDA"])
def test_true_counts_are_not_sent_to_workers(wire, method):
    noise = Double(lambda counts: counts + SHIFT * (1 + np.arange(counts.size).reshape(counts.shape)))
    if method == "M_c^dp":
        data = sizes()
        leaves = data.counts[data.hierarchy.tree.leaves] + SECRET * (1 + np.arange(7)[:, None] % 3)
        data = GroupSizes(data.hierarchy, np.asarray(data.hierarchy.tree.sum_up(leaves)))
        group_size(data, 1.0, noise, method)
        public = {data.groups}
    else:
        data = trips()
        data = Flows(data.axes, data.axis_names, data.cells, data.counts + SECRET)
        top_down(data, 1.0, 1e-8, noise, method, solver=SolverOptions("highs"))
        public = {data.total}
    noisy = np.concatenate([counts.ravel() for counts in noise.noisy])
    true = np.concatenate([counts.ravel() for counts in noise.true])
    assert any(contains(wire.sent, number) for number in noisy)  # sent numbers are found
    for number in set(true.tolist()) - public - set(noisy.tolist()):
        assert number < 100_000 or not contains(wire.sent, number)


# --- invalid targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"workers": 0}, "workers must be a whole number from 1 to 1000, got 0"),
        ({"workers": 2.5}, "got 2.5"),
        ({"workers": True}, "got True"),
        ({"workers": 10**6}, "got 1000000"),
        ({"workers": 2, "scheduler": "tcp://x:1"}, "not both"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        ({"scheduler": "nowhere"}, "no Dask scheduler answers at 'nowhere'"),
        ({"scheduler": ""}, "no Dask scheduler answers at ''"),
        ({"scheduler": "carrier://pigeon:1"}, "no Dask scheduler answers at 'carrier://pigeon:1'"),
    ],
)
def test_invalid_targets_are_refused(monkeypatch, place, message):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(InputError, match=message), execution.using(**place):
        pass


SECOND_RUN = """
import gc, sys
from distributed import Client
from distributed.utils import LoopRunner
from hierdp import InputError
from hierdp.execution import cluster
cluster.PATIENCE_SECONDS = 0.5
start = LoopRunner._start_unlocked
def collecting(self):  # as it may at any time, here while the lock is held
    gc.collect()
    return start(self)
gc.disable()
for turn in range(2):
    try:
        cluster.Cluster("nowhere")
    except InputError as nobody:
        print(str(nobody)[:24])
    LoopRunner._start_unlocked = collecting
"""


def test_retry_after_a_missing_cluster():
    """If Dask's first client was garbage-collected while the second started, both waited forever."""
    pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, "-c", SECOND_RUN], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == ["no Dask scheduler answers"[:24]] * 2, done.stderr


def test_a_missing_dask_is_named_by_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"not installed; run pip install 'hierdp\[dask\]'"):
        execution.using(scheduler="tcp://127.0.0.1:1").__enter__()


def test_workers_with_another_hierdp_are_refused(local, monkeypatch):
    monkeypatch.setattr(cluster, "fingerprint", os.getpid)
    with pytest.raises(InputError, match="have another version of hierdp or of its libraries"):
        execution.using(scheduler=local.scheduler_address).__enter__()
    monkeypatch.setattr(cluster, "fingerprint", tasks.always_dies)
    with pytest.raises(InputError, match=r"cannot load hierdp \(TypeError\)"):
        execution.using(scheduler=local.scheduler_address).__enter__()


def test_fingerprints_follow_source_and_versions(monkeypatch, tmp_path):
    def anew():
        source.fingerprint.cache_clear()
        return source.fingerprint()

    copies = {}
    for package in ("models", "solvers", "hierdp"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        copies[package] = SimpleNamespace(__file__=str(tmp_path / package / "__init__.py"))
    monkeypatch.setattr(source, "import_module", copies.get)
    found = [anew(), anew()]
    (tmp_path / "hierdp" / "deep").mkdir()
    (tmp_path / "hierdp" / "deep" / "new.py").write_text("x = 1")
    found.append(anew())
    (tmp_path / "hierdp" / "deep" / "new.py").write_text("x = 2")
    found.append(anew())
    monkeypatch.setattr(source, "versions", lambda: [("numpy", "0")])
    found.append(anew())
    source.fingerprint.cache_clear()
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_a_scheduler_without_workers(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 300)
    wait = distributed.Client.wait_for_workers
    monkeypatch.setattr(
        distributed.Client, "wait_for_workers", lambda self, number, **_: wait(self, number, timeout=0.1)
    )
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(InputError, match="has no workers; start some"),
    ):
        execution.using(scheduler=empty.scheduler_address).__enter__()


def test_workers_end_with_the_process_that_started_them(tmp_path):
    import subprocess

    script = (
        "import sys, tasks; from hierdp import execution\n"
        "with execution.using(workers=2):\n"
        "    list(execution.each(tasks.noted, [(sys.argv[1], 1), (sys.argv[1], 2)], 'x'))\n"
        "    list(execution.each(tasks.slow, [(1,), (2,)], 'x'))\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    try:
        until = time.monotonic() + 300
        while len(os.listdir(tmp_path)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    helpers = {int(name.split("-")[1]) for name in os.listdir(tmp_path)}
    assert helpers
    until = time.monotonic() + 300
    while any(Path(f"/proc/{one}").exists() for one in helpers) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [one for one in helpers if Path(f"/proc/{one}").exists()]
