"""The paper's synthetic trips, exactly; trips of other sizes; the commuting file."""

import itertools
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.data.commuting import FILE, STATES, commuting
from hierdp.data.trips import SETS, SHARES, binary_areas, published, random_areas, trips
from hierdp.errors import InputError

COMMUTING = Path(__file__).parents[3] / "shared" / "data" / FILE

TABLE_1 = {
    "binary complete": (1_051_271, 65_536),
    "binary dense": (734_688, 32_768),
    "binary sparse": (23_302, 655),
    "random complete": (2_019_580, 189_225),
    "random dense": (1_003_943, 94_612),  # printed as 95,612: half of 435² is 94,612
    "random sparse": (67_840, 1_892),
}


@pytest.mark.parametrize("name", SETS)
def test_published_sets_have_the_trips_of_the_paper_s_table_1(name):
    data = published(name)
    assert (data.total, data.counts.size) == TABLE_1[name]
    assert (data.counts.min(), data.counts.max()) == (1, 1_000)
    places = data.cells[:, 0] * data.axes[0].names[-1].size + data.cells[:, 1]
    assert (np.diff(places) > 0).all()  # sorted, without repetition
    assert data.axis_names == ("origin", "destination")


def test_published_flows_lie_where_the_authors_put_them():
    """Pairs of areas are in the order of Python's sample, flows in the order drawn."""
    data = published("binary sparse")
    pairs = random.Random(42).sample(list(range(256**2)), 655)
    raw = np.random.RandomState(42).pareto(3, 655)
    expected = {divmod(pair, 256): int(1 + x / raw.max() * 999) for pair, x in zip(pairs, raw, strict=True)}
    found = zip(map(tuple, data.cells.tolist()), data.counts.tolist(), strict=True)
    assert dict(found) == expected


def test_published_areas_are_the_authors_recursion():
    """Their tree, in plain loops: a part's seed is its parent's plus its number."""

    def leaves(level, seed):
        if level == 4:
            return 1
        return sum(leaves(level + 1, seed + i) for i in range(random.Random(seed).randint(2, 10)))

    areas = published("random sparse").axes[0]
    assert leaves(0, 42) == areas.names[-1].size == 435
    widths = [np.bincount(np.asarray(level)).tolist() for level in areas.tree.levels]
    assert widths[:2] == [[3], [3, 2, 8]]
    assert all(2 <= n <= 10 for level in widths for n in level)
    # The first part of an area has as many parts as the area.
    for above, below in itertools.pairwise(widths):
        first = np.cumsum([0, *above[:-1]])
        assert [below[i] for i in first] == above


def test_an_unknown_set_is_refused():
    with pytest.raises(InputError, match="'ternary sparse'; choose from 'binary complete'"):
        published("ternary sparse")


def test_binary_areas():
    areas = binary_areas(3)
    assert areas.tree.level_sizes.tolist() == [1, 2, 4, 8]
    assert areas.path(3, 5) == ("all", "1", "2", "5")
    assert list(areas.names[3]) == sorted(areas.names[3])
    assert list(binary_areas(7).names[-1]) == sorted(binary_areas(7).names[-1])


@given(st.integers(0, 99), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2))
@settings(deadline=None, max_examples=12)
def test_random_areas_have_as_many_parts_as_said(seed, levels, fewest, more):
    areas = random_areas(seed, levels, fewest, fewest + more)
    assert areas.tree.depth == levels
    for level in areas.tree.levels:
        parts = np.bincount(np.asarray(level))
        assert fewest <= parts.min() <= parts.max() <= fewest + more
    assert (
        areas.tree.level_sizes.tolist()
        == random_areas(seed, levels, fewest, fewest + more).tree.level_sizes.tolist()
    )


def test_random_areas_take_every_number_of_parts():
    parts = [np.bincount(np.asarray(random_areas(seed, 1).tree.levels[0]))[0] for seed in range(200)]
    assert set(parts) == set(range(2, 11))


@given(st.integers(0, 99), st.sampled_from([0.0, 0.01, 0.5, 1.0]))
@settings(deadline=None, max_examples=10)
def test_trips_fill_their_share_of_the_pairs(seed, share):
    areas = random_areas(seed, 2, 1, 4)
    data = trips(areas, share, seed)
    pairs = areas.names[-1].size ** 2
    assert data.counts.size == int(share * pairs) == len({tuple(cell) for cell in data.cells.tolist()})
    assert (data.cells >= 0).all()
    assert (data.cells < areas.names[-1].size).all()
    assert data.cells.tolist() == sorted(data.cells.tolist())
    assert (data.counts >= 1).all()
    again = trips(areas, share, seed)
    assert (data.counts == again.counts).all()
    assert (data.cells == again.cells).all()


def test_flows_are_pareto_of_index_1():
    """P(X ≥ x) = 1/x up to rounding; another seed gives other flows."""
    counts = trips(binary_areas(8), 1.0, seed=3).counts
    for k in (2, 5, 20, 100):
        expected = 1 / (k - 0.5)
        assert (counts >= k).mean() == pytest.approx(expected, abs=4 * (expected / counts.size) ** 0.5)
    assert (counts != trips(binary_areas(8), 1.0, seed=4).counts).any()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: trips(binary_areas(1), 1.5), "between 0 and 1"),
        (lambda: trips(binary_areas(1), -0.1), "between 0 and 1"),
        (lambda: binary_areas(0), "at least 1"),
        (lambda: random_areas(fewest=0), "got 0 and 10"),
        (lambda: random_areas(fewest=5, most=4), "got 5 and 4"),
    ],
)
def test_invalid_arguments_are_refused(wrong, said):
    with pytest.raises(InputError, match=said):
        wrong()


def test_shares():
    assert list(SHARES.values()) == [1, 1 / 2, 1 / 100]


def write(path, rows):
    columns = ["origin_state", "origin_county", "dest_state", "dest_county", "workers"]
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    return path


def test_both_ends_have_the_counties_of_either(tmp_path):
    rows = [("01", "01001", "02", "02013", 5), ("01", "01003", "01", "01001", 7)]
    data = commuting(write(tmp_path / FILE, rows))
    assert data.axes[0] is data.axes[1] or list(data.axes[0].names[2]) == list(data.axes[1].names[2])
    assert list(data.axes[0].names[2]) == ["01001", "01003", "02013"]
    assert data.axes[0].levels == ("nation", "state", "county")
    assert data.cells.tolist() == [[0, 2], [1, 0]]
    assert data.counts.tolist() == [5, 7]


def test_without_the_file(tmp_path):
    with pytest.raises(InputError, match="American Community Survey"):
        commuting(tmp_path / FILE)


def test_states():
    assert len(STATES) == len(set(STATES.values())) == 52
    assert all(len(code) == 2 == len(fips) for fips, code in STATES.items())
    assert (STATES["06"], STATES["36"], STATES["11"], STATES["72"]) == ("CA", "NY", "DC", "PR")


@pytest.mark.skipif(not COMMUTING.exists(), reason=f"{COMMUTING} is not here")
def test_the_commuting_file():
    data = commuting(COMMUTING)
    assert data.axes[0].tree.level_sizes.tolist() == [1, 52, 3_221]
    assert (data.total, data.counts.size) == (140_738_397, 135_705)
    assert set(data.axes[0].names[1]) == set(STATES)
