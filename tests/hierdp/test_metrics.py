"""The errors of a release, each compared with its definition in plain Python."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from doubles import hierarchy
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.counts.size_runs import Runs
from hierdp.errors import InputError
from hierdp.metrics import group_sizes, histogram, ranges, runs

TOWNS = hierarchy([[0, 0]])
LEVELS = {"level": [0, 1], "name": list(TOWNS.levels), "regions": [1, 2]}
SIZES = st.lists(st.integers(0, 3), min_size=6, max_size=6)
"""The number of groups of each size from 0 to 5."""

without_deadline = settings(deadline=None)


def entities_to_move(true, released):
    """Match the groups in order of size, after adding empty groups to the table with fewer."""
    tables = [[size for size, groups in enumerate(row) for _ in range(groups)] for row in (true, released)]
    most = max(map(len, tables))
    padded = [[0] * (most - len(table)) + table for table in tables]
    return sum(abs(a - b) for a, b in zip(*padded, strict=True))


def by_level(of_rows):
    """The sums of the root's value and of the two towns' values."""
    return [of_rows[0], of_rows[1] + of_rows[2]]


@given(st.lists(st.tuples(SIZES, SIZES, st.randoms()), min_size=3, max_size=3))
@without_deadline
def test_errors_of_groups_by_size(rows):
    true, released, shuffled = zip(*[(a, b, random.sample(a, 6)) for a, b, random in rows], strict=True)
    moved = [entities_to_move(a, b) for a, b in zip(true, released, strict=True)]
    sides = Runs.from_dense(true), Runs.from_dense(released)
    assert runs.earth_movers_runs(*sides).tolist() == moved
    assert runs.earth_movers_runs(*sides[::-1]).tolist() == moved
    total = by_level(moved)
    errors = runs.size_run_errors(TOWNS.tree, TOWNS.levels, *sides)
    assert errors.to_dict("list") == {**LEVELS, "emd": total, "emd_per_region": [total[0], total[1] / 2]}

    pairs = list(zip(true, shuffled, strict=True))  # equally many groups, as dense tables require
    l1 = by_level([sum(abs(x - y) for x, y in zip(a, b, strict=True)) for a, b in pairs])
    moved = by_level([entities_to_move(a, b) for a, b in pairs])
    errors = group_sizes.group_size_errors(TOWNS.tree, TOWNS.levels, np.array(true), np.array(shuffled))
    per_region = {"l1_per_region": [l1[0], l1[1] / 2], "emd_per_region": [moved[0], moved[1] / 2]}
    assert errors.to_dict("list") == {**LEVELS, "l1": l1, **per_region}


def test_distances_beyond_64_bits_are_exact():
    true, released = Runs.from_rows([([2**40], [2**30])]), Runs.from_rows([([5], [2**30])])
    assert runs.earth_movers_runs(true, released).tolist() == [2**30 * (2**40 - 5)]


def test_the_omniscient_error_of_figure_4_of_kuo_et_al():
    sizes = np.arange(2352)
    true = Runs.from_rows([(part, np.ones(part.size, int)) for part in (sizes, sizes[:100], sizes[100:])])
    errors = runs.omniscient(TOWNS.tree, TOWNS.levels, true, epsilon=0.2)  # 0.1 for each level
    assert errors["emd_per_region"].tolist() == pytest.approx([3.3e4, 3.3e4 / 2], rel=0.01)


CELLS = st.dictionaries(
    st.tuples(st.sampled_from([0, 1]), st.sampled_from("ABC")), st.integers(-4, 9).filter(bool), min_size=1
)


def cell_table(cells):
    rows = [(level, ["root", "state"][level], place, count) for (level, place), count in cells.items()]
    return pd.DataFrame(rows, columns=["level", "o_level", "o", "count"])


@given(CELLS, CELLS)
@settings(deadline=None, max_examples=15)  # each joins tables for a few hundredths of a second
def test_errors_of_sparse_cells(true, released):
    true = {cell: abs(count) for cell, count in true.items()}
    counts = {cell: (true.get(cell, 0), released.get(cell, 0)) for cell in {*true, *released}}
    tables = cell_table(true), cell_table(released)
    errors = {row["level"]: row for row in group_sizes.top_down_errors(*tables).to_dict("records")}
    assert set(errors) == {level for level, _ in counts}
    for level, row in errors.items():
        pairs = [pair for cell, pair in counts.items() if cell[0] == level]
        present = [before for before, after in pairs if after > 0]
        assert row == {
            "level": level,
            "name": ["o root", "o state"][level],
            "cells": len(present),
            "max_error": max(abs(before - after) for before, after in pairs),
            "l1": sum(abs(before - after) for before, after in pairs),
            "false_discovery_rate": pytest.approx(present.count(0) / max(1, len(present))),
            "false_negatives": sum(before > 0 >= after for before, after in pairs),
        }

    largest = group_sizes.largest_cells(group_sizes.joined_cells(*tables), 3)
    assert largest.true.tolist() == sorted((before for before, _ in counts.values()), reverse=True)[:3]
    for row in largest.itertuples():
        assert (row.true, row.released) == counts[row.level, row.o]
        assert row.error == row.released - row.true
        assert row.relative_error == pytest.approx(row.error / max(1, row.true))
        assert row.released_rank == 1 + sum(after > row.released for _, after in counts.values())


def test_cells_are_joined_exactly():
    tables = cell_table({(1, "A"): 2**60 + 1}), cell_table({(1, "B"): 2**53 + 1})
    joined = group_sizes.joined_cells(*tables)
    assert joined[["true", "released"]].to_numpy().tolist() == [[2**60 + 1, 0], [0, 2**53 + 1]]


def test_the_name_of_a_level_has_the_level_of_every_axis():
    cells = pd.DataFrame({"level": [1], "o_level": ["zone"], "o": ["A"], "d_level": ["port"], "d": ["B"]})
    errors = group_sizes.top_down_errors(cells.assign(count=3), cells.assign(count=3))
    assert errors.name.tolist() == ["o zone × d port"]


BINS = st.lists(st.tuples(st.integers(0, 40), st.floats(-20, 60)), min_size=1, max_size=8)


@given(BINS.filter(lambda bins: any(true for true, _ in bins)), st.sampled_from([None, 1.0, 1e-6]))
def test_divergence_is_that_of_its_definition(bins, floor):
    true, released = zip(*bins, strict=True)
    raised = [max(count, 1 / len(true) if floor is None else floor) for count in released]
    p, q = ([count / sum(counts) for count in counts] for counts in (true, raised))
    expected = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a)
    assert histogram.kld(true, released, floor) == pytest.approx(expected, abs=1e-12)
    grid = np.array(true)[:, None], np.array(released)[:, None]
    assert histogram.kld(*grid, floor) == pytest.approx(expected, abs=1e-12)


def test_the_divergence_of_a_sparse_histogram_from_itself_is_small():
    true = np.zeros(10_000, dtype=np.int64)
    true[:3] = [5, 1, 94]
    assert 0 < histogram.kld(true, true) < 1 / 100
    assert histogram.kld(true, true, 1.0) > 4  # this floor adds 9,997 people


SHAPES = st.sampled_from([(1,), (2,), (7,), (5, 6), (2, 3, 2)])
DTYPES = st.sampled_from([np.int64, np.float64, np.uint8])


def errors_of_boxes(error, box):
    corners = product(*(range(n - side + 1) for n, side in zip(error.shape, box, strict=True)))
    return [error[tuple(slice(a, a + side) for a, side in zip(at, box, strict=True))].sum() for at in corners]


@given(SHAPES, DTYPES, st.integers(0, 99), st.sampled_from([1, 2**33]))
@without_deadline
def test_errors_of_ranges_are_those_of_every_range(shape, dtype, seed, most):
    rng = np.random.default_rng(seed)
    most = 1 if dtype is np.uint8 else most
    true, released = (rng.integers(0, 250 * most, shape).astype(dtype) for _ in range(2))
    error = np.vectorize(lambda a, b: Fraction(b) - Fraction(a), otypes=[object])(true, released)
    tolerance = 1e-12 if dtype is np.float64 else 0  # whole counts are summed exactly
    all_errors = []
    for box in product(*(range(1, n + 1) for n in shape)):
        errors = errors_of_boxes(error, box)
        for p in (1, 2):
            mean = float(sum(abs(e) ** p for e in errors) / Fraction(len(errors)))
            (found,) = ranges.range_error(true, released, [box], p)
            assert found == pytest.approx(mean, rel=tolerance, abs=0)
        all_errors += errors
    cubes = [ranges.range_error(true, released, [side]) for side in (1, (1,) * len(shape))]
    assert cubes[0] == cubes[1]
    assert ranges.box_sums(ranges.prefix_sums(true), [[0] * len(shape)], [shape])[0] == true.sum()
    if len(shape) == 1:
        mean = float(sum(e * e for e in all_errors) / Fraction(len(all_errors)))
        whole = dtype is not np.float64
        assert ranges.all_ranges_error(true, released) == pytest.approx(mean, rel=0 if whole else 1e-9, abs=0)


@pytest.mark.parametrize("seed", [0, 5])
def test_sampled_ranges_are_those_of_every_release_and_fair(seed):
    rng = np.random.default_rng(1)
    true = rng.integers(0, 50, 40)
    released = true + rng.integers(-9, 9, 40)
    low, high = next(ranges.range_places((40,), [7], 30, seed=seed))
    assert (high - low == 7).all()
    assert low.min() >= 0
    assert high.max() <= 40
    sums = [(released - true)[a:b].sum() for a, b in zip(low.ravel(), high.ravel(), strict=True)]
    assert ranges.range_error(true, released, [7], queries=30, seed=seed)[0] == np.mean(np.square(sums))
    many, exactly = (ranges.range_error(true, released, [7], queries=n)[0] for n in (40_000, None))
    assert many == pytest.approx(exactly, rel=0.05)
    low, high = next(ranges.range_places((40,), [37], 1000))
    assert set(low.ravel()) == {0, 1, 2, 3}


def test_range_sizes_are_spread_evenly():
    assert ranges.range_sizes(4096, 5) == [1, 1025, 2048, 3072, 4096]
    assert ranges.range_sizes(3, 20) == [1, 2, 3]


REFUSED = [
    (histogram.kld, ([1, 2], [1.0, 2.0, 3.0]), r"shape: \(2,\) and \(3,\)"),
    (histogram.kld, ([0, 0], [1.0, 2.0]), "not all 0"),
    (histogram.kld, ([-1, 2], [1.0, 2.0]), "at least 0"),
    (histogram.kld, ([1, 2], [1.0, 2.0], 0.0), "floor must be positive.*got 0"),
    (histogram.kld, ([1, 2], [1.0, 2.0], math.nan), "floor must be positive.*got nan"),
    (ranges.all_ranges_error, (np.zeros((2, 2)), np.zeros((2, 2))), "takes counts of one dimension"),
    (ranges.range_error, (np.zeros(4), np.zeros(4), [5]), "a query of 5 bins does not fit .* of 4"),
    (ranges.range_error, (np.zeros(4), np.zeros(4), [0]), "a query of 0 bins"),
    (ranges.range_error, (np.zeros(4), np.zeros(4), [(1, 2)]), r"a query of \(1, 2\) bins"),
    (ranges.range_error, (np.zeros(4), np.zeros(5), [1]), r"shape: \(4,\) and \(5,\)"),
]


@pytest.mark.parametrize(("metric", "arguments", "message"), REFUSED)
def test_counts_and_queries_without_an_error_are_refused(metric, arguments, message):
    with pytest.raises(InputError, match=message):
        metric(*arguments)
