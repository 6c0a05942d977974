"""A zero diagonal: nothing is measured or put there if it is declared."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp.data.trips import binary_areas, trips
from hierdp.experiments.papers import boninsegna2025
from hierdp.experiments.papers.boninsegna2025 import QUICK

pytestmark = pytest.mark.slow

SETTINGS = replace(QUICK, sparse_runs=2, sparse_epsilons=(1.0,))


@pytest.fixture(scope="module")
def found():
    return boninsegna2025.diagonal_rows({"a": trips(binary_areas(3), 0.5)}, SETTINGS, 0)


def test_the_diagonal_is_taken_out():
    data = trips(binary_areas(3), 0.5)
    apart = boninsegna2025.without_diagonal(data)
    inside = data.cells[:, 0] == data.cells[:, 1]
    assert inside.any()
    assert apart.total == data.total - data.counts[inside].sum()
    assert (apart.cells[:, 0] != apart.cells[:, 1]).all()


def test_declared_zeros_stay_empty_and_cost_no_noise(found):
    assert len(found) == 2 * 2 * 2
    declared = found[found.declared]
    assert (declared.trips_on_the_diagonal == 0).all()
    assert (found[~found.declared].trips_on_the_diagonal > 0).any()
    assert declared.noisy_counts.mean() < found[~found.declared].noisy_counts.mean()


def test_the_part_has_the_means(found):
    table = boninsegna2025.diagonal_part(found).frames["diagonal"].set_index(["method", "declared"])
    assert (table.runs == 2).all()
    mine = found[(found.method == "TDA_L2") & ~found.declared]
    assert table.loc[("TDA_L2", False), "max_error"] == pytest.approx(np.mean(mine.max_error))
