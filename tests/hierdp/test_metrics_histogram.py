"""The divergence of a released histogram, by its definition and in extreme cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierdp.errors import InputError
from hierdp.metrics.histogram import kld


def plain(true, released, floor):
    raised = [max(r, floor) for r in released]
    return sum(
        t / sum(true) * math.log((t / sum(true)) / (r / sum(raised)))
        for t, r in zip(true, raised, strict=True)
        if t > 0
    )


COUNTS = st.lists(st.tuples(st.integers(0, 40), st.floats(-20, 60)), min_size=1, max_size=8)


@given(COUNTS.filter(lambda both: any(t for t, _ in both)), st.sampled_from([None, 1.0, 1e-6]))
def test_divergence_matches_its_definition(both, floor):
    true, released = zip(*both, strict=True)
    found = kld(true, released, floor)
    assert found == pytest.approx(plain(true, released, 1 / len(true) if floor is None else floor), abs=1e-12)
    assert found >= -1e-12  # like any divergence of two distributions (Gibbs)


def test_divergence_to_itself_is_small_with_empty_bins():
    true = np.zeros(10_000, dtype=np.int64)
    true[:3] = [5, 1, 94]
    assert 0 < kld(true, true) < 1 / 100
    assert kld(true, true, 1.0) > 4  # the floor of 1 acts like 9,997 people who do not exist
    assert kld([2, 3], [2, 3]) == 0


def test_scale_is_no_matter_and_shape_is():
    assert kld([1, 2, 5], [30.0, 10.0, 10.0]) == pytest.approx(kld([2, 4, 10], [3.0, 1.0, 1.0]))
    grid = np.array([[1, 2], [0, 5]])
    assert kld(grid, grid + 1.0) == pytest.approx(kld(grid.ravel(), grid.ravel() + 1.0))


def test_a_missing_bin_costs_more_the_lower_the_floor():
    one, two, three = (kld([10, 10, 0], [20.0, -3.0, 0.0], floor) for floor in (1.0, 0.1, 1e-9))
    assert one < two < three < math.inf


@pytest.mark.parametrize(
    ("true", "released", "floor", "message"),
    [
        ([1, 2], [1.0, 2.0, 3.0], None, r"shape: \(2,\) and \(3,\)"),
        ([0, 0], [1.0, 2.0], None, "not all 0"),
        ([-1, 2], [1.0, 2.0], None, "at least 0"),
        ([1, 2], [1.0, 2.0], 0.0, "floor must be positive.*got 0"),
        ([1, 2], [1.0, 2.0], float("nan"), "floor must be positive.*got nan"),
    ],
)
def test_what_is_refused(true, released, floor, message):
    with pytest.raises(InputError, match=message):
        kld(true, released, floor)
