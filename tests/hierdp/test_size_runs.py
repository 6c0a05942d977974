"""Runs against the dense tables and sorted lists that they represent."""

import numpy as np
import pandas as pd
import pytest
from doubles import group_sizes, hierarchy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hierdp.counts.size_runs import Runs, SizeRuns, cumulative_of, resized, runs_of_cumulative, unattributed
from hierdp.tables import group_sizes as dense_sizes
from hierdp.tables.sizes import group_runs

quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=12)

tables = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=5)


def plain(runs):
    return [tuple(zip(*(side.tolist() for side in runs.of(r)), strict=True)) for r in range(runs.rows)]


def listed(row):
    """All groups of a dense row, smallest first."""
    return np.repeat(np.arange(len(row)), row)


@quiet
@given(tables)
def test_runs_are_the_table_without_its_zeros(table):
    table = np.array(table)
    runs = Runs.from_dense(table)
    assert (runs.dense(4) == table).all()
    assert plain(runs) == [tuple((k, n) for k, n in enumerate(row) if n) for row in table.tolist()]
    assert runs.rows == len(table)
    assert runs.groups.tolist() == table.sum(axis=1).tolist()
    assert runs.people.tolist() == (table @ np.arange(5)).tolist()
    assert runs.distinct.tolist() == (table > 0).sum(axis=1).tolist()
    assert plain(Runs.stacked([runs.between(0, 1), runs.between(1, runs.rows)])) == plain(runs)
    backwards = np.arange(runs.rows)[::-1]
    assert (runs.select(backwards).dense(4) == table[::-1]).all()
    shuffled = [(np.arange(5)[::-1].repeat(2), row[::-1].repeat(2)) for row in table]
    assert plain(Runs.from_rows(shuffled)) == plain(Runs.from_dense(2 * table))


@quiet
@given(tables, st.integers(0, 5))
def test_capped_groups_are_of_the_largest_size(table, most):
    table = np.array(table)
    capped = np.zeros_like(table)
    for row in range(len(table)):
        for size in range(5):
            capped[row, min(size, most)] += table[row, size]
    assert (Runs.from_dense(table).capped(most).dense(4) == capped).all()


@quiet
@given(group_sizes())
def test_sums_along_the_tree(data):
    runs, tree = SizeRuns.of(data).runs, data.hierarchy.tree
    below = runs.between(int(tree.level_start[-2]), tree.size)
    assert plain(below.summed_up(tree)) == plain(runs)
    assert SizeRuns.of(data).groups == data.groups


def test_no_rows_and_empty_rows():
    assert Runs.from_rows([]).rows == 0
    empty = Runs.from_rows([([], []), ([3], [0]), ([4], [1]), ([], [])])
    assert plain(empty) == [(), (), ((4, 1),), ()]
    assert empty.groups.tolist() == [0, 0, 1, 0]
    assert Runs.from_dense(np.zeros((3, 0), int)).groups.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("offsets", "sizes", "counts", "says"),
    [
        ([1, 2], [1, 2], [1, 1], "offsets"),
        ([0, 3], [1, 2], [1, 1], "offsets"),
        ([0, 2, 1, 2], [1, 2], [1, 1], "offsets"),
        ([0, 2], [1, 2], [1], "offsets"),
        ([], [], [], "offsets"),
        ([0, 2], [2, 2], [1, 1], "must increase"),
        ([0, 0, 2, 3], [5, 4, 1], [1, 1, 1], "must increase"),
        ([0, 2], [-1, 2], [1, 1], "at least 0"),
        ([0, 2], [1, 2], [1, 0], "at least 1"),
    ],
)
def test_malformed_runs_are_refused(offsets, sizes, counts, says):
    with pytest.raises(ValueError, match=says):
        Runs(np.array(offsets), np.array(sizes), np.array(counts))


def test_sizes_may_fall_from_row_to_row_only():
    runs = Runs(np.array([0, 2, 2, 4]), np.array([5, 6, 1, 2]), np.ones(4, int))
    assert plain(runs) == [((5, 1), (6, 1)), (), ((1, 1), (2, 1))]


# --- the three forms -------------------------------------------------------------------------------------


@quiet
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 8), st.data())
def test_conversions_on_runs(row, length, data):
    row = np.array(row)
    sizes = np.flatnonzero(row)
    counts = row[sizes]
    cumulated = np.cumsum(np.append(row, np.zeros(9, int)))
    assert cumulative_of(sizes, counts, length).tolist() == cumulated[:length].tolist()
    back = runs_of_cumulative(np.cumsum(row))
    assert (back[0].tolist(), back[1].tolist()) == (sizes.tolist(), counts.tolist())
    assert runs_of_cumulative(np.cumsum(row), 7)[0].tolist() == (sizes + 7).tolist()
    groups = listed(row)
    start = data.draw(st.integers(0, groups.size))
    stop = data.draw(st.integers(start, groups.size))
    assert unattributed(sizes, counts, start, stop).tolist() == groups[start:stop].tolist()


@quiet
@given(st.lists(st.integers(1, 3), min_size=0, max_size=4), st.integers(0, 12), st.integers(0, 1))
def test_resized_keeps_the_largest_and_adds_the_smallest(counts, groups, smallest):
    row = np.array([0] * smallest + counts, dtype=int)
    sizes = np.flatnonzero(row)
    found = resized(sizes, row[sizes], groups, smallest)
    everybody = [smallest] * groups + listed(row).tolist()
    expected = sorted(everybody)[len(everybody) - groups :]
    assert np.repeat(*found).tolist() == expected


# --- from tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [None, "nowhere"])
def test_tables_are_read_as_dense_ones_are(unknown):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"county": rng.choice(list("abcd"), 200), "home": rng.integers(0, 9, 200)})
    rows["home"] = rows.county + rows.home.astype(str)
    rows["people"] = rng.integers(0, 4, 200)
    if unknown:
        rows.loc[3, ["county", "home"]] = None, "far"
        rows.loc[7, "home"] = None
    options = {"levels": ["county"], "group": ["home"], "entities": "people", "unknown": unknown}
    dense = dense_sizes(rows, max_size=40, **options)
    sparse = group_runs(rows, **options)
    assert (sparse.runs.dense(40) == dense.counts).all()
    assert (
        group_runs(rows, max_size=5, **options).runs.dense(5)
        == dense_sizes(rows, max_size=5, **options).counts
    ).all()
    assert sparse.hierarchy.names[1].tolist() == dense.hierarchy.names[1].tolist()


def test_a_size_of_a_billion_needs_no_table():
    places = hierarchy([[0, 0]])
    rows = pd.DataFrame({"level1": places.names[1], "home": [1, 2], "people": [10**9, 10**15]})
    data = group_runs(rows, levels=["level1"], group=["home"], entities="people")
    assert plain(data.runs)[0] == ((10**9, 1), (2**31 - 1, 1))
