"""The partially synthetic housing: the paper's numbers, the tail, the outliers, the counties."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hierdp.counts.size_runs import Runs
from hierdp.data.census import PUBLISHED
from hierdp.data.housing import COUNTIES, GROUPS, MAX_SIZE, OUTLIERS, WEST_COAST, housing
from hierdp.errors import InputError

pytestmark = pytest.mark.slow

COMMUTING = Path(__file__).parents[3] / "shared" / "data" / "us-commuting-2009-2013.parquet"


def same(one, other):
    pairs = ((one.offsets, other.offsets), (one.sizes, other.sizes), (one.counts, other.counts))
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def whole():
    return housing()


def test_the_paper_s_numbers(whole):
    assert whole.groups == GROUPS == 240_908_081
    assert whole.hierarchy.tree.level_sizes.tolist() == [1, 52, 52 * COUNTIES]
    assert pytest.approx(whole.runs.people[0], rel=0.04) == 605e6
    # 52 states with 50 of 10,000 sizes each, and about twenty small sizes; the standard deviation is 17.
    assert whole.runs.distinct[0] == pytest.approx(2352, abs=100)
    assert whole.runs.sizes.min() == 1
    assert 9_900 < whole.runs.sizes.max() <= MAX_SIZE


def test_published_shares_and_the_tail_s_ratio(whole):
    counts = Runs.dense(whole.runs.between(0, 1), MAX_SIZE)[0]
    shares = np.array(PUBLISHED) / sum(PUBLISHED)
    assert counts[1:7] / GROUPS == pytest.approx(shares[:6], rel=0.001)
    assert counts[7:].sum() / GROUPS == pytest.approx(shares[6], rel=0.001)
    for size in range(6, 12):
        assert counts[size + 1] / counts[size] == pytest.approx(1_740 / (2_784 + 1_740), rel=0.01)
    assert counts[108:].sum() == pytest.approx(52 * OUTLIERS * (1 - 107 / MAX_SIZE), abs=30)


def test_regions_add_up(whole):
    tree = whole.hierarchy.tree
    below = whole.runs.between(int(tree.level_start[2]), tree.size)
    assert same(below.summed_up(tree), whole.runs)


def test_states_are_the_same_alone_and_without_counties():
    whole, states = housing(4, 200_000), housing(4, 200_000, counties=False)
    assert states.hierarchy.levels == ("nation", "state")
    assert same(states.runs, whole.runs.between(0, 53))
    part = housing(4, 200_000, states=["S07", "S03"])
    assert part.hierarchy.names[1].tolist() == ["S03", "S07"]
    assert same(part.runs.between(1, 2), whole.runs.between(3, 4))
    assert same(part.runs.between(2, 3), whole.runs.between(7, 8))
    assert part.groups == whole.runs.groups[3] + whole.runs.groups[7]


def test_the_same_seed_gives_the_same_housing():
    first, again, other = (housing(seed, 50_000) for seed in (1, 1, 2))
    assert same(first.runs, again.runs)
    assert not same(first.runs, other.runs)
    assert first.groups == other.groups == 50_000


def test_counties_have_their_shares(tmp_path):
    homes = pd.DataFrame(
        {"origin_state": ["A", "A", "B"], "origin_county": ["x", "y", "z"], "workers": [1, 3, 4]}
    )
    homes.to_parquet(tmp_path / "homes.parquet")
    groups = housing(0, 1_000_000, homes=tmp_path / "homes.parquet").runs.groups
    assert groups[[1, 3, 4]] / 1e6 == pytest.approx([0.5, 0.125, 0.375], abs=0.005)


@pytest.mark.skipif(not COMMUTING.exists(), reason=f"{COMMUTING} is not here")
def test_the_west_coast():
    west = housing(0, homes=COMMUTING, states=WEST_COAST)
    assert west.hierarchy.tree.level_sizes.tolist() == [1, 3, 58 + 36 + 39]


def test_invalid_arguments_are_refused():
    with pytest.raises(InputError, match="too few"):
        housing(0, 5_199)
    with pytest.raises(InputError, match="unknown state 'Cascadia'; choose from 'S01'"):
        housing(0, states=["Cascadia"])
