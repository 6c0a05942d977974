"""Errors by level, against loops and against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from doubles import Double, flows, group_sizes
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.mechanisms.top_down import inf_tda, true_table
from hierdp.metrics.group_sizes import (
    earth_movers,
    group_size_errors,
    joined_cells,
    l1,
    largest_cells,
    top_down_errors,
)
from hierdp.privacy.noise import SimulatedNoise
from models import Tree

pytestmark = pytest.mark.slow


@given(st.lists(st.integers(0, 6), max_size=12), st.randoms())
@settings(deadline=None)
def test_earth_movers_is_the_distance_of_sorted_sizes(sizes, random):
    """With groups matched in order of size, the number of entities that they must gain or lose."""
    other = [random.randint(0, 6) for _ in sizes]
    tables = [np.bincount(np.array(s, dtype=int), minlength=7) for s in (sizes, other)]
    moved = sum(abs(a - b) for a, b in zip(sorted(sizes), sorted(other), strict=True))
    assert earth_movers(*tables) == moved
    assert l1(*tables) == sum(abs(int(a) - int(b)) for a, b in zip(*tables, strict=True))


def test_group_size_errors_by_hand():
    tree = Tree([[0, 0]])
    true = np.array([[1, 2, 1], [1, 1, 0], [0, 1, 1]])
    released = np.array([[0, 4, 0], [0, 2, 0], [0, 2, 0]])
    found = group_size_errors(tree, ["nation", "state"], true, released)
    assert found.to_dict("list") == {
        "level": [0, 1],
        "name": ["nation", "state"],
        "regions": [1, 2],
        "l1": [4, 4],
        "l1_per_region": [4.0, 2.0],
        "emd_per_region": [2.0, 1.0],
    }


@given(group_sizes())
@settings(deadline=None)
def test_no_error_without_noise(data):
    found = group_size_errors(data.hierarchy.tree, data.hierarchy.levels, data.counts, data.counts)
    assert not found[["l1", "l1_per_region", "emd_per_region"]].to_numpy().any()
    assert found.regions.tolist() == data.hierarchy.tree.level_sizes.tolist()


def test_top_down_errors_by_hand():
    keys = {"level": [0, 1, 1, 1], "o_level": ["root", "s", "s", "s"], "o": ["all", "A", "B", "C"]}
    true = pd.DataFrame({**keys, "count": [10, 6, 3, 1]})
    released = pd.DataFrame(
        {
            "level": [0, 1, 1, 1],
            "o_level": ["root", "s", "s", "s"],
            "o": ["all", "A", "D", "E"],
            "count": [10, 5, 2, 3],
        }
    )
    found = top_down_errors(true, released)
    assert found.drop(columns="false_discovery_rate").to_dict("list") == {
        "level": [0, 1],
        "name": ["o root", "o s"],
        "cells": [1, 3],
        "max_error": [0, 3],
        "l1": [0, 1 + 3 + 1 + 2 + 3],
        "false_negatives": [0, 2],
    }
    assert found.false_discovery_rate.tolist() == pytest.approx([0, 2 / 3])


@given(flows(), st.integers(0, 1000))
@settings(deadline=None, max_examples=15)
def test_top_down_errors_match_loops(data, seed):
    true, released = true_table(data), inf_tda(data, 1.0, 1e-6, SimulatedNoise(seed)).table
    found = top_down_errors(true, released).set_index("level")
    keys = [c for c in true if c != "count"]
    before, after = (
        {row[:-1]: row[-1] for row in frame[[*keys, "count"]].itertuples(index=False, name=None)}
        for frame in (true, released)
    )
    for level in set(true.level) | set(released.level):
        cells = {cell for cell in {*before, *after} if cell[0] == level}
        away = [abs(before.get(cell, 0) - after.get(cell, 0)) for cell in cells]
        positive = [cell for cell in cells if after.get(cell, 0) > 0]
        row = found.loc[level]
        assert (row.max_error, row.l1, row.cells) == (max(away), sum(away), len(positive))
        invented = sum(before.get(cell, 0) == 0 for cell in positive)
        assert row.false_discovery_rate == pytest.approx(invented / max(1, len(positive)))
        assert row.false_negatives == sum(
            before.get(cell, 0) > 0 and after.get(cell, 0) == 0 for cell in cells
        )


@given(flows())
@settings(deadline=None, max_examples=15)
def test_no_top_down_error_without_noise(data):
    found = top_down_errors(true_table(data), inf_tda(data, 1.0, 1e-6, Double()).table)
    assert not found[["max_error", "l1", "false_discovery_rate", "false_negatives"]].to_numpy().any()


def test_negative_count_is_not_a_discovery():
    """Noise on all cells may give negative counts; such cells do not count as present."""
    cells = {"level": [1, 1], "o_level": ["s", "s"], "o": ["A", "B"]}
    true = pd.DataFrame({**cells, "count": [6, 3]})
    released = pd.DataFrame({**cells, "count": [-2, 4]})
    found = top_down_errors(true, released).iloc[0]
    assert (found.cells, found.false_negatives, found.max_error) == (1, 1, 8)


def test_side_by_side_is_exact():
    cells = {"level": [1], "o_level": ["s"], "o": ["A"]}
    true = pd.DataFrame({**cells, "count": [2**60 + 1]})
    released = pd.DataFrame({**cells, "o": ["B"], "count": [2**53 + 1]})
    both = joined_cells(true, released)
    assert both[["true", "released"]].to_numpy().tolist() == [[2**60 + 1, 0], [0, 2**53 + 1]]


def test_largest_cells_by_hand():
    cells = pd.DataFrame({"o": list("ABCD"), "true": [5, 9, 0, 9], "released": [7, 0, 3, 10]})
    found = largest_cells(cells, 3)
    assert found.o.tolist() == ["B", "D", "A"]
    assert found.error.tolist() == [-9, 1, 2]
    assert found.relative_error.tolist() == pytest.approx([-1, 1 / 9, 0.4])
    assert found.released_rank.tolist() == [4, 1, 2]
    assert largest_cells(cells, 9).relative_error.tolist()[-1] == 3
