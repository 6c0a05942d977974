"""The census-like data: published totals, the tail, outliers, and the shares of regions."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hierdp.data.census import GROUPS, LEAVES, OUTLIERS, PUBLISHED, census, national
from hierdp.errors import InputError

COMMUTING = Path(__file__).parents[3] / "shared" / "data" / "us-commuting-2009-2013.parquet"


def test_national_totals_are_the_published_ones_scaled():
    counts = national(np.random.default_rng(0), GROUPS, 1_000)
    assert counts.sum() == GROUPS
    expected = np.array(PUBLISHED) / sum(PUBLISHED) * (GROUPS - OUTLIERS)
    assert np.abs(counts[1:7] - expected[:6]).max() < 1
    assert abs(counts[7:].sum() - OUTLIERS - expected[6]) < 1
    assert counts[0] == 0


def test_the_tail_falls_by_one_ratio_and_ends_in_outliers():
    counts = national(np.random.default_rng(0), GROUPS, 1_000)
    ratio = 1_740 / (2_784 + 1_740)
    for size in range(6, 10):
        assert counts[size + 1] / counts[size] == pytest.approx(ratio, rel=0.02)
    assert 40 <= counts[40:].sum() <= OUTLIERS  # the tail itself ends before 40


def test_the_same_seed_gives_the_same_households():
    first, again, other = (census(seed, 10_000, 60, 20) for seed in (1, 1, 2))
    assert (first.counts == again.counts).all()
    assert (first.counts != other.counts).any()
    assert list(first.hierarchy.names[2]) == list(again.hierarchy.names[2])


def test_it_is_consistent_and_of_the_given_size():
    made = census(0, 100_000, 80, 30)
    tree = made.hierarchy.tree
    assert tree.level_sizes.tolist() == [1, 52, 80]
    assert made.groups == 100_000
    assert (made.counts == tree.sum_up(made.counts[tree.leaves])).all()


def test_the_largest_parts_are_cut(tmp_path):
    homes = pd.DataFrame(
        {"origin_state": ["A"] * 3, "origin_county": ["x", "y", "z"], "workers": [50, 800, 150]}
    )
    homes.to_parquet(tmp_path / "homes.parquet")
    made = census(0, 1_000_000, 52, 10, homes=tmp_path / "homes.parquet")
    parts = made.hierarchy.names[2]
    counties = [part.split("/")[1] for part in parts]
    assert {county: counties.count(county) for county in "xyz"} == {"x": 3, "y": 41, "z": 8}
    share = made.counts[1 + 1 :].sum(axis=1) / 1_000_000
    for county, total in zip("xyz", (0.05, 0.8, 0.15), strict=True):
        assert share[[c == county for c in counties]].sum() == pytest.approx(total, abs=0.005)


@pytest.mark.skipif(not COMMUTING.exists(), reason=f"{COMMUTING} is not here")
def test_with_real_shares_it_has_the_paper_s_size():
    made = census(0, homes=COMMUTING)
    assert made.hierarchy.tree.level_sizes.tolist() == [1, 52, LEAVES]
    assert made.groups == GROUPS
    assert len({part.rsplit("/", 1)[0] for part in made.hierarchy.names[2]}) == 3_221


@pytest.mark.parametrize("wrong", [{"leaves": 51}, {"max_size": 9}, {"groups": 10}])
def test_too_small_a_census_is_refused(wrong):
    with pytest.raises(InputError, match="at least"):
        census(0, **wrong)
