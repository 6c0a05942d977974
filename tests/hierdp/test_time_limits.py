"""In every method, a time limit is for a whole step with all its solves, measured by the test's own clock."""

import os
import time

import numpy as np
import pytest
from doubles import hierarchy
from tasks import square

import solvers
from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.execution import processes
from hierdp.mechanisms import group_size, solver_options, top_down
from hierdp.mechanisms.group_size import cost_tables
from hierdp.mechanisms.group_size import post_processing as group_size_repairs
from hierdp.mechanisms.group_size.post_processing import METHODS as GROUP_SIZE
from hierdp.mechanisms.solver_options import Deadline, SolverOptions
from hierdp.mechanisms.top_down import METHODS as TOP_DOWN
from hierdp.mechanisms.top_down import post_processing as top_down_repairs
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import NotSolved
from hierdp.tables import Flows, GroupSizes
from solvers import solve

PLACES = Hierarchy.from_columns({"town": ["a", "b"]}, ["town"])
SIZES = GroupSizes(PLACES, np.array([[3, 1], [2, 0], [1, 1]]))
AXIS = hierarchy([[0, 0, 0], [0, 0, 1, 1, 2, 2]], "o")
TRIPS = Flows((AXIS,), ("to",), np.arange(6)[:, None], np.full(6, 50))

LIMITED = [("group-size", name) for name in GROUP_SIZE if "time_limit" in GROUP_SIZE[name].takes]
LIMITED += [("top-down", name) for name in TOP_DOWN if "time_limit" in TOP_DOWN[name].takes]

IN_PARTS = {"M_dp^OP", "TDA_inf", "TDA_L2", "TDA"}
"""Methods whose steps take several solves."""


def released(mechanism, method, limit):
    backend = "clarabel" if method in ("TDA_L2", "TDA") else None
    if mechanism == "top-down":
        given = 1.0, 0.01, SimulatedNoise(0), method
        return top_down.top_down(TRIPS, *given, solver=SolverOptions(backend, limit))
    window = 3 if method == "M_dp^OP" else None
    solver = {"backend": backend, "time_limit": limit, "window": window}
    return group_size.group_size(SIZES, 2.0, SimulatedNoise(0), method, **solver)


@pytest.fixture
def slow(monkeypatch):
    """Solves that each take a second of a test clock; records when each began, and its limit."""
    now, given = [1000.0], []

    def slowly(model, backend="fast", time_limit=None, **_):
        given.append((now[0], time_limit))
        now[0] += 1.0
        return solve(model, "clarabel" if backend == "clarabel" else "fast")

    monkeypatch.setattr(solver_options, "clock", lambda: now[0])
    for module in (solvers, cost_tables):
        monkeypatch.setattr(module, "solve", slowly)
    monkeypatch.setattr(execution, "within", lambda seconds, _, model: slowly(model, "fast", seconds))
    monkeypatch.setattr(group_size_repairs, "CELLS_OF_A_TABLE", 1)
    monkeypatch.setattr(top_down_repairs, "MOST_WHOLE", 1)
    monkeypatch.setattr(top_down_repairs, "MOST_REAL", 1)
    return given


@pytest.mark.parametrize(("mechanism", "method"), LIMITED)
def test_all_solves_of_a_step_share_its_time_limit(slow, mechanism, method):
    """Each solve gets the remaining time; if none remains, the step ends, and its message names the limit."""
    made = released(mechanism, method, 100.0)
    assert made.manifest()["all_proved_optimal"] or method in ("M_H^r", "TDA_L2", "TDA")
    begun, solves = slow[0][0], list(slow)
    assert solves
    assert all(0 < limit <= 100 for _, limit in solves)
    if method not in IN_PARTS:
        assert solves[0] == (begun, 100.0)
        return
    assert len(solves) > 2
    slow.clear()
    with pytest.raises(
        NotSolved, match=r"time limit (of|is) 1.5 s.*give it more time \(time_limit, --time-limit\)"
    ) as late:
        released(mechanism, method, 1.5)
    assert late.value.status == "time_limit"
    # One step: a solve at its beginning, one a second later with the remaining time, and no third one.
    last = [limit for _, limit in slow][-2:]
    assert last[0] <= 1.5
    assert last[1] <= 0.5


@pytest.mark.parametrize("method", ["M_H^r", "M_c^r"])
def test_a_fast_path_that_is_not_done_in_time_is_stopped(monkeypatch, method):
    def never(seconds, *_):
        assert seconds <= 7.0
        raise TimeoutError

    monkeypatch.setattr(execution, "within", never)
    with pytest.raises(NotSolved, match="stopped at its time limit of 7 s; give it more time"):
        released("group-size", method, 7.0)


def test_what_has_a_process_of_its_own_is_stopped_with_it():
    assert execution.within(600.0, square, 7) == 49
    with pytest.raises(TimeoutError, match=r"stopped after 0\.05 s"):
        execution.within(0.05, time.sleep, 600)


def test_a_process_that_dies_is_no_time_limit():
    with pytest.raises(processes.LostWorker, match="died"):
        execution.within(600.0, os._exit, 3)


def test_a_deadline_without_a_limit_has_no_end():
    assert Deadline.of("q", None).left() is None
