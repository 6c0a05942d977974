"""A large release of groups by size is that of a small one: it streams, and has the same measurements."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from test_check import failed, verdicts
from test_measurement_files import CASES, change

from hierdp import Measurements
from hierdp.checking import FAILS, HOLDS
from hierdp.measurements import file
from hierdp.measurements.file import MeasurementsFile
from hierdp.measurements.measuring import Recording
from hierdp.mechanisms.group_size import post_processing
from hierdp.record.files import MEASUREMENTS
from hierdp.record.spool import Steps
from tests.marks import quick


@pytest.mark.parametrize("method", quick(["M_c^dp", "M_H^dp"]))
def test_a_large_release_has_the_measurements_of_a_small_one(method, tmp_path, monkeypatch):
    """Blocks of one size; steps and measurements go to files at once, two answers at a time."""
    small = CASES[method].release()
    monkeypatch.setattr(post_processing, "CELLS_A_BLOCK", 6)
    monkeypatch.setattr(Steps, "MOST", 0)
    monkeypatch.setattr(Recording, "MOST", 0)
    monkeypatch.setattr(file, "ROWS", 2)
    release = CASES[method].release()
    assert not release.steps.in_memory
    assert isinstance(release.measurements.parts, MeasurementsFile)
    folder = release.write(tmp_path / "large")
    assert release.table.equals(small.table)
    again = Measurements.read(folder / MEASUREMENTS)
    assert again.spends == small.measurements.spends == release.ledger.spends
    for theirs, ours in zip(again, small.measurements, strict=True):
        assert theirs.answers.tolist() == ours.answers.tolist()
    assert pq.read_metadata(folder / MEASUREMENTS).num_row_groups == 14
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["budget: queries"] == found["table from steps"] == found["noise"] == HOLDS
    before = (folder / MEASUREMENTS).read_bytes()
    for row in (0, 5, 26):
        change(folder, lambda frame, row=row: frame.update(frame.loc[[row], ["answer"]] + 1))
        assert "table from steps" in failed(folder), row
        (folder / MEASUREMENTS).write_bytes(before)


def test_the_measurements_are_all_noisy_counts_in_the_order_of_the_table(tmp_path):
    release = CASES["M_H^dp"].release()
    rows = pd.read_parquet(release.write(tmp_path / "out") / MEASUREMENTS)
    assert rows["query"].tolist() == ["sizes by root"] * 3 + ["sizes by state"] * 9 + ["sizes by town"] * 15
    noisy = rows["answer"].to_numpy().reshape(-1, 3)
    (step,) = release.steps
    assert (np.asarray(step.model.noisy) == noisy).all()
