"""The constraints that contradict each other: each is needed, and together they have no answer."""

import numpy as np
import pytest

import solvers.conflict as search
from models import Program, Workload, WorkloadLeastSquares
from models.programs.terms import Block, rows_of
from solvers.conflict import conflict

INFINITE = np.inf


def program(lower, upper, row_lower, row_upper, integer=False):
    """Rows x0 + x1, x1 + x2 and x0 + x1 + x2 with these sides."""
    entries = ([0, 0, 1, 1, 2, 2, 2], [0, 1, 1, 2, 0, 1, 2], np.ones(7))
    rows = rows_of("sums", (3, 3), entries, np.array(row_lower, float), np.array(row_upper, float))
    return Program("p", [Block("x", (3,), lower, upper, integer)], [rows], [])


def test_only_the_constraints_that_are_needed_are_named():
    found = conflict(program(0, [9, 9, 2], [5, -INFINITE, 8], [5, 4, 9]))
    assert [str(one) for one in found] == [
        "sums, row 0: equal to 5",
        "sums, row 2: at least 8",
        "x, variable [2]: at most 2",
    ]


def test_whatever_highs_proposes_the_set_is_irreducible(monkeypatch):
    given = program(0, [9, 9, 2], [5, -INFINITE, 8], [5, 4, 9])
    monkeypatch.setattr(search.worker, "run", _here)
    expected = conflict(given)
    for proposed in (np.array([], int), np.arange(3)):
        monkeypatch.setattr(search._ConflictPlan, "_proposed", lambda *_, p=proposed: p)
        found = conflict(given)
        assert len(found) == len(expected) == 3


def _here(backend, formulation, effort, seconds):
    return formulation.open(backend, effort)(seconds), 0.0, 0.0


def test_constraints_that_real_numbers_satisfy_do_not_conflict():
    assert conflict(program(0, 1, [0.5, -INFINITE, 0], [0.5, 9, 0.5], integer=True)) == []


@pytest.mark.slow
def test_the_sums_of_one_child_of_many_are_found():
    rng = np.random.default_rng(0)
    cells, sums = (Workload.marginals((8, 2), kept) for kept in ([(0, 1)], [(0,), (1,)]))
    true = rng.integers(1, 50, (60, 16))
    lower = sums.answers(true).astype(float)
    upper = lower + 3
    lower[:, :8] = 0
    upper[:, :8] += 100
    upper[7, :8] = lower[7, 8:].sum() // 8 - 1
    model = WorkloadLeastSquares(cells, cells.answers(true), [1], true.sum(axis=0), None, sums, lower, upper)
    rows = [one.place[0] // 10 for one in conflict(model) if one.name == "rules"]
    assert set(rows) == {7}
    assert len(rows) >= 9
