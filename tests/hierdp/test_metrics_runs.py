"""Errors on runs: against dense cumulative tables, and against groups moved one by one."""

import numpy as np
import pytest
from doubles import hierarchy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hierdp.counts.size_runs import Runs
from hierdp.metrics.group_sizes import earth_movers
from hierdp.metrics.runs import earth_movers_runs, omniscient, size_run_errors

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck))
rows = st.lists(st.integers(0, 3), min_size=6, max_size=6)


@quiet
@given(st.lists(st.tuples(rows, st.randoms()), min_size=1, max_size=4))
def test_with_as_many_groups_it_is_the_distance_of_cumulative_tables(pairs):
    one = np.array([row for row, _ in pairs])
    other = np.array([shuffle.sample(row, 6) for row, shuffle in pairs])
    found = earth_movers_runs(Runs.from_dense(one), Runs.from_dense(other))
    assert found.tolist() == [earth_movers(a, b) for a, b in zip(one, other, strict=True)]


@quiet
@given(rows, rows)
def test_missing_groups_count_as_empty(one, other):
    a, b = (np.repeat(np.arange(6), row) for row in (one, other))
    most = max(a.size, b.size)
    a, b = (np.append(np.zeros(most - part.size, int), part) for part in (a, b))
    found = earth_movers_runs(Runs.from_dense([one]), Runs.from_dense([other]))
    assert found.tolist() == [np.abs(a - b).sum()]
    assert earth_movers_runs(Runs.from_dense([other]), Runs.from_dense([one])).tolist() == found.tolist()


def test_beyond_64_bits_it_is_exact():
    one, other = Runs.from_rows([([2**40], [2**30])]), Runs.from_rows([([5], [2**30])])
    assert earth_movers_runs(one, other).tolist() == [2**30 * (2**40 - 5)]


def test_errors_by_level():
    places = hierarchy([[0, 0]])
    true = Runs.from_dense([[0, 2, 0, 1], [0, 1, 0, 0], [0, 1, 0, 1]])
    made = Runs.from_dense([[0, 1, 1, 1], [0, 0, 1, 0], [0, 1, 1, 0]])
    frame = size_run_errors(places.tree, places.levels, true, made)
    assert frame["name"].tolist() == list(places.levels)
    assert frame["regions"].tolist() == [1, 2]
    assert frame["emd"].tolist() == [1, 2]
    assert frame["emd_per_region"].tolist() == [1, 1]


def test_the_omniscient_error_of_the_paper():
    places = hierarchy([[0, 0]])
    sizes = np.arange(2352)
    true = Runs.from_rows(
        [(sizes, np.ones(2352, int)), (sizes[:100], np.ones(100, int)), (sizes[100:], np.ones(2252, int))]
    )
    frame = omniscient(places.tree, places.levels, true, epsilon=0.2)  # 0.1 per level, as in Figure 4
    assert frame["emd_per_region"].tolist() == pytest.approx([3.3e4, 3.3e4 / 2], rel=0.01)
    frame = omniscient(places.tree, places.levels, true, epsilon=0.2, shares=[3, 1])
    assert frame["emd_per_region"].tolist() == pytest.approx([3.3e4 / 1.5, 3.3e4], rel=0.01)
