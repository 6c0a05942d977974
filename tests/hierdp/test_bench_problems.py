"""The benchmark's problems from data that the reader has."""

import itertools

import numpy as np
import pandas as pd
import pytest

from hierdp.bench.problems import LIMITS, _precincts, _set_of
from models import WorkloadLeastSquares, WorkloadRounding

PLACES = [("DE", f"DE county {k // 3}", f"{k:03}") for k in range(6)] + [("RI", "RI county", "100")]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Persons of six precincts of Delaware, and of one elsewhere."""
    path = tmp_path_factory.mktemp("data") / "us-precincts-2020.parquet"
    rows = [
        (*place, group, age, 3 * k + len(group))
        for (k, place), group, age in itertools.product(enumerate(PLACES), ("a", "bcd"), ("young", "old"))
    ]
    frame = pd.DataFrame(rows, columns=["state", "county", "precinct", "group", "age", "persons"])
    frame.astype({"state": "category"}).to_parquet(path)
    return _precincts(path)


def test_a_model_without_noisy_counts_belongs_to_a_set_by_its_variables():
    """It counted as one cell, and so as small."""
    for size in (10, 300):
        model = WorkloadRounding.random(np.random.default_rng(0), size)
        assert _set_of(model) == ("small" if model.program().size <= LIMITS["small"] else "medium")
    assert _set_of(model) == "medium"


@pytest.mark.slow
def test_precincts_of_delaware_give_steps_of_a_tabulation(release):
    assert len(release.table) < len(PLACES) * 4 * 4
    assert "100" not in release.table.astype(str).to_numpy()
    assert "005" in release.table.astype(str).to_numpy()
    kinds = {type(part()[1]) for step in release.steps for part in step.parts}
    assert kinds == {WorkloadLeastSquares, WorkloadRounding}
