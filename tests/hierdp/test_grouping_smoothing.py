"""GS: clusters of equal size in the noisy order; sensitivities and spends."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierdp.errors import InputError
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import ExactNoise, SimulatedNoise
from tests.hierdp.doubles import Double, clustered, unrelated


def test_by_hand():
    made = clustered("GS", np.array([8, 0, 7, 1, 0, 9, 1]), 1.0, Double(), width=3)
    assert made.clusters.tolist() == [1, 0, 1, 0, 0, 2, 1]  # sorted: 0, 0, 1 | 1, 7, 8 | 9
    assert made.counts == pytest.approx([16 / 3, 1 / 3, 16 / 3, 1 / 3, 1 / 3, 9, 16 / 3])
    assert made.settings == {"share": 0.5, "width": 3}


def test_equal_noisy_counts_stay_in_order():
    assert clustered("GS", np.zeros(40, np.int64), 1.0, Double(), width=7).clusters.tolist() == [
        i // 7 for i in range(40)
    ]


@given(st.integers(1, 400))
def test_the_default_width_is_the_root_of_the_bins_rounded_up(bins):
    width = clustered("GS", np.zeros(bins, np.int64), 1.0, Double()).settings["width"]
    assert (width - 1) ** 2 < bins <= width**2


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sensitivities_by_all_neighbours(width):
    """One count of the first query moves by one; given the same answer, so does one sum of the second.

    The clusters depend on that answer only.
    """
    for number, counts in enumerate(itertools.product(range(3), repeat=4)):
        for i in range(4):
            measured = []
            for extra in (0, 1):
                noise = unrelated(number, 9)
                made = clustered(
                    "GS", np.array(counts) + extra * (np.arange(4) == i), 1.0, noise, width=width
                )
                places = np.argsort(np.argsort(noise.noisy[0], kind="stable"))
                assert (made.clusters == places // width).all()
                measured.append(noise)
            here, there = measured
            assert len(here.true) == len(there.true) == 2
            for before, after, spend in zip(here.true, there.true, here.spends, strict=True):
                assert np.abs(before - after).sum() == 1 == spend.sensitivity


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(3)], ids=["exact", "simulated"])
def test_spends(noise):
    made = clustered("GS", np.arange(50), 0.9, noise, share=0.25)
    assert [spend.epsilon for spend in made.spends] == pytest.approx([0.225, 0.675])
    assert Ledger(0.9, 0.0, "one person", made.spends).private is isinstance(noise, ExactNoise)
    assert np.bincount(made.clusters).tolist() == [8] * 6 + [2]
    assert all(np.unique(made.counts[made.clusters == run]).size == 1 for run in range(7))


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=30), st.integers(1, 30))
def test_without_noise_sums_are_kept(counts, width):
    true, width = np.array(counts), min(width, len(counts))
    made = clustered("GS", true, 1.0, Double(), width=width)
    assert made.counts.sum() == pytest.approx(true.sum())
    along = [int(true[made.clusters == run].sum()) for run in range(int(made.clusters.max()) + 1)]
    assert along == [sum(sorted(counts)[i : i + width]) for i in range(0, len(counts), width)]


@pytest.mark.parametrize("width", [0, -1, 6])
def test_widths_that_do_not_fit(width):
    noise = Double()
    with pytest.raises(InputError, match=f"width is {width}: a cluster has 1 … 5 bins"):
        clustered("GS", np.zeros(5, np.int64), 1.0, noise, width=width)
    assert not noise.true  # it is refused before any query


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan"), "much"])
def test_invalid_shares_are_refused(share):
    noise = Double()
    with pytest.raises(InputError, match="share"):
        clustered("GS", np.zeros(5, np.int64), 1.0, noise, share=share)
    assert not noise.true
